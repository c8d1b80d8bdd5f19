//! Windows: the shared memory of a CTA, and the local memory of a warp.
//!
//! Invariant: a window is committed memory that no other window overlaps. Dropping it returns the memory to
//! its region.

use super::{LARGE, LOCAL_ROW, Memory};
use std::ops::Range;
use std::sync::Arc;

/// The region of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WindowKind {
    Shared,
    Local,
}

/// A range of addresses that one CTA owns: only the thread of the CTA accesses it.
pub(crate) struct Window {
    pub(super) memory: Arc<Memory>,
    pub(super) kind: WindowKind,
    pub(super) start: u64,
    pub(super) bytes: u64,
}

impl Window {
    /// First address.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// Size in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Makes a part of it new: zeros, or the pattern of [`Fill`](super::Fill) from its start. To observers,
    /// it is undefined.
    pub(crate) fn clear(&mut self, part: Range<u64>) {
        let end = part.end.min(self.bytes);
        let start = part.start.min(end);
        if let Some(shadow) = self.memory.shadow() {
            shadow.mark(self.start + start..self.start + end, true);
        }
        if self.memory.has_fill() {
            return self.memory.repeat(self.start + start, end - start);
        }
        if end - start >= LARGE {
            return self.memory.zero(self.start + start, end - start);
        }
        let at: *mut u8 = std::ptr::with_exposed_provenance_mut((self.start + start) as usize);
        // SAFETY: the bytes are inside the window, which stays committed while the memory lives (its arena
        // exposed its provenance). Only the thread that owns the window accesses them, and `&mut self` makes
        // the access exclusive.
        unsafe { at.write_bytes(0, (end - start) as usize) };
    }

    /// Makes the first rows of the local memories of a warp new, where the words of all lanes at one offset
    /// are a row. The pattern starts at the first byte of each lane's memory.
    pub(super) fn clear_rows(&mut self, rows: u64) {
        if self.memory.has_fill() {
            return self.memory.repeat_words(self.start, rows.min(self.bytes / LOCAL_ROW));
        }
        self.clear(0..rows * LOCAL_ROW);
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        if self.bytes >= LARGE {
            self.memory.store.arena.release(self.start, self.start + self.bytes);
        }
        self.memory.tables().window_heap(self.kind).give(self.start, self.bytes);
    }
}
