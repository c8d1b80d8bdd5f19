//! At which blocks lanes may be pending, and which registers must be saved for them.
//!
//! A divergent branch sends some of its lanes to a block that is not next in the order of execution. Those
//! lanes are pending at that block. Registers that active lanes may overwrite meanwhile are saved when the
//! lanes become pending.
//!
//! Invariant: while the masked copy of a block executes, lanes are pending only at higher blocks, and only at
//! those that [`Parking::may`] lists for it.

use crate::analysis::divergence::Facts;
use ptx::analysis::bits::BitSet;
use ptx::analysis::liveness::Liveness;
use ptx::ir;
use ptx::ir::{Function, Terminator};

/// Where lanes may be pending in a function.
pub(crate) struct Parking {
    /// For each block, where lanes may be pending when its masked copy starts; `None` if it has no masked
    /// copy.
    pub(crate) may: Vec<Option<BitSet>>,
    /// For each block, the registers that are saved for lanes that are pending there.
    pub(crate) captured: Vec<BitSet>,
}

impl Parking {
    /// `starts`: blocks whose masked copy may be entered with no pending lanes.
    pub(crate) fn new(function: &Function, facts: &Facts, live: &Liveness, starts: &[u32]) -> Self {
        let count = function.blocks.len();
        let mut solver = Solver { may: vec![None; count], work: Vec::new() };
        for &start in starts {
            solver.reach(start as usize, &BitSet::new(count));
        }
        // For this analysis every block has a full copy that is reached.
        for (block, content) in function.blocks.iter().enumerate() {
            if let Terminator::Switch { targets, .. } = &content.term
                && facts.divergent[block]
            {
                solver.part(targets, &BitSet::new(count));
            }
            if let Terminator::Branch { then, els, .. } = &content.term
                && then != els
                && facts.divergent[block]
            {
                let (low, high) = (then.0.min(els.0) as usize, then.0.max(els.0) as usize);
                let mut parked = BitSet::new(count);
                parked.insert(high);
                solver.park(low, &parked);
            }
        }
        while let Some(block) = solver.work.pop() {
            solver.block(block, function, facts);
        }
        let captured = captures(function, live, &solver.may);
        Self { may: solver.may, captured }
    }
}

struct Solver {
    may: Vec<Option<BitSet>>,
    work: Vec<usize>,
}

impl Solver {
    fn reach(&mut self, block: usize, parked: &BitSet) {
        let changed = match &mut self.may[block] {
            Some(may) => may.union(parked),
            none => {
                *none = Some(parked.clone());
                true
            }
        };
        if changed {
            self.work.push(block);
        }
    }

    /// An edge to a block while lanes are pending at others: the lower of these execute first.
    fn park(&mut self, to: usize, parked: &BitSet) {
        let mut first: Vec<usize> = parked.iter().filter(|p| *p < to).collect();
        first.sort_unstable();
        let mut rest = parked.clone();
        let mut with = parked.clone();
        with.insert(to);
        for p in first {
            rest.remove(p);
            with.remove(p);
            self.reach(p, &with);
        }
        rest.remove(to);
        self.reach(to, &rest);
    }

    /// All active lanes become pending at these blocks, while others are pending at `parked`: the lowest
    /// continue.
    fn part(&mut self, targets: &[ir::BlockId], parked: &BitSet) {
        let mut rest = parked.clone();
        targets.iter().for_each(|to| _ = rest.insert(to.0 as usize));
        let mut all: Vec<usize> = rest.iter().collect();
        all.sort_unstable();
        for p in all {
            rest.remove(p);
            self.reach(p, &rest);
        }
    }

    fn block(&mut self, block: usize, function: &Function, facts: &Facts) {
        let Some(may) = self.may[block].clone() else { return };
        match &function.blocks[block].term {
            Terminator::Goto(to, _) => self.park(to.0 as usize, &may),
            Terminator::Branch { then, els, .. } => {
                for to in [then, els] {
                    self.park(to.0 as usize, &may);
                }
                if then != els && facts.divergent[block] {
                    let (low, high) = (then.0.min(els.0) as usize, then.0.max(els.0) as usize);
                    let mut with = may.clone();
                    with.insert(high);
                    self.park(low, &with);
                }
            }
            Terminator::Switch { targets, .. } => {
                for to in targets {
                    self.park(to.0 as usize, &may);
                }
                if facts.divergent[block] {
                    self.part(targets, &may);
                }
            }
            Terminator::WarpSync { next, .. } => self.park(next.0 as usize, &may),
            Terminator::Ret(_) | Terminator::Exit(_) => self.part(&[], &may),
            Terminator::Call(_) | Terminator::Barrier { .. } => {}
        }
    }
}

/// Registers that are live at a block where lanes may be pending, and that may be written meanwhile.
fn captures(function: &Function, live: &Liveness, may: &[Option<BitSet>]) -> Vec<BitSet> {
    let (count, len) = (function.blocks.len(), live.registers.len());
    let mut writes: Vec<BitSet> = Vec::new();
    for block in &function.blocks {
        let mut set = BitSet::new(len);
        let mut add = |reg| {
            set.insert(live.registers.number(reg));
        };
        block.insts.iter().for_each(|inst| inst.for_each_def(&mut add));
        block.term.for_each_def(&mut add);
        writes.push(set);
    }
    let mut captured = vec![BitSet::new(len); count];
    loop {
        let mut changed = false;
        for (block, may) in may.iter().enumerate() {
            let Some(may) = may else { continue };
            for p in may.iter() {
                // Registers that are saved for a block are written when its lanes continue.
                for set in [writes[block].clone(), captured[block].clone()] {
                    let mut new = set;
                    let dead: Vec<usize> = new.iter().filter(|r| !live.live_in[p].contains(*r)).collect();
                    dead.into_iter().for_each(|r| new.remove(r));
                    changed |= captured[p].union(&new);
                }
            }
        }
        if !changed {
            return captured;
        }
    }
}
