//! Conversions from and to 8-bit floating-point numbers, two at a time (`cvt` of `.e4m3x2` and `.e5m2x2`, PTX
//! 7.8).
//!
//! Invariant: a result is rounded to nearest even, and is at most the greatest finite number; NaN is 0x7f, or
//! 0x7fff in half precision. The first of two sources goes to the high byte.

use ptx::isa::{Rnd, Ty, Word};

use super::query::Query;
use super::{Lower, Lowering};
use crate::llvm::{FloatPred, IntPred, Value};

/// An 8-bit format: the bits of its fraction, the exponent of its least normal number, the bits of its
/// greatest finite number.
#[derive(Clone, Copy)]
struct Format {
    fraction: u32,
    least: i32,
    greatest: u64,
}

const E4M3: Format = Format { fraction: 3, least: -6, greatest: 0x7e };
const E5M2: Format = Format { fraction: 2, least: -14, greatest: 0x7b };

fn format(ty: Ty) -> Option<Format> {
    match ty {
        Ty::E4m3x2 => Some(E4M3),
        Ty::E5m2x2 => Some(E5M2),
        _ => None,
    }
}

/// A conversion from or to 8-bit numbers; `None` for other conversions.
pub(super) fn cvt(q: &Query<'_>, d: Ty, a: Ty) -> Option<Lowering> {
    match (format(d), format(a)) {
        (Some(to), None) => narrow(q, d, a, to),
        (None, Some(from)) if d == Ty::F16x2 => widen(q, a, from),
        (None | Some(_), None | Some(_)) => None,
    }
}

fn narrow(q: &Query<'_>, d: Ty, a: Ty, to: Format) -> Option<Lowering> {
    let relu = q.has(Word::Relu);
    if q.rnd() != Some(Rnd::Rn) || !q.has(Word::Satfinite) {
        return None;
    }
    let joined = move |l: &Lower<'_, '_>, high: Value, low: Value| {
        let [high, low] = [high, low].map(|number| l.eight_bits_of(number, to, relu));
        let bits = l.b.or(l.b.shl(high, l.constant(high, 8)), low);
        l.b.trunc(bits, l.int(16))
    };
    match a {
        Ty::F32 => {
            q.keeps_subnormals()?;
            let lowering = q.map(&[a, a], d, move |l, v| joined(l, v[0], v[1]))?;
            Some(Lowering { number_srcs: 0b11, ..lowering })
        }
        Ty::F16x2 => {
            q.half_conversions()?;
            q.keeps_subnormals()?;
            q.map(&[a], d, move |l, v| {
                let [low, high] = l.halves(v[0]).map(|half| l.single_of_half(half));
                joined(l, high, low)
            })
        }
        _ => None,
    }
}

fn widen(q: &Query<'_>, a: Ty, from: Format) -> Option<Lowering> {
    let relu = q.has(Word::Relu);
    if q.rnd() != Some(Rnd::Rn) {
        return None;
    }
    q.map(&[a], Ty::F16x2, move |l, v| {
        let b = l.b;
        let [high, low] = [8, 0].map(|at| {
            let byte = b.and(b.lshr(v[0], l.constant(v[0], at)), l.constant(v[0], 0xff));
            let half = l.half_of_eight_bits(byte, from);
            let half = if relu { l.not_negative(half) } else { half };
            b.zext(half, l.int(32))
        });
        b.or(b.shl(high, l.constant(high, 16)), low)
    })
}

impl Lower<'_, '_> {
    /// Single precision numbers to 8 bits, in 32-bit integers.
    fn eight_bits_of(&self, number: Value, to: Format, relu: bool) -> Value {
        let b = self.b;
        let ty = number.ty();
        let bits = b.bitcast(number, self.int(32));
        let of = |value: u64| b.const_int(self.int(32), value);
        let sign = b.and(b.lshr(bits, of(24)), of(0x80));
        let size = b.and(bits, of(0x7fff_ffff));
        let drop = 23 - to.fraction;
        // Half a unit is added, less one if the last digit that remains is even.
        let last = b.and(b.lshr(size, of(drop.into())), of(1));
        let rounded = b.add(b.add(size, of((1 << (drop - 1)) - 1)), last);
        let bias = ((127 + to.least - 1) as u64) << to.fraction;
        let normal = b.sub(b.lshr(rounded, of(drop.into())), of(bias));
        // Below the least normal number the unit is constant, and a sum with 2^23 units is a whole number of
        // units.
        let place = f32::from_bits(((127 + to.least - to.fraction as i32 + 23) as u32) << 23);
        let place = u64::from(place.to_bits());
        let sum = b.fadd(b.bitcast(size, ty), b.const_splat(ty, place));
        let small = b.sub(b.bitcast(sum, self.int(32)), of(place));
        let is_small = b.icmp(IntPred::Ult, size, of(((127 + to.least) as u64) << 23));
        let pattern = b.select(is_small, small, normal);
        let over = b.icmp(IntPred::Ugt, pattern, of(to.greatest));
        let pattern = b.or(b.select(over, of(to.greatest), pattern), sign);
        let pattern = if relu { b.select(b.icmp(IntPred::Ne, sign, of(0)), of(0), pattern) } else { pattern };
        let nan = b.fcmp(FloatPred::Uno, number, number);
        b.select(nan, of(0x7f), pattern)
    }

    /// 8-bit numbers, in 16-bit integers, to half precision.
    fn half_of_eight_bits(&self, byte: Value, from: Format) -> Value {
        let b = self.b;
        let k = |bits| self.constant(byte, bits);
        let sign = b.shl(b.and(byte, k(0x80)), k(8));
        let size = b.and(byte, k(0x7f));
        if from.fraction == 2 {
            let nan = b.icmp(IntPred::Ugt, size, k(0x7c));
            return b.select(nan, k(0x7fff), b.shl(byte, k(8)));
        }
        // The bias of the exponent is 8 less than that of half precision.
        let normal = b.add(b.shl(size, k(7)), k(8 << 10));
        // Below the least normal number there are multiples of 2^-9, eight of them.
        let least = b.select(b.icmp(IntPred::Eq, size, k(0)), k(0), k(0x1800));
        let two = b.or(k(0x1c00), b.shl(b.and(size, k(1)), k(9)));
        let four = b.or(k(0x2000), b.shl(b.and(size, k(3)), k(8)));
        let small = b.select(b.icmp(IntPred::Uge, size, k(2)), two, least);
        let small = b.select(b.icmp(IntPred::Uge, size, k(4)), four, small);
        let magnitude = b.select(b.icmp(IntPred::Uge, size, k(8)), normal, small);
        let nan = b.icmp(IntPred::Eq, size, k(0x7f));
        b.select(nan, k(0x7fff), b.or(sign, magnitude))
    }
}
