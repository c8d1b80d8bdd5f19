//! Stencils of 5 to 27 points and of any radius, Jacobi's method with a halo, waves, the game of life.
//!
//! Invariant: as in [`super`].

use super::Kernel;
use super::setup::{Setup, sums, tiles};
use crate::bench::case::{Array, Check};

/// A grid of points in three dimensions, and its CTAs.
const BOX: [usize; 3] = [256, 160, 128];

fn size(s: &Setup) -> [usize; 3] {
    [0, 1, 2].map(|at| s.pick(BOX[at], BOX[at] / 4))
}

fn boxed(s: &mut Setup, depth: u32, magnitude: f32) -> [usize; 3] {
    let [x, y, z] = size(s);
    s.what(format!("{x} x {y} x {z}"));
    s.floats(x * y * z, -1.0, 1.0);
    s.output(4 * x * y * z, sums(depth, magnitude));
    s.numbers([x, y, z]);
    [x, y, z]
}

fn plane(s: &mut Setup) -> [usize; 2] {
    let (w, h) = (s.pick(1920, 200), s.pick(1080, 90));
    s.what(format!("{w} x {h}"));
    [w, h]
}

pub(super) const ROWS: &[Kernel] = &[
    Kernel {
        name: "stencil5",
        make: |s| {
            let [w, h] = plane(s);
            s.floats(w * h, -1.0, 1.0);
            s.output(4 * w * h, sums(5, 1.0));
            s.numbers([w, h]);
            s.launch(tiles([w, h, 1], [32, 8, 1]), [32, 8, 1]);
        },
    },
    Kernel {
        name: "stencil9",
        make: |s| {
            let [w, h] = plane(s);
            s.floats(w * h, -1.0, 1.0);
            s.output(4 * w * h, sums(7, 1.0));
            s.numbers([w, h]);
            s.factors([0.5, 0.1, 0.025]);
            s.launch(tiles([w, h, 1], [64, 4, 1]), [64, 4, 1]);
        },
    },
    Kernel {
        name: "stencil7_march",
        make: |s| {
            let [x, y, _] = boxed(s, 7, 1.0);
            s.factors([0.4, 0.1]);
            s.launch(tiles([x, y, 1], [32, 8, 1]), [32, 8, 1]);
        },
    },
    Kernel {
        name: "stencil13",
        make: |s| {
            let size = boxed(s, 9, 1.0);
            s.launch(tiles(size, [32, 4, 2]), [32, 4, 2]);
        },
    },
    Kernel {
        name: "stencil25",
        make: |s| {
            // CTAs cover the interior without rest.
            let [x, y, z] = [s.pick(264, 72), s.pick(168, 24), s.pick(128, 16)];
            s.what(format!("{x} x {y} x {z}"));
            s.floats(x * y * z, -1.0, 1.0);
            s.output(4 * x * y * z, sums(12, 20.0));
            s.numbers([x, y, z]);
            s.launch(tiles([x - 8, y - 8, 1], [32, 8, 1]), [32, 8, 1]);
        },
    },
    Kernel {
        name: "stencil27",
        make: |s| {
            let size = boxed(s, 28, 1.0);
            let weights = [0.2f32, 0.05, 0.025, 0.025].into_iter().flat_map(f32::to_le_bytes).collect();
            s.array(Array::input(weights));
            s.launch(tiles(size, [64, 2, 2]), [64, 2, 2]);
        },
    },
    Kernel {
        name: "stencil_radius",
        make: |s| {
            let (n, radius) = (s.pick(1 << 21, 10_000) - 77, 24);
            s.what(format!("{n} points, radius {radius}"));
            s.floats(n, -1.0, 1.0);
            s.floats(2 * radius + 1, 0.0, 0.04);
            s.output(4 * n, sums(49, 2.0));
            s.numbers([n, radius]);
            s.launch(tiles([n, 1, 1], [256, 1, 1]), [256, 1, 1]);
        },
    },
    Kernel {
        name: "jacobi",
        make: |s| {
            let [w, h] = plane(s);
            let steps = 8;
            s.what(format!("{w} x {h}, {steps} steps"));
            let random = s.noise().floats(w * h, -1.0, 1.0);
            let a = s.array(Array::inout(random, sums(5 * 8, 2.0)).restored());
            let force = s.floats(w * h, -0.5, 0.5);
            let b = s.output(4 * w * h, sums(5 * 8, 2.0));
            let [w_, h_] = s.numbers([w, h]);
            s.int(steps);
            for step in 0..steps {
                let (from, to) = if step % 2 == 0 { (a, b) } else { (b, a) };
                s.step("jacobi", tiles([w, h, 1], [16, 16, 1]), [16, 16, 1], &[from, force, to, w_, h_]);
            }
        },
    },
    Kernel {
        name: "fdtd",
        make: |s| {
            let [w, h] = plane(s);
            let steps = 4;
            s.what(format!("{w} x {h}, {steps} steps"));
            let field = |s: &mut Setup| {
                let random = s.noise().floats(w * h, -1.0, 1.0);
                // Each half step adds four values, each at most twice the largest so far.
                s.array(Array::inout(random, sums(6 * 8, 64.0)).restored())
            };
            let (hx, hy, ez) = (field(s), field(s), field(s));
            let [w_, h_] = s.numbers([w, h]);
            s.int(steps);
            for _ in 0..steps {
                let grid = tiles([w, h, 1], [32, 8, 1]);
                s.step("fdtd_magnetic", grid, [32, 8, 1], &[hx, hy, ez, w_, h_]);
                s.step("fdtd_electric", grid, [32, 8, 1], &[ez, hx, hy, w_, h_]);
            }
        },
    },
    Kernel {
        name: "life",
        make: |s| {
            let [w, h] = plane(s);
            let alive = s.noise().words(w * h / 4).into_iter().map(|byte| byte & 1).collect();
            s.array(Array::input(alive));
            s.output(w * h, Check::Bytes);
            s.numbers([w, h]);
            s.launch(tiles([w, h, 1], [32, 8, 1]), [32, 8, 1]);
        },
    },
    Kernel {
        name: "advect",
        make: |s| {
            let [w, h] = plane(s);
            s.floats(w * h, -1.0, 1.0);
            s.floats(w * h, -3.0, 3.0);
            s.floats(w * h, -3.0, 3.0);
            // A fraction of a coordinate up to 1920 is exact to 2^-13 on both sides.
            s.output(4 * w * h, sums(6, 2048.0));
            s.numbers([w, h]);
            s.launch(tiles([w, h, 1], [32, 8, 1]), [32, 8, 1]);
        },
    },
];
