//! Pointers: those of the caller, and memory of the device. All `unsafe` of memory is here.
//!
//! A scalar or a list of the caller is copied after the system has said that it is there ([`host_memory`]). Memory of the device lies in the
//! address space of the process; it becomes a [`Region`] when the driver has said that kernels may access all of it.
//!
//! Invariant: no access leaves a region. What the driver once handed out stays mapped as long as the process, so a racing free changes what
//! is read, and nothing else; memory of the host that kernels reach is there by the promise of who opened it. All accesses to regions are
//! relaxed atomics, as kernels access them at the same time.

use crate::driver;
use crate::log;
use crate::status::{Answer, Status, valid};
use host_memory::{could_be, is_in_callers, is_mapped};
use std::ffi::{CStr, c_char};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

/// A pointer of the caller, as a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Pointer(pub(crate) usize);

impl Pointer {
    /// Whether it is null.
    pub(crate) fn is_null(self) -> bool {
        self.0 == 0
    }

    /// The address.
    pub(crate) fn address(self) -> u64 {
        self.0 as u64
    }

    /// So many bytes further on.
    pub(crate) fn offset(self, bytes: usize) -> Self {
        Self(self.0.wrapping_add(bytes))
    }

    /// Copies bytes that it points to.
    ///
    /// # Errors
    /// `CUBLAS_STATUS_INVALID_VALUE` where there is nothing.
    pub(crate) fn read(self, into: &mut [u8]) -> Answer {
        valid(could_be(self.0, into.len()))?;
        valid(is_in_callers(self.0, into.len()) || is_mapped(self.0, into.len()))?;
        let from: *const u8 = std::ptr::with_exposed_provenance(self.0);
        // SAFETY: the memory is there, and the caller of the function promises that it stays so for the call; `into` is ours.
        unsafe { std::ptr::copy(from, into.as_mut_ptr(), into.len()) };
        Ok(())
    }

    /// Writes bytes to where it points.
    ///
    /// # Errors
    /// `CUBLAS_STATUS_INVALID_VALUE` where nothing can be written.
    pub(crate) fn write(self, from: &[u8]) -> Answer {
        if !is_in_callers(self.0, from.len()) {
            match host_memory::write(self.0, from) {
                Ok(count) => return valid(count == from.len()),
                // The system does not do it for us: the caller's promise must do.
                Err(host_memory::Refused) => valid(could_be(self.0, from.len()))?,
            }
        }
        let to: *mut u8 = std::ptr::with_exposed_provenance_mut(self.0);
        // SAFETY: in a variable of a caller, or there by the promise of the function's caller; `from` is ours.
        unsafe { std::ptr::copy(from.as_ptr(), to, from.len()) };
        Ok(())
    }
}

/// A text of ours that C reads.
pub(crate) fn text(text: &'static CStr) -> *const c_char {
    text.as_ptr()
}

/// A function of the caller that takes a line of a log.
pub(crate) type LogFunction = Option<unsafe extern "C" fn(*const c_char)>;

/// Bytes that kernels may access.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Region {
    start: u64,
    bytes: u64,
}

impl Region {
    /// The bytes at an address; `call` and `argument` name them in the message.
    ///
    /// # Errors
    /// `CUBLAS_STATUS_EXECUTION_FAILED`, with a line on standard error, where a kernel could not access all of them, and where `aligned` does not
    /// divide the address.
    pub(crate) fn new(
        (call, argument): (&str, &str),
        address: u64,
        bytes: u128,
        aligned: u64,
    ) -> Answer<Self> {
        let fail = |why: String| {
            log::say(&format!("ptxvm: {call}: `{argument}` {why}"));
            Err(Status::EXECUTION_FAILED)
        };
        if bytes == 0 {
            return Ok(Self { start: address, bytes: 0 });
        }
        let needs = format_args!("needs {bytes} bytes at {address:#x}");
        if !address.is_multiple_of(aligned) {
            return fail(format!("{needs}, which is no multiple of {aligned}"));
        }
        let bytes = match u64::try_from(bytes) {
            Ok(bytes) if address.checked_add(bytes).is_some() => bytes,
            _ => return fail(format!("{needs}, more than there are addresses")),
        };
        match driver::reach(address, bytes)? {
            Ok(()) => Ok(Self { start: address, bytes }),
            Err([_, 0]) => fail(format!("{needs}, where no memory of the device is")),
            Err([start, size]) => fail(format!("{needs}, in an allocation of {size} bytes at {start:#x}")),
        }
    }

