//! Devices, and the context of each thread.
//!
//! Invariant: the runtime uses the primary context of the thread's device, unless the program made another
//! context current by the driver API.

use crate::driver::{Driver, driver};
use crate::entry::runtime;
use crate::error::{self, Status, of_driver};
use crate::ffi::{Handle, Out};
use crate::registry;
use std::cell::Cell;
use std::ffi::{c_int, c_uint};

thread_local! {
    /// The device that the thread selected.
    static DEVICE: Cell<c_int> = const { Cell::new(0) };
}

/// The driver, after a context was made current.
pub(crate) fn context() -> Result<&'static Driver, Status> {
    let driver = driver()?;
    let mut current = 0;
    of_driver((driver.cuCtxGetCurrent)(&mut current))?;
    if current == 0 {
        enter(driver, DEVICE.get())?;
    }
    Ok(driver)
}

/// Makes the primary context of a device current.
fn enter(driver: &Driver, ordinal: c_int) -> Result<(), Status> {
    of_driver((driver.cuCtxSetCurrent)(primary(driver, ordinal)?))
}

/// The primary context of a device.
fn primary(driver: &Driver, ordinal: c_int) -> Result<Handle, Status> {
    let (mut device, mut context) = (0, 0);
    of_driver((driver.cuDeviceGet)(&mut device, ordinal))?;
    of_driver((driver.cuDevicePrimaryCtxRetain)(&mut context, device))?;
    Ok(Handle(context))
}

/// The device of the current context.
pub(crate) fn current(driver: &Driver) -> Result<c_int, Status> {
    let mut device = 0;
    of_driver((driver.cuCtxGetDevice)(&mut device))?;
    Ok(device)
}

/// The driver and the primary context of a device that is not the current one.
fn peer(device: c_int) -> Result<(&'static Driver, Handle), Status> {
    let driver = context()?;
    check(driver, device)?;
    if device == current(driver)? {
        return Err(Status::INVALID_DEVICE);
    }
    Ok((driver, primary(driver, device)?))
}

/// The number of devices.
fn count(driver: &Driver) -> Result<c_int, Status> {
    let mut count = 0;
    of_driver((driver.cuDeviceGetCount)(&mut count))?;
    Ok(count)
}

/// Fails unless it is the number of a device.
pub(crate) fn check(driver: &Driver, device: c_int) -> Result<(), Status> {
    if (0..count(driver)?).contains(&device) { Ok(()) } else { Err(Status::INVALID_DEVICE) }
}

