//! `libcuda.so.1` over the PTX virtual machine: programs for the CUDA driver API run on the CPU.
//!
//! Each part of the driver API has its file. `entry` has the macro that defines functions, `ffi` converts C's
//! pointers, `handles` has the handles, `driver` the state that all threads share.
//!
//! Invariants: no panic crosses into C. A null, misaligned or destroyed argument gives the documented error.
//! An unsupported function returns `CUDA_ERROR_NOT_SUPPORTED`, never success. `unsafe` occurs only in `ffi`.
//!
//! What it does not do: it has none of the undocumented tables of functions by which NVIDIA's libraries check
//! the driver.
#![allow(non_snake_case, reason = "entry points have the names of the driver API")]
// These macros panic if standard output or standard error is full or closed.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod array;
mod attributes;
mod capture;
mod context;
mod copy;
mod copy_batch;
mod copy_box;
mod driver;
mod entry;
mod environment;
mod event;
mod ffi;
mod first_forms;
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
mod memory_operations;
mod module;
mod nvjitlink;
mod occupancy;
mod pool;
mod pool_ipc;
mod ptx_run;
mod refused;
mod status;
mod stream;
mod stream_attributes;
mod stream_values;
mod symbols;
mod texref;
mod texture;
mod tools;
mod user_object;

/// The address of an exported function, or 0 if there is none: for programs that link this crate instead of
/// opening the library.
pub fn address(name: &str) -> usize {
    symbols::find(name).map_or(0, |entry| (entry.address)())
}

/// The process ends: sanitizers report leaks and their other findings.
fn process_ends() {
    let mut ending = tools::Ending::default();
    if let Some(driver) = driver::made()
        && let Some(tools) = &driver.tools
    {
        let quiet = tools::waits_for_streams(&driver.vm);
        ending.of(tools, &driver.vm, || {
            if quiet {
                driver.find_all_leaks();
            }
        });
    }
    if let Some((tools, vm)) = ptx_run::watched() {
        ending.of(tools, vm, || {});
    }
    ending.summary();
}
