//! The macros that define the functions of the API.
//!
//! ```text
//! blas! {
//!     // fn body[type parameter](call, parameters after the handle) { code } => {
//!     //     name, name with 64-bit integers or `-`, value of the type parameter
//!     // }
//!     fn axpy[W](call, n: int, alpha: ptr, x: ptr, incx: int, y: ptr, incy: int) { ... } => {
//!         cublasSaxpy_v2 cublasSaxpy_v2_64 <f32>,
//!         cublasDaxpy_v2 cublasDaxpy_v2_64 <f64>,
//!     }
//! }
//! ```
//!
//! `int` is `int` in the first form and `int64_t` in the 64-bit form. In both forms `word` is `int` or an
//! enumeration, `long` has 64 bits, and `ptr` is a pointer. The code gets all integers as `i64`, and
//! `call`, a [`Call`].
//!
//! Invariant: a panic in a body is caught, reported as a bug of ptxvm, and answered with
//! `CUBLAS_STATUS_INTERNAL_ERROR`.

use crate::driver;
use crate::ffi::Named;
use crate::ffi::{Pointer, Region};
use crate::handle::{self, PointerMode, Settings};
use crate::log;
use crate::number::{Codec, Work};
use crate::status::{Answer, Status, valid};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A call with a handle.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    /// The function's name.
    pub(crate) name: &'static str,
    /// Whether its integers have 64 bits.
    pub(crate) wide: bool,
    /// The handle's settings.
    pub(crate) settings: Settings,
}

/// Runs the body of a function without a handle.
pub(crate) fn guard(name: &'static str, body: impl FnOnce() -> Answer) -> Status {
    let status = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => Status::SUCCESS,
        Ok(Err(status)) => status,
        Err(_) => {
            log::say(&format!(
                "ptxvm bug: `{name}` panicked; please report it with the program and this text"
            ));
            Status::INTERNAL_ERROR
        }
    };
    log::call(name, status);
    status
}

/// Defines functions without a handle's settings: `name(parameters) { body }`.
macro_rules! functions {
    ($($name:ident($($arg:ident: $ty:ty),*) $body:block)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name($($arg: $ty),*) -> $crate::status::Status {
            $crate::entry::guard(stringify!($name), move || $body)
        }
    )*};
}
pub(crate) use functions;

/// Runs the body of a function.
pub(crate) fn enter(
    name: &'static str,
    handle: Pointer,
    wide: bool,
    body: impl FnOnce(&Call) -> Answer,
) -> Status {
    guard(name, || body(&Call { name, wide, settings: handle::settings(handle)? }))
}

/// A number that a call gets through a pointer.
#[derive(Clone, Copy)]
pub(crate) enum Scalar<W> {
    /// A host value, read at the time of the call.
    Known(W),
    /// A device value, read when the work runs.
    At(Region, Codec<W>),
}

impl<W: Work> Scalar<W> {
    /// The number.
    pub(crate) fn get(&self) -> W {
        match self {
            Scalar::Known(value) => *value,
            Scalar::At(region, codec) => {
                let mut bytes = [0; 16];
                let bytes = &mut bytes[..codec.ty.bytes() as usize];
                region.read(0, bytes);
                decoded(codec, bytes)
            }
        }
    }
}

fn decoded<W: Work>(codec: &Codec<W>, bytes: &[u8]) -> W {
    let mut value = [W::default()];
    (codec.decode)(bytes, &mut value);
    value[0]
}

impl Call {
    /// An argument that points to memory which the call reads.
    pub(crate) fn named(&self, argument: &'static str) -> Named {
        Named::read(self.name, argument)
    }

    /// An argument that points to memory which the call writes.
    pub(crate) fn written(&self, argument: &'static str) -> Named {
        Named::written(self.name, argument)
    }

    /// A number that the call gets through a pointer, to the host or the device by the handle's pointer mode.
    ///
    /// # Errors
    /// `CUBLAS_STATUS_INVALID_VALUE` for a null pointer or unmapped memory; the errors of [`Region::new`].
    pub(crate) fn scalar<W: Work>(
        &self,
        argument: &'static str,
        at: Pointer,
        codec: Codec<W>,
    ) -> Answer<Scalar<W>> {
        valid(!at.is_null())?;
        let size = codec.ty.bytes();
        match self.settings.pointer_mode {
            PointerMode::Host => {
                let mut bytes = [0; 16];
                let bytes = &mut bytes[..size as usize];
                at.read(bytes)?;
                Ok(Scalar::Known(decoded(&codec, bytes)))
            }
            PointerMode::Device => {
                let named = self.named(argument);
                Ok(Scalar::At(Region::new(named, at.address(), size.into(), codec.ty.alignment())?, codec))
            }
        }
    }

    /// A number of the compute type.
    ///
    /// # Errors
    /// As [`Call::scalar`].
    pub(crate) fn own<W: Work>(&self, argument: &'static str, at: Pointer) -> Answer<Scalar<W>> {
        self.scalar(argument, at, own()?)
    }

