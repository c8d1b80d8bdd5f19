//! Masks of the leading lanes: those that a comparison of a scalar with ascending constants of lanes makes,
//! such as `t < half`.
//!
//! Invariant: the mask has exactly the lanes whose constant is below the limit (or equals it, if the limit
//! belongs to them), and no constant is negative.

use super::Analyses;
use super::expr::{Arith, Expr, Operand, operands};
use crate::wir::leading_lanes::{LeadingLanes, Limit};
use crate::wir::{BlockId, Func, Op, OpKind, Shape, Value};
use ptx::ir::Function;
use ptx::isa::{Cmp, Ty};

/// What masks are looked up by.
#[derive(Clone, Copy)]
pub(crate) struct Masks<'a> {
    pub(crate) func: &'a Func,
    pub(crate) function: &'a Function,
    pub(crate) analyses: &'a Analyses,
}

/// A side of a comparison.
enum Side {
    /// A constant for each lane.
    Lanes(Value, Vec<u64>),
    /// The same in all lanes.
    Scalar(Limit),
}

impl<'a> Masks<'a> {
    fn op(self, name: Value) -> Option<&'a Op> {
        self.analyses.def_use.op_of(self.func, name)
    }

    fn is_all(self, name: Value) -> bool {
        self.op(name).is_some_and(|op| matches!(op.kind, OpKind::Mask(u32::MAX)))
    }

    /// The mask of all other lanes, if an operation computes it from this mask, or this one from it.
    pub(crate) fn complement(self, mask: Value) -> Option<Value> {
        let of_all = |op: &Op| matches!(op.kind, OpKind::AndNot) && self.is_all(op.uses[0]);
        if let Some(made) = self.op(mask).filter(|op| of_all(op)) {
            return Some(made.uses[1]);
        }
        let (block, at) = self.and_not(mask)?;
        let op = &self.func.blocks[block.0 as usize].ops[at];
        of_all(op).then(|| op.defs[0])
    }

    /// The first operation that takes the lanes of a mask out of another mask.
    pub(crate) fn and_not(self, mask: Value) -> Option<(BlockId, usize)> {
        self.analyses.readers.of(mask).iter().find_map(|id| {
            let mut ops = self.func.blocks[id.0 as usize].ops.iter();
            let at = ops.position(|op| matches!(op.kind, OpKind::AndNot) && op.uses[1] == mask)?;
            Some((*id, at))
        })
    }

    /// The comparison of a mask, if its active lanes are those up to a limit.
    pub(crate) fn leading_lanes(self, mask: Value) -> Option<LeadingLanes> {
        let mut made = self.op(mask)?;
        let mut turned = false;
        if let OpKind::AndNot = made.kind {
            if !self.is_all(made.uses[0]) {
                return None;
            }
            (turned, made) = (true, self.op(made.uses[1])?);
        }
        let OpKind::And = made.kind else { return None };
        if !self.is_all(made.uses[0]) {
            return None;
        }
        let truths = self.op(made.uses[1])?;
        let OpKind::Truths { negated } = truths.kind else { return None };
        let compare = self.op(truths.uses[0])?;
        let OpKind::Inst(site) = compare.kind else { return None };
        let inst = site.inst(self.function)?;
        let Expr { arith: Arith::Compare(cmp), ty: ty @ (Ty::S32 | Ty::U32) } = Expr::of(inst)? else {
            return None;
        };
        if compare.defs.len() != 1 {
            return None;
        }
        let sources = operands(inst, compare);
        let sides = [self.side(*sources.first()?)?, self.side(*sources.get(1)?)?];
        let (by_lane, constants, limit, swapped) = match sides {
            [Side::Lanes(name, lanes), Side::Scalar(limit)] => (name, lanes, limit, false),
            [Side::Scalar(limit), Side::Lanes(name, lanes)] => (name, lanes, limit, true),
            _ => return None,
        };
        // Whether lanes below the limit are active, and whether a lane that equals it is.
        let (less, equal) = match cmp {
            Cmp::Lt | Cmp::Lo => (true, false),
            Cmp::Le | Cmp::Ls => (true, true),
            Cmp::Gt | Cmp::Hi => (false, false),
            Cmp::Ge | Cmp::Hs => (false, true),
            _ => return None,
        };
        let other_way = negated != turned;
        let ascending = constants.windows(2).all(|pair| pair[0] < pair[1]);
        let near = constants.last().is_some_and(|last| *last < 1 << 31);
        (ascending && near && (less != swapped) != other_way).then(|| LeadingLanes {
            by_lane,
            constants: constants.into(),
            limit,
            closed: equal != other_way,
            signed: ty == Ty::S32,
        })
    }

    fn side(self, source: Operand<'_>) -> Option<Side> {
        let name = match source {
            Operand::Imm(bits) => return Some(Side::Scalar(Limit::Constant(bits as u32))),
            source => source.value()?,
        };
        match &self.func.shapes[name.0 as usize] {
            Shape::Uniform(_) => Some(Side::Scalar(Limit::Value(name))),
            Shape::Affine(pattern) if pattern.rows.is_empty() && !pattern.by_chunk => {
                let lanes = self.analyses.constants.lanes(name)?;
                Some(Side::Lanes(name, lanes.map(|lane| lane & u64::from(u32::MAX)).collect()))
            }
            Shape::Affine(_) | Shape::Varying | Shape::Bottom => None,
        }
    }
}
