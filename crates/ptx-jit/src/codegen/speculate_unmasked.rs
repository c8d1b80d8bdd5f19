//! Speculative unmasked versions: a masked block that loads for all lanes, where the inactive lanes'
//! addresses are in bounds too.
//!
//! At the border of a picture lanes diverge for a few instructions: lanes on the border copy, the others
//! compute. Under a mask each load finds the first and last active lane, and is a masked load. But inactive
//! lanes would mostly read the neighbours of what active lanes read. So a block that only loads and computes
//! gets a second version without masks up to its selects. A comparison of all lanes' addresses with the
//! bounds selects the version.
//!
//! Invariant: the version has no effect before all of its loads are known to be in bounds; until then control
//! goes to the masked version.

use super::version_prefix::{Prefix, Version};
use super::{Codegen, Repr};
use crate::llvm::{Likely, Value};
use crate::opt::checks::coalesce::Coalescing;
use crate::tuning::{UNMASKED_VERSION_MAX_OPS, UNMASKED_VERSIONS_MAX};
use crate::wir;
use crate::wir::{BlockId, Kind, Op, OpKind, Shape, Term};
use ptx::ir::{Addr, Base, Inst, RegClass, Src};
use ptx::isa::{Op as O, Sem, Space};
use std::rc::Rc;

impl Codegen<'_> {
    /// Emits an unmasked version of a block, if the block only loads and computes under a mask. The code that
    /// follows is for the case that a load is out of bounds.
    pub(super) fn unmasked(&mut self, id: BlockId) {
        let func = self.job.func;
        let node = &func.blocks[id.0 as usize];
        let Term::Goto(next) = node.term else { return };
        // The results of the block must reach other blocks through phis only.
        let several = func.blocks[next.0 as usize].preds.iter().any(|from| *from != id);
        let free = !node.full
            && self.job.shape.team == 1
            && several
            && !self.passes.barrier_slots.is_entered(id, next);
        if !free || self.position.versioned_block == Some(id) || self.in_section() {
            return;
        }
        if self.facts.large {
            self.remark_block(id, false);
            return self.missed("version-unmasked", "the function is large");
        }
        if self.position.versions == UNMASKED_VERSIONS_MAX {
            self.remark_block(id, false);
            return self.missed("version-unmasked", "the function has the most versions that it may have");
        }
        let Some(mask) = self.mask_of_loads(id, node) else { return };
        if self.values.get(mask).is_none() || self.facts.analyses.constants.is_known(mask) {
            return;
        }
        self.remark_block(id, false);
        self.applied("version-unmasked", "a version that loads for all lanes, where these are in bounds");
        self.position.versions += 1;
        self.position.versioned_block = Some(id);
        let other = self.b.append_block(self.function, "masked");
        self.position.prefix = Some(Prefix { chunks: self.chunks(), other, unmasked: Some(mask) });
        let accesses = self.planner().for_all_lanes(id, &self.facts.analyses);
        let checks = Coalescing::new(self.planner(), &self.facts.analyses).block(id, true).map(Rc::new);
        self.position.version = Some(Version { accesses, checks });
        self.content(id);
        (self.position.prefix, self.position.version) = (None, None);
        self.b.position_at_end(other);
    }

    /// The mask of a block that only computes, and loads consecutive elements or one element.
    fn mask_of_loads(&mut self, id: BlockId, node: &wir::Block) -> Option<wir::Value> {
        let mut mask = None;
        let mut loads = 0;
        if node.ops.len() > UNMASKED_VERSION_MAX_OPS {
            return None;
        }
        for op in &node.ops {
            match &op.kind {
                OpKind::Inst(site) => {
                    let inst = site.inst(self.job.function)?;
                    if *mask.get_or_insert(op.uses[0]) != op.uses[0] {
                        return None;
                    }
                    if !self.is_early(*site, inst) {
                        self.is_beside(inst, op).then_some(())?;
                        loads += 1;
                    }
                }
                OpKind::Chain(_) if *mask.get_or_insert(op.uses[0]) != op.uses[0] => return None,
                OpKind::Chain(_)
                | OpKind::Ahead(_)
                | OpKind::Guard(..)
                | OpKind::SelectMask
                | OpKind::SelectPred { .. }
                | OpKind::Truths { .. }
                | OpKind::InRange { .. }
                | OpKind::Count(_)
                | OpKind::Add(_)
                | OpKind::AddLanes(_)
                | OpKind::And
                | OpKind::AndNot
                | OpKind::Or => {}
                OpKind::Spare(..)
                | OpKind::Load(_)
                | OpKind::Reload(_)
                | OpKind::Spill(_)
                | OpKind::Restore(..)
                | OpKind::Reduced(..)
                | OpKind::Mask(_)
                | OpKind::Picks { .. }
                | OpKind::SameQuotient(_)
                | OpKind::Rebase
                | OpKind::EntryMask
                | OpKind::EntryLive
                | OpKind::EntryCarry
                | OpKind::EntryTurns
                | OpKind::AddWarps(_) => return None,
            }
        }
        let mask = mask.filter(|_| loads > 0)?;
        self.facts.def_use.op(mask).is_some_and(|(at, _)| at != id).then_some(mask)
    }

    /// Whether a load accesses consecutive elements or one element, in memory that all lanes share.
    fn is_beside(&self, inst: &Inst, op: &Op) -> bool {
        if !matches!(inst.op, O::Ld | O::LdNc) || inst.guard.is_some() || inst.mods.sem() != Sem::Weak {
            return false;
        }
        let Some(access) = self.access(inst, false) else { return false };
        let Some(Src::Addr(Addr { base: Base::Reg(_), index: None, .. })) = inst.srcs.first() else {
            return false;
        };
        let beside = op.uses.get(1).is_some_and(|name| match self.shape(*name) {
            Shape::Uniform(_) => true,
            Shape::Affine(pattern) => {
                pattern.rows.is_empty()
                    && self.kind(*name) == Kind::Reg(RegClass::R64)
                    && self.vectors().is_regular(access.space, access.bytes(), pattern, false)
                    && op.defs.iter().all(|def| *self.shape(*def) == Shape::Varying)
            }
            Shape::Varying | Shape::Bottom => false,
        });
        beside
            && matches!(access.space, Space::Global | Space::Const | Space::Shared)
            && op.defs.len() == access.count as usize
    }

    /// Whether the version that is emitted loads for all lanes.
    pub(super) fn is_unmasked(&self) -> bool {
        self.position.prefix.is_some_and(|prefix| prefix.unmasked.is_some())
    }

    /// Emits part of the unmasked version as if all lanes were active.
    pub(super) fn as_all<R>(&mut self, what: impl FnOnce(&mut Self) -> R) -> R {
        let Some(mask) = self.position.prefix.and_then(|prefix| prefix.unmasked) else { return what(self) };
        let all = Repr::Mask(self.all_lanes());
        let before = self.values.replace(mask, all);
        let full = std::mem::replace(&mut self.position.full, true);
        let done = what(self);
        self.position.full = full;
        self.values.restore(mask, before);
        done
    }

    /// Continues in the version that is emitted if a load is in bounds, and in the masked version otherwise.
    pub(super) fn or_masked(&mut self, fits: Value) {
        let Some(prefix) = self.position.prefix else { return };
        let on = self.b.append_block(self.function, "fits");
        self.b.cond_br(fits, on, prefix.other, Likely::Yes);
        self.b.position_at_end(on);
    }
}
