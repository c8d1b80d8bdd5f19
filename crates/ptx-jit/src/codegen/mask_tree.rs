//! How the bits of masks and predicates are computed: from known bits, comparisons, and operations on other
//! masks and predicates. [`warp_strips`](super::warp_strips) computes them again for permuted lanes.
//!
//! Invariant: the tree is that of the WIR operations. Where WIR does not show it, it is [`Made::Other`].

use super::mask::LaneBits;
use super::strip_vectors::VectorId;
use super::{Codegen, Repr};
use crate::analysis::expr::{Arith, Expr, Operand, operands};
use crate::isel::Comparison;
use crate::wir;
use crate::wir::{Kind, Op, OpKind};
use ptx::ir::{Inst, RegClass};
use ptx::isa::{BoolOp, Op as O, Slot, Ty};

/// A mask or a predicate, or its complement.
#[derive(Clone, Copy)]
pub(super) struct Term {
    pub(super) name: wir::Value,
    pub(super) negated: bool,
}

/// How the bits of a chunk of a mask or a predicate are computed.
pub(super) enum Made<'a> {
    /// They are known.
    Known(u64),
    /// They are those of another one.
    Is(Term),
    /// From two others.
    Joined(BoolOp, [Term; 2]),
    /// By a comparison of two sources, whose result is combined with another predicate, if there is one.
    Compared(Comparison, [Operand<'a>; 2], Option<(BoolOp, Term)>),
    /// In another way.
    Other,
}

/// A mask that compares two integers, with the result flipped in the lanes of `flipped`, and only in the
/// lanes of `on`.
pub(super) struct Decided {
    pub(super) on: u64,
    pub(super) flipped: u64,
    /// Whether the comparison is true if the first is less (`true`) or if it is greater (`false`). For equal
    /// integers either result is possible.
    pub(super) less: bool,
    pub(super) signed: bool,
    pub(super) a: VectorId,
    pub(super) b: VectorId,
}

fn plain(name: wir::Value) -> Term {
    Term { name, negated: false }
}

fn term(source: &Operand<'_>) -> Option<Term> {
    match source {
        Operand::Value(name) => Some(plain(*name)),
        Operand::Not(name) => Some(Term { name: *name, negated: true }),
        Operand::Absent
        | Operand::Imm(_)
        | Operand::Sreg(..)
        | Operand::Based(..)
        | Operand::Symbol(_)
        | Operand::Indexed(_)
        | Operand::Video(_) => None,
    }
}

impl<'a> Codegen<'a> {
    /// How the bits of a chunk of a mask or a predicate are computed.
    pub(super) fn made_of(&self, name: wir::Value, c: u32) -> Made<'a> {
        if let Some(bits) = self.known_bits(name, c) {
            return Made::Known(bits);
        }
        if let Some(from) = self.fused_from(name) {
            return Made::Is(plain(from));
        }
        let func = self.job.func;
        let Some(op) = self.facts.analyses.def_use.op_of(func, name) else { return Made::Other };
        let read = match &op.kind {
            OpKind::Inst(_) => op.uses.get(1..).unwrap_or_default(),
            _ => op.uses.as_slice(),
        };
        if !read.iter().all(|name| self.is_held(*name)) {
            return Made::Other;
        }
        match &op.kind {
            OpKind::And => Made::Joined(BoolOp::And, [plain(op.uses[0]), plain(op.uses[1])]),
            OpKind::AndNot => {
                let other = Term { name: op.uses[1], negated: true };
                Made::Joined(BoolOp::And, [plain(op.uses[0]), other])
            }
            OpKind::Or => Made::Joined(BoolOp::Or, [plain(op.uses[0]), plain(op.uses[1])]),
            OpKind::Truths { negated } => Made::Is(Term { name: op.uses[0], negated: *negated }),
            OpKind::Inst(site) => match site.inst(self.job.function) {
                Some(inst) => self.predicate_made(inst, op).unwrap_or(Made::Other),
                None => Made::Other,
            },
            _ => Made::Other,
        }
    }

    /// Whether a value can still be read: code that was emitted may have overwritten a slot, and a value that
    /// a loop over chunks defines is read in the loop only.
    fn is_held(&self, name: wir::Value) -> bool {
        match self.values.get(name) {
            Some(
                Repr::Scalar(_)
                | Repr::Mask(_)
                | Repr::Bases(_)
                | Repr::Chunks(_)
                | Repr::Number(_)
                | Repr::Narrow(_),
            ) => true,
            Some(Repr::Kept(_)) | None => self.values.later.contains_key(&name),
        }
    }

    /// The bits of a chunk of a mask or a predicate that has been emitted, if they are known.
    fn known_bits(&self, name: wir::Value, c: u32) -> Option<u64> {
        if let Some(LaneBits::Known(bits)) = self.emitted_part(name, c) {
            return Some(bits);
        }
        let known = self.is_constant_chunk(name, c);
        self.facts.analyses.constants.bits(name, c).filter(|_| known)
    }

    /// How an instruction computes a predicate.
    pub(super) fn predicate_made(&self, inst: &'a Inst, op: &Op) -> Option<Made<'a>> {
        let single = op.defs.len() == 1 && self.kind(op.defs[0]) == Kind::Reg(RegClass::Pred);
        if !single || inst.guard.is_some() {
            return None;
        }
        let sources = operands(inst, op);
        if inst.op == O::Setp {
            let (comparison, join) = Comparison::of(inst, &self.env)?;
            // Only a source that is read as a number may hold any NaN.
            let canonical = |source: &Operand<'_>| match source {
                Operand::Value(name) => comparison.reads_numbers() || !self.may_be_noncanonical(*name),
                _ => true,
            };
            let [a, b, rest @ ..] = sources.as_slice() else { return None };
            if !canonical(a) || !canonical(b) {
                return None;
            }
            let join = match join {
                Some(how) => Some((how, term(rest.first()?)?)),
                None => None,
            };
            return Some(Made::Compared(comparison, [*a, *b], join));
        }
        if inst.mods.ty_in(Slot::Type) != Some(Ty::Pred) {
            return None;
        }
        if let (O::Not, [a]) = (inst.op, sources.as_slice()) {
            let Term { name, negated } = term(a)?;
            return Some(Made::Is(Term { name, negated: !negated }));
        }
        match (Expr::of(inst)?.arith, sources.as_slice()) {
            (Arith::Copy, [a]) => Some(Made::Is(term(a)?)),
            (Arith::And, [a, b]) => Some(Made::Joined(BoolOp::And, [term(a)?, term(b)?])),
            (Arith::Or, [a, b]) => Some(Made::Joined(BoolOp::Or, [term(a)?, term(b)?])),
            (Arith::Xor, [a, b]) => Some(Made::Joined(BoolOp::Xor, [term(a)?, term(b)?])),
            _ => None,
        }
    }

    /// The bits of a chunk of a term, if they are known.
    pub(super) fn known_term(&self, term: Term, c: u32) -> Option<u64> {
        let bits = self.known_bits(term.name, c)?;
        Some(if term.negated { !bits & self.all_bits() } else { bits })
    }

    /// The comparison of two integers that a mask is, apart from known bits.
    pub(super) fn decided(&mut self, mask: wir::Value, c: u32) -> Option<Decided> {
        let every = self.all_bits();
        let (mut on, mut flipped) = (every, 0);
        // After a lane has been flipped, it cannot be left out.
        let mut flips = false;
        let mut at = plain(mask);
        loop {
            if at.negated {
                (flips, flipped) = (true, flipped ^ every);
            }
            let (how, [a, b]) = match self.made_of(at.name, c) {
                Made::Is(other) => {
                    at = other;
                    continue;
                }
                Made::Joined(how, terms) => (how, terms),
                Made::Compared(comparison, sources, None) => {
                    let (less, signed) = comparison.order()?;
                    let [a, b] = sources.map(|source| self.compared_vector(&comparison, source, c));
                    return Some(Decided { on, flipped, less, signed, a: a?, b: b? });
                }
                Made::Known(_) | Made::Compared(..) | Made::Other => return None,
            };
            let (bits, rest) = match (self.known_term(a, c), self.known_term(b, c)) {
                (Some(bits), _) => (bits, b),
                (None, Some(bits)) => (bits, a),
                (None, None) => return None,
            };
            match how {
                BoolOp::And if bits == every => {}
                BoolOp::And if !flips => on &= bits,
                BoolOp::Xor => (flips, flipped) = (true, flipped ^ bits),
                BoolOp::Or if bits == 0 => {}
                BoolOp::And | BoolOp::Or => return None,
            }
            at = rest;
        }
    }

    /// A chunk of a source of a comparison, as a vector of registers.
    pub(super) fn compared_vector(
        &mut self,
        comparison: &Comparison,
        source: Operand<'_>,
        c: u32,
    ) -> Option<VectorId> {
        match source {
            Operand::Value(name) => Some(self.strip_chunk(name, c, !comparison.reads_numbers())),
            Operand::Imm(bits) => Some(self.strip_splat(bits, comparison.bits())),
            Operand::Absent
            | Operand::Not(_)
            | Operand::Sreg(..)
            | Operand::Based(..)
            | Operand::Symbol(_)
            | Operand::Indexed(_)
            | Operand::Video(_) => None,
        }
    }
}
