//! Checked access to the process's own memory, for C interfaces whose callers may pass wrong pointers.
//!
//! A pointer from C is treated as a number. [`could_be`] rejects numbers that are no address of any program.
//! [`read`] and [`write()`] let the system copy, which checks each page first. [`permits`] checks each page
//! of a range that is accessed next; [`is_mapped`] and [`overwrite`] are cheaper checks. Where a filter of
//! system calls forbids these, they return [`Refused`], and the caller decides whether to trust the pointer.
//! [`get`], [`get_all`] and [`put`] combine them to copy typed values; [`could_put`] tells beforehand whether
//! a value can be written. [`Mappings`] finds the memory around an address. [`is_forked`] tells whether the
//! process is a forked child, and [`log`] writes what `PTXVM_LOG` asks for.
//!
//! Invariant: no function faults, except that [`get`], [`get_all`] and [`put`] trust the pointer where the
//! system refuses to check it. What the crate does not do: it cannot tell whether memory belongs to something
//! else than the caller meant, and memory that is there at the check may be gone when it is used.

mod fork;
#[cfg(target_os = "linux")]
mod linux;
pub mod log;
mod mappings;
#[cfg(not(target_os = "linux"))]
mod other;
mod values;

pub use fork::{is_forked, watch};
#[cfg(target_os = "linux")]
use linux as system;
pub use mappings::{Mapping, Mappings};
#[cfg(not(target_os = "linux"))]
use other as system;
use std::ops::Range;
pub use values::{could_put, get, get_all, put};

/// Addresses that programs have. The first 64 KiB are null pointers with an offset, and the upper half is the
/// kernel's.
const ADDRESSES: Range<usize> = 0x1_0000..if cfg!(target_arch = "x86_64") { 1 << 47 } else { 1 << 48 };
/// The granularity of mappings: the smallest page size of the supported hosts.
const PAGE: usize = 4096;
/// Most pages of a range of which each page is tested for being readable.
const FEW: usize = 4;
/// Bytes that [`text`] reads at a time after its first reads.
const PART: usize = 16 * PAGE;
/// Bytes above the stack pointer that are taken to be variables of calling functions, and so to be mapped.
const FRAMES: usize = 64 << 10;

/// What is done with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Its bytes are read.
    Read,
    /// Its bytes are replaced.
    Write,
}

/// The system does not let this process copy its memory by address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

/// Whether `bytes` bytes at an address could be memory of a program: not near null, not beyond the addresses
/// that programs have, not wrapping around. A range of zero bytes always could be.
#[inline]
pub fn could_be(address: usize, bytes: usize) -> bool {
    bytes == 0 || ADDRESSES.contains(&address) && bytes <= ADDRESSES.end - address
}

/// Whether the bytes lie in variables of the calling functions, which are known to be mapped.
#[inline]
pub fn is_in_callers(address: usize, bytes: usize) -> bool {
    let here = 0u8;
    let stack = (&raw const here).addr();
    address > stack && bytes < FRAMES && address - stack < FRAMES - bytes
}

/// Copies bytes from an address, up to the first that cannot be read, and returns how many were copied.
///
/// # Errors
/// [`Refused`].
pub fn read(address: usize, into: &mut [u8]) -> Result<usize, Refused> {
    // SAFETY: the slice is borrowed exclusively for the call.
    unsafe { read_raw(address, into.as_mut_ptr(), into.len()) }
}

/// Like [`read`], for a destination that is not a slice of bytes.
///
/// # Errors
/// [`Refused`].
///
/// # Safety
/// `into` is valid for writing `bytes` bytes.
pub unsafe fn read_raw(address: usize, into: *mut u8, bytes: usize) -> Result<usize, Refused> {
    if bytes == 0 || !could_be(address, bytes) {
        return Ok(0);
    }
    // SAFETY: the caller promises that `into` is valid for writing.
    unsafe { system::read(address, into, bytes) }
}

/// Copies bytes to an address, up to the first that cannot be written, and returns how many were copied.
///
/// # Errors
/// [`Refused`].
pub fn write(address: usize, from: &[u8]) -> Result<usize, Refused> {
    // SAFETY: the slice is borrowed for the call.
    unsafe { write_raw(address, from.as_ptr(), from.len()) }
}

