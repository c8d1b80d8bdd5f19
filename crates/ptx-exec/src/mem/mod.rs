//! The guest's memory: one reserved range of addresses, and the operations of warps and hosts on it.
//!
//! A device address is a host address inside the range. The range is divided into regions, so that `isspacep`
//! and `cvta` are range arithmetic:
//!
//! | region | contents |
//! | --- | --- |
//! | functions | never any memory: addresses of functions are numbers in it |
//! | constant | `.const` variables |
//! | parameters | parameter buffers of launches |
//! | shared | one window for each resident CTA |
//! | local | one window for each resident warp, lane after lane |
//! | heap | `.global` variables, buffers, the guest's `malloc` |
//! | common | memory that the host and all devices share |
//! | mapped | pages that the host maps there ([`Pages`]) |
//!
//! A machine may have several devices, which share the range. An allocation belongs to one device. Other
//! devices may access it only if they are granted access ([`Memory::let_reach`], [`Memory::set_access`]). A
//! [`View`] is that of one device.
//!
//! Invariants: every guest access is checked against the exact bounds of a live allocation, or of a window
//! that the warp owns, so no guest address reaches anything else. Allocations are at least 256 bytes apart.
//! Memory that was allocated once stays mapped while its [`Memory`] lives, so a concurrent `free` can change
//! the result of a check but never makes an access unsafe. Host memory is accessed only where the host has
//! lent it ([`Memory::adopt`], [`Memory::reach_host`]). New allocations and windows are zero, or hold the
//! pattern of [`Fill`], so that runs are reproducible; the manual leaves their contents undefined.
//!
//! There is no model of caches and no detection of races here.

mod access;
mod admit;
mod allocator;
mod arena;
mod b128;
mod bytes;
mod cell;
mod exclusive;
mod export;
mod fill;
mod functions;
mod handles;
mod heap;
mod host;
mod local;
mod mapped;
mod pages;
mod rights;
mod target;
#[cfg(test)]
mod tests;
mod view;
mod watched;
mod window;

pub use allocator::{EndingAllocator, attempt};
pub use cell::Cell;
pub(crate) use exclusive::Withdrawal;
pub use exclusive::{Performer, announce, announced_within, perform, perform_or_leave};
pub use export::Exported;
pub use fill::Fill;
pub use local::{LOCAL_ROW, LOCAL_WORD, LocalLayout};
pub use pages::Pages;
pub use rights::{Access, DEVICES, DeviceId};
pub use target::Addresses;
pub use view::{Activity, Reach, View, Windows};

pub use crate::class::Class;
use crate::shadow::ShadowMemory;
use crate::stamps::Stamps;
use crate::watch::{Allocated, HostAccessKind, Watch};
use arena::Arena;
use cell::Place;
use export::Exports;
use functions::{Functions, STEP};
use handles::Handles;
use heap::{GAP, Heap};
use mapped::Reservations;
use ptx::check::module::AddressSize;
use ptx::isa::Space;
use rights::{Peers, Rights};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
pub(crate) use window::Window;
use window::WindowKind;

/// Size of the region of function addresses in bytes.
const FUNCTION_BYTES: u64 = 1 << 20;

/// The most bytes of live `malloc` allocations of guests. Chosen: 128 times CUDA's default; prevents a kernel
/// that only allocates from filling the host's memory.
const MALLOC_BYTES: u64 = 1 << 30;

/// From this size on, zeroing releases whole pages to the system instead of writing them.
const LARGE: u64 = 1 << 20;

/// Why a request of the host failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryError {
    /// The system did not reserve a range of addresses.
    Reserve,
    /// No device memory of this size is left.
    OutOfMemory {
        /// Bytes asked for.
        bytes: u64,
    },
    /// The host has no memory for a copy of this size.
    Host {
        /// Bytes asked for.
        bytes: u64,
    },
    /// No allocation starts at this address.
    NotAllocated {
        /// The address.
        address: u64,
    },
    /// The addresses are not reserved or not mapped as the call requires.
    Mapping {
        /// First address.
        address: u64,
        /// How many bytes.
        bytes: u64,
        /// What is wrong with the addresses.
        why: &'static str,
    },
    /// The system refused to share memory.
    Share,
    /// The bytes are not inside one allocation.
    OutOfBounds {
        /// First address.
        address: u64,
        /// How many bytes.
        bytes: u64,
        /// A description of the nearest allocation.
        nearest: String,
    },
}

