//! The contents of a graph: nodes, edges, clones, a drawing.
//!
//! Invariant: a list is written as far as the caller has room for it. Without room only its length is
//! written.

use super::add::Edge;
use super::{Graph, graph_of};
use crate::driver::driver;
use crate::entry::entries;
use crate::ffi::{In, Out, Text};
use crate::handles::Handle;
use crate::status::{Answer, Status};
use std::ffi::{c_int, c_uint};
use std::fmt::Write as _;

use super::node::Work;

/// `CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE` and the flags of single kinds of parameters, handles and attributes.
const DOT_FLAGS: c_uint = 0xffff;

/// Most elements after the end of a list that become null.
const REST_MAX: usize = 1024;

/// Writes as much of a list as the caller has room for.
fn give<T: Copy>(found: &[T], nothing: T, list: Out<T>, count: Out<usize>) -> Answer {
    if In::from(list).is_null() {
        return count.set(found.len());
    }
    let room = In::<usize>::from(count).get()?;
    list.set_all(&found[..found.len().min(room)])?;
    // The rest of the caller's room becomes null, up to a limit. Chosen: more than programs leave unused.
    let rest = (room - found.len().min(room)).min(REST_MAX);
    list.offset(found.len()).set_all(&vec![nothing; rest])?;
    count.set(found.len().min(room))
}

/// Writes zeros for the data of edges: all are plain.
fn give_edges(found: usize, edges: Out<Edge>, count: Out<usize>) -> Answer {
    if In::from(edges).is_null() {
        return Ok(());
    }
    let room = In::<usize>::from(count).get()?;
    edges.set_all(&vec![[0; 8]; found.min(room)])
}

fn edges(graph: &Graph) -> (Vec<Handle>, Vec<Handle>) {
    let nodes = graph.nodes();
    nodes.list.iter().flat_map(|node| node.after.iter().map(|before| (*before, node.handle))).unzip()
}

fn give_all_edges(
    graph: Handle,
    (from, to): (Out<Handle>, Out<Handle>),
    data: Out<Edge>,
    count: Out<usize>,
) -> Answer {
    let graph = driver()?.graphs.get(graph)?;
    let (sources, targets) = edges(&graph);
    if In::from(from).is_null() != In::from(to).is_null() {
        return Err(Status::InvalidValue);
    }
    if In::from(from).is_null() {
        return count.set(sources.len());
    }
    give_edges(sources.len(), data, count)?;
    let room = count;
    let before = In::<usize>::from(room).get()?;
    give(&sources, Handle::NULL, from, count)?;
    count.set(before)?;
    give(&targets, Handle::NULL, to, count)
}

fn dependencies(node: Handle, list: Out<Handle>, data: Out<Edge>, count: Out<usize>) -> Answer {
    let graph = graph_of(driver()?, node)?;
    let found = graph.nodes().get(node)?.after.clone();
    if !In::from(list).is_null() {
        give_edges(found.len(), data, count)?;
    }
    give(&found, Handle::NULL, list, count)
}

fn dependents(node: Handle, list: Out<Handle>, data: Out<Edge>, count: Out<usize>) -> Answer {
    let graph = graph_of(driver()?, node)?;
    let nodes = graph.nodes();
    nodes.get(node)?;
    let behind = nodes.list.iter().filter(|other| other.after.contains(&node));
    let found: Vec<Handle> = behind.map(|other| other.handle).collect();
    drop(nodes);
    if !In::from(list).is_null() {
        give_edges(found.len(), data, count)?;
    }
    give(&found, Handle::NULL, list, count)
}

/// The label of a node in a drawing.
fn label(work: &Work) -> String {
    match work {
        Work::Nothing => "empty".to_owned(),
        Work::Kernel(node) => {
            let ([gx, gy, gz], [bx, by, bz]) = (node.size.grid, node.size.block);
            format!("{}\\ngrid {gx} x {gy} x {gz}, block {bx} x {by} x {bz}", node.function.kernel.name())
        }
        Work::Copy(_) => "copy".to_owned(),
        Work::Set(_) => "set".to_owned(),
        Work::Host(..) => "host function".to_owned(),
        Work::Child(_) => "child graph".to_owned(),
        Work::Record(..) => "record an event".to_owned(),
        Work::Wait(..) => "wait for an event".to_owned(),
        Work::Allocate(memory) => format!("allocate {:#x}", memory.address),
        Work::Free(memory) => format!("free {:#x}", memory.address),
        Work::Batch(_) => "memory operations".to_owned(),
        Work::Condition(_) => "condition".to_owned(),
        Work::Again(..) => "captured operation".to_owned(),
    }
}

