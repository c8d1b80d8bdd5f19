//! Functions of the driver, by name.
//!
//! Invariant: a function that needs a default stream uses that of the caller's variant.

use crate::driver::driver;
use crate::entry::{DefaultStream, runtime};
use crate::error::{Status, of_driver};
use crate::ffi::{Handle, Text};
use crate::version::is_11;
use std::ffi::{c_int, c_uint};

runtime! {
    /// A function of the driver, by name. In CUDA 11 the function has no parameter for the result.
    fn cudaGetDriverEntryPoint | cudaGetDriverEntryPoint_ptsz as default (
        symbol: Text, function: Handle, flags: u64, result: Handle,
    ) {
        let mut version = 12090;
        let driver = driver()?;
        of_driver((driver.cuDriverGetVersion)(&mut version))?;
        let result = if is_11() { Handle(0) } else { result };
        entry_point(default, symbol, function, version as c_uint, flags, result)
    }

    /// A function of the driver, by name and version.
    fn cudaGetDriverEntryPointByVersion | cudaGetDriverEntryPointByVersion_ptsz as default (
        symbol: Text, function: Handle, version: c_uint, flags: u64, result: Handle,
    ) {
        entry_point(default, symbol, function, version, flags, result)
    }
}

fn entry_point(
    default: DefaultStream,
    symbol: Text,
    function: Handle,
    version: c_uint,
    flags: u64,
    result: Handle,
) -> Result<(), Status> {
    let name = symbol.get()?;
    // 0 means the caller's default stream, 1 the legacy stream, 2 the thread's stream.
    let flags = match (flags, default) {
        (0, DefaultStream::PerThread) => 2,
        (flags, _) => flags,
    };
    let driver = driver()?;
    let found = (driver.cuGetProcAddress_v2)(name.as_ptr(), function, version as c_int, flags, result);
    // A missing function is reported in `result`, if the caller passed it.
    if found == Status::NOT_FOUND.0 && !result.is_null() { Ok(()) } else { of_driver(found) }
}
