//! The guest's memory: one reserved range of addresses, and what warps and hosts may do with it.
//!
//! A device address is a real address inside the range. The range is cut into regions, so that `isspacep` and `cvta` are
//! range arithmetic:
//!
//! | region | what lies there |
//! | --- | --- |
//! | functions | nothing, ever: addresses of functions are numbers in it |
//! | constant | `.const` variables |
//! | parameters | parameter buffers of launches |
//! | shared | one window for each resident CTA |
//! | local | one window for each resident warp, its lanes one after another |
//! | heap | `.global` variables, buffers, the guest's `malloc` |
//! | common | memory that the host and all devices share |
//! | mapped | what the host maps there, page by page ([`Pages`]) |
//!
//! A machine may have several devices, which share the range. An allocation belongs to one; others access it only as far as
//! they are allowed to ([`Memory::let_reach`], [`Memory::set_access`]), and a [`View`] is that of one device.
//!
//! Invariants: every guest access is checked against the exact bounds of a live allocation or of a window that the warp
//! owns, so no guest address reaches anything else; allocations lie at least 256 bytes apart; memory that was handed out
//! stays mapped as long as its [`Memory`] lives, so a racing `free` can change what a check answers but never makes an access
//! unsafe. Memory of the host is reached only where the host has said so, and promised for it ([`Memory::adopt`],
//! [`Memory::reach_host`]). New allocations and windows are zero, or have the pattern of [`Fill`], which makes runs
//! repeatable (the manual leaves their contents undefined).
//!
//! What it does not do: no model of caches, no detection of races.

mod access;
mod admit;
mod allocator;
mod arena;
mod cell;
mod export;
mod fill;
mod functions;
mod heap;
mod host;
mod mapped;
mod pages;
mod rights;
mod target;
#[cfg(test)]
mod tests;
mod view;
mod watched;
mod whole;
mod window;

pub use allocator::{EndingAllocator, attempt};
pub use cell::Cell;
pub use export::Exported;
pub use fill::Fill;
pub use pages::Pages;
pub use rights::{Access, DEVICES, DeviceId};
pub use target::Addresses;
pub use view::{Activity, View};

use crate::texture::Opaques;
use crate::watch::{Allocated, HostAccessKind, Watch};
use arena::Arena;
use cell::Place;
use export::Exports;
use functions::{Functions, STEP};
use heap::Heap;
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

/// What the guest's `malloc` hands out at most at one time, in bytes. Chosen: 128 times the default of CUDA; keeps a kernel that only
/// allocates from filling the host's memory.
const MALLOC_BYTES: u64 = 1 << 30;

/// Bytes from which on zeroing gives whole pages back to the system instead.
const LARGE: u64 = 1 << 20;

/// Why the host's request for memory failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryError {
    /// The system would not reserve a range of addresses.
    Reserve,
    /// No room for that many bytes.
    OutOfMemory {
        /// Bytes asked for.
        bytes: u64,
    },
    /// The host has no room for a copy of that many bytes.
    Host {
        /// Bytes asked for.
        bytes: u64,
    },
    /// No allocation starts there.
    NotAllocated {
        /// The address.
        address: u64,
    },
    /// Addresses that were not reserved, or are not mapped, as the call needs it.
    Mapping {
        /// First address.
        address: u64,
        /// How many bytes.
        bytes: u64,
        /// What is wrong with them.
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
        /// The nearest allocation, in prose.
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

/// What an allocation is, which decides who may reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// `.global` and generic accesses, reading and writing.
    Global,
    /// `.const` and generic accesses, reading.
    Const,
    /// From the guest's `malloc`: as `Global`, and the guest may free it.
    Malloc,
    /// A parameter buffer: `.param` accesses of its launch.
    Param,
    /// Texels and opaque variables: texture and surface instructions only.
    Texture,
}

/// Guest memory of one machine, as one of its devices sees it. Its methods are the host's side; warps use a [`View`].
pub struct Memory {
    store: Arc<Store>,
    device: DeviceId,
}

