//! NVRTC (`libnvrtc`) for programs that run on the PTX virtual machine: compiles CUDA C++ to PTX at run time.
//!
//! The compiler is clang, as a child process, with headers of ours (`device/`) for what such programs find without including anything. Where the user
//! names NVIDIA's library (`PTXVM_NVRTC`), or there is no clang and a CUDA toolkit is installed, that one is asked for PTX.
//!
//! A program's text, headers, name expressions and options go in, PTX, a log and mangled names come out: `program` holds them, `options` reads what
//! callers write, `clang` and `theirs` compile, `names` finds the mangled names, `entry` has the functions that C calls.
//!
//! Invariant: no panic crosses into C; a handle is a number and never followed; a compiler that does not end or crashes is an error, and nothing of it stays
//! on disk. What is asked for as machine code is PTX too, which our driver takes. What it does not do: no representation for link-time
//! optimisation, OptiX or tiles; no precompiled headers, which only save time.

mod clang;
mod entry;
mod ffi;
mod folder;
mod log;
mod names;
mod options;
mod program;
mod settings;
mod status;
mod theirs;
