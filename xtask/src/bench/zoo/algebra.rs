//! Matrices: dense products in three types, LU, sparse products in three formats, small and banded systems.
//!
//! Invariant: as in [`super`].

use super::Kernel;
use super::setup::{Setup, over, sums, tiles};
use crate::bench::case::{Array, Check, Noise};

/// Compressed rows: begins, columns and values of a square matrix. Most rows are short, some are long.
fn sparse(s: &mut Setup, rows: usize, mean: u32) {
    let mut noise = Noise::new(31);
    let (mut begins, mut columns) = (vec![0], Vec::new());
    for _ in 0..rows {
        let long = noise.word() >> 8 & 63 == 0;
        let length = noise.word() % (2 * mean) * if long { 4 } else { 1 };
        columns.extend((0..length).map(|_| ((noise.word() >> 4) as usize % rows) as i32));
        begins.push(columns.len() as i32);
    }
    let entries = columns.len();
    s.what(format!("{rows} rows, {entries} entries"));
    s.int_array(begins);
    s.int_array(columns);
    s.floats(entries, -1.0, 1.0);
    s.floats(rows, -1.0, 1.0);
    let longest = 8 * mean;
    s.output(4 * rows, sums(longest, longest as f32));
    s.int(rows);
}

pub(super) const ROWS: &[Kernel] = &[
    Kernel {
        name: "gemm_plain",
        make: |s| {
            let [m, n, k] = [s.pick(500, 50), s.pick(700, 70), s.pick(600, 60)];
            s.what(format!("{m} x {n} x {k}"));
            s.floats(m * k, -1.0, 1.0);
            s.floats(k * n, -1.0, 1.0);
            s.output(4 * m * n, sums(k as u32, k as f32));
            s.numbers([m, n, k]);
            s.launch(tiles([n, m, 1], [16, 16, 1]), [16, 16, 1]);
        },
    },
    Kernel {
        name: "gemm_8x8",
        make: |s| {
            let n = s.pick(1024, 128);
            s.what(format!("{n} x {n} x {n}"));
            s.floats(n * n, -1.0, 1.0);
            s.floats(n * n, -1.0, 1.0);
            s.output(4 * n * n, sums(n as u32, n as f32));
            s.int(n);
            s.launch(tiles([n, n, 1], [128, 128, 1]), [256, 1, 1]);
        },
    },
    Kernel {
        name: "gemm_double",
        make: |s| {
            let n = s.pick(512, 64);
            s.what(format!("{n} x {n} x {n}"));
            for _ in 0..2 {
                let mut noise = s.noise();
                let doubles =
                    (0..n * n).flat_map(|_| (f64::from(noise.word()) / 2f64.powi(32)).to_le_bytes());
                let doubles = doubles.collect();
                s.array(Array::input(doubles));
            }
            let why = "each side rounds by 2^-53 for each of 512 terms of sums up to 512";
            s.output(8 * n * n, Check::Doubles { abs: 512.0 * 512.0 * 2f64.powi(-52), rel: 0.0, why });
            s.int(n);
            s.launch(tiles([n, n, 1], [16, 16, 1]), [16, 16, 1]);
        },
    },
    Kernel {
        name: "gemm_bytes",
        make: |s| {
            let [m, n, k] = [s.pick(512, 48), s.pick(512, 80), s.pick(768, 64)];
            s.what(format!("{m} x {n} x {k}"));
            s.bytes(m * k);
            s.bytes(n * k);
            s.output(4 * m * n, Check::Bytes);
            s.numbers([m, n, k]);
            s.launch(tiles([n, m, 1], [32, 8, 1]), [32, 8, 1]);
        },
    },
    Kernel {
        name: "lu",
        make: |s| {
            let n = s.pick(768, 96);
            s.what(format!("{n} x {n}"));
            let mut noise = s.noise();
            // The diagonal dominates, so factors stay below 1 and errors do not grow.
            let values = (0..n * n).flat_map(|at| {
                let small = (noise.word() >> 8) as f32 / 16_777_216.0;
                (if at % (n + 1) == 0 { n as f32 } else { small }).to_le_bytes()
            });
            let values = values.collect();
            let a = s.array(Array::inout(values, sums(n as u32, 2.0 * n as f32)).restored());
            let size = s.int(n);
            for at in (0..n).step_by(16) {
                let rest = (n - at) as u32 / 16 - 1;
                let args = [a, size, crate::bench::case::Value::S32(at as i32)];
                s.step("lu_diagonal", [1, 1, 1], [16, 1, 1], &args);
                if rest > 0 {
                    s.step("lu_edges", [rest, 1, 1], [32, 1, 1], &args);
                    s.step("lu_inside", [rest, rest, 1], [16, 16, 1], &args);
                }
            }
        },
    },
    Kernel {
        name: "spmv_row",
        make: |s| {
            let rows = s.pick(150_000, 2000);
            sparse(s, rows, 12);
            s.launch(over(rows, 128), [128, 1, 1]);
        },
    },
    Kernel {
        name: "spmv_warp",
        make: |s| {
            let rows = s.pick(40_000, 500);
            sparse(s, rows, 60);
            s.launch(over(32 * rows, 256), [256, 1, 1]);
        },
    },
    Kernel {
        name: "spmv_ell",
        make: |s| {
            let (rows, width) = (s.pick(200_000, 3000), 9);
            s.what(format!("{rows} rows of {width}"));
            // A band, as a discretised equation has it, with some places empty.
            let mut noise = s.noise();
            let columns = (0..width * rows).map(|at| {
                let column = (at % rows) as i32 + (at / rows) as i32 * 11 - 44;
                let present = (0..rows as i32).contains(&column) && noise.word() >> 12 & 15 != 0;
                if present { column } else { -1 }
            });
            let columns: Vec<i32> = columns.collect();
            s.int_array(columns);
            s.floats(width * rows, -1.0, 1.0);
            s.floats(rows, -1.0, 1.0);
            s.output(4 * rows, sums(9, 9.0));
            s.numbers([rows, width]);
            s.launch(over(rows, 256), [256, 1, 1]);
        },
    },
    Kernel {
        name: "gemv_transposed",
        make: |s| {
            let (rows, columns, slice) = (s.pick(2000, 100), s.pick(1500, 150), 64);
            s.what(format!("{rows} x {columns}"));
            s.floats(rows * columns, -1.0, 1.0);
            s.floats(rows, -1.0, 1.0);
            s.zeroed(4 * columns, sums(rows as u32, rows as f32));
            s.numbers([rows, columns, slice]);
            s.launch(tiles([columns, rows, 1], [128, slice as u32, 1]), [128, 1, 1]);
        },
    },
    Kernel {
        name: "inverse4",
        make: |s| {
            let n = s.pick(200_000, 1000);
            s.what(format!("{n} matrices"));
            let mut noise = s.noise();
            let values = (0..16 * n).flat_map(|at| {
                let small = (noise.word() >> 8) as f32 / 16_777_216.0 - 0.5;
                (if at % 16 % 5 == 0 { 4.0 + small } else { small }).to_le_bytes()
            });
            let values = values.collect();
            s.array(Array::input(values));
            // Elements up to 0.4 of cofactors up to 200 over a determinant of at least 80.
            s.output(64 * n, sums(12, 3.0));
            s.int(n);
            s.launch(over(n, 128), [128, 1, 1]);
        },
    },
    Kernel {
        name: "tridiagonal",
        make: |s| {
            let (n, systems) = (64, s.pick(16_000, 300));
            s.what(format!("{systems} systems of {n}"));
            s.floats(n * systems, -1.0, 1.0);
            s.floats(n * systems, 3.0, 4.0);
            s.floats(n * systems, -1.0, 1.0);
            s.floats(n * systems, -1.0, 1.0);
            s.scratch(4 * n * systems);
            // Solutions are at most 1; an error shrinks to a half in each step, so it is that of a few.
            s.output(4 * n * systems, sums(16, 1.0));
            s.numbers([n, systems]);
            s.launch(over(systems, 128), [128, 1, 1]);
        },
    },
];
