//! Single and double precision (PTX ISA §9.7.3).
//!
//! Invariant: a result is `sat(ftz(f(ftz(a), ftz(b))))`. A NaN of `.f32` may have any bits (see
//! [`Lowering::loose_nan`]). A NaN of `.f64` is the first operand that is a NaN, made quiet, or else
//! 0x7ff8000000000000.

use ptx::isa::{Op, Slot, TestpOp, Ty, Word};

use super::query::{Ftz, Query};
use super::round::{Direction, Round};
use super::{Lower, Lowering, Operand, half};
use crate::llvm::{Builder, FloatPred, IntPred, Value};

/// 2^64
const SCALE: f32 = (1u128 << 64) as f32;
/// The bit that makes a `.f64` NaN quiet.
const QUIET: u64 = 1 << 51;

/// The result of an operation in double precision, for a direction of rounding.
type Exact = fn(&Lower<'_, '_>, &[Value], Direction) -> Value;

/// An operation in several forms: as an instruction that rounds to nearest; as an AVX-512 intrinsic, named
/// without prefix and suffix; and as an exact one, if there is such a form.
struct Arithmetic {
    plain: fn(&Lower<'_, '_>, &[Value]) -> Value,
    embedded: &'static str,
    /// The result on singles as numbers of double precision, exact or rounded to odd. The direction decides
    /// the sign of a sum that is zero.
    exact: Option<Exact>,
}

const ADD: Arithmetic = Arithmetic {
    plain: |l, v| l.b.fadd(v[0], v[1]),
    embedded: "add",
    exact: Some(|l, v, direction| l.exact_sum(v[0], v[1], direction)),
};
const SUB: Arithmetic = Arithmetic {
    plain: |l, v| l.b.fsub(v[0], v[1]),
    embedded: "sub",
    exact: Some(|l, v, direction| l.exact_sum(v[0], l.opposite(v[1]), direction)),
};
const MUL: Arithmetic = Arithmetic {
    plain: |l, v| l.b.fmul(v[0], v[1]),
    embedded: "mul",
    exact: Some(|l, v, _| l.b.fmul(v[0], v[1])),
};
const DIV: Arithmetic = Arithmetic { plain: |l, v| l.quotient(v[0], v[1]), embedded: "div", exact: None };
/// `div.full`: a result is rounded before it is flushed.
const DIV_FULL: Arithmetic =
    Arithmetic { plain: |l, v| l.quotient(v[0], v[1]), embedded: "full div", exact: None };
/// `div.approx`: if the divisor is beyond 2^126, the result is a product with zero.
const DIV_APPROX: Arithmetic =
    Arithmetic { plain: |l, v| l.near_quotient(v[0], v[1]), embedded: "approximate div", exact: None };
const FMA: Arithmetic = Arithmetic {
    plain: |l, v| l.fused(v),
    embedded: "vfmadd",
    exact: Some(|l, v, direction| l.exact_sum(l.b.fmul(v[0], v[1]), v[2], direction)),
};
const SQRT: Arithmetic =
    Arithmetic { plain: |l, v| l.b.intrinsic("llvm.sqrt", &[v[0].ty()], v), embedded: "sqrt", exact: None };
const RCP: Arithmetic =
    Arithmetic { plain: |l, v| l.b.fdiv(l.one(v[0]), v[0]), embedded: "rcp", exact: None };