/// Draws a graph in the language of Graphviz. Nested graphs become clusters.
fn draw(graph: &Graph, text: &mut String) {
    let nodes = graph.nodes();
    for node in &nodes.list {
        let (this, label) = (node.handle.0, label(&node.work));
        // Names of PTX contain no quotes. Writing to a string cannot fail.
        let _written = writeln!(text, "  n{this:x} [label=\"{}: {label}\"];", node.number);
        for before in &node.after {
            let _written = writeln!(text, "  n{:x} -> n{this:x};", before.0);
        }
        for body in node.work.bodies() {
            let _written = writeln!(text, "  subgraph cluster_{:x} {{", body.handle.0);
            draw(body, text);
            text.push_str("  }\n");
        }
    }
}

entries! { ENTRIES;
    /// The nodes of a graph. Without room for them, their number.
    fn cuGraphGetNodes(graph: Handle, nodes: Out<Handle>, count: Out<usize>) {
        give(&driver()?.graphs.get(graph)?.handles(), Handle::NULL, nodes, count)
    }

    /// The nodes of a graph that depend on none.
    fn cuGraphGetRootNodes(graph: Handle, roots: Out<Handle>, count: Out<usize>) {
        let graph = driver()?.graphs.get(graph)?;
        let found: Vec<Handle> =
            graph.nodes().list.iter().filter(|node| node.after.is_empty()).map(|node| node.handle).collect();
        give(&found, Handle::NULL, roots, count)
    }

    /// The edges of a graph.
    fn cuGraphGetEdges(graph: Handle, from: Out<Handle>, to: Out<Handle>, count: Out<usize>) {
        give_all_edges(graph, (from, to), Out::NULL, count)
    }

    /// The edges of a graph, and their data: all are plain.
    fn cuGraphGetEdges_v2(graph: Handle, from: Out<Handle>, to: Out<Handle>, edges: Out<Edge>, count: Out<usize>) {
        give_all_edges(graph, (from, to), edges, count)
    }

    /// The nodes that a node depends on.
    fn cuGraphNodeGetDependencies(node: Handle, before: Out<Handle>, count: Out<usize>) {
        dependencies(node, before, Out::NULL, count)
    }

    /// The nodes that a node depends on, with the data of the edges.
    fn cuGraphNodeGetDependencies_v2(node: Handle, before: Out<Handle>, edges: Out<Edge>, count: Out<usize>) {
        dependencies(node, before, edges, count)
    }

    /// The nodes that depend on a node.
    fn cuGraphNodeGetDependentNodes(node: Handle, behind: Out<Handle>, count: Out<usize>) {
        dependents(node, behind, Out::NULL, count)
    }

    /// The nodes that depend on a node, with the data of the edges.
    fn cuGraphNodeGetDependentNodes_v2(node: Handle, behind: Out<Handle>, edges: Out<Edge>, count: Out<usize>) {
        dependents(node, behind, edges, count)
    }

    /// The type of a node.
    fn cuGraphNodeGetType(node: Handle, kind: Out<c_int>) {
        kind.check()?;
        let graph = graph_of(driver()?, node)?;
        let found = graph.nodes().get(node)?.work.kind();
        kind.set(found)
    }

    /// Copies a graph.
    fn cuGraphClone(copy: Out<Handle>, graph: Handle) {
        let driver = driver()?;
        copy.check()?;
        copy.set(driver.graphs.get(graph)?.copied(driver, false, 0)?.handle)
    }

    /// The node of a clone that corresponds to a node of the original.
    fn cuGraphNodeFindInClone(found: Out<Handle>, node: Handle, copy: Handle) {
        found.check()?;
        let copy = driver()?.graphs.get(copy)?;
        let twins = copy.twins.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let twin = twins.get(&node).copied().filter(|twin| copy.nodes().knows(*twin));
        found.set(twin.ok_or(Status::InvalidValue)?)
    }

    /// The number of a graph.
    fn cuGraphGetId(graph: Handle, number: Out<c_uint>) {
        number.check()?;
        number.set(driver()?.graphs.get(graph)?.number)
    }

    /// The graph that contains a node.
    fn cuGraphNodeGetContainingGraph(node: Handle, graph: Out<Handle>) {
        graph.check()?;
        graph.set(graph_of(driver()?, node)?.handle)
    }

    /// The number of a node in its graph.
    fn cuGraphNodeGetLocalId(node: Handle, number: Out<c_uint>) {
        number.check()?;
        let graph = graph_of(driver()?, node)?;
        let found = graph.nodes().get(node)?.number;
        number.set(found)
    }

    /// The number of a node in the process.
    fn cuGraphNodeGetToolsId(node: Handle, number: Out<u64>) {
        number.check()?;
        graph_of(driver()?, node)?;
        number.set(node.0 as u64)
    }

    /// Writes a graph to a file, in the language of Graphviz.
    fn cuGraphDebugDotPrint(graph: Handle, path: Text, flags: c_uint) {
        let graph = driver()?.graphs.get(graph)?;
        if flags & !DOT_FLAGS != 0 {
            return Err(Status::InvalidValue);
        }
        let mut text = "digraph dot {\n".to_owned();
        draw(&graph, &mut text);
        text.push_str("}\n");
        // The documentation does not list the errors of this function.
        std::fs::write(path.get()?, text).map_err(|_| Status::OperatingSystem)
    }
}
