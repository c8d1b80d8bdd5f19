//! System calls of Linux that fail where a load or store would fault.
//!
//! Invariant: this code itself never accesses a given address.

use crate::{Access, Mapping, Refused};
use std::ffi::{c_int, c_long, c_ulong, c_void};
use std::fs::File;
use std::os::fd::AsRawFd;

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
/// `MS_ASYNC`. Since Linux 2.6.19 `msync` with it only checks that all of the range is mapped.
const LOOK: c_int = 1;
/// Numbers of system calls: `rt_sigprocmask`, `getcpu`.
#[cfg(target_arch = "x86_64")]
const CALLS: Option<(c_long, c_long)> = Some((14, 309));
#[cfg(target_arch = "aarch64")]
const CALLS: Option<(c_long, c_long)> = Some((135, 168));
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const CALLS: Option<(c_long, c_long)> = None;
/// `EINVAL`
const INVALID: i32 = 22;
/// `EINTR`
const INTERRUPTED: i32 = 4;
/// `MADV_POPULATE_READ`, `MADV_POPULATE_WRITE`: since Linux 5.14.
const POPULATE: [c_int; 2] = [22, 23];

/// `struct procmap_query` of `linux/fs.h`, without a name or a build number of the mapping.
#[repr(C)]
#[derive(Default)]
struct Query {
    size: u64,
    flags: u64,
    address: u64,
    start: u64,
    end: u64,
    rights: u64,
    page_size: u64,
    offset: u64,
    inode: u64,
    device: [u32; 2],
    name_size: u32,
    build_size: u32,
    name: u64,
    build: u64,
}

/// `PROCMAP_QUERY`: since Linux 6.11.
const QUERY: c_ulong = 3 << 30 | (size_of::<Query>() as c_ulong) << 16 | 0x66 << 8 | 17;
/// `PROCMAP_QUERY_VMA_READABLE`, `PROCMAP_QUERY_VMA_WRITABLE`
const RIGHTS: [u64; 2] = [1, 2];
/// `ENOENT`
const NO_ENTRY: i32 = 2;

// SAFETY: the declarations have the signatures of these functions of the C library on Linux.
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
    fn madvise(start: *mut c_void, bytes: usize, advice: c_int) -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
    fn ioctl(file: c_int, request: c_ulong, ...) -> c_int;
}

fn part(address: usize, bytes: usize) -> Part {
    Part { start: std::ptr::with_exposed_provenance_mut(address), bytes }
}

fn pid() -> c_int {
    std::process::id() as c_int
}

/// The number of bytes that a call copied. A page that it could not reach counts as zero bytes, not as an
/// error.
fn copied(result: isize) -> Result<usize, Refused> {
    match usize::try_from(result) {
        Ok(count) => Ok(count),
        Err(_) if std::io::Error::last_os_error().raw_os_error() == Some(FAULT) => Ok(0),
        Err(_) => Err(Refused),
    }
}

/// # Safety
/// `into` is valid for writing `bytes` bytes.
pub(crate) unsafe fn read(address: usize, into: *mut u8, bytes: usize) -> Result<usize, Refused> {
    let local = Part { start: into.cast(), bytes };
    let remote = part(address, bytes);
    // SAFETY: the caller promises that `local` is valid; the system checks `remote`.
    copied(unsafe { process_vm_readv(pid(), &raw const local, 1, &raw const remote, 1, 0) })
}

/// # Safety
/// `from` is valid for reading `bytes` bytes.
pub(crate) unsafe fn write(address: usize, from: *const u8, bytes: usize) -> Result<usize, Refused> {
    let local = Part { start: from.cast_mut().cast(), bytes };
    let remote = part(address, bytes);
    // SAFETY: the caller promises that `local` is valid, and it is only read. The system checks `remote`,
    // which is memory that the program passed to be written.
    copied(unsafe { process_vm_writev(pid(), &raw const local, 1, &raw const remote, 1, 0) })
}

