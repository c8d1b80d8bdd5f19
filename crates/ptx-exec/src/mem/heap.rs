//! Hands out ranges of one region of addresses.
//!
//! Invariants: ranges handed out do not overlap and lie at least [`GAP`] bytes apart, so that an access off by a little hits
//! nothing; the order of calls alone decides the addresses.

use std::collections::BTreeMap;

/// Alignment of every range, and the least distance between two of them, in bytes.
pub(super) const GAP: u64 = 256;

/// Free ranges of a region.
#[derive(Debug)]
pub(super) struct Heap {
    /// Start and end of free ranges; never adjacent.
    free: BTreeMap<u64, u64>,
    /// End of what was ever handed out.
    mark: u64,
}

impl Heap {
    /// A region of which everything is free.
    pub(super) fn new(region: std::ops::Range<u64>) -> Self {
        let start = region.start.next_multiple_of(GAP);
        Self { free: BTreeMap::from([(start, region.end)]), mark: start }
    }

    /// End of what was ever handed out.
    pub(super) fn mark(&self) -> u64 {
        self.mark
    }

    /// The range of addresses that an allocation of that size takes, its gap included.
    fn footprint(bytes: u64) -> Option<u64> {
        bytes.checked_next_multiple_of(GAP)?.checked_add(GAP)
    }

    /// Takes the lowest free range that fits. `align` is a power of two.
    pub(super) fn take(&mut self, bytes: u64, align: u64) -> Option<u64> {
        let need = Self::footprint(bytes)?;
        let align = align.max(GAP);
        let (start, end, at) = self.free.iter().find_map(|(start, end)| {
            let at = start.checked_next_multiple_of(align)?;
            (at.checked_add(need)? <= *end).then_some((*start, *end, at))
        })?;
        self.free.remove(&start);
        if start < at {
            self.free.insert(start, at);
        }
        if at + need < end {
            self.free.insert(at + need, end);
        }
        self.mark = self.mark.max(at + need);
        Some(at)
    }

    /// Undoes the last [`Heap::take`], which moved the mark from `mark`.
    pub(super) fn undo(&mut self, at: u64, bytes: u64, mark: u64) {
        self.give(at, bytes);
        self.mark = mark;
    }

    /// Gives a range back that [`Heap::take`] returned for that size.
    pub(super) fn give(&mut self, at: u64, bytes: u64) {
        let Some(need) = Self::footprint(bytes) else { return };
        let (mut start, mut end) = (at, at + need);
        if let Some((before, before_end)) = self.free.range(..at).next_back()
            && *before_end == at
        {
            start = *before;
        }
        if let Some(after_end) = self.free.remove(&end) {
            end = after_end;
        }
        self.free.insert(start, end);
    }
}
