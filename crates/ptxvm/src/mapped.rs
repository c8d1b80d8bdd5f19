//! Machines with several devices, and memory that is mapped: for callers that manage it themselves (C surfaces).
//!
//! The devices of a machine share one range of addresses. What one allocates, the others access where they may ([`Vm::let_reach`]). Pages are
//! mapped at addresses that were reserved, also several times, and each device has the rights that it was given there.
//!
//! Invariant: a kernel accesses what its device may access, and nothing else.

use crate::vm::Device;
use crate::{Access, DeviceId, Error, Exported, Pages, Vm};
use std::ops::Range;
use std::sync::Arc;

impl Vm {
    /// Another device of the same machine: modules loaded and memory allocated there are its own. What is done in streams of one is done for all.
    pub fn of_device(&self, device: DeviceId) -> Self {
        let Device { memory, jit, executor, sanitizer } = &*self.device;
        let sanitizer = sanitizer.clone();
        let (memory, jit, executor) = (memory.of_device(device), Arc::clone(jit), Arc::clone(executor));
        Self { device: Arc::new(Device { memory, jit, executor, sanitizer }) }
    }

    /// Which device of its machine it is.
    pub fn number(&self) -> DeviceId {
        self.device.memory.device()
    }

    /// Says whether kernels of a device access what belongs to this one. At first they do not.
    pub fn let_reach(&self, device: DeviceId, may: bool) {
        self.device.memory.let_reach(device, may);
    }

    /// Says what kernels of another device may do with the allocation that begins at an address, besides what they may do anyway.
    ///
    /// # Errors
    /// Of the caller, where nothing of one device begins there.
    pub fn grant(&self, address: u64, device: DeviceId, access: Access) -> Result<(), Error> {
        Ok(self.device.memory.grant(address, device, access)?)
    }

    /// The device that an allocation belongs to; `None` where nothing is allocated.
    pub fn owner_of(&self, address: u64) -> Option<DeviceId> {
        self.device.memory.owner_of(address)
    }

    /// Zeroed pages that can be mapped, so many bytes together.
    ///
    /// # Errors
    /// Of the machine, where it has no memory that can be shared, or not so much.
    pub fn pages(&self, bytes: u64) -> Result<Arc<Pages>, Error> {
        Ok(self.device.memory.pages(bytes)?)
    }

    /// Reserves addresses for so many bytes, which are multiples of 64 KiB, at `wanted` if they are free there.
    ///
    /// # Errors
    /// Of the caller for other sizes; of the machine, where no addresses are left.
    pub fn reserve(&self, bytes: u64, align: u64, wanted: u64) -> Result<u64, Error> {
        Ok(self.device.memory.reserve(bytes, align, wanted)?)
    }

    /// Gives back what [`Vm::reserve`] returned.
    ///
    /// # Errors
    /// Of the caller, where nothing of that size was reserved there, or something is mapped.
    pub fn unreserve(&self, start: u64, bytes: u64) -> Result<(), Error> {
        Ok(self.device.memory.unreserve(start, bytes)?)
    }

    /// Maps pages at reserved addresses: so many bytes at an address, from an offset of the pages on. No device may access them yet. `visible` is the part
    /// that devices can be given rights for; `name` stands in reports of traps.
    ///
    /// # Errors
    /// Of the caller, where the addresses are not reserved or something is mapped there, and for parts that the pages do not have.
    pub fn map(
        &self,
        at: (u64, u64),
        pages: (&Arc<Pages>, u64),
        visible: Range<u64>,
        name: &str,
    ) -> Result<(), Error> {
        Ok(self.device.memory.map(at, pages, visible, name)?)
    }

    /// Takes mapped pages away from a range that consists of whole mappings.
    ///
    /// # Errors
    /// Of the caller, where it does not.
    pub fn unmap(&self, start: u64, bytes: u64) -> Result<(), Error> {
        Ok(self.device.memory.unmap(start, bytes)?)
    }

    /// Says what a device may do with the pages in a range that consists of whole mappings.
    ///
    /// # Errors
    /// Of the caller, where it does not.
    pub fn set_access(&self, start: u64, bytes: u64, device: DeviceId, access: Access) -> Result<(), Error> {
        Ok(self.device.memory.set_access(start, bytes, device, access)?)
    }

    /// What a device may do with the pages at an address; `None` where none are mapped.
    pub fn access_at(&self, address: u64, device: DeviceId) -> Option<Access> {
        self.device.memory.access_at(address, device)
    }

    /// A number in mapped pages, replaced atomically by what `f` makes of it; returns what it was. `f` may be called more than once. For what processes
    /// tell each other.
    ///
    /// # Errors
    /// Of the caller, where no pages are mapped, or the address is not a multiple of 8.
    pub fn update(&self, address: u64, f: impl Fn(u64) -> u64) -> Result<u64, Error> {
        Ok(self.device.memory.update(address, f)?)
    }

    /// The pages that are mapped at an address, and the addresses that they are mapped at.
    pub fn pages_at(&self, address: u64) -> Option<(Range<u64>, Arc<Pages>)> {
        self.device.memory.pages_at(address)
    }

    /// The reserved range that an address lies in.
    pub fn reservation_at(&self, address: u64) -> Option<Range<u64>> {
        self.device.memory.reservation_at(address)
    }

    /// Lets other processes map an allocation. Waits for all streams of the machine; launches and copies that are made otherwise must not run
    /// meanwhile.
    ///
    /// # Errors
    /// Of the caller, where no allocation of a device begins there; of the machine, where it does not share memory.
    pub fn export(&self, address: u64) -> Result<Exported, Error> {
        let memory = &self.device.memory;
        Ok(self.device.executor.run_alone(|| memory.export(address))?)
    }
}
