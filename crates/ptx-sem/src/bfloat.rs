//! bfloat16: arithmetic and conversions of `.bf16` (bits in a `u16`) and `.bf16x2` (two of them in a `u32`),
//! and `.tf32` (PTX ISA 7.0 and 7.8).
//!
//! A `.bf16` is the upper half of a `.f32`: the same exponents, eight significant bits. Subnormals are not
//! flushed. The caller applies `.relu` and `.sat`, and splits `.bf16x2` into halves if no function here does.
//! `min` and `max` are in `extremum`.
//!
//! **Invariant:** the effect is a single rounding. Sums and products are first rounded to `f32`, which does
//! not change the result, because `f32` has more than twice as many digits plus two (Figueroa, 1995). A
//! product below the least `f32` is also below half of the least `.bf16`, and one of at least that half is
//! exact. `fma` multiplies exactly in `f64`, adds with rounding to odd (Boldo and Melquiond, 2008) and rounds
//! once to `.bf16`. A NaN result is always 0x7fff.

use crate::cvt::RndInt;
use crate::float::NAN_F32;
use crate::soft::{self, Rnd};

/// The NaN of every `.bf16` instruction.
const NAN_BF16: u16 = 0x7fff;

/// The exact value; a NaN gives an unspecified NaN.
#[inline(always)]
pub(crate) fn f32_of_bf16(a: u16) -> f32 {
    f32::from_bits(u32::from(a) << 16)
}

/// A value rounded to the nearest `.bf16`, ties to even. It has no branches, so that LLVM can vectorize loops
/// over it.
#[inline(always)]
pub(crate) fn bf16_of_f32(a: f32) -> u16 {
    let bits = a.to_bits();
    // The carry goes into the exponent, up to infinity. Only a NaN overflows.
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1));
    if a.is_nan() { NAN_BF16 } else { (rounded >> 16) as u16 }
}

/// A value rounded to the nearest `.bf16`, ties to even.
#[inline(always)]
fn bf16_of_f64(a: f64) -> u16 {
    let sign = (a.to_bits() >> 48) as u16 & 0x8000;
    let magnitude = a.abs();
    // Changes the bias of the exponent and rounds off 45 bits. The carry goes into the exponent, up to
    // infinity.
    let rebiased = magnitude.to_bits().wrapping_sub((1023 - 127) << 52);
    let normal = rebiased.wrapping_add(((1 << 44) - 1) + (rebiased >> 45 & 1)) >> 45;
    // Adding 2^-81, whose lowest place is 2^-133, rounds to units of 2^-133.
    let unit = f64::from_bits((1023 - 81) << 52);
    let subnormal = (magnitude + unit).to_bits().wrapping_sub(unit.to_bits());
    let least_normal = f64::from(f32::MIN_POSITIVE);
    let finite = if magnitude < least_normal { subnormal } else { normal } as u16;
    // 2^128.
    let limit = f64::from_bits((1023 + 128) << 52);
    let number = sign | if magnitude < limit { finite } else { 0x7f80 };
    if a.is_nan() { NAN_BF16 } else { number }
}

#[inline(always)]
fn is_nan(a: u16) -> bool {
    a & 0x7fff > 0x7f80
}

/// `add.bf16`: d = a + b, rounded to nearest even.
///
/// # Source
/// PTX ISA 7.8, `add`.
#[inline(always)]
#[must_use]
pub fn add_bf16(a: u16, b: u16) -> u16 {
    bf16_of_f32(f32_of_bf16(a) + f32_of_bf16(b))
}

/// `sub.bf16`: d = a - b, rounded to nearest even.
///
/// # Source
/// PTX ISA 7.8, `sub`.
#[inline(always)]
#[must_use]
pub fn sub_bf16(a: u16, b: u16) -> u16 {
    bf16_of_f32(f32_of_bf16(a) - f32_of_bf16(b))
}

/// `mul.bf16`: d = a * b, rounded to nearest even.
///
/// # Source
/// PTX ISA 7.8, `mul`.
#[inline(always)]
#[must_use]
pub fn mul_bf16(a: u16, b: u16) -> u16 {
    bf16_of_f32(f32_of_bf16(a) * f32_of_bf16(b))
}

/// `fma.rn.bf16`: d = a * b + c, the product exact, rounded once to nearest even.
///
/// # Source
/// PTX ISA 7.0, `fma`.
#[inline(always)]
#[must_use]
pub fn fma_bf16(a: u16, b: u16, c: u16) -> u16 {
    let product = f64::from(f32_of_bf16(a)) * f64::from(f32_of_bf16(b));
    let c = f64::from(f32_of_bf16(c));
    // The sum rounded to odd, as in `fma_f16`. Nothing here underflows, and the error of an infinite sum is a
    // NaN.
    let sum = product + c;
    let c_part = sum - product;
    let error = (product - (sum - c_part)) + (c - c_part);
    // Signs are compared, because a product of such small numbers could underflow.
    let (up, down) = (error > 0.0, error < 0.0);
    let negative = sum < 0.0;
    let inwards = u64::from(if negative { up } else { down });
    let inexact = u64::from(up | down);
    bf16_of_f64(f64::from_bits(sum.to_bits().wrapping_sub(inwards) | inexact))
}

