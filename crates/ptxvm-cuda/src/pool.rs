//! Memory pools: allocations in a stream's order.
//!
//! Memory is allocated at the call, and freed at the operation's turn in the stream. A pool adds accounting.
//!
//! Invariant: the used memory that a pool reports is the sum of its allocations.

use crate::driver::{Driver, driver};
use crate::entry::{DefaultStream, entries};
use crate::ffi::{In, Out, Pointer};
use crate::graph::{Access as Grant, freeing, release};
use crate::handles::Handle;
use crate::ipc::{DESCRIPTOR, Identity};
use crate::log;
use crate::mapped::{GRANTS_MAX, access_of, flags_of};
use crate::memory::{Block, Kind, allocate_on};
use crate::status::{Answer, Status};
use crate::stream::queue;
use ptxvm::{Access, DeviceId};
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A pool.
pub(crate) struct Pool {
    device: DeviceId,
    origin: Origin,
    state: Mutex<State>,
}

/// Where the memory of a pool comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// This process.
    Own { exportable: bool },
    /// Another process, which allocates it.
    Other(Identity),
}

#[derive(Default)]
struct State {
    used: u64,
    high: u64,
    threshold: u64,
    most: u64,
    reuse: [c_int; 3],
    /// The access of other devices to its allocations.
    grants: BTreeMap<DeviceId, Access>,
}

impl Pool {
    /// A pool of a device with at most `most` bytes; 0 means no limit.
    pub(crate) fn new(device: DeviceId, most: u64) -> Self {
        let state = State { most, reuse: [1; 3], ..State::default() };
        Self { device, origin: Origin::Own { exportable: false }, state: Mutex::new(state) }
    }

    /// The pool of another process.
    pub(crate) fn imported(device: DeviceId, identity: Identity) -> Self {
        Self { origin: Origin::Other(identity), ..Self::new(device, 0) }
    }

    /// Its device.
    pub(crate) fn device(&self) -> DeviceId {
        self.device
    }

    /// Whether other processes may use its memory.
    pub(crate) fn is_exportable(&self) -> bool {
        self.origin == Origin::Own { exportable: true }
    }

    /// The pool of another process that it stands for.
    pub(crate) fn identity(&self) -> Option<Identity> {
        match self.origin {
            Origin::Other(identity) => Some(identity),
            Origin::Own { .. } => None,
        }
    }

    /// The access of other devices to its allocations.
    pub(crate) fn granted(&self) -> Vec<(DeviceId, Access)> {
        self.state().grants.iter().map(|(device, access)| (*device, *access)).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn took(&self, bytes: u64) -> Answer {
        let mut state = self.state();
        let used = state.used.saturating_add(bytes);
        if state.most != 0 && used > state.most {
            return Err(Status::OutOfMemory);
        }
        state.used = used;
        state.high = state.high.max(used);
        Ok(())
    }

    /// Notes that an allocation of `bytes` bytes was freed.
    pub(crate) fn freed(&self, bytes: u64) {
        let mut state = self.state();
        state.used = state.used.saturating_sub(bytes);
    }
}

/// Memory that a stream frees. If the stream's work ends earlier, with its context, the memory is freed then.
struct Freeing {
    driver: &'static Driver,
    address: u64,
    block: Block,
    done: AtomicBool,
}

impl Freeing {
    /// Frees the memory at the first call.
    fn free(&self) {
        if self.done.swap(true, Ordering::Relaxed) {
            return;
        }
        if let Kind::Pool(pool) = self.block.kind
            && let Some(pool) = self.driver.pools.find(pool)
        {
            pool.freed(self.block.bytes);
        }
        if matches!(self.block.kind, Kind::Received(_)) {
            crate::ipc::unmap(self.driver, self.address);
        } else {
            // A kernel may have freed it.
            let _freed = self.driver.vm.free(self.address);
        }
        self.driver.blocks.leaves(self.address, false);
    }
}

impl Drop for Freeing {
    fn drop(&mut self) {
        self.free();
    }
}

/// `CUmemPoolProps`, without the fields that are not read.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Properties {
    kind: c_int,
    handles: c_int,
    location: c_int,
    device: c_int,
    security: usize,
    most: usize,
    rest: [u64; 7],
}

