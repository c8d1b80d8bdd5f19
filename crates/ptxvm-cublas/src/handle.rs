//! Handles and their settings: stream, pointer mode, compute modes.
//!
//! Invariant: a handle's number is never used twice and never dereferenced. A handle of cuBLAS is also one of
//! cuBLASLt, as the documentation promises. Compute modes are stored but have no effect: products are
//! computed in full precision in all of them.

use crate::driver::{self, Reach};
use crate::entry::functions;
use crate::ffi::{LogFunction, Pointer, text};
use crate::log;
use crate::status::{Answer, Status, valid};
use host_memory::Access;
use std::collections::HashMap;
use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, PoisonError, RwLock, RwLockWriteGuard};

/// The version that this library reports: CUDA 12.9's.
pub(crate) const VERSION: [c_int; 3] = [12, 9, 1];

/// The memory of numbers that calls get through pointers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PointerMode {
    /// In memory of the host.
    #[default]
    Host,
    /// In memory of the device.
    Device,
}

/// A handle's settings.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) stream: usize,
    pub(crate) pointer_mode: PointerMode,
    atomics: c_int,
    math: c_int,
    multiprocessors: c_int,
    emulation: c_int,
}

impl Settings {
    /// The settings of a call that takes a stream and a pointer mode itself.
    pub(crate) fn of(stream: usize, pointer_mode: PointerMode) -> Self {
        Self { stream, pointer_mode, ..Self::default() }
    }
}

type Table = HashMap<usize, Settings>;

static HANDLES: LazyLock<RwLock<Table>> = LazyLock::new(RwLock::default);

fn table() -> RwLockWriteGuard<'static, Table> {
    HANDLES.write().unwrap_or_else(PoisonError::into_inner)
}

/// The settings of a handle.
///
/// # Errors
/// `CUBLAS_STATUS_NOT_INITIALIZED` for an unknown handle.
pub(crate) fn settings(handle: Pointer) -> Answer<Settings> {
    if host_memory::is_forked() {
        return Err(Status::NOT_INITIALIZED);
    }
    let table = HANDLES.read().unwrap_or_else(PoisonError::into_inner);
    table.get(&handle.0).copied().ok_or(Status::NOT_INITIALIZED)
}

/// Changes the settings of a handle.
fn set(handle: Pointer, change: impl FnOnce(&mut Settings)) -> Answer {
    settings(handle)?;
    table().get_mut(&handle.0).map(change).ok_or(Status::NOT_INITIALIZED)
}

/// Makes a handle.
///
/// # Errors
/// `CUBLAS_STATUS_INVALID_VALUE` for a null pointer, `CUBLAS_STATUS_NOT_INITIALIZED` without ptxvm's driver.
pub(crate) fn create(place: Pointer) -> Answer {
    // Handles start above the small numbers, below every mapped page, and are multiples of 16 like pointers.
    static NEXT: AtomicUsize = AtomicUsize::new(0x1000);
    valid(!place.is_null())?;
    driver::enter()?;
    let handle = NEXT.fetch_add(16, Ordering::Relaxed);
    place.write(&handle.to_ne_bytes())?;
    table().insert(handle, Settings::default());
    Ok(())
}

/// Removes a handle. Submitted work continues.
///
/// # Errors
/// `CUBLAS_STATUS_NOT_INITIALIZED`.
pub(crate) fn destroy(handle: Pointer) -> Answer {
    settings(handle)?;
    table().remove(&handle.0).map(|_| ()).ok_or(Status::NOT_INITIALIZED)
}

/// Writes a property of the library: major, minor, patch level.
///
/// # Errors
/// `CUBLAS_STATUS_INVALID_VALUE`.
pub(crate) fn property(which: c_int, place: Pointer) -> Answer {
    let value = usize::try_from(which).ok().and_then(|which| VERSION.get(which));
    place.write(&value.ok_or(Status::INVALID_VALUE)?.to_ne_bytes())
}

