//! If-conversion: a small region between a divergent branch and its reconvergence point executes block by
//! block under masks.
//!
//! A **region** is a few blocks without loops or barriers that lead from the branch to the reconvergence
//! point and nowhere else. From a full copy of the branch, the blocks of the region execute one after
//! another, each under the mask of the lanes that reach it, and behind the region all lanes are active again.
//! So no test is needed there whether all lanes have arrived, and the region does not create masked copies of
//! what follows: a kernel with a hundred short conditions would otherwise have a hundred places where control
//! passes from full to masked copies.
//!
//! Where lanes that diverged within a region have all reconverged, their mask is the one from before the
//! divergence, not a union of masks of the paths. So a mask that was constant stays constant, as under `t ==
//! 0`.
//!
//! Invariant: blocks execute in the order, and with the lanes and instruction counts, of the convergence
//! policy. While a block executes, registers of lanes that wait at another block keep their values.

use super::{Builder, Var};
use crate::analysis::expr::may_change_index;
use crate::build::region::Region;
use crate::wir::{BlockId, Effects, GuardKind, Kind, OpKind, Pending, Site, Term, Value};
use crate::wir::{Cond, ExitReason};
use ptx::analysis::bits::BitSet;
use ptx::ir::{Guard, Inst, Terminator};
use std::collections::BTreeSet;

