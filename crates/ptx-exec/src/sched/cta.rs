//! A CTA: its warps, its sixteen barriers, its shared memory, run by one OS thread at a time.
//!
//! Invariant: a warp runs only while it can make progress. If no warp of a CTA can, and not all have exited,
//! the CTA is deadlocked, because no event outside a CTA completes its barriers or warp-synchronous
//! instructions.

use super::barrier::{Barrier, Release};
use super::grace::GracePeriod;
use super::native_frames::{Members, NativeFrames};
use super::seed::Seed;
use crate::context::LaunchContext;
use crate::frame::{BarrierWait, Wait, WarpFrame};
use crate::interp::{self, Arrival, Budget, Stop, Stopped};
use crate::lanes::{FULL, LaneMask};
use crate::mem::Window;
use crate::native::NativeCache;
use crate::trap::{Fault, FaultKind};
use crate::warp::{EventCounts, GridShape};
use crate::watch::BarrierEvent;
use crate::watched_cta;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Rounds in which all warps only polled memory, after which the CTA is suspended.
const IDLE_ROUNDS: u32 = 2;
/// How long a CTA runs before it is suspended in any case: it may never end, or wait for another CTA in a way
/// that is not detected. In native code of whole CTAs: how long a warp runs without waiting before the other
/// warps of the CTA must run. Chosen: longer than most CTAs take.
pub(super) const LONG_RUN: Duration = Duration::from_millis(200);
/// The same limit in rounds, for schedules that must not depend on time.
const LONG_ROUNDS: u32 = 1024;
/// Slices for which each warp before a trapped warp may continue. Chosen: this is eight million iterations of
/// a loop that only computes, and 32,768 iterations of a loop that polls memory, which native code leaves
/// after each slice.
pub(super) const FURTHER_SLICES: u32 = 1024;
/// Capacity in bytes of the output buffer that a warp keeps for its next output.
const KEPT_OUTPUT: usize = 64 << 10;
/// Warps that a deadlock report lists one by one.
const NAMED_WARPS: usize = 8;

/// The state of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Runnable,
    /// The warp waits at a barrier.
    Waiting,
    /// The lanes wait for each other and cannot continue.
    Stuck,
    Exited,
}

/// A CTA with all its state.
pub(super) struct Cta {
    /// Number in the grid.
    pub(super) index: u64,
    /// Position in the order in which CTAs start.
    pub(super) place: u64,
    /// How often the CTA was suspended because it only polled memory, since another CTA trapped.
    pub(super) vain: u32,
    /// Shape of the launch.
    pub(super) grid: Arc<GridShape>,
    pub(super) ctaid: [u32; 3],
    pub(super) smid: u32,
    pub(super) kernel: u32,
    pub(super) warps: Vec<WarpFrame>,
    /// Whether the warps have frames.
    framed: bool,
    /// The CTAs that began as one with this CTA, and which execute one after another now.
    pub(super) members: Option<Members>,
    /// Whether observers know of the CTA.
    pub(super) begun: bool,
    pub(super) native_frames: NativeFrames,
    status: Vec<Status>,
    /// Warps that have not exited.
    pub(super) live: u32,
    pub(super) barriers: [Barrier; 16],
    pub(super) shared: Option<Window>,
    seed: Seed,
    order: Vec<u32>,
    /// Output of the CTA.
    pub(super) output: Vec<u8>,
}

/// Why a CTA stopped.
pub(super) enum CtaStop {
    /// All threads have exited.
    Finished,
    /// The CTA waits for other CTAs.
    Idle,
    /// The CTA used up its time, and other CTAs should run.
    Long,
    /// The launch is being stopped.
    Cancelled,
    /// A lane of this warp faulted.
    Trapped(Box<Stopped>, u32),
}

