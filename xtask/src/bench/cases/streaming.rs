//! Memory-bound work: many loads and stores, little computation.

use crate::bench::case::{Array, Case, Check, Noise, Size, Step, Value};

const CONTRACTED: Check = Check::Floats {
    abs: 1e-6,
    rel: 1e-6,
    why: "either side may contract a product and a sum: one rounding of 2^-24",
};

pub(super) fn saxpy(size: Size) -> Case {
    let n = size.pick(1usize << 24, 1 << 18);
    let (x, y) = (Noise::new(1).floats(n, -1.0, 1.0), Noise::new(2).floats(n, -1.0, 1.0));
    Case {
        name: "saxpy",
        what: format!("{n} elements"),
        target: Some(1.1),
        ptx: "kernels/saxpy",
        native: "saxpy",
        arrays: vec![Array::input(x), Array::inout(y, CONTRACTED)],
        numbers: vec![n as f64, 2.5],
        steps: vec![Step {
            kernel: "saxpy",
            grid: [n.div_ceil(256) as u32, 1, 1],
            block: [256, 1, 1],
            args: vec![Value::S32(n as i32), Value::F32(2.5), Value::Array(0), Value::Array(1)],
        }],
    }
}

pub(super) fn reduction(size: Size) -> Case {
    let n = size.pick(1usize << 24, 1 << 18);
    let ctas = size.pick(2048usize, 128);
    // Each CTA strides over the whole input, the native version sums a contiguous part. Results can be
    // compared element by element only if all column sums are equal, so the values repeat with a period that
    // suits both partitions.
    let period = Noise::new(3).floats(256, 0.0, 1.0);
    let input = period.iter().copied().cycle().take(4 * n).collect();
    let check = Check::Floats {
        abs: 0.0,
        rel: 1e-4,
        why: "n/ctas = 8192 positive terms in another order: 8192 · 2^-24 at most",
    };
    Case {
        name: "reduction",
        what: format!("{n} elements, {ctas} CTAs"),
        target: Some(1.1),
        ptx: "kernels/reduction",
        native: "reduction",
        arrays: vec![Array::input(input), Array::output(4 * ctas, check)],
        numbers: vec![n as f64, ctas as f64],
        steps: vec![Step {
            kernel: "reduction",
            grid: [ctas as u32, 1, 1],
            block: [256, 1, 1],
            args: vec![Value::Array(0), Value::Array(1), Value::S32(n as i32)],
        }],
    }
}

pub(super) fn stencil(size: Size) -> Case {
    let side = size.pick(256usize, 96);
    let n = side * side * side;
    let s = side as i32;
    Case {
        name: "stencil",
        what: format!("{side}^3 points"),
        target: Some(1.5),
        ptx: "kernels/stencil",
        native: "stencil",
        arrays: vec![
            Array::input(Noise::new(4).floats(n, 0.0, 1.0)),
            Array::output(
                4 * n,
                Check::Floats {
                    abs: 4e-6,
                    rel: 0.0,
                    why: "six terms below 1, either side may contract: 8 roundings of 2^-22",
                },
            ),
        ],
        numbers: vec![side as f64, side as f64, side as f64, 0.5, 0.083],
        steps: vec![Step {
            kernel: "stencil",
            grid: [side.div_ceil(32) as u32, side.div_ceil(8) as u32, side as u32],
            block: [32, 8, 1],
            args: vec![
                Value::Array(0),
                Value::Array(1),
                Value::S32(s),
                Value::S32(s),
                Value::S32(s),
                Value::F32(0.5),
                Value::F32(0.083),
            ],
        }],
    }
}

pub(super) fn transpose(size: Size) -> Case {
    let side = size.pick(4096usize, 1024);
    Case {
        name: "transpose",
        what: format!("{side} x {side}"),
        target: Some(1.5),
        ptx: "kernels/transpose",
        native: "transpose",
        arrays: vec![
            Array::input(Noise::new(5).words(side * side)),
            Array::output(4 * side * side, Check::Bytes),
        ],
        numbers: vec![side as f64, side as f64],
        steps: vec![Step {
            kernel: "transpose",
            grid: [side as u32 / 32, side as u32 / 32, 1],
            block: [32, 8, 1],
            args: vec![Value::Array(0), Value::Array(1), Value::S32(side as i32), Value::S32(side as i32)],
        }],
    }
}

pub(super) fn scan(size: Size) -> Case {
    let n = size.pick(1usize << 24, 1 << 16);
    let ctas = n / 1024;
    let step = |kernel, grid, args| Step { kernel, grid: [grid, 1, 1], block: [1024, 1, 1], args };
    let count = Value::S32(n as i32);
    Case {
        name: "scan",
        what: format!("{n} elements"),
        target: Some(1.5),
        ptx: "kernels/scan",
        native: "scan",
        arrays: vec![
            Array::input(Noise::new(6).words(n)),
            Array::output(4 * n, Check::Bytes),
            Array::output(4 * ctas, Check::No),
        ],
        numbers: vec![n as f64],
        steps: vec![
            step("scan_blocks", ctas as u32, vec![Value::Array(0), Value::Array(1), Value::Array(2), count]),
            step("scan_totals", 1, vec![Value::Array(2), Value::S32(ctas as i32)]),
            step("scan_add", ctas as u32, vec![Value::Array(1), Value::Array(2), count]),
        ],
    }
}

pub(super) fn particles(size: Size) -> Case {
    let (n, turns) = size.pick((1usize << 20, 8), (1 << 16, 8));
    Case {
        name: "particles",
        what: format!("{n} structures of 24 bytes, {turns} turns"),
        target: None,
        ptx: "kernels/particles",
        native: "particles",
        arrays: vec![
            Array::inout(
                Noise::new(26).floats(6 * n, 0.1, 0.9),
                Check::Floats {
                    abs: 1e-4,
                    rel: 0.0,
                    why: "eight turns of sums below 2, contracted or not; a wall turns the difference, and makes it no larger",
                },
            )
            .restored(),
        ],
        numbers: vec![n as f64, 0.01, f64::from(turns)],
        steps: vec![Step {
            kernel: "particles",
            grid: [n as u32 / 256, 1, 1],
            block: [256, 1, 1],
            args: vec![Value::Array(0), Value::S32(n as i32), Value::F32(0.01), Value::S32(turns)],
        }],
    }
}
