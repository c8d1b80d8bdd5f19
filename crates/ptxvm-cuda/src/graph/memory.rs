//! Memory that graphs allocate and free.
//!
//! An allocation node has one address in all its launches. The memory is therefore allocated when the node is
//! created, and freed with the last graph and executable graph that refers to it. In between, accounting
//! tells whether a launch has allocated it; an access while it is not allocated is not detected.
//!
//! Invariant: memory that a program holds when its graph is destroyed stays until the program frees it.

use super::add::add;
use super::node::Work;
use super::{Handle, graph_of};
use crate::context::current;
use crate::driver::{Driver, driver};
use crate::entry::entries;
use crate::ffi::{In, Out, Pointer};
use crate::init::device;
use crate::memory::{Kind, allocate};
use crate::pool::Properties;
use crate::status::{Answer, Status};
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// `CUDA_MEM_ALLOC_NODE_PARAMS`
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct AllocParams {
    pool: Properties,
    access: Pointer,
    accesses: usize,
    bytes: usize,
    address: u64,
}

/// `CUmemAccessDesc`: location and access.
pub(crate) type Access = [c_int; 3];

/// Most locations with access to an allocation. Chosen: more than there are devices.
const ACCESSES_MAX: usize = 1024;

impl AllocParams {
    /// The same parameters with the address.
    pub(super) fn at(self, address: u64) -> Self {
        Self { address, ..self }
    }
}

/// Memory of a graph.
pub(crate) struct Reserved {
    driver: &'static Driver,
    pub(super) address: u64,
    bytes: u64,
    /// The unique number of the allocation.
    number: u64,
    params: AllocParams,
}

/// The memory of all graphs.
#[derive(Default)]
pub(crate) struct Memories(Mutex<Table>);

#[derive(Default)]
struct Table {
    by_address: BTreeMap<u64, Known>,
    /// The bytes that programs hold and their maximum, and the bytes that are allocated and their maximum.
    used: u64,
    used_high: u64,
    reserved: u64,
    reserved_high: u64,
}

struct Known {
    memory: Weak<Reserved>,
    bytes: u64,
    number: u64,
    /// Whether a launch has allocated it and it was not freed since.
    is_held: bool,
}

impl Memories {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a program holds memory: a launch has allocated it, and it was not freed since.
    pub(crate) fn is_held(&self, address: u64) -> bool {
        self.table().by_address.get(&address).is_some_and(|known| known.is_held)
    }

    fn find(&self, address: u64) -> Option<Arc<Reserved>> {
        self.table().by_address.get(&address)?.memory.upgrade()
    }
}

impl Table {
    fn hold(&mut self, address: u64, hold: bool) -> Answer {
        let known = self.by_address.get_mut(&address).ok_or(Status::InvalidValue)?;
        if known.is_held == hold {
            return Err(Status::InvalidValue);
        }
        known.is_held = hold;
        if hold {
            self.used += known.bytes;
            self.used_high = self.used_high.max(self.used);
        } else {
            self.used -= known.bytes;
        }
        Ok(())
    }
}

impl Reserved {
    fn new(driver: &'static Driver, params: AllocParams) -> Result<Arc<Self>, Status> {
        let (_, context) = current()?;
        let bytes = params.bytes as u64;
        let address = allocate(driver, &context, bytes, Kind::Graph)?;
        let (_, block) = driver.blocks.at(address).ok_or(Status::InvalidValue)?;
        let number = block.number();
        let params = AllocParams { address, access: Pointer::NULL, accesses: 0, ..params };
        let memory = Arc::new(Self { driver, address, bytes, number, params });
        let known = Known { memory: Arc::downgrade(&memory), bytes, number, is_held: false };
        let mut table = driver.memories.table();
        table.by_address.insert(address, known);
        table.reserved += bytes;
        table.reserved_high = table.reserved_high.max(table.reserved);
        Ok(memory)
    }

    /// The parameters of its node.
    pub(super) fn params(&self) -> AllocParams {
        self.params
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        {
            let mut table = self.driver.memories.table();
            match table.by_address.get(&self.address) {
                Some(known) if known.number == self.number && known.is_held => return,
                Some(known) if known.number == self.number => {
                    table.by_address.remove(&self.address);
                    table.reserved -= self.bytes;
                }
                Some(_) | None => return,
            }
        }
        // Its context may have ended and freed it.
        if self.driver.blocks.take_numbered(self.address, self.number).is_some() {
            let _freed = self.driver.vm.free(self.address);
        }
    }
}

/// Frees memory of a graph on behalf of the program. Returns whether no graph refers to the memory any more.
///
/// # Errors
/// `CUDA_ERROR_INVALID_VALUE` if the program does not hold it.
pub(crate) fn release(driver: &Driver, address: u64) -> Result<bool, Status> {
    let mut table = driver.memories.table();
    table.hold(address, false)?;
    let is_last = table.by_address.get(&address).is_some_and(|known| known.memory.upgrade().is_none());
    if is_last && let Some(known) = table.by_address.remove(&address) {
        table.reserved -= known.bytes;
    }
    Ok(is_last)
}