/// The limits of a launch, as a running CTA queries them.
pub(super) trait Limits {
    /// Steps that the launch may still execute; `None`: stop now.
    fn steps(&self) -> Option<u64>;
    /// Accounts for executed steps, counted per warp and per lane.
    fn spend(&self, steps: u64, lane_steps: u64);
    /// Accounts for triggered events.
    fn count(&self, events: &EventCounts);
    /// Accounts for steps in native code, and for those among them that the interpreter executed.
    fn spend_native(&self, steps: u64, fallbacks: u64);
    /// Whether CTAs may run in native code as a whole. This needs a launch without a step limit and in the
    /// natural schedule.
    fn native_ctas(&self) -> bool;
    /// How many CTAs the thread has reserved and not started; they are consecutive.
    fn taken(&self) -> u64;
    /// Records that the thread finished `count` CTAs and started the next reserved CTA after each.
    fn start_batched(&self, count: u64);
    /// Removes `count` CTAs from the reserved ones. They begin as one with the running CTA.
    fn take_members(&self, count: u64);
    /// Records that the thread finished a CTA and started the next one of those that began as one with it.
    fn start_member(&self);
    /// Whether the thread works alone and can still get help.
    fn alone(&self) -> bool;
    /// Accounts for output of a CTA: `bytes` new bytes, and `dropped` bytes that were dropped before. Returns
    /// how many of the new bytes to keep; the rest counts as dropped. `first`: this is the CTA's first
    /// output.
    fn print(&self, bytes: usize, dropped: u64, first: bool) -> usize;
    /// The reason to stop the launch now, if any.
    fn late(&self) -> Option<FaultKind>;
    /// Whether a warp that has run since then without waiting must let the other warps run. A warp that never
    /// ends must not keep the others from making progress, which includes trapping.
    fn gives_way(&self, since: Instant) -> bool;
}

impl Cta {
    /// Allocates a CTA. Its warps have no position until [`Cta::start`].
    pub(super) fn new(grid: &Arc<GridShape>, warps: Vec<WarpFrame>, shared: Option<Window>) -> Self {
        Self {
            index: 0,
            place: 0,
            vain: 0,
            grid: Arc::clone(grid),
            ctaid: [0; 3],
            smid: 0,
            kernel: 0,
            framed: false,
            members: None,
            begun: false,
            native_frames: NativeFrames::default(),
            status: vec![Status::Exited; warps.len()],
            warps,
            live: 0,
            barriers: Default::default(),
            shared,
            seed: Seed::new(0, 0),
            order: Vec::new(),
            output: Vec::new(),
        }
    }

    /// Reuses it for another launch of the same kernel with the same CTA shape.
    pub(super) fn relaunch(&mut self, shape: &Arc<GridShape>, params: (u64, u64)) {
        self.grid = Arc::clone(shape);
        for warp in &mut self.warps {
            warp.state.grid = Arc::clone(shape);
            warp.view.set_params(params.0, params.1);
        }
    }

    /// Drops references to the launch.
    pub(super) fn leave(&mut self) {
        self.output = Vec::new();
        for warp in &mut self.warps {
            warp.output = Vec::new();
            warp.view.forget_object();
            warp.view.set_site(None);
        }
    }

    /// Makes it CTA `index` of the grid, started as number `place`, with all warps at the start of the
    /// kernel.
    pub(super) fn start(
        &mut self,
        (place, index): (u64, u64),
        ctaid: [u32; 3],
        seed: u64,
        smid: u32,
        kernel: u32,
    ) {
        (self.index, self.place, self.vain) = (index, place, 0);
        (self.ctaid, self.smid, self.kernel) = (ctaid, smid, kernel);
        self.seed = Seed::new(seed, index);
        (self.framed, self.begun, self.members) = (false, false, None);
        if let Some(window) = &mut self.shared {
            window.clear(0..window.bytes());
        }
    }