/// Defines the getter and the setter of a numeric setting.
macro_rules! modes {
    ($($get:ident $set:ident $field:ident $allowed:expr;)*) => {$(
        functions! {
            $get(handle: Pointer, mode: Pointer) {
                mode.write(&settings(handle)?.$field.to_ne_bytes())
            }
            $set(handle: Pointer, mode: c_int) {
                settings(handle)?;
                let allowed: fn(c_int) -> bool = $allowed;
                valid(allowed(mode))?;
                set(handle, |settings| settings.$field = mode)
            }
        }
    )*};
}

modes! {
    cublasGetAtomicsMode cublasSetAtomicsMode atomics |mode| (0..=1).contains(&mode);
    // The modes, and the flag that disallows sums in reduced precision.
    cublasGetMathMode cublasSetMathMode math |mode| (0..=4).contains(&(mode & !16));
    cublasGetSmCountTarget cublasSetSmCountTarget multiprocessors |count| count >= 0;
    cublasGetEmulationStrategy cublasSetEmulationStrategy emulation |mode| (0..=2).contains(&mode);
}

functions! {
    cublasCreate_v2(handle: Pointer) {
        create(handle)
    }

    cublasDestroy_v2(handle: Pointer) {
        destroy(handle)
    }

    cublasSetStream_v2(handle: Pointer, stream: Pointer) {
        settings(handle)?;
        valid(driver::is_stream(stream.0)?)?;
        set(handle, |settings| settings.stream = stream.0)
    }

    cublasGetStream_v2(handle: Pointer, stream: Pointer) {
        stream.write(&settings(handle)?.stream.to_ne_bytes())
    }

    cublasSetPointerMode_v2(handle: Pointer, mode: c_int) {
        settings(handle)?;
        let pointer_mode = match mode {
            0 => PointerMode::Host,
            1 => PointerMode::Device,
            _ => return Err(Status::INVALID_VALUE),
        };
        set(handle, |settings| settings.pointer_mode = pointer_mode)
    }

    cublasGetPointerMode_v2(handle: Pointer, mode: Pointer) {
        let is_device = settings(handle)?.pointer_mode == PointerMode::Device;
        mode.write(&c_int::from(is_device).to_ne_bytes())
    }

    // No function here needs a workspace. A given workspace must be device memory, aligned as documented.
    cublasSetWorkspace_v2(handle: Pointer, workspace: Pointer, bytes: usize) {
        settings(handle)?;
        valid(workspace.0.is_multiple_of(256) && (bytes == 0 || !workspace.is_null()))?;
        let reach = || driver::reach(workspace.address(), bytes as u64, Access::Write);
        valid(bytes == 0 || reach()? == Reach::Permitted)
    }

    cublasGetVersion_v2(_handle: Pointer, version: Pointer) {
        let [major, minor, patch] = VERSION;
        version.write(&(major * 10000 + minor * 100 + patch).to_ne_bytes())
    }

    cublasGetProperty(which: c_int, value: Pointer) {
        property(which, value)
    }

    // `PTXVM_LOG` controls all logging. A log in NVIDIA's form is not written.
    cublasLoggerConfigure(is_on: c_int, _to_out: c_int, _to_err: c_int, _file: Pointer) {
        if is_on == 0 { Ok(()) } else { log::refused("a log in the form of cuBLAS (`PTXVM_LOG` enables ptxvm's own)") }
    }

    cublasSetLoggerCallback(callback: LogFunction) {
        if callback.is_none() { Ok(()) } else { log::refused("a log in the form of cuBLAS (`PTXVM_LOG` enables ptxvm's own)") }
    }

    cublasGetLoggerCallback(callback: Pointer) {
        callback.write(&0usize.to_ne_bytes())
    }
}

#[unsafe(no_mangle)]
extern "C" fn cublasGetStatusName(status: Status) -> *const c_char {
    text(status.name())
}

#[unsafe(no_mangle)]
extern "C" fn cublasGetStatusString(status: Status) -> *const c_char {
    text(status.text())
}

#[unsafe(no_mangle)]
extern "C" fn cublasGetCudartVersion() -> usize {
    12090
}
