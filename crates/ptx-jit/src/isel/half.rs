//! Half precision and bfloat16, single and packed (PTX ISA §9.7.4).
//!
//! Halves are computed as singles. Sums, differences and products of halves that are rounded to single and
//! then to half precision are correctly rounded, because a single has at least two digits more than twice the
//! digits of a half (Figueroa, 1995). The sum of `fma` is rounded to odd first. A NaN result is 0x7fff.
//!
//! bfloat16 is computed in single precision as well, for the same reason. The exception is the sum of `fma`,
//! whose product can be far below the least single: it is rounded to odd in double precision and again to
//! single precision.

use ptx::isa::{Rnd, Ty, Word};

use super::query::Query;
use super::{Lower, Lowering};
use crate::llvm::{Builder, FloatPred, Flush, IntPred, Type, Value};

/// Whether a type is bfloat16, if it is a 16-bit floating-point type.
pub(super) fn brain(ty: Ty) -> Option<bool> {
    match ty {
        Ty::F16 | Ty::F16x2 => Some(false),
        Ty::Bf16 | Ty::Bf16x2 => Some(true),
        _ => None,
    }
}

/// `.rn` arithmetic with `.ftz`, `.sat` and `.relu`; `f` computes it in single precision.
fn arithmetic(
    q: &Query<'_>,
    ty: Ty,
    operands: usize,
    f: impl Fn(&Lower<'_, '_>, &[Value]) -> Value + Send + Sync + 'static,
) -> Option<Lowering> {
    let brain = brain(ty)?;
    q.sixteen_bits(brain)?;
    if !matches!(q.rnd(), None | Some(Rnd::Rn)) {
        return None;
    }
    let (ftz, sat, relu) = (q.has(Word::Ftz), q.has(Word::Sat), q.has(Word::Relu));
    q.map(&vec![ty; operands], ty, move |l, v| {
        let flush = |v| if ftz { l.flushed_half(v) } else { v };
        let numbers: Vec<Value> =
            v.iter().map(|x| l.single_of(flush(l.elements_of_halves(*x)), brain)).collect();
        let number = f(l, &numbers);
        let result = l.sixteen_bits_of(number, brain);
        let result = if ftz { l.flushed_by(result, number) } else { result };
        let result = if sat { l.saturated_half(result) } else { result };
        let result = if relu { l.not_negative(result) } else { result };
        l.b.bitcast(result, v[0].ty())
    })
}

pub(super) fn two(
    q: &Query<'_>,
    ty: Ty,
    f: impl Fn(&Lower<'_, '_>, &[Value]) -> Value + Send + Sync + 'static,
) -> Option<Lowering> {
    arithmetic(q, ty, 2, f)
}

pub(super) fn fma(q: &Query<'_>, ty: Ty) -> Option<Lowering> {
    if brain(ty)? {
        return arithmetic(q, ty, 3, |l, v| {
            let double = l.b.like(v[0].ty(), l.b.f64());
            let [a, b, c] = [v[0], v[1], v[2]].map(|v| l.b.fpext(v, double));
            l.odd_single(l.sum_to_odd(l.b.fmul(a, b), c))
        });
    }
    // The product is exact in single precision, and so far above the least number that nothing underflows.
    arithmetic(q, ty, 3, |l, v| l.sum_to_odd(l.b.fmul(v[0], v[1]), v[2]))
}

/// `f` on the bits of a 16-bit number and its sign bit; if the number is a NaN, 0x7fff.
pub(super) fn on_bits(q: &Query<'_>, ty: Ty, f: fn(&Builder<'_>, Value, Value) -> Value) -> Option<Lowering> {
    let (ftz, brain) = (q.has(Word::Ftz), brain(ty)?);
    q.map(&[ty], ty, move |l, v| {
        let b = l.b;
        let bits = l.elements_of_halves(v[0]);
        let bits = if ftz { l.flushed_half(bits) } else { bits };
        let result =
            b.select(l.is_nan(bits, brain), l.constant(bits, 0x7fff), f(b, bits, l.constant(bits, 0x8000)));
        b.bitcast(result, v[0].ty())
    })
}

