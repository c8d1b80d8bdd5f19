//! CTAs that run in native code as coarse warps: several warps execute as one warp with more lanes, from
//! barrier to barrier.
//!
//! A coarse warp executes each instruction for all its lanes at once. Where it cannot continue, it takes a
//! **side exit**: its registers are copied to the frames of its warps, and each warp continues alone until
//! the CTA ends.
//!
//! Coarse warps may span several CTAs that are neighbours in x, a group, and the groups of a row of the grid
//! execute row by row ([`CoarseCode`]). Where such a coarse warp cannot continue, the CTAs of all these
//! groups execute one after another ([`Members`]), each from where the coarse warps have left it, in the
//! order of their numbers. So their traps are reported as if they had begun in that order.
//!
//! Invariant: as in [`native_cta`](super::native_cta), a warp has a frame, or its coarse warp has a slot. The
//! lanes of a coarse warp are at one place of the program, or are held pending where the lanes of a single
//! warp would be too. So a side exit needs the same state as that of a single warp.

use super::cta::{Cta, CtaStop, Limits, Round};
use super::native_cta::{FIRST_FUEL, FUEL, LongRun, Start, reduced};
use super::native_frames::{Members, Place};
use crate::bound::{Function, Term};
use crate::context::LaunchContext;
use crate::interp::{self, Budget, Left};
use crate::lanes::{FULL, LANES, LaneMask, lanes_of};
use crate::native::{
    BarrierState, CoarseCode, CtaCall, CtaCode, CtaStop as NativeCtaStop, Groups, Native, NativeCache,
    SavedReg, SlotState, mask_of,
};
use crate::watched_cta;

/// Order of the lane masks at the start of a save area.
const LIVE: usize = 0;
const RUNNING: usize = 1;

impl Cta {
    /// Runs a CTA that has not started, and those that execute as one with it. `None`: its warps have frames
    /// now, and the caller must run those.
    pub(super) fn run_coarse(
        &mut self,
        (native, coarse): (&dyn Native, &CoarseCode),
        context: &LaunchContext<'_>,
        limits: &impl Limits,
        cache: &mut NativeCache,
    ) -> Option<CtaStop> {
        let function = context.function(self.kernel)?;
        let (x, row) = (self.ctaid[0], self.grid.nctaid[0]);
        let begins = coarse.begins_at(self.ctaid, self.grid.nctaid);
        let fits = coarse.fits(&self.grid);
        if !fits || !begins || limits.taken() < u64::from(coarse.ctas) - 1 {
            let context = &context.for_single_warps();
            let native = context.native.unwrap_or(native);
            let more = match (fits, begins) {
                (false, _) => u64::MAX,
                (true, false) => coarse.alone_behind(x, row),
                // Too few CTAs are left for this thread.
                (true, true) => u64::from(row - x) - 1,
            };
            return self.run_native(native, context, limits, cache, more);
        }
        let most = native.most_groups().clamp(1, row / coarse.ctas);
        let groups = Groups { now: coarse.groups_from(x, row, limits.taken() + 1, most), most };
        let initial = self.native_frames.start_coarse(coarse, function, self.warps.len(), groups);
        let (mut current, mut round) = (0, BarrierState::default());
        let mut long = LongRun::default();
        loop {
            if limits.steps().is_none() {
                return Some(CtaStop::Cancelled);
            }
            if let Some(kind) = limits.late() {
                let place = Place { current, exit: None, round, fuel: 0 };
                self.frames_from_coarse(coarse, context, function, place);
                let of_group = current / self.native_frames.groups;
                let warp = (of_group * coarse.warps / coarse.ctas).min(self.warps.len() as u32 - 1);
                let stopped = super::cta::blame(&self.warps[warp as usize], context, kind);
                return Some(CtaStop::Trapped(stopped, warp));
            }
            let fuel = if limits.alone() { FIRST_FUEL } else { FUEL };
            let groups = Groups { now: self.native_frames.groups, most };
            let others = u64::from(coarse.ctas * groups.now) - 1;
            let remaining = if native.can_batch_ctas() { limits.taken() - others } else { 0 };
            let start = Start { warp: current, round, fuel };
            let mut call =
                self.native_call(context, cache, start, (remaining, Some((coarse, groups)), initial));
            let stop = native.run_coarse(&mut call);
            let (ctaid, batched, together) = (call.ctaid, call.batched(), call.together());
            let CtaCall { steps, lane_steps, fuel, .. } = call;
            (current, round) = (call.warp, call.round);
            self.native_frames.groups = call.groups();
            self.advance_batch(ctaid, batched, limits);
            limits.spend(steps, lane_steps);
            limits.spend_native(steps, 0);
            match stop {
                NativeCtaStop::Finished => {
                    let [x, y, z] = self.ctaid;
                    let others = together - 1;
                    self.advance_batch([x + others, y, z], others.into(), limits);
                    self.live = 0;
                    return Some(CtaStop::Finished);
                }
                NativeCtaStop::OutOfFuel if !long.gives_way((self.place, current), limits) => {}
                NativeCtaStop::OutOfFuel => {
                    let place = Place { current, exit: None, round, fuel: 0 };
                    self.split(coarse, Some(place), limits);
                    self.frames_from_coarse(coarse, context, function, place);
                    return Some(CtaStop::Long);
                }
                NativeCtaStop::SideExit(at) => {
                    let fuel = fuel.clamp(0, interp::WARP_SLICE);
                    let place = Place { current, exit: Some(at as usize), round, fuel };
                    self.split(coarse, Some(place), limits);
                    let left = self.frames_from_coarse(coarse, context, function, place);
                    return self.split_coarse_warp((native, coarse, fuel), context, limits, cache, left);
                }
                NativeCtaStop::Declined => {
                    self.split(coarse, None, limits);
                    let context = &context.for_single_warps();
                    let native = context.native.unwrap_or(native);
                    return self.run_native(native, context, limits, cache, 0);
                }
                NativeCtaStop::BarrierMismatch | NativeCtaStop::Warp(_) => {
                    let place = Place::between(round);
                    self.split(coarse, Some(place), limits);
                    self.frames_from_coarse(coarse, context, function, place);
                    return None;
                }
            }
        }
    }