impl Arithmetic {
    fn emit(&self, l: &Lower<'_, '_>, round: Round, v: &[Value]) -> Value {
        let code = match (round, self.exact) {
            (Round::Embedded(code), _) => code,
            (Round::Corrected(direction), Some(exact)) => {
                // The product of two singles is exact in double precision.
                let double = l.b.like(v[0].ty(), l.b.f64());
                let wide: Vec<Value> = v.iter().map(|number| l.b.fpext(*number, double)).collect();
                return l.corrected(exact(l, &wide, direction), direction);
            }
            (Round::Nearest | Round::Corrected(_), _) => return (self.plain)(l, v),
        };
        let single = v[0].ty().element_bits() == 32;
        let (suffix, chunk): (_, u32) = if single { ("ps", 16) } else { ("pd", 8) };
        let element: fn(&Builder<'_>) -> _ = if single { |b| b.f32() } else { |b| b.f64() };
        let call = |name: &str, args: &[Value]| {
            l.embedded(&format!("llvm.x86.avx512.{name}.{suffix}.512"), code, chunk, element, args)
        };
        if self.embedded == "rcp" { call("div", &[l.one(v[0]), v[0]]) } else { call(self.embedded, v) }
    }
}

impl Arithmetic {
    /// The result of single precision, or a zero with its sign if it is subnormal when it is rounded to 24
    /// bits. This is how the processor flushes by itself, and how devices do. Only a product can be subnormal
    /// and rounded to a normal number: sums and differences of this size are exact.
    fn flushed(&self, l: &Lower<'_, '_>, round: Round, operands: &[Value], result: Value) -> Value {
        if !matches!(self.embedded, "mul" | "vfmadd") {
            return result;
        }
        let b = l.b;
        // The result 2^64 times as large; multiplying normal numbers by a power of two is exact.
        let scale = l.constant(result, u64::from(SCALE.to_bits()));
        let mut scaled = operands.to_vec();
        scaled[0] = b.fmul(scaled[0], scale);
        if let Some(addend) = scaled.get_mut(2) {
            *addend = b.fmul(*addend, scale);
        }
        let magnitude = l.magnitude(self.emit(l, round, &scaled));
        let least = l.constant(result, u64::from((f32::MIN_POSITIVE * SCALE).to_bits()));
        let bits = b.bitcast(result, l.int(32));
        let zero = b.bitcast(b.and(bits, l.constant(bits, 0x8000_0000)), result.ty());
        b.select(b.fcmp(FloatPred::Olt, magnitude, least), zero, result)
    }
}

/// An instruction with `.rnd`, and for `.f32` with `.ftz` and `.sat`.
fn arithmetic(q: &Query<'_>, ty: Ty, operands: usize, op: &'static Arithmetic) -> Option<Lowering> {
    let singles = matches!(ty, Ty::F32 | Ty::F32x2);
    let round = if singles && op.exact.is_some() { q.rounding_of_exact()? } else { q.rounding()? };
    let types = vec![ty; operands];
    if ty == Ty::F64 {
        q.keeps_subnormals()?;
        let lowering = q.map(&types, ty, move |l, v| {
            let result = op.emit(l, round, v);
            if l.any_nan { result } else { l.number_or_nan_f64(result, v) }
        })?;
        return Some(Lowering { nan_follows: true, rare_nan: true, ..lowering });
    }
    if ty == Ty::F32x2 {
        return pairs(q, operands, op, round);
    }
    if ty != Ty::F32 {
        return None;
    }
    let (ftz, sat) = (flush_of(q, round)?, q.has(Word::Sat));
    let lowering = q.map_operands(&types, ty, move |l, v, srcs| {
        let operands: Vec<Value> = v.iter().map(|x| ftz.apply(l, *x)).collect();
        let result = op.emit(l, round, &operands);
        let result = match (ftz, op.embedded) {
            (Ftz::None, _) => result,
            (_, "div") => l.flushed_quotient(result, operands[0], operands[1]),
            (_, "rcp") => l.flushed_quotient(result, l.one(result), operands[0]),
            (Ftz::Explicit, _) => op.flushed(l, round, &operands, result),
            (Ftz::ByMachine, _) => result,
        };
        // LLVM may remove an operation with a constant that changes no number, and the flush with it.
        let constant = ftz == Ftz::ByMachine && srcs.iter().any(Operand::is_constant);
        let result = if constant { l.flushed(result) } else { ftz.apply(l, result) };
        if sat { l.saturated(result) } else { result }
    })?;
    Some(Lowering { number_srcs: (1 << operands) - 1, loose_nan: !sat, ..lowering })
}

/// How an instruction with this rounding flushes. The processor flushes a result as it was before its
/// correction.
fn flush_of(q: &Query<'_>, round: Round) -> Option<Ftz> {
    let ftz = q.ftz()?;
    let corrected = matches!(round, Round::Corrected(_));
    Some(if corrected && ftz == Ftz::ByMachine { Ftz::Explicit } else { ftz })
}

/// An instruction on two single precision numbers in a 64-bit register.
fn pairs(q: &Query<'_>, operands: usize, op: &'static Arithmetic, round: Round) -> Option<Lowering> {
    let ftz = flush_of(q, round)?;
    q.map_operands(&vec![Ty::F32x2; operands], Ty::F32x2, move |l, v, srcs| {
        let b = l.b;
        let [low, high] = [0, 32].map(|at| {
            let half = |word: &Value| {
                let bits = b.trunc(b.lshr(*word, l.constant(*word, at)), l.int(32));
                ftz.apply(l, b.bitcast(bits, l.f32()))
            };
            let operands: Vec<Value> = v.iter().map(half).collect();
            let result = op.emit(l, round, &operands);
            let result = match ftz {
                Ftz::Explicit => op.flushed(l, round, &operands, result),
                Ftz::None | Ftz::ByMachine => result,
            };
            let constant = ftz == Ftz::ByMachine && srcs.iter().any(Operand::is_constant);
            let result = if constant { l.flushed(result) } else { ftz.apply(l, result) };
            b.zext(b.bitcast(l.canonical_f32(result), l.int(32)), l.int(64))
        });
        b.or(b.shl(high, l.constant(high, 32)), low)
    })
}

pub(super) fn add(q: &Query<'_>, ty: Ty) -> Option<Lowering> {
    half::two(q, ty, |l, v| l.b.fadd(v[0], v[1])).or_else(|| arithmetic(q, ty, 2, &ADD))
}

pub(super) fn sub(q: &Query<'_>, ty: Ty) -> Option<Lowering> {
    half::two(q, ty, |l, v| l.b.fsub(v[0], v[1])).or_else(|| arithmetic(q, ty, 2, &SUB))
}

pub(super) fn mul(q: &Query<'_>, ty: Ty) -> Option<Lowering> {
    half::two(q, ty, |l, v| l.b.fmul(v[0], v[1])).or_else(|| arithmetic(q, ty, 2, &MUL))
}

pub(super) fn div(q: &Query<'_>, ty: Ty) -> Option<Lowering> {
    // The approximate forms, which exist for `.f32` only, are correctly rounded here too, except if the
    // divisor is beyond 2^126.
    if ty == Ty::F32 {
        q.look(|slot, word| slot == Slot::Flag && matches!(word, Word::Approx | Word::Full));
        if q.inst.mods.has(Word::Approx) {
            return arithmetic(q, ty, 2, &DIV_APPROX);
        }
        if q.inst.mods.has(Word::Full) {
            return arithmetic(q, ty, 2, &DIV_FULL);
        }
    }
    arithmetic(q, ty, 2, &DIV)
}

/// `rcp.approx.f32` and `sqrt.approx.f32`, which are correctly rounded.
pub(super) fn approximate(q: &Query<'_>, op: Op) -> Option<Lowering> {
    q.look(|slot, word| slot == Slot::Flag && word == Word::Approx);
    arithmetic(q, Ty::F32, 1, if op == Op::Rcp { &RCP } else { &SQRT })
}

pub(super) fn fma(q: &Query<'_>) -> Option<Lowering> {
    let ty = q.ty()?;
    if let Some(lowering) = half::fma(q, ty) {
        return Some(lowering);
    }
    // Without a processor instruction, double precision would need a call of the C library.
    if ty == Ty::F64 && !q.env.target.has_fma() {
        return None;
    }
    arithmetic(q, ty, 3, &FMA)
}

pub(super) fn mad(q: &Query<'_>, ty: Ty) -> Option<Lowering> {
    // On sm_1x the product is truncated.
    if ty == Ty::F32 && q.env.sm < 20 && q.rnd().is_none() {
        return None;
    }
    if half::brain(ty).is_some() { None } else { fma(q) }
}

/// `rcp` with an explicit rounding.
pub(super) fn rcp(q: &Query<'_>) -> Option<Lowering> {
    arithmetic(q, q.ty()?, 1, &RCP)
}

pub(super) fn sqrt(q: &Query<'_>) -> Option<Lowering> {
    if q.ty()? == Ty::F32 && q.has(Word::Approx) {
        return approximate(q, Op::Sqrt);
    }
    arithmetic(q, q.ty()?, 1, &SQRT)
}

/// `f` on the bits of a number; if the number is a NaN, the NaN of the type.
fn on_bits(q: &Query<'_>, ty: Ty, f: fn(&Builder<'_>, Value, Value) -> Value) -> Option<Lowering> {
    match ty {
        Ty::F16 | Ty::F16x2 | Ty::Bf16 | Ty::Bf16x2 => return half::on_bits(q, ty, f),
        Ty::F32 | Ty::F64 => {}
        _ => return None,
    }
    let ftz = ty == Ty::F32 && q.has(Word::Ftz);
    let lowering = q.map(&[ty], ty, move |l, v| {
        let number = if ftz { l.flushed(v[0]) } else { v[0] };
        let int = l.int(ty.bits());
        let bits = l.b.bitcast(number, int);
        let result = l.b.bitcast(f(l.b, bits, l.b.const_int(int, 1 << (ty.bits() - 1))), number.ty());
        if ty == Ty::F32 || l.any_nan {
            return result;
        }
        let nan = l.b.fcmp(FloatPred::Uno, number, number);
        l.b.select(nan, l.quiet(number), result)
    })?;
    let single = ty == Ty::F32;
    Some(Lowering { number_srcs: u32::from(single), loose_nan: single, nan_follows: !single, ..lowering })
}

