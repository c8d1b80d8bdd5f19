//! Masks that are computed where they are read, as data of the block that compares.
//!
//! The pass in [`opt::sink_masks`](crate::opt::sink_masks) finds them. Code generation emits a scalar test of
//! the first lane in place of the comparison, and the comparison in the block that needs it.
//!
//! # Shape
//! One line behind the operations of a block, as a comment: the mask, the block that computes it, and the
//! comparison.
//! ```text
//! ; sinks v16 into b4: signed v9 < v2
//! ```
//!
//! Invariant: nothing here depends on a value of LLVM.

use super::leading_lanes::LeadingLanes;
use super::{BlockId, Value};
use std::rc::Rc;

/// A mask whose computation is delayed until the only block that reads it.
#[derive(Clone, Debug)]
pub(crate) struct SunkMask {
    /// The index of the comparison in its block.
    pub(crate) at: usize,
    /// The mask that the other block is executed under.
    pub(crate) mask: Value,
    pub(crate) lanes: Rc<LeadingLanes>,
    /// The block that computes the mask.
    pub(crate) into: BlockId,
    /// The operations that are emitted there, in order.
    pub(crate) ops: Vec<(BlockId, usize)>,
}

impl SunkMask {
    /// The line of the text form.
    pub(crate) fn text(&self) -> String {
        format!("; sinks v{} into b{}: {}", self.mask.0, self.into.0, self.lanes)
    }
}
