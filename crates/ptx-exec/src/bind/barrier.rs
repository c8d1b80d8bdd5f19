//! CTA barriers (PTX ISA §9.7.12.1): the operands that the interpreter needs.

use super::operands::Operands;
use super::{Missing, value32};
use crate::bound::{Barrier, BarrierKind};
use ptx::ir::{BlockId, Dst, Guard, Src};
use ptx::isa::{BarRedOp, Op, Slot, Ty, Word};

pub(super) fn barrier(o: &Operands<'_>, next: BlockId) -> Result<Barrier, Missing> {
    let aligned = o.has(Word::Aligned);
    o.look(|slot, word| {
        slot == Slot::Flag && matches!(word, Word::Sync | Word::Arrive | Word::Red | Word::Cta)
    });
    let id = value32(o.src_at(0)?)?;
    let count = if o.given(1) { Some(value32(o.src_at(1)?)?) } else { None };
    let kind = kind(o)?;
    let (pred, dst) = match kind {
        BarrierKind::Sync | BarrierKind::Arrive => (None, Dst::Sink),
        BarrierKind::Popc | BarrierKind::And | BarrierKind::Or => (Some(pred(o.src_at(2)?)?), o.dst_at(0)),
    };
    Ok(Barrier { kind, aligned, id, count, pred, dst, next })
}

fn kind(o: &Operands<'_>) -> Result<BarrierKind, Missing> {
    if o.inst.op == Op::BarSync {
        return Ok(BarrierKind::Sync);
    }
    if o.inst.op == Op::BarArrive {
        return Ok(BarrierKind::Arrive);
    }
    let words = |w| matches!(w, Word::Popc | Word::And | Word::Or);
    let op = o.ask(Slot::Op, words, |mods| mods.bar_red_op())?;
    let ty = o.ty()?;
    match op {
        BarRedOp::Popc if ty == Ty::U32 => Ok(BarrierKind::Popc),
        BarRedOp::And if ty == Ty::Pred => Ok(BarrierKind::And),
        BarRedOp::Or if ty == Ty::Pred => Ok(BarrierKind::Or),
        BarRedOp::Popc | BarRedOp::And | BarRedOp::Or => Err(Missing),
    }
}

fn pred(src: &Src) -> Result<Guard, Missing> {
    match src {
        Src::Reg(pred) => Ok(Guard { pred: *pred, negated: false }),
        Src::Not(pred) => Ok(Guard { pred: *pred, negated: true }),
        Src::Absent | Src::Imm(_) | Src::Sreg(..) | Src::Addr(_) | Src::Video(_) => Err(Missing),
    }
}