/// `neg.bf16`: a with its sign inverted; a NaN gives 0x7fff.
///
/// # Source
/// PTX ISA 7.0, `neg`.
#[inline(always)]
#[must_use]
pub fn neg_bf16(a: u16) -> u16 {
    if is_nan(a) { NAN_BF16 } else { a ^ 0x8000 }
}

/// `abs.bf16`: a without its sign; a NaN gives 0x7fff.
///
/// # Source
/// PTX ISA 7.0, `abs`.
#[inline(always)]
#[must_use]
pub fn abs_bf16(a: u16) -> u16 {
    if is_nan(a) { NAN_BF16 } else { a & 0x7fff }
}

/// `.ftz` of `ex2`: a subnormal becomes a zero with its sign; other values stay.
///
/// # Source
/// PTX ISA 7.8, `ex2`.
#[inline(always)]
#[must_use]
pub fn ftz_bf16(a: u16) -> u16 {
    if a & 0x7f80 == 0 { a & 0x8000 } else { a }
}

/// `.relu`: negative numbers, including -0, become +0; a NaN becomes 0x7fff.
///
/// # Source
/// PTX ISA 7.0, `fma` and `cvt`. It says "clamped to 0 if negative" and does not mention -0.
#[inline(always)]
#[must_use]
pub fn relu_bf16(a: u16) -> u16 {
    let positive = if a & 0x8000 == 0 { a } else { 0 };
    if is_nan(a) { NAN_BF16 } else { positive }
}

/// `.sat` of a conversion: clamped to 0.0..1.0; NaN and -0 become +0.
///
/// # Source
/// PTX ISA 7.8, `cvt`.
#[inline(always)]
#[must_use]
pub fn sat_bf16(a: u16) -> u16 {
    match a {
        ..=0x3f80 => a,
        0x3f81..=0x7f80 => 0x3f80,
        _ => 0,
    }
}

/// `.satfinite` of a conversion: an infinity becomes the greatest number with its sign; other values stay.
///
/// # Source
/// PTX ISA 8.1, `cvt`.
#[inline(always)]
#[must_use]
pub fn cvt_satfinite_bf16(a: u16) -> u16 {
    if a & 0x7fff == 0x7f80 { a - 1 } else { a }
}

per_half! {
    "`add.bf16x2`: each half as [`add_bf16`]." add_bf16x2 add_bf16(a, b);
    "`sub.bf16x2`: each half as [`sub_bf16`]." sub_bf16x2 sub_bf16(a, b);
    "`mul.bf16x2`: each half as [`mul_bf16`]." mul_bf16x2 mul_bf16(a, b);
    "`fma.rn.bf16x2`: each half as [`fma_bf16`]." fma_bf16x2 fma_bf16(a, b, c);
    "`neg.bf16x2`: each half as [`neg_bf16`]." neg_bf16x2 neg_bf16(a);
    "`abs.bf16x2`: each half as [`abs_bf16`]." abs_bf16x2 abs_bf16(a);
    "`.relu` of both halves, each as [`relu_bf16`]." relu_bf16x2 relu_bf16(a);
}

/// The result of a routine of `soft`, or the NaN.
#[inline]
fn soft_or_nan(bits: Option<u64>) -> u16 {
    bits.map_or(NAN_BF16, |bits| bits as u16)
}

/// `cvt.rnd.bf16.f32` (result bits): a, correctly rounded.
///
/// # Rounding and NaN
/// By `rnd`. Overflow gives infinity or the greatest number, by the mode. A NaN gives 0x7fff.
///
/// # Source
/// PTX ISA 7.0, `cvt`.
#[inline(always)]
#[must_use]
pub fn cvt_bf16_f32(a: f32, rnd: Rnd) -> u16 {
    match rnd {
        Rnd::Rn => bf16_of_f32(a),
        Rnd::Rz if a.is_nan() => NAN_BF16,
        Rnd::Rz => (a.to_bits() >> 16) as u16,
        Rnd::Rm | Rnd::Rp => soft_or_nan(soft::convert(soft::F32, soft::BF16, a.to_bits().into(), rnd)),
    }
}

/// `cvt.rnd.bf16.f64` (result bits): a, correctly rounded, like [`cvt_bf16_f32`].
///
/// # Source
/// PTX ISA 7.8, `cvt`.
#[inline]
#[must_use]
pub fn cvt_bf16_f64(a: f64, rnd: Rnd) -> u16 {
    soft_or_nan(soft::convert(soft::F64, soft::BF16, a.to_bits(), rnd))
}

