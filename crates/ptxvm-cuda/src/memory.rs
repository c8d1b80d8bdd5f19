//! Device memory and copies.

use crate::context::current;
use crate::driver::status_of;
use crate::entry::entries;
use crate::ffi::{HostBytes, Out, Pointer};
use crate::status::Status;

entries! { ENTRIES;
    /// Allocates device memory.
    fn cuMemAlloc_v2(address: Out<u64>, bytes: usize) {
        let (driver, _) = current()?;
        address.check()?;
        if bytes == 0 {
            return Err(Status::InvalidValue);
        }
        address.set(driver.vm.alloc("memory from `cuMemAlloc`", bytes as u64).map_err(|error| status_of(&error))?)
    }

    /// Frees device memory.
    fn cuMemFree_v2(address: u64) {
        let (driver, _) = current()?;
        if address == 0 { Ok(()) } else { driver.vm.free(address).map_err(|error| status_of(&error)) }
    }

    /// Copies from the host to the device.
    fn cuMemcpyHtoD_v2 | cuMemcpyHtoD_v2_ptds as _default (to: u64, from: Pointer, bytes: usize) {
        let (driver, _) = current()?;
        let from = HostBytes::new(from, bytes)?;
        from.read(|bytes| driver.vm.write(to, bytes)).map_err(|error| status_of(&error))
    }

    /// Copies from the device to the host.
    fn cuMemcpyDtoH_v2 | cuMemcpyDtoH_v2_ptds as _default (to: Pointer, from: u64, bytes: usize) {
        let (driver, _) = current()?;
        let to = HostBytes::new(to, bytes)?;
        to.write(|bytes| driver.vm.read(from, bytes)).map_err(|error| status_of(&error))
    }
}