/// Accounts for the allocations and frees in a launch of these nodes, in order. With `again`, memory that an
/// earlier launch left allocated is freed first.
///
/// # Errors
/// `CUDA_ERROR_INVALID_VALUE` for memory that is allocated twice or freed twice; nothing changes then.
pub(super) fn account<'a>(
    driver: &Driver,
    works: impl Iterator<Item = &'a Work> + Clone,
    again: bool,
) -> Answer {
    let mut table = driver.memories.table();
    if again {
        for work in works.clone() {
            if let Work::Allocate(memory) = work {
                let _was_not_held = table.hold(memory.address, false);
            }
        }
    }
    let mut done: Vec<(u64, bool)> = Vec::new();
    for work in works {
        let (memory, hold) = match work {
            Work::Allocate(memory) => (memory, true),
            Work::Free(memory) => (memory, false),
            _ => continue,
        };
        if let Err(status) = table.hold(memory.address, hold) {
            for (address, hold) in done.into_iter().rev() {
                let _undone = table.hold(address, !hold);
            }
            return Err(status);
        }
        done.push((memory.address, hold));
    }
    Ok(())
}

/// Creates an allocation node, and returns its address.
///
/// # Errors
/// `CUDA_ERROR_INVALID_VALUE`, `CUDA_ERROR_OUT_OF_MEMORY`, and the errors of a context.
pub(super) fn allocation(driver: &'static Driver, params: AllocParams) -> Result<(Work, u64), Status> {
    params.pool.check()?;
    if params.accesses > ACCESSES_MAX {
        return Err(Status::InvalidValue);
    }
    params.access.values::<Access>().all(params.accesses)?;
    let memory = Reserved::new(driver, params)?;
    let address = memory.address;
    Ok((Work::Allocate(memory), address))
}

/// Creates an allocation node for a captured allocation of `bytes` bytes.
///
/// # Errors
/// As [`allocation`].
pub(crate) fn allocated(driver: &'static Driver, bytes: usize) -> Result<(Work, u64), Status> {
    let pool = Properties::of_device(current()?.1.device);
    allocation(driver, AllocParams { pool, access: Pointer::NULL, accesses: 0, bytes, address: 0 })
}

/// Creates a node that frees.
///
/// # Errors
/// `CUDA_ERROR_INVALID_VALUE` for an address that no graph allocates.
pub(crate) fn freeing(driver: &Driver, address: u64) -> Result<Work, Status> {
    driver.memories.find(address).map(Work::Free).ok_or(Status::InvalidValue)
}

entries! { ENTRIES;
    /// Adds an allocation node; its address is known at once.
    fn cuGraphAddMemAllocNode(
        node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, params: Out<AllocParams>,
    ) {
        let driver = driver()?;
        driver.graphs.get(graph)?;
        let given = In::from(params).get()?;
        let (work, address) = allocation(driver, given)?;
        params.set(given.at(address))?;
        add(node, graph, (after, count), work)
    }

    /// The parameters of an allocation node.
    fn cuGraphMemAllocNodeGetParams(node: Handle, params: Out<AllocParams>) {
        let driver = driver()?;
        params.check()?;
        let graph = graph_of(driver, node)?;
        let work = graph.nodes().get(node)?.work.clone();
        match work {
            Work::Allocate(memory) => params.set(memory.params()),
            _ => Err(Status::InvalidValue),
        }
    }

    /// Adds a node that frees an allocation of a graph.
    fn cuGraphAddMemFreeNode(node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, address: u64) {
        let driver = driver()?;
        driver.graphs.get(graph)?;
        add(node, graph, (after, count), freeing(driver, address)?)
    }

    /// The address that a free node frees.
    fn cuGraphMemFreeNodeGetParams(node: Handle, address: Out<u64>) {
        let driver = driver()?;
        address.check()?;
        let graph = graph_of(driver, node)?;
        let work = graph.nodes().get(node)?.work.clone();
        match work {
            Work::Free(memory) => address.set(memory.address),
            _ => Err(Status::InvalidValue),
        }
    }

    /// An amount of memory that graphs use.
    fn cuDeviceGetGraphMemAttribute(number: c_int, attribute: c_int, value: Pointer) {
        let table = device(number)?.memories.table();
        value.place::<u64>().set(match attribute {
            0 => table.used,
            1 => table.used_high,
            2 => table.reserved,
            3 => table.reserved_high,
            _ => return Err(Status::InvalidValue),
        })
    }

    /// Resets a high-water mark of the memory that graphs use.
    fn cuDeviceSetGraphMemAttribute(number: c_int, attribute: c_int, value: Pointer) {
        let mut table = device(number)?.memories.table();
        if value.values::<u64>().get()? != 0 {
            return Err(Status::InvalidValue);
        }
        match attribute {
            1 => table.used_high = table.used,
            3 => table.reserved_high = table.reserved,
            _ => return Err(Status::InvalidValue),
        }
        Ok(())
    }

    /// Releases memory that graphs do not use. There is none: graphs keep the memory of their nodes.
    fn cuDeviceGraphMemTrim(number: c_int) {
        device(number).map(|_| ())
    }
}
