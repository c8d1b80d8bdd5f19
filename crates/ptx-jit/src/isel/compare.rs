//! Comparison and selection (PTX ISA §9.7.5, §9.7.6).

use ptx::ir::{Dst, Inst, Src};
use ptx::isa::{BoolOp, Cmp, Op, Slot, Ty, Word};

use super::query::{Ftz, Query};
use super::{Env, Known, Lower, Lowering, Operand, is_signed};
use crate::llvm::{FloatPred, IntPred, Value};

/// How two values of a type are compared; chosen before any code is emitted.
#[derive(Clone, Copy)]
enum Relation {
    Int(IntPred),
    Float(FloatPred, Ftz),
    Half(FloatPred, Ftz),
    Brain(FloatPred),
}

/// The relation of integers; `None` if it is one of numbers that may be a NaN.
pub(crate) fn int_pred(cmp: Cmp, signed: bool) -> Option<IntPred> {
    Some(match (cmp, signed) {
        (Cmp::Eq, _) => IntPred::Eq,
        (Cmp::Ne, _) => IntPred::Ne,
        (Cmp::Lt, true) => IntPred::Slt,
        (Cmp::Le, true) => IntPred::Sle,
        (Cmp::Gt, true) => IntPred::Sgt,
        (Cmp::Ge, true) => IntPred::Sge,
        (Cmp::Lt, false) | (Cmp::Lo, _) => IntPred::Ult,
        (Cmp::Le, false) | (Cmp::Ls, _) => IntPred::Ule,
        (Cmp::Gt, false) | (Cmp::Hi, _) => IntPred::Ugt,
        (Cmp::Ge, false) | (Cmp::Hs, _) => IntPred::Uge,
        (Cmp::Equ | Cmp::Neu | Cmp::Ltu | Cmp::Leu | Cmp::Gtu | Cmp::Geu | Cmp::Num | Cmp::Nan, _) => {
            return None;
        }
    })
}

fn float_pred(cmp: Cmp) -> Option<FloatPred> {
    Some(match cmp {
        Cmp::Eq => FloatPred::Oeq,
        Cmp::Ne => FloatPred::One,
        Cmp::Lt => FloatPred::Olt,
        Cmp::Le => FloatPred::Ole,
        Cmp::Gt => FloatPred::Ogt,
        Cmp::Ge => FloatPred::Oge,
        Cmp::Equ => FloatPred::Ueq,
        Cmp::Neu => FloatPred::Une,
        Cmp::Ltu => FloatPred::Ult,
        Cmp::Leu => FloatPred::Ule,
        Cmp::Gtu => FloatPred::Ugt,
        Cmp::Geu => FloatPred::Uge,
        Cmp::Num => FloatPred::Ord,
        Cmp::Nan => FloatPred::Uno,
        Cmp::Lo | Cmp::Ls | Cmp::Hi | Cmp::Hs => return None,
    })
}

fn relation(q: &Query<'_>, ty: Ty) -> Option<Relation> {
    let cmp = q.cmp()?;
    if matches!(ty, Ty::F16 | Ty::F16x2) {
        // Halves are compared as singles: every subnormal half is a normal single.
        let ftz = if q.has(Word::Ftz) { Ftz::Explicit } else { Ftz::None };
        q.half_conversions()?;
        return Some(Relation::Half(float_pred(cmp)?, ftz));
    }
    if is_brain(ty) {
        q.keeps_subnormals()?;
        return Some(Relation::Brain(float_pred(cmp)?));
    }
    if ty == Ty::F32 {
        return Some(Relation::Float(float_pred(cmp)?, q.ftz()?));
    }
    if ty == Ty::F64 {
        q.keeps_subnormals()?;
        return Some(Relation::Float(float_pred(cmp)?, Ftz::None));
    }
    let integer = matches!(ty.bits(), 16 | 32 | 64) && !ty.is_float();
    // The unsigned names mean the relation of the type; the checker allows them with unsigned types only.
    if !integer {
        return None;
    }
    Some(Relation::Int(int_pred(cmp, is_signed(ty))?))
}

fn is_brain(ty: Ty) -> bool {
    matches!(ty, Ty::Bf16 | Ty::Bf16x2)
}

fn is_packed(ty: Ty) -> bool {
    matches!(ty, Ty::F16x2 | Ty::Bf16x2)
}

