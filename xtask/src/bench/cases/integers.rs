//! Histograms, sorting, hashing, random numbers.

use crate::bench::case::{Array, Case, Check, Noise, Size, Step, Value};

pub(super) fn histogram_random(size: Size) -> Case {
    let n = size.pick(1usize << 24, 1 << 22);
    histogram(size, "histogram", 1.15, Noise::new(17).words(n / 4))
}

pub(super) fn histogram_equal(size: Size) -> Case {
    let n = size.pick(1usize << 24, 1 << 22);
    histogram(size, "histogram_equal", 0.8, vec![77; n])
}

fn histogram(size: Size, name: &'static str, target: f64, data: Vec<u8>) -> Case {
    let n = data.len();
    Case {
        name,
        what: format!("{n} bytes"),
        target: Some(target),
        ptx: "kernels/histogram",
        native: "histogram",
        arrays: vec![Array::input(data), Array::output(1024, Check::Bytes)],
        numbers: vec![n as f64],
        steps: vec![Step {
            kernel: "histogram",
            grid: [size.pick(512, 64), 1, 1],
            block: [256, 1, 1],
            args: vec![Value::Array(0), Value::Array(1), Value::S32(n as i32)],
        }],
    }
}

pub(super) fn bitonic_pairs(size: Size) -> Case {
    bitonic(size, "bitonic_pairs", 512)
}

pub(super) fn bitonic_keys(size: Size) -> Case {
    bitonic(size, "bitonic_keys", 1024)
}

fn bitonic(size: Size, name: &'static str, threads: u32) -> Case {
    let tiles = size.pick(1024usize, 4);
    Case {
        name,
        what: format!("{tiles} tiles of 1024"),
        target: Some(1.5),
        ptx: "kernels/bitonic",
        native: "sort",
        arrays: vec![Array::inout(Noise::new(18).words(1024 * tiles), Check::Bytes).restored()],
        numbers: vec![tiles as f64],
        steps: vec![Step {
            kernel: name,
            grid: [tiles as u32, 1, 1],
            block: [threads, 1, 1],
            args: vec![Value::Array(0)],
        }],
    }
}

pub(super) fn sha256(size: Size) -> Case {
    let n = size.pick(1usize << 18, 1 << 13);
    Case {
        name: "sha256",
        what: format!("{n} messages of 64 bytes"),
        target: Some(1.2),
        ptx: "kernels/sha256",
        native: "sha256",
        arrays: vec![Array::input(Noise::new(19).words(16 * n)), Array::output(32 * n, Check::Bytes)],
        numbers: vec![n as f64],
        steps: vec![Step {
            kernel: "sha256",
            grid: [n as u32 / 256, 1, 1],
            block: [256, 1, 1],
            args: vec![Value::Array(0), Value::Array(1), Value::S32(n as i32)],
        }],
    }
}

pub(super) fn monte_carlo(size: Size) -> Case {
    let (threads, each) = size.pick((1u32 << 16, 512), (1 << 13, 128));
    Case {
        name: "monte_carlo",
        what: format!("{threads} threads of {each} points"),
        target: Some(1.2),
        ptx: "kernels/monte_carlo",
        native: "monte_carlo",
        arrays: vec![Array::output(4, Check::Bytes)],
        numbers: vec![f64::from(threads), f64::from(each)],
        steps: vec![Step {
            kernel: "monte_carlo",
            grid: [threads / 256, 1, 1],
            block: [256, 1, 1],
            args: vec![Value::Array(0), Value::S32(each)],
        }],
    }
}
