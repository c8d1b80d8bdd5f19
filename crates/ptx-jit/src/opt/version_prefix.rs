//! Versioning on the leading active lanes: blocks that a coarse warp executes under a mask of its first
//! lanes, where only the launch or the iteration knows how many there are.
//!
//! In the steps of a reduction tree, `t < half`, fewer and fewer lanes are active, counted from the first.
//! Under masks each step would cost as much as the first. So such a block has several versions: for exactly
//! one, two, four and more chunks of lanes, with constant masks; for a part of one chunk; and the block
//! itself for all other cases. Scalar comparisons select the version.
//!
//! Invariant: each version executes exactly the lanes of the mask. Other blocks read the results of the block
//! through phis only.

use crate::analysis::Analyses;
use crate::analysis::constant::Facts;
use crate::analysis::leading_lanes::Masks;
use crate::mem::plan::Planner;
use crate::mem::remarks::Remark;
use crate::tuning::PREFIX_VERSIONS_MAX;
use crate::wir::decision::Decision;
use crate::wir::version::{LeadingVersion, LeadingVersions, Version};
use crate::wir::{BlockId, OpKind, Value};
use std::rc::Rc;

/// Why a block under another mask has no such versions.
const OTHER_LANES: &str = "the active lanes are not the first ones up to a scalar";

impl Decision<LeadingVersions> {
    /// The remark about the block.
    pub(crate) fn remark(&self) -> Remark {
        match self {
            Decision::Applied(LeadingVersions { versions, .. }) => {
                (true, format!("{} versions for the first lanes alone", versions.len()).into())
            }
            Decision::Missed(why) => (false, (*why).into()),
        }
    }
}

/// Whether a block has such versions, unless the function has too many or the block continues a warp strip.
pub(crate) fn has_versions(planner: Planner<'_>, analyses: &Analyses, id: BlockId) -> bool {
    let Planner { func, function, .. } = planner;
    let masks = Masks { func, function, analyses };
    analyses.may_have_versions(func, id)
        && mask_of(planner, analyses, id).is_some_and(|mask| masks.leading_lanes(mask).is_some())
}

/// The decision about each block that may have such versions. A block that continues a warp strip has none.
pub(crate) fn decide(
    planner: Planner<'_>,
    analyses: &mut Analyses,
) -> Vec<(BlockId, Decision<LeadingVersions>)> {
    let func = planner.func;
    if planner.launch.team == 1 {
        return Vec::new();
    }
    let (mut decisions, mut versioned) = (Vec::new(), 0);
    let continued =
        |id: &BlockId| func.blocks[id.0 as usize].strips.as_ref().is_some_and(|strips| strips.continued);
    for id in func.reverse_postorder().into_iter().filter(|id| !continued(id)) {
        if !analyses.may_have_versions(func, id) {
            continue;
        }
        let decision = if versioned == PREFIX_VERSIONS_MAX {
            Decision::Missed("the function has the most versions that it may have")
        } else if let Some(mask) = mask_of(planner, analyses, id) {
            let masks = Masks { func, function: planner.function, analyses };
            match masks.leading_lanes(mask) {
                Some(lanes) => {
                    versioned += 1;
                    let rest = masks.complement(mask).filter(|rest| !analyses.rare[rest.0 as usize]);
                    let versions = versions(planner, analyses, id, (mask, rest));
                    Decision::Applied(LeadingVersions { mask, rest, lanes: Rc::new(lanes), versions })
                }
                None => Decision::Missed(OTHER_LANES),
            }
        } else {
            continue;
        };
        decisions.push((id, decision));
    }
    decisions
}

/// The mask that a block is executed under: a mask of another block, which is not known.
fn mask_of(planner: Planner<'_>, analyses: &Analyses, id: BlockId) -> Option<Value> {
    let mut ops = planner.func.blocks[id.0 as usize].ops.iter();
    let mask = ops.find_map(|op| match op.kind {
        OpKind::AddLanes(_) => Some(op.uses[1]),
        _ => None,
    })?;
    let elsewhere = analyses.def_use.op(mask).is_some_and(|(at, _)| at != id);
    let computed = !analyses.rare[mask.0 as usize] && !analyses.constants.is_known(mask);
    (elsewhere && computed).then_some(mask)
}

/// The versions of a block under a mask. `rest`: the mask of the other lanes.
fn versions(
    planner: Planner<'_>,
    analyses: &mut Analyses,
    id: BlockId,
    (mask, rest): (Value, Option<Value>),
) -> Vec<LeadingVersion> {
    let all = planner.launch.lanes() / planner.launch.chunk;
    let whole = (0..).map(|power| 1 << power).take_while(|chunks| *chunks < all);
    let each = std::iter::once((1, false)).chain(whole.map(|chunks| (chunks, true)));
    let version = |(chunks, exact)| {
        let version = version(planner, analyses, id, (mask, rest), (chunks, exact));
        LeadingVersion { chunks, exact, version: Rc::new(version) }
    };
    each.map(version).collect()
}

/// How a version accesses memory whose mask has lanes of the first chunks only: all of their lanes, if it is
/// exact.
fn version(
    planner: Planner<'_>,
    analyses: &mut Analyses,
    id: BlockId,
    (mask, rest): (Value, Option<Value>),
    (chunks, exact): (u32, bool),
) -> Version {
    let Planner { func, function, program, layout, launch, .. } = planner;
    let all = u64::MAX >> (64 - launch.chunk);
    let bits = |within: u64| -> Vec<Option<u64>> {
        let chunk = |c: u32| match (c < chunks, exact) {
            (true, true) => Some(within),
            (true, false) => None,
            (false, _) => Some(within ^ all),
        };
        (0..launch.lanes() / launch.chunk).map(chunk).collect()
    };
    let mut masks = vec![(mask, bits(all))];
    masks.extend(rest.map(|rest| (rest, bits(0))));
    let Analyses { bounds, addresses, constants, .. } = analyses;
    let facts = Facts { func, function, program, layout, launch, bounds };
    let accesses = constants.in_version(facts, id, &masks, |constants| {
        let full = func.blocks[id.0 as usize].full;
        planner.by_site(id, planner.block(id, addresses, constants, full))
    });
    Version { accesses, checks: None }
}
