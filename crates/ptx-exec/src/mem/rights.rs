//! Access rights of devices to allocations.
//!
//! An allocation belongs to one device or to all devices, or it is mapped, and then each device has the
//! rights that the host granted. A device may access memory of another device if the host has allowed it.
//!
//! Invariant: a device may always access its own memory. The host may copy memory that at least one device
//! may access.

use super::{Memory, MemoryError};
use std::sync::atomic::Ordering;

/// The most devices of a machine: one bit of a mask each.
pub const DEVICES: usize = 32;

/// A device of a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId(u8);

impl DeviceId {
    /// Device number `index`, if it is below [`DEVICES`].
    pub fn new(index: usize) -> Option<Self> {
        u8::try_from(index).ok().filter(|_| index < DEVICES).map(Self)
    }

    /// Its number, from 0.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    fn bit(self) -> u32 {
        1 << self.0
    }
}

/// The kinds of access that are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing.
    None,
    /// Reading.
    Read,
    /// Reading and writing.
    ReadWrite,
}

/// Rights of devices, as bits by device number. Writing implies reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Masks {
    read: u32,
    write: u32,
}

impl Masks {
    /// With these rights for a device.
    pub(super) fn with(self, device: DeviceId, access: Access) -> Self {
        let bit = device.bit();
        let (read, write) = match access {
            Access::None => (0, 0),
            Access::Read => (bit, 0),
            Access::ReadWrite => (bit, bit),
        };
        Self { read: self.read & !bit | read, write: self.write & !bit | write }
    }

    /// The rights of a device.
    pub(super) fn of(self, device: DeviceId) -> Access {
        self.within(device.bit())
    }

    /// The least rights of these devices.
    fn within(self, devices: u32) -> Access {
        match (self.read & devices != 0, self.write & devices != 0) {
            (_, true) => Access::ReadWrite,
            (true, false) => Access::Read,
            (false, false) => Access::None,
        }
    }
}

/// The devices that may access an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rights {
    /// A device, and the devices that may access its memory.
    Owner(DeviceId),
    /// The same, and further devices as granted by the host.
    Granted(DeviceId, Masks),
    /// All devices.
    All,
    /// As granted by the host.
    Mapped(Masks),
}

impl Rights {
    /// The rights of the host: the most that any device has.
    pub(super) fn of_any(self) -> Access {
        match self {
            Rights::Owner(_) | Rights::Granted(..) | Rights::All => Access::ReadWrite,
            Rights::Mapped(masks) => masks.within(u32::MAX),
        }
    }

    /// Text for reports: why a device may not access an allocation.
    pub(super) fn refusal(self, access: Access, device: DeviceId) -> String {
        let device = device.0;
        match (access, self) {
            (Access::ReadWrite, _) => String::new(),
            (Access::Read, _) => format!("; device {device} may read it only"),
            (Access::None, Rights::Owner(owner) | Rights::Granted(owner, _)) => {
                format!("; it belongs to device {}, whose memory device {device} may not access", owner.0)
            }
            (Access::None, Rights::All | Rights::Mapped(_)) => {
                format!("; device {device} may not access it")
            }
        }
    }
}

/// By owner, the other devices that may access its memory, as bits.
#[derive(Debug, Default)]
pub(super) struct Peers([u32; DEVICES]);

impl Peers {
    fn reaches(&self, device: DeviceId, owner: DeviceId) -> bool {
        owner == device || self.0[owner.index()] & device.bit() != 0
    }

    /// The rights of a device to an allocation.
    pub(super) fn access(&self, rights: Rights, device: DeviceId) -> Access {
        match rights {
            Rights::All => Access::ReadWrite,
            Rights::Owner(owner) if self.reaches(device, owner) => Access::ReadWrite,
            Rights::Owner(_) => Access::None,
            Rights::Granted(owner, _) if self.reaches(device, owner) => Access::ReadWrite,
            Rights::Granted(_, masks) => masks.of(device),
            Rights::Mapped(masks) => masks.of(device),
        }
    }
}

impl Memory {
    /// Sets whether a device may access this device's memory, including existing allocations. Initially no
    /// device may.
    pub fn let_reach(&self, device: DeviceId, may: bool) {
        let mut tables = self.tables();
        let mask = &mut tables.peers.0[self.device.index()];
        *mask = if may { *mask | device.bit() } else { *mask & !device.bit() };
        // Look-ups of views may have become wrong.
        self.store.frees.fetch_add(1, Ordering::Release);
    }

    /// Grants another device access to an allocation, in addition to what it may do otherwise.
    ///
    /// # Errors
    /// [`MemoryError::NotAllocated`] if the allocation does not belong to one device.
    pub fn grant(&self, address: u64, device: DeviceId, access: Access) -> Result<(), MemoryError> {
        let mut tables = self.tables();
        let found = tables.live.get_mut(&address).ok_or(MemoryError::NotAllocated { address })?;
        let (owner, masks) = match found.rights {
            Rights::Owner(owner) => (owner, Masks::default()),
            Rights::Granted(owner, masks) => (owner, masks),
            Rights::All | Rights::Mapped(_) => return Err(MemoryError::NotAllocated { address }),
        };
        found.rights = Rights::Granted(owner, masks.with(device, access));
        self.store.frees.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// The device that owns the memory at an address; `None` if no memory is there.
    pub fn owner_of(&self, address: u64) -> Option<DeviceId> {
        self.tables().at(address).map(|(_, a)| a.device)
    }
}
