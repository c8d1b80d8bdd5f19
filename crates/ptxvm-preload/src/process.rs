//! The objects loaded into this process, and access to their code. All `unsafe` of this library is here.
//!
//! Invariant: memory is read and written only inside the loaded parts of an object, while the loader holds
//! it. When [`write()`] returns, each page has its earlier protection again.

use crate::code::Patch;
use std::ffi::{CStr, CString, OsStr, c_int, c_void};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// A loaded program or library.
#[derive(Debug)]
pub(crate) struct Object {
    /// The address to which the addresses in its file are relative.
    pub(crate) base: usize,
    pub(crate) path: PathBuf,
    /// Its executable parts.
    code: Vec<Part>,
}

/// A loaded part that can be executed.
#[derive(Clone, Copy, Debug)]
struct Part {
    start: usize,
    end: usize,
    /// `PROT_...`
    protection: c_int,
}

/// How many objects were loaded and unloaded since the process began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) loaded: u64,
    pub(crate) unloaded: u64,
}

/// A function that the loader calls for each object.
type Visit<'a> = &'a mut dyn FnMut(&libc::dl_phdr_info) -> c_int;

/// Calls `see` for each loaded object, until it returns a value other than 0.
fn visit(mut see: impl FnMut(&libc::dl_phdr_info) -> c_int) {
    extern "C" fn one(info: *mut libc::dl_phdr_info, _bytes: usize, data: *mut c_void) -> c_int {
        // SAFETY: the loader hands over a valid structure for the call.
        let info = unsafe { &*info };
        // SAFETY: `data` points to `see` below, which is not used otherwise during the call.
        let see = unsafe { &mut *data.cast::<Visit<'_>>() };
        see(info)
    }
    let mut see: Visit<'_> = &mut see;
    // SAFETY: `one` has the type that the loader calls, and `see` lives for the call.
    unsafe { libc::dl_iterate_phdr(Some(one), (&raw mut see).cast()) };
}

/// How many objects were loaded and unloaded.
pub(crate) fn count() -> Count {
    let mut count = Count { loaded: 0, unloaded: 0 };
    visit(|info| {
        count = Count { loaded: info.dlpi_adds, unloaded: info.dlpi_subs };
        1
    });
    count
}

/// All loaded objects.
pub(crate) fn objects() -> Vec<Object> {
    let mut objects = Vec::new();
    visit(|info| {
        objects.push(object(info));
        0
    });
    objects
}

fn object(info: &libc::dl_phdr_info) -> Object {
    let base = info.dlpi_addr as usize;
    let name = if info.dlpi_name.is_null() {
        b""
    } else {
        // SAFETY: the loader's name of the object is null-terminated.
        unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes()
    };
    let path = if name.is_empty() { Path::new("/proc/self/exe") } else { Path::new(OsStr::from_bytes(name)) };
    let headers = if info.dlpi_phdr.is_null() {
        &[]
    } else {
        // SAFETY: the loader says how many headers there are at the address.
        unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) }
    };
    let code = headers
        .iter()
        .filter(|header| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_X != 0)
        .map(|header| {
            let start = base.wrapping_add(header.p_vaddr as usize);
            let flag = |flag, protection| if header.p_flags & flag != 0 { protection } else { 0 };
            let protection =
                libc::PROT_EXEC | flag(libc::PF_R, libc::PROT_READ) | flag(libc::PF_W, libc::PROT_WRITE);
            Part { start, end: start.saturating_add(header.p_filesz as usize), protection }
        })
        .collect();
    Object { base, path: path.to_owned(), code }
}

impl Object {
    /// The executable part that contains these bytes.
    fn part(&self, address: usize, bytes: usize) -> Option<&Part> {
        let end = address.checked_add(bytes)?;
        self.code.iter().find(|part| part.start <= address && end <= part.end)
    }

    /// Whether the object's code has these bytes at an address.
    pub(crate) fn holds(&self, address: usize, bytes: &[u8]) -> bool {
        let Some(part) = self.part(address, bytes.len()) else { return false };
        if part.protection & libc::PROT_READ == 0 {
            return false;
        }
        let there = std::ptr::with_exposed_provenance::<u8>(address);
        // SAFETY: the bytes lie in a part of the object that is loaded and readable, and code does not
        // change.
        let there = unsafe { std::slice::from_raw_parts(there, bytes.len()) };
        there == bytes
    }
}

