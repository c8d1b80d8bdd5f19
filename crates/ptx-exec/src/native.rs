//! The interface between the machine and native code.
//!
//! Native code runs one warp in one activation, from the start of a block until it must stop. It keeps the
//! interpreter's convergence policy. When it stops, the warp frame is complete: live registers are in the
//! register file, and diverged lanes are groups of the frame. An instruction that native code cannot execute
//! is left to the interpreter, at a place where the interpreter can resume.
//!
//! Native code can also run a whole CTA ([`CtaCall`]): the warps run one after another from barrier to
//! barrier, without warp frames. Where native code cannot continue, [`CtaCode`] says how to build the frames
//! from the registers that the warps saved.
//!
//! Invariant: native code accesses guest memory only where a [`View`] grants the warp access
//! ([`View::reach`], [`Reach`]). It executes an instruction that has no lowering by calling the interpreter's
//! step ([`NativeCall::step`]).

mod batch;
mod exits;
mod saved;

pub(crate) use batch::{CtaBatch, Groups, InitialSlots};
pub use exits::{ExitCause, ExitCounts, ExitPoint, ExitScope, SideExits};
pub(crate) use saved::mask_of;
pub use saved::{EntryReg, EntryState, ExitState, Held, Line, PendingLanes, SavedReg, bytes_of};

use crate::bound::{Code, Exec};
use crate::frame::WarpFrame;
use crate::lanes::{Lane, LaneMask, Registers};
use crate::mem::View;
pub use crate::mem::{Reach, Windows};
use crate::trap::Fault;
use crate::warp::{GridShape, WarpState};
use crate::watch::Place;
use crate::watched_cta;
use std::sync::Arc;

