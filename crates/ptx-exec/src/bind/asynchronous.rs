//! Asynchronous copies, barriers in memory, and cache policies (PTX ISA 7.0, 7.4).
//!
//! Choice: a copy completes when its instruction executes, which the manual allows. So waiting for copies
//! takes no time, and copies arrive at barriers at once. The lanes of an instruction arrive one after
//! another, in ascending order.
//!
//! Invariant: as for other accesses, all lanes of an instruction are checked before any of them stores.

use super::Missing;
use super::access::space_of;
use super::operands::{Bound, Operands};
use crate::bound::{Exec, StepFn};
use crate::lanes::{Lane, LaneMask, lanes_of};
use crate::lift::{Address, Inputs, Operand, PredOperand};
use crate::mem::Addresses;
use ptx::ir::{RegClass, Src};
use ptx::isa::{Sem, Slot, Space, Word};
use ptx_sem as sem;

/// `cp.async`.
pub(super) fn copy(o: &Operands<'_>) -> Bound {
    o.look(|slot, word| {
        matches!(slot, Slot::Ss | Slot::Fetch)
            || matches!(word, Word::Async | Word::Ca | Word::Cg | Word::Global | Word::L2CacheHint)
    });
    let (to, from) = (o.address(0)?, o.address(1)?);
    let Src::Imm(size) = o.src_at(2)? else { return Err(Missing) };
    let size = *size as u32;
    let given = match o.inst.srcs.get(3) {
        Some(Src::Reg(reg)) if reg.class == RegClass::Pred => Given::Unless(o.pred(3)?, size),
        Some(src) if *src != Src::Absent => Given::Bytes(o.src::<u32>(3)?),
        Some(_) | None => Given::Bytes(Operand::splat(size)),
    };
    if o.mods().has(Word::L2CacheHint) {
        o.src_at(4)?;
    }
    match size {
        4 => Ok(copy_words::<1>(to, from, given)),
        8 => Ok(copy_words::<2>(to, from, given)),
        16 => Ok(copy_words::<4>(to, from, given)),
        _ => Err(Missing),
    }
}

/// How much of a copy is read; the rest is zero.
enum Given {
    /// This many bytes.
    Bytes(Operand<u32>),
    /// Nothing if the predicate is true, otherwise this many bytes.
    Unless(PredOperand, u32),
}

impl Given {
    fn get(&self, inputs: Inputs<'_>) -> Lane<u32> {
        match self {
            Given::Bytes(bytes) => bytes.get(inputs),
            Given::Unless(ignore, size) => {
                let ignore = ignore.read(inputs.regs);
                Lane(std::array::from_fn(|lane| if ignore >> lane & 1 == 0 { *size } else { 0 }))
            }
        }
    }
}

/// Copies `N` words, of which the part beyond `given` is zero.
fn copy_words<const N: usize>(to: Address, from: Address, given: Given) -> StepFn {
    let size = 4 * N as u32;
    Box::new(move |exec: &mut Exec<'_>| {
        let Exec { mask, regs, warp, mem, frame, .. } = exec;
        let inputs = Inputs { regs, warp, frame: *frame };
        let (to, from, given) = (addresses(&to, inputs), addresses(&from, inputs), given.get(inputs));
        let mut words = [Lane::splat(0u32); N];
        let whole = lanes_of(*mask).filter(|lane| given.0[*lane] >= size).fold(0, |m, lane| m | 1 << lane);
        mem.load_vector(Space::Global, Addresses::Lanes(&from, 0), whole, Sem::Weak, words.each_mut())?;
        for byte in 0..size {
            let some = lanes_of(*mask & !whole).filter(|lane| given.0[*lane] > byte);
            let some: LaneMask = some.fold(0, |m, lane| m | 1 << lane);
            let mut bytes = Lane::splat(0u8);
            mem.load(Space::Global, Addresses::Lanes(&from, byte.into()), some, Sem::Weak, &mut bytes)?;
            for lane in lanes_of(some) {
                words[byte as usize / 4].0[lane] |= u32::from(bytes.0[lane]) << (byte % 4 * 8);
            }
        }
        mem.store_vector(Space::Shared, Addresses::Lanes(&to, 0), *mask, Sem::Weak, words.each_ref())
    })
}

fn addresses(address: &Address, inputs: Inputs<'_>) -> Lane<u64> {
    let mut scratch = None;
    let addresses = address.read(inputs, &mut scratch);
    Lane(std::array::from_fn(|lane| addresses.at(lane)))
}

/// Instructions without an effect here: waiting for copies, closing groups, cache hints, the order of
/// dependent grids.
pub(super) fn nothing(o: &Operands<'_>) -> Bound {
    o.look(|_, _| true);
    (0..o.inst.srcs.len()).try_for_each(|i| o.src_at(i).map(|_| ()))?;
    Ok(super::no_effect())
}

/// `createpolicy`: returns an arbitrary policy, which nothing reads.
pub(super) fn policy(o: &Operands<'_>) -> Bound {
    o.look(|_, _| true);
    (0..o.inst.srcs.len()).try_for_each(|i| o.src_at(i).map(|_| ()))?;
    let d = o.dst::<u64>(0)?;
    Ok(Box::new(move |exec: &mut Exec<'_>| {
        d.write(exec.regs, exec.mask, &Lane::splat(0));
        Ok(())
    }))
}

