//! The CTA loop: executes the warps of a CTA one after another, from barrier to barrier.
//!
//! Native code that is given a whole CTA executes each warp until it exits or waits at a barrier of the CTA,
//! and then the next warp. When all have arrived, it starts again behind the barrier. Values that are live
//! across a barrier are saved in memory of the warp (barrier slots), in the form of their shapes: one word
//! for a uniform value.
//!
//! Invariants: each warp's [`Slot`] says where the warp is. Any other reason to stop leaves native code, with
//! that warp's registers in the frame and those of the others as their slots say. [`CtaCode`] tells the host
//! how to make warp frames of it.

use super::mask::Mask;
use super::{Codegen, Repr};
use crate::frame::{Frame, Reason, code};
use crate::llvm::{Block, IntPred, Likely, Value};
use crate::wir;
use crate::wir::{Exit, ExitReason, LaunchShape, Op};
use ptx::ir::{Inst, Reg, Src};
use ptx::isa::BarRedOp;
use ptx_exec::native::{CtaCode, CtaForm, Slot, SuspendPoint, TidTable};
use std::mem::{offset_of, size_of};

/// Values that several parts of an emitted function use.
#[derive(Clone, Copy)]
pub(super) struct Shared {
    /// Whether the call executes a whole CTA.
    whole: Value,
    /// The LLVM block that ends a warp's section.
    next: Block,
    /// The slot memory of a coarse warp; single warps find theirs in the frame.
    kept: Option<Value>,
}

