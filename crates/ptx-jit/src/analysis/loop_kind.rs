//! The kind of loop that each PTX block belongs to.
//!
//! Invariant: it follows from the PTX function alone.

use crate::wir::loops;
use ptx::ir::{Function, Terminator};

/// The kind of loop that a block belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LoopKind {
    /// The block is in no loop.
    #[default]
    Nothing,
    /// The block is in a loop.
    Loop,
    /// The block is in a loop whose iterations meet at a barrier.
    Barrier,
}

/// For each PTX block, the kind of loop that it belongs to.
pub(crate) fn loop_kinds(function: &Function) -> Vec<LoopKind> {
    let mut inside = vec![LoopKind::Nothing; function.blocks.len()];
    for one in loops::loops(function) {
        let mut body = function.blocks[one.blocks()].iter();
        let meets = body.any(|block| matches!(block.term, Terminator::Barrier { .. }));
        let new = if meets { LoopKind::Barrier } else { LoopKind::Loop };
        inside[one.blocks()].iter_mut().for_each(|have| *have = new.max(*have));
    }
    inside
}
