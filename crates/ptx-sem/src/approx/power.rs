//! `ex2.approx.f32` and `lg2.approx.f32` (PTX ISA 6.4 §9.7.3.20, §9.7.3.21).
//!
//! ex2: with n the integer nearest to a and f = a - n, which is exact, 2^a = 2^n (1 + f P(f)) with f in
//! -1/2..1/2. The scaling multiplies by two powers of two, of which the first product is exact, so that a
//! subnormal result is rounded once.
//!
//! lg2: a = 2^k m with m in sqrt(1/2)..sqrt(2); t = m - 1 is exact; lg2 a = k + lg2(1 + t), where lg2(1 + t)
//! = t L + t (l + t Q(t)) and L + l is 1 / ln 2 as a sum of two singles. Near a = 1, where k is 0 and the
//! result is small, this keeps the relative accuracy.
//!
//! The polynomials are evaluated by Horner's rule with fused multiply-add; their coefficients come from
//! `coefficients.py`. Both functions are in single precision without branches and tables, so vectors of any
//! width give the same result.
//!
//! **Invariant:** 2^n and the logarithm of 2^n are exact for every integer n. Only IEEE addition,
//! multiplication, fused multiply-add and integer operations are used, so every host gives the same bits. The
//! error is at most 1 unit in the last place, tested on every operand of lg2 and every 31st of ex2
//! (`PROOF.md`).

use crate::float::NAN_F32;

/// 1.5 * 2^23. Adding it rounds to an integer, which the low bits then hold.
const SHIFT: f32 = 12_582_912.0;
const P: [f32; 6] = [
    f32::from_bits(0x3f31_7218),
    f32::from_bits(0x3e75_fdec),
    f32::from_bits(0x3d63_57bc),
    f32::from_bits(0x3c1d_9858),
    f32::from_bits(0x3aaf_8533),
    f32::from_bits(0x391f_c836),
];
/// 1 / ln 2 as a sum of two singles.
const INVERSE_LN2: [f32; 2] = [f32::from_bits(0x3fb8_aa3b), f32::from_bits(0x32a5_7060)];
const Q: [f32; 9] = [
    f32::from_bits(0xbf38_aa38),
    f32::from_bits(0x3ef6_3850),
    f32::from_bits(0xbeb8_ad65),
    f32::from_bits(0x3e93_bdfd),
    f32::from_bits(0xbe75_5640),
    f32::from_bits(0x3e51_aa3b),
    f32::from_bits(0xbe44_08c3),
    f32::from_bits(0x3e3d_ce75),
    f32::from_bits(0xbddd_55d5),
];
/// The bits of sqrt(1/2).
const ROOT_HALF: u32 = 0x3f35_04f3;

/// c[0] + x (c[1] + x (c[2] + ...)).
#[inline(always)]
fn horner<const N: usize>(c: &[f32; N], x: f32) -> f32 {
    let mut sum = c[N - 1];
    for &next in c[..N - 1].iter().rev() {
        sum = sum.mul_add(x, next);
    }
    sum
}

/// 2^n for n in -126..=127.
#[inline(always)]
fn power(n: i32) -> f32 {
    f32::from_bits(((n + 127) as u32) << 23)
}

/// `ex2.approx.f32`: 2 to the power a (the manual: error at most 2^-22.5 in the primary range; here at most 1
/// unit in the last place). A subnormal operand gives 1.0.
///
/// # Source
/// PTX ISA §9.7.3.21.
#[inline]
#[must_use]
pub fn ex2_approx_f32(a: f32) -> f32 {
    // 2^129 is infinity and 2^-151 is zero, as are all powers beyond them.
    let x = if a > -151.0 { a } else { -151.0 };
    let x = if x < 129.0 { x } else { 129.0 };
    let shifted = x + SHIFT;
    let f = x - (shifted - SHIFT);
    let fraction = f.mul_add(horner(&P, f), 1.0);
    let n = (shifted.to_bits() as i32) - (SHIFT.to_bits() as i32);
    let half = n >> 1;
    let result = fraction * power(half) * power(n - half);
    if a.is_nan() { NAN_F32 } else { result }
}

/// `lg2.approx.f32`: the logarithm of a to base 2 (the manual: error at most 2^-22.6 for the mantissa; here
/// at most 1 unit in the last place). A zero of either sign gives -infinity, and numbers below zero give NaN.
///
/// # Source
/// PTX ISA §9.7.3.20.
#[inline]
#[must_use]
pub fn lg2_approx_f32(a: f32) -> f32 {
    let subnormal = a < f32::MIN_POSITIVE;
    let scaled = if subnormal { a * 8_388_608.0 } else { a };
    let bits = scaled.to_bits();
    let k = (bits.wrapping_sub(ROOT_HALF) as i32) >> 23;
    let m = f32::from_bits(bits.wrapping_sub((k as u32) << 23));
    let t = m - 1.0;
    let rest = t * t.mul_add(horner(&Q, t), INVERSE_LN2[1]);
    let fraction = t.mul_add(INVERSE_LN2[0], rest);
    let exponent = if subnormal { k - 23 } else { k };
    let result = exponent as f32 + fraction;
    let positive = if a < f32::INFINITY { result } else { f32::INFINITY };
    let below = if a == 0.0 { f32::NEG_INFINITY } else { NAN_F32 };
    if a > 0.0 { positive } else { below }
}
