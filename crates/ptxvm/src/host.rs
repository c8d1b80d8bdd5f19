//! Host memory for kernels: for programs that pass host pointers to kernels.
//!
//! Invariant: only `unsafe` functions lend memory, and they rely only on the documented promises of their
//! callers.

use crate::{Error, Vm};

impl Vm {
    /// Lends `bytes` bytes of host memory to kernels at the host's addresses; `name` is for traps. Copies
    /// between device and host accept such addresses too.
    ///
    /// # Errors
    /// Of the caller, if the bytes overlap memory of the device or lent memory.
    ///
    /// # Safety
    /// The bytes must stay readable and writable until [`Vm::disown`] has returned and all launches of that
    /// time have ended. Meanwhile the host must hold no reference to them that conflicts with accesses of a
    /// kernel.
    pub unsafe fn adopt(&self, name: &str, start: u64, bytes: u64) -> Result<(), Error> {
        // SAFETY: the caller makes the promises of `adopt`.
        Ok(unsafe { self.memory().adopt(start, bytes, name) }?)
    }

    /// Ends the loan of [`Vm::adopt`].
    ///
    /// # Errors
    /// Of the caller, if no lent range begins there.
    pub fn disown(&self, start: u64) -> Result<(), Error> {
        Ok(self.memory().disown(start)?)
    }

    /// Lets kernels access all memory of the process at the host's addresses, from now on. A wild pointer of
    /// a kernel can then damage it. An access where nothing is mapped and a store to memory that can only be
    /// read are traps, as far as the system tells (Linux).
    ///
    /// # Safety
    /// Outside of device memory, later launches must not conflict with references of the host, and the host
    /// must neither unmap nor protect memory that a running launch accesses.
    pub unsafe fn reach_host(&self) {
        // SAFETY: the caller makes the promises of `reach_host`.
        unsafe { self.memory().reach_host() }
    }

    /// The addresses that are reserved for the device. No host memory has such an address, even where nothing
    /// is allocated.
    pub fn device_range(&self) -> std::ops::Range<u64> {
        self.memory().range()
    }

    /// Whether [`Vm::reach_host`] was called.
    pub fn reaches_host(&self) -> bool {
        self.memory().reaches_host()
    }
}
