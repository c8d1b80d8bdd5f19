//! Half precision: `add`, `sub`, `mul`, `fma`, `neg`, `abs` of `.f16` (bits in a `u16`) and `.f16x2` (two
//! halves in a `u32`), and their `.ftz` and `.sat` (PTX ISA 6.4 §9.7.4).
//!
//! The only rounding mode is `.rn`. The caller composes `sat(ftz(op(ftz(a), ftz(b))))`.
//!
//! **Invariant:** the effect is a single rounding. Products of halves are exact in `f32`. Sums and
//! differences are first rounded to `f32`, which does not change the result: subnormal ones are exact, and
//! single precision has twice as many digits as half precision plus two (Figueroa, 1995). A product plus a
//! half is rounded to odd in `f32`, which needs two digits more than the result has (Boldo and Melquiond,
//! 2008). A NaN result is always 0x7fff (the manual: "unspecified").

/// The NaN of every half-precision instruction.
pub(crate) const NAN_F16: u16 = 0x7fff;

/// The exact value of a half; a NaN gives an unspecified NaN.
#[inline]
pub(crate) fn f64_of_f16(a: u16) -> f64 {
    let magnitude = u64::from(a & 0x7fff);
    let value = match magnitude {
        // Subnormals and zero count units of 2^-24.
        ..0x400 => f64::from(a & 0x7fff) * (1.0 / 16_777_216.0),
        0x400..0x7c00 => f64::from_bits((magnitude << 42) + ((1023 - 15) << 52)),
        0x7c00 => f64::INFINITY,
        _ => f64::NAN,
    };
    if a & 0x8000 == 0 { value } else { -value }
}

/// A value rounded to the nearest half, ties to even.
#[inline]
pub(crate) fn f16_of_f64(a: f64) -> u16 {
    let sign = (a.to_bits() >> 48) as u16 & 0x8000;
    let magnitude = a.abs();
    let bits = magnitude.to_bits();
    if magnitude.is_nan() {
        NAN_F16
    } else if magnitude >= 65536.0 {
        sign | 0x7c00
    } else if magnitude >= 1.0 / 16384.0 {
        // Changes the bias of the exponent and rounds off 42 bits. The carry goes into the exponent, up to
        // infinity.
        let rebiased = bits - ((1023 - 15) << 52);
        let tie_to_even = ((1 << 41) - 1) + (rebiased >> 42 & 1);
        sign | ((rebiased + tie_to_even) >> 42) as u16
    } else {
        // Adding 2^28, whose lowest place is 2^-24, rounds to units of 2^-24.
        let unit = 268_435_456.0f64;
        sign | ((magnitude + unit).to_bits() - unit.to_bits()) as u16
    }
}

/// The exact value of a half; a NaN gives an unspecified NaN. It has no branches and is always inlined, so
/// that LLVM can vectorize loops over it.
#[inline(always)]
pub(crate) fn f32_of_f16(a: u16) -> f32 {
    let magnitude = u32::from(a & 0x7fff) << 13;
    // Changes the bias of the exponent. A subnormal gets the exponent of the least normal number, which is
    // then subtracted.
    let normal = magnitude + (112 << 23);
    let subnormal = f32::from_bits(magnitude + LEAST_NORMAL) - f32::from_bits(LEAST_NORMAL);
    let finite = if magnitude < 0x400 << 13 { subnormal.to_bits() } else { normal };
    let bits = if magnitude < 0x7c00 << 13 { finite } else { magnitude | 0x7f80_0000 };
    f32::from_bits(bits | u32::from(a & 0x8000) << 16)
}

/// The bits of 2^-14, the least normal half, in `f32`.
const LEAST_NORMAL: u32 = 113 << 23;

