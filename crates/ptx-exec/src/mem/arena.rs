//! One reserved range of addresses, and the memory behind it.
//!
//! Invariants: the range is reserved once, and released when the arena is dropped. A byte below the committed
//! mark of its region stays readable and writable until then, regardless of allocations. So the owner of an
//! arena may access committed bytes from any thread, if racing accesses are atomic.
//!
//! The arena does not know allocations; [`super::heap`] and [`super::Memory`] do.

use ptx::check::module::AddressSize;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags};
use std::ptr::NonNull;

/// The granularity of committing and releasing in bytes: a multiple of all common page sizes (4, 16 and 64
/// KiB).
pub(super) const PAGE: u64 = 64 * 1024;

/// Size of the range for windows and allocations of the devices, if enough addresses are available.
pub(super) const FULL: u64 = 64 << 30;

/// Additional addresses for memory that host and devices share and for mapped pages. Chosen: programs reserve
/// several times the memory of a device.
const MORE: u64 = FULL + (1 << 40);

#[cfg(target_os = "linux")]
const DISCARD: rustix::mm::Advice = rustix::mm::Advice::LinuxDontNeed;
#[cfg(not(target_os = "linux"))]
const DISCARD: rustix::mm::Advice = rustix::mm::Advice::Normal;

/// A reserved range of addresses.
pub(super) struct Arena {
    base: NonNull<u8>,
    bytes: u64,
}

// SAFETY: the arena owns its range as a mutex owns its value. The pointer is only used to make places in it,
// and every access through a place is atomic or made by the one thread that owns the window (see `cell`).
unsafe impl Send for Arena {}
// SAFETY: as for `Send`; `&Arena` only commits, releases and names addresses, which the operating system
// makes thread-safe.
unsafe impl Sync for Arena {}

impl Arena {
    /// Reserves a range that addresses of this width can name: the largest size that the system grants twice,
    /// so that as much remains for the rest of the process where addresses are limited. Tries the same
    /// addresses in the same order each time, so that addresses are similar from run to run.
    pub(super) fn reserve(size: AddressSize) -> Option<Self> {
        const GIB: u64 = 1 << 30;
        const MIB: u64 = 1 << 20;
        // The hints are usually free; only the look of addresses depends on them.
        let (hints, sizes): (&[u64], &[u64]) = match size {
            AddressSize::Bits64 => {
                const SIZES: &[u64] =
                    &[FULL + MORE, FULL, 16 * GIB, 4 * GIB, GIB, 512 * MIB, 256 * MIB, 128 * MIB, 64 * MIB];
                (&[0x20_0000_0000, 0x40_0000_0000, 0x60_0000_0000, 0], SIZES)
            }
            AddressSize::Bits32 => (
                &[0x1000_0000, 0x2000_0000, 0x4000_0000, 0x6000_0000, 0x8000_0000, 0xa000_0000, 0xc000_0000],
                &[GIB, GIB / 2, GIB / 4, GIB / 8, GIB / 16],
            ),
        };
        let limit = match size {
            AddressSize::Bits64 => 1 << 47,
            AddressSize::Bits32 => 1 << 32,
        };
        for bytes in sizes {
            // If a hint is taken, the system chooses an address; it is used if it lies below the limit.
            let attempts = hints.iter().map(|hint| Self::map(*hint, *bytes));
            let mut kept = Vec::new();
            let mut at_hint = None;
            for arena in attempts.flatten() {
                if hints.contains(&arena.base()) {
                    at_hint = Some(arena);
                    break;
                }
                kept.push(arena);
            }
            let found = at_hint.or_else(|| kept.into_iter().find(|a| a.base() + a.bytes <= limit));
            if found.is_some() && Self::map(0, *bytes).is_some() {
                return found;
            }
        }
        None
    }

    fn map(hint: u64, bytes: u64) -> Option<Self> {
        let hint = std::ptr::without_provenance_mut(usize::try_from(hint).ok()?);
        let length = usize::try_from(bytes).ok()?;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new private mapping without MAP_FIXED replaces no mapping that exists.
        let base = unsafe { rustix::mm::mmap_anonymous(hint, length, ProtFlags::empty(), flags) }.ok()?;
        // SAFETY: the mapping is ours, and no access depends on its page size. Without huge pages the call
        // has no effect.
        #[cfg(target_os = "linux")]
        let _ = unsafe { rustix::mm::madvise(base, length, rustix::mm::Advice::LinuxHugepage) };
        Some(Self { base: NonNull::new(base.cast())?, bytes })
    }

