//! Several waits for and writes of numbers in memory, in one call.
//!
//! Invariant: a batch is checked completely before any operation is submitted.

use crate::entry::entries;
use crate::ffi::In;
use crate::handles::Handle;
use crate::status::{Answer, Status};
use crate::stream::{Number, check_number, queue, wait_value, write_value};
use std::ffi::c_uint;

/// `CUstreamBatchMemOpParams`
#[derive(Clone, Copy)]
#[repr(C)]
struct Operation {
    kind: c_uint,
    /// The flags of an operation without an address.
    _flags: c_uint,
    address: u64,
    value: u64,
    flags: c_uint,
    _rest: [u64; 2],
}

/// Most operations of a batch, as documented.
const MOST: c_uint = 256;
/// `CU_STREAM_MEM_OP_*`
const WAIT_32: c_uint = 1;
const WRITE_32: c_uint = 2;
const FLUSH: c_uint = 3;
const WAIT_64: c_uint = 4;
const WRITE_64: c_uint = 5;
const BARRIER: c_uint = 6;

impl Operation {
    /// The number that the operation waits for or writes; `None` for flushes and barriers, which have no
    /// effect.
    fn number(&self) -> Result<Option<Number>, Status> {
        let bytes = match self.kind {
            WAIT_32 | WRITE_32 => 4,
            WAIT_64 | WRITE_64 => 8,
            FLUSH | BARRIER => return Ok(None),
            _ => return Err(Status::InvalidValue),
        };
        let value = if bytes == 4 { self.value & u64::from(u32::MAX) } else { self.value };
        Ok(Some(Number { address: self.address, bytes, value, flags: self.flags }))
    }

    fn waits(&self) -> bool {
        matches!(self.kind, WAIT_32 | WAIT_64)
    }
}

entries! { ENTRIES;
    /// Waits for numbers in memory and writes numbers, in order.
    fn cuStreamBatchMemOp_v2 | cuStreamBatchMemOp_v2_ptsz as default (
        stream: Handle, count: c_uint, operations: In<Operation>, flags: c_uint,
    ) {
        let (driver, queue) = queue(stream, default)?;
        if flags != 0 || count > MOST {
            return Err(Status::InvalidValue);
        }
        let mut batch = Vec::new();
        for operation in operations.all(count as usize)? {
            if let Some(number) = operation.number()? {
                check_number(driver, &number, operation.waits())?;
                batch.push((number, operation.waits()));
            }
        }
        batch.into_iter().try_for_each(|(number, waits)| -> Answer {
            if waits { wait_value(&queue, driver, number) } else { write_value(&queue, driver, number) }
        })
    }
}
