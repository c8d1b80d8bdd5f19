//! Transformations of WIR: phi elimination, value numbering, dead code elimination and bounds checks.
//!
//! Invariant: each leaves a function that computes the same in every active lane.

pub(crate) mod checks;
pub(crate) mod dce;
pub(crate) mod gvn;
pub(crate) mod phi_elim;
