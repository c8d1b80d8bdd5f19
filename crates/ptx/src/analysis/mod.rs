//! (in preparation)
pub mod bits;
pub mod dominators;
