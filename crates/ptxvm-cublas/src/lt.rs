//! cuBLASLt: products of matrices that descriptors describe.
//!
//! `descriptor` holds layouts, operations and preferences, `matmul` is the product, `epilogue` what is done to its elements, `algorithm` the one way of
//! computing that there is.
//!
//! Invariant: what a descriptor asks for and is not done is refused by name when the product is called, and when a way to compute it is asked for.

mod algorithm;
mod descriptor;
mod epilogue;
mod matmul;

use crate::entry::guard;
use crate::ffi::{LogFunction, Pointer, text};
use crate::handle::{self, VERSION};
use crate::log;
use crate::status::Status;
use std::ffi::{c_char, c_int};

macro_rules! functions {
    ($($name:ident($($arg:ident: $ty:ty),*) $body:block)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name($($arg: $ty),*) -> $crate::status::Status {
            $crate::entry::guard(stringify!($name), move || $body)
        }
    )*};
}
use functions;

functions! {
    cublasLtCreate(handle: Pointer) {
        handle::create(handle)
    }

    cublasLtDestroy(handle: Pointer) {
        handle::destroy(handle)
    }

    cublasLtGetProperty(which: c_int, value: Pointer) {
        handle::property(which, value)
    }

    // Nothing is kept of heuristics, so there is no limit to it.
    cublasLtHeuristicsCacheGetCapacity(capacity: Pointer) {
        capacity.write(&0usize.to_ne_bytes())
    }

    cublasLtHeuristicsCacheSetCapacity(_capacity: usize) {
        Ok(())
    }

    // Of what is said, PTXVM_LOG decides; a log in NVIDIA's form is not written, so switching it off is done already.
    cublasLtLoggerSetCallback(callback: LogFunction) {
        if callback.is_none() { Ok(()) } else { log::refused("a log of cuBLASLt (PTXVM_LOG has one)") }
    }

    cublasLtLoggerSetFile(file: Pointer) {
        if file.is_null() { Ok(()) } else { log::refused("a log of cuBLASLt (PTXVM_LOG has one)") }
    }

    cublasLtLoggerOpenFile(_name: Pointer) {
        log::refused("a log of cuBLASLt (PTXVM_LOG has one)")
    }

    cublasLtLoggerSetLevel(level: c_int) {
        if level == 0 { Ok(()) } else { log::refused("a log of cuBLASLt (PTXVM_LOG has one)") }
    }

    cublasLtLoggerSetMask(mask: c_int) {
        if mask == 0 { Ok(()) } else { log::refused("a log of cuBLASLt (PTXVM_LOG has one)") }
    }

    cublasLtLoggerForceDisable() {
        Ok(())
    }
}

#[unsafe(no_mangle)]
extern "C" fn cublasLtGetStatusName(status: Status) -> *const c_char {
    text(status.name())
}

#[unsafe(no_mangle)]
extern "C" fn cublasLtGetStatusString(status: Status) -> *const c_char {
    text(status.text())
}

#[unsafe(no_mangle)]
extern "C" fn cublasLtGetVersion() -> usize {
    let [major, minor, patch] = VERSION;
    (major * 10000 + minor * 100 + patch) as usize
}

#[unsafe(no_mangle)]
extern "C" fn cublasLtGetCudartVersion() -> usize {
    12090
}

/// The mask has bits for sets of instructions of the host; none of them is masked. Returns the mask that was in force.
#[unsafe(no_mangle)]
extern "C" fn cublasLtDisableCpuInstructionsSetMask(_mask: u32) -> u32 {
    guard("cublasLtDisableCpuInstructionsSetMask", || Ok(()));
    0
}
