//! Emits endpoint tests, which [`opt::endpoint_tests`](crate::opt::endpoint_tests) found: a branch compares
//! the first and the last lane before it compares all lanes.
//!
//! Invariant: a decision by scalars holds in every lane; vectors of the comparison are read only where the
//! scalar test has failed.

use super::Codegen;
use crate::analysis::expr::{Operand, operands_of};
use crate::llvm::{IntPred, Likely, Value};
use crate::opt::endpoint_tests::{Made, made};
use crate::wir;
use crate::wir::endpoint_test::EndpointTest;
use crate::wir::{BlockId, Cond, Shape, Term};
use ptx::ir::Inst;
use ptx::isa::{Cmp, Ty};
use std::rc::Rc;

/// One side of a comparison.
pub(super) enum Side {
    /// A value that is the same in all lanes.
    Same(Number),
    /// The value of the first lane, and the difference between the last lane and the first. No lane is below
    /// the first.
    Lanes(Number, u64),
}

/// A scalar of 32 bits, and its bits if these are known.
#[derive(Clone, Copy)]
pub(super) struct Number {
    pub(super) value: Value,
    known: Option<u32>,
}

/// A condition.
#[derive(Clone, Copy)]
pub(super) enum Condition {
    /// Its value is known.
    Known(bool),
    /// It is computed.
    Computed(Value),
}

