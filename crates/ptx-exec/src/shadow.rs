//! Shadow memory: a byte for each byte of guest memory, at a fixed distance from it, whose bits say which
//! bits of that byte are undefined. Observers and native code of watched kernels read and write it.
//!
//! Invariants: the shadow of every address of the arena is readable and writable while this value lives. It
//! takes memory only where it was written; large ranges of equal bytes take none. Memory is defined unless it
//! was marked as undefined. All accesses are atomic, so races of a guest are races of its shadow.
//!
//! What it does not do: it draws no conclusions, and marks nothing by itself except windows that begin.

use rustix::mm::{MapFlags, ProtFlags};
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

/// The granularity of mappings in bytes: a multiple of all common page sizes.
const PAGE: u64 = 64 * 1024;

/// Ranges from this size on are mapped instead of written. Chosen: a mapping costs as much as writing about
/// a tenth of that.
const LARGE: u64 = 1 << 20;

/// The size of the file that large undefined ranges map. A mapping of a range has one part for each multiple
/// of it, and the system limits the number of parts of a process to about 65,000.
const FILE: u64 = 4 << 20;

/// The undefined bits of guest memory.
pub struct ShadowMemory {
    /// Addresses of the guest.
    guest: Range<u64>,
    /// The mapping, and its size.
    mapping: (NonNull<u8>, usize),
    /// The shadow of the first address.
    start: NonNull<u8>,
    /// A file of ones; `None` if the system grants none.
    ones: OnceLock<Option<std::os::fd::OwnedFd>>,
}

// SAFETY: the value owns its mapping as a mutex owns its value; all accesses to it are atomic.
unsafe impl Send for ShadowMemory {}
// SAFETY: as for `Send`; mapping pages anew is made thread-safe by the operating system.
unsafe impl Sync for ShadowMemory {}

impl std::fmt::Debug for ShadowMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShadowMemory").field("guest", &self.guest).finish_non_exhaustive()
    }
}

