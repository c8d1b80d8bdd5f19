//! The macros that define the functions of the runtime API.
//!
//! ```text
//! runtime! {
//!     /// A function that the driver has with the same parameters; its status is returned.
//!     fn cudaStreamDestroy(stream: Handle) => cuStreamDestroy_v2;
//!     /// A function with a body.
//!     fn cudaGetDevice(device: Out<c_int>) { ... }
//!     /// A function that uses a default stream, and its variant for the default stream of the thread.
//!     fn cudaMemsetAsync | cudaMemsetAsync_ptsz as default (...) { ... }
//! }
//! ```
//!
//! Invariant: a failure is stored as the thread's last error. A panic is caught, reported as a bug of ptxvm,
//! and answered with `cudaErrorUnknown`.

use crate::error::{self, Answer, Status};
use crate::ffi::Handle;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The stream that a null handle means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DefaultStream {
    /// The context's stream.
    Legacy,
    /// The thread's stream.
    PerThread,
}

impl DefaultStream {
    /// The stream for a handle. Handle 2 is the thread's default stream.
    pub(crate) fn or(self, stream: Handle) -> Handle {
        match self {
            DefaultStream::PerThread if stream.is_null() => Handle(2),
            DefaultStream::Legacy | DefaultStream::PerThread => stream,
        }
    }
}

/// Runs the body of a function.
pub(crate) fn enter(name: &'static str, body: impl FnOnce() -> Answer) -> Status {
    let status = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return Status::SUCCESS,
        Ok(Err(status)) => status,
        Err(_) => {
            host_memory::log::say(&format!(
                "ptxvm bug: `{name}` panicked; please report it with the program and this text"
            ));
            Status::UNKNOWN
        }
    };
    error::remember(status);
    status
}

/// Defines functions; the head of this file describes the syntax.
macro_rules! runtime {
    ($(
        #[doc = $doc:literal] $(#[doc = $more:literal])*
        fn $name:ident $(| $twin:ident as $default:ident)? ($($arg:ident: $ty:ty),* $(,)?) $(=> $driver:ident;)? $($body:block)?
    )*) => {
        $($crate::entry::function!($doc; $name [$($twin $default)?] ($($arg: $ty),*) [$($driver)?] $($body)?);)*
    };
}

/// Defines one function and its per-thread variant.
macro_rules! function {
    ($doc:literal; $name:ident [] ($($arg:ident: $ty:ty),*) [$driver:ident]) => {
        #[doc = $doc]
        #[unsafe(no_mangle)]
        extern "C" fn $name($($arg: $ty),*) -> $crate::error::Status {
            $crate::entry::enter(stringify!($name), move || {
                let driver = $crate::device::context()?;
                $crate::error::of_driver((driver.$driver)($($arg),*))
            })
        }
    };
    ($doc:literal; $name:ident [$twin:ident $default:ident] ($($arg:ident: $ty:ty),*) [] $body:block) => {
        #[doc = $doc]
        #[unsafe(no_mangle)]
        extern "C" fn $name($($arg: $ty),*) -> $crate::error::Status {
            let $default = $crate::entry::DefaultStream::Legacy;
            $crate::entry::enter(stringify!($name), move || -> $crate::error::Answer { $body })
        }
        #[doc = $doc]
        #[unsafe(no_mangle)]
        extern "C" fn $twin($($arg: $ty),*) -> $crate::error::Status {
            let $default = $crate::entry::DefaultStream::PerThread;
            $crate::entry::enter(stringify!($twin), move || -> $crate::error::Answer { $body })
        }
    };
    ($doc:literal; $name:ident [] ($($arg:ident: $ty:ty),*) [] $body:block) => {
        #[doc = $doc]
        #[unsafe(no_mangle)]
        extern "C" fn $name($($arg: $ty),*) -> $crate::error::Status {
            $crate::entry::enter(stringify!($name), move || -> $crate::error::Answer { $body })
        }
    };
}

pub(crate) use {function, runtime};