pub(super) fn abs(q: &Query<'_>, ty: Ty) -> Option<Lowering> {
    on_bits(q, ty, |b, bits, sign| b.and(bits, b.not(sign)))
}

pub(super) fn neg(q: &Query<'_>, ty: Ty) -> Option<Lowering> {
    on_bits(q, ty, |b, bits, sign| b.xor(bits, sign))
}

pub(super) fn min_max(q: &Query<'_>, ty: Ty, min: bool) -> Option<Lowering> {
    let pred = if min { FloatPred::Olt } else { FloatPred::Ogt };
    // If both operands are equal the second one is selected, and also if the first is a NaN.
    let choose = move |l: &Lower<'_, '_>, x: Value, y: Value, first: Value| {
        let chosen = l.b.select(l.b.fcmp(pred, x, y), x, y);
        let nan = l.b.fcmp(FloatPred::Uno, y, y);
        l.b.select(nan, first, chosen)
    };
    match ty {
        Ty::F32 => {
            let ftz = q.ftz()? != Ftz::None;
            let (nan, xorsign) = (q.has(Word::NaN), q.has(Word::XorsignAbs));
            q.has(Word::Abs);
            let lowering = q.map(&[ty, ty], ty, move |l, v| {
                let flush = |v| if ftz { l.flushed(v) } else { v };
                let (x, y) = (flush(v[0]), flush(v[1]));
                let (a, c) = if xorsign { (l.magnitude(x), l.magnitude(y)) } else { (x, y) };
                let chosen = choose(l, a, c, a);
                let chosen = if xorsign { l.with_both_signs(chosen, x, y) } else { chosen };
                if !nan {
                    return chosen;
                }
                let unordered = l.b.fcmp(FloatPred::Uno, x, y);
                l.b.select(unordered, l.constant(chosen, 0x7fff_ffff), chosen)
            })?;
            // With `.xorsign` the sign of a NaN affects the result.
            let number_srcs = if xorsign { 0 } else { 0b11 };
            Some(Lowering { number_srcs, loose_nan: true, ..lowering })
        }
        Ty::F64 => {
            q.keeps_subnormals()?;
            q.map(&[ty, ty], ty, move |l, v| {
                // The result is a NaN only if both operands are.
                let nan = l.b.fcmp(FloatPred::Uno, v[0], v[0]);
                let first = l.b.select(nan, l.quiet(v[0]), v[0]);
                choose(l, v[0], v[1], first)
            })
        }
        _ => half::min_max(q, ty, min),
    }
}

