//! A CUDA runtime library (`libcudart`) over the driver API, written from the public headers of CUDA 11
//! to 13.
//!
//! This library serves programs that are built with `-cudart shared` or `-cudart none`, libraries that load
//! the runtime, and programs whose built-in runtime is redirected (`ptxvm-preload`). Its functions register
//! device code, launch kernels, and manage memory, streams and events. They are implemented by calls of the
//! driver, which is opened as `libcuda.so.1` at the first use. NVIDIA's own runtime does not work with
//! ptxvm's driver, because it asks the driver for private tables of functions.
//!
//! Each part of the API has its file. `entry` has the macros that define functions, `driver` calls the
//! driver, `ffi` converts C's pointers.
//!
//! Invariants: every function of the shared libraries of CUDA 12.9 and 13 is exported, and unsupported ones
//! return `cudaErrorNotSupported`. No panic crosses into C. Handles of streams, events, arrays and objects
//! are the driver's own.
//!
//! What it does not do: graphics interoperation.
#![allow(non_snake_case, reason = "functions have the names of the runtime API")]
// These macros panic if standard output or standard error is full or closed.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod array;
mod copy_batch;
mod device;
mod driver;
mod entry;
mod entry_point;
mod error;
mod event;
mod ffi;
mod graph;
mod ipc;
mod launch;
mod library;
mod memory;
mod mipmap;
mod node;
mod pool;
mod properties;
mod reference;
mod refused;
mod registry;
mod stream;
mod structures;
mod symbol;
mod texture;
mod version;