impl Relation {
    fn emit(self, l: &Lower<'_, '_>, x: Value, y: Value) -> Value {
        match self {
            Relation::Int(pred) => l.b.icmp(pred, x, y),
            Relation::Float(pred, ftz) => l.b.fcmp(pred, ftz.apply(l, x), ftz.apply(l, y)),
            Relation::Half(pred, ftz) => {
                let single = |v| l.single_of_half(if ftz == Ftz::Explicit { l.flushed_half(v) } else { v });
                l.b.fcmp(pred, single(x), single(y))
            }
            Relation::Brain(pred) => l.b.fcmp(pred, l.single_of(x, true), l.single_of(y, true)),
        }
    }
}

/// The comparison of a `setp` with one result, for code that compares other values in the same way.
#[derive(Clone, Copy)]
pub(crate) struct Comparison {
    relation: Relation,
    ty: Ty,
}

impl Comparison {
    /// The comparison of an instruction, and how source 2 is combined with its result, if there is one.
    pub(crate) fn of(inst: &Inst, env: &Env) -> Option<(Self, Option<BoolOp>)> {
        let ty = inst.mods.ty();
        // The second destination is the complement.
        let single = matches!(inst.dsts.as_slice(), [Dst::Reg(_)] | [Dst::Reg(_), Dst::Sink]);
        if inst.op != Op::Setp || !single || is_packed(ty) {
            return None;
        }
        let relation = relation(&Query::new(inst, env), ty)?;
        Some((Self { relation, ty }, inst.mods.bool_op()))
    }

    /// Whether the bits of a NaN do not affect the result.
    pub(crate) fn reads_numbers(&self) -> bool {
        self.ty == Ty::F32
    }

    /// The width of the compared values.
    pub(crate) fn bits(&self) -> u32 {
        self.ty.bits()
    }

    /// For an order of integers: whether the result is true if the first is less (`true`) or if it is greater
    /// (`false`), and whether they are signed.
    pub(crate) fn order(&self) -> Option<(bool, bool)> {
        match self.relation {
            Relation::Int(IntPred::Ult | IntPred::Ule) => Some((true, false)),
            Relation::Int(IntPred::Ugt | IntPred::Uge) => Some((false, false)),
            Relation::Int(IntPred::Slt | IntPred::Sle) => Some((true, true)),
            Relation::Int(IntPred::Sgt | IntPred::Sge) => Some((false, true)),
            Relation::Int(IntPred::Eq | IntPred::Ne)
            | Relation::Float(..)
            | Relation::Half(..)
            | Relation::Brain(_) => None,
        }
    }

    /// A register as it is compared.
    pub(crate) fn read(&self, l: &Lower<'_, '_>, register: Value) -> Value {
        l.read(Operand::Value(register, Known::Nothing), self.ty)
    }

    /// Compares two values that were read.
    pub(crate) fn emit(&self, l: &Lower<'_, '_>, x: Value, y: Value) -> Value {
        self.relation.emit(l, x, y)
    }
}

/// The predicate that the result is combined with: source 2, if there is a `.BoolOp`.
#[derive(Clone)]
struct Combine(Option<(BoolOp, Src)>);

impl Combine {
    fn of(q: &Query<'_>) -> Option<Combine> {
        q.look(|slot, _| slot == Slot::BoolOp);
        let Some(op) = q.inst.mods.bool_op() else { return Some(Combine(None)) };
        q.readable(2, Ty::Pred)?;
        Some(Combine(Some((op, q.src(2)?.clone()))))
    }

    fn apply(&self, l: &Lower<'_, '_>, truth: Value, srcs: &[Operand]) -> Value {
        let Some((op, src)) = &self.0 else { return truth };
        let other = l.read_pred(srcs.get(2).copied().unwrap_or(Operand::Absent), src);
        match op {
            BoolOp::And => l.b.and(truth, other),
            BoolOp::Or => l.b.or(truth, other),
            BoolOp::Xor => l.b.xor(truth, other),
        }
    }
}

/// A lowering that compares sources 0 and 1 and processes the result of each element.
fn comparing(
    q: &Query<'_>,
    ty: Ty,
    finish: impl Fn(&Lower<'_, '_>, &[Value], &[Operand]) -> Vec<Value> + Send + Sync + 'static,
) -> Option<Lowering> {
    q.readable(0, ty)?;
    q.readable(1, ty)?;
    let relation = relation(q, ty)?;
    let emit = move |l: &mut Lower<'_, '_>, srcs: &[Operand]| {
        let (x, y) = (l.read(srcs[0], ty), l.read(srcs[1], ty));
        let truths = if is_packed(ty) {
            let ([x0, x1], [y0, y1]) = (l.halves(x), l.halves(y));
            vec![relation.emit(l, x0, y0), relation.emit(l, x1, y1)]
        } else {
            vec![relation.emit(l, x, y)]
        };
        finish(l, &truths, srcs)
    };
    let mut lowering = Lowering::new(Box::new(emit));
    match ty {
        Ty::F32 => lowering.number_srcs = 0b11,
        Ty::F64 => lowering.double_srcs = 0b11,
        _ => {}
    }
    Some(lowering)
}

