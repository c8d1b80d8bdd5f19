//! Allocations that other processes can map.
//!
//! Exporting replaces the pages of an allocation, with their contents, by pages of a file that other
//! processes can open. The file has a page for each page of the heap, but memory only for exported pages. An
//! exported page stays in the file. A later allocation at the same address can be exported again, and an
//! importer that still maps the page then sees that allocation.
//!
//! Invariant: the caller guarantees that nothing accesses the contents while they move.

use super::arena::PAGE;
use super::rights::Rights;
use super::{Class, Memory, MemoryError, Pages, pages};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, PoisonError};

/// Bytes that are copied at once.
const PIECE: u64 = 1 << 20;

/// The exported pages.
#[derive(Default)]
pub(super) struct Exports {
    /// The file, with a page for each page of the heap.
    file: Option<Arc<Pages>>,
    /// The pages that are in the file, as ranges of addresses in ascending order, with gaps between.
    shared: Vec<Range<u64>>,
}

/// The place of an exported allocation, for another process.
#[derive(Clone, Debug)]
pub struct Exported {
    /// The file.
    pub pages: Arc<Pages>,
    /// Offset of the allocation in the file.
    pub offset: u64,
    /// Its size.
    pub bytes: u64,
}

impl Exports {
    /// Splits a range into parts that are all shared or all not shared.
    fn parts(&self, range: Range<u64>) -> Vec<(Range<u64>, bool)> {
        let mut at = range.start;
        let mut parts = Vec::new();
        for shared in &self.shared {
            let part = shared.start.max(range.start)..shared.end.min(range.end);
            if part.start >= part.end {
                continue;
            }
            if at < part.start {
                parts.push((at..part.start, false));
            }
            at = part.end;
            parts.push((part, true));
        }
        if at < range.end {
            parts.push((at..range.end, false));
        }
        parts
    }

    /// Records that a range is shared; no part of it may be shared already.
    fn add(&mut self, range: Range<u64>) {
        let place = self.shared.partition_point(|shared| shared.start < range.start);
        self.shared.insert(place, range);
        self.shared.dedup_by(|next, last| {
            let joined = last.end == next.start;
            if joined {
                last.end = next.end;
            }
            joined
        });
    }
}

impl Memory {
    /// Exports the allocation at an address. Its contents move: accesses to it, or to the rest of its pages,
    /// must not run meanwhile, and concurrent stores can be lost.
    ///
    /// # Errors
    /// [`MemoryError::NotAllocated`] if it is no global memory of a device; [`MemoryError::Share`].
    pub fn export(&self, address: u64) -> Result<Exported, MemoryError> {
        let tables = self.tables();
        let found = tables.live.get(&address);
        let own = |a: &&super::Allocation| a.class == Class::Global && matches!(a.rights, Rights::Owner(_));
        let bytes = found.filter(own).ok_or(MemoryError::NotAllocated { address })?.bytes;
        let first = self.store.regions.heap.start / PAGE * PAGE;
        let last = self.store.regions.heap.end / PAGE * PAGE;
        let range = address / PAGE * PAGE..(address + bytes.max(1)).next_multiple_of(PAGE);
        if !self.store.regions.heap.contains(&address)
            || range.start < self.store.arena.base()
            || range.end > last
        {
            return Err(MemoryError::NotAllocated { address });
        }
        // The host may write memory that it shares with devices at any time.
        let common = tables.live.range(..range.end).rev().take_while(|(at, a)| **at + a.bytes > range.start);
        if common.into_iter().any(|(_, a)| a.rights == Rights::All) {
            return Err(MemoryError::Share);
        }
        let mut exports = self.store.exports.lock().unwrap_or_else(PoisonError::into_inner);
        let pages = match &exports.file {
            Some(file) => Arc::clone(file),
            None => Arc::clone(exports.file.insert(Pages::whole(self.device, last - first)?)),
        };
        for (part, shared) in exports.parts(range) {
            if !shared {
                self.move_to(&pages, part.clone(), part.start - first)?;
                exports.add(part);
            }
        }
        drop((exports, tables));
        self.tell_shared(address, bytes);
        Ok(Exported { pages, offset: address - first, bytes })
    }

    /// Copies a range to a file, and replaces the range by the file.
    fn move_to(&self, pages: &Pages, range: Range<u64>, offset: u64) -> Result<(), MemoryError> {
        if !self.store.arena.commit(range.start, range.end) {
            return Err(MemoryError::OutOfMemory { bytes: range.end - range.start });
        }
        let file = File::from(pages.descriptor()?);
        let mut piece = vec![0; PIECE as usize];
        for at in range.clone().step_by(PIECE as usize) {
            let piece = &mut piece[..PIECE.min(range.end - at) as usize];
            self.get(at, piece);
            // Zero pages need no memory in the file.
            if piece.iter().any(|byte| *byte != 0) {
                let to = offset + (at - range.start);
                file.write_all_at(piece, to).map_err(|_| MemoryError::Share)?;
            }
        }
        let shared = self.store.arena.share(range.start, range.end, pages.file(), offset);
        if shared { Ok(()) } else { Err(MemoryError::Share) }
    }

    /// Releases the memory of the whole pages in a range: they stay mapped and become zero. Returns the
    /// released part.
    pub(super) fn release(&self, start: u64, end: u64) -> Range<u64> {
        let exports = self.store.exports.lock().unwrap_or_else(PoisonError::into_inner);
        let range = start.next_multiple_of(PAGE)..end / PAGE * PAGE;
        if range.is_empty() || exports.shared.is_empty() {
            return self.store.arena.release(start, end);
        }
        let given = exports.parts(range.clone()).into_iter().all(|(part, shared)| match shared {
            true => self.store.arena.release_shared(part.start, part.end),
            false => self.store.arena.release(part.start, part.end) == part,
        });
        if given { range } else { start..start }
    }
}

impl Pages {
    /// A sparse file of this size.
    fn whole(device: super::DeviceId, bytes: u64) -> Result<Arc<Self>, MemoryError> {
        Ok(Arc::new(Self::of_file(pages::create(device, bytes)?, bytes, device)))
    }
}