/// `min` and `max`.
pub(super) fn min_max(q: &Query<'_>, ty: Ty, min: bool) -> Option<Lowering> {
    let brain = brain(ty)?;
    let (ftz, nan, xorsign) = (q.has(Word::Ftz), q.has(Word::NaN), q.has(Word::XorsignAbs));
    q.has(Word::Abs);
    q.map(&[ty, ty], ty, move |l, v| {
        let b = l.b;
        let flush = |v| if ftz { l.flushed_half(v) } else { v };
        let [x, y] = [v[0], v[1]].map(|v| flush(l.elements_of_halves(v)));
        let k = |bits| l.constant(x, bits);
        let [a, c] = if xorsign { [x, y].map(|v| b.and(v, k(0x7fff))) } else { [x, y] };
        // Signed integers in the order of the numbers; -0 is just below +0.
        let key = |v| b.xor(v, b.and(b.ashr(v, k(15)), k(0x7fff)));
        let first = b.icmp(if min { IntPred::Slt } else { IntPred::Sgt }, key(a), key(c));
        let (a_nan, c_nan) = (l.is_nan(a, brain), l.is_nan(c, brain));
        let number = b.select(c_nan, a, b.select(a_nan, c, b.select(first, a, c)));
        let number = if xorsign { b.or(number, b.and(b.xor(x, y), k(0x8000))) } else { number };
        let none = if nan { b.or(a_nan, c_nan) } else { b.and(a_nan, c_nan) };
        b.bitcast(b.select(none, k(0x7fff), number), v[0].ty())
    })
}

impl Query<'_> {
    /// Whether halves and singles can be converted: without an instruction, the conversion uses subnormal
    /// numbers, which the processor must not flush.
    pub(super) fn half_conversions(&self) -> Option<()> {
        (self.env.target.has_f16c() || self.env.flush == Flush::Never).then_some(())
    }

    /// Whether numbers of that 16-bit format can be computed as singles.
    pub(super) fn sixteen_bits(&self, brain: bool) -> Option<()> {
        if brain { self.keeps_subnormals() } else { self.half_conversions() }
    }
}

impl Lower<'_, '_> {
    /// The halves of words, in order; halves are returned unchanged.
    fn elements_of_halves(&self, value: Value) -> Value {
        let ty = value.ty();
        if ty.element_bits() == 16 {
            return value;
        }
        let b = self.b;
        b.bitcast(value, b.vec(b.int(16), 2 * ty.lanes()))
    }

    /// The low and the high half of words.
    pub(super) fn halves(&self, word: Value) -> [Value; 2] {
        let int = self.int(16);
        let high = self.b.lshr(word, self.constant(word, 16));
        [self.b.trunc(word, int), self.b.trunc(high, int)]
    }

    fn shaped(&self, like: Value, element: Type) -> Type {
        self.b.like(like.ty(), element)
    }

    /// Halves (bits) as single precision numbers, exactly; a NaN is some NaN.
    pub(crate) fn single_of_half(&self, half: Value) -> Value {
        let b = self.b;
        let single = self.shaped(half, b.f32());
        if self.env.target.has_f16c() {
            return b.fpext(b.bitcast(half, self.shaped(half, b.f16())), single);
        }
        let word = b.zext(half, self.shaped(half, b.int(32)));
        let k = |bits| self.constant(word, bits);
        let sign = b.shl(b.and(word, k(0x8000)), k(16));
        let size = b.shl(b.and(word, k(0x7fff)), k(13));
        // As a single the number has the exponent of a half; 2^112 is the ratio that corresponds to the
        // difference of the biases.
        let scaled = b.fmul(b.bitcast(size, single), b.const_splat(single, 0x7780_0000));
        let special = b.icmp(IntPred::Uge, size, k(0x7c00 << 13));
        let bits = b.select(special, b.or(size, k(0x7f80_0000)), b.bitcast(scaled, word.ty()));
        b.bitcast(b.or(bits, sign), single)
    }

    /// Single precision numbers rounded to halves (bits); NaN is 0x7fff.
    pub(crate) fn half_of_single(&self, number: Value) -> Value {
        let b = self.b;
        let int = self.shaped(number, b.int(16));
        let nan = b.fcmp(FloatPred::Uno, number, number);
        let half = if self.env.target.has_f16c() {
            b.bitcast(b.fptrunc(number, self.shaped(number, b.f16())), int)
        } else {
            b.trunc(self.rounded_half(number), int)
        };
        b.select(nan, b.const_int(int, 0x7fff), half)
    }

    /// Rounds to half precision by integer arithmetic; returns the bits in words.
    fn rounded_half(&self, number: Value) -> Value {
        let b = self.b;
        let word = self.shaped(number, b.int(32));
        let bits = b.bitcast(number, word);
        let k = |bits| b.const_int(word, bits);
        let sign = b.and(b.lshr(bits, k(16)), k(0x8000));
        let size = b.and(bits, k(0x7fff_ffff));
        // The exponent gets the bias of halves, and 13 bits are rounded off; a carry increments the exponent.
        let biased = b.sub(size, k(112 << 23));
        let tie = b.add(k(0xfff), b.and(b.lshr(biased, k(13)), k(1)));
        let normal = b.lshr(b.add(biased, tie), k(13));
        // Adding 1/2, whose unit in the last place is 2^-24, rounds to subnormal halves.
        let unit = b.const_splat(number.ty(), 0x3f00_0000);
        let sum = b.fadd(b.bitcast(size, number.ty()), unit);
        let subnormal = b.sub(b.bitcast(sum, word), k(0x3f00_0000));
        let small = b.icmp(IntPred::Ult, size, k(0x3880_0000));
        let large = b.icmp(IntPred::Uge, size, k(0x4780_0000));
        let value = b.select(large, k(0x7c00), b.select(small, subnormal, normal));
        b.or(value, sign)
    }

