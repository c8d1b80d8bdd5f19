//! Emits masks where they are read. Which masks are sunk, and into which blocks, was decided by
//! [`opt::sink_masks`](crate::opt::sink_masks).
//!
//! In place of the comparison of all lanes there is a scalar test of the first lane, which says whether any
//! lane is in the mask.
//!
//! Invariant: a mask that is not emitted at its own position is emitted where the block begins that reads it.

use super::mask::Mask;
use super::version_prefix::is_below;
use super::{Codegen, Repr};
use crate::codegen::emitted_values::NumberedRepr;
use crate::llvm::Value;
use crate::wir;
use crate::wir::BlockId;
use crate::wir::sunk_mask::SunkMask;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// The sunk masks of a function, as far as it is emitted.
#[derive(Default)]
pub(super) struct SunkMasks {
    /// Operations that are not emitted at their own position.
    left: HashSet<(BlockId, usize)>,
    /// For each mask, the scalar condition that any lane is in it.
    some: HashMap<wir::Value, Value>,
    /// For each block, the mask that is computed in it.
    masks: HashMap<BlockId, Rc<SunkMask>>,
}

impl SunkMasks {
    /// Whether an operation is not emitted at its own position.
    pub(super) fn has(&self, id: BlockId, at: usize) -> bool {
        self.left.contains(&(id, at))
    }

    /// The scalar condition that any lane is in a mask, if the mask is sunk.
    pub(super) fn some(&self, mask: wir::Value) -> Option<Value> {
        self.some.get(&mask).copied()
    }
}

impl Codegen<'_> {
    /// Sinks the mask that is made of a comparison, if that was decided. Emits the
    /// scalar test of whether any lane is in the mask.
    pub(super) fn sink_mask(&mut self, id: BlockId, at: usize) {
        let block = &self.job.func.blocks[id.0 as usize];
        let Some(sunk) = block.sunk.iter().find(|sunk| sunk.at == at) else {
            return;
        };
        self.remark_op(&block.ops[at]);
        self.applied("sink-masks", "the comparison of all lanes is made in the block that needs it");
        let (limit, lanes) = (self.limit(&sunk.lanes), &sunk.lanes);
        let first = self.b.const_int(limit.ty(), lanes.constants[0]);
        let some = self.b.icmp(is_below(lanes), first, limit);
        self.passes.sunk_masks.some.insert(sunk.mask, some);
        self.passes.sunk_masks.left.extend(&sunk.ops);
        self.passes.sunk_masks.masks.insert(sunk.into, sunk.clone());
    }

    /// Emits the mask that a block is executed under, if it was sunk.
    pub(super) fn emit_sunk_masks(&mut self, id: BlockId) {
        let Some(sunk) = self.passes.sunk_masks.masks.remove(&id) else { return };
        for (node, at) in &sunk.ops {
            self.op(&self.job.func.blocks[node.0 as usize], *at);
        }
    }

    /// Replaces the masks of a version of a block, which are sunk or already emitted. Returns the previous
    /// representations.
    pub(super) fn stand_in(
        &mut self,
        mask: wir::Value,
        rest: Option<wir::Value>,
        own: Mask,
    ) -> Vec<(wir::Value, Option<NumberedRepr>)> {
        let mut before = vec![(mask, self.values.replace(mask, Repr::Mask(own)))];
        if let Some(rest) = rest {
            let others = self.mask_not(own);
            before.push((rest, self.values.replace(rest, Repr::Mask(others))));
        }
        before
    }
}
