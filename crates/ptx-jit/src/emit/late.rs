//! Masks of the first lanes are made where they are read.
//!
//! A short branch of some lanes, `t < half`, asks whether any lane takes it and then runs under their mask. Whether there are any is known
//! from the first lane, which is a comparison of scalars; and the copies for whole chunks ([`prefix`](super::prefix)) have masks that are
//! constant. So the comparison of each lane waits until the piece itself wants its mask.
//!
//! Invariant: what waits is read in the piece alone, which is entered from the one node that asks; its operands stay what they are.

use super::prefix::Run;
use super::{Emit, Rep};
use crate::llvm::Value;
use crate::plan::{Cond, Name, NodeId, Op, OpKind, Term};
use ptx::isa::Op as O;
use std::collections::{HashMap, HashSet};

/// What waits, in a function.
#[derive(Default)]
pub(super) struct Late {
    /// Operations that are not emitted where they stand.
    left: HashSet<(NodeId, usize)>,
    /// By mask: whether any lane is in it.
    some: HashMap<Name, Value>,
    /// By the node that reads it.
    masks: HashMap<NodeId, Waiting>,
}

/// A mask that waits.
pub(super) struct Waiting {
    /// The mask of the node.
    pub(super) mask: Name,
    pub(super) run: Run,
    /// The mask of the other lanes, if it is made of that or the other way around.
    pub(super) rest: Option<Name>,
    /// What makes them.
    ops: Vec<(NodeId, usize)>,
}

impl Late {
    /// Whether an operation is not emitted where it stands.
    pub(super) fn has(&self, id: NodeId, at: usize) -> bool {
        self.left.contains(&(id, at))
    }

    /// Whether any lane is in a mask, if that is known of it.
    pub(super) fn some(&self, mask: Name) -> Option<Value> {
        self.some.get(&mask).copied()
    }

    /// The mask that a node runs under, if it waits.
    pub(super) fn of(&self, id: NodeId) -> Option<&Waiting> {
        self.masks.get(&id)
    }
}