impl Codegen<'_> {
    /// The test that a block ends with.
    pub(super) fn test_of(&self, id: BlockId) -> Option<Rc<EndpointTest>> {
        self.job.func.blocks[id.0 as usize].endpoint_test.clone()
    }

    /// Records a remark about the endpoint test of a block, if the block ends with a test of all lanes.
    pub(super) fn remark_endpoint_test(&self, id: BlockId, found: bool) {
        let node = &self.job.func.blocks[id.0 as usize];
        let asks = matches!(node.term, Term::If { cond: Cond::Equal(..), then, els, .. } if then != els);
        if !node.full || !asks || self.position.versioned_block.is_some() {
            return;
        }
        self.remark_block(id, true);
        match found {
            true => self.applied("endpoint-test", "the first or the last lane decides for all, where it can"),
            false => self
                .missed("endpoint-test", "no comparison of evenly spaced lanes that only this branch reads"),
        }
    }

    /// Branches to `then` where the scalar test shows that all lanes pass. The following code is for all
    /// other cases. Then emits the comparisons of all lanes.
    pub(super) fn test(&mut self, id: BlockId, then: BlockId, test: &EndpointTest) {
        let node = &self.job.func.blocks[id.0 as usize];
        // Where the scalar test decides, the result of each lane is known.
        let ways =
            [Some((!test.negated, id, then)), test.none.map(|(asks, none)| (test.negated, asks, none))];
        for (wanted, from, to) in ways.into_iter().flatten() {
            if let Some(Condition::Computed(are)) = self.all_are(node, test.pred, wanted) {
                self.store_state(from, to);
                let lanes = self.b.append_block(self.function, "lanes");
                self.b.cond_br(are, self.at(to), lanes, Likely::Unknown);
                self.b.position_at_end(lanes);
            }
        }
        for at in &test.ops {
            self.op(node, *at);
        }
    }

    /// Branches to a successor where the scalar test shows that all lanes go there, and declines the CTA
    /// otherwise ([`warp_loop`](super::warp_loop)). `None`: the scalars show nothing.
    pub(super) fn test_or_decline(&mut self, id: BlockId, then: BlockId, test: &EndpointTest) -> Option<()> {
        let node = &self.job.func.blocks[id.0 as usize];
        let ways =
            [Some((!test.negated, id, then)), test.none.map(|(asks, none)| (test.negated, asks, none))];
        let mut some = None;
        for (wanted, from, to) in ways.into_iter().flatten() {
            if !self.job.func.blocks[to.0 as usize].full {
                continue;
            }
            let Some(are) = self.all_are(node, test.pred, wanted) else { continue };
            some = Some(());
            let are = match are {
                Condition::Known(false) => continue,
                Condition::Known(true) => {
                    self.store_state(from, to);
                    self.b.br(self.at(to));
                    return some;
                }
                Condition::Computed(are) => are,
            };
            self.store_state(from, to);
            let others = self.b.append_block(self.function, "others");
            self.b.cond_br(are, self.at(to), others, Likely::Yes);
            self.b.position_at_end(others);
        }
        self.declined();
        some
    }

    /// The condition that the predicate equals `wanted` in all lanes, as far as scalars show; `None`: they
    /// show nothing.
    fn all_are(&mut self, node: &wir::Block, pred: wir::Value, wanted: bool) -> Option<Condition> {
        if self.shape(pred).is_uniform() {
            if let Some(holds) = self.constant_lane(pred, 0) {
                return Some(Condition::Known((holds != 0) == wanted));
            }
            let value = self.scalar(pred);
            return Some(Condition::Computed(if wanted { value } else { self.b.not(value) }));
        }
        let op = &node.ops[node.op_of(pred)?];
        match made(self.job.function, op)? {
            Made::Compared(inst) => self.passes(inst, &op.uses[1..], !wanted),
            Made::Joined(both, parts) => {
                let [a, b] = parts.map(|part| self.all_are(node, part, wanted));
                if both == wanted {
                    return Some(match (a?, b?) {
                        (Condition::Known(false), _) | (_, Condition::Known(false)) => {
                            Condition::Known(false)
                        }
                        (Condition::Known(true), other) | (other, Condition::Known(true)) => other,
                        (Condition::Computed(a), Condition::Computed(b)) => {
                            Condition::Computed(self.b.and(a, b))
                        }
                    });
                }
                // One of the two is sufficient.
                match (a, b) {
                    (Some(a), Some(b)) => Some(match (a, b) {
                        (Condition::Known(true), _) | (_, Condition::Known(true)) => Condition::Known(true),
                        (Condition::Known(false), other) | (other, Condition::Known(false)) => other,
                        (Condition::Computed(a), Condition::Computed(b)) => {
                            Condition::Computed(self.b.or(a, b))
                        }
                    }),
                    (one, None) | (None, one) => one,
                }
            }
        }
    }

    /// The condition that a comparison holds in all lanes (or in none, if negated), as far as scalars show;
    /// `None`: they show nothing. `values`: those of the registers that it reads.
    pub(super) fn passes(&mut self, inst: &Inst, values: &[wir::Value], negated: bool) -> Option<Condition> {
        let signed = inst.mods.ty() == Ty::S32;
        let mut cmp = inst.mods.cmp()?;
        if negated {
            cmp = match cmp {
                Cmp::Lt | Cmp::Lo => Cmp::Ge,
                Cmp::Le | Cmp::Ls => Cmp::Gt,
                Cmp::Gt | Cmp::Hi => Cmp::Le,
                Cmp::Ge | Cmp::Hs => Cmp::Lt,
                Cmp::Eq => Cmp::Ne,
                Cmp::Ne => Cmp::Eq,
                _ => return None,
            };
        }
        let sources = operands_of(inst, values);
        let sides = [self.side(*sources.first()?)?, self.side(*sources.get(1)?)?];
        self.compare(cmp, signed, sides)
    }

    /// The condition that a comparison of two sides holds in all lanes, as far as scalars show; `None`: they
    /// show nothing.
    pub(super) fn compare(&mut self, mut cmp: Cmp, signed: bool, sides: [Side; 2]) -> Option<Condition> {
        let (first, most, other) = match sides {
            [Side::Lanes(first, most), Side::Same(other)] => (first, most, other),
            [Side::Same(other), Side::Lanes(first, most)] => {
                cmp = match cmp {
                    Cmp::Lt | Cmp::Lo => Cmp::Gt,
                    Cmp::Le | Cmp::Ls => Cmp::Ge,
                    Cmp::Gt | Cmp::Hi => Cmp::Lt,
                    Cmp::Ge | Cmp::Hs => Cmp::Le,
                    Cmp::Eq | Cmp::Ne => cmp,
                    _ => return None,
                };
                (first, most, other)
            }
            _ => return None,
        };
        if let (Some(first), Some(other)) = (first.known, other.known) {
            return Some(Condition::Known(holds_in_all(cmp, (first, most), other, signed)?));
        }
        let (first, other) = (first.value, other.value);
        // The other side is not among the numbers from the first lane's to the last lane's, also where these
        // wrap around.
        if cmp == Cmp::Ne {
            let apart = self.b.sub(other, first);
            let apart = self.b.icmp(IntPred::Ugt, apart, self.c32(u32::try_from(most).ok()?));
            return Some(Condition::Computed(apart));
        }
        let long = self.int(64);
        let wide = |value: Value| if signed { self.b.sext(value, long) } else { self.b.zext(value, long) };
        let (first, other) = (wide(first), wide(other));
        // As 64-bit numbers, lanes that wrap around exceed every 32-bit number.
        let last = self.b.add(first, self.c64(most));
        Some(Condition::Computed(match cmp {
            Cmp::Lt | Cmp::Lo => self.b.icmp(IntPred::Slt, last, other),
            Cmp::Le | Cmp::Ls => self.b.icmp(IntPred::Sle, last, other),
            Cmp::Gt | Cmp::Hi | Cmp::Ge | Cmp::Hs => {
                let pred = if matches!(cmp, Cmp::Gt | Cmp::Hi) { IntPred::Sgt } else { IntPred::Sge };
                let end = if signed { i32::MAX as u64 } else { u64::from(u32::MAX) };
                let there = self.b.icmp(IntPred::Sle, last, self.c64(end));
                self.b.and(self.b.icmp(pred, first, other), there)
            }
            _ => return None,
        }))
    }

    pub(super) fn side(&mut self, source: Operand<'_>) -> Option<Side> {
        let name = match source {
            Operand::Imm(bits) => {
                let bits = bits as u32;
                return Some(Side::Same(Number { value: self.c32(bits), known: Some(bits) }));
            }
            source => source.value()?,
        };
        let known = self.constant_lane(name, 0).map(|bits| bits as u32);
        match self.shape(name).clone() {
            Shape::Uniform(_) => Some(Side::Same(Number { value: self.scalar(name), known })),
            Shape::Affine(pattern) => {
                let span = pattern.span()?;
                Some(Side::Lanes(Number { value: self.base(name, 0)?, known }, span))
            }
            Shape::Varying | Shape::Bottom => None,
        }
    }
}

/// Whether a comparison holds in all lanes, whose numbers are from the first lane's to `most` more than that,
/// as far as the test of scalars shows. `None`: the test does not handle the relation.
fn holds_in_all(cmp: Cmp, (first, most): (u32, u64), other: u32, signed: bool) -> Option<bool> {
    if cmp == Cmp::Ne {
        return Some(u64::from(other.wrapping_sub(first)) > most);
    }
    let wide = |bits: u32| if signed { i64::from(bits as i32) } else { i64::from(bits) };
    let (first, other) = (wide(first), wide(other));
    // As 64-bit numbers, lanes that wrap around exceed every 32-bit number.
    let last = first.checked_add_unsigned(most)?;
    let end = if signed { i64::from(i32::MAX) } else { i64::from(u32::MAX) };
    match cmp {
        Cmp::Lt | Cmp::Lo => Some(last < other),
        Cmp::Le | Cmp::Ls => Some(last <= other),
        Cmp::Gt | Cmp::Hi => Some(first > other && last <= end),
        Cmp::Ge | Cmp::Hs => Some(first >= other && last <= end),
        _ => None,
    }
}
