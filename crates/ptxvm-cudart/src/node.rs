//! Nodes of graphs of any type: `cudaGraphNodeParams`, a type and a union of the parameters of each type.
//!
//! The driver's structure has the same size and, except for kernels and copies, the same contents.
//!
//! Invariant: the function of a kernel node is the host stub that the program launches, if the kernel has
//! one.

use crate::array::{Parameters3D, driver_copy, line, runtime_copy};
use crate::device::context;
use crate::driver::Driver;
use crate::entry::runtime;
use crate::error::{Answer, Status, of_driver};
use crate::ffi::{Handle, In, Out};
use crate::registry::{function, stub};
use crate::structures::Copy3D;
use crate::symbol::part;
use crate::version::is_13;
use std::ffi::{c_int, c_uint};

/// `cudaGraphNodeParams` and `CUgraphNodeParams` as words: the type, a reserved word, the union.
type Words = [u64; 32];

/// The index of the union's first word.
const UNION: usize = 2;
/// The words of a kernel's parameters that both structures have, from the grid to the list of extra
/// parameters, and the driver's later words: a `CUkernel` and a context.
const KERNEL_TAIL: std::ops::Range<usize> = UNION + 7..32;
/// The index of a copy's first word in the union: it follows the flags and a context.
const COPY: usize = UNION + 2;

/// The types of nodes that are not passed on unchanged.
const KERNEL: u32 = 0;
const MEMCPY: u32 = 1;
const ALLOCATE: u32 = 10;
const CONDITION: u32 = 13;

/// The parameters of a node for the driver.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Node(Words);

impl Node {
    const NONE: Self = Self([0; 32]);

    fn kind(&self) -> u32 {
        self.0[0] as u32
    }

    /// The program's parameters in the driver's form.
    fn of(driver: &Driver, given: Out<Self>) -> Result<Self, Status> {
        let mut node = In::<Self>::at(given.address()).get()?;
        match node.kind() {
            KERNEL => {
                node.0[UNION] = function(Handle(node.0[UNION] as usize))?.0 as u64;
                node.0[KERNEL_TAIL].fill(0);
            }
            MEMCPY => {
                let copy = In::<Parameters3D>::at(given.address() + COPY * size_of::<u64>()).get()?;
                let words: [u64; 25] = driver_copy(driver, copy)?.to_words();
                node.0[UNION..].fill(0);
                node.0[COPY..COPY + words.len()].copy_from_slice(&words);
            }
            _ => {}
        }
        Ok(node)
    }

    /// Writes what the driver has added to the parameters: addresses of memory, bodies of a condition.
    fn give_back(&self, given: Out<Self>) -> Answer {
        if matches!(self.kind(), ALLOCATE | CONDITION) { given.set(*self) } else { Ok(()) }
    }

    fn add(
        node: Handle,
        graph: Handle,
        (after, edges, count): (Handle, Handle, usize),
        given: Out<Self>,
    ) -> Answer {
        let driver = context()?;
        let mut params = Self::of(driver, given)?;
        of_driver((driver.cuGraphAddNode_v2)(node, graph, after, edges, count, &mut params.0))?;
        params.give_back(given)
    }
}

/// The driver's copy to or from a variable.
fn to_symbol(
    symbol: Handle,
    from: Handle,
    (bytes, offset): (usize, usize),
    kind: c_int,
) -> Result<Copy3D, Status> {
    line(part(symbol, bytes, offset)?, from, bytes, kind)
}

fn from_symbol(
    to: Handle,
    symbol: Handle,
    (bytes, offset): (usize, usize),
    kind: c_int,
) -> Result<Copy3D, Status> {
    line(to, part(symbol, bytes, offset)?, bytes, kind)
}