    /// Makes a CTA the first of those that began as one with it, if there are several. From now on they
    /// execute one after another. No other [`Cta`] starts them meanwhile.
    fn split(&mut self, coarse: &CoarseCode, left: Option<Place>, limits: &impl Limits) {
        if coarse.ctas > 1 {
            let count = coarse.ctas * self.native_frames.groups;
            self.members = Some(Members { at: 0, count, left });
            limits.take_members(u64::from(count) - 1);
        }
    }

    /// Makes a CTA that has finished the next one of those that began as one with it. `false`: it is the last
    /// of them, or began alone.
    pub(super) fn next_member(&mut self, limits: &impl Limits) -> bool {
        let Some(members) = &mut self.members else { return false };
        members.at += 1;
        if members.at >= members.count {
            self.members = None;
            return false;
        }
        self.ctaid[0] += 1;
        self.index += 1;
        self.place += 1;
        limits.start_member();
        true
    }

    /// Runs a CTA that began as one with others, from where its coarse warps have left it. `None`: as
    /// [`Cta::run_coarse`].
    pub(super) fn run_member(
        &mut self,
        native: &dyn Native,
        context: &LaunchContext<'_>,
        limits: &impl Limits,
        cache: &mut NativeCache,
    ) -> Option<CtaStop> {
        let Some(place) = self.members.and_then(|members| members.left) else {
            let context = &context.for_single_warps();
            let native = context.native.unwrap_or(native);
            return self.run_native(native, context, limits, cache, 0);
        };
        let (function, coarse) = (context.function(self.kernel)?, native.coarse_code()?);
        let left = self.frames_from_coarse(coarse, context, function, place);
        self.split_coarse_warp((native, coarse, place.fuel), context, limits, cache, left)
    }

