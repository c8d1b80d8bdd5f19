//! Graphs of work that programs build node by node, and launch as a whole.
//!
//! A launch puts the nodes into its stream one after another, each after those that it depends on. Parameters of kernels are copied when a node gets
//! them, as the documentation says.
//!
//! Invariant: an executable graph holds its nodes in an order that respects all edges; a graph with a circle becomes none. What it does not do:
//! copies of arrays are refused as nodes, save where they were captured from a stream.

use crate::copy::move_bytes;
use crate::driver::{Driver, driver};
use crate::entry::{DefaultStream, entries};
use crate::ffi::{HostFunction, In, Out, Pointer};
use crate::handles::Handle;
use crate::launch::{Size, launch, parameters};
use crate::log;
use crate::memory::Side;
use crate::status::{Answer, Status};
use crate::stream::{When, queue};
use crate::user_object::Held;
use std::collections::{HashMap, HashSet};
use std::ffi::{c_char, c_int, c_uint};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// `CUgraph`
#[derive(Default)]
pub(crate) struct Graph {
    nodes: Mutex<Vec<Node>>,
    /// Objects of the program that it keeps alive.
    pub(crate) held: Held,
}

/// `CUgraphExec`
pub(crate) struct Executable {
    nodes: Mutex<Vec<(Handle, Work)>>,
    /// Objects of the program that it keeps alive, and each launch of it.
    held: Arc<Held>,
}

/// A node of a graph.
#[derive(Clone)]
struct Node {
    handle: Handle,
    work: Work,
    after: Vec<Handle>,
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
    Copy(Box<Copy3D>),
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

/// `CUDA_MEMCPY3D`
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Copy3D {
    from: End,
    to: End,
    width: usize,
    height: usize,
    depth: usize,
}

/// One end of a [`Copy3D`].
#[derive(Clone, Copy)]
#[repr(C)]
struct End {
    x: usize,
    y: usize,
    z: usize,
    lod: usize,
    kind: c_uint,
    host: Pointer,
    device: u64,
    array: Handle,
    reserved: usize,
    pitch: usize,
    height: usize,
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
    fn nodes(&self) -> MutexGuard<'_, Vec<Node>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The handles of its nodes.
    pub(crate) fn handles(&self) -> Vec<Handle> {
        self.nodes().iter().map(|node| node.handle).collect()
    }

    /// These nodes, and all that they depend on.
    pub(crate) fn ancestors(&self, of: &[Handle]) -> HashSet<Handle> {
        let nodes = self.nodes();
        let after: HashMap<Handle, &[Handle]> =
            nodes.iter().map(|node| (node.handle, &node.after[..])).collect();
        let (mut found, mut open) = (HashSet::new(), of.to_vec());
        while let Some(node) = open.pop() {
            if found.insert(node) {
                open.extend(after.get(&node).copied().unwrap_or_default());
            }
        }
        found
    }

    /// Its nodes, each after all that it depends on.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE` for a circle.
    fn in_order(&self) -> Result<Vec<(Handle, Work)>, Status> {
        let mut waiting = self.nodes().clone();
        let mut done: Vec<(Handle, Work)> = Vec::with_capacity(waiting.len());
        while !waiting.is_empty() {
            let before = waiting.len();
            waiting.retain(|node| {
                let ready = node.after.iter().all(|other| done.iter().any(|(handle, _)| handle == other));
                if ready {
                    done.push((node.handle, node.work.clone()));
                }
                !ready
            });
            if waiting.len() == before {
                return Err(Status::InvalidValue);
            }
        }
        Ok(done)
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
    if !after.iter().all(|other| nodes.iter().any(|node| node.handle == *other)) {
        return Err(Status::InvalidValue);
    }
    let handle = driver.graph_nodes.insert(());
    nodes.push(Node { handle, work, after });
    Ok(handle)
}

fn kernel(driver: &Driver, params: In<KernelParams>) -> Result<Work, Status> {
    let KernelParams { function, grid, block, shared, params, extra } = params.get()?;
    let found = driver.functions.get(function)?;
    let params = parameters(&found, params, extra)?;
    Ok(Work::Kernel { function, size: Size { grid, block, shared, cooperative: false }, params })
}

fn copy(params: In<Copy3D>) -> Result<Work, Status> {
    let copy = params.get()?;
    // `CU_MEMORYTYPE_HOST`, `..._DEVICE`, `..._ARRAY`, `..._UNIFIED`
    for end in [&copy.from, &copy.to] {
        match end.kind {
            1 | 2 | 4 => {}
            3 => {
                log::refused("a copy of an array in a graph");
                return Err(Status::NotSupported);
            }
            _ => return Err(Status::InvalidValue),
        }
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

impl End {
    /// A row of it.
    fn row(&self, driver: &Driver, (y, z): (usize, usize), bytes: usize) -> Result<Side, Status> {
        let rows = self.z.checked_add(z).and_then(|z| z.checked_mul(self.height));
        let rows = rows.and_then(|rows| rows.checked_add(self.y)?.checked_add(y));
        let offset = rows.and_then(|rows| rows.checked_mul(self.pitch)?.checked_add(self.x));
        let offset = offset.ok_or(Status::InvalidValue)? as u64;
        let start = if self.kind == 1 { self.host.address() } else { self.device };
        let start = start.checked_add(offset).ok_or(Status::InvalidValue)?;
        match self.kind {
            1 => Side::host(driver, Pointer::from_address(start), bytes),
            2 => Side::device(driver, start, bytes),
            _ => Side::unified(driver, start, bytes),
        }
    }
}

fn run_copy(driver: &Driver, copy: &Copy3D) -> Answer {
    for z in 0..copy.depth {
        for y in 0..copy.height {
            let from = copy.from.row(driver, (y, z), copy.width)?;
            let to = copy.to.row(driver, (y, z), copy.width)?;
            move_bytes(driver, to, from, copy.width)?;
        }
    }
    Ok(())
}

fn run_set(driver: &Driver, set: &Set) -> Answer {
    let size = set.element as usize;
    let pattern = &set.value.to_le_bytes()[..size];
    let row: Vec<u8> = pattern.iter().copied().cycle().take(set.width.saturating_mul(size)).collect();
    for y in 0..set.height as u64 {
        let at = set.to + y * set.pitch as u64;
        driver.vm.write(at, &row).map_err(|_| Status::IllegalAddress)?;
    }
    Ok(())
}

/// Puts all nodes into a stream.
fn run(executable: Handle, stream: (Handle, DefaultStream)) -> Answer {
    let (driver, queue) = queue(stream.0, stream.1)?;
    let executable = driver.executables.get(executable)?;
    let nodes = executable.nodes().clone();
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
    if executable.held.is_empty() {
        return Ok(());
    }
    let held = Arc::clone(&executable.held);
    queue.submit(move || {
        let _until_here = &held;
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
        for node in driver.graphs.remove(graph)?.nodes().iter() {
            driver.graph_nodes.remove(node.handle)?;
        }
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
        node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, params: In<Copy3D>, _context: Handle,
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
        let known = |handle: &Handle| nodes.iter().any(|node| node.handle == *handle);
        if !edges.iter().all(|(from, to)| from != to && known(from) && known(to)) {
            return Err(Status::InvalidValue);
        }
        for (from, to) in edges {
            for node in nodes.iter_mut().filter(|node| node.handle == to) {
                node.after.push(from);
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
    fn cuGraphExecMemcpyNodeSetParams(executable: Handle, node: Handle, params: In<Copy3D>, _context: Handle) {
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