/// `cvt.f32.bf16` (operand bits): the exact value; a NaN gives 0x7fffffff.
///
/// # Source
/// PTX ISA 7.1, `cvt`.
#[inline(always)]
#[must_use]
pub fn cvt_f32_bf16(a: u16) -> f32 {
    if is_nan(a) { NAN_F32 } else { f32_of_bf16(a) }
}

/// `cvt.f64.bf16` (operand bits): the exact value.
///
/// # Rounding and NaN
/// A NaN keeps its sign and its payload, as the upper bits, and is made quiet.
///
/// # Source
/// PTX ISA 7.8, `cvt`.
#[inline]
#[must_use]
pub fn cvt_f64_bf16(a: u16) -> f64 {
    crate::cvt::cvt_f64_f32(f32_of_bf16(a))
}

/// `cvt.irnd.bf16.bf16` (bits): a rounded to an integral value of the same type; its sign is kept.
///
/// # Rounding and NaN
/// By `rnd`; infinities stay; a NaN gives 0x7fff. All integers below 2^8 are representable, and all greater
/// numbers are integers.
///
/// # Source
/// PTX ISA 7.8, `cvt`.
#[inline]
#[must_use]
pub fn round_bf16(a: u16, rnd: RndInt) -> u16 {
    bf16_of_f32(crate::cvt::round_f32(f32_of_bf16(a), rnd))
}

macro_rules! from_integer {
    ($($name:ident $from:ty;)+) => {$(
        /// `cvt.rnd` of an integer to `.bf16` (bits): the value, correctly rounded; 0 gives +0.
        ///
        /// # Source
        /// PTX ISA 7.8, `cvt`.
        #[inline]
        #[must_use]
        pub fn $name(a: $from, rnd: Rnd) -> u16 {
            let value = i128::from(a);
            soft::from_int(soft::BF16, value < 0, value.unsigned_abs() as u64, rnd) as u16
        }
    )+};
}
from_integer! {
    cvt_bf16_u8 u8; cvt_bf16_u16 u16; cvt_bf16_u32 u32; cvt_bf16_u64 u64;
    cvt_bf16_s8 i8; cvt_bf16_s16 i16; cvt_bf16_s32 i32; cvt_bf16_s64 i64;
}

/// The bits of a `.f32` that a `.tf32` lacks.
const TF32_LACKS: u32 = (1 << 13) - 1;

/// `cvt.rna.tf32.f32` (result bits, held as `.f32`): a with eleven significant bits, to nearest, ties away
/// from zero.
///
/// # Rounding and NaN
/// The lower 13 bits are zero. Overflow gives infinity. A NaN gives 0x7fffffff.
///
/// # Source
/// PTX ISA 7.0, `cvt`.
#[inline]
#[must_use]
pub fn cvt_rna_tf32_f32(a: f32) -> u32 {
    tf32(a, 1 << 12)
}

/// `cvt.rn.tf32.f32` and `cvt.rz.tf32.f32` (result bits, held as `.f32`). Other modes, which no instruction
/// uses, round like `.rn`.
///
/// # Rounding and NaN
/// Like [`cvt_rna_tf32_f32`], but ties to even, or towards zero.
///
/// # Source
/// PTX ISA 7.8, `cvt`.
#[inline]
#[must_use]
pub fn cvt_tf32_f32(a: f32, rnd: Rnd) -> u32 {
    match rnd {
        Rnd::Rz => tf32(a, 0),
        Rnd::Rn | Rnd::Rm | Rnd::Rp => tf32(a, (TF32_LACKS >> 1) + (a.to_bits() >> 13 & 1)),
    }
}

/// a plus `more`, truncated.
#[inline]
fn tf32(a: f32, more: u32) -> u32 {
    if a.is_nan() { NAN_F32.to_bits() } else { (a.to_bits() + more) & !TF32_LACKS }
}

/// `.relu` of a conversion to `.tf32` (bits): negative numbers, including -0, become +0; a NaN stays.
///
/// # Source
/// PTX ISA 7.8, `cvt`.
#[inline]
#[must_use]
pub fn relu_tf32(a: u32) -> u32 {
    if a >> 31 == 0 { a } else { 0 }
}

/// `.satfinite` of a conversion to `.tf32` (bits): an infinity becomes the greatest number with its sign;
/// other values stay.
///
/// # Source
/// PTX ISA 8.1, `cvt`.
#[inline]
#[must_use]
pub fn cvt_satfinite_tf32(a: u32) -> u32 {
    if a & 0x7fff_ffff == 0x7f80_0000 { a - (TF32_LACKS + 1) } else { a }
}
