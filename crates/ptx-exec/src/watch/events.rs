//! What observers are told.

use super::site::Place;
use crate::lanes::{Lane, LaneMask};
use crate::mem::{Class, Memory};
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
    /// Shape of grid and CTAs; `gridid` is a number of the launch.
    pub shape: Arc<GridShape>,
    /// The schedule seed.
    pub seed: u64,
    /// Guest memory. Observers only look things up in it.
    pub memory: Arc<Memory>,
    /// The kernel's `.shared` variables, by address.
    pub shared: Vec<SharedVariable>,
    /// Addresses of `.global` and `.const` variables and offsets of `.shared` ones, by `VarId`.
    pub variables: Vec<u64>,
    /// Bytes of shared memory of a CTA.
    pub shared_bytes: u64,
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
    /// Its size; for a dynamic one (`.extern`, without a size) what the launch gives.
    pub bytes: u64,
    /// Its name in the text.
    pub name: String,
}

/// A resident CTA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CtaFacts {
    /// A number of the CTA among those that are resident, as in [`WarpFacts`](super::WarpFacts).
    pub slot: u32,
    /// Its number in the grid.
    pub cta: u64,
    /// `%ctaid`
    pub ctaid: [u32; 3],
    /// Slots of its warps, in order.
    pub warps: Vec<u32>,
    /// Address and size of its shared memory.
    pub shared: (u64, u64),
    /// For each warp, the address of lane 0's local memory, and bytes of each lane's.
    pub locals: Vec<(u64, u64)>,
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// Reads.
    Load,
    /// Writes.
    Store,
    /// Reads and writes; which operation, [`Site::inst`](super::Site::inst) says.
    Atomic,
}

/// Why a lane's access would be a trap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The lane.
    pub lane: usize,
    /// The trap: out of bounds, misaligned, or read-only.
    pub kind: FaultKind,
}

/// An access of a warp.
pub struct Access<'a> {
    /// What it does.
    pub kind: AccessKind,
    /// State space of the instruction.
    pub space: Space,
    /// Lanes that take part.
    pub lanes: LaneMask,
    /// By lane, the address in that space.
    pub addresses: &'a Lane<u64>,
    /// By lane, the generic address of the same bytes: equal exactly where the bytes are the same, save pages that the host has mapped twice.
    pub generic: &'a Lane<u64>,
    /// Bytes of one lane, all elements of a vector together.
    pub bytes: u32,
    /// Bytes of one element.
    pub element: u32,
    /// Elements that are accessed, bit *i* for the one *i* elements from the address: a vector store may leave some out.
    pub chosen: u8,
    /// Whether all lanes have one generic address.
    pub same: bool,
    /// Ordering: `Weak` and `Volatile` too.
    pub sem: Sem,
    /// Lanes that would trap, and why, lowest first.
    pub refused: &'a [Refused],
}

/// What happens at a barrier of a CTA.
pub enum BarrierEvent<'a> {
    /// Lanes reach a `bar` or `barrier` instruction, and wait for the rest of their warp.
    Reached {
        /// The lanes.
        lanes: LaneMask,
        /// Barrier number, not yet checked.
        id: u32,
        /// Thread count, not yet checked.
        count: Option<u32>,
        /// Form.
        kind: crate::bound::BarrierKind,
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
        kind: crate::bound::BarrierKind,
        /// Lanes that arrive.
        lanes: LaneMask,
        /// Of these, lanes that wait (all of them, save those at `.arrive`).
        waiting: LaneMask,
    },
    /// Lanes of a warp go on from a barrier alone: other lanes of the warp are at barriers at which it can't arrive together with them. Only
    /// where an observer mends mistakes.
    Parted {
        /// The lanes.
        lanes: LaneMask,
    },
    /// A barrier has completed. The site is one of the warps that it lets go, or the last that arrived.
    Completed {
        /// Barrier number.
        id: u32,
        /// Warps of the CTA that waited at it and go on.
        warps: &'a [u32],
    },
    /// A completed barrier lets lanes of the site's warp go on.
    Released {
        /// Barrier number.
        id: u32,
        /// The lanes.
        lanes: LaneMask,
    },
}

/// Lanes of one group that take part in a warp-synchronous instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncPart {
    /// Where they are.
    pub place: Place,
    /// Their activation.
    pub act: u32,
    /// The lanes.
    pub lanes: LaneMask,
}

/// What happens at a warp-synchronous instruction.
pub enum WarpSyncEvent<'a> {
    /// Lanes reach it. `members` is the member mask that each gives; all lanes for `wmma` and `mma`.
    Reached {
        /// The lanes.
        lanes: LaneMask,
        /// By lane, the member mask.
        members: &'a Lane<u32>,
    },
    /// It is about to be carried out for these lanes together. They may have come from several instructions.
    Completes {
        /// All its lanes.
        lanes: LaneMask,
        /// The same, by where they are.
        parts: &'a [SyncPart],
    },
}

/// Where an argument or result of a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MovePlace {
    /// In a register of an activation.
    Reg {
        /// The activation.
        act: u32,
        /// The register.
        reg: Reg,
    },
    /// In each lane's local memory, at this offset.
    Local(u64),
    /// In the kernel's parameter buffer, at this offset.
    Param(u64),
    /// A constant.
    Immediate,
}

/// An argument or a result that moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgumentMove {
    /// From there.
    pub from: MovePlace,
    /// To there.
    pub to: MovePlace,
    /// So many bytes.
    pub bytes: u64,
}

/// Memory that was allocated.
pub struct Allocated<'a> {
    /// First address.
    pub address: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// What it is.
    pub class: Class,
    /// Its name in reports.
    pub name: &'a str,
    /// Whether the host may write it without anything being reported: memory that host and devices share.
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

/// What the host does to device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostAccessKind {
    /// Writes.
    Write,
    /// Reads: what is there leaves for the host.
    Read,
    /// Copies it to other device memory.
    Copy {
        /// Where it goes.
        to: u64,
    },
}

/// An access of the host.
pub struct HostAccess<'a> {
    /// First address.
    pub address: u64,
    /// So many bytes.
    pub bytes: u64,
    /// What it does.
    pub kind: HostAccessKind,
    /// Name of the allocation, for reads.
    pub name: Option<&'a str>,
    /// Whether nothing else writes there that observers are not told of ([`Memory::is_exclusive`]); for a copy, where it goes.
    pub exclusive: bool,
}
