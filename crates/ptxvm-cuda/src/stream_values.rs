//! Waits for numbers in memory and writes of numbers, in streams.
//!
//! Invariant: a batch is checked completely before any operation of it is submitted. What it does not do: the
//! operations are in `memory_operations`, and nodes of graphs for them in `graph::batch`.

use crate::entry::{DefaultStream, entries};
use crate::ffi::In;
use crate::graph::Work;
use crate::handles::Handle;
use crate::memory_operations::{Batch, MOST, WAIT_32, WAIT_64, WRITE_32, WRITE_64, Words};
use crate::status::{Answer, Status};
use crate::stream::queue;
use std::ffi::c_uint;
use std::sync::Arc;

/// Submits operations to a stream.
fn submit((stream, default): (Handle, DefaultStream), words: &[Words]) -> Answer {
    let (driver, queue) = queue(stream, default)?;
    let batch = Batch::new(&driver.vm, queue.context.handle, words)?;
    if let Some(added) = queue.captured(|| Ok(Work::Batch(Arc::clone(&batch)))) {
        return added;
    }
    let context = Arc::clone(&queue.context);
    queue.submit(move || {
        let epoch = context.health.epoch();
        batch.run(&driver.vm, || !epoch.is_over())
    })
}

fn one(stream: (Handle, DefaultStream), kind: u32, address: u64, value: u64, flags: c_uint) -> Answer {
    submit(stream, &[[kind.into(), address, value, flags.into(), 0, 0]])
}

fn many(stream: (Handle, DefaultStream), count: c_uint, operations: In<Words>, flags: c_uint) -> Answer {
    queue(stream.0, stream.1)?;
    if flags != 0 || count > MOST {
        return Err(Status::InvalidValue);
    }
    submit(stream, &operations.all(count as usize)?)
}

entries! { ENTRIES;
    /// Waits until a number in memory satisfies a condition.
    fn cuStreamWaitValue32_v2 | cuStreamWaitValue32_v2_ptsz as default (stream: Handle, address: u64, value: u32, flags: c_uint) {
        one((stream, default), WAIT_32, address, value.into(), flags)
    }

    /// Waits until a number in memory satisfies a condition.
    fn cuStreamWaitValue64_v2 | cuStreamWaitValue64_v2_ptsz as default (stream: Handle, address: u64, value: u64, flags: c_uint) {
        one((stream, default), WAIT_64, address, value, flags)
    }

    /// Writes a number to memory.
    fn cuStreamWriteValue32_v2 | cuStreamWriteValue32_v2_ptsz as default (stream: Handle, address: u64, value: u32, flags: c_uint) {
        one((stream, default), WRITE_32, address, value.into(), flags)
    }

    /// Writes a number to memory.
    fn cuStreamWriteValue64_v2 | cuStreamWriteValue64_v2_ptsz as default (stream: Handle, address: u64, value: u64, flags: c_uint) {
        one((stream, default), WRITE_64, address, value, flags)
    }

    /// Waits for numbers in memory and writes numbers, in order.
    fn cuStreamBatchMemOp_v2 | cuStreamBatchMemOp_v2_ptsz as default (stream: Handle, count: c_uint, operations: In<Words>, flags: c_uint) {
        many((stream, default), count, operations, flags)
    }
}
