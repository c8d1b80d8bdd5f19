//! The library that `ptxvm exec` preloads into every program: it redirects a CUDA runtime that is linked into the program to our `libcudart`.
//!
//! nvcc links NVIDIA's runtime statically unless it is told otherwise. The linker leaves the names of its functions in the program's symbol
//! table, which the loader does not load, so this library reads the files of the program and of its libraries. Where a file defines the
//! functions of a runtime, a jump to our function of the same name is written over the first bytes of each, before any code of that file runs.
//!
//! When: the first thing that a program or library built with the C library's start files does is to call `__gmon_start__`, if there is one
//! (it exists for profilers). This library defines it, so it is called before the constructors of each object, at the start of the program
//! and at each `dlopen`. The constructor of this library does the same for a program that has its own `__gmon_start__` (built with `-pg`).
//!
//! Invariants: an object without a runtime is left alone, and costs reading its section headers; bytes are written only where memory still
//! is what the file says; nothing here ends the program, panics into it, or writes to it but on standard error.
//!
//! What it does not do: a runtime whose symbols are stripped is not found (the driver says what to do when that runtime asks for its vendor);
//! fully static programs load no libraries, and so not this one.

#[cfg(any(test, all(target_os = "linux", target_pointer_width = "64")))]
mod code;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod elf;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod process;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod redirect;

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub use hook::__gmon_start__;

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod hook {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// Each object calls it before its constructors.
    #[unsafe(no_mangle)]
    pub extern "C" fn __gmon_start__() {
        if catch_unwind(AssertUnwindSafe(crate::redirect::look)).is_err() {
            crate::redirect::say(
                "ptxvm bug: the search for a CUDA runtime failed in itself; please report it with the program and this text",
            );
        }
    }

    /// Called when the library is loaded.
    #[used]
    #[unsafe(link_section = ".init_array")]
    static CONSTRUCTOR: extern "C" fn() = __gmon_start__;
}