impl Emit<'_> {
    /// Leaves a comparison, and the mask that is made of it, to the piece that reads it, if there is such a one. Emits what asks for lanes.
    pub(super) fn leave_to_piece(&mut self, id: NodeId, at: usize) {
        if self.job.shape.team == 1 || self.in_section() || self.copying == Some(id) {
            return;
        }
        let Some((body, waiting)) = self.waiting(id, at) else { return };
        let run = &waiting.run;
        let first = self.b.const_int(run.end.ty(), run.lanes[0]);
        let some = self.b.icmp(run.runs(), first, run.end);
        self.late.some.insert(waiting.mask, some);
        self.late.left.extend(&waiting.ops);
        self.late.masks.insert(body, waiting);
    }

    /// What a comparison makes, if it is the mask of one piece and nothing else; and the piece.
    fn waiting(&mut self, id: NodeId, at: usize) -> Option<(NodeId, Waiting)> {
        let plan = self.job.plan;
        let compare = &plan.nodes[id.0 as usize].ops[at];
        let OpKind::Inst(site) = compare.kind else { return None };
        let inst = site.inst(self.job.function)?;
        if inst.op != O::Setp || compare.defs.len() != 1 || inst.guard.is_some() {
            return None;
        }
        let (truths, op) = self.only_reader(compare.defs[0], id)?;
        let OpKind::Truths { .. } = op.kind else { return None };
        let (and, op) = self.only_reader(op.defs[0], id)?;
        let OpKind::And = op.kind else { return None };
        let lower = op.defs[0];
        let mut ops = vec![(id, at), (id, truths), (id, and)];
        let turned = self.turned(lower);
        let mut masks = vec![lower];
        if let Some((place, rest)) = turned {
            ops.push(place);
            masks.push(rest);
        }
        let (mask, head, body) = masks.iter().find_map(|mask| self.piece_of(*mask))?;
        let own = masks.iter().all(|name| self.is_read_by(*name, &ops, (head, mask), body));
        let run = self.run_of(mask).filter(|_| own)?;
        // One that is made where code may leave is made of what the piece has.
        ops.retain(|(id, at)| !self.rare[plan.nodes[id.0 as usize].ops[*at].defs[0].0 as usize]);
        let rest = masks.iter().copied().find(|other| *other != mask);
        Some((body, Waiting { mask, run, rest, ops }))
    }

    /// The one operation that reads a value, if that is in the node too.
    fn only_reader(&self, name: Name, id: NodeId) -> Option<(usize, &Op)> {
        let readers = self.readers.get(&name)?;
        if readers.len() != 1 || !readers.contains(&id) {
            return None;
        }
        let node = &self.job.plan.nodes[id.0 as usize];
        let mut reading = (0..).zip(&node.ops).filter(|(_, op)| reads(op, name));
        let found = reading.next().filter(|_| !ends_with(&node.term, name))?;
        let to_phi = self.is_handed(id, name);
        (reading.next().is_none() && !to_phi).then_some(found)
    }

    /// The mask of all other lanes, and where it is made.
    fn turned(&self, lower: Name) -> Option<((NodeId, usize), Name)> {
        let mut readers: Vec<NodeId> = self.readers.get(&lower)?.iter().copied().collect();
        readers.sort_unstable();
        readers.into_iter().find_map(|id| {
            let ops = &self.job.plan.nodes[id.0 as usize].ops;
            let at = ops.iter().position(|op| matches!(op.kind, OpKind::AndNot) && op.uses[1] == lower)?;
            Some(((id, at), ops[at].defs[0]))
        })
    }

    /// The piece that runs under a mask: who asks for its lanes, and what is entered from there alone.
    fn piece_of(&self, mask: Name) -> Option<(Name, NodeId, NodeId)> {
        let plan = self.job.plan;
        self.readers.get(&mask)?.iter().copied().find_map(|head| {
            let Term::If { cond: Cond::Empty(asked), then, els, .. } = plan.nodes[head.0 as usize].term
            else {
                return None;
            };
            let alone = asked == mask && then != els && plan.nodes[els.0 as usize].preds == [head];
            (alone && !self.homes.is_entered(head, els)).then_some((mask, head, els))
        })
    }

    /// Whether a mask is read by what makes others of it, by the question for its lanes, and in the piece.
    fn is_read_by(
        &self,
        name: Name,
        ops: &[(NodeId, usize)],
        (head, mask): (NodeId, Name),
        body: NodeId,
    ) -> bool {
        let Some(readers) = self.readers.get(&name) else { return true };
        let plan = self.job.plan;
        let before = readers.iter().filter(|id| **id != body).all(|id| {
            let node = &plan.nodes[id.0 as usize];
            let other = (0..).zip(&node.ops).any(|(at, op)| reads(op, name) && !ops.contains(&(*id, at)));
            let asks = *id == head && name == mask;
            !other && (asks || !ends_with(&node.term, name)) && !self.is_handed(*id, name)
        });
        before && !self.is_made_beyond(name, body)
    }

    /// Whether a mask that is made of one where code may leave may be made behind the piece.
    fn is_made_beyond(&self, name: Name, body: NodeId) -> bool {
        self.job.plan.nodes[body.0 as usize].ops.iter().any(|op| {
            let masks = matches!(op.kind, OpKind::And | OpKind::AndNot | OpKind::Or);
            let later = masks && self.rare[op.defs[0].0 as usize] && op.uses.contains(&name);
            later && self.readers.get(&op.defs[0]).is_some_and(|readers| !readers.is_empty())
        })
    }

    /// Whether a phi takes a value where it is entered from that node.
    fn is_handed(&self, id: NodeId, name: Name) -> bool {
        let plan = self.job.plan;
        plan.nodes[id.0 as usize].term.successors().iter().any(|to| {
            let to = &plan.nodes[to.0 as usize];
            let phis = to.phis.iter().flat_map(|phi| phi.from.iter().zip(&to.preds));
            phis.into_iter().any(|(from, pred)| *pred == id && *from == name)
        })
    }

    /// Makes the mask that a node runs under, if it waits.
    pub(super) fn make_late(&mut self, id: NodeId) {
        let Some(waiting) = self.late.masks.remove(&id) else { return };
        for (node, at) in waiting.ops {
            self.op(&self.job.plan.nodes[node.0 as usize].ops[at]);
        }
    }

    /// The masks of a copy of a node, in place of those that wait or of the one that there is. Gives back what was there.
    pub(super) fn stand_in(
        &mut self,
        mask: Name,
        rest: Option<Name>,
        own: Value,
    ) -> Vec<(Name, Option<Rep>)> {
        let mut before = vec![(mask, self.reps[mask.0 as usize].replace(Rep::Scalar(own)))];
        if let Some(rest) = rest.filter(|rest| !self.rare[rest.0 as usize]) {
            let others = self.mask_not(own);
            before.push((rest, self.reps[rest.0 as usize].replace(Rep::Scalar(others))));
        }
        before
    }
}

fn reads(op: &Op, name: Name) -> bool {
    let mut found = false;
    op.clone().for_each_use(&mut |other| found |= *other == name);
    found
}

fn ends_with(term: &Term, name: Name) -> bool {
    let mut found = false;
    term.clone().for_each_use(&mut |other| found |= *other == name);
    found
}
