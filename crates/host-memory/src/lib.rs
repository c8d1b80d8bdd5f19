//! Memory of the process by address, for C interfaces whose callers may be wrong: whether it is there, and copies of it that fail instead of
//! ending the process. Also: whether the process is a child of the one that the library began to work in.
//!
//! A pointer of C is a number. [`could_be`] sorts out numbers that are no address of any program; [`read`] and [`write()`] let the system copy,
//! which looks at each page first; [`is_mapped`] and [`overwrite`] ask it in ways that are cheaper. Where the system does not allow such calls (a
//! filter of system calls), each says so, and the caller decides whether to trust the pointer. [`get`], [`get_all`] and [`put`] are made of these:
//! they copy values of a type from and to places that a caller names.
//!
//! Invariant: no function faults, whatever address it is given. What it does not do: it cannot tell memory that belongs to something else from
//! memory that the caller meant, and what is there now may be gone when it is used.

mod fork;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;
mod values;

pub use fork::{is_forked, watch};
#[cfg(target_os = "linux")]
use linux as system;
#[cfg(not(target_os = "linux"))]
use other as system;
use std::ops::Range;
pub use values::{get, get_all, put};

/// Addresses that programs have: the first 64 KiB are null pointers with an offset, and the upper half is the system's.
const ADDRESSES: Range<usize> = 0x1_0000..if cfg!(target_arch = "x86_64") { 1 << 47 } else { 1 << 48 };
/// The granularity in which memory is there or not: the smallest page of the hosts that we know.
const PAGE: usize = 4096;
/// Ranges of up to so many pages are read page by page to see whether they can be.
const FEW: usize = 4;
/// How much a text is read at a time.
const PART: usize = 16 * PAGE;
/// How far above the stack pointer a caller's variables are taken to be there.
const FRAMES: usize = 64 << 10;

/// The system does not let this process copy its memory by address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

/// Whether `bytes` bytes at an address could be memory of a program: not near null, not beyond what programs have, not wrapping around.
/// Of no bytes every address could be.
#[inline]
pub fn could_be(address: usize, bytes: usize) -> bool {
    bytes == 0 || ADDRESSES.contains(&address) && bytes <= ADDRESSES.end - address
}

/// Whether the bytes lie in variables of the functions that called this one: then they are there.
#[inline]
pub fn is_in_callers(address: usize, bytes: usize) -> bool {
    let here = 0u8;
    let stack = (&raw const here).addr();
    address > stack && bytes < FRAMES && address - stack < FRAMES - bytes
}

/// Copies what is at an address, as far as it can be read; returns how many bytes that are.
///
/// # Errors
/// [`Refused`].
pub fn read(address: usize, into: &mut [u8]) -> Result<usize, Refused> {
    // SAFETY: the bytes are the caller's, and stay borrowed for the call.
    unsafe { read_raw(address, into.as_mut_ptr(), into.len()) }
}

/// As [`read`], for a place that is no slice of bytes.
///
/// # Errors
/// [`Refused`].
///
/// # Safety
/// `into` is valid for writing so many bytes.
pub unsafe fn read_raw(address: usize, into: *mut u8, bytes: usize) -> Result<usize, Refused> {
    if bytes == 0 || !could_be(address, bytes) {
        return Ok(0);
    }
    // SAFETY: the caller promises it.
    unsafe { system::read(address, into, bytes) }
}

/// Copies bytes to an address, as far as it can be written; returns how many.
///
/// # Errors
/// [`Refused`].
pub fn write(address: usize, from: &[u8]) -> Result<usize, Refused> {
    // SAFETY: the bytes are the caller's, and stay borrowed for the call.
    unsafe { write_raw(address, from.as_ptr(), from.len()) }
}

/// As [`write()`], for a value that is no slice of bytes, such as one with padding.
///
/// # Errors
/// [`Refused`].
///
/// # Safety
/// `from` is valid for reading so many bytes.
pub unsafe fn write_raw(address: usize, from: *const u8, bytes: usize) -> Result<usize, Refused> {
    if bytes == 0 || !could_be(address, bytes) {
        return Ok(0);
    }
    // SAFETY: the caller promises it.
    unsafe { system::write(address, from, bytes) }
}

