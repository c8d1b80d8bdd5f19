//! Memory in the order of a stream, and its pools.
//!
//! Invariant: handles are the driver's.

use crate::device::context;
use crate::entry::runtime;
use crate::error::of_driver;
use crate::ffi::Handle;
use std::ffi::c_int;

runtime! {
    /// Allocates in a stream.
    fn cudaMallocAsync | cudaMallocAsync_ptsz as default (pointer: Handle, bytes: usize, stream: Handle) {
        let driver = context()?;
        of_driver((driver.cuMemAllocAsync)(pointer, bytes, default.or(stream)))
    }

    /// Frees in a stream.
    fn cudaFreeAsync | cudaFreeAsync_ptsz as default (pointer: Handle, stream: Handle) {
        let driver = context()?;
        of_driver((driver.cuMemFreeAsync)(pointer, default.or(stream)))
    }

    /// Allocates from a pool in a stream.
    fn cudaMallocFromPoolAsync | cudaMallocFromPoolAsync_ptsz as default (
        pointer: Handle, bytes: usize, pool: Handle, stream: Handle,
    ) {
        let driver = context()?;
        of_driver((driver.cuMemAllocFromPoolAsync)(pointer, bytes, pool, default.or(stream)))
    }

    /// The pool of a device.
    fn cudaDeviceGetDefaultMemPool(pool: Handle, device: c_int) => cuDeviceGetDefaultMemPool;

    /// The pool that a device uses.
    fn cudaDeviceGetMemPool(pool: Handle, device: c_int) => cuDeviceGetMemPool;

    /// Sets the pool that a device uses.
    fn cudaDeviceSetMemPool(device: c_int, pool: Handle) => cuDeviceSetMemPool;

    /// Makes a pool.
    fn cudaMemPoolCreate(pool: Handle, properties: Handle) => cuMemPoolCreate;

    /// Destroys a pool.
    fn cudaMemPoolDestroy(pool: Handle) => cuMemPoolDestroy;

    /// One attribute of a pool. The numbers are the driver's.
    fn cudaMemPoolGetAttribute(pool: Handle, attribute: c_int, value: Handle) => cuMemPoolGetAttribute;

    /// Sets an attribute of a pool.
    fn cudaMemPoolSetAttribute(pool: Handle, attribute: c_int, value: Handle) => cuMemPoolSetAttribute;

    /// Says which devices reach what comes from a pool.
    fn cudaMemPoolSetAccess(pool: Handle, access: Handle, count: usize) => cuMemPoolSetAccess;

    /// How a device reaches what comes from a pool.
    fn cudaMemPoolGetAccess(flags: Handle, pool: Handle, location: Handle) => cuMemPoolGetAccess;

    /// The pool that a place began with.
    fn cudaMemGetDefaultMemPool(pool: Handle, location: Handle, kind: c_int) => cuMemGetDefaultMemPool;

    /// The pool that a place takes from.
    fn cudaMemGetMemPool(pool: Handle, location: Handle, kind: c_int) => cuMemGetMemPool;

    /// Gives memory of a pool back.
    fn cudaMemPoolTrimTo(pool: Handle, keep: usize) => cuMemPoolTrimTo;
}