    /// Creates the frames of all warps, at the start of the kernel. `clear`: with zeroed local memory.
    pub(super) fn frames(&mut self, context: &LaunchContext<'_>, clear: bool) {
        self.framed = true;
        self.live = self.warps.len() as u32;
        self.barriers = Default::default();
        self.status.fill(Status::Runnable);
        let Some(function) = context.function(self.kernel) else { return };
        for (id, warp) in self.warps.iter_mut().enumerate() {
            if clear {
                warp.clear_local();
            }
            warp.start(self.ctaid, id as u32, self.kernel, function);
            warp.state.smid = self.smid;
        }
        if context.watched {
            if context.native.is_some() {
                self.warps.iter_mut().for_each(|warp| warp.unknown = FULL);
            }
            self.tell_begin();
        }
    }

    /// `%ctaid`
    pub(super) fn ctaid(&self) -> [u32; 3] {
        self.ctaid
    }

    /// A warp, for reports.
    pub(super) fn warp(&self, warp: u32) -> &WarpFrame {
        &self.warps[warp as usize]
    }

    /// Runs the warps round-robin until the CTA must stop. A CTA that began as one with others becomes the
    /// next of them when it has finished.
    pub(super) fn run(
        &mut self,
        context: &LaunchContext<'_>,
        limits: &impl Limits,
        cache: &mut NativeCache,
    ) -> CtaStop {
        loop {
            match self.run_on(context, limits, cache) {
                CtaStop::Trapped(stopped, warp)
                    if self.seed.is_natural() && stopped.fault.kind.is_of_program() =>
                {
                    return self.first_trap((stopped, warp), &context.supplied(), limits, cache);
                }
                CtaStop::Finished if self.next_member(limits) => self.framed = false,
                stop => return stop,
            }
        }
    }

    /// Handles a trap of a warp: the warps before it that were preempted continue. If some of them trap too,
    /// the first of these traps is reported instead. So the report does not depend on the length of slices,
    /// which differs between the engines, or on which code is already compiled.
    fn first_trap(
        &mut self,
        (trapped, warp): (Box<Stopped>, u32),
        context: &LaunchContext<'_>,
        limits: &impl Limits,
        cache: &mut NativeCache,
    ) -> CtaStop {
        let patience = GracePeriod::begin();
        for id in 0..warp {
            for _ in 0..FURTHER_SLICES {
                if self.status[id as usize] != Status::Runnable {
                    break;
                }
                if patience.is_over() {
                    return CtaStop::Trapped(trapped, warp);
                }
                let mut round = Round { ran: true, idle: true };
                match self.slice(id, context, limits, cache, &mut round) {
                    Ok(()) => {}
                    Err(CtaStop::Trapped(earlier, id)) if earlier.fault.kind.is_of_program() => {
                        return CtaStop::Trapped(earlier, id);
                    }
                    Err(_) => return CtaStop::Trapped(trapped, warp),
                }
            }
        }
        CtaStop::Trapped(trapped, warp)
    }

    fn run_on(
        &mut self,
        context: &LaunchContext<'_>,
        limits: &impl Limits,
        cache: &mut NativeCache,
    ) -> CtaStop {
        if !self.framed {
            match context.supplied().native {
                Some(native) if limits.native_ctas() && native.function() == self.kernel => {
                    let context = &context.supplied();
                    let stop = match native.coarse() {
                        _ if self.members.is_some() => self.run_member(native, context, limits, cache),
                        Some(coarse) => self.run_coarse((native, coarse), context, limits, cache),
                        None => {
                            let context = &context.for_single_warps();
                            let native = context.native.unwrap_or(native);
                            self.run_native(native, context, limits, cache, u64::MAX)
                        }
                    };
                    if let Some(stop) = stop {
                        return stop;
                    }
                }
                _ => self.frames(context, true),
            }
        }
        let (mut idle_rounds, mut rounds, began) = (0, 0, Instant::now());
        loop {
            let mut order = std::mem::take(&mut self.order);
            self.seed.order(&mut order, self.warps.len() as u32);
            let round = self.round(&order, &context.supplied(), limits, cache);
            self.order = order;
            match round {
                Ok(Round { ran: false, .. }) if self.live == 0 => return CtaStop::Finished,
                Ok(Round { ran: false, .. }) => {
                    self.tell_deadlock();
                    if !(context.mends && self.unblock(context, cache)) {
                        return self.deadlock(context);
                    }
                }
                Ok(Round { idle: true, .. }) => idle_rounds += 1,
                Ok(_) => idle_rounds = 0,
                Err(stop) => return stop,
            }
            if idle_rounds >= IDLE_ROUNDS {
                return CtaStop::Idle;
            }
            rounds += 1;
            let long = match self.seed.is_natural() {
                true => began.elapsed() > LONG_RUN,
                false => rounds == LONG_ROUNDS,
            };
            if long {
                return CtaStop::Long;
            }
        }
    }

