//! One element of `wmma.mma` and `mma`: a row of A times a column of B, plus the element of C (PTX ISA 6.4
//! §9.7.13).
//!
//! The machine maps elements to lanes and registers, and does loads and stores. Rows and columns are slices
//! of equal length here (of unequal ones the shorter length counts). Integer elements are extended by their
//! own type.
//!
//! **Invariant:** integer results are exact modulo 2^32, or clamped once from the exact sum. The manual
//! leaves the rounding of float results open ("accumulation order, rounding and handling of subnormal inputs
//! is unspecified", precision "at least single", or half if C and D are). Here products are exact and added
//! to c from the first element to the last in `f64`, and the sum is rounded once to the type of D. Subnormals
//! are not flushed.

use crate::float::{NAN_F32, fma_f64};
use crate::half::{f16_of_f64, f64_of_f16};
use crate::soft::Rnd;

/// c + the dot product of two vectors of halves, in `f64`.
#[inline]
fn dot_f16(c: f64, a: &[u16], b: &[u16]) -> f64 {
    a.iter().zip(b).fold(c, |sum, (&x, &y)| sum + f64_of_f16(x) * f64_of_f16(y))
}

/// Rounds the sum to `.f32`.
#[inline]
fn to_f32(sum: f64) -> f32 {
    if sum.is_nan() { NAN_F32 } else { sum as f32 }
}

/// `.dtype` f32, `.ctype` f32: c + a . b of halves.
///
/// # Rounding and NaN
/// See the module; a NaN result is 0x7fffffff.
///
/// # Source
/// PTX ISA §9.7.13.8, §9.7.13.9.
#[inline]
#[must_use]
pub fn mma_f32_f32(c: f32, a: &[u16], b: &[u16]) -> f32 {
    to_f32(dot_f16(c.into(), a, b))
}

/// `.dtype` f32, `.ctype` f16: c + a . b of halves.
///
/// # Rounding and NaN
/// See the module; a NaN result is 0x7fffffff.
///
/// # Source
/// PTX ISA §9.7.13.8, §9.7.13.9.
#[inline]
#[must_use]
pub fn mma_f32_f16(c: u16, a: &[u16], b: &[u16]) -> f32 {
    to_f32(dot_f16(f64_of_f16(c), a, b))
}

/// `.dtype` f16, `.ctype` f32: c + a . b of halves.
///
/// # Rounding and NaN
/// See the module; a NaN result is 0x7fff.
///
/// # Source
/// PTX ISA §9.7.13.8.
#[inline]
#[must_use]
pub fn mma_f16_f32(c: f32, a: &[u16], b: &[u16]) -> u16 {
    f16_of_f64(dot_f16(c.into(), a, b))
}

/// `.dtype` f16, `.ctype` f16: c + a . b of halves.
///
/// # Rounding and NaN
/// See the module; a NaN result is 0x7fff.
///
/// # Source
/// PTX ISA §9.7.13.8, §9.7.13.9.
#[inline]
#[must_use]
pub fn mma_f16_f16(c: u16, a: &[u16], b: &[u16]) -> u16 {
    f16_of_f64(dot_f16(f64_of_f16(c), a, b))
}

/// `mma` of `.bf16` and `.tf32`, whose elements are passed as singles: c + a . b.
///
/// # Rounding and NaN
/// See the module; a NaN result is 0x7fffffff. A product has at most 22 digits, so it is exact in `f64`.
///
/// # Source
/// PTX ISA 7.0, `mma`.
#[inline]
#[must_use]
pub fn mma_f32(c: f32, a: &[f32], b: &[f32]) -> f32 {
    to_f32(a.iter().zip(b).fold(c.into(), |sum: f64, (&x, &y)| sum + f64::from(x) * f64::from(y)))
}

/// `mma` of 8-bit floats with C and D of `.f16`: c + a . b. The elements are passed as singles.
///
/// # Rounding and NaN
/// See the module; a NaN result is 0x7fff.
///
/// # Source
/// PTX ISA 8.7, `mma`.
#[inline]
#[must_use]
pub fn mma_f16(c: u16, a: &[f32], b: &[f32]) -> u16 {
    f16_of_f64(a.iter().zip(b).fold(f64_of_f16(c), |sum, (&x, &y)| sum + f64::from(x) * f64::from(y)))
}

/// `mma` and `wmma.mma` of `.f64`: fused multiply-adds to c in the order of k, each rounded.
///
/// # Source
/// PTX ISA 7.0, `mma`. The manual leaves the order open.
#[inline]
#[must_use]
pub fn mma_f64(c: f64, a: &[f64], b: &[f64], rnd: Rnd) -> f64 {
    a.iter().zip(b).fold(c, |sum, (&x, &y)| fma_f64(x, y, sum, rnd))
}

/// `.satfinite` of a `.f32` element: infinities become the greatest finite values with their sign, NaN
/// becomes +0.
///
/// # Source
/// PTX ISA §9.7.13.8.
#[inline]
#[must_use]
pub fn satfinite_f32(a: f32) -> f32 {
    if a.is_nan() { 0.0 } else { a.clamp(f32::MIN, f32::MAX) }
}

/// `.satfinite` of a `.f16` element (bits): infinities become the greatest finite values with their sign, NaN
/// becomes +0.
///
/// # Source
/// PTX ISA §9.7.13.8.
#[inline]
#[must_use]
pub fn satfinite_f16(a: u16) -> u16 {
    match a & 0x7fff {
        ..0x7c00 => a,
        0x7c00 => a - 1,
        _ => 0,
    }
}

/// c + the exact dot product. The sum of products of 8-bit elements fits 64 bits for any slice that fits into
/// memory.
#[inline]
fn dot_int(c: i32, a: &[i32], b: &[i32]) -> i64 {
    a.iter().zip(b).fold(c.into(), |sum: i64, (&x, &y)| sum.wrapping_add(i64::from(x).wrapping_mul(y.into())))
}

/// Integer `wmma.mma` without `.satfinite`: c + a . b modulo 2^32.
///
/// # Source
/// PTX ISA §9.7.13.8.
#[inline]
#[must_use]
pub fn mma_s32(c: i32, a: &[i32], b: &[i32]) -> i32 {
    dot_int(c, a, b) as i32
}

/// Integer `wmma.mma.satfinite`: c + a . b, the exact sum clamped once to -2^31..2^31-1.
///
/// # Source
/// PTX ISA §9.7.13.8.
#[inline]
#[must_use]
pub fn mma_satfinite_s32(c: i32, a: &[i32], b: &[i32]) -> i32 {
    dot_int(c, a, b).clamp(i32::MIN.into(), i32::MAX.into()) as i32
}

/// `wmma.mma.xor.popc`: c plus the number of bits in which the row and the column differ, modulo 2^32.
///
/// # Source
/// PTX ISA §9.7.13.8.
#[inline]
#[must_use]
pub fn mma_xor_popc_s32(c: i32, a: &[u32], b: &[u32]) -> i32 {
    a.iter().zip(b).fold(c, |sum, (&x, &y)| sum.wrapping_add((x ^ y).count_ones().cast_signed()))
}

/// `wmma.mma.and.popc`, `mma` with `.and.popc`: c plus the number of bits that are set in both the row and
/// the column, modulo 2^32.
///
/// # Source
/// PTX ISA 7.1, `mma`.
#[inline]
#[must_use]
pub fn mma_and_popc_s32(c: i32, a: &[u32], b: &[u32]) -> i32 {
    a.iter().zip(b).fold(c, |sum, (&x, &y)| sum.wrapping_add((x & y).count_ones().cast_signed()))
}
