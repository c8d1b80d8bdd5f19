//! Memory that graphs allocate and free.
//!
//! Addresses are given when a node is made and stay those of all its launches, so the memory is taken then, and goes with the last graph and
//! executable graph that knows it. Between, a launch says whether the program may use it; what it may not is not noticed.
//!
//! Invariant: memory that a program holds when its graph goes stays until the program frees it.

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

/// `CUmemAccessDesc`: place and rights.
pub(crate) type Access = [c_int; 3];

/// Places that may be given access to an allocation. Chosen: more than there are devices.
const ACCESSES_MAX: usize = 1024;

impl AllocParams {
    /// The same with the address that it got.
    pub(super) fn at(self, address: u64) -> Self {
        Self { address, ..self }
    }
}

/// Memory of a graph.
pub(crate) struct Reserved {
    driver: &'static Driver,
    pub(super) address: u64,
    bytes: u64,
    /// Which allocation of the process it is.
    number: u64,
    params: AllocParams,
}

/// What graphs have allocated.
#[derive(Default)]
pub(crate) struct Memories(Mutex<Table>);

#[derive(Default)]
struct Table {
    by_address: BTreeMap<u64, Known>,
    /// What programs hold, and the most of it; what is taken, and the most of it.
    used: u64,
    used_high: u64,
    reserved: u64,
    reserved_high: u64,
}

struct Known {
    memory: Weak<Reserved>,
    bytes: u64,
    number: u64,
    /// Whether a launch has allocated it and nothing has freed it since.
    is_held: bool,
}

impl Memories {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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

/// A program frees memory of a graph. Says whether the memory goes, as no graph knows it any more.
///
/// # Errors
/// `CUDA_ERROR_INVALID_VALUE` where the program does not hold it.
pub(crate) fn release(driver: &Driver, address: u64) -> Result<bool, Status> {
    let mut table = driver.memories.table();
    table.hold(address, false)?;
    let is_last = table.by_address.get(&address).is_some_and(|known| known.memory.upgrade().is_none());
    if is_last && let Some(known) = table.by_address.remove(&address) {
        table.reserved -= known.bytes;
    }
    Ok(is_last)
}

/// What a launch of these nodes allocates and frees, in order. `again`: what an earlier launch left is freed first.
///
/// # Errors
/// `CUDA_ERROR_INVALID_VALUE` for what is held already, or not held; then nothing has changed.
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

/// A node that allocates, and the address.
///
/// # Errors
/// `CUDA_ERROR_INVALID_VALUE`, `CUDA_ERROR_OUT_OF_MEMORY`, and those of a context.
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

/// The same of a captured allocation of so many bytes.
///
/// # Errors
/// As [`allocation`].
pub(crate) fn allocated(driver: &'static Driver, bytes: usize) -> Result<(Work, u64), Status> {
    let pool = Properties::of_device(current()?.1.device);
    allocation(driver, AllocParams { pool, access: Pointer::NULL, accesses: 0, bytes, address: 0 })
}

/// A node that frees.
///
/// # Errors
/// `CUDA_ERROR_INVALID_VALUE` for an address that no graph allocates.
pub(crate) fn freeing(driver: &Driver, address: u64) -> Result<Work, Status> {
    driver.memories.find(address).map(Work::Free).ok_or(Status::InvalidValue)
}

entries! { ENTRIES;
    /// Adds an allocation to a graph; its address is known at once.
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

    /// What an allocation of a graph was made with.
    fn cuGraphMemAllocNodeGetParams(node: Handle, params: Out<AllocParams>) {
        let driver = driver()?;
        params.check()?;
        let graph = graph_of(driver, node)?;
        let work = graph.nodes().get(node)?.work.clone();
        match work {
            Work::Allocate(memory) => params.set(memory.params),
            _ => Err(Status::InvalidValue),
        }
    }

    /// Adds freeing an allocation of a graph to a graph.
    fn cuGraphAddMemFreeNode(node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, address: u64) {
        let driver = driver()?;
        driver.graphs.get(graph)?;
        add(node, graph, (after, count), freeing(driver, address)?)
    }

    /// What a node of a graph frees.
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

    /// How much memory graphs have.
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

    /// Forgets the most memory that graphs have had.
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

    /// Gives memory that graphs do not use back: they keep what their nodes have addresses of.
    fn cuDeviceGraphMemTrim(number: c_int) {
        device(number).map(|_| ())
    }
}
