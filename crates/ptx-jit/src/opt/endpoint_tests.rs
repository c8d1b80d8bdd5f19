//! Endpoint tests: decides from the first and last lane whether a comparison holds in all lanes.
//!
//! `i < n` with `i` increasing with the lane holds in every lane if it holds in the last one; `i != n` holds
//! if `n` is not between the first lane's `i` and the last lane's. So a branch on whether all lanes satisfy a
//! condition first compares scalars, also for conjunctions of such comparisons. If that fails, all lanes are
//! compared; the condition may still hold in each of them.
//!
//! Invariant: what a test leaves out is read only where the test has failed. A test takes no edge on which
//! values are stored in barrier slots.

use crate::analysis::Analyses;
use crate::analysis::expr::{Arith, Expr, Operand, operands};
use crate::tuning::{ENDPOINT_TEST_MAX_COMPARISONS, READERS_MAX_BLOCKS};
use crate::wir::endpoint_test::EndpointTest;
use crate::wir::{Block, BlockId, Cond, Func, Op, OpKind, Shape, Term, Value};
use ptx::ir::{Function, Inst};
use ptx::isa::Ty;
use std::collections::HashSet;

/// What tests are found by.
struct Tests<'a> {
    func: &'a Func,
    function: &'a Function,
    analyses: &'a Analyses,
}

/// How a predicate is computed.
pub(crate) enum Made<'a> {
    /// By a comparison of integers.
    Compared(&'a Inst),
    /// As the conjunction (`true`) or disjunction of two predicates.
    Joined(bool, [Value; 2]),
}

/// How an operation computes a predicate, if endpoint tests handle it.
pub(crate) fn made<'f>(function: &'f Function, op: &Op) -> Option<Made<'f>> {
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

/// The test of each block that ends with one.
pub(crate) fn find(func: &Func, function: &Function, analyses: &Analyses) -> Vec<(BlockId, EndpointTest)> {
    if func.blocks.len() > READERS_MAX_BLOCKS {
        return Vec::new();
    }
    let tests = Tests { func, function, analyses };
    let ids = (0..func.blocks.len() as u32).map(BlockId);
    ids.filter_map(|id| Some((id, tests.test_of(id)?))).collect()
}

impl Tests<'_> {
    fn shape(&self, name: Value) -> &Shape {
        &self.func.shapes[name.0 as usize]
    }

    /// The test that a block ends with, if nothing else reads the comparisons.
    fn test_of(&self, id: BlockId) -> Option<EndpointTest> {
        let func = self.func;
        let node = &func.blocks[id.0 as usize];
        let Term::If { cond: Cond::Equal(lower, mask), then, els, .. } = node.term else { return None };
        if !node.full || then == els || func.stores_on(id, then) {
            return None;
        }
        let maker = |name: Value| node.op_of(name);
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
        let mine: Vec<Value> = ops.iter().flat_map(|at| &node.ops[*at].defs).copied().collect();
        // A lane's own result may be read only where the mask is tested for lanes.
        let own = |asks: BlockId, on: BlockId, around: &[(BlockId, BlockId)]| {
            let elsewhere = |to: &BlockId| ![id, asks].contains(to) && !self.is_behind((asks, on), *to);
            // A phi on a shortcut edge reads its operand at the end of the block that the edge leaves.
            let handed = |name: &Value| {
                around.iter().any(|(from, to)| {
                    let to = &func.blocks[to.0 as usize];
                    let at = to.pred_index(*from);
                    at.is_none_or(|at| to.phis.iter().any(|phi| phi.from[at] == *name))
                })
            };
            mine.iter().all(|name| {
                !read.contains(name)
                    && !handed(name)
                    && !self.analyses.readers.of(*name).iter().any(elsewhere)
            })
        };
        let asks = &func.blocks[els.0 as usize];
        let none = match asks.term {
            Term::If { cond: Cond::Empty(empty), then: none, els: some, .. }
                if empty == lower
                    && asks.full
                    && asks.ops.is_empty()
                    && asks.phis.is_empty()
                    && asks.preds == [id]
                    && none != some
                    && !func.stores_on(els, none)
                    && own(els, some, &[(id, then), (els, none)]) =>
            {
                Some((els, none))
            }
            _ => None,
        };
        let alone = || own(id, els, &[(id, then)]);
        (none.is_some() || alone()).then_some(EndpointTest { ops, pred, negated, none })
    }

    /// Collects the comparisons within the block that a predicate is computed from, each used once, and the
    /// operations that join them. `None`: other operations contribute.
    fn gather(&self, node: &Block, pred: Value, ops: &mut Vec<usize>) -> Option<()> {
        if self.shape(pred).is_uniform() {
            return Some(());
        }
        let at = node.op_of(pred)?;
        if ops.contains(&at) || ops.len() == ENDPOINT_TEST_MAX_COMPARISONS {
            return None;
        }
        ops.push(at);
        match made(self.function, &node.ops[at])? {
            Made::Compared(_) => Some(()),
            Made::Joined(_, parts) => parts.into_iter().try_for_each(|part| self.gather(node, part, ops)),
        }
    }

    /// Whether a block is reached only through one edge.
    fn is_behind(&self, (from, to): (BlockId, BlockId), block: BlockId) -> bool {
        self.func.blocks[to.0 as usize].preds == [from] && self.analyses.dominators.dominates(to, block)
    }
}
