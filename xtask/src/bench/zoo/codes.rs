//! Transforms, binomial trees, ciphers, checksums and codes.
//!
//! Invariant: as in [`super`]. Tables of AES and CRC are computed from the definitions of their fields.

use super::Kernel;
use super::setup::{Setup, approximate, over, sums};
use crate::bench::case::{Array, Check, Value};

fn float_array(s: &mut Setup, floats: impl IntoIterator<Item = f64>) -> Value {
    let bytes = floats.into_iter().flat_map(|v| (v as f32).to_le_bytes()).collect();
    s.array(Array::input(bytes))
}

fn word_array(s: &mut Setup, words: impl IntoIterator<Item = u32>) -> Value {
    s.array(Array::input(words.into_iter().flat_map(u32::to_le_bytes).collect()))
}

/// Twice a byte in the field of AES.
fn twice(byte: u8) -> u8 {
    byte << 1 ^ if byte & 0x80 != 0 { 0x1b } else { 0 }
}

/// A product in the field of AES.
fn product(a: u8, b: u8) -> u8 {
    let mut power = a;
    let mut sum = 0;
    for bit in 0..8 {
        if b >> bit & 1 != 0 {
            sum ^= power;
        }
        power = twice(power);
    }
    sum
}

/// The substitution box of AES: the inverse in the field, then the affine map.
fn aes_box() -> Vec<u8> {
    let inverse = |v: u8| (0..=255).find(|other| product(v, *other) == 1).unwrap_or(0);
    let affine = |v: u8| v ^ v.rotate_left(1) ^ v.rotate_left(2) ^ v.rotate_left(3) ^ v.rotate_left(4) ^ 0x63;
    (0..=255).map(|v| affine(inverse(v))).collect()
}

/// The words of all rounds of a key of 128 bits, in the order of bytes of the processor.
fn round_keys(key: [u32; 4], substitute: &[u8]) -> Vec<u32> {
    let mut words = key.to_vec();
    let mut constant = 1;
    for i in 4..44 {
        let mut word = words[i - 1];
        if i % 4 == 0 {
            word = u32::from_le_bytes(word.rotate_right(8).to_le_bytes().map(|b| substitute[usize::from(b)]));
            word ^= u32::from(constant);
            constant = twice(constant);
        }
        words.push(words[i - 4] ^ word);
    }
    words
}

