//! The library that `ptxvm exec` preloads into every program. It redirects a CUDA runtime that is linked
//! statically into the program to ptxvm's `libcudart`.
//!
//! nvcc links NVIDIA's runtime statically by default. The linker leaves the names of its functions in the
//! program's symbol table, which the loader does not load, so this library reads the files of the program and
//! of its libraries. If a file defines the functions of a runtime, the library writes a jump to ptxvm's
//! function of the same name over the first bytes of each, before any code of that file runs.
//!
//! When: a program or library that is built with the C library's start files calls `__gmon_start__` first, if
//! it exists (profilers define it). This library defines it, so it is called before the constructors of each
//! object, at the start of the program and at each `dlopen`. The constructor of this library does the same
//! for a program that has its own `__gmon_start__` (built with `-pg`).
//!
//! Invariants: an object without a runtime is not changed, and costs only reading its section headers; bytes
//! are written only where memory still equals the file; the library never ends the program, never panics into
//! it, and writes only to standard error.
//!
//! What it does not do: a runtime whose symbols are stripped is not found (the driver prints advice when such
//! a runtime asks for NVIDIA's private tables); fully static programs load no libraries, and so not this one.

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

    /// Each object calls this function before its constructors.
    #[unsafe(no_mangle)]
    pub extern "C" fn __gmon_start__() {
        if catch_unwind(AssertUnwindSafe(crate::redirect::look)).is_err() {
            crate::redirect::say(
                "ptxvm bug: the search for a CUDA runtime panicked; please report it with the program and this text",
            );
        }
    }

    /// Called when the library is loaded.
    #[used]
    #[unsafe(link_section = ".init_array")]
    static CONSTRUCTOR: extern "C" fn() = __gmon_start__;
}
