//! Which devices may access an allocation.
//!
//! An allocation belongs to a device, to all, or is mapped, and then each device has the rights that the host gave it. Devices reach what
//! belongs to another where the host has let them.
//!
//! Invariant: a device always reaches its own memory. What it does not do: the host copies whatever some device may access.

use super::{Memory, MemoryError};
use std::sync::atomic::Ordering;

/// How many devices a machine has at most: one bit of a mask for each.
pub const DEVICES: usize = 32;

/// One of the devices of a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId(u8);

impl DeviceId {
    /// Device number `index`, unless there cannot be so many.
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

/// What may be done with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing.
    None,
    /// Reading.
    Read,
    /// Reading and writing.
    ReadWrite,
}

/// Rights of devices, as bits of their numbers. Who may write may read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Masks {
    read: u32,
    write: u32,
}

impl Masks {
    /// The same with those rights of a device.
    pub(super) fn with(self, device: DeviceId, access: Access) -> Self {
        let bit = device.bit();
        let (read, write) = match access {
            Access::None => (0, 0),
            Access::Read => (bit, 0),
            Access::ReadWrite => (bit, bit),
        };
        Self { read: self.read & !bit | read, write: self.write & !bit | write }
    }

    /// What a device may do.
    pub(super) fn of(self, device: DeviceId) -> Access {
        self.within(device.bit())
    }

    /// What one of these devices may do at least.
    fn within(self, devices: u32) -> Access {
        match (self.read & devices != 0, self.write & devices != 0) {
            (_, true) => Access::ReadWrite,
            (true, false) => Access::Read,
            (false, false) => Access::None,
        }
    }
}

/// Who may access an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rights {
    /// A device, and those that may reach its memory.
    Owner(DeviceId),
    /// The same, and others as the host has said.
    Granted(DeviceId, Masks),
    /// All devices.
    All,
    /// Each as the host has said.
    Mapped(Masks),
}

impl Rights {
    /// What some device may do, and so the host.
    pub(super) fn of_any(self) -> Access {
        match self {
            Rights::Owner(_) | Rights::Granted(..) | Rights::All => Access::ReadWrite,
            Rights::Mapped(masks) => masks.within(u32::MAX),
        }
    }

    /// Prose behind the name of an allocation that a device may access only so far.
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

/// By owner, which other devices reach its memory, as bits.
#[derive(Debug, Default)]
pub(super) struct Peers([u32; DEVICES]);

impl Peers {
    fn reaches(&self, device: DeviceId, owner: DeviceId) -> bool {
        owner == device || self.0[owner.index()] & device.bit() != 0
    }

    /// What a device may do with an allocation.
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
    /// Says whether a device reaches what belongs to this one, also what was allocated before. At first none does.
    pub fn let_reach(&self, device: DeviceId, may: bool) {
        let mut tables = self.tables();
        let mask = &mut tables.peers.0[self.device.index()];
        *mask = if may { *mask | device.bit() } else { *mask & !device.bit() };
        // What views have looked up may be wrong now.
        self.store.frees.fetch_add(1, Ordering::Release);
    }

    /// Says what another device may do with the allocation that begins at an address, besides what it may do anyway.
    ///
    /// # Errors
    /// [`MemoryError::NotAllocated`] for what does not belong to one device.
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

    /// The device that an allocation belongs to; `None` where nothing is.
    pub fn owner_of(&self, address: u64) -> Option<DeviceId> {
        self.tables().at(address).map(|(_, a)| a.device)
    }
}
