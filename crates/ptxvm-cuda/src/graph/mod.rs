//! Graphs of work: nodes, and edges between them.
//!
//! A program builds a graph node by node, or captures it from streams. An executable graph is a copy of it
//! that is launched as a whole. Each part has its file: `node` has the work of nodes, `add` adds and removes
//! nodes and edges, `parameters` reads and changes parameters, `any` treats nodes of any type, `query` lists
//! nodes and edges, `execute` has executable graphs, `memory` the allocations of graphs, `batch`
//! memory operations, `condition` conditional nodes.
//!
//! Invariant: objects that a node uses (functions, arrays, events, child graphs, memory of the graph) live as
//! long as the node and executable graphs with it. A node copies the parameters of its kernel when they are
//! set, as documented. What it does not do: nodes for external semaphores are not supported.

mod add;
mod any;
mod batch;
mod condition;
mod execute;
mod memory;
mod node;
mod parameters;
mod query;

pub(crate) use execute::Executable;
pub(crate) use memory::{Access, Memories, allocated, freeing, release};
pub(crate) use node::{CopyNode, KernelNode, Set, Work};

use crate::driver::Driver;
use crate::entry::Entry;
use crate::handles::Handle;
use crate::status::{Answer, Status};
use crate::user_object::Held;
use condition::Word;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// The entry points of these files.
pub(crate) const TABLES: [&[Entry]; 8] = [
    add::ENTRIES,
    any::ENTRIES,
    batch::ENTRIES,
    condition::ENTRIES,
    execute::ENTRIES,
    memory::ENTRIES,
    parameters::ENTRIES,
    query::ENTRIES,
];

/// Deepest nesting of graphs. Chosen: more than programs have, and few enough for the stack.
const DEPTH_MAX: usize = 64;

/// Most nodes of a graph that is copied, including nested graphs. A graph that is repeatedly added to itself
/// doubles each time. Chosen.
const NODES_MAX: usize = 1 << 18;

/// `CUgraph`
pub(crate) struct Graph {
    /// Its own handle.
    handle: Handle,
    /// A unique number.
    number: u32,
    /// Whether a node owns it. The program cannot destroy an owned graph.
    is_owned: bool,
    nodes: Mutex<Nodes>,
    /// The number of its nodes, including those of nested graphs.
    size: AtomicUsize,
    /// For a nested graph: the graph whose node owns it.
    owner: OnceLock<Weak<Graph>>,
    /// For a clone: its nodes by the nodes of the original.
    twins: Mutex<HashMap<Handle, Handle>>,
    /// Values of conditions that were created for it.
    words: Mutex<Vec<Arc<Word>>>,
    /// Objects of the program that it keeps alive.
    pub(crate) held: Held,
}

/// The nodes of a graph.
#[derive(Default)]
struct Nodes {
    list: Vec<Node>,
    /// The index of each node in the list.
    places: HashMap<Handle, usize>,
    /// The number of nodes ever added.
    made: u32,
}

/// A node of a graph.
struct Node {
    handle: Handle,
    /// Its number in the graph.
    number: u32,
    work: Work,
    after: Vec<Handle>,
}

impl Nodes {
    fn knows(&self, handle: Handle) -> bool {
        self.places.contains_key(&handle)
    }

    fn get(&self, handle: Handle) -> Result<&Node, Status> {
        self.places.get(&handle).map(|place| &self.list[*place]).ok_or(Status::InvalidValue)
    }

    fn get_mut(&mut self, handle: Handle) -> Result<&mut Node, Status> {
        let place = self.places.get(&handle).ok_or(Status::InvalidValue)?;
        Ok(&mut self.list[*place])
    }

    /// Removes a node and its edges.
    fn remove(&mut self, handle: Handle) -> Result<Node, Status> {
        let place = self.places.get(&handle).copied().ok_or(Status::InvalidValue)?;
        let node = self.list.remove(place);
        for other in &mut self.list {
            other.after.retain(|before| *before != handle);
        }
        self.places = self.list.iter().enumerate().map(|(place, node)| (node.handle, place)).collect();
        Ok(node)
    }
}

