//! Atomic operations (PTX ISA §9.7.12.4, §9.7.12.5).
//!
//! Invariant: lanes act one after another in ascending order; each new value is a function of `ptx-sem` of
//! the old value and the operands.

use super::access::{sem_of, sem_op, space_of};
use super::operands::{Bound, Operands};
use super::{Missing, b128};
use crate::bound::Exec;
use crate::lift::{Address, Inputs, Operand, Slot as RegSlot, Target, Value};
use crate::mem::Cell;
use ptx::ir::Inst;
use ptx::isa::{AtomOp, Sem, Slot, Space, Ty, Word};
use ptx_sem as sem;

/// `atom`: returns the old value.
pub(super) fn atom(o: &Operands<'_>) -> Bound {
    bind(o)
}

/// `red`: no destination.
pub(super) fn red(o: &Operands<'_>) -> Bound {
    bind(o)
}

fn bind(o: &Operands<'_>) -> Bound {
    if o.ty()? == Ty::B128 {
        return b128::atom(o);
    }
    let access = Access { space: space_of(o, 0), sem: sem_of(o) };
    let words = |w| {
        use Word::{Add, And, Cas, Dec, Exch, Inc, Max, Min, Or, Xor};
        matches!(w, And | Or | Xor | Exch | Cas | Add | Inc | Dec | Min | Max)
    };
    let op = o.ask(Slot::Op, words, |mods| mods.atom_op())?;
    let ty = o.ty()?;
    let noftz = o.has(Word::Noftz);
    if ty.is_float() && op != AtomOp::Exch {
        return if op == AtomOp::Add { add_float(o, access, ty, noftz) } else { Err(Missing) };
    }
    let op = sem_op(op);
    super::by_type! { ty;
        B16 | U16 => step::<u16>(o, access, op, sem::atom_u16),
        B32 | U32 | F32 => step::<u32>(o, access, op, sem::atom_u32),
        S32 => step::<u32>(o, access, op, |op, old, b, c| sem::atom_s32(op, old as i32, b as i32, c as i32) as u32),
        B64 | U64 | F64 => step::<u64>(o, access, op, sem::atom_u64),
        S64 => step::<u64>(o, access, op, |op, old, b, c| sem::atom_s64(op, old as i64, b as i64, c as i64) as u64),
    }
}

fn add_float(o: &Operands<'_>, access: Access, ty: Ty, noftz: bool) -> Bound {
    let add = sem::AtomOp::Add;
    // Half precision always has `.noftz`, other types never.
    if noftz != (ty.bits() == 16 || matches!(ty, Ty::F16x2 | Ty::Bf16x2)) {
        return Err(Missing);
    }
    super::by_type! { ty;
        F32 => add_f32(o, access),
        F64 => step::<u64>(o, access, add, |_, old, b, _| {
            sem::atom_add_f64(f64::from_bits(old), f64::from_bits(b)).to_bits()
        }),
        F16 => step::<u16>(o, access, add, |_, old, b, _| sem::atom_add_f16(old, b)),
        F16x2 => step::<u32>(o, access, add, |_, old, b, _| sem::atom_add_f16x2(old, b)),
        Bf16 => step::<u16>(o, access, add, |_, old, b, _| sem::add_bf16(old, b)),
        Bf16x2 => step::<u32>(o, access, add, |_, old, b, _| sem::add_bf16x2(old, b)),
    }
}

/// State space and ordering.
#[derive(Clone, Copy)]
struct Access {
    space: Space,
    sem: Sem,
}

/// The sources: address, b, and c if the operation has it.
struct Sources<S> {
    address: Address,
    b: Operand<S>,
    c: Operand<S>,
}

impl<S: RegSlot> Sources<S> {
    fn of<V: Value<Slot = S>>(o: &Operands<'_>) -> Result<Self, Missing> {
        let policy = o.mods().has(Word::L2CacheHint);
        o.ignore_word(Word::L2CacheHint);
        let operands = o.inst.srcs.len() - usize::from(policy);
        if policy {
            // The cache policy has no effect.
            o.src_at(operands)?;
        }
        let c = if operands > 2 { o.src::<V>(2)? } else { Operand::splat(S::default()) };
        Ok(Self { address: o.address(0)?, b: o.src::<V>(1)?, c })
    }
}

/// The destination of `atom`; a sink for `red`.
fn target<V: Value>(o: &Operands<'_>, inst: &Inst) -> Result<Target<V::Slot>, Missing> {
    if inst.dsts.is_empty() { Ok(Target::Sink) } else { o.dst::<V>(0) }
}

fn step<V: Value<Slot = V> + RegSlot + Cell>(
    o: &Operands<'_>,
    access: Access,
    op: sem::AtomOp,
    f: impl Fn(sem::AtomOp, V, V, V) -> V + Copy + Send + Sync + 'static,
) -> Bound {
    let (d, sources) = (target::<V>(o, o.inst)?, Sources::of::<V>(o)?);
    Ok(Box::new(move |exec: &mut Exec<'_>| {
        let Exec { mask, regs, warp, mem, frame, .. } = exec;
        let inputs = Inputs { regs, warp, frame: *frame };
        let (mut scratch, mut scratch_b, mut scratch_c) = (None, None, None);
        let addrs = sources.address.read(inputs, &mut scratch);
        let b = sources.b.read(inputs, &mut scratch_b);
        let c = sources.c.read(inputs, &mut scratch_c);
        let old = mem.atomic(access.space, addrs, *mask, access.sem, |lane, old: V| {
            let fails = op == sem::AtomOp::Cas && old != b.0[lane];
            (!fails).then(|| f(op, old, b.0[lane], c.0[lane]))
        })?;
        d.write(regs, *mask, &old);
        Ok(())
    }))
}

/// `add.f32` flushes subnormals in global memory and keeps them in shared memory, also through generic
/// addresses (A100).
fn add_f32(o: &Operands<'_>, access: Access) -> Bound {
    let (d, sources) = (target::<u32>(o, o.inst)?, Sources::of::<u32>(o)?);
    Ok(Box::new(move |exec: &mut Exec<'_>| {
        let Exec { mask, regs, warp, mem, frame, .. } = exec;
        let inputs = Inputs { regs, warp, frame: *frame };
        let (mut scratch, mut scratch_b) = (None, None);
        let addrs = sources.address.read(inputs, &mut scratch);
        let b = sources.b.read(inputs, &mut scratch_b);
        let keeps = match access.space {
            Space::Shared => *mask,
            Space::Generic => mem.isspacep(Space::Shared, addrs, *mask),
            Space::Global
            | Space::Const
            | Space::Local
            | Space::Param
            | Space::Reg
            | Space::Sreg
            | Space::Tex => 0,
        };
        let old = mem.atomic(access.space, addrs, *mask, access.sem, |lane, old: u32| {
            let (old, b) = (f32::from_bits(old), f32::from_bits(b.0[lane]));
            let keep = keeps >> lane & 1 != 0;
            Some(if keep { sem::atom_add_f32(old, b) } else { sem::atom_add_ftz_f32(old, b) }.to_bits())
        })?;
        d.write(regs, *mask, &old);
        Ok(())
    }))
}