    /// Submits work to the handle's stream.
    ///
    /// # Errors
    /// As [`driver::submit`].
    pub(crate) fn submit(&self, work: impl Fn() -> Answer + Send + Sync + 'static) -> Answer {
        driver::submit(self.name, self.settings.stream, work)
    }

    /// Writes the bytes that work in the stream returns: to host memory, which waits for the work, or to
    /// device memory, by the pointer mode.
    ///
    /// # Errors
    /// `CUBLAS_STATUS_INVALID_VALUE` for a null pointer; the errors of [`driver::submit`] and
    /// [`driver::perform`].
    pub(crate) fn give(
        &self,
        place: Pointer,
        bytes: usize,
        work: impl Fn() -> Answer<Vec<u8>> + Send + Sync + 'static,
    ) -> Answer {
        valid(!place.is_null())?;
        match self.settings.pointer_mode {
            PointerMode::Host => place.write(&driver::perform(self.settings.stream, work)?),
            PointerMode::Device => {
                let aligned = if bytes.is_multiple_of(4) { 4 } else { 2 };
                let named = self.written("result");
                let region = Region::new(named, place.address(), bytes as u128, aligned)?;
                self.submit(move || {
                    region.write(0, &work()?);
                    Ok(())
                })
            }
        }
    }

    /// Like [`Call::give`], for a number.
    ///
    /// # Errors
    /// As [`Call::give`].
    pub(crate) fn give_number<W: Work>(
        &self,
        place: Pointer,
        codec: Codec<W>,
        work: impl Fn() -> Answer<W> + Send + Sync + 'static,
    ) -> Answer {
        let size = codec.ty.bytes() as usize;
        self.give(place, size, move || {
            let mut bytes = vec![0; size];
            (codec.encode)(&[work()?], &mut bytes);
            Ok(bytes)
        })
    }
}

/// The codec of the compute type itself.
///
/// # Errors
/// Never: each compute type has a codec for itself.
pub(crate) fn own<W: Work>() -> Answer<Codec<W>> {
    W::codec(W::TYPE).ok_or(Status::INTERNAL_ERROR)
}

/// Converts integers of either form to one type.
pub(crate) trait Widen {
    /// The body's type.
    type Wide;
    /// The same value.
    fn widen(self) -> Self::Wide;
}

impl Widen for i32 {
    type Wide = i64;
    fn widen(self) -> i64 {
        self.into()
    }
}

impl Widen for i64 {
    type Wide = i64;
    fn widen(self) -> i64 {
        self
    }
}

impl Widen for Pointer {
    type Wide = Pointer;
    fn widen(self) -> Pointer {
        self
    }
}

/// Defines functions; the head of this file describes the syntax.
macro_rules! blas {
    ($(
        $(#[$doc:meta])*
        fn $body:ident $generic:tt $params:tt $code:block => {
            $($name:ident $wide:tt $(<$work:ty>)?),* $(,)?
        }
    )*) => {$(
        $crate::entry::body!($(#[$doc])* $body $generic $params $code);
        $($crate::entry::function!($body $params $name $wide [$($work)?]);)*
    )*};
}

/// Defines the body of functions.
macro_rules! body {
    (
        $(#[$doc:meta])* $body:ident [$($generic:ident)?]
        ($call:ident $(, $arg:ident: $kind:ident)* $(,)?) $code:block
    ) => {
        $(#[$doc])*
        fn $body$(<$generic: $crate::number::Work>)?(
            $call: &$crate::entry::Call,
            $($arg: $crate::entry::kind!($kind i64 i64)),*
        ) -> $crate::status::Answer $code
    };
}

/// Defines the two forms of a function.
macro_rules! function {
    ($body:ident $params:tt $name:ident - $work:tt) => {
        $crate::entry::form!($body $params $name i32 $work);
    };
    ($body:ident $params:tt $name:ident $wide:ident $work:tt) => {
        $crate::entry::form!($body $params $name i32 $work);
        $crate::entry::form!($body $params $wide i64 $work);
    };
}

/// Defines one function.
macro_rules! form {
    (
        $body:ident ($call:ident $(, $arg:ident: $kind:ident)* $(,)?) $name:ident $int:ident [$($work:ty)?]
    ) => {
        #[unsafe(no_mangle)]
        extern "C" fn $name(
            handle: $crate::ffi::Pointer,
            $($arg: $crate::entry::kind!($kind $int i32)),*
        ) -> $crate::status::Status {
            $crate::entry::enter(stringify!($name), handle, size_of::<$int>() == 8, move |call| {
                $body$(::<$work>)?(call, $($crate::entry::Widen::widen($arg)),*)
            })
        }
    };
}

/// The type of a parameter, by the types of `int` and `word`.
macro_rules! kind {
    (int $int:ident $word:ident) => {
        $int
    };
    (word $int:ident $word:ident) => {
        $word
    };
    (long $int:ident $word:ident) => {
        i64
    };
    (ptr $int:ident $word:ident) => {
        $crate::ffi::Pointer
    };
}

pub(crate) use {blas, body, form, function, kind};