impl Graph {
    /// Creates an empty graph.
    pub(crate) fn make(driver: &Driver) -> (Handle, Arc<Self>) {
        Self::make_with(driver, Held::default(), false)
    }

    fn make_with(driver: &Driver, held: Held, is_owned: bool) -> (Handle, Arc<Self>) {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        driver.graphs.insert_with(|handle| Self {
            handle,
            number,
            is_owned,
            nodes: Mutex::default(),
            size: AtomicUsize::new(0),
            owner: OnceLock::new(),
            twins: Mutex::default(),
            words: Mutex::default(),
            held,
        })
    }

    fn nodes(&self) -> MutexGuard<'_, Nodes> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn words(&self) -> MutexGuard<'_, Vec<Arc<Word>>> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The handles of its nodes.
    pub(crate) fn handles(&self) -> Vec<Handle> {
        self.nodes().list.iter().map(|node| node.handle).collect()
    }

    /// Whether all of these are its nodes.
    pub(crate) fn has_all(&self, handles: &[Handle]) -> bool {
        let nodes = self.nodes();
        handles.iter().all(|handle| nodes.knows(*handle))
    }

    /// Removes its handle, and those of its nodes and nested graphs.
    pub(crate) fn forget(&self, driver: &Driver) {
        let _gone = driver.graphs.remove(self.handle);
        let nodes = std::mem::take(&mut *self.nodes());
        for node in nodes.list {
            node.forget(driver);
        }
    }

    /// These nodes, and all nodes that they depend on.
    pub(crate) fn ancestors(&self, of: &[Handle]) -> HashSet<Handle> {
        let nodes = self.nodes();
        let (mut found, mut open) = (HashSet::new(), of.to_vec());
        while let Some(node) = open.pop() {
            if found.insert(node)
                && let Ok(node) = nodes.get(node)
            {
                open.extend(&node.after);
            }
        }
        found
    }

    /// Changes the size of this graph and of the graphs that contain it.
    fn resize(&self, change: impl Fn(&AtomicUsize)) {
        change(&self.size);
        let mut owner = self.owner.get().and_then(Weak::upgrade);
        while let Some(graph) = owner {
            change(&graph.size);
            owner = graph.owner.get().and_then(Weak::upgrade);
        }
    }

    /// Removes a node of this graph with its handles.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE` for a node of another graph.
    fn remove(&self, driver: &Driver, handle: Handle) -> Answer {
        let node = self.nodes().remove(handle)?;
        let removed = node.work.size();
        self.resize(|size| {
            size.fetch_sub(removed, Ordering::Relaxed);
        });
        node.forget(driver);
        Ok(())
    }

    /// A copy with nodes of its own.
    ///
    /// # Errors
    /// `CUDA_ERROR_NOT_SUPPORTED` for conditions, which belong to one graph; `CUDA_ERROR_INVALID_VALUE` for
    /// nesting that is too deep; `CUDA_ERROR_OUT_OF_MEMORY` for too many nodes.
    fn copied(&self, driver: &Driver, is_owned: bool, depth: usize) -> Result<Arc<Self>, Status> {
        if depth > DEPTH_MAX {
            return Err(Status::InvalidValue);
        }
        // The count of the outermost graph includes nested graphs.
        if depth <= 1 && self.size.load(Ordering::Relaxed) > NODES_MAX {
            return Err(Status::OutOfMemory);
        }
        let (_, copy) = Self::make_with(driver, self.held.again()?, is_owned);
        let copied = self.copy_nodes(driver, &copy, depth);
        if copied.is_err() {
            copy.forget(driver);
        }
        copied.map(|()| copy)
    }