impl Properties {
    /// Properties of a pool of a device.
    pub(crate) fn of_device(device: c_int) -> Self {
        Self { kind: 1, handles: 0, location: 1, device, security: 0, most: 0, rest: [0; 7] }
    }

    /// Fails unless the properties are those of device memory that other processes do not share.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE`, `CUDA_ERROR_NOT_SUPPORTED`, `CUDA_ERROR_INVALID_DEVICE`.
    pub(crate) fn check(&self) -> Result<DeviceId, Status> {
        if self.handles != 0 {
            log::refused("memory of graphs that other processes share");
            return Err(Status::NotSupported);
        }
        self.check_place()
    }

    /// The pool that these properties describe.
    ///
    /// # Errors
    /// As [`Properties::check`].
    fn pool(&self) -> Result<Pool, Status> {
        if self.handles & !DESCRIPTOR != 0 {
            log::refused("memory pools shared other than by file descriptors");
            return Err(Status::NotSupported);
        }
        let origin = Origin::Own { exportable: self.handles == DESCRIPTOR };
        Ok(Pool { origin, ..Pool::new(self.check_place()?, self.most as u64) })
    }

    fn check_place(&self) -> Result<DeviceId, Status> {
        if self.kind != 1 || self.location != 1 {
            return Err(Status::InvalidValue);
        }
        crate::init::check_device(self.device)?;
        usize::try_from(self.device).ok().and_then(DeviceId::new).ok_or(Status::InvalidDevice)
    }
}

/// `CUmemLocation`
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Location {
    pub(crate) kind: c_int,
    pub(crate) number: c_int,
}

impl Location {
    /// The location of a device.
    pub(crate) fn of_device(device: DeviceId) -> Self {
        Self { kind: 1, number: device.index() as c_int }
    }

    /// The device of the location, or `None` for the host.
    ///
    /// # Errors
    /// As [`Location::check_any`].
    pub(crate) fn device(self) -> Result<Option<DeviceId>, Status> {
        self.check_any()?;
        Ok(usize::try_from(self.number).ok().filter(|_| self.kind == 1).and_then(DeviceId::new))
    }

    /// Fails unless it is a device or the host.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE`, `CUDA_ERROR_INVALID_DEVICE`.
    pub(crate) fn check_any(self) -> Answer {
        match self.kind {
            1 => crate::init::check_device(self.number),
            // The host, and its NUMA nodes.
            2..=4 => Ok(()),
            _ => Err(Status::InvalidValue),
        }
    }
}

fn take(out: Out<u64>, bytes: usize, pool: Option<Handle>, stream: Handle, default: DefaultStream) -> Answer {
    let (driver, queue) = queue(stream, default)?;
    out.check()?;
    if bytes > 0 && queue.is_captured() {
        let (work, address) = crate::graph::allocated(driver, bytes)?;
        return queue.captured(|| Ok(work)).unwrap_or(Ok(())).and_then(|()| out.set(address));
    }
    let handle = match pool {
        Some(pool) => pool,
        None => current_pool(driver, queue.context.device)?,
    };
    let pool = driver.pools.get(handle).map_err(|_| Status::InvalidValue)?;
    if pool.identity().is_some() {
        return Err(Status::InvalidValue);
    }
    if bytes == 0 {
        return out.set(0);
    }
    pool.took(bytes as u64)?;
    match allocate_on(driver, (pool.device, &queue.context), bytes as u64, Kind::Pool(handle)) {
        Ok(address) => {
            for (device, access) in pool.state().grants.clone() {
                driver.vm.grant(address, device, access).map_err(|_| Status::Unknown)?;
            }
            out.set(address)
        }
        Err(status) => {
            pool.freed(bytes as u64);
            Err(status)
        }
    }
}