/// Native code of one function.
pub trait Native: Send + Sync {
    /// Bytes of stack that the code needs on the thread that runs it; 0 if every thread has enough.
    fn stack(&self) -> usize;
    /// Whether a CTA can wait for another CTA, for example by spinning on global memory.
    fn may_wait(&self) -> bool;
    /// The compiled function, as `FuncId` of the program.
    fn function(&self) -> u32;
    /// Whether the code can be entered at the start of `block`.
    fn enters(&self, block: u32) -> bool;
    /// The most instructions that one call can execute per warp with `fuel` loop iterations.
    fn most_steps(&self, fuel: i64) -> u64;
    /// Whether the loop with this header does nothing but wait for other threads.
    fn waits(&self, header: u32) -> bool;
    /// Whether the loop with this header reads memory that other threads write.
    fn watches(&self, header: u32) -> bool;
    /// Whether the kernel can read the clock of a warp. If so, diverged lanes must run when the interpreter
    /// would run them.
    fn reads_clocks(&self) -> bool;
    /// Runs a warp.
    fn run(&self, call: &mut NativeCall<'_>) -> NativeStop;
    /// How the code runs whole CTAs, one warp after another.
    fn cta(&self) -> &CtaCode;
    /// Runs the warps of a CTA one after another, beginning with [`CtaCall::warp`].
    fn run_cta(&self, call: &mut CtaCall<'_>) -> CtaStop;
    /// How the code runs whole CTAs in coarse warps; `None` if it has no such version or that version is not
    /// profitable.
    fn coarse(&self) -> Option<&CoarseCode>;
    /// As [`Native::coarse`], whether or not that version is profitable.
    fn coarse_code(&self) -> Option<&CoarseCode>;
    /// The side exits of single warps, by their numbers.
    fn exits(&self) -> &[ExitPoint];
    /// Whether it has no native code for an instruction with this name, so that the interpreter's step
    /// executes it.
    fn lacks(&self, instruction: &str) -> bool;
    /// As [`Native::run_cta`], in coarse warps: slots and saved registers are per coarse warp.
    fn run_coarse(&self, call: &mut CtaCall<'_>) -> CtaStop;
    /// The most groups of CTAs to execute row by row; see [`CoarseCode`].
    fn most_groups(&self) -> u32;
    /// Whether it makes the checks that watched launches need
    /// ([`NativeChecks`](crate::watch::NativeChecks)).
    fn is_checked(&self) -> bool;
    /// Whether one call can run several CTAs: no instruction of the kernel depends on state of the CTA that
    /// only the scheduler has.
    fn can_batch_ctas(&self) -> bool;
}

/// Supplies the native code of a launch, which can become available while the launch runs.
pub trait Supply: Send + Sync {
    /// The code, once it is available. Afterwards it is always the same code, or once replaced by code that
    /// executes warps in the same way, where the first code did, and whose side exits begin with those of the
    /// first code. The machine asks repeatedly, and an implementation can use the number of calls to decide
    /// when compilation is worthwhile.
    fn native(&self) -> Option<&dyn Native>;
    /// As [`Supply::native`], for a CTA whose warps run alone. It may wait until there is code for single
    /// warps.
    fn for_single_warps(&self) -> Option<&dyn Native>;
    /// Whether the code makes the checks of watched launches; see [`Native::is_checked`].
    fn is_checked(&self) -> bool;
    /// Reports how many instructions, counted per lane, were executed without native code.
    fn spend(&self, lane_steps: u64);
    /// Reports how many instructions a thread of the launch has executed since its last report, by warps and
    /// counted per lane. It reports when it takes more CTAs.
    fn executed(&self, steps: u64, lane_steps: u64);
}

/// A request to run one warp.
pub struct NativeCall<'a> {
    /// Bound code, for instructions without native code.
    pub code: &'a Code,
    /// The function to run.
    pub function: u32,
    /// The block to start at.
    pub block: u32,
    /// Registers of the activation.
    pub regs: &'a mut Registers,
    /// State of the warp. Native code advances its clock together with [`NativeCall::steps`].
    pub warp: &'a mut WarpState,
    /// Guest memory.
    pub mem: &'a mut View,
    /// Offset of the activation's frame in each lane's local memory.
    pub frame: u32,
    /// In: the running lanes. Out: the lanes that run at the place where native code stopped.
    pub mask: LaneMask,
    /// Whether the registers are unchanged since native code last stopped, so that their representation needs
    /// no check.
    pub trusted: bool,
    /// How many loop iterations native code may execute before it yields.
    pub fuel: i64,
    /// Cached bounds of guest memory. When native code stops, [`NativeCache::pending`] lists the diverged
    /// lanes.
    pub cache: &'a mut NativeCache,
    /// Instructions that the warp executed.
    pub steps: u64,
    /// Instructions that the warp executed, counted per lane.
    pub lane_steps: u64,
    /// Instructions executed by [`NativeCall::step`].
    pub fallbacks: u64,
    /// The fault of a step.
    pub fault: Option<Box<Fault>>,
}

impl NativeCall<'_> {
    /// Executes one instruction as the interpreter does, in the lanes of `mask`; its registers are in the
    /// frame. Returns whether it succeeded; if not, [`NativeCall::fault`] holds the fault.
    pub fn step(&mut self, block: u32, index: u32, mask: LaneMask) -> bool {
        let function = self.code.functions.get(self.function as usize).and_then(Option::as_ref);
        let run = function.and_then(|f| f.blocks.get(block as usize)?.run(index as usize));
        let Some(run) = run else { return false };
        self.fallbacks += 1;
        self.cache.exits.step([block, index]);
        let watch = self.mem.site().map(|site| Arc::clone(&site.watch));
        let _turn = watch.as_ref().map(|watch| watch.turn());
        if let Some(site) = self.mem.site() {
            site.steps_for_native(Place { function: self.function, block, index }, mask, self.warp.live);
        }
        let mut exec =
            Exec { mask, group: mask, regs: self.regs, warp: self.warp, mem: self.mem, frame: self.frame };
        match run(&mut exec) {
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
    /// All running lanes have exited.
    Finished,
    /// At the start of a block: the fuel is used up.
    Yield {
        /// The block.
        block: u32,
    },
    /// Before the terminator of a block.
    Terminator {
        /// The block.
        block: u32,
    },
    /// Before an instruction of a block.
    Before {
        /// The block.
        block: u32,
        /// The instruction.
        index: u32,
    },
    /// At the start block: nothing was executed.
    Declined,
    /// An instruction faulted in some lane.
    Fault {
        /// The block.
        block: u32,
        /// The instruction.
        index: u32,
    },
}

/// State that native code keeps on an OS thread from call to call: cached bounds, register transfers, pending
/// reductions.
#[derive(Debug, Default)]
pub struct NativeCache {
    /// [`Memory::frees`](crate::mem::Memory::frees) when the bounds were found. If it differs, the bounds are
    /// stale.
    pub frees: u64,
    /// By access site: the first address, and the number of addresses at which an access may begin.
    pub bounds: Vec<[u64; 2]>,
    /// Diverged lanes when native code stopped: the block at which they resume, and their mask.
    pub pending: Vec<[u32; 2]>,
    /// Buffer for registers that pass between the frame and native code in another representation than the
    /// register file's.
    pub room: Vec<Line>,
    /// The slot memory of a warp that runs without its CTA ([`CtaCode::bytes`]). Nothing stays in it.
    pub slots: Vec<Line>,
    /// Room for postponed reductions, which native code fills; no room if the code postpones none. Empty
    /// outside of native code.
    pub reductions: Vec<[u64; 2]>,
    /// By access site, if there is such room: the bytes of the cached bounds, and whether postponed
    /// reductions go there.
    pub spans: Vec<(Reach, bool)>,
    /// Whether the bounds of a postponed reduction and of another access have overlapped.
    pub mixed: bool,
    /// The allocations that accesses must stay in, for a watched launch; see
    /// [`Observer::allocations`](crate::watch::Observer::allocations).
    pub allocations: Vec<Option<Reach>>,
    /// How often native code was left in this launch.
    pub exits: ExitCounts,
}

impl NativeCache {
    /// Records the bytes of a site's bounds. Returns whether bounds of postponed reductions and of other
    /// accesses have overlapped.
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

/// Thread numbers of a warp: x, y, z of each lane.
pub type TidTable = [Lane<u32>; 3];

/// State of a warp, or coarse warp, of a CTA that runs in native code.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Slot {
    /// Address of the local memory of lane 0.
    pub local: u64,
    /// [`WarpState::clock`], where the kernel may read it.
    pub clock: u64,
    /// Where the warp resumes: a block, or one of the values behind the blocks, as [`CtaCode::state`] decodes
    /// it.
    pub state: u32,
    /// Lanes that have not exited.
    pub live: u32,
    /// Carry flags.
    pub carry: u32,
}

/// The barriers of a CTA that runs in native code.
///
/// The warps that wait all wait at barriers of one [form](CtaForm): a warp that reaches a barrier of another
/// form leaves native code.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct BarrierState {
    /// How many warps, or coarse warps, have exited.
    pub exited: u32,
    /// The barriers at which warps wait, one bit each. The upper half is for barriers that count all threads.
    pub waiting: u32,
    /// The [`CtaForm`] of these barriers, as a number.
    pub form: u32,
    /// The lanes counted so far at a barrier that reduces: those whose predicate is false for
    /// [`CtaForm::And`], those whose predicate is true otherwise.
    pub count: u32,
    /// That count of the barrier that completed last.
    pub result: u32,
}

/// What a barrier at which a whole warp waits for the whole CTA does besides.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CtaForm {
    /// Nothing.
    Sync = 0,
    /// Counts true predicates.
    Popc = 1,
    /// Tells whether all predicates are true.
    And = 2,
    /// Tells whether a predicate is true.
    Or = 3,
}

/// The decoded state of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotState {
    /// At the start of a block; its registers are in the register file.
    Block(u32),
    /// The warp has not started.
    NotStarted,
    /// All its lanes have exited.
    Exited,
    /// The warp waits at a barrier: index of [`CtaCode::barriers`].
    Waits(usize),
}

