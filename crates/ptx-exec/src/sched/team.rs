//! A CTA in native code whose warps run in teams: several as one warp of more lanes, from barrier to barrier.
//!
//! A team does what all its lanes do together, in the fewest instructions. Where that does not go on it **leaves**: what its lanes hold is
//! then made into frames of its warps, each of which goes on from that place by itself, in this CTA for good.
//!
//! Invariant: as in [`whole`](super::whole): a warp has a frame, or its team has a slot. Warps of a team are at one place of the program, or
//! parked by their team where they would have been parked by themselves, so that leaving needs nothing that a warp alone would not.

use super::cta::{Cta, CtaStop, Limits, Round};
use super::whole::{FIRST_TURNS, LongTurn, Room, TURNS};
use crate::bound::{Function, Term};
use crate::interp::{self, Budget, Left, World};
use crate::lanes::{FULL, LaneMask};
use crate::native::{
    CtaCall, CtaCode, CtaStop as WholeStop, Fresh, Kept, Line, Native, Portion, Reached, Slot, SlotState,
    TeamCode, mask_at,
};

/// What comes first of what a team keeps: masks of lanes, in this order.
const LIVE: usize = 0;
const RUNNING: usize = 1;

impl Room {
    /// All teams at the start of the kernel.
    fn start_teams(&mut self, team: &TeamCode, function: &Function, warps: usize) -> Fresh {
        let (teams, lines) = (warps / team.warps as usize, team.cta.bytes as usize / 64);
        if self.slots.len() != teams {
            self.slots.resize(teams, Slot::default());
            self.kept.resize(teams * lines, Line::default());
            self.regs.reset(function.regs);
        }
        self.touched = 0;
        let fresh = Fresh::of_teams(function, team.warps, lines);
        fresh.put(&mut self.slots, &mut self.kept);
        fresh
    }
}

