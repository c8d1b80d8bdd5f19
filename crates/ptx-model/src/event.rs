//! Events: the operations of an execution that the model relates (sections 8.2 to 8.5).
//!
//! A load is one read, a store one write, an atomic operation a read and a write that name each other in
//! [`Event::other_half`], and a vector or packed access one event for each element. Initial values are no
//! events: see [`crate::graph`].

use crate::test::{BarrierKind, Proxy, ProxyFence, ReduceOp, Scope, Space};
use crate::value::Expr;
use std::rc::Rc;

/// What an event does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
    Fence,
    ProxyFence(ProxyFence),
    Barrier(BarrierKind),
}

/// The bytes that an event accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    /// The block of memory: an index into `Memory::blocks`.
    pub(crate) block: usize,
    pub(crate) offset: u32,
    pub(crate) size: u32,
    /// The bytes of the whole instruction, of which this is an element: offset and size.
    pub(crate) whole: (u32, u32),
    /// The virtual address, as the location whose generic address it is.
    pub(crate) view: usize,
    pub(crate) proxy: Proxy,
    pub(crate) space: Space,
    /// `.v2`, `.v4` and `.f16x2`: whether the instruction has other elements, and of which kind.
    pub(crate) element: Element,
}

/// What an event is of its instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    Whole,
    Vector,
    Packed,
}

impl Access {
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.block == other.block
            && self.offset < other.offset + other.size
            && other.offset < self.offset + self.size
    }

    pub(crate) fn same_bytes(&self, other: &Self) -> bool {
        (self.block, self.offset, self.size) == (other.block, other.offset, other.size)
    }
}

/// A barrier. CTAs and warps are named by the index of their first thread in the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Barrier {
    /// `bar`, `barrier`.
    Cta { cta: usize, instance: u64, id: u64 },
    /// `bar.warp.sync`: uses with other masks are uses of other barriers (9.7.12.2).
    Warp { warp: usize, mask: u32 },
}

/// A use of a barrier.
#[derive(Clone, Debug)]
pub(crate) struct BarrierUse {
    pub(crate) barrier: Barrier,
    pub(crate) count: Option<u64>,
    /// Of `.red`: the operation, and the predicate of the thread, which is 0 or 1. The event has a result.
    pub(crate) reduction: Option<(ReduceOp, Rc<Expr>)>,
}

/// An event.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    /// Index of the thread.
    pub(crate) thread: usize,
    /// Its instruction, as a place in the code.
    pub(crate) instruction: usize,
    pub(crate) kind: Kind,
    /// A strong operation, and its scope.
    pub(crate) strong: Option<Scope>,
    pub(crate) acquire: bool,
    pub(crate) release: bool,
    /// `fence.sc`.
    pub(crate) sc: bool,
    pub(crate) access: Option<Access>,
    /// What a write writes.
    pub(crate) value: Option<Rc<Expr>>,
    /// The other half of an atomic operation. A failed compare-and-swap has none.
    pub(crate) other_half: Option<usize>,
    /// Of an atomic operation, even if it does not write.
    pub(crate) atomic: bool,
    /// Of a `red`, which is no read operation (Table 17).
    pub(crate) reduction: bool,
    /// The reads and barrier reductions of its thread that its address, value or execution depends on, as
    /// bits.
    pub(crate) depends: u128,
    /// Of an asynchronous copy: the event of its thread from which program order holds.
    pub(crate) done_at: Option<usize>,
    pub(crate) barrier: Option<BarrierUse>,
}

impl Event {
    pub(crate) fn is_read(&self) -> bool {
        self.kind == Kind::Read
    }

    pub(crate) fn is_write(&self) -> bool {
        self.kind == Kind::Write
    }

    /// The reduction of a `bar.red`: its operation and the thread's predicate.
    pub(crate) fn reduces(&self) -> Option<&(ReduceOp, Rc<Expr>)> {
        self.barrier.as_ref()?.reduction.as_ref()
    }

    /// Whether it waits at a barrier until the phase is complete.
    pub(crate) fn waits(&self) -> bool {
        self.kind == Kind::Barrier(BarrierKind::Sync)
    }
}
