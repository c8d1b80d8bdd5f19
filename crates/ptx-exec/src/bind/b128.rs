//! Accesses of 128 bits that must not be torn (`.b128`, ordered or atomic), and stores of 256 bits that omit
//! elements. `ld`, `st` and `atom` of the current manual.
//!
//! Invariant: a value of 128 bits is two registers, the low half first. Weak accesses of 128 bits are bound
//! as vectors of two words.

use super::Missing;
use super::access::{Stored, elements, policy, read_cells, sem_of, sem_op, space_of};
use super::operands::{Bound, Operands};
use crate::bound::Exec;
use crate::lanes::{LANES, Lane};
use crate::lift::Inputs;
use ptx::ir::Src;
use ptx::isa::{Sem, Slot, Space, Word};
use ptx_sem as sem;

/// A load of 128 bits that is not torn by other such accesses.
pub(super) fn load(o: &Operands<'_>, space: Space, sem: Sem) -> Bound {
    let address = o.address(0)?;
    policy(o, 1)?;
    let [low, high] = elements::<_, 2>(|i| o.dst::<u64>(i))?;
    Ok(Box::new(move |exec: &mut Exec<'_>| {
        let Exec { mask, regs, warp, mem, frame, .. } = exec;
        let mut scratch = None;
        let addrs = address.read(Inputs { regs, warp, frame: *frame }, &mut scratch);
        let [a, b] = mem.load_b128(space, addrs, *mask, sem)?;
        low.write(regs, *mask, &a);
        high.write(regs, *mask, &b);
        Ok(())
    }))
}

/// A store of 128 bits that is not torn by other such accesses.
pub(super) fn store(o: &Operands<'_>, space: Space, sem: Sem) -> Bound {
    let address = o.address(0)?;
    let values = elements::<_, 2>(|i| o.src::<u64>(1 + i))?;
    policy(o, 3)?;
    Ok(Box::new(move |exec: &mut Exec<'_>| {
        let Exec { mask, regs, warp, mem, frame, .. } = exec;
        let inputs = Inputs { regs, warp, frame: *frame };
        let (mut scratch, mut low, mut high) = (None, None, None);
        let addrs = address.read(inputs, &mut scratch);
        let values = [values[0].read(inputs, &mut low), values[1].read(inputs, &mut high)];
        mem.store_b128(space, addrs, *mask, sem, values)
    }))
}

/// A vector store whose elements may be `_`: their bytes do not change. The bounds check covers the whole
/// access.
pub(super) fn store_chosen<V: Stored, const N: usize>(o: &Operands<'_>, space: Space, sem: Sem) -> Bound {
    let address = o.address(0)?;
    let values = elements::<_, N>(|i| match o.src_at(1 + i)? {
        Src::Absent => Ok(None),
        Src::Reg(_) | Src::Not(_) | Src::Imm(_) | Src::Sreg(..) | Src::Addr(_) | Src::Video(_) => {
            o.src::<V>(1 + i).map(Some)
        }
    })?;
    policy(o, 1 + N)?;
    Ok(Box::new(move |exec: &mut Exec<'_>| {
        let Exec { mask, regs, warp, mem, frame, .. } = exec;
        let inputs = Inputs { regs, warp, frame: *frame };
        let mut scratch = None;
        let addrs = address.read(inputs, &mut scratch);
        let mut cells = [Lane([V::Cell::default(); LANES]); N];
        for (cells, value) in cells.iter_mut().zip(&values) {
            if let Some(value) = value {
                read_cells::<V>(value, inputs, cells);
            }
        }
        let mut chosen = cells.each_ref().map(Some);
        for (chosen, value) in chosen.iter_mut().zip(&values) {
            *chosen = chosen.filter(|_| value.is_some());
        }
        mem.store_chosen(space, addrs, *mask, sem, chosen)
    }))
}

/// `atom.exch.b128`, `atom.cas.b128`.
pub(super) fn atom(o: &Operands<'_>) -> Bound {
    let (space, ordering) = (space_of(o, 0), sem_of(o));
    let op = o.ask(Slot::Op, |word| matches!(word, Word::Exch | Word::Cas), |mods| mods.atom_op())?;
    let op = sem_op(op);
    let address = o.address(0)?;
    let b = elements::<_, 2>(|i| o.src::<u64>(1 + i))?;
    o.ignore_word(Word::L2CacheHint);
    policy(o, if op == sem::AtomOp::Cas { 5 } else { 3 })?;
    let c = if op == sem::AtomOp::Cas {
        Some(elements::<_, 2>(|i| o.src::<u64>(3 + i))?)
    } else if op == sem::AtomOp::Exch {
        None
    } else {
        return Err(Missing);
    };
    let [low, high] = elements::<_, 2>(|i| o.dst::<u64>(i))?;
    Ok(Box::new(move |exec: &mut Exec<'_>| {
        let Exec { mask, regs, warp, mem, frame, .. } = exec;
        let inputs = Inputs { regs, warp, frame: *frame };
        let mut scratch = None;
        let addrs = address.read(inputs, &mut scratch);
        let b = [b[0].get(inputs), b[1].get(inputs)];
        let c = c.as_ref().map(|c| [c[0].get(inputs), c[1].get(inputs)]);
        let [x, y] = mem.atomic_b128(space, addrs, *mask, ordering, |lane, old| {
            let b = [b[0].0[lane], b[1].0[lane]];
            match &c {
                Some(c) => (old == b).then(|| [c[0].0[lane], c[1].0[lane]]),
                None => Some(b),
            }
        })?;
        low.write(regs, *mask, &x);
        high.write(regs, *mask, &y);
        Ok(())
    }))
}
