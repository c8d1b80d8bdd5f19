//! Fences and the miscellaneous instructions (PTX ISA §9.7.12.3, §9.7.17).
//!
//! Choice where the manual is silent: `brkpt` suspends execution for a debugger. There is none, so it has no
//! effect.

use super::Missing;
use super::access::sem_of;
use super::operands::{Bound, Operands};
use crate::bound::Exec;
use crate::lanes::lanes_of;
use crate::lift::Inputs;
use crate::trap::{Fault, FaultKind};
use ptx::ir::Src;
use ptx::isa::{Slot, Ty, Word};

pub(super) fn fence(o: &Operands<'_>) -> Bound {
    let sem = sem_of(o);
    // Every proxy accesses the memory itself.
    o.look(|slot, word| {
        slot == Slot::Ss
            || matches!(
                word,
                Word::Proxy
                    | Word::Alias
                    | Word::Async
                    | Word::AsyncGeneric
                    | Word::SyncRestrictCta
                    | Word::SyncRestrictCluster
                    | Word::MbarrierInit
                    | Word::Acquire
                    | Word::Release
                    | Word::Cluster
            )
    });
    Ok(Box::new(move |exec: &mut Exec<'_>| {
        exec.mem.fence(sem);
        Ok(())
    }))
}

/// `trap`: a fault of the first lane that executes it.
pub(super) fn fault(kind: FaultKind) -> Bound {
    Ok(Box::new(move |exec: &mut Exec<'_>| match lanes_of(exec.mask).next() {
        Some(lane) => Err(Fault::new(kind.clone(), lane)),
        None => Ok(()),
    }))
}

/// `pmevent`: triggers one event, or with `.mask` each event whose bit is set; once for the lanes of a warp
/// that execute it together.
pub(super) fn pmevent(o: &Operands<'_>) -> Bound {
    let Src::Imm(bits) = o.src_at(0)? else { return Err(Missing) };
    let events = match o.has(Word::Mask) {
        true => u16::try_from(*bits).map_err(|_| Missing)?,
        false => 1u16.checked_shl(u32::try_from(*bits).map_err(|_| Missing)?).ok_or(Missing)?,
    };
    Ok(Box::new(move |exec: &mut Exec<'_>| {
        if exec.mask != 0 {
            exec.warp.trigger(events);
        }
        Ok(())
    }))
}

/// `nanosleep`: the warp sleeps for the longest time that a lane requests; PTX allows up to twice the time.
pub(super) fn nanosleep(o: &Operands<'_>) -> Bound {
    if o.ty()? != Ty::U32 {
        return Err(Missing);
    }
    let time = o.src::<u32>(0)?;
    Ok(Box::new(move |exec: &mut Exec<'_>| {
        let time = time.get(Inputs::of(exec));
        if let Some(longest) = lanes_of(exec.mask).map(|lane| time.0[lane]).max() {
            exec.warp.sleep(longest);
            exec.mem.memory().pass(longest.into());
        }
        Ok(())
    }))
}
