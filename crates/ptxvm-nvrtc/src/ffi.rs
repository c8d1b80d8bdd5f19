//! Arguments from C, as types. All `unsafe` for the caller's pointers and functions is here.
//!
//! [`host_memory`] checks pointers as far as the system can tell: null, misaligned, implausible and unmapped
//! addresses are rejected.
//!
//! Invariant: no method keeps a pointer after the call, except [`Callback`], which its program keeps as the
//! caller promised.

use crate::status::{Answer, Status};
use host_memory::could_be;
use std::ffi::{CStr, c_char, c_int, c_void};

/// Most bytes of a text. Chosen: larger than any program's text.
const TEXT_MAX: usize = 1 << 30;

/// A pointer to which a function writes.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Out<T>(*mut T);

impl<T: Copy> Out<T> {
    /// Writes the value.
    pub(crate) fn set(self, value: T) -> Answer {
        self.set_all(&[value])
    }

    /// Writes several values, one after another.
    pub(crate) fn set_all(self, values: &[T]) -> Answer {
        // SAFETY: the C caller asked for the values at this address.
        let written = unsafe { host_memory::put(self.0, values) };
        if written { Ok(()) } else { Err(Status::INVALID_INPUT) }
    }

    /// The value that is there.
    pub(crate) fn get(self) -> Answer<T> {
        In(self.0).get()
    }
}

/// A pointer from which a function reads.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct In<T>(*const T);

impl<T: Copy> In<T> {
    /// The value.
    fn get(self) -> Answer<T> {
        // SAFETY: the C caller promises a value of this type.
        unsafe { host_memory::get(self.0) }.ok_or(Status::INVALID_INPUT)
    }

    /// Copies `count` values.
    pub(crate) fn all(self, count: usize) -> Answer<Vec<T>> {
        // SAFETY: the C caller promises `count` values.
        match unsafe { host_memory::get_all(self.0, count) } {
            Ok(values) => values.ok_or(Status::INVALID_INPUT),
            Err(_) => Err(Status::OUT_OF_MEMORY),
        }
    }
}

/// A null-terminated text of the caller.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Text(*const c_char);

impl Text {
    /// Whether it is null.
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// A copy of its bytes.
    pub(crate) fn get(self) -> Answer<Vec<u8>> {
        match host_memory::text(self.0.expose_provenance(), TEXT_MAX) {
            Ok(text) => text.ok_or(Status::INVALID_INPUT),
            Err(host_memory::Refused) if could_be(self.0.addr(), 1) => {
                // SAFETY: the pointer is not null, and the caller promises a null-terminated text.
                Ok(unsafe { CStr::from_ptr(self.0) }.to_bytes().to_vec())
            }
            Err(host_memory::Refused) => Err(Status::INVALID_INPUT),
        }
    }
}

/// A text of this library for C to read.
pub(crate) fn text(text: &CStr) -> *const c_char {
    text.as_ptr()
}

/// A function of the caller that says whether to continue (0) or to stop (1), and its payload.
#[derive(Clone, Copy)]
pub(crate) struct Callback {
    function: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
    payload: usize,
}

/// A function pointer from C for a [`Callback`]; it may be null.
pub(crate) type CallbackFunction = Option<unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int>;

impl Callback {
    /// The callback, if the function is not null.
    pub(crate) fn new(function: CallbackFunction, payload: usize) -> Option<Self> {
        function.map(|function| Self { function, payload })
    }

    /// Whether it wants the work to stop.
    pub(crate) fn stops(self) -> bool {
        let payload = std::ptr::with_exposed_provenance_mut(self.payload);
        // SAFETY: the caller promises a function that may be called with this pointer while its program is
        // compiled.
        unsafe { (self.function)(payload, std::ptr::null_mut()) == 1 }
    }
}