runtime! {
    /// Writes the number of devices.
    fn cudaGetDeviceCount(count: Out<c_int>) {
        count.set(self::count(driver()?)?)
    }

    /// The thread's device.
    fn cudaGetDevice(device: Out<c_int>) {
        device.set(DEVICE.get())
    }

    /// Selects the thread's device.
    fn cudaSetDevice(device: c_int) {
        let driver = driver()?;
        check(driver, device)?;
        DEVICE.set(device);
        enter(driver, device)
    }

    /// Initializes a device and selects it.
    fn cudaInitDevice(device: c_int, _device_flags: c_uint, _flags: c_uint) {
        check(driver()?, device)
    }

    /// The best device: always the first, because all devices are alike.
    fn cudaChooseDevice(device: Out<c_int>, _properties: usize) {
        driver()?;
        device.set(0)
    }

    /// Accepts a list of devices that may be used. It has no effect.
    fn cudaSetValidDevices(_devices: usize, _count: c_int) {
        driver().map(|_| ())
    }

    /// Accepts the way of waiting. It has no effect.
    fn cudaSetDeviceFlags(_flags: c_uint) {
        driver().map(|_| ())
    }

    /// The way of waiting: the default.
    fn cudaGetDeviceFlags(flags: Out<c_uint>) {
        flags.set(0)
    }

    /// One attribute of a device. The numbers are the driver's.
    fn cudaDeviceGetAttribute(value: Out<c_int>, attribute: c_int, device: c_int) {
        let driver = driver()?;
        let mut found = 0;
        of_driver((driver.cuDeviceGetAttribute)(&mut found, attribute, device))?;
        value.set(found)
    }

    /// Waits for all work of the device.
    fn cudaDeviceSynchronize() => cuCtxSynchronize;

    /// Waits for all work of the device.
    fn cudaThreadSynchronize() => cuCtxSynchronize;

    /// Destroys the primary context, its allocations and the error of a trap. If no call has returned that
    /// error yet, this one does.
    fn cudaDeviceReset() {
        let driver = context()?;
        let told = error::left_by_trap().is_some_and(|(_, told)| told);
        let work = of_driver((driver.cuCtxSynchronize)());
        registry::unload(DEVICE.get());
        of_driver((driver.cuDevicePrimaryCtxReset_v2)(DEVICE.get()))?;
        of_driver((driver.cuCtxSetCurrent)(Handle(0)))?;
        error::forget_trap();
        if told { Ok(()) } else { work }
    }

    /// The same as `cudaDeviceReset`.
    fn cudaThreadExit() {
        of_driver(cudaDeviceReset().0)
    }

    /// One limit.
    fn cudaDeviceGetLimit(value: Handle, limit: c_int) => cuCtxGetLimit;

    /// Sets a limit.
    fn cudaDeviceSetLimit(limit: c_int, value: usize) => cuCtxSetLimit;

    /// One limit.
    fn cudaThreadGetLimit(value: Handle, limit: c_int) => cuCtxGetLimit;

    /// Sets a limit.
    fn cudaThreadSetLimit(limit: c_int, value: usize) => cuCtxSetLimit;

    /// The preferred cache.
    fn cudaDeviceGetCacheConfig(config: Handle) => cuCtxGetCacheConfig;

    /// The preferred cache.
    fn cudaDeviceSetCacheConfig(config: c_int) => cuCtxSetCacheConfig;

    /// The preferred split of L1 and shared memory, which has no effect.
    fn cudaThreadGetCacheConfig(config: Handle) => cuCtxGetCacheConfig;

    /// Sets the preferred split of L1 and shared memory, which has no effect.
    fn cudaThreadSetCacheConfig(config: c_int) => cuCtxSetCacheConfig;

    /// Converts a number for devices without double precision, which this is not: it stays as it is.
    fn cudaSetDoubleForDevice(_number: Handle) {
        Ok(())
    }

    /// Converts a number of devices without double precision, which this is not: it stays as it is.
    fn cudaSetDoubleForHost(_number: Handle) {
        Ok(())
    }

    /// The width of banks of shared memory, which the machine does not have: the default.
    fn cudaDeviceGetSharedMemConfig(config: Out<c_int>) {
        config.set(0)
    }

    /// Accepts the width of banks of shared memory. It has no effect.
    fn cudaDeviceSetSharedMemConfig(_config: c_int) {
        context().map(|_| ())
    }

    /// Resets persisting lines of L2, of which there are none.
    fn cudaCtxResetPersistingL2Cache() => cuCtxResetPersistingL2Cache;

    /// The priorities that streams may have.
    fn cudaDeviceGetStreamPriorityRange(least: Handle, greatest: Handle) => cuCtxGetStreamPriorityRange;

    /// The address of a device on the bus, as text.
    fn cudaDeviceGetPCIBusId(id: Handle, bytes: c_int, device: c_int) => cuDeviceGetPCIBusId;

    /// The device with an address on the bus.
    fn cudaDeviceGetByPCIBusId(device: Handle, id: Handle) => cuDeviceGetByPCIBusId;

    /// Whether a device can access another's memory.
    fn cudaDeviceCanAccessPeer(can: Handle, device: c_int, peer: c_int) => cuDeviceCanAccessPeer;

    /// Lets kernels of the current device access another's memory.
    fn cudaDeviceEnablePeerAccess(device: c_int, flags: c_uint) {
        let (driver, other) = peer(device)?;
        of_driver((driver.cuCtxEnablePeerAccess)(other, flags))
    }

    /// Ends the access to another device's memory.
    fn cudaDeviceDisablePeerAccess(device: c_int) {
        let (driver, other) = peer(device)?;
        of_driver((driver.cuCtxDisablePeerAccess)(other))
    }

    /// An attribute of the link between two devices. The numbers are the driver's.
    fn cudaDeviceGetP2PAttribute(value: Handle, attribute: c_int, device: c_int, peer: c_int) => cuDeviceGetP2PAttribute;

    /// The driver's version.
    fn cudaDriverGetVersion(version: Out<c_int>) {
        let mut found = 0;
        if let Ok(driver) = driver() {
            of_driver((driver.cuDriverGetVersion)(&mut found))?;
        }
        version.set(found)
    }

    /// The runtime's version. It is the driver's, because this library supports all versions from 11.
    fn cudaRuntimeGetVersion(version: Out<c_int>) {
        let mut found = 12090;
        if let Ok(driver) = driver() {
            of_driver((driver.cuDriverGetVersion)(&mut found))?;
        }
        version.set(found)
    }

    /// Starts a profiler's recording.
    fn cudaProfilerStart() => cuProfilerStart;

    /// Stops a profiler's recording.
    fn cudaProfilerStop() => cuProfilerStop;
}
