//! Floating-point numbers of eight bits: `.e4m3` and `.e5m2` (`cvt` of PTX 7.8 and later, operands of `mma`).
//!
//! | format | exponent, fraction | bias | greatest | specials |
//! | --- | --- | --- | --- | --- |
//! | e4m3 | 4, 3 | 7 | 448 | 0x7f and 0xff are NaN; no infinity |
//! | e5m2 | 5, 2 | 15 | 57344 | 0x7c is infinity, above it NaN |
//!
//! **Invariant:** every value of both formats, including subnormals, is a value of `.f16`. A result of
//! `.satfinite` is finite or NaN, and NaN is 0x7f.

use crate::half::f64_of_f16;

/// `cvt.rn.f16.e5m2`, one half of `cvt.rn.f16x2.e5m2x2`: the same number; NaN gives 0x7fff.
///
/// # Source
/// PTX ISA 9.7.9.21 of the current manual.
#[inline]
#[must_use]
pub fn cvt_f16_e5m2(a: u8) -> u16 {
    if a & 0x7f > 0x7c { 0x7fff } else { u16::from(a) << 8 }
}

/// `cvt.rn.f16.e4m3`, one half of `cvt.rn.f16x2.e4m3x2`: the same number; NaN gives 0x7fff.
///
/// # Source
/// PTX ISA 9.7.9.21 of the current manual.
#[inline]
#[must_use]
pub fn cvt_f16_e4m3(a: u8) -> u16 {
    let sign = u16::from(a & 0x80) << 8;
    let magnitude = u16::from(a & 0x7f);
    if magnitude == 0x7f {
        return 0x7fff;
    }
    // The exponent's bias is 8 less than that of `.f16`. Subnormal numbers are multiples of 2^-9.
    sign | if magnitude >= 8 { (magnitude << 7) + (8 << 10) } else { small(magnitude) }
}

/// `magnitude` times 2^-9 as `.f16`, for 0 to 7.
fn small(magnitude: u16) -> u16 {
    match magnitude.checked_ilog2() {
        None => 0,
        Some(top) => {
            let top = top as u16;
            ((top + 6) << 10) | ((magnitude << (10 - top)) & 0x3ff)
        }
    }
}

/// The number as `.f32`, exactly.
#[inline]
#[must_use]
pub fn f32_of_e4m3(a: u8) -> f32 {
    f64_of_f16(cvt_f16_e4m3(a)) as f32
}

/// The number as `.f32`, exactly.
#[inline]
#[must_use]
pub fn f32_of_e5m2(a: u8) -> f32 {
    f64_of_f16(cvt_f16_e5m2(a)) as f32
}

/// An 8-bit format: the bits of its fraction, the exponent of its smallest normal number, and its greatest
/// finite pattern.
struct Tiny {
    fraction: u32,
    least: i32,
    greatest: u8,
}

/// Rounds to nearest, ties to even. Greater numbers become the greatest finite one, NaN becomes 0x7f.
fn satfinite(a: f32, to: &Tiny) -> u8 {
    if a.is_nan() {
        return 0x7f;
    }
    let sign = if a.is_sign_negative() { 0x80 } else { 0 };
    let bits = a.to_bits() & 0x7fff_ffff;
    let exponent = (bits >> 23) as i32 - 127;
    // One unit of the result is 2^(step).
    let step = exponent.max(to.least) - to.fraction as i32;
    let digits = u64::from(bits & 0x7f_ffff | if bits >= 0x80_0000 { 0x80_0000 } else { 0 });
    let weight = exponent.max(-126) - 23;
    let drop = (step - weight) as u32;
    let kept = if drop > 40 {
        0
    } else {
        let (whole, rest, half) = (digits >> drop, digits & ((1 << drop) - 1), 1u64 << (drop - 1));
        whole + u64::from(rest > half || rest == half && whole & 1 == 1)
    };
    // Units above the smallest normal number carry into the exponent.
    let above = (exponent.max(to.least) - to.least) as u64;
    let pattern = (above << to.fraction) + kept;
    sign | pattern.min(to.greatest.into()) as u8
}

/// `cvt.rn.satfinite.e4m3.f32`, one half of the instruction that packs two: to nearest even, at most 448; NaN
/// gives 0x7f.
///
/// # Source
/// PTX ISA 9.7.9.21 of the current manual.
#[inline]
#[must_use]
pub fn cvt_satfinite_e4m3_f32(a: f32) -> u8 {
    satfinite(a, &Tiny { fraction: 3, least: -6, greatest: 0x7e })
}

/// `cvt.rn.satfinite.e5m2.f32`, one half of the instruction that packs two: to nearest even, at most 57344;
/// NaN gives 0x7f.
///
/// # Source
/// PTX ISA 9.7.9.21 of the current manual.
#[inline]
#[must_use]
pub fn cvt_satfinite_e5m2_f32(a: f32) -> u8 {
    satfinite(a, &Tiny { fraction: 2, least: -14, greatest: 0x7b })
}

/// `.relu` of an 8-bit number: negative numbers become +0; NaN stays.
///
/// # Source
/// PTX ISA 9.7.9.21 of the current manual.
#[inline]
#[must_use]
pub fn relu_tiny(a: u8) -> u8 {
    if a & 0x80 != 0 && a != 0xff { 0 } else { a }
}
