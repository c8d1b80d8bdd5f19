//! Copies with attributes and in batches, and hints about many ranges of managed memory.
//!
//! Invariant: lists are passed to the driver unread.
//!
//! What it does not do: batches of copies of slices are refused.

use crate::device::context;
use crate::entry::runtime;
use crate::error::of_driver;
use crate::ffi::Handle;
use crate::version::is_13;

runtime! {
    /// Copies between several addresses of any kind. In CUDA 13 the function does not return the index of a
    /// wrong copy.
    fn cudaMemcpyBatchAsync | cudaMemcpyBatchAsync_ptsz as default (
        to: Handle, from: Handle, sizes: Handle, count: usize, attributes: Handle, starts: Handle, groups: usize,
        eighth: Handle, ninth: Handle,
    ) {
        let driver = context()?;
        of_driver(if is_13(driver)? {
            let stream = default.or(eighth);
            (driver.cuMemcpyBatchAsync_v2)(to, from, sizes, count, attributes, starts, groups, stream)
        } else {
            let stream = default.or(ninth);
            (driver.cuMemcpyBatchAsync)(to, from, sizes, count, attributes, starts, groups, eighth, stream)
        })
    }

    /// Copies between addresses of any kind, with attributes.
    fn cudaMemcpyWithAttributesAsync | cudaMemcpyWithAttributesAsync_ptsz as default (
        to: Handle, from: Handle, bytes: usize, attributes: Handle, stream: Handle,
    ) {
        let driver = context()?;
        of_driver((driver.cuMemcpyWithAttributesAsync)(to, from, bytes, attributes, default.or(stream)))
    }

    /// Prefetches several ranges of managed memory, which has no effect.
    fn cudaMemPrefetchBatchAsync | cudaMemPrefetchBatchAsync_ptsz as default (
        addresses: Handle, sizes: Handle, count: usize, locations: Handle, starts: Handle, groups: usize, flags: u64,
        stream: Handle,
    ) {
        let driver = context()?;
        let stream = default.or(stream);
        of_driver((driver.cuMemPrefetchBatchAsync)(addresses, sizes, count, locations, starts, groups, flags, stream))
    }

    /// Discards the contents of several ranges of managed memory, which has no effect.
    fn cudaMemDiscardBatchAsync | cudaMemDiscardBatchAsync_ptsz as default (
        addresses: Handle, sizes: Handle, count: usize, flags: u64, stream: Handle,
    ) {
        let driver = context()?;
        of_driver((driver.cuMemDiscardBatchAsync)(addresses, sizes, count, flags, default.or(stream)))
    }

    /// Discards and prefetches several ranges of managed memory, which has no effect.
    fn cudaMemDiscardAndPrefetchBatchAsync | cudaMemDiscardAndPrefetchBatchAsync_ptsz as default (
        addresses: Handle, sizes: Handle, count: usize, locations: Handle, starts: Handle, groups: usize, flags: u64,
        stream: Handle,
    ) {
        let driver = context()?;
        let stream = default.or(stream);
        let call = driver.cuMemDiscardAndPrefetchBatchAsync;
        of_driver(call(addresses, sizes, count, locations, starts, groups, flags, stream))
    }
}
