//! Transformations of WIR: phi elimination, value numbering, dead code elimination, versioning and bounds
//! checks.
//!
//! Invariant: each leaves a function that computes the same in every active lane.

pub(crate) mod checks;
pub(crate) mod dce;
pub(crate) mod gvn;
pub(crate) mod phi_elim;
pub(crate) mod version_indices;
