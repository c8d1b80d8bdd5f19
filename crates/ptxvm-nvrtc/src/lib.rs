//! NVRTC (`libnvrtc`) for programs that run on the PTX virtual machine: compiles CUDA C++ to PTX at run time.
//!
//! The compiler is clang, as a child process, with ptxvm's own headers (`device/`) for the declarations that
//! such programs use without including anything. If the user names NVIDIA's library (`PTXVM_NVRTC`), or there
//! is no clang and a CUDA toolkit is installed, NVIDIA's library compiles to PTX instead.
//!
//! A program's text, headers, name expressions and options are the input; PTX, a log and mangled names are
//! the output. `program` holds them, `options` reads the caller's options, `clang` and `theirs` compile,
//! `names` finds the mangled names, `entry` has the functions that C calls.
//!
//! Invariant: no panic crosses into C. A handle is a number and never dereferenced. A compiler that hangs or
//! crashes is an error, and none of its files stay on disk. A request for machine code is answered with PTX,
//! which our driver accepts. What it does not do: it makes no representation for link-time optimisation,
//! OptiX or tiles, and no precompiled headers, which only save time.

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