    fn check(&self, offset: u64, bytes: u64) -> usize {
        let inside = offset <= self.bytes && bytes <= self.bytes - offset;
        assert!(inside, "ptxvm bug: {bytes} bytes at offset {offset} of a region of {}", self.bytes);
        (self.start + offset) as usize
    }

    /// Copies its bytes from an offset on.
    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) {
        let mut at = self.check(offset, into.len() as u64);
        let head = (at.wrapping_neg() % 8).min(into.len());
        let (head, rest) = into.split_at_mut(head);
        let mut words = rest.chunks_exact_mut(8);
        for byte in head {
            *byte = cell::<AtomicU8>(at).load(Relaxed);
            at += 1;
        }
        for word in &mut words {
            word.copy_from_slice(&cell::<AtomicU64>(at).load(Relaxed).to_ne_bytes());
            at += 8;
        }
        for byte in words.into_remainder() {
            *byte = cell::<AtomicU8>(at).load(Relaxed);
            at += 1;
        }
    }

    /// Copies bytes to an offset.
    pub(crate) fn write(&self, offset: u64, from: &[u8]) {
        let mut at = self.check(offset, from.len() as u64);
        let head = (at.wrapping_neg() % 8).min(from.len());
        let (head, rest) = from.split_at(head);
        for byte in head {
            cell::<AtomicU8>(at).store(*byte, Relaxed);
            at += 1;
        }
        let (words, tail) = rest.as_chunks::<8>();
        for word in words {
            cell::<AtomicU64>(at).store(u64::from_ne_bytes(*word), Relaxed);
            at += 8;
        }
        for byte in tail {
            cell::<AtomicU8>(at).store(*byte, Relaxed);
            at += 1;
        }
    }

    /// Copies one element of 1, 2, 4, 8 or more bytes, at an offset that its size divides (from the start, which is aligned for it).
    pub(crate) fn read_element(&self, offset: u64, into: &mut [u8]) {
        let at = self.check(offset, into.len() as u64);
        match into.len() {
            2 if at.is_multiple_of(2) => {
                into.copy_from_slice(&cell::<AtomicU16>(at).load(Relaxed).to_ne_bytes());
            }
            4 if at.is_multiple_of(4) => {
                into.copy_from_slice(&cell::<AtomicU32>(at).load(Relaxed).to_ne_bytes());
            }
            _ => self.read(offset, into),
        }
    }

    /// As [`Region::read_element`], the other way.
    pub(crate) fn write_element(&self, offset: u64, from: &[u8]) {
        let at = self.check(offset, from.len() as u64);
        match *from {
            [a, b] if at.is_multiple_of(2) => {
                cell::<AtomicU16>(at).store(u16::from_ne_bytes([a, b]), Relaxed);
            }
            [a, b, c, d] if at.is_multiple_of(4) => {
                cell::<AtomicU32>(at).store(u32::from_ne_bytes([a, b, c, d]), Relaxed);
            }
            _ => self.write(offset, from),
        }
    }
}

/// The cell at an address inside a region.
#[inline(always)]
fn cell<'a, T>(address: usize) -> &'a T {
    let at: *const T = std::ptr::with_exposed_provenance(address);
    // SAFETY: both callers' addresses are inside a region, which the driver said may be accessed and which stays mapped, and multiples of the
    // cell's size; all accesses of it are atomic. The reference is used at once.
    unsafe { &*at }
}
