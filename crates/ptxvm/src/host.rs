//! Memory of the host that kernels may access: for programs that hand host pointers to kernels.
//!
//! Invariant: only `unsafe` functions lend memory; what their callers promise is all that these functions rely on.

use crate::{Error, Vm};

impl Vm {
    /// Lends `bytes` bytes of the host's memory to kernels under the host's addresses; `name` stands in traps. Copies between device and host
    /// take such addresses too.
    ///
    /// # Errors
    /// Of the caller, where the bytes are the device's, or some of them are lent already.
    ///
    /// # Safety
    /// The bytes stay readable and writable until [`Vm::disown`] has returned and launches that ran then have ended; meanwhile the host makes no
    /// reference to them that an access of a kernel would contradict.
    pub unsafe fn adopt(&self, name: &str, start: u64, bytes: u64) -> Result<(), Error> {
        // SAFETY: the caller promises what `adopt` asks for.
        Ok(unsafe { self.memory().adopt(start, bytes, name) }?)
    }

    /// Takes back what [`Vm::adopt`] lent.
    ///
    /// # Errors
    /// Of the caller, where nothing that was lent begins.
    pub fn disown(&self, start: u64) -> Result<(), Error> {
        Ok(self.memory().disown(start)?)
    }

    /// Lets kernels access all memory of the process under the host's addresses, from now on. A wild pointer of a kernel then ends the process, or
    /// damages it. Null pointers still trap.
    ///
    /// # Safety
    /// Launches from now on access, outside device memory, only memory that is mapped, and not in a way that contradicts references of the host.
    pub unsafe fn reach_host(&self) {
        // SAFETY: the caller promises what `reach_host` asks for.
        unsafe { self.memory().reach_host() }
    }

    /// The addresses that are reserved for the device: none of them is memory of the host, whether something is allocated there or not.
    pub fn device_range(&self) -> std::ops::Range<u64> {
        self.memory().range()
    }

    /// Whether [`Vm::reach_host`] was called.
    pub fn reaches_host(&self) -> bool {
        self.memory().reaches_host()
    }
}
