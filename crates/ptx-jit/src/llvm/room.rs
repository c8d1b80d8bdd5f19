//! Whether there is memory for what LLVM is going to do.
//!
//! LLVM ends the process where it gets no memory. So before it begins, as many addresses are asked for as the work may take, and given back
//! at once: where there are limits (`ulimit -v`), a kernel is not compiled rather than a process ended.
//!
//! What it does not do: it reserves nothing. Others may take the memory meanwhile, and a system that promises more memory than it has ends
//! processes as it likes.

use super::api::Error;
use rustix::mm::{MapFlags, ProtFlags};
use std::ptr;

/// What loading LLVM takes, in bytes. Measured: its library is 130 to 160 MB, its tables some more.
const TO_LOAD: usize = 256 << 20;
/// What compiling takes to begin with: a heap for the thread, and tables. Chosen, above what was measured.
const TO_BEGIN: usize = 128 << 20;
/// For each instruction of the kernel. Measured: 20 to 45 kB.
const FOR_EACH: usize = 64 << 10;

/// Whether there is room to load LLVM.
///
/// # Errors
/// There is not.
pub(crate) fn to_load() -> Result<(), Error> {
    check(TO_LOAD)
}

/// Whether there is room to compile so many instructions.
///
/// # Errors
/// There is not.
pub(crate) fn to_compile(instructions: usize) -> Result<(), Error> {
    check(TO_BEGIN.saturating_add(instructions.saturating_mul(FOR_EACH)))
}

fn check(bytes: usize) -> Result<(), Error> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a new private mapping without MAP_FIXED replaces no mapping that exists.
    let place = unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), bytes, ProtFlags::empty(), flags) };
    let place = place.map_err(|_| {
        Error::new(format!("LLVM may need {} MiB of memory, which the system does not grant", bytes >> 20))
    })?;
    // SAFETY: the mapping was made above, and nothing refers to it.
    let _ = unsafe { rustix::mm::munmap(place, bytes) };
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_no_machine_has_is_not_granted() {
        assert!(super::to_compile(1000).is_ok());
        let error = super::to_compile(usize::MAX).unwrap_err().to_string();
        assert!(error.contains("MiB of memory"), "{error}");
    }
}