impl std::fmt::Display for MemoryError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            MemoryError::Reserve => f.write_str(
                "the system grants no addresses for device memory (a limit such as that of `ulimit -v`?)",
            ),
            MemoryError::OutOfMemory { bytes } => write!(f, "no room for {bytes} bytes of device memory"),
            MemoryError::Host { bytes } => write!(f, "no room for {bytes} bytes of the host's memory"),
            MemoryError::Mapping { address, bytes, why } => write!(f, "{bytes} bytes at {address:#x}: {why}"),
            MemoryError::Share => f.write_str("the system does not let this process share memory"),
            MemoryError::NotAllocated { address } => write!(f, "no allocation starts at {address:#x}"),
            MemoryError::OutOfBounds { address, bytes, nearest } => {
                write!(f, "{bytes} bytes at {address:#x} are not inside one allocation ({nearest})")
            }
        }
    }
}

impl std::error::Error for MemoryError {}

/// Guest memory of a machine, as seen by one of its devices. Its methods are for the host; warps use a
/// [`View`].
pub struct Memory {
    store: Arc<Store>,
    device: DeviceId,
}

/// The state that the devices of a machine share.
struct Store {
    arena: Arena,
    regions: Regions,
    address_size: AddressSize,
    tables: Mutex<Tables>,
    handles: Handles,
    /// OS threads that launches on this memory share.
    pool: crate::pool::Pool,
    /// Counter of launches.
    launches: AtomicU64,
    /// The clocks of warps, summed over all launches that have ended, and the time that warps have slept.
    time: AtomicU64,
    /// Counter of frees: a [`View`] discards its look-ups when this changes.
    frees: AtomicU64,
    /// Locks for accesses of 128 bits.
    locks: b128::Locks,
    /// Whether guests may access all host memory outside of the range.
    host: AtomicBool,
    /// The mappings of host memory that launches have reached.
    mappings: Mutex<host_memory::Mappings>,
    /// By device, bytes of [`Pages`].
    held: [Arc<AtomicU64>; DEVICES],
    /// Pages that other processes can map.
    exports: Mutex<Exports>,
    /// Observers of all launches and of host accesses, if any.
    watch: OnceLock<Arc<Watch>>,
    /// The shadow memory that they record undefined bits in, if they want one.
    shadow: OnceLock<Arc<ShadowMemory>>,
    /// The stamps that they compare accesses by, if they want them.
    stamps: OnceLock<Arc<Stamps>>,
    /// What undefined memory begins with; zeros without it.
    fill: OnceLock<Fill>,
}

/// Bounds of the regions. The last two are empty if addresses are scarce.
#[derive(Clone, Debug)]
struct Regions {
    functions: Range<u64>,
    constant: Range<u64>,
    params: Range<u64>,
    shared: Range<u64>,
    local: Range<u64>,
    heap: Range<u64>,
    /// Memory that the host and all devices share.
    common: Range<u64>,
    /// Addresses for mapped pages.
    mapped: Range<u64>,
}

/// The allocations.
struct Tables {
    constant: Heap,
    params: Heap,
    shared: Heap,
    local: Heap,
    heap: Heap,
    common: Option<Heap>,
    mapped: Reservations,
    /// By owner, the devices that may access its memory.
    peers: Peers,
    /// By first address. Does not contain windows.
    live: BTreeMap<u64, Allocation>,
    functions: Functions,
    /// Bytes of live `malloc` allocations of guests.
    malloc: u64,
    /// By device, allocated bytes without parameter buffers and windows.
    used: [u64; DEVICES],
    /// Freed memory that must not be reused yet, oldest first, and its size in bytes.
    quarantine: (VecDeque<(u64, Allocation)>, u64),
}

