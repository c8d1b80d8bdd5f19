//! The parts that all instructions with memory accesses share: state space, ordering, values in memory, and
//! operands.

use super::Missing;
use super::operands::Operands;
use crate::lanes::{LANES, Lane};
use crate::lift::{Inputs, Operand, Value};
use crate::mem::Cell;
use ptx::ir::{Addr, Base, Src};
use ptx::isa::{AtomOp, Sem, Slot, Space, Word};
use ptx_sem as sem;

/// A value in memory.
pub(super) trait Stored: Value {
    /// The memory cell that holds it.
    type Cell: Cell + Default;
    /// The value from its cell.
    fn of_cell(cell: Self::Cell) -> Self;
    /// The cell from the value's slot.
    fn cell(slot: Self::Slot) -> Self::Cell;
}

macro_rules! stored {
    ($($ty:ty, $cell:ty;)+) => {$(
        impl Stored for $ty {
            type Cell = $cell;
            #[inline(always)]
            fn of_cell(cell: $cell) -> Self {
                cell as $ty
            }
            #[inline(always)]
            fn cell(slot: Self::Slot) -> $cell {
                slot as $cell
            }
        }
    )+};
}
stored! {
    u8, u8; i8, u8; u16, u16; i16, u16; u32, u32; i32, u32; u64, u64; i64, u64;
}

/// The state space of an access. A generic access to a named variable is in the variable's space, and to the
/// frame of an activation in local memory.
pub(super) fn space_of(o: &Operands<'_>, address: usize) -> Space {
    o.look(|slot, word| {
        slot == Slot::Ss
            || slot == Slot::Flag && matches!(word, Word::Global | Word::Shared | Word::Local | Word::Param)
    });
    let said = o.mods().space();
    match o.inst.srcs.get(address) {
        Some(Src::Addr(Addr { base: Base::Frame, .. })) => Space::Local,
        Some(Src::Addr(Addr { base: Base::KernelParam, .. })) => Space::Param,
        Some(Src::Addr(Addr { base: Base::Var(var), .. })) if said == Space::Generic => {
            o.binding.program.variables.get(var.0 as usize).map_or(said, |variable| variable.space)
        }
        _ => said,
    }
}

/// The ordering of an access; marks its scope.
pub(super) fn sem_of(o: &Operands<'_>) -> Sem {
    let sems =
        [Word::Weak, Word::Volatile, Word::Relaxed, Word::Acquire, Word::Release, Word::AcqRel, Word::Sc];
    o.look(|slot, word| slot == Slot::Sem || slot == Slot::Flag && sems.contains(&word));
    o.ignore(Slot::Scope);
    o.mods().sem()
}

/// The operation as `ptx-sem` names it.
pub(super) fn sem_op(op: AtomOp) -> sem::AtomOp {
    match op {
        AtomOp::And => sem::AtomOp::And,
        AtomOp::Or => sem::AtomOp::Or,
        AtomOp::Xor => sem::AtomOp::Xor,
        AtomOp::Exch => sem::AtomOp::Exch,
        AtomOp::Cas => sem::AtomOp::Cas,
        AtomOp::Add => sem::AtomOp::Add,
        AtomOp::Inc => sem::AtomOp::Inc,
        AtomOp::Dec => sem::AtomOp::Dec,
        AtomOp::Min => sem::AtomOp::Min,
        AtomOp::Max => sem::AtomOp::Max,
    }
}

#[inline(always)]
pub(super) fn read_cells<V: Stored>(value: &Operand<V::Slot>, inputs: Inputs<'_>, cells: &mut Lane<V::Cell>) {
    let mut scratch = None;
    let value = value.read(inputs, &mut scratch);
    for lane in 0..LANES {
        cells.0[lane] = V::cell(value.0[lane]);
    }
}

/// `N` operands, made one after another.
pub(super) fn elements<T, const N: usize>(
    make: impl Fn(usize) -> Result<T, Missing>,
) -> Result<[T; N], Missing> {
    let all = (0..N).map(make).collect::<Result<Vec<T>, Missing>>()?;
    all.try_into().map_err(|_| Missing)
}

/// Marks the cache policy after the other operands; it has no effect.
pub(super) fn policy(o: &Operands<'_>, at: usize) -> Result<(), Missing> {
    if o.mods().has(Word::L2CacheHint) {
        o.src_at(at)?;
    }
    Ok(())
}
