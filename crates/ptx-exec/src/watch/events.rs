//! The events that observers receive.

use super::memory_map::MemoryMap;
use super::place::Place;
use crate::class::Class;
use crate::lanes::{Lane, LaneMask};
use crate::trap::FaultKind;
use crate::warp::GridShape;
use ptx::check::module::FuncId;
use ptx::ir::{Program, Reg};
use ptx::isa::{Sem, Space};
use std::sync::Arc;

/// A launch.
pub struct LaunchFacts {
    /// The program, with the PTX text that spans point into.
    pub program: Arc<Program>,
    /// The kernel.
    pub kernel: FuncId,
    /// Shape of grid and CTAs, with the launch's `gridid`.
    pub shape: Arc<GridShape>,
    /// The schedule seed.
    pub seed: u64,
    /// Guest memory.
    pub memory: Arc<dyn MemoryMap>,
    /// The kernel's `.shared` variables, by address.
    pub shared: Vec<SharedVariable>,
    /// By `VarId`: addresses of `.global` and `.const` variables, offsets of `.shared` variables.
    pub variables: Vec<u64>,
    /// Bytes of shared memory of a CTA.
    pub shared_bytes: u64,
    /// The parameters of the kernel.
    pub params: Vec<u8>,
}

impl LaunchFacts {
    /// Name of the kernel.
    pub fn kernel_name(&self) -> &str {
        self.program.functions.get(self.kernel.0 as usize).map_or("?", |function| function.name.as_str())
    }
}

/// A `.shared` variable of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedVariable {
    /// `VarId`.
    pub variable: u32,
    /// Offset in the CTA's shared memory.
    pub start: u64,
    /// Its size. A dynamic variable (`.extern`, without a size) has what the launch gives it.
    pub bytes: u64,
    /// Its name in the text.
    pub name: String,
}

/// A resident CTA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CtaFacts {
    /// A number of the CTA among the resident CTAs, reused after its end; see
    /// [`WarpFacts`](super::WarpFacts).
    pub slot: u32,
    /// Its number in the grid.
    pub cta: u64,
    /// `%ctaid`
    pub ctaid: [u32; 3],
    /// Slots of its warps, in order.
    pub warps: Vec<u32>,
    /// Address and size of its shared memory.
    pub shared: (u64, u64),
    /// For each warp, the address of lane 0's local memory, and the bytes of each lane.
    pub locals: Vec<(u64, u64)>,
}

/// The kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// Reads.
    Load,
    /// Writes.
    Store,
    /// Reads and writes; [`Site::inst`](super::Site::inst) gives the operation.
    Atomic,
}

/// A lane whose access would trap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The lane.
    pub lane: usize,
    /// The trap: out of bounds, misaligned, or read-only.
    pub kind: FaultKind,
}

/// A memory access of a warp.
pub struct Access<'a> {
    /// The kind of access.
    pub kind: AccessKind,
    /// State space of the instruction.
    pub space: Space,
    /// Lanes that take part.
    pub lanes: LaneMask,
    /// By lane, the address in that state space.
    pub addresses: &'a Lane<u64>,
    /// By lane, the generic address of the same bytes. Addresses are equal exactly if the bytes are the same,
    /// except in pages that the host has mapped twice.
    pub generic: &'a Lane<u64>,
    /// Bytes per lane: all elements of a vector.
    pub bytes: u32,
    /// Bytes of one element.
    pub element: u32,
    /// The accessed elements: bit *i* is the element at distance *i* from the address. A vector store can
    /// omit elements.
    pub chosen: u8,
    /// Whether all lanes have the same generic address.
    pub same: bool,
    /// The ordering, including `Weak` and `Volatile`.
    pub sem: Sem,
    /// Lanes that would trap, in ascending order, with the reason.
    pub refused: &'a [Refused],
}