/// How native code runs a CTA warp by warp.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CtaCode {
    /// Size of the save area of each warp in bytes; a multiple of 64.
    pub bytes: u32,
    /// Barriers at which warps wait, with the registers that they save there.
    pub barriers: Vec<SuspendPoint>,
}

/// The saved state of a warp at a barrier, or of a coarse warp between two iterations of a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuspendPoint {
    /// The block that ends with the barrier, or the loop header.
    pub block: u32,
    /// Number of the barrier; `None` for a loop.
    pub id: Option<u32>,
    /// Registers that are live across it.
    pub kept: Vec<SavedReg>,
}

/// How native code runs a CTA in coarse warps. A coarse warp is several warps that execute as one warp with
/// more lanes.
///
/// The save area of a coarse warp begins with lane masks, one word per warp: first the lanes that have not
/// exited; at a side exit, also the running lanes. The masks of diverged lanes are where [`SideExit::left`]
/// says.
///
/// **Groups.** Where several CTAs execute as one ([`CoarseCode::ctas`]), they are a group, and the loops over
/// the groups of a row of the grid and over their coarse warps are interchanged: the first coarse warp of
/// each group is followed by the second one of each group, so that memory is accessed row by row. Slots are
/// in this order. Such kernels have no barriers, so at most one coarse warp is in the middle of the kernel,
/// and all share one save area. The code finds its coarse warp's number within the group, and `%ctaid.x`, in
/// the frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoarseCode {
    /// Warps per coarse warp; divides the number of warps of the CTAs that execute as one.
    pub warps: u32,
    /// CTAs that execute as one, which are neighbours in x. Their threads are numbered like those of one CTA:
    /// each row of threads in x is followed by the same row of the next CTA. Each coarse warp has whole rows.
    /// A warp whose lanes are several rows may be in several coarse warps.
    pub ctas: u32,
    /// The CTAs of a row of the grid from which on several execute as one: if their number is a multiple of
    /// `ctas`, and if it is not. Then those at the end of the row execute alone.
    pub least_row: [u32; 2],
    /// Whether the first and the last CTA of a row of the grid execute alone, and then whether all of the
    /// first and the last row do, too.
    pub edges_alone: [bool; 2],
    /// Slots and barriers, as for single warps.
    pub cta: CtaCode,
    /// The places where a coarse warp splits into its warps.
    pub leaves: Vec<SideExit>,
}

