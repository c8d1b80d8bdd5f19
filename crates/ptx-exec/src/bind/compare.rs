//! Comparison and selection (PTX ISA §9.7.5, §9.7.6).
//!
//! Invariant: the relation is a constant of the step, so that each comparison is one vector loop. The use of
//! its result (predicates, words, combination with a predicate) operates on masks.

use super::operands::{Bound, Operands};
use super::{Missing, by_type};
use crate::lift::{self, Combine, PackedVerdict, Value, Verdict};
use ptx::isa::{BoolOp, Cmp, Slot, Ty, Word};
use ptx_sem as sem;

fn relation(o: &Operands<'_>) -> Result<Cmp, Missing> {
    o.ask(Slot::CmpOp, |w| Cmp::from_word(w).is_some(), |mods| mods.cmp())
}

/// The relation as `ptx-sem` names it.
pub(super) fn sem_cmp(cmp: Cmp) -> sem::Cmp {
    match cmp {
        Cmp::Eq => sem::Cmp::Eq,
        Cmp::Ne => sem::Cmp::Ne,
        Cmp::Lt => sem::Cmp::Lt,
        Cmp::Le => sem::Cmp::Le,
        Cmp::Gt => sem::Cmp::Gt,
        Cmp::Ge => sem::Cmp::Ge,
        Cmp::Lo => sem::Cmp::Lo,
        Cmp::Ls => sem::Cmp::Ls,
        Cmp::Hi => sem::Cmp::Hi,
        Cmp::Hs => sem::Cmp::Hs,
        Cmp::Equ => sem::Cmp::Equ,
        Cmp::Neu => sem::Cmp::Neu,
        Cmp::Ltu => sem::Cmp::Ltu,
        Cmp::Leu => sem::Cmp::Leu,
        Cmp::Gtu => sem::Cmp::Gtu,
        Cmp::Geu => sem::Cmp::Geu,
        Cmp::Num => sem::Cmp::Num,
        Cmp::Nan => sem::Cmp::Nan,
    }
}

/// The predicate that is combined with the result: source 2, if there is a `.BoolOp`.
fn combine(o: &Operands<'_>) -> Result<Combine, Missing> {
    o.look(|slot, _| slot == Slot::BoolOp);
    // A mask is 32 predicates, and the operations are bitwise.
    let op: fn(u32, u32) -> u32 = match o.mods().bool_op() {
        None => return Ok(None),
        Some(BoolOp::And) => sem::and_b32,
        Some(BoolOp::Or) => sem::or_b32,
        Some(BoolOp::Xor) => sem::xor_b32,
    };
    Ok(Some((op, o.pred(2)?)))
}

/// Compares sources 0 and 1 as integers of type `A`.
fn integers<A: Value>(
    o: &Operands<'_>,
    verdict: Verdict,
    f: impl Fn(sem::Cmp, A, A) -> bool + Copy + Send + Sync + 'static,
) -> Bound {
    let (a, b) = (o.src::<A>(0)?, o.src::<A>(1)?);
    Ok(match relation(o)? {
        Cmp::Eq => lift::compare(verdict, a, b, move |a, b| f(sem::Cmp::Eq, a, b)),
        Cmp::Ne => lift::compare(verdict, a, b, move |a, b| f(sem::Cmp::Ne, a, b)),
        Cmp::Lt | Cmp::Lo => lift::compare(verdict, a, b, move |a, b| f(sem::Cmp::Lt, a, b)),
        Cmp::Le | Cmp::Ls => lift::compare(verdict, a, b, move |a, b| f(sem::Cmp::Le, a, b)),
        Cmp::Gt | Cmp::Hi => lift::compare(verdict, a, b, move |a, b| f(sem::Cmp::Gt, a, b)),
        Cmp::Ge | Cmp::Hs => lift::compare(verdict, a, b, move |a, b| f(sem::Cmp::Ge, a, b)),
        Cmp::Equ | Cmp::Neu | Cmp::Ltu | Cmp::Leu | Cmp::Gtu | Cmp::Geu | Cmp::Num | Cmp::Nan => {
            return Err(Missing);
        }
    })
}

