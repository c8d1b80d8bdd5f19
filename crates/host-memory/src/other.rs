//! Systems without calls that check addresses: every plausible pointer is trusted.
//!
//! Invariant: nothing is accessed.

use crate::{Access, Mapping, Refused};

/// # Safety
/// None: nothing is accessed.
pub(crate) unsafe fn read(_address: usize, _into: *mut u8, _bytes: usize) -> Result<usize, Refused> {
    Err(Refused)
}

/// # Safety
/// None: nothing is accessed.
pub(crate) unsafe fn write(_address: usize, _from: *const u8, _bytes: usize) -> Result<usize, Refused> {
    Err(Refused)
}

pub(crate) fn readable(_page: usize) -> Result<bool, Refused> {
    Err(Refused)
}

pub(crate) fn overwrite(_address: usize) -> Result<bool, Refused> {
    Err(Refused)
}

pub(crate) fn permits(_start: usize, _bytes: usize, _access: Access) -> Result<bool, Refused> {
    Err(Refused)
}

pub(crate) fn is_mapped(_start: usize, _bytes: usize) -> bool {
    true
}

#[derive(Debug)]
pub(crate) struct List;

impl List {
    pub(crate) fn open() -> Result<Self, Refused> {
        Err(Refused)
    }

    pub(crate) fn is_own(&self) -> bool {
        true
    }

    pub(crate) fn mapping_at(&self, _address: usize) -> Result<Option<Mapping>, Refused> {
        Err(Refused)
    }
}