impl ShadowMemory {
    /// Reserves the shadow of these addresses, which begin with a page. Everything is defined. `None` if the
    /// system has too few addresses.
    pub(crate) fn reserve(guest: Range<u64>) -> Option<Self> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        let bytes = usize::try_from(guest.end.checked_sub(guest.start)?).ok()?;
        // A shadow begins at a multiple of the granularity, so that it is aligned like its memory. The size
        // is a multiple of huge pages, so that later mappings are aligned to those as they are without a
        // shadow.
        let room = bytes.checked_add(2 << 20)?;
        // SAFETY: a new private mapping without MAP_FIXED replaces no mapping that exists.
        let all = unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), room, rights, flags) }.ok()?;
        let skip = (all.expose_provenance() as u64).next_multiple_of(PAGE) - all.addr() as u64;
        // SAFETY: less than `PAGE` bytes are skipped, and the mapping has that many more than are needed.
        let start = unsafe { all.cast::<u8>().add(skip as usize) };
        let mapping = (NonNull::new(all.cast())?, room);
        Some(Self { guest, mapping, start: NonNull::new(start)?, ones: OnceLock::new() })
    }

    /// What is added to an address, wrapping, for the address of its shadow.
    pub fn distance(&self) -> u64 {
        (self.start.as_ptr().addr() as u64).wrapping_sub(self.guest.start)
    }

    /// Whether all these addresses have a shadow.
    pub fn covers(&self, range: &Range<u64>) -> bool {
        range.start >= self.guest.start && range.end <= self.guest.end
    }

    /// The shadow of an address.
    fn byte(&self, address: u64) -> Option<&AtomicU8> {
        if !self.guest.contains(&address) {
            return None;
        }
        // SAFETY: the shadow of the address is inside the mapping (checked above).
        let place = unsafe { self.start.as_ptr().add((address - self.guest.start) as usize) };
        // SAFETY: the mapping lives as long as `self`, and is only accessed by atomics and by native code,
        // whose races are those of the guest.
        Some(unsafe { AtomicU8::from_ptr(place) })
    }

    /// The shadow of eight bytes from a multiple of eight on.
    fn word(&self, address: u64) -> Option<&AtomicU64> {
        if !address.is_multiple_of(8) || !self.covers(&(address..address.checked_add(8)?)) {
            return None;
        }
        // SAFETY: the shadow of the address is inside the mapping (checked above).
        let place = unsafe { self.start.as_ptr().add((address - self.guest.start) as usize) };
        // SAFETY: as in `byte`; the shadow is aligned like the guest's memory.
        Some(unsafe { AtomicU64::from_ptr(place.cast()) })
    }

    /// The shadow of four bytes from a multiple of four on.
    pub(crate) fn half(&self, address: u64) -> Option<&AtomicU32> {
        if !address.is_multiple_of(4) || !self.covers(&(address..address.checked_add(4)?)) {
            return None;
        }
        // SAFETY: the shadow of the address is inside the mapping (checked above).
        let place = unsafe { self.start.as_ptr().add((address - self.guest.start) as usize) };
        // SAFETY: as in `byte`; the shadow is aligned like the guest's memory.
        Some(unsafe { AtomicU32::from_ptr(place.cast()) })
    }

    /// The shadow of a part of the range that begins and ends with multiples of four, by four bytes.
    pub(crate) fn halves(&self, range: Range<u64>) -> Option<&[AtomicU32]> {
        if !range.start.is_multiple_of(4) || !self.covers(&range) || range.start > range.end {
            return None;
        }
        // SAFETY: the shadow of the range is inside the mapping (checked above).
        let place = unsafe { self.start.as_ptr().add((range.start - self.guest.start) as usize) };
        let count = (range.end - range.start) as usize / 4;
        // SAFETY: as in `byte`; the shadow is aligned like the guest's memory.
        Some(unsafe { std::slice::from_raw_parts(place.cast::<AtomicU32>(), count) })
    }

    /// The undefined bits of up to eight bytes, the first in the low byte. Without a shadow: none.
    pub fn bits(&self, address: u64, bytes: u32) -> u64 {
        // Most accesses are inside a word.
        let (start, at) = (address / 8 * 8, (address % 8) as u32);
        if at + bytes <= 8
            && let Some(word) = self.word(start)
        {
            let bits = word.load(Relaxed) >> (8 * at);
            return if bytes == 8 { bits } else { bits & ((1 << (8 * bytes)) - 1) };
        }
        let byte = |i: u32| {
            let at = self.byte(address.wrapping_add(u64::from(i)));
            at.map_or(0, |at| u64::from(at.load(Relaxed)) << (8 * i))
        };
        (0..bytes.min(8)).fold(0, |bits, i| bits | byte(i))
    }

    /// Sets the undefined bits of up to eight bytes.
    pub fn set(&self, address: u64, bytes: u32, bits: u64) {
        if let (8, Some(word)) = (bytes, self.word(address)) {
            return word.store(bits, Relaxed);
        }
        for i in 0..bytes.min(8) {
            if let Some(at) = self.byte(address.wrapping_add(u64::from(i))) {
                at.store((bits >> (8 * i)) as u8, Relaxed);
            }
        }
    }

    /// Marks the part of a range that has a shadow as undefined, or as defined. Where the system grants no
    /// mapping, large ranges take memory.
    pub fn mark(&self, range: Range<u64>, undefined: bool) {
        let (start, end) = (range.start.max(self.guest.start), range.end.min(self.guest.end));
        if start >= end {
            return;
        }
        let whole = start.next_multiple_of(PAGE)..end / PAGE * PAGE;
        if whole.start < whole.end && whole.end - whole.start >= LARGE && self.remap(whole.clone(), undefined)
        {
            self.write(start..whole.start, undefined);
            self.write(whole.end..end, undefined);
        } else {
            self.write(start..end, undefined);
        }
    }

    /// Writes the bytes of a range. Pages that were never written stay so if they are to be zero.
    fn write(&self, range: Range<u64>, undefined: bool) {
        let (byte, word) = if undefined { (u8::MAX, u64::MAX) } else { (0, 0) };
        let mut at = range.start;
        while at < range.end {
            match self.word(at).filter(|_| range.end - at >= 8) {
                Some(place) => {
                    if undefined || place.load(Relaxed) != 0 {
                        place.store(word, Relaxed);
                    }
                    at += 8;
                }
                None => {
                    if let Some(place) = self.byte(at)
                        && (undefined || place.load(Relaxed) != 0)
                    {
                        place.store(byte, Relaxed);
                    }
                    at += 1;
                }
            }
        }
    }

    /// Replaces whole pages. Returns whether the system granted it.
    fn remap(&self, range: Range<u64>, undefined: bool) -> bool {
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
        let place = |at: u64| self.start.as_ptr().wrapping_add((at - self.guest.start) as usize).cast();
        if !undefined {
            let bytes = (range.end - range.start) as usize;
            // SAFETY: the pages are in our own mapping; the new ones are as accessible as the old, and that
            // their bytes change is like a store.
            return unsafe { rustix::mm::mmap_anonymous(place(range.start), bytes, rights, flags) }.is_ok();
        }
        let Some(ones) = self.ones.get_or_init(file_of_ones) else { return false };
        let mut at = range.start;
        while at < range.end {
            let bytes = FILE.min(range.end - at) as usize;
            // SAFETY: as above; the file is as long as every mapping of it, and cannot become shorter.
            if unsafe { rustix::mm::mmap(place(at), bytes, rights, flags, ones, 0) }.is_err() {
                return false;
            }
            at += FILE;
        }
        true
    }

    /// Runs of bytes with undefined bits in a range, at most so many, in ascending order.
    pub fn runs(&self, range: Range<u64>, most: usize) -> Vec<Range<u64>> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        let mut at = range.start;
        while at < range.end && runs.len() <= most {
            let bytes = (8 - at % 8).min(range.end - at);
            let bits = self.bits(at, bytes as u32);
            if bits != 0 {
                for (byte, address) in (at..at + bytes).enumerate() {
                    if bits >> (8 * byte) & 0xff == 0 {
                        continue;
                    }
                    match runs.last_mut() {
                        Some(last) if last.end == address => last.end += 1,
                        _ => runs.push(address..address + 1),
                    }
                }
            }
            at += bytes;
        }
        runs.truncate(most);
        runs
    }

    /// Copies the bits of bytes to other bytes; the ranges may overlap.
    pub fn copy(&self, from: u64, to: u64, bytes: u64) {
        /// Bytes that are copied at once.
        const PART: u64 = 4096;
        let backwards = to > from && to - from < bytes;
        let parts = bytes.div_ceil(PART);
        let mut words = Vec::with_capacity(PART as usize / 8);
        for number in 0..parts {
            let at = PART * if backwards { parts - 1 - number } else { number };
            let size = (bytes - at).min(PART);
            words.clear();
            let offsets = (0..size).step_by(8).map(|offset| (offset, (size - offset).min(8) as u32));
            words.extend(offsets.clone().map(|(offset, count)| self.bits(from + at + offset, count)));
            for ((offset, count), bits) in offsets.zip(&words) {
                // A page that is defined on both sides stays untouched.
                if *bits != 0 || self.bits(to + at + offset, count) != 0 {
                    self.set(to + at + offset, count, *bits);
                }
            }
        }
    }
}

