//! Mask sinking: computes masks of the leading lanes where they are read.
//!
//! A short branch of some lanes, `t < half`, tests whether any lane takes it and then executes under their
//! mask. Whether any lane does follows from the first lane, by a scalar comparison; and the versions for
//! whole chunks ([`version_prefix`](super::version_prefix)) have constant masks. So the comparison of all
//! lanes is delayed until the block itself needs the mask.
//!
//! Invariant: a delayed mask is read only in that block, which is entered only from the block that tests it;
//! the operands do not change in between.

use crate::analysis::Analyses;
use crate::analysis::leading_lanes::Masks;
use crate::wir::decision::Decision;
use crate::wir::section::Section;
use crate::wir::sunk_mask::SunkMask;
use crate::wir::{Block, BlockId, Cond, Func, LaunchShape, Op, OpKind, Term, Value};
use ptx::ir::Function;
use ptx::isa::Op as O;
use std::rc::Rc;

/// What masks are sunk by.
struct Sinking<'a> {
    func: &'a Func,
    function: &'a Function,
    analyses: &'a Analyses,
}

/// The masks that each block sinks into others.
pub(crate) fn find(
    func: &Func,
    function: &Function,
    launch: LaunchShape,
    analyses: &Analyses,
) -> Vec<Vec<Rc<SunkMask>>> {
    if launch.team == 1 {
        return Vec::new();
    }
    let sinking = Sinking { func, function, analyses };
    let ids = (0..func.blocks.len() as u32).map(BlockId);
    ids.map(|id| sinking.masks(id)).collect()
}

impl Sinking<'_> {
    /// The masks that a block sinks. A block with versions computes its masks in each of them; what a chunk
    /// loop executes is read behind the loop; and a warp strip needs the masks of each warp.
    fn masks(&self, id: BlockId) -> Vec<Rc<SunkMask>> {
        let block = &self.func.blocks[id.0 as usize];
        if matches!(block.leading, Some(Decision::Applied(_))) {
            return Vec::new();
        }
        let in_loop = |at: usize| {
            let inside = |section: &Section| section.start < at && at < section.end;
            block.sections.iter().any(|section| section.is_chunk_loop() && inside(section))
        };
        let in_strip = |at: usize| block.strips.as_ref().is_some_and(|strips| strips.is_open_at(at));
        let sunk = |at: usize| self.sunk(id, at).map(Rc::new);
        (0..block.ops.len()).filter(|at| !in_loop(*at) && !in_strip(*at)).filter_map(sunk).collect()
    }

    /// The mask that is computed from a comparison, if only one other block executes under it and nothing
    /// else reads it.
    fn sunk(&self, id: BlockId, at: usize) -> Option<SunkMask> {
        let func = self.func;
        let compare = &func.blocks[id.0 as usize].ops[at];
        let OpKind::Inst(site) = compare.kind else { return None };
        let inst = site.inst(self.function)?;
        if inst.op != O::Setp || compare.defs.len() != 1 || inst.guard.is_some() {
            return None;
        }
        let (truths, op) = self.only_reader(compare.defs[0], id)?;
        let OpKind::Truths { .. } = op.kind else { return None };
        let (and, op) = self.only_reader(op.defs[0], id)?;
        let OpKind::And = op.kind else { return None };
        let lower = op.defs[0];
        let mut ops = vec![(id, at), (id, truths), (id, and)];
        let lookup = Masks { func, function: self.function, analyses: self.analyses };
        let mut masks = vec![lower];
        if let Some((block, at)) = lookup.and_not(lower) {
            ops.push((block, at));
            masks.push(func.blocks[block.0 as usize].ops[at].defs[0]);
        }
        let (mask, head, into) = masks.iter().find_map(|mask| self.group_of(*mask))?;
        let own = masks.iter().all(|name| self.is_read_by(*name, &ops, (head, mask), into));
        let lanes = lookup.leading_lanes(mask).filter(|_| own)?;
        // A mask that only side exits read is computed at the side exit, from the values of the block.
        let rare = |(id, at): (BlockId, usize)| {
            self.analyses.rare[func.blocks[id.0 as usize].ops[at].defs[0].0 as usize]
        };
        ops.retain(|place| !rare(*place));
        Some(SunkMask { at, mask, lanes: Rc::new(lanes), into, ops })
    }

    /// The only operation that reads a value, if it is in the same block.
    fn only_reader(&self, name: Value, id: BlockId) -> Option<(usize, &Op)> {
        if self.analyses.readers.of(name) != [id] {
            return None;
        }
        let block = &self.func.blocks[id.0 as usize];
        let mut reading = (0..).zip(&block.ops).filter(|(_, op)| op.reads(name));
        let found = reading.next().filter(|_| !block.term.reads(name))?;
        let to_phi = self.is_read_by_phi(id, name);
        (reading.next().is_none() && !to_phi).then_some(found)
    }

    /// The block that executes under a mask, with the block that tests whether the mask is empty. The test
    /// must be its only predecessor.
    fn group_of(&self, mask: Value) -> Option<(Value, BlockId, BlockId)> {
        let func = self.func;
        self.analyses.readers.of(mask).iter().find_map(|&head| {
            let Term::If { cond: Cond::Empty(asked), then, els, .. } = func.blocks[head.0 as usize].term
            else {
                return None;
            };
            let alone = asked == mask && then != els && func.blocks[els.0 as usize].preds == [head];
            (alone && !func.stores_on(head, els)).then_some((mask, head, els))
        })
    }

    /// Whether a mask is read only by the operations that compute other masks, by the test for lanes, and in
    /// the block.
    fn is_read_by(
        &self,
        name: Value,
        ops: &[(BlockId, usize)],
        (head, mask): (BlockId, Value),
        body: BlockId,
    ) -> bool {
        let readers = self.analyses.readers.of(name);
        let before = readers.iter().filter(|id| **id != body).all(|id| {
            let block = &self.func.blocks[id.0 as usize];
            let other = (0..).zip(&block.ops).any(|(at, op)| op.reads(name) && !ops.contains(&(*id, at)));
            let asks = *id == head && name == mask;
            !other && (asks || !block.term.reads(name)) && !self.is_read_by_phi(*id, name)
        });
        before && !self.is_made_beyond(name, &self.func.blocks[body.0 as usize])
    }

    /// Whether a mask that only side exits read may be computed from this one behind the block.
    fn is_made_beyond(&self, name: Value, body: &Block) -> bool {
        body.ops.iter().any(|op| {
            let masks = matches!(op.kind, OpKind::And | OpKind::AndNot | OpKind::Or);
            let later = masks && self.analyses.rare[op.defs[0].0 as usize] && op.uses.contains(&name);
            later && !self.analyses.readers.of(op.defs[0]).is_empty()
        })
    }

    /// Whether a phi reads a value on an edge from that block.
    fn is_read_by_phi(&self, id: BlockId, name: Value) -> bool {
        let successors = self.func.blocks[id.0 as usize].term.successors();
        successors.iter().any(|to| self.func.blocks[to.0 as usize].takes_from(id, name))
    }
}
