//! Divergent branches of a function, and what they depend on: the number of the thread, or data.
//!
//! A branch that compares numbers which grow with the lane, as a test for the end of an array does, divides
//! few warps of a grid. A branch that depends on data may divide every warp, each in its own way.
//!
//! Invariant: a branch that this file cannot follow is taken to depend on data.

use super::expr::{Arith, Expr};
use crate::wir::loops::Loop;
use crate::wir::uses::{Def, DefUse};
use crate::wir::{Block, Cond, Func, OpKind, Shape, Site, Term, Value};
use ptx::ir::{BlockId, Function, Terminator};
use ptx::isa::{Cmp, Op as O, Ty};
use std::collections::HashSet;

/// The most operations between a branch and the numbers that it compares.
const MAX_DEPTH: u32 = 24;

/// Whether both sides of the branch at the end of a block do work, and not one of them only exits.
pub(crate) fn both_work(block: &Block, function: &Function) -> bool {
    let works = |to: BlockId| {
        let block = &function.blocks[to.0 as usize];
        !block.insts.is_empty() || !matches!(block.term, Terminator::Ret(_) | Terminator::Exit(_))
    };
    function.blocks[block.block as usize].term.successors().into_iter().all(works)
}

/// What a branch compares that depends only on evenly spaced values of lanes.
pub(crate) struct Compared {
    /// The values that grow with the lane.
    pub(crate) numbers: Vec<Value>,
    /// Whether the branch compares their order only, not whether they are equal to another number.
    pub(crate) ordered: bool,
    /// The comparisons that are not uniform.
    sites: Vec<Site>,
    /// Whether all of them compare integers of 32 bits.
    words: bool,
    /// Phis of predicates that were followed; `None`: they are taken to depend on data.
    phis: Option<HashSet<Value>>,
}

impl Default for Compared {
    fn default() -> Self {
        Self { numbers: Vec::new(), ordered: true, sites: Vec::new(), words: true, phis: None }
    }
}

/// The divergent branches of a function.
pub(crate) struct Branches<'a> {
    func: &'a Func,
    function: &'a Function,
    def_use: DefUse,
}

impl<'a> Branches<'a> {
    pub(crate) fn new(func: &'a Func, function: &'a Function) -> Self {
        Self { func, function, def_use: DefUse::new(func) }
    }

    /// The mask of the lanes that take the divergent branch at the end of a block, if there is one.
    pub(crate) fn divergent(block: &Block) -> Option<Value> {
        match block.term {
            Term::If { cond: Cond::Equal(lower, _), .. } if block.full => Some(lower),
            _ => None,
        }
    }

