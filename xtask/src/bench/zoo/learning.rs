//! Layers of neural networks, optimisers, clustering.
//!
//! Invariant: as in [`super`].

use super::Kernel;
use super::setup::{Setup, approximate, over, sums, tiles};
use crate::bench::case::{Array, Check};

/// A float array that a run changes.
fn changed(s: &mut Setup, n: usize, (low, high): (f32, f32), check: Check) {
    let floats = s.noise().floats(n, low, high);
    s.array(Array::inout(floats, check).restored());
}

pub(super) const ROWS: &[Kernel] = &[
    Kernel {
        name: "kmeans",
        make: |s| {
            let (n, k, dims) = (s.pick(100_000, 2000), 16, 8);
            s.what(format!("{n} points of {dims}, {k} centres"));
            // On a grid of 1/8, so that distances and sums are exact in any order.
            let grid = |s: &mut Setup, n: usize| {
                let mut noise = s.noise();
                let bytes =
                    (0..n).flat_map(|_| ((noise.word() >> 20 & 63) as f32 / 8.0).to_le_bytes()).collect();
                s.array(Array::input(bytes));
            };
            grid(s, n * dims);
            grid(s, k * dims);
            s.output(4 * n, Check::Bytes);
            s.zeroed(4 * k * dims, Check::Bytes);
            s.zeroed(4 * k, Check::Bytes);
            s.numbers([n, k, dims]);
            s.launch(over(n, 256), [256, 1, 1]);
        },
    },
    Kernel {
        name: "lstm_cell",
        make: |s| {
            let (hidden, rows) = (s.pick(768, 96), s.pick(600, 20));
            let n = hidden * rows;
            s.what(format!("{rows} rows of {hidden}"));
            s.floats(4 * n, -3.0, 3.0);
            s.floats(4 * hidden, -1.0, 1.0);
            s.floats(n, -2.0, 2.0);
            s.output(4 * n, approximate(1e-5, 1e-5));
            s.output(4 * n, approximate(1e-5, 1e-5));
            s.numbers([hidden, n]);
            s.launch(over(n, 256), [256, 1, 1]);
        },
    },
    Kernel {
        name: "layer_norm",
        make: |s| {
            let (rows, columns) = (s.pick(4000, 50), 768);
            s.what(format!("{rows} rows of {columns}"));
            s.floats(rows * columns, -2.0, 3.0);
            s.floats(columns, 0.5, 1.5);
            s.floats(columns, -1.0, 1.0);
            // Sums of 768 in chains of at most 48, differences of squares of magnitude 3.
            s.output(4 * rows * columns, approximate(1e-4, 1e-5));
            s.numbers([rows, columns]);
            s.launch(over(32 * rows, 128), [128, 1, 1]);
        },
    },
    Kernel {
        name: "attention",
        make: |s| {
            let (n, m) = (s.pick(500, 20), s.pick(500, 60));
            s.what(format!("{n} queries, {m} keys of 64"));
            s.floats(64 * n, -1.0, 1.0);
            s.floats(64 * m, -1.0, 1.0);
            s.floats(64 * m, -1.0, 1.0);
            // Exponents up to 8 in magnitude double the error of the exponential thrice.
            s.output(4 * 64 * n, approximate(1e-4, 1e-4));
            s.numbers([n, m]);
            s.float(0.125);
            s.launch(over(32 * n, 128), [128, 1, 1]);
        },
    },
    Kernel {
        name: "attention_tiled",
        make: |s| {
            let (n, m) = (s.pick(2048, 128), s.pick(1024, 64));
            s.what(format!("{n} queries, {m} keys of 32"));
            s.floats(32 * n, -1.0, 1.0);
            s.floats(32 * m, -1.0, 1.0);
            s.floats(32 * m, -1.0, 1.0);
            s.output(4 * 32 * n, approximate(1e-4, 1e-4));
            s.int(m);
            s.float(0.177);
            s.launch([n as u32 / 64, 1, 1], [64, 1, 1]);
        },
    },
    Kernel {
        name: "gelu",
        make: |s| {
            let n = s.pick(3_000_000, 20_000);
            s.what(format!("{n} elements"));
            s.floats(n, -4.0, 4.0);
            s.output(4 * n, approximate(1e-5, 1e-5));
            s.int(n);
            s.launch(over(n, 256), [256, 1, 1]);
        },
    },
    Kernel {
        name: "embedding",
        make: |s| {
            let (words, width, bags) = (s.pick(20_000, 500), 128, s.pick(4000, 100));
            s.what(format!("{bags} bags, width {width}"));
            s.floats(words * width, -1.0, 1.0);
            let mut noise = s.noise();
            let mut begins = vec![0];
            for _ in 0..bags {
                begins.push(begins[begins.len() - 1] + (noise.word() >> 27) as i32);
            }
            let all = begins[bags] as usize;
            let indices: Vec<i32> = (0..all).map(|_| (noise.word() >> 4) as i32 % words as i32).collect();
            s.int_array(indices);
            s.int_array(begins);
            s.output(4 * bags * width, sums(32, 32.0));
            s.int(width);
            s.launch([bags as u32, 1, 1], [width as u32, 1, 1]);
        },
    },
    Kernel {
        name: "conv_layer",
        make: |s| {
            let (channels, outputs) = (16, s.pick(32, 4));
            let (w, h) = (s.pick(112, 24), s.pick(112, 20));
            s.what(format!("{w} x {h}, {channels} to {outputs} channels"));
            s.floats(channels * w * h, -1.0, 1.0);
            s.floats(9 * channels * outputs, -0.2, 0.2);
            s.floats(outputs, -1.0, 1.0);
            s.output(4 * outputs * w * h, sums(146, 30.0));
            s.numbers([channels, w, h]);
            s.launch(tiles([w, h, outputs], [32, 4, 1]), [32, 4, 1]);
        },
    },
    Kernel {
        name: "max_pool",
        make: |s| {
            let (w, h, planes) = (s.pick(112, 24), s.pick(112, 20), s.pick(128, 3));
            s.what(format!("{planes} planes of {w} x {h}"));
            s.floats(4 * w * h * planes, -1.0, 1.0);
            s.output(4 * w * h * planes, Check::Bytes);
            s.numbers([w, h]);
            s.launch(tiles([w, h, planes], [16, 16, 1]), [16, 16, 1]);
        },
    },
    Kernel {
        name: "adam",
        make: |s| {
            let n = s.pick(1_500_000, 20_000);
            s.what(format!("{n} weights"));
            changed(s, n, (-1.0, 1.0), sums(8, 2.0));
            s.floats(n, -1.0, 1.0);
            changed(s, n, (-1.0, 1.0), sums(3, 2.0));
            changed(s, n, (0.1, 1.0), sums(3, 2.0));
            s.int(n);
            s.factors([0.001, 0.9, 0.999]);
            s.launch([256, 1, 1], [256, 1, 1]);
        },
    },
    Kernel {
        name: "rotary",
        make: |s| {
            let (pairs, rows) = (64, s.pick(16_000, 600));
            let n = pairs * rows;
            s.what(format!("{rows} rows of {pairs} pairs"));
            s.floats(2 * n, -1.0, 1.0);
            s.floats(2 * 512 * pairs, -1.0, 1.0);
            s.output(8 * n, sums(2, 2.0));
            s.numbers([pairs, n]);
            s.launch(over(n, 256), [256, 1, 1]);
        },
    },
    Kernel {
        name: "quantised_gemv",
        make: |s| {
            let (rows, columns) = (s.pick(4096, 50), s.pick(2048, 256));
            s.what(format!("{rows} x {columns}"));
            s.bytes(rows * columns);
            s.floats(rows * columns / 32, 0.0, 0.01);
            s.floats(columns, -1.0, 1.0);
            s.output(4 * rows, sums(100, 1500.0));
            s.numbers([rows, columns]);
            s.launch(over(32 * rows, 128), [128, 1, 1]);
        },
    },
];