/// Like [`write()`], for a source that is not a slice of bytes, such as a value with padding.
///
/// # Errors
/// [`Refused`].
///
/// # Safety
/// `from` is valid for reading `bytes` bytes.
pub unsafe fn write_raw(address: usize, from: *const u8, bytes: usize) -> Result<usize, Refused> {
    if bytes == 0 || !could_be(address, bytes) {
        return Ok(0);
    }
    // SAFETY: the caller promises that `from` is valid for reading.
    unsafe { system::write(address, from, bytes) }
}

/// Whether all of a range is mapped. In a range of up to four pages each page is also tested for being
/// readable; in a longer one only the first and the last page are.
pub fn is_mapped(address: usize, bytes: usize) -> bool {
    if bytes == 0 {
        return true;
    }
    if !could_be(address, bytes) {
        return false;
    }
    let (first, last) = (address / PAGE, (address + bytes - 1) / PAGE);
    let pages = last - first + 1;
    let mapped = || system::is_mapped(first * PAGE, pages * PAGE);
    // If the system does not let us test reading, a mapped page counts as readable.
    let readable = |page: usize| system::readable(page * PAGE).unwrap_or_else(|_| mapped());
    if pages <= FEW {
        return (first..=last).all(readable);
    }
    mapped() && readable(first) && readable(last)
}

/// Whether a few words can be written, tested by overwriting the first and the last with arbitrary values.
/// The caller writes the words next. `bytes` is a multiple of four and at most a page.
///
/// # Errors
/// [`Refused`].
pub fn overwrite(address: usize, bytes: usize) -> Result<bool, Refused> {
    if bytes < 4 || !could_be(address, bytes) {
        return Ok(false);
    }
    Ok(system::overwrite(address)? && (bytes == 4 || system::overwrite(address + bytes - 4)?))
}

/// Whether each page of a range permits an access. Nothing in memory changes, but pages that were never used
/// are mapped, as the access would do it; the caller therefore asks only for what it accesses next.
pub fn permits(address: usize, bytes: usize, access: Access) -> bool {
    if bytes == 0 {
        return true;
    }
    if !could_be(address, bytes) {
        return false;
    }
    let (first, last) = (address / PAGE, (address + bytes - 1) / PAGE);
    let pages = last - first + 1;
    if access == Access::Read && pages <= FEW {
        return is_mapped(address, bytes);
    }
    system::permits(first * PAGE, pages * PAGE, access)
        .unwrap_or_else(|Refused| is_listed(address, bytes, access))
}

/// Whether all of a range may be written, by the system's list of mappings: for memory that is not accessed
/// soon. Memory that may be written but not read does not count. Without the list, the same as [`is_mapped`].
pub fn is_writable(address: usize, bytes: usize) -> bool {
    could_be(address, bytes) && is_listed(address, bytes, Access::Write)
}

/// Whether all of a range permits an access by the system's list of mappings; without that list, the same as
/// [`is_mapped`]. The system is asked about the range where it can answer that: to read the whole list takes
/// 0.1 milliseconds or more.
fn is_listed(address: usize, bytes: usize, access: Access) -> bool {
    let range = address..address + bytes;
    let asked = system::List::open();
    asked.and_then(|list| permitted(range.clone(), access, |at| list.mapping_at(at))).unwrap_or_else(
        |Refused| match std::fs::read_to_string("/proc/self/maps") {
            Ok(list) => is_permitted_by(&list, range, access),
            Err(_) => is_mapped(address, bytes),
        },
    )
}

/// Whether the lines of `/proc/self/maps` cover a range with memory that permits an access.
fn is_permitted_by(list: &str, range: Range<usize>, access: Access) -> bool {
    let all = mappings::all(list);
    let mapping_at = |at| Ok(all.iter().find(|mapping| mapping.range.contains(&at)).cloned());
    permitted(range, access, mapping_at) == Ok(true)
}

