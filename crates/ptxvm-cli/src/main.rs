//! The program `ptxvm`.
#![forbid(unsafe_code)]
fn main() {}
