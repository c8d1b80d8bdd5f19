//! Mask sinking: computes masks of the leading lanes where they are read.
//!
//! A short branch of some lanes, `t < half`, tests whether any lane takes it and then executes under their
//! mask. Whether any lane does follows from the first lane, by a scalar comparison; and the versions for
//! whole chunks ([`version_prefix`](super::version_prefix)) have constant masks. So the comparison of all
//! lanes is delayed until the block itself needs the mask.
//!
//! Invariant: a delayed mask is read only in that block, which is entered only from the block that tests it;
//! the operands do not change in between.

use super::emitted_values::NumberedRepr;
use super::mask::Mask;
use super::version_prefix::Run;
use super::{Codegen, Repr};
use crate::llvm::Value;
use crate::wir;
use crate::wir::{BlockId, Cond, Op, OpKind, Term};
use ptx::isa::Op as O;
use std::collections::{HashMap, HashSet};

/// The sunk masks of a function.
#[derive(Default)]
pub(super) struct SunkMasks {
    /// Operations that are not emitted at their own position.
    left: HashSet<(BlockId, usize)>,
    /// For each mask, the scalar condition that any lane is in it.
    some: HashMap<wir::Value, Value>,
    /// For each block, the mask that is computed in it.
    masks: HashMap<BlockId, Waiting>,
}

/// A mask whose computation is delayed.
pub(super) struct Waiting {
    /// The mask of the block.
    pub(super) mask: wir::Value,
    pub(super) run: Run,
    /// The mask of the other lanes, if one of the two is computed from the other.
    pub(super) rest: Option<wir::Value>,
    /// The operations that compute both.
    ops: Vec<(BlockId, usize)>,
}

impl SunkMasks {
    /// Whether an operation is not emitted at its own position.
    pub(super) fn has(&self, id: BlockId, at: usize) -> bool {
        self.left.contains(&(id, at))
    }

    /// The scalar condition that any lane is in a mask, if it is known.
    pub(super) fn some(&self, mask: wir::Value) -> Option<Value> {
        self.some.get(&mask).copied()
    }

    /// The mask that a block executes under, if its computation is delayed.
    pub(super) fn of(&self, id: BlockId) -> Option<&Waiting> {
        self.masks.get(&id)
    }
}

