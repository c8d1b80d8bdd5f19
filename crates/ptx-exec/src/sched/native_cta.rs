//! CTAs that run in native code: their warps run from barrier to barrier without frames.
//!
//! Invariant: the warps have frames or slots, never both. [`Cta::frames_from_slots`] creates frames where
//! native code cannot continue; afterwards the CTA is in the same state as if its warps had always had
//! frames.

use super::cta::{Cta, CtaStop, Limits, Round};
use crate::bound::{Barrier, Function, Term, Value32};
use crate::context::LaunchContext;
use crate::frame::{BarrierWait, Wait};
use crate::interp::{self, Arrival, Budget, Left, Reduced, truths};
use crate::lanes::{FULL, LaneMask};
use crate::native::{
    BarrierState, CoarseCode, CtaBatch, CtaCall, CtaCode, CtaStop as NativeCtaStop, Groups, InitialSlots,
    Native, NativeCache, NativeStop, SlotState,
};
use crate::watched_cta;
use std::time::Instant;

/// Loop iterations of native code between two checks whether the launch must stop. Chosen: about a tenth of a
/// millisecond.
pub(super) const FUEL: i64 = 1 << 15;
/// The same while the launching thread works alone: it must check soon whether to wake other threads.
pub(super) const FIRST_FUEL: i64 = 1 << 9;
/// How often a loop that polls memory may use up its fuel, if it changed memory meanwhile, before the other
/// warps run.
const MAX_WATCHING: u32 = 16;

/// Since when each check of a CTA has found the same warp, or coarse warp, running. Others may have run in
/// between, so a warp that does nearly all of the work can be mistaken for one that never waits. This costs
/// speed only.
#[derive(Default)]
pub(super) struct LongRun(Option<((u64, u32), Instant)>);

impl LongRun {
    /// Records that a warp has used up its fuel; `who`: the start position of the CTA, and the warp. Returns
    /// whether the warp must let others run.
    pub(super) fn gives_way(&mut self, who: (u64, u32), limits: &impl Limits) -> bool {
        match self.0 {
            Some((same, since)) if same == who => limits.gives_way(since),
            _ => {
                self.0 = Some((who, Instant::now()));
                false
            }
        }
    }
}

/// Where native code starts.
#[derive(Clone, Copy)]
pub(super) struct Start {
    /// The warp, or coarse warp.
    pub(super) warp: u32,
    /// The barrier state; see [`CtaCall::round`].
    pub(super) round: BarrierState,
    pub(super) fuel: i64,
}

impl Cta {
    /// A call of native code for this CTA, or for so many that execute as one. `remaining` more CTAs may run
    /// in it, from the initial slots.
    pub(super) fn native_call<'a>(
        &'a mut self,
        context: &'a LaunchContext<'_>,
        cache: &'a mut NativeCache,
        Start { warp, round, fuel }: Start,
        (remaining, coarse, initial): (u64, Option<(&'a CoarseCode, Groups)>, InitialSlots),
    ) -> CtaCall<'a> {
        let frames = &mut self.native_frames;
        let groups = coarse.map_or(Groups::ONE, |(_, groups)| groups);
        CtaCall {
            code: context.code,
            function: self.kernel,
            ctaid: self.ctaid,
            smid: self.smid,
            grid: &self.grid,
            slots: &mut frames.slots,
            kept: &mut frames.kept,
            regs: &mut frames.regs,
            warps: &mut self.warps,
            touched: &mut frames.touched,
            index: self.index,
            begun: &mut self.begun,
            cache,
            batch: CtaBatch {
                remaining,
                started: 0,
                coarse: coarse.map(|(coarse, _)| coarse),
                groups,
                shared: self.shared.as_mut(),
                initial,
            },
            warp,
            round,
            fuel,
            mask: 0,
            live: 0,
            steps: 0,
            lane_steps: 0,
            fallbacks: 0,
            fault: None,
        }
    }

