//! Graphs of work that programs build node by node, and launch as a whole.
//!
//! A launch puts the nodes into its stream one after another, each after those that it depends on. Parameters of kernels are copied when a node gets
//! them, as the documentation says.
//!
//! Invariant: an executable graph holds its nodes in an order that respects all edges; a graph with a circle becomes none. What it does not do:
//! copies of arrays are refused as nodes, save where they were captured from a stream.

use crate::copy::Rows;
use crate::copy_box::{Copy3d, Prepared};
use crate::driver::{Driver, driver};
use crate::entry::{DefaultStream, entries};
use crate::ffi::{HostFunction, In, Out, Pointer};
use crate::handles::Handle;
use crate::launch::{Size, checked_parameters, launch};
use crate::log;
use crate::status::{Answer, Status};
use crate::stream::{When, queue};
use crate::user_object::Held;
use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::{c_char, c_int, c_uint};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// `CUgraph`
#[derive(Default)]
pub(crate) struct Graph {
    nodes: Mutex<Nodes>,
    /// Objects of the program that it keeps alive.
    pub(crate) held: Held,
}

/// `CUgraphExec`
pub(crate) struct Executable {
    nodes: Mutex<Vec<(Handle, Work)>>,
    /// Objects of the program that it keeps alive, and each launch of it.
    held: Arc<Held>,
}

/// The nodes of a graph.
#[derive(Default)]
struct Nodes {
    list: Vec<Node>,
    /// Where each is in the list.
    places: HashMap<Handle, usize>,
}

/// A node of a graph.
struct Node {
    handle: Handle,
    work: Work,
    after: Vec<Handle>,
}

impl Nodes {
    fn knows(&self, handle: Handle) -> bool {
        self.places.contains_key(&handle)
    }
}

/// What a node does.
#[derive(Clone)]
pub(crate) enum Work {
    Nothing,
    Kernel {
        function: Handle,
        size: Size,
        params: Vec<u8>,
    },
    Copy(Box<Copy3d>),
    Set(Set),
    Host(HostFunction, Pointer),
    /// What was captured from a stream.
    Again(Arc<dyn Fn() -> Answer + Send + Sync>),
}

/// `CUDA_KERNEL_NODE_PARAMS_v1`; the later form has more fields behind.
#[derive(Clone, Copy)]
#[repr(C)]
struct KernelParams {
    function: Handle,
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    params: In<Pointer>,
    extra: In<Pointer>,
}

/// `CUDA_MEMSET_NODE_PARAMS_v1`; the later form has more fields behind.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Set {
    to: u64,
    pitch: usize,
    value: c_uint,
    element: c_uint,
    width: usize,
    height: usize,
}

/// `CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH`, which does not go with [`DEVICE_LAUNCH`]
const AUTO_FREE: u64 = 1;
/// `CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD`: to a stream's device, where it is.
const UPLOAD: u64 = 2;
/// `CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH`
const DEVICE_LAUNCH: u64 = 4;
/// All of them; the others are to free what a graph allocates, which none does, and to keep priorities, which make no difference.
const INSTANTIATE_FLAGS: u64 = 15;

/// `CUDA_GRAPH_INSTANTIATE_PARAMS`
#[derive(Clone, Copy)]
#[repr(C)]
struct InstantiateParams {
    flags: u64,
    stream: Handle,
    node: Handle,
    result: c_int,
}

/// `CUDA_HOST_NODE_PARAMS_v1`; the later form has more fields behind.
#[derive(Clone, Copy)]
#[repr(C)]
struct HostParams {
    function: HostFunction,
    data: Pointer,
}

impl Graph {
    fn nodes(&self) -> MutexGuard<'_, Nodes> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Its nodes' handles name nothing any more, as it is destroyed.
    pub(crate) fn forget_nodes(&self, driver: &Driver) {
        for node in &self.nodes().list {
            let _gone = driver.graph_nodes.remove(node.handle);
        }
    }

    /// These nodes, and all that they depend on.
    pub(crate) fn ancestors(&self, of: &[Handle]) -> HashSet<Handle> {
        let nodes = self.nodes();
        let (mut found, mut open) = (HashSet::new(), of.to_vec());
        while let Some(node) = open.pop() {
            if found.insert(node)
                && let Some(place) = nodes.places.get(&node)
            {
                open.extend(&nodes.list[*place].after);
            }
        }
        found
    }

