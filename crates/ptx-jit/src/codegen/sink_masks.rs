//! Mask sinking: computes masks of the leading lanes where they are read.
//!
//! A short branch of some lanes, `t < half`, tests whether any lane takes it and then executes under their
//! mask. Whether any lane does follows from the first lane, by a scalar comparison; and the versions for
//! whole chunks ([`version_prefix`](super::version_prefix)) have constant masks. So the comparison of all
//! lanes is delayed until the block itself needs the mask.
//!
//! Invariant: a delayed mask is read only in that block, which is entered only from the block that tests it;
//! the operands do not change in between.

use super::version_prefix::Run;
use super::{Codegen, Repr};
use crate::llvm::Value;
use crate::wir;
use crate::wir::{BlockId, Cond, Op, OpKind, Term};
use ptx::isa::Op as O;
use std::collections::{HashMap, HashSet};

/// What waits, in a function.
#[derive(Default)]
pub(super) struct SunkMasks {
    /// Operations that are not emitted where they stand.
    left: HashSet<(BlockId, usize)>,
    /// By mask: whether any lane is in it.
    some: HashMap<wir::Value, Value>,
    /// By the node that reads it.
    masks: HashMap<BlockId, Waiting>,
}

/// A mask that waits.
pub(super) struct Waiting {
    /// The mask of the node.
    pub(super) mask: wir::Value,
    pub(super) run: Run,
    /// The mask of the other lanes, if it is made of that or the other way around.
    pub(super) rest: Option<wir::Value>,
    /// What makes them.
    ops: Vec<(BlockId, usize)>,
}

impl SunkMasks {
    /// Whether an operation is not emitted where it stands.
    pub(super) fn has(&self, id: BlockId, at: usize) -> bool {
        self.left.contains(&(id, at))
    }

    /// Whether any lane is in a mask, if that is known of it.
    pub(super) fn some(&self, mask: wir::Value) -> Option<Value> {
        self.some.get(&mask).copied()
    }

    /// The mask that a node runs under, if it waits.
    pub(super) fn of(&self, id: BlockId) -> Option<&Waiting> {
        self.masks.get(&id)
    }
}

