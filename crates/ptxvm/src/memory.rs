//! Device memory by address, for callers that manage it themselves (C interfaces).
//!
//! Invariant: every access is checked against the bounds of one live allocation.

use crate::{Access, Error, HostMistake, Vm};
use std::ops::Range;

impl Vm {
    /// Allocates zeroed bytes, aligned to 256 bytes; `name` is for traps. Returns the address.
    ///
    /// # Errors
    /// Of the machine, if memory is exhausted.
    pub fn alloc(&self, name: &str, bytes: u64) -> Result<u64, Error> {
        self.device.alloc(name, bytes)
    }

    /// As [`Vm::alloc`], for memory that all devices of the machine may access.
    ///
    /// # Errors
    /// As [`Vm::alloc`].
    pub fn alloc_common(&self, name: &str, bytes: u64) -> Result<u64, Error> {
        self.device.alloc_common(name, bytes)
    }

    /// Frees memory of [`Vm::alloc`].
    ///
    /// # Errors
    /// Of the caller, if no allocation starts there.
    pub fn free(&self, address: u64) -> Result<(), Error> {
        Ok(self.device.memory.free(address)?)
    }

    /// Copies bytes to the device.
    ///
    /// # Errors
    /// Of the caller, if they are not in one allocation.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Error> {
        self.device.copy_in(address, bytes)
    }

    /// Copies bytes from the device.
    ///
    /// # Errors
    /// As [`Vm::write`].
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), Error> {
        self.device.copy_out(address, bytes)
    }

    /// Copies bytes of the device to the device; they may overlap. Sanitizers do not take them to leave for
    /// the host.
    ///
    /// # Errors
    /// As [`Vm::write`], for either side.
    pub fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), Error> {
        Ok(self.device.memory.copy(to, from, bytes)?)
    }

    /// Tells the sanitizers that the host writes bytes by other ways than [`Vm::write`]: they are defined
    /// from now on.
    pub fn report_write(&self, address: u64, bytes: u64) {
        self.device.memory.tell_written(address, bytes);
    }

    /// Tells the sanitizers of a mistake of the host, whose call fails or has no effect.
    pub fn report_mistake(&self, mistake: &HostMistake<'_>) {
        self.device.memory.tell_mistake(mistake);
    }

    /// What lies next to an address, in prose.
    pub fn nearest(&self, address: u64) -> String {
        self.device.memory.nearest(address)
    }

    /// Sets bytes.
    ///
    /// # Errors
    /// As [`Vm::write`].
    pub fn fill(&self, address: u64, byte: u8, bytes: u64) -> Result<(), Error> {
        Ok(self.device.memory.fill(address, byte, bytes)?)
    }

    /// The range of the allocation that contains an address.
    pub fn allocation_at(&self, address: u64) -> Option<Range<u64>> {
        self.device.memory.allocation_at(address)
    }

    /// Whether the host may copy this many bytes from or to an address.
    pub fn permits(&self, address: u64, bytes: u64, access: Access) -> bool {
        self.device.memory.permits(address, bytes, access)
    }

    /// The name of the allocation that contains an address.
    pub fn allocation_name(&self, address: u64) -> Option<std::sync::Arc<str>> {
        self.device.memory.name_at(address)
    }

    /// Bytes of device memory in use, and the total capacity.
    pub fn memory_usage(&self) -> (u64, u64) {
        self.device.memory.usage()
    }
}
