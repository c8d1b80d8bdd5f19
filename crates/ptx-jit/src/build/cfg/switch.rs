//! `brx.idx` with an index that may differ between lanes.
//!
//! The lanes of each target are a mask. If all lanes go to one target, they take the edge to it. Otherwise
//! the lanes become pending at their targets, and those of the lowest block continue.
//!
//! Invariant: blocks execute in the order, and with the lanes, of the convergence policy. An index beyond the
//! list is a side exit before anything else happens, so the interpreter reports it.

use super::{Builder, Var};
use crate::wir::{BlockId, Cond, Effects, ExitReason, Kind, OpKind, Term, Value};
use ptx::analysis::bits::BitSet;
use ptx::ir;
use ptx::ir::Reg;
use std::collections::BTreeMap;

impl<M: Effects> Builder<'_, M> {
    /// Ends a block by a `brx.idx` on `index` at which lanes may diverge.
    pub(super) fn divergent_switch(
        &mut self,
        node: BlockId,
        (block, full): (u32, bool),
        index: Reg,
        targets: &[ir::BlockId],
        may: &BitSet,
    ) {
        let (index, mask) = (self.reg(index), self.var(Var::Mask));
        let count = targets.len() as u32;
        let beyond = self.lanes_within(node, index, &[(count, 0_u32.wrapping_sub(count))]);
        let live =
            self.live.before(self.function, block as usize, self.function.blocks[block as usize].insts.len());
        let leave = self.exit_node(block, full, ExitReason::Terminator { block }, &live, may);
        let mut at = self.node(block, full, may.clone());
        self.end(node, Term::If { cond: Cond::Empty(beyond), then: at, els: leave, likely: Some(true) });
        let mut lanes = Vec::new();
        for (target, numbers) in numbers_by_target(targets) {
            let there = self.lanes_within(at, index, &numbers);
            let to = self.edge(block, full, target, may);
            let other = self.node(block, full, may.clone());
            self.end(at, Term::If { cond: Cond::Equal(there, mask), then: to, els: other, likely: None });
            lanes.push((target, there));
            at = other;
        }
        let part = self.node(block, false, may.clone());
        self.end(at, Term::Goto(part));
        let mut pending = may.clone();
        for (target, there) in lanes {
            self.park(part, target, there, may.contains(target as usize));
            pending.insert(target as usize);
        }
        self.lowest_continue(part, block, &pending);
    }

    /// The active lanes whose number is in one of these ranges: the first number of each, and how many there
    /// are.
    fn lanes_within(&mut self, node: BlockId, index: Value, ranges: &[(u32, u32)]) -> Value {
        let mut all = None;
        for (first, count) in ranges {
            let some = self.temp(Kind::Mask);
            self.op(node, OpKind::InRange { first: *first, count: *count }, &[index], &[some]);
            all = Some(match all {
                None => some,
                Some(others) => {
                    let both = self.temp(Kind::Mask);
                    self.op(node, OpKind::Or, &[others, some], &[both]);
                    both
                }
            });
        }
        let (mask, active) = (self.var(Var::Mask), self.temp(Kind::Mask));
        match all {
            Some(all) => self.op(node, OpKind::And, &[mask, all], &[active]),
            None => self.op(node, OpKind::Mask(0), &[], &[active]),
        }
        active
    }

    /// All lanes are pending, none is active: those that are pending at the lowest block continue.
    fn lowest_continue(&mut self, node: BlockId, block: u32, pending: &BitSet) {
        let mut from = node;
        let mut all: Vec<usize> = pending.iter().collect();
        all.sort_unstable();
        let mut rest = pending.clone();
        while let Some(p) = (!all.is_empty()).then(|| all.remove(0)) {
            let resume = self.node(block, false, rest.clone());
            self.take_up(resume, p as u32);
            rest.remove(p);
            let to = match p as u32 <= block {
                true => self.turn(block, false, p as u32, &rest),
                false => self.body(p as u32, false),
            };
            self.end(resume, Term::Goto(to));
            // Lanes are pending at one of the blocks.
            if all.is_empty() {
                return self.end(from, Term::Goto(resume));
            }
            let next = self.node(block, false, rest.clone());
            let cond = Cond::Empty(self.parked(p as u32));
            self.end(from, Term::If { cond, then: next, els: resume, likely: None });
            from = next;
        }
    }
}

/// The distinct targets of a list in ascending order, each with the ranges of its numbers.
fn numbers_by_target(targets: &[ir::BlockId]) -> BTreeMap<u32, Vec<(u32, u32)>> {
    let mut numbers: BTreeMap<u32, Vec<(u32, u32)>> = BTreeMap::new();
    for (number, target) in (0..).zip(targets) {
        let ranges = numbers.entry(target.0).or_default();
        match ranges.last_mut() {
            Some((first, count)) if *first + *count == number => *count += 1,
            _ => ranges.push((number, 1)),
        }
    }
    numbers
}
