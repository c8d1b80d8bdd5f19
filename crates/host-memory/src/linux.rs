//! What Linux says of a process's memory, by system calls that fail where a load or store would fault.
//!
//! Invariant: no address that was given is accessed by this code itself.

use crate::Refused;
use std::ffi::{c_int, c_ulong, c_void};

/// `struct iovec`
#[repr(C)]
#[derive(Clone, Copy)]
struct Part {
    start: *mut c_void,
    bytes: usize,
}

/// `EFAULT`, `ENOMEM`
const FAULT: i32 = 14;
const NO_MEMORY: i32 = 12;
/// `MS_ASYNC`, which since Linux 2.6.19 does nothing but see whether all of the range is mapped.
const LOOK: c_int = 1;
/// Pages that one call tries.
const MOST: usize = 32;

// SAFETY: the C library's, with the signatures of Linux.
unsafe extern "C" {
    fn process_vm_readv(
        pid: c_int,
        local: *const Part,
        locals: c_ulong,
        remote: *const Part,
        remotes: c_ulong,
        flags: c_ulong,
    ) -> isize;
    fn process_vm_writev(
        pid: c_int,
        local: *const Part,
        locals: c_ulong,
        remote: *const Part,
        remotes: c_ulong,
        flags: c_ulong,
    ) -> isize;
    fn msync(start: *mut c_void, bytes: usize, flags: c_int) -> c_int;
}

fn part(address: usize, bytes: usize) -> Part {
    Part { start: std::ptr::with_exposed_provenance_mut(address), bytes }
}

fn pid() -> c_int {
    std::process::id() as c_int
}

/// How many bytes a call copied; a page that it could not reach is no error.
fn copied(result: isize) -> Result<usize, Refused> {
    match usize::try_from(result) {
        Ok(count) => Ok(count),
        Err(_) if std::io::Error::last_os_error().raw_os_error() == Some(FAULT) => Ok(0),
        Err(_) => Err(Refused),
    }
}

/// # Safety
/// `into` is valid for writing so many bytes.
pub(crate) unsafe fn read(address: usize, into: *mut u8, bytes: usize) -> Result<usize, Refused> {
    let local = Part { start: into.cast(), bytes };
    let remote = part(address, bytes);
    // SAFETY: the caller promises `local`; the system checks `remote`.
    copied(unsafe { process_vm_readv(pid(), &raw const local, 1, &raw const remote, 1, 0) })
}

/// # Safety
/// `from` is valid for reading so many bytes.
pub(crate) unsafe fn write(address: usize, from: *const u8, bytes: usize) -> Result<usize, Refused> {
    let local = Part { start: from.cast_mut().cast(), bytes };
    let remote = part(address, bytes);
    // SAFETY: the caller promises `local`, which is only read; the system checks `remote`, which is the memory that the program gave to be written.
    copied(unsafe { process_vm_writev(pid(), &raw const local, 1, &raw const remote, 1, 0) })
}

/// Whether `count` pages from `start` on can be read; at most [`MOST`] are asked for.
pub(crate) fn readable(start: usize, page: usize, count: usize) -> Result<bool, Refused> {
    let mut bytes = [0u8; MOST];
    let local = Part { start: bytes.as_mut_ptr().cast(), bytes: count.min(MOST) };
    let remote: [Part; MOST] = std::array::from_fn(|index| part(start + index.min(count - 1) * page, 1));
    let count = count.min(MOST);
    // SAFETY: `local` has a byte for each of `remote`, which the system checks.
    let found = unsafe { process_vm_readv(pid(), &raw const local, 1, remote.as_ptr(), count as c_ulong, 0) };
    Ok(copied(found)? == count)
}

/// Whether all of a range of whole pages is mapped.
pub(crate) fn is_mapped(start: usize, bytes: usize) -> bool {
    // SAFETY: with this flag the system only looks at its list of mappings.
    let result = unsafe { msync(std::ptr::with_exposed_provenance_mut(start), bytes, LOOK) };
    result == 0 || std::io::Error::last_os_error().raw_os_error() != Some(NO_MEMORY)
}
