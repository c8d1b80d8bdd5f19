//! Which lanes are active because of a comparison: `if (x >= 0 && x < n)` chooses lanes by `x`.
//!
//! Where such lanes widen `x` as an unsigned number, other lanes may wrap around
//! ([`GuardKind::ExactInActive`](crate::wir::GuardKind::ExactInActive)).
//!
//! It decides nothing that correctness depends on: a guard for active lanes is exact in any case.

use super::expr::{Arith, Expr, Operand, operands};
use crate::tuning::CHOOSING_MASK_MAX_VALUES;
use crate::wir::uses::{Def, DefUse};
use crate::wir::{Func, OpKind, Shape, Value};
use ptx::ir::Function;
use std::collections::BTreeSet;

/// The function that is searched.
pub(crate) struct ChosenLanes<'a> {
    pub(crate) func: &'a Func,
    pub(crate) function: &'a Function,
    pub(crate) defs: &'a DefUse,
}

impl ChosenLanes<'_> {
    /// Whether a mask depends on a comparison of a value, or of one that differs from it by a uniform number.
    pub(crate) fn chooses(&self, mask: Value, value: Value) -> bool {
        let roots = self.roots(value);
        let mut left = vec![mask];
        let mut seen = BTreeSet::new();
        while let Some(name) = left.pop() {
            if !seen.insert(name) || seen.len() > CHOOSING_MASK_MAX_VALUES {
                continue;
            }
            match self.defs.def(name) {
                Some(Def::Phi(block, at)) => left.extend(&self.func.blocks[block.0 as usize].phis[at].from),
                Some(Def::Op(block, at)) => {
                    let op = &self.func.blocks[block.0 as usize].ops[at];
                    let site = match op.kind {
                        OpKind::Inst(site) => site,
                        OpKind::Restore(resume, reg) => {
                            left.extend(self.func.kept(resume, reg));
                            continue;
                        }
                        _ => {
                            left.extend(&op.uses);
                            continue;
                        }
                    };
                    let arith = site.inst(self.function).and_then(Expr::of).map(|expr| expr.arith);
                    match arith {
                        Some(Arith::Compare(_))
                            if op.uses[1..].iter().any(|use_| !roots.is_disjoint(&self.roots(*use_))) =>
                        {
                            return true;
                        }
                        Some(Arith::And | Arith::Or | Arith::Xor | Arith::Copy) => left.extend(&op.uses[1..]),
                        _ => {}
                    }
                }
                None => {}
            }
        }
        false
    }

    /// The affine values that a value is the sum of, with uniform numbers; several if it is a phi.
    /// Values that are kept across a barrier count as those before it.
    fn roots(&self, value: Value) -> BTreeSet<Value> {
        let mut roots = BTreeSet::new();
        let mut left = vec![value];
        while let Some(name) = left.pop() {
            let root = self.root(name);
            if roots.len() == CHOOSING_MASK_MAX_VALUES || !roots.insert(root) {
                continue;
            }
            match self.defs.def(root) {
                Some(Def::Phi(block, at)) => left.extend(&self.func.blocks[block.0 as usize].phis[at].from),
                Some(Def::Op(block, at)) => {
                    if let OpKind::Restore(resume, reg) = self.func.blocks[block.0 as usize].ops[at].kind {
                        left.extend(self.func.kept(resume, reg));
                    }
                }
                None => {}
            }
        }
        roots
    }

    /// The last affine value on the way from a value to what it is the sum of, without phis.
    fn root(&self, value: Value) -> Value {
        let mut root = value;
        for _ in 0..CHOOSING_MASK_MAX_VALUES {
            let Some(Def::Op(block, at)) = self.defs.def(root) else { break };
            let op = &self.func.blocks[block.0 as usize].ops[at];
            let OpKind::Inst(site) = op.kind else { break };
            let Some(inst) = site.inst(self.function) else { break };
            let Some(Arith::Add | Arith::Sub | Arith::Copy) = Expr::of(inst).map(|expr| expr.arith) else {
                break;
            };
            let is_affine = |name: &Value| matches!(self.func.shapes[name.0 as usize], Shape::Affine(_));
            let sources = operands(inst, op);
            let mut affine = sources.iter().filter_map(|source| source.value()).filter(is_affine);
            let (Some(only), None) = (affine.next(), affine.next()) else { break };
            let others = sources.iter().all(|source| match source {
                Operand::Value(name) => *name == only || self.func.shapes[name.0 as usize].is_uniform(),
                Operand::Imm(_) | Operand::Absent => true,
                _ => false,
            });
            if !others {
                break;
            }
            root = only;
        }
        root
    }

    /// Whether an affine value may have negative lanes, since something is subtracted, or it decreases from
    /// lane to lane.
    pub(crate) fn may_be_negative(&self, value: Value) -> bool {
        let mut left = vec![value];
        let mut seen = BTreeSet::new();
        while let Some(name) = left.pop() {
            if !seen.insert(name) || seen.len() > CHOOSING_MASK_MAX_VALUES {
                continue;
            }
            if let Shape::Affine(pattern) = &self.func.shapes[name.0 as usize]
                && pattern.lanes.iter().any(|lane| *lane < 0)
            {
                return true;
            }
            let Some(Def::Op(block, at)) = self.defs.def(name) else { continue };
            let op = &self.func.blocks[block.0 as usize].ops[at];
            let OpKind::Inst(site) = op.kind else { continue };
            let Some(inst) = site.inst(self.function) else { continue };
            let Some(expr) = Expr::of(inst) else { continue };
            let lowers = |source: Operand<'_>| matches!(source, Operand::Imm(bits) if expr.number(bits) < 0);
            match expr.arith {
                Arith::Sub | Arith::Neg => return true,
                Arith::Add | Arith::Mad { .. } if operands(inst, op).into_iter().any(lowers) => return true,
                Arith::Add | Arith::Mad { .. } | Arith::Mul { .. } | Arith::Shl | Arith::Copy => {
                    left.extend(&op.uses[1..]);
                }
                _ => {}
            }
        }
        false
    }
}
