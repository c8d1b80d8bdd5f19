//! A CTA in native code: its warps run from barrier to barrier without frames.
//!
//! Invariant: warps have frames or slots, never both: [`Cta::frames_from_slots`] makes frames where native code cannot go on, and from
//! there the CTA is as if it had always had them.

use super::cta::{Cta, CtaStop, Limits, Round};
use crate::bound::{Barrier, Function, Term, Value32};
use crate::frame::{BarrierWait, Wait, WarpFrame};
use crate::interp::{self, Arrival, Budget, Left, World};
use crate::lanes::{FULL, LaneMask, Registers};
use crate::native::{
    CtaCall, CtaCode, CtaStop as WholeStop, Fresh, Line, Native, NativeStop, Portion, Reached, Slot,
    SlotState,
};
use std::time::Instant;

/// Turns of loops that native code of a CTA may take until it looks whether the launch is to stop. Chosen: about a tenth of a millisecond.
pub(super) const TURNS: i64 = 1 << 15;
/// The same while the thread that launches has no help yet: it soon looks whether it should have.
pub(super) const FIRST_TURNS: i64 = 1 << 9;
/// How often a loop that may wait for others can use its turns up, having changed memory, before the CTA's other warps have theirs.
const WAITING: u32 = 16;

/// Room for the warps of a CTA in native code.
#[derive(Default)]
pub(super) struct Room {
    pub(super) slots: Vec<Slot>,
    pub(super) kept: Vec<Line>,
    pub(super) regs: Registers,
    /// Warps whose state is that of this CTA.
    pub(super) touched: u32,
}

impl Room {
    /// Whether a warp's state is that of this CTA.
    pub(super) fn is_touched(&self, warp: usize) -> bool {
        self.touched >> warp & 1 != 0
    }

    /// All warps at the start of the kernel.
    fn start(&mut self, code: &CtaCode, function: &Function, warps: &mut [WarpFrame], threads: u32) -> Fresh {
        if self.slots.len() != warps.len() {
            self.slots.resize(warps.len(), Slot::default());
            let bytes = warps.len() * code.bytes as usize;
            self.kept.resize(bytes.div_ceil(64), Line::default());
            self.regs.reset(function.regs);
            for (slot, warp) in self.slots.iter_mut().zip(warps.iter_mut()) {
                warp.view.set_local_top(u64::from(function.frame_bytes));
                slot.local = warp.view.windows().local.0;
            }
        }
        self.touched = 0;
        let fresh = Fresh::of_warps(function, threads);
        fresh.put(&mut self.slots, &mut self.kept);
        for warp in warps {
            warp.clear_local();
            warp.use_local(u64::from(function.frame_bytes));
        }
        fresh
    }
}

/// Since when each look at a CTA has found the same warp or team running. Others may have run in between, so that one which does nearly all of the
/// work may be taken for one that never waits; it loses speed, nothing else.
#[derive(Default)]
pub(super) struct LongTurn(Option<((u64, u32), Instant)>);

impl LongTurn {
    /// A warp or team has used its turns of loops up; `who`: the CTA's place, and the warp or team. Whether it must let others run.
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

impl Cta {
    /// Runs a CTA that has not begun. `None`: its warps have frames now, and it goes on with those.
    pub(super) fn run_whole(
        &mut self,
        native: &dyn Native,
        world: &World<'_>,
        limits: &impl Limits,
        reached: &mut Reached,
    ) -> Option<CtaStop> {
        let function = world.function(self.kernel)?;
        let fresh = self.room.start(native.cta(), function, &mut self.warps, self.grid.threads());
        let follows = native.follows() && function.frame_bytes == 0;
        let (mut warp, mut round, mut waiting) = (0, [0; 2], 0);
        let (mut turn, mut long) = (LongTurn::default(), false);
        loop {
            if limits.steps().is_none() {
                return Some(CtaStop::Cancelled);
            }
            if let Some(kind) = limits.late() {
                self.frames_from_slots(native.cta(), world, function, (warp, false));
                let stopped = super::cta::blame(&self.warps[warp as usize], world, kind);
                return Some(CtaStop::Trapped(stopped, warp));
            }
            let room = &mut self.room;
            let mut call = CtaCall {
                code: world.code,
                function: self.kernel,
                ctaid: self.ctaid,
                smid: self.smid,
                grid: &self.grid,
                slots: &mut room.slots,
                kept: &mut room.kept,
                regs: &mut room.regs,
                warps: &mut self.warps,
                touched: &mut room.touched,
                reached,
                portion: Portion {
                    more: if follows { limits.taken() } else { 0 },
                    ran: 0,
                    shared: self.shared.as_mut(),
                    fresh,
                },
                warp,
                round,
                turns: if limits.alone() && !native.may_wait() { FIRST_TURNS } else { TURNS },
                mask: 0,
                live: 0,
                steps: 0,
                lane_steps: 0,
                fallbacks: 0,
                fault: None,
            };
            let stop = native.run_cta(&mut call);
            let (ctaid, followed) = (call.ctaid, call.followed());
            let CtaCall { mask, live, steps, lane_steps, fallbacks, fault, turns, .. } = call;
            (warp, round) = (call.warp, call.round);
            self.followed(ctaid, followed, limits);
            limits.spend(steps, lane_steps);
            limits.spend_native(steps, fallbacks);
            let stop = match stop {
                WholeStop::Finished => {
                    self.count_events(limits);
                    self.live = 0;
                    return Some(CtaStop::Finished);
                }
                WholeStop::Apart
                | WholeStop::Turn
                | WholeStop::Left(_)
                | WholeStop::Warp(NativeStop::Declined) => {
                    // The round is over: nobody has a turn.
                    self.frames_from_slots(native.cta(), world, function, (u32::MAX, false));
                    return None;
                }
                WholeStop::Warp(NativeStop::Yield { block })
                    if reached.parked.is_empty()
                        && mask == live
                        && self.may_go_on(native, block, warp, &mut waiting)
                        && {
                            long = turn.gives_way((self.place, warp), limits);
                            !long
                        } =>
                {
                    let slot = &mut self.room.slots[warp as usize];
                    (slot.state, slot.live) = (block, live);
                    continue;
                }
                WholeStop::Warp(stop) => stop,
            };
            self.frames_from_slots(native.cta(), world, function, (warp, true));
            let (slice, turn) = (interp::SLICE, interp::TURN);
            let frame = &mut self.warps[warp as usize];
            let before = (frame.steps, frame.lane_steps);
            let budget = Budget { slice, turn, steps: u64::MAX };
            let left = Left { stop, mask, live, turns: turns.clamp(0, slice), fault, same: true };
            let stop = interp::run_left(frame, world, budget, reached, native, left);
            let mut round = Round { ran: true, idle: true };
            return match self.stopped(warp, before, stop, world, limits, &mut round) {
                Ok(()) => long.then_some(CtaStop::Long),
                Err(stop) => Some(stop),
            };
        }
    }

