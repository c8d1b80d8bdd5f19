//! The driver and its one device.

use crate::driver::{Settings, driver, start};
use crate::entry::entries;
use crate::ffi::Out;
use crate::status::{Answer, Status};
use std::ffi::{c_int, c_uint};

/// Fails unless it is the number of our device.
pub(crate) fn check_device(device: c_int) -> Answer {
    if device == 0 { Ok(()) } else { Err(Status::InvalidDevice) }
}

entries! { ENTRIES;
    /// Starts the driver.
    fn cuInit(flags: c_uint) {
        if flags == 0 { start().map(|_| ()) } else { Err(Status::InvalidValue) }
    }

    /// The driver's version.
    fn cuDriverGetVersion(version: Out<c_int>) {
        // This one may be called before `cuInit`.
        version.set(driver().map_or_else(|_| Settings::from_environment(), |driver| driver.settings).version)
    }

    /// How many devices there are.
    fn cuDeviceGetCount(count: Out<c_int>) {
        driver()?;
        count.set(1)
    }

    /// The device of that number.
    fn cuDeviceGet(device: Out<c_int>, ordinal: c_int) {
        driver()?;
        device.check()?;
        check_device(ordinal)?;
        device.set(ordinal)
    }
}
