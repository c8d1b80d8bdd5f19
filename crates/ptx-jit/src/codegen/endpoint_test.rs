//! Endpoint tests: decides from the first and last lane whether a comparison holds in all lanes.
//!
//! `i < n` with `i` increasing with the lane holds in every lane if it holds in the last one; `i != n` holds
//! if `n` is not between the first lane's `i` and the last lane's. So a branch on whether all lanes satisfy a
//! condition first compares scalars, also for conjunctions of such comparisons. Only where that fails are all
//! lanes compared, which may still find that the condition holds in each.
//!
//! Invariant: what the scalars decide holds in every lane; vectors of the comparison are read only where the
//! scalar test failed.

use super::Codegen;
use crate::analysis::expr::{Arith, Expr, Operand, operands};
use crate::llvm::{IntPred, Likely, Value};
use crate::tuning::{ENDPOINT_TEST_MAX_BLOCKS, ENDPOINT_TEST_MAX_COMPARISONS};
use crate::wir;
use crate::wir::uses::Readers;
use crate::wir::{BlockId, Cond, Func, Op, OpKind, Shape, Term};
use ptx::ir::{Function, Inst};
use ptx::isa::{Cmp, Ty};
use std::collections::HashSet;

/// The readers of each value, if the function has few blocks.
pub(super) fn readers(func: &Func) -> Readers {
    if func.nodes.len() > ENDPOINT_TEST_MAX_BLOCKS { Readers::default() } else { Readers::new(func) }
}

/// A test of all lanes where a node ends.
pub(super) struct Test {
    /// Where the comparisons stand, what joins them, and what makes a mask of it, in their order.
    ops: Vec<usize>,
    /// What the mask is made of.
    pred: wir::Value,
    /// What passes is what that is not true of.
    negated: bool,
    /// Where that leads no lane passes, from the node that asks for it.
    none: Option<(BlockId, BlockId)>,
}

impl Test {
    pub(super) fn has(&self, at: usize) -> bool {
        self.ops.contains(&at)
    }
}

/// How a predicate is made.
enum Made<'a> {
    /// By a comparison of numbers.
    Compared(&'a Inst),
    /// Where both of two are true, or else one of them.
    Joined(bool, [wir::Value; 2]),
}

/// A side of a comparison.
enum Side {
    /// The same in all lanes.
    Same(Value),
    /// The first lane's, and by how much the last is more; none is less than the first.
    Lanes(Value, u64),
}

/// How an operation makes a predicate, as far as scalars may find out about it.
fn made<'f>(function: &'f Function, op: &Op) -> Option<Made<'f>> {
    let OpKind::Inst(site) = op.kind else { return None };
    let inst = site.inst(function)?;
    if op.defs.len() != 1 || inst.guard.is_some() {
        return None;
    }
    let Expr { arith, ty } = Expr::of(inst)?;
    match (arith, ty, operands(inst, op).as_slice()) {
        (Arith::Compare(_), Ty::S32 | Ty::U32 | Ty::B32, _) => Some(Made::Compared(inst)),
        (Arith::And | Arith::Or, Ty::Pred, [Operand::Value(a), Operand::Value(b)]) => {
            Some(Made::Joined(arith == Arith::And, [*a, *b]))
        }
        _ => None,
    }
}

