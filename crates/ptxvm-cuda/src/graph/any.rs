//! Nodes of any type: `CUgraphNodeParams`, a type and a union of the parameters of each type.
//!
//! Invariant: the parameters that are read from a node describe its work completely, except that functions
//! are named by the handle that the program gave.

use super::add::{Edge, add_owner, check_edges, child};
use super::batch;
use super::condition::ConditionParams;
use super::memory::{AllocParams, allocation, freeing};
use super::node::{CopyNode, HostParams, KernelNode, KernelParams2, Set, Work, event};
use super::parameters::{get, set, set_in};
use super::{Graph, graph_of};
use crate::copy_box::Copy3d;
use crate::driver::{Driver, driver};
use crate::entry::entries;
use crate::ffi::{In, Out, Pointer};
use crate::handles::Handle;
use crate::log;
use crate::status::{Answer, Status};
use std::ffi::c_int;
use std::sync::Arc;

/// The offset of the union in `CUgraphNodeParams`.
const UNION: usize = 16;
/// `CUgraphNodeParams` as words.
type Words = [u64; 32];

/// `CUDA_MEMCPY_NODE_PARAMS`
#[derive(Clone, Copy)]
#[repr(C)]
struct MemcpyParams {
    flags: c_int,
    reserved: c_int,
    context: Handle,
    copy: Copy3d,
}

/// The work of a node from its `CUgraphNodeParams`.
///
/// # Errors
/// The errors of the functions for each type of node.
fn work_of(driver: &'static Driver, graph: &Arc<Graph>, params: Pointer) -> Result<Work, Status> {
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
        12 => batch::work_of(driver, union.values())?,
        13 => ConditionParams::make(driver, graph, union.place())?,
        8 | 9 => {
            log::refused("a graph node for external semaphores");
            return Err(Status::NotSupported);
        }
        _ => return Err(Status::InvalidValue),
    })
}

/// Writes the parameters of a node.
///
/// # Errors
/// `CUDA_ERROR_INVALID_VALUE`; `CUDA_ERROR_NOT_SUPPORTED` for captured work that no parameters describe.
fn describe(work: &Work, params: Pointer) -> Answer {
    if let Work::Again(..) = work {
        log::refused("the parameters of a captured operation");
        return Err(Status::NotSupported);
    }
    params.place::<Words>().set([0; 32])?;
    params.place::<c_int>().set(work.kind())?;
    let union = params.offset(UNION);
    match work {
        Work::Nothing | Work::Again(..) => Ok(()),
        Work::Kernel(kernel) => union.place().set(kernel.shown_second()),
        Work::Copy(node) => {
            let (context, copy) = (Handle::NULL, node.copy);
            union.place().set(MemcpyParams { flags: 0, reserved: 0, context, copy })
        }
        Work::Set(set) => union.place().set(*set),
        Work::Host(function, data) => union.place().set(HostParams { function: *function, data: *data }),
        Work::Child(graph) => union.place().set(graph.handle),
        Work::Wait(event, _) | Work::Record(event, _) => union.place().set(*event),
        Work::Allocate(memory) => union.place().set(memory.params()),
        Work::Free(memory) => union.place().set(memory.address),
        Work::Batch(batch) => union.place().set(batch::params_of(batch)),
        Work::Condition(condition) => union.place().set(ConditionParams::of(condition)),
    }
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

fn set_any(node: Handle, params: Pointer) -> Answer {
    let driver = driver()?;
    let graph = graph_of(driver, node)?;
    check_kind(params)?;
    set(node, work_of(driver, &graph, params)?)
}

/// Nodes that allocate, free and decide keep their parameters.
fn check_kind(params: Pointer) -> Answer {
    let kind = params.values::<c_int>().get()?;
    if matches!(kind, 10 | 11 | 13) { Err(Status::InvalidValue) } else { Ok(()) }
}

/// Fails for a kernel node whose context is not that of its function, as later versions of functions do.
fn check_context(params: Pointer) -> Answer {
    if params.values::<c_int>().get()? != 0 {
        return Ok(());
    }
    let KernelParams2 { first, kernel, context } = params.offset(UNION).values().get()?;
    let function = if first.function.is_null() { kernel } else { first.function };
    let found = driver()?.functions.get(function)?;
    if context.is_null() || context == found.context.handle { Ok(()) } else { Err(Status::InvalidContext) }
}

entries! { ENTRIES;
    /// Adds a node of any type.
    fn cuGraphAddNode(node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, params: Pointer) {
        add_any(node, graph, (after, count), In::NULL, params)
    }

    /// Adds a node of any type, with the data of its edges.
    fn cuGraphAddNode_v2(
        node: Out<Handle>, graph: Handle, after: In<Handle>, edges: In<Edge>, count: usize, params: Pointer,
    ) {
        add_any(node, graph, (after, count), edges, params)
    }

    /// Adds a node of any type, with the data of its edges. The context of a kernel must be its function's.
    fn cuGraphAddNode_v3(
        node: Out<Handle>, graph: Handle, after: In<Handle>, edges: In<Edge>, count: usize, params: Pointer,
    ) {
        check_context(params)?;
        add_any(node, graph, (after, count), edges, params)
    }

    /// The parameters of a node of any type.
    fn cuGraphNodeGetParams(node: Handle, params: Pointer) {
        params.place::<Words>().check()?;
        describe(&get(node)?, params)
    }

    /// Sets the parameters of a node of any type.
    fn cuGraphNodeSetParams(node: Handle, params: Pointer) {
        set_any(node, params)
    }

    /// Sets the parameters of a node of any type. The context of a kernel must be its function's.
    fn cuGraphNodeSetParams_v2(node: Handle, params: Pointer) {
        check_context(params)?;
        set_any(node, params)
    }

    /// Sets the parameters of a node of any type in an executable graph.
    fn cuGraphExecNodeSetParams(executable: Handle, node: Handle, params: Pointer) {
        let driver = driver()?;
        driver.executables.get(executable)?;
        let graph = graph_of(driver, node)?;
        check_kind(params)?;
        set_in(executable, node, work_of(driver, &graph, params)?)
    }
}
