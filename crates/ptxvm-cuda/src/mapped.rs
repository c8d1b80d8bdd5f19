//! Virtual memory management: reserved addresses, created memory, and mappings of memory at addresses.
//!
//! Created memory lives as long as it is counted or mapped. Devices can access mapped memory as
//! `cuMemSetAccess` allows.
//!
//! Invariant: copies of memory that devices may not access fail, and kernels that access it trap. What it
//! does not do: host memory, compression, sparse arrays, multicast.

use crate::context::current;
use crate::driver::{Driver, driver, status_of};
use crate::entry::entries;
use crate::ffi::{Descriptor, In, Out, Pointer};
use crate::graph::Access as Grant;
use crate::handles::Handle;
use crate::init::check_device;
use crate::log;
use crate::pool::Location;
use crate::status::{Answer, Status};
use ptxvm::{Access, DeviceId, Error, ErrorKind, Pages};
use std::ffi::{c_int, c_uint};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The unit of sizes and addresses, as on such devices.
const GRANULARITY: u64 = 2 << 20;
/// `CU_MEM_ALLOCATION_TYPE_PINNED`
const PINNED: c_int = 1;
/// `CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR`
const DESCRIPTOR: c_int = 1;
/// Most devices and locations whose access one call sets. Chosen: more than there are.
pub(crate) const GRANTS_MAX: usize = 1024;

/// `CUmemAllocationProp`
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Properties {
    kind: c_int,
    handles: c_int,
    location: Location,
    meta: Pointer,
    compression: u8,
    rdma: u8,
    usage: u16,
    rest: u32,
}

impl Properties {
    fn of_device(device: DeviceId, handles: c_int) -> Self {
        let location = Location::of_device(device);
        Self {
            kind: PINNED,
            handles,
            location,
            meta: Pointer::NULL,
            compression: 0,
            rdma: 0,
            usage: 0,
            rest: 0,
        }
    }

    /// The device of the memory. Memory of the host counts as the first device's.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE`, `CUDA_ERROR_INVALID_DEVICE`; `CUDA_ERROR_NOT_SUPPORTED` for handles that
    /// are not file descriptors, and for handles of host memory.
    fn device(&self) -> Result<DeviceId, Status> {
        if self.kind != PINNED || self.handles < 0 {
            return Err(Status::InvalidValue);
        }
        let device = self.location.device()?;
        if self.handles & !DESCRIPTOR != 0 {
            log::refused("shareable memory other than by file descriptors in cuMemCreate");
            return Err(Status::NotSupported);
        }
        if device.is_none() && self.handles != 0 {
            log::refused("host memory of `cuMemCreate` that other processes share");
            return Err(Status::NotSupported);
        }
        Ok(device.unwrap_or_default())
    }
}

/// `CUmemGenericAllocationHandle`: memory of a device.
pub(crate) struct Allocation {
    pages: Arc<Pages>,
    properties: Properties,
    /// The number of creations, imports and retains minus the number of releases.
    count: Mutex<u32>,
}

impl Allocation {
    fn new(pages: Arc<Pages>, properties: Properties) -> Self {
        Self { pages, properties, count: Mutex::new(1) }
    }

    fn count(&self) -> MutexGuard<'_, u32> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its size.
    pub(crate) fn bytes(&self) -> u64 {
        self.pages.bytes()
    }

    /// Whether its reference count is zero and its pages are mapped nowhere.
    fn is_unused(&self) -> bool {
        *self.count() == 0 && Arc::strong_count(&self.pages) == 1
    }
}

/// The memory of a counted handle.
fn find(driver: &Driver, handle: u64) -> Result<Arc<Allocation>, Status> {
    let found = driver.allocations.find(Handle(handle as usize)).ok_or(Status::InvalidValue)?;
    if *found.count() == 0 { Err(Status::InvalidValue) } else { Ok(found) }
}

/// Writes a handle of memory for the caller. If that fails, the memory is released.
fn give(driver: &Driver, out: Out<u64>, made: Allocation) -> Answer {
    let handle = driver.allocations.insert(made);
    out.set(handle.0 as u64).inspect_err(|_| drop(driver.allocations.remove(handle)))
}

/// The status for an error of the virtual machine.
fn refused(error: &Error) -> Status {
    match error.kind() {
        ErrorKind::Machine(_) => Status::OutOfMemory,
        _ => status_of(error),
    }
}

/// Fails unless both are multiples of the granularity and the size is not 0.
fn check_range(address: u64, bytes: usize) -> Answer {
    let whole = address.is_multiple_of(GRANULARITY) && (bytes as u64).is_multiple_of(GRANULARITY);
    if whole && bytes > 0 { Ok(()) } else { Err(Status::InvalidValue) }
}

