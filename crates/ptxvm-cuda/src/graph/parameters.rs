//! Parameters of nodes in graphs and in executable graphs: functions that read and set them.
//!
//! Invariant: a node keeps its type, and parameters that a program was shown stay valid until they are
//! changed.

use super::add::{child, forget};
use super::node::{CopyNode, HostParams, KernelNode, KernelParams, KernelParams2, Set, Work, event};
use super::{Handle, graph_of};
use crate::copy_box::Copy3d;
use crate::driver::driver;
use crate::entry::entries;
use crate::ffi::{In, Out};
use crate::launch::check_attribute;
use crate::status::{Answer, Status};
use std::ffi::{c_int, c_uint};
use std::sync::Arc;

/// `CUlaunchAttributeValue`
type Value = [u64; 8];

/// The work of a node.
pub(super) fn get(node: Handle) -> Result<Work, Status> {
    let graph = graph_of(driver()?, node)?;
    let work = graph.nodes().get(node)?.work.clone();
    Ok(work)
}

/// Replaces a node's work by work of the same type. If that fails, graphs that the new work owns are
/// destroyed.
pub(super) fn set(node: Handle, work: Work) -> Answer {
    let owned = work.clone();
    replace(node, work).inspect_err(|_| forget(&owned))
}

fn replace(node: Handle, work: Work) -> Answer {
    let graph = graph_of(driver()?, node)?;
    let mut nodes = graph.nodes();
    let found = nodes.get_mut(node)?;
    if found.work.kind() != work.kind() {
        return Err(Status::InvalidValue);
    }
    let before = std::mem::replace(&mut found.work, work);
    drop(nodes);
    forget(&before);
    Ok(())
}

fn get_kernel(node: Handle) -> Result<Arc<KernelNode>, Status> {
    match get(node)? {
        Work::Kernel(kernel) => Ok(kernel),
        _ => Err(Status::InvalidValue),
    }
}

/// A launch with the attributes of the previous one, which the functions for parameters do not pass.
fn keep_attributes(node: Handle, work: Work) -> Result<Work, Status> {
    let before = get_kernel(node)?;
    Ok(match work {
        Work::Kernel(kernel) => {
            Work::Kernel(Arc::new(kernel.with(before.attributes.clone(), before.size.cooperative)))
        }
        other => other,
    })
}

/// Replaces the work of a node of an executable graph by work of the same type.
pub(super) fn set_in(executable: Handle, node: Handle, work: Work) -> Answer {
    let owned = work.clone();
    let answer = driver()?.executables.get(executable).and_then(|found| found.set(node, work));
    // No node owns these graphs: the executable graph has copies of its own.
    forget(&owned);
    answer
}

