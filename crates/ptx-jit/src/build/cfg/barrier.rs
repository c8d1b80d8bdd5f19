//! Barriers of the CTA: where a warp stops at one, what it saves there, and where it continues.
//!
//! Invariant: a warp waits in native code only where all its live lanes have arrived at a barrier whose
//! number and thread count are constants, and that count is that of the CTA. Every other barrier is the
//! scheduler's.

use super::{Builder, Var};
use crate::wir::{
    BlockId, Cond, Effects, Exit, ExitReason, Kind, OpKind, Resume, Site, Term, Value, reduced,
};
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
        // Spilled registers need a warp frame, which only the scheduler changes at a barrier.
        if self.spilled.count() > 0 {
            return None;
        }
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

    /// Ends a block whose terminator native code does not execute: a barrier of a CTA that is one coarse warp
    /// passes, and elsewhere the code stops.
    pub(super) fn arrive(&mut self, node: BlockId, (block, full): (u32, bool), live: &BitSet, may: &BitSet) {
        if self.shape.is_alone()
            && !self.machine.counts_intervals()
            && let Some(barrier) = self.barrier(block)
        {
            return self.pass(node, full, barrier, live, may);
        }
        let mut exit = self.exit(ExitReason::Terminator { block }, live, may);
        exit.resume = self.behind(block, full);
        self.end(node, Term::Exit(Box::new(exit)));
    }

    /// Of the blocks where lanes may be pending when the masked copy of a block waits at its barrier: those
    /// that do nothing but return. Such lanes keep the others from passing the barrier until they have
    /// returned.
    pub(super) fn returning(&self, block: u32, may: &BitSet) -> Vec<u32> {
        if self.barrier(block).is_none() {
            return Vec::new();
        }
        let returns = |block: &usize| {
            let content = &self.function.blocks[*block];
            content.insts.is_empty() && matches!(content.term, Terminator::Ret(_) | Terminator::Exit(_))
        };
        let mut all: Vec<u32> = may.iter().filter(returns).map(|block| block as u32).collect();
        all.sort_unstable();
        all
    }

    /// Lets the lanes that are pending at `returning` return before a barrier, if all other live lanes have
    /// arrived: the scheduler would execute them next. Returns the block where all live lanes are at the
    /// barrier and none is pending. If lanes are pending elsewhere too, native code stops as `exit` says.
    pub(super) fn retire(
        &mut self,
        node: BlockId,
        block: u32,
        returning: &[u32],
        exit: Exit,
        may: &BitSet,
    ) -> BlockId {
        let (mask, live) = (self.var(Var::Mask), self.var(Var::Live));
        let mut all = mask;
        for at in returning {
            let (parked, both) = (self.parked(*at), self.temp(Kind::Mask));
            self.op(node, OpKind::Or, &[all, parked], &[both]);
            all = both;
        }
        let apart = self.node(block, false, may.clone());
        self.end(apart, Term::Exit(Box::new(exit)));
        let mut rest = self.no_blocks();
        returning.iter().for_each(|at| _ = rest.insert(*at as usize));
        let mut from = self.node(block, false, rest.clone());
        self.end(node, Term::If { cond: Cond::Equal(all, live), then: from, els: apart, likely: Some(true) });
        for at in returning {
            let parked = self.parked(*at);
            let gone = self.node(block, false, rest.clone());
            rest.remove(*at as usize);
            let next = self.node(block, false, rest.clone());
            self.end(from, Term::If { cond: Cond::Empty(parked), then: next, els: gone, likely: None });
            self.op(gone, OpKind::AndNot, &[live, parked], &[live]);
            self.count_masked(gone, 1, parked);
            self.end(gone, Term::Goto(next));
            from = next;
        }
        from
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