impl Codegen<'_> {
    /// Tells the host where the slots of all barriers are.
    pub(super) fn report_barrier_slots(&mut self) {
        let func = self.job.func;
        let team = self.job.shape.team;
        let slots = self.slots();
        let barriers = func.resumes.iter().enumerate().map(|(at, resume)| SuspendPoint {
            block: resume.block,
            id: resume.id,
            kept: slots.of(at),
        });
        let bytes = slots.bytes().max(if team > 1 && !func.resumes.is_empty() { 4 * team } else { 0 });
        self.out.cta = CtaCode { bytes: bytes.next_multiple_of(64), barriers: barriers.collect() };
    }

    /// The code by which a warp is started or resumed: codes follow the numbers of the PTX blocks.
    pub(super) fn start_code(&self) -> u64 {
        self.job.function.blocks.len() as u64
    }

    /// Emits the code from the function's entry to the point where the running warp starts: with the caller's
    /// frame, or with the first warp of the CTA. Returns the code of that point.
    pub(super) fn dispatch(&mut self) -> Value {
        let enter = self.b.append_block(self.function, "enter");
        let warp = self.b.append_block(self.function, "warp");
        let next = self.b.append_block(self.function, "turn");
        self.b.position_at_end(self.flow.head);
        let block = self.load32(offset_of!(Frame, block));
        let (own, live) = (self.load32(offset_of!(Frame, mask)), self.load32(offset_of!(Frame, live)));
        let warps = self.load32(offset_of!(Frame, warps));
        let whole = self.b.icmp(IntPred::Ne, warps, self.c32(0));
        if self.job.shape.only_starts() {
            self.b.br(warp);
        } else {
            self.b.cond_br(whole, warp, enter, Likely::Unknown);
        }
        self.entry.shared_cta = Some(Shared { whole, next, kept: None });

        self.b.position_at_end(warp);
        let number = self.load32(offset_of!(Frame, warp));
        let number = self.b.zext(number, self.int(64));
        let at = |emit: &Self, field: usize, step: u64| {
            let base = emit.b.load(emit.b.ptr(), emit.field(field), 8);
            let offset = emit.b.mul(number, emit.c64(step));
            emit.b.gep(base, offset)
        };
        let slot = at(self, offset_of!(Frame, slots), size_of::<Slot>() as u64);
        let of = |emit: &Self, field: usize| emit.b.offset(slot, field as u64);
        let state = self.b.load(self.int(32), of(self, offset_of!(Slot, state)), 4);
        let there = self.b.load(self.int(32), of(self, offset_of!(Slot, live)), 4);
        let local = self.b.load(self.int(64), of(self, offset_of!(Slot, local)), 8);
        let table = size_of::<TidTable>() as u64 * u64::from(self.job.shape.team);
        let team = self.job.shape.team > 1;
        let in_group = match self.job.shape.ctas {
            1 => number,
            _ => self.b.zext(self.load32(offset_of!(Frame, row)), self.int(64)),
        };
        let base = self.b.load(self.b.ptr(), self.field(offset_of!(Frame, tids)), 8);
        let tid = self.b.gep(base, self.b.mul(in_group, self.c64(table)));
        let kept = if team {
            // The size of a coarse warp's slot memory is known only after all side exits have been emitted.
            let base = self.b.load(self.b.ptr(), self.field(offset_of!(Frame, keeps)), 8);
            let offset = self.b.mul(number, self.load64(offset_of!(Frame, keep_bytes)));
            self.b.gep(base, offset)
        } else {
            at(self, offset_of!(Frame, keeps), u64::from(self.out.cta.bytes))
        };
        self.entry.shared_cta = Some(Shared { whole, next, kept: team.then_some(kept) });
        let there = match self.job.shape {
            LaunchShape { team: 1, .. } => there,
            LaunchShape { ctas: 1, .. } => self.b.load(self.mask_type(), kept, 4),
            // It goes on between two iterations only where all its lanes are active; its save area may hold
            // those of another one.
            _ => self.word(self.all_lanes()),
        };
        let carry = of(self, offset_of!(Slot, carry));
        for (field, value) in [
            (offset_of!(Frame, slot), slot),
            (offset_of!(Frame, tid), tid),
            (offset_of!(Frame, kept), kept),
            (offset_of!(Frame, carry), carry),
        ] {
            self.b.store(value, self.field(field), 8);
        }
        self.position.slot_memory.set(None);
        if self.job.clocks {
            self.b.store(of(self, offset_of!(Slot, clock)), self.field(offset_of!(Frame, clock)), 8);
        }
        self.store_field(offset_of!(Frame, local), local);
        self.b.br(enter);
        if self.job.shape.is_scalar() {
            return self.each_thread(enter, (warp, next), (state, there));
        }

        self.b.position_at_end(enter);
        let phi = |emit: &Self, a: Value, b: Value| {
            let phi = emit.b.phi(b.ty());
            if !team {
                emit.b.add_incoming(phi, a, emit.flow.head);
            }
            emit.b.add_incoming(phi, b, warp);
            phi
        };
        let begin = phi(self, block, state);
        self.entry.own = phi(self, own, there);
        self.entry.live = phi(self, live, there);

        self.turn(next, warp);
        self.b.position_at_end(enter);
        self.begin_interval();
        begin
    }

    /// Emits the end of a warp's section: the next warp follows; after the last warp, the first warp resumes
    /// behind the barrier, or the next CTA starts.
    pub(super) fn turn(&self, next: Block, warp: Block) {
        let word = |emit: &Self, offset| emit.load32(offset);
        self.b.position_at_end(next);
        let round = self.b.append_block(self.function, "round");
        let (all, some) =
            (self.b.append_block(self.function, "all"), self.b.append_block(self.function, "some"));
        let (over, apart) =
            (self.b.append_block(self.function, "over"), self.b.append_block(self.function, "apart"));
        let number = self.b.add(word(self, offset_of!(Frame, warp)), self.c32(1));
        self.store_field(offset_of!(Frame, warp), number);
        if self.job.shape.ctas > 1 {
            self.next_group();
        }
        let more = self.b.icmp(IntPred::Ult, number, word(self, offset_of!(Frame, warps)));
        self.b.cond_br(more, warp, round, Likely::Yes);

        self.b.position_at_end(round);
        let at = word(self, offset_of!(Frame, round.waiting));
        self.store_field(offset_of!(Frame, warp), self.c32(0));
        self.store_field(offset_of!(Frame, round.waiting), self.c32(0));
        let none = self.b.icmp(IntPred::Eq, at, self.c32(0));
        self.b.cond_br(none, over, some, Likely::Unknown);
        // Starts the next CTA of the batch.
        self.b.position_at_end(over);
        let user = self.b.load(self.b.ptr(), self.field(offset_of!(Frame, user)), 8);
        let ty = self.b.fn_type(Some(self.int(32)), &[self.b.ptr()]);
        let follows = self.b.call_host(ty, "follow", &[user]);
        let done = self.b.append_block(self.function, "done");
        let follows = self.b.icmp(IntPred::Ne, follows, self.c32(0));
        self.b.cond_br(follows, warp, done, Likely::Yes);
        self.b.position_at_end(done);
        self.b.ret(Some(self.c64(code(Reason::Finished, 0, 0))));

        // If one bit is set, all warps wait at one barrier. The upper half holds barriers that count all
        // threads of the CTA, also exited ones.
        self.b.position_at_end(some);
        let less = self.b.sub(at, self.c32(1));
        let several = self.b.and(at, less);
        let exited = word(self, offset_of!(Frame, round.exited));
        let gone = self.b.icmp(IntPred::Ne, exited, self.c32(0));
        let gone = self.b.sext(gone, self.int(32));
        let which = if self.job.whole { u32::MAX } else { 0xffff_0000 };
        let missing = self.b.and(at, self.b.and(gone, self.c32(which)));
        let odd = self.b.or(several, missing);
        let odd = self.b.icmp(IntPred::Ne, odd, self.c32(0));
        self.b.cond_br(odd, apart, all, Likely::No);
        self.b.position_at_end(all);
        if self.reduces() {
            let count = word(self, offset_of!(Frame, round.count));
            self.store_field(offset_of!(Frame, round.result), count);
            self.store_field(offset_of!(Frame, round.count), self.c32(0));
        }
        self.end_interval();
        self.b.br(warp);
        self.b.position_at_end(apart);
        self.b.ret(Some(self.c64(code(Reason::Apart, 0, 0))));
    }

    /// Goes on with the same row of the next group of CTAs, or with the next row of the first group.
    fn next_group(&self) {
        let ctas = self.c32(self.job.shape.ctas);
        let groups = self.load32(offset_of!(Frame, groups));
        let (row, x) = (self.load32(offset_of!(Frame, row)), self.load32(offset_of!(Frame, ctaid)));
        let group = self.b.add(self.load32(offset_of!(Frame, group)), self.c32(1));
        let ends = self.b.icmp(IntPred::Eq, group, groups);
        let last = self.b.sub(groups, self.c32(1));
        let first = self.b.sub(x, self.b.mul(last, ctas));
        self.store_field(offset_of!(Frame, ctaid), self.b.select(ends, first, self.b.add(x, ctas)));
        self.store_field(offset_of!(Frame, group), self.b.select(ends, self.c32(0), group));
        self.store_field(offset_of!(Frame, row), self.b.add(row, self.b.zext(ends, self.int(32))));
    }

    /// The points at which a warp of a CTA may start, as codes and LLVM blocks.
    pub(super) fn beginnings(&self) -> Vec<(u64, Block)> {
        let Some(shared) = self.entry.shared_cta else { return Vec::new() };
        let first = self.start_code();
        let func = self.job.func;
        let mut cases = vec![(first, self.at(func.start)), (first + 1, shared.next)];
        cases.extend(func.resumes.iter().zip(first + 2..).map(|(resume, code)| (code, self.at(resume.node))));
        cases
    }

    /// Emits the exit of the last live lane: in a CTA the next warp executes.
    pub(super) fn gone(&self) {
        let Some(shared) = self.entry.shared_cta else { return };
        if let Some(thread) = self.entry.thread {
            return self.b.br(thread.done);
        }
        let (leave, stay) =
            (self.b.append_block(self.function, "exited"), self.b.append_block(self.function, "alone"));
        self.b.cond_br(shared.whole, leave, stay, Likely::Unknown);
        self.b.position_at_end(leave);
        self.exited(shared.next);
        self.b.position_at_end(stay);
    }

    /// Emits the end of a warp whose lanes have all exited; the next warp executes.
    pub(super) fn exited(&self, next: Block) {
        self.set_state(self.start_code() + 1);
        let exited = self.load32(offset_of!(Frame, round.exited));
        let exited = self.b.add(exited, self.c32(1));
        self.store_field(offset_of!(Frame, round.exited), exited);
        self.b.br(next);
    }

    pub(super) fn set_state(&self, state: u64) -> Value {
        let slot = self.b.load(self.b.ptr(), self.field(offset_of!(Frame, slot)), 8);
        let place = self.b.offset(slot, offset_of!(Slot, state) as u64);
        self.b.store(self.c32(state as u32), place, 4);
        slot
    }

    /// Emits a barrier of the CTA: if all live lanes of the warp have arrived, it saves the live values, and
    /// the next warp executes.
    pub(super) fn wait(&mut self, index: u32, exit: &Exit) {
        let Some(shared) = self.entry.shared_cta else { return };
        let resume = &self.job.func.resumes[index as usize];
        let (mask, live) = (self.scalar(exit.mask), self.scalar(exit.live));
        let together = self.b.icmp(IntPred::Eq, mask, live);
        let mut together = self.b.and(together, shared.whole);
        let form = self.form(index);
        if self.reduces() {
            let first = self.load32(offset_of!(Frame, round.waiting));
            let first = self.b.icmp(IntPred::Eq, first, self.c32(0));
            let alike = self.load32(offset_of!(Frame, round.form));
            let alike = self.b.icmp(IntPred::Eq, alike, self.c32(form as u32));
            together = self.b.and(together, self.b.or(first, alike));
        }
        let (keep, leave) =
            (self.b.append_block(self.function, "keep"), self.b.append_block(self.function, "leave"));
        self.b.cond_br(together, keep, leave, Likely::Yes);
        self.b.position_at_end(keep);
        let slot = self.set_state(self.start_code() + 2 + u64::from(index));
        if self.job.shape.team == 1 {
            self.b.store(live, self.b.offset(slot, offset_of!(Slot, live) as u64), 4);
        }
        let bit = 1u32 << (resume.id.unwrap_or(0) + if resume.counted { 16 } else { 0 });
        let waiting = self.load32(offset_of!(Frame, round.waiting));
        let waiting = self.b.or(waiting, self.c32(bit));
        self.store_field(offset_of!(Frame, round.waiting), waiting);
        let live_mask = self.mask(exit.live);
        self.arrive_at(form, exit, live_mask);
        self.keep_all(index, live);
        self.b.br(shared.next);
        self.b.position_at_end(leave);
    }

    /// Records the form of the barrier at which a warp waits, and counts the lanes that its result depends
    /// on.
    fn arrive_at(&mut self, form: CtaForm, exit: &Exit, live: Mask) {
        if self.reduces() {
            self.store_field(offset_of!(Frame, round.form), self.c32(form as u32));
        }
        let Some(predicate) = self.predicate(exit) else { return };
        let truths = self.truths(predicate.0, predicate.1 != (form == CtaForm::And));
        let counted = self.word_and(truths, live);
        let counted = self.lanes_in(counted);
        let counted = self.b.trunc(counted, self.int(32));
        let count = self.b.add(self.load32(offset_of!(Frame, round.count)), counted);
        self.store_field(offset_of!(Frame, round.count), count);
    }

    /// The predicate that the barrier reduces at which an exit waits, and whether it is negated.
    fn predicate(&self, exit: &Exit) -> Option<(wir::Value, bool)> {
        let ExitReason::Terminator { block } = exit.why else { return None };
        let (reg, negated) = crate::wir::reduced(&self.job.function.blocks[block as usize].term)?;
        let (_, name) = exit.regs.iter().find(|(have, _)| *have == reg)?;
        Some((*name, negated))
    }

    /// What the barrier does at which warps wait that resume there.
    fn form(&self, resume: u32) -> CtaForm {
        let resume = &self.job.func.resumes[resume as usize];
        let term = &self.job.function.blocks[resume.block as usize].term;
        match term.inst().filter(|inst| resume.id.is_some() && inst.op == ptx::isa::Op::BarRed) {
            Some(inst) => form(inst),
            None => CtaForm::Sync,
        }
    }

    /// Whether warps wait at barriers that reduce.
    fn reduces(&self) -> bool {
        (0..self.job.func.resumes.len() as u32).any(|resume| self.form(resume) != CtaForm::Sync)
    }

    /// The result of the barrier that a warp resumes behind.
    pub(super) fn reduced(&mut self, resume: u32, name: wir::Value) {
        let count = self.load32(offset_of!(Frame, round.result));
        let result = match self.form(resume) {
            CtaForm::Popc | CtaForm::Sync => count,
            CtaForm::And => self.b.icmp(IntPred::Eq, count, self.c32(0)),
            CtaForm::Or => self.b.icmp(IntPred::Ne, count, self.c32(0)),
        };
        self.define(name, result);
    }

    /// The result of a barrier of a CTA that is one coarse warp.
    pub(super) fn reduce_cta(&mut self, inst: &Inst, op: &Op) -> bool {
        let Some(def) = op.defs.first() else { return true };
        let mask = self.mask(op.uses[0]);
        let truths = self.truths(op.uses[1], matches!(inst.srcs.get(2), Some(Src::Not(_))));
        let truths = self.word_and(truths, mask);
        let (mask, word) = (self.word(mask), self.word(truths));
        let result = match form(inst) {
            CtaForm::And => self.b.icmp(IntPred::Eq, word, mask),
            CtaForm::Or => self.b.icmp(IntPred::Ne, word, self.b.zero(mask.ty())),
            CtaForm::Popc | CtaForm::Sync => {
                let count = self.lanes_in(truths);
                self.b.trunc(count, self.int(32))
            }
        };
        self.define(*def, result);
        true
    }

    /// Saves the live values where a warp or a coarse warp waits.
    pub(super) fn keep_all(&mut self, index: u32, live: Value) {
        let place = self.barrier_slot_memory();
        if self.job.shape.team > 1 {
            self.b.store(live, place, 4);
        }
        let resume = &self.job.func.resumes[index as usize];
        let kept = self.out.cta.barriers[index as usize].kept.clone();
        let names = resume.kept.iter().enumerate();
        let moved = names.filter(|(at, (_, name))| !self.is_in_slot(index, *at, *name));
        let moved: Vec<wir::Value> = moved.map(|(_, (_, name))| *name).collect();
        self.read_slot(moved.into_iter());
        for (at, (kept, (_, name))) in kept.iter().zip(&resume.kept).enumerate() {
            if !self.is_in_slot(index, at, *name) {
                self.pack(kept, *name, self.b.offset(place, u64::from(kept.offset)));
            }
        }
    }

    /// The slot memory of the running warp or coarse warp.
    pub(super) fn barrier_slot_memory(&self) -> Value {
        if let Some(Shared { kept: Some(kept), .. }) = self.entry.shared_cta {
            return kept;
        }
        if let Some(kept) = self.passes.chunk_loops.slot_memory {
            return kept;
        }
        let block = self.b.current_block();
        if let Some((_, kept)) = self.position.slot_memory.get().filter(|(at, _)| *at == block) {
            return kept;
        }
        let kept = self.b.load(self.b.ptr(), self.field(offset_of!(Frame, kept)), 8);
        self.position.slot_memory.set(Some((block, kept)));
        kept
    }

    /// Begins code that is executed only if a whole CTA runs; `None` if none ever does. Returns the LLVM
    /// block that follows.
    pub(super) fn if_whole(&self) -> Option<Block> {
        let shared = self.entry.shared_cta?;
        let (then, on) =
            (self.b.append_block(self.function, "entered"), self.b.append_block(self.function, "on"));
        self.b.cond_br(shared.whole, then, on, Likely::Unknown);
        self.b.position_at_end(then);
        Some(on)
    }

    /// Loads the saved value of a register.
    pub(super) fn restore(&mut self, index: u32, reg: Reg, name: wir::Value) -> Repr {
        if let Some(offset) = self.slots().offset_of(name) {
            return Repr::Kept(offset);
        }
        let place = self.barrier_slot_memory();
        let kept = self.out.cta.barriers[index as usize].kept.iter().find(|kept| kept.reg == reg).cloned();
        let kept = kept.expect("ptxvm bug: a register is restored that was not kept");
        self.unpack(&kept, name, place)
    }
}

/// What a barrier that reduces computes.
fn form(inst: &Inst) -> CtaForm {
    match inst.mods.bar_red_op() {
        Some(BarRedOp::Popc) => CtaForm::Popc,
        Some(BarRedOp::And) => CtaForm::And,
        Some(BarRedOp::Or) => CtaForm::Or,
        None => CtaForm::Sync,
    }
}
