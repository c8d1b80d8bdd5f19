//! Modules, launches, limits, traps, and what tools find.
//!
//! All files are one test program, because each program takes time to compile, to link and to check.

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
