//! The lines that the library writes to standard error, by the common setting `PTXVM_LOG`
//! ([`host_memory::log`]).
//!
//! Invariant: nothing here fails. Without the setting only a missing compiler is reported.

use crate::status::Status;
pub(crate) use host_memory::log::{rejected, say};

/// Writes the result of a call.
pub(crate) fn call(name: &str, status: Status) {
    host_memory::log::call(name, status.name(), status != Status::SUCCESS);
}