pub(super) fn testp(q: &Query<'_>) -> Option<Lowering> {
    let words = [Word::Finite, Word::Infinite, Word::Number, Word::Notanumber, Word::Normal, Word::Subnormal];
    q.look(|slot, w| matches!(slot, Slot::Op | Slot::Flag) && words.contains(&w));
    let op = q.inst.mods.testp_op()?;
    let (ty, infinity, least): (_, u64, u64) = match q.ty()? {
        Ty::F32 => (Ty::B32, 0x7f80_0000, 0x0080_0000),
        Ty::F64 => (Ty::B64, 0x7ff0_0000_0000_0000, 1 << 52),
        _ => return None,
    };
    let lowering = q.map(&[ty], Ty::Pred, move |l, v| {
        let b = l.b;
        let size = b.and(v[0], l.constant(v[0], u64::MAX >> (65 - ty.bits())));
        let k = |bits| l.constant(size, bits);
        let is = |pred, bits| b.icmp(pred, size, k(bits));
        match op {
            TestpOp::Finite => is(IntPred::Ult, infinity),
            TestpOp::Infinite => is(IntPred::Eq, infinity),
            TestpOp::Number => is(IntPred::Ule, infinity),
            TestpOp::Notanumber => is(IntPred::Ugt, infinity),
            // Zero counts as normal.
            TestpOp::Normal => {
                let inside = b.icmp(IntPred::Ult, b.sub(size, k(least)), k(infinity - least));
                b.or(inside, is(IntPred::Eq, 0))
            }
            TestpOp::Subnormal => b.icmp(IntPred::Ult, b.sub(size, k(1)), k(least - 1)),
        }
    })?;
    Some(Lowering { number_srcs: u32::from(ty == Ty::B32), ..lowering })
}

