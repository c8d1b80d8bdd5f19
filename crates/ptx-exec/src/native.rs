//! Native code beside the interpreter: what it is given, and how it says where it stopped.
//!
//! Native code runs one warp in one activation, from the start of a block until it must stop. It keeps the interpreter's
//! convergence policy, and leaves the warp frame complete: live registers in their places, lanes that have parted as groups. What it
//! cannot do it leaves to the interpreter, at a place where that can go on.
//!
//! A whole CTA may be handed over too ([`CtaCall`]): its warps run in turn from barrier to barrier without warp frames. Where that cannot go
//! on, [`CtaCode`] says how to make frames of what the warps kept.
//!
//! Invariant: native code reaches guest memory only where a [`View`] says that the warp may ([`View::reach`], [`Reach`]), and executes
//! what it has no code for by the interpreter's own steps ([`NativeCall::step`]).

mod held;
mod portion;

pub(crate) use held::mask_at;
pub use held::{Entering, Held, Kept, Leaving, Line, Parked, Taken, bytes_of};
pub(crate) use portion::{Fresh, Portion};

use crate::bound::{Code, Exec};
use crate::frame::WarpFrame;
use crate::lanes::{Lane, LaneMask, Registers};
use crate::mem::View;
use crate::trap::Fault;
use crate::warp::{GridShape, WarpState};

/// Native code of one function.
pub trait Native: Send + Sync {
    /// Bytes of stack that the code needs on the thread that runs it; 0 if every thread has enough.
    fn stack(&self) -> usize;
    /// Whether a CTA may wait for others.
    fn may_wait(&self) -> bool;
    /// The function, as `FuncId` of the program.
    fn function(&self) -> u32;
    /// Whether it can be entered at the start of that block.
    fn enters(&self, block: u32) -> bool;
    /// The most instructions of a warp that one call can execute with as many turns of loops.
    fn most_steps(&self, turns: i64) -> u64;
    /// Whether a loop with that header only waits for others.
    fn waits(&self, header: u32) -> bool;
    /// Whether a loop with that header looks at what others write.
    fn watches(&self, header: u32) -> bool;
    /// Whether clocks of warps may be read, so that lanes that have parted have their turns when the interpreter would let them.
    fn reads_clocks(&self) -> bool;
    /// Runs a warp.
    fn run(&self, call: &mut NativeCall<'_>) -> NativeStop;
    /// How it runs whole CTAs.
    fn cta(&self) -> &CtaCode;
    /// Runs the warps of a CTA in turn, from the one that is next.
    fn run_cta(&self, call: &mut CtaCall<'_>) -> CtaStop;
    /// How it runs whole CTAs in teams of warps, if it is well to do so.
    fn team(&self) -> Option<&TeamCode>;
    /// As [`Native::run_cta`], by teams: slots and what is kept are theirs.
    fn run_team(&self, call: &mut CtaCall<'_>) -> CtaStop;
    /// Whether one call may run several CTAs: nothing of the kernel looks at what only the machine knows of a CTA.
    fn follows(&self) -> bool;
}

/// Where the native code of a launch comes from: it may come while the launch runs.
pub trait Supply: Send + Sync {
    /// The code, once there is some; from then on always the same. Asked again and again: whoever makes the code may take that as the sign that
    /// it is worth making.
    fn native(&self) -> Option<&dyn Native>;
    /// So many instructions of lanes were executed without it.
    fn spend(&self, lane_steps: u64);
}

/// A warp, handed to native code.
pub struct NativeCall<'a> {
    /// Bound code, for what has no native code.
    pub code: &'a Code,
    /// The function that runs.
    pub function: u32,
    /// The block to begin with.
    pub block: u32,
    /// Registers of the activation.
    pub regs: &'a mut Registers,
    /// State of the warp. Native code moves its clock as it moves [`NativeCall::steps`].
    pub warp: &'a mut WarpState,
    /// Guest memory.
    pub mem: &'a mut View,
    /// Offset of the activation's frame in each lane's local memory.
    pub frame: u32,
    /// The running lanes; when it stops, those that run then.
    pub mask: LaneMask,
    /// Whether native code itself left the frame as it is.
    pub trusted: bool,
    /// How many turns of loops may be taken.
    pub turns: i64,
    /// What is known of guest memory. When it stops, [`Reached::parked`] says which lanes have parted.
    pub reached: &'a mut Reached,
    /// Instructions that the warp executed.
    pub steps: u64,
    /// The same, counted for each lane.
    pub lane_steps: u64,
    /// Instructions executed by [`NativeCall::step`].
    pub fallbacks: u64,
    /// What a step was at fault with.
    pub fault: Option<Box<Fault>>,
}

impl NativeCall<'_> {
    /// Executes one instruction as the interpreter does, in the lanes of `mask`; its registers are in the frame. Whether it went well; if
    /// not, [`NativeCall::fault`] has the fault.
    pub fn step(&mut self, block: u32, index: u32, mask: LaneMask) -> bool {
        let function = self.code.functions.get(self.function as usize).and_then(Option::as_ref);
        let step = function.and_then(|f| f.blocks.get(block as usize)?.steps.get(index as usize));
        let Some(step) = step else { return false };
        self.fallbacks += 1;
        let mut exec =
            Exec { mask, group: mask, regs: self.regs, warp: self.warp, mem: self.mem, frame: self.frame };
        match (step.run)(&mut exec) {
            Ok(()) => true,
            Err(fault) => {
                self.fault = Some(fault);
                false
            }
        }
    }
}

/// Why native code stopped.
#[derive(Debug)]
pub enum NativeStop {
    /// All lanes that ran have exited.
    Finished,
    /// Before that block: it has taken its turns.
    Yield {
        /// The block.
        block: u32,
    },
    /// Before the terminator of that block.
    Terminator {
        /// The block.
        block: u32,
    },
    /// Before an instruction of that block.
    Before {
        /// The block.
        block: u32,
        /// The instruction.
        index: u32,
    },
    /// Before the block that it was to begin with: nothing has happened.
    Declined,
    /// A lane is at fault at that instruction.
    Fault {
        /// The block.
        block: u32,
        /// The instruction.
        index: u32,
    },
}

/// Windows of a warp, as addresses of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Windows {
    /// Shared memory of the CTA: address and bytes.
    pub shared: (u64, u64),
    /// Parameters: address and bytes.
    pub params: (u64, u64),
    /// Local memory: address of lane 0's, distance from lane to lane, and bytes in use of each lane's.
    pub local: (u64, u64, u64),
}

