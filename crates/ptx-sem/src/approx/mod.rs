//! The approximate float instructions: `div.approx`, `div.full`, `rcp`, `sqrt`, `rsqrt`, `sin`, `cos`, `lg2`,
//! `ex2` and the two `.approx.ftz.f64` forms (PTX ISA 6.4 §9.7.3), `mad.f32` of sm_1x, and `tanh` (PTX ISA
//! 7.0).
//!
//! The manual bounds the errors of these instructions and does not define their results. Division, reciprocal
//! and square root are the IEEE operations; `rsqrt` is two of them; the others are polynomials in single
//! precision (`circle`, `power`, `hyperbolic`). All keep the manual's bounds for the operands for which it
//! states them, and similar bounds for all others: `cargo xtask prove` tests every operand or, for the slower
//! instructions, every 31st, and its figures are in `PROOF.md` beside this file. The results in the manual's
//! tables of special inputs hold exactly if the caller flushes operand and result for `.ftz`. Without `.ftz`
//! a subnormal operand has its mathematical result, where the tables, written for flushed operands, print
//! another (`rcp`, `rsqrt`, `lg2`, `sqrt` of negative subnormals).
//!
//! **Invariant:** a NaN result in `.f32` is 0x7fffffff. Every step is an IEEE operation, a fused multiply-add
//! or integer arithmetic, so every host and vectors of any width give the same bits.

mod circle;
mod hyperbolic;
mod power;

pub use circle::{cos_approx_f32, cos_quick_f32, sin_approx_f32, sin_quick_f32};
pub use hyperbolic::{
    ex2_approx_bf16, ex2_approx_f16, ex2_approx_f16x2, tanh_approx_bf16, tanh_approx_bf16x2, tanh_approx_f16,
    tanh_approx_f16x2, tanh_approx_f32,
};
pub use power::{ex2_approx_f32, lg2_approx_f32};

use crate::float::{NAN_F32, div_f32, ftz_f32, ftz_f64, mul_f32, rcp_f32, sqrt_f32};
use crate::soft::{self, Rnd};

/// `div.approx.f32`: a / b, here correctly rounded.
///
/// The manual bounds the error by 2 units in the last place for |b| in 2^-126..2^126, and says nothing about
/// other b. For larger finite b the result is a times a zero with the sign of b: 0, or NaN if a is infinite,
/// as on devices, which flush 1/b. By the manual, a number divided by +0 is infinity with the sign of a. For
/// -0 the signs multiply, as in its formula a * (1/b) and in the table of `rcp`.
///
/// # Source
/// PTX ISA §9.7.3.8.
#[inline]
#[must_use]
pub fn div_approx_f32(a: f32, b: f32) -> f32 {
    const FAR: f32 = 8.507_059e37; // 2^126
    if b.abs() > FAR && b.is_finite() {
        return mul_f32(a, 0.0_f32.copysign(b), Rnd::Rn);
    }
    div_f32(a, b, Rnd::Rn)
}

/// `div.full.f32`: a / b, here correctly rounded (the manual: within 2 units in the last place everywhere).
///
/// # Source
/// PTX ISA §9.7.3.8.
#[inline]
#[must_use]
pub fn div_full_f32(a: f32, b: f32) -> f32 {
    div_f32(a, b, Rnd::Rn)
}

/// `rcp.approx.f32`: 1 / a, here correctly rounded (the manual: error at most 2^-23 for a in 1..2). A zero
/// gives infinity with its sign.
///
/// # Source
/// PTX ISA §9.7.3.13.
#[inline]
#[must_use]
pub fn rcp_approx_f32(a: f32) -> f32 {
    rcp_f32(a, Rnd::Rn)
}

/// `sqrt.approx.f32`: the square root, here correctly rounded (the manual: "to be determined"). -0 gives -0,
/// and numbers below zero give NaN.
///
/// # Source
/// PTX ISA §9.7.3.15.
#[inline]
#[must_use]
pub fn sqrt_approx_f32(a: f32) -> f32 {
    sqrt_f32(a, Rnd::Rn)
}

/// `rsqrt.approx.f32`: 1 / sqrt(a) with two roundings (the manual: error at most 2^-22.4 for a in 1..4; here
/// at most 1.5 units in the last place for all a). A zero gives infinity with its sign, and numbers below
/// zero give NaN.
///
/// # Source
/// PTX ISA §9.7.3.16.
#[inline]
#[must_use]
pub fn rsqrt_approx_f32(a: f32) -> f32 {
    let root = 1.0 / a.abs().sqrt();
    let below = if a == 0.0 { 1.0 / a } else { NAN_F32 };
    if a > 0.0 { root } else { below }
}

