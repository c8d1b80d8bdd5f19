//! Speculative unmasked versions: a masked block that loads for all lanes, where the inactive lanes'
//! addresses are in bounds too.
//!
//! At the border of a picture lanes diverge for a few instructions: lanes on the border copy, the others
//! compute. Under a mask each load finds the first and last active lane, and is a masked load. But inactive
//! lanes would mostly read the neighbours of what active lanes read. So a block that only loads and computes
//! gets a second version without masks up to its selects. A comparison of all lanes' addresses with the
//! bounds selects the version.
//!
//! Invariant: a block with such a version has no effect, and other blocks read its results through phis only.
//!
//! Not handled: coarse warps within a CTA, which have versions for their leading lanes instead. In those of
//! several CTAs, a row of threads is long enough that many have lanes on the border of a picture.

use crate::analysis::{Analyses, is_large};
use crate::mem::classify::ordered_access;
use crate::mem::plan::Planner;
use crate::mem::remarks::Remark;
use crate::opt::checks::coalesce::Coalescing;
use crate::tuning::{UNMASKED_VERSION_MAX_OPS, UNMASKED_VERSIONS_MAX};
use crate::wir::decision::Decision;
use crate::wir::version::{Unmasked, Version};
use crate::wir::{BlockId, Kind, Op, OpKind, Shape, Value};
use ptx::ir::{Addr, Base, Inst, RegClass, Src};
use ptx::isa::{Op as O, Sem, Space};
use std::rc::Rc;

/// What versions are decided by.
pub(crate) struct Versioning<'a> {
    planner: Planner<'a>,
    analyses: &'a Analyses,
    coalescing: Coalescing<'a>,
}

impl Decision<Unmasked> {
    /// The remark about the block.
    pub(crate) fn remark(&self) -> Remark {
        match self {
            Decision::Applied(_) => {
                (true, "a version that loads for all lanes, where these are in bounds".into())
            }
            Decision::Missed(why) => (false, (*why).into()),
        }
    }
}

impl<'a> Versioning<'a> {
    pub(crate) fn new(planner: Planner<'a>, analyses: &'a Analyses) -> Self {
        Self { planner, analyses, coalescing: Coalescing::new(planner, analyses) }
    }

    /// The decision about each block that may have such a version.
    pub(crate) fn blocks(&self) -> Vec<(BlockId, Decision<Unmasked>)> {
        let func = self.planner.func;
        let launch = self.planner.launch;
        if launch.team > 1 && !launch.leaves_at_edges() {
            return Vec::new();
        }
        let large = is_large(func);
        let (mut decisions, mut versions) = (Vec::new(), 0);
        for id in func.reverse_postorder() {
            if !self.analyses.may_have_versions(func, id) {
                continue;
            }
            let decision = if large {
                Decision::Missed("the function is large")
            } else if versions == UNMASKED_VERSIONS_MAX {
                Decision::Missed("the function has the most versions that it may have")
            } else if let Some(mask) = self.mask_of_loads(id) {
                versions += 1;
                Decision::Applied(Unmasked { mask, version: Rc::new(self.version(id)) })
            } else {
                continue;
            };
            decisions.push((id, decision));
        }
        decisions
    }

    /// How the version of a block accesses memory.
    fn version(&self, id: BlockId) -> Version {
        let accesses = self.planner.for_all_lanes(id, self.analyses);
        Version { accesses, checks: self.coalescing.block(id, true).map(Rc::new) }
    }

    /// The mask of a block that only computes, and loads consecutive elements or one element; a mask of
    /// another block, which is not known.
    fn mask_of_loads(&self, id: BlockId) -> Option<Value> {
        let block = &self.planner.func.blocks[id.0 as usize];
        let mut mask = None;
        let mut loads = 0;
        if block.ops.len() > UNMASKED_VERSION_MAX_OPS {
            return None;
        }
        for op in &block.ops {
            match &op.kind {
                OpKind::Inst(site) => {
                    let inst = site.inst(self.planner.function)?;
                    if *mask.get_or_insert(op.uses[0]) != op.uses[0] {
                        return None;
                    }
                    if !self.coalescing.is_early(*site, inst) {
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
                | OpKind::AddWarps(_)
                | OpKind::Spare(..)
                | OpKind::And
                | OpKind::AndNot
                | OpKind::Or => {}
                OpKind::Load(_)
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
                | OpKind::EntryTurns => return None,
            }
        }
        let mask = mask.filter(|_| loads > 0)?;
        let elsewhere = self.analyses.def_use.op(mask).is_some_and(|(at, _)| at != id);
        (elsewhere && !self.analyses.constants.is_known(mask)).then_some(mask)
    }

    /// Whether a load accesses consecutive elements or one element, in memory that all lanes share.
    fn is_beside(&self, inst: &Inst, op: &Op) -> bool {
        if !matches!(inst.op, O::Ld | O::LdNc) || inst.guard.is_some() || inst.mods.sem() != Sem::Weak {
            return false;
        }
        let Some(access) = ordered_access(self.planner.program, inst, false) else { return false };
        let Some(Src::Addr(Addr { base: Base::Reg(_), index: None, .. })) = inst.srcs.first() else {
            return false;
        };
        let func = self.planner.func;
        let shape = |name: Value| &func.shapes[name.0 as usize];
        let beside = op.uses.get(1).is_some_and(|name| match shape(*name) {
            Shape::Uniform(_) => true,
            Shape::Affine(pattern) => {
                pattern.rows.is_empty()
                    && func.kinds[name.0 as usize] == Kind::Reg(RegClass::R64)
                    && self.planner.vectors().is_regular(access.space, access.bytes(), pattern, false)
                    && op.defs.iter().all(|def| *shape(*def) == Shape::Varying)
            }
            Shape::Varying | Shape::Bottom => false,
        });
        beside
            && matches!(access.space, Space::Global | Space::Const | Space::Shared)
            && op.defs.len() == access.count as usize
    }
}
