//! The macro that defines the functions of the driver API.
//!
//! `entries!` lists functions. Each becomes an exported C function, and a row of a table that
//! `cuGetProcAddress` and the documentation use:
//!
//! ```text
//! entries! { TABLE;
//!     /// What it does.
//!     fn cuDeviceGet(device: Out<c_int>, ordinal: c_int) {
//!         device.set(ordinal)            // the body's value is an `Answer`
//!     }
//!     /// A function that works on a default stream has a twin for the default stream of the thread.
//!     fn cuMemsetD8Async | cuMemsetD8Async_ptsz as default (...) { ... stream(handle, default) ... }
//! }
//! ```
//!
//! Invariant: a panic in a body is caught, reported as a bug of ptxvm, and answered with
//! `CUDA_ERROR_UNKNOWN`.

use crate::context;
use crate::health;
use crate::log;
use crate::status::{Answer, Status};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A function that C can call.
pub(crate) struct Entry {
    /// Its name.
    pub(crate) name: &'static str,
    /// Its address.
    pub(crate) address: fn() -> usize,
    /// A description; empty for a function that is not supported.
    #[allow(dead_code, reason = "the test that keeps the page of entry points reads it")]
    pub(crate) brief: &'static str,
}

/// The stream that a null handle means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DefaultStream {
    /// The context's stream, which is ordered with all blocking streams.
    Legacy,
    /// The thread's stream.
    PerThread,
}

/// Runs the body of an entry point.
pub(crate) fn enter(name: &'static str, body: impl FnOnce() -> Answer) -> Status {
    crate::tools::calls(name);
    let checked = || {
        if health::is_any_struck() && !is_independent(name) {
            context::check_current()?;
        }
        body()
    };
    let status = match catch_unwind(AssertUnwindSafe(checked)) {
        Ok(Ok(())) => Status::Success,
        Ok(Err(status)) => status,
        Err(_) => {
            log::say(&format!(
                "ptxvm bug: `{name}` panicked; please report it with the program and this text"
            ));
            Status::Unknown
        }
    };
    crate::driver::settle_call();
    health::answered(status);
    log::call(name, status);
    status
}

/// Whether a function works without the current context, and so does not return the error of a trap in it: it
/// concerns the process, a device, or the choice of the current context, or it ends a context.
fn is_independent(name: &str) -> bool {
    const OTHERS: &[&str] = &[
        "cuCtxCreate_v2",
        "cuCtxCreate_v3",
        "cuCtxCreate_v4",
        "cuCtxDestroy_v2",
        "cuCtxDetach",
        "cuCtxGetCurrent",
        "cuCtxGetDevice",
        "cuCtxGetDevice_v2",
        "cuCtxPopCurrent_v2",
        "cuCtxPushCurrent_v2",
        "cuCtxSetCurrent",
        "cuDriverGetVersion",
        "cuGetErrorName",
        "cuGetErrorString",
        "cuGetExportTable",
        "cuGetProcAddress",
        "cuGetProcAddress_ptsz",
        "cuGetProcAddress_v2",
        "cuGetProcAddress_v2_ptsz",
        "cuInit",
        "cuModuleGetLoadingMode",
        "cuProfilerInitialize",
        "cuProfilerStart",
        "cuProfilerStop",
        "cuThreadExchangeStreamCaptureMode",
        "ptxvmReach",
    ];
    name.starts_with("cuDevice") || OTHERS.contains(&name)
}

/// Defines entry points; the head of this file describes the syntax.
macro_rules! entries {
    ($table:ident; $(
        #[doc = $doc:literal] $(#[doc = $more:literal])*
        fn $name:ident $(| $twin:ident as $default:ident)? ($($arg:ident: $ty:ty),* $(,)?) $body:block
    )*) => {
        $($crate::entry::entry!($doc; $name [$($twin $default)?] ($($arg: $ty),*) $body);)*

        /// The entry points of this file.
        pub(crate) const $table: &[$crate::entry::Entry] = &[
            $($crate::entry::row!($doc; $name),)*
            $($($crate::entry::row!($doc; $twin),)?)*
        ];
    };
}

/// Defines one entry point and its per-thread variant.
macro_rules! entry {
    ($doc:literal; $name:ident [] ($($arg:ident: $ty:ty),*) $body:block) => {
        #[doc = $doc]
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $name($($arg: $ty),*) -> $crate::status::Status {
            $crate::entry::enter(stringify!($name), move || -> $crate::status::Answer { $body })
        }
    };
    ($doc:literal; $name:ident [$twin:ident $default:ident] ($($arg:ident: $ty:ty),*) $body:block) => {
        #[doc = $doc]
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $name($($arg: $ty),*) -> $crate::status::Status {
            let $default = $crate::entry::DefaultStream::Legacy;
            $crate::entry::enter(stringify!($name), move || -> $crate::status::Answer { $body })
        }
        #[doc = $doc]
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $twin($($arg: $ty),*) -> $crate::status::Status {
            let $default = $crate::entry::DefaultStream::PerThread;
            $crate::entry::enter(stringify!($twin), move || -> $crate::status::Answer { $body })
        }
    };
}

/// One row of a table.
macro_rules! row {
    ($doc:literal; $name:ident) => {
        $crate::entry::Entry { name: stringify!($name), address: || $name as *const () as usize, brief: $doc }
    };
}

pub(crate) use {entries, entry, row};
