//! Instructions in which the lanes of a warp act together (PTX ISA §9.7.8.4, §9.7.8.5, §9.7.12.2, §9.7.12.6
//! to §9.7.12.9).
//!
//! Invariant: the `.sync` forms are terminators of which only the combination of lanes is defined here; the
//! interpreter does the waiting. The forms without `.sync` are steps over the lanes that execute them
//! together. Both use the same combinations.
//!
//! A lane that reads from a lane that does not participate gets zero, as on GPUs. The manual leaves the value
//! undefined, but NVIDIA's own reductions rely on it if the last warp is partial.

use super::operands::{Bound, Operands};
use super::{Missing, value32};
use crate::bound::{Exec, SyncIn, SyncOut, WarpSync};
use crate::lanes::{Lane, LaneMask, Registers, lanes_of};
use crate::lift::Inputs;
use ptx::ir::{BlockId, Inst, RegClass, Src};
use ptx::isa::{ShflMode, Slot, Ty, VoteMode, Word};
use ptx_sem as sem;

type Combine = Box<dyn Fn(LaneMask, &SyncIn) -> SyncOut + Send + Sync>;
type Write = Box<dyn Fn(&mut Registers, LaneMask, &SyncOut) + Send + Sync>;

fn shfl_mode(o: &Operands<'_>) -> Result<sem::ShflMode, Missing> {
    let words = |w| matches!(w, Word::Up | Word::Down | Word::Bfly | Word::Idx);
    Ok(shfl_semantics(o.ask(Slot::Mode, words, |mods| mods.shfl_mode())?))
}

/// The mode of `shfl` that [`ptx_sem::shfl_source`] takes.
pub fn shfl_semantics(mode: ShflMode) -> sem::ShflMode {
    match mode {
        ShflMode::Up => sem::ShflMode::Up,
        ShflMode::Down => sem::ShflMode::Down,
        ShflMode::Bfly => sem::ShflMode::Bfly,
        ShflMode::Idx => sem::ShflMode::Idx,
    }
}

fn shfl_combine(mode: sem::ShflMode, mask: LaneMask, sources: &SyncIn) -> SyncOut {
    let mut out = SyncOut::default();
    for lane in lanes_of(mask) {
        let (source, valid) = sem::shfl_source(mode, lane as u32, sources.b.0[lane], sources.c.0[lane]);
        out.d.0[lane] = if mask >> source & 1 != 0 { sources.a.0[source as usize] } else { 0 };
        out.p |= u32::from(valid) << lane;
    }
    out
}

/// The result of `vote`, and whether it is a predicate.
fn vote_combine(mode: VoteMode) -> impl Fn(LaneMask, &SyncIn) -> SyncOut + Copy + Send + Sync + 'static {
    move |mask, sources| {
        let holds = lanes_of(mask).filter(|lane| sources.a.0[*lane] != 0).fold(0, |m, lane| m | 1 << lane);
        let truth = match mode {
            VoteMode::All => holds == mask,
            VoteMode::Any => holds != 0,
            VoteMode::Uni => holds == mask || holds == 0,
            VoteMode::Ballot => false,
        };
        SyncOut { d: Lane::splat(u64::from(holds)), p: if truth { LaneMask::MAX } else { 0 } }
    }
}

fn vote_mode(o: &Operands<'_>) -> Result<VoteMode, Missing> {
    let words = |w| matches!(w, Word::All | Word::Any | Word::Uni | Word::Ballot);
    let mode = o.ask(Slot::Mode, words, |mods| mods.vote_mode())?;
    let ty = o.ty()?;
    let fits = if mode == VoteMode::Ballot { ty == Ty::B32 } else { ty == Ty::Pred };
    if fits { Ok(mode) } else { Err(Missing) }
}

fn match_any(mask: LaneMask, sources: &SyncIn) -> SyncOut {
    let mut out = SyncOut::default();
    for lane in lanes_of(mask) {
        let same = lanes_of(mask).filter(|other| sources.a.0[*other] == sources.a.0[lane]);
        out.d.0[lane] = same.fold(0, |m, other| m | 1 << other);
    }
    out
}

fn match_all(mask: LaneMask, sources: &SyncIn) -> SyncOut {
    let mut values = lanes_of(mask).map(|lane| sources.a.0[lane]);
    let first = values.next();
    let all = values.all(|value| Some(value) == first);
    SyncOut { d: Lane::splat(if all { u64::from(mask) } else { 0 }), p: if all { LaneMask::MAX } else { 0 } }
}

/// A predicate as 0 or 1 in each lane.
fn spread(mask: LaneMask) -> Lane<u64> {
    Lane(std::array::from_fn(|lane| u64::from(mask >> lane & 1)))
}

