//! Transformations of WIR: phi elimination, value numbering, dead code elimination, versioning, branch
//! folding, chains of arithmetic, bounds checks, prefetches and barrier slots.
//!
//! Invariant: each leaves a function that computes the same in every active lane.

pub(crate) mod barrier_slots;
pub(crate) mod checks;
pub(crate) mod chunk_loops;
pub(crate) mod dce;
mod duplicate;
pub(crate) mod endpoint_tests;
pub(crate) mod float_chains;
pub(crate) mod fold_branches;
pub(crate) mod gvn;
pub(crate) mod narrow_lanes;
pub(crate) mod order_sections;
pub(crate) mod phi_elim;
pub(crate) mod prefetch;
pub(crate) mod sink_masks;
pub(crate) mod version_indices;
pub(crate) mod version_prefix;
pub(crate) mod version_unmasked;
pub(crate) mod warp_strips;
