//! Guest memory as observers see it.
//!
//! Invariant: no look-up reports an event, so observers may call them at any time.

use ptx::isa::Space;
use std::ops::Range;
use std::sync::Arc;

/// The look-ups in guest memory that observers may call.
pub trait MemoryMap: Send + Sync {
    /// Describes the allocation nearest to an address: name, range and distance.
    fn nearest(&self, address: u64) -> String;
    /// The name of the allocation that contains an address.
    fn name_at(&self, address: u64) -> Option<Arc<str>>;
    /// The range of the allocation that contains an address.
    fn allocation_at(&self, address: u64) -> Option<Range<u64>>;
    /// The state space of a generic address.
    fn space_of(&self, address: u64) -> Space;
    /// Whether only kernels and calls of this process write at an address: it is not shared with the host,
    /// other processes, or other addresses.
    fn is_exclusive(&self, address: u64) -> bool;
    /// The bytes of a part of an allocation; none if it is no such part.
    fn contents(&self, range: Range<u64>) -> Vec<u8>;
}
