//! A CTA: its warps, its sixteen barriers, its shared memory, run by one OS thread at a time.
//!
//! Invariant: a warp runs only while it has something to do; a CTA of which no warp has, and not all have exited, is deadlocked,
//! because nothing outside a CTA can let one of its barriers or warp-synchronous instructions go on.

use super::barrier::{Barrier, Release};
use super::patience::Patience;
use super::seed::Seed;
use super::whole::Room;
use crate::frame::{BarrierWait, Wait, WarpFrame};
use crate::interp::{self, Arrival, Budget, Stop, Stopped, World};
use crate::lanes::LaneMask;
use crate::mem::Window;
use crate::native::Reached;
use crate::trap::{Fault, FaultKind};
use crate::warp::{EventCounts, GridShape};
use crate::watch::{BarrierEvent, CtaFacts, LaunchFacts, Watch};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Rounds in which all warps only looked at memory, until the CTA is set aside.
const IDLE_ROUNDS: u32 = 2;
/// How long a CTA runs until it is set aside in any case: it may never end, or wait for another in a way that does not show. In native code of
/// whole CTAs, how long a warp runs without waiting until the CTA's other warps have their turn. Chosen: longer than what most CTAs take.
pub(super) const LONG_TURN: Duration = Duration::from_millis(200);
/// The same in rounds, for schedules that must not depend on time.
const LONG_ROUNDS: u32 = 1024;
/// Slices for which each warp before one that trapped may continue. Chosen: eight million iterations of a loop that only computes, and 32,768 of a
/// loop that waits for memory, after which native code yields.
pub(super) const FURTHER_SLICES: u32 = 1024;
/// Room for what a warp printed that is kept for what it prints next, in bytes.
const KEPT_OUTPUT: usize = 64 << 10;
/// Warps that a report of a deadlock names one by one.
const NAMED_WARPS: usize = 8;

/// What a warp of a CTA is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Runnable,
    /// Waits at a barrier.
    Waiting,
    /// Its lanes wait for each other, for good.
    Stuck,
    Exited,
}

/// A CTA with its whole state.
pub(super) struct Cta {
    /// Number in the grid.
    pub(super) index: u64,
    /// Number in the order in which CTAs are started.
    pub(super) place: u64,
    /// How often it was set aside because it only waited, after another CTA had trapped.
    pub(super) vain: u32,
    /// Facts about the launch.
    pub(super) grid: Arc<GridShape>,
    pub(super) ctaid: [u32; 3],
    pub(super) smid: u32,
    pub(super) kernel: u32,
    pub(super) warps: Vec<WarpFrame>,
    /// Whether the warps have frames.
    framed: bool,
    pub(super) room: Room,
    status: Vec<Status>,
    /// Warps that have not exited.
    pub(super) live: u32,
    pub(super) barriers: [Barrier; 16],
    pub(super) shared: Option<Window>,
    seed: Seed,
    order: Vec<u32>,
    /// What it printed.
    pub(super) output: Vec<u8>,
}

/// Why a CTA stopped.
pub(super) enum CtaStop {
    /// All threads have exited.
    Finished,
    /// It waits for other CTAs.
    Idle,
    /// It ran long enough; others may want to.
    Long,
    /// The launch is being stopped.
    Cancelled,
    /// A lane of that warp is at fault.
    Trapped(Box<Stopped>, u32),
}

/// Limits that a CTA asks about.
pub(super) trait Limits {
    /// Steps that are left to the launch; `None`: stop now.
    fn steps(&self) -> Option<u64>;
    /// Accounts for steps, of warps and of lanes.
    fn spend(&self, steps: u64, lane_steps: u64);
    /// Accounts for triggered events.
    fn count(&self, events: &EventCounts);
    /// Accounts for steps in native code, and for those of the interpreter among them.
    fn spend_native(&self, steps: u64, fallbacks: u64);
    /// Whether CTAs may run in native code as a whole: nobody counts their steps or permutes their schedule.
    fn whole(&self) -> bool;
    /// How many CTAs the thread has taken and not started, which come next in order.
    fn taken(&self) -> u64;
    /// The thread has run that many CTAs to their ends and started the next of what it has taken each time.
    fn follow(&self, count: u64);
    /// Whether the thread may still get help.
    fn alone(&self) -> bool;
    /// How many of so many bytes that a CTA printed are kept; those of it that are not, and `dropped` ones, are counted. `first`: it has
    /// printed nothing before.
    fn print(&self, bytes: usize, dropped: u64, first: bool) -> usize;
    /// Why the launch is to stop now.
    fn late(&self) -> Option<FaultKind>;
    /// Whether warps that have run since then without waiting for others must let these run. A warp that never ends must not keep others
    /// from what they do, which may be a trap.
    fn gives_way(&self, since: Instant) -> bool;
}

