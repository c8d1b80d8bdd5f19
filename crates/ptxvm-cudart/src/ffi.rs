//! What C hands to a function, as types: all `unsafe` of the caller's pointers is here.
//!
//! The runtime API promises for each of its pointer parameters that it is null or points to a value of its type, valid for the call; only C
//! makes values of these types. Pointers that only travel to the driver stay numbers.
//!
//! Invariant: no method keeps a pointer beyond the call, save that [`Text::get`] copies.

use crate::error::{Answer, Status};
use std::ffi::{CStr, c_char};

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
        if self.0.is_null() || !self.0.is_aligned() {
            return Err(Status::INVALID_VALUE);
        }
        // SAFETY: not null, aligned, and valid for a write as the caller of the function promises.
        unsafe { self.0.write(value) };
        Ok(())
    }

    /// Writes the value unless the pointer is null.
    pub(crate) fn set_optional(self, value: T) -> Answer {
        if self.0.is_null() { Ok(()) } else { self.set(value) }
    }

    /// Writes several values, one after another.
    pub(crate) fn set_all(self, values: &[T]) -> Answer {
        for (index, value) in values.iter().enumerate() {
            Out(self.0.wrapping_add(index)).set(*value)?;
        }
        Ok(())
    }
}

/// A pointer from which a function reads.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct In<T>(*const T);

impl<T: Copy> In<T> {
    /// The value.
    pub(crate) fn get(self) -> Result<T, Status> {
        if self.0.is_null() || !self.0.is_aligned() {
            return Err(Status::INVALID_VALUE);
        }
        // SAFETY: not null, aligned, and the caller of the function promises a value of this type.
        Ok(unsafe { self.0.read() })
    }
}

/// A text of the caller, ended by a zero.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Text(*const c_char);

impl Text {
    /// A copy.
    pub(crate) fn get(self) -> Result<std::ffi::CString, Status> {
        if self.0.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        // SAFETY: not null, and ended by a zero as the caller of the function promises.
        Ok(unsafe { CStr::from_ptr(self.0) }.to_owned())
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
