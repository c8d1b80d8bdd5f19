//! The instructions that end blocks, of a thread that is followed ([`crate::trace`]).
//!
//! Invariant: nothing of the warp changes.

use super::{Current, Run};
use crate::bound::Block;
use crate::trace::Tracing;

impl Run<'_> {
    /// The instruction that ends a block, for a thread that is followed: its registers are those before it.
    #[inline(always)]
    pub(super) fn trace_terminator(&self, current: &Current, function: u32, block: &Block) {
        if let Some(trace) = self.world.trace {
            self.trace_end(trace, current, function, block);
        }
    }

    #[cold]
    fn trace_end(&self, trace: &Tracing, current: &Current, function: u32, block: &Block) {
        let lane = trace.lane_in(&self.frame.state).filter(|lane| current.mask >> lane & 1 != 0);
        if let (Some(lane), Some(act)) = (lane, self.frame.acts.get(current.act as usize)) {
            trace.step(function, block.span, &act.regs, lane, true);
        }
    }
}