    /// Runs the warps of a coarse warp from its side exit, in their order, each until it stops.
    fn split_coarse_warp(
        &mut self,
        (native, coarse, fuel): (&dyn Native, &CoarseCode, i64),
        context: &LaunchContext<'_>,
        limits: &impl Limits,
        cache: &mut NativeCache,
        left: Vec<SplitWarp>,
    ) -> Option<CtaStop> {
        let mut round = Round { ran: true, idle: true };
        for SplitWarp { warp, running } in left {
            let Some(RunningLanes { leave, mask, live, pending }) = running else {
                if let Err(stop) = self.slice(warp, context, limits, cache, &mut round) {
                    return Some(stop);
                }
                continue;
            };
            let (slice, quantum) = (interp::WARP_SLICE, interp::GROUP_QUANTUM);
            let frame = &mut self.warps[warp as usize];
            let before = (frame.steps, frame.lane_steps);
            let budget = Budget { slice, quantum, steps: u64::MAX };
            let stop = coarse.leaves[leave].point.place.stop();
            cache.pending.clear();
            cache.pending.extend(pending);
            let left = Left { stop, mask, live, fuel, fault: None, same: false };
            let stop = interp::run_left(frame, context, budget, cache, native, left);
            if let Err(stop) = self.stopped(warp, before, stop, context, limits, &mut round) {
                return Some(stop);
            }
        }
        None
    }

    /// Where the lanes of a warp of this CTA are.
    fn places(&self, coarse: &CoarseCode, warp: usize) -> Places {
        let member = self.members.map_or(0, |members| members.at) as usize;
        let (size, ctas) = (coarse.warps as usize * LANES, coarse.ctas as usize);
        let (groups, width) = (self.native_frames.groups as usize, self.grid.ntid[0] as usize);
        let threads: [usize; LANES] = std::array::from_fn(|lane| {
            let thread = warp * LANES + lane;
            (thread / width * ctas + member % ctas) * width + thread % width
        });
        Places {
            slots: threads.map(|thread| thread / size * groups + member / ctas),
            lanes: threads.map(|thread| thread % size),
        }
    }

    /// The lanes of a warp, which are in these slots. `left`: the running coarse warp, and its side exit.
    fn lanes_of_coarse(
        &self,
        function: &Function,
        slots: &[usize; LANES],
        (current, left): (u32, Option<usize>),
    ) -> LanesOf {
        let mut all = LanesOf { unstarted: 0, stopped: None };
        let mut rest = FULL;
        while let Some(first) = lanes_of(rest).next() {
            let slot = slots[first];
            let lanes =
                lanes_of(rest).filter(|lane| slots[*lane] == slot).fold(0, |mask, lane| mask | 1 << lane);
            rest &= !lanes;
            let at = match left.filter(|_| slot == current as usize) {
                Some(leave) => StoppedAt::SideExit(leave),
                None => match CtaCode::state(self.native_frames.slots[slot].state, function.blocks.len()) {
                    SlotState::Waits(which) => StoppedAt::Suspended(which),
                    SlotState::NotStarted => {
                        all.unstarted |= lanes;
                        continue;
                    }
                    SlotState::Exited | SlotState::Block(_) => continue,
                },
            };
            all.stopped = Some(StoppedLanes { slot, lanes, at });
        }
        all
    }