    /// Runs a CTA that has not started, and at most so many `more` of those that the thread has taken.
    /// `None`: its warps have frames now, and the caller must run those.
    pub(super) fn run_native(
        &mut self,
        native: &dyn Native,
        context: &LaunchContext<'_>,
        limits: &impl Limits,
        cache: &mut NativeCache,
        mut more: u64,
    ) -> Option<CtaStop> {
        let function = context.function(self.kernel)?;
        let initial = self.native_frames.start(native.cta(), function, &mut self.warps, self.grid.threads());
        let can_batch = native.can_batch_ctas() && function.frame_bytes == 0;
        let (mut warp, mut round, mut waiting) = (0, BarrierState::default(), 0);
        let (mut long_run, mut long) = (LongRun::default(), false);
        loop {
            if limits.steps().is_none() {
                return Some(CtaStop::Cancelled);
            }
            if let Some(kind) = limits.late() {
                self.frames_from_slots(native.cta(), context, function, (warp, false), round);
                let stopped = super::cta::blame(&self.warps[warp as usize], context, kind);
                return Some(CtaStop::Trapped(stopped, warp));
            }
            let fuel = if limits.alone() && !native.may_wait() { FIRST_FUEL } else { FUEL };
            let remaining = if can_batch { limits.taken().min(more) } else { 0 };
            let mut call =
                self.native_call(context, cache, Start { warp, round, fuel }, (remaining, None, initial));
            let stop = native.run_cta(&mut call);
            let (ctaid, batched) = (call.ctaid, call.batched());
            let CtaCall { mask, live, steps, lane_steps, fallbacks, fault, fuel, .. } = call;
            (warp, round) = (call.warp, call.round);
            more -= batched;
            self.advance_batch(ctaid, batched, limits);
            limits.spend(steps, lane_steps);
            limits.spend_native(steps, fallbacks);
            self.count_events(limits);
            let stop = match stop {
                NativeCtaStop::Finished => {
                    self.live = 0;
                    return Some(CtaStop::Finished);
                }
                NativeCtaStop::BarrierMismatch
                | NativeCtaStop::OutOfFuel
                | NativeCtaStop::SideExit(_)
                | NativeCtaStop::Declined
                | NativeCtaStop::Warp(NativeStop::Declined) => {
                    // No warp is in the middle of its round.
                    self.frames_from_slots(native.cta(), context, function, (u32::MAX, false), round);
                    return None;
                }
                NativeCtaStop::Warp(NativeStop::Yield { block })
                    if cache.pending.is_empty()
                        && mask == live
                        && self.may_go_on(native, block, warp, &mut waiting)
                        && {
                            long = long_run.gives_way((self.place, warp), limits);
                            !long
                        } =>
                {
                    let slot = &mut self.native_frames.slots[warp as usize];
                    (slot.state, slot.live) = (block, live);
                    continue;
                }
                NativeCtaStop::Warp(stop) => stop,
            };
            self.frames_from_slots(native.cta(), context, function, (warp, true), round);
            let (slice, quantum) = (interp::WARP_SLICE, interp::GROUP_QUANTUM);
            let frame = &mut self.warps[warp as usize];
            let before = (frame.steps, frame.lane_steps);
            let budget = Budget { slice, quantum, steps: u64::MAX };
            let left = Left { stop, mask, live, fuel: fuel.clamp(0, slice), fault, same: true };
            let stop = interp::run_left(frame, context, budget, cache, native, left);
            let mut round = Round { ran: true, idle: true };
            return match self.stopped(warp, before, stop, context, limits, &mut round) {
                Ok(()) => long.then_some(CtaStop::Long),
                Err(stop) => Some(stop),
            };
        }
    }

    /// Records that `count` more CTAs of the batch have started; this CTA is the last of them now.
    pub(super) fn advance_batch(&mut self, ctaid: [u32; 3], count: u64, limits: &impl Limits) {
        if count > 0 {
            self.ctaid = ctaid;
            self.index += count;
            self.place += count;
            limits.start_batched(count);
        }
    }

    /// Whether a warp that has used up its fuel continues at once.
    fn may_go_on(&mut self, native: &dyn Native, block: u32, warp: u32, waiting: &mut u32) -> bool {
        if !native.watches(block) {
            return true;
        }
        *waiting += 1;
        *waiting < MAX_WATCHING && self.warps[warp as usize].view.take_activity().changed
    }

