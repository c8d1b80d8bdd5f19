//! Modules, launches, limits, traps, and what tools find.
//!
//! One program instead of one for each file: each would be linked and checked for itself.

mod cooperative;
mod findings;
mod isa;
mod kernels_in_tests;
mod lenient;
#[path = "../support/levels.rs"]
mod levels;
mod limits;
mod link;
mod module_scope;
mod native_races;
#[path = "../support/relative.rs"]
mod relative;
#[path = "../support/run_all.rs"]
mod run_all;
mod sanitize;
mod traps;