entries! { ENTRIES;
    /// The parameters of a kernel node.
    fn cuGraphKernelNodeGetParams(node: Handle, params: Out<KernelParams>) {
        params.check()?;
        params.set(get_kernel(node)?.shown())
    }

    /// The parameters of a kernel node.
    fn cuGraphKernelNodeGetParams_v2(node: Handle, params: Out<KernelParams2>) {
        params.check()?;
        params.set(get_kernel(node)?.shown_second())
    }

    /// Sets the parameters of a kernel node.
    fn cuGraphKernelNodeSetParams(node: Handle, params: In<KernelParams>) {
        let work = KernelNode::of(driver()?, params)?;
        set(node, keep_attributes(node, work)?)
    }

    /// Sets the parameters of a kernel node.
    fn cuGraphKernelNodeSetParams_v2(node: Handle, params: In<KernelParams2>) {
        let work = KernelNode::of_second(driver()?, params)?;
        set(node, keep_attributes(node, work)?)
    }

    /// An attribute of a kernel node.
    fn cuGraphKernelNodeGetAttribute(node: Handle, attribute: c_int, value: Out<Value>) {
        value.check()?;
        let found = get_kernel(node)?;
        check_attribute(attribute, &[0; 8])?;
        let cooperative = [u64::from(found.size.cooperative), 0, 0, 0, 0, 0, 0, 0];
        let is_cooperative = attribute == super::node::COOPERATIVE;
        let otherwise = if is_cooperative { cooperative } else { [0; 8] };
        value.set(found.attributes.get(&attribute).copied().unwrap_or(otherwise))
    }

    /// Sets an attribute of a kernel node.
    fn cuGraphKernelNodeSetAttribute(node: Handle, attribute: c_int, value: In<Value>) {
        let found = get_kernel(node)?;
        let value = value.get()?;
        check_attribute(attribute, &value)?;
        let mut attributes = found.attributes.clone();
        attributes.insert(attribute, value);
        set(node, Work::Kernel(Arc::new(found.with(attributes, found.size.cooperative))))
    }

    /// Copies the attributes of a kernel node to another.
    fn cuGraphKernelNodeCopyAttributes(to: Handle, from: Handle) {
        let (to_node, from_node) = (get_kernel(to)?, get_kernel(from)?);
        let copy = to_node.with(from_node.attributes.clone(), from_node.size.cooperative);
        set(to, Work::Kernel(Arc::new(copy)))
    }

    /// The parameters of a memcpy node.
    fn cuGraphMemcpyNodeGetParams(node: Handle, params: Out<Copy3d>) {
        params.check()?;
        match get(node)? {
            Work::Copy(copy) => params.set(copy.copy),
            _ => Err(Status::InvalidValue),
        }
    }

    /// Sets the parameters of a memcpy node.
    fn cuGraphMemcpyNodeSetParams(node: Handle, params: In<Copy3d>) {
        set(node, CopyNode::of(driver()?, params.get()?)?)
    }

    /// The parameters of a memset node.
    fn cuGraphMemsetNodeGetParams(node: Handle, params: Out<Set>) {
        params.check()?;
        match get(node)? {
            Work::Set(found) => params.set(found),
            _ => Err(Status::InvalidValue),
        }
    }

    /// Sets the parameters of a memset node.
    fn cuGraphMemsetNodeSetParams(node: Handle, params: In<Set>) {
        set(node, Set::of(params)?)
    }

    /// The parameters of a host node.
    fn cuGraphHostNodeGetParams(node: Handle, params: Out<HostParams>) {
        params.check()?;
        match get(node)? {
            Work::Host(function, data) => params.set(HostParams { function, data }),
            _ => Err(Status::InvalidValue),
        }
    }

    /// Sets the parameters of a host node.
    fn cuGraphHostNodeSetParams(node: Handle, params: In<HostParams>) {
        set(node, HostParams::of(params)?)
    }

    /// The graph of a child graph node.
    fn cuGraphChildGraphNodeGetGraph(node: Handle, graph: Out<Handle>) {
        graph.check()?;
        match get(node)? {
            Work::Child(child) => graph.set(child.handle),
            _ => Err(Status::InvalidValue),
        }
    }

    /// The event that a node records.
    fn cuGraphEventRecordNodeGetEvent(node: Handle, found: Out<Handle>) {
        found.check()?;
        match get(node)? {
            Work::Record(handle, _) => found.set(handle),
            _ => Err(Status::InvalidValue),
        }
    }

    /// Sets the event that a node records.
    fn cuGraphEventRecordNodeSetEvent(node: Handle, event: Handle) {
        let (handle, event) = self::event(driver()?, event)?;
        set(node, Work::Record(handle, event))
    }

    /// The event that a node waits for.
    fn cuGraphEventWaitNodeGetEvent(node: Handle, found: Out<Handle>) {
        found.check()?;
        match get(node)? {
            Work::Wait(handle, _) => found.set(handle),
            _ => Err(Status::InvalidValue),
        }
    }

    /// Sets the event that a node waits for.
    fn cuGraphEventWaitNodeSetEvent(node: Handle, event: Handle) {
        let (handle, event) = self::event(driver()?, event)?;
        set(node, Work::Wait(handle, event))
    }

    /// Sets the parameters of a kernel node in an executable graph.
    fn cuGraphExecKernelNodeSetParams(executable: Handle, node: Handle, params: In<KernelParams>) {
        set_in(executable, node, KernelNode::of(driver()?, params)?)
    }

    /// Sets the parameters of a kernel node in an executable graph.
    fn cuGraphExecKernelNodeSetParams_v2(executable: Handle, node: Handle, params: In<KernelParams2>) {
        set_in(executable, node, KernelNode::of_second(driver()?, params)?)
    }

    /// Sets the parameters of a memcpy node in an executable graph.
    fn cuGraphExecMemcpyNodeSetParams(executable: Handle, node: Handle, params: In<Copy3d>, _context: Handle) {
        set_in(executable, node, CopyNode::of(driver()?, params.get()?)?)
    }

    /// Sets the parameters of a memset node in an executable graph.
    fn cuGraphExecMemsetNodeSetParams(executable: Handle, node: Handle, params: In<Set>, _context: Handle) {
        set_in(executable, node, Set::of(params)?)
    }

    /// Sets the parameters of a host node in an executable graph.
    fn cuGraphExecHostNodeSetParams(executable: Handle, node: Handle, params: In<HostParams>) {
        set_in(executable, node, HostParams::of(params)?)
    }

    /// Sets the graph of a child node in an executable graph. It must have the same nodes and edges.
    fn cuGraphExecChildGraphNodeSetParams(executable: Handle, node: Handle, graph: Handle) {
        set_in(executable, node, child(driver()?, graph)?)
    }

    /// Sets the event that a node of an executable graph records.
    fn cuGraphExecEventRecordNodeSetEvent(executable: Handle, node: Handle, event: Handle) {
        let (handle, event) = self::event(driver()?, event)?;
        set_in(executable, node, Work::Record(handle, event))
    }

    /// Sets the event that a node of an executable graph waits for.
    fn cuGraphExecEventWaitNodeSetEvent(executable: Handle, node: Handle, event: Handle) {
        let (handle, event) = self::event(driver()?, event)?;
        set_in(executable, node, Work::Wait(handle, event))
    }

    /// Enables or disables a node of an executable graph.
    fn cuGraphNodeSetEnabled(executable: Handle, node: Handle, enabled: c_uint) {
        driver()?.executables.get(executable)?.enable(node, enabled != 0)
    }

    /// Whether a node of an executable graph is enabled.
    fn cuGraphNodeGetEnabled(executable: Handle, node: Handle, enabled: Out<c_uint>) {
        enabled.check()?;
        enabled.set(driver()?.executables.get(executable)?.is_enabled(node)?.into())
    }
}