    /// So many CTAs have begun behind this one, which is the last of them now.
    pub(super) fn followed(&mut self, ctaid: [u32; 3], count: u64, limits: &impl Limits) {
        if count > 0 {
            self.ctaid = ctaid;
            self.index += count;
            self.place += count;
            limits.follow(count);
        }
    }

    /// Whether a warp whose loop has used its turns up goes on at once.
    fn may_go_on(&mut self, native: &dyn Native, block: u32, warp: u32, waiting: &mut u32) -> bool {
        if !native.watches(block) {
            return true;
        }
        *waiting += 1;
        *waiting < WAITING && self.warps[warp as usize].view.take_activity().changed
    }

    /// Hands on what events the interpreter's steps triggered.
    fn count_events(&mut self, limits: &impl Limits) {
        let mut touched = std::mem::take(&mut self.room.touched);
        while touched != 0 {
            let warp = touched.trailing_zeros();
            touched &= touched - 1;
            if let Some(events) = self.warps[warp as usize].state.events.take() {
                limits.count(&events);
            }
        }
    }

    /// Makes frames of what the slots say. It is the turn of that warp: those behind it have not been told yet that their barrier is
    /// complete. If it `runs`, it is at no block yet, and its registers are those of the room.
    fn frames_from_slots(
        &mut self,
        code: &CtaCode,
        world: &World<'_>,
        function: &Function,
        (turn, runs): (u32, bool),
    ) {
        self.frames(world, false);
        let lines = code.bytes as usize / 64;
        for id in 0..self.warps.len() {
            let slot = self.room.slots[id];
            let warp = &mut self.warps[id];
            let state = CtaCode::state(slot.state, function.blocks.len());
            let runs = runs && turn == id as u32;
            if state == SlotState::Fresh && !runs {
                continue;
            }
            let act = warp.groups.first().map_or(0, |group| group.act);
            warp.groups.clear();
            (warp.state.carry, warp.state.clock) = (slot.carry, slot.clock);
            let missing = warp.state.live & !slot.live;
            if state == SlotState::Exited {
                let live = warp.state.live;
                warp.exit(act, live);
                self.exited(id);
                continue;
            }
            if missing != 0 {
                warp.exit(act, missing);
            }
            let regs = &mut warp.acts[act as usize].regs;
            if runs {
                std::mem::swap(regs, &mut self.room.regs);
                continue;
            }
            match state {
                SlotState::Waits(at) => {
                    let Some(behind) = code.barriers.get(at) else { continue };
                    for kept in &behind.kept {
                        kept.expand(&self.room.kept[id * lines..(id + 1) * lines], regs, FULL);
                    }
                    match world.block(self.kernel, behind.block).map(|b| &b.term) {
                        Some(Term::Barrier(barrier)) if turn <= id as u32 => {
                            warp.push_ready(act, barrier.next.0, slot.live);
                        }
                        Some(Term::Barrier(barrier)) => {
                            self.arrived(id, act, behind.block, slot.live, barrier)
                        }
                        _ => {}
                    }
                }
                // Stopped between two turns of a loop.
                SlotState::Block(block) => {
                    std::mem::swap(regs, &mut self.room.regs);
                    warp.push_ready(act, block, slot.live);
                }
                SlotState::Fresh | SlotState::Exited => {}
            }
        }
        for barrier in 0..self.barriers.len() {
            self.complete(barrier, world);
        }
    }

    /// A whole warp waits at the barrier at the end of that block.
    pub(super) fn arrived(&mut self, id: usize, act: u32, block: u32, live: LaneMask, barrier: &Barrier) {
        let constant = |value: Value32| match value {
            Value32::Imm(value) => Some(value),
            Value32::Reg(_) => None,
        };
        let wait = BarrierWait {
            kind: barrier.kind,
            id: constant(barrier.id).unwrap_or(0),
            count: barrier.count.and_then(constant),
            truths: 0,
            arrived: true,
        };
        self.warps[id].park(act, block, live, Wait::Barrier(wait));
        self.waits_at(id, &wait, Arrival { waiting: live }, live);
    }
}
