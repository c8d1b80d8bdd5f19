//! Predicates that are the same in all lanes of each chunk, as comparisons of a row's number are where a
//! chunk is a row.
//!
//! A predicate has no shape with a scalar for each chunk, since it is a mask either way. But what it selects
//! may be a scalar of each chunk.
//!
//! Invariant: a predicate that is not listed may differ between any lanes.

use super::Classifier;
use crate::analysis::expr::{Operand, operands};
use crate::wir::{Effects, Func, Kind, Op, OpKind, Shape, Value};
use ptx::ir::{Inst, RegClass};

/// Which values are predicates. Each is taken for one of each chunk until an operation shows that it is not.
pub(super) fn all(func: &Func) -> Vec<bool> {
    func.kinds.iter().map(|kind| *kind == Kind::Reg(RegClass::Pred)).collect()
}

impl<M: Effects> Classifier<'_, M> {
    /// Whether a value is the same in all lanes of each chunk, as far as its operations have shown.
    pub(super) fn is_same_in_chunk(&self, value: Value) -> bool {
        match self.class(value) {
            Shape::Bottom | Shape::Uniform(_) => true,
            Shape::Affine(pattern) => pattern.same_in_chunk(self.chunk),
            Shape::Varying => self.per_chunk[value.0 as usize],
        }
    }

    /// Whether each source of an instruction is the same in all lanes of each chunk.
    pub(super) fn reads_same_in_chunk(&self, inst: &Inst, op: &Op) -> bool {
        operands(inst, op).into_iter().all(|operand| match operand {
            Operand::Value(value)
            | Operand::Not(value)
            | Operand::Based(value, _)
            | Operand::Indexed(value)
            | Operand::Video(Some(value)) => self.is_same_in_chunk(value),
            Operand::Sreg(sreg, axis) => match self.sreg(sreg, axis) {
                Shape::Bottom | Shape::Uniform(_) => true,
                Shape::Affine(pattern) => pattern.same_in_chunk(self.chunk),
                Shape::Varying => false,
            },
            Operand::Absent | Operand::Imm(_) | Operand::Symbol(_) | Operand::Video(None) => true,
        })
    }

    /// Whether each predicate that an operation computes is the same in all lanes of each chunk.
    fn computes_same_in_chunk(&self, op: &Op) -> bool {
        match op.kind {
            OpKind::Inst(site) => site.inst(self.function).is_some_and(|inst| {
                inst.guard.is_none() && self.machine.is_pure(inst) && self.reads_same_in_chunk(inst, op)
            }),
            OpKind::SelectPred { .. } => op.uses.iter().all(|value| self.is_same_in_chunk(*value)),
            _ => false,
        }
    }

    /// Notes the predicates of an operation that differ between lanes of a chunk; returns whether there are
    /// new ones.
    pub(super) fn note_predicates(&mut self, op: &Op) -> bool {
        let listed = |value: &&Value| self.per_chunk[value.0 as usize];
        if op.defs.iter().any(|def| listed(&def)) && !self.computes_same_in_chunk(op) {
            op.defs.iter().for_each(|def| self.per_chunk[def.0 as usize] = false);
            return true;
        }
        false
    }

    /// The same for a phi.
    pub(super) fn note_phi(&mut self, def: Value, from: &[Value]) -> bool {
        let differs =
            self.per_chunk[def.0 as usize] && !from.iter().all(|value| self.is_same_in_chunk(*value));
        if differs {
            self.per_chunk[def.0 as usize] = false;
        }
        differs
    }
}