pub(super) fn copysign(q: &Query<'_>) -> Option<Lowering> {
    let (ty, bits) = match q.ty()? {
        Ty::F32 => (Ty::B32, 32),
        Ty::F64 => (Ty::B64, 64),
        _ => return None,
    };
    q.map(&[ty, ty], ty, move |l, v| {
        let sign = l.constant(v[0], 1 << (bits - 1));
        l.b.or(l.b.and(v[0], sign), l.b.and(v[1], l.b.not(sign)))
    })
}

impl Lower<'_, '_> {
    /// The number one, in the type of `like`.
    pub(super) fn one(&self, like: Value) -> Value {
        let bits = if like.ty().element_bits() == 32 { u64::from(1f32.to_bits()) } else { 1f64.to_bits() };
        self.constant(like, bits)
    }

    /// `a / b`. If LLVM's code generator infers from the bits (a small integer, flushed) that both vectors
    /// are zero, it folds the quotient to zero and drops tests for NaN. The fence, which costs nothing,
    /// prevents this.
    fn quotient(&self, a: Value, b: Value) -> Value {
        self.b.opaque(self.b.fdiv(a, b))
    }

    /// A single precision quotient; if the divisor is finite and beyond 2^126, the product of the dividend
    /// with a zero of the divisor's sign.
    fn near_quotient(&self, x: Value, y: Value) -> Value {
        let b = self.b;
        let size = self.magnitude(y);
        let beyond = b.fcmp(FloatPred::Ogt, size, self.constant(size, 0x7e80_0000));
        let finite = b.fcmp(FloatPred::Olt, size, self.constant(size, 0x7f80_0000));
        let bits = b.bitcast(y, self.int(32));
        let zero = b.bitcast(b.and(bits, self.constant(bits, 0x8000_0000)), y.ty());
        b.select(b.and(beyond, finite), b.fmul(x, zero), self.quotient(x, y))
    }

    /// A rounded quotient; if it was subnormal before rounding, it becomes a zero of its sign. Rounding can
    /// make such a quotient the least normal number.
    fn flushed_quotient(&self, quotient: Value, x: Value, y: Value) -> Value {
        let b = self.b;
        let least = self.constant(quotient, 0x0080_0000);
        let is_least = b.fcmp(FloatPred::Oeq, self.magnitude(quotient), least);
        let [x, y] = [x, y].map(|v| b.fpext(self.magnitude(v), b.like(v.ty(), b.f64())));
        let scale = b.const_splat(y.ty(), f64::from(f32::MIN_POSITIVE).to_bits());
        let below = b.fcmp(FloatPred::Olt, x, b.fmul(y, scale));
        let bits = b.bitcast(quotient, self.int(32));
        let zero = b.bitcast(b.and(bits, self.constant(bits, 0x8000_0000)), quotient.ty());
        b.select(b.and(is_least, below), zero, quotient)
    }

    /// `.sat`: clamps to the range from 0 to 1; NaN becomes 0, and zeros are +0.
    pub(super) fn saturated(&self, number: Value) -> Value {
        let b = self.b;
        let (zero, one) = (b.zero(number.ty()), self.one(number));
        let positive = b.select(b.fcmp(FloatPred::Ogt, number, zero), number, zero);
        b.select(b.fcmp(FloatPred::Olt, positive, one), positive, one)
    }

    /// The absolute values of single precision numbers.
    fn magnitude(&self, number: Value) -> Value {
        let bits = self.b.bitcast(number, self.int(32));
        self.b.bitcast(self.b.and(bits, self.constant(bits, 0x7fff_ffff)), number.ty())
    }

    /// Positive single precision numbers with the exclusive or of two signs.
    fn with_both_signs(&self, number: Value, x: Value, y: Value) -> Value {
        let b = self.b;
        let [bits, x, y] = [number, x, y].map(|v| b.bitcast(v, self.int(32)));
        let sign = b.and(b.xor(x, y), self.constant(bits, 0x8000_0000));
        b.bitcast(b.or(bits, sign), number.ty())
    }

