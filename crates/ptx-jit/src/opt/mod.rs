//! Transformations of WIR: phi elimination and value numbering.
//!
//! Invariant: each leaves a function that computes the same in every active lane.

pub(crate) mod gvn;
pub(crate) mod phi_elim;
