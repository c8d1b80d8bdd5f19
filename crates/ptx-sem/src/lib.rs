//! The meaning of PTX instructions on values: pure scalar functions, each written once.
//!
//! Every function is named like its instruction (`add_sat_s32` is `add.sat.s32`) and takes and returns plain
//! values: integers by their PTX type (`.u32` and `.b32` as `u32`, `.s32` as `i32`), `.f32` and `.f64` as
//! Rust floats, `.f16` and `.bf16` as their `u16` bits, `.f16x2` and `.bf16x2` as `u32` bits, predicates as
//! `bool`. A carry flag is an argument and a result.
//!
//! **Invariant:** a function depends only on its arguments (not on memory, time or state), is defined for all
//! arguments, never panics, and returns the same bits on every host.
//!
//! What it does not do: program text, types beyond the function's name, memory and lanes. `.ftz` and `.sat`
//! of the float instructions are functions of their own ([`ftz_f32`], [`sat_f32`]...); the caller composes
//! `sat(ftz(op(ftz(a), ftz(b))))`.
//!
//! If the manual leaves a value open, the function's documentation states the choice and the reason. The
//! source is PTX ISA 6.4, chapter 9.7; later instructions name the version that introduced them.
#![forbid(unsafe_code)]

/// Defines one public function per listed type from a private function that is generic over the integer type.
///
/// The list is data: documentation, argument names, the generic function, and pairs of public name and type.
macro_rules! per_type {
    ($doc:tt $generic:ident $args:tt: $($name:ident $ty:ty),+ $(,)?) => {
        $(per_type! { @one $doc $generic $args $name $ty })+
    };
    (@one [$(#[$doc:meta])*] $generic:ident ($($arg:ident),*) $name:ident $ty:ty) => {
        $(#[$doc])*
        #[inline]
        #[must_use]
        pub fn $name($($arg: $ty),*) -> $ty {
            $generic($($arg),*)
        }
    };
}

/// Defines instructions on a pair of 16-bit numbers in a word from those on a single number.
macro_rules! per_half {
    ($($doc:literal $name:ident $scalar:ident($($arg:ident),+);)+) => {$(
        #[doc = $doc]
        ///
        /// # Source
        /// The same as for the instruction on one number.
        #[inline(always)]
        #[must_use]
        pub fn $name($($arg: u32),+) -> u32 {
            // Written out, because a loop over the two halves keeps LLVM from vectorizing a loop over lanes.
            let low = $scalar($($arg as u16),+);
            let high = $scalar($(($arg >> 16) as u16),+);
            u32::from(high) << 16 | u32::from(low)
        }
    )+};
}
mod approx;
mod atom;
mod bfloat;
mod bits;
mod compare;
mod cvt;
mod extended;
mod extremum;
mod float;
mod half;
mod int;
mod logic;
mod matrix;
mod mbarrier;
mod soft;
mod texture;
mod tiny;
mod video;
mod warp;

pub use approx::*;
pub use atom::*;
pub use bfloat::*;
pub use bits::*;
pub use compare::*;
pub use cvt::*;
pub use extended::*;
pub use extremum::*;
pub use float::*;
pub use half::*;
pub use int::*;
pub use logic::*;
pub use matrix::*;
pub use mbarrier::*;
pub use soft::Rnd;
pub use texture::*;
pub use tiny::*;
pub use video::*;
pub use warp::*;