/// Compares sources 0 and 1 as floats of type `A`.
fn floats<A: Value>(
    o: &Operands<'_>,
    verdict: Verdict,
    f: impl Fn(sem::Cmp, A, A) -> bool + Copy + Send + Sync + 'static,
) -> Bound {
    let (a, b) = (o.src::<A>(0)?, o.src::<A>(1)?);
    Ok(match relation(o)? {
        Cmp::Eq => lift::compare(verdict, a, b, move |a, b| f(sem::Cmp::Eq, a, b)),
        Cmp::Ne => lift::compare(verdict, a, b, move |a, b| f(sem::Cmp::Ne, a, b)),
        Cmp::Lt => lift::compare(verdict, a, b, move |a, b| f(sem::Cmp::Lt, a, b)),
        Cmp::Le => lift::compare(verdict, a, b, move |a, b| f(sem::Cmp::Le, a, b)),
        Cmp::Gt => lift::compare(verdict, a, b, move |a, b| f(sem::Cmp::Gt, a, b)),
        Cmp::Ge => lift::compare(verdict, a, b, move |a, b| f(sem::Cmp::Ge, a, b)),
        Cmp::Equ => lift::compare(verdict, a, b, move |a, b| f(sem::Cmp::Equ, a, b)),
        Cmp::Neu => lift::compare(verdict, a, b, move |a, b| f(sem::Cmp::Neu, a, b)),
        Cmp::Ltu => lift::compare(verdict, a, b, move |a, b| f(sem::Cmp::Ltu, a, b)),
        Cmp::Leu => lift::compare(verdict, a, b, move |a, b| f(sem::Cmp::Leu, a, b)),
        Cmp::Gtu => lift::compare(verdict, a, b, move |a, b| f(sem::Cmp::Gtu, a, b)),
        Cmp::Geu => lift::compare(verdict, a, b, move |a, b| f(sem::Cmp::Geu, a, b)),
        Cmp::Num => lift::compare(verdict, a, b, move |a, b| f(sem::Cmp::Num, a, b)),
        Cmp::Nan => lift::compare(verdict, a, b, move |a, b| f(sem::Cmp::Nan, a, b)),
        Cmp::Lo | Cmp::Ls | Cmp::Hi | Cmp::Hs => return Err(Missing),
    })
}

/// A comparison of any unpacked type.
fn scalars(o: &Operands<'_>, ty: Ty, verdict: Verdict) -> Bound {
    let ftz = o.has(Word::Ftz);
    by_type! { ty;
        B16 | U16 => integers(o, verdict, sem::cmp_u16),
        S16 => integers(o, verdict, sem::cmp_s16),
        B32 | U32 => integers(o, verdict, sem::cmp_u32),
        S32 => integers(o, verdict, sem::cmp_s32),
        B64 | U64 => integers(o, verdict, sem::cmp_u64),
        S64 => integers(o, verdict, sem::cmp_s64),
        F32 => if ftz {
            floats(o, verdict, |cmp, a, b| sem::cmp_f32(cmp, sem::ftz_f32(a), sem::ftz_f32(b)))
        } else {
            floats(o, verdict, sem::cmp_f32)
        },
        F64 => floats(o, verdict, sem::cmp_f64),
        F16 => {
            let cmp = sem_cmp(relation(o)?);
            let (a, b) = (o.src::<u16>(0)?, o.src::<u16>(1)?);
            Ok(lift::compare(verdict, a, b, move |a, b| halves_compare(cmp, ftz, a, b)))
        },
        Bf16 => floats(o, verdict, sem::cmp_bf16),
    }
}

fn halves_compare(cmp: sem::Cmp, ftz: bool, a: u16, b: u16) -> bool {
    if ftz { sem::cmp_f16(cmp, sem::ftz_f16(a), sem::ftz_f16(b)) } else { sem::cmp_f16(cmp, a, b) }
}

fn packed(o: &Operands<'_>, ty: Ty, verdict: PackedVerdict) -> Bound {
    let (cmp, ftz) = (sem_cmp(relation(o)?), o.has(Word::Ftz));
    let (a, b, combine) = (o.src::<u32>(0)?, o.src::<u32>(1)?, combine(o)?);
    if ty == Ty::Bf16x2 {
        return Ok(lift::compare_halves(verdict, a, b, combine, move |a, b| sem::cmp_bf16(cmp, a, b)));
    }
    Ok(lift::compare_halves(verdict, a, b, combine, move |a, b| halves_compare(cmp, ftz, a, b)))
}

