//! The approximate instructions (PTX ISA §9.7.3).
//!
//! Invariant: the algorithms of the meanings, operation by operation. Each is an IEEE operation, a fused multiply-add or integer
//! arithmetic, so the bits are the same.

use ptx::isa::{Op, Ty, Word};

use super::query::Query;
use super::{Lowering, float};
use crate::llvm::{FloatPred, Value};

/// `.approx.ftz.f64`: the upper word of the operand, and the upper word of the result.
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
    if q.ty()? == Ty::F64 { gross(q, false) } else { float::approximate(q, Op::Rcp) }
}

pub(super) fn rsqrt(q: &Query<'_>) -> Option<Lowering> {
    if !q.has(Word::Approx) {
        return None;
    }
    if q.ty()? == Ty::F32 {
        return None;
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
