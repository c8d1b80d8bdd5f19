//! Machines with several devices, and mapped memory: for callers that manage memory themselves (C
//! interfaces).
//!
//! The devices of a machine share one range of addresses. Memory allocated by one device can be accessed by
//! others if they are allowed to ([`Vm::let_reach`]). Pages are mapped at reserved addresses, possibly
//! several times, and each device has the rights that it is granted there.
//!
//! Invariant: a kernel accesses only memory that its device may access.

use crate::vm::Device;
use crate::{Access, DeviceId, Error, Exported, Pages, Vm};
use std::ops::Range;
use std::sync::Arc;

impl Vm {
    /// Another device of the same machine, with its own modules and memory. Streams are shared by all
    /// devices.
    pub fn of_device(&self, device: DeviceId) -> Self {
        let Device { memory, jit, executor, sanitizer } = &*self.device;
        let sanitizer = sanitizer.clone();
        let (memory, jit, executor) = (memory.of_device(device), Arc::clone(jit), Arc::clone(executor));
        Self { device: Arc::new(Device { memory, jit, executor, sanitizer }) }
    }

    /// The number of the device.
    pub fn number(&self) -> DeviceId {
        self.device.memory.device()
    }

    /// Sets whether kernels of a device may access memory of this device. Initially they may not.
    pub fn let_reach(&self, device: DeviceId, may: bool) {
        self.device.memory.let_reach(device, may);
    }

    /// Grants kernels of another device access to the allocation at an address, in addition to what they may
    /// do otherwise.
    ///
    /// # Errors
    /// Of the caller, if no allocation of a single device begins there.
    pub fn grant(&self, address: u64, device: DeviceId, access: Access) -> Result<(), Error> {
        Ok(self.device.memory.grant(address, device, access)?)
    }

    /// The device that owns the memory at an address; `None` if no memory is there.
    pub fn owner_of(&self, address: u64) -> Option<DeviceId> {
        self.device.memory.owner_of(address)
    }

    /// Allocates zeroed pages that can be mapped.
    ///
    /// # Errors
    /// Of the machine, if it has no sharable memory of that size.
    pub fn pages(&self, bytes: u64) -> Result<Arc<Pages>, Error> {
        Ok(self.device.memory.pages(bytes)?)
    }

    /// Reserves addresses, in multiples of 64 KiB, at `wanted` if they are free there.
    ///
    /// # Errors
    /// Of the caller for other sizes; of the machine, if no addresses are left.
    pub fn reserve(&self, bytes: u64, align: u64, wanted: u64) -> Result<u64, Error> {
        Ok(self.device.memory.reserve(bytes, align, wanted)?)
    }

    /// Frees addresses of [`Vm::reserve`].
    ///
    /// # Errors
    /// Of the caller, if no range of that size was reserved there, or a part of it is mapped.
    pub fn unreserve(&self, start: u64, bytes: u64) -> Result<(), Error> {
        Ok(self.device.memory.unreserve(start, bytes)?)
    }

    /// Maps a part of pages at reserved addresses. No device may access them yet. `visible` is the part that
    /// devices can be granted; `name` is for traps.
    ///
    /// # Errors
    /// Of the caller, if the addresses are not reserved or already mapped, or the pages do not have that
    /// part.
    pub fn map(
        &self,
        at: (u64, u64),
        pages: (&Arc<Pages>, u64),
        visible: Range<u64>,
        name: &str,
    ) -> Result<(), Error> {
        Ok(self.device.memory.map(at, pages, visible, name)?)
    }

    /// Unmaps a range that consists of whole mappings.
    ///
    /// # Errors
    /// Of the caller, if it does not.
    pub fn unmap(&self, start: u64, bytes: u64) -> Result<(), Error> {
        Ok(self.device.memory.unmap(start, bytes)?)
    }

    /// Sets the rights of a device in a range that consists of whole mappings.
    ///
    /// # Errors
    /// Of the caller, if it does not.
    pub fn set_access(&self, start: u64, bytes: u64, device: DeviceId, access: Access) -> Result<(), Error> {
        Ok(self.device.memory.set_access(start, bytes, device, access)?)
    }

    /// The rights of a device for the pages at an address; `None` if none are mapped.
    pub fn access_at(&self, address: u64, device: DeviceId) -> Option<Access> {
        self.device.memory.access_at(address, device)
    }

    /// Atomically replaces the 64-bit number at an address of mapped pages by `f` of it, and returns the old
    /// number. `f` may be called more than once. For communication between processes.
    ///
    /// # Errors
    /// Of the caller, if no pages are mapped there, or the address is not a multiple of 8.
    pub fn update(&self, address: u64, f: impl Fn(u64) -> u64) -> Result<u64, Error> {
        Ok(self.device.memory.update(address, f)?)
    }

    /// The pages mapped at an address, and the addresses of the mapping.
    pub fn pages_at(&self, address: u64) -> Option<(Range<u64>, Arc<Pages>)> {
        self.device.memory.pages_at(address)
    }

    /// The reserved range that contains an address.
    pub fn reservation_at(&self, address: u64) -> Option<Range<u64>> {
        self.device.memory.reservation_at(address)
    }

    /// Lets other processes map an allocation. Waits for all streams of the machine; other launches and
    /// copies must not run meanwhile.
    ///
    /// # Errors
    /// Of the caller, if no allocation of a device begins there; of the machine, if it does not share memory.
    pub fn export(&self, address: u64) -> Result<Exported, Error> {
        let memory = &self.device.memory;
        Ok(self.device.executor.run_alone(|| memory.export(address))?)
    }
}
