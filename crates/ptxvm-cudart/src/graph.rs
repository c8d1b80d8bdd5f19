//! Graphs and captures of streams, over the driver's.
//!
//! Invariant: handles are the driver's; the function of a kernel's node is the host stub that the program launches, where it has one.
//!
//! What it does not do: nodes for external semaphores, `cudaGraphAddNode` and what tells or changes nodes of any type.

use crate::array::{Parameters3D, driver_copy, line};
use crate::device::context;
use crate::driver::Driver;
use crate::entry::{DefaultStream, runtime};
use crate::error::{Status, of_driver};
use crate::ffi::{Dim3, Handle, In, Out};
use crate::registry::{function, stub};
use crate::symbol::part;
use std::ffi::{c_int, c_uint};

/// `cudaKernelNodeParams`, and the driver's first form of it.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Kernel {
    function: Handle,
    grid: Dim3,
    block: Dim3,
    shared: c_uint,
    params: Handle,
    extra: Handle,
}

impl Kernel {
    const NONE: Self = Self {
        function: Handle(0),
        grid: Dim3 { x: 0, y: 0, z: 0 },
        block: Dim3 { x: 0, y: 0, z: 0 },
        shared: 0,
        params: Handle(0),
        extra: Handle(0),
    };

    /// The same with the driver's function.
    fn to_driver(params: In<Self>) -> Result<Self, Status> {
        let params = params.get()?;
        Ok(Self { function: function(params.function)?, ..params })
    }
}

/// Whether the program is one for CUDA 13, which some functions take other parameters from: such programs need a driver of that version.
fn is_13(driver: &Driver) -> Result<bool, Status> {
    let mut version = 0;
    of_driver((driver.cuDriverGetVersion)(&mut version))?;
    Ok(version >= 13000)
}