fn current_pool(driver: &Driver, number: c_int) -> Result<Handle, Status> {
    Ok(*driver.device(number)?.current_pool.lock().unwrap_or_else(PoisonError::into_inner))
}

entries! { ENTRIES;
    /// Allocates device memory in a stream's order.
    fn cuMemAllocAsync | cuMemAllocAsync_ptsz as default (address: Out<u64>, bytes: usize, stream: Handle) {
        take(address, bytes, None, stream, default)
    }

    /// Allocates device memory from a pool.
    fn cuMemAllocFromPoolAsync | cuMemAllocFromPoolAsync_ptsz as default (
        address: Out<u64>, bytes: usize, pool: Handle, stream: Handle,
    ) {
        take(address, bytes, Some(pool), stream, default)
    }

    /// Frees device memory in a stream's order.
    fn cuMemFreeAsync | cuMemFreeAsync_ptsz as default (address: u64, stream: Handle) {
        let (driver, queue) = queue(stream, default)?;
        if address == 0 {
            return Ok(());
        }
        if let Some(added) = queue.captured(|| freeing(driver, address)) {
            return added;
        }
        if driver.blocks.at(address).is_some_and(|(start, block)| start == address && block.kind == Kind::Graph)
            && !release(driver, address)?
        {
            return Ok(());
        }
        let block = driver.blocks.take(address, Kind::may_be_freed).inspect_err(|_| {
            driver.frees_wrongly(address);
        })?;
        driver.blocks.leaves(address, true);
        let freeing = Freeing { driver, address, block, done: AtomicBool::new(false) };
        queue.submit(move || {
            freeing.free();
            Ok(())
        })
    }

    /// The default pool of a device.
    fn cuDeviceGetDefaultMemPool(pool: Out<Handle>, number: c_int) {
        pool.set(driver()?.device(number)?.default_pool)
    }

    /// The current pool of a device.
    fn cuDeviceGetMemPool(pool: Out<Handle>, number: c_int) {
        pool.set(current_pool(driver()?, number)?)
    }

    /// Sets the current pool of a device.
    fn cuDeviceSetMemPool(number: c_int, pool: Handle) {
        let driver = driver()?;
        let device = driver.device(number)?;
        let found = driver.pools.get(pool).map_err(|_| Status::InvalidValue)?;
        if found.device != device.vm.number() || found.identity().is_some() {
            return Err(Status::InvalidValue);
        }
        *device.current_pool.lock().unwrap_or_else(PoisonError::into_inner) = pool;
        Ok(())
    }

    /// The default pool of a location.
    fn cuMemGetDefaultMemPool(pool: Out<Handle>, location: In<Location>, kind: c_int) {
        let number = check_place(location, kind)?;
        pool.set(driver()?.device(number)?.default_pool)
    }

    /// The current pool of a location.
    fn cuMemGetMemPool(pool: Out<Handle>, location: In<Location>, kind: c_int) {
        let number = check_place(location, kind)?;
        pool.set(current_pool(driver()?, number)?)
    }

    /// Creates a pool.
    fn cuMemPoolCreate(pool: Out<Handle>, properties: In<Properties>) {
        let driver = driver()?;
        pool.check()?;
        pool.set(driver.pools.insert(properties.get()?.pool()?))
    }

    /// Destroys a pool. Its allocations stay.
    fn cuMemPoolDestroy(pool: Handle) {
        let driver = driver()?;
        if driver.devices.iter().any(|device| pool == device.default_pool) {
            return Err(Status::InvalidValue);
        }
        driver.pools.remove(pool).map_err(|_| Status::InvalidValue)?;
        for device in &driver.devices {
            let mut current = device.current_pool.lock().unwrap_or_else(PoisonError::into_inner);
            if *current == pool {
                *current = device.default_pool;
            }
        }
        Ok(())
    }

    /// Releases unused memory of a pool. There is none, because freed memory is released at once.
    fn cuMemPoolTrimTo(pool: Handle, _keep: usize) {
        driver()?.pools.get(pool).map(|_| ()).map_err(|_| Status::InvalidValue)
    }

    /// An attribute of a pool.
    fn cuMemPoolGetAttribute(pool: Handle, attribute: c_int, value: Pointer) {
        let pool = driver()?.pools.get(pool).map_err(|_| Status::InvalidValue)?;
        let state = pool.state();
        match attribute {
            1..=3 => value.place::<c_int>().set(state.reuse[attribute as usize - 1]),
            4 => value.place::<u64>().set(state.threshold),
            5 | 7 => value.place::<u64>().set(state.used),
            6 | 8 => value.place::<u64>().set(state.high),
            9 => value.place::<c_int>().set(1),
            10 | 11 => value.place::<c_int>().set(0),
            12 => value.place::<c_int>().set(1),
            13 => value.place::<u64>().set(state.most),
            14 => value.place::<c_int>().set(0),
            _ => Err(Status::InvalidValue),
        }
    }

    /// Sets an attribute of a pool.
    fn cuMemPoolSetAttribute(pool: Handle, attribute: c_int, value: Pointer) {
        let pool = driver()?.pools.get(pool).map_err(|_| Status::InvalidValue)?;
        let mut state = pool.state();
        match attribute {
            1..=3 => state.reuse[attribute as usize - 1] = value.values::<c_int>().get()?,
            4 => state.threshold = value.values::<u64>().get()?,
            6 | 8 if value.values::<u64>().get()? == 0 => state.high = state.used,
            _ => return Err(Status::InvalidValue),
        }
        Ok(())
    }

    /// Sets the access of devices to allocations of a pool.
    fn cuMemPoolSetAccess(pool: Handle, access: In<Grant>, count: usize) {
        let driver = driver()?;
        let handle = pool;
        let pool = driver.pools.get(handle).map_err(|_| Status::InvalidValue)?;
        if count > GRANTS_MAX {
            return Err(Status::InvalidValue);
        }
        let mut grants = Vec::new();
        for [kind, number, flags] in access.all(count)? {
            let access = access_of(flags)?;
            let device = Location { kind, number }.device()?.ok_or(Status::InvalidValue)?;
            // A device cannot lose access to its own memory.
            if device != pool.device {
                grants.push((device, access));
            } else if access != Access::ReadWrite {
                return Err(Status::InvalidDevice);
            }
        }
        for (device, access) in grants {
            pool.state().grants.insert(device, access);
            for address in driver.blocks.of_kind(Kind::Pool(handle)) {
                // A kernel may have freed it.
                let _gone = driver.vm.grant(address, device, access);
            }
            for address in driver.blocks.of_kind(Kind::Received(handle)) {
                if let Some((range, _)) = driver.vm.pages_at(address) {
                    let bytes = range.end - range.start;
                    driver.vm.set_access(range.start, bytes, device, access).map_err(|_| Status::Unknown)?;
                }
            }
        }
        Ok(())
    }

    /// The access of a location to a pool.
    fn cuMemPoolGetAccess(flags: Out<c_int>, pool: Handle, location: In<Location>) {
        let pool = driver()?.pools.get(pool).map_err(|_| Status::InvalidValue)?;
        flags.check()?;
        check_place(location, 1)?;
        let device = location.get()?.device()?;
        let granted = device.and_then(|device| pool.state().grants.get(&device).copied());
        let own = if device == Some(pool.device) { Access::ReadWrite } else { Access::None };
        flags.set(flags_of(granted.unwrap_or(own)) as c_int)
    }
}

/// The number of a location's device.
fn check_place(location: In<Location>, kind: c_int) -> Result<c_int, Status> {
    let location = location.get()?;
    if kind != 1 || location.kind != 1 {
        return Err(Status::InvalidValue);
    }
    crate::init::check_device(location.number)?;
    Ok(location.number)
}