    /// Runs each runnable warp for one slice.
    fn round(
        &mut self,
        order: &[u32],
        context: &LaunchContext<'_>,
        limits: &impl Limits,
        cache: &mut NativeCache,
    ) -> Result<Round, CtaStop> {
        let mut round = Round { ran: false, idle: true };
        for id in order {
            let index = *id as usize;
            if self.status[index] != Status::Runnable {
                continue;
            }
            round.ran = true;
            self.slice(*id, context, limits, cache, &mut round)?;
        }
        Ok(round)
    }

    /// Runs one warp for one slice.
    pub(super) fn slice(
        &mut self,
        id: u32,
        context: &LaunchContext<'_>,
        limits: &impl Limits,
        cache: &mut NativeCache,
        round: &mut Round,
    ) -> Result<(), CtaStop> {
        let Some(steps) = limits.steps() else { return Err(CtaStop::Cancelled) };
        let (slice, quantum) = self.seed.budget();
        let warp = &mut self.warps[id as usize];
        let (before, lanes_before) = (warp.steps, warp.lane_steps);
        let stop = interp::run(warp, context, Budget { slice, quantum, steps }, cache);
        if let (Some(supply), None) = (context.supply, context.native) {
            supply.spend(warp.lane_steps - lanes_before);
        }
        self.stopped(id, (before, lanes_before), stop, context, limits, round)
    }

    /// Handles a stopped warp; `before`: the steps of the warp and of its lanes before the slice.
    pub(super) fn stopped(
        &mut self,
        id: u32,
        before: (u64, u64),
        mut stop: Stop,
        context: &LaunchContext<'_>,
        limits: &impl Limits,
        round: &mut Round,
    ) -> Result<(), CtaStop> {
        let index = id as usize;
        let warp = &mut self.warps[index];
        limits.spend(warp.steps - before.0, warp.lane_steps - before.1);
        if let Some(events) = warp.state.events.take() {
            limits.count(&events);
        }
        let (steps, fallbacks) = std::mem::take(&mut warp.native_steps);
        if steps + fallbacks > 0 {
            limits.spend_native(steps, fallbacks);
        }
        if !warp.output.is_empty() || warp.dropped > 0 {
            let dropped = std::mem::take(&mut warp.dropped);
            let kept = limits.print(warp.output.len(), dropped, self.output.is_empty());
            self.output.extend_from_slice(&warp.output[..kept]);
            warp.output.clear();
            warp.output.shrink_to(KEPT_OUTPUT);
        }
        if !matches!(stop, Stop::Trapped(_))
            && let Some(kind) = limits.late()
        {
            stop = Stop::Trapped(blame(warp, context, kind));
        }
        match stop {
            Stop::Yielded { idle } => round.idle &= idle,
            Stop::Waiting => self.status[index] = Status::Waiting,
            Stop::Stuck => self.status[index] = Status::Stuck,
            Stop::Trapped(stopped) => return Err(CtaStop::Trapped(stopped, id)),
            Stop::Exited => {
                round.idle = false;
                self.exited(index);
                for barrier in 0..self.barriers.len() {
                    self.complete(barrier, context);
                }
            }
            Stop::Arrived(wait, arrival) => {
                round.idle = false;
                self.status[index] =
                    if self.warps[index].has_ready() { Status::Runnable } else { Status::Waiting };
                let lanes = self.warps[index].state.live;
                let count = self.warps.len() as u32;
                let barrier = wait.id as usize;
                if let Err(why) =
                    self.barriers[barrier].arrive(id, &wait, arrival, lanes, count, context.mends)
                {
                    let stopped = blame(&self.warps[index], context, FaultKind::BadBarrier(why));
                    return Err(CtaStop::Trapped(stopped, id));
                }
                self.complete(barrier, context);
            }
        }
        Ok(())
    }

