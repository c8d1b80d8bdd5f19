//! What one plan shows and the next assumes, and what turns of loops cost.
//!
//! Invariant: facts only ever take back; when nothing changes any more, all that was assumed holds in the plan that is used.

use super::{Class, Cond, Machine, Name, OpKind, Plan, Site, Term};
use crate::tuning::{MAX_ITERATION_FUEL, WAITING_LOOP_FUEL, WORK_PER_FUEL};
use ptx::ir::{Function, Inst, Reg, Src, Terminator};
use std::collections::BTreeSet;

/// What the last plan of the function showed, and this one assumes. Refined until it holds.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    /// By block: lanes may part at its terminator.
    pub(super) divergent: Vec<bool>,
    /// Conversions that are exact only if checked.
    pub(super) guards: BTreeSet<Site>,
}

impl Facts {
    pub(super) fn new(function: &Function) -> Self {
        Self { divergent: vec![false; function.blocks.len()], guards: BTreeSet::new() }
    }

    /// Believes nothing of branches any more.
    pub(super) fn give_up(&mut self) {
        self.divergent.fill(true);
    }

    /// Takes in what the plan shows; whether that was new.
    pub(super) fn refine(&mut self, plan: &Plan, function: &Function) -> bool {
        let mut changed = false;
        for node in &plan.nodes {
            let value = match (&node.term, function.blocks[node.block as usize].term.clone()) {
                (Term::If { cond: Cond::Pred { value, .. }, .. }, Terminator::Branch { .. }) => *value,
                (Term::Switch { value, .. }, _) => *value,
                _ => continue,
            };
            let uniform = plan.classes[value.0 as usize].is_uniform();
            let block = node.block as usize;
            if !uniform && !self.divergent[block] {
                self.divergent[block] = true;
                changed = true;
            }
        }
        for site in unchecked(plan, function) {
            changed |= self.guards.insert(site);
        }
        changed
    }
}

/// By block: the price of a turn of the loop with that header. Loops in it have prices of their own.
pub(super) fn prices(function: &Function, machine: &impl Machine) -> Vec<i64> {
    let mut watching = vec![0u32; function.blocks.len() + 1];
    let mut work = vec![0u64; function.blocks.len() + 1];
    for (at, block) in function.blocks.iter().enumerate() {
        let watches = block.insts.iter().any(|inst| machine.watches(inst));
        watching[at + 1] = watching[at] + u32::from(watches);
        work[at + 1] = work[at] + block.insts.iter().map(|inst| machine.work(inst)).sum::<u64>();
    }
    let mut price = vec![1; function.blocks.len()];
    for (at, block) in function.blocks.iter().enumerate() {
        for to in block.term.successors() {
            let to = to.0 as usize;
            if to <= at {
                let least = if watching[at + 1] > watching[to] { WAITING_LOOP_FUEL } else { 1 };
                let turn = i64::try_from((work[at + 1] - work[to]) / WORK_PER_FUEL).unwrap_or(i64::MAX);
                price[to] = price[to].max(least).max(turn.min(MAX_ITERATION_FUEL));
            }
        }
    }
    price
}

/// The register of the member mask of a warp-synchronous instruction: the last source of all of them.
pub(super) fn members(inst: &Inst) -> Option<Reg> {
    match inst.srcs.last() {
        Some(Src::Reg(reg)) => Some(*reg),
        _ => None,
    }
}

/// Instructions that widen a pattern, of which nothing says that no lane wraps around.
fn unchecked(plan: &Plan, function: &Function) -> Vec<Site> {
    let mut sites = Vec::new();
    for node in &plan.nodes {
        for op in &node.ops {
            let OpKind::Inst(site) = op.kind else { continue };
            let Some(inst) = site.inst(function) else { continue };
            // Of less than a word there are only patterns whose lanes do not wrap around.
            if super::classes::widens(inst).is_none_or(|(from, _)| from.bits() < 32) {
                continue;
            }
            let result = op.defs.first().map(|d| &plan.classes[d.0 as usize]);
            if !matches!(result, Some(Class::Pattern(_))) {
                continue;
            }
            let wraps = |name: &Name| match &plan.classes[name.0 as usize] {
                Class::Pattern(p) => !p.is_plain(),
                _ => false,
            };
            if op.uses[1..].iter().take(2).any(wraps) {
                sites.push(site);
            }
        }
    }
    sites
}
