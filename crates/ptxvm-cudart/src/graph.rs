//! Graphs and captures of streams, over the driver's.
//!
//! Invariant: handles are the driver's. The function of a kernel node is the host stub that the program
//! launches, if the kernel has one.
//!
//! What it does not do: nodes for external semaphores.

use crate::array::{Parameters3D, driver_copy, line};
use crate::device::context;
use crate::entry::{DefaultStream, runtime};
use crate::error::{Status, of_driver};
use crate::ffi::{Handle, In, Out};
use crate::registry::{function, stub};
use crate::structures::Kernel;
use crate::version::{is_11, is_13};
use std::ffi::{c_int, c_uint};

impl Kernel {
    /// The same parameters with the driver's function.
    fn to_driver(params: In<Self>) -> Result<Self, Status> {
        let params = params.get()?;
        Ok(Self { function: function(params.function)?, ..params })
    }
}

runtime! {
    /// Creates a graph.
    fn cudaGraphCreate(graph: Handle, flags: c_uint) => cuGraphCreate;

    /// Destroys a graph.
    fn cudaGraphDestroy(graph: Handle) => cuGraphDestroy;

    /// Removes a node from its graph.
    fn cudaGraphDestroyNode(node: Handle) => cuGraphDestroyNode;

    /// Copies a graph.
    fn cudaGraphClone(copy: Handle, graph: Handle) => cuGraphClone;

    /// The node of a copy that corresponds to a node of the original.
    fn cudaGraphNodeFindInClone(found: Handle, node: Handle, copy: Handle) => cuGraphNodeFindInClone;

    /// The type of a node. The numbers are the driver's.
    fn cudaGraphNodeGetType(node: Handle, kind: Handle) => cuGraphNodeGetType;

    /// The nodes of a graph.
    fn cudaGraphGetNodes(graph: Handle, nodes: Handle, count: Handle) => cuGraphGetNodes;

    /// The nodes of a graph that depend on none.
    fn cudaGraphGetRootNodes(graph: Handle, nodes: Handle, count: Handle) => cuGraphGetRootNodes;

    /// Adds an empty node, which only orders others.
    fn cudaGraphAddEmptyNode(node: Handle, graph: Handle, after: Handle, count: usize) => cuGraphAddEmptyNode;

    /// Adds a child graph node.
    fn cudaGraphAddChildGraphNode(node: Handle, graph: Handle, after: Handle, count: usize, inner: Handle) => cuGraphAddChildGraphNode;

    /// The graph of a child graph node.
    fn cudaGraphChildGraphNodeGetGraph(node: Handle, graph: Handle) => cuGraphChildGraphNodeGetGraph;

    /// Sets the graph of a child node in an executable graph.
    fn cudaGraphExecChildGraphNodeSetParams(executable: Handle, node: Handle, graph: Handle) => cuGraphExecChildGraphNodeSetParams;

    /// Adds a node that records an event.
    fn cudaGraphAddEventRecordNode(node: Handle, graph: Handle, after: Handle, count: usize, event: Handle) => cuGraphAddEventRecordNode;

    /// The event that a node records.
    fn cudaGraphEventRecordNodeGetEvent(node: Handle, event: Handle) => cuGraphEventRecordNodeGetEvent;

    /// Sets the event that a node records.
    fn cudaGraphEventRecordNodeSetEvent(node: Handle, event: Handle) => cuGraphEventRecordNodeSetEvent;

    /// Sets the event that a node of an executable graph records.
    fn cudaGraphExecEventRecordNodeSetEvent(executable: Handle, node: Handle, event: Handle) => cuGraphExecEventRecordNodeSetEvent;

    /// Adds a node that waits for an event.
    fn cudaGraphAddEventWaitNode(node: Handle, graph: Handle, after: Handle, count: usize, event: Handle) => cuGraphAddEventWaitNode;

    /// The event that a node waits for.
    fn cudaGraphEventWaitNodeGetEvent(node: Handle, event: Handle) => cuGraphEventWaitNodeGetEvent;

    /// Sets the event that a node waits for.
    fn cudaGraphEventWaitNodeSetEvent(node: Handle, event: Handle) => cuGraphEventWaitNodeSetEvent;

    /// Sets the event that a node of an executable graph waits for.
    fn cudaGraphExecEventWaitNodeSetEvent(executable: Handle, node: Handle, event: Handle) => cuGraphExecEventWaitNodeSetEvent;

    /// Adds a node that calls a host function.
    fn cudaGraphAddHostNode(node: Handle, graph: Handle, after: Handle, count: usize, params: Handle) => cuGraphAddHostNode;

    /// The parameters of a host node.
    fn cudaGraphHostNodeGetParams(node: Handle, params: Handle) => cuGraphHostNodeGetParams;

    /// Sets the parameters of a host node.
    fn cudaGraphHostNodeSetParams(node: Handle, params: Handle) => cuGraphHostNodeSetParams;

    /// Sets the parameters of a host node in an executable graph.
    fn cudaGraphExecHostNodeSetParams(executable: Handle, node: Handle, params: Handle) => cuGraphExecHostNodeSetParams;

    /// The parameters of a memset node.
    fn cudaGraphMemsetNodeGetParams(node: Handle, params: Handle) => cuGraphMemsetNodeGetParams;

    /// Sets the parameters of a memset node.
    fn cudaGraphMemsetNodeSetParams(node: Handle, params: Handle) => cuGraphMemsetNodeSetParams;

    /// Adds an allocation node.
    fn cudaGraphAddMemAllocNode(node: Handle, graph: Handle, after: Handle, count: usize, params: Handle) => cuGraphAddMemAllocNode;

    /// The parameters of an allocation node.
    fn cudaGraphMemAllocNodeGetParams(node: Handle, params: Handle) => cuGraphMemAllocNodeGetParams;

    /// Adds a node that frees an allocation.
    fn cudaGraphAddMemFreeNode(node: Handle, graph: Handle, after: Handle, count: usize, pointer: Handle) => cuGraphAddMemFreeNode;

    /// The pointer that a free node frees.
    fn cudaGraphMemFreeNodeGetParams(node: Handle, pointer: Handle) => cuGraphMemFreeNodeGetParams;

    /// Enables or disables a node of an executable graph.
    fn cudaGraphNodeSetEnabled(executable: Handle, node: Handle, enabled: c_uint) => cuGraphNodeSetEnabled;

    /// Whether a node of an executable graph is enabled.
    fn cudaGraphNodeGetEnabled(executable: Handle, node: Handle, enabled: Handle) => cuGraphNodeGetEnabled;

    /// Instantiates a graph. In CUDA 11 the function has parameters for a log instead of flags.
    fn cudaGraphInstantiate(executable: Handle, graph: Handle, third: u64) {
        let driver = context()?;
        let flags = if is_11() { 0 } else { third };
        of_driver((driver.cuGraphInstantiateWithFlags)(executable, graph, flags))
    }

    /// Instantiates a graph.
    fn cudaGraphInstantiateWithFlags(executable: Handle, graph: Handle, flags: u64) => cuGraphInstantiateWithFlags;

    /// Destroys an executable graph.
    fn cudaGraphExecDestroy(executable: Handle) => cuGraphExecDestroy;

    /// The flags of an executable graph's instantiation.
    fn cudaGraphExecGetFlags(executable: Handle, flags: Handle) => cuGraphExecGetFlags;

    /// Updates an executable graph with the parameters of another graph. In CUDA 11 the function has separate
    /// parameters for the node and the result.
    fn cudaGraphExecUpdate(executable: Handle, graph: Handle, third: Handle, fourth: Handle) {
        let driver = context()?;
        of_driver(if is_11() {
            (driver.cuGraphExecUpdate)(executable, graph, third, fourth)
        } else {
            (driver.cuGraphExecUpdate_v2)(executable, graph, third)
        })
    }

    /// Writes a graph to a file in the DOT language.
    fn cudaGraphDebugDotPrint(graph: Handle, path: Handle, flags: c_uint) => cuGraphDebugDotPrint;

    /// Copies the attributes of a kernel node to another.
    fn cudaGraphKernelNodeCopyAttributes(to: Handle, from: Handle) => cuGraphKernelNodeCopyAttributes;

    /// An attribute of a kernel node.
    fn cudaGraphKernelNodeGetAttribute(node: Handle, attribute: c_int, value: Handle) => cuGraphKernelNodeGetAttribute;

    /// Sets an attribute of a kernel node.
    fn cudaGraphKernelNodeSetAttribute(node: Handle, attribute: c_int, value: Handle) => cuGraphKernelNodeSetAttribute;

    /// An amount of memory that graphs use. The numbers of attributes are the driver's.
    fn cudaDeviceGetGraphMemAttribute(device: c_int, attribute: c_int, value: Handle) => cuDeviceGetGraphMemAttribute;

    /// Resets a high-water mark of the memory that graphs use.
    fn cudaDeviceSetGraphMemAttribute(device: c_int, attribute: c_int, value: Handle) => cuDeviceSetGraphMemAttribute;

    /// Releases memory that graphs do not use.
    fn cudaDeviceGraphMemTrim(device: c_int) => cuDeviceGraphMemTrim;

    /// Creates an object that graphs can keep alive.
    fn cudaUserObjectCreate(object: Handle, data: Handle, end: Handle, references: c_uint, flags: c_uint) => cuUserObjectCreate;

    /// Adds references to an object.
    fn cudaUserObjectRetain(object: Handle, count: c_uint) => cuUserObjectRetain;

    /// Releases references to an object.
    fn cudaUserObjectRelease(object: Handle, count: c_uint) => cuUserObjectRelease;

    /// Adds references from a graph to an object.
    fn cudaGraphRetainUserObject(graph: Handle, object: Handle, count: c_uint, flags: c_uint) => cuGraphRetainUserObject;

    /// Removes references from a graph to an object.
    fn cudaGraphReleaseUserObject(graph: Handle, object: Handle, count: c_uint) => cuGraphReleaseUserObject;

    /// Sets the thread's mode of capture.
    fn cudaThreadExchangeStreamCaptureMode(mode: Handle) => cuThreadExchangeStreamCaptureMode;

    /// The edges of a graph, with their data.
    fn cudaGraphGetEdges_v2(graph: Handle, from: Handle, to: Handle, edges: Handle, count: Handle) => cuGraphGetEdges_v2;

    /// The nodes that a node depends on, with the data of the edges.
    fn cudaGraphNodeGetDependencies_v2(node: Handle, before: Handle, edges: Handle, count: Handle) => cuGraphNodeGetDependencies_v2;

    /// The nodes that depend on a node, with the data of the edges.
    fn cudaGraphNodeGetDependentNodes_v2(node: Handle, behind: Handle, edges: Handle, count: Handle) => cuGraphNodeGetDependentNodes_v2;

    /// Adds edges to a graph, with their data.
    fn cudaGraphAddDependencies_v2(graph: Handle, from: Handle, to: Handle, edges: Handle, count: usize) => cuGraphAddDependencies_v2;

    /// Removes edges with the given data from a graph.
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

    /// Ends a capture, and returns its graph.
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

    /// Changes the dependencies of the next node of a captured stream.
    fn cudaStreamUpdateCaptureDependencies_v2 | cudaStreamUpdateCaptureDependencies_v2_ptsz as default (stream: Handle, nodes: Handle, edges: Handle, count: usize, flags: c_uint) {
        let driver = context()?;
        of_driver((driver.cuStreamUpdateCaptureDependencies_v2)(default.or(stream), nodes, edges, count, flags))
    }

    /// Launches a graph.
    fn cudaGraphLaunch | cudaGraphLaunch_ptsz as default (executable: Handle, stream: Handle) {
        let driver = context()?;
        of_driver((driver.cuGraphLaunch)(executable, default.or(stream)))
    }

    /// Uploads an executable graph to the device.
    fn cudaGraphUpload | cudaGraphUpload_ptsz as default (executable: Handle, stream: Handle) {
        let driver = context()?;
        of_driver((driver.cuGraphUpload)(executable, default.or(stream)))
    }

    /// The edges of a graph. In CUDA 13 the function has parameters for the data of edges, too.
    fn cudaGraphGetEdges(graph: Handle, from: Handle, to: Handle, third: Handle, fourth: Handle) {
        let driver = context()?;
        of_driver(if is_13(driver)? {
            (driver.cuGraphGetEdges_v2)(graph, from, to, third, fourth)
        } else {
            (driver.cuGraphGetEdges)(graph, from, to, third)
        })
    }

    /// The nodes that a node depends on. In CUDA 13 the function has parameters for the data of edges, too.
    fn cudaGraphNodeGetDependencies(node: Handle, before: Handle, third: Handle, fourth: Handle) {
        let driver = context()?;
        of_driver(if is_13(driver)? {
            (driver.cuGraphNodeGetDependencies_v2)(node, before, third, fourth)
        } else {
            (driver.cuGraphNodeGetDependencies)(node, before, third)
        })
    }

    /// The nodes that depend on a node. In CUDA 13 the function has parameters for the data of edges, too.
    fn cudaGraphNodeGetDependentNodes(node: Handle, behind: Handle, third: Handle, fourth: Handle) {
        let driver = context()?;
        of_driver(if is_13(driver)? {
            (driver.cuGraphNodeGetDependentNodes_v2)(node, behind, third, fourth)
        } else {
            (driver.cuGraphNodeGetDependentNodes)(node, behind, third)
        })
    }

    /// Adds edges to a graph. In CUDA 13 the function has parameters for the data of edges, too.
    fn cudaGraphAddDependencies(graph: Handle, from: Handle, to: Handle, third: Handle, fourth: Handle) {
        let driver = context()?;
        of_driver(if is_13(driver)? {
            (driver.cuGraphAddDependencies_v2)(graph, from, to, third, fourth.0)
        } else {
            (driver.cuGraphAddDependencies)(graph, from, to, third.0)
        })
    }

    /// Removes edges from a graph. In CUDA 13 the function has parameters for the data of edges, too.
    fn cudaGraphRemoveDependencies(graph: Handle, from: Handle, to: Handle, third: Handle, fourth: Handle) {
        let driver = context()?;
        of_driver(if is_13(driver)? {
            (driver.cuGraphRemoveDependencies_v2)(graph, from, to, third, fourth.0)
        } else {
            (driver.cuGraphRemoveDependencies)(graph, from, to, third.0)
        })
    }

    /// The capture that a stream takes part in. In CUDA 13 the function also returns its graph and edges.
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

    /// Changes the dependencies of the next node of a captured stream. In CUDA 13 the function has parameters
    /// for the data of edges, too.
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

    /// Instantiates a graph, and returns the outcome in the parameters.
    fn cudaGraphInstantiateWithParams | cudaGraphInstantiateWithParams_ptsz as default (
        executable: Handle, graph: Handle, params: Handle,
    ) {
        let driver = context()?;
        of_driver(match default {
            DefaultStream::Legacy => (driver.cuGraphInstantiateWithParams)(executable, graph, params),
            DefaultStream::PerThread => (driver.cuGraphInstantiateWithParams_ptsz)(executable, graph, params),
        })
    }

    /// Creates the value that decides which bodies of a conditional node run.
    fn cudaGraphConditionalHandleCreate(handle: Handle, graph: Handle, default: c_uint, flags: c_uint) {
        let driver = context()?;
        of_driver((driver.cuGraphConditionalHandleCreate)(handle, graph, Handle(0), default, flags))
    }

    /// Adds a memset node.
    fn cudaGraphAddMemsetNode(node: Handle, graph: Handle, after: Handle, count: usize, params: Handle) {
        let driver = context()?;
        of_driver((driver.cuGraphAddMemsetNode)(node, graph, after, count, params, Handle(0)))
    }

    /// Sets the parameters of a memset node in an executable graph.
    fn cudaGraphExecMemsetNodeSetParams(executable: Handle, node: Handle, params: Handle) {
        let driver = context()?;
        of_driver((driver.cuGraphExecMemsetNodeSetParams)(executable, node, params, Handle(0)))
    }

    /// Adds a kernel node.
    fn cudaGraphAddKernelNode(node: Handle, graph: Handle, after: Handle, count: usize, params: In<Kernel>) {
        let driver = context()?;
        let params = Kernel::to_driver(params)?;
        of_driver((driver.cuGraphAddKernelNode)(node, graph, after, count, &params))
    }

    /// The parameters of a kernel node.
    fn cudaGraphKernelNodeGetParams(node: Handle, params: Out<Kernel>) {
        let driver = context()?;
        let mut found = Kernel::NONE;
        of_driver((driver.cuGraphKernelNodeGetParams)(node, &mut found))?;
        params.set(Kernel { function: stub(found.function), ..found })
    }

    /// Sets the parameters of a kernel node.
    fn cudaGraphKernelNodeSetParams(node: Handle, params: In<Kernel>) {
        let driver = context()?;
        let params = Kernel::to_driver(params)?;
        of_driver((driver.cuGraphKernelNodeSetParams)(node, &params))
    }

    /// Sets the parameters of a kernel node in an executable graph.
    fn cudaGraphExecKernelNodeSetParams(executable: Handle, node: Handle, params: In<Kernel>) {
        let driver = context()?;
        let params = Kernel::to_driver(params)?;
        of_driver((driver.cuGraphExecKernelNodeSetParams)(executable, node, &params))
    }

    /// Adds a memcpy node.
    fn cudaGraphAddMemcpyNode(node: Handle, graph: Handle, after: Handle, count: usize, params: In<Parameters3D>) {
        let driver = context()?;
        let copy = driver_copy(driver, params.get()?)?;
        of_driver((driver.cuGraphAddMemcpyNode)(node, graph, after, count, &copy, Handle(0)))
    }

    /// Sets the parameters of a memcpy node.
    fn cudaGraphMemcpyNodeSetParams(node: Handle, params: In<Parameters3D>) {
        let driver = context()?;
        let copy = driver_copy(driver, params.get()?)?;
        of_driver((driver.cuGraphMemcpyNodeSetParams)(node, &copy))
    }

    /// Sets the parameters of a memcpy node in an executable graph.
    fn cudaGraphExecMemcpyNodeSetParams(executable: Handle, node: Handle, params: In<Parameters3D>) {
        let driver = context()?;
        let copy = driver_copy(driver, params.get()?)?;
        of_driver((driver.cuGraphExecMemcpyNodeSetParams)(executable, node, &copy, Handle(0)))
    }

    /// Adds a memcpy node for contiguous bytes.
    fn cudaGraphAddMemcpyNode1D(
        node: Handle, graph: Handle, after: Handle, count: usize, to: Handle, from: Handle, bytes: usize, kind: c_int,
    ) {
        let driver = context()?;
        let copy = line(to, from, bytes, kind)?;
        of_driver((driver.cuGraphAddMemcpyNode)(node, graph, after, count, &copy, Handle(0)))
    }

    /// Sets the parameters of a memcpy node, for contiguous bytes.
    fn cudaGraphMemcpyNodeSetParams1D(node: Handle, to: Handle, from: Handle, bytes: usize, kind: c_int) {
        let driver = context()?;
        of_driver((driver.cuGraphMemcpyNodeSetParams)(node, &line(to, from, bytes, kind)?))
    }

    /// Sets the parameters of a memcpy node in an executable graph, for contiguous bytes.
    fn cudaGraphExecMemcpyNodeSetParams1D(
        executable: Handle, node: Handle, to: Handle, from: Handle, bytes: usize, kind: c_int,
    ) {
        let driver = context()?;
        let copy = line(to, from, bytes, kind)?;
        of_driver((driver.cuGraphExecMemcpyNodeSetParams)(executable, node, &copy, Handle(0)))
    }
}
