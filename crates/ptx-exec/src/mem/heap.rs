//! Allocates ranges of one region of addresses.
//!
//! Invariants: allocated ranges do not overlap and are at least [`GAP`] bytes apart, so that an access
//! slightly out of bounds hits no other allocation. Addresses depend only on the order of calls.

use std::collections::BTreeMap;

/// Alignment of every range, and the least distance of two ranges, in bytes.
pub(super) const GAP: u64 = 256;

/// Free ranges of a region.
#[derive(Debug)]
pub(super) struct Heap {
    /// Bytes between two ranges.
    gap: u64,
    /// Start and end of free ranges, which are never adjacent.
    free: BTreeMap<u64, u64>,
    /// End of the highest range that was ever allocated.
    mark: u64,
}

impl Heap {
    /// A region that is free.
    pub(super) fn new(region: std::ops::Range<u64>) -> Self {
        let start = region.start.next_multiple_of(GAP);
        let free = if start < region.end { BTreeMap::from([(start, region.end)]) } else { BTreeMap::new() };
        Self { gap: GAP, free, mark: start }
    }

    /// A region for windows, with a gap before the first.
    pub(super) fn of_windows(region: std::ops::Range<u64>) -> Self {
        let start = region.start.next_multiple_of(GAP).saturating_add(GAP);
        Self::new(start..region.end)
    }

    /// A region whose ranges may be adjacent.
    pub(super) fn without_gaps(region: std::ops::Range<u64>) -> Self {
        Self { gap: 0, ..Self::new(region) }
    }

    /// End of the highest range that was ever allocated.
    pub(super) fn mark(&self) -> u64 {
        self.mark
    }

    /// The addresses that an allocation takes, including its gap.
    fn footprint(&self, bytes: u64) -> Option<u64> {
        bytes.checked_next_multiple_of(GAP)?.checked_add(self.gap)
    }

    /// Allocates the lowest free range that fits. `align` is a power of two.
    pub(super) fn take(&mut self, bytes: u64, align: u64) -> Option<u64> {
        let need = self.footprint(bytes)?;
        let align = align.max(GAP);
        let (start, end, at) = self.free.iter().find_map(|(start, end)| {
            let at = start.checked_next_multiple_of(align)?;
            (at.checked_add(need)? <= *end).then_some((*start, *end, at))
        })?;
        self.cut(start..end, at..at + need);
        Some(at)
    }

    /// Allocates this range if it is free.
    pub(super) fn take_at(&mut self, at: u64, bytes: u64) -> Option<u64> {
        let past = at.checked_add(self.footprint(bytes)?)?;
        let (start, end) = self.free.range(..=at).next_back().map(|(start, end)| (*start, *end))?;
        if past > end {
            return None;
        }
        self.cut(start..end, at..past);
        Some(at)
    }

    /// Removes a part of a free range.
    fn cut(&mut self, free: std::ops::Range<u64>, part: std::ops::Range<u64>) {
        self.free.remove(&free.start);
        if free.start < part.start {
            self.free.insert(free.start, part.start);
        }
        if part.end < free.end {
            self.free.insert(part.end, free.end);
        }
        self.mark = self.mark.max(part.end);
    }

    /// Undoes the last [`Heap::take`], before which the mark was `mark`.
    pub(super) fn undo(&mut self, at: u64, bytes: u64, mark: u64) {
        self.give(at, bytes);
        self.mark = mark;
    }

    /// Frees a range that [`Heap::take`] returned for this size.
    pub(super) fn give(&mut self, at: u64, bytes: u64) {
        let Some(need) = self.footprint(bytes) else { return };
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
