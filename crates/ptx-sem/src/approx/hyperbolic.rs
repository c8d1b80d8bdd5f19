//! `tanh.approx`, and `ex2.approx` of the 16-bit formats (PTX ISA 7.0, 7.8).
//!
//! tanh is computed of |a|, and gets the sign of a at the end. Up to 9/16 it is r + r z T(z) with z = r r;
//! beyond, it is 1 - 2 / (e^2r + 1). The exponential is `ex2.approx.f32`, whose error is reduced to a third
//! or less there. The coefficients come from `coefficients.py`. The 16-bit formats are computed in `.f32` and
//! rounded once more.
//!
//! **Invariant:** as in `power`: only IEEE operations and integers, without branches. The manual bounds the
//! relative error of `.f32` by 2^-11; here it is at most 2 units in the last place, tested on every 31st
//! operand (`PROOF.md`).

use super::power::ex2_approx_f32;
use crate::bfloat::{bf16_of_f32, f32_of_bf16};
use crate::float::NAN_F32;
use crate::half::{f16_of_f32, f32_of_f16};

const T: [f32; 5] = [
    f32::from_bits(0xbeaa_aaa4),
    f32::from_bits(0x3e08_8631),
    f32::from_bits(0xbd5c_8371),
    f32::from_bits(0x3cac_0f03),
    f32::from_bits(0xbbca_52dd),
];
/// The second formula applies from here.
const BORDER: f32 = 0.5625;
/// 2 / ln 2.
const TWICE_INVERSE_LN2: f32 = f32::from_bits(0x4038_aa3b);

/// `tanh.approx.f32`: the hyperbolic tangent. A subnormal gives itself.
///
/// # Rounding and NaN
/// Within 2 units in the last place (the manual: 2^-11 relative). Zeros keep their sign; infinities give 1.0
/// with their sign; a NaN gives 0x7fffffff.
///
/// # Source
/// PTX ISA 7.0, `tanh`.
#[inline]
#[must_use]
pub fn tanh_approx_f32(a: f32) -> f32 {
    let r = a.abs();
    let z = r * r;
    let sum = T.iter().rev().fold(0.0f32, |sum, next| sum.mul_add(z, *next));
    let near = (r * z).mul_add(sum, r);
    let far = 1.0 - 2.0 / (ex2_approx_f32(r * TWICE_INVERSE_LN2) + 1.0);
    let magnitude = if r < BORDER { near } else { far };
    if a.is_nan() { NAN_F32 } else { magnitude.copysign(a) }
}

/// `tanh.approx.f16`: the hyperbolic tangent (the manual: 2^-10.987 absolute); a NaN gives 0x7fff.
///
/// # Source
/// PTX ISA 7.0, `tanh`.
#[inline]
#[must_use]
pub fn tanh_approx_f16(a: u16) -> u16 {
    f16_of_f32(tanh_approx_f32(f32_of_f16(a)))
}

/// `tanh.approx.bf16`: the hyperbolic tangent (the manual: 2^-8 absolute); a NaN gives 0x7fff.
///
/// # Source
/// PTX ISA 7.8, `tanh`.
#[inline]
#[must_use]
pub fn tanh_approx_bf16(a: u16) -> u16 {
    bf16_of_f32(tanh_approx_f32(f32_of_bf16(a)))
}

/// `ex2.approx.f16`: 2 to the power a (the manual: 2^-9.9 relative); a NaN gives 0x7fff.
///
/// # Source
/// PTX ISA 7.0, `ex2`.
#[inline]
#[must_use]
pub fn ex2_approx_f16(a: u16) -> u16 {
    f16_of_f32(ex2_approx_f32(f32_of_f16(a)))
}

/// `ex2.approx.ftz.bf16` without the `.ftz`: 2 to the power a (the manual: 2^-7 relative); a NaN gives
/// 0x7fff.
///
/// # Source
/// PTX ISA 7.8, `ex2`.
#[inline]
#[must_use]
pub fn ex2_approx_bf16(a: u16) -> u16 {
    bf16_of_f32(ex2_approx_f32(f32_of_bf16(a)))
}

per_half! {
    "`tanh.approx.f16x2`: each half as [`tanh_approx_f16`]." tanh_approx_f16x2 tanh_approx_f16(a);
    "`tanh.approx.bf16x2`: each half as [`tanh_approx_bf16`]." tanh_approx_bf16x2 tanh_approx_bf16(a);
    "`ex2.approx.f16x2`: each half as [`ex2_approx_f16`]." ex2_approx_f16x2 ex2_approx_f16(a);
}
