//! Memory: device memory, host memory that kernels can access, managed memory, and the attributes of
//! addresses.
//!
//! Pinned and managed memory is device memory, because host and kernels share one address space. Registered
//! host memory keeps its own address.
//!
//! Invariant: an address is freed once, and only by the function that belongs to its allocation.

use crate::context::{Context, current};
use crate::driver::{Driver, status_of};
use crate::entry::entries;
use crate::ffi::{HostBytes, In, Out, Pointer, adopt};
use crate::handles::Handle;
use crate::log;
use crate::pool::Location;
use crate::status::{Answer, Status};
use ptxvm::{Access, DeviceId};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{c_int, c_uint};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The pitch of `cuMemAllocPitch` is a multiple of this.
const PITCH: usize = 512;

/// The kind of a program's allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `cuMemAlloc`
    Device,
    /// `cuMemAllocAsync`, from that pool.
    Pool(Handle),
    /// An allocation node of a graph.
    Graph,
    /// `cuMemAllocManaged`
    Managed,
    /// `cuMemHostAlloc`, with its flags.
    Pinned(c_uint),
    /// `cuMemHostRegister`, with its flags.
    Registered(c_uint),
    /// `cuIpcOpenMemHandle`: another process's.
    Imported,
    /// `cuMemPoolImportPointer`: another process's, through that imported pool.
    Received(Handle),
}

impl Kind {
    fn on_host(self) -> bool {
        matches!(self, Kind::Pinned(_) | Kind::Registered(_))
    }

    /// Whether functions that free device memory accept it.
    pub(crate) fn may_be_freed(self) -> bool {
        matches!(self, Kind::Device | Kind::Pool(_) | Kind::Received(_) | Kind::Graph | Kind::Managed)
    }

    /// Whether the program can read it without a copy.
    pub(crate) fn is_seen_by_the_host(self) -> bool {
        self.on_host() || self == Kind::Managed
    }
}

/// An allocation of a program.
#[derive(Clone)]
pub(crate) struct Block {
    pub(crate) bytes: u64,
    pub(crate) kind: Kind,
    pub(crate) context: Arc<Context>,
    number: u64,
}

impl Block {
    /// A unique number.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}

/// The allocations of the process, by first address.
#[derive(Default)]
pub(crate) struct Blocks {
    held: Mutex<BTreeMap<u64, Block>>,
    /// Starts of allocations that a stream will free at its turn.
    leaving: Mutex<BTreeSet<u64>>,
}

impl Blocks {
    fn table(&self) -> MutexGuard<'_, BTreeMap<u64, Block>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn leaving(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.leaving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a stream will free the allocation at an address, or has done so.
    pub(crate) fn leaves(&self, start: u64, pending: bool) {
        let mut leaving = self.leaving();
        if pending {
            leaving.insert(start);
        } else {
            leaving.remove(&start);
        }
    }

    /// Whether a stream will free the allocation at an address.
    pub(crate) fn is_leaving(&self, start: u64) -> bool {
        self.leaving().contains(&start)
    }

    /// The allocation that contains an address, and its start.
    pub(crate) fn at(&self, address: u64) -> Option<(u64, Block)> {
        let table = self.table();
        let (start, block) = table.range(..=address).next_back()?;
        (address - start < block.bytes).then(|| (*start, block.clone()))
    }

    /// Registers an allocation.
    pub(crate) fn add(&self, start: u64, bytes: u64, kind: Kind, context: &Arc<Context>) {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        self.table().insert(start, Block { bytes, kind, context: Arc::clone(context), number });
    }

    /// Removes the allocation that starts at an address, if `may` accepts its kind.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE`.
    pub(crate) fn take(&self, start: u64, may: impl Fn(Kind) -> bool) -> Result<Block, Status> {
        let mut table = self.table();
        if !table.get(&start).is_some_and(|block| may(block.kind)) {
            return Err(Status::InvalidValue);
        }
        table.remove(&start).ok_or(Status::InvalidValue)
    }

    /// Removes the allocation with a number, if it starts at an address.
    pub(crate) fn take_numbered(&self, start: u64, number: u64) -> Option<Block> {
        let mut table = self.table();
        if table.get(&start)?.number != number {
            return None;
        }
        table.remove(&start)
    }

