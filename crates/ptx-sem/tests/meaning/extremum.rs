//! `min` and `max` of the 16-bit formats, `.NaN` and `.xorsign.abs` (PTX ISA 7.0, 7.2): transcribed over
//! exact values.

use crate::values::{Random, edges_f16, edges_f32};
use ptx_sem::*;

/// The result of the manual's pseudocode for values in `f64`; `None` is NaN. Zeros have signs.
fn expect(a: f64, b: f64, larger: bool, nan: bool, xorsign: bool) -> Option<f64> {
    let negative = a.is_sign_negative() != b.is_sign_negative();
    let (a, b) = if xorsign { (a.abs(), b.abs()) } else { (a, b) };
    let d = match (a.is_nan(), b.is_nan()) {
        (true, true) => return None,
        (true, false) | (false, true) if nan => return None,
        (true, false) => b,
        (false, true) => a,
        (false, false) => {
            let first = a.total_cmp(&b).is_lt() != larger;
            if first { a } else { b }
        }
    };
    Some(if xorsign && negative { -d } else { d })
}

type Pair = fn(u16, u16) -> u16;

fn check(x: u16, y: u16, value: fn(u16) -> f64, forms: &[(Pair, bool, bool, bool)]) {
    for (i, (f, larger, nan, xorsign)) in forms.iter().enumerate() {
        let result = f(x, y);
        match expect(value(x), value(y), *larger, *nan, *xorsign) {
            None => assert_eq!(result, 0x7fff, "{i}: {x:#x} {y:#x}"),
            Some(d) => assert_eq!(value(result).to_bits(), d.to_bits(), "{i}: {x:#x} {y:#x}"),
        }
    }
}

#[test]
fn sixteen_bits() {
    let halves: [(Pair, bool, bool, bool); 8] = [
        (min_f16, false, false, false),
        (min_nan_f16, false, true, false),
        (min_xorsign_abs_f16, false, false, true),
        (min_nan_xorsign_abs_f16, false, true, true),
        (max_f16, true, false, false),
        (max_nan_f16, true, true, false),
        (max_xorsign_abs_f16, true, false, true),
        (max_nan_xorsign_abs_f16, true, true, true),
    ];
    let brains: [(Pair, bool, bool, bool); 8] = [
        (min_bf16, false, false, false),
        (min_nan_bf16, false, true, false),
        (min_xorsign_abs_bf16, false, false, true),
        (min_nan_xorsign_abs_bf16, false, true, true),
        (max_bf16, true, false, false),
        (max_nan_bf16, true, true, false),
        (max_xorsign_abs_bf16, true, false, true),
        (max_nan_xorsign_abs_bf16, true, true, true),
    ];
    let half = |x: u16| cvt_f64_f16(x);
    let brain = |x: u16| f64::from(f32::from_bits(u32::from(x) << 16));
    let mut list = edges_f16();
    list.extend([0x7f7f, 0x7f80, 0x7f81, 0xff7f, 0xff80, 0xffff, 0x0040, 0x8040]);
    for &x in &list {
        for &y in &list {
            check(x, y, half, &halves);
            check(x, y, brain, &brains);
        }
    }
    let mut random = Random::new(31);
    for _ in 0..100_000 {
        let (x, y) = (random.u16(), random.u16());
        check(x, y, half, &halves);
        check(x, y, brain, &brains);
    }
}

#[test]
fn pairs_are_two_numbers() {
    type Words = fn(u32, u32) -> u32;
    let forms: [(Words, Pair); 16] = [
        (min_f16x2, min_f16),
        (min_nan_f16x2, min_nan_f16),
        (min_xorsign_abs_f16x2, min_xorsign_abs_f16),
        (min_nan_xorsign_abs_f16x2, min_nan_xorsign_abs_f16),
        (max_f16x2, max_f16),
        (max_nan_f16x2, max_nan_f16),
        (max_xorsign_abs_f16x2, max_xorsign_abs_f16),
        (max_nan_xorsign_abs_f16x2, max_nan_xorsign_abs_f16),
        (min_bf16x2, min_bf16),
        (min_nan_bf16x2, min_nan_bf16),
        (min_xorsign_abs_bf16x2, min_xorsign_abs_bf16),
        (min_nan_xorsign_abs_bf16x2, min_nan_xorsign_abs_bf16),
        (max_bf16x2, max_bf16),
        (max_nan_bf16x2, max_nan_bf16),
        (max_xorsign_abs_bf16x2, max_xorsign_abs_bf16),
        (max_nan_xorsign_abs_bf16x2, max_nan_xorsign_abs_bf16),
    ];
    let mut random = Random::new(32);
    for _ in 0..5_000 {
        let (a, b) = (random.u32(), random.u32());
        for (pair, one) in forms {
            let (low, high) = (one(a as u16, b as u16), one((a >> 16) as u16, (b >> 16) as u16));
            assert_eq!(pair(a, b), u32::from(high) << 16 | u32::from(low), "{a:#x} {b:#x}");
        }
    }
}

#[test]
fn single_precision() {
    type Form = (fn(f32, f32) -> f32, bool, bool, bool);
    let forms: [Form; 6] = [
        (min_nan_f32, false, true, false),
        (min_xorsign_abs_f32, false, false, true),
        (min_nan_xorsign_abs_f32, false, true, true),
        (max_nan_f32, true, true, false),
        (max_xorsign_abs_f32, true, false, true),
        (max_nan_xorsign_abs_f32, true, true, true),
    ];
    let list = edges_f32();
    for &x in &list {
        for &y in &list {
            let (a, b) = (f32::from_bits(x), f32::from_bits(y));
            for (f, larger, nan, xorsign) in forms {
                let result = f(a, b);
                match expect(a.into(), b.into(), larger, nan, xorsign) {
                    None => assert_eq!(result.to_bits(), 0x7fff_ffff, "{x:#x} {y:#x}"),
                    // The manual does not define the result for -0 and +0.
                    Some(0.0) if !xorsign => assert_eq!(result, 0.0, "{x:#x} {y:#x}"),
                    Some(d) => assert_eq!(f64::from(result).to_bits(), d.to_bits(), "{x:#x} {y:#x}"),
                }
            }
        }
    }
}