pub(super) const ROWS: &[Kernel] = &[
    Kernel {
        name: "fft1024",
        make: |s| {
            let signals = s.pick(1500, 10);
            s.what(format!("{signals} signals of 1024"));
            s.floats(2048 * signals, -1.0, 1.0);
            // Ten stages of sums whose terms add up to 2048.
            s.output(8192 * signals, sums(30, 100.0));
            float_array(
                s,
                (0..512).flat_map(|k| {
                    let angle = -std::f64::consts::TAU * f64::from(k) / 1024.0;
                    [angle.cos(), angle.sin()]
                }),
            );
            s.launch([signals as u32, 1, 1], [256, 1, 1]);
        },
    },
    Kernel {
        name: "dct8",
        make: |s| {
            let (w, h) = (s.pick(1920, 64), s.pick(1080, 32));
            s.what(format!("{w} x {h}"));
            s.bytes(w * h);
            let why = "a coefficient that is whole but for rounding is truncated to either";
            s.output(2 * w * h, Check::Shorts { by: 1, why });
            float_array(
                s,
                (0..64).map(|at| {
                    let (k, x) = (f64::from(at / 8), f64::from(at % 8));
                    let scale = if at < 8 { 0.125f64.sqrt() } else { 0.5 };
                    scale * ((2.0 * x + 1.0) * k * std::f64::consts::PI / 16.0).cos()
                }),
            );
            s.int(w);
            s.launch([w as u32 / 8, h as u32 / 8, 1], [8, 8, 1]);
        },
    },
    Kernel {
        name: "walsh",
        make: |s| {
            let n = s.pick(1 << 20, 1 << 12);
            s.what(format!("{n} elements"));
            let words = s.noise().words(n);
            let data = s.array(Array::inout(words, Check::Bytes).restored());
            let size = s.int(n);
            let mut stride = 1;
            while stride < n {
                s.step("walsh", over(n / 2, 256), [256, 1, 1], &[data, size, Value::S32(stride as i32)]);
                stride *= 2;
            }
        },
    },
    Kernel {
        name: "binomial",
        make: |s| {
            let (options, steps) = (s.pick(500, 5), 255);
            s.what(format!("{options} options, {steps} steps"));
            s.floats(options, 20.0, 120.0);
            s.floats(options, 20.0, 120.0);
            s.output(4 * options, approximate(2e-3, 1e-4));
            s.int(steps);
            s.factors([0.025, 0.502, 0.9999]);
            s.launch([options as u32, 1, 1], [256, 1, 1]);
        },
    },
    Kernel {
        name: "aes",
        make: |s| {
            let n = s.pick(400_000, 4000);
            s.what(format!("{n} blocks"));
            let substitute = aes_box();
            s.bytes(16 * n);
            s.output(16 * n, Check::Bytes);
            let column = |v: &u8| u32::from_le_bytes([twice(*v), *v, *v, twice(*v) ^ *v]);
            let table: Vec<u32> = substitute.iter().map(column).collect();
            let rotated = (0..4).flat_map(|by| table.iter().map(move |word| word.rotate_left(8 * by)));
            word_array(s, rotated);
            let keys = round_keys([0x1628_ae2b, 0xa6d2_ae28, 0x8815_f7ab, 0x3c4f_cf09], &substitute);
            s.array(Array::input(substitute));
            word_array(s, keys);
            s.int(n);
            s.launch(over(n, 256), [256, 1, 1]);
        },
    },
    Kernel {
        name: "crc32",
        make: |s| {
            let (n, length) = (s.pick(20_000, 500), 256);
            s.what(format!("{n} messages of {length} bytes"));
            s.bytes(n * length);
            let step = |v: u32| if v & 1 != 0 { v >> 1 ^ 0xedb8_8320 } else { v >> 1 };
            word_array(s, (0..256).map(|byte| (0..8).fold(byte, |v, _| step(v))));
            s.output(4 * n, Check::Bytes);
            s.numbers([n, length]);
            s.launch(over(n, 128), [128, 1, 1]);
        },
    },
    Kernel {
        name: "hash16",
        make: |s| {
            let n = s.pick(1_500_000, 10_000);
            s.what(format!("{n} keys of 16 bytes"));
            s.bytes(16 * n);
            s.output(4 * n, Check::Bytes);
            s.numbers([n, 42]);
            s.launch(over(n, 256), [256, 1, 1]);
        },
    },
    Kernel {
        name: "base64",
        make: |s| {
            let n = s.pick(1_500_000, 10_000);
            s.what(format!("{} bytes", 3 * n));
            s.bytes(3 * n);
            s.output(4 * n, Check::Bytes);
            let letters = (b'A'..=b'Z').chain(b'a'..=b'z').chain(b'0'..=b'9').chain(*b"+/");
            s.array(Array::input(letters.collect()));
            s.int(n);
            s.launch(over(n, 256), [256, 1, 1]);
        },
    },
    Kernel {
        name: "chacha",
        make: |s| {
            let n = s.pick(100_000, 1000);
            s.what(format!("{n} blocks of 64 bytes"));
            s.bytes(64 * n);
            s.output(64 * n, Check::Bytes);
            s.bytes(32);
            s.int(n);
            s.launch(over(n, 128), [128, 1, 1]);
        },
    },
    Kernel {
        name: "hamming",
        make: |s| {
            let (n, m) = (s.pick(20_000, 500), s.pick(1000, 50));
            s.what(format!("{n} queries, {m} words"));
            s.bytes(16 * n);
            s.bytes(16 * m);
            s.output(4 * n, Check::Bytes);
            s.numbers([n, m]);
            s.launch(over(n, 128), [128, 1, 1]);
        },
    },
];
