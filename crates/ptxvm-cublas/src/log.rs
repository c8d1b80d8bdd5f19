//! The lines that the library writes to standard error, by the common setting `PTXVM_LOG`
//! ([`host_memory::log`]).
//!
//! Invariant: nothing here fails. Without the setting only work that failed in a stream is reported, as the
//! driver reports traps.

use crate::status::Status;
pub(crate) use host_memory::log::say;

/// Writes the result of a call.
pub(crate) fn call(name: &str, status: Status) {
    host_memory::log::call(name, status.name(), status != Status::SUCCESS);
}

/// Names an unsupported function or use.
///
/// # Errors
/// `CUBLAS_STATUS_NOT_SUPPORTED`, always.
pub(crate) fn refused<T>(what: &str) -> Result<T, Status> {
    host_memory::log::refused(what);
    Err(Status::NOT_SUPPORTED)
}