fn is_packed(ty: Ty) -> bool {
    matches!(ty, Ty::F16x2 | Ty::Bf16x2)
}

pub(super) fn setp(o: &Operands<'_>) -> Bound {
    let ty = o.ty()?;
    let (p, q) = (o.pred_dst(0)?, o.pred_dst(1)?);
    if is_packed(ty) {
        return packed(o, ty, PackedVerdict::Pred(p, q));
    }
    let combine = combine(o)?;
    scalars(o, ty, Verdict::Pred { p, q, combine })
}

pub(super) fn set(o: &Operands<'_>) -> Bound {
    let stype = o.ty_in(Slot::Stype).ok_or(Missing)?;
    let dtype = o.ty_in(Slot::Dtype).ok_or(Missing)?;
    if is_packed(stype) {
        let words: fn(bool, bool) -> u32 = by_type! { dtype;
            F16x2 => Ok(sem::set_f16x2 as fn(bool, bool) -> u32),
            Bf16x2 => Ok(sem::set_bf16x2 as fn(bool, bool) -> u32),
            U32 | S32 => Ok(sem::set_u16x2 as fn(bool, bool) -> u32),
        }?;
        let words =
            [(false, false), (true, false), (false, true), (true, true)].map(|(low, high)| words(low, high));
        return packed(o, stype, PackedVerdict::Set(o.dst::<u32>(0)?, words));
    }
    let verdict = set_verdict(o, dtype)?;
    scalars(o, stype, verdict)
}

fn set_verdict(o: &Operands<'_>, dtype: Ty) -> Result<Verdict, Missing> {
    let combine = combine(o)?;
    by_type! { dtype;
        U32 => Ok(Verdict::Set32(o.dst::<u32>(0)?, sem::set_u32(true), combine)),
        S32 => Ok(Verdict::Set32(o.dst::<u32>(0)?, sem::set_s32(true) as u32, combine)),
        F32 => Ok(Verdict::Set32(o.dst::<u32>(0)?, sem::set_f32(true).to_bits(), combine)),
        F16 => Ok(Verdict::Set16(o.dst::<u16>(0)?, sem::set_f16(true), combine)),
        Bf16 => Ok(Verdict::Set16(o.dst::<u16>(0)?, sem::set_bf16(true), combine)),
        U16 | S16 => Ok(Verdict::Set16(o.dst::<u16>(0)?, sem::set_u16(true), combine)),
    }
}

pub(super) fn selp(o: &Operands<'_>) -> Bound {
    let ty = o.ty()?;
    match ty.bits() {
        16 => select::<u16>(o),
        32 => select::<u32>(o),
        64 => select::<u64>(o),
        _ => Err(Missing),
    }
}

fn select<T: Value>(o: &Operands<'_>) -> Bound {
    Ok(lift::select(o.dst::<T>(0)?, o.src::<T>(0)?, o.src::<T>(1)?, o.pred(2)?))
}

pub(super) fn slct(o: &Operands<'_>) -> Bound {
    let dtype = o.ty_in(Slot::Dtype).ok_or(Missing)?;
    // The type of c is a literal word of the syntax.
    let by = |ty| {
        o.look(|_, word| word == Word::Ty(ty));
        o.mods().has(Word::Ty(ty)) || o.mods().ty_in(Slot::Type) == Some(ty)
    };
    if by(Ty::S32) {
        match dtype.bits() {
            16 => o.lift3(sem::slct_b16_s32),
            32 => o.lift3(sem::slct_b32_s32),
            64 => o.lift3(sem::slct_b64_s32),
            _ => Err(Missing),
        }
    } else if by(Ty::F32) {
        let ftz = o.has(Word::Ftz);
        let flushed = move |c| if ftz { sem::ftz_f32(c) } else { c };
        match dtype.bits() {
            16 => o.lift3(move |a, b, c| sem::slct_b16_f32(a, b, flushed(c))),
            32 => o.lift3(move |a, b, c| sem::slct_b32_f32(a, b, flushed(c))),
            64 => o.lift3(move |a, b, c| sem::slct_b64_f32(a, b, flushed(c))),
            _ => Err(Missing),
        }
    } else {
        Err(Missing)
    }
}
