//! Logic, shifts and byte permutation (PTX ISA §9.7.7, §9.7.8.6).
//!
//! Invariant: predicates are combined as masks, all lanes at once, by the bitwise function.

use super::operands::{Bound, Operands};
use super::{Missing, by_type};
use crate::bound::Exec;
use crate::lanes::{LANES, Lane};
use crate::lift::{self, Inputs};
use ptx::ir::Src;
use ptx::isa::{BoolOp, PrmtMode, ShiftMode, Slot, Word};
use ptx_sem as sem;

fn pred2(o: &Operands<'_>, f: fn(u32, u32) -> u32) -> Bound {
    Ok(lift::lift_pred2(o.pred_dst(0)?, o.pred(0)?, o.pred(1)?, f))
}

pub(super) fn and(o: &Operands<'_>) -> Bound {
    by_type! { o.ty()?;
        Pred => pred2(o, sem::and_b32),
        B16 => o.lift2(sem::and_b16),
        B32 => o.lift2(sem::and_b32),
        B64 => o.lift2(sem::and_b64),
    }
}

pub(super) fn or(o: &Operands<'_>) -> Bound {
    by_type! { o.ty()?;
        Pred => pred2(o, sem::or_b32),
        B16 => o.lift2(sem::or_b16),
        B32 => o.lift2(sem::or_b32),
        B64 => o.lift2(sem::or_b64),
    }
}

pub(super) fn xor(o: &Operands<'_>) -> Bound {
    by_type! { o.ty()?;
        Pred => pred2(o, sem::xor_b32),
        B16 => o.lift2(sem::xor_b16),
        B32 => o.lift2(sem::xor_b32),
        B64 => o.lift2(sem::xor_b64),
    }
}

pub(super) fn not(o: &Operands<'_>) -> Bound {
    by_type! { o.ty()?;
        Pred => {
            let a = o.pred(0)?;
            Ok(lift::lift_pred2(o.pred_dst(0)?, a, a, |a, _| sem::not_b32(a)))
        },
        B16 => o.lift1(sem::not_b16),
        B32 => o.lift1(sem::not_b32),
        B64 => o.lift1(sem::not_b64),
    }
}

pub(super) fn cnot(o: &Operands<'_>) -> Bound {
    by_type! { o.ty()?;
        B16 => o.lift1(sem::cnot_b16),
        B32 => o.lift1(sem::cnot_b32),
        B64 => o.lift1(sem::cnot_b64),
    }
}

pub(super) fn lop3(o: &Operands<'_>) -> Bound {
    let Src::Imm(lut) = o.src_at(3)? else { return Err(Missing) };
    let lut = *lut as u8;
    if o.inst.dsts.len() == 2 {
        return by_type! { o.ty()?; B32 => lop3_bool(o, lut) };
    }
    by_type! { o.ty()?; B32 => o.lift3(move |a, b, c| sem::lop3_b32(a, b, c, lut)) }
}

/// `lop3.BoolOp`: whether the result is not zero, combined with a predicate.
fn lop3_bool(o: &Operands<'_>, lut: u8) -> Bound {
    let combine = o.ask(Slot::BoolOp, |w| matches!(w, Word::Or | Word::And), |mods| mods.bool_op())?;
    let (a, b, c, q) = (o.src::<u32>(0)?, o.src::<u32>(1)?, o.src::<u32>(2)?, o.pred(4)?);
    let (d, p) = (o.dst::<u32>(0)?, o.pred_dst(1)?);
    Ok(Box::new(move |exec: &mut Exec<'_>| {
        let inputs = Inputs::of(exec);
        let (a, b, c) = (a.get(inputs), b.get(inputs), c.get(inputs));
        let q = q.read(exec.regs);
        let value = Lane(std::array::from_fn(|lane| sem::lop3_b32(a.0[lane], b.0[lane], c.0[lane], lut)));
        let any = (0..LANES).filter(|lane| value.0[*lane] != 0).fold(0, |mask, lane| mask | 1 << lane);
        let verdict = match combine {
            BoolOp::And => any & q,
            BoolOp::Or => any | q,
            BoolOp::Xor => any ^ q,
        };
        d.write(exec.regs, exec.mask, &value);
        p.write(exec.regs, exec.mask, verdict);
        Ok(())
    }))
}

pub(super) fn shf(o: &Operands<'_>) -> Bound {
    o.look(|slot, _| slot == Slot::Direction);
    let direction = o.mods().get(Slot::Direction);
    let (left, right) = (direction == Some(Word::L), direction == Some(Word::R));
    let clamp = o.ask(Slot::Mode, |w| matches!(w, Word::Clamp | Word::Wrap), |mods| mods.shift_mode())?;
    let ty = o.ty()?;
    match (left, right, clamp) {
        (true, false, ShiftMode::Clamp) => by_type! { ty; B32 => o.lift3(sem::shf_l_clamp_b32) },
        (true, false, ShiftMode::Wrap) => by_type! { ty; B32 => o.lift3(sem::shf_l_wrap_b32) },
        (false, true, ShiftMode::Clamp) => by_type! { ty; B32 => o.lift3(sem::shf_r_clamp_b32) },
        (false, true, ShiftMode::Wrap) => by_type! { ty; B32 => o.lift3(sem::shf_r_wrap_b32) },
        (true, true, _) | (false, false, _) => Err(Missing),
    }
}

pub(super) fn shl(o: &Operands<'_>) -> Bound {
    by_type! { o.ty()?;
        B16 => shift(o, sem::shl_b16),
        B32 => shift(o, sem::shl_b32),
        B64 => shift(o, sem::shl_b64),
    }
}

pub(super) fn shr(o: &Operands<'_>) -> Bound {
    by_type! { o.ty()?;
        B16 | U16 => shift(o, sem::shr_u16),
        B32 | U32 => shift(o, sem::shr_u32),
        B64 | U64 => shift(o, sem::shr_u64),
        S16 => shift(o, sem::shr_s16),
        S32 => shift(o, sem::shr_s32),
        S64 => shift(o, sem::shr_s64),
    }
}

/// A shift. A shift by an immediate is a separate step, because a uniform amount vectorises on every host.
fn shift<T: lift::Value>(o: &Operands<'_>, f: impl Fn(T, u32) -> T + Copy + Send + Sync + 'static) -> Bound {
    if let Src::Imm(amount) = o.src_at(1)? {
        let amount = *amount as u32;
        return o.lift1(move |a| f(a, amount));
    }
    o.lift2(f)
}

pub(super) fn prmt(o: &Operands<'_>) -> Bound {
    let modes = [Word::F4e, Word::B4e, Word::Rc8, Word::Ecl, Word::Ecr, Word::Rc16];
    let mode = o.ask(Slot::Mode, |w| modes.contains(&w), |mods| Some(mods.prmt_mode()))?;
    if o.ty()? != ptx::isa::Ty::B32 {
        return Err(Missing);
    }
    match mode {
        PrmtMode::Index => o.lift3(sem::prmt_b32),
        PrmtMode::F4e => o.lift3(sem::prmt_f4e_b32),
        PrmtMode::B4e => o.lift3(sem::prmt_b4e_b32),
        PrmtMode::Rc8 => o.lift3(sem::prmt_rc8_b32),
        PrmtMode::Ecl => o.lift3(sem::prmt_ecl_b32),
        PrmtMode::Ecr => o.lift3(sem::prmt_ecr_b32),
        PrmtMode::Rc16 => o.lift3(sem::prmt_rc16_b32),
    }
}
