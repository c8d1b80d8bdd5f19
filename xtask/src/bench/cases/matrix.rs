//! Matrix products.

use crate::bench::case::{Array, Case, Check, Noise, Size, Step, Value};

pub(super) fn sgemm_16(size: Size) -> Case {
    sgemm(size, "sgemm_16", 1.8, 16, [16, 16, 1])
}

pub(super) fn sgemm_32(size: Size) -> Case {
    sgemm(size, "sgemm_32", 1.6, 32, [32, 32, 1])
}

pub(super) fn sgemm_4x4(size: Size) -> Case {
    sgemm(size, "sgemm_4x4", 1.4, 64, [16, 16, 1])
}

fn sgemm(size: Size, name: &'static str, target: f64, tile: usize, block: [u32; 3]) -> Case {
    let n = size.pick(1024usize, 256);
    Case {
        name,
        what: format!("{n}^3"),
        target: Some(target),
        ptx: "kernels/sgemm",
        native: "sgemm",
        arrays: vec![
            Array::input(Noise::new(11).floats(n * n, -1.0, 1.0)),
            Array::input(Noise::new(12).floats(n * n, -1.0, 1.0)),
            Array::output(
                4 * n * n,
                Check::Floats {
                    abs: 2e-3,
                    rel: 1e-5,
                    why: "1024 terms below 1 in another order: sums up to 32 deviate by some 2^-19 · sqrt(1024), 16 times that allowed",
                },
            ),
        ],
        numbers: vec![n as f64],
        steps: vec![Step {
            kernel: name,
            grid: [(n / tile) as u32, (n / tile) as u32, 1],
            block,
            args: vec![Value::Array(0), Value::Array(1), Value::Array(2), Value::S32(n as i32)],
        }],
    }
}

/// Halves with sums in single precision, by `mma`. The C++ converts both matrices to single precision.
pub(super) fn hgemm(size: Size) -> Case {
    const TILE: usize = 128;
    let n = size.pick(1024usize, 256);
    Case {
        name: "hgemm",
        what: format!("{n}^3"),
        // A third of the speed of a good product in single precision.
        target: Some(3.0),
        ptx: "kernels/hgemm",
        native: "hgemm",
        arrays: vec![
            Array::input(Noise::new(13).halves(n * n)),
            Array::input(Noise::new(14).halves(n * n)),
            Array::output(
                4 * n * n,
                Check::Floats {
                    abs: 2e-3,
                    rel: 1e-5,
                    why: "as sgemm: the products are exact, the sums in another order",
                },
            ),
        ],
        numbers: vec![n as f64],
        steps: vec![Step {
            kernel: "hgemm",
            grid: [(n / TILE) as u32, (n / TILE) as u32, 1],
            block: [128, 1, 1],
            args: vec![Value::Array(0), Value::Array(1), Value::Array(2), Value::S32(n as i32)],
        }],
    }
}

pub(super) fn matvec(size: Size) -> Case {
    let (rows, columns) = size.pick((4096usize, 2048usize), (1024, 1024));
    Case {
        name: "matvec",
        what: format!("{rows} x {columns}"),
        target: None,
        ptx: "kernels/matvec",
        native: "matvec",
        arrays: vec![
            Array::input(Noise::new(23).floats(rows * columns, 0.0, 1.0)),
            Array::input(Noise::new(24).floats(columns, 0.0, 1.0)),
            Array::output(
                4 * rows,
                Check::Floats {
                    abs: 0.0,
                    rel: 2e-4,
                    why: "2048 positive terms in another order: 2048 · 2^-24 at most",
                },
            ),
        ],
        numbers: vec![rows as f64, columns as f64],
        steps: vec![Step {
            kernel: "matvec",
            grid: [rows as u32 / 8, 1, 1],
            block: [256, 1, 1],
            args: vec![
                Value::Array(0),
                Value::Array(1),
                Value::Array(2),
                Value::S32(rows as i32),
                Value::S32(columns as i32),
            ],
        }],
    }
}
