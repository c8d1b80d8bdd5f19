//! Loads, stores and prefetches (PTX ISA §9.7.8.7 to §9.7.8.11).
//!
//! Invariant: an access has the width of the instruction's type, independent of the register's width.
//! Registers wider than the type are extended and truncated as in §9.4.1. All lanes of an access succeed, or
//! none has an effect.
//!
//! Cache operators do not change results. Scopes are ignored: orderings apply to all threads of the machine.

use super::access::{Stored, elements, policy, read_cells, sem_of, space_of};
use super::operands::{Bound, Operands};
use super::{Missing, b128};
use crate::bound::{Exec, StepFn};
use crate::lanes::{LANES, Lane, Registers};
use crate::lift::{Address, Inputs, Operand, Slot as RegSlot, Target};
use crate::mem::Addresses;
use ptx::ir::RegClass;
use ptx::isa::{Sem, Slot, Space, Ty, Word};

/// The state space and ordering of an access.
#[derive(Clone, Copy)]
struct Access {
    space: Space,
    sem: Sem,
}

fn access(o: &Operands<'_>) -> Result<(Access, Ty, usize), Missing> {
    let access = Access { space: space_of(o, 0), sem: sem_of(o) };
    o.look(|slot, _| matches!(slot, Slot::Cop | Slot::Evict | Slot::Evict2 | Slot::Fetch));
    o.ignore_word(Word::L2CacheHint);
    // Accesses are never combined or repeated, so `.mmio` has no effect.
    o.ignore_word(Word::Mmio);
    o.ignore_word(Word::Sys);
    o.look(|_, word| matches!(word, Word::V2 | Word::V4 | Word::V8));
    Ok((access, o.ty()?, usize::from(o.mods().vec())))
}

pub(super) fn ld(o: &Operands<'_>) -> Bound {
    let (access, ty, count) = access(o)?;
    super::by_type! { ty;
        B8 | U8 => load_any::<u8>(o, access, count),
        S8 => load_any::<i8>(o, access, count),
        B16 | U16 => load_any::<u16>(o, access, count),
        S16 => load_any::<i16>(o, access, count),
        B32 | U32 | F32 => load_any::<u32>(o, access, count),
        S32 => load_any::<i32>(o, access, count),
        B64 | U64 | S64 | F64 => load_any::<u64>(o, access, count),
        B128 => load_pair(o, access),
    }
}

pub(super) fn ld_nc(o: &Operands<'_>) -> Bound {
    // The data does not change while the kernel runs, so an ordinary load has the same result.
    o.ignore_word(Word::Nc);
    ld(o)
}

pub(super) fn ldu(o: &Operands<'_>) -> Bound {
    // An ordinary load does not need the promises of `ldu`: uniform address, read-only data.
    ld(o)
}

/// A load of 128 bits as two words; if it is ordered, the two words are one atomic access.
fn load_pair(o: &Operands<'_>, access: Access) -> Bound {
    if access.sem == Sem::Weak { load::<u64, 2>(o, access) } else { b128::load(o, access.space, access.sem) }
}

fn load_any<V: Stored>(o: &Operands<'_>, access: Access, count: usize) -> Bound {
    match count {
        1 => load::<V, 1>(o, access),
        2 => load::<V, 2>(o, access),
        4 => load::<V, 4>(o, access),
        8 => load::<V, 8>(o, access),
        _ => Err(Missing),
    }
}

/// Loads a word into a register of its width without a copy.
fn load_word(address: Address, target: usize, access: Access) -> StepFn {
    Box::new(move |exec: &mut Exec<'_>| {
        let Exec { mask, regs, warp, mem, frame, .. } = exec;
        let Registers { r32, r64, .. } = &mut **regs;
        match &address {
            Address::Value(Operand::Reg(index)) => {
                mem.load(access.space, &r64[*index], *mask, access.sem, &mut r32[target])
            }
            Address::Plus(index, offset) => {
                let addrs = Addresses::Lanes(&r64[*index], *offset);
                mem.load(access.space, addrs, *mask, access.sem, &mut r32[target])
            }
            Address::Value(Operand::Const(lanes)) => {
                mem.load_at(access.space, lanes.0[0], *mask, access.sem, &mut r32[target])
            }
            Address::Frame(offset) => {
                let at = u64::from(*frame).wrapping_add(*offset);
                mem.load_at(access.space, at, *mask, access.sem, &mut r32[target])
            }
            Address::Value(Operand::Other(read)) => {
                let mut lanes = Lane([0; LANES]);
                read(Inputs { regs, warp, frame: *frame }, &mut lanes);
                mem.load(access.space, &lanes, *mask, access.sem, &mut regs.r32[target])
            }
        }
    })
}