/// Writes code into an object. Meanwhile its pages are writable and not executable. Nothing runs in them,
/// because the object's constructors have not run yet.
///
/// # Errors
/// The system does not let the pages be made writable, or executable again.
pub(crate) fn write(object: &Object, patches: &[Patch]) -> io::Result<()> {
    // SAFETY: the call only returns a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(1) as usize;
    let range = |patch: &Patch| (patch.address as usize, patch.code.len());
    for part in &object.code {
        let is_inside = |patch: &&Patch| {
            let (address, bytes) = range(patch);
            part.start <= address && address + bytes <= part.end
        };
        let inside = || patches.iter().filter(is_inside);
        let (Some(start), Some(end)) = (
            inside().map(|patch| range(patch).0).min(),
            inside().map(|patch| range(patch).0 + range(patch).1).max(),
        ) else {
            continue;
        };
        let start = start / page * page;
        protect(start, end - start, libc::PROT_READ | libc::PROT_WRITE)?;
        for patch in inside() {
            let (address, bytes) = range(patch);
            let place = std::ptr::with_exposed_provenance_mut::<u8>(address);
            // SAFETY: the bytes lie in writable pages of this object, and nothing runs there.
            unsafe { std::ptr::copy_nonoverlapping(patch.code.as_ptr(), place, bytes) };
        }
        protect(start, end - start, part.protection)?;
        inside().for_each(|patch| clear_instructions(range(patch).0, range(patch).1));
    }
    Ok(())
}

fn protect(start: usize, bytes: usize, protection: c_int) -> io::Result<()> {
    let start = std::ptr::with_exposed_provenance_mut(start);
    // SAFETY: these are pages of an object's code; the caller restores their protection, and nothing runs in
    // them meanwhile.
    match unsafe { libc::mprotect(start, bytes, protection) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Makes the processor see new code.
#[cfg(target_arch = "aarch64")]
fn clear_instructions(address: usize, bytes: usize) {
    for word in (address..address + bytes).step_by(4) {
        // SAFETY: the instructions write back a line of the data cache and drop it from the instruction
        // cache; they change no memory.
        unsafe {
            std::arch::asm!("dc cvau, {0}", "dsb ish", "ic ivau, {0}", "dsb ish", "isb", in(reg) word);
        }
    }
}

/// Does nothing: this processor keeps its instruction cache coherent.
#[cfg(not(target_arch = "aarch64"))]
fn clear_instructions(_address: usize, _bytes: usize) {}

/// The folder of this library's file.
pub(crate) fn folder() -> Option<PathBuf> {
    let here = folder as fn() -> Option<PathBuf> as *const c_void;
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: `here` is an address of this library, and `info` is a structure to be filled.
    if unsafe { libc::dladdr(here, info.as_mut_ptr()) } == 0 {
        return None;
    }
    // SAFETY: `info` was zeroed, which is a valid value, and then filled.
    let name = unsafe { info.assume_init() }.dli_fname;
    if name.is_null() {
        return None;
    }
    // SAFETY: the loader's name of the library is null-terminated.
    let name = unsafe { CStr::from_ptr(name) };
    let path = PathBuf::from(std::ffi::OsString::from_vec(name.to_bytes().to_vec()));
    Some(path.canonicalize().ok()?.parent()?.to_owned())
}

/// ptxvm's runtime, which stays loaded as long as the process lives.
pub(crate) struct Runtime(usize);

impl Runtime {
    /// Loads the runtime.
    pub(crate) fn open(path: &Path) -> Option<Self> {
        let path = CString::new(path.as_os_str().as_bytes()).ok()?;
        // SAFETY: the library is ptxvm's own, and its constructors may run at any time.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        (!handle.is_null()).then(|| Self(handle.expose_provenance()))
    }

    /// The address of a function.
    pub(crate) fn function(&self, name: &str) -> Option<u64> {
        let name = CString::new(name).ok()?;
        let handle = std::ptr::with_exposed_provenance_mut(self.0);
        // SAFETY: the handle is open, and the name is null-terminated.
        let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
        (!found.is_null()).then(|| found.expose_provenance() as u64)
    }

    /// Calls a function that takes a number, if the runtime has it.
    pub(crate) fn tell(&self, name: &str, number: u32) {
        let Some(address) = self.function(name) else { return };
        let function = std::ptr::with_exposed_provenance::<c_void>(address as usize);
        // SAFETY: functions of ptxvm's runtime with its own names that take a number have this type.
        let function = unsafe { std::mem::transmute::<*const c_void, extern "C" fn(u32)>(function) };
        function(number);
    }
}