impl CoarseCode {
    /// Whether all coarse warps share one save area.
    pub fn shares_save_area(&self) -> bool {
        self.ctas > 1
    }

    /// How many groups of CTAs from `%ctaid.x` = `x` on execute row by row, of a row of the grid of so many
    /// CTAs. `available`: CTAs that may run; there are enough for one group.
    pub(crate) fn groups_from(&self, x: u32, row: u32, available: u64, most: u32) -> u32 {
        let inner = u64::from(row.saturating_sub(x + u32::from(self.edges_alone[0])));
        let groups = inner.min(available) / u64::from(self.ctas);
        (groups.min(most.into()) as u32).max(1)
    }

    /// Whether CTAs of a grid execute as one, if native code executes several so.
    pub(crate) fn fits(&self, grid: &GridShape) -> bool {
        let row = grid.nctaid[0];
        let [whole, other] = self.least_row;
        row >= if row.is_multiple_of(self.ctas) { whole } else { other }
    }

    /// Whether the CTAs from one on execute as one, in a grid of so many.
    pub(crate) fn begins_at(&self, [x, y, _]: [u32; 3], [row, rows, _]: [u32; 3]) -> bool {
        let edge = u64::from(self.edges_alone[0]);
        let in_edge_row = self.edges_alone[1] && (y == 0 || y + 1 == rows);
        !in_edge_row && u64::from(x) >= edge && u64::from(x) + u64::from(self.ctas) + edge <= u64::from(row)
    }

    /// How many CTAs behind `x`, where none begin as one, execute alone before some may execute as one again.
    pub(crate) fn alone_behind(&self, x: u32, row: u32) -> u64 {
        let edge = u64::from(self.edges_alone[0]);
        match u64::from(x) < edge {
            true => 0,
            // Those at the end of the row, and the first one of the next row.
            false => u64::from(row.saturating_sub(x)).saturating_sub(1) + edge,
        }
    }
}

/// A place where a coarse warp splits into its warps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SideExit {
    /// The place of the running lanes, and why they leave.
    pub point: ExitPoint,
    /// Where the values of the registers are.
    pub left: ExitState,
}

/// The place of the running lanes at a side exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExitPlace {
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

impl ExitPlace {
    /// The equivalent reason to stop a single warp.
    pub fn stop(self) -> NativeStop {
        match self {
            ExitPlace::Yield { block } => NativeStop::Yield { block },
            ExitPlace::Terminator { block } => NativeStop::Terminator { block },
            ExitPlace::Before { block, index } => NativeStop::Before { block, index },
        }
    }
}

impl CtaCode {
    /// The slot state of a warp that has not started, in a function of `blocks` blocks.
    pub fn not_started(blocks: usize) -> u32 {
        blocks as u32
    }

    /// Decodes a slot state, in a function of `blocks` blocks.
    pub fn state(state: u32, blocks: usize) -> SlotState {
        match (state as usize).checked_sub(blocks) {
            None => SlotState::Block(state),
            Some(0) => SlotState::NotStarted,
            Some(1) => SlotState::Exited,
            Some(at) => SlotState::Waits(at - 2),
        }
    }
}