/// `rsqrt.approx.f64`: 1 / sqrt(a) with two roundings (the manual: "to be determined"). A zero gives infinity
/// with its sign, and numbers below zero give NaN.
///
/// # Rounding and NaN
/// Subnormal operands have their mathematical result ("double-precision instructions support subnormal
/// inputs"), although the table prints infinity for them. A NaN is made quiet; an operand below zero gives
/// 0x7ff8000000000000.
///
/// # Source
/// PTX ISA §9.7.3.16.
#[inline]
#[must_use]
pub fn rsqrt_approx_f64(a: f64) -> f64 {
    if a.is_nan() {
        f64::from_bits(a.to_bits() | 1 << 51)
    } else if a < 0.0 {
        f64::from_bits(0x7ff8_0000_0000_0000)
    } else {
        reciprocal_root(a)
    }
}

/// 1 / sqrt(a); the root of -0 is -0.
#[inline]
fn reciprocal_root(a: f64) -> f64 {
    1.0 / a.sqrt()
}

/// The bits of a `.f64` result whose lower word is cleared. A NaN becomes 0x7fffffff00000000, and subnormals
/// are flushed.
#[inline]
fn upper_word(a: f64) -> f64 {
    if a.is_nan() {
        f64::from_bits(0x7fff_ffff_0000_0000)
    } else {
        f64::from_bits(ftz_f64(a).to_bits() & 0xffff_ffff_0000_0000)
    }
}

/// The operand as `rcp.approx.ftz.f64` and `rsqrt.approx.ftz.f64` read it: its upper word, flushed.
///
/// A NaN whose payload is only in the lower word therefore reads as infinity.
#[inline]
fn upper_operand(a: f64) -> f64 {
    ftz_f64(f64::from_bits(a.to_bits() & 0xffff_ffff_0000_0000))
}

/// `rcp.approx.ftz.f64`: 1 / (upper word of a), with the lower word of the result cleared.
///
/// # Rounding and NaN
/// Truncated, not rounded, to 20 fraction bits (the manual: "gross approximation", no bound). Subnormal
/// operands and results are flushed here, not by the caller. A NaN gives 0x7fffffff00000000.
///
/// # Source
/// PTX ISA §9.7.3.14.
#[inline]
#[must_use]
pub fn rcp_approx_ftz_f64(a: f64) -> f64 {
    upper_word(1.0 / upper_operand(a))
}

/// `rsqrt.approx.ftz.f64`: 1 / sqrt(upper word of a), with the lower word of the result cleared.
///
/// # Rounding and NaN
/// Truncated, not rounded, to 20 fraction bits (the manual gives no bound). Subnormal operands are flushed
/// here, not by the caller. A NaN, and an operand below zero (which the table lacks), give
/// 0x7fffffff00000000.
///
/// # Source
/// PTX ISA §9.7.3.17.
#[inline]
#[must_use]
pub fn rsqrt_approx_ftz_f64(a: f64) -> f64 {
    upper_word(reciprocal_root(upper_operand(a)))
}

/// `mad.f32` of `.target sm_1x`: the product truncated to 24 significant bits with an unlimited exponent,
/// plus c, rounded to nearest even.
///
/// With c = +-0 it is `mul.rn` and `add.rn` instead. Subnormal operands and results are flushed here, because
/// those targets always flush. The caller applies `.sat`.
///
/// # Rounding and NaN
/// A NaN result is 0x7fffffff.
///
/// # Source
/// PTX ISA §9.7.3.7.
#[must_use]
pub fn mad_trunc_f32(a: f32, b: f32, c: f32) -> f32 {
    let (a, b, c) = (ftz_f32(a), ftz_f32(b), ftz_f32(c));
    if c == 0.0 {
        let product = ftz_f32(mul_f32(a, b, Rnd::Rn));
        return ftz_f32(crate::float::add_f32(product, c, Rnd::Rn));
    }
    // Two 24-bit significands have an exact product in f64, of which 23 of the 52 fraction bits are kept.
    let product = (f64::from(a) * f64::from(b)).to_bits() & !0x1fff_ffff;
    let sum = soft::add(soft::F64, soft::F32, product, f64::from(c).to_bits(), Rnd::Rn);
    ftz_f32(sum.map_or(NAN_F32, |bits| f32::from_bits(bits as u32)))
}