/// A warp-synchronous instruction other than `wmma` and `mma`.
pub(super) fn sync(o: &Operands<'_>, next: BlockId) -> Result<WarpSync, Missing> {
    use ptx::isa::Op;
    o.ignore_word(Word::Sync);
    let op = o.inst.op;
    if op == Op::ShflSync {
        shfl_sync(o, next)
    } else if op == Op::VoteSync {
        vote_sync(o, next)
    } else if op == Op::MatchAny {
        matching(o, next, Box::new(match_any))
    } else if op == Op::MatchAll {
        matching(o, next, Box::new(match_all))
    } else if op == Op::BarWarpSync {
        bar_warp_sync(o, next)
    } else if op == Op::ReduxSync {
        redux(o, next)
    } else if op == Op::ElectSync {
        elect(o, next)
    } else {
        Err(Missing)
    }
}

fn key(inst: &Inst) -> String {
    format!("{}{}", inst.op.name(), inst.mods)
}

/// A 32- or 64-bit source in every lane.
fn lanes64(src: &Src) -> Result<impl Fn(&Registers) -> Lane<u64> + Send + Sync + 'static, Missing> {
    let source = match src {
        Src::Reg(reg) if matches!(reg.class, RegClass::R32 | RegClass::R64) => Ok(*reg),
        Src::Imm(bits) => Err(*bits),
        Src::Reg(_) | Src::Absent | Src::Not(_) | Src::Sreg(..) | Src::Addr(_) | Src::Video(_) => {
            return Err(Missing);
        }
    };
    Ok(move |regs: &Registers| match source {
        Ok(reg) if reg.class == RegClass::R64 => regs.r64[reg.index as usize],
        Ok(reg) => Lane(regs.r32[reg.index as usize].0.map(u64::from)),
        Err(bits) => Lane::splat(bits),
    })
}

fn shfl_sync(o: &Operands<'_>, next: BlockId) -> Result<WarpSync, Missing> {
    let mode = shfl_mode(o)?;
    if o.ty()? != Ty::B32 {
        return Err(Missing);
    }
    let a = lanes64(o.src_at(0)?)?;
    let (b, c) = (value32(o.src_at(1)?)?, value32(o.src_at(2)?)?);
    let (d, p) = (o.dst::<u32>(0)?, o.pred_dst(1)?);
    Ok(WarpSync {
        key: key(o.inst),
        members: value32(o.src_at(3)?)?,
        read: Box::new(move |regs| SyncIn { a: a(regs), b: b.read(regs), c: c.read(regs) }),
        combine: Box::new(move |mask, sources| shfl_combine(mode, mask, sources)),
        write: Box::new(move |regs, mask, out| {
            d.write(regs, mask, &low(out));
            p.write(regs, mask, out.p);
        }),
        next,
    })
}

fn low(out: &SyncOut) -> Lane<u32> {
    Lane(out.d.0.map(|value| value as u32))
}

fn vote_sync(o: &Operands<'_>, next: BlockId) -> Result<WarpSync, Missing> {
    let mode = vote_mode(o)?;
    let a = o.pred(0)?;
    let write: Write = if mode == VoteMode::Ballot {
        let d = o.dst::<u32>(0)?;
        Box::new(move |regs, mask, out| d.write(regs, mask, &low(out)))
    } else {
        let d = o.pred_dst(0)?;
        Box::new(move |regs, mask, out| d.write(regs, mask, out.p))
    };
    Ok(WarpSync {
        key: key(o.inst),
        members: value32(o.src_at(1)?)?,
        read: Box::new(move |regs| SyncIn { a: spread(a.read(regs)), ..SyncIn::default() }),
        combine: Box::new(vote_combine(mode)),
        write,
        next,
    })
}

fn matching(o: &Operands<'_>, next: BlockId, combine: Combine) -> Result<WarpSync, Missing> {
    o.look(|slot, word| slot == Slot::Flag && matches!(word, Word::Any | Word::All));
    if !matches!(o.ty()?, Ty::B32 | Ty::B64) {
        return Err(Missing);
    }
    let a = lanes64(o.src_at(0)?)?;
    let (d, p) = (o.dst::<u32>(0)?, o.pred_dst(1)?);
    Ok(WarpSync {
        key: key(o.inst),
        members: value32(o.src_at(1)?)?,
        read: Box::new(move |regs| SyncIn { a: a(regs), ..SyncIn::default() }),
        combine,
        write: Box::new(move |regs, mask, out| {
            d.write(regs, mask, &low(out));
            p.write(regs, mask, out.p);
        }),
        next,
    })
}

fn bar_warp_sync(o: &Operands<'_>, next: BlockId) -> Result<WarpSync, Missing> {
    o.ignore_word(Word::Warp);
    Ok(WarpSync {
        key: key(o.inst),
        members: value32(o.src_at(0)?)?,
        read: Box::new(|_| SyncIn::default()),
        combine: Box::new(|_, _| SyncOut::default()),
        write: Box::new(|_, _, _| {}),
        next,
    })
}

