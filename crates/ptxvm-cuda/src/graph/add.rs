//! Functions that add nodes and edges to graphs, and remove them.
//!
//! Invariant: a call that fails adds nothing.

use super::node::{CopyNode, HostParams, KernelNode, KernelParams, KernelParams2, Set, Work, event};
use super::{Graph, append, graph_of};
use crate::copy_box::Copy3d;
use crate::driver::{Driver, driver};
use crate::entry::entries;
use crate::ffi::{In, Out};
use crate::handles::Handle;
use crate::status::{Answer, Status};
use std::ffi::c_uint;

/// Most edges and nodes of one call. Chosen: more than programs pass.
const EDGES_MAX: usize = 1 << 24;

/// `CUgraphEdgeData`: ports, type, and reserved bytes.
pub(crate) type Edge = [u8; 8];

/// Adds a node after its dependencies.
///
/// # Errors
/// `CUDA_ERROR_INVALID_HANDLE`, `CUDA_ERROR_INVALID_VALUE`.
pub(super) fn add(node: Out<Handle>, graph: Handle, after: (In<Handle>, usize), work: Work) -> Answer {
    let driver = driver()?;
    node.check()?;
    let graph = driver.graphs.get(graph)?;
    node.set(append(driver, &graph, list(after)?, work)?)
}

/// Reads the caller's list of nodes.
pub(super) fn list((nodes, count): (In<Handle>, usize)) -> Result<Vec<Handle>, Status> {
    if count > EDGES_MAX {
        return Err(Status::InvalidValue);
    }
    nodes.all(count)
}

/// Fails for invalid edge data. Every edge waits for the complete node before it, whatever its type.
pub(super) fn check_edges(edges: In<Edge>, count: usize) -> Answer {
    if edges.is_null() || count == 0 {
        return Ok(());
    }
    if count > EDGES_MAX {
        return Err(Status::InvalidValue);
    }
    // A kernel's ports are its end, its programmatic event, and the start of its last CTA. The type is 0 or
    // programmatic.
    let is_right = |edge: &Edge| edge[0] <= 2 && edge[1] == 0 && edge[2] <= 1 && edge[3..] == [0; 5];
    if edges.all(count)?.iter().all(is_right) { Ok(()) } else { Err(Status::InvalidValue) }
}

/// The work of a child node, with a copy of the graph.
pub(super) fn child(driver: &Driver, graph: Handle) -> Result<Work, Status> {
    Ok(Work::Child(driver.graphs.get(graph)?.copied(driver, true, 1)?))
}

/// Adds a node that owns graphs. If that fails, the graphs are destroyed.
pub(super) fn add_owner(node: Out<Handle>, graph: Handle, after: (In<Handle>, usize), work: Work) -> Answer {
    let owned = work.clone();
    add(node, graph, after, work).inspect_err(|_| forget(&owned))
}

/// Destroys the graphs that work owns.
pub(super) fn forget(work: &Work) {
    if let Ok(driver) = driver() {
        for graph in work.bodies() {
            graph.forget(driver);
        }
    }
}

/// Adds or removes edges.
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
    /// Creates an empty graph.
    fn cuGraphCreate(graph: Out<Handle>, flags: c_uint) {
        let driver = driver()?;
        if flags != 0 {
            return Err(Status::InvalidValue);
        }
        graph.check()?;
        graph.set(Graph::make(driver).0)
    }

    /// Destroys a graph. Executable graphs made of it stay.
    fn cuGraphDestroy(graph: Handle) {
        let driver = driver()?;
        let graph = driver.graphs.get(graph)?;
        if graph.is_owned {
            return Err(Status::InvalidValue);
        }
        graph.forget(driver);
        Ok(())
    }

    /// Removes a node and its edges from its graph.
    fn cuGraphDestroyNode(node: Handle) {
        let driver = driver()?;
        graph_of(driver, node)?.remove(driver, node)
    }

    /// Adds a kernel node.
    fn cuGraphAddKernelNode(
        node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, params: In<KernelParams>,
    ) {
        let work = KernelNode::of(driver()?, params)?;
        add(node, graph, (after, count), work)
    }

    /// Adds a kernel node.
    fn cuGraphAddKernelNode_v2(
        node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, params: In<KernelParams2>,
    ) {
        let work = KernelNode::of_second(driver()?, params)?;
        add(node, graph, (after, count), work)
    }

    /// Adds a memcpy node.
    fn cuGraphAddMemcpyNode(
        node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, params: In<Copy3d>, _context: Handle,
    ) {
        let work = CopyNode::of(driver()?, params.get()?)?;
        add(node, graph, (after, count), work)
    }

    /// Adds a memset node.
    fn cuGraphAddMemsetNode(
        node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, params: In<Set>, _context: Handle,
    ) {
        add(node, graph, (after, count), Set::of(params)?)
    }

    /// Adds a node that calls a host function.
    fn cuGraphAddHostNode(
        node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, params: In<HostParams>,
    ) {
        add(node, graph, (after, count), HostParams::of(params)?)
    }

    /// Adds a child graph node, with a copy of the graph.
    fn cuGraphAddChildGraphNode(
        node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, inner: Handle,
    ) {
        let driver = driver()?;
        driver.graphs.get(graph)?;
        node.check()?;
        let work = child(driver, inner)?;
        add_owner(node, graph, (after, count), work)
    }

    /// Adds an empty node, which only orders others.
    fn cuGraphAddEmptyNode(node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize) {
        add(node, graph, (after, count), Work::Nothing)
    }

    /// Adds a node that records an event.
    fn cuGraphAddEventRecordNode(node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, event: Handle) {
        let (handle, event) = self::event(driver()?, event)?;
        add(node, graph, (after, count), Work::Record(handle, event))
    }

    /// Adds a node that waits for an event.
    fn cuGraphAddEventWaitNode(node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, event: Handle) {
        let (handle, event) = self::event(driver()?, event)?;
        add(node, graph, (after, count), Work::Wait(handle, event))
    }

    /// Adds edges to a graph.
    fn cuGraphAddDependencies(graph: Handle, from: In<Handle>, to: In<Handle>, count: usize) {
        change_edges(graph, from, to, count, true)
    }

    /// Adds edges to a graph, with their data.
    fn cuGraphAddDependencies_v2(graph: Handle, from: In<Handle>, to: In<Handle>, edges: In<Edge>, count: usize) {
        check_edges(edges, count)?;
        change_edges(graph, from, to, count, true)
    }

    /// Removes edges from a graph.
    fn cuGraphRemoveDependencies(graph: Handle, from: In<Handle>, to: In<Handle>, count: usize) {
        change_edges(graph, from, to, count, false)
    }

    /// Removes edges with the given data from a graph.
    fn cuGraphRemoveDependencies_v2(graph: Handle, from: In<Handle>, to: In<Handle>, edges: In<Edge>, count: usize) {
        check_edges(edges, count)?;
        change_edges(graph, from, to, count, false)
    }
}