    /// Reports events that steps of the interpreter triggered.
    fn count_events(&mut self, limits: &impl Limits) {
        let mut touched = std::mem::take(&mut self.native_frames.touched);
        while touched != 0 {
            let warp = touched.trailing_zeros();
            touched &= touched - 1;
            if let Some(events) = self.warps[warp as usize].state.events.take() {
                limits.count(&events);
            }
        }
    }

    /// Creates frames from the slots. `current` is the current warp: the warps from it on have not yet been
    /// told that their barrier has completed. If it `runs`, it has no block yet, and its registers are those
    /// of [`NativeFrames`].
    fn frames_from_slots(
        &mut self,
        code: &CtaCode,
        context: &LaunchContext<'_>,
        function: &Function,
        (current, runs): (u32, bool),
        round: BarrierState,
    ) {
        self.frames(context, false);
        let lines = code.bytes as usize / 64;
        for id in 0..self.warps.len() {
            let slot = self.native_frames.slots[id];
            let warp = &mut self.warps[id];
            let state = CtaCode::state(slot.state, function.blocks.len());
            let runs = runs && current == id as u32;
            if state == SlotState::NotStarted && !runs {
                continue;
            }
            let act = warp.groups.first().map_or(0, |group| group.act);
            warp.groups.clear();
            (warp.state.carry, warp.state.clock) = (slot.carry, slot.clock);
            let missing = warp.state.live & !slot.live;
            if state == SlotState::Exited {
                let live = warp.state.live;
                watched_cta::exited(warp, act, live, context.exit);
                self.exited(id);
                continue;
            }
            if missing != 0 {
                watched_cta::exited(warp, act, missing, context.exit);
            }
            let regs = &mut warp.acts[act as usize].regs;
            if runs {
                std::mem::swap(regs, &mut self.native_frames.regs);
                continue;
            }
            match state {
                SlotState::Waits(at) => {
                    let Some(behind) = code.barriers.get(at) else { continue };
                    for kept in &behind.kept {
                        kept.expand(&self.native_frames.kept[id * lines..(id + 1) * lines], regs, FULL);
                    }
                    match context.block(self.kernel, behind.block).map(|b| &b.term) {
                        Some(Term::Barrier(barrier)) if current <= id as u32 => {
                            reduced(round).put(barrier, regs, slot.live);
                            warp.push_ready(act, barrier.next.0, slot.live);
                        }
                        Some(Term::Barrier(barrier)) => {
                            self.arrived(id, (act, behind.block), slot.live, barrier, context)
                        }
                        _ => {}
                    }
                }
                // Stopped between two iterations of a loop.
                SlotState::Block(block) => {
                    std::mem::swap(regs, &mut self.native_frames.regs);
                    warp.push_ready(act, block, slot.live);
                }
                SlotState::NotStarted | SlotState::Exited => {}
            }
        }
        for barrier in 0..self.barriers.len() {
            self.complete(barrier, context);
        }
    }

    /// Records that all lanes of a warp wait at the barrier at the end of that block.
    pub(super) fn arrived(
        &mut self,
        id: usize,
        (act, block): (u32, u32),
        live: LaneMask,
        barrier: &Barrier,
        context: &LaunchContext<'_>,
    ) {
        let constant = |value: Value32| match value {
            Value32::Imm(value) => Some(value),
            Value32::Reg(_) => None,
        };
        let regs = &self.warps[id].acts[act as usize].regs;
        let wait = BarrierWait {
            kind: barrier.kind,
            id: constant(barrier.id).unwrap_or(0),
            count: barrier.count.and_then(constant),
            truths: barrier.pred.map_or(0, |pred| truths(pred, regs) & live),
            arrived: true,
        };
        if context.watched {
            let index = context.block(self.kernel, block).map_or(0, |block| block.steps.len() as u32);
            watched_cta::arrived(&mut self.warps[id], (act, block, index), (&wait, barrier.aligned), live);
        }
        self.warps[id].park(act, block, live, Wait::Barrier(wait));
        self.waits_at(id, &wait, Arrival { waiting: live }, live);
    }
}

/// The result of the barrier that completed last in native code.
pub(super) fn reduced(round: BarrierState) -> Reduced {
    Reduced { popc: round.result, all: round.result == 0 }
}