    /// The starts of allocations of a kind.
    pub(crate) fn of_kind(&self, kind: Kind) -> Vec<u64> {
        let table = self.table();
        table.iter().filter(|(_, block)| block.kind == kind).map(|(at, _)| *at).collect()
    }

    /// The allocations of a context, with their starts.
    pub(crate) fn of(&self, context: &Arc<Context>) -> Vec<(u64, Block)> {
        let table = self.table();
        let own = table.iter().filter(|(_, block)| Arc::ptr_eq(&block.context, context));
        own.map(|(at, block)| (*at, block.clone())).collect()
    }

    /// Removes the allocations of a context, and returns their starts.
    pub(crate) fn take_all(&self, context: &Arc<Context>) -> Vec<(u64, Kind)> {
        let mut table = self.table();
        let gone: Vec<_> = table
            .iter()
            .filter(|(_, block)| Arc::ptr_eq(&block.context, context))
            .map(|(at, b)| (*at, b.kind))
            .collect();
        for (at, _) in &gone {
            table.remove(at);
        }
        gone
    }
}

/// Allocates for a context.
///
/// # Errors
/// `CUDA_ERROR_INVALID_VALUE` for zero bytes, `CUDA_ERROR_OUT_OF_MEMORY`.
pub(crate) fn allocate(
    driver: &Driver,
    context: &Arc<Context>,
    bytes: u64,
    kind: Kind,
) -> Result<u64, Status> {
    allocate_on(driver, (context.vm(driver).number(), context), bytes, kind)
}

/// Like [`allocate`], in the memory of a device that need not be the context's.
///
/// # Errors
/// As [`allocate`].
pub(crate) fn allocate_on(
    driver: &Driver,
    (device, context): (DeviceId, &Arc<Context>),
    bytes: u64,
    kind: Kind,
) -> Result<u64, Status> {
    let name = match kind {
        Kind::Device => "memory from `cuMemAlloc`",
        Kind::Pool(_) => "memory from `cuMemAllocAsync`",
        Kind::Graph => "memory of a graph",
        Kind::Managed => "managed memory",
        Kind::Pinned(_) | Kind::Registered(_) => "host memory from `cuMemHostAlloc`",
        Kind::Imported | Kind::Received(_) => "memory of another process",
    };
    if bytes == 0 {
        return Err(Status::InvalidValue);
    }
    let vm = driver.vm_of(device)?;
    let (used, _) = vm.memory_usage();
    if bytes > driver.memory_total.saturating_sub(used) {
        return Err(Status::OutOfMemory);
    }
    let start = match kind {
        Kind::Device | Kind::Pool(_) | Kind::Graph | Kind::Imported | Kind::Received(_) => {
            vm.alloc(name, bytes)
        }
        Kind::Managed | Kind::Pinned(_) | Kind::Registered(_) => vm.alloc_common(name, bytes),
    };
    let start = start.map_err(|error| status_of(&error))?;
    driver.blocks.add(start, bytes, kind, context);
    Ok(start)
}

/// Frees memory after all work that may use it, as synchronous functions do.
fn free(address: u64, may: impl Fn(Kind) -> bool) -> Answer {
    let (driver, context) = current()?;
    if address == 0 {
        return Ok(());
    }
    if driver.blocks.at(address).is_some_and(|(start, block)| start == address && block.kind == Kind::Graph) {
        driver.vm.synchronize();
        if !crate::graph::release(driver, address)? {
            return context.check();
        }
    }
    // The allocation is removed before waiting, so that nothing else finds it meanwhile.
    let block = driver.blocks.take(address, may).inspect_err(|_| {
        driver.frees_wrongly(address);
    })?;
    driver.vm.synchronize();
    if let Kind::Pool(pool) = block.kind
        && let Some(pool) = driver.pools.find(pool)
    {
        pool.freed(block.bytes);
    }
    if matches!(block.kind, Kind::Received(_)) {
        crate::ipc::unmap(driver, address);
    } else {
        // A kernel may have freed it.
        let _freed = driver.vm.free(address);
    }
    context.check()
}

fn alloc_pinned(out: Out<Pointer>, bytes: usize, flags: c_uint) -> Answer {
    let (driver, context) = current()?;
    out.check()?;
    if flags & !7 != 0 {
        return Err(Status::InvalidValue);
    }
    out.set(Pointer::from_address(allocate(driver, &context, bytes as u64, Kind::Pinned(flags))?))
}

/// The allocation that contains a host address that kernels can access.
fn block_at(driver: &Driver, address: u64) -> Result<(u64, Block), Status> {
    driver.blocks.at(address).ok_or(Status::InvalidValue)
}

/// Writes an attribute of a pointer. Returns `None` for unknown attributes.
fn pointer_attribute(driver: &Driver, data: Pointer, attribute: c_int, address: u64) -> Option<Answer> {
    let block = driver.blocks.at(address);
    // Variables of modules are device memory without an allocation of the program.
    let range = block
        .as_ref()
        .map(|(start, block)| *start..start + block.bytes)
        .or_else(|| driver.vm.pages_at(address).map(|(range, _)| range))
        .or_else(|| driver.vm.allocation_at(address));
    // A reserved range of addresses may be larger than the mapping in it.
    let whole = driver.vm.reservation_at(address).or_else(|| range.clone());
    let (Some(range), Some(whole)) = (range, whole) else {
        // `CU_POINTER_ATTRIBUTE_DEVICE_POINTER` of host memory: the program wants to pass it to a kernel.
        if attribute == 3 && address >= 1 << 16 {
            log::hint(
                "kernels can access this host memory only under `ptxvm exec --host-pointers` (PTXVM_HOST_POINTERS=1)",
            );
        }
        return Some(Err(Status::InvalidValue));
    };
    let kind = block.as_ref().map_or(Kind::Device, |(_, block)| block.kind);
    let on_host = kind.on_host() || block.is_none() && crate::mapped::is_of_host(driver, address);
    let flag = |value: bool| data.place::<c_uint>().set(value.into());
    Some(match attribute {
        1 => {
            let context = block.as_ref().map_or(Handle::NULL, |(_, block)| block.context.handle);
            data.place::<Handle>().set(context)
        }
        2 => data.place::<c_uint>().set(if on_host { 1 } else { 2 }),
        3 => data.place::<u64>().set(address),
        4 if on_host || kind == Kind::Managed => data.place::<u64>().set(address),
        4 => Err(Status::InvalidValue),
        6 => data.place::<c_uint>().set(1),
        7 => data.place::<u64>().set(block.as_ref().map_or(0, |(_, block)| block.number)),
        8 => flag(kind == Kind::Managed),
        9 => {
            data.place::<c_int>().set(driver.vm.owner_of(address).map_or(0, |device| device.index() as c_int))
        }
        10 => flag(kind == Kind::Device && block.is_some()),
        11 => data.place::<u64>().set(whole.start),
        12 => data.place::<usize>().set((whole.end - whole.start) as usize),
        13 => flag(true),
        14 => data.place::<u64>().set(crate::mapped::handle_types(driver, address)),
        15 => flag(false),
        16 => data.place::<c_uint>().set(crate::mapped::rights_at(driver, address)),
        17 => data.place::<Handle>().set(if let Kind::Pool(pool) | Kind::Received(pool) = kind {
            pool
        } else {
            Handle::NULL
        }),
        18 => data.place::<usize>().set((range.end - range.start) as usize),
        19 => data.place::<u64>().set(range.start),
        20 => data.place::<u64>().set(block.as_ref().map_or(0, |(_, block)| block.number)),
        21 => flag(false),
        _ => return None,
    })
}

/// The value that [`pointer_attribute`] leaves if it fails: zeros of the attribute's size.
fn no_attribute(data: Pointer, attribute: c_int) -> Answer {
    match attribute {
        2 | 6 | 8 | 10 | 13 | 15 | 16 | 21 => data.place::<c_uint>().set(0),
        9 => data.place::<c_int>().set(-2),
        1 | 3 | 4 | 7 | 11 | 12 | 14 | 17..=20 => data.place::<u64>().set(0),
        _ => Err(Status::InvalidValue),
    }
}

entries! { ENTRIES;
    /// Allocates device memory.
    fn cuMemAlloc_v2(address: Out<u64>, bytes: usize) {
        let (driver, context) = current()?;
        address.check()?;
        address.set(allocate(driver, &context, bytes as u64, Kind::Device)?)
    }

    /// Allocates device memory in rows.
    fn cuMemAllocPitch_v2(address: Out<u64>, pitch: Out<usize>, width: usize, height: usize, element: c_uint) {
        let (driver, context) = current()?;
        address.check()?;
        pitch.check()?;
        if !matches!(element, 4 | 8 | 16) || width == 0 || height == 0 {
            return Err(Status::InvalidValue);
        }
        let row = width.checked_next_multiple_of(PITCH).ok_or(Status::InvalidValue)?;
        let bytes = row.checked_mul(height).ok_or(Status::OutOfMemory)?;
        address.set(allocate(driver, &context, bytes as u64, Kind::Device)?)?;
        pitch.set(row)
    }

    /// Frees device memory.
    fn cuMemFree_v2(address: u64) {
        free(address, Kind::may_be_freed)
    }

    /// Allocates managed memory, which host and kernels share.
    fn cuMemAllocManaged(address: Out<u64>, bytes: usize, flags: c_uint) {
        let (driver, context) = current()?;
        address.check()?;
        if !matches!(flags, 1 | 2) {
            return Err(Status::InvalidValue);
        }
        address.set(allocate(driver, &context, bytes as u64, Kind::Managed)?)
    }

    /// Allocates host memory that kernels can access.
    fn cuMemHostAlloc(out: Out<Pointer>, bytes: usize, flags: c_uint) {
        alloc_pinned(out, bytes, flags)
    }

    /// Allocates host memory that kernels can access.
    fn cuMemAllocHost_v2(out: Out<Pointer>, bytes: usize) {
        alloc_pinned(out, bytes, 0)
    }

    /// Frees host memory.
    fn cuMemFreeHost(start: Pointer) {
        free(start.address(), |kind| matches!(kind, Kind::Pinned(_)))
    }

    /// Registers host memory, so that kernels can access it.
    fn cuMemHostRegister_v2(start: Pointer, bytes: usize, flags: c_uint) {
        let (driver, context) = current()?;
        if flags & !0xf != 0 {
            return Err(Status::InvalidValue);
        }
        if start.is_null() || bytes == 0 {
            return Err(Status::InvalidValue);
        }
        let (first, last) = (start.address(), start.address().checked_add(bytes as u64 - 1).ok_or(Status::InvalidValue)?);
        if driver.blocks.at(first).is_some() || driver.blocks.at(last).is_some() {
            return Err(Status::HostMemoryAlreadyRegistered);
        }
        adopt(&driver.vm, start, bytes)?;
        driver.blocks.add(first, bytes as u64, Kind::Registered(flags), &context);
        Ok(())
    }

    /// Ends the registration of host memory.
    fn cuMemHostUnregister(start: Pointer) {
        let (driver, context) = current()?;
        if start.is_null() {
            return Err(Status::InvalidValue);
        }
        let registered = |kind| matches!(kind, Kind::Registered(_));
        driver.blocks.take(start.address(), registered).map_err(|_| Status::HostMemoryNotRegistered)?;
        driver.vm.synchronize();
        driver.vm.disown(start.address()).map_err(|_| Status::HostMemoryNotRegistered)?;
        context.check()
    }

    /// The address by which kernels access host memory: its own.
    fn cuMemHostGetDevicePointer_v2(address: Out<u64>, host: Pointer, flags: c_uint) {
        let (driver, _) = current()?;
        address.check()?;
        if flags != 0 {
            return Err(Status::InvalidValue);
        }
        let (_, block) = block_at(driver, host.address())?;
        if block.kind.on_host() || block.kind == Kind::Managed { address.set(host.address()) } else { Err(Status::InvalidValue) }
    }

    /// The flags that host memory was allocated or registered with.
    fn cuMemHostGetFlags(flags: Out<c_uint>, host: Pointer) {
        let (driver, _) = current()?;
        flags.check()?;
        match block_at(driver, host.address())?.1.kind {
            Kind::Pinned(given) | Kind::Registered(given) => flags.set(given),
            Kind::Device | Kind::Pool(_) | Kind::Graph | Kind::Managed | Kind::Imported | Kind::Received(_) => Err(Status::InvalidValue),
        }
    }

    /// The amount of free device memory.
    fn cuMemGetInfo_v2(free: Out<usize>, total: Out<usize>) {
        let (driver, context) = current()?;
        let (used, _) = context.vm(driver).memory_usage();
        free.set_optional(driver.memory_total.saturating_sub(used) as usize)?;
        total.set_optional(driver.memory_total as usize)
    }

    /// The allocation that contains an address.
    fn cuMemGetAddressRange_v2(base: Out<u64>, bytes: Out<usize>, address: u64) {
        let (driver, _) = current()?;
        let found = driver.blocks.at(address).map(|(start, block)| start..start + block.bytes);
        let found = found.or_else(|| driver.vm.pages_at(address).map(|(range, _)| range));
        let range = found.or_else(|| driver.vm.allocation_at(address)).ok_or(Status::NotFound)?;
        base.set_optional(range.start)?;
        bytes.set_optional((range.end - range.start) as usize)
    }

    /// An attribute of an address.
    fn cuPointerGetAttribute(data: Pointer, attribute: c_int, address: u64) {
        let driver = crate::driver::driver()?;
        if data.is_null() {
            return Err(Status::InvalidValue);
        }
        if attribute == 5 {
            return Err(Status::NotSupported);
        }
        pointer_attribute(driver, data, attribute, address).unwrap_or(Err(Status::InvalidValue))
    }

    /// Several attributes of an address. Attributes that it does not have become zero.
    fn cuPointerGetAttributes(count: c_uint, attributes: In<c_int>, data: In<Pointer>, address: u64) {
        let driver = crate::driver::driver()?;
        let attributes = attributes.all(count as usize)?;
        for (attribute, data) in attributes.into_iter().zip(data.all(count as usize)?) {
            if data.is_null() {
                return Err(Status::InvalidValue);
            }
            match pointer_attribute(driver, data, attribute, address) {
                Some(Ok(())) => {}
                Some(Err(_)) => no_attribute(data, attribute)?,
                None => return Err(Status::InvalidValue),
            }
        }
        Ok(())
    }

    /// Accepts the flag by which synchronous operations on an allocation always wait. It has no effect.
    fn cuPointerSetAttribute(value: In<c_uint>, attribute: c_int, address: u64) {
        let (driver, _) = current()?;
        value.get()?;
        block_at(driver, address)?;
        if attribute == 6 { Ok(()) } else { Err(Status::InvalidValue) }
    }

    /// Accepts advice on the location of managed memory, which has no effect.
    fn cuMemAdvise(address: u64, bytes: usize, advice: c_int, _device: c_int) {
        let (driver, _) = current()?;
        check_managed(driver, address, bytes)?;
        if (1..=6).contains(&advice) { Ok(()) } else { Err(Status::InvalidValue) }
    }

    /// Prefetches managed memory to a device, which has no effect.
    fn cuMemPrefetchAsync | cuMemPrefetchAsync_ptsz as default (address: u64, bytes: usize, device: c_int, stream: Handle) {
        let (driver, _) = crate::stream::queue(stream, default)?;
        check_managed(driver, address, bytes)?;
        if device == -1 { Ok(()) } else { crate::init::check_device(device) }
    }

    /// Accepts advice on the location of managed memory, which has no effect.
    fn cuMemAdvise_v2(address: u64, bytes: usize, advice: c_int, location: Location) {
        let (driver, _) = current()?;
        check_managed(driver, address, bytes)?;
        location.check_any()?;
        if (1..=6).contains(&advice) { Ok(()) } else { Err(Status::InvalidValue) }
    }

    /// Prefetches managed memory to a location, which has no effect.
    fn cuMemPrefetchAsync_v2 | cuMemPrefetchAsync_v2_ptsz as default (
        address: u64, bytes: usize, location: Location, flags: c_uint, stream: Handle,
    ) {
        let (driver, _) = crate::stream::queue(stream, default)?;
        check_managed(driver, address, bytes)?;
        if flags != 0 {
            return Err(Status::InvalidValue);
        }
        location.check_any()
    }

    /// An attribute of managed memory.
    fn cuMemRangeGetAttribute(data: Pointer, bytes: usize, attribute: c_int, address: u64, count: usize) {
        let (driver, _) = current()?;
        check_managed(driver, address, count)?;
        range_attribute(data, bytes, attribute)
    }
}

/// Writes an attribute of managed memory. Advice and prefetches have no effect, so there is none.
///
/// # Errors
/// `CUDA_ERROR_INVALID_VALUE`.
pub(crate) fn range_attribute(data: Pointer, bytes: usize, attribute: c_int) -> Answer {
    /// `CU_DEVICE_INVALID`
    const NO_DEVICE: c_int = -2;
    /// Most devices of a list. Chosen: more than there are.
    const DEVICES_MAX: usize = 1024;
    match (attribute, bytes) {
        // Whether it is mostly read, and the types and numbers of locations.
        (1 | 5..=8, 4) => data.place::<c_int>().set(0),
        (2 | 4, 4) => data.place::<c_int>().set(NO_DEVICE),
        // The devices that access it.
        (3, bytes) if bytes > 0 && bytes.is_multiple_of(4) && bytes / 4 <= DEVICES_MAX => {
            (0..bytes / 4).try_for_each(|index| data.offset(4 * index).place::<c_int>().set(NO_DEVICE))
        }
        _ => Err(Status::InvalidValue),
    }
}

/// Fails unless all bytes are in one allocation of managed memory.
///
/// # Errors
/// `CUDA_ERROR_INVALID_VALUE`.
pub(crate) fn check_managed(driver: &Driver, address: u64, bytes: usize) -> Answer {
    let (start, block) = block_at(driver, address)?;
    let inside = bytes > 0 && bytes as u64 <= block.bytes - (address - start);
    if inside && block.kind == Kind::Managed { Ok(()) } else { Err(Status::InvalidValue) }
}

/// A side of a copy: device memory, or memory that only the host can access.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Side {
    /// An address in an allocation or in registered memory.
    Device(u64),
    /// Host memory.
    Host(HostBytes),
}

