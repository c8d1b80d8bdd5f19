//! Compiles PTX to vector code through LLVM, for a [`Target`].
//!
//! `build` and `opt` make [`wir`] (the warp IR) of a PTX function, and `analysis` finds how its values depend
//! on the lane; `pipeline` lists these passes in their order. `codegen` makes LLVM IR of WIR, with `isel` for
//! single instructions. `llvm` is a thin safe layer over LLVM's C API, the only place that calls it. `engine`
//! compiles kernels and enters their code; `cache` keeps it. The crate's README has the whole map.
//!
//! LLVM is loaded when the first [`Session`] starts, not when the program does: a program that never compiles
//! pays nothing for it, runs where there is none, and keeps LLVM's symbols out of the process that it is
//! loaded into.

pub mod analysis;
mod build;
mod cache;
mod coarsen;
mod codegen;
mod effects;
mod engine;
mod features;
mod frame;
mod isel;
#[allow(dead_code, unused_imports, reason = "the layer is whole; the emitter uses of it what it needs")]
mod llvm;
mod mem;
mod object;
mod opt;
mod pipeline;
mod reduction_buffer;
mod remarks;
mod scalar;
pub mod stages;
mod target;
mod tuning;
pub mod wir;

pub use cache::{Compiler, Found, Source, compiler_thread};
pub use coarsen::Teams;
pub use effects::native;
pub use engine::{Compiled, Listing, listing};
pub use llvm::{About, Error, Session, about, guard_this_thread, is_ending};
pub use pipeline::Pass;
pub use scalar::may_be_scalar;
pub use target::{Level, Target};
