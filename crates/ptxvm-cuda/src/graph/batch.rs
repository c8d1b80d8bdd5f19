//! Nodes that wait for numbers in memory and write numbers.
//!
//! Invariant: structures that a program was shown stay valid until the node's parameters are changed.

use super::add::add;
use super::node::Work;
use super::parameters::{get, set, set_in};
use crate::driver::{Driver, driver};
use crate::entry::entries;
use crate::ffi::{In, Out, Pointer};
use crate::handles::Handle;
use crate::memory_operations::{Batch, MOST, Words};
use crate::status::Status;
use std::ffi::c_uint;

/// `CUDA_BATCH_MEM_OP_NODE_PARAMS`
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct BatchParams {
    context: Handle,
    count: c_uint,
    operations: In<Words>,
    flags: c_uint,
}

/// The work of a node.
///
/// # Errors
/// `CUDA_ERROR_INVALID_VALUE`, `CUDA_ERROR_INVALID_CONTEXT`.
pub(super) fn work_of(driver: &Driver, given: In<BatchParams>) -> Result<Work, Status> {
    let BatchParams { context, count, operations, flags } = given.get()?;
    if flags != 0 || count > MOST {
        return Err(Status::InvalidValue);
    }
    // The node runs in the context of its launch, but the program names one.
    crate::context::named_or_current(context)?;
    Ok(Work::Batch(Batch::new(&driver.vm, context, &operations.all(count as usize)?)?))
}

/// The parameters of a node.
pub(super) fn params_of(batch: &Batch) -> BatchParams {
    let operations = Pointer::of_values(batch.shown()).values();
    BatchParams { context: batch.context(), count: batch.shown().len() as c_uint, operations, flags: 0 }
}

entries! { ENTRIES;
    /// Adds a node that waits for numbers in memory and writes numbers.
    fn cuGraphAddBatchMemOpNode(
        node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, params: In<BatchParams>,
    ) {
        add(node, graph, (after, count), work_of(driver()?, params)?)
    }

    /// The parameters of a node for memory operations.
    fn cuGraphBatchMemOpNodeGetParams(node: Handle, params: Out<BatchParams>) {
        params.check()?;
        match get(node)? {
            Work::Batch(batch) => params.set(params_of(&batch)),
            _ => Err(Status::InvalidValue),
        }
    }

    /// Sets the parameters of a node for memory operations.
    fn cuGraphBatchMemOpNodeSetParams(node: Handle, params: In<BatchParams>) {
        set(node, work_of(driver()?, params)?)
    }

    /// Sets the parameters of a node for memory operations in an executable graph.
    fn cuGraphExecBatchMemOpNodeSetParams(executable: Handle, node: Handle, params: In<BatchParams>) {
        set_in(executable, node, work_of(driver()?, params)?)
    }
}