    fn copy_nodes(&self, driver: &Driver, copy: &Arc<Self>, depth: usize) -> Answer {
        let nodes = self.nodes();
        let mut twins = HashMap::new();
        for node in &nodes.list {
            let work = match &node.work {
                Work::Child(child) => Work::Child(child.copied(driver, true, depth + 1)?),
                Work::Condition(_) => {
                    crate::log::refused("a copy of a graph with conditional nodes");
                    return Err(Status::NotSupported);
                }
                work => work.clone(),
            };
            // A dependency of a node may be later in the list, so edges are added after all nodes.
            twins.insert(node.handle, append(driver, copy, Vec::new(), work)?);
        }
        let mut copies = copy.nodes();
        for node in &nodes.list {
            let after = node.after.iter().filter_map(|before| twins.get(before)).copied().collect();
            if let Some(twin) = twins.get(&node.handle) {
                copies.get_mut(*twin)?.after = after;
            }
        }
        drop(copies);
        *copy.twins.lock().unwrap_or_else(PoisonError::into_inner) = twins;
        Ok(())
    }

    /// The indices of its nodes, each after all its dependencies.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE` for a cycle.
    fn order(nodes: &Nodes) -> Result<Vec<usize>, Status> {
        // For each node: the nodes that depend on it, and the number of nodes that it waits for.
        let mut behind = vec![Vec::new(); nodes.list.len()];
        let mut waits: Vec<usize> = nodes.list.iter().map(|node| node.after.len()).collect();
        for (place, node) in nodes.list.iter().enumerate() {
            for before in node.after.iter().filter_map(|before| nodes.places.get(before)) {
                behind[*before].push(place);
            }
        }
        let mut ready: VecDeque<usize> = (0..waits.len()).filter(|place| waits[*place] == 0).collect();
        let mut done = Vec::with_capacity(waits.len());
        while let Some(place) = ready.pop_front() {
            done.push(place);
            for next in &behind[place] {
                waits[*next] -= 1;
                if waits[*next] == 0 {
                    ready.push_back(*next);
                }
            }
        }
        if done.len() == nodes.list.len() { Ok(done) } else { Err(Status::InvalidValue) }
    }
}

impl Node {
    /// Removes its handle and those of graphs that it owns.
    fn forget(&self, driver: &Driver) {
        let _gone = driver.graph_nodes.remove(self.handle);
        for graph in self.work.bodies() {
            graph.forget(driver);
        }
    }
}

/// Adds a node after its dependencies.
///
/// # Errors
/// `CUDA_ERROR_INVALID_VALUE` if it depends on nodes of other graphs.
pub(crate) fn append(
    driver: &Driver,
    graph: &Arc<Graph>,
    mut after: Vec<Handle>,
    work: Work,
) -> Result<Handle, Status> {
    let mut nodes = graph.nodes();
    if !after.iter().all(|other| nodes.knows(*other)) {
        return Err(Status::InvalidValue);
    }
    // An edge is stored once.
    let mut seen = HashSet::new();
    after.retain(|before| seen.insert(*before));
    let handle = driver.graph_nodes.insert(Arc::downgrade(graph));
    let place = nodes.list.len();
    let number = nodes.made;
    nodes.made = nodes.made.wrapping_add(1);
    nodes.places.insert(handle, place);
    // Each graph is nested in one node only.
    for body in work.bodies() {
        let _fresh = body.owner.set(Arc::downgrade(graph));
    }
    let added = work.size();
    graph.resize(|size| {
        size.fetch_add(added, Ordering::Relaxed);
    });
    nodes.list.push(Node { handle, number, work, after });
    Ok(handle)
}

/// The graph that contains a node.
///
/// # Errors
/// `CUDA_ERROR_INVALID_VALUE`.
fn graph_of(driver: &Driver, node: Handle) -> Result<Arc<Graph>, Status> {
    driver.graph_nodes.find(node).and_then(|graph| Weak::upgrade(&graph)).ok_or(Status::InvalidValue)
}
