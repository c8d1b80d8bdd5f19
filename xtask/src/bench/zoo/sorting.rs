//! Radix sort, merging, searching, sorting by ranks, the largest few.
//!
//! Invariant: as in [`super`].

use super::Kernel;
use super::setup::{Setup, over};
use crate::bench::case::{Array, Check, Noise, Value};

/// So many integers in ascending order.
fn ascending(s: &Setup, n: usize) -> Vec<i32> {
    let mut noise: Noise = s.noise();
    let mut ints: Vec<i32> = (0..n).map(|_| (noise.word() >> 1) as i32).collect();
    ints.sort_unstable();
    ints
}

pub(super) const ROWS: &[Kernel] = &[
    Kernel {
        name: "radix_sort",
        make: |s| {
            let n = s.pick(700_000, 10_000);
            s.what(format!("{n} keys"));
            let keys = s.noise().words(n);
            let a = s.array(Array::inout(keys, Check::Bytes).restored());
            let b = s.scratch(4 * n);
            let ctas = n.div_ceil(1024);
            let counts = s.scratch(4 * 16 * ctas);
            let size = s.int(n);
            for pass in 0..8 {
                let (from, to) = if pass % 2 == 0 { (a, b) } else { (b, a) };
                let shift = Value::S32(4 * pass);
                let grid = [ctas as u32, 1, 1];
                s.step("radix_count", grid, [256, 1, 1], &[from, counts, size, shift]);
                s.step("radix_scan", [1, 1, 1], [256, 1, 1], &[counts, Value::S32(16 * ctas as i32)]);
                s.step("radix_place", grid, [256, 1, 1], &[from, to, counts, size, shift]);
            }
        },
    },
    Kernel {
        name: "merge",
        make: |s| {
            let (na, nb) = (s.pick(1_500_000, 9000), s.pick(1_100_000, 7001));
            s.what(format!("{na} with {nb}"));
            let ints = ascending(s, na);
            s.int_array(ints);
            s.int(na);
            let ints = ascending(s, nb);
            s.int_array(ints);
            s.int(nb);
            s.output(4 * (na + nb), Check::Bytes);
            s.launch(over((na + nb).div_ceil(8), 128), [128, 1, 1]);
        },
    },
    Kernel {
        name: "lower_bound",
        make: |s| {
            let (size, n) = (s.pick(100_000, 1000), s.pick(600_000, 10_000));
            s.what(format!("{n} in {size}"));
            let ints = ascending(s, size);
            s.int_array(ints);
            s.bytes(4 * n);
            s.output(4 * n, Check::Bytes);
            s.numbers([size, n]);
            s.launch(over(n, 256), [256, 1, 1]);
        },
    },
    Kernel {
        name: "rank_sort",
        make: |s| {
            let tiles = s.pick(400, 8);
            s.what(format!("{tiles} tiles of 512"));
            s.floats(512 * tiles, 0.0, 1.0);
            s.bytes(4 * 512 * tiles);
            s.output(4 * 512 * tiles, Check::Bytes);
            s.output(4 * 512 * tiles, Check::Bytes);
            s.launch([tiles as u32, 1, 1], [512, 1, 1]);
        },
    },
    Kernel {
        name: "top4",
        make: |s| {
            let (rows, n) = (s.pick(10_000, 500), 200);
            s.what(format!("{rows} rows of {n}"));
            s.floats(rows * n, 0.0, 1.0);
            s.output(16 * rows, Check::Bytes);
            s.numbers([rows, n]);
            s.launch(over(rows, 128), [128, 1, 1]);
        },
    },
];
