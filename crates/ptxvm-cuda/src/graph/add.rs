//! How nodes come into graphs.
//!
//! Invariant: a call that fails adds nothing.

use super::condition::ConditionParams;
use super::memory::{AllocParams, allocation, freeing};
use super::node::{CopyNode, HostParams, KernelNode, KernelParams, KernelParams2, Set, Work, event};
use super::{Graph, append, graph_of};
use crate::copy_box::Copy3d;
use crate::driver::{Driver, driver};
use crate::entry::entries;
use crate::ffi::{In, Out, Pointer};
use crate::handles::Handle;
use crate::log;
use crate::status::{Answer, Status};
use std::ffi::{c_int, c_uint};
use std::sync::Arc;

/// Edges and nodes of one call. Chosen: more than programs give.
const EDGES_MAX: usize = 1 << 24;

/// `CUgraphEdgeData`: ports, type and what is reserved.
pub(crate) type Edge = [u8; 8];

/// Adds a node behind those that it depends on.
///
/// # Errors
/// `CUDA_ERROR_INVALID_HANDLE`, `CUDA_ERROR_INVALID_VALUE`.
pub(super) fn add(node: Out<Handle>, graph: Handle, after: (In<Handle>, usize), work: Work) -> Answer {
    let driver = driver()?;
    node.check()?;
    let graph = driver.graphs.get(graph)?;
    node.set(append(driver, &graph, list(after)?, work)?)
}

/// Nodes of the caller.
pub(super) fn list((nodes, count): (In<Handle>, usize)) -> Result<Vec<Handle>, Status> {
    if count > EDGES_MAX {
        return Err(Status::InvalidValue);
    }
    nodes.all(count)
}

/// Fails for edges that do not exist. All edges wait for the whole node before them, whatever they ask for.
pub(super) fn check_edges(edges: In<Edge>, count: usize) -> Answer {
    if edges.is_null() || count == 0 {
        return Ok(());
    }
    if count > EDGES_MAX {
        return Err(Status::InvalidValue);
    }
    // A kernel's ports are its end, what it says itself, and the start of its last CTA; the type is 0 or programmatic.
    let is_right = |edge: &Edge| edge[0] <= 2 && edge[1] == 0 && edge[2] <= 1 && edge[3..] == [0; 5];
    if edges.all(count)?.iter().all(is_right) { Ok(()) } else { Err(Status::InvalidValue) }
}

/// A child graph is a copy.
pub(super) fn child(driver: &Driver, graph: Handle) -> Result<Work, Status> {
    Ok(Work::Child(driver.graphs.get(graph)?.copied(driver, true, 1)?))
}

/// Adds a node that owns graphs; where that fails, these go.
fn add_owner(node: Out<Handle>, graph: Handle, after: (In<Handle>, usize), work: Work) -> Answer {
    let owned = work.clone();
    add(node, graph, after, work).inspect_err(|_| forget(&owned))
}

fn forget(work: &Work) {
    if let Ok(driver) = driver() {
        for graph in work.bodies() {
            graph.forget(driver);
        }
    }
}

/// Where the union of `CUgraphNodeParams` begins.
const UNION: usize = 16;

/// `CUDA_MEMCPY_NODE_PARAMS`
#[derive(Clone, Copy)]
#[repr(C)]
struct MemcpyParams {
    flags: c_int,
    reserved: c_int,
    context: Handle,
    copy: Copy3d,
}

/// The work that `CUgraphNodeParams` describes, for a graph.
///
/// # Errors
/// As the functions for each type of node.
pub(super) fn work_of(driver: &'static Driver, graph: &Arc<Graph>, params: Pointer) -> Result<Work, Status> {
    let kind = params.values::<c_int>().get()?;
    let union = params.offset(UNION);
    Ok(match kind {
        0 => KernelNode::of_second(driver, union.values())?,
        1 => CopyNode::of(driver, union.values::<MemcpyParams>().get()?.copy)?,
        2 => Set::of(union.values())?,
        3 => HostParams::of(union.values())?,
        4 => child(driver, union.values().get()?)?,
        5 => Work::Nothing,
        6 | 7 => {
            let (handle, event) = event(driver, union.values().get()?)?;
            if kind == 6 { Work::Wait(handle, event) } else { Work::Record(handle, event) }
        }
        10 => {
            let place = union.place::<AllocParams>();
            let given = In::from(place).get()?;
            let (work, address) = allocation(driver, given)?;
            place.set(given.at(address))?;
            work
        }
        11 => freeing(driver, union.values().get()?)?,
        13 => ConditionParams::make(driver, graph, union.place())?,
        8 | 9 | 12 => {
            log::refused("a node of external semaphores, or of a batch of memory operations");
            return Err(Status::NotSupported);
        }
        _ => return Err(Status::InvalidValue),
    })
}

fn add_any(
    node: Out<Handle>,
    graph: Handle,
    after: (In<Handle>, usize),
    edges: In<Edge>,
    params: Pointer,
) -> Answer {
    let driver = driver()?;
    node.check()?;
    check_edges(edges, after.1)?;
    let found = driver.graphs.get(graph)?;
    add_owner(node, graph, after, work_of(driver, &found, params)?)
}