    /// A double precision number; a NaN is made quiet.
    pub(super) fn quiet(&self, number: Value) -> Value {
        let b = self.b;
        let int = b.like(number.ty(), b.int(64));
        b.bitcast(b.or(b.bitcast(number, int), b.const_int(int, QUIET)), number.ty())
    }

    /// The result, or, if it is a NaN, the NaN that PTX defines for an operation on these operands.
    pub(super) fn number_or_nan_f64(&self, result: Value, operands: &[Value]) -> Value {
        let b = self.b;
        let default = b.const_splat(result.ty(), 0x7ff8_0000_0000_0000);
        let nan = operands.iter().rev().fold(default, |nan, x| {
            let is_nan = b.fcmp(FloatPred::Uno, *x, *x);
            b.select(is_nan, self.quiet(*x), nan)
        });
        b.select(b.fcmp(FloatPred::Uno, result, result), nan, result)
    }

    /// The sum of an atomic addition, of two numbers given as bits.
    pub(crate) fn atomic_sum(&self, old: Value, more: Value, ftz: bool) -> Value {
        let b = self.b;
        let single = old.ty().element_bits() == 32;
        let number = b.like(old.ty(), if single { b.f32() } else { b.f64() });
        let (x, y) = (b.bitcast(old, number), b.bitcast(more, number));
        let sum = if !single {
            self.number_or_nan_f64(b.fadd(x, y), &[x, y])
        } else if ftz {
            self.canonical_number(self.flushed(b.fadd(self.flushed(x), self.flushed(y))))
        } else {
            self.canonical_number(b.fadd(x, y))
        };
        b.bitcast(sum, old.ty())
    }

    fn canonical_number(&self, number: Value) -> Value {
        let bits = self.b.bitcast(number, self.b.like(number.ty(), self.b.int(32)));
        self.canonical_f32(bits)
    }

    /// a * b + c, rounded once to nearest.
    pub(super) fn fused(&self, v: &[Value]) -> Value {
        let b = self.b;
        let ty = v[0].ty();
        if self.env.target.has_fma() {
            return b.intrinsic("llvm.fma", &[ty], v);
        }
        // The product of two singles is exact in double precision. The sum, rounded to odd in double
        // precision, is correctly rounded when it is rounded again.
        let double = b.like(ty, b.f64());
        let [x, y, z] = [v[0], v[1], v[2]].map(|v| b.fpext(v, double));
        b.fptrunc(self.sum_to_odd(b.fmul(x, y), z), ty)
    }

    /// The sum of two numbers of double precision, rounded to odd. Where it is exactly zero, and not of two
    /// positive zeros, rounding down makes the zero negative.
    fn exact_sum(&self, x: Value, y: Value, direction: Direction) -> Value {
        let b = self.b;
        let sum = self.sum_to_odd(x, y);
        match direction {
            Direction::Up | Direction::ToZero => sum,
            Direction::Down => {
                let int = b.like(x.ty(), b.int(64));
                let signs = b.or(b.bitcast(x, int), b.bitcast(y, int));
                let zero = b.bitcast(b.and(signs, b.const_int(int, 1 << 63)), sum.ty());
                b.select(b.fcmp(FloatPred::Oeq, sum, b.zero(sum.ty())), zero, sum)
            }
        }
    }

    /// Numbers of double precision with the opposite sign.
    fn opposite(&self, number: Value) -> Value {
        let b = self.b;
        let int = b.like(number.ty(), b.int(64));
        b.bitcast(b.xor(b.bitcast(number, int), b.const_int(int, 1 << 63)), number.ty())
    }

    /// The sum rounded to odd: if it is inexact and its last digit is even, it moves by one unit in the last
    /// place towards the exact sum (Boldo and Melquiond, 2008). No operation here may underflow.
    pub(super) fn sum_to_odd(&self, x: Value, y: Value) -> Value {
        let b = self.b;
        let ty = x.ty();
        let int = b.like(ty, b.int(ty.element_bits()));
        let sum = b.fadd(x, y);
        let y_part = b.fsub(sum, x);
        let error = b.fadd(b.fsub(x, b.fsub(sum, y_part)), b.fsub(y, y_part));
        let direction = b.fmul(error, sum);
        let zero = b.zero(ty);
        let inwards = b.fcmp(FloatPred::Olt, direction, zero);
        let inexact = b.fcmp(FloatPred::One, direction, zero);
        let bits = b.sub(b.bitcast(sum, int), b.zext(inwards, int));
        b.bitcast(b.or(bits, b.zext(inexact, int)), ty)
    }
}
