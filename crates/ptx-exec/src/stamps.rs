//! Stamps: for each four bytes of guest memory, which thread wrote, read or updated them last, and between
//! which barriers. Native code and observers compare them to find accesses that may race.
//!
//! A launch is divided into **intervals**: one for each CTA from its start to its first barrier, from each
//! barrier to the next, and so on. Intervals have ascending numbers. A **stamp** is the number of an interval
//! and a thread of its CTA, as one number of 31 bits. So with [`Clock`] a comparison tells what an access
//! found:
//!
//! | stamp | meaning |
//! | --- | --- |
//! | below `first` | an earlier launch |
//! | `first` | several CTAs of this launch; for writes see [`Clock::saved`] |
//! | from `first` to below `start` | another CTA of this launch |
//! | from `start` to below `now` | the running CTA, before its last barrier: ordered |
//! | from `now` on | the running CTA since its last barrier: ordered for the same thread only |
//!
//! A launch in which these comparisons never find a conflict has no race: barriers of whole CTAs order all
//! conflicting accesses. Otherwise it may have one, and the launch is repeated in the interpreter, where the
//! tool observes it: [`Stamps`] keeps the contents of global memory before the first write, in chunks, and
//! restores them. A chunk is kept before a write to it is admitted: its cells then hold [`Clock::saved`].
//!
//! Invariants: a launch with stamps runs on one OS thread, one CTA after another; a CTA that is suspended and
//! resumed counts as a conflict. Numbers only grow until all stamps are cleared, which happens between
//! launches.
//!
//! What it does not do: it does not compare stamps. Observers do, and native code.

use crate::shadow::ShadowMemory;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Stamps are below this number, so that they compare alike as signed and as unsigned numbers.
const LIMIT: u32 = 1 << 31;

/// A launch that begins with less than this part of the numbers left clears all stamps first.
const FEW: u32 = LIMIT / 2;

/// Bytes of global memory that are kept at once before they are written. Chosen: the interpreter executes one
/// store for each chunk, which costs as much as copying it.
const CHUNK: u64 = 64 << 10;

/// The numbers that stamps are compared with, as native code reads them.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Clock {
    /// The current interval: the stamp of its thread 0.
    pub now: AtomicU32,
    /// The first interval of the running CTA.
    pub start: AtomicU32,
    /// The first number of the launch, which belongs to no interval.
    pub first: AtomicU32,
    /// The difference of two consecutive intervals: a power of two above the number of threads of a CTA. The
    /// last number of an interval stands for several of its threads.
    pub unit: AtomicU32,
}

impl Clock {
    /// The stamp that marks a word as kept and not written since: its chunk was copied in this launch.
    pub fn saved(&self) -> u32 {
        self.first.load(Relaxed) + self.unit.load(Relaxed)
    }

    /// Begins the next interval. If there are no numbers left, the interval goes on, so its barrier counts
    /// as none.
    pub fn advance(&self) {
        let next = self.now.load(Relaxed) + self.unit.load(Relaxed);
        if next < LIMIT {
            self.now.store(next, Relaxed);
        }
    }
}

/// The kinds of accesses that have stamps of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StampKind {
    /// Writes.
    Write,
    /// Reads.
    Read,
    /// Updates by atomic operations that do not race with each other.
    Update,
}

/// Contents of memory before the launch.
struct Kept {
    start: u64,
    bytes: Vec<u8>,
}

/// The stamps of a memory.
pub struct Stamps {
    /// By [`StampKind`].
    cells: [ShadowMemory; 3],
    guest: Range<u64>,
    clock: Clock,
    kept: Mutex<Vec<Kept>>,
    /// Whether a launch with stamps runs.
    active: AtomicBool,
    /// Whether two of its accesses may race.
    conflict: AtomicBool,
}

impl std::fmt::Debug for Stamps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stamps").field("clock", &self.clock).finish_non_exhaustive()
    }
}

impl Stamps {
    /// Reserves the stamps of these addresses. `None` if the system has too few addresses.
    pub(crate) fn reserve(guest: Range<u64>) -> Option<Self> {
        let cells = || ShadowMemory::reserve(guest.clone());
        let clock = Clock::default();
        clock.unit.store(1, Relaxed);
        clock.now.store(1, Relaxed);
        Some(Self {
            cells: [cells()?, cells()?, cells()?],
            guest,
            clock,
            kept: Mutex::default(),
            active: AtomicBool::new(false),
            conflict: AtomicBool::new(false),
        })
    }

    /// The numbers that stamps are compared with.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// What is added to an address that is a multiple of four, wrapping, for the address of its cell.
    pub fn distance(&self, kind: StampKind) -> u64 {
        self.cells[kind as usize].distance()
    }

    /// The cell of an address; `None` if the address has none.
    pub fn cell(&self, kind: StampKind, address: u64) -> Option<&AtomicU32> {
        self.cells[kind as usize].half(address & !3)
    }

    /// Whether a launch with stamps runs.
    pub fn is_active(&self) -> bool {
        self.active.load(Relaxed)
    }

    /// Two accesses may race: the launch stops soon, and is repeated.
    pub fn set_conflict(&self) {
        self.conflict.store(true, Relaxed);
    }

    /// The flag that [`Stamps::set_conflict`] sets.
    pub fn conflict(&self) -> &AtomicBool {
        &self.conflict
    }