    /// Records that all lanes of a warp have exited.
    pub(super) fn exited(&mut self, warp: usize) {
        self.status[warp] = Status::Exited;
        self.live -= 1;
    }

    /// Records that all lanes of a warp wait at a barrier.
    pub(super) fn waits_at(&mut self, warp: usize, wait: &BarrierWait, arrival: Arrival, lanes: LaneMask) {
        self.status[warp] = Status::Waiting;
        let count = self.warps.len() as u32;
        let Some(barrier) = self.barriers.get_mut(wait.id as usize) else { return };
        // Cannot fail: native code lets only warps wait that arrive as a whole, at barriers of one form.
        let _fits = barrier.arrive(warp as u32, wait, arrival, lanes, count, false);
    }

    pub(super) fn complete(&mut self, barrier: usize, context: &LaunchContext<'_>) {
        if let Some(release) = self.barriers[barrier].complete(self.live) {
            self.let_go(barrier, release, context);
        }
    }

    /// Releases the waiting lanes of a deadlocked CTA, which an observer reports instead of a trap. Returns
    /// whether any lane was released.
    fn unblock(&mut self, context: &LaunchContext<'_>, cache: &mut NativeCache) -> bool {
        let mut any = false;
        for (id, warp) in self.warps.iter_mut().enumerate() {
            if self.status[id] == Status::Stuck && interp::unblock(warp, context, cache) {
                self.status[id] = Status::Runnable;
                any = true;
            }
        }
        for barrier in 0..self.barriers.len() {
            if any {
                break;
            }
            if let Some(release) = self.barriers[barrier].give_up() {
                self.let_go(barrier, release, context);
                any = true;
            }
        }
        any
    }

    fn let_go(&mut self, barrier: usize, release: Release, context: &LaunchContext<'_>) {
        if context.watched {
            self.tell_completed(barrier, &release.warps);
        }
        for warp in release.warps {
            interp::release(&mut self.warps[warp as usize], context, release.reduced);
            self.status[warp as usize] = Status::Runnable;
        }
    }

    /// Reports a completed barrier to observers.
    fn tell_completed(&mut self, barrier: usize, warps: &[u32]) {
        let first = warps.first().map_or(0, |warp| *warp as usize);
        if let Some(site) = self.warps.get_mut(first).and_then(|warp| warp.view.site()) {
            let event = BarrierEvent::Completed { id: barrier as u32, warps };
            site.tell(|observer, site| observer.barrier(site, &event));
        }
    }

    fn tell_deadlock(&mut self) {
        let first = self.status.iter().position(|status| *status != Status::Exited);
        let site = first.and_then(|warp| self.warps.get_mut(warp)).and_then(|warp| warp.view.site());
        if let Some(site) = site {
            site.tell(|observer, site| observer.deadlock(site));
        }
    }

    /// Reports the end of the CTA to observers that know of it.
    pub(super) fn tell_end(&mut self) {
        if std::mem::take(&mut self.begun) {
            let shared = self.shared_window();
            watched_cta::end(&mut self.warps, self.index, self.ctaid, shared);
        }
    }

