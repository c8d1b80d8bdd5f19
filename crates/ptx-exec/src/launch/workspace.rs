//! The workspace of a cooperative launch, at the address in `%envreg1` and `%envreg2`: the state of its grid
//! barrier.
//!
//! Cooperative groups read the upper half of the address from `%envreg1` and the lower half from `%envreg2`,
//! and count arrivals of CTAs in the second word. An address of zero means that the launch is not
//! cooperative.
//!
//! Invariant: the workspace is global memory of the guest that lives as long as the launch. Initially it is
//! zero except for its size.

use crate::mem::{Class, Memory, MemoryError};
use std::sync::Arc;

/// Size of a workspace in bytes. Chosen: more than the two words that cooperative groups of CUDA 12 use.
const BYTES: u64 = 64;

/// The workspace of one launch.
pub(super) struct Workspace {
    memory: Arc<Memory>,
    address: u64,
}

impl Workspace {
    /// Allocates a workspace.
    ///
    /// # Errors
    /// No memory.
    pub(super) fn new(memory: &Arc<Memory>) -> Result<Self, MemoryError> {
        let address = memory.alloc(Class::Global, BYTES, BYTES, "workspace of a cooperative launch")?;
        let workspace = Self { memory: Arc::clone(memory), address };
        memory.fill(address, 0, BYTES)?;
        memory.write(address, &(BYTES as u32).to_le_bytes())?;
        Ok(workspace)
    }

    /// The environment registers of the launch.
    pub(super) fn registers(&self) -> [u32; 32] {
        let mut registers = [0; 32];
        registers[1] = (self.address >> 32) as u32;
        registers[2] = self.address as u32;
        registers
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // Cannot fail: the guest's `free` takes only memory of the guest's `malloc`.
        let _ = self.memory.free(self.address);
    }
}
