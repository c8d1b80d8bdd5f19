//! Work with approximate functions.

use crate::bench::case::{Array, Case, Check, Noise, Size, Step, Value};

pub(super) fn black_scholes(size: Size) -> Case {
    let n = size.pick(1usize << 20, 1 << 16);
    let price = Check::Floats {
        abs: 2e-3,
        rel: 1e-4,
        why: "prices up to 100 as differences of such; the approximate functions are good to 2^-20 or so on both sides",
    };
    Case {
        name: "black_scholes",
        what: format!("{n} options"),
        target: Some(0.9),
        ptx: "kernels/black_scholes",
        native: "black_scholes",
        arrays: vec![
            Array::output(4 * n, price),
            Array::output(4 * n, price),
            Array::input(Noise::new(7).floats(n, 5.0, 30.0)),
            Array::input(Noise::new(8).floats(n, 1.0, 100.0)),
            Array::input(Noise::new(9).floats(n, 0.25, 10.0)),
        ],
        numbers: vec![0.02, 0.30, n as f64],
        steps: vec![Step {
            kernel: "black_scholes",
            grid: [n as u32 / 256, 1, 1],
            block: [256, 1, 1],
            args: vec![
                Value::Array(0),
                Value::Array(1),
                Value::Array(2),
                Value::Array(3),
                Value::Array(4),
                Value::F32(0.02),
                Value::F32(0.30),
                Value::S32(n as i32),
            ],
        }],
    }
}

pub(super) fn nbody(size: Size) -> Case {
    let n = size.pick(8192usize, 2048);
    Case {
        name: "nbody",
        what: format!("{n} bodies"),
        target: Some(1.1),
        ptx: "kernels/nbody",
        native: "nbody",
        arrays: vec![
            Array::input(Noise::new(10).floats(4 * n, -1.0, 1.0)),
            Array::output(
                16 * n,
                Check::Floats {
                    abs: 0.1,
                    rel: 1e-4,
                    why: "8192 terms of magnitudes that add up to some 10^4, each good to 2^-21, in another order",
                },
            ),
        ],
        numbers: vec![n as f64, 0.01],
        steps: vec![Step {
            kernel: "nbody",
            grid: [n as u32 / 256, 1, 1],
            block: [256, 1, 1],
            args: vec![Value::Array(0), Value::Array(1), Value::S32(n as i32), Value::F32(0.01)],
        }],
    }
}

pub(super) fn softmax(size: Size) -> Case {
    let (rows, columns) = size.pick((4096usize, 1024usize), (64, 1024));
    let near = Check::Floats {
        abs: 1e-7,
        rel: 1e-4,
        why: "1024 terms in another order, 2^-14 at most; exponentials of sums that are rounded at 8, 2^-20",
    };
    Case {
        name: "softmax",
        what: format!("{rows} rows of {columns}"),
        target: None,
        ptx: "kernels/softmax",
        native: "softmax",
        arrays: vec![
            Array::input(Noise::new(21).floats(rows * columns, -4.0, 4.0)),
            Array::output(4 * rows * columns, near),
        ],
        numbers: vec![rows as f64, columns as f64],
        steps: vec![Step {
            kernel: "softmax",
            grid: [rows as u32, 1, 1],
            block: [256, 1, 1],
            args: vec![Value::Array(0), Value::Array(1), Value::S32(columns as i32)],
        }],
    }
}

pub(super) fn waves(size: Size) -> Case {
    let (width, height) = size.pick((1024usize, 256usize), (512, 64));
    let count = 16;
    let step = 1.0 / 128.0;
    Case {
        name: "waves",
        what: format!("{width} x {height}, {count} sources"),
        target: None,
        ptx: "kernels/waves",
        native: "waves",
        arrays: vec![
            Array::input(Noise::new(22).floats(4 * count, 0.5, 6.0)),
            Array::output(
                4 * width * height,
                Check::Floats {
                    abs: 0.01,
                    rel: 0.0,
                    why: "angles up to 60 are good to 2^-18, sines to 2^-20; squares of sums of 16 multiply that by 32 at most",
                },
            ),
        ],
        numbers: vec![count as f64, width as f64, height as f64, step],
        steps: vec![Step {
            kernel: "waves",
            grid: [width as u32 / 32, height as u32 / 8, 1],
            block: [32, 8, 1],
            args: vec![
                Value::Array(0),
                Value::S32(count as i32),
                Value::Array(1),
                Value::S32(width as i32),
                Value::F32(step as f32),
            ],
        }],
    }
}