    /// What a divergent branch compares. `lower`: the mask of the lanes that take it.
    ///
    /// # Errors
    /// The branch depends on data.
    pub(crate) fn compared(&self, lower: Value) -> Result<Compared, &'static str> {
        self.compared_by(lower, Compared::default())
    }

    /// What a divergent branch compares, also where the predicate has been in a phi since; `None`: it depends
    /// on data.
    pub(crate) fn compared_before(&self, lower: Value) -> Option<Compared> {
        self.compared_by(lower, Compared { phis: Some(HashSet::new()), ..Compared::default() }).ok()
    }

    fn compared_by(&self, lower: Value, mut compared: Compared) -> Result<Compared, &'static str> {
        const DATA: &str = "a branch depends on data of each lane";
        let truths = self.def_use.op_of(self.func, lower).and_then(|and| and.uses.get(1)).ok_or(DATA)?;
        let pred = self.def_use.op_of(self.func, *truths).and_then(|op| op.uses.first()).ok_or(DATA)?;
        match self.follows_lanes(*pred, &mut compared, 0) {
            true => Ok(compared),
            false => Err(DATA),
        }
    }

    /// The comparisons of a value of 32 bits that grows from lane to lane with a uniform one that a predicate
    /// depends on, where they are not uniform; none if it depends on anything else that is not uniform.
    pub(crate) fn comparisons(&self, pred: Value) -> Vec<Site> {
        let mut compared = Compared { phis: Some(HashSet::new()), ..Compared::default() };
        let follows = self.follows_lanes(pred, &mut compared, 0);
        let grows = |value: &Value| match &self.func.shapes[value.0 as usize] {
            Shape::Affine(affine) => affine.slope(u32::MAX).is_some_and(|slope| slope > 0),
            Shape::Bottom | Shape::Uniform(_) | Shape::Varying => false,
        };
        match follows && compared.words && compared.numbers.iter().all(grows) {
            true => compared.sites,
            false => Vec::new(),
        }
    }

    /// Whether all divergent branches compare numbers that grow with the lane: then lanes diverge at the
    /// edges of a grid, or where data ends.
    pub(crate) fn are_all_by_place(&self) -> bool {
        let mut lower = self.func.blocks.iter().filter_map(Self::divergent);
        lower.all(|lower| self.compared_before(lower).is_some_and(|compared| compared.ordered))
    }

    /// Whether an instruction in a loop computes a value, and not one before the loop, however many phis and
    /// selections it passes.
    pub(crate) fn is_made_in(&self, one: Loop, value: Value) -> bool {
        let (mut seen, mut left) = (HashSet::from([value]), vec![value]);
        while let Some(value) = left.pop() {
            let Some(def) = self.def_use.def(value) else { continue };
            let block = &self.func.blocks[def.block().0 as usize];
            let kept;
            let sources: &[Value] = match def {
                Def::Phi(_, at) => &block.phis[at].from,
                Def::Op(_, at) => match (&block.ops[at].kind, block.ops[at].uses.as_slice()) {
                    (OpKind::SelectMask | OpKind::SelectPred { .. }, [_, sources @ ..]) => sources,
                    (OpKind::Restore(resume, reg), _) => {
                        kept = self.func.kept(*resume, *reg);
                        kept.as_slice()
                    }
                    (OpKind::Inst(_), _) if one.blocks().contains(&(block.block as usize)) => return true,
                    _ => &[],
                },
            };
            left.extend(sources.iter().filter(|source| seen.insert(**source)));
        }
        false
    }

    /// Whether a predicate depends only on evenly spaced values of lanes.
    fn follows_lanes(&self, pred: Value, compared: &mut Compared, depth: u32) -> bool {
        let varies = |value: Value| self.func.shapes[value.0 as usize] == Shape::Varying;
        if !varies(pred) {
            return true;
        }
        if depth == MAX_DEPTH {
            return false;
        }
        if let Some(Def::Phi(block, at)) = self.def_use.def(pred) {
            let from = &self.func.blocks[block.0 as usize].phis[at].from;
            let Some(first) = compared.phis.as_mut().map(|phis| phis.insert(pred)) else { return false };
            return !first || from.iter().all(|value| self.follows_lanes(*value, compared, depth + 1));
        }
        let Some(op) = self.def_use.op_of(self.func, pred) else { return false };
        let site = match op.kind {
            OpKind::Inst(site) => site,
            OpKind::Restore(resume, reg) => {
                let kept = self.func.kept(resume, reg);
                return kept.is_some_and(|value| self.follows_lanes(value, compared, depth + 1));
            }
            // Where the code is entered in the middle, the register has what the other predicates of a phi
            // are.
            OpKind::Load(_) => return true,
            _ => return false,
        };
        let Some(inst) = site.inst(self.function).filter(|inst| inst.guard.is_none()) else { return false };
        let mut values = op.uses.iter().skip(1);
        if inst.op == O::Not && inst.mods.ty() == Ty::Pred {
            return values.all(|value| self.follows_lanes(*value, compared, depth + 1));
        }
        let Some(Expr { arith, ty }) = Expr::of(inst) else { return false };
        match (arith, ty) {
            (Arith::Compare(cmp), _) => {
                compared.ordered &= !matches!(cmp, Cmp::Eq | Cmp::Ne);
                let affine = |value: &Value| matches!(self.func.shapes[value.0 as usize], Shape::Affine(_));
                compared.numbers.extend(values.clone().copied().filter(affine));
                compared.sites.push(site);
                compared.words &= matches!(inst.mods.ty(), Ty::S32 | Ty::U32 | Ty::B32);
                values.all(|value| !varies(*value))
            }
            (Arith::And | Arith::Or | Arith::Xor | Arith::Copy, Ty::Pred) => {
                values.all(|value| self.follows_lanes(*value, compared, depth + 1))
            }
            _ => false,
        }
    }
}
