//! Moves: values, special registers, addresses, vectors and their packing (PTX ISA §9.7.8.2, §9.7.8.3,
//! §6.4.3), address conversion (§9.7.8.12, §9.7.8.13).
//!
//! Invariant: bits are copied unchanged. A move with several destinations reads all sources before it writes
//! any destination.

use super::operands::{Bound, Operands};
use super::{Missing, sreg};
use crate::bound::Exec;
use crate::lanes::{LANES, Lane};
use crate::lift::{self, Inputs, Operand, Target};
use ptx::ir::{Dst, Src};
use ptx::isa::{Slot, Space, Ty, Word};

pub(super) fn mov(o: &Operands<'_>) -> Bound {
    let ty = o.ty()?;
    if let Src::Sreg(register, _) = o.src_at(0)?
        && let Some(read) = sreg::clock(*register)
    {
        let d = wide_target(o.dst_at(0))?;
        let behind = o.behind;
        return Ok(Box::new(move |exec: &mut Exec<'_>| {
            let value = read(exec.warp, behind);
            d.write(exec.regs, exec.mask, &Lane::splat(value));
            Ok(())
        }));
    }
    match ty.bits() {
        1 if ty == Ty::Pred => {
            let (d, a) = (o.pred_dst(0)?, o.pred(0)?);
            Ok(lift::lift_pred2(d, a, a, |a, _| a))
        }
        16 => o.lift1(|a: u16| a),
        32 => o.lift1(|a: u32| a),
        64 => o.lift1(|a: u64| a),
        128 => copies(o, 2, 64),
        _ => Err(Missing),
    }
}

/// A destination of any width that takes the low bits of a 64-bit value.
fn wide_target(d: Dst) -> Result<Target<u64>, Missing> {
    match d {
        Dst::Sink => Ok(Target::Sink),
        Dst::Video { .. } => Err(Missing),
        Dst::Reg(reg) => super::operands::write_low(reg),
    }
}

pub(super) fn mov_vec(o: &Operands<'_>) -> Bound {
    let ty = o.ty()?;
    o.look(|_, word| matches!(word, Word::V2 | Word::V4));
    copies(o, usize::from(o.mods().vec()), ty.bits())
}

/// Copies `count` registers; all are read before any is written.
fn copies(o: &Operands<'_>, count: usize, bits: u32) -> Bound {
    let from = (0..count).map(|i| element(o, i, bits)).collect::<Result<Vec<_>, _>>()?;
    let to = (0..count).map(|i| wide_target(o.dst_at(i))).collect::<Result<Vec<_>, _>>()?;
    Ok(Box::new(move |exec: &mut Exec<'_>| {
        let values: Vec<Lane<u64>> = from.iter().map(|a| a.get(Inputs::of(exec))).collect();
        for (d, value) in to.iter().zip(&values) {
            d.write(exec.regs, exec.mask, value);
        }
        Ok(())
    }))
}

/// A source of `bits` bits, as 64 bits; the upper bits have no meaning.
fn element(o: &Operands<'_>, index: usize, bits: u32) -> Result<Operand<u64>, Missing> {
    if !matches!(bits, 8 | 16 | 32 | 64) {
        return Err(Missing);
    }
    o.src::<u64>(index)
}

pub(super) fn mov_pack(o: &Operands<'_>) -> Bound {
    let ty = o.ty()?;
    let count = o.inst.srcs.len();
    match (ty.bits(), count) {
        (64, 2) => return o.lift2(|a: u32, b: u32| u64::from(b) << 32 | u64::from(a)),
        (32, 2) => return o.lift2(|a: u16, b: u16| u32::from(b) << 16 | u32::from(a)),
        (128, 2) => return copies(o, 2, 64),
        _ => {}
    }
    let bits = ty.bits().checked_div(count as u32).ok_or(Missing)?;
    let from = (0..count).map(|i| element(o, i, bits)).collect::<Result<Vec<_>, _>>()?;
    let d = wide_target(o.dst_at(0))?;
    let keep = u64::MAX >> (64 - bits);
    Ok(Box::new(move |exec: &mut Exec<'_>| {
        let mut packed = Lane([0u64; LANES]);
        for (i, a) in from.iter().enumerate() {
            let mut scratch = None;
            let a = a.read(Inputs::of(exec), &mut scratch);
            for lane in 0..LANES {
                packed.0[lane] |= (a.0[lane] & keep) << (bits * i as u32);
            }
        }
        d.write(exec.regs, exec.mask, &packed);
        Ok(())
    }))
}

pub(super) fn mov_unpack(o: &Operands<'_>) -> Bound {
    let ty = o.ty()?;
    let count = o.inst.dsts.len();
    if ty == Ty::B128 && count == 2 {
        return copies(o, 2, 64);
    }
    let bits = ty.bits().checked_div(count as u32).ok_or(Missing)?;
    if !matches!(bits, 8 | 16 | 32) {
        return Err(Missing);
    }
    let a = element(o, 0, ty.bits())?;
    let to = (0..count).map(|i| wide_target(o.dst_at(i))).collect::<Result<Vec<_>, _>>()?;
    let keep = u64::MAX >> (64 - bits);
    Ok(Box::new(move |exec: &mut Exec<'_>| {
        let whole = a.get(Inputs::of(exec));
        for (i, d) in to.iter().enumerate() {
            let part = Lane(whole.0.map(|value| value >> (bits * i as u32) & keep));
            d.write(exec.regs, exec.mask, &part);
        }
        Ok(())
    }))
}

fn space(o: &Operands<'_>) -> Space {
    o.look(|slot, _| slot == Slot::Ss);
    o.mods().space()
}

pub(super) fn isspacep(o: &Operands<'_>) -> Bound {
    let (space, p, a) = (space(o), o.pred_dst(0)?, o.src::<u64>(0)?);
    Ok(Box::new(move |exec: &mut Exec<'_>| {
        let mut scratch = None;
        let a = a.read(Inputs::of(exec), &mut scratch);
        let inside = exec.mem.isspacep(space, a, exec.mask);
        p.write(exec.regs, exec.mask, inside);
        Ok(())
    }))
}

pub(super) fn cvta(o: &Operands<'_>) -> Bound {
    let space = space(o);
    convert(o, move |exec, a| exec.mem.cvta(space, a))
}

pub(super) fn cvta_to(o: &Operands<'_>) -> Bound {
    o.ignore_word(Word::To);
    let space = space(o);
    convert(o, move |exec, a| exec.mem.cvta_to(space, a))
}

fn convert(
    o: &Operands<'_>,
    f: impl Fn(&Exec<'_>, &Lane<u64>) -> Lane<u64> + Send + Sync + 'static,
) -> Bound {
    let ty = o.ty()?;
    if !matches!(ty, Ty::U32 | Ty::U64) {
        return Err(Missing);
    }
    let (d, a) = (wide_target(o.dst_at(0))?, o.src::<u64>(0)?);
    Ok(Box::new(move |exec: &mut Exec<'_>| {
        let mut scratch = None;
        let a = a.read(Inputs::of(exec), &mut scratch);
        let new = f(exec, a);
        d.write(exec.regs, exec.mask, &new);
        Ok(())
    }))
}
