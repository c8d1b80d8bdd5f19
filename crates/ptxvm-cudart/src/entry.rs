//! How a function of the runtime API is written.
//!
//! ```text
//! runtime! {
//!     /// One that the driver has with the same parameters: the driver's answer is the answer.
//!     fn cudaStreamDestroy(stream: Handle) => cuStreamDestroy_v2;
//!     /// One with a body.
//!     fn cudaGetDevice(device: Out<c_int>) { ... }
//!     /// One that works on a default stream, and its twin for the default stream of the thread.
//!     fn cudaMemsetAsync | cudaMemsetAsync_ptsz as default (...) { ... }
//! }
//! ```
//!
//! Invariant: a failure is remembered as the thread's last error; a panic is caught, reported as a bug of ours, and answered with
//! `cudaErrorUnknown`.

use crate::error::{self, Answer, Status};
use crate::ffi::Handle;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Which stream a null handle means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DefaultStream {
    /// That of the context.
    Legacy,
    /// That of the thread.
    PerThread,
}

impl DefaultStream {
    /// The stream that is meant: handle 2 is the default stream of the thread.
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
            error::say(&format!(
                "ptxvm bug: `{name}` failed in itself; please report it with the program and this text"
            ));
            Status::UNKNOWN
        }
    };
    error::remember(status);
    status
}

/// Defines functions: see the head of this file.
macro_rules! runtime {
    ($(
        #[doc = $doc:literal] $(#[doc = $more:literal])*
        fn $name:ident $(| $twin:ident as $default:ident)? ($($arg:ident: $ty:ty),* $(,)?) $(=> $driver:ident;)? $($body:block)?
    )*) => {
        $($crate::entry::function!($doc; $name [$($twin $default)?] ($($arg: $ty),*) [$($driver)?] $($body)?);)*
    };
}

/// One function, and its twin.
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