    /// 16-bit numbers (bits) as singles, exactly; a NaN is some NaN.
    pub(super) fn single_of(&self, bits: Value, brain: bool) -> Value {
        if !brain {
            return self.single_of_half(bits);
        }
        let b = self.b;
        let word = b.zext(bits, self.shaped(bits, b.int(32)));
        b.bitcast(b.shl(word, self.constant(word, 16)), self.shaped(bits, b.f32()))
    }

    /// Singles rounded to 16-bit numbers (bits); NaN is 0x7fff.
    pub(super) fn sixteen_bits_of(&self, number: Value, brain: bool) -> Value {
        if !brain {
            return self.half_of_single(number);
        }
        let b = self.b;
        let word = self.shaped(number, b.int(32));
        let bits = b.bitcast(number, word);
        let k = |bits| b.const_int(word, bits);
        // A carry increments the exponent, up to infinity.
        let tie = b.add(k(0x7fff), b.and(b.lshr(bits, k(16)), k(1)));
        let rounded = b.lshr(b.add(bits, tie), k(16));
        let nan = b.fcmp(FloatPred::Uno, number, number);
        b.trunc(b.select(nan, k(0x7fff), rounded), self.shaped(number, b.int(16)))
    }

    /// Doubles rounded to odd singles. Numbers below the least single may become zero.
    pub(crate) fn odd_single(&self, number: Value) -> Value {
        let b = self.b;
        let single = b.fptrunc(number, self.shaped(number, b.f32()));
        let back = b.fpext(single, number.ty());
        // For an infinite single the error is infinite too; the next number towards zero is the greatest
        // single, which is odd.
        let direction = b.fmul(b.fsub(number, back), back);
        let zero = b.zero(number.ty());
        let int = self.shaped(number, b.int(32));
        let inwards = b.zext(b.fcmp(FloatPred::Olt, direction, zero), int);
        let inexact = b.zext(b.fcmp(FloatPred::One, direction, zero), int);
        b.bitcast(b.or(b.sub(b.bitcast(single, int), inwards), inexact), single.ty())
    }

    /// The mask of 16-bit numbers (bits) that are NaN.
    fn is_nan(&self, bits: Value, brain: bool) -> Value {
        let size = self.b.and(bits, self.constant(bits, 0x7fff));
        self.b.icmp(IntPred::Ugt, size, self.constant(bits, if brain { 0x7f80 } else { 0x7c00 }))
    }

    /// `.relu` of 16-bit numbers (bits) whose NaNs are 0x7fff: negative numbers become 0.
    pub(super) fn not_negative(&self, bits: Value) -> Value {
        let zero = self.b.zero(bits.ty());
        self.b.intrinsic("llvm.smax", &[bits.ty()], &[bits, zero])
    }

    /// Halves; subnormals become zeros of their sign.
    pub(super) fn flushed_half(&self, half: Value) -> Value {
        let b = self.b;
        let k = |bits| self.constant(half, bits);
        let small = b.icmp(IntPred::Eq, b.and(half, k(0x7c00)), k(0));
        b.select(small, b.and(half, k(0x8000)), half)
    }

    /// Halves to which numbers were rounded, the numbers being exact or rounded to odd. What is subnormal
    /// when it is rounded to 11 bits becomes a zero of its sign.
    fn flushed_by(&self, half: Value, number: Value) -> Value {
        let b = self.b;
        // 2^-14 (1 - 2^-12): numbers from here on are rounded to 2^-14 or more.
        let border = self.constant(number, 0x387f_f000);
        let magnitude = b.intrinsic("llvm.fabs", &[number.ty()], &[number]);
        let small = b.fcmp(FloatPred::Olt, magnitude, border);
        b.select(small, b.and(half, self.constant(half, 0x8000)), half)
    }

    /// `.sat` of halves: clamps to the range from 0 to 1; NaN and all negative numbers become 0.
    pub(super) fn saturated_half(&self, half: Value) -> Value {
        let b = self.b;
        let k = |bits| self.constant(half, bits);
        let limited = b.intrinsic("llvm.umin", &[half.ty()], &[half, k(0x3c00)]);
        let number = b.icmp(IntPred::Ule, half, k(0x7c00));
        b.select(number, limited, k(0))
    }
}
