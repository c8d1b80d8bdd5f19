//! cuBLASLt: products of matrices that descriptors describe.
//!
//! `descriptor` holds layouts, operations and preferences, `matmul` is the product, `epilogue` the functions
//! applied to its elements, `algorithm` the only algorithm.
//!
//! Invariant: a product whose descriptors ask for something unsupported is rejected by name, both when it is
//! called and when an algorithm is requested for it.

mod algorithm;
mod descriptor;
mod epilogue;
mod matmul;

use crate::entry::{functions, guard};
use crate::ffi::{LogFunction, Pointer, text};
use crate::handle::{self, VERSION};
use crate::log;
use crate::status::Status;
use std::ffi::{c_char, c_int};

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

    // Heuristics are not cached, so the cache has no limit.
    cublasLtHeuristicsCacheGetCapacity(capacity: Pointer) {
        capacity.write(&0usize.to_ne_bytes())
    }

    cublasLtHeuristicsCacheSetCapacity(_capacity: usize) {
        Ok(())
    }

    // `PTXVM_LOG` controls all logging. A log in NVIDIA's form is never written, so switching it off
    // succeeds.
    cublasLtLoggerSetCallback(callback: LogFunction) {
        if callback.is_none() { Ok(()) } else { log::refused("a log in the form of cuBLASLt (`PTXVM_LOG` enables ptxvm's own)") }
    }

    cublasLtLoggerSetFile(file: Pointer) {
        if file.is_null() { Ok(()) } else { log::refused("a log in the form of cuBLASLt (`PTXVM_LOG` enables ptxvm's own)") }
    }

    cublasLtLoggerOpenFile(_name: Pointer) {
        log::refused("a log in the form of cuBLASLt (`PTXVM_LOG` enables ptxvm's own)")
    }

    cublasLtLoggerSetLevel(level: c_int) {
        if level == 0 { Ok(()) } else { log::refused("a log in the form of cuBLASLt (`PTXVM_LOG` enables ptxvm's own)") }
    }

    cublasLtLoggerSetMask(mask: c_int) {
        if mask == 0 { Ok(()) } else { log::refused("a log in the form of cuBLASLt (`PTXVM_LOG` enables ptxvm's own)") }
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

/// Accepts a mask of the host's instruction sets, which has no effect. Returns the previous mask.
#[unsafe(no_mangle)]
extern "C" fn cublasLtDisableCpuInstructionsSetMask(_mask: u32) -> u32 {
    guard("cublasLtDisableCpuInstructionsSetMask", || Ok(()));
    0
}