/// A live allocation.
#[derive(Clone, Debug)]
struct Allocation {
    bytes: u64,
    class: Class,
    rights: Rights,
    /// The device whose memory it uses.
    device: DeviceId,
    name: Arc<str>,
}

/// A range of addresses that a look-up found, and its kind.
#[derive(Clone, Copy, Debug)]
struct Extent {
    start: u64,
    bytes: u64,
    class: Class,
    writable: bool,
}

impl Memory {
    /// The number of freed allocations: a look-up is valid only while this does not change.
    pub fn frees(&self) -> u64 {
        self.store.frees.load(Ordering::Acquire)
    }

    /// Reserves the range.
    ///
    /// # Errors
    /// [`MemoryError::Reserve`] if the system grants no range that addresses of this width can name.
    pub fn new(address_size: AddressSize) -> Result<Arc<Self>, MemoryError> {
        let arena = Arena::reserve(address_size).ok_or(MemoryError::Reserve)?;
        let (base, all) = (arena.base(), arena.bytes());
        let bytes = all.min(arena::FULL);
        let small = (bytes / 64).min(64 << 20);
        let mut at = base;
        let mut next = |bytes: u64| {
            let start = at;
            at += bytes;
            start..at
        };
        let regions = Regions {
            functions: next(FUNCTION_BYTES),
            constant: next(small),
            params: next(small),
            shared: next(bytes / 16),
            local: next(bytes / 4),
            heap: next(bytes - bytes / 16 - bytes / 4 - 2 * small - FUNCTION_BYTES),
            common: next((all - bytes).min(arena::FULL)),
            mapped: next((all - bytes).saturating_sub(arena::FULL)),
        };
        let tables = Tables {
            constant: Heap::new(regions.constant.clone()),
            params: Heap::new(regions.params.clone()),
            shared: Heap::of_windows(regions.shared.clone()),
            local: Heap::of_windows(regions.local.clone()),
            heap: Heap::new(regions.heap.clone()),
            common: (!regions.common.is_empty()).then(|| Heap::new(regions.common.clone())),
            mapped: Reservations::new(regions.mapped.clone()),
            peers: Peers::default(),
            live: BTreeMap::new(),
            functions: Functions::new(&regions.functions),
            malloc: 0,
            used: [0; DEVICES],
            quarantine: Default::default(),
        };
        let handles = Handles::default();
        let [launches, time, frees] = [0; 3].map(AtomicU64::new);
        let store = Store {
            arena,
            regions,
            address_size,
            tables: Mutex::new(tables),
            handles,
            pool: crate::pool::Pool::new(),
            launches,
            time,
            frees,
            locks: b128::Locks::default(),
            host: AtomicBool::new(false),
            mappings: Mutex::default(),
            held: Default::default(),
            exports: Mutex::default(),
            watch: OnceLock::new(),
            shadow: OnceLock::new(),
            stamps: OnceLock::new(),
            fill: OnceLock::new(),
        };
        Ok(Arc::new(Self { store: Arc::new(store), device: DeviceId::default() }))
    }

    /// The same memory as seen by another device, to which its allocations belong.
    pub fn of_device(&self, device: DeviceId) -> Arc<Self> {
        Arc::new(Self { store: Arc::clone(&self.store), device })
    }

    /// The device of this view of the memory.
    pub fn device(&self) -> DeviceId {
        self.device
    }

    /// Whether both are memories of one machine.
    pub fn is_shared_with(&self, other: &Memory) -> bool {
        Arc::ptr_eq(&self.store, &other.store)
    }

    /// OS threads for launches.
    pub(crate) fn pool(&self) -> &crate::pool::Pool {
        &self.store.pool
    }

    /// The objects that handles name.
    pub(crate) fn handles(&self) -> &Handles {
        &self.store.handles
    }

