//! The workspace of a cooperative launch: what `%envreg1` and `%envreg2` point to, and where the CTAs of a grid wait for each other.
//!
//! Cooperative groups read the halves of its address from `%envreg1` (upper) and `%envreg2` (lower), count arrivals of CTAs in its
//! second word, and take an address of zero for a launch that is not cooperative.
//!
//! Invariant: the memory is global memory of the guest that lives as long as the launch, and begins as zeros but for its size.

use crate::mem::{Class, Memory, MemoryError};
use std::sync::Arc;

/// Bytes of a workspace. Chosen: the two words that cooperative groups of CUDA 12 use, and room beside them.
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
        // A kernel's `free` takes what `malloc` gave and nothing else, so it is still there.
        let _ = self.memory.free(self.address);
    }
}