    /// Its nodes, each after all that it depends on.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE` for a circle.
    fn in_order(&self) -> Result<Vec<(Handle, Work)>, Status> {
        let nodes = self.nodes();
        // Of each node: the nodes behind it, and for how many before it it waits.
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
            let node = &nodes.list[place];
            done.push((node.handle, node.work.clone()));
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

impl Executable {
    fn nodes(&self) -> MutexGuard<'_, Vec<(Handle, Work)>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a node other parameters; its kind stays.
    fn set(&self, node: Handle, work: Work) -> Answer {
        let mut nodes = self.nodes();
        let found = nodes.iter_mut().find(|(handle, _)| *handle == node).ok_or(Status::InvalidValue)?;
        if std::mem::discriminant(&found.1) != std::mem::discriminant(&work) {
            return Err(Status::InvalidValue);
        }
        found.1 = work;
        Ok(())
    }
}

/// Adds a node behind those that it depends on.
fn add(node: Out<Handle>, graph: Handle, (after, count): (In<Handle>, usize), work: Work) -> Answer {
    let driver = driver()?;
    node.check()?;
    let after = if count == 0 { Vec::new() } else { after.all(count)? };
    node.set(append(driver, graph, after, work)?)
}

/// Adds a node behind those that it depends on.
///
/// # Errors
/// `CUDA_ERROR_INVALID_HANDLE`, and `CUDA_ERROR_INVALID_VALUE` where it depends on nodes of other graphs.
pub(crate) fn append(
    driver: &Driver,
    graph: Handle,
    after: Vec<Handle>,
    work: Work,
) -> Result<Handle, Status> {
    let graph = driver.graphs.get(graph)?;
    let mut nodes = graph.nodes();
    if !after.iter().all(|other| nodes.knows(*other)) {
        return Err(Status::InvalidValue);
    }
    let handle = driver.graph_nodes.insert(());
    let place = nodes.list.len();
    nodes.places.insert(handle, place);
    nodes.list.push(Node { handle, work, after });
    Ok(handle)
}

fn kernel(driver: &Driver, params: In<KernelParams>) -> Result<Work, Status> {
    let KernelParams { function, grid, block, shared, params, extra } = params.get()?;
    let found = driver.functions.get(function)?;
    let params = checked_parameters(&found, params, extra)?;
    Ok(Work::Kernel { function, size: Size { grid, block, shared, cooperative: false }, params })
}

fn copy(params: In<Copy3d>) -> Result<Work, Status> {
    let copy = params.get()?;
    if !copy.is_of_memory()? {
        log::refused("a copy of an array in a graph");
        return Err(Status::NotSupported);
    }
    Ok(Work::Copy(Box::new(copy)))
}

fn set(params: In<Set>) -> Result<Work, Status> {
    let set = params.get()?;
    let fits = matches!(set.element, 1 | 2 | 4) && set.to.is_multiple_of(set.element.into());
    if fits { Ok(Work::Set(set)) } else { Err(Status::InvalidValue) }
}

fn host(params: In<HostParams>) -> Result<Work, Status> {
    let HostParams { function, data } = params.get()?;
    function.check()?;
    Ok(Work::Host(function, data))
}

/// Where memory is not what it was, or ought to be, when the node's turn has come: nobody is there to be told, so the context is.
fn illegal(_: Status) -> Status {
    Status::IllegalAddress
}

fn run_copy(driver: &Driver, copy: &Copy3d) -> Answer {
    let prepared = Prepared::of(driver, copy).map_err(illegal)?;
    prepared.map_or(Ok(()), |copy| copy.run(driver).map_err(illegal))
}

fn run_set(driver: &Driver, set: &Set) -> Answer {
    let Set { to, pitch, value, element, width, height } = *set;
    let rows = Rows { address: to, pitch, pattern: value, size: element as usize, width, height };
    if rows.check(driver).map_err(illegal)? { rows.fill(driver) } else { Ok(()) }
}

/// Puts all nodes into a stream.
fn run(executable: Handle, stream: (Handle, DefaultStream)) -> Answer {
    let (driver, queue) = queue(stream.0, stream.1)?;
    let executable = driver.executables.get(executable)?;
    let nodes = executable.nodes().clone();
    let era = driver.objects.era();
    // Who hands over memory of the host looks at it without waiting.
    let when = if driver.vm.reaches_host() { When::Now } else { When::InTurn };
    for (_, work) in nodes {
        match work {
            Work::Nothing => {}
            Work::Kernel { function, size, params } => launch(function, size, stream, |_| Ok(params))?,
            Work::Copy(copy) => queue.submit(move || run_copy(driver, &copy))?,
            Work::Set(set) => queue.submit(move || run_set(driver, &set))?,
            Work::Again(work) => queue.perform(when, move || work())?,
            Work::Host(function, data) => queue.submit(move || {
                function.call(data);
                Ok(())
            })?,
        }
    }
    let kept = (Arc::clone(&executable.held), era);
    queue.submit(move || {
        let _until_here = &kept;
        Ok(())
    })
}

fn instantiate(executable: Out<Handle>, graph: Handle, flags: u64) -> Answer {
    let driver = driver()?;
    executable.check()?;
    if flags & !INSTANTIATE_FLAGS != 0 || flags & (AUTO_FREE | DEVICE_LAUNCH) == AUTO_FREE | DEVICE_LAUNCH {
        return Err(Status::InvalidValue);
    }
    if flags & DEVICE_LAUNCH != 0 {
        log::refused("a graph that kernels launch");
        return Err(Status::NotSupported);
    }
    let graph = driver.graphs.get(graph)?;
    let nodes = graph.in_order()?;
    let held = Arc::new(graph.held.again()?);
    executable.set(driver.executables.insert(Executable { nodes: Mutex::new(nodes), held }))
}

entries! { ENTRIES;
    /// Makes an empty graph.
    fn cuGraphCreate(graph: Out<Handle>, flags: c_uint) {
        let driver = driver()?;
        if flags != 0 {
            return Err(Status::InvalidValue);
        }
        graph.check()?;
        graph.set(driver.graphs.insert(Graph::default()))
    }

    /// Destroys a graph. What was made of it stays.
    fn cuGraphDestroy(graph: Handle) {
        let driver = driver()?;
        driver.graphs.remove(graph)?.forget_nodes(driver);
        Ok(())
    }

    /// Adds a launch to a graph.
    fn cuGraphAddKernelNode(
        node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, params: In<KernelParams>,
    ) {
        let work = kernel(driver()?, params)?;
        add(node, graph, (after, count), work)
    }

    /// Adds a launch to a graph.
    fn cuGraphAddKernelNode_v2(
        node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, params: In<KernelParams>,
    ) {
        let work = kernel(driver()?, params)?;
        add(node, graph, (after, count), work)
    }

    /// Adds a copy to a graph.
    fn cuGraphAddMemcpyNode(
        node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, params: In<Copy3d>, _context: Handle,
    ) {
        add(node, graph, (after, count), copy(params)?)
    }

    /// Adds setting memory to a graph.
    fn cuGraphAddMemsetNode(
        node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, params: In<Set>, _context: Handle,
    ) {
        add(node, graph, (after, count), set(params)?)
    }

    /// Adds a call of a function of the host to a graph.
    fn cuGraphAddHostNode(
        node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, params: In<HostParams>,
    ) {
        add(node, graph, (after, count), host(params)?)
    }

    /// Adds a node that only orders others.
    fn cuGraphAddEmptyNode(node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize) {
        add(node, graph, (after, count), Work::Nothing)
    }

    /// Adds edges to a graph.
    fn cuGraphAddDependencies(graph: Handle, from: In<Handle>, to: In<Handle>, count: usize) {
        let graph = driver()?.graphs.get(graph)?;
        let edges: Vec<_> = from.all(count)?.into_iter().zip(to.all(count)?).collect();
        let mut nodes = graph.nodes();
        if !edges.iter().all(|(from, to)| from != to && nodes.knows(*from) && nodes.knows(*to)) {
            return Err(Status::InvalidValue);
        }
        for (from, to) in edges {
            if let Some(place) = nodes.places.get(&to).copied() {
                nodes.list[place].after.push(from);
            }
        }
        Ok(())
    }

    /// The nodes of a graph; without a place for them, how many there are.
    fn cuGraphGetNodes(graph: Handle, nodes: Out<Handle>, count: Out<usize>) {
        let graph = driver()?.graphs.get(graph)?;
        let found = graph.handles();
        if nodes.check().is_ok() {
            let room = In::<usize>::from(count).get()?;
            nodes.set_all(&found[..found.len().min(room)])?;
        }
        count.set(found.len())
    }

    /// Makes a graph executable.
    fn cuGraphInstantiate(executable: Out<Handle>, graph: Handle, _node: Out<Handle>, _log: Out<c_char>, _bytes: usize) {
        instantiate(executable, graph, 0)
    }

    /// Makes a graph executable.
    fn cuGraphInstantiate_v2(executable: Out<Handle>, graph: Handle, _node: Out<Handle>, _log: Out<c_char>, _bytes: usize) {
        instantiate(executable, graph, 0)
    }

    /// Makes a graph executable.
    fn cuGraphInstantiateWithFlags(executable: Out<Handle>, graph: Handle, flags: u64) {
        // A stream to upload in is only in the form below.
        if flags & UPLOAD != 0 {
            return Err(Status::InvalidValue);
        }
        instantiate(executable, graph, flags)
    }

    /// Makes a graph executable, and says how that went.
    fn cuGraphInstantiateWithParams | cuGraphInstantiateWithParams_ptsz as default (
        executable: Out<Handle>, graph: Handle, params: Out<InstantiateParams>,
    ) {
        let mut given = In::from(params).get()?;
        if given.flags & UPLOAD != 0 {
            queue(given.stream, default)?;
        }
        let result = instantiate(executable, graph, given.flags);
        given.node = Handle::NULL;
        // `CUDA_GRAPH_INSTANTIATE_SUCCESS`, `..._ERROR`, `..._INVALID_STRUCTURE`
        given.result = match result {
            Ok(()) => 0,
            Err(Status::InvalidValue) => 2,
            Err(_) => 1,
        };
        params.set(given)?;
        result
    }

    /// Gives a launch of an executable graph other parameters.
    fn cuGraphExecKernelNodeSetParams(executable: Handle, node: Handle, params: In<KernelParams>) {
        let driver = driver()?;
        driver.executables.get(executable)?.set(node, kernel(driver, params)?)
    }

    /// Gives a launch of an executable graph other parameters.
    fn cuGraphExecKernelNodeSetParams_v2(executable: Handle, node: Handle, params: In<KernelParams>) {
        let driver = driver()?;
        driver.executables.get(executable)?.set(node, kernel(driver, params)?)
    }

    /// Gives a copy of an executable graph other parameters.
    fn cuGraphExecMemcpyNodeSetParams(executable: Handle, node: Handle, params: In<Copy3d>, _context: Handle) {
        driver()?.executables.get(executable)?.set(node, copy(params)?)
    }

    /// Gives setting memory of an executable graph other parameters.
    fn cuGraphExecMemsetNodeSetParams(executable: Handle, node: Handle, params: In<Set>, _context: Handle) {
        driver()?.executables.get(executable)?.set(node, set(params)?)
    }

    /// Gives a call of an executable graph other parameters.
    fn cuGraphExecHostNodeSetParams(executable: Handle, node: Handle, params: In<HostParams>) {
        driver()?.executables.get(executable)?.set(node, host(params)?)
    }

    /// Launches a graph.
    fn cuGraphLaunch | cuGraphLaunch_ptsz as default (executable: Handle, stream: Handle) {
        run(executable, (stream, default))
    }

    /// Brings an executable graph to the device: it is there.
    fn cuGraphUpload | cuGraphUpload_ptsz as default (executable: Handle, stream: Handle) {
        let (driver, _) = queue(stream, default)?;
        driver.executables.get(executable).map(|_| ())
    }

    /// Destroys an executable graph. Launches of it go on.
    fn cuGraphExecDestroy(executable: Handle) {
        driver()?.executables.remove(executable).map(|_| ())
    }
}
