//! The reduction buffer: reductions of global memory are kept in a list, and performed in their order when
//! the list is full, or when native code returns or calls something that may read memory.
//!
//! A locked operation takes some twenty cycles, and ten times that where threads contend for a cache line. To
//! perform thousands of reductions at a time, one OS thread after another, moves a cache line between
//! processors once for all of them, and allows plain loads and stores
//! ([`perform`](ptx_exec::mem::perform)). A reduction whose result is not read and that has no memory
//! order may be performed at any later time before its thread reads the location or orders it before another
//! access. Each is performed on its own, so a sum of floating-point numbers is rounded after each addition.
//!
//! Invariant: while the buffer holds anything, native code of this OS thread accesses the locations in it
//! only by such reductions. Every native access of global memory lies within cached bounds, which are an
//! allocation. From where the bounds of reductions and those of another access overlap, each reduction is
//! performed at once. Functions that order their accesses of global memory do not use the buffer.

use ptx::ir::{Function, Inst};
use ptx::isa::{AtomOp, Op, Scope, Sem, Space, Ty};

/// Reductions that the buffer holds. Chosen: they take half of a second-level cache of 128 KiB, and with more
/// the time of the lock is no smaller part.
pub(crate) const ENTRIES: u32 = 4096;

/// The least number of reductions with which the buffer is emptied, unless each is performed at once: those
/// of one instruction, which is executed by a coarse warp of at most 1,024 lanes, fit behind them.
pub(crate) const FULL: u32 = ENTRIES - 1024;

/// The place in an address of the number of its [`Kind`]; addresses of user space are smaller.
pub(crate) const KIND_SHIFT: u32 = 56;

/// A kind of reduction that can be postponed: its operation and type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) op: AtomOp,
    pub(crate) number: Number,
}

/// What the bits of an operand mean, as far as that matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    U32,
    S32,
    F32,
    U64,
    S64,
    F64,
}

const NUMBERS: [Number; 6] = [Number::U32, Number::S32, Number::F32, Number::U64, Number::S64, Number::F64];

const OPS: [AtomOp; 8] =
    [AtomOp::Add, AtomOp::And, AtomOp::Or, AtomOp::Xor, AtomOp::Min, AtomOp::Max, AtomOp::Inc, AtomOp::Dec];

impl Kind {
    /// The kind of an operation on a type, if it can be postponed.
    fn of(op: AtomOp, ty: Ty) -> Option<Kind> {
        let number = match ty {
            Ty::F32 => Number::F32,
            Ty::F64 => Number::F64,
            Ty::S32 => Number::S32,
            Ty::S64 => Number::S64,
            Ty::U32 | Ty::B32 => Number::U32,
            Ty::U64 | Ty::B64 => Number::U64,
            _ => return None,
        };
        let is_sum = op == AtomOp::Add || !matches!(number, Number::F32 | Number::F64);
        (is_sum && OPS.contains(&op)).then_some(Kind { op, number })
    }

    /// The number that stands for it in an entry, from 1 on.
    pub(crate) fn code(self) -> u8 {
        let at = |found: Option<usize>| found.expect("ptxvm bug: a reduction of another kind") as u8;
        let op = at(OPS.iter().position(|op| *op == self.op));
        1 + op * NUMBERS.len() as u8 + at(NUMBERS.iter().position(|number| *number == self.number))
    }

    /// The kind of a number.
    pub(crate) fn of_code(code: u8) -> Option<Kind> {
        let code = usize::from(code.checked_sub(1)?);
        Some(Kind { op: *OPS.get(code / NUMBERS.len())?, number: NUMBERS[code % NUMBERS.len()] })
    }
}

/// The kind of an atomic operation that is postponed, if it is, provided that its old value is not read.
/// `space`: the state space of its address.
pub(crate) fn postponed(function: &Function, inst: &Inst, space: Space) -> Option<Kind> {
    let unordered = matches!(inst.mods.sem(), Sem::Weak | Sem::Relaxed);
    let plain = matches!(inst.op, Op::Atom | Op::Red)
        && space == Space::Global
        && inst.mods.scope() != Some(Scope::Sys)
        && crate::effects::is_native_atomic(&inst.mods);
    if !unordered || !plain {
        return None;
    }
    let kind = Kind::of(inst.mods.atom_op()?, inst.mods.ty())?;
    (!orders(function)).then_some(kind)
}

/// Whether a function orders its accesses of global memory.
fn orders(function: &Function) -> bool {
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
    function.blocks.iter().flat_map(|block| &block.insts).any(orders)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_for_kinds() {
        let kinds = || OPS.into_iter().flat_map(|op| NUMBERS.map(|number| Kind { op, number }));
        assert!(kinds().all(|kind| Kind::of_code(kind.code()) == Some(kind)));
        let codes: std::collections::BTreeSet<u8> = kinds().map(Kind::code).collect();
        assert_eq!(codes.len(), OPS.len() * NUMBERS.len());
        assert_eq!((Kind::of_code(0), Kind::of_code(codes.len() as u8 + 1)), (None, None));
    }
}