    /// First address.
    pub(super) fn base(&self) -> u64 {
        self.base.as_ptr().expose_provenance() as u64
    }

    /// Size of the range.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Makes `start..end`, rounded out to pages, readable and writable; new bytes are zero. Returns whether
    /// the system granted it.
    pub(super) fn commit(&self, start: u64, end: u64) -> bool {
        let start = start / PAGE * PAGE;
        let end = end.next_multiple_of(PAGE).min(self.base() + self.bytes);
        if start < self.base() || start >= end {
            return start == end;
        }
        let flags = MprotectFlags::READ | MprotectFlags::WRITE;
        let at = self.base.as_ptr().with_addr(start as usize).cast();
        // SAFETY: the pages are in our own mapping (checked above), and adding rights invalidates no access.
        unsafe { rustix::mm::mprotect(at, (end - start) as usize, flags) }.is_ok()
    }

    /// Replaces `start..end`, whole pages of the range, by pages of a file. They stay readable and writable
    /// all the time. Returns whether the system granted it.
    ///
    /// Concurrent stores to these bytes can be lost.
    #[cfg(target_os = "linux")]
    pub(super) fn share(&self, start: u64, end: u64, file: &std::os::fd::OwnedFd, offset: u64) -> bool {
        let flags = MapFlags::SHARED | MapFlags::FIXED;
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        let Some(at) = self.pages(start, end) else { return false };
        // SAFETY: the pages are in our own mapping (checked by `pages`), and the new ones are as accessible
        // as the old; the file cannot become shorter (`pages::Pages`), so none of them faults.
        unsafe { rustix::mm::mmap(at, (end - start) as usize, rights, flags, file, offset) }.is_ok()
    }

    /// Not available: only Linux has this system call.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn share(&self, _start: u64, _end: u64, _file: &std::os::fd::OwnedFd, _offset: u64) -> bool {
        false
    }

    /// Undoes [`Arena::share`]: the pages become zero, and stay readable and writable. Returns whether the
    /// system granted it.
    pub(super) fn unshare(&self, start: u64, end: u64) -> bool {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        let Some(at) = self.pages(start, end) else { return false };
        // SAFETY: as in `share`.
        unsafe { rustix::mm::mmap_anonymous(at, (end - start) as usize, rights, flags) }.is_ok()
    }

    /// Releases the memory of pages of a file, for all processes that map them: they become zero.
    #[cfg(target_os = "linux")]
    pub(super) fn release_shared(&self, start: u64, end: u64) -> bool {
        let Some(at) = self.pages(start, end) else { return false };
        // SAFETY: as in `release`: a store of zeros.
        unsafe { rustix::mm::madvise(at, (end - start) as usize, rustix::mm::Advice::LinuxRemove) }.is_ok()
    }

    /// Does nothing: only Linux shares pages.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn release_shared(&self, _start: u64, _end: u64) -> bool {
        false
    }

    /// The pointer to `start`, if `start..end` are whole pages of the range.
    fn pages(&self, start: u64, end: u64) -> Option<*mut std::ffi::c_void> {
        let inside = start >= self.base() && start < end && end <= self.base() + self.bytes;
        let whole = start.is_multiple_of(PAGE) && end.is_multiple_of(PAGE);
        (inside && whole).then(|| self.base.as_ptr().with_addr(start as usize).cast())
    }

    /// Releases the memory of the whole pages in `start..end`: they stay mapped and become zero. Returns the
    /// released part.
    pub(super) fn release(&self, start: u64, end: u64) -> std::ops::Range<u64> {
        if !cfg!(target_os = "linux") {
            return start..start; // elsewhere `madvise` does not guarantee zeros
        }
        let first = start.next_multiple_of(PAGE).max(self.base());
        let last = end.min(self.base() + self.bytes) / PAGE * PAGE;
        if first >= last {
            return start..start;
        }
        let at = self.base.as_ptr().with_addr(first as usize).cast();
        // SAFETY: the pages are in our own private mapping (clamped above) and stay mapped. That their bytes
        // become zero is a store like any other to bytes that are accessed only by atomics and by the owners
        // of windows.
        match unsafe { rustix::mm::madvise(at, (last - first) as usize, DISCARD) } {
            Ok(()) => first..last,
            Err(_) => start..start,
        }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours alone, and no place in it outlives the arena.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.bytes as usize) };
    }
}
