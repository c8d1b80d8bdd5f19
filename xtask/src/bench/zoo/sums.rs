//! Reductions of every kind, scans, segments, compaction.
//!
//! Invariant: as in [`super`].

use super::Kernel;
use super::setup::{over, sums};
use crate::bench::case::{Array, Check, Value};
use crate::bench::zoo::setup::le_bytes;

pub(super) const ROWS: &[Kernel] = &[
    Kernel {
        name: "dot",
        make: |s| {
            let (n, ctas) = (s.pick(6_000_000, 50_000), 240);
            s.what(format!("{n} elements"));
            let a = s.floats(n, -1.0, 1.0);
            let b = s.floats(n, -1.0, 1.0);
            let partial = s.scratch(4 * ctas);
            // Each of some 61,440 threads or 32 lanes adds a part: at most 2^17 in a chain, random of sign.
            let out = s.output(4, Check::Floats { abs: 1.0, rel: 0.0, why: "chains of 2^17 random terms" });
            let size = s.int(n);
            s.step("dot", [ctas as u32, 1, 1], [256, 1, 1], &[a, b, partial, size]);
            s.step("dot_end", [1, 1, 1], [256, 1, 1], &[partial, out, Value::S32(ctas as i32)]);
        },
    },
    Kernel {
        name: "arg_max",
        make: |s| {
            let n = s.pick(6_000_000, 50_000);
            s.what(format!("{n} elements"));
            s.bytes(4 * n);
            s.zeroed(8, Check::Bytes);
            s.int(n);
            s.launch([160, 1, 1], [256, 1, 1]);
        },
    },
    Kernel {
        name: "moments",
        make: |s| {
            let n = s.pick(4_000_000, 50_000);
            s.what(format!("{n} elements"));
            s.floats(n, 0.0, 1.0);
            let why = "2^-53 for each of at most 2^22 additions";
            s.zeroed(16, Check::Doubles { abs: 0.0, rel: 2f64.powi(-30), why });
            s.int(n);
            s.launch([128, 1, 1], [256, 1, 1]);
        },
    },
    Kernel {
        name: "row_sums",
        make: |s| {
            let (rows, columns) = (s.pick(5000, 40), 1000);
            s.what(format!("{rows} rows of {columns}"));
            s.floats(rows * columns, -1.0, 1.0);
            s.output(4 * rows, sums(70, 1000.0));
            s.int(columns);
            s.launch([rows as u32, 1, 1], [128, 1, 1]);
        },
    },
    Kernel {
        name: "column_max",
        make: |s| {
            let (rows, columns) = (s.pick(1000, 50), s.pick(4100, 300));
            s.what(format!("{rows} rows of {columns}"));
            s.floats(rows * columns, -1.0, 1.0);
            s.output(4 * columns, Check::Bytes);
            s.numbers([rows, columns]);
            s.launch(over(columns, 128), [128, 1, 1]);
        },
    },
    Kernel {
        name: "atomic_sums",
        make: |s| {
            let n = s.pick(2_000_000, 20_000);
            s.what(format!("{n} elements"));
            s.bytes(4 * n);
            s.array(Array::inout(le_bytes([i32::MAX, i32::MIN, 0]), Check::Bytes).restored());
            s.int(n);
            s.launch(over(n, 256), [256, 1, 1]);
        },
    },
    Kernel {
        name: "count_if",
        make: |s| {
            let n = s.pick(6_000_000, 50_000);
            s.what(format!("{n} elements"));
            s.floats(n, -1.0, 1.0);
            let parts = n.div_ceil(4096);
            s.output(4 * parts, Check::Bytes);
            s.int(n);
            s.factors([-0.25, 0.5]);
            s.launch([parts as u32, 1, 1], [256, 1, 1]);
        },
    },
    Kernel {
        name: "look_back",
        make: |s| {
            let n = s.pick(4_000_000, 50_000) - 3;
            s.what(format!("{n} elements"));
            s.bytes(4 * n);
            s.output(4 * n, Check::Bytes);
            let tiles = n.div_ceil(1024);
            s.zeroed_scratch(8 * tiles);
            s.zeroed_scratch(4);
            s.int(n);
            s.launch([tiles as u32, 1, 1], [256, 1, 1]);
        },
    },
    Kernel {
        name: "segmented_sums",
        make: |s| {
            let n = s.pick(3_000_000, 30_000);
            s.bytes(4 * n);
            let (mut noise, mut key) = (s.noise(), 0);
            let segments: Vec<i32> = (0..n)
                .map(|_| {
                    key += i32::from(noise.word() >> 16 & 15 == 0);
                    key
                })
                .collect();
            s.what(format!("{n} elements in {} segments", key + 1));
            s.int_array(segments);
            s.zeroed(4 * (key as usize + 1), Check::Bytes);
            s.int(n);
            s.launch(over(n, 256), [256, 1, 1]);
        },
    },
    Kernel {
        name: "compact",
        make: |s| {
            let n = s.pick(3_000_000, 30_000);
            s.what(format!("{n} elements"));
            let input = s.bytes(4 * n);
            let ctas = n.div_ceil(256);
            let counts = s.scratch(4 * ctas);
            let output = s.output(4 * n, Check::Bytes);
            let size = s.int(n);
            s.step("compact_count", over(n, 256), [256, 1, 1], &[input, counts, size]);
            s.step("compact_scan", [1, 1, 1], [256, 1, 1], &[counts, Value::S32(ctas as i32)]);
            s.step("compact_place", over(n, 256), [256, 1, 1], &[input, counts, output, size]);
        },
    },
    Kernel {
        name: "distance",
        make: |s| {
            let n = s.pick(1_500_000, 12_000);
            s.what(format!("{n} x 4 elements"));
            s.floats(4 * n, -1.0, 1.0);
            s.floats(4 * n, -1.0, 1.0);
            // The sum of doubles is 3998204.37. The kernel is 3e-7 above it; C++ on one thread is 1e-4 below
            // it with 16 lanes, and 3e-4 with eight.
            let why = "C++ adds up to 750,000 terms in a lane, one after another";
            s.zeroed(4, Check::Floats { abs: 0.0, rel: 5e-4, why });
            s.int(n);
            s.launch([160, 1, 1], [256, 1, 1]);
        },
    },
];
