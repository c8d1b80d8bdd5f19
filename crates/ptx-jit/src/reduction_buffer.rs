//! The reduction buffer: reductions of global memory are combined by address in a small table, and performed
//! when their entry is needed for another address, or when native code returns or calls something that may
//! read memory.
//!
//! A locked operation takes some twenty cycles, and ten times that where threads contend for a cache line; a
//! histogram in global memory does little else. A reduction whose result is not read and that has no memory
//! order may be performed at any later time before its thread reads the location or orders it before another
//! access.
//!
//! Invariant: while the buffer holds anything, native code of this OS thread accesses the locations in it
//! only by such reductions. Every native access of global memory lies within cached bounds, which are an
//! allocation; where the bounds of reductions and those of another access overlap, the buffer is not used
//! from then on. Functions that order their accesses of global memory do not use the buffer. The entries of
//! one function have one operation and one width, so their order does not matter.

use ptx::ir::{Function, Inst};
use ptx::isa::{AtomOp, Op, Sem, Space, Ty};

/// Entries of the table. Chosen: with two words each they take at most half of the first-level cache; more
/// entries hardly help.
pub(crate) const ENTRIES: u32 = 1024;
/// The number of entries that may be replaced, counted from the entry into native code, before reductions are
/// no longer combined. Chosen: kernels that add to few locations stay below it.
pub(crate) const CREDIT: i64 = 256;

/// A kind of reduction that can be combined: its operation and width. The number is never zero, which stands
/// for no kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind(pub(crate) u32);

/// Operations whose order does not affect the result, each with whether it is signed.
const OPS: [(AtomOp, bool); 7] = [
    (AtomOp::Add, false),
    (AtomOp::And, false),
    (AtomOp::Or, false),
    (AtomOp::Min, false),
    (AtomOp::Max, false),
    (AtomOp::Min, true),
    (AtomOp::Max, true),
];

impl Kind {
    /// The kind of an operation on a type, if it can be combined.
    pub(crate) fn of(op: AtomOp, ty: Ty) -> Option<Kind> {
        if matches!(ty, Ty::F32 | Ty::F64) || !matches!(ty.bits(), 32 | 64) {
            return None;
        }
        let signed = matches!(op, AtomOp::Min | AtomOp::Max) && ty.is_signed();
        let at = OPS.iter().position(|known| *known == (op, signed))?;
        Some(Kind(1 + 2 * at as u32 + u32::from(ty.bits() == 64)))
    }

    /// The operation, whether it is signed (where that matters), and whether it is 64 bits wide.
    pub(crate) fn parts(self) -> Option<(AtomOp, bool, bool)> {
        let number = self.0.checked_sub(1)?;
        let (op, signed) = *OPS.get(number as usize / 2)?;
        Some((op, signed, number % 2 == 1))
    }

    /// The kind of an instruction, if it can be combined.
    pub(crate) fn of_inst(inst: &Inst) -> Option<Kind> {
        if !matches!(inst.op, Op::Atom | Op::Red)
            || inst.mods.space() != Space::Global
            || inst.mods.vec() != 1
        {
            return None;
        }
        Kind::of(inst.mods.atom_op()?, inst.mods.ty())
    }
}

/// The kind of reduction that a function combines: that of its first such instruction, if the function does
/// not order its accesses of global memory.
pub(crate) fn kind(function: &Function) -> Option<Kind> {
    let insts = || function.blocks.iter().flat_map(|block| &block.insts);
    let orders = |inst: &Inst| match inst.op {
        Op::Ld | Op::LdNc | Op::Ldu | Op::St => {
            inst.mods.sem() != Sem::Weak && matches!(inst.mods.space(), Space::Global | Space::Generic)
        }
        Op::Atom | Op::Red => {
            matches!(inst.mods.sem(), Sem::Acquire | Sem::Release | Sem::AcqRel | Sem::Sc)
        }
        Op::Membar | Op::Fence | Op::Griddepcontrol => true,
        _ => false,
    };
    let first = insts().find_map(Kind::of_inst)?;
    (!insts().any(orders)).then_some(first)
}
