//! Loops that take long strides: each turn steps on by a distance that only the launch knows, such as the whole grid.
//!
//! Such a loop reads a few bytes of many pages, which no prefetcher of a processor follows. But what the CTA reads of a page the next CTA's
//! threads continue, and the same OS thread runs it next: the load also asks for what lies where the CTA's own part ends. Where strides
//! are the grid's, nobody else reads what is asked for, so it need not go into farther caches, only to be put out of them by what comes
//! after: measured on a Zen 5, a sum of 64 MiB takes a tenth less time than with hints for all caches, and as long where it fits them.
//! Other loops, and those whose parts are so short that what a turn does with them takes longer than to run ahead, ask for the next turn's
//! part as well, in all caches.
//!
//! A Zen 4 has few lines on their way into its first cache and many more into the second. What is asked for there comes from memory nearly as
//! fast as what is read in one row: the same sum takes half the time. So there the next CTA's part goes into the second cache, and long parts
//! some turns ahead too; hints for the first make the sum slower than none do.
//!
//! Invariant: nothing but time depends on it; asking for an address that does not exist does nothing.

use super::Emit;
use super::memory::{Access, Addresses};
use super::slope::Fact;
use super::stream::{Around, NEAREST, ONCE, SECOND};
use crate::plan::Op;
use crate::tuning::{GRID_STRIDE_ITERATIONS_AHEAD, GRID_STRIDE_LONG_BYTES};
use ptx::isa::Space;

impl Emit<'_> {
    /// Asks for what follows the part of memory that the CTA reads, if the load is one of a long stride.
    pub(super) fn ask_early(&self, access: Access, places: &Addresses, op: &Op) {
        // Turns that meet at a barrier ask as all loads there do.
        let (Addresses::Pattern(bases, pattern), Around::Loop) = (places, self.around) else { return };
        let stride = op.uses.get(1).and_then(|name| self.slopes.turn[name.0 as usize]);
        let Some(stride) = stride.filter(|stride| !stride.is_constant()) else { return };
        let bytes = access.bytes();
        let row = pattern.lanes.iter().enumerate().all(|(at, lane)| *lane == (at as u32 * bytes) as i32);
        if !row || pattern.by_chunk || access.space != Space::Global || !self.whole(op) {
            return;
        }
        let part = self.job.shape.threads() * bytes;
        let next = self.b.add(bases[0], self.c64(part.into()));
        let grid = stride.facts.iter().flatten().any(|fact| matches!(fact, Fact::Ctas(_)));
        let long = grid && part >= GRID_STRIDE_LONG_BYTES;
        // Into which cache the next CTA's part goes, and how many turns ahead and where to this CTA's.
        let (level, ahead) = match (self.job.target.tuning().l2_prefetch, long) {
            (true, true) => (SECOND, Some((GRID_STRIDE_ITERATIONS_AHEAD, SECOND))),
            (true, false) => (SECOND, Some((1, NEAREST))),
            (false, true) => (ONCE, None),
            (false, false) => (NEAREST, Some((1, NEAREST))),
        };
        self.ask_for(next, self.lanes * bytes, false, level);
        let Some((turns, level)) = ahead else { return };
        if let Some(turn) = self.product(stride) {
            let far = self.b.mul(turn, self.c64(turns));
            self.ask_for(self.b.add(bases[0], far), self.lanes * bytes, false, level);
        }
    }
}