    /// Width of its addresses.
    pub fn address_size(&self) -> AddressSize {
        self.store.address_size
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        // A poisoned lock is harmless: the tables are consistent at every point that could panic.
        self.store.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allocates zeroed bytes; `name` is for reports, such as "global variable `x`".
    ///
    /// # Errors
    /// [`MemoryError::OutOfMemory`].
    pub fn alloc(&self, class: Class, bytes: u64, align: u64, name: &str) -> Result<u64, MemoryError> {
        self.alloc_for(Rights::Owner(self.device), class, (bytes, align), name)
    }

    /// As [`Memory::alloc`], for `.global` memory that all devices may access.
    ///
    /// # Errors
    /// [`MemoryError::OutOfMemory`].
    pub fn alloc_common(&self, bytes: u64, align: u64, name: &str) -> Result<u64, MemoryError> {
        self.alloc_for(Rights::All, Class::Global, (bytes, align), name)
    }

    fn alloc_for(
        &self,
        rights: Rights,
        class: Class,
        (bytes, align): (u64, u64),
        name: &str,
    ) -> Result<u64, MemoryError> {
        let full = MemoryError::OutOfMemory { bytes };
        let mut tables = self.tables();
        if class == Class::Malloc && bytes > MALLOC_BYTES - tables.malloc {
            return Err(full);
        }
        let heap = tables.heap_of(class, rights);
        let mark = heap.mark();
        let start = match heap.take(bytes, align.max(1)) {
            Some(start) => start,
            None => {
                tables.end_quarantine();
                tables.heap_of(class, rights).take(bytes, align.max(1)).ok_or_else(|| full.clone())?
            }
        };
        let end = tables.heap_of(class, rights).mark();
        if end > mark && !self.store.arena.commit(mark, end) {
            tables.heap_of(class, rights).undo(start, bytes, mark);
            return Err(full);
        }
        // Reused memory must be initialized again; memory beyond the old mark is still zero.
        self.begin(start, bytes, class, bytes.min(mark.saturating_sub(start)));
        let device = self.device;
        tables.live.insert(start, Allocation { bytes, class, rights, device, name: name.into() });
        if class == Class::Malloc {
            tables.malloc += bytes;
        }
        if class != Class::Param {
            tables.used[device.index()] += bytes;
        }
        drop(tables);
        let common = rights == Rights::All;
        self.tell_allocated(&Allocated { address: start, bytes, class, name, common });
        Ok(start)
    }

    /// Frees an allocation.
    ///
    /// # Errors
    /// [`MemoryError::NotAllocated`].
    pub fn free(&self, address: u64) -> Result<(), MemoryError> {
        self.free_if(address, |_| true)
    }

    /// Frees an allocation if its class is allowed.
    fn free_if(&self, address: u64, allowed: impl Fn(Class) -> bool) -> Result<(), MemoryError> {
        let mut tables = self.tables();
        let ours = self.range().contains(&address) && !self.store.regions.mapped.contains(&address);
        if !ours || !tables.live.get(&address).is_some_and(|a| allowed(a.class)) {
            return Err(MemoryError::NotAllocated { address });
        }
        let gone = tables.live.remove(&address).ok_or(MemoryError::NotAllocated { address })?;
        self.store.frees.fetch_add(1, Ordering::Release);
        match self.watched() {
            Some(watch) if gone.class != Class::Param => tables.set_aside(address, &gone, watch.quarantine()),
            _ => tables.heap_of(gone.class, gone.rights).give(address, gone.bytes),
        }
        if gone.class == Class::Malloc {
            tables.malloc -= gone.bytes;
        }
        if gone.class != Class::Param {
            tables.used[gone.device.index()] -= gone.bytes;
        }
        if gone.bytes >= LARGE {
            self.release(address, address + gone.bytes);
        }
        drop(tables);
        self.tell_freed(address, gone.bytes);
        Ok(())
    }

    /// Changes the name of an allocation, for reports.
    pub fn rename(&self, address: u64, name: &str) {
        if let Some(allocation) = self.tables().live.get_mut(&address) {
            allocation.name = name.into();
        }
    }

    /// Copies bytes from the host to an address. A concurrent guest access reads each byte either old or new.
    ///
    /// # Errors
    /// [`MemoryError::OutOfBounds`].
    pub fn write(&self, address: u64, from: &[u8]) -> Result<(), MemoryError> {
        self.inside(address, from.len() as u64, Access::ReadWrite)?;
        self.host_accesses(address, from.len() as u64, HostAccessKind::Write);
        self.put(address, from);
        Ok(())
    }

    /// Copies bytes from an address to the host.
    ///
    /// # Errors
    /// [`MemoryError::OutOfBounds`].
    pub fn read(&self, address: u64, to: &mut [u8]) -> Result<(), MemoryError> {
        self.inside(address, to.len() as u64, Access::Read)?;
        self.host_accesses(address, to.len() as u64, HostAccessKind::Read);
        self.get(address, to);
        Ok(())
    }

    /// Sets bytes.
    ///
    /// # Errors
    /// [`MemoryError::OutOfBounds`].
    pub fn fill(&self, address: u64, byte: u8, bytes: u64) -> Result<(), MemoryError> {
        self.inside(address, bytes, Access::ReadWrite)?;
        self.host_accesses(address, bytes, HostAccessKind::Write);
        self.put_same(address, bytes, byte);
        Ok(())
    }

    /// Describes the allocation nearest to an address: name, range and distance.
    pub fn nearest(&self, address: u64) -> String {
        if let Some(part) = self.host_extent(address) {
            return self.nearest_of_host(part, address);
        }
        let tables = self.tables();
        if let Some(prose) = tables.mapped_at(address) {
            return prose;
        }
        // Parameter buffers are excluded: their addresses are in another state space.
        let named = |(_, a): &(&u64, &Allocation)| a.class != Class::Param;
        let before = tables.live.range(..=address).rfind(named);
        let after = tables.live.range(address..).find(named);
        let distance = |(start, a): (&u64, &Allocation)| {
            if address < *start { start - address } else { (address - start).saturating_sub(a.bytes) }
        };
        let nearest = match (before, after) {
            (Some(b), Some(a)) => Some(if distance(a) < distance(b) { a } else { b }),
            (b, a) => b.or(a),
        };
        let Some((start, allocation)) = nearest else { return "nothing is allocated".to_owned() };
        let what = format!("{}, {} bytes at {start:#x}", allocation.name, allocation.bytes);
        if address < *start {
            format!("{what}; the address is {} bytes before it", start - address)
        } else if address - start < allocation.bytes {
            let refused = tables.peers.access(allocation.rights, self.device);
            let why = allocation.rights.refusal(refused, self.device);
            format!("{what}; the address is {} bytes into it{why}", address - start)
        } else {
            format!("{what}; the address is {} bytes past its end", address - start - allocation.bytes)
        }
    }

    /// The range of the allocation that contains an address. Consecutive mapped pages that some device may
    /// access count as one allocation.
    pub fn allocation_at(&self, address: u64) -> Option<Range<u64>> {
        let first = self.find_for_host(address)?;
        let (mut start, mut end) = (first.start, first.start + first.bytes);
        if self.store.regions.mapped.contains(&address) {
            while let Some(before) = start.checked_sub(1).and_then(|last| self.find_for_host(last)) {
                start = before.start;
            }
            while let Some(next) = self.find_for_host(end) {
                end = next.start + next.bytes;
            }
        }
        Some(start..end)
    }

    /// Whether the host may copy this many bytes from or to an address.
    pub fn permits(&self, address: u64, bytes: u64, access: Access) -> bool {
        self.inside(address, bytes, access).is_ok()
    }

    /// The name of the allocation that contains an address.
    pub fn name_at(&self, address: u64) -> Option<Arc<str>> {
        let tables = self.tables();
        let (start, a) = tables.live.range(..=address).next_back()?;
        (address - start < a.bytes).then(|| Arc::clone(&a.name))
    }

    /// Bytes allocated by the device, including `malloc` of guests, and the total capacity.
    pub fn usage(&self) -> (u64, u64) {
        let device = self.device.index();
        let used = self.tables().used[device] + self.store.held[device].load(Ordering::Relaxed);
        (used, self.store.regions.heap.end - self.store.regions.heap.start)
    }

    /// The state space of a generic address; `Global` for addresses outside of all other regions.
    pub fn space_of(&self, address: u64) -> Space {
        let regions = &self.store.regions;
        if regions.shared.contains(&address) {
            Space::Shared
        } else if regions.local.contains(&address) {
            Space::Local
        } else if regions.constant.contains(&address) {
            Space::Const
        } else if regions.params.contains(&address) {
            Space::Param
        } else {
            Space::Global
        }
    }

    /// Reserves addresses for the functions of a module. Returns the first; [`Memory::function_address`]
    /// gives the others.
    ///
    /// # Errors
    /// [`MemoryError::OutOfMemory`] if more than 65536 functions would have addresses.
    pub fn reserve_functions(&self, count: u32) -> Result<u64, MemoryError> {
        let full = MemoryError::OutOfMemory { bytes: STEP * u64::from(count) };
        self.tables().functions.take(count).ok_or(full)
    }

    /// Frees the addresses of `count` functions that [`Memory::reserve_functions`] returned.
    pub fn release_functions(&self, first: u64, count: u32) {
        self.tables().functions.give(first, count);
    }

    /// The address of function `index` of a module whose first function is at `first`.
    pub fn function_address(first: u64, index: u32) -> u64 {
        first + STEP * u64::from(index)
    }

    /// The inverse of [`Memory::function_address`], for a module with `count` functions.
    pub fn function_at(first: u64, count: u32, address: u64) -> Option<u32> {
        let offset = address.checked_sub(first)?;
        let index = offset / STEP;
        (offset % STEP == 0 && index < u64::from(count)).then_some(index as u32)
    }

    /// The next launch number, from 1: `%gridid`.
    pub(crate) fn next_launch(&self) -> u64 {
        self.forget_host();
        self.store.launches.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The start value of `%globaltimer` for a launch that begins now: later than all values in launches that
    /// have ended.
    pub(crate) fn now(&self) -> u64 {
        self.store.time.load(Ordering::Relaxed)
    }

    /// Advances [`Memory::now`].
    pub(crate) fn pass(&self, time: u64) {
        self.store.time.fetch_add(time, Ordering::Relaxed);
    }

    /// Allocates a zeroed window in the shared region.
    pub(crate) fn shared_window(self: &Arc<Self>, bytes: u64) -> Result<Window, MemoryError> {
        self.window(WindowKind::Shared, bytes)
    }

    /// Allocates a zeroed window in the local region.
    pub(crate) fn local_window(self: &Arc<Self>, bytes: u64) -> Result<Window, MemoryError> {
        self.window(WindowKind::Local, bytes)
    }

    fn window(self: &Arc<Self>, kind: WindowKind, bytes: u64) -> Result<Window, MemoryError> {
        let full = MemoryError::OutOfMemory { bytes };
        let mut tables = self.tables();
        let heap = tables.window_heap(kind);
        let mark = heap.mark();
        let start = heap.take(bytes, 1).ok_or_else(|| full.clone())?;
        let end = heap.mark();
        if end > mark && !self.store.arena.commit(mark - GAP, end) {
            tables.window_heap(kind).undo(start, bytes, mark);
            return Err(full);
        }
        self.zero(start, bytes.min(mark.saturating_sub(start)));
        // A vector load under a mask may reach over either end. Where no page is present, processors take
        // hundreds of cycles to find that the lanes there are inactive.
        for beside in [start - GAP, start + bytes.next_multiple_of(GAP)] {
            self.checked_place::<u8>(beside).store(0);
        }
        if let Some(shadow) = self.shadow() {
            shadow.mark(start..start + bytes, true);
        }
        Ok(Window { memory: Arc::clone(self), kind, start, bytes })
    }

    /// The live allocation that contains an address, if the device may read it.
    fn find(&self, address: u64) -> Option<Extent> {
        if let Some(part) = self.host_extent(address) {
            return self.mapped_part(part, address);
        }
        let tables = self.tables();
        let (start, a) = tables.at(address)?;
        a.extent(start, tables.peers.access(a.rights, self.device))
    }

    /// The live allocation that contains an address, if some device may read it. Whether host memory is
    /// mapped is not checked: the caller knows.
    fn find_for_host(&self, address: u64) -> Option<Extent> {
        if let Some(extent) = self.host_extent(address) {
            return Some(extent);
        }
        let tables = self.tables();
        let (start, a) = tables.at(address)?;
        a.extent(start, a.rights.of_any())
    }

    /// Fails unless the host may access all the bytes. They must lie in one allocation, or in consecutive
    /// mapped pages.
    fn inside(&self, address: u64, bytes: u64, access: Access) -> Result<(), MemoryError> {
        let (mut at, mut left) = (address, bytes);
        while left > 0 {
            match self.find_for_host(at) {
                Some(e) if e.writable || access != Access::ReadWrite => {
                    let here = left.min(e.bytes - (at - e.start));
                    (at, left) = (at + here, left - here);
                }
                _ => return Err(MemoryError::OutOfBounds { address, bytes, nearest: self.nearest(address) }),
            }
        }
        Ok(())
    }

    /// A place that the caller has checked: inside an allocation or window, and aligned.
    #[inline(always)]
    fn checked_place<T: Cell>(&self, address: u64) -> Place<T> {
        debug_assert!(!self.store.regions.functions.contains(&address));
        // SAFETY: private to this module. All callers pass addresses inside an allocation or window, which
        // are committed, or inside host memory, which stays valid by the promise of `adopt` or `reach_host`.
        // They proceed in aligned steps, and `self` outlives the use of the place.
        unsafe { Place::new(address) }
    }

    /// The whole words of a range that the caller has checked, as for [`Memory::checked_place`]. The range is
    /// aligned, or empty.
    fn checked_words(&self, address: u64, range: &Range<u64>) -> &[AtomicU64] {
        if range.is_empty() {
            return &[];
        }
        // SAFETY: as in `checked_place`; `self` is borrowed as long as the words.
        unsafe {
            self.checked_place::<u64>(address + range.start).following((range.end - range.start) as usize / 8)
        }
    }

    /// Zeroes bytes of an allocation or window.
    fn zero(&self, start: u64, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let end = start + bytes;
        let released = if bytes >= LARGE { self.release(start, end) } else { start..start };
        self.put_same(start, released.start - start, 0);
        self.put_same(released.end, end - released.end, 0);
    }
}

impl Allocation {
    /// The result of a look-up at `start`, if `access` is granted.
    fn extent(&self, start: u64, access: Access) -> Option<Extent> {
        let writable = match access {
            Access::None => return None,
            Access::Read => false,
            Access::ReadWrite => true,
        };
        Some(Extent { start, bytes: self.bytes, class: self.class, writable })
    }
}

impl Tables {
    /// The allocation that contains an address, and its first address.
    fn at(&self, address: u64) -> Option<(u64, &Allocation)> {
        let (start, a) = self.live.range(..=address).next_back()?;
        (address - start < a.bytes).then_some((*start, a))
    }

    fn heap_of(&mut self, class: Class, rights: Rights) -> &mut Heap {
        match class {
            // If addresses are scarce, one region holds all.
            Class::Global if rights == Rights::All => self.common.as_mut().unwrap_or(&mut self.heap),
            Class::Global | Class::Malloc | Class::Texture => &mut self.heap,
            Class::Const => &mut self.constant,
            Class::Param => &mut self.params,
        }
    }

    fn window_heap(&mut self, kind: WindowKind) -> &mut Heap {
        match kind {
            WindowKind::Shared => &mut self.shared,
            WindowKind::Local => &mut self.local,
        }
    }
}
