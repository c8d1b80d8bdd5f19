//! Calls of the driver API, whose library is linked.

#[path = "../../crates/ptxvm-cuda/tests/support/api.rs"]
mod api;

pub(crate) use api::{Api, KERNELS};

/// The library, started.
pub(crate) fn api() -> Api {
    Api::at(ptxvm_cuda::address)
}