/// A value rounded to the nearest half, ties to even. It has no branches and is always inlined, so that LLVM
/// can vectorize loops over it.
#[inline(always)]
pub(crate) fn f16_of_f32(a: f32) -> u16 {
    let magnitude = a.to_bits() & 0x7fff_ffff;
    // Changes the bias of the exponent and rounds off 13 bits. The carry goes into the exponent, up to
    // infinity.
    let tie_to_even = 0xfff + (magnitude >> 13 & 1);
    let normal = magnitude.wrapping_sub(112 << 23).wrapping_add(tie_to_even) >> 13;
    // Adding 1/2, whose lowest place is 2^-24, rounds to units of 2^-24.
    let unit = 0.5f32;
    let subnormal = (f32::from_bits(magnitude) + unit).to_bits().wrapping_sub(unit.to_bits());
    let finite = if magnitude < LEAST_NORMAL { subnormal } else { normal };
    let number = if magnitude < 0x4780_0000 { finite } else { 0x7c00 } | a.to_bits() >> 16 & 0x8000;
    if magnitude > 0x7f80_0000 { NAN_F16 } else { number as u16 }
}

/// `add.f16`: d = a + b, rounded to nearest even.
///
/// # Source
/// PTX ISA §9.7.4.1.
#[inline(always)]
#[must_use]
pub fn add_f16(a: u16, b: u16) -> u16 {
    f16_of_f32(f32_of_f16(a) + f32_of_f16(b))
}

/// `sub.f16`: d = a - b, rounded to nearest even.
///
/// # Source
/// PTX ISA §9.7.4.2.
#[inline(always)]
#[must_use]
pub fn sub_f16(a: u16, b: u16) -> u16 {
    f16_of_f32(f32_of_f16(a) - f32_of_f16(b))
}

/// `mul.f16`: d = a * b, rounded to nearest even.
///
/// # Source
/// PTX ISA §9.7.4.3.
#[inline(always)]
#[must_use]
pub fn mul_f16(a: u16, b: u16) -> u16 {
    f16_of_f32(f32_of_f16(a) * f32_of_f16(b))
}

/// a * b + c, the product exact, rounded to odd in single precision: if the sum is inexact (its error is
/// exact) and its last digit is even, it moves by one unit in the last place towards the exact sum.
#[inline(always)]
fn fused_to_odd(a: u16, b: u16, c: u16) -> f32 {
    let (product, c) = (f32_of_f16(a) * f32_of_f16(b), f32_of_f16(c));
    let sum = product + c;
    let c_part = sum - product;
    let error = (product - (sum - c_part)) + (c - c_part);
    // No product of these underflows: both are multiples of 2^-48. The error of an infinite sum is a NaN,
    // which compares as false.
    let direction = error * sum;
    let inwards = u32::from(direction < 0.0);
    let inexact = inwards | u32::from(direction > 0.0);
    f32::from_bits(sum.to_bits().wrapping_sub(inwards) | inexact)
}

/// `fma.f16`: d = a * b + c, the product exact, rounded once to nearest even.
///
/// # Source
/// PTX ISA §9.7.4.4.
#[inline(always)]
#[must_use]
pub fn fma_f16(a: u16, b: u16, c: u16) -> u16 {
    f16_of_f32(fused_to_odd(a, b, c))
}

/// The half nearest to a number, for `.ftz`: a number that is subnormal when it is rounded to 11 bits becomes
/// a zero with its sign, as on devices (reading A178). The number is exact or rounded to odd.
#[inline(always)]
fn flushed_f16_of_f32(a: f32) -> u16 {
    // 2^-14 (1 - 2^-12): numbers from here on are rounded to 2^-14 or more.
    const BORDER: f32 = f32::from_bits(0x387f_f000);
    let half = f16_of_f32(a);
    if a.abs() < BORDER { half & 0x8000 } else { half }
}

/// `mul.ftz.f16` of flushed operands, rounded to nearest even.
///
/// # Source
/// PTX ISA §9.7.4.3.
#[inline(always)]
#[must_use]
pub fn mul_ftz_f16(a: u16, b: u16) -> u16 {
    flushed_f16_of_f32(f32_of_f16(a) * f32_of_f16(b))
}