runtime! {
    /// Makes a graph.
    fn cudaGraphCreate(graph: Handle, flags: c_uint) => cuGraphCreate;

    /// Destroys a graph.
    fn cudaGraphDestroy(graph: Handle) => cuGraphDestroy;

    /// Takes a node out of its graph.
    fn cudaGraphDestroyNode(node: Handle) => cuGraphDestroyNode;

    /// Copies a graph.
    fn cudaGraphClone(copy: Handle, graph: Handle) => cuGraphClone;

    /// The node of a copy that was made of a node.
    fn cudaGraphNodeFindInClone(found: Handle, node: Handle, copy: Handle) => cuGraphNodeFindInClone;

    /// The type of a node. The numbers are the driver's.
    fn cudaGraphNodeGetType(node: Handle, kind: Handle) => cuGraphNodeGetType;

    /// The nodes of a graph.
    fn cudaGraphGetNodes(graph: Handle, nodes: Handle, count: Handle) => cuGraphGetNodes;

    /// The nodes of a graph that depend on none.
    fn cudaGraphGetRootNodes(graph: Handle, nodes: Handle, count: Handle) => cuGraphGetRootNodes;

    /// Adds a node that only orders others.
    fn cudaGraphAddEmptyNode(node: Handle, graph: Handle, after: Handle, count: usize) => cuGraphAddEmptyNode;

    /// Adds a copy of a graph to a graph.
    fn cudaGraphAddChildGraphNode(node: Handle, graph: Handle, after: Handle, count: usize, inner: Handle) => cuGraphAddChildGraphNode;

    /// The graph within a node.
    fn cudaGraphChildGraphNodeGetGraph(node: Handle, graph: Handle) => cuGraphChildGraphNodeGetGraph;

    /// Gives a node of an executable graph another graph.
    fn cudaGraphExecChildGraphNodeSetParams(executable: Handle, node: Handle, graph: Handle) => cuGraphExecChildGraphNodeSetParams;

    /// Adds recording an event to a graph.
    fn cudaGraphAddEventRecordNode(node: Handle, graph: Handle, after: Handle, count: usize, event: Handle) => cuGraphAddEventRecordNode;

    /// The event that a node records.
    fn cudaGraphEventRecordNodeGetEvent(node: Handle, event: Handle) => cuGraphEventRecordNodeGetEvent;

    /// Sets the event that a node records.
    fn cudaGraphEventRecordNodeSetEvent(node: Handle, event: Handle) => cuGraphEventRecordNodeSetEvent;

    /// Sets the event that a node of an executable graph records.
    fn cudaGraphExecEventRecordNodeSetEvent(executable: Handle, node: Handle, event: Handle) => cuGraphExecEventRecordNodeSetEvent;

    /// Adds waiting for an event to a graph.
    fn cudaGraphAddEventWaitNode(node: Handle, graph: Handle, after: Handle, count: usize, event: Handle) => cuGraphAddEventWaitNode;

    /// The event that a node waits for.
    fn cudaGraphEventWaitNodeGetEvent(node: Handle, event: Handle) => cuGraphEventWaitNodeGetEvent;

    /// Sets the event that a node waits for.
    fn cudaGraphEventWaitNodeSetEvent(node: Handle, event: Handle) => cuGraphEventWaitNodeSetEvent;

    /// Sets the event that a node of an executable graph waits for.
    fn cudaGraphExecEventWaitNodeSetEvent(executable: Handle, node: Handle, event: Handle) => cuGraphExecEventWaitNodeSetEvent;

    /// Adds a call of a function of the host to a graph.
    fn cudaGraphAddHostNode(node: Handle, graph: Handle, after: Handle, count: usize, params: Handle) => cuGraphAddHostNode;

    /// What a call of a graph was made with.
    fn cudaGraphHostNodeGetParams(node: Handle, params: Handle) => cuGraphHostNodeGetParams;

    /// Gives a call of a graph other parameters.
    fn cudaGraphHostNodeSetParams(node: Handle, params: Handle) => cuGraphHostNodeSetParams;

    /// Gives a call of an executable graph other parameters.
    fn cudaGraphExecHostNodeSetParams(executable: Handle, node: Handle, params: Handle) => cuGraphExecHostNodeSetParams;

    /// What setting memory of a graph was made with.
    fn cudaGraphMemsetNodeGetParams(node: Handle, params: Handle) => cuGraphMemsetNodeGetParams;

    /// Gives setting memory of a graph other parameters.
    fn cudaGraphMemsetNodeSetParams(node: Handle, params: Handle) => cuGraphMemsetNodeSetParams;

    /// Adds an allocation to a graph.
    fn cudaGraphAddMemAllocNode(node: Handle, graph: Handle, after: Handle, count: usize, params: Handle) => cuGraphAddMemAllocNode;

    /// What an allocation of a graph was made with.
    fn cudaGraphMemAllocNodeGetParams(node: Handle, params: Handle) => cuGraphMemAllocNodeGetParams;

    /// Adds freeing an allocation to a graph.
    fn cudaGraphAddMemFreeNode(node: Handle, graph: Handle, after: Handle, count: usize, pointer: Handle) => cuGraphAddMemFreeNode;

    /// What a node of a graph frees.
    fn cudaGraphMemFreeNodeGetParams(node: Handle, pointer: Handle) => cuGraphMemFreeNodeGetParams;

    /// Switches a node of an executable graph on or off.
    fn cudaGraphNodeSetEnabled(executable: Handle, node: Handle, enabled: c_uint) => cuGraphNodeSetEnabled;

    /// Whether a node of an executable graph is on.
    fn cudaGraphNodeGetEnabled(executable: Handle, node: Handle, enabled: Handle) => cuGraphNodeGetEnabled;

    /// Makes a graph executable.
    fn cudaGraphInstantiate(executable: Handle, graph: Handle, flags: u64) => cuGraphInstantiateWithFlags;

    /// Makes a graph executable.
    fn cudaGraphInstantiateWithFlags(executable: Handle, graph: Handle, flags: u64) => cuGraphInstantiateWithFlags;

    /// Destroys an executable graph.
    fn cudaGraphExecDestroy(executable: Handle) => cuGraphExecDestroy;

    /// The flags that an executable graph was made with.
    fn cudaGraphExecGetFlags(executable: Handle, flags: Handle) => cuGraphExecGetFlags;

    /// Gives an executable graph the parameters of another graph.
    fn cudaGraphExecUpdate(executable: Handle, graph: Handle, result: Handle) => cuGraphExecUpdate_v2;

    /// Writes a graph to a file.
    fn cudaGraphDebugDotPrint(graph: Handle, path: Handle, flags: c_uint) => cuGraphDebugDotPrint;

    /// Gives a launch of a graph the attributes of another.
    fn cudaGraphKernelNodeCopyAttributes(to: Handle, from: Handle) => cuGraphKernelNodeCopyAttributes;

    /// An attribute of a launch of a graph.
    fn cudaGraphKernelNodeGetAttribute(node: Handle, attribute: c_int, value: Handle) => cuGraphKernelNodeGetAttribute;

    /// Sets an attribute of a launch of a graph.
    fn cudaGraphKernelNodeSetAttribute(node: Handle, attribute: c_int, value: Handle) => cuGraphKernelNodeSetAttribute;

    /// How much memory graphs have. The numbers are the driver's.
    fn cudaDeviceGetGraphMemAttribute(device: c_int, attribute: c_int, value: Handle) => cuDeviceGetGraphMemAttribute;

    /// Forgets the most memory that graphs have had.
    fn cudaDeviceSetGraphMemAttribute(device: c_int, attribute: c_int, value: Handle) => cuDeviceSetGraphMemAttribute;

    /// Gives memory that graphs do not use back.
    fn cudaDeviceGraphMemTrim(device: c_int) => cuDeviceGraphMemTrim;

    /// Makes an object that graphs can keep alive.
    fn cudaUserObjectCreate(object: Handle, data: Handle, end: Handle, references: c_uint, flags: c_uint) => cuUserObjectCreate;

    /// Adds references to an object.
    fn cudaUserObjectRetain(object: Handle, count: c_uint) => cuUserObjectRetain;

    /// Gives up references to an object.
    fn cudaUserObjectRelease(object: Handle, count: c_uint) => cuUserObjectRelease;

    /// Gives a graph references to an object.
    fn cudaGraphRetainUserObject(graph: Handle, object: Handle, count: c_uint, flags: c_uint) => cuGraphRetainUserObject;

    /// Takes references to an object from a graph.
    fn cudaGraphReleaseUserObject(graph: Handle, object: Handle, count: c_uint) => cuGraphReleaseUserObject;

    /// Sets the thread's mode of capture.
    fn cudaThreadExchangeStreamCaptureMode(mode: Handle) => cuThreadExchangeStreamCaptureMode;

    /// The edges of a graph, and their kinds.
    fn cudaGraphGetEdges_v2(graph: Handle, from: Handle, to: Handle, edges: Handle, count: Handle) => cuGraphGetEdges_v2;

    /// The nodes that a node depends on, and the kinds of the edges.
    fn cudaGraphNodeGetDependencies_v2(node: Handle, before: Handle, edges: Handle, count: Handle) => cuGraphNodeGetDependencies_v2;

    /// The nodes that depend on a node, and the kinds of the edges.
    fn cudaGraphNodeGetDependentNodes_v2(node: Handle, behind: Handle, edges: Handle, count: Handle) => cuGraphNodeGetDependentNodes_v2;

    /// Adds edges to a graph, with their kinds.
    fn cudaGraphAddDependencies_v2(graph: Handle, from: Handle, to: Handle, edges: Handle, count: usize) => cuGraphAddDependencies_v2;

    /// Takes edges out of a graph, of the given kinds.
    fn cudaGraphRemoveDependencies_v2(graph: Handle, from: Handle, to: Handle, edges: Handle, count: usize) => cuGraphRemoveDependencies_v2;

    /// Begins to capture a stream.
    fn cudaStreamBeginCapture | cudaStreamBeginCapture_ptsz as default (stream: Handle, mode: c_int) {
        let driver = context()?;
        of_driver((driver.cuStreamBeginCapture_v2)(default.or(stream), mode))
    }

    /// Begins to capture a stream into a graph.
    fn cudaStreamBeginCaptureToGraph | cudaStreamBeginCaptureToGraph_ptsz as default (stream: Handle, graph: Handle, after: Handle, edges: Handle, count: usize, mode: c_int) {
        let driver = context()?;
        of_driver((driver.cuStreamBeginCaptureToGraph)(default.or(stream), graph, after, edges, count, mode))
    }

    /// Ends a capture: its graph.
    fn cudaStreamEndCapture | cudaStreamEndCapture_ptsz as default (stream: Handle, graph: Handle) {
        let driver = context()?;
        of_driver((driver.cuStreamEndCapture)(default.or(stream), graph))
    }

    /// The capture that a stream takes part in, with its graph.
    fn cudaStreamGetCaptureInfo_v2 | cudaStreamGetCaptureInfo_v2_ptsz as default (stream: Handle, status: Handle, id: Handle, graph: Handle, nodes: Handle, count: Handle) {
        let driver = context()?;
        of_driver((driver.cuStreamGetCaptureInfo_v2)(default.or(stream), status, id, graph, nodes, count))
    }

    /// The capture that a stream takes part in, with its graph and edges.
    fn cudaStreamGetCaptureInfo_v3 | cudaStreamGetCaptureInfo_v3_ptsz as default (stream: Handle, status: Handle, id: Handle, graph: Handle, nodes: Handle, edges: Handle, count: Handle) {
        let driver = context()?;
        of_driver((driver.cuStreamGetCaptureInfo_v3)(default.or(stream), status, id, graph, nodes, edges, count))
    }

    /// Changes what the next node of a captured stream depends on.
    fn cudaStreamUpdateCaptureDependencies_v2 | cudaStreamUpdateCaptureDependencies_v2_ptsz as default (stream: Handle, nodes: Handle, edges: Handle, count: usize, flags: c_uint) {
        let driver = context()?;
        of_driver((driver.cuStreamUpdateCaptureDependencies_v2)(default.or(stream), nodes, edges, count, flags))
    }

    /// Launches a graph.
    fn cudaGraphLaunch | cudaGraphLaunch_ptsz as default (executable: Handle, stream: Handle) {
        let driver = context()?;
        of_driver((driver.cuGraphLaunch)(executable, default.or(stream)))
    }

    /// Brings an executable graph to the device.
    fn cudaGraphUpload | cudaGraphUpload_ptsz as default (executable: Handle, stream: Handle) {
        let driver = context()?;
        of_driver((driver.cuGraphUpload)(executable, default.or(stream)))
    }

    /// The edges of a graph. Programs for CUDA 13 give the kinds of edges, too.
    fn cudaGraphGetEdges(graph: Handle, from: Handle, to: Handle, third: Handle, fourth: Handle) {
        let driver = context()?;
        of_driver(if is_13(driver)? {
            (driver.cuGraphGetEdges_v2)(graph, from, to, third, fourth)
        } else {
            (driver.cuGraphGetEdges)(graph, from, to, third)
        })
    }

    /// The nodes that a node depends on. Programs for CUDA 13 give the kinds of edges, too.
    fn cudaGraphNodeGetDependencies(node: Handle, before: Handle, third: Handle, fourth: Handle) {
        let driver = context()?;
        of_driver(if is_13(driver)? {
            (driver.cuGraphNodeGetDependencies_v2)(node, before, third, fourth)
        } else {
            (driver.cuGraphNodeGetDependencies)(node, before, third)
        })
    }

    /// The nodes that depend on a node. Programs for CUDA 13 give the kinds of edges, too.
    fn cudaGraphNodeGetDependentNodes(node: Handle, behind: Handle, third: Handle, fourth: Handle) {
        let driver = context()?;
        of_driver(if is_13(driver)? {
            (driver.cuGraphNodeGetDependentNodes_v2)(node, behind, third, fourth)
        } else {
            (driver.cuGraphNodeGetDependentNodes)(node, behind, third)
        })
    }

    /// Adds edges to a graph. Programs for CUDA 13 give the kinds of edges, too.
    fn cudaGraphAddDependencies(graph: Handle, from: Handle, to: Handle, third: Handle, fourth: Handle) {
        let driver = context()?;
        of_driver(if is_13(driver)? {
            (driver.cuGraphAddDependencies_v2)(graph, from, to, third, fourth.0)
        } else {
            (driver.cuGraphAddDependencies)(graph, from, to, third.0)
        })
    }

    /// Takes edges out of a graph. Programs for CUDA 13 give the kinds of edges, too.
    fn cudaGraphRemoveDependencies(graph: Handle, from: Handle, to: Handle, third: Handle, fourth: Handle) {
        let driver = context()?;
        of_driver(if is_13(driver)? {
            (driver.cuGraphRemoveDependencies_v2)(graph, from, to, third, fourth.0)
        } else {
            (driver.cuGraphRemoveDependencies)(graph, from, to, third.0)
        })
    }

    /// The capture that a stream takes part in. Programs for CUDA 13 ask for its graph and edges, too.
    fn cudaStreamGetCaptureInfo | cudaStreamGetCaptureInfo_ptsz as default (
        stream: Handle, status: Handle, id: Handle, graph: Handle, nodes: Handle, edges: Handle, count: Handle,
    ) {
        let driver = context()?;
        let stream = default.or(stream);
        of_driver(if is_13(driver)? {
            (driver.cuStreamGetCaptureInfo_v3)(stream, status, id, graph, nodes, edges, count)
        } else {
            (driver.cuStreamGetCaptureInfo)(stream, status, id)
        })
    }

    /// Changes what the next node of a captured stream depends on. Programs for CUDA 13 give the kinds of edges, too.
    fn cudaStreamUpdateCaptureDependencies | cudaStreamUpdateCaptureDependencies_ptsz as default (
        stream: Handle, nodes: Handle, third: Handle, fourth: usize, fifth: c_uint,
    ) {
        let driver = context()?;
        let stream = default.or(stream);
        of_driver(if is_13(driver)? {
            (driver.cuStreamUpdateCaptureDependencies_v2)(stream, nodes, third, fourth, fifth)
        } else {
            (driver.cuStreamUpdateCaptureDependencies)(stream, nodes, third.0, fourth as c_uint)
        })
    }

    /// Makes a graph executable, and says how that went.
    fn cudaGraphInstantiateWithParams | cudaGraphInstantiateWithParams_ptsz as default (
        executable: Handle, graph: Handle, params: Handle,
    ) {
        let driver = context()?;
        of_driver(match default {
            DefaultStream::Legacy => (driver.cuGraphInstantiateWithParams)(executable, graph, params),
            DefaultStream::PerThread => (driver.cuGraphInstantiateWithParams_ptsz)(executable, graph, params),
        })
    }

    /// Makes a value that decides which bodies of a conditional node run.
    fn cudaGraphConditionalHandleCreate(handle: Handle, graph: Handle, default: c_uint, flags: c_uint) {
        let driver = context()?;
        of_driver((driver.cuGraphConditionalHandleCreate)(handle, graph, Handle(0), default, flags))
    }

    /// Adds setting memory to a graph.
    fn cudaGraphAddMemsetNode(node: Handle, graph: Handle, after: Handle, count: usize, params: Handle) {
        let driver = context()?;
        of_driver((driver.cuGraphAddMemsetNode)(node, graph, after, count, params, Handle(0)))
    }

    /// Gives setting memory of an executable graph other parameters.
    fn cudaGraphExecMemsetNodeSetParams(executable: Handle, node: Handle, params: Handle) {
        let driver = context()?;
        of_driver((driver.cuGraphExecMemsetNodeSetParams)(executable, node, params, Handle(0)))
    }

    /// Adds a launch to a graph.
    fn cudaGraphAddKernelNode(node: Handle, graph: Handle, after: Handle, count: usize, params: In<Kernel>) {
        let driver = context()?;
        let params = Kernel::to_driver(params)?;
        of_driver((driver.cuGraphAddKernelNode)(node, graph, after, count, &params))
    }

    /// What a launch of a graph was made with.
    fn cudaGraphKernelNodeGetParams(node: Handle, params: Out<Kernel>) {
        let driver = context()?;
        let mut found = Kernel::NONE;
        of_driver((driver.cuGraphKernelNodeGetParams)(node, &mut found))?;
        params.set(Kernel { function: stub(found.function), ..found })
    }

    /// Gives a launch of a graph other parameters.
    fn cudaGraphKernelNodeSetParams(node: Handle, params: In<Kernel>) {
        let driver = context()?;
        let params = Kernel::to_driver(params)?;
        of_driver((driver.cuGraphKernelNodeSetParams)(node, &params))
    }

    /// Gives a launch of an executable graph other parameters.
    fn cudaGraphExecKernelNodeSetParams(executable: Handle, node: Handle, params: In<Kernel>) {
        let driver = context()?;
        let params = Kernel::to_driver(params)?;
        of_driver((driver.cuGraphExecKernelNodeSetParams)(executable, node, &params))
    }

    /// Adds a copy to a graph.
    fn cudaGraphAddMemcpyNode(node: Handle, graph: Handle, after: Handle, count: usize, params: In<Parameters3D>) {
        let driver = context()?;
        let copy = driver_copy(driver, params.get()?)?;
        of_driver((driver.cuGraphAddMemcpyNode)(node, graph, after, count, &copy, Handle(0)))
    }

    /// Gives a copy of a graph other parameters.
    fn cudaGraphMemcpyNodeSetParams(node: Handle, params: In<Parameters3D>) {
        let driver = context()?;
        let copy = driver_copy(driver, params.get()?)?;
        of_driver((driver.cuGraphMemcpyNodeSetParams)(node, &copy))
    }

    /// Gives a copy of an executable graph other parameters.
    fn cudaGraphExecMemcpyNodeSetParams(executable: Handle, node: Handle, params: In<Parameters3D>) {
        let driver = context()?;
        let copy = driver_copy(driver, params.get()?)?;
        of_driver((driver.cuGraphExecMemcpyNodeSetParams)(executable, node, &copy, Handle(0)))
    }

    /// Adds a copy of bytes to a graph.
    fn cudaGraphAddMemcpyNode1D(
        node: Handle, graph: Handle, after: Handle, count: usize, to: Handle, from: Handle, bytes: usize, kind: c_int,
    ) {
        let driver = context()?;
        let copy = line(to, from, bytes, kind)?;
        of_driver((driver.cuGraphAddMemcpyNode)(node, graph, after, count, &copy, Handle(0)))
    }

    /// Gives a copy of bytes of a graph other parameters.
    fn cudaGraphMemcpyNodeSetParams1D(node: Handle, to: Handle, from: Handle, bytes: usize, kind: c_int) {
        let driver = context()?;
        of_driver((driver.cuGraphMemcpyNodeSetParams)(node, &line(to, from, bytes, kind)?))
    }

    /// Gives a copy of bytes of an executable graph other parameters.
    fn cudaGraphExecMemcpyNodeSetParams1D(
        executable: Handle, node: Handle, to: Handle, from: Handle, bytes: usize, kind: c_int,
    ) {
        let driver = context()?;
        let copy = line(to, from, bytes, kind)?;
        of_driver((driver.cuGraphExecMemcpyNodeSetParams)(executable, node, &copy, Handle(0)))
    }

    /// Adds a copy to a variable to a graph.
    fn cudaGraphAddMemcpyNodeToSymbol(
        node: Handle, graph: Handle, after: Handle, count: usize, symbol: Handle, from: Handle, bytes: usize,
        offset: usize, kind: c_int,
    ) {
        let driver = context()?;
        let copy = line(part(symbol, bytes, offset)?, from, bytes, kind)?;
        of_driver((driver.cuGraphAddMemcpyNode)(node, graph, after, count, &copy, Handle(0)))
    }

    /// Adds a copy from a variable to a graph.
    fn cudaGraphAddMemcpyNodeFromSymbol(
        node: Handle, graph: Handle, after: Handle, count: usize, to: Handle, symbol: Handle, bytes: usize,
        offset: usize, kind: c_int,
    ) {
        let driver = context()?;
        let copy = line(to, part(symbol, bytes, offset)?, bytes, kind)?;
        of_driver((driver.cuGraphAddMemcpyNode)(node, graph, after, count, &copy, Handle(0)))
    }
}