impl Cta {
    /// Room for a CTA. Its warps are at no place until [`Cta::start`].
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
            room: Room::default(),
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

    /// Makes it one of another launch, of the same kernel and with CTAs of the same shape.
    pub(super) fn relaunch(&mut self, shape: &Arc<GridShape>, params: (u64, u64)) {
        self.grid = Arc::clone(shape);
        for warp in &mut self.warps {
            warp.state.grid = Arc::clone(shape);
            warp.view.set_params(params.0, params.1);
        }
    }

    /// Forgets what belongs to the launch.
    pub(super) fn leave(&mut self) {
        self.output = Vec::new();
        for warp in &mut self.warps {
            warp.output = Vec::new();
            *warp.view.recent_opaque() = crate::texture::Recent::default();
        }
    }

    /// Makes it CTA `index` of the grid, which is started as number `place`, at the start of the kernel.
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
        self.framed = false;
        if let Some(window) = &mut self.shared {
            window.clear(0..window.bytes());
        }
    }

    /// Gives the warps frames, at the start of the kernel; `clear`: with local memory that is zero.
    pub(super) fn frames(&mut self, world: &World<'_>, clear: bool) {
        self.framed = true;
        self.live = self.warps.len() as u32;
        self.barriers = Default::default();
        self.status.fill(Status::Runnable);
        let Some(function) = world.function(self.kernel) else { return };
        for (id, warp) in self.warps.iter_mut().enumerate() {
            if clear {
                warp.clear_local();
            }
            // What native code's steps have left in the state of a warp without a frame stays.
            let events = warp.state.events.take();
            warp.start(self.ctaid, id as u32, self.kernel, function);
            if !clear && self.room.is_touched(id) {
                warp.state.events = events;
            }
            warp.state.smid = self.smid;
        }
        if world.watched {
            self.tell_begin();
        }
    }

    /// `%ctaid`
    pub(super) fn ctaid(&self) -> [u32; 3] {
        self.ctaid
    }

    /// A warp, to report about.
    pub(super) fn warp(&self, warp: u32) -> &WarpFrame {
        &self.warps[warp as usize]
    }

    /// Runs the warps in turn until the CTA must stop.
    pub(super) fn run(&mut self, world: &World<'_>, limits: &impl Limits, reached: &mut Reached) -> CtaStop {
        match self.run_on(world, limits, reached) {
            CtaStop::Trapped(stopped, warp)
                if self.seed.is_natural() && stopped.fault.kind.is_of_program() =>
            {
                self.first_trap((stopped, warp), &world.supplied(), limits, reached)
            }
            stop => stop,
        }
    }

    /// A warp has trapped: lets the warps before it that had used up their slices go on. The first of them that traps, too, is reported instead,
    /// so that the report depends neither on the length of slices, in which the engines differ, nor on what is compiled by then.
    fn first_trap(
        &mut self,
        (trapped, warp): (Box<Stopped>, u32),
        world: &World<'_>,
        limits: &impl Limits,
        reached: &mut Reached,
    ) -> CtaStop {
        let patience = Patience::begin();
        for id in 0..warp {
            for _ in 0..FURTHER_SLICES {
                if self.status[id as usize] != Status::Runnable {
                    break;
                }
                if patience.is_over() {
                    return CtaStop::Trapped(trapped, warp);
                }
                let mut round = Round { ran: true, idle: true };
                match self.slice(id, world, limits, reached, &mut round) {
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

    fn run_on(&mut self, world: &World<'_>, limits: &impl Limits, reached: &mut Reached) -> CtaStop {
        if !self.framed {
            match world.supplied().native {
                Some(native) if limits.whole() && native.function() == self.kernel => {
                    let world = &world.supplied();
                    let stop = match native.team() {
                        Some(team) => self.run_teams((native, team), world, limits, reached),
                        None => self.run_whole(native, world, limits, reached),
                    };
                    if let Some(stop) = stop {
                        return stop;
                    }
                }
                _ => self.frames(world, true),
            }
        }
        let (mut idle_rounds, mut rounds, began) = (0, 0, Instant::now());
        loop {
            let mut order = std::mem::take(&mut self.order);
            self.seed.order(&mut order, self.warps.len() as u32);
            let round = self.round(&order, &world.supplied(), limits, reached);
            self.order = order;
            match round {
                Ok(Round { ran: false, .. }) if self.live == 0 => return CtaStop::Finished,
                Ok(Round { ran: false, .. }) => {
                    self.tell_deadlock();
                    if !(world.mends && self.unblock(world, reached)) {
                        return self.deadlock(world);
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
                true => began.elapsed() > LONG_TURN,
                false => rounds == LONG_ROUNDS,
            };
            if long {
                return CtaStop::Long;
            }
        }
    }

    /// Gives each runnable warp a slice.
    fn round(
        &mut self,
        order: &[u32],
        world: &World<'_>,
        limits: &impl Limits,
        reached: &mut Reached,
    ) -> Result<Round, CtaStop> {
        let mut round = Round { ran: false, idle: true };
        for id in order {
            let index = *id as usize;
            if self.status[index] != Status::Runnable {
                continue;
            }
            round.ran = true;
            self.slice(*id, world, limits, reached, &mut round)?;
        }
        Ok(round)
    }

    /// Gives a warp a slice.
    fn slice(
        &mut self,
        id: u32,
        world: &World<'_>,
        limits: &impl Limits,
        reached: &mut Reached,
        round: &mut Round,
    ) -> Result<(), CtaStop> {
        let Some(steps) = limits.steps() else { return Err(CtaStop::Cancelled) };
        let (slice, turn) = self.seed.budget();
        let warp = &mut self.warps[id as usize];
        let (before, lanes_before) = (warp.steps, warp.lane_steps);
        let stop = interp::run(warp, world, Budget { slice, turn, steps }, reached);
        if let (Some(supply), None) = (world.supply, world.native) {
            supply.spend(warp.lane_steps - lanes_before);
        }
        self.stopped(id, (before, lanes_before), stop, world, limits, round)
    }

    /// A warp has stopped; `before`: its steps, and those of its lanes, when it began.
    pub(super) fn stopped(
        &mut self,
        id: u32,
        before: (u64, u64),
        mut stop: Stop,
        world: &World<'_>,
        limits: &impl Limits,
        round: &mut Round,
    ) -> Result<(), CtaStop> {
        let index = id as usize;
        let warp = &mut self.warps[index];
        limits.spend(warp.steps - before.0, warp.lane_steps - before.1);
        if let Some(events) = warp.state.events.take() {
            limits.count(&events);
        }
        if let (steps @ 1.., fallbacks) = std::mem::take(&mut warp.native_steps) {
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
            stop = Stop::Trapped(blame(warp, world, kind));
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
                    self.complete(barrier, world);
                }
            }
            Stop::Arrived(wait, arrival) => {
                round.idle = false;
                self.status[index] =
                    if self.warps[index].has_ready() { Status::Runnable } else { Status::Waiting };
                let lanes = self.warps[index].state.live;
                let count = self.warps.len() as u32;
                let barrier = wait.id as usize;
                if let Err(why) = self.barriers[barrier].arrive(id, &wait, arrival, lanes, count, world.mends)
                {
                    let stopped = blame(&self.warps[index], world, FaultKind::BadBarrier(why));
                    return Err(CtaStop::Trapped(stopped, id));
                }
                self.complete(barrier, world);
            }
        }
        Ok(())
    }

    /// All lanes of a warp have exited.
    pub(super) fn exited(&mut self, warp: usize) {
        self.status[warp] = Status::Exited;
        self.live -= 1;
    }

    /// A warp waits at a barrier with all its lanes.
    pub(super) fn waits_at(&mut self, warp: usize, wait: &BarrierWait, arrival: Arrival, lanes: LaneMask) {
        self.status[warp] = Status::Waiting;
        let count = self.warps.len() as u32;
        let Some(barrier) = self.barriers.get_mut(wait.id as usize) else { return };
        // Whole warps that wait for the whole CTA agree with each other.
        let _fits = barrier.arrive(warp as u32, wait, arrival, lanes, count, false);
    }

    pub(super) fn complete(&mut self, barrier: usize, world: &World<'_>) {
        if let Some(release) = self.barriers[barrier].complete(self.live) {
            self.let_go(barrier, release, world);
        }
    }

    /// What waits in this CTA can never go on: lets it, because an observer reports why. Whether something could.
    fn unblock(&mut self, world: &World<'_>, reached: &mut Reached) -> bool {
        let mut any = false;
        for (id, warp) in self.warps.iter_mut().enumerate() {
            if self.status[id] == Status::Stuck && interp::unblock(warp, world, reached) {
                self.status[id] = Status::Runnable;
                any = true;
            }
        }
        for barrier in 0..self.barriers.len() {
            if any {
                break;
            }
            if let Some(release) = self.barriers[barrier].give_up() {
                self.let_go(barrier, release, world);
                any = true;
            }
        }
        any
    }

    fn let_go(&mut self, barrier: usize, release: Release, world: &World<'_>) {
        if world.watched {
            self.tell_completed(barrier, &release.warps);
        }
        for warp in release.warps {
            interp::release(&mut self.warps[warp as usize], world, release.reduced);
            self.status[warp as usize] = Status::Runnable;
        }
    }

    /// Reports that a barrier has completed.
    fn tell_completed(&mut self, barrier: usize, warps: &[u32]) {
        let first = warps.first().map_or(0, |warp| *warp as usize);
        if let Some(site) = self.warps.get_mut(first).and_then(|warp| warp.view.site()) {
            let event = BarrierEvent::Completed { id: barrier as u32, warps };
            site.tell(|observer, site| observer.barrier(site, &event));
        }
    }

    /// What observers are told about it.
    pub(super) fn facts(&mut self) -> Option<(Arc<Watch>, Arc<LaunchFacts>, CtaFacts)> {
        let (mut warps, mut locals, mut first) = (Vec::new(), Vec::new(), None);
        for warp in &mut self.warps {
            let site = warp.view.site()?;
            warps.push(site.warp.slot);
            locals.push(site.warp.local);
            first = Some((Arc::clone(&site.watch), Arc::clone(&site.launch), site.warp.cta_slot));
        }
        let (watch, launch, slot) = first?;
        let shared = self.shared.as_ref().map_or((0, 0), |window| (window.start(), window.bytes()));
        Some((watch, launch, CtaFacts { slot, cta: self.index, ctaid: self.ctaid, warps, shared, locals }))
    }

    fn tell_deadlock(&mut self) {
        let first = self.status.iter().position(|status| *status != Status::Exited);
        let site = first.and_then(|warp| self.warps.get_mut(warp)).and_then(|warp| warp.view.site());
        if let Some(site) = site {
            site.tell(|observer, site| observer.deadlock(site));
        }
    }

    /// Reports that the CTA has ended.
    pub(super) fn tell_end(&mut self) {
        if let Some((watch, launch, facts)) = self.facts() {
            watch.each(|observer| observer.cta_ends(&launch, &facts));
        }
    }

    /// Reports that the CTA begins, after it has its number.
    fn tell_begin(&mut self) {
        let (index, ctaid) = (self.index, self.ctaid);
        let shared = self.shared.as_ref().map_or((0, 0), |window| (window.start(), window.bytes()));
        for (id, warp) in self.warps.iter_mut().enumerate() {
            let windows = warp.view.windows();
            let (lanes, tid) = (warp.state.live, warp.state.tid);
            if let Some(site) = warp.view.site() {
                (site.warp.cta, site.warp.ctaid, site.warp.warp) = (index, ctaid, id as u32);
                (site.warp.lanes, site.warp.tid, site.live) = (lanes, tid, lanes);
                (site.warp.shared, site.warp.params) = (shared, windows.params);
                site.warp.local = (windows.local.0, windows.local.1);
            }
        }
        if let Some((watch, launch, facts)) = self.facts() {
            watch.each(|observer| observer.cta_begins(&launch, &facts));
        }
    }

    /// Nothing can go on: says who waits where.
    fn deadlock(&self, world: &World<'_>) -> CtaStop {
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
            text.push(format!("warp {id}: {}", self.waits(warp, world)));
        }
        let id = first.unwrap_or(0);
        let kind = FaultKind::Deadlock(text.join("; "));
        CtaStop::Trapped(blame(&self.warps[id as usize], world, kind), id)
    }

    /// Where the lanes of its warps are, as far as they have begun.
    pub(super) fn whereabouts(&self, world: &World<'_>) -> Option<String> {
        let mut text = Vec::new();
        let begun =
            |id: usize, warp: &WarpFrame| self.status[id] != Status::Exited && !warp.groups.is_empty();
        for (id, warp) in self.warps.iter().enumerate().filter(|(id, warp)| begun(*id, warp)) {
            if text.len() == NAMED_WARPS {
                text.push("and others".to_owned());
                break;
            }
            text.push(format!("warp {id}: {}", self.waits(warp, world)));
        }
        (!text.is_empty()).then(|| text.join("; "))
    }

    /// Who waits where in a warp.
    fn waits(&self, warp: &WarpFrame, world: &World<'_>) -> String {
        let mut parts: Vec<String> = Vec::new();
        for group in &warp.groups {
            let function = warp.acts[group.act as usize].function;
            let span = world.block(function, group.block).map_or_else(Default::default, |b| b.span);
            let place = world.place(span);
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

/// What happened in a round.
pub(super) struct Round {
    /// Whether a warp ran at all.
    pub(super) ran: bool,
    /// Whether all that ran only looked at memory.
    pub(super) idle: bool,
}

/// A fault that is blamed on the place of the warp's first group.
pub(super) fn blame(warp: &WarpFrame, world: &World<'_>, kind: FaultKind) -> Box<Stopped> {
    let (function, block, mask) = match warp.groups.first() {
        Some(group) => (warp.acts[group.act as usize].function, group.block, group.mask),
        None => (u32::MAX, 0, 1),
    };
    let fault = Fault::new(kind, mask.trailing_zeros() as usize % 32);
    match world.block(function, block) {
        Some(block) => Box::new(Stopped { fault, function, span: block.span, loc: block.loc }),
        None => Box::new(Stopped { fault, function, span: ptx::Span::default(), loc: None }),
    }
}
