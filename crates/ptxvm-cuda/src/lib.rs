//! `libcuda.so.1` over the PTX virtual machine: programs for the CUDA driver API run on the CPU.
//!
//! One file for each part of the driver API. `entry` says how an entry point is written, `ffi` what C's pointers become, `handles` what its
//! handles are, `driver` what all threads share.
//!
//! Invariants: no panic crosses into C; a null, misaligned or destroyed argument is answered with the documented error; a function
//! that is not supported answers `CUDA_ERROR_NOT_SUPPORTED` and never a success; `unsafe` stands in `ffi` alone.
//!
//! What it does not do: it answers no undocumented table and no check of the vendor.
#![allow(non_snake_case, reason = "entry points have the names of the driver API")]
// They panic where the descriptor is full or its reader is gone.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod array;
mod attributes;
mod capture;
mod context;
mod copy;
mod copy_box;
mod driver;
mod entry;
mod event;
mod ffi;
mod function;
mod graph;
mod handles;
mod health;
mod image;
mod init;
mod ipc;
mod jit_options;
mod keep;
mod launch;
mod library;
mod link;
mod log;
mod mapped;
mod memory;
mod module;
mod nvjitlink;
mod occupancy;
mod pool;
mod ptx_run;
mod refused;
mod status;
mod stream;
mod stream_attributes;
mod stream_batch;
mod symbols;
mod texref;
mod texture;
mod user_object;

/// The address of the exported function of that name, or 0: for programs that link this crate in place of opening the library.
pub fn address(name: &str) -> usize {
    symbols::find(name).map_or(0, |entry| (entry.address)())
}