    /// Creates frames from the slots, as [`Cta::frames_from_slots`]. If the current coarse warp took a side
    /// exit, its warps are returned and must still be started.
    fn frames_from_coarse(
        &mut self,
        coarse: &CoarseCode,
        context: &LaunchContext<'_>,
        function: &Function,
        Place { current, exit: left, round, fuel: _ }: Place,
    ) -> Vec<SplitWarp> {
        // Kernels with local memory have no coarse warps.
        self.frames(context, true);
        let (size, lines) = (coarse.warps as usize, coarse.cta.bytes as usize / 64);
        let mut leaving = Vec::new();
        for id in 0..self.warps.len() {
            let places = self.places(coarse, id);
            let LanesOf { unstarted, stopped } =
                self.lanes_of_coarse(function, &places.slots, (current, left));
            if unstarted == FULL {
                continue;
            }
            let (number, here) = stopped.map_or((0, 0), |stopped| (stopped.slot, stopped.lanes));
            let area = if coarse.shares_save_area() { 0 } else { number };
            let lines = &self.native_frames.kept[area * lines..(area + 1) * lines];
            let mask = |offset: usize| here & mask_of(lines, offset, &places.lanes);
            let live = unstarted | mask(LIVE);
            let warp = &mut self.warps[id];
            let act = warp.groups.first().map_or(0, |group| group.act);
            warp.groups.clear();
            let missing = warp.state.live & !live;
            if live == 0 {
                watched_cta::exited(warp, act, missing, context.exit);
                self.exited(id);
                continue;
            }
            if unstarted != 0 {
                warp.push_ready(act, 0, unstarted);
            }
            if let Some(StoppedLanes { at: StoppedAt::SideExit(leave), .. }) = stopped {
                // Exits are reported together with the running lanes, unless no lane runs.
                let running = mask(RUNNING * size * 4);
                let content = &coarse.leaves[leave].left;
                let regs = &mut warp.acts[act as usize].regs;
                let take = |kept: &[SavedReg], mask: LaneMask, regs: &mut _| {
                    kept.iter().for_each(|kept| kept.expand_of(lines, &places.lanes, regs, mask));
                };
                take(&content.running, running, regs);
                let mut pending = Vec::new();
                for group in &content.pending {
                    let lanes = mask(group.offset as usize);
                    if lanes != 0 {
                        take(&group.kept, lanes, regs);
                        pending.push([group.block, lanes]);
                    }
                }
                let mut lanes = None;
                if running == 0 {
                    if missing != 0 {
                        watched_cta::exited(warp, act, missing, context.exit);
                    }
                    pending.iter().for_each(|[block, lanes]| warp.push_ready(act, *block, *lanes));
                } else {
                    lanes = Some(RunningLanes { leave, mask: running, live, pending });
                }
                leaving.push(SplitWarp { warp: id as u32, running: lanes });
                continue;
            }
            if missing != 0 {
                watched_cta::exited(warp, act, missing, context.exit);
            }
            let Some(StoppedLanes { at: StoppedAt::Suspended(which), .. }) = stopped else { continue };
            let Some(behind) = coarse.cta.barriers.get(which) else { continue };
            let regs = &mut warp.acts[act as usize].regs;
            behind.kept.iter().for_each(|kept| kept.expand_of(lines, &places.lanes, regs, here));
            if behind.id.is_none() {
                warp.push_ready(act, behind.block, live & here);
                continue;
            }
            match context.block(self.kernel, behind.block).map(|b| &b.term) {
                Some(Term::Barrier(barrier)) if current as usize <= number => {
                    reduced(round).put(barrier, regs, live);
                    warp.push_ready(act, barrier.next.0, live);
                }
                Some(Term::Barrier(barrier)) => self.arrived(id, (act, behind.block), live, barrier, context),
                _ => {}
            }
        }
        for barrier in 0..self.barriers.len() {
            self.complete(barrier, context);
        }
        leaving
    }
}

/// Where the lanes of a warp are.
struct Places {
    /// The slot of the coarse warp of each lane.
    slots: [usize; LANES],
    /// The lane of that coarse warp.
    lanes: [usize; LANES],
}

/// Lanes of a warp, by the states of their coarse warps. The other lanes have exited.
struct LanesOf {
    /// Lanes that have not started.
    unstarted: LaneMask,
    /// Lanes of a coarse warp in the middle of the kernel. There is only one, since warps whose lanes are in
    /// several coarse warps are of CTAs that execute as one.
    stopped: Option<StoppedLanes>,
}

/// Lanes of a coarse warp in the middle of the kernel.
#[derive(Clone, Copy)]
struct StoppedLanes {
    slot: usize,
    lanes: LaneMask,
    at: StoppedAt,
}

/// The place of a coarse warp in the middle of the kernel.
#[derive(Clone, Copy)]
enum StoppedAt {
    /// A side exit: index of [`CoarseCode::leaves`].
    SideExit(usize),
    /// A barrier, or a loop header: index of [`CtaCode::barriers`].
    Suspended(usize),
}

/// A warp of a coarse warp that took a side exit.
struct SplitWarp {
    warp: u32,
    /// Its running lanes; `None`: all its lanes are pending, and ready in its frame.
    running: Option<RunningLanes>,
}

/// The lanes of a warp that ran where its coarse warp took a side exit.
struct RunningLanes {
    /// The place: index of [`CoarseCode::leaves`].
    leave: usize,
    mask: LaneMask,
    /// Lanes that have not exited.
    live: LaneMask,
    /// Diverged lanes: block and mask.
    pending: Vec<[u32; 2]>,
}
