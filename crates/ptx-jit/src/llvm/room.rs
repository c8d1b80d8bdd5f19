//! Tests whether there is enough memory for LLVM's next work.
//!
//! LLVM ends the process if an allocation fails. So before it begins, as much address space as the work may
//! need is reserved and released at once: under a limit (`ulimit -v`), a kernel is then not compiled, and the
//! process continues.
//!
//! It holds no reservation. Other threads may take the memory meanwhile, and a system that overcommits memory
//! may end processes at any time.

use super::api::Error;
use rustix::mm::{MapFlags, ProtFlags};
use std::ptr;

/// The bytes that loading LLVM takes. Measured: its library is 130 to 160 MB; its tables take some more.
const TO_LOAD: usize = 256 << 20;
/// The bytes that every compilation takes: a heap for the thread, and tables. Chosen, above the measured
/// values.
const TO_BEGIN: usize = 128 << 20;
/// The bytes for each instruction of the kernel. Measured: 20 to 45 kB.
const FOR_EACH: usize = 64 << 10;

/// Whether there is memory to load LLVM.
///
/// # Errors
/// There is not.
pub(crate) fn to_load() -> Result<(), Error> {
    check(TO_LOAD)
}

/// Whether there is memory to compile so many instructions.
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
