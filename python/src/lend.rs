//! Host memory that Python lends to kernels without a copy: numpy arrays, and objects with DLPack.
//!
//! Invariant: kernels can access a range as long as its [`Memory`] exists, and the object that owns the bytes
//! exists at least as long.

use crate::device::{Device, Memory, Owner};
use crate::errors::{raise, usage};
use pyo3::prelude::*;
use std::sync::Arc;

impl Device {
    /// Lends `bytes` bytes at an address of the host; `owner` keeps them there.
    pub(crate) fn lend(
        &self,
        py: Python<'_>,
        name: &str,
        address: u64,
        bytes: u64,
        owner: Py<PyAny>,
    ) -> PyResult<Memory> {
        if bytes == 0 {
            return Err(usage(py, "an array without elements cannot be lent"));
        }
        // SAFETY: the caller is `ptxvm/arrays.py`, which takes address and size from a writable array of
        // numpy. `owner` is that array and is released after `disown`; launches hold the `Memory` until they
        // have ended. This crate makes no references to the bytes.
        let lent = unsafe { self.vm.adopt(name, address, bytes) };
        lent.map_err(|error| raise(py, error, None))?;
        Ok(Memory { address, bytes, owner: Owner::Lent { vm: Arc::clone(&self.vm), _array: owner } })
    }
}
