//! Scalar code: executes the threads of a warp one after another, each from its start to its end.
//!
//! Where the lanes of a warp hardly ever do the same, vectors are nearly empty, and each access is a gather.
//! Scalar code has no masks and no vectors: every value is uniform in the only lane, and every branch goes
//! one way. It begins with a thread's start only. If a thread must leave native code, the threads before it
//! have exited, and those behind it are pending at the start of the kernel; code of whole warps continues.
//!
//! Invariant: no thread depends on another thread of the warp, which [`crate::scalar`] checks.

use super::state_map::Room;
use super::{Codegen, Repr};
use crate::frame::Frame;
use crate::llvm::{Block, IntPred, Likely, Value};
use crate::wir::{Exit, Op, Site};
use ptx::ir::Inst;
use ptx::isa::{self, Sreg};
use ptx_exec::native::PendingLanes;
use std::mem::offset_of;

/// The thread that executes.
#[derive(Clone, Copy)]
pub(super) struct Thread {
    /// Its lane, as 32 bits.
    pub(super) lane: Value,
    /// The lanes with which the warp started, as 32 bits.
    lanes: Value,
    /// The address of its local memory, and how many bytes of it are in use.
    pub(super) local: [Value; 2],
    /// The LLVM block that ends it: the next one executes.
    pub(super) done: Block,
}

impl Thread {
    /// The place of the thread's lane in an array that has elements of so many bytes for each lane.
    pub(super) fn place(self, emit: &Codegen<'_>, array: Value, bytes: u32) -> Value {
        let offset = emit.b.mul(self.lane, emit.c32(bytes));
        emit.b.gep(array, emit.b.zext(offset, emit.int(64)))
    }

    /// A mask of its lane, as 32 bits.
    pub(super) fn mask(self, emit: &Codegen<'_>) -> Value {
        emit.b.shl(emit.c32(1), self.lane)
    }

    /// Whether so many bytes at a generic address are in its local memory.
    pub(super) fn has_local(self, emit: &Codegen<'_>, address: Value, bytes: u32) -> Value {
        let [start, top] = self.local;
        let more = emit.b.add(top, emit.c64(1));
        let places = emit.b.intrinsic("llvm.usub.sat", &[emit.int(64)], &[more, emit.c64(bytes.into())]);
        emit.b.icmp(IntPred::Ult, emit.b.sub(address, start), places)
    }

    /// The lanes behind it.
    fn behind(self, emit: &Codegen<'_>) -> Value {
        let own = self.mask(emit);
        let up_to = emit.b.or(own, emit.b.sub(own, emit.c32(1)));
        emit.b.and(self.lanes, emit.b.not(up_to))
    }
}

impl Codegen<'_> {
    /// Emits the loop over the threads of a warp, in its `enter` block and behind it. `state`: where the
    /// warp is, and its lanes. Returns the code of the point where a thread starts.
    pub(super) fn each_thread(
        &mut self,
        enter: Block,
        (warp, next): (Block, Block),
        (state, lanes): (Value, Value),
    ) -> Value {
        let [done, again, over] =
            ["thread done", "again", "over"].map(|name| self.b.append_block(self.function, name));
        self.b.position_at_end(enter);
        let (lane, begin) = (self.b.phi(self.int(32)), self.b.phi(self.int(32)));
        self.b.add_incoming(lane, self.c32(0), warp);
        self.b.add_incoming(begin, state, warp);
        // Loaded once: LLVM could not tell that no store of the thread changes them.
        let [origin, stride, top] = [0, 8, 16].map(|at| self.load64(offset_of!(Frame, local) + at));
        let own = self.b.add(origin, self.b.mul(self.b.zext(lane, self.int(64)), stride));
        self.entry.thread = Some(Thread { lane, lanes, local: [own, top], done });
        let all = self.b.const_int(self.mask_type(), 1);
        (self.entry.own, self.entry.live) = (all, all);

        self.b.position_at_end(done);
        let following = self.b.add(lane, self.c32(1));
        // The lanes of a warp that starts are the first ones.
        let count = self.b.intrinsic("llvm.ctpop", &[self.int(32)], &[lanes]);
        let more = self.b.icmp(IntPred::Ult, following, count);
        self.b.cond_br(more, again, over, Likely::Yes);
        self.b.position_at_end(again);
        self.b.br(enter);
        self.b.add_incoming(lane, following, again);
        self.b.add_incoming(begin, self.c32(self.start_code() as u32), again);
        self.b.position_at_end(over);
        self.exited(next);

        self.turn(next, warp);
        self.b.position_at_end(enter);
        begin
    }

    /// Stores the masks of the end of a thread, or of its side exit: those behind it are live.
    pub(super) fn thread_masks(&self, thread: Thread) {
        let (own, behind) = (thread.mask(self), thread.behind(self));
        self.store_field(offset_of!(Frame, mask), own);
        self.store_field(offset_of!(Frame, live), self.b.or(own, behind));
    }

    /// Emits an access that the thread executes only if its guard holds. Otherwise its results are zero, and
    /// nothing reads them.
    pub(super) fn guarded_access(&mut self, site: Site, inst: &Inst, op: &Op) {
        let [then, on] = ["guarded", "on"].map(|name| self.b.append_block(self.function, name));
        let (holds, before) = (self.scalar(op.uses[0]), self.b.current_block());
        self.b.cond_br(holds, then, on, Likely::Unknown);
        self.b.position_at_end(then);
        let done = match inst.op {
            isa::Op::St => self.st(site, inst, op),
            isa::Op::Atom | isa::Op::Red => self.atomic(site, inst, op),
            _ => self.ld(site, inst, op),
        };
        if !done {
            self.fallback(site, inst, op);
        }
        let results: Vec<Value> = op.defs.iter().map(|def| self.scalar(*def)).collect();
        let behind = self.b.current_block();
        self.b.br(on);
        self.b.position_at_end(on);
        for (def, result) in op.defs.iter().zip(results) {
            let phi = self.b.phi(result.ty());
            self.b.add_incoming(phi, self.b.zero(result.ty()), before);
            self.b.add_incoming(phi, result, behind);
            self.values.define(*def, Repr::Scalar(phi));
        }
    }

    /// A special register that depends on the lane only.
    pub(super) fn of_thread(&self, sreg: Sreg) -> Option<Value> {
        let thread = self.entry.thread?;
        let own = thread.mask(self);
        let before = self.b.sub(own, self.c32(1));
        Some(match sreg {
            Sreg::Laneid => thread.lane,
            Sreg::LanemaskEq => own,
            Sreg::LanemaskLt => before,
            Sreg::LanemaskLe => self.b.or(own, before),
            Sreg::LanemaskGe => self.b.not(before),
            Sreg::LanemaskGt => self.b.not(self.b.or(own, before)),
            _ => return None,
        })
    }

    /// The lanes that a side exit of a thread leaves pending, if it is one of scalar code.
    pub(super) fn pending_threads(&self, to: &mut Room, room: Value) -> Option<PendingLanes> {
        let behind = self.entry.thread?.behind(self);
        let offset = to.place(4, 1);
        self.b.store(behind, self.b.offset(room, u64::from(offset)), 4);
        Some(PendingLanes { block: 0, offset, kept: Vec::new() })
    }

    /// Adds the counts of instructions, each of which one lane has executed.
    pub(super) fn thread_sums(&mut self, exit: &Exit) {
        let more = self.scalar(exit.full_steps);
        for offset in [offset_of!(Frame, masked_steps), offset_of!(Frame, lane_steps)] {
            let sum = self.b.add(self.load64(offset), more);
            self.store_field(offset, sum);
        }
    }
}
