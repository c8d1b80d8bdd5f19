//! Which branches are divergent, and which widening conversions and comparisons need a guard.
//!
//! The analysis is optimistic: it starts with no divergent branch, and each round adds what the function
//! built from the previous assumption disproves.
//!
//! Invariant: facts only grow. When a round adds none, every assumption holds in the function that is used.

use super::branches::{Branches, both_work};
use super::chosen_lanes::ChosenLanes;
use super::expr::Expr;
use crate::wir::uses::DefUse;
use crate::wir::{Block, Cond, Func, GuardKind, Op, OpKind, Shape, Site, Term, Value};
use ptx::ir::{Function, Terminator};
use std::collections::BTreeSet;

/// What the next round of building may assume.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    /// For each PTX block, whether lanes may diverge at its terminator.
    pub(crate) divergent: Vec<bool>,
    /// Conversions that are exact only behind a guard.
    pub(crate) guards: BTreeSet<Site>,
    /// Those of them that masked copies execute in lanes that were chosen by the value: others may wrap
    /// around where the active ones do not.
    pub(crate) bounded: BTreeSet<Site>,
    /// Whether a coarse warp of several CTAs leaves where its lanes diverge, so that it has no masked copies.
    pub(crate) leaves: bool,
    /// If so, comparisons with a guard that leaves unless all lanes have the same result.
    pub(crate) same: BTreeSet<Site>,
}

impl Facts {
    pub(crate) fn new(function: &Function) -> Self {
        Self {
            divergent: vec![false; function.blocks.len()],
            guards: BTreeSet::new(),
            bounded: BTreeSet::new(),
            leaves: false,
            same: BTreeSet::new(),
        }
    }

    /// Treats every branch as divergent.
    pub(crate) fn give_up(&mut self) {
        self.divergent.fill(true);
    }

    /// Adds what the function disproves; returns whether there was anything.
    pub(crate) fn refine(&mut self, func: &Func, function: &Function) -> bool {
        if self.leaves {
            let before = self.same.len();
            self.same.extend(inner_comparisons(func, function));
            if self.same.len() > before {
                // Branches are uniform behind these guards.
                return true;
            }
        }
        let mut changed = false;
        for node in &func.blocks {
            let value = match (&node.term, function.blocks[node.block as usize].term.clone()) {
                (Term::If { cond: Cond::Pred { value, .. }, .. }, Terminator::Branch { .. }) => *value,
                (Term::Switch { value, .. }, _) => *value,
                _ => continue,
            };
            let uniform = func.shapes[value.0 as usize].is_uniform();
            let block = node.block as usize;
            if !uniform && !self.divergent[block] {
                self.divergent[block] = true;
                changed = true;
            }
        }
        for (site, is_bounded) in unchecked(func, function) {
            changed |= self.guards.insert(site);
            changed |= is_bounded && self.bounded.insert(site);
        }
        changed
    }
}

/// The comparisons by place that branches depend on of which both sides do work. So lanes at the edge of a
/// picture do other work than those inside, and a side exit there costs little more than both sides.
fn inner_comparisons(func: &Func, function: &Function) -> Vec<Site> {
    let branches = Branches::new(func, function);
    let of_block = |block: &Block| match &block.term {
        Term::If { cond: Cond::Pred { value, .. }, .. } if block.full && both_work(block, function) => {
            branches.comparisons(*value)
        }
        _ => Vec::new(),
    };
    func.blocks.iter().flat_map(of_block).collect()
}

/// Removes guards of operands that are not affine, which never exit: those of copies for which they were not
/// made.
pub(crate) fn remove_idle_guards(func: &mut Func) {
    let shapes = &func.shapes;
    for block in &mut func.blocks {
        let idle = |op: &Op| match op.kind {
            OpKind::Guard(_, GuardKind::Exact | GuardKind::ExactInActive, _) => !may_wrap(shapes, &op.uses),
            _ => false,
        };
        block.ops.retain(|op| !idle(op));
    }
}

/// Whether the sources of a widening conversion have lanes that may wrap around.
fn may_wrap(shapes: &[Shape], sources: &[Value]) -> bool {
    sources.iter().take(2).any(|source| match &shapes[source.0 as usize] {
        Shape::Affine(affine) => !affine.is_plain(),
        Shape::Bottom | Shape::Uniform(_) | Shape::Varying => false,
    })
}

/// Instructions that widen an affine value for which no analysis rules out that a lane wraps around, and
/// whether their active lanes were chosen by a comparison of that value, which others may find negative.
fn unchecked(func: &Func, function: &Function) -> Vec<(Site, bool)> {
    let mut sites = Vec::new();
    let mut defs = None;
    for node in &func.blocks {
        for op in &node.ops {
            let OpKind::Inst(site) = op.kind else { continue };
            let Some(inst) = site.inst(function) else { continue };
            // Affine values of less than 32 bits exist only where no lane wraps around.
            let Some((from, _)) = Expr::of(inst).and_then(Expr::widens) else { continue };
            if from.bits() < 32 {
                continue;
            }
            let result = op.defs.first().map(|d| &func.shapes[d.0 as usize]);
            if !matches!(result, Some(Shape::Affine(_))) {
                continue;
            }
            if may_wrap(&func.shapes, &op.uses[1..]) {
                let is_bounded = !node.full && !from.is_signed() && {
                    let defs = defs.get_or_insert_with(|| DefUse::new(func));
                    let search = ChosenLanes { func, function, defs };
                    let sources = op.uses[1..].iter().take(2);
                    sources.clone().any(|value| search.may_be_negative(*value))
                        && sources.clone().any(|value| search.chooses(op.uses[0], *value))
                };
                sites.push((site, is_bounded));
            }
        }
    }
    sites
}