/// What the devices of a machine share.
struct Store {
    arena: Arena,
    regions: Regions,
    address_size: AddressSize,
    tables: Mutex<Tables>,
    opaques: Opaques,
    /// OS threads that launches on this memory share.
    pool: crate::sched::Pool,
    /// Counts launches.
    launches: AtomicU64,
    /// What clocks of warps have counted in all launches that have ended, and what warps have slept.
    time: AtomicU64,
    /// Counts frees: a [`View`] forgets what it looked up when this changes.
    frees: AtomicU64,
    /// For accesses of 128 bits that others see whole.
    locks: whole::Locks,
    /// Whether every address outside the range is memory of the host that guests may access.
    host: AtomicBool,
    /// By device, bytes of [`Pages`].
    held: [Arc<AtomicU64>; DEVICES],
    /// Pages that other processes can map.
    exports: Mutex<Exports>,
    /// Observers of all launches and of the host's side, if any.
    watch: OnceLock<Arc<Watch>>,
    /// What undefined memory begins with; zeros without it.
    fill: OnceLock<Fill>,
}

/// Bounds of the regions. The last two are empty where addresses are scarce.
#[derive(Clone, Debug)]
struct Regions {
    functions: Range<u64>,
    constant: Range<u64>,
    params: Range<u64>,
    shared: Range<u64>,
    local: Range<u64>,
    heap: Range<u64>,
    /// Memory that host and all devices share.
    common: Range<u64>,
    /// Addresses that the host maps pages at.
    mapped: Range<u64>,
}

/// What is allocated where.
struct Tables {
    constant: Heap,
    params: Heap,
    shared: Heap,
    local: Heap,
    heap: Heap,
    common: Option<Heap>,
    mapped: Reservations,
    /// By owner, which devices reach its memory.
    peers: Peers,
    /// By first address. Windows are not in it.
    live: BTreeMap<u64, Allocation>,
    functions: Functions,
    /// Bytes that the guest's `malloc` has handed out.
    malloc: u64,
    /// By device, bytes that are handed out, parameter buffers and windows apart.
    used: [u64; DEVICES],
    /// Freed memory that is not to be allocated again yet, oldest first, and its bytes.
    quarantine: (VecDeque<(u64, Allocation)>, u64),
}

/// A live allocation.
#[derive(Clone, Debug)]
struct Allocation {
    bytes: u64,
    class: Class,
    rights: Rights,
    /// The device whose memory it takes.
    device: DeviceId,
    name: Arc<str>,
}

/// Which addresses a lookup found, and what they are.
#[derive(Clone, Copy, Debug)]
struct Extent {
    start: u64,
    bytes: u64,
    class: Class,
    writable: bool,
}

impl Memory {
    /// How many allocations were freed: what was looked up before holds only while this does not change.
    pub fn frees(&self) -> u64 {
        self.store.frees.load(Ordering::Acquire)
    }