pub(super) fn setp(q: &Query<'_>) -> Option<Lowering> {
    let ty = q.ty()?;
    let combine = Combine::of(q)?;
    q.dst(0, Ty::Pred)?;
    q.dst(1, Ty::Pred)?;
    let count = q.inst.dsts.len();
    comparing(q, ty, move |l, truths, srcs| {
        let second = match truths.get(1) {
            Some(truth) => *truth,
            None => l.b.not(truths[0]),
        };
        let both = [combine.apply(l, truths[0], srcs), combine.apply(l, second, srcs)];
        both[..count].to_vec()
    })
}

pub(super) fn set(q: &Query<'_>) -> Option<Lowering> {
    let stype = q.ty_in(Slot::Stype)?;
    let dtype = q.ty_in(Slot::Dtype)?;
    let combine = Combine::of(q)?;
    let dst = q.dst(0, dtype)?;
    let one: u64 = match (is_packed(stype), dtype) {
        (false, Ty::U32 | Ty::S32) => 0xffff_ffff,
        (true, Ty::U32 | Ty::S32) | (false, Ty::U16 | Ty::S16) => 0xffff,
        (false, Ty::F32) => u64::from(1f32.to_bits()),
        (false, Ty::F16) | (true, Ty::F16x2) => 0x3c00,
        (false, Ty::Bf16) | (true, Ty::Bf16x2) => 0x3f80,
        _ => return None,
    };
    comparing(q, stype, move |l, truths, srcs| vec![set_value(l, truths, srcs, &combine, one, dtype, dst)])
}

fn set_value(
    l: &Lower<'_, '_>,
    truths: &[Value],
    srcs: &[Operand],
    combine: &Combine,
    one: u64,
    dtype: Ty,
    dst: Dst,
) -> Value {
    let b = l.b;
    let int = l.int(dtype.bits());
    let zero = b.zero(int);
    let word = |truth, bits| b.select(combine.apply(l, truth, srcs), b.const_int(int, bits), zero);
    let value = match truths {
        [low, high] => b.or(word(*low, one), word(*high, one << 16)),
        _ => word(truths[0], one),
    };
    // A wider register is sign-extended if the type is a signed integer.
    l.write(b.bitcast(value, l.raw(dtype)), dtype, dst)
}

pub(super) fn selp(q: &Query<'_>) -> Option<Lowering> {
    let ty = q.ty().filter(|ty| matches!(ty.bits(), 16 | 32 | 64))?;
    let bits = untyped(ty)?;
    let lowering = q.map(&[bits, bits, Ty::Pred], bits, |l, v| l.b.select(v[2], v[0], v[1]))?;
    Some(Lowering { copied_srcs: 0b11, ..lowering })
}

/// The untyped bits of the width of a type: values that are only moved are read as these.
pub(super) fn untyped(ty: Ty) -> Option<Ty> {
    Some(match ty.bits() {
        1 => Ty::Pred,
        16 => Ty::B16,
        32 => Ty::B32,
        64 => Ty::B64,
        _ => return None,
    })
}

pub(super) fn slct(q: &Query<'_>) -> Option<Lowering> {
    let ty = untyped(q.ty_in(Slot::Dtype)?)?;
    // The type of c is a literal word of the syntax.
    let by = |ty| {
        q.look(|_, word| word == Word::Ty(ty));
        q.inst.mods.has(Word::Ty(ty)) || q.inst.mods.ty_in(Slot::Type) == Some(ty)
    };
    if ty == Ty::Pred {
        return None;
    }
    let lowering = if by(Ty::S32) {
        q.map(&[ty, ty, Ty::S32], ty, |l, v| {
            let first = l.b.icmp(IntPred::Sge, v[2], l.b.zero(v[2].ty()));
            l.b.select(first, v[0], v[1])
        })?
    } else if by(Ty::F32) {
        let ftz = q.ftz()?;
        q.map(&[ty, ty, Ty::F32], ty, move |l, v| {
            let first = l.b.fcmp(FloatPred::Oge, ftz.apply(l, v[2]), l.b.zero(v[2].ty()));
            l.b.select(first, v[0], v[1])
        })?
    } else {
        return None;
    };
    Some(Lowering { copied_srcs: 0b11, ..lowering })
}
