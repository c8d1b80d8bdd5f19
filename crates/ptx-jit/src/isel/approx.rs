//! The approximate instructions (PTX ISA §9.7.3).
//!
//! Invariant: each lowering is the algorithm of the interpreter's meaning, operation by operation. Each
//! operation is an IEEE operation, a fused multiply-add or integer arithmetic, so the bits are the same.

use ptx::isa::{Op, Ty, Word};

use super::query::{Ftz, Query};
use super::{Lower, Lowering, float};
use crate::llvm::{FloatPred, IntPred, Value};

/// An `.approx.f32` instruction with one operand and optional `.ftz`.
fn single(
    q: &Query<'_>,
    f: impl Fn(&Lower<'_, '_>, Value) -> Value + Send + Sync + 'static,
) -> Option<Lowering> {
    if !q.has(Word::Approx) || q.ty()? != Ty::F32 {
        return None;
    }
    let ftz = q.ftz()?;
    let lowering = q.map(&[Ty::F32], Ty::F32, move |l, v| {
        // The algorithms multiply by constants. LLVM may remove such a multiplication, and its flush with it.
        let flush = |v| if ftz == Ftz::None { v } else { l.flushed(v) };
        flush(f(l, flush(v[0])))
    })?;
    Some(Lowering { number_srcs: 1, loose_nan: true, ..lowering })
}

/// `.approx.ftz.f64`: uses the upper word of the operand, and defines the upper word of the result.
fn gross(q: &Query<'_>, root: bool) -> Option<Lowering> {
    if !q.has(Word::Ftz) {
        return None;
    }
    q.keeps_subnormals()?;
    q.map(&[Ty::F64], Ty::F64, move |l, v| {
        let b = l.b;
        let int = l.int(64);
        let upper =
            |v: Value| b.bitcast(b.and(b.bitcast(v, int), b.const_int(int, 0xffff_ffff_0000_0000)), v.ty());
        let operand = l.flushed(upper(v[0]));
        let operand = if root { b.intrinsic("llvm.sqrt", &[operand.ty()], &[operand]) } else { operand };
        let result = b.fdiv(l.one(operand), operand);
        let nan = b.fcmp(FloatPred::Uno, result, result);
        b.select(nan, b.const_splat(result.ty(), 0x7fff_ffff_0000_0000), upper(l.flushed(result)))
    })
}

pub(super) fn rcp(q: &Query<'_>) -> Option<Lowering> {
    if !q.has(Word::Approx) {
        return float::rcp(q);
    }
    if q.ty()? == Ty::F64 { gross(q, false) } else { float::approximate(q, Op::Rcp) }
}

pub(super) fn rsqrt(q: &Query<'_>) -> Option<Lowering> {
    if !q.has(Word::Approx) {
        return None;
    }
    if q.ty()? == Ty::F32 {
        let ftz = q.ftz()?;
        let lowering = q.map(&[Ty::F32], Ty::F32, move |l, v| l.reciprocal_root(v[0], ftz))?;
        let branches = q.env.target.tuning().root_by_estimate;
        return Some(Lowering { number_srcs: 1, loose_nan: true, branches, ..lowering });
    }
    if q.has(Word::Ftz) {
        return gross(q, true);
    }
    q.keeps_subnormals()?;
    q.map(&[Ty::F64], Ty::F64, |l, v| {
        let root = l.b.intrinsic("llvm.sqrt", &[v[0].ty()], v);
        l.number_or_nan_f64(l.b.fdiv(l.one(root), root), v)
    })
}

pub(super) fn ex2(q: &Query<'_>) -> Option<Lowering> {
    single(q, |l, a| l.power_of_two(a))
}

pub(super) fn lg2(q: &Query<'_>) -> Option<Lowering> {
    single(q, |l, a| l.logarithm(a))
}

/// A sine with its phase advanced by `ahead` quarters of a circle.
fn circular(q: &Query<'_>, ahead: u64) -> Option<Lowering> {
    let lowering = single(q, move |l, a| l.circle(a, ahead))?;
    Some(Lowering { branches: true, ..lowering })
}

pub(super) fn sin(q: &Query<'_>) -> Option<Lowering> {
    circular(q, 0)
}

pub(super) fn cos(q: &Query<'_>) -> Option<Lowering> {
    circular(q, 1)
}