    /// A launch begins, whose CTAs have so many threads.
    pub(crate) fn begin(&self, threads: u32) {
        let (clock, unit) = (&self.clock, (threads.next_multiple_of(32) + 1).next_power_of_two());
        let mut first = (clock.now.load(Relaxed) + clock.unit.load(Relaxed)).next_multiple_of(unit);
        if first >= LIMIT - FEW {
            self.cells.iter().for_each(|cells| cells.mark(self.guest.clone(), false));
            first = unit;
        }
        clock.unit.store(unit, Relaxed);
        clock.first.store(first, Relaxed);
        // The next number marks kept chunks.
        clock.now.store(first + unit, Relaxed);
        clock.start.store(first + unit, Relaxed);
        self.kept().clear();
        self.conflict.store(false, Relaxed);
        self.active.store(true, Relaxed);
    }

    /// A CTA begins.
    pub(crate) fn begin_cta(&self) {
        let clock = &self.clock;
        let before = clock.now.load(Relaxed);
        clock.advance();
        let now = clock.now.load(Relaxed);
        clock.start.store(now, Relaxed);
        if now == before {
            // The interval would be that of another CTA.
            self.set_conflict();
        }
    }

    /// The launch ends. Returns the contents of memory before it.
    pub(crate) fn end(&self) -> Vec<(u64, Vec<u8>)> {
        self.active.store(false, Relaxed);
        std::mem::take(&mut *self.kept()).into_iter().map(|kept| (kept.start, kept.bytes)).collect()
    }

    /// Whether a write to an address may be admitted, because the contents before it are kept.
    pub fn is_kept(&self, address: u64) -> bool {
        let cell = self.cell(StampKind::Write, address);
        cell.is_some_and(|cell| cell.load(Relaxed) >= self.clock.saved())
    }

    /// Keeps the chunk around an address, as far as it belongs to this allocation, whose bytes `contents`
    /// reads. Without contents it is only marked.
    pub fn keep(
        &self,
        address: u64,
        allocation: Range<u64>,
        contents: Option<&dyn Fn(Range<u64>) -> Vec<u8>>,
    ) {
        let start = (address / CHUNK * CHUNK).max(allocation.start);
        let end = (address / CHUNK * CHUNK + CHUNK).min(allocation.end);
        if !(start..end).contains(&address) {
            return;
        }
        if let Some(contents) = contents {
            let bytes = contents(start..end);
            self.kept().push(Kept { start, bytes });
        }
        let saved = self.clock.saved();
        let cells = self.cells[StampKind::Write as usize].halves(start & !3..end.next_multiple_of(4));
        for cell in cells.unwrap_or_default().iter().filter(|cell| cell.load(Relaxed) < saved) {
            cell.store(saved, Relaxed);
        }
    }

    /// Bytes that others write or free while a launch runs are not restored.
    pub fn release(&self, range: Range<u64>) {
        let mut kept = self.kept();
        let all = std::mem::take(&mut *kept);
        for Kept { start, bytes } in all {
            let end = start + bytes.len() as u64;
            if range.end <= start || end <= range.start {
                kept.push(Kept { start, bytes });
                continue;
            }
            if start < range.start {
                kept.push(Kept { start, bytes: bytes[..(range.start - start) as usize].to_vec() });
            }
            if range.end < end {
                kept.push(Kept { start: range.end, bytes: bytes[(range.end - start) as usize..].to_vec() });
            }
        }
    }

    fn kept(&self) -> MutexGuard<'_, Vec<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 0x20_0000_0000;

    #[test]
    fn a_chunk_is_kept_before_it_is_written() {
        let stamps = Stamps::reserve(START..START + (1 << 24)).expect("addresses");
        stamps.begin(64);
        stamps.begin_cta();
        let allocation = START + 0x100..START + 0x30000;
        let at = START + 0x11000;
        assert!(!stamps.is_kept(at));
        let cell = stamps.cell(StampKind::Write, at + 8).expect("a cell");
        let mine = stamps.clock().now.load(Relaxed) + 5;
        cell.store(mine, Relaxed);
        stamps.keep(at, allocation.clone(), Some(&|range| vec![7; (range.end - range.start) as usize]));
        assert!(stamps.is_kept(at) && stamps.is_kept(START + 0x10000) && stamps.is_kept(START + 0x1fffc));
        assert!(!stamps.is_kept(START + 0xfffc) && !stamps.is_kept(START + 0x20000));
        assert_eq!(cell.load(Relaxed), mine, "stamps of this launch stay");
        stamps.keep(START + 0x200, allocation, Some(&|range| vec![8; (range.end - range.start) as usize]));
        stamps.release(START + 0x12000..START + 0x13000);
        let ranges: Vec<_> =
            stamps.end().into_iter().map(|(at, bytes)| (at - START, bytes.len(), bytes[0])).collect();
        assert_eq!(ranges, [(0x10000, 0x2000, 7), (0x13000, 0xd000, 7), (0x100, 0xff00, 8)]);
        // To the next launch, nothing is kept.
        stamps.begin(1024);
        assert!(!stamps.is_kept(at));
        assert!(cell.load(Relaxed) < stamps.clock().first.load(Relaxed));
    }

    #[test]
    fn numbers_end_with_a_conflict_and_begin_anew() {
        let stamps = Stamps::reserve(START..START + (1 << 20)).expect("addresses");
        stamps.begin(1024);
        let cell = stamps.cell(StampKind::Read, START).expect("a cell");
        cell.store(9, Relaxed);
        while !stamps.conflict().load(Relaxed) {
            stamps.begin_cta();
        }
        let now = stamps.clock().now.load(Relaxed);
        assert!(now < LIMIT && now > LIMIT - 4096);
        stamps.clock().advance();
        assert_eq!(stamps.clock().now.load(Relaxed), now);
        stamps.begin(32);
        assert!(!stamps.conflict().load(Relaxed));
        assert_eq!((cell.load(Relaxed), stamps.clock().first.load(Relaxed)), (0, 64));
    }
}
