//! What is known of the values of a function: how they depend on the lane, their ranges, which branches are divergent.
//!
//! Invariant: an analysis reads a function and changes nothing of it but what it records about values.

pub(crate) mod divergence;
pub(crate) mod expr;
pub mod range;
pub mod shape;
pub(crate) mod thread_constant;
