//! Pages of the host with given rights, by the functions of the system.

use std::ffi::{c_int, c_void};

// SAFETY: the declarations have the signatures that POSIX gives these functions of the C library.
unsafe extern "C" {
    pub(crate) fn mmap(
        at: *mut c_void,
        bytes: usize,
        rights: c_int,
        flags: c_int,
        file: c_int,
        offset: i64,
    ) -> *mut c_void;
    pub(crate) fn mprotect(at: *mut c_void, bytes: usize, rights: c_int) -> c_int;
}
