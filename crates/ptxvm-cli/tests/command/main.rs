//! The program `ptxvm`, as its users start it.
//!
//! One program instead of one for each file: each would be linked and checked for itself.

mod cache;
mod command_line;
mod environment;
mod exec;
mod fmt;
mod limits;
mod link;
mod litmus;
mod mended;
mod program;
mod stop;
mod texture;
mod tools;