impl Drop for ShadowMemory {
    fn drop(&mut self) {
        let (start, bytes) = self.mapping;
        // SAFETY: the mapping is ours alone, and no reference into it outlives the value.
        let _ = unsafe { rustix::mm::munmap(start.as_ptr().cast(), bytes) };
    }
}

/// A file of ones that cannot become shorter.
#[cfg(target_os = "linux")]
fn file_of_ones() -> Option<std::os::fd::OwnedFd> {
    use rustix::fs::{MemfdFlags, SealFlags};
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = rustix::fs::memfd_create("ptxvm undefined memory", flags).ok()?;
    let part = vec![u8::MAX; 1 << 20];
    for at in (0..FILE).step_by(part.len()) {
        if rustix::io::pwrite(&file, &part, at).ok()? != part.len() {
            return None;
        }
    }
    rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL).ok()?;
    Some(file)
}

/// Not available: only Linux has this system call.
#[cfg(not(target_os = "linux"))]
fn file_of_ones() -> Option<std::os::fd::OwnedFd> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Addresses of a guest, which has no memory there.
    const START: u64 = 0x20_0000_0000;
    const END: u64 = START + (1 << 30);

    fn shadow() -> ShadowMemory {
        ShadowMemory::reserve(START..END).expect("addresses")
    }

    #[test]
    fn bits_and_ranges() {
        let shadow = shadow();
        let base = START + 0x1003;
        shadow.mark(base..base + 21, true);
        assert_eq!(shadow.bits(base - 1, 2), 0xff00);
        assert_eq!(shadow.bits(base + 20, 2), 0xff);
        assert_eq!(shadow.bits(base + 1, 8), u64::MAX);
        shadow.set(base + 5, 4, 0xf0);
        assert_eq!(shadow.bits(base + 5, 8), 0xffff_ffff_0000_00f0);
        assert_eq!(shadow.runs(base - 9..base + 99, 9), [base..base + 6, base + 9..base + 21]);
        assert_eq!(shadow.runs(base - 9..base + 99, 1), vec![base..base + 6]);
        shadow.copy(base + 4, base + 6, 8);
        assert_eq!(shadow.bits(base + 4, 8), 0xff00_0000_f0ff_f0ff);
        shadow.mark(base..base + 99, false);
        assert!(shadow.runs(base - 9..base + 999, 9).is_empty());
    }

    /// A range of 70 MiB is several mappings; its ends are not at pages.
    #[test]
    fn large_ranges_take_no_memory() {
        let shadow = shadow();
        let (start, end) = (START + 0x12345, START + (70 << 20) + 77);
        shadow.mark(start..end, true);
        for at in [start, start + PAGE, start + FILE - 1, start + 3 * FILE, end - 1] {
            assert_eq!(shadow.bits(at, 1), 0xff, "{at:x}");
        }
        assert_eq!((shadow.bits(start - 1, 1), shadow.bits(end, 1)), (0, 0));
        assert_eq!(shadow.runs(start - 5..end + 5, 5), vec![start..end]);
        // A page that is written is a copy: the other mappings of the file keep their ones.
        shadow.set(start + FILE, 8, 0);
        assert_eq!(shadow.bits(start + 2 * FILE, 8), u64::MAX);
        shadow.mark(start + 9..end - 9, false);
        assert_eq!(shadow.runs(start - 5..end + 5, 5), vec![start..start + 9, end - 9..end]);
    }

    #[test]
    fn addresses_outside_are_defined() {
        let shadow = shadow();
        shadow.mark(START - 4..START + 4, true);
        shadow.mark(END - 4..u64::MAX, true);
        for outside in [0, START - 1, END, u64::MAX - 3] {
            assert_eq!(shadow.bits(outside, 1), 0, "{outside:x}");
            shadow.set(outside, 8, u64::MAX);
        }
        assert_eq!(shadow.bits(END - 4, 8), 0xffff_ffff);
    }
}
