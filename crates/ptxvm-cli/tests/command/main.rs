//! The program `ptxvm`, as its users start it.
//!
//! All files are one test program, because each program takes time to compile, to link and to check.

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
