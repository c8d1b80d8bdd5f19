//! The public Rust API of the PTX virtual machine.