/// `fma.ftz.f16` of flushed operands, like [`fma_f16`].
///
/// # Source
/// PTX ISA §9.7.4.4.
#[inline(always)]
#[must_use]
pub fn fma_ftz_f16(a: u16, b: u16, c: u16) -> u16 {
    flushed_f16_of_f32(fused_to_odd(a, b, c))
}

/// `neg.f16`: a with its sign inverted; a NaN gives 0x7fff.
///
/// # Source
/// PTX ISA §9.7.4.5.
#[inline]
#[must_use]
pub fn neg_f16(a: u16) -> u16 {
    if is_nan(a) { NAN_F16 } else { a ^ 0x8000 }
}

/// `abs.f16`: a without its sign; a NaN gives 0x7fff.
///
/// # Source
/// PTX ISA 6.5, `abs`; NaN as in `neg.f16` (§9.7.4.5).
#[inline]
#[must_use]
pub fn abs_f16(a: u16) -> u16 {
    if is_nan(a) { NAN_F16 } else { a & 0x7fff }
}

#[inline]
fn is_nan(a: u16) -> bool {
    a & 0x7fff > 0x7c00
}

/// `.ftz` of a half: a subnormal becomes a zero with its sign; other values stay.
///
/// # Source
/// PTX ISA §9.7.4.1.
#[inline]
#[must_use]
pub fn ftz_f16(a: u16) -> u16 {
    if a & 0x7c00 == 0 { a & 0x8000 } else { a }
}

/// `.relu` of a half: negative numbers, including -0, become +0; a NaN becomes 0x7fff.
///
/// # Source
/// PTX ISA 7.0, `fma` and `cvt` of half precision. It says "clamped to 0 if negative" and does not mention
/// -0.
#[inline(always)]
#[must_use]
pub fn relu_f16(a: u16) -> u16 {
    let positive = if a & 0x8000 == 0 { a } else { 0 };
    if is_nan(a) { NAN_F16 } else { positive }
}

/// `.satfinite` of a conversion to half precision: an infinity becomes the greatest number with its sign;
/// other values stay.
///
/// # Source
/// PTX ISA 8.1, `cvt`.
#[inline(always)]
#[must_use]
pub fn cvt_satfinite_f16(a: u16) -> u16 {
    if a & 0x7fff == 0x7c00 { a - 1 } else { a }
}

/// `.sat` of a half: clamped to 0.0..1.0; NaN and -0 become +0.
///
/// # Source
/// PTX ISA §9.7.4.1.
#[inline]
#[must_use]
pub fn sat_f16(a: u16) -> u16 {
    match a {
        ..=0x3c00 => a,
        0x3c01..=0x7c00 => 0x3c00,
        _ => 0,
    }
}

per_half! {
    "`add.f16x2`: the sums of the low and of the high halves, each as [`add_f16`]." add_f16x2 add_f16(a, b);
    "`sub.f16x2`: the differences of the low and of the high halves, each as [`sub_f16`]." sub_f16x2 sub_f16(a, b);
    "`mul.f16x2`: the products of the low and of the high halves, each as [`mul_f16`]." mul_f16x2 mul_f16(a, b);
    "`fma.f16x2`: a * b + c of the low and of the high halves, each as [`fma_f16`]." fma_f16x2 fma_f16(a, b, c);
    "`mul.ftz.f16x2` of flushed operands: each half as [`mul_ftz_f16`]." mul_ftz_f16x2 mul_ftz_f16(a, b);
    "`fma.ftz.f16x2` of flushed operands: each half as [`fma_ftz_f16`]." fma_ftz_f16x2 fma_ftz_f16(a, b, c);
    "`neg.f16x2`: both halves, each as [`neg_f16`]." neg_f16x2 neg_f16(a);
    "`abs.f16x2`: both halves, each as [`abs_f16`]." abs_f16x2 abs_f16(a);
    "`.ftz` of both halves, each as [`ftz_f16`]." ftz_f16x2 ftz_f16(a);
    "`.sat` of both halves, each as [`sat_f16`]." sat_f16x2 sat_f16(a);
    "`.relu` of both halves, each as [`relu_f16`]." relu_f16x2 relu_f16(a);
}