/// Whether all of a range is memory of the process. Of a few pages, it is also tried whether they can be read; of more only the first and the last.
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
    // Where the system does not let us try, that the range is there must do.
    let readable = |page: usize| system::readable(page * PAGE).unwrap_or_else(|_| mapped());
    if pages <= FEW {
        return (first..=last).all(readable);
    }
    mapped() && readable(first) && readable(last)
}

/// Whether a place of a few words can be written, which makes them mean nothing: to be called where they are written next. `bytes` is a multiple
/// of four, and at most a page.
///
/// # Errors
/// [`Refused`].
pub fn overwrite(address: usize, bytes: usize) -> Result<bool, Refused> {
    if bytes < 4 || !could_be(address, bytes) {
        return Ok(false);
    }
    Ok(system::overwrite(address)? && (bytes == 4 || system::overwrite(address + bytes - 4)?))
}

/// Whether all of a range is memory that the process may read and write, from the system's own list of it; where there is none, as [`is_mapped`].
pub fn is_writable(address: usize, bytes: usize) -> bool {
    could_be(address, bytes)
        && match std::fs::read_to_string("/proc/self/maps") {
            Ok(list) => covers(&list, address..address.saturating_add(bytes)),
            Err(_) => is_mapped(address, bytes),
        }
}

/// Whether the lines of `/proc/self/maps` cover a range with memory that may be read and written.
fn covers(list: &str, range: Range<usize>) -> bool {
    let mut at = range.start;
    for line in list.lines() {
        let mut words = line.split(' ');
        let (Some(addresses), Some(rights)) = (words.next(), words.next()) else { continue };
        let Some((start, end)) = addresses.split_once('-') else { continue };
        let number = |text: &str| usize::from_str_radix(text, 16);
        let (Ok(start), Ok(end)) = (number(start), number(end)) else { continue };
        if (start..end).contains(&at) && rights.starts_with("rw") {
            at = end;
        }
        if at >= range.end {
            return true;
        }
    }
    at >= range.end
}

/// The bytes from an address up to the first zero; `None` where memory ends before, or after `most` bytes without one.
///
/// # Errors
/// [`Refused`].
pub fn text(address: usize, most: usize) -> Result<Option<Vec<u8>>, Refused> {
    let mut text = Vec::new();
    let mut part = [0u8; 256];
    let mut large = Vec::new();
    loop {
        let Some(at) = address.checked_add(text.len()) else { return Ok(None) };
        // Names are short, texts of modules are not.
        let into = if text.len() < part.len() {
            &mut part[..]
        } else {
            large.resize(PART, 0);
            &mut large[..]
        };
        // What lies behind the text may be gone: then less is read.
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
        // Page 5 of the address space of a program is nobody's, neither is a constant writable.
        static CONSTANT: [u8; 8] = *b"constant";
        assert_eq!(read(0x5_0000, &mut copy), Ok(0));
        assert_eq!(write(0x5_0000, &copy), Ok(0));
        assert_eq!(write(address(&CONSTANT), &copy[..8]), Ok(0));
        assert!(is_mapped(address(&CONSTANT), 8) && !is_writable(address(&CONSTANT), 8));
        let mut words = Box::new([7u32; 10]);
        let place = (&raw mut *words).expose_provenance();
        assert_eq!(overwrite(place, 40), Ok(true));
        assert_eq!(words[1..9], [7; 8]);
        assert_eq!((overwrite(0x5_0000, 4), overwrite(address(&CONSTANT), 8)), (Ok(false), Ok(false)));
        assert!(is_writable(address(&*value), 100) && !is_writable(address(&*value), 1 << 45));
        let large = vec![1u8; 1 << 20];
        assert!(is_mapped(large.as_ptr().addr(), 1 << 20) && !is_mapped(large.as_ptr().addr(), 1 << 45));
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

    #[test]
    fn ranges_of_the_list_add_up() {
        let list = "1000-2000 rw-p 0 0\n2000-3000 rw-p 0 0\n3000-4000 r--p 0 0\n5000-6000 rw-p 0 0\n";
        assert!(covers(list, 0x1800..0x3000) && covers(list, 0x5000..0x6000));
        assert!(!covers(list, 0x1800..0x3001) && !covers(list, 0x4800..0x5800));
    }
}
