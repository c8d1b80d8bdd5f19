//! Waits for numbers in memory and writes of numbers, in batches.
//!
//! Invariant: a batch is checked completely when it is made, and its operations run in order. Flushes and
//! barriers have no effect, because all memory is coherent.

use crate::handles::Handle;
use crate::status::{Answer, Status};
use ptxvm::{Access, Vm};
use std::ffi::c_uint;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// `CUstreamBatchMemOpParams`: the kind, the address, the value, the flags, and unused words.
pub(crate) type Words = [u64; 6];

/// Most operations of a batch, as documented.
pub(crate) const MOST: c_uint = 256;
/// `CU_STREAM_MEM_OP_*`
pub(crate) const WAIT_32: u32 = 1;
pub(crate) const WRITE_32: u32 = 2;
const FLUSH: u32 = 3;
pub(crate) const WAIT_64: u32 = 4;
pub(crate) const WRITE_64: u32 = 5;
const BARRIER: u32 = 6;

/// A wait for a number, or a write of a number.
#[derive(Clone, Copy)]
struct Operation {
    address: u64,
    /// The size of the number: 4 or 8 bytes.
    bytes: usize,
    value: u64,
    flags: c_uint,
    waits: bool,
}

impl Operation {
    /// The operation of a structure; `None` for flushes and barriers.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE`.
    fn of(words: &Words) -> Result<Option<Self>, Status> {
        let [kind, address, value, flags, ..] = *words;
        let kind = kind as u32;
        let (bytes, value) = match kind {
            WAIT_32 | WRITE_32 => (4, value & u64::from(u32::MAX)),
            WAIT_64 | WRITE_64 => (8, value),
            FLUSH | BARRIER => return Ok(None),
            _ => return Err(Status::InvalidValue),
        };
        let waits = matches!(kind, WAIT_32 | WAIT_64);
        Ok(Some(Self { address, bytes, value, flags: flags as c_uint, waits }))
    }

    /// Fails if the number cannot be waited for or written.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE`.
    fn check(&self, vm: &Vm) -> Answer {
        let (access, known) = if self.waits { (Access::Read, 7) } else { (Access::ReadWrite, 1) };
        let size = self.bytes as u64;
        let inside = vm.permits(self.address, size, access) && self.address.is_multiple_of(size);
        if inside && self.flags & !known == 0 { Ok(()) } else { Err(Status::InvalidValue) }
    }

    /// Whether a number satisfies the condition: greater or equal (cyclic), equal, and, nor.
    fn holds(&self, found: u64) -> bool {
        let value = self.value;
        match (self.flags & 3, self.bytes) {
            (0, 4) => (found as u32).wrapping_sub(value as u32) as i32 >= 0,
            (0, _) => found.wrapping_sub(value) as i64 >= 0,
            (1, _) => found == value,
            (2, _) => found & value != 0,
            (_, 4) => !(found as u32 | value as u32) != 0,
            _ => !(found | value) != 0,
        }
    }

    fn run(&self, vm: &Vm, go_on: impl Fn() -> bool) -> Answer {
        if !self.waits {
            let value = self.value.to_le_bytes();
            return vm.write(self.address, &value[..self.bytes]).map_err(|_| Status::IllegalAddress);
        }
        let mut found = [0; 8];
        while go_on() {
            let read = vm.read(self.address, &mut found[..self.bytes]);
            read.map_err(|_| Status::IllegalAddress)?;
            if self.holds(u64::from_le_bytes(found)) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_micros(50));
        }
        Ok(())
    }
}

/// Operations that run in order.
pub(crate) struct Batch {
    operations: Vec<Operation>,
    context: Handle,
    /// A copy of the structures that programs can read and write.
    shown: Box<[[AtomicU64; 6]]>,
}

impl Batch {
    /// The operations of these structures.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE`.
    pub(crate) fn new(vm: &Vm, context: Handle, words: &[Words]) -> Result<Arc<Self>, Status> {
        let mut operations = Vec::new();
        for words in words {
            if let Some(operation) = Operation::of(words)? {
                operation.check(vm)?;
                operations.push(operation);
            }
        }
        let shown = words.iter().map(|words| words.map(AtomicU64::new)).collect();
        Ok(Arc::new(Self { operations, context, shown }))
    }

    /// The context that the program named.
    pub(crate) fn context(&self) -> Handle {
        self.context
    }

    /// The structures. Programs can read and write them as long as the batch lives.
    pub(crate) fn shown(&self) -> &[[AtomicU64; 6]] {
        &self.shown
    }

    /// Runs all operations in order. `go_on` tells whether to continue waiting: a trap may have stopped the
    /// work that would have written a number.
    ///
    /// # Errors
    /// `CUDA_ERROR_ILLEGAL_ADDRESS` for memory that was freed since the batch was checked.
    pub(crate) fn run(&self, vm: &Vm, go_on: impl Fn() -> bool) -> Answer {
        self.operations.iter().try_for_each(|operation| operation.run(vm, &go_on))
    }
}
