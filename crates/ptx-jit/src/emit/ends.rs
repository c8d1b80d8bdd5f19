//! Whether all lanes pass a test, found out from the lanes at the ends.
//!
//! `i < n` with a number that grows with the lane holds in every lane if it does in the last one. So before a branch that asks for all
//! lanes, two scalars are compared; only where that fails is each lane, which may still find that all pass.
//!
//! Invariant: what the scalars find holds in every lane, and what is made of each lane is read only behind the comparison that failed.

use super::Emit;
use crate::llvm::{IntPred, Likely, Value};
use crate::plan::{Class, Cond, Name, NodeId, Op, OpKind, Plan, Term};
use ptx::ir::{Inst, Src};
use ptx::isa::{Cmp, Op as O, Ty};
use std::collections::{HashMap, HashSet};

/// Of larger plans nothing is asked: each test looks at all nodes. Chosen: ordinary kernels have a tenth.
const NODES: usize = 2_000;

/// By name: the nodes that read it, where a phi reads where it is entered from.
pub(super) type Readers = HashMap<Name, HashSet<NodeId>>;

/// Who reads what.
pub(super) fn readers(plan: &Plan) -> Readers {
    let mut readers = Readers::new();
    if plan.nodes.len() > NODES {
        return readers;
    }
    for (id, node) in (0..).map(NodeId).zip(&plan.nodes) {
        for phi in &node.phis {
            for (name, from) in phi.from.iter().zip(&node.preds) {
                readers.entry(*name).or_default().insert(*from);
            }
        }
        let mut read = |name: &mut Name| {
            readers.entry(*name).or_default().insert(id);
        };
        node.ops.iter().for_each(|op| op.clone().for_each_use(&mut read));
        node.term.clone().for_each_use(&mut read);
    }
    readers
}

/// A test of all lanes where a node ends.
#[derive(Clone, Copy)]
pub(super) struct Test {
    /// Where the comparison stands, and what makes a mask of it.
    ops: [usize; 3],
    /// What passes is what the comparison is not true of.
    negated: bool,
}

impl Test {
    pub(super) fn has(&self, at: usize) -> bool {
        self.ops.contains(&at)
    }
}

/// A side of a comparison.
enum Side {
    /// The same in all lanes.
    Same(Value),
    /// The first lane's, and by how much the last is more; none is less than the first.
    Lanes(Value, u64),
}