impl Cta {
    /// Runs a CTA that has not begun. `None`: its warps have frames now, and it goes on with those.
    pub(super) fn run_teams(
        &mut self,
        (native, team): (&dyn Native, &TeamCode),
        world: &World<'_>,
        limits: &impl Limits,
        reached: &mut Reached,
    ) -> Option<CtaStop> {
        let function = world.function(self.kernel)?;
        let fresh = self.room.start_teams(team, function, self.warps.len());
        let (mut turn, mut round) = (0, [0; 2]);
        let mut long = LongTurn::default();
        loop {
            if limits.steps().is_none() {
                return Some(CtaStop::Cancelled);
            }
            if let Some(kind) = limits.late() {
                self.frames_from_teams(team, world, function, (turn, None));
                let warp = (turn * team.warps).min(self.warps.len() as u32 - 1);
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
                    more: if native.follows() { limits.taken() } else { 0 },
                    ran: 0,
                    shared: self.shared.as_mut(),
                    fresh,
                },
                warp: turn,
                round,
                turns: if limits.alone() { FIRST_TURNS } else { TURNS },
                mask: 0,
                live: 0,
                steps: 0,
                lane_steps: 0,
                fallbacks: 0,
                fault: None,
            };
            let stop = native.run_team(&mut call);
            let (ctaid, followed) = (call.ctaid, call.followed());
            let CtaCall { steps, lane_steps, turns, .. } = call;
            (turn, round) = (call.warp, call.round);
            self.followed(ctaid, followed, limits);
            limits.spend(steps, lane_steps);
            limits.spend_native(steps, 0);
            match stop {
                WholeStop::Finished => {
                    self.live = 0;
                    return Some(CtaStop::Finished);
                }
                WholeStop::Turn if !long.gives_way((self.place, turn), limits) => {}
                WholeStop::Turn => {
                    self.frames_from_teams(team, world, function, (turn, None));
                    return Some(CtaStop::Long);
                }
                WholeStop::Left(at) => {
                    let left = self.frames_from_teams(team, world, function, (turn, Some(at as usize)));
                    let turns = turns.clamp(0, interp::SLICE);
                    return self.fall_apart((native, team, turns), world, limits, reached, left);
                }
                WholeStop::Apart | WholeStop::Warp(_) => {
                    // The round is over: nobody has a turn.
                    self.frames_from_teams(team, world, function, (u32::MAX, None));
                    return None;
                }
            }
        }
    }

    /// The warps of a team that left go on, each as far as it comes.
    fn fall_apart(
        &mut self,
        (native, team, turns): (&dyn Native, &TeamCode, i64),
        world: &World<'_>,
        limits: &impl Limits,
        reached: &mut Reached,
        left: Vec<Leaving>,
    ) -> Option<CtaStop> {
        let mut round = Round { ran: true, idle: true };
        for Leaving { warp, leave, mask, live, parked } in left {
            let (slice, turn) = (interp::SLICE, interp::TURN);
            let frame = &mut self.warps[warp as usize];
            let before = (frame.steps, frame.lane_steps);
            let budget = Budget { slice, turn, steps: u64::MAX };
            let stop = team.leaves[leave].place.stop();
            reached.parked.clear();
            reached.parked.extend(parked);
            let left = Left { stop, mask, live, turns, fault: None, same: false };
            let stop = interp::run_left(frame, world, budget, reached, native, left);
            if let Err(stop) = self.stopped(warp, before, stop, world, limits, &mut round) {
                return Some(stop);
            }
        }
        None
    }

    /// Makes frames of what the slots say, as [`Cta::frames_from_slots`]; the team whose turn it is may have left. Its warps that were running
    /// still have to be told.
    fn frames_from_teams(
        &mut self,
        team: &TeamCode,
        world: &World<'_>,
        function: &Function,
        (turn, left): (u32, Option<usize>),
    ) -> Vec<Leaving> {
        // No team has used local memory.
        self.frames(world, true);
        let (size, lines) = (team.warps as usize, team.cta.bytes as usize / 64);
        let mut leaving = Vec::new();
        for id in 0..self.warps.len() {
            let (number, at) = (id / size, id % size);
            let state = CtaCode::state(self.room.slots[number].state, function.blocks.len());
            let left = left.filter(|_| number == turn as usize);
            if state == SlotState::Fresh && left.is_none() {
                continue;
            }
            let lines = &self.room.kept[number * lines..(number + 1) * lines];
            let mask = |which: usize| mask_at(lines, (which * size + at) * 4);
            let live = if state == SlotState::Exited && left.is_none() { 0 } else { mask(LIVE) };
            let warp = &mut self.warps[id];
            let act = warp.groups.first().map_or(0, |group| group.act);
            warp.groups.clear();
            let missing = warp.state.live & !live;
            if live == 0 {
                warp.exit(act, missing);
                self.exited(id);
                continue;
            }
            if let Some(leave) = left {
                // Who is missing is told with the rest, unless nobody runs.
                let running = mask(RUNNING);
                let content = &team.leaves[leave].left;
                let regs = &mut warp.acts[act as usize].regs;
                let take = |kept: &[Kept], mask: LaneMask, regs: &mut _| {
                    kept.iter().for_each(|kept| kept.expand_of(lines, at, regs, mask));
                };
                take(&content.running, running, regs);
                let mut parked = Vec::new();
                for group in &content.parked {
                    let lanes = mask_at(lines, group.offset as usize + 4 * at);
                    if lanes != 0 {
                        take(&group.kept, lanes, regs);
                        parked.push([group.block, lanes]);
                    }
                }
                if running == 0 {
                    if missing != 0 {
                        warp.exit(act, missing);
                    }
                    parked.iter().for_each(|[block, lanes]| warp.push_ready(act, *block, *lanes));
                } else {
                    leaving.push(Leaving { warp: id as u32, leave, mask: running, live, parked });
                }
                continue;
            }
            if missing != 0 {
                warp.exit(act, missing);
            }
            let SlotState::Waits(which) = state else { continue };
            let Some(behind) = team.cta.barriers.get(which) else { continue };
            let regs = &mut warp.acts[act as usize].regs;
            behind.kept.iter().for_each(|kept| kept.expand_of(lines, at, regs, FULL));
            if behind.id.is_none() {
                warp.push_ready(act, behind.block, live);
                continue;
            }
            match world.block(self.kernel, behind.block).map(|b| &b.term) {
                Some(Term::Barrier(barrier)) if turn as usize <= number => {
                    warp.push_ready(act, barrier.next.0, live);
                }
                Some(Term::Barrier(barrier)) => self.arrived(id, act, behind.block, live, barrier),
                _ => {}
            }
        }
        for barrier in 0..self.barriers.len() {
            self.complete(barrier, world);
        }
        leaving
    }
}

/// A warp of a team that left, where it was running.
struct Leaving {
    warp: u32,
    /// Where: index of [`TeamCode::leaves`].
    leave: usize,
    mask: LaneMask,
    /// Lanes that have not exited.
    live: LaneMask,
    /// Blocks and lanes that have parted.
    parked: Vec<[u32; 2]>,
}
