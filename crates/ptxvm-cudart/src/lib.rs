//! A CUDA runtime library (`libcudart`) over the driver API, written from the public headers of CUDA 12 and 13.
//!
//! Programs built with `-cudart shared` or `-cudart none`, libraries that load the runtime, and programs that have one inside and are redirected (`ptxvm-preload`), find here what they call: registration of
//! device code, launches, memory, streams, events, queries. Everything is done by the driver, which is opened as `libcuda.so.1` when the
//! first call needs it; NVIDIA's own runtime would ask the driver to prove its vendor, this one does not.
//!
//! One file for each part of the API. `entry` says how a function is written, `driver` how the driver is called, `ffi` what C's
//! pointers become.
//!
//! Invariants: every function of the shared libraries of CUDA 12.9 and 13 is exported; what is not done answers `cudaErrorNotSupported`, never success; no
//! panic crosses into C; handles of streams, events, arrays and objects are the driver's own.
//!
//! What it does not do: graphics interoperation.
#![allow(non_snake_case, reason = "functions have the names of the runtime API")]
// They panic where the descriptor is full or its reader is gone.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod array;
mod device;
mod driver;
mod entry;
mod error;
mod event;
mod ffi;
mod graph;
mod ipc;
mod launch;
mod library;
mod memory;
mod mipmap;
mod pool;
mod properties;
mod refused;
mod registry;
mod stream;
mod symbol;