/// What native code found out about guest memory, kept by an OS thread from warp to warp.
#[derive(Debug, Default)]
pub struct Reached {
    /// [`Memory::frees`](crate::mem::Memory::frees) when it did.
    pub frees: u64,
    /// By site: the first address, and how many addresses an access may begin at.
    pub windows: Vec<[u64; 2]>,
    /// Lanes that have parted when native code stopped: the block where they go on, and which.
    pub parked: Vec<[u32; 2]>,
    /// Room for registers that native code takes and leaves.
    pub room: Vec<Line>,
    /// Where native code keeps sums back while it runs, by address; else all zeros, or nothing.
    pub table: Vec<[u64; 2]>,
    /// By site, where there is such a table: the bytes of its window, and whether sums that are kept back go there.
    pub spans: Vec<(Reach, bool)>,
    /// Whether sums that are kept back and other accesses have had windows with bytes in common.
    pub mixed: bool,
}

impl Reached {
    /// Notes the bytes of a site's window; whether sums and other accesses have had any in common.
    pub fn note(&mut self, site: u32, (start, bytes): Reach, sums: bool) -> bool {
        let site = site as usize;
        if self.spans.len() <= site {
            self.spans.resize(site + 1, ((0, 0), false));
        }
        let common = |other: &(Reach, bool)| {
            let (from, count) = other.0;
            other.1 != sums && from < start.saturating_add(bytes) && start < from.saturating_add(count)
        };
        self.mixed |= self.spans.iter().any(common);
        self.spans[site] = ((start, bytes), sums);
        self.mixed
    }
}

/// A range that a warp may reach: its first address, and its bytes.
pub type Reach = (u64, u64);

/// Thread numbers of a warp: x, y, z of each lane.
pub type TidTable = [Lane<u32>; 3];

/// Where a warp of a CTA is that runs in native code.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Slot {
    /// Address of its lane 0's local memory.
    pub local: u64,
    /// [`WarpState::clock`], where the kernel may read it.
    pub clock: u64,
    /// Where it begins or goes on: a block, or behind those as [`CtaCode::state`] says.
    pub state: u32,
    /// Lanes that have not exited.
    pub live: u32,
    /// Carry flags.
    pub carry: u32,
}

/// What a slot's state means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotState {
    /// At a block, with its registers in the frame.
    Block(u32),
    /// Not begun.
    Fresh,
    /// All its lanes have exited.
    Exited,
    /// It waits at a barrier: index of [`CtaCode::barriers`].
    Waits(usize),
}

/// How a CTA is handed over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CtaCode {
    /// What each warp may keep, in bytes; a multiple of 64.
    pub bytes: u32,
    /// Barriers at which warps wait.
    pub barriers: Vec<Behind>,
}

/// What a warp keeps at a barrier, or a team between two turns of a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Behind {
    /// The block that ends with the barrier; the loop's header.
    pub block: u32,
    /// Number of the barrier; `None`: a loop.
    pub id: Option<u32>,
    /// Registers that live across it.
    pub kept: Vec<Kept>,
}

/// How a CTA is handed over whose warps run in teams: several warps as if they were one, with all their lanes.
///
/// What a team keeps begins with masks, a word for each of its warps: the lanes that have not exited; where it leaves, then the running
/// lanes. Those that have parted stand where [`Leave::left`] says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TeamCode {
    /// Warps of a team; a divisor of the CTA's.
    pub warps: u32,
    /// Slots and barriers, as of warps.
    pub cta: CtaCode,
    /// Where a team falls apart into warps.
    pub leaves: Vec<Leave>,
}

/// A place where a team falls apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leave {
    /// The place of the running lanes.
    pub place: LeavePlace,
    /// What the lanes hold.
    pub left: Leaving,
}

