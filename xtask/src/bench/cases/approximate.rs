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
        ptx: "black_scholes",
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
    let n = size.pick(8192usize, 512);
    Case {
        name: "nbody",
        what: format!("{n} bodies"),
        target: Some(1.1),
        ptx: "nbody",
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
