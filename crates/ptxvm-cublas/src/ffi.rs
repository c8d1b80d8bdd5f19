//! Pointers of the caller, and device memory. All `unsafe` for memory is here.
//!
//! A scalar or list of the caller is copied after the system reported that its memory is mapped
//! ([`host_memory`]). Device memory lies in the address space of the process. It becomes a [`Region`] when
//! the driver reported that kernels may read or write all of it.
//!
//! Invariant: no access leaves a region, and only a region that may be written is written. Memory that the
//! driver allocated stays mapped as long as the process lives, so a concurrent free can only change the
//! values read. Host memory that kernels can access stays mapped by its registrant's promise. All accesses to
//! regions are relaxed atomics, because kernels may access the same memory at the same time.

use crate::driver::{self, Reach};
use crate::log;
use crate::status::{Answer, Status, valid};
use host_memory::{Access, could_be, is_in_callers, permits};
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

    /// The pointer plus `bytes`.
    pub(crate) fn offset(self, bytes: usize) -> Self {
        Self(self.0.wrapping_add(bytes))
    }

    /// Copies bytes from where it points.
    ///
    /// # Errors
    /// `CUBLAS_STATUS_INVALID_VALUE` if the memory cannot be read.
    pub(crate) fn read(self, into: &mut [u8]) -> Answer {
        valid(could_be(self.0, into.len()))?;
        valid(is_in_callers(self.0, into.len()) || permits(self.0, into.len(), Access::Read))?;
        let from: *const u8 = std::ptr::with_exposed_provenance(self.0);
        // SAFETY: the memory is readable, and the caller of the function promises that it stays so for the
        // call. `into` is exclusively borrowed.
        unsafe { std::ptr::copy(from, into.as_mut_ptr(), into.len()) };
        Ok(())
    }

    /// Writes bytes to where it points.
    ///
    /// # Errors
    /// `CUBLAS_STATUS_INVALID_VALUE` if the memory cannot be written.
    pub(crate) fn write(self, from: &[u8]) -> Answer {
        if !is_in_callers(self.0, from.len()) {
            match host_memory::write(self.0, from) {
                Ok(count) => return valid(count == from.len()),
                // The system refuses to check the address, so the caller is trusted.
                Err(host_memory::Refused) => valid(could_be(self.0, from.len()))?,
            }
        }
        let to: *mut u8 = std::ptr::with_exposed_provenance_mut(self.0);
        // SAFETY: the memory is a variable of a calling function, or mapped by the caller's promise. `from`
        // is borrowed.
        unsafe { std::ptr::copy(from.as_ptr(), to, from.len()) };
        Ok(())
    }
}

/// A text of this library for C to read.
pub(crate) fn text(text: &'static CStr) -> *const c_char {
    text.as_ptr()
}

/// A function of the caller that receives a line of a log.
pub(crate) type LogFunction = Option<unsafe extern "C" fn(*const c_char)>;

/// An argument of a call that points to memory: its names, for messages, and how the memory is accessed.
#[derive(Clone, Copy)]
pub(crate) struct Named {
    pub(crate) call: &'static str,
    pub(crate) argument: &'static str,
    /// `Write` also permits reading.
    pub(crate) access: Access,
}

impl Named {
    /// Memory that is read only.
    pub(crate) fn read(call: &'static str, argument: &'static str) -> Self {
        Self { call, argument, access: Access::Read }
    }

    /// Memory that is written.
    pub(crate) fn written(call: &'static str, argument: &'static str) -> Self {
        Self { call, argument, access: Access::Write }
    }
}

/// Bytes that kernels may read, or read and write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Region {
    start: u64,
    bytes: u64,
    access: Access,
}

impl Region {
    /// The bytes at an address.
    ///
    /// # Errors
    /// `CUBLAS_STATUS_EXECUTION_FAILED`, with a line on standard error, if a kernel could not access all of
    /// the bytes as the call does, or if the address is not a multiple of `aligned`.
    pub(crate) fn new(named: Named, address: u64, bytes: u128, aligned: u64) -> Answer<Self> {
        let Named { call, argument, access } = named;
        let fail = |why: String| {
            log::say(&format!("ptxvm: {call}: `{argument}` {why}"));
            Err(Status::EXECUTION_FAILED)
        };
        if bytes == 0 {
            return Ok(Self { start: address, bytes: 0, access });
        }
        let needs = format_args!("needs {bytes} bytes at {address:#x}");
        if !address.is_multiple_of(aligned) {
            return fail(format!("{needs}, which is not a multiple of {aligned}"));
        }
        let bytes = match u64::try_from(bytes) {
            Ok(bytes) if address.checked_add(bytes).is_some() => bytes,
            _ => return fail(format!("{needs}, which exceeds the address space")),
        };
        match driver::reach(address, bytes, access)? {
            Reach::Permitted => Ok(Self { start: address, bytes, access }),
            Reach::Unknown | Reach::Refused([_, 0]) => {
                fail(format!("{needs}, where there is no device memory"))
            }
            Reach::Refused([start, size]) if address >= start && bytes <= size - (address - start) => {
                let verb = if access == Access::Write { "write" } else { "read" };
                fail(format!("{needs}, which no device may {verb}"))
            }
            Reach::Refused([start, size]) => {
                fail(format!("{needs}, in an allocation of {size} bytes at {start:#x}"))
            }
        }
    }

    fn check(&self, offset: u64, bytes: u64) -> usize {
        let inside = offset <= self.bytes && bytes <= self.bytes - offset;
        assert!(inside, "ptxvm bug: {bytes} bytes at offset {offset} of a region of {}", self.bytes);
        (self.start + offset) as usize
    }

    fn check_write(&self, offset: u64, bytes: u64) -> usize {
        assert!(self.access == Access::Write, "ptxvm bug: a region that is only read is written");
        self.check(offset, bytes)
    }

    /// Copies the region's bytes from an offset.
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

    /// Copies bytes to an offset of the region.
    pub(crate) fn write(&self, offset: u64, from: &[u8]) {
        let mut at = self.check_write(offset, from.len() as u64);
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

    /// Copies one element of 1, 2, 4, 8 or more bytes. The offset is a multiple of its size, for which the
    /// start is aligned.
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

    /// Like [`Region::read_element`], for writing.
    pub(crate) fn write_element(&self, offset: u64, from: &[u8]) {
        let at = self.check_write(offset, from.len() as u64);
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
    // SAFETY: both callers pass addresses inside a region, which the driver reported to be accessible and
    // which stays mapped. The addresses are multiples of the cell's size, and all accesses are atomic. The
    // reference is used at once.
    unsafe { &*at }
}
