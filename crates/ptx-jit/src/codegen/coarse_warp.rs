//! Code generation for coarse warps: the differences from a single warp.
//!
//! A coarse warp has the lanes of all its warps. Shapes, masks, pending lanes and barriers are as for one
//! warp. It has no warp frame: where it cannot go on (an access fails its check, lanes wait for each other)
//! it exits. It stores the values of its lanes as it would at a barrier, and the host makes warp frames of
//! them.
//!
//! Invariant: an exit happens before the instruction it names, which has had no effect; place and values are
//! those of each of the warps on its own.

use super::inst::Lanes;
use super::load_store::Addresses;
use super::state_map::Room;
use super::{Codegen, LANES, Repr};
use crate::frame::{Frame, Reason, code};
use crate::llvm::{Likely, Value};
use crate::tuning::BARRIER_SLOTS_MAX_BYTES;
use crate::wir;
use crate::wir::access::Access;
use crate::wir::checks::Reach;
use crate::wir::{Exit, ExitReason, Op, Site};
use ptx::ir::Reg;
use ptx_exec::native::{ExitCause, ExitPoint, ExitState, Held, PendingLanes, SavedReg, SideExit};
use std::mem::offset_of;

impl Codegen<'_> {
    /// Stores the values of the lanes, and returns to the host. `point`: the side exit; `None` if all lanes
    /// have exited.
    pub(super) fn leave(&mut self, exit: &Exit, point: Option<ExitPoint>) {
        if self.job.by_warp && exit.why != ExitReason::Finished {
            return self.declined();
        }
        let Some(point) = point else {
            self.team_counts(exit);
            self.gone();
            // After `gone` there is no lane that could continue.
            return self.declined();
        };
        self.team_counts(exit);
        let live = self.scalar(exit.live);
        if let Some(resume) = exit.resume {
            if matches!(exit.why, ExitReason::Yield { .. }) {
                self.set_state(self.start_code() + 2 + u64::from(resume));
                self.keep_all(resume, live);
                return self.b.ret(Some(self.c64(code(Reason::Turn, 0, 0))));
            }
            self.wait(resume, exit);
        }
        let kept = self.b.load(self.b.ptr(), self.field(offset_of!(Frame, kept)), 8);
        let (team, word) = (self.job.shape.team, self.lanes / 8);
        let mut room = Room::of(team);
        // The masks of the live lanes and of the active lanes.
        room.place(4, 2 * team);
        // Values that are read from their slots only stay there.
        room.skip(self.slots().room());
        let mask = self.scalar(exit.mask);
        self.b.store(live, kept, 4);
        self.b.store(mask, self.b.offset(kept, word.into()), 4);
        let mut left = ExitState::default();
        for (reg, name) in &exit.regs {
            let kept = self
                .left_lying(*reg, *name)
                .unwrap_or_else(|| self.state_map_of(*reg, *name, &mut room, kept));
            left.running.push(kept);
        }
        for parked in &exit.parked {
            let offset = room.place(4, team);
            let mask = self.scalar(parked.mask);
            self.b.store(mask, self.b.offset(kept, offset.into()), 4);
            let hand = |(reg, name): &(Reg, wir::Value)| {
                self.left_lying(*reg, *name)
                    .unwrap_or_else(|| self.state_map_of(*reg, *name, &mut room, kept))
            };
            let kept = parked.regs.iter().map(hand).collect();
            left.pending.push(PendingLanes { block: parked.block, offset, kept });
        }
        let most = self.out.cta.bytes.max(room.bytes());
        self.out.unfit |= most > BARRIER_SLOTS_MAX_BYTES;
        self.out.cta.bytes = most;
        let number = self.out.leaves.len() as u32;
        self.out.leaves.push(SideExit { point, left });
        self.b.ret(Some(self.c64(code(Reason::Left, 0, number))));
    }

    /// The saved form of a register whose value is in its slot already.
    fn left_lying(&self, reg: Reg, name: wir::Value) -> Option<SavedReg> {
        match self.values.get(name) {
            Some(Repr::Kept(offset)) => Some(SavedReg { reg, offset: *offset, held: Held::Each }),
            _ => None,
        }
    }

    fn team_counts(&mut self, exit: &Exit) {
        let turns = self.scalar(exit.turns);
        self.store_field(offset_of!(Frame, turns), turns);
        self.sums(exit);
    }

    /// Continues if an access is in bounds, after renewing the cached bounds if necessary, and takes the side
    /// exit otherwise. `None`: a side exit is not possible.
    pub(super) fn or_side_exit(
        &mut self,
        fits: Value,
        site: Site,
        access: Access,
        addresses: &Addresses,
        op: &Op,
    ) -> Option<()> {
        let exit = self.exit_before(site)?;
        if self.is_inside(site, op) {
            return Some(());
        }
        let block = |emit: &Self, name: &str| emit.b.append_block(emit.function, name);
        let (fast, slow, leave) = (block(self, "fast"), block(self, "slow"), block(self, "leave"));
        self.b.cond_br(fits, fast, slow, Likely::Yes);
        self.b.position_at_end(slow);
        let (mask, whole) = (self.mask(op.uses[0]), self.whole(op));
        let Access { space, write, postponed, .. } = access;
        let hi = access.bytes().into();
        self.renew_cached_bounds(
            Reach { site, space, write, postponed, lo: 0, hi, align: 1 },
            addresses,
            mask,
            whole,
        );
        let (fits, _) = self.places(site, access, addresses, op)?;
        self.b.cond_br(fits, fast, leave, Likely::Yes);
        self.b.position_at_end(leave);
        self.exit(&exit, ExitCause::Bounds, &[site]);
        self.b.position_at_end(fast);
        Some(())
    }

    /// Notes that an operation has no code for a coarse warp.
    pub(super) fn give_up(&mut self, op: &Op) {
        self.out.unfit = true;
        for def in &op.defs {
            let zero = self.b.zero(self.scalar_type(self.kind(*def)));
            if self.kind(*def) == crate::wir::Kind::Mask {
                self.values.define(*def, Repr::Mask(self.new_mask(zero)));
            } else {
                self.define(*def, zero);
            }
        }
    }

    /// `%warpid` of the lanes of a coarse warp.
    pub(super) fn warpid(&self, lanes: Lanes) -> Value {
        let team = self.load32(offset_of!(Frame, warp));
        let first = self.b.mul(team, self.c32(self.job.shape.team));
        match lanes {
            Lanes::First(chunk) => self.b.add(first, self.c32(chunk * self.width / LANES)),
            Lanes::Chunk(chunk) => {
                let own = self.b.add(first, self.c32(chunk * self.width / LANES));
                self.b.splat(own, self.width)
            }
        }
    }

    /// Thread indices that are constants, since they are the same in each warp or coarse warp.
    pub(super) fn constant_tid(&self, axis: usize, lanes: Lanes) -> Option<Value> {
        let shape = self.job.shape;
        self.constant_of_threads(lanes, |thread| shape.tid(thread)[axis])
    }

    /// `%ctaid.x` of the lanes of CTAs that execute as one.
    pub(super) fn ctaid(&self, lanes: Lanes) -> Option<Value> {
        let shape = self.job.shape;
        let others = self.constant_of_threads(lanes, |thread| shape.cta_of(thread))?;
        let first = self.in_lanes(self.load32(offset_of!(Frame, ctaid)), lanes);
        Some(self.b.add(first, others))
    }

    /// A number of each thread, if it is the same in each warp or coarse warp.
    fn constant_of_threads(&self, lanes: Lanes, of: impl Fn(u32) -> u32) -> Option<Value> {
        let (chunk, count) = match lanes {
            Lanes::First(chunk) => (chunk * self.width, 1),
            Lanes::Chunk(chunk) => (chunk * self.width, self.width),
        };
        let all = self.job.shape.same_in_all(chunk..chunk + count, |thread| u64::from(of(thread)))?;
        Some(match lanes {
            Lanes::First(_) => self.c32(all[0] as u32),
            Lanes::Chunk(_) => self.b.const_ints(self.int(32), &all),
        })
    }
}