/// `CUmemAccess_flags`
pub(crate) fn access_of(flags: c_int) -> Result<Access, Status> {
    match flags {
        0 => Ok(Access::None),
        1 => Ok(Access::Read),
        3 => Ok(Access::ReadWrite),
        _ => Err(Status::InvalidValue),
    }
}

/// The number of an access right in this API.
pub(crate) fn flags_of(access: Access) -> u64 {
    match access {
        Access::None => 0,
        Access::Read => 1,
        Access::ReadWrite => 3,
    }
}

/// The memory that is mapped at an address.
fn mapped_at(driver: &Driver, address: u64) -> Option<Arc<Allocation>> {
    let (_, pages) = driver.vm.pages_at(address)?;
    driver.allocations.all().into_iter().find(|made| Arc::ptr_eq(&made.pages, &pages))
}

/// `CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES` of the memory at an address.
pub(crate) fn handle_types(driver: &Driver, address: u64) -> u64 {
    mapped_at(driver, address).map_or(0, |made| made.properties.handles as u64)
}

/// Whether memory of the host is mapped at an address.
pub(crate) fn is_of_host(driver: &Driver, address: u64) -> bool {
    mapped_at(driver, address).is_some_and(|made| made.properties.location.device() == Ok(None))
}

entries! { ENTRIES;
    /// The unit of sizes and addresses.
    fn cuMemGetAllocationGranularity(granularity: Out<usize>, properties: In<Properties>, option: c_int) {
        driver()?;
        granularity.check()?;
        properties.get()?.device()?;
        // The minimum and the recommended granularity are the same.
        if matches!(option, 0 | 1) { granularity.set(GRANULARITY as usize) } else { Err(Status::InvalidValue) }
    }

    /// Reserves addresses.
    fn cuMemAddressReserve(address: Out<u64>, bytes: usize, align: usize, wanted: u64, flags: u64) {
        let driver = driver()?;
        address.check()?;
        check_range(0, bytes)?;
        if flags != 0 || align != 0 && !align.is_power_of_two() {
            return Err(Status::InvalidValue);
        }
        let align = (align as u64).max(GRANULARITY);
        let start = driver.vm.reserve(bytes as u64, align, wanted).map_err(|error| refused(&error))?;
        address.set(start).inspect_err(|_| drop(driver.vm.unreserve(start, bytes as u64)))
    }

    /// Frees reserved addresses.
    fn cuMemAddressFree(address: u64, bytes: usize) {
        let driver = driver()?;
        check_range(address, bytes)?;
        driver.vm.unreserve(address, bytes as u64).map_err(|_| Status::InvalidValue)
    }

    /// Creates memory of a device or of the host that can be mapped.
    fn cuMemCreate(handle: Out<u64>, bytes: usize, properties: In<Properties>, flags: u64) {
        let driver = driver()?;
        handle.check()?;
        let properties = properties.get()?;
        let device = properties.device()?;
        check_range(0, bytes)?;
        if flags != 0 {
            return Err(Status::InvalidValue);
        }
        let vm = driver.vm_of(device)?;
        if bytes as u64 > driver.memory_total.saturating_sub(vm.memory_usage().0) {
            return Err(Status::OutOfMemory);
        }
        let pages = vm.pages(bytes as u64).map_err(|error| refused(&error))?;
        give(driver, handle, Allocation::new(pages, properties))
    }

    /// Releases memory. It is freed when nothing maps it.
    fn cuMemRelease(handle: u64) {
        let driver = driver()?;
        let found = find(driver, handle)?;
        {
            let mut count = found.count();
            *count = count.checked_sub(1).ok_or(Status::InvalidValue)?;
        }
        drop(found);
        driver.allocations.remove_if(Allocation::is_unused);
        Ok(())
    }

    /// Maps memory at reserved addresses. No device may access it yet.
    fn cuMemMap(address: u64, bytes: usize, offset: usize, handle: u64, flags: u64) {
        let driver = driver()?;
        check_range(address, bytes)?;
        if offset != 0 || flags != 0 {
            return Err(Status::InvalidValue);
        }
        let found = find(driver, handle)?;
        let size = bytes as u64;
        driver
            .vm
            .map((address, size), (&found.pages, 0), 0..size, "memory from `cuMemCreate`")
            .map_err(|error| match error.kind() {
                ErrorKind::Machine(_) => Status::MapFailed,
                _ => Status::InvalidValue,
            })
    }

    /// Unmaps memory, after all work that may use it.
    fn cuMemUnmap(address: u64, bytes: usize) {
        let driver = driver()?;
        check_range(address, bytes)?;
        driver.vm.synchronize();
        let done = driver.vm.unmap(address, bytes as u64);
        driver.allocations.remove_if(Allocation::is_unused);
        done.map_err(|error| match error.kind() {
            ErrorKind::Machine(_) => Status::UnmapFailed,
            _ => Status::InvalidValue,
        })
    }

    /// Sets the access of devices to mapped memory.
    fn cuMemSetAccess(address: u64, bytes: usize, grants: In<Grant>, count: usize) {
        let driver = driver()?;
        check_range(address, bytes)?;
        if count == 0 || count > GRANTS_MAX {
            return Err(Status::InvalidValue);
        }
        let mut devices = Vec::new();
        for [kind, number, flags] in grants.all(count)? {
            let access = access_of(flags)?;
            // The host can access all memory that a device can access.
            devices.extend(Location { kind, number }.device()?.map(|device| (device, access)));
        }
        driver.vm.pages_at(address).ok_or(Status::InvalidValue)?;
        for (device, access) in devices {
            driver.vm.set_access(address, bytes as u64, device, access).map_err(|_| Status::InvalidValue)?;
        }
        Ok(())
    }

    /// The access of a device to mapped memory.
    fn cuMemGetAccess(flags: Out<u64>, location: In<Location>, address: u64) {
        let driver = driver()?;
        flags.check()?;
        let device = location.get()?.device()?;
        let (_, pages) = driver.vm.pages_at(address).ok_or(Status::InvalidValue)?;
        // The host's access is that of the device that owns the memory.
        let device = device.unwrap_or(pages.device());
        flags.set(flags_of(driver.vm.access_at(address, device).ok_or(Status::InvalidValue)?))
    }

    /// The properties that memory was created with.
    fn cuMemGetAllocationPropertiesFromHandle(properties: Out<Properties>, handle: u64) {
        properties.set(find(driver()?, handle)?.properties)
    }

    /// The handle of the memory at an address, whose count increases.
    fn cuMemRetainAllocationHandle(handle: Out<u64>, address: Pointer) {
        let driver = driver()?;
        handle.check()?;
        let (_, pages) = driver.vm.pages_at(address.address()).ok_or(Status::InvalidValue)?;
        let of_pages = |made: &Allocation| Arc::ptr_eq(&made.pages, &pages);
        let (number, found) = driver.allocations.find_by(of_pages).ok_or(Status::InvalidValue)?;
        let mut count = found.count();
        let more = count.checked_add(1).ok_or(Status::InvalidValue)?;
        handle.set(number.0 as u64)?;
        *count = more;
        Ok(())
    }

    /// A file descriptor of memory, for another process.
    fn cuMemExportToShareableHandle(shared: Pointer, handle: u64, kind: c_int, flags: u64) {
        let driver = driver()?;
        let place = shared.place::<c_int>();
        place.check()?;
        let found = find(driver, handle)?;
        if flags != 0 || kind <= 0 || kind & found.properties.handles != kind {
            return Err(Status::InvalidValue);
        }
        let descriptor = found.pages.descriptor().map_err(|_| Status::OperatingSystem)?;
        place.set(descriptor.as_raw_fd())?;
        // The caller closes the descriptor.
        Descriptor::given(descriptor);
        Ok(())
    }

    /// The memory of a file descriptor.
    fn cuMemImportFromShareableHandle(handle: Out<u64>, shared: Pointer, kind: c_int) {
        let driver = driver()?;
        handle.check()?;
        if kind != DESCRIPTOR {
            return Err(if kind <= 0 { Status::InvalidValue } else { Status::NotSupported });
        }
        let number = c_int::try_from(shared.address()).map_err(|_| Status::InvalidValue)?;
        let descriptor = Descriptor::of(number).ok_or(Status::InvalidValue)?;
        let pages = Pages::import(descriptor.borrow()).map_err(|_| Status::InvalidValue)?;
        check_device(pages.device().index() as c_int)?;
        check_range(0, pages.bytes() as usize)?;
        let properties = Properties::of_device(pages.device(), DESCRIPTOR);
        give(driver, handle, Allocation::new(pages, properties))
    }
}

/// The access of the current context's device, for `CU_POINTER_ATTRIBUTE_ACCESS_FLAGS`.
pub(crate) fn rights_at(driver: &Driver, address: u64) -> c_uint {
    let device = current().ok().and_then(|(_, context)| DeviceId::new(context.device as usize));
    let access = driver.vm.access_at(address, device.unwrap_or_default());
    access.map_or(3, |access| flags_of(access) as c_uint)
}
