//! The version of the runtime API for which the program is built. Under one name, some functions have other
//! parameters or structures in CUDA 11, 12 and 13.
//!
//! It is the version of the runtime inside the program, if `ptxvm-preload` has redirected one; or that of the
//! one name under which this library was loaded (`libcudart.so.13`). Otherwise it is unknown, and CUDA 13 is
//! assumed if the driver's version is 13.
//!
//! Invariant: no structure is written that is larger than that of the version. What it does not do: a process
//! whose libraries are built for several versions gets the functions of one.

use crate::driver::Driver;
use crate::error::{Status, of_driver};
use crate::ffi::loaded_objects;
use std::ffi::c_uint;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// The version of a redirected runtime, or 0.
static TOLD: AtomicU32 = AtomicU32::new(0);

/// Notes the version of a runtime that is redirected to this one. `ptxvm-preload` calls it.
#[unsafe(no_mangle)]
extern "C" fn ptxvm_cudart_built_for(major: c_uint) {
    TOLD.store(major, Ordering::Relaxed);
}

/// The version, if it is known.
pub(crate) fn known() -> Option<u32> {
    match TOLD.load(Ordering::Relaxed) {
        0 => of_names(),
        told => Some(told),
    }
}

/// Whether the program is built for CUDA 11.
pub(crate) fn is_11() -> bool {
    known() == Some(11)
}

/// Whether the program is built for CUDA 13.
///
/// # Errors
/// The driver's.
pub(crate) fn is_13(driver: &Driver) -> Result<bool, Status> {
    if let Some(known) = known() {
        return Ok(known == 13);
    }
    let mut version = 0;
    of_driver((driver.cuDriverGetVersion)(&mut version))?;
    Ok(version >= 13000)
}

/// The version in the file names of loaded libraries, if they agree.
fn of_names() -> Option<u32> {
    /// The number of objects that had been loaded, and the version in their names.
    static FOUND: Mutex<(u64, Option<u32>)> = Mutex::new((0, None));
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    let mut count = 0;
    loaded_objects(|loaded, _| {
        count = loaded;
        false
    });
    if found.0 != count {
        let mut versions = Vec::new();
        loaded_objects(|_, path| {
            versions.extend(of_path(path));
            true
        });
        versions.sort_unstable();
        versions.dedup();
        *found = (count, if let [only] = versions[..] { Some(only) } else { None });
    }
    found.1
}

/// The version in the file name of a runtime: 11 for `libcudart.so.11.0`.
fn of_path(path: &[u8]) -> Option<u32> {
    let name = path.rsplit(|byte| *byte == b'/').next()?;
    let version = std::str::from_utf8(name.strip_prefix(b"libcudart.so.")?).ok()?;
    version.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_have_versions() {
        for (path, version) in [
            ("/a/libcudart.so.11.0", Some(11)),
            ("libcudart.so.12", Some(12)),
            ("/a/b/libcudart.so.13.5.37", Some(13)),
            ("/a/libcudart.so", None),
            ("/a/libcudart.so.x", None),
            ("/libcudart.so.12/libcuda.so.1", None),
            ("", None),
        ] {
            assert_eq!(of_path(path.as_bytes()), version, "{path}");
        }
    }
}