/// An event at a barrier of a CTA.
pub enum BarrierEvent<'a> {
    /// Lanes reach a `bar` or `barrier` instruction, and wait for the other lanes of their warp.
    Reached {
        /// The lanes.
        lanes: LaneMask,
        /// Barrier number, not yet validated.
        id: u32,
        /// Thread count, not yet validated.
        count: Option<u32>,
        /// Form.
        kind: crate::barrier::BarrierKind,
        /// `.aligned`: all of `bar`.
        aligned: bool,
    },
    /// All lanes of a warp that have not exited have reached a barrier: the warp arrives.
    Arrived {
        /// Barrier number.
        id: u32,
        /// Thread count.
        count: Option<u32>,
        /// Form.
        kind: crate::barrier::BarrierKind,
        /// Lanes that arrive.
        lanes: LaneMask,
        /// The part of these lanes that waits: all except those at `.arrive`.
        waiting: LaneMask,
    },
    /// Lanes continue alone from a barrier, because other lanes of the warp wait at incompatible barriers.
    /// Occurs only if an observer requests recovery ([`Observer::mends`](super::Observer::mends)).
    Parted {
        /// The lanes.
        lanes: LaneMask,
    },
    /// A barrier has completed. The site is that of a released warp, or of the last warp that arrived.
    Completed {
        /// Barrier number.
        id: u32,
        /// Warps of the CTA that waited at it and are released.
        warps: &'a [u32],
    },
    /// A completed barrier releases lanes of the site's warp.
    Released {
        /// Barrier number.
        id: u32,
        /// The lanes.
        lanes: LaneMask,
    },
}

/// Lanes of one group at a warp-synchronous instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncPart {
    /// Their position.
    pub place: Place,
    /// Their activation.
    pub act: u32,
    /// The lanes.
    pub lanes: LaneMask,
}

/// An event at a warp-synchronous instruction.
pub enum WarpSyncEvent<'a> {
    /// Lanes reach it. `members` are the member masks of the lanes; all lanes for `wmma` and `mma`.
    Reached {
        /// The lanes.
        lanes: LaneMask,
        /// By lane, the member mask.
        members: &'a Lane<u32>,
    },
    /// It will execute for these lanes together, which can be at several instructions.
    Completes {
        /// All its lanes.
        lanes: LaneMask,
        /// The same lanes by position.
        parts: &'a [SyncPart],
    },
}

/// The place of an argument or result of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MovePlace {
    /// In a register of an activation.
    Reg {
        /// The activation.
        act: u32,
        /// The register.
        reg: Reg,
    },
    /// At this offset of each lane's local memory.
    Local(u64),
    /// At this offset of the kernel's parameter buffer.
    Param(u64),
    /// A constant.
    Immediate,
}

/// A copied argument or result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgumentMove {
    /// The source.
    pub from: MovePlace,
    /// The destination.
    pub to: MovePlace,
    /// Its size in bytes.
    pub bytes: u64,
}

/// Memory that was allocated.
pub struct Allocated<'a> {
    /// First address.
    pub address: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// The kind of memory.
    pub class: Class,
    /// Its name in reports.
    pub name: &'a str,
    /// Whether the host may write it without a report: memory that host and devices share.
    pub common: bool,
}

/// A mistake of the host with device memory.
#[derive(Clone, Copy, Debug)]
pub enum HostMistake<'a> {
    /// A call frees what does not begin an allocation.
    Free {
        /// The call.
        call: &'a str,
        /// The address.
        address: u64,
        /// Whether a call has freed it already that takes effect later.
        again: bool,
        /// What is there, in prose.
        nearest: &'a str,
    },
    /// A call copies or sets bytes that do not all lie in one allocation.
    Access {
        /// The call.
        call: &'a str,
        /// First address.
        address: u64,
        /// So many bytes.
        bytes: u64,
        /// What is there, in prose.
        nearest: &'a str,
    },
    /// The program, or the context that it used, ends without having freed memory.
    Leak {
        /// What it is, such as "memory from `cuMemAlloc`".
        what: &'a str,
        /// First address; 0 for what has none.
        address: u64,
        /// So many bytes.
        bytes: u64,
    },
}

/// The kind of a host access to device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostAccessKind {
    /// Writes.
    Write,
    /// Reads: the values leave the device.
    Read,
    /// Copies to other device memory.
    Copy {
        /// The destination.
        to: u64,
    },
}

/// An access of the host.
pub struct HostAccess<'a> {
    /// First address.
    pub address: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// The kind of access.
    pub kind: HostAccessKind,
    /// Name of the allocation, for reads.
    pub name: Option<&'a str>,
    /// Whether nothing else writes there that observers are not told of (`Memory::is_exclusive`); for a copy,
    /// where it goes.
    pub exclusive: bool,
}