impl Codegen<'_> {
    /// Delays a comparison, and the mask computed from it, until the block that reads them, if there is one
    /// such block. Emits the scalar test of whether any lane is in the mask.
    pub(super) fn sink_mask(&mut self, id: BlockId, at: usize) {
        if self.job.shape.team == 1 || self.in_section() || self.position.versioned_block == Some(id) {
            return;
        }
        let Some((body, waiting)) = self.waiting(id, at) else { return };
        self.remark_op(&self.job.func.blocks[id.0 as usize].ops[at]);
        self.applied("sink-masks", "the comparison of all lanes is made in the block that needs it");
        let run = &waiting.run;
        let first = self.b.const_int(run.end.ty(), run.lanes[0]);
        let some = self.b.icmp(run.runs(), first, run.end);
        self.passes.sunk_masks.some.insert(waiting.mask, some);
        self.passes.sunk_masks.left.extend(&waiting.ops);
        self.passes.sunk_masks.masks.insert(body, waiting);
    }

    /// The masks that are computed from a comparison, and the block, if only that block executes under them
    /// and nothing else reads them.
    fn waiting(&mut self, id: BlockId, at: usize) -> Option<(BlockId, Waiting)> {
        let func = self.job.func;
        let compare = &func.blocks[id.0 as usize].ops[at];
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
        // A mask that only side exits read is computed at the side exit, from the values of the block.
        ops.retain(|(id, at)| !self.facts.rare[func.blocks[id.0 as usize].ops[*at].defs[0].0 as usize]);
        let rest = masks.iter().copied().find(|other| *other != mask);
        Some((body, Waiting { mask, run, rest, ops }))
    }

    /// The only operation that reads a value, if it is in the same block.
    fn only_reader(&self, name: wir::Value, id: BlockId) -> Option<(usize, &Op)> {
        if self.facts.readers.of(name) != [id] {
            return None;
        }
        let node = &self.job.func.blocks[id.0 as usize];
        let mut reading = (0..).zip(&node.ops).filter(|(_, op)| op.reads(name));
        let found = reading.next().filter(|_| !node.term.reads(name))?;
        let to_phi = self.is_in_state_map(id, name);
        (reading.next().is_none() && !to_phi).then_some(found)
    }

    /// The complement of a mask, with the operation that computes it.
    fn turned(&self, lower: wir::Value) -> Option<((BlockId, usize), wir::Value)> {
        self.facts.readers.of(lower).iter().find_map(|&id| {
            let ops = &self.job.func.blocks[id.0 as usize].ops;
            let at = ops.iter().position(|op| matches!(op.kind, OpKind::AndNot) && op.uses[1] == lower)?;
            Some(((id, at), ops[at].defs[0]))
        })
    }

    /// The block that executes under a mask, with the block that tests whether the mask is empty. The test
    /// must be its only predecessor.
    fn group_of(&self, mask: wir::Value) -> Option<(wir::Value, BlockId, BlockId)> {
        let func = self.job.func;
        self.facts.readers.of(mask).iter().find_map(|&head| {
            let Term::If { cond: Cond::Empty(asked), then, els, .. } = func.blocks[head.0 as usize].term
            else {
                return None;
            };
            let alone = asked == mask && then != els && func.blocks[els.0 as usize].preds == [head];
            (alone && !self.slots().stores_on(head, els)).then_some((mask, head, els))
        })
    }

    /// Whether a mask is read only by the operations that compute other masks, by the test for lanes, and in
    /// the block.
    fn is_read_by(
        &self,
        name: wir::Value,
        ops: &[(BlockId, usize)],
        (head, mask): (BlockId, wir::Value),
        body: BlockId,
    ) -> bool {
        let readers = self.facts.readers.of(name);
        let func = self.job.func;
        let before = readers.iter().filter(|id| **id != body).all(|id| {
            let node = &func.blocks[id.0 as usize];
            let other = (0..).zip(&node.ops).any(|(at, op)| op.reads(name) && !ops.contains(&(*id, at)));
            let asks = *id == head && name == mask;
            !other && (asks || !node.term.reads(name)) && !self.is_in_state_map(*id, name)
        });
        before && !self.is_made_beyond(name, body)
    }

    /// Whether a mask that only side exits read may be computed from this one behind the block.
    fn is_made_beyond(&self, name: wir::Value, body: BlockId) -> bool {
        self.job.func.blocks[body.0 as usize].ops.iter().any(|op| {
            let masks = matches!(op.kind, OpKind::And | OpKind::AndNot | OpKind::Or);
            let later = masks && self.facts.rare[op.defs[0].0 as usize] && op.uses.contains(&name);
            later && !self.facts.readers.of(op.defs[0]).is_empty()
        })
    }

    /// Whether a phi reads a value on an edge from that block.
    fn is_in_state_map(&self, id: BlockId, name: wir::Value) -> bool {
        let func = self.job.func;
        let successors = func.blocks[id.0 as usize].term.successors();
        successors.iter().any(|to| func.blocks[to.0 as usize].takes_from(id, name))
    }

    /// Emits the delayed mask that a block executes under.
    pub(super) fn emit_sunk_masks(&mut self, id: BlockId) {
        let Some(waiting) = self.passes.sunk_masks.masks.remove(&id) else { return };
        for (node, at) in waiting.ops {
            self.op(&self.job.func.blocks[node.0 as usize], at);
        }
    }

    /// Replaces the masks of a version of a block, which are delayed or already emitted. Returns the previous
    /// representations.
    pub(super) fn stand_in(
        &mut self,
        mask: wir::Value,
        rest: Option<wir::Value>,
        own: Mask,
    ) -> Vec<(wir::Value, Option<NumberedRepr>)> {
        let mut before = vec![(mask, self.values.replace(mask, Repr::Mask(own)))];
        if let Some(rest) = rest.filter(|rest| !self.facts.rare[rest.0 as usize]) {
            let others = self.mask_not(own);
            before.push((rest, self.values.replace(rest, Repr::Mask(others))));
        }
        before
    }
}
