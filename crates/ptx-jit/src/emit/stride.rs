//! Loops that take long strides: each turn steps on by a distance that only the launch knows, such as the whole grid.
//!
//! Such a loop reads a few bytes of many pages, which no prefetcher of a processor follows. So such a load also asks for what the next turn
//! reads. And what the CTA reads of a page the next CTA's threads continue, and the same OS thread runs it next: it asks for what lies where
//! the CTA's own part ends, too.
//!
//! Invariant: nothing but time depends on it; asking for an address that does not exist does nothing.

use super::Emit;
use super::memory::{Access, Addresses};
use super::stream::{Around, NEAREST};
use crate::plan::Op;
use ptx::isa::Space;

impl Emit<'_> {
    /// Asks for what the next turn reads and for what follows the part of memory that the CTA reads, if the load is one of a long stride.
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
        self.ask_for(self.b.add(bases[0], self.c64(part.into())), self.lanes * bytes, false, NEAREST);
        if let Some(turn) = self.product(stride) {
            self.ask_for(self.b.add(bases[0], turn), self.lanes * bytes, false, NEAREST);
        }
    }
}