    /// Reports the start of the CTA to observers, unless that is done. Its number must be set.
    fn tell_begin(&mut self) {
        if !std::mem::replace(&mut self.begun, true) {
            let shared = self.shared_window();
            watched_cta::begin(&mut self.warps, self.index, self.ctaid, shared);
        }
    }

    /// Address and bytes of its shared memory.
    fn shared_window(&self) -> (u64, u64) {
        self.shared.as_ref().map_or((0, 0), |window| (window.start(), window.bytes()))
    }

    /// The stop reason of a deadlock, which lists where each warp waits.
    fn deadlock(&self, context: &LaunchContext<'_>) -> CtaStop {
        let mut text = Vec::new();
        let mut first = None;
        for (id, warp) in self.warps.iter().enumerate() {
            if self.status[id] == Status::Exited {
                continue;
            }
            first.get_or_insert(id as u32);
            if text.len() == NAMED_WARPS {
                text.push("and others".to_owned());
                break;
            }
            text.push(format!("warp {id}: {}", self.waits(warp, context)));
        }
        let id = first.unwrap_or(0);
        let kind = FaultKind::Deadlock(text.join("; "));
        CtaStop::Trapped(blame(&self.warps[id as usize], context, kind), id)
    }

    /// The positions of the lanes of all warps that have started, as text.
    pub(super) fn whereabouts(&self, context: &LaunchContext<'_>) -> Option<String> {
        let mut text = Vec::new();
        let begun =
            |id: usize, warp: &WarpFrame| self.status[id] != Status::Exited && !warp.groups.is_empty();
        for (id, warp) in self.warps.iter().enumerate().filter(|(id, warp)| begun(*id, warp)) {
            if text.len() == NAMED_WARPS {
                text.push("and others".to_owned());
                break;
            }
            text.push(format!("warp {id}: {}", self.waits(warp, context)));
        }
        (!text.is_empty()).then(|| text.join("; "))
    }

    /// Where the lanes of a warp wait, as text.
    fn waits(&self, warp: &WarpFrame, context: &LaunchContext<'_>) -> String {
        let mut parts: Vec<String> = Vec::new();
        for group in &warp.groups {
            let function = warp.acts[group.act as usize].function;
            let span = context.block(function, group.block).map_or_else(Default::default, |b| b.span);
            let place = context.place(span);
            let more = match &group.wait {
                Wait::Barrier(wait) if wait.arrived => match self.barriers.get(wait.id as usize) {
                    Some(barrier) => format!(" (barrier {}: {})", wait.id, barrier.progress(self.live)),
                    None => String::new(),
                },
                Wait::Barrier(wait) => format!(" (barrier {}: not all lanes of the warp are there)", wait.id),
                Wait::Sync { members, .. } => format!(" (for the members {members:#010x})"),
                Wait::Aligned => " (for all lanes of the warp)".to_owned(),
                Wait::Ready => String::new(),
            };
            parts.push(format!("lanes {:#010x} at {place}{more}", group.mask));
        }
        parts.join(", ")
    }
}

/// Summary of one round.
pub(super) struct Round {
    /// Whether any warp ran.
    pub(super) ran: bool,
    /// Whether all warps that ran only polled memory.
    pub(super) idle: bool,
}

/// A fault that is attributed to the position of the warp's first group.
pub(super) fn blame(warp: &WarpFrame, context: &LaunchContext<'_>, kind: FaultKind) -> Box<Stopped> {
    let (function, block, mask) = match warp.groups.first() {
        Some(group) => (warp.acts[group.act as usize].function, group.block, group.mask),
        None => (u32::MAX, 0, 1),
    };
    let fault = Fault::new(kind, mask.trailing_zeros() as usize % 32);
    match context.block(function, block) {
        Some(block) => Box::new(Stopped { fault, function, span: block.span, loc: block.loc }),
        None => Box::new(Stopped { fault, function, span: ptx::Span::default(), loc: None }),
    }
}