impl Side {
    /// Device memory.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE` if the bytes are not in one allocation.
    pub(crate) fn device(driver: &Driver, address: u64, bytes: usize) -> Result<Self, Status> {
        let inside = bytes == 0
            || driver.vm.allocation_at(address).is_some_and(|range| bytes as u64 <= range.end - address);
        if !inside {
            driver.accesses_wrongly(address, bytes);
            return Err(Status::InvalidValue);
        }
        if !driver.range.contains(&address) {
            // Host memory that kernels can access may be unmapped: registered memory may be gone, and other
            // memory was never checked.
            HostBytes::new(Pointer::from_address(address), bytes)?.check(host_memory::Access::Read)?;
        }
        Ok(Side::Device(address))
    }

    /// Host memory, pinned or not.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE` for addresses that cannot be host memory: implausible ones, bytes that
    /// begin in an allocation and end outside, and addresses of a device without an allocation.
    pub(crate) fn host(driver: &Driver, start: Pointer, bytes: usize) -> Result<Self, Status> {
        if driver.vm.allocation_at(start.address()).is_some() {
            return Self::device(driver, start.address(), bytes);
        }
        let host = HostBytes::new(start, bytes).inspect_err(|_| {
            if driver.range.contains(&start.address()) {
                driver.accesses_wrongly(start.address(), bytes);
            }
        })?;
        Ok(Side::Host(host))
    }

