//! Entry and side exits of native code.
//!
//! Invariant: when native code returns, every live register of every lane that it owns is in the warp frame,
//! or in the hand-over area in the form of its shape; a table says where
//! ([`StateMap`](super::state_map::StateMap)). So an exit is a few stores, and the host rebuilds the frame
//! from the table.

use super::endpoint_test::Condition;
use super::state_map::Room;
use super::{Codegen, Repr};
use crate::frame::{Frame, Reason, code};
use crate::llvm::{Likely, Value};
use crate::wir;
use crate::wir::{Exit, ExitReason, GuardKind, Pending, Shape, Site};
use ptx::ir::{Reg, Terminator};
use ptx_exec::native::{
    EntryReg, EntryState, ExitCause, ExitPlace, ExitPoint, ExitState, Held, PendingLanes, SavedReg,
};
use std::mem::offset_of;

impl Codegen<'_> {
    pub(super) fn declined(&self) {
        self.b.ret(Some(self.c64(code(Reason::Declined, 0, 0))));
    }

    /// Assigns the places in the hand-over area from which each entry takes its registers, except varying
    /// ones. Varying registers are read from the warp frame.
    pub(super) fn assign_entry_areas(&mut self) {
        let func = self.job.func;
        for entry in &func.entries {
            let mut room = Room::default();
            let mut taken = Vec::new();
            for (reg, name) in &entry.relies {
                let (held, align) = match self.shape(*name).clone() {
                    Shape::Varying => continue,
                    Shape::Uniform(_) | Shape::Bottom => (Held::Same, 0),
                    // The base and the stride cannot be derived from the values of the active lanes, so the
                    // form must match.
                    Shape::Affine(pattern) if !pattern.rows.is_empty() => (self.held(*reg, *name), 0),
                    Shape::Affine(pattern) => (self.held(*reg, *name), pattern.align),
                };
                taken.push(EntryReg { kept: room.keep(*reg, held), align });
            }
            self.out.handed.fit(&room);
            self.out.handed.entries.push(EntryState { block: entry.block, taken });
        }
    }

    /// Emits the read of a register at an entry.
    pub(super) fn load(&mut self, reg: Reg, name: wir::Value) -> Repr {
        let entries = self.job.func.entries.iter().zip(&self.out.handed.entries);
        let entry = entries
            .filter(|(entry, _)| Some(entry.node) == self.position.node)
            .map(|(_, taken)| taken)
            .next();
        let taken = entry.and_then(|entry| entry.taken.iter().find(|taken| taken.kept.reg == reg)).cloned();
        match taken {
            Some(taken) => {
                let room = self.b.load(self.b.ptr(), self.field(offset_of!(Frame, room)), 8);
                self.unpack(&taken.kept, name, room)
            }
            None => self.load_reg(reg, name, self.entry.own),
        }
    }

    /// Stores a register in the hand-over area. Returns where it is and in which form.
    pub(super) fn state_map_of(
        &mut self,
        reg: Reg,
        name: wir::Value,
        to: &mut Room,
        room: Value,
    ) -> SavedReg {
        let kept = to.keep(reg, self.held(reg, name));
        self.pack(&kept, name, self.b.offset(room, u64::from(kept.offset)));
        kept
    }

    /// Stores the live values, and returns to the host. `sites`: the instructions that the cause is about;
    /// none if it is about the place of the exit.
    pub(super) fn exit(&mut self, exit: &Exit, cause: ExitCause, sites: &[Site]) {
        let place = match exit.why {
            ExitReason::Finished => None,
            ExitReason::Yield { block } => Some(ExitPlace::Yield { block }),
            ExitReason::Terminator { block } => Some(ExitPlace::Terminator { block }),
            ExitReason::Before(Site { block, index }) => Some(ExitPlace::Before { block, index }),
            ExitReason::Declined => return self.declined(),
        };
        let point = place.map(|place| exit_point(place, cause, sites));
        if self.job.shape.team > 1 {
            return self.leave(exit, point);
        }
        self.counts(exit);
        if let Some(resume) = exit.resume {
            self.wait(resume, exit);
        }
        if exit.why == ExitReason::Finished {
            self.gone();
            if self.entry.thread.is_some() {
                return;
            }
        }
        let mut to = Room::default();
        let mut left = ExitState::default();
        let mut saves = None;
        if self.shares_saves() {
            let regs = exit.parked.iter().flat_map(|parked| &parked.regs);
            let regs: Vec<(Reg, wir::Value)> = exit.regs.iter().chain(regs).copied().collect();
            let (mut kept, block) = self.save_shared(&regs, &mut to);
            saves = block;
            let mut of_parked = kept.split_off(exit.regs.len()).into_iter();
            left.running = kept;
            let room = self.b.load(self.b.ptr(), self.field(offset_of!(Frame, room)), 8);
            for parked in &exit.parked {
                let offset = self.save_pending_mask(parked, &mut to, room);
                let kept = of_parked.by_ref().take(parked.regs.len()).collect();
                left.pending.push(PendingLanes { block: parked.block, offset, kept });
            }
        } else {
            let room = self.b.load(self.b.ptr(), self.field(offset_of!(Frame, room)), 8);
            for (reg, name) in &exit.regs {
                // If all 32 lanes are active, no other lanes are in the frame.
                if self.position.full && *self.shape(*name) == Shape::Varying {
                    self.store_reg(*reg, *name, None);
                } else {
                    left.running.push(self.state_map_of(*reg, *name, &mut to, room));
                }
            }
            left.pending.extend(self.pending_threads(&mut to, room));
            for parked in &exit.parked {
                let offset = self.save_pending_mask(parked, &mut to, room);
                let save = |(reg, name): &(Reg, wir::Value)| self.state_map_of(*reg, *name, &mut to, room);
                let kept = parked.regs.iter().map(save).collect();
                left.pending.push(PendingLanes { block: parked.block, offset, kept });
            }
        }
        let number = self.left(left, &to);
        self.store_field(offset_of!(Frame, left), self.c32(number));
        let stop = match point {
            None => code(Reason::Finished, 0, 0),
            Some(point) => code(Reason::Exit, 0, self.exit_number(point)),
        };
        self.finish_exit(self.c64(stop), saves);
    }

    /// The side exit of a block that ends with it.
    pub(super) fn exit_of_block(&mut self, exit: &Exit) {
        let cause = match exit.why {
            ExitReason::Yield { .. } => ExitCause::Fuel,
            ExitReason::Terminator { .. } | ExitReason::Before(_) if self.job.shape.leaves_at_edges() => {
                ExitCause::Edge
            }
            ExitReason::Terminator { block } => match &self.job.function.blocks[block as usize].term {
                Terminator::Barrier { .. } => ExitCause::Barrier,
                Terminator::Call(_) => ExitCause::Call,
                Terminator::Switch { .. } => ExitCause::BeyondTargets,
                Terminator::WarpSync { .. }
                | Terminator::Goto(..)
                | Terminator::Branch { .. }
                | Terminator::Ret(_)
                | Terminator::Exit(_) => ExitCause::MissingLanes,
            },
            // Blocks end with no other exits that are counted.
            ExitReason::Finished | ExitReason::Declined | ExitReason::Before(_) => ExitCause::Bounds,
        };
        self.exit(exit, cause, &[]);
    }

    /// Stores which lanes are pending at a block. Returns where.
    fn save_pending_mask(&mut self, parked: &Pending, to: &mut Room, room: Value) -> u32 {
        let offset = to.place(4, 1);
        let lanes = self.scalar(parked.mask);
        self.b.store(lanes, self.b.offset(room, u64::from(offset)), 4);
        offset
    }

    /// Stores the masks and the counters.
    pub(super) fn counts(&mut self, exit: &Exit) {
        let masks = [(offset_of!(Frame, mask), exit.mask), (offset_of!(Frame, live), exit.live)];
        match self.entry.thread {
            Some(thread) => self.thread_masks(thread),
            None => masks.into_iter().for_each(|(offset, name)| self.store_field(offset, self.scalar(name))),
        }
        let turns = self.scalar(exit.turns);
        self.store_field(offset_of!(Frame, turns), turns);
        self.sums(exit);
        if self.job.clocks {
            let (place, now) = self.clock([exit.full_steps, exit.masked_steps]);
            self.b.store(now, place, 8);
        }
        if let Some(carry) = exit.carry {
            let place = self.b.load(self.b.ptr(), self.field(offset_of!(Frame, carry)), 8);
            let new = self.scalar(carry);
            let old = self.b.load(self.int(32), place, 4);
            let own = self.entry.own;
            let kept = self.b.not(own);
            let (old, new) = (self.b.and(old, kept), self.b.and(new, own));
            self.b.store(self.b.or(old, new), place, 4);
        }
    }

    /// Adds the counts of executed instructions.
    pub(super) fn sums(&mut self, exit: &Exit) {
        if self.job.shape.is_scalar() {
            return self.thread_sums(exit);
        }
        let sums = [
            (offset_of!(Frame, full_steps), exit.full_steps),
            (offset_of!(Frame, masked_steps), exit.masked_steps),
            (offset_of!(Frame, lane_steps), exit.lane_steps),
        ];
        for (offset, name) in sums {
            if self.constant_count(name) == Some(0) {
                continue;
            }
            let more = self.scalar(name);
            let sum = self.b.add(self.load64(offset), more);
            self.store_field(offset, sum);
        }
    }

    /// Takes the side exit before an instruction if what its guard is for does not hold.
    pub(super) fn guard(&mut self, (site, kind): (Site, GuardKind), exit: &Exit, uses: &[wir::Value]) {
        let Some(fails) = self.fails((site, kind), uses, (0, 0)) else { return };
        let leave = self.b.append_block(self.function, "unguarded");
        let stay = self.b.append_block(self.function, "guarded");
        self.b.cond_br(fails, leave, stay, Likely::No);
        self.b.position_at_end(leave);
        let cause = match kind {
            GuardKind::Exact | GuardKind::ExactInActive => ExitCause::Wraps,
            GuardKind::SameInAll => ExitCause::Edge,
        };
        self.exit(exit, cause, &[site]);
        self.b.position_at_end(stay);
    }

    /// The condition that a number wraps around where another is added, or subtracted if it does not grow.
    pub(super) fn overflows(&self, from: Value, by: Value, signed: bool, grows: bool) -> Value {
        let name = match (signed, grows) {
            (true, true) => "llvm.sadd.with.overflow",
            (true, false) => "llvm.ssub.with.overflow",
            (false, true) => "llvm.uadd.with.overflow",
            (false, false) => "llvm.usub.with.overflow",
        };
        let pair = self.b.intrinsic(name, &[from.ty()], &[from, by]);
        self.b.member(pair, 1)
    }

    /// The condition that a guard fails; `None`: it cannot. `between`: a guard of one value that must be
    /// exact also covers its sums with numbers from the first, which is at most zero, to the second.
    pub(super) fn fails(
        &mut self,
        (site, kind): (Site, GuardKind),
        uses: &[wir::Value],
        between: (i32, i32),
    ) -> Option<Value> {
        match kind {
            GuardKind::Exact => self.wraps(site, uses, between),
            GuardKind::ExactInActive => {
                // A result that is not affine is exact in every lane.
                let ends = self.active_ends(site)?;
                self.wraps_in_active(site, uses, ends)
            }
            GuardKind::SameInAll => self.differs(site, uses),
        }
    }

    /// The condition that a comparison has different results in some lanes; `None`: it cannot.
    fn differs(&mut self, site: Site, uses: &[wir::Value]) -> Option<Value> {
        if uses.iter().all(|name| self.shape(*name).is_uniform()) {
            return None;
        }
        let inst = site.inst(self.job.function)?;
        self.remarks.site.set(Some(site));
        self.applied("same-comparison", "assumed to be the same in all lanes: else the coarse warp leaves");
        let known = |emit: &Self, holds: bool| emit.b.const_int(emit.int(1), u64::from(holds));
        let [all, none] = [false, true].map(|negated| match self.passes(inst, uses, negated) {
            Some(Condition::Computed(holds)) => holds,
            Some(Condition::Known(holds)) => known(self, holds),
            None => known(self, false),
        });
        Some(self.b.not(self.b.or(all, none)))
    }

    /// The condition that a lane of an affine value wraps around where the instruction widens it, or its sum
    /// with a number between two; `None`: no lane can.
    fn wraps(&mut self, site: Site, uses: &[wir::Value], (low, high): (i32, i32)) -> Option<Value> {
        let inst = site.inst(self.job.function)?;
        let (ty, _) = crate::analysis::expr::Expr::of(inst)?.widens()?;
        let signed = ty.is_signed();
        let mut wraps: Option<Value> = None;
        for name in uses.iter().take(2) {
            let small = (low, high) == (0, 0) && self.is_small(*name);
            let Some(pattern) = self.pattern(*name).filter(|_| !small) else { continue };
            if !pattern.rows.is_empty() {
                let wrap = self.rows_wrap(*name, &pattern, signed);
                wraps = Some(match wraps {
                    None => wrap,
                    Some(others) => self.b.or(others, wrap),
                });
                continue;
            }
            let count = if pattern.by_chunk { self.chunks() } else { 1 };
            for c in 0..count {
                let lanes: Vec<i32> =
                    if pattern.by_chunk { self.relative(&pattern, c) } else { pattern.lanes.to_vec() };
                let base = self.base(*name, c).expect("a pattern has bases");
                let known = self.facts.analyses.constants.chunk(*name, c).map(|lanes| lanes[0]);
                let ends =
                    [lanes.iter().min().map(|lane| lane + low), lanes.iter().max().map(|lane| lane + high)];
                for lane in ends.into_iter().flatten() {
                    if lane == 0 {
                        continue;
                    }
                    if known.is_some_and(|base| !wraps_around(base, lane, signed)) {
                        continue;
                    }
                    let added = self.b.const_int(base.ty(), i64::from(lane).unsigned_abs());
                    let wrap = self.overflows(base, added, signed, lane > 0);
                    wraps = Some(match wraps {
                        None => wrap,
                        Some(others) => self.b.or(others, wrap),
                    });
                }
            }
        }
        wraps
    }
}

/// A side exit; without sites, its cause is about its place.
fn exit_point(place: ExitPlace, cause: ExitCause, sites: &[Site]) -> ExitPoint {
    let own = match place {
        ExitPlace::Yield { block } => [block, 0],
        // Behind the last instruction of the block is its terminator.
        ExitPlace::Terminator { block } => [block, u32::MAX],
        ExitPlace::Before { block, index } => [block, index],
    };
    let sites = match sites {
        [] => vec![own],
        sites => sites.iter().map(|site| [site.block, site.index]).collect(),
    };
    ExitPoint { place, cause, sites }
}

/// Whether adding a lane's constant to a 32-bit number exceeds 32 bits.
fn wraps_around(base: u64, lane: i32, signed: bool) -> bool {
    let lane = i64::from(lane);
    if signed {
        i32::try_from(i64::from(base as u32 as i32) + lane).is_err()
    } else {
        u32::try_from(i64::from(base as u32) + lane).is_err()
    }
}
