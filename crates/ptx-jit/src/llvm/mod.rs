//! A thin safe layer over the parts of LLVM's C API that the emitter uses.
//!
//! Handles ([`Value`], [`Type`], [`Block`], [`Function`]) are plain copies without a lifetime. **The
//! invariant that callers keep**: a handle is passed only to builders of the module that created it, while
//! that module lives. The code generator creates one module for each compilation, and drops it with every
//! handle at the end; no handle leaves the crate.
//!
//! No instruction has a fast-math, `nsw`, `nuw` or `exact` flag, so each has its plain meaning.

mod api;
mod arithmetic;
mod beside;
mod builder;
mod code;
mod control;
mod destructors;
mod exit;
mod memory;
mod module;
mod park;
mod place;
pub(crate) mod room;
mod select;
mod session;
mod split_chains;
#[cfg(test)]
mod tests;

pub(crate) use api::library;
pub use api::{About, Error, about};
pub(crate) use code::Code;
pub(crate) use exit::Working;
pub(crate) use exit::before_exit;
pub use exit::{guard_this_thread, is_ending};
pub use session::Session;
pub(crate) use session::{Effort, Object};

pub(crate) use arithmetic::{FloatPred, IntPred};
pub(crate) use builder::Builder;
pub(crate) use control::Likely;
pub(crate) use memory::{AtomicOp, Ordering};
pub(crate) use module::{Block, Flush, Function, Module, Type, Value};