    /// An address of any kind, which the driver determines.
    ///
    /// # Errors
    /// As [`Side::host`].
    pub(crate) fn unified(driver: &Driver, address: u64, bytes: usize) -> Result<Self, Status> {
        Self::host(driver, Pointer::from_address(address), bytes)
    }

    /// Fails if host memory does not permit the access.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE`.
    pub(crate) fn check(&self, access: host_memory::Access) -> Answer {
        match self {
            Side::Device(_) => Ok(()),
            Side::Host(host) => host.check(access),
        }
    }

    /// The same side, after a check that device memory can be written. Host memory is checked by
    /// [`Side::check`] when it is accessed.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE` if no device may write all of it.
    pub(crate) fn writable(self, driver: &Driver, bytes: usize) -> Result<Self, Status> {
        let Side::Device(address) = self else { return Ok(self) };
        if !driver.vm.permits(address, bytes as u64, Access::ReadWrite) {
            return Err(Status::InvalidValue);
        }
        if !driver.range.contains(&address) {
            let host = HostBytes::new(Pointer::from_address(address), bytes)?;
            host.check(host_memory::Access::Write)?;
        }
        Ok(self)
    }

    /// The side plus `offset`.
    pub(crate) fn part(self, offset: usize, bytes: usize) -> Result<Self, Status> {
        match self {
            Side::Device(address) => Ok(Side::Device(address + offset as u64)),
            Side::Host(host) => Ok(Side::Host(host.part(offset, bytes)?)),
        }
    }
}