impl<M: Effects> Builder<'_, M> {
    /// A branch at which lanes may diverge.
    pub(super) fn divergent(
        &mut self,
        node: BlockId,
        block: u32,
        full: bool,
        cond: Guard,
        (then, els): (u32, u32),
        may: &BitSet,
    ) {
        let (mask, pred) = (self.var(Var::Mask), self.reg(cond.pred));
        let (low, high) = (then.min(els), then.max(els));
        // The lanes that go to the lower target.
        let negated = cond.negated != (low != then);
        let (truths, lower) = (self.temp(Kind::Mask), self.temp(Kind::Mask));
        self.op(node, OpKind::Truths { negated }, &[pred], &[truths]);
        self.op(node, OpKind::And, &[mask, truths], &[lower]);
        if full && self.facts.leaves {
            let (to_low, to_high) = (self.edge(block, full, low, may), self.edge(block, full, high, may));
            let some = self.node(block, full, may.clone());
            let leave = self.node(block, full, may.clone());
            let cond = Cond::Equal(lower, mask);
            self.end(node, Term::If { cond, then: to_low, els: some, likely: None });
            self.end(
                some,
                Term::If { cond: Cond::Empty(lower), then: to_high, els: leave, likely: Some(true) },
            );
            let insts = self.function.blocks[block as usize].insts.len();
            let live = self.live.before(self.function, block as usize, insts);
            let exit = self.exit(ExitReason::Terminator { block }, &live, may);
            return self.end(leave, Term::Exit(Box::new(exit)));
        }
        let region = self.regions.get(&block).filter(|_| full).cloned();
        let part = self.node(block, false, may.clone());
        // Where a mask costs nothing more, and lanes are hardly ever uniform, one masked copy is enough.
        let masks = self.shape.team > 1 && self.shape.chunk == 16 || self.shape.is_alone();
        if masks && region.as_ref().is_some_and(|region| region.near) {
            self.end(node, Term::Goto(part));
        } else {
            let (to_low, to_high) = (self.edge(block, full, low, may), self.edge(block, full, high, may));
            let some = self.node(block, full, may.clone());
            let cond = Cond::Equal(lower, mask);
            self.end(node, Term::If { cond, then: to_low, els: some, likely: None });
            self.end(some, Term::If { cond: Cond::Empty(lower), then: to_high, els: part, likely: None });
        }
        let rest = self.temp(Kind::Mask);
        self.op(part, OpKind::AndNot, &[mask, lower], &[rest]);
        if let Some(region) = region {
            return self.region(part, block, &region, (low, lower), (high, rest));
        }
        let merge = may.contains(high as usize);
        self.park(part, high, rest, merge);
        self.copy(part, mask, lower);
        let mut with = may.clone();
        with.insert(high as usize);
        let to = self.edge(block, false, low, &with);
        self.end(part, Term::Goto(to));
    }

    /// Executes the blocks of a region, each under its mask. `low` and `high`: the targets of the branch,
    /// with the lanes that go to each.
    fn region(&mut self, part: BlockId, from: u32, region: &Region, low: (u32, Value), high: (u32, Value)) {
        let blocks = &region.blocks;
        // The lanes that wait, by block.
        let mut waiting = Vec::new();
        for block in blocks.iter().chain([&region.end]) {
            let lanes = self.temp(Kind::Mask);
            match [low, high].iter().find(|(to, _)| to == block) {
                Some((_, there)) => self.copy(part, lanes, *there),
                None => self.op(part, OpKind::Mask(0), &[], &[lanes]),
            }
            waiting.push((*block, lanes));
        }
        let no_blocks = self.no_blocks();
        let mut heads: Vec<BlockId> =
            blocks.iter().map(|block| self.node(*block, false, no_blocks.clone())).collect();
        heads.push(self.edge(from, true, region.end, &no_blocks));
        let bodies: Vec<BlockId> =
            blocks.iter().map(|block| self.node(*block, false, no_blocks.clone())).collect();
        self.end(part, Term::Goto(heads[0]));
        // Registers that may hold a value of lanes that wait: those that are live behind the branch, and
        // those that a block of the region has written. Any other register is written before it is read.
        let mut held = BitSet::new(self.live.registers.len());
        for (to, _) in [low, high] {
            held.union(&self.live.live_in[to as usize]);
        }
        for (at, block) in blocks.iter().enumerate() {
            let body = bodies[at];
            let lanes = self
                .reunited(heads[at], from, blocks, &waiting, [low, high], *block)
                .unwrap_or(waiting[at].1);
            let cond = Cond::Empty(lanes);
            let over = heads[at + self.behind_alone(&blocks[at..])];
            self.end(heads[at], Term::If { cond, then: over, els: body, likely: None });
            self.copy(body, self.var(Var::Mask), lanes);
            let rest = &waiting[at + 1..];
            let parked: Vec<Pending> = rest.iter().map(|(block, mask)| self.waiters(*block, *mask)).collect();
            // Registers that lanes may read after another path has written them.
            let mut blended = BitSet::new(self.live.registers.len());
            for (to, _) in rest {
                if *to == region.end || !self.only_from(*to, *block) {
                    blended.union(&self.live.live_in[*to as usize]);
                }
            }
            blended.intersect(&held);
            for inst in &self.function.blocks[*block as usize].insts {
                inst.for_each_def(&mut |reg| _ = held.insert(self.live.registers.number(reg)));
            }
            self.content(body, *block, false, &parked, Some(&blended));
            self.go_on(body, *block, lanes, rest);
            self.end(body, Term::Goto(heads[at + 1]));
        }
    }

    /// The mask of a block of a region, in terms of masks before the divergence where all of those lanes
    /// come here.
    fn reunited(
        &mut self,
        head: BlockId,
        from: u32,
        blocks: &[u32],
        waiting: &[(u32, Value)],
        arms: [(u32, Value); 2],
        block: u32,
    ) -> Option<Value> {
        let function = self.function;
        let out_of = |from: u32| {
            function.blocks[from as usize].term.successors().into_iter().map(move |to| (from, to.0))
        };
        let all: BTreeSet<(u32, u32)> = arms
            .iter()
            .map(|(to, _)| (from, *to))
            .chain(blocks.iter().flat_map(|block| out_of(*block)))
            .collect();
        let into = |to: u32| all.iter().copied().filter(move |way| way.1 == to);
        let mut ways: BTreeSet<(u32, u32)> = into(block).collect();
        let straight = ways.clone();
        // If every out-edge of a block reaches here, the mask is that block's entry mask.
        while let Some(whole) = blocks.iter().find(|block| out_of(**block).all(|way| ways.contains(&way))) {
            ways.retain(|way| way.0 != *whole);
            ways.extend(into(*whole));
        }
        if ways == straight {
            return None;
        }
        let lanes = |way: &(u32, u32)| {
            let arm = arms.iter().find(|arm| *way == (from, arm.0));
            let alone = || waiting.iter().find(|(to, _)| *to == way.1 && into(*to).count() == 1);
            arm.or_else(alone).map(|(_, lanes)| *lanes)
        };
        let masks: Vec<Value> = ways.iter().map(lanes).collect::<Option<_>>()?;
        let (first, others) = masks.split_first()?;
        let mut united = *first;
        for more in others {
            let both = self.temp(Kind::Mask);
            self.op(head, OpKind::Or, &[united, *more], &[both]);
            united = both;
        }
        Some(united)
    }

    /// How many of these blocks of a region, from the first on, are reached only through the first.
    fn behind_alone(&self, blocks: &[u32]) -> usize {
        let mut count = 1;
        while let Some(next) = blocks.get(count)
            && (0..).zip(&self.function.blocks).all(|(from, content)| {
                blocks[..count].contains(&from) || content.term.successors().iter().all(|to| to.0 != *next)
            })
        {
            count += 1;
        }
        count
    }

    /// Whether that block is the only predecessor of a block.
    fn only_from(&self, block: u32, from: u32) -> bool {
        let mut all = (0..).zip(&self.function.blocks);
        all.all(|(at, content)| at == from || content.term.successors().iter().all(|to| to.0 != block))
    }

    /// The lanes that wait at a block, with the current values of the registers.
    fn waiters(&self, block: u32, mask: Value) -> Pending {
        let live = self.live.live_in[block as usize].iter();
        Pending { block, mask, regs: live.map(|n| (self.live.registers.reg(n), Value(n as u32))).collect() }
    }

    /// Sends the lanes of a block to the targets of its terminator.
    fn go_on(&mut self, node: BlockId, block: u32, lanes: Value, waiting: &[(u32, Value)]) {
        let find = |to: u32| waiting.iter().find(|(block, _)| *block == to).map(|(_, lanes)| *lanes);
        let join = |builder: &mut Self, to: u32, lanes: Value| {
            if let Some(there) = find(to) {
                builder.op(node, OpKind::Or, &[there, lanes], &[there]);
            }
        };
        match &self.function.blocks[block as usize].term {
            Terminator::Goto(to, _) => join(self, to.0, lanes),
            Terminator::Branch { then, els, .. } if then == els => join(self, then.0, lanes),
            Terminator::Branch { cond, then, els, .. } => {
                let [truths, those, others] = [(); 3].map(|()| self.temp(Kind::Mask));
                let pred = self.reg(cond.pred);
                self.op(node, OpKind::Truths { negated: cond.negated }, &[pred], &[truths]);
                self.op(node, OpKind::And, &[lanes, truths], &[those]);
                self.op(node, OpKind::AndNot, &[lanes, those], &[others]);
                join(self, then.0, those);
                join(self, els.0, others);
            }
            Terminator::Call(_)
            | Terminator::Barrier { .. }
            | Terminator::WarpSync { .. }
            | Terminator::Switch { .. }
            | Terminator::Ret(_)
            | Terminator::Exit(_) => unreachable!("ptxvm bug: a region that ends"),
        }
    }

    /// The instructions of a block, with their counts. `parked`: lanes that wait elsewhere; `blended`:
    /// registers whose values inactive lanes must keep.
    pub(super) fn content(
        &mut self,
        node: BlockId,
        block: u32,
        full: bool,
        parked: &[Pending],
        blended: Option<&BitSet>,
    ) {
        let function = self.function;
        let content = &function.blocks[block as usize];
        let mask = self.var(Var::Mask);
        let team = self.shape.team;
        // Coarse warps of several CTAs leave where an index is changed at an edge.
        let leaves = |inst: &Inst| self.shape.leaves_at_edges() && full && may_change_index(inst);
        let is_same = |index: usize| full && self.facts.same.contains(&Site { block, index: index as u32 });
        let needs_exit =
            |(index, inst): (usize, &Inst)| self.machine.accesses(inst) || leaves(inst) || is_same(index);
        if content.insts.iter().enumerate().any(needs_exit) {
            let live = self.live.live_in[block as usize].clone();
            let exit = self.exit_of(ExitReason::Before(Site { block, index: 0 }), &live, parked);
            self.op(node, OpKind::Ahead(Box::new(exit)), &[], &[]);
        }
        for (index, inst) in content.insts.iter().enumerate() {
            let site = Site { block, index: index as u32 };
            let is_same = full && self.facts.same.contains(&site);
            if is_same || self.facts.guards.contains(&site) {
                let live = self.live.before(function, block as usize, index);
                let exit = self.exit_of(ExitReason::Before(site), &live, parked);
                let mut uses = Vec::new();
                inst.srcs.iter().for_each(|src| src.for_each_reg(&mut |reg| uses.push(self.reg(reg))));
                let active = !full && team == 1 && self.facts.bounded.contains(&site);
                let kind = match (is_same, active) {
                    (true, _) => GuardKind::SameInAll,
                    (false, true) => GuardKind::ExactInActive,
                    (false, false) => GuardKind::Exact,
                };
                self.op(node, OpKind::Guard(site, kind, Box::new(exit)), &uses, &[]);
            }
            if self.shape.only_starts() && self.machine.accesses(inst) || self.machine.exits_before(inst) {
                let live = self.live.before(function, block as usize, index);
                let exit = self.exit_of(ExitReason::Before(site), &live, parked);
                self.op(node, OpKind::Spare(site, Box::new(exit)), &[], &[]);
            }
            match blended {
                Some(blended) => self.blend(node, site, inst, mask, blended),
                None => self.inst(node, site, inst, inst.guard, mask),
            }
        }
        let steps = content.insts.len() as u64 + 1;
        if full {
            let (steps, full_steps) = (steps * u64::from(team), self.var(Var::FullSteps));
            self.op(node, OpKind::Add(steps as i64), &[full_steps], &[full_steps]);
        } else {
            self.count_masked(node, steps, mask);
        }
    }

    /// Counts instructions that the lanes of a mask execute.
    pub(super) fn count_masked(&mut self, node: BlockId, steps: u64, mask: Value) {
        let (masked, lanes) = (self.var(Var::MaskedSteps), self.var(Var::LaneSteps));
        match self.shape.team {
            1 => self.op(node, OpKind::Add(steps as i64), &[masked], &[masked]),
            _ => self.op(node, OpKind::AddWarps(steps), &[masked, mask], &[masked]),
        }
        self.op(node, OpKind::AddLanes(steps), &[lanes, mask], &[lanes]);
    }

    /// An instruction after which inactive lanes have the same values in those registers as before it.
    fn blend(&mut self, node: BlockId, site: Site, inst: &Inst, mask: Value, blended: &BitSet) {
        let mut places = Vec::new();
        inst.for_each_def(&mut |reg| places.push(self.reg(reg)));
        places.retain(|place| blended.contains(place.0 as usize));
        let mut before = Vec::new();
        for place in &places {
            let old = self.temp(self.kinds[place.0 as usize]);
            self.copy(node, old, *place);
            before.push(old);
        }
        self.inst(node, site, inst, inst.guard, mask);
        for (place, old) in places.iter().zip(&before) {
            self.op(node, OpKind::SelectMask, &[mask, *place, *old], &[*place]);
        }
    }
}