impl Codegen<'_> {
    /// The test that a node ends with, if nobody else reads what it is made of.
    pub(super) fn test_of(&self, id: BlockId) -> Option<Test> {
        let func = self.job.func;
        let node = &func.nodes[id.0 as usize];
        let Term::If { cond: Cond::Equal(lower, mask), then, els, .. } = node.term else { return None };
        if func.nodes.len() > ENDPOINT_TEST_MAX_BLOCKS
            || !node.full
            || then == els
            || self.barrier_slots.is_entered(id, then)
        {
            return None;
        }
        let maker = |name: wir::Value| node.op_of(name);
        let and = maker(lower)?;
        let truth = match (&node.ops[and].kind, &node.ops[and].uses[..]) {
            (OpKind::And, [all, truths]) if *all == mask => maker(*truths)?,
            _ => return None,
        };
        let OpKind::Mask(u32::MAX) = node.ops[maker(mask)?].kind else { return None };
        let OpKind::Truths { negated } = node.ops[truth].kind else { return None };
        let pred = node.ops[truth].uses[0];
        let mut ops = Vec::new();
        if *self.shape(pred) != Shape::Varying {
            return None;
        }
        self.gather(node, pred, &mut ops)?;
        ops.extend([truth, and]);
        ops.sort_unstable();
        let mut read = HashSet::new();
        for (_, op) in node.ops.iter().enumerate().filter(|(at, _)| !ops.contains(at)) {
            op.for_each_use(&mut |name| _ = read.insert(name));
        }
        let mine: Vec<wir::Value> = ops.iter().flat_map(|at| &node.ops[*at].defs).copied().collect();
        // Nobody reads what each lane does but where it is asked for.
        let own = |asks: BlockId, on: BlockId, around: &[(BlockId, BlockId)]| {
            let elsewhere = |to: &BlockId| ![id, asks].contains(to) && !self.is_behind((asks, on), *to);
            // A phi behind a way around reads at the end of the node that the way begins in.
            let handed = |name: &wir::Value| {
                around.iter().any(|(from, to)| {
                    let to = &func.nodes[to.0 as usize];
                    let at = to.pred_index(*from);
                    at.is_none_or(|at| to.phis.iter().any(|phi| phi.from[at] == *name))
                })
            };
            mine.iter().all(|name| {
                !read.contains(name) && !handed(name) && !self.readers.of(*name).iter().any(elsewhere)
            })
        };
        let asks = &func.nodes[els.0 as usize];
        let none = match asks.term {
            Term::If { cond: Cond::Empty(empty), then: none, els: some, .. }
                if empty == lower
                    && asks.full
                    && asks.ops.is_empty()
                    && asks.phis.is_empty()
                    && asks.preds == [id]
                    && none != some
                    && !self.barrier_slots.is_entered(els, none)
                    && own(els, some, &[(id, then), (els, none)]) =>
            {
                Some((els, none))
            }
            _ => None,
        };
        (none.is_some() || own(id, els, &[(id, then)])).then_some(Test { ops, pred, negated, none })
    }

    /// Notes what becomes of the test of all lanes that a block ends with, if it ends with one.
    pub(super) fn remark_endpoint_test(&self, id: BlockId, found: bool) {
        let node = &self.job.func.nodes[id.0 as usize];
        let asks = matches!(node.term, Term::If { cond: Cond::Equal(..), then, els, .. } if then != els);
        if !node.full || !asks || self.versioned_block.is_some() {
            return;
        }
        self.remark_block(id, true);
        match found {
            true => self.applied("endpoint-test", "the first or the last lane decides for all, where it can"),
            false => self
                .missed("endpoint-test", "no comparison of evenly spaced lanes that only this branch reads"),
        }
    }

    /// Finds the comparisons that a predicate is made of in a node, each used once, and what joins them. `None`: it is made of something else.
    fn gather(&self, node: &wir::Block, pred: wir::Value, ops: &mut Vec<usize>) -> Option<()> {
        if self.shape(pred).is_uniform() {
            return Some(());
        }
        let at = node.op_of(pred)?;
        if ops.contains(&at) || ops.len() == ENDPOINT_TEST_MAX_COMPARISONS {
            return None;
        }
        ops.push(at);
        match made(self.job.function, &node.ops[at])? {
            Made::Compared(_) => Some(()),
            Made::Joined(_, parts) => parts.into_iter().try_for_each(|part| self.gather(node, part, ops)),
        }
    }

    /// Whether a block is reached only through the edge between two others.
    fn is_behind(&self, (from, to): (BlockId, BlockId), block: BlockId) -> bool {
        self.job.func.nodes[to.0 as usize].preds == [from] && self.dominators.dominates(to, block)
    }

    /// Goes on to `then` where scalars say that all lanes pass; what follows is for the others. Makes what the test is made of.
    pub(super) fn test(&mut self, id: BlockId, then: BlockId, test: Test) {
        let node = &self.job.func.nodes[id.0 as usize];
        // Where that is known, so is what each lane does.
        let ways =
            [Some((!test.negated, id, then)), test.none.map(|(asks, none)| (test.negated, asks, none))];
        for (wanted, from, to) in ways.into_iter().flatten() {
            let are = self.all_are(node, test.pred, wanted);
            if let Some(are) = are.filter(|are| !are.is_constant()) {
                self.store_state(from, to);
                let lanes = self.b.append_block(self.function, "lanes");
                self.b.cond_br(are, self.at(to), lanes, Likely::Unknown);
                self.b.position_at_end(lanes);
            }
        }
        for at in test.ops {
            self.op(&node.ops[at]);
        }
    }

    /// Whether a predicate is that in all lanes, as far as scalars say; `None`: they say nothing.
    fn all_are(&mut self, node: &wir::Block, pred: wir::Value, wanted: bool) -> Option<Value> {
        if self.shape(pred).is_uniform() {
            let value = self.scalar(pred);
            return Some(if wanted { value } else { self.b.not(value) });
        }
        let op = &node.ops[node.op_of(pred)?];
        match made(self.job.function, op)? {
            Made::Compared(inst) => self.passes(inst, op, !wanted),
            Made::Joined(both, parts) => {
                let [a, b] = parts.map(|part| self.all_are(node, part, wanted));
                if both == wanted {
                    return Some(self.b.and(a?, b?));
                }
                // One of them is enough.
                match (a, b) {
                    (Some(a), Some(b)) => Some(self.b.or(a, b)),
                    (one, None) | (None, one) => one,
                }
            }
        }
    }

    /// Whether a comparison holds in all lanes, or in none if negated, as far as scalars say; `None`: they say nothing.
    fn passes(&mut self, inst: &Inst, op: &Op, negated: bool) -> Option<Value> {
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
        let sources = operands(inst, op);
        let sides = [self.side(*sources.first()?)?, self.side(*sources.get(1)?)?];
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
        // It is none of so many numbers from the first on, also where those wrap around.
        if cmp == Cmp::Ne {
            let apart = self.b.sub(other, first);
            return Some(self.b.icmp(IntPred::Ugt, apart, self.c32(u32::try_from(most).ok()?)));
        }
        let long = self.int(64);
        let wide = |value: Value| if signed { self.b.sext(value, long) } else { self.b.zext(value, long) };
        let (first, other) = (wide(first), wide(other));
        // As wide numbers, lanes that wrap around are more than any number of 32 bits.
        let last = self.b.add(first, self.c64(most));
        Some(match cmp {
            Cmp::Lt | Cmp::Lo => self.b.icmp(IntPred::Slt, last, other),
            Cmp::Le | Cmp::Ls => self.b.icmp(IntPred::Sle, last, other),
            Cmp::Gt | Cmp::Hi | Cmp::Ge | Cmp::Hs => {
                let pred = if matches!(cmp, Cmp::Gt | Cmp::Hi) { IntPred::Sgt } else { IntPred::Sge };
                let end = if signed { i32::MAX as u64 } else { u64::from(u32::MAX) };
                let there = self.b.icmp(IntPred::Sle, last, self.c64(end));
                self.b.and(self.b.icmp(pred, first, other), there)
            }
            _ => return None,
        })
    }

    fn side(&mut self, source: Operand<'_>) -> Option<Side> {
        let name = match source {
            Operand::Imm(bits) => return Some(Side::Same(self.c32(bits as u32))),
            source => source.value()?,
        };
        match self.shape(name).clone() {
            Shape::Uniform(_) => Some(Side::Same(self.scalar(name))),
            Shape::Affine(pattern) if !pattern.by_chunk && pattern.rows.is_empty() => {
                let (low, high) = (pattern.lanes.iter().min()?, pattern.lanes.iter().max()?);
                let first = self.base(name, 0)?;
                (*low == 0).then(|| Side::Lanes(first, u64::from(high.unsigned_abs())))
            }
            Shape::Affine(_) | Shape::Varying | Shape::Bottom => None,
        }
    }
}