/// `redux.sync`: the values of all members combined.
fn redux(o: &Operands<'_>, next: BlockId) -> Result<WarpSync, Missing> {
    let words = |w| matches!(w, Word::Add | Word::Min | Word::Max | Word::And | Word::Or | Word::Xor);
    let op = super::access::sem_op(o.ask(Slot::Op, words, |mods| mods.atom_op())?);
    let meaning: fn(sem::AtomOp, u32, u32) -> u32 = super::by_type! { o.ty()?;
        B32 | U32 => Ok((|op, x, y| sem::atom_u32(op, x, y, 0)) as fn(sem::AtomOp, u32, u32) -> u32),
        S32 => Ok((|op, x, y| sem::atom_s32(op, x as i32, y as i32, 0) as u32) as fn(sem::AtomOp, u32, u32) -> u32),
    }?;
    let (a, d) = (lanes64(o.src_at(0)?)?, o.dst::<u32>(0)?);
    Ok(WarpSync {
        key: key(o.inst),
        members: value32(o.src_at(1)?)?,
        read: Box::new(move |regs| SyncIn { a: a(regs), ..SyncIn::default() }),
        combine: Box::new(move |mask, sources| {
            let values = lanes_of(mask).map(|lane| sources.a.0[lane] as u32);
            let all = values.reduce(|x, y| meaning(op, x, y)).unwrap_or(0);
            SyncOut { d: Lane::splat(all.into()), p: 0 }
        }),
        write: Box::new(move |regs, mask, out| d.write(regs, mask, &low(out))),
        next,
    })
}

/// `elect.sync`: the lowest member. The manual requires one member, always the same.
fn elect(o: &Operands<'_>, next: BlockId) -> Result<WarpSync, Missing> {
    let (d, p) = (o.dst::<u32>(0)?, o.pred_dst(1)?);
    Ok(WarpSync {
        key: key(o.inst),
        members: value32(o.src_at(0)?)?,
        read: Box::new(|_| SyncIn::default()),
        combine: Box::new(|mask, _| SyncOut {
            d: Lane::splat(mask.trailing_zeros().into()),
            p: mask & mask.wrapping_neg(),
        }),
        write: Box::new(move |regs, mask, out| {
            d.write(regs, mask, &low(out));
            p.write(regs, mask, out.p);
        }),
        next,
    })
}

/// `shfl` without `.sync`: among the lanes that execute it together.
pub(super) fn shfl(o: &Operands<'_>) -> Bound {
    let mode = shfl_mode(o)?;
    if o.ty()? != Ty::B32 {
        return Err(Missing);
    }
    let (a, b, c) = (o.src::<u32>(0)?, o.src::<u32>(1)?, o.src::<u32>(2)?);
    let (d, p) = (o.dst::<u32>(0)?, o.pred_dst(1)?);
    Ok(Box::new(move |exec: &mut Exec<'_>| {
        let inputs = Inputs::of(exec);
        let a = Lane(a.get(inputs).0.map(u64::from));
        let out = shfl_combine(mode, exec.mask, &SyncIn { a, b: b.get(inputs), c: c.get(inputs) });
        d.write(exec.regs, exec.mask, &low(&out));
        p.write(exec.regs, exec.mask, out.p);
        Ok(())
    }))
}

/// `vote` without `.sync`: among the lanes that execute it together.
pub(super) fn vote(o: &Operands<'_>) -> Bound {
    let mode = vote_mode(o)?;
    let (a, combine) = (o.pred(0)?, vote_combine(mode));
    if mode == VoteMode::Ballot {
        let d = o.dst::<u32>(0)?;
        return Ok(Box::new(move |exec: &mut Exec<'_>| {
            let sources = SyncIn { a: spread(a.read(exec.regs)), ..SyncIn::default() };
            d.write(exec.regs, exec.mask, &low(&combine(exec.mask, &sources)));
            Ok(())
        }));
    }
    let d = o.pred_dst(0)?;
    Ok(Box::new(move |exec: &mut Exec<'_>| {
        let sources = SyncIn { a: spread(a.read(exec.regs)), ..SyncIn::default() };
        d.write(exec.regs, exec.mask, combine(exec.mask, &sources).p);
        Ok(())
    }))
}

/// `activemask`: the lanes that execute it together.
pub(super) fn activemask(o: &Operands<'_>) -> Bound {
    let d = super::by_type! { o.ty()?; B32 => o.dst::<u32>(0) }?;
    Ok(Box::new(move |exec: &mut Exec<'_>| {
        d.write(exec.regs, exec.mask, &Lane::splat(exec.mask));
        Ok(())
    }))
}