fn load<V: Stored, const N: usize>(o: &Operands<'_>, access: Access) -> Bound {
    let address = o.address(0)?;
    policy(o, 1)?;
    let targets = elements::<_, N>(|i| o.dst::<V>(i))?;
    if let (1, 32, RegClass::R32, Target::Reg(target)) =
        (N, 8 * size_of::<V::Cell>(), <V::Slot as RegSlot>::CLASS, &targets[0])
    {
        return Ok(load_word(address, *target, access));
    }
    Ok(Box::new(move |exec: &mut Exec<'_>| {
        let Exec { mask, regs, warp, mem, frame, .. } = exec;
        let mut scratch = None;
        let addrs = address.read(Inputs { regs, warp, frame: *frame }, &mut scratch);
        let mut cells = [Lane([V::Cell::default(); LANES]); N];
        mem.load_vector(access.space, addrs, *mask, access.sem, cells.each_mut())?;
        for (d, cells) in targets.iter().zip(&cells) {
            write_cells::<V>(d, regs, *mask, cells);
        }
        Ok(())
    }))
}

#[inline(always)]
fn write_cells<V: Stored>(
    d: &Target<V::Slot>,
    regs: &mut crate::lanes::Registers,
    mask: crate::lanes::LaneMask,
    cells: &Lane<V::Cell>,
) {
    let mut out = Lane([V::Slot::default(); LANES]);
    for lane in 0..LANES {
        out.0[lane] = V::of_cell(cells.0[lane]).slot();
    }
    d.write(regs, mask, &out);
}

pub(super) fn st(o: &Operands<'_>) -> Bound {
    let (access, ty, count) = access(o)?;
    match (ty.bits(), count) {
        (8, 1) => store::<u8, 1>(o, access),
        (8, 2) => store::<u8, 2>(o, access),
        (8, 4) => store::<u8, 4>(o, access),
        (16, 1) => store::<u16, 1>(o, access),
        (16, 2) => store::<u16, 2>(o, access),
        (16, 4) => store::<u16, 4>(o, access),
        (32, 1) => store::<u32, 1>(o, access),
        (32, 2) => store::<u32, 2>(o, access),
        (32, 4) => store::<u32, 4>(o, access),
        (64, 1) => store::<u64, 1>(o, access),
        (64, 2) => store::<u64, 2>(o, access),
        (32, 8) => b128::store_chosen::<u32, 8>(o, access.space, access.sem),
        (64, 4) => b128::store_chosen::<u64, 4>(o, access.space, access.sem),
        (128, 1) if access.sem == Sem::Weak => store::<u64, 2>(o, access),
        (128, 1) => b128::store(o, access.space, access.sem),
        _ => Err(Missing),
    }
}

fn store<V: Stored, const N: usize>(o: &Operands<'_>, access: Access) -> Bound {
    let address = o.address(0)?;
    let values = elements::<_, N>(|i| o.src::<V>(1 + i))?;
    policy(o, 1 + N)?;
    Ok(Box::new(move |exec: &mut Exec<'_>| {
        let Exec { mask, regs, warp, mem, frame, .. } = exec;
        let inputs = Inputs { regs, warp, frame: *frame };
        let mut scratch = None;
        let addrs = address.read(inputs, &mut scratch);
        let mut cells = [Lane([V::Cell::default(); LANES]); N];
        for (cells, value) in cells.iter_mut().zip(&values) {
            read_cells::<V>(value, inputs, cells);
        }
        mem.store_vector(access.space, addrs, *mask, access.sem, cells.each_ref())
    }))
}

pub(super) fn prefetch(o: &Operands<'_>) -> Bound {
    o.look(|slot, word| {
        matches!(slot, Slot::Ss | Slot::Level | Slot::Evict)
            || matches!(word, Word::L1 | Word::L2 | Word::Global)
    });
    o.address(0)?;
    // There is no cache. A prefetch of an invalid address is not a fault.
    Ok(super::no_effect())
}
