//! Barriers of the CTA: where a warp stops at one, what it saves there, and where it continues.
//!
//! Invariant: a warp waits in native code only where all its live lanes have arrived at a barrier whose
//! number and thread count are constants, and that count is that of the CTA. Every other barrier is the
//! scheduler's.

use super::{Builder, Var};
use crate::wir::{BlockId, Cond, Effects, ExitReason, OpKind, Resume, Site, Term, Value, reduced};
use ptx::analysis::bits::BitSet;
use ptx::check::module::FunctionKind;
use ptx::ir::{Reg, Src, Terminator};

/// A plain barrier of the whole CTA.
#[derive(Clone, Copy)]
pub(super) struct Barrier {
    /// The block that ends with it.
    block: u32,
    id: u32,
    /// Whether it counts the CTA's threads.
    counted: bool,
    next: u32,
}

impl<M: Effects> Builder<'_, M> {
    /// The plain barrier of the whole CTA that the block ends with: number, whether it counts the CTA's
    /// threads, and the block behind it.
    pub(super) fn barrier(&self, block: u32) -> Option<Barrier> {
        let Terminator::Barrier { inst, next } = &self.function.blocks[block as usize].term else {
            return None;
        };
        let Some(Src::Imm(id @ 0..16)) = inst.srcs.first() else { return None };
        let threads = u64::from(self.shape.threads().next_multiple_of(32));
        let counted = match inst.srcs.get(1) {
            None | Some(Src::Absent) => false,
            Some(Src::Imm(count)) if *count == threads => true,
            Some(_) => return None,
        };
        let waits = match inst.op {
            ptx::isa::Op::BarSync => true,
            ptx::isa::Op::BarRed => reduced(&self.function.blocks[block as usize].term).is_some(),
            _ => false,
        };
        let plain = waits && inst.guard.is_none() && self.function.kind == FunctionKind::Entry;
        plain.then_some(Barrier { block, id: *id as u32, counted, next: next.0 })
    }

    /// Where a warp continues behind a barrier of the whole CTA, if the block ends with one: an index of
    /// [`Func::resumes`].
    pub(super) fn behind(&mut self, block: u32, full: bool) -> Option<u32> {
        let Barrier { id, counted, next, .. } = self.barrier(block)?;
        // Some warps of a coarse warp may have exited, and a barrier that counts would not see that.
        if counted && !full && self.shape.team > 1 {
            return None;
        }
        let term = &self.function.blocks[block as usize].term;
        let (index, node, kept) = self.restored((block, full), Some(term), next);
        if full {
            let to = self.body(next, true);
            self.end(node, Term::Goto(to));
        } else {
            self.choose(node, next);
        }
        self.resumes.push(Resume { block, id: Some(id), counted, node, kept });
        Some(index)
    }

    /// A block that restores everything that is live where the PTX block `to` starts, behind that barrier if
    /// there is one; its index in [`Func::resumes`], and the registers to save.
    pub(super) fn restored(
        &mut self,
        (from, full): (u32, bool),
        barrier: Option<&Terminator>,
        to: u32,
    ) -> (u32, BlockId, Vec<(Reg, Value)>) {
        let (index, node) = (self.resumes.len() as u32, self.node(from, full, self.no_blocks()));
        let mut kept = Vec::new();
        let mut results = Vec::new();
        if let Some(term) = barrier
            && let (Some((predicate, _)), Some(inst)) = (reduced(term), term.inst())
        {
            inst.for_each_def(&mut |reg| results.push(reg));
            // The host needs it if the CTA leaves native code while warps wait.
            kept.push((predicate, self.reg(predicate)));
        }
        for number in self.live.live_in[to as usize].clone().iter() {
            let (reg, name) = (self.live.registers.reg(number), Value(number as u32));
            if results.contains(&reg) {
                self.op(node, OpKind::Reduced(index, reg), &[], &[name]);
                continue;
            }
            self.op(node, OpKind::Restore(index, reg), &[], &[name]);
            if kept.iter().all(|(have, _)| *have != reg) {
                kept.push((reg, name));
            }
        }
        self.counters(node);
        (index, node, kept)
    }

    /// A barrier of a CTA that is one warp: it passes at once if all lanes are there.
    pub(super) fn pass(&mut self, node: BlockId, full: bool, barrier: Barrier, live: &BitSet, may: &BitSet) {
        let Barrier { block, counted, next, .. } = barrier;
        if full {
            self.reduce(node, block);
            let to = self.edge(block, true, next, may);
            return self.end(node, Term::Goto(to));
        }
        let leave = self.exit_node(block, false, ExitReason::Terminator { block }, live, may);
        if counted {
            return self.end(node, Term::Goto(leave));
        }
        let mut to = self.edge(block, false, next, &self.no_blocks());
        if reduced(&self.function.blocks[block as usize].term).is_some() {
            let done = self.node(block, false, self.no_blocks());
            self.reduce(done, block);
            self.end(done, Term::Goto(to));
            to = done;
        }
        let cond = Cond::Equal(self.var(Var::Mask), self.var(Var::Live));
        self.end(node, Term::If { cond, then: to, els: leave, likely: Some(true) });
    }

    /// The instruction of a barrier that reduces, where the whole CTA has arrived.
    fn reduce(&mut self, node: BlockId, block: u32) {
        let content = &self.function.blocks[block as usize];
        if let (Some(_), Some(inst)) = (reduced(&content.term), content.term.inst()) {
            let site = Site { block, index: content.insts.len() as u32 };
            let mask = self.var(Var::Mask);
            self.inst(node, site, inst, None, mask);
        }
    }
}