    /// Reserves the range.
    ///
    /// # Errors
    /// [`MemoryError::Reserve`] where the system has no range that addresses of this width can name.
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
            shared: Heap::new(regions.shared.clone()),
            local: Heap::new(regions.local.clone()),
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
        let opaques = Opaques::default();
        let [launches, time, frees] = [0; 3].map(AtomicU64::new);
        let store = Store {
            arena,
            regions,
            address_size,
            tables: Mutex::new(tables),
            opaques,
            pool: crate::sched::Pool::new(),
            launches,
            time,
            frees,
            locks: whole::Locks::default(),
            host: AtomicBool::new(false),
            held: Default::default(),
            exports: Mutex::default(),
            watch: OnceLock::new(),
            fill: OnceLock::new(),
        };
        Ok(Arc::new(Self { store: Arc::new(store), device: DeviceId::default() }))
    }

    /// The same memory, as another device sees it: what that allocates is its own.
    pub fn of_device(&self, device: DeviceId) -> Arc<Self> {
        Arc::new(Self { store: Arc::clone(&self.store), device })
    }

    /// Which device sees it so.
    pub fn device(&self) -> DeviceId {
        self.device
    }

    /// Whether two devices are of one machine.
    pub fn is_shared_with(&self, other: &Memory) -> bool {
        Arc::ptr_eq(&self.store, &other.store)
    }

    /// OS threads for launches.
    pub(crate) fn pool(&self) -> &crate::sched::Pool {
        &self.store.pool
    }

    /// Its textures, samplers and surfaces.
    pub fn opaques(&self) -> &Opaques {
        &self.store.opaques
    }

    /// Width of its addresses.
    pub fn address_size(&self) -> AddressSize {
        self.store.address_size
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        // The tables are consistent between statements that can panic, and none can.
        self.store.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allocates zeroed bytes and gives them a name for reports (such as "global variable `x`").
    ///
    /// # Errors
    /// [`MemoryError::OutOfMemory`].
    pub fn alloc(&self, class: Class, bytes: u64, align: u64, name: &str) -> Result<u64, MemoryError> {
        self.alloc_for(Rights::Owner(self.device), class, (bytes, align), name)
    }

    /// As [`Memory::alloc`], of `.global` memory that all devices access.
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
        // What was used before must read as zero again; beyond the old mark it still does.
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

    /// Frees what [`Memory::alloc`] returned.
    ///
    /// # Errors
    /// [`MemoryError::NotAllocated`].
    pub fn free(&self, address: u64) -> Result<(), MemoryError> {
        self.free_if(address, |_| true)
    }

    /// Frees an allocation of an allowed class.
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

    /// Copies bytes of the host to an address. Racing guest accesses see each byte old or new.
    ///
    /// # Errors
    /// [`MemoryError::OutOfBounds`].
    pub fn write(&self, address: u64, from: &[u8]) -> Result<(), MemoryError> {
        self.inside(address, from.len() as u64, Access::ReadWrite)?;
        self.host_accesses(address, from.len() as u64, HostAccessKind::Write);
        self.put(address, from.len() as u64, |at, out: &mut [u8; 8]| {
            let from = &from[at as usize..];
            let n = from.len().min(8);
            out[..n].copy_from_slice(&from[..n]);
        });
        Ok(())
    }

    /// Copies bytes at an address to the host.
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
        self.put(address, bytes, |_, out| *out = [byte; 8]);
        Ok(())
    }

    /// The allocation that an address is nearest to, in prose: its name, its range, and how far the address is from it.
    pub fn nearest(&self, address: u64) -> String {
        let tables = self.tables();
        if let Some(prose) = tables.mapped_at(address) {
            return prose;
        }
        // Parameter buffers have a space of their own; nobody means them by an address.
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

    /// The allocation that holds an address: its first address and size. Mapped pages that some device may access count as one where
    /// they lie one behind another.
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

    /// Whether the host may copy so many bytes at an address, from there or to there.
    pub fn permits(&self, address: u64, bytes: u64, access: Access) -> bool {
        self.inside(address, bytes, access).is_ok()
    }

    /// The name of the allocation that holds an address.
    pub fn name_at(&self, address: u64) -> Option<Arc<str>> {
        let tables = self.tables();
        let (start, a) = tables.live.range(..=address).next_back()?;
        (address - start < a.bytes).then(|| Arc::clone(&a.name))
    }

    /// Bytes that allocations of the device take, those that kernels made included, and how many there is room for.
    pub fn usage(&self) -> (u64, u64) {
        let device = self.device.index();
        let used = self.tables().used[device] + self.store.held[device].load(Ordering::Relaxed);
        (used, self.store.regions.heap.end - self.store.regions.heap.start)
    }

    /// The state space of a generic address; `Global` for whatever lies in no other space's region.
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

    /// Sets aside addresses for the functions of a module. Returns the first; [`Memory::function_address`] the others.
    ///
    /// # Errors
    /// [`MemoryError::OutOfMemory`] where 65536 functions have addresses.
    pub fn reserve_functions(&self, count: u32) -> Result<u64, MemoryError> {
        let full = MemoryError::OutOfMemory { bytes: STEP * u64::from(count) };
        self.tables().functions.take(count).ok_or(full)
    }

    /// Takes back what [`Memory::reserve_functions`] returned for so many, for other modules.
    pub fn release_functions(&self, first: u64, count: u32) {
        self.tables().functions.give(first, count);
    }

    /// The address of function `index` of a module whose first one is at `first`.
    pub fn function_address(first: u64, index: u32) -> u64 {
        first + STEP * u64::from(index)
    }

    /// The inverse of [`Memory::function_address`], for a module with `count` functions.
    pub fn function_at(first: u64, count: u32, address: u64) -> Option<u32> {
        let offset = address.checked_sub(first)?;
        let index = offset / STEP;
        (offset % STEP == 0 && index < u64::from(count)).then_some(index as u32)
    }

    /// A number of its own for each launch on this memory, from 1: `%gridid`.
    pub(crate) fn next_launch(&self) -> u64 {
        self.store.launches.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Where `%globaltimer` of a launch begins that begins now: behind all that launches which have ended have shown.
    pub(crate) fn now(&self) -> u64 {
        self.store.time.load(Ordering::Relaxed)
    }

    /// Moves [`Memory::now`] on.
    pub(crate) fn pass(&self, time: u64) {
        self.store.time.fetch_add(time, Ordering::Relaxed);
    }

    /// A zeroed window in the shared region.
    pub(crate) fn shared_window(self: &Arc<Self>, bytes: u64) -> Result<Window, MemoryError> {
        self.window(WindowKind::Shared, bytes)
    }

    /// A zeroed window in the local region.
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
        if end > mark && !self.store.arena.commit(mark, end) {
            tables.window_heap(kind).undo(start, bytes, mark);
            return Err(full);
        }
        self.zero(start, bytes.min(mark.saturating_sub(start)));
        Ok(Window { memory: Arc::clone(self), kind, start, bytes })
    }

    /// The live allocation that holds an address, if the device may read it.
    fn find(&self, address: u64) -> Option<Extent> {
        if let Some(extent) = self.host_extent(address) {
            return Some(extent);
        }
        let tables = self.tables();
        let (start, a) = tables.at(address)?;
        a.extent(start, tables.peers.access(a.rights, self.device))
    }

    /// The live allocation that holds an address, if some device may read it.
    fn find_for_host(&self, address: u64) -> Option<Extent> {
        if let Some(extent) = self.host_extent(address) {
            return Some(extent);
        }
        let tables = self.tables();
        let (start, a) = tables.at(address)?;
        a.extent(start, a.rights.of_any())
    }

    /// Fails unless the host may access all the bytes. They lie in one allocation, or in pages that are mapped one behind another.
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

    /// A place that the caller has checked to be inside an allocation or a window, and aligned.
    #[inline(always)]
    fn checked_place<T: Cell>(&self, address: u64) -> Place<T> {
        debug_assert!(!self.store.regions.functions.contains(&address));
        // SAFETY: private to this module; all callers pass addresses inside an allocation or a window, all of which are
        // committed, or inside memory of the host that stays valid by the promise of `adopt` or `reach_host`, and walk them in
        // aligned steps (`split`); `self` outlives the use of the place.
        unsafe { Place::new(address) }
    }

    /// Loads bytes that the caller has checked to be there.
    fn get(&self, address: u64, to: &mut [u8]) {
        let (head, middle, tail) = split(address, to.len() as u64);
        for at in head.chain(tail) {
            to[at as usize] = self.checked_place::<u8>(address + at).load();
        }
        for at in middle.step_by(8) {
            let value = self.checked_place::<u64>(address + at).load();
            to[at as usize..at as usize + 8].copy_from_slice(&value.to_le_bytes());
        }
    }

    /// Stores bytes that `next` delivers, eight at a time where the alignment allows.
    fn put(&self, address: u64, bytes: u64, mut next: impl FnMut(u64, &mut [u8; 8])) {
        let (head, middle, tail) = split(address, bytes);
        let mut buffer = [0; 8];
        for at in head.chain(tail) {
            next(at, &mut buffer);
            self.checked_place::<u8>(address + at).store(buffer[0]);
        }
        for at in middle.step_by(8) {
            next(at, &mut buffer);
            self.checked_place::<u64>(address + at).store(u64::from_le_bytes(buffer));
        }
    }

    /// Makes bytes of an allocation or window zero.
    fn zero(&self, start: u64, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let end = start + bytes;
        let released = if bytes >= LARGE { self.release(start, end) } else { start..start };
        self.put(start, released.start - start, |_, out| *out = [0; 8]);
        self.put(released.end, end - released.end, |_, out| *out = [0; 8]);
    }
}

/// Offsets of a range that must go byte by byte, those that go in whole words of eight, and the rest.
fn split(address: u64, bytes: u64) -> (Range<u64>, Range<u64>, Range<u64>) {
    let head = (address.wrapping_neg() % 8).min(bytes);
    let middle = (bytes - head) / 8 * 8;
    (0..head, head..head + middle, head + middle..bytes)
}

impl Allocation {
    /// What a lookup finds where so much is allowed.
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
    /// The allocation that holds an address, and where it starts.
    fn at(&self, address: u64) -> Option<(u64, &Allocation)> {
        let (start, a) = self.live.range(..=address).next_back()?;
        (address - start < a.bytes).then_some((*start, a))
    }

    fn heap_of(&mut self, class: Class, rights: Rights) -> &mut Heap {
        match class {
            // Where there are few addresses, all lies in one region.
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