/// Adds edges, or takes them away.
fn change_edges(graph: Handle, from: In<Handle>, to: In<Handle>, count: usize, adds: bool) -> Answer {
    let graph = driver()?.graphs.get(graph)?;
    let edges: Vec<_> = list((from, count))?.into_iter().zip(list((to, count))?).collect();
    let mut nodes = graph.nodes();
    for (from, to) in &edges {
        let there = nodes.knows(*from) && nodes.get(*to)?.after.contains(from);
        if from == to || !nodes.knows(*from) || there == adds {
            return Err(Status::InvalidValue);
        }
    }
    for (from, to) in edges {
        let after = &mut nodes.get_mut(to)?.after;
        after.retain(|before| *before != from);
        if adds {
            after.push(from);
        }
    }
    Ok(())
}

entries! { ENTRIES;
    /// Makes an empty graph.
    fn cuGraphCreate(graph: Out<Handle>, flags: c_uint) {
        let driver = driver()?;
        if flags != 0 {
            return Err(Status::InvalidValue);
        }
        graph.check()?;
        graph.set(Graph::make(driver).0)
    }

    /// Destroys a graph. What was made of it stays.
    fn cuGraphDestroy(graph: Handle) {
        let driver = driver()?;
        let graph = driver.graphs.get(graph)?;
        if graph.is_owned {
            return Err(Status::InvalidValue);
        }
        graph.forget(driver);
        Ok(())
    }

    /// Takes a node out of its graph, with its edges.
    fn cuGraphDestroyNode(node: Handle) {
        let driver = driver()?;
        let removed = graph_of(driver, node)?.nodes().remove(node)?;
        removed.forget(driver);
        Ok(())
    }

    /// Adds a launch to a graph.
    fn cuGraphAddKernelNode(
        node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, params: In<KernelParams>,
    ) {
        let work = KernelNode::of(driver()?, params)?;
        add(node, graph, (after, count), work)
    }

    /// Adds a launch to a graph.
    fn cuGraphAddKernelNode_v2(
        node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, params: In<KernelParams2>,
    ) {
        let work = KernelNode::of_second(driver()?, params)?;
        add(node, graph, (after, count), work)
    }

    /// Adds a copy to a graph.
    fn cuGraphAddMemcpyNode(
        node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, params: In<Copy3d>, _context: Handle,
    ) {
        let work = CopyNode::of(driver()?, params.get()?)?;
        add(node, graph, (after, count), work)
    }

    /// Adds setting memory to a graph.
    fn cuGraphAddMemsetNode(
        node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, params: In<Set>, _context: Handle,
    ) {
        add(node, graph, (after, count), Set::of(params)?)
    }

    /// Adds a call of a function of the host to a graph.
    fn cuGraphAddHostNode(
        node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, params: In<HostParams>,
    ) {
        add(node, graph, (after, count), HostParams::of(params)?)
    }

    /// Adds a copy of a graph to a graph.
    fn cuGraphAddChildGraphNode(
        node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, inner: Handle,
    ) {
        let driver = driver()?;
        driver.graphs.get(graph)?;
        node.check()?;
        let work = child(driver, inner)?;
        add_owner(node, graph, (after, count), work)
    }

    /// Adds a node that only orders others.
    fn cuGraphAddEmptyNode(node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize) {
        add(node, graph, (after, count), Work::Nothing)
    }

    /// Adds recording an event to a graph.
    fn cuGraphAddEventRecordNode(node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, event: Handle) {
        let (handle, event) = self::event(driver()?, event)?;
        add(node, graph, (after, count), Work::Record(handle, event))
    }

    /// Adds waiting for an event to a graph.
    fn cuGraphAddEventWaitNode(node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, event: Handle) {
        let (handle, event) = self::event(driver()?, event)?;
        add(node, graph, (after, count), Work::Wait(handle, event))
    }

    /// Adds a node of any type to a graph.
    fn cuGraphAddNode(node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, params: Pointer) {
        add_any(node, graph, (after, count), In::NULL, params)
    }

    /// Adds a node of any type to a graph, with the kinds of its edges.
    fn cuGraphAddNode_v2(
        node: Out<Handle>, graph: Handle, after: In<Handle>, edges: In<Edge>, count: usize, params: Pointer,
    ) {
        add_any(node, graph, (after, count), edges, params)
    }

    /// Adds edges to a graph.
    fn cuGraphAddDependencies(graph: Handle, from: In<Handle>, to: In<Handle>, count: usize) {
        change_edges(graph, from, to, count, true)
    }

    /// Adds edges to a graph, with their kinds.
    fn cuGraphAddDependencies_v2(graph: Handle, from: In<Handle>, to: In<Handle>, edges: In<Edge>, count: usize) {
        check_edges(edges, count)?;
        change_edges(graph, from, to, count, true)
    }

    /// Takes edges out of a graph.
    fn cuGraphRemoveDependencies(graph: Handle, from: In<Handle>, to: In<Handle>, count: usize) {
        change_edges(graph, from, to, count, false)
    }

    /// Takes edges out of a graph, of the given kinds.
    fn cuGraphRemoveDependencies_v2(graph: Handle, from: In<Handle>, to: In<Handle>, edges: In<Edge>, count: usize) {
        check_edges(edges, count)?;
        change_edges(graph, from, to, count, false)
    }
}
