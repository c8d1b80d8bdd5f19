//! Step calls: instructions that the interpreter's own step executes.
//!
//! Invariant: before the call, the registers that the instruction reads are in the warp frame.

use super::{Codegen, Repr};
use crate::frame::{Frame, Reason, code};
use crate::llvm::{IntPred, Likely, Value};
use crate::wir::{Op, Site};
use ptx::ir::{Inst, Reg};
use std::mem::offset_of;

impl Codegen<'_> {
    /// Calls the step, and defines the instruction's results.
    pub(super) fn fallback(&mut self, site: Site, inst: &Inst, op: &Op) {
        if self.job.shape.team > 1 {
            return self.give_up(op);
        }
        self.missed("native-code", "the interpreter's step executes the instruction");
        if self.leave_before_load(site, inst, op) {
            return;
        }
        *self.out.fallbacks.entry(format!("{}{}", inst.row.form().mnemonic, inst.mods)).or_default() += 1;
        self.stepped(site, inst, op, true);
    }

    /// Calls the step for an instruction that also has native code. Returns the results; they are defined if
    /// `define` is set.
    pub(super) fn stepped(&mut self, site: Site, inst: &Inst, op: &Op, define: bool) -> Vec<Repr> {
        // The source registers; the carry flags follow them.
        let mut sources: Vec<Reg> = Vec::new();
        inst.srcs.iter().for_each(|src| src.for_each_reg(&mut |reg| sources.push(reg)));
        let mut places: Vec<Reg> = Vec::new();
        inst.for_each_def(&mut |reg| places.push(reg));
        // A spilled register has the values of pending lanes in the frame, but the step may be called for all
        // lanes of the call.
        let mut kept: Vec<(Reg, Vec<Value>)> = Vec::new();
        for reg in sources.iter().chain(&places).filter(|reg| self.facts.spilled.contains(reg)) {
            if kept.iter().all(|(have, _)| have != reg) {
                kept.push((*reg, (0..self.chunks()).map(|c| self.load_chunk(*reg, c)).collect()));
            }
        }
        let owned = if self.position.full { None } else { Some(self.own_mask()) };
        let mut stored: Vec<Reg> = Vec::new();
        for (reg, name) in sources.iter().zip(&op.uses[1..]) {
            if !stored.contains(reg) {
                self.store_reg(*reg, *name, owned);
                stored.push(*reg);
            }
        }
        let carry = self.b.load(self.b.ptr(), self.field(offset_of!(Frame, carry)), 8);
        if let Some(flags) = op.uses.get(1 + sources.len()) {
            let flags = self.scalar(*flags);
            self.b.store(flags, carry, 4);
        }
        // An instruction that depends on no other lane is computed in all lanes, since other code may read
        // any lane of the result.
        let pure = crate::effects::is_pure(inst);
        let mask = match (self.entry.thread, pure, self.position.full) {
            (Some(thread), true, _) => thread.mask(self),
            (Some(thread), false, _) => {
                let active = self.scalar(op.uses[0]);
                self.b.shl(self.b.zext(active, self.int(32)), thread.lane)
            }
            (None, true, true) => self.c32(u32::MAX),
            (None, true, false) => self.entry.own,
            (None, false, _) => self.scalar(op.uses[0]),
        };
        self.call_step(site, mask);
        let mut reps = Vec::new();
        for (at, def) in op.defs.iter().enumerate() {
            let rep = match places.get(at) {
                Some(reg) => self.load_reg(*reg, *def, mask),
                None => Repr::Mask(self.new_mask(self.b.load(self.int(32), carry, 4))),
            };
            if define {
                self.values.define(*def, rep.clone());
            }
            reps.push(rep);
        }
        for (reg, chunks) in kept {
            self.store_chunks(reg, &chunks);
        }
        reps
    }

    /// Calls the step of an instruction. Returns from the function if the step reports a fault.
    fn call_step(&mut self, site: Site, mask: Value) {
        let user = self.b.load(self.b.ptr(), self.field(offset_of!(Frame, user)), 8);
        let word = self.int(32);
        let ty = self.b.fn_type(Some(word), &[self.b.ptr(), word, word, word]);
        let args = [user, self.c32(site.block), self.c32(site.index), mask];
        let well = self.b.call_host(ty, "step", &args);
        let fault = self.b.append_block(self.function, "fault");
        let on = self.b.append_block(self.function, "on");
        let ok = self.b.icmp(IntPred::Ne, well, self.c32(0));
        self.b.cond_br(ok, on, fault, Likely::Yes);
        self.b.position_at_end(fault);
        self.b.ret(Some(self.c64(code(Reason::Fault, site.block, site.index))));
        self.b.position_at_end(on);
    }
}
