//! Facts about the values of a function: how they depend on the lane, their ranges, and which branches are
//! divergent.
//!
//! Invariant: an analysis changes nothing in a function but the facts that are recorded about its values.

pub(crate) mod divergence;
pub(crate) mod expr;
pub mod range;
pub mod shape;
pub(crate) mod thread_constant;
