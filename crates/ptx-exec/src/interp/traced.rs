//! Traces the terminators of a traced thread ([`crate::trace`]).
//!
//! Invariant: tracing changes no state of the warp.

use super::{Current, Run};
use crate::bound::Block;
use crate::trace::Tracing;

impl Run<'_> {
    /// Reports a block's terminator of a traced thread; its registers are those before the terminator.
    #[inline(always)]
    pub(super) fn trace_terminator(&self, current: &Current, function: u32, block: &Block) {
        if let Some(trace) = self.context.trace {
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
