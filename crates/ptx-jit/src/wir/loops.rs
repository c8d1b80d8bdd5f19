//! Loops of a PTX function. A WIR block belongs to the loops of the PTX block that it is a copy of.
//!
//! The blocks of a function are in an order in which every loop is contiguous and its header comes first
//! ([`ptx::ir`], block order). So a loop is a range of blocks from the target of a back edge to its source.
//!
//! Invariant: there is one loop for each back edge, in the order of their sources; two with the same header
//! are listed apart.

use ptx::ir::Function;
use std::ops::RangeInclusive;

/// A loop of a PTX function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loop {
    /// The block where an iteration begins.
    pub(crate) header: usize,
    /// The block that goes back to the header.
    pub(crate) latch: usize,
}

impl Loop {
    /// The blocks of the loop.
    pub(crate) fn blocks(self) -> RangeInclusive<usize> {
        self.header..=self.latch
    }
}

/// The loops of a function.
pub(crate) fn loops(function: &Function) -> Vec<Loop> {
    let mut loops = Vec::new();
    for (latch, block) in function.blocks.iter().enumerate() {
        for to in block.term.successors() {
            let header = to.0 as usize;
            if header <= latch {
                loops.push(Loop { header, latch });
            }
        }
    }
    loops
}
