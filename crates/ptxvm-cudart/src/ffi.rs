//! What C hands to a function, as types: all `unsafe` of the caller's pointers is here.
//!
//! The runtime API promises for each of its pointer parameters that it is null or points to a value of its type, valid for the call; only C
//! makes values of these types. Pointers that only travel to the driver stay numbers, which it checks. The others are checked here: numbers that are no
//! address and misaligned ones are refused by comparisons; of what is not a variable of a caller the system says first whether it is there
//! ([`host_memory`]).
//!
//! Invariant: no method keeps a pointer beyond the call, save that [`Text::get`] copies.

use crate::error::{Answer, Status};
use host_memory::could_be;
use std::ffi::{CStr, CString, c_char};

/// Most bytes of a name. Chosen.
const TEXT_MAX: usize = 1 << 20;

/// A handle of the driver, or a pointer that only the driver looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub(crate) struct Handle(pub(crate) usize);

impl Handle {
    pub(crate) fn is_null(self) -> bool {
        self.0 == 0
    }
}

/// Three sizes, as launches have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Dim3 {
    pub(crate) x: u32,
    pub(crate) y: u32,
    pub(crate) z: u32,
}

/// A pointer to which a function writes.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Out<T>(*mut T);

impl<T: Copy> Out<T> {
    /// Of a value of ours.
    pub(crate) fn to(value: &mut T) -> Self {
        Self(value)
    }

    /// The pointer as a number.
    pub(crate) fn address(self) -> usize {
        self.0.expose_provenance()
    }

    /// Writes the value.
    pub(crate) fn set(self, value: T) -> Answer {
        self.set_all(&[value])
    }

    /// Writes the value unless the pointer is null.
    pub(crate) fn set_optional(self, value: T) -> Answer {
        if self.0.is_null() { Ok(()) } else { self.set(value) }
    }

    /// Writes several values, one after another.
    pub(crate) fn set_all(self, values: &[T]) -> Answer {
        // SAFETY: C asked for the values there.
        let written = unsafe { host_memory::put(self.0, values) };
        if written { Ok(()) } else { Err(Status::INVALID_VALUE) }
    }
}

/// A pointer from which a function reads.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct In<T>(*const T);

impl<T: Copy> In<T> {
    /// The value.
    pub(crate) fn get(self) -> Result<T, Status> {
        // SAFETY: C says that a value of this type is there.
        unsafe { host_memory::get(self.0) }.ok_or(Status::INVALID_VALUE)
    }
}

/// A text of the caller, ended by a zero.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Text(*const c_char);

impl Text {
    /// A copy.
    pub(crate) fn get(self) -> Result<CString, Status> {
        match host_memory::text(self.0.expose_provenance(), TEXT_MAX) {
            Ok(text) => text.and_then(|text| CString::new(text).ok()).ok_or(Status::INVALID_VALUE),
            Err(host_memory::Refused) if could_be(self.0.addr(), 1) => {
                // SAFETY: not null, and ended by a zero as the caller of the function promises.
                Ok(unsafe { CStr::from_ptr(self.0) }.to_owned())
            }
            Err(host_memory::Refused) => Err(Status::INVALID_VALUE),
        }
    }
}

impl<T> Out<T> {
    /// The pointer of that number.
    pub(crate) fn at(address: usize) -> Self {
        Self(std::ptr::with_exposed_provenance_mut(address))
    }
}

impl<T> In<T> {
    /// The pointer of that number.
    pub(crate) fn at(address: usize) -> Self {
        Self(std::ptr::with_exposed_provenance(address))
    }
}