/// Whether readable mappings cover a range and permit an access everywhere.
fn permitted(
    range: Range<usize>,
    access: Access,
    mapping_at: impl Fn(usize) -> Result<Option<Mapping>, Refused>,
) -> Result<bool, Refused> {
    let mut at = range.start;
    while at < range.end {
        match mapping_at(at)? {
            Some(mapping) if access == Access::Read || mapping.writable => at = mapping.range.end,
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// The bytes from an address up to the first zero; `None` if memory ends before a zero, or if the text is
/// longer than `most` bytes.
///
/// # Errors
/// [`Refused`].
pub fn text(address: usize, most: usize) -> Result<Option<Vec<u8>>, Refused> {
    let mut text = Vec::new();
    let mut part = [0u8; 256];
    let mut large = Vec::new();
    loop {
        let Some(at) = address.checked_add(text.len()) else { return Ok(None) };
        // Names are short; texts of modules are long.
        let into = if text.len() < part.len() {
            &mut part[..]
        } else {
            large.resize(PART, 0);
            &mut large[..]
        };
        // The page after the text may be unmapped; a read then returns fewer bytes.
        let room = into.len().min(ADDRESSES.end.saturating_sub(at));
        let mut count = read(at, &mut into[..room])?;
        if count == 0 {
            count = read(at, &mut into[..room.min(PAGE - at % PAGE)])?;
        }
        match into[..count].iter().position(|byte| *byte == 0) {
            Some(end) => {
                text.extend_from_slice(&into[..end]);
                return Ok((text.len() <= most).then_some(text));
            }
            None => text.extend_from_slice(&into[..count]),
        }
        if count == 0 || text.len() > most {
            return Ok(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address<T>(of: &T) -> usize {
        (&raw const *of).expose_provenance()
    }

    #[test]
    fn numbers_that_are_no_addresses_are_sorted_out() {
        for (at, bytes) in [(0, 1), (8, 8), (0xffff, 1), (usize::MAX, 1), (1 << 60, 4), (1 << 40, usize::MAX)]
        {
            assert!(!could_be(at, bytes), "{at:#x}, {bytes}");
            assert_eq!(read(at, &mut [0; 4]), Ok(0));
            assert!(!is_mapped(at, bytes));
        }
        assert!(could_be(0, 0) && could_be(1 << 40, 1 << 40));
    }

    #[test]
    fn memory_is_copied_as_far_as_it_is_there() {
        let value = Box::new([7u8; 100]);
        let mut copy = [0; 100];
        assert_eq!(read(address(&*value), &mut copy), Ok(100));
        assert_eq!(copy, *value);
        // No program maps page 5, and a constant cannot be written.
        static CONSTANT: [u8; 8] = *b"constant";
        assert_eq!(read(0x5_0000, &mut copy), Ok(0));
        assert_eq!(write(0x5_0000, &copy), Ok(0));
        assert_eq!(write(address(&CONSTANT), &copy[..8]), Ok(0));
        assert!(is_mapped(address(&CONSTANT), 8) && permits(address(&CONSTANT), 8, Access::Read));
        assert!(!permits(address(&CONSTANT), 8, Access::Write));
        let mut words = Box::new([7u32; 10]);
        let place = (&raw mut *words).expose_provenance();
        assert_eq!(overwrite(place, 40), Ok(true));
        assert_eq!(words[1..9], [7; 8]);
        assert_eq!((overwrite(0x5_0000, 4), overwrite(address(&CONSTANT), 8)), (Ok(false), Ok(false)));
        assert!(is_writable(address(&*value), 100) && !is_writable(address(&*value), 1 << 45));
        assert!(!is_writable(address(&CONSTANT), 8));
        let large = vec![1u8; 1 << 20];
        let at = large.as_ptr().expose_provenance();
        assert!(is_mapped(at, 1 << 20) && !is_mapped(at, 1 << 45));
        for access in [Access::Read, Access::Write] {
            assert!(permits(address(&*value), 100, access) && permits(at, 1 << 20, access));
            assert!(!permits(at, 1 << 45, access) && !permits(0x5_0000, 1, access));
            assert!(!permits(0, 8, access) && permits(0, 0, access));
        }
        assert!(large.iter().all(|byte| *byte == 1));
    }

    #[test]
    fn variables_of_callers_are_known() {
        let variable = 1u64;
        assert!(is_in_callers(address(&variable), 8));
        assert!(!is_in_callers(address(&*Box::new(1u64)), 8) && !is_in_callers(0, 1));
        assert!(!is_in_callers(usize::MAX, 1) && !is_in_callers(address(&variable), usize::MAX));
    }

    #[test]
    fn texts_end_with_a_zero_that_is_there() {
        for length in [0, 1, 255, 256, 257, 100_000] {
            let mut whole = vec![b'x'; length];
            whole.push(0);
            let found = text(whole.as_ptr().expose_provenance(), 1 << 20);
            assert_eq!(found, Ok(Some(whole[..length].to_vec())));
        }
        let long = vec![b'x'; 5000];
        assert_eq!(text(long.as_ptr().expose_provenance(), 1000), Ok(None));
        assert_eq!((text(0, 10), text(usize::MAX - 3, 10)), (Ok(None), Ok(None)));
    }

    /// Pages that can be read and written, one that cannot be accessed, and one that can only be read.
    #[cfg(target_os = "linux")]
    #[test]
    fn each_page_of_a_range_counts() {
        use std::ffi::{c_int, c_void};
        // SAFETY: the declarations have the signatures that POSIX gives these functions of the C library.
        unsafe extern "C" {
            fn mmap(
                at: *mut c_void,
                bytes: usize,
                rights: c_int,
                flags: c_int,
                file: c_int,
                offset: i64,
            ) -> *mut c_void;
            fn mprotect(at: *mut c_void, bytes: usize, rights: c_int) -> c_int;
        }
        const PAGES: usize = 20;
        // SAFETY: a new mapping replaces none.
        // Flags of Linux: private and anonymous.
        let start = unsafe { mmap(std::ptr::null_mut(), PAGES * PAGE, 3, 0x22, -1, 0) };
        for (page, rights) in [(8, 0), (15, 1)] {
            // SAFETY: the page is one of the mapping's.
            let closed = unsafe { mprotect(start.wrapping_byte_add(page * PAGE), PAGE, rights) };
            assert_eq!(closed, 0, "a page keeps its rights");
        }
        let at = |page: usize| start.expose_provenance() + page * PAGE;
        for access in [Access::Read, Access::Write] {
            assert!(permits(at(0), 8 * PAGE, access) && permits(at(9), 6 * PAGE, access));
            assert!(!permits(at(0), 8 * PAGE + 1, access) && !permits(at(0), PAGES * PAGE, access));
            assert!(!permits(at(8), 1, access) && !permits(at(9) - 1, 2, access));
            assert!(is_listed(at(0), 8 * PAGE, access) && !is_listed(at(0), 8 * PAGE + 1, access));
        }
        assert!(permits(at(9), 11 * PAGE, Access::Read) && is_listed(at(9), 11 * PAGE, Access::Read));
        assert!(!permits(at(9), 11 * PAGE, Access::Write) && !is_listed(at(9), 11 * PAGE, Access::Write));
        assert!(!permits(at(15), 1, Access::Write) && permits(at(16), 4 * PAGE, Access::Write));
    }

    #[test]
    fn ranges_of_the_list_add_up() {
        let list = "1000-2000 rw-p 0 0\n2000-3000 rw-p 0 0\n3000-4000 r--p 0 0\n5000-6000 rw-p 0 0\n";
        for access in [Access::Read, Access::Write] {
            assert!(
                is_permitted_by(list, 0x1800..0x3000, access)
                    && is_permitted_by(list, 0x5000..0x6000, access)
            );
            assert!(
                !is_permitted_by(list, 0x1800..0x4001, access)
                    && !is_permitted_by(list, 0x4800..0x5800, access)
            );
        }
        assert!(
            is_permitted_by(list, 0x1800..0x4000, Access::Read)
                && !is_permitted_by(list, 0x1800..0x3001, Access::Write)
        );
    }
}