/// Bits of 2^-78: for smaller operands the remainders of [`Lower::refined_root`] may be subnormal, and so not
/// exact or flushed.
const LEAST_ESTIMATED: u32 = 0x1880_0000;
/// Bits of infinity.
const INFINITY: u32 = 0x7f80_0000;
/// The least number above 2.
const ABOVE_TWO: f32 = 2.000_000_2;
/// 1.5 * 2^23: adding it rounds to an integer, which is then in the low bits.
const SHIFT: u64 = 0x4b40_0000;
/// Coefficients of 2^f, of the logarithm, of sine and cosine, and constants of their range reductions: as in
/// `ptx-sem`.
const P: [u64; 6] = [0x3f31_7218, 0x3e75_fdec, 0x3d63_57bc, 0x3c1d_9858, 0x3aaf_8533, 0x391f_c836];
const INVERSE_LN2: [u64; 2] = [0x3fb8_aa3b, 0x32a5_7060];
const Q: [u64; 9] = [
    0xbf38_aa38,
    0x3ef6_3850,
    0xbeb8_ad65,
    0x3e93_bdfd,
    0xbe75_5640,
    0x3e51_aa3b,
    0xbe44_08c3,
    0x3e3d_ce75,
    0xbddd_55d5,
];
const ROOT_HALF: u64 = 0x3f35_04f3;
const TWO_OVER_PI: u64 = 0x3f22_f983;
const HALF_PI: [u64; 3] = [0x3fc9_0fda, 0x33a2_2168, 0x27c2_34c4];
const S: [u64; 3] = [0xbe2a_aaa2, 0x3c08_836b, 0xb94c_9231];
const C: [u64; 3] = [0x3d2a_aaa5, 0xbab6_060f, 0x37cc_f19a];
/// A zero word, then 2/pi.
const TWO_OVER_PI_WORDS: [u64; 10] = [
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

impl Lower<'_, '_> {
    fn size(&self, number: Value) -> Value {
        self.b.intrinsic("llvm.fabs", &[number.ty()], &[number])
    }

    /// Horner's rule: c[0] + x (c[1] + x (c[2] + ...)).
    fn horner(&self, coefficients: &[u64], x: Value) -> Value {
        let k = |bits: &u64| self.constant(x, *bits);
        let (last, rest) = coefficients.split_last().unwrap_or((&0, &[]));
        rest.iter().rev().fold(k(last), |sum, next| self.fused(&[sum, x, k(next)]))
    }

    /// 1 / sqrt(a) with two roundings. The result is never subnormal.
    fn reciprocal_root(&self, a: Value, ftz: Ftz) -> Value {
        let exact = |l: &Self| {
            let a = if ftz == Ftz::None { a } else { l.flushed(a) };
            // The root of a zero keeps its sign, and the root of a negative number is a NaN.
            let root = l.b.intrinsic("llvm.sqrt", &[a.ty()], &[a]);
            l.b.fdiv(l.one(a), root)
        };
        let estimate = match self.lanes {
            4 => "llvm.x86.avx512.rsqrt14.ps.128",
            8 => "llvm.x86.avx512.rsqrt14.ps.256",
            16 => "llvm.x86.avx512.rsqrt14.ps.512",
            _ => return exact(self),
        };
        if !self.env.target.tuning().root_by_estimate {
            return exact(self);
        }
        let b = self.b;
        let int = self.int(32);
        let all = b.const_int(b.int(self.lanes.max(8)), u64::MAX >> (64 - self.lanes.max(8)));
        let estimate = b.intrinsic(estimate, &[], &[a, b.zero(a.ty()), all]);
        let result = self.refined_root(a, estimate);
        let offset = b.sub(b.bitcast(a, int), b.const_int(int, u64::from(LEAST_ESTIMATED)));
        let outside = b.icmp(IntPred::Uge, offset, b.const_int(int, u64::from(INFINITY - LEAST_ESTIMATED)));
        self.rarely(outside, &[result], |l| vec![exact(l)])[0]
    }

    /// The bits of 1 / sqrt(a) with two roundings, for a from 2^-78 on and below infinity, from an estimate
    /// with a relative error of at most 2^-14, whatever its bits are.
    ///
    /// The steps are Markstein's: the root and half of its reciprocal are refined together, the remainder
    /// `a - g * g`, which is exact, corrects the root to its correctly rounded value, and two more steps do
    /// the same for the reciprocal. Such a step is wrong by one unit for a root whose bits are all ones
    /// unless it begins above the result; therefore the factor slightly above 2. `cargo xtask prove` compares
    /// the algorithm with the definition for all significands and estimates across that range.
    fn refined_root(&self, a: Value, estimate: Value) -> Value {
        let b = self.b;
        let k = |value: f32| self.constant(a, u64::from(value.to_bits()));
        let (g, h) = (b.fmul(a, estimate), b.fmul(estimate, k(0.5)));
        let r = self.fused(&[b.fneg(h), g, k(0.5)]);
        let (g, h) = (self.fused(&[g, r, g]), self.fused(&[h, r, h]));
        let remainder = self.fused(&[b.fneg(g), g, a]);
        let minus_root = b.fneg(self.fused(&[remainder, h, g]));
        let step = |y: Value| self.fused(&[y, self.fused(&[minus_root, y, k(1.0)]), y]);
        step(step(b.fmul(h, k(ABOVE_TWO))))
    }

    fn power_of_two(&self, a: Value) -> Value {
        let b = self.b;
        let k = |value: f32| self.constant(a, u64::from(value.to_bits()));
        let int = self.int(32);
        let (low, high) = (k(-151.0), k(129.0));
        let x = b.select(b.fcmp(FloatPred::Ogt, a, low), a, low);
        let x = b.select(b.fcmp(FloatPred::Olt, x, high), x, high);
        let shift = self.constant(a, SHIFT);
        let shifted = b.fadd(x, shift);
        let f = b.fsub(x, b.fsub(shifted, shift));
        let fraction = self.fused(&[f, self.horner(&P, f), k(1.0)]);
        let n = b.sub(b.bitcast(shifted, int), b.const_int(int, SHIFT));
        let half = b.ashr(n, b.const_int(int, 1));
        let power = |n| {
            let biased = b.add(n, b.const_int(int, 127));
            b.bitcast(b.shl(biased, b.const_int(int, 23)), a.ty())
        };
        let result = b.fmul(b.fmul(fraction, power(half)), power(b.sub(n, half)));
        let nan = b.fcmp(FloatPred::Uno, a, a);
        b.select(nan, a, result)
    }

    fn logarithm(&self, a: Value) -> Value {
        let b = self.b;
        let int = self.int(32);
        let k = |value: f32| self.constant(a, u64::from(value.to_bits()));
        let i = |bits: u64| b.const_int(int, bits);
        let subnormal = b.fcmp(FloatPred::Olt, a, k(f32::MIN_POSITIVE));
        let scaled = b.select(subnormal, b.fmul(a, k(8_388_608.0)), a);
        let bits = b.bitcast(scaled, int);
        let exponent = b.ashr(b.sub(bits, i(ROOT_HALF)), i(23));
        let m = b.bitcast(b.sub(bits, b.shl(exponent, i(23))), a.ty());
        let t = b.fsub(m, k(1.0));
        let inner = self.fused(&[t, self.horner(&Q, t), self.constant(a, INVERSE_LN2[1])]);
        let fraction = self.fused(&[t, self.constant(a, INVERSE_LN2[0]), b.fmul(t, inner)]);
        let exponent = b.select(subnormal, b.sub(exponent, i(23)), exponent);
        let result = b.fadd(b.sitofp(exponent, a.ty()), fraction);
        let infinity = k(f32::INFINITY);
        let positive = b.select(b.fcmp(FloatPred::Olt, a, infinity), result, infinity);
        let is_zero = b.fcmp(FloatPred::Oeq, a, b.zero(a.ty()));
        let below = b.select(is_zero, k(f32::NEG_INFINITY), self.constant(a, 0x7fff_ffff));
        b.select(b.fcmp(FloatPred::Ogt, a, b.zero(a.ty())), positive, below)
    }

    /// The sine with its phase advanced by `quarters` of a circle: one quarter gives the cosine.
    fn circle(&self, a: Value, quarters: u64) -> Value {
        let b = self.b;
        let int = self.int(32);
        let k = |bits: u64| self.constant(a, bits);
        let shift = k(SHIFT);
        let shifted = self.fused(&[a, k(TWO_OVER_PI), shift]);
        let back = b.fneg(b.fsub(shifted, shift));
        let near = HALF_PI.iter().fold(a, |r, part| self.fused(&[back, k(*part), r]));
        let near_quadrant = b.bitcast(shifted, int);

        let size = self.size(a);
        let finite = b.fcmp(FloatPred::Olt, size, k(u64::from(f32::INFINITY.to_bits())));
        let large = b.fcmp(FloatPred::Ogt, size, k(u64::from(65536f32.to_bits())));
        let reduced = self.rarely(b.and(large, finite), &[near, near_quadrant], |l| {
            let (far, quadrant) = l.reduced_by_integers(a);
            vec![far, quadrant]
        });
        let (r, quadrant) = (reduced[0], reduced[1]);
        let turned = self.turned(r, b.add(quadrant, b.const_int(int, quarters)));

        let result = b.select(finite, turned, k(0x7fff_ffff));
        if quarters == 1 {
            return result;
        }
        let small = b.fcmp(FloatPred::Olt, size, k(u64::from((1f32 / 4096.0).to_bits())));
        b.select(small, a, result)
    }

    /// Selected by the quadrant: sin r, cos r, -sin r, -cos r.
    fn turned(&self, r: Value, quadrant: Value) -> Value {
        let b = self.b;
        let int = quadrant.ty();
        let k = |value: f32| self.constant(r, u64::from(value.to_bits()));
        let z = b.fmul(r, r);
        let sin = self.fused(&[b.fmul(r, z), self.horner(&S, z), r]);
        let cos = self.fused(&[b.fmul(z, z), self.horner(&C, z), self.fused(&[z, k(-0.5), k(1.0)])]);
        let odd = b.icmp(IntPred::Ne, b.and(quadrant, b.const_int(int, 1)), b.zero(int));
        let size = b.bitcast(b.select(odd, cos, sin), int);
        let sign = b.shl(b.and(quadrant, b.const_int(int, 2)), b.const_int(int, 30));
        b.bitcast(b.xor(size, sign), r.ty())
    }

    /// a - k pi/2 and k for large finite a (Payne and Hanek): the mantissa times the 96 significant bits of
    /// 2/pi.
    fn reduced_by_integers(&self, a: Value) -> (Value, Value) {
        let b = self.b;
        let (int, wide) = (self.int(32), self.int(64));
        let i = |bits: u64| b.const_int(int, bits);
        let w = |bits: u64| b.const_int(wide, bits);
        let bits = b.bitcast(a, int);
        let mantissa = b.or(b.and(bits, i(0x7f_ffff)), i(0x80_0000));
        let exponent = b.and(b.lshr(bits, i(23)), i(0xff));
        // For operands that are not large this is any number, and it is not used.
        let first = b.sub(exponent, i(120));
        let (index, by) = (b.lshr(first, i(5)), b.and(first, i(31)));
        let word = |offset: usize| {
            (0..5).rev().fold(i(0), |word, at: usize| {
                let here = b.icmp(IntPred::Eq, index, i(at as u64));
                b.select(here, i(TWO_OVER_PI_WORDS[at + offset]), word)
            })
        };
        let words = [word(0), word(1), word(2), word(3)];
        let shifted = |n: usize| b.intrinsic("llvm.fshl", &[int], &[words[n], words[n + 1], by]);
        let m = b.zext(mantissa, wide);
        let low = b.mul(m, b.zext(shifted(2), wide));
        let middle = b.add(b.mul(m, b.zext(shifted(1), wide)), b.lshr(low, w(32)));
        let high = b.add(b.mul(m, b.zext(shifted(0), wide)), b.lshr(middle, w(32)));
        // Two bits before the binary point, then 94 bits after it.
        let top = b.trunc(high, int);
        let quadrant = b.lshr(b.add(top, i(1 << 29)), i(30));
        let upper = b.or(b.shl(high, w(32)), b.and(middle, w(0xffff_ffff)));
        let rest = b.lshr(b.and(low, w(0xffff_ffff)), w(30));
        let fraction = b.or(b.shl(upper, w(2)), rest);
        let quarter = std::f64::consts::FRAC_PI_2 / 18_446_744_073_709_551_616.0;
        let double = b.sitofp(fraction, self.f64());
        let r = b.fptrunc(b.fmul(double, b.const_splat(double.ty(), quarter.to_bits())), a.ty());
        let negative = b.fcmp(FloatPred::Olt, a, b.zero(a.ty()));
        let r = b.select(negative, b.fneg(r), r);
        (r, b.select(negative, b.neg(quadrant), quadrant))
    }
}