/// The state space of a barrier; marks the words that name it.
fn barrier(o: &Operands<'_>) -> Space {
    o.look(|slot, word| {
        use Word::{
            Acquire, Arrive, ArriveDrop, Async, Cta, Init, Inval, Mbarrier, NoComplete, Noinc, Parity,
            Release, TestWait, TryWait,
        };
        let words = [
            Acquire, Arrive, ArriveDrop, Async, Cta, Init, Inval, Mbarrier, NoComplete, Noinc, Parity,
            Release, TestWait, TryWait,
        ];
        slot == Slot::Type || slot == Slot::Flag && words.contains(&word)
    });
    space_of(o, 0)
}

/// `mbarrier.init` and `mbarrier.inval`, which sets the object to zero.
pub(super) fn init(o: &Operands<'_>, makes: bool) -> Bound {
    let (space, address) = (barrier(o), o.address(0)?);
    let count = if makes { o.src::<u32>(1)? } else { Operand::splat(0) };
    Ok(Box::new(move |exec: &mut Exec<'_>| {
        let Exec { mask, regs, warp, mem, frame, .. } = exec;
        let inputs = Inputs { regs, warp, frame: *frame };
        let objects = Lane(count.get(inputs).0.map(sem::mbarrier_init));
        mem.store(space, Addresses::Lanes(&addresses(&address, inputs), 0), *mask, Sem::Weak, &objects)
    }))
}

/// `mbarrier.arrive` and `mbarrier.arrive_drop`: `f` is the new object after arrivals.
pub(super) fn arrive(o: &Operands<'_>, f: fn(u64, u32) -> u64) -> Bound {
    let (space, address, d) = (barrier(o), o.address(0)?, o.dst::<u64>(0)?);
    let count = if o.given(1) { o.src::<u32>(1)? } else { Operand::splat(1) };
    Ok(Box::new(move |exec: &mut Exec<'_>| {
        let Exec { mask, regs, warp, mem, frame, .. } = exec;
        let inputs = Inputs { regs, warp, frame: *frame };
        let (at, count) = (addresses(&address, inputs), count.get(inputs));
        let old = mem.atomic(space, Addresses::Lanes(&at, 0), *mask, Sem::AcqRel, |lane, old: u64| {
            Some(f(old, count.0[lane]))
        })?;
        d.write(regs, *mask, &old);
        Ok(())
    }))
}

/// `cp.async.mbarrier.arrive`: the copies have already completed. Without `.noinc` it also increments the
/// expected count, which cancels the arrival.
pub(super) fn copies_arrive(o: &Operands<'_>) -> Bound {
    let (space, address) = (barrier(o), o.address(0)?);
    let count = u32::from(o.mods().has(Word::Noinc));
    Ok(Box::new(move |exec: &mut Exec<'_>| {
        let Exec { mask, regs, warp, mem, frame, .. } = exec;
        let at = addresses(&address, Inputs { regs, warp, frame: *frame });
        let arrived = |_, old: u64| (count != 0).then(|| sem::mbarrier_arrive(old, count));
        mem.atomic(space, Addresses::Lanes(&at, 0), *mask, Sem::AcqRel, arrived)?;
        Ok(())
    }))
}

/// `mbarrier.test_wait`, and `mbarrier.try_wait`, which does not wait either: the thread polls.
pub(super) fn test_wait(o: &Operands<'_>) -> Bound {
    let (space, address, p) = (barrier(o), o.address(0)?, o.pred_dst(0)?);
    if o.given(2) {
        o.src_at(2)?;
    }
    if o.mods().has(Word::Parity) {
        let parity = o.src::<u32>(1)?;
        return Ok(test(
            space,
            address,
            p,
            move |inputs| Lane(parity.get(inputs).0.map(u64::from)),
            |old, parity| sem::mbarrier_test_wait_parity(old, parity as u32),
        ));
    }
    let state = o.src::<u64>(1)?;
    Ok(test(space, address, p, move |inputs| state.get(inputs), sem::mbarrier_test_wait))
}

fn test(
    space: Space,
    address: Address,
    p: crate::lift::PredTarget,
    asked: impl Fn(Inputs<'_>) -> Lane<u64> + Send + Sync + 'static,
    f: fn(u64, u64) -> bool,
) -> StepFn {
    Box::new(move |exec: &mut Exec<'_>| {
        let Exec { mask, regs, warp, mem, frame, .. } = exec;
        let inputs = Inputs { regs, warp, frame: *frame };
        let (at, asked) = (addresses(&address, inputs), asked(inputs));
        let mut objects = Lane::splat(0u64);
        mem.load(space, Addresses::Lanes(&at, 0), *mask, Sem::Acquire, &mut objects)?;
        let over = lanes_of(*mask).filter(|lane| f(objects.0[*lane], asked.0[*lane]));
        p.write(regs, *mask, over.fold(0, |m, lane| m | 1 << lane));
        Ok(())
    })
}

/// `mbarrier.pending_count`.
pub(super) fn pending_count(o: &Operands<'_>) -> Bound {
    o.look(|slot, word| slot == Slot::Type || word == Word::PendingCount);
    o.lift1(sem::mbarrier_pending_count)
}
