//! Loops that take long strides: each turn steps on by a distance that only the launch knows, such as the whole grid.
//!
//! Such a loop reads a few bytes of many pages, which no prefetcher of a processor follows. So such a load also asks for what the next turn
//! reads. And what the CTA reads of a page the next CTA's threads continue, and the same OS thread runs it next: it asks for what lies where
//! the CTA's own part ends, too.
//!
//! Invariant: nothing but time depends on it; asking for an address that does not exist does nothing.

use super::Emit;
use super::memory::{Access, Addresses};
use super::stream::Around;
use crate::llvm::Value;
use crate::plan::Op;
use ptx::isa::Space;

/// Bytes that are fetched at once. Of the processors that this is made for; elsewhere some are asked for twice, or not.
const LINE: u32 = 64;

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
        self.ask_for(self.b.add(bases[0], self.c64(part.into())), self.lanes * bytes);
        if let Some(turn) = self.product(stride) {
            self.ask_for(self.b.add(bases[0], turn), self.lanes * bytes);
        }
    }

    /// Fetches lines from there on.
    fn ask_for(&self, start: Value, bytes: u32) {
        for line in (0..bytes).step_by(LINE as usize) {
            let pointer = self.b.int_to_ptr(self.b.add(start, self.c64(line.into())));
            // To read, to be kept, data.
            let hints = [self.c32(0), self.c32(3), self.c32(1)];
            self.b.intrinsic("llvm.prefetch", &[self.b.ptr()], &[pointer, hints[0], hints[1], hints[2]]);
        }
    }
}