/// Whether the page that begins at an address can be read. It costs a seventh of a call of [`read`].
pub(crate) fn readable(page: usize) -> Result<bool, Refused> {
    let (number, _) = CALLS.ok_or(Refused)?;
    let (nothing_asked, set): (c_long, *const c_void) = (-1, std::ptr::with_exposed_provenance(page));
    let none: *mut c_void = std::ptr::null_mut();
    // SAFETY: the call reads a signal set of eight bytes, which the system checks. It then fails, because no
    // operation has the number -1.
    let result = unsafe { syscall(number, nothing_asked, set, none, 8usize) };
    match std::io::Error::last_os_error().raw_os_error() {
        Some(INVALID) if result == -1 => Ok(true),
        Some(FAULT) if result == -1 => Ok(false),
        _ => Err(Refused),
    }
}

/// Overwrites four bytes with an arbitrary number; false if they cannot be written.
pub(crate) fn overwrite(address: usize) -> Result<bool, Refused> {
    let (_, number) = CALLS.ok_or(Refused)?;
    let place: *mut c_void = std::ptr::with_exposed_provenance_mut(address);
    let none: *mut c_void = std::ptr::null_mut();
    // SAFETY: the call writes the number of a processor to memory that the program passed to be written. The
    // system checks that the memory is mapped.
    match unsafe { syscall(number, place, none, none) } {
        0 => Ok(true),
        _ if std::io::Error::last_os_error().raw_os_error() == Some(FAULT) => Ok(false),
        _ => Err(Refused),
    }
}

/// Whether all of a range of whole pages can be accessed. The system maps pages that were never used, as the
/// access would make it do. Nothing in memory changes.
///
/// # Errors
/// [`Refused`] also where memory does not permit the access: the system has one error for this and for
/// advice that it does not know.
pub(crate) fn permits(start: usize, bytes: usize, access: Access) -> Result<bool, Refused> {
    let advice = match access {
        Access::Read => POPULATE[0],
        Access::Write => POPULATE[1],
    };
    let start: *mut c_void = std::ptr::with_exposed_provenance_mut(start);
    loop {
        // SAFETY: with this advice the system does what an access to each page would make it do, and reports
        // a page that cannot be accessed.
        if unsafe { madvise(start, bytes, advice) } == 0 {
            return Ok(true);
        }
        match std::io::Error::last_os_error().raw_os_error() {
            Some(INTERRUPTED) => {}
            Some(FAULT | NO_MEMORY) => return Ok(false),
            _ => return Err(Refused),
        }
    }
}

/// Whether all of a range of whole pages is mapped.
pub(crate) fn is_mapped(start: usize, bytes: usize) -> bool {
    // SAFETY: with this flag the system only looks at its list of mappings.
    let result = unsafe { msync(std::ptr::with_exposed_provenance_mut(start), bytes, LOOK) };
    result == 0 || std::io::Error::last_os_error().raw_os_error() != Some(NO_MEMORY)
}

/// The list of mappings, opened once, because opening takes ten times as long as a query.
#[derive(Debug)]
pub(crate) struct List {
    /// The file, which belongs to the process that opened it.
    file: File,
    process: u32,
}

impl List {
    /// # Errors
    /// [`Refused`].
    pub(crate) fn open() -> Result<Self, Refused> {
        let file = File::open("/proc/self/maps").map_err(|_| Refused)?;
        Ok(Self { file, process: std::process::id() })
    }

    /// Whether it is the list of this process, not of the process from which this one was forked.
    pub(crate) fn is_own(&self) -> bool {
        self.process == std::process::id()
    }

    /// The mapping that contains an address, if it can be read.
    ///
    /// # Errors
    /// [`Refused`] also before Linux 6.11.
    pub(crate) fn mapping_at(&self, address: usize) -> Result<Option<Mapping>, Refused> {
        let mut query =
            Query { size: size_of::<Query>() as u64, address: address as u64, ..Query::default() };
        // SAFETY: with this request the system reads and writes the query, which says its size.
        let result = unsafe { ioctl(self.file.as_raw_fd(), QUERY, &raw mut query) };
        if result != 0 {
            let error = std::io::Error::last_os_error().raw_os_error();
            return if error == Some(NO_ENTRY) { Ok(None) } else { Err(Refused) };
        }
        let [readable, writable] = RIGHTS.map(|right| query.rights & right != 0);
        let range = query.start as usize..query.end as usize;
        Ok(readable.then_some(Mapping { range, writable }))
    }
}