impl Emit<'_> {
    /// The test that a node ends with, if nobody else reads what it is made of.
    pub(super) fn test_of(&self, id: NodeId) -> Option<Test> {
        let plan = self.job.plan;
        let node = &plan.nodes[id.0 as usize];
        let Term::If { cond: Cond::Equal(lower, mask), then, els, .. } = node.term else { return None };
        if plan.nodes.len() > NODES || !node.full || then == els || self.homes.is_entered(id, then) {
            return None;
        }
        let made = |name: Name| node.ops.iter().position(|op| op.defs.contains(&name));
        let and = made(lower)?;
        let truth = match (&node.ops[and].kind, &node.ops[and].uses[..]) {
            (OpKind::And, [all, truths]) if *all == mask => made(*truths)?,
            _ => return None,
        };
        let OpKind::Mask(u32::MAX) = node.ops[made(mask)?].kind else { return None };
        let OpKind::Truths { negated } = node.ops[truth].kind else { return None };
        let pred = node.ops[truth].uses[0];
        let compare = made(pred)?;
        let op = &node.ops[compare];
        let OpKind::Inst(site) = op.kind else { return None };
        let inst = site.inst(self.job.function)?;
        let plain = inst.op == O::Setp && inst.srcs.len() == 2 && op.defs.len() == 1 && inst.guard.is_none();
        if !plain || !matches!(inst.mods.ty(), Ty::S32 | Ty::U32) || *self.class(pred) != Class::Varying {
            return None;
        }
        let ops = [compare, truth, and];
        let others = node.ops.iter().enumerate().filter(|(at, _)| !ops.contains(at));
        let behind = self.behind(id, els);
        let own = |name: Name| {
            let mut read = false;
            for (_, op) in others.clone() {
                op.clone().for_each_use(&mut |other| read |= *other == name);
            }
            let elsewhere =
                |readers: &HashSet<NodeId>| readers.iter().any(|to| *to != id && !behind.contains(to));
            !read && !self.readers.get(&name).is_some_and(elsewhere)
        };
        // A phi behind the way where all pass reads at the end of this node.
        let passed = plan.nodes[then.0 as usize].phis.iter().flat_map(|phi| &phi.from);
        let mine = [pred, node.ops[truth].defs[0], lower];
        let handed = passed.clone().any(|name| mine.contains(name));
        (mine.into_iter().all(own) && !handed).then_some(Test { ops, negated })
    }

    /// What is reached through one way alone, if it is the only one to where it leads.
    fn behind(&self, from: NodeId, to: NodeId) -> HashSet<NodeId> {
        let plan = self.job.plan;
        if plan.nodes[to.0 as usize].preds != [from] {
            return HashSet::new();
        }
        let entries = plan.entries.iter().map(|entry| entry.node);
        let mut left: Vec<NodeId> =
            entries.chain([plan.start]).chain(plan.resumes.iter().map(|resume| resume.node)).collect();
        let mut elsewhere: HashSet<NodeId> = left.iter().copied().collect();
        while let Some(id) = left.pop() {
            for next in plan.nodes[id.0 as usize].term.successors() {
                if next != to && elsewhere.insert(next) {
                    left.push(next);
                }
            }
        }
        (0..plan.nodes.len() as u32).map(NodeId).filter(|id| !elsewhere.contains(id)).collect()
    }

    /// Goes on to `then` where scalars say that all lanes pass; what follows is for the others. Makes what the test is made of.
    pub(super) fn test(&mut self, id: NodeId, then: NodeId, test: Test) {
        let node = &self.job.plan.nodes[id.0 as usize];
        // Where that is known, so is what each lane does.
        let passes = self.passes(&node.ops[test.ops[0]], test.negated);
        if let Some(passes) = passes.filter(|passes| !passes.is_constant()) {
            self.hand_over(id, then);
            let lanes = self.b.append_block(self.function, "lanes");
            self.b.cond_br(passes, self.at(then), lanes, Likely::Unknown);
            self.b.position_at_end(lanes);
        }
        for at in test.ops {
            self.op(&node.ops[at]);
        }
    }

    /// Whether all lanes pass, as far as scalars say; `None`: they say nothing.
    fn passes(&mut self, op: &Op, negated: bool) -> Option<Value> {
        let OpKind::Inst(site) = op.kind else { return None };
        let inst = site.inst(self.job.function)?;
        let signed = inst.mods.ty() == Ty::S32;
        let mut cmp = inst.mods.cmp()?;
        if negated {
            cmp = match cmp {
                Cmp::Lt | Cmp::Lo => Cmp::Ge,
                Cmp::Le | Cmp::Ls => Cmp::Gt,
                Cmp::Gt | Cmp::Hi => Cmp::Le,
                Cmp::Ge | Cmp::Hs => Cmp::Lt,
                _ => return None,
            };
        }
        let mut next = 1;
        let sides = [self.side(inst, op, 0, &mut next)?, self.side(inst, op, 1, &mut next)?];
        let (first, most, other) = match sides {
            [Side::Lanes(first, most), Side::Same(other)] => (first, most, other),
            [Side::Same(other), Side::Lanes(first, most)] => {
                cmp = match cmp {
                    Cmp::Lt | Cmp::Lo => Cmp::Gt,
                    Cmp::Le | Cmp::Ls => Cmp::Ge,
                    Cmp::Gt | Cmp::Hi => Cmp::Lt,
                    Cmp::Ge | Cmp::Hs => Cmp::Le,
                    _ => return None,
                };
                (first, most, other)
            }
            _ => return None,
        };
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

    fn side(&mut self, inst: &Inst, op: &Op, at: usize, next: &mut usize) -> Option<Side> {
        let name = match inst.srcs.get(at)? {
            Src::Imm(bits) => return Some(Side::Same(self.c32(*bits as u32))),
            Src::Reg(_) => *op.uses.get(*next)?,
            Src::Absent | Src::Not(_) | Src::Sreg(..) | Src::Addr(_) | Src::Video(_) => return None,
        };
        *next += 1;
        match self.class(name).clone() {
            Class::Uniform(_) => Some(Side::Same(self.scalar(name))),
            Class::Pattern(pattern) if !pattern.by_chunk && pattern.rows.is_empty() => {
                let (low, high) = (pattern.lanes.iter().min()?, pattern.lanes.iter().max()?);
                let first = self.base(name, 0)?;
                (*low == 0).then(|| Side::Lanes(first, u64::from(high.unsigned_abs())))
            }
            Class::Pattern(_) | Class::Varying | Class::Bottom => None,
        }
    }
}
