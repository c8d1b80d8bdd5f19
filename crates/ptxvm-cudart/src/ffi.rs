//! Arguments from C, as types. All `unsafe` for the caller's pointers is here.
//!
//! The runtime API promises that each pointer parameter is null or points to a value of its type that is
//! valid for the call. Only C creates values of these types. Pointers that are only passed to the driver stay
//! numbers, and the driver checks them. The others are checked here: null, implausible and misaligned
//! pointers are rejected by comparisons, and unless a pointer is to a variable of a calling function, the
//! system is asked whether its memory is mapped ([`host_memory`]).
//!
//! Invariant: no method keeps a pointer after the call; [`Text::get`] copies.

use crate::error::{Answer, Status};
use host_memory::could_be;
use std::ffi::{CStr, CString, c_char};
#[cfg(target_os = "linux")]
use std::ffi::{c_int, c_void};

/// Most bytes of a name. Chosen.
const TEXT_MAX: usize = 1 << 20;

/// A handle of the driver, or a pointer that only the driver reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub(crate) struct Handle(pub(crate) usize);

impl Handle {
    pub(crate) fn is_null(self) -> bool {
        self.0 == 0
    }
}

/// The three sizes of a grid or CTA.
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
    /// A pointer to a value of the runtime itself.
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
        // SAFETY: the C caller asked for the values at this address.
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
        // SAFETY: the C caller promises a value of this type.
        unsafe { host_memory::get(self.0) }.ok_or(Status::INVALID_VALUE)
    }
}

/// A null-terminated text of the caller.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Text(*const c_char);

impl Text {
    /// A copy.
    pub(crate) fn get(self) -> Result<CString, Status> {
        match host_memory::text(self.0.expose_provenance(), TEXT_MAX) {
            Ok(text) => text.and_then(|text| CString::new(text).ok()).ok_or(Status::INVALID_VALUE),
            Err(host_memory::Refused) if could_be(self.0.addr(), 1) => {
                // SAFETY: the pointer is not null, and the caller promises a null-terminated text.
                Ok(unsafe { CStr::from_ptr(self.0) }.to_owned())
            }
            Err(host_memory::Refused) => Err(Status::INVALID_VALUE),
        }
    }
}

impl<T> Out<T> {
    /// The pointer with this address.
    pub(crate) fn at(address: usize) -> Self {
        Self(std::ptr::with_exposed_provenance_mut(address))
    }
}

impl<T> In<T> {
    /// The pointer with this address.
    pub(crate) fn at(address: usize) -> Self {
        Self(std::ptr::with_exposed_provenance(address))
    }
}

/// The start of `struct dl_phdr_info`.
#[cfg(target_os = "linux")]
#[repr(C)]
struct LoadedObject {
    _base: usize,
    name: *const c_char,
    _headers: *const c_void,
    _header_count: u16,
    /// How many objects the process has loaded so far.
    loaded: u64,
}

/// Calls `see` with the number of objects that the process has loaded so far, and with the path of each
/// loaded object, until it returns false.
#[cfg(target_os = "linux")]
pub(crate) fn loaded_objects(mut see: impl FnMut(u64, &[u8]) -> bool) {
    type See<'a> = &'a mut dyn FnMut(u64, &[u8]) -> bool;
    type Visit = extern "C" fn(*const LoadedObject, usize, *mut c_void) -> c_int;
    // SAFETY: the declaration has the signature of this function of the C library.
    unsafe extern "C" {
        fn dl_iterate_phdr(visit: Visit, data: *mut c_void) -> c_int;
    }
    extern "C" fn one(object: *const LoadedObject, _bytes: usize, data: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid structure for the call. It has these fields since glibc 2.4.
        let object = unsafe { &*object };
        // SAFETY: `data` points to `see` below, which is not used otherwise during the call.
        let see = unsafe { &mut *data.cast::<See<'_>>() };
        let path = if object.name.is_null() {
            &[]
        } else {
            // SAFETY: the loader's name of the object is null-terminated.
            unsafe { CStr::from_ptr(object.name) }.to_bytes()
        };
        c_int::from(!see(object.loaded, path))
    }
    let mut see: See<'_> = &mut see;
    // SAFETY: `one` has the type that the loader calls, and `see` lives for the call.
    unsafe { dl_iterate_phdr(one, (&raw mut see).cast()) };
}

/// The names of loaded objects are unknown on this system.
#[cfg(not(target_os = "linux"))]
pub(crate) fn loaded_objects(_see: impl FnMut(u64, &[u8]) -> bool) {}
