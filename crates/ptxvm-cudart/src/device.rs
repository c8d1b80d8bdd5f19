//! Devices, and the context of each thread.
//!
//! Invariant: the runtime works in the primary context of the thread's device, unless the program has made another context current by the driver API.

use crate::driver::{Driver, driver};
use crate::entry::runtime;
use crate::error::{self, Status, of_driver};
use crate::ffi::{Handle, Out};
use crate::registry;
use std::cell::Cell;
use std::ffi::{c_int, c_uint};

thread_local! {
    /// The device that the thread chose.
    static DEVICE: Cell<c_int> = const { Cell::new(0) };
}

/// The driver, with a context that is current.
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

/// How many devices there are.
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
    /// How many devices there are.
    fn cudaGetDeviceCount(count: Out<c_int>) {
        count.set(self::count(driver()?)?)
    }

    /// The thread's device.
    fn cudaGetDevice(device: Out<c_int>) {
        device.set(DEVICE.get())
    }

    /// Chooses the thread's device.
    fn cudaSetDevice(device: c_int) {
        let driver = driver()?;
        check(driver, device)?;
        DEVICE.set(device);
        enter(driver, device)
    }

    /// Chooses the thread's device.
    fn cudaInitDevice(device: c_int, _device_flags: c_uint, _flags: c_uint) {
        check(driver()?, device)
    }

    /// The device that suits best: there is one.
    fn cudaChooseDevice(device: Out<c_int>, _properties: usize) {
        driver()?;
        device.set(0)
    }

    /// Says which devices may be used: all may.
    fn cudaSetValidDevices(_devices: usize, _count: c_int) {
        driver().map(|_| ())
    }

    /// How waiting is done: it makes no difference.
    fn cudaSetDeviceFlags(_flags: c_uint) {
        driver().map(|_| ())
    }

    /// How waiting is done.
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

    /// Forgets everything on the device, also what a trap has left. The error of a trap that no call has answered with is that of this one.
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

    /// Forgets everything on the device.
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

    /// The width of banks of shared memory: there are none.
    fn cudaDeviceGetSharedMemConfig(config: Out<c_int>) {
        config.set(0)
    }

    /// The width of banks of shared memory: there are none.
    fn cudaDeviceSetSharedMemConfig(_config: c_int) {
        context().map(|_| ())
    }

    /// Forgets what L2 was to keep: it keeps nothing.
    fn cudaCtxResetPersistingL2Cache() => cuCtxResetPersistingL2Cache;

    /// The priorities that streams may have.
    fn cudaDeviceGetStreamPriorityRange(least: Handle, greatest: Handle) => cuCtxGetStreamPriorityRange;

    /// The address of a device on the bus, as text.
    fn cudaDeviceGetPCIBusId(id: Handle, bytes: c_int, device: c_int) => cuDeviceGetPCIBusId;

    /// The device at an address on the bus.
    fn cudaDeviceGetByPCIBusId(device: Handle, id: Handle) => cuDeviceGetByPCIBusId;

    /// Whether a device reaches another's memory.
    fn cudaDeviceCanAccessPeer(can: Handle, device: c_int, peer: c_int) => cuDeviceCanAccessPeer;

    /// Lets kernels of the current device access another's memory.
    fn cudaDeviceEnablePeerAccess(device: c_int, flags: c_uint) {
        let (driver, other) = peer(device)?;
        of_driver((driver.cuCtxEnablePeerAccess)(other, flags))
    }

    /// Ends that access.
    fn cudaDeviceDisablePeerAccess(device: c_int) {
        let (driver, other) = peer(device)?;
        of_driver((driver.cuCtxDisablePeerAccess)(other))
    }

    /// What one device can do to another. The numbers are the driver's.
    fn cudaDeviceGetP2PAttribute(value: Handle, attribute: c_int, device: c_int, peer: c_int) => cuDeviceGetP2PAttribute;

    /// The driver's version.
    fn cudaDriverGetVersion(version: Out<c_int>) {
        let mut found = 0;
        if let Ok(driver) = driver() {
            of_driver((driver.cuDriverGetVersion)(&mut found))?;
        }
        version.set(found)
    }

    /// The runtime's version: that of the driver, as this library serves all versions from 12.
    fn cudaRuntimeGetVersion(version: Out<c_int>) {
        let mut found = 12090;
        if let Ok(driver) = driver() {
            of_driver((driver.cuDriverGetVersion)(&mut found))?;
        }
        version.set(found)
    }

    /// A function of the driver, by name.
    fn cudaGetDriverEntryPoint | cudaGetDriverEntryPoint_ptsz as default (
        symbol: crate::ffi::Text, function: Handle, flags: u64, result: Handle,
    ) {
        let mut version = 12090;
        let driver = driver()?;
        of_driver((driver.cuDriverGetVersion)(&mut version))?;
        entry_point(default, symbol, function, version as c_uint, flags, result)
    }

    /// A function of the driver, by name and version.
    fn cudaGetDriverEntryPointByVersion | cudaGetDriverEntryPointByVersion_ptsz as default (
        symbol: crate::ffi::Text, function: Handle, version: c_uint, flags: u64, result: Handle,
    ) {
        entry_point(default, symbol, function, version, flags, result)
    }

    /// Begins what a profiler records.
    fn cudaProfilerStart() => cuProfilerStart;

    /// Ends what a profiler records.
    fn cudaProfilerStop() => cuProfilerStop;
}

fn entry_point(
    default: crate::entry::DefaultStream,
    symbol: crate::ffi::Text,
    function: Handle,
    version: c_uint,
    flags: u64,
    result: Handle,
) -> Result<(), Status> {
    let name = symbol.get()?;
    // 0 is the default: that of the caller's twin. 1 asks for the legacy stream, 2 for that of the thread.
    let flags = match (flags, default) {
        (0, crate::entry::DefaultStream::PerThread) => 2,
        (flags, _) => flags,
    };
    let driver = driver()?;
    let found = (driver.cuGetProcAddress_v2)(name.as_ptr(), function, version as c_int, flags, result);
    // Whether there is such a function stands in the result where the caller asked for it.
    if found == Status::NOT_FOUND.0 && !result.is_null() { Ok(()) } else { of_driver(found) }
}