runtime! {
    /// Adds a node of any type. In CUDA 13 the function has a parameter for the data of edges, too.
    fn cudaGraphAddNode(node: Handle, graph: Handle, after: Handle, third: Handle, fourth: Handle, fifth: Out<Node>) {
        if is_13(context()?)? {
            Node::add(node, graph, (after, third, fourth.0), fifth)
        } else {
            Node::add(node, graph, (after, Handle(0), third.0), Out::at(fourth.0))
        }
    }

    /// Adds a node of any type, with the data of its edges.
    fn cudaGraphAddNode_v2(
        node: Handle, graph: Handle, after: Handle, edges: Handle, count: usize, params: Out<Node>,
    ) {
        Node::add(node, graph, (after, edges, count), params)
    }

    /// The parameters of a node of any type.
    fn cudaGraphNodeGetParams(node: Handle, params: Out<Node>) {
        let driver = context()?;
        let mut found = Node::NONE;
        of_driver((driver.cuGraphNodeGetParams)(node, &mut found.0))?;
        match found.kind() {
            KERNEL => {
                found.0[UNION] = stub(Handle(found.0[UNION] as usize)).0 as u64;
                found.0[KERNEL_TAIL].fill(0);
            }
            MEMCPY => {
                let copy = Copy3D::of_words(&found.0[COPY..]).ok_or(Status::UNKNOWN)?;
                let copy = runtime_copy(driver, &copy)?;
                found.0[UNION..].fill(0);
                params.set(found)?;
                return Out::<Parameters3D>::at(params.address() + COPY * size_of::<u64>()).set(copy);
            }
            _ => {}
        }
        params.set(found)
    }

    /// Sets the parameters of a node of any type.
    fn cudaGraphNodeSetParams(node: Handle, params: Out<Node>) {
        let driver = context()?;
        let mut params = Node::of(driver, params)?;
        of_driver((driver.cuGraphNodeSetParams)(node, &mut params.0))
    }

    /// Sets the parameters of a node of any type in an executable graph.
    fn cudaGraphExecNodeSetParams(executable: Handle, node: Handle, params: Out<Node>) {
        let driver = context()?;
        let mut params = Node::of(driver, params)?;
        of_driver((driver.cuGraphExecNodeSetParams)(executable, node, &mut params.0))
    }

    /// The parameters of a memcpy node.
    fn cudaGraphMemcpyNodeGetParams(node: Handle, params: Out<Parameters3D>) {
        let driver = context()?;
        let mut copy = Copy3D::default();
        of_driver((driver.cuGraphMemcpyNodeGetParams)(node, &mut copy))?;
        params.set(runtime_copy(driver, &copy)?)
    }

    /// Adds a memcpy node that writes to a variable.
    fn cudaGraphAddMemcpyNodeToSymbol(
        node: Handle, graph: Handle, after: Handle, count: usize, symbol: Handle, from: Handle, bytes: usize,
        offset: usize, kind: c_int,
    ) {
        let driver = context()?;
        let copy = to_symbol(symbol, from, (bytes, offset), kind)?;
        of_driver((driver.cuGraphAddMemcpyNode)(node, graph, after, count, &copy, Handle(0)))
    }

    /// Adds a memcpy node that reads from a variable.
    fn cudaGraphAddMemcpyNodeFromSymbol(
        node: Handle, graph: Handle, after: Handle, count: usize, to: Handle, symbol: Handle, bytes: usize,
        offset: usize, kind: c_int,
    ) {
        let driver = context()?;
        let copy = from_symbol(to, symbol, (bytes, offset), kind)?;
        of_driver((driver.cuGraphAddMemcpyNode)(node, graph, after, count, &copy, Handle(0)))
    }

    /// Sets the parameters of a memcpy node, for a write to a variable.
    fn cudaGraphMemcpyNodeSetParamsToSymbol(
        node: Handle, symbol: Handle, from: Handle, bytes: usize, offset: usize, kind: c_int,
    ) {
        let driver = context()?;
        of_driver((driver.cuGraphMemcpyNodeSetParams)(node, &to_symbol(symbol, from, (bytes, offset), kind)?))
    }

    /// Sets the parameters of a memcpy node, for a read from a variable.
    fn cudaGraphMemcpyNodeSetParamsFromSymbol(
        node: Handle, to: Handle, symbol: Handle, bytes: usize, offset: usize, kind: c_int,
    ) {
        let driver = context()?;
        of_driver((driver.cuGraphMemcpyNodeSetParams)(node, &from_symbol(to, symbol, (bytes, offset), kind)?))
    }

    /// Sets the parameters of a memcpy node in an executable graph, for a write to a variable.
    fn cudaGraphExecMemcpyNodeSetParamsToSymbol(
        executable: Handle, node: Handle, symbol: Handle, from: Handle, bytes: usize, offset: usize, kind: c_int,
    ) {
        let driver = context()?;
        let copy = to_symbol(symbol, from, (bytes, offset), kind)?;
        of_driver((driver.cuGraphExecMemcpyNodeSetParams)(executable, node, &copy, Handle(0)))
    }

    /// Sets the parameters of a memcpy node in an executable graph, for a read from a variable.
    fn cudaGraphExecMemcpyNodeSetParamsFromSymbol(
        executable: Handle, node: Handle, to: Handle, symbol: Handle, bytes: usize, offset: usize, kind: c_int,
    ) {
        let driver = context()?;
        let copy = from_symbol(to, symbol, (bytes, offset), kind)?;
        of_driver((driver.cuGraphExecMemcpyNodeSetParams)(executable, node, &copy, Handle(0)))
    }

    /// The number of a graph.
    fn cudaGraphGetId(graph: Handle, number: Handle) => cuGraphGetId;

    /// The number of an executable graph.
    fn cudaGraphExecGetId(executable: Handle, number: Handle) => cuGraphExecGetId;

    /// The graph that contains a node.
    fn cudaGraphNodeGetContainingGraph(node: Handle, graph: Handle) => cuGraphNodeGetContainingGraph;

    /// The number of a node in its graph.
    fn cudaGraphNodeGetLocalId(node: Handle, number: Handle) => cuGraphNodeGetLocalId;

    /// The number of a node in the process.
    fn cudaGraphNodeGetToolsId(node: Handle, number: Handle) => cuGraphNodeGetToolsId;

    /// Creates the value that decides which bodies of a conditional node run, in a context.
    fn cudaGraphConditionalHandleCreate_v2(
        handle: Handle, graph: Handle, within: Handle, default: c_uint, flags: c_uint,
    ) {
        let driver = context()?;
        of_driver((driver.cuGraphConditionalHandleCreate)(handle, graph, within, default, flags))
    }
}
