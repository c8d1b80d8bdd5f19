//! Everything that can be determined about a PTX program **without running it**.
//!
//! Data flows one way: text → tokens → tree ([`syntax`]) → [`check::Module`] → [`ir::Program`] → facts
//! ([`analysis`]). Two transformations change a program: [`ir::inline`] and [`parameters`]. The instruction
//! table ([`isa`]) states each instruction once; parser, checker, printer and the binding in the interpreter
//! derive from it. Mistakes of the text are [`diag::Diagnostic`]s.
//!
//! Invariant: a later stage may hold handles into an earlier one (spans, row ids); an earlier stage never
//! names a later one. This crate knows neither run-time values nor memory nor the operating system.
#![forbid(unsafe_code)]

pub mod analysis;
pub mod check;
pub mod diag;
pub mod ir;
pub mod isa;
pub mod parameters;
mod span;
mod spelling;
pub mod syntax;

pub use span::{Line, LineIndex, Span};
