//! (in preparation)
pub mod graph;
pub mod order;
