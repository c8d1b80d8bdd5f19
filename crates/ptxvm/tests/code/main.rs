//! Code that the JIT makes, against the interpreter and against values that are computed here.
//!
//! All files are one test program, because each program takes time to compile, to link and to check.

mod auto;
mod butterflies;
mod clocks;
mod directed_roundings;
mod double_chains;
#[path = "../support/everywhere.rs"]
mod everywhere;
mod exhaustive;
mod groups;
mod indices;
mod inlined;
mod large;
#[path = "../support/levels.rs"]
mod levels;
mod local_memory;
#[cfg(feature = "jit")]
#[path = "../support/long_words.rs"]
mod long_words;
mod matrix;
mod native;
mod parameters;
mod parts;
mod pitches;
mod portions;
mod postponed;
mod reductions;
mod registers;
mod scalar;
mod side_exits;
mod stays_native;
mod steady;
mod variables;
mod whole;
mod wide;