/// A request to run a CTA.
pub struct CtaCall<'a> {
    /// Bound code, for instructions without native code.
    pub code: &'a Code,
    /// The kernel.
    pub function: u32,
    /// `%ctaid`
    pub ctaid: [u32; 3],
    /// `%smid`
    pub smid: u32,
    /// Shape of the launch.
    pub grid: &'a GridShape,
    /// One slot per warp or coarse warp.
    pub slots: &'a mut [Slot],
    /// Save areas of the warps or coarse warps.
    pub kept: &'a mut [Line],
    /// Registers of the running warp, where it needs the register file.
    pub regs: &'a mut Registers,
    /// The frames of the warps, for steps of the interpreter.
    pub(crate) warps: &'a mut [WarpFrame],
    /// Warps whose frame state was initialised for this CTA, as a bit mask.
    pub(crate) touched: &'a mut u32,
    /// The number of the first CTA of the batch in the grid.
    pub(crate) index: u64,
    /// Whether observers know of the CTA that runs.
    pub(crate) begun: &'a mut bool,
    /// Cached bounds of guest memory; see [`NativeCall::cache`].
    pub cache: &'a mut NativeCache,
    /// The CTAs that may run in the same call; see [`CtaCall::next_cta`].
    pub(crate) batch: CtaBatch<'a>,
    /// The warp to run, or coarse warp.
    pub warp: u32,
    /// The barrier state of native code.
    pub round: BarrierState,
    /// See [`NativeCall::fuel`].
    pub fuel: i64,
    /// Out: the running lanes.
    pub mask: LaneMask,
    /// Out: the lanes of the warp that have not exited.
    pub live: LaneMask,
    /// Instructions that warps executed.
    pub steps: u64,
    /// Instructions that warps executed, counted per lane.
    pub lane_steps: u64,
    /// Instructions executed by [`CtaCall::step`].
    pub fallbacks: u64,
    /// The fault of a step.
    pub fault: Option<Box<Fault>>,
}

impl CtaCall<'_> {
    /// Guest memory as all warps of the CTA see it, which excludes local memory.
    pub fn view(&mut self) -> &mut View {
        &mut self.warps[0].view
    }

    /// Reports the start of the CTA to observers, unless that is done, so that warps have sites for steps.
    #[cold]
    fn begin_watched(&mut self) {
        if std::mem::replace(self.begun, true) {
            return;
        }
        for (id, warp) in (0..).zip(self.warps.iter_mut()) {
            warp.state.start(self.ctaid, id);
            warp.state.smid = self.smid;
            *self.touched |= 1 << id;
        }
        watched_cta::begin(
            self.warps,
            self.index + self.batch.started,
            self.ctaid,
            self.batch.shared_window(),
        );
    }

    /// Guest memory and its cached bounds.
    pub fn memory(&mut self) -> (&mut View, &mut NativeCache) {
        (&mut self.warps[0].view, self.cache)
    }

    /// As [`NativeCall::step`], for one warp of the CTA.
    pub fn step(&mut self, warp: u32, block: u32, index: u32, mask: LaneMask) -> bool {
        let function = self.code.functions.get(self.function as usize).and_then(Option::as_ref);
        let run = function.and_then(|f| f.blocks.get(block as usize)?.run(index as usize));
        let Some(run) = run else { return false };
        self.fallbacks += 1;
        self.cache.exits.step([block, index]);
        let watch = self.warps[warp as usize].view.site().map(|site| Arc::clone(&site.watch));
        let _turn = watch.as_ref().map(|watch| watch.turn());
        if watch.is_some() {
            self.begin_watched();
        }
        let frame = &mut self.warps[warp as usize];
        if *self.touched & 1 << warp == 0 {
            *self.touched |= 1 << warp;
            frame.state.start(self.ctaid, warp);
            frame.state.smid = self.smid;
        }
        let slot = &mut self.slots[warp as usize];
        (frame.state.live, frame.state.carry, frame.state.clock) = (slot.live, slot.carry, slot.clock);
        if let Some(site) = frame.view.site() {
            (site.act, site.frame) = (0, 0);
            site.steps_for_native(Place { function: self.function, block, index }, mask, slot.live);
        }
        let state = &mut frame.state;
        let mut exec =
            Exec { mask, group: mask, regs: self.regs, warp: state, mem: &mut frame.view, frame: 0 };
        let done = run(&mut exec);
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
    /// The current warp stopped; its registers are in the register file.
    Warp(NativeStop),
    /// The warps wait at different barriers.
    BarrierMismatch,
    /// The current coarse warp has used up its fuel; its slot says where it resumes.
    OutOfFuel,
    /// The current coarse warp takes a side exit: index of [`CoarseCode::leaves`].
    SideExit(u32),
    /// Coarse warps cannot execute this CTA, which has had no effect: its warps run alone.
    Declined,
}