/// Where running lanes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeavePlace {
    /// As [`NativeStop::Yield`].
    Yield {
        /// The block.
        block: u32,
    },
    /// As [`NativeStop::Terminator`].
    Terminator {
        /// The block.
        block: u32,
    },
    /// As [`NativeStop::Before`].
    Before {
        /// The block.
        block: u32,
        /// The instruction.
        index: u32,
    },
}

impl LeavePlace {
    /// As a reason why a warp stops.
    pub fn stop(self) -> NativeStop {
        match self {
            LeavePlace::Yield { block } => NativeStop::Yield { block },
            LeavePlace::Terminator { block } => NativeStop::Terminator { block },
            LeavePlace::Before { block, index } => NativeStop::Before { block, index },
        }
    }
}

impl CtaCode {
    /// The state of a warp of a function of so many blocks that has not begun.
    pub fn fresh(blocks: usize) -> u32 {
        blocks as u32
    }

    /// What a state means, in a function of so many blocks.
    pub fn state(state: u32, blocks: usize) -> SlotState {
        match (state as usize).checked_sub(blocks) {
            None => SlotState::Block(state),
            Some(0) => SlotState::Fresh,
            Some(1) => SlotState::Exited,
            Some(at) => SlotState::Waits(at - 2),
        }
    }
}

/// A CTA, handed to native code.
pub struct CtaCall<'a> {
    /// Bound code, for what has no native code.
    pub code: &'a Code,
    /// The kernel.
    pub function: u32,
    /// `%ctaid`
    pub ctaid: [u32; 3],
    /// `%smid`
    pub smid: u32,
    /// Facts about the launch.
    pub grid: &'a GridShape,
    /// Where each warp is.
    pub slots: &'a mut [Slot],
    /// What each warp keeps.
    pub kept: &'a mut [Line],
    /// Registers of the running warp, where it needs a frame.
    pub regs: &'a mut Registers,
    /// Its warps, for what the interpreter's steps need.
    pub(crate) warps: &'a mut [WarpFrame],
    /// Warps whose state is that of this CTA.
    pub(crate) touched: &'a mut u32,
    /// What is known of guest memory; see [`NativeCall::reached`].
    pub reached: &'a mut Reached,
    /// CTAs that follow; see [`CtaCall::follow`].
    pub(crate) portion: Portion<'a>,
    /// The warp whose turn it is.
    pub warp: u32,
    /// How many warps have exited, and which barriers the others wait at, as native code counts.
    pub round: [u32; 2],
    /// See [`NativeCall::turns`].
    pub turns: i64,
    /// When it stops: the running lanes.
    pub mask: LaneMask,
    /// When it stops: the lanes of the warp that have not exited.
    pub live: LaneMask,
    /// Instructions that warps executed.
    pub steps: u64,
    /// The same, counted for each lane.
    pub lane_steps: u64,
    /// Instructions executed by [`CtaCall::step`].
    pub fallbacks: u64,
    /// What a step was at fault with.
    pub fault: Option<Box<Fault>>,
}

impl CtaCall<'_> {
    /// Guest memory, as any warp of the CTA reaches it outside of local memory.
    pub fn view(&mut self) -> &mut View {
        &mut self.warps[0].view
    }

    /// The same, and what is known of it.
    pub fn memory(&mut self) -> (&mut View, &mut Reached) {
        (&mut self.warps[0].view, self.reached)
    }

    /// As [`NativeCall::step`], for a warp.
    pub fn step(&mut self, warp: u32, block: u32, index: u32, mask: LaneMask) -> bool {
        let function = self.code.functions.get(self.function as usize).and_then(Option::as_ref);
        let step = function.and_then(|f| f.blocks.get(block as usize)?.steps.get(index as usize));
        let Some(step) = step else { return false };
        self.fallbacks += 1;
        let frame = &mut self.warps[warp as usize];
        if *self.touched & 1 << warp == 0 {
            *self.touched |= 1 << warp;
            frame.state.start(self.ctaid, warp);
            frame.state.smid = self.smid;
        }
        let slot = &mut self.slots[warp as usize];
        (frame.state.live, frame.state.carry, frame.state.clock) = (slot.live, slot.carry, slot.clock);
        let state = &mut frame.state;
        let mut exec =
            Exec { mask, group: mask, regs: self.regs, warp: state, mem: &mut frame.view, frame: 0 };
        let done = (step.run)(&mut exec);
        (slot.carry, slot.clock) = (frame.state.carry, frame.state.clock);
        match done {
            Ok(()) => true,
            Err(fault) => {
                self.fault = Some(fault);
                false
            }
        }
    }
}

/// Why native code of a CTA stopped.
#[derive(Debug)]
pub enum CtaStop {
    /// All threads have exited.
    Finished,
    /// The warp whose turn it is stopped; its registers are in the frame.
    Warp(NativeStop),
    /// Its warps wait at different barriers.
    Apart,
    /// The team whose turn it is has used its turns of loops up; its slot says where it is.
    Turn,
    /// The team whose turn it is falls apart: index of [`TeamCode::leaves`].
    Left(u32),
}