impl Codegen<'_> {
    /// Leaves a comparison, and the mask that is made of it, to the piece that reads it, if there is such a one. Emits what asks for lanes.
    pub(super) fn sink_mask(&mut self, id: BlockId, at: usize) {
        if self.job.shape.team == 1 || self.in_section() || self.versioned_block == Some(id) {
            return;
        }
        let Some((body, waiting)) = self.waiting(id, at) else { return };
        self.remark_op(&self.job.func.nodes[id.0 as usize].ops[at]);
        self.applied("sink-masks", "the comparison of all lanes is made in the block that needs it");
        let run = &waiting.run;
        let first = self.b.const_int(run.end.ty(), run.lanes[0]);
        let some = self.b.icmp(run.runs(), first, run.end);
        self.sunk_masks.some.insert(waiting.mask, some);
        self.sunk_masks.left.extend(&waiting.ops);
        self.sunk_masks.masks.insert(body, waiting);
    }

    /// What a comparison makes, if it is the mask of one piece and nothing else; and the piece.
    fn waiting(&mut self, id: BlockId, at: usize) -> Option<(BlockId, Waiting)> {
        let func = self.job.func;
        let compare = &func.nodes[id.0 as usize].ops[at];
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
        let (mask, head, body) = masks.iter().find_map(|mask| self.group_of(*mask))?;
        let own = masks.iter().all(|name| self.is_read_by(*name, &ops, (head, mask), body));
        let run = self.run_of(mask).filter(|_| own)?;
        // One that is made where code may leave is made of what the piece has.
        ops.retain(|(id, at)| !self.rare[func.nodes[id.0 as usize].ops[*at].defs[0].0 as usize]);
        let rest = masks.iter().copied().find(|other| *other != mask);
        Some((body, Waiting { mask, run, rest, ops }))
    }

    /// The one operation that reads a value, if that is in the node too.
    fn only_reader(&self, name: wir::Value, id: BlockId) -> Option<(usize, &Op)> {
        if self.readers.of(name) != [id] {
            return None;
        }
        let node = &self.job.func.nodes[id.0 as usize];
        let mut reading = (0..).zip(&node.ops).filter(|(_, op)| op.reads(name));
        let found = reading.next().filter(|_| !node.term.reads(name))?;
        let to_phi = self.is_in_state_map(id, name);
        (reading.next().is_none() && !to_phi).then_some(found)
    }

    /// The mask of all other lanes, and where it is made.
    fn turned(&self, lower: wir::Value) -> Option<((BlockId, usize), wir::Value)> {
        self.readers.of(lower).iter().find_map(|&id| {
            let ops = &self.job.func.nodes[id.0 as usize].ops;
            let at = ops.iter().position(|op| matches!(op.kind, OpKind::AndNot) && op.uses[1] == lower)?;
            Some(((id, at), ops[at].defs[0]))
        })
    }

    /// The piece that runs under a mask: who asks for its lanes, and what is entered from there alone.
    fn group_of(&self, mask: wir::Value) -> Option<(wir::Value, BlockId, BlockId)> {
        let func = self.job.func;
        self.readers.of(mask).iter().find_map(|&head| {
            let Term::If { cond: Cond::Empty(asked), then, els, .. } = func.nodes[head.0 as usize].term
            else {
                return None;
            };
            let alone = asked == mask && then != els && func.nodes[els.0 as usize].preds == [head];
            (alone && !self.barrier_slots.is_entered(head, els)).then_some((mask, head, els))
        })
    }

    /// Whether a mask is read by what makes others of it, by the question for its lanes, and in the piece.
    fn is_read_by(
        &self,
        name: wir::Value,
        ops: &[(BlockId, usize)],
        (head, mask): (BlockId, wir::Value),
        body: BlockId,
    ) -> bool {
        let readers = self.readers.of(name);
        let func = self.job.func;
        let before = readers.iter().filter(|id| **id != body).all(|id| {
            let node = &func.nodes[id.0 as usize];
            let other = (0..).zip(&node.ops).any(|(at, op)| op.reads(name) && !ops.contains(&(*id, at)));
            let asks = *id == head && name == mask;
            !other && (asks || !node.term.reads(name)) && !self.is_in_state_map(*id, name)
        });
        before && !self.is_made_beyond(name, body)
    }

    /// Whether a mask that is made of one where code may leave may be made behind the piece.
    fn is_made_beyond(&self, name: wir::Value, body: BlockId) -> bool {
        self.job.func.nodes[body.0 as usize].ops.iter().any(|op| {
            let masks = matches!(op.kind, OpKind::And | OpKind::AndNot | OpKind::Or);
            let later = masks && self.rare[op.defs[0].0 as usize] && op.uses.contains(&name);
            later && !self.readers.of(op.defs[0]).is_empty()
        })
    }

    /// Whether a phi takes a value where it is entered from that node.
    fn is_in_state_map(&self, id: BlockId, name: wir::Value) -> bool {
        let func = self.job.func;
        let successors = func.nodes[id.0 as usize].term.successors();
        successors.iter().any(|to| func.nodes[to.0 as usize].takes_from(id, name))
    }

    /// Makes the mask that a node runs under, if it waits.
    pub(super) fn emit_sunk_masks(&mut self, id: BlockId) {
        let Some(waiting) = self.sunk_masks.masks.remove(&id) else { return };
        for (node, at) in waiting.ops {
            self.op(&self.job.func.nodes[node.0 as usize].ops[at]);
        }
    }

    /// The masks of a copy of a node, in place of those that wait or of the one that there is. Gives back what was there.
    pub(super) fn stand_in(
        &mut self,
        mask: wir::Value,
        rest: Option<wir::Value>,
        own: Value,
    ) -> Vec<(wir::Value, Option<Repr>)> {
        let mut before = vec![(mask, self.reps[mask.0 as usize].replace(Repr::Scalar(own)))];
        if let Some(rest) = rest.filter(|rest| !self.rare[rest.0 as usize]) {
            let others = self.mask_not(own);
            before.push((rest, self.reps[rest.0 as usize].replace(Repr::Scalar(others))));
        }
        before
    }
}
