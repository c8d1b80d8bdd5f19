//! Simulations, searches and pictures of scenes.
//!
//! Invariant: as in [`super`]. Where rounding decides how long a loop runs, a share of the elements may
//! differ by more than rounding; that share is bounded in the row.

use super::Kernel;
use super::setup::{Setup, over, sums, tiles};
use crate::bench::case::{Array, Check, Value};

fn picture(s: &Setup) -> [usize; 2] {
    [s.pick(1280, 160), s.pick(720, 90)]
}

/// All placements of queens in the first rows of a board: columns and both diagonals, as bits.
fn placements(size: u32, rows: u32) -> Vec<[u32; 4]> {
    let all = (1u32 << size) - 1;
    let mut boards = vec![[0; 4]];
    for _ in 0..rows {
        let next = |[columns, left, right, _]: [u32; 4]| {
            (0..size)
                .map(|bit| 1 << bit)
                .filter(move |place| all & !(columns | left | right) & place != 0)
                .map(move |place| [columns | place, (left | place) << 1, (right | place) >> 1, 0])
        };
        boards = boards.into_iter().flat_map(next).collect();
    }
    boards
}

pub(super) const ROWS: &[Kernel] = &[
    Kernel {
        name: "queens",
        make: |s| {
            let size = s.pick(11, 8);
            let starts = placements(size as u32, 3);
            let count = starts.len();
            s.what(format!("{size} queens, {count} placements of 3"));
            let bytes = starts.into_iter().flatten().flat_map(u32::to_le_bytes).collect();
            s.array(Array::input(bytes));
            s.zeroed(8, Check::Bytes);
            s.numbers([count, size]);
            s.launch(over(count, 64), [64, 1, 1]);
        },
    },
    Kernel {
        name: "ray_march",
        make: |s| {
            let [w, h] = picture(s);
            s.what(format!("{w} x {h}"));
            let why = "rounding of a distance near 0.01 decides whether there is another step";
            s.output(4 * w * h, Check::MostFloats { abs: 0.02, rel: 1e-3, share: 1e-2, why });
            s.numbers([w, h]);
            s.float(60.0);
            s.launch(tiles([w, h, 1], [16, 8, 1]), [16, 8, 1]);
        },
    },
    Kernel {
        name: "ray_trace",
        make: |s| {
            let ([w, h], count) = (picture(s), 24);
            s.what(format!("{w} x {h}, {count} spheres"));
            let mut noise = s.noise();
            let mut unit = || (noise.word() >> 8) as f32 / 16_777_216.0;
            let spheres = (0..count).flat_map(|_| {
                [8.0 * unit() - 4.0, 5.0 * unit() - 2.5, 5.0 + 5.0 * unit(), 0.3 + 0.7 * unit()]
            });
            let spheres = spheres.flat_map(f32::to_le_bytes).collect();
            s.array(Array::input(spheres));
            let why = "rounding decides at the edges of spheres and of shadows";
            s.output(w * h, Check::MostLevels { by: 1, share: 1e-3, why });
            s.numbers([w, h, count]);
            s.launch(tiles([w, h, 1], [16, 16, 1]), [16, 16, 1]);
        },
    },
    Kernel {
        name: "boltzmann",
        make: |s| {
            let (w, h) = (s.pick(768, 96), s.pick(512, 64));
            s.what(format!("{w} x {h}, 9 directions"));
            s.floats(9 * w * h, 0.1, 0.2);
            s.output(4 * 9 * w * h, sums(30, 4.0));
            s.numbers([w, h]);
            s.float(1.2);
            s.launch(tiles([w, h, 1], [64, 2, 1]), [64, 2, 1]);
        },
    },
    Kernel {
        name: "molecules",
        make: |s| {
            let (n, most) = (s.pick(30_000, 1000), 48);
            s.what(format!("{n} molecules, {most} neighbours"));
            // A lattice of distance 1 with offsets, so that neighbours are no nearer than 0.6.
            let side = (1..).find(|side: &usize| side.pow(3) >= n).unwrap_or(1);
            let mut noise = s.noise();
            let mut offset = || (noise.word() >> 8) as f32 / 16_777_216.0 * 0.2;
            let place = |at: usize| [at % side, at / side % side, at / side / side];
            let mut bytes = Vec::new();
            for at in 0..n {
                for c in place(at) {
                    bytes.extend((c as f32 + offset()).to_le_bytes());
                }
                bytes.extend([0; 4]);
            }
            s.array(Array::input(bytes));
            let mut noise = s.noise();
            let step = |n: u32| n as isize % 5 - 2;
            let neighbours: Vec<i32> = (0..n * most)
                .map(|at| {
                    let own = at % n;
                    loop {
                        let [x, y, z] = [noise.word() >> 9, noise.word() >> 9, noise.word() >> 9].map(step);
                        let other = own as isize + x + side as isize * (y + side as isize * z);
                        if other != own as isize && (0..n as isize).contains(&other) {
                            break other as i32;
                        }
                    }
                })
                .collect();
            s.int_array(neighbours);
            // 48 terms, each of distances that are exact to 2^-19 and enter with a power of 14.
            s.output(
                16 * n,
                Check::Floats { abs: 1e-2, rel: 1e-3, why: "distances to the power of -14, added up" },
            );
            s.numbers([n, most]);
            s.float(6.25);
            s.launch(over(n, 128), [128, 1, 1]);
        },
    },
    Kernel {
        name: "deposit",
        make: |s| {
            let (n, side) = (s.pick(500_000, 10_000), s.pick(128, 32));
            s.what(format!("{n} particles, {side} x {side} points"));
            s.floats(2 * n, 0.0, side as f32 - 1.01);
            s.zeroed(4 * side * side, sums(300, 100.0));
            s.numbers([n, side]);
            s.launch(over(n, 256), [256, 1, 1]);
        },
    },
    Kernel {
        name: "align",
        make: |s| {
            let n = s.pick(2048, 128);
            s.what(format!("{n} x {n}"));
            let letters = |s: &Setup| s.noise().words(n / 4).into_iter().map(|v| v >> 6).collect();
            let a = s.array(Array::input(letters(s)));
            let b = s.array(Array::input(letters(s)));
            let edge = |at: usize| {
                let (x, y) = (at % (n + 1), at / (n + 1));
                if x == 0 || y == 0 { -((x + y) as i32) } else { 0 }
            };
            let score = super::setup::le_bytes((0..(n + 1) * (n + 1)).map(edge));
            let score = s.array(Array::inout(score, Check::Bytes));
            let size = s.int(n);
            let tiles = n as i32 / 16;
            for diagonal in 0..2 * tiles - 1 {
                let first = (diagonal - tiles + 1).max(0);
                let count = diagonal.min(tiles - 1) - first + 1;
                let args = [a, b, score, size, Value::S32(diagonal), Value::S32(first)];
                s.step("align", [count as u32, 1, 1], [16, 1, 1], &args);
            }
        },
    },
    Kernel {
        name: "edit_distance",
        make: |s| {
            let pairs = s.pick(20_000, 500);
            s.what(format!("{pairs} pairs of words"));
            let words = |s: &Setup| s.noise().words(8 * pairs).into_iter().map(|v| v & 7).collect();
            let a = words(s);
            s.array(Array::input(a));
            let b = words(s);
            s.array(Array::input(b));
            let mut noise = s.noise();
            let lengths: Vec<i32> = (0..2 * pairs).map(|_| 1 + (noise.word() >> 27) as i32).collect();
            s.int_array(lengths);
            s.output(4 * pairs, Check::Bytes);
            s.int(pairs);
            s.launch(over(pairs, 128), [128, 1, 1]);
        },
    },
    Kernel {
        name: "cheapest_path",
        make: |s| {
            let (columns, rows) = (s.pick(100_000, 1000), 32);
            s.what(format!("{columns} x {rows}"));
            let costs = s.noise().words(columns * rows / 4).into_iter().map(|v| i32::from(v % 10));
            let costs: Vec<i32> = costs.collect();
            let costs = s.int_array(costs);
            let a = s.array(Array::output(4 * columns, Check::Bytes).restored());
            let b = s.scratch(4 * columns);
            let size = s.int(columns);
            s.int(rows);
            for (pass, row) in (0..rows as i32).step_by(8).enumerate() {
                let (from, to) = if pass % 2 == 0 { (a, b) } else { (b, a) };
                let args = [costs, from, to, size, Value::S32(row), Value::S32(8)];
                s.step("cheapest_path", [columns.div_ceil(240) as u32, 1, 1], [256, 1, 1], &args);
            }
        },
    },
    Kernel {
        name: "julia",
        make: |s| {
            let [w, h] = picture(s);
            s.what(format!("{w} x {h}"));
            let why = "an orbit near the border of the set magnifies rounding with each step";
            s.output(w * h, Check::MostLevels { by: 0, share: 2e-2, why });
            s.numbers([w, h]);
            s.factors([0.4, 0.05]);
            s.launch(tiles([w, h, 1], [32, 8, 1]), [32, 8, 1]);
        },
    },
    Kernel {
        name: "collatz",
        make: |s| {
            let (threads, each) = (s.pick(8192, 512), 8);
            s.what(format!("{} numbers", threads * each));
            s.output(4 * threads, Check::Bytes);
            s.int(each);
            s.launch(over(threads, 128), [128, 1, 1]);
        },
    },
];
