//! `sin.approx.f32` and `cos.approx.f32` (PTX ISA 6.4 §9.7.3.18, §9.7.3.19).
//!
//! With k pi/2 the multiple of pi/2 nearest to a, r = a - k pi/2, and k mod 4 selects sin r, cos r, or the
//! negation of one. Both are polynomials: sin r = r + r z S(z), cos r = 1 - z/2 + z^2 C(z), z = r^2. The
//! constants come from `coefficients.py`.
//!
//! Up to |a| = 2^16 all operations are in single precision with fused multiply-add and without branches, so
//! vectors of any width give the same result. pi/2 is a sum of three singles, of which the first has no bit
//! below 2^-23. a - k * first is a multiple of 2^-23 below 1, hence exact; the second and the third term are
//! subtracted with one rounding each. Adding 1.5 * 2^23, where the last place is one, rounds to k. Near the
//! middle between two multiples k may be off by one; then |r| exceeds pi/4 by less than 0.002, and the
//! polynomials are accurate up to 0.79. The nearest that a single below 2^16 comes to a multiple of pi/2 is
//! 2^-27.8 (161 pi/2), so r keeps its relative accuracy.
//!
//! Beyond 2^16, a * 2/pi mod 4 is computed in integers with 94 bits after the binary point (Payne and Hanek,
//! 1983). r is rounded from it, and the polynomials are the same.
//!
//! **Invariant:** only IEEE addition, multiplication, fused multiply-add and integer operations are used, so
//! every host gives the same bits. The error is at most 1.75 units in the last place, tested on every 31st
//! finite operand (`PROOF.md`).

use crate::float::NAN_F32;

/// The largest magnitude that is reduced in single precision.
const QUICK: f32 = 65536.0;
/// 1.5 * 2^23. Adding it rounds to an integer, which the low bits then hold.
const SHIFT: f32 = 12_582_912.0;
const TWO_OVER_PI: f32 = f32::from_bits(0x3f22_f983);
/// pi/2 as a sum of three terms, the first two truncated.
const HALF_PI: [f32; 3] =
    [f32::from_bits(0x3fc9_0fda), f32::from_bits(0x33a2_2168), f32::from_bits(0x27c2_34c4)];
const S: [f32; 3] = [f32::from_bits(0xbe2a_aaa2), f32::from_bits(0x3c08_836b), f32::from_bits(0xb94c_9231)];
const C: [f32; 3] = [f32::from_bits(0x3d2a_aaa5), f32::from_bits(0xbab6_060f), f32::from_bits(0x37cc_f19a)];

/// For smaller magnitudes sin a is a, to within a sixth of a unit in the last place.
const SMALL: f32 = 1.0 / 4096.0;

/// One of four values: 0 sin r, 1 cos r, 2 -sin r, 3 -cos r.
#[inline]
fn turned(r: f32, quadrant: u32) -> f32 {
    let z = r * r;
    let s = S[2].mul_add(z, S[1]).mul_add(z, S[0]);
    let sin = (r * z).mul_add(s, r);
    let c = C[2].mul_add(z, C[1]).mul_add(z, C[0]);
    let cos = (z * z).mul_add(c, z.mul_add(-0.5, 1.0));
    let magnitude = if quadrant & 1 == 0 { sin } else { cos };
    f32::from_bits(magnitude.to_bits() ^ (quadrant & 2) << 30)
}

/// a - k pi/2, and k mod 4, for |a| up to [`QUICK`].
#[inline]
fn reduced(a: f32) -> (f32, u32) {
    let shifted = a.mul_add(TWO_OVER_PI, SHIFT);
    let k = shifted - SHIFT;
    let r = (-k).mul_add(HALF_PI[0], a);
    let r = (-k).mul_add(HALF_PI[1], r);
    ((-k).mul_add(HALF_PI[2], r), shifted.to_bits() & 3)
}

