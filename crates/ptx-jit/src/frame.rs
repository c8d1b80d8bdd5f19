//! What native code and its caller hand each other.
//!
//! Invariant: [`Frame`] is the only way between them: native code reads and writes its fields at their offsets, and calls back
//! through [`step`](super::engine) and [`reach`](super::engine).

use ptx_exec::native::{Slot, TidTable};
use std::ffi::c_void;

/// Bounds of accesses at one site, as a thread found them last.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window {
    /// What makes the first address that may be accessed zero, wrapping: a sum is shorter code than a difference from what lies in memory.
    pub(crate) bias: u64,
    /// How many addresses an access of the site may begin at: none, if nothing is known.
    pub(crate) limit: u64,
}

/// The warp, as native code sees it. Pointers are valid for the call.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Frame {
    /// 16-bit registers: 32 lanes each.
    pub(crate) r16: *mut u16,
    /// 32-bit registers.
    pub(crate) r32: *mut u32,
    /// 64-bit registers.
    pub(crate) r64: *mut u64,
    /// Predicates: a mask each.
    pub(crate) pred: *mut u32,
    /// Thread numbers: 32 lanes of x, of y, of z.
    pub(crate) tid: *const u32,
    /// Carry flags.
    pub(crate) carry: *mut u32,
    /// Instructions that the warp had executed when native code was entered, or began its turn; added to where it leaves, in code of kernels
    /// that may read it.
    pub(crate) clock: *mut u64,
    /// Bounds by site.
    pub(crate) windows: *mut Window,
    /// Room for registers that are taken and left in another shape than the registers' files have.
    pub(crate) room: *mut u8,
    /// The caller, handed back to it.
    pub(crate) user: *mut c_void,
    /// Address and bytes of the CTA's shared memory.
    pub(crate) shared: [u64; 2],
    /// Address of the parameters.
    pub(crate) params: u64,
    /// Local memory: address of lane 0's, distance from lane to lane, bytes in use of each lane's.
    pub(crate) local: [u64; 3],
    /// Offset of the activation's frame in local memory.
    pub(crate) offset: u64,
    /// `%gridid`
    pub(crate) gridid: u64,
    /// `%globaltimer` where the launch began.
    pub(crate) began: u64,
    /// Where sums are kept back by address ([`postponed`](crate::reduction_buffer)); null: nowhere.
    pub(crate) table: *mut [u64; 2],
    /// How many of them may still take another one's place.
    pub(crate) credit: i64,
    /// In: how many turns of loops may be taken. Out: how many are left.
    pub(crate) turns: i64,
    /// A CTA: where each warp is. Null where one warp runs.
    pub(crate) slots: *mut Slot,
    /// A CTA: the slot of the running warp.
    pub(crate) slot: *mut Slot,
    /// A CTA: thread numbers of each warp.
    pub(crate) tids: *const TidTable,
    /// A CTA: what each warp keeps at barriers.
    pub(crate) keeps: *mut u8,
    /// A CTA in teams: bytes from one team's to the next one's.
    pub(crate) keep_bytes: u64,
    /// A CTA: the same of the running warp.
    pub(crate) kept: *mut u8,
    /// A CTA: by how much `turns` falls where the next one follows.
    pub(crate) price: u32,
    /// A CTA: how many warps it has; 0 where one warp runs.
    pub(crate) warps: u32,
    /// A CTA: the barriers at which warps wait, a bit for each, in the upper half those that count all threads.
    pub(crate) waiting: u32,
    /// A CTA: how many warps have exited.
    pub(crate) exited: u32,
    /// Added to: instructions executed with all lanes.
    pub(crate) full_steps: u64,
    /// Added to: instructions executed masked.
    pub(crate) masked_steps: u64,
    /// Added to: the same, counted for each lane.
    pub(crate) lane_steps: u64,
    /// What is kept back, as a [`Kind`](crate::reduction_buffer::Kind)'s number; zero: nothing.
    pub(crate) held: u32,
    /// In and out: running lanes.
    pub(crate) mask: u32,
    /// In and out: lanes that have not exited.
    pub(crate) live: u32,
    /// In: the block to begin with.
    pub(crate) block: u32,
    /// Out: which of the tables says what is left in `room`, from 1 on; 0: none.
    pub(crate) left: u32,
    /// `%warpid`, `%nwarpid`, `%smid`, `%nsmid`
    pub(crate) warp: [u32; 4],
    /// `%ctaid`
    pub(crate) ctaid: [u32; 3],
    /// `%nctaid`
    pub(crate) nctaid: [u32; 3],
    /// `%total_smem_size`, `%dynamic_smem_size`
    pub(crate) smem: [u32; 2],
}

/// Native code of a function: runs a warp, and says why it stopped ([`Reason`]).
pub(crate) type Entry = unsafe extern "C" fn(*mut Frame) -> u64;

/// The low byte of what native code returns; the block stands in bits 8 to 31, the instruction in bits 32 and up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Reason {
    /// No lane is left.
    Finished = 0,
    /// Before the block; its turns are taken.
    Yield = 1,
    /// Before the block's terminator.
    Terminator = 2,
    /// Before the instruction.
    Before = 3,
    /// Nothing has happened.
    Declined = 4,
    /// The instruction is at fault.
    Fault = 5,
    /// A CTA: its warps wait at different barriers.
    Apart = 6,
    /// A team has used up its turns of loops.
    Turn = 7,
    /// A team falls apart; the instruction is the number of the place.
    Left = 8,
}

/// What native code returns.
pub(crate) fn code(reason: Reason, block: u32, index: u32) -> u64 {
    reason as u64 | u64::from(block) << 8 | u64::from(index) << 32
}
