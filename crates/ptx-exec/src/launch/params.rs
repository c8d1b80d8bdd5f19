//! Parameter buffers of a kernel, which are reused by later launches.
//!
//! Invariant: a buffer belongs to one launch at a time, and all buffers are freed with the kernel.

use super::Kernel;
use crate::mem::{Class, MemoryError};
use std::sync::{MutexGuard, PoisonError};

/// A parameter buffer; dropping it keeps the buffer for the next launch.
pub(super) struct Params<'a> {
    kernel: &'a Kernel,
    pub(super) address: u64,
}

impl<'a> Params<'a> {
    pub(super) fn new(kernel: &'a Kernel, bytes: &[u8]) -> Result<Self, MemoryError> {
        let memory = &kernel.module.memory;
        let kept = kernel.buffers().pop();
        let address = match kept {
            Some(address) => address,
            None => {
                let name = format!("parameters of `{}`", kernel.function().name);
                memory.alloc(Class::Param, bytes.len() as u64, 16, &name)?
            }
        };
        let params = Self { kernel, address };
        memory.write(address, bytes)?;
        Ok(params)
    }
}

impl Drop for Params<'_> {
    fn drop(&mut self) {
        self.kernel.buffers().push(self.address);
    }
}

impl Kernel {
    fn buffers(&self) -> MutexGuard<'_, Vec<u64>> {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        for address in std::mem::take(&mut *self.buffers()) {
            // Cannot fail: the guest's `free` takes only memory of the guest's `malloc`.
            let _ = self.module.memory.free(address);
        }
    }
}
