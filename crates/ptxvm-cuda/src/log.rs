//! The lines that the library writes to standard error, by the common setting `PTXVM_LOG`
//! ([`host_memory::log`]).
//!
//! Invariant: nothing here fails. Without the setting only traps, rejected modules and advice are reported.

use crate::status::Status;
pub(crate) use host_memory::log::{hint, note, refused, say};

/// Writes the result of a call. `CUDA_ERROR_NOT_READY` is not a failure.
pub(crate) fn call(name: &str, status: Status) {
    let is_failure = !matches!(status, Status::Success | Status::NotReady);
    host_memory::log::call(name, status.name(), is_failure);
}

/// Reports at the first call that kernels run only in the interpreter.
pub(crate) fn no_compiler(why: &str) {
    static SAID: std::sync::Once = std::sync::Once::new();
    SAID.call_once(|| {
        say(&format!(
            "ptxvm: note: kernels run in the interpreter, many times slower than native code: {why}; `ptxvm doctor` says more"
        ));
    });
}
