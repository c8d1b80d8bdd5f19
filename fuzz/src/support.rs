//! Calls of the driver API of the linked library.

#[path = "../../crates/ptxvm-cuda/tests/support/api.rs"]
mod api;

pub(crate) use api::Api;

/// The initialized library.
pub(crate) fn api() -> Api {
    Api::at(ptxvm_cuda::address)
}
