//! Stream-ordered memory and memory pools.
//!
//! Invariant: handles are the driver's.

use crate::device::context;
use crate::entry::runtime;
use crate::error::of_driver;
use crate::ffi::Handle;
use std::ffi::{c_int, c_uint};

runtime! {
    /// Allocates memory in a stream's order.
    fn cudaMallocAsync | cudaMallocAsync_ptsz as default (pointer: Handle, bytes: usize, stream: Handle) {
        let driver = context()?;
        of_driver((driver.cuMemAllocAsync)(pointer, bytes, default.or(stream)))
    }

    /// Frees memory in a stream's order.
    fn cudaFreeAsync | cudaFreeAsync_ptsz as default (pointer: Handle, stream: Handle) {
        let driver = context()?;
        of_driver((driver.cuMemFreeAsync)(pointer, default.or(stream)))
    }

    /// Allocates from a pool in a stream's order.
    fn cudaMallocFromPoolAsync | cudaMallocFromPoolAsync_ptsz as default (
        pointer: Handle, bytes: usize, pool: Handle, stream: Handle,
    ) {
        let driver = context()?;
        of_driver((driver.cuMemAllocFromPoolAsync)(pointer, bytes, pool, default.or(stream)))
    }

    /// The default pool of a device.
    fn cudaDeviceGetDefaultMemPool(pool: Handle, device: c_int) => cuDeviceGetDefaultMemPool;

    /// The current pool of a device.
    fn cudaDeviceGetMemPool(pool: Handle, device: c_int) => cuDeviceGetMemPool;

    /// Sets the current pool of a device.
    fn cudaDeviceSetMemPool(device: c_int, pool: Handle) => cuDeviceSetMemPool;

    /// Makes a pool.
    fn cudaMemPoolCreate(pool: Handle, properties: Handle) => cuMemPoolCreate;

    /// Destroys a pool.
    fn cudaMemPoolDestroy(pool: Handle) => cuMemPoolDestroy;

    /// One attribute of a pool. The numbers are the driver's.
    fn cudaMemPoolGetAttribute(pool: Handle, attribute: c_int, value: Handle) => cuMemPoolGetAttribute;

    /// Sets an attribute of a pool.
    fn cudaMemPoolSetAttribute(pool: Handle, attribute: c_int, value: Handle) => cuMemPoolSetAttribute;

    /// Sets which devices can access memory of a pool.
    fn cudaMemPoolSetAccess(pool: Handle, access: Handle, count: usize) => cuMemPoolSetAccess;

    /// The access of a device to memory of a pool.
    fn cudaMemPoolGetAccess(flags: Handle, pool: Handle, location: Handle) => cuMemPoolGetAccess;

    /// The default pool of a location.
    fn cudaMemGetDefaultMemPool(pool: Handle, location: Handle, kind: c_int) => cuMemGetDefaultMemPool;

    /// The current pool of a location.
    fn cudaMemGetMemPool(pool: Handle, location: Handle, kind: c_int) => cuMemGetMemPool;

    /// A handle of a pool, for another process.
    fn cudaMemPoolExportToShareableHandle(shared: Handle, pool: Handle, kind: c_int, flags: c_uint) {
        let driver = context()?;
        of_driver((driver.cuMemPoolExportToShareableHandle)(shared, pool, kind, flags.into()))
    }

    /// The pool of a handle of another process.
    fn cudaMemPoolImportFromShareableHandle(pool: Handle, shared: Handle, kind: c_int, flags: c_uint) {
        let driver = context()?;
        of_driver((driver.cuMemPoolImportFromShareableHandle)(pool, shared, kind, flags.into()))
    }

    /// Data by which another process imports an allocation of a pool.
    fn cudaMemPoolExportPointer(shared: Handle, pointer: Handle) => cuMemPoolExportPointer;

    /// Imports an allocation of a pool.
    fn cudaMemPoolImportPointer(pointer: Handle, pool: Handle, shared: Handle) => cuMemPoolImportPointer;

    /// Releases unused memory of a pool.
    fn cudaMemPoolTrimTo(pool: Handle, keep: usize) => cuMemPoolTrimTo;
}
