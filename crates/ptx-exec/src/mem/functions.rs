//! Addresses of functions: numbers that identify a function and cannot be accessed.
//!
//! Invariant: functions of modules that are loaded at the same time have different addresses. Addresses of an
//! unloaded module are reused.

use std::collections::BTreeMap;
use std::ops::Range;

/// Distance between the addresses of two functions.
pub(super) const STEP: u64 = 16;

/// The free addresses.
pub(super) struct Functions {
    /// Start and end of free ranges, which are never adjacent.
    free: BTreeMap<u64, u64>,
}

impl Functions {
    /// All addresses of a region except the first, which could be mistaken for the region's own address.
    pub(super) fn new(region: &Range<u64>) -> Self {
        Self { free: BTreeMap::from([(region.start + STEP, region.end)]) }
    }

    /// Allocates the lowest free addresses for `count` functions.
    pub(super) fn take(&mut self, count: u32) -> Option<u64> {
        let bytes = STEP * u64::from(count);
        let (start, end) = self.free.iter().find(|(start, end)| **end - **start >= bytes)?;
        let (start, end) = (*start, *end);
        if bytes > 0 {
            self.free.remove(&start);
        }
        if bytes > 0 && start + bytes < end {
            self.free.insert(start + bytes, end);
        }
        Some(start)
    }

    /// Frees the addresses of `count` functions that [`Functions::take`] returned.
    pub(super) fn give(&mut self, first: u64, count: u32) {
        if count == 0 {
            return;
        }
        let (mut start, mut end) = (first, first + STEP * u64::from(count));
        if let Some((before, before_end)) = self.free.range(..start).next_back()
            && *before_end == start
        {
            start = *before;
        }
        if let Some(after_end) = self.free.remove(&end) {
            end = after_end;
        }
        self.free.insert(start, end);
    }
}

#[cfg(test)]
mod tests {
    use super::{Functions, STEP};

    #[test]
    fn addresses_that_are_given_back_are_given_again() {
        let mut functions = Functions::new(&(0..8 * STEP));
        let (one, two) = (functions.take(2), functions.take(3));
        assert_eq!((one, two), (Some(STEP), Some(3 * STEP)));
        assert_eq!(functions.take(3), None);
        functions.give(STEP, 2);
        assert_eq!((functions.take(0), functions.take(1)), (Some(STEP), Some(STEP)));
        functions.give(3 * STEP, 3);
        functions.give(STEP, 1);
        assert_eq!(functions.take(7), Some(STEP));
        assert_eq!(functions.take(1), None);
    }
}