/// A zero word, then 2/pi.
const TWO_OVER_PI_WORDS: [u32; 10] = [
    0,
    0xa2f9_836e,
    0x4e44_1529,
    0xfc27_57d1,
    0xf534_ddc0,
    0xdb62_9599,
    0x3c43_9041,
    0xfe51_63ab,
    0xdebb_c561,
    0xb724_6e3a,
];

/// a - k pi/2, and k mod 4, for finite a beyond [`QUICK`].
fn reduced_by_integers(a: f32) -> (f32, u32) {
    // |a| = m * 2^e with e in -7..=104. Bits of 2/pi above the place 2^(1-e) contribute multiples of 4. The
    // 96 bits from that place are used, and the lowest 96 bits of their product with m, of which two are
    // before the binary point.
    let m = u128::from(a.to_bits() & 0x7f_ffff | 0x80_0000);
    let first_bit = (a.to_bits() >> 23 & 0xff) as usize - 120;
    let words = TWO_OVER_PI_WORDS.iter().skip(first_bit / 32).take(4);
    let window = words.fold(0u128, |bits, &word| bits << 32 | u128::from(word));
    let product = m.wrapping_mul(window << (first_bit % 32) >> 32) << 32;
    let quadrant = (product.wrapping_add(1 << 125) >> 126) as u32;
    let fraction = (product << 2 >> 64) as u64;
    // Quarter turns, in units of 2^-64, from -1/2 to 1/2.
    let quarter = core::f64::consts::FRAC_PI_2 / 18_446_744_073_709_551_616.0;
    let r = (fraction.cast_signed() as f64 * quarter) as f32;
    if a < 0.0 { (-r, quadrant.wrapping_neg()) } else { (r, quadrant) }
}

/// The sine, or the cosine if `quarters` is 1. The result is certain up to [`QUICK`].
#[inline]
fn quick(a: f32, quarters: u32) -> (f32, bool) {
    let (r, k) = reduced(a);
    (turned(r, k + quarters), a.abs() <= QUICK)
}

/// The sine, or the cosine if `quarters` is 1, for any operand.
fn any(a: f32, quarters: u32) -> f32 {
    let (result, certain) = quick(a, quarters);
    if certain {
        result
    } else if a.abs() < f32::INFINITY {
        let (r, k) = reduced_by_integers(a);
        turned(r, k.wrapping_add(quarters))
    } else {
        NAN_F32
    }
}

/// `sin.approx.f32`: the sine of a in radians. The manual allows an error of 2^-20.9 in the first quadrant;
/// the error here is at most 1.75 units in the last place for finite operands. A zero gives itself,
/// infinities give NaN.
///
/// # Source
/// PTX ISA §9.7.3.18.
#[inline]
#[must_use]
pub fn sin_approx_f32(a: f32) -> f32 {
    if a.abs() < SMALL { a } else { any(a, 0) }
}

/// [`sin_approx_f32`] without branches, and whether it is certain: beyond |a| = 2^16 it is not.
///
/// # Source
/// PTX ISA §9.7.3.18.
#[inline]
#[must_use]
pub fn sin_quick_f32(a: f32) -> (f32, bool) {
    let (result, certain) = quick(a, 0);
    (if a.abs() < SMALL { a } else { result }, certain)
}

/// `cos.approx.f32`: the cosine of a in radians. The manual allows an error of 2^-20.9 in the first quadrant;
/// the error here is at most 1.75 units in the last place for finite operands. Infinities give NaN.
///
/// # Source
/// PTX ISA §9.7.3.19.
#[inline]
#[must_use]
pub fn cos_approx_f32(a: f32) -> f32 {
    any(a, 1)
}

/// [`cos_approx_f32`] without branches, and whether it is certain: beyond |a| = 2^16 it is not.
///
/// # Source
/// PTX ISA §9.7.3.19.
#[inline]
#[must_use]
pub fn cos_quick_f32(a: f32) -> (f32, bool) {
    quick(a, 1)
}
