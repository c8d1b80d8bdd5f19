//! Transformations of WIR: phi elimination, value numbering and dead code elimination.
//!
//! Invariant: each leaves a function that computes the same in every active lane.

pub(crate) mod dce;
pub(crate) mod gvn;
pub(crate) mod phi_elim;
