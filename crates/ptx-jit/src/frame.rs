//! The data that native code and its caller pass to each other.
//!
//! Invariant: [`Frame`] is the only interface between them: native code reads and writes its fields at their
//! offsets, and calls back through [`step`](super::engine) and [`reach`](super::engine).

use ptx_exec::native::{BarrierState, Slot, TidTable};
use ptx_exec::stamps::Clock;
use std::ffi::c_void;

/// Cached bounds: the bounds of accesses at one site, as an OS thread found them last.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window {
    /// Added to an address (wrapping), it maps the first accessible address to zero: an addition is shorter
    /// code than a subtraction of a value from memory.
    pub(crate) bias: u64,
    /// The number of addresses at which an access of the site may begin; zero if nothing is known.
    pub(crate) limit: u64,
}

/// The warp, in the form that native code accesses. Pointers are valid for the call.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Frame {
    /// 16-bit registers: 32 lanes each.
    pub(crate) r16: *mut u16,
    /// 32-bit registers.
    pub(crate) r32: *mut u32,
    /// 64-bit registers.
    pub(crate) r64: *mut u64,
    /// Predicates: one mask each.
    pub(crate) pred: *mut u32,
    /// Thread indices: x of 32 lanes, then y, then z.
    pub(crate) tid: *const u32,
    /// Carry flags.
    pub(crate) carry: *mut u32,
    /// The number of instructions that the warp had executed when native code was entered, or when its
    /// section began. Kernels that may read it update it at exits.
    pub(crate) clock: *mut u64,
    /// The cached bounds of each site.
    pub(crate) windows: *mut Window,
    /// The hand-over area: registers that are passed at entries and exits in another form than that of the
    /// register files.
    pub(crate) room: *mut u8,
    /// The caller's context, which is passed back to it in calls.
    pub(crate) user: *mut c_void,
    /// Address and bytes of the CTA's shared memory.
    pub(crate) shared: [u64; 2],
    /// Address of the parameters.
    pub(crate) params: u64,
    /// Local memory: the address of lane 0's, the distance between lanes, and the bytes that each lane uses.
    pub(crate) local: [u64; 3],
    /// Offset of the activation's frame in local memory.
    pub(crate) offset: u64,
    /// `%gridid`
    pub(crate) gridid: u64,
    /// `%globaltimer` at the start of the launch.
    pub(crate) began: u64,
    /// The [reduction buffer](crate::reduction_buffer): addresses, with the numbers of kinds, and operands.
    /// Null if the code postpones no reductions.
    pub(crate) buffer: *mut [u64; 2],
    /// In: the fuel, in iterations of loops. Out: the fuel that is left.
    pub(crate) turns: i64,
    /// CTA only: the position of each warp. Null if a single warp runs.
    pub(crate) slots: *mut Slot,
    /// CTA only: the position of the running warp.
    pub(crate) slot: *mut Slot,
    /// CTA only: the thread indices of each warp.
    pub(crate) tids: *const TidTable,
    /// CTA only: the barrier slots of all warps.
    pub(crate) keeps: *mut u8,
    /// CTA in coarse warps only: the distance in bytes between the slots of two coarse warps.
    pub(crate) keep_bytes: u64,
    /// CTA only: the barrier slots of the running warp.
    pub(crate) kept: *mut u8,
    /// CTA only: the fuel that is used when the next CTA of the batch starts.
    pub(crate) price: u32,
    /// CTA only: the number of warps; 0 if a single warp runs. Of coarse warps of several CTAs, those of all
    /// groups.
    pub(crate) warps: u32,
    /// Coarse warps of several CTAs only: the coarse warp that runs, within its group, and the number of its
    /// group. `ctaid` is that of the group's first CTA. See
    /// [`CoarseCode`](ptx_exec::native::CoarseCode).
    pub(crate) row: u32,
    /// See `row`.
    pub(crate) group: u32,
    /// The number of groups.
    pub(crate) groups: u32,
    /// CTA only: its barriers.
    pub(crate) round: BarrierState,
    /// Counter: instructions executed with all lanes.
    pub(crate) full_steps: u64,
    /// Counter: instructions executed under a mask.
    pub(crate) masked_steps: u64,
    /// Counter: lanes of the instructions executed under a mask.
    pub(crate) lane_steps: u64,
    /// The number of reductions that the buffer holds.
    pub(crate) held: u32,
    /// Whether reductions that were in the buffer may be left to another thread; 0 or 1.
    pub(crate) left_behind: u32,
    /// If the buffer holds more reductions than that, they are performed; 0 if each is performed at once.
    pub(crate) full: u32,
    /// In and out: the active lanes.
    pub(crate) mask: u32,
    /// In and out: the lanes that have not exited.
    pub(crate) live: u32,
    /// In: the PTX block to start with.
    pub(crate) block: u32,
    /// Out: the number of the side exit whose table describes `room`, from 1 on; 0 if `room` is empty.
    pub(crate) left: u32,
    /// `%warpid`, `%nwarpid`, `%smid`, `%nsmid`
    pub(crate) warp: [u32; 4],
    /// `%ctaid`
    pub(crate) ctaid: [u32; 3],
    /// `%nctaid`
    pub(crate) nctaid: [u32; 3],
    /// `%total_smem_size`, `%dynamic_smem_size`
    pub(crate) smem: [u32; 2],
    /// The distance from memory to its shadow; 0 if it has none.
    pub(crate) shadow: u64,
    /// The numbers that stamps are compared with; null if memory has no stamps.
    pub(crate) interval: *const Clock,
    /// The distances from memory to its stamps, by [`StampKind`](ptx_exec::stamps::StampKind).
    pub(crate) stamps: [u64; 3],
}

/// Native code of a function: runs a warp or a CTA, and returns why it stopped ([`Reason`]).
pub(crate) type Entry = unsafe extern "C" fn(*mut Frame) -> u64;

/// The reason is the low byte of native code's return value. Bits 8 to 31 are the PTX block, bits 32 and up
/// the instruction, or the number of a side exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Reason {
    /// No live lane is left.
    Finished = 0,
    /// A single warp has taken a side exit, which has this number in
    /// [`Made::exits`](crate::object::Made::exits).
    Exit = 1,
    /// Nothing has been executed.
    Declined = 2,
    /// The instruction caused a trap.
    Fault = 3,
    /// CTA only: the warps wait at different barriers.
    Apart = 4,
    /// A coarse warp has used up its fuel.
    Turn = 5,
    /// A coarse warp has taken a side exit, which has this number in
    /// [`CoarseCode::leaves`](ptx_exec::native::CoarseCode::leaves).
    Left = 6,
}

/// The return value of native code.
pub(crate) fn code(reason: Reason, block: u32, index: u32) -> u64 {
    reason as u64 | u64::from(block) << 8 | u64::from(index) << 32
}
