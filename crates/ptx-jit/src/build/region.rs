//! Small divergent regions: the blocks between a divergent branch and its reconvergence point, where there
//! are few and no loop.
//!
//! [`if_convert`](super::cfg) executes them block by block under masks.
//!
//! Invariant: a region is entered at its branch only, and left at its end only.

use crate::tuning::IF_CONVERSION_MAX_BLOCKS;
use crate::wir::Effects;
use ptx::ir::{Function, Terminator};
use ptx::isa::Space;
use std::collections::BTreeSet;

/// The blocks between a branch and its reconvergence point, in ascending order.
#[derive(Clone, Debug)]
pub(super) struct Region {
    pub(super) blocks: Vec<u32>,
    /// The reconvergence point.
    pub(super) end: u32,
    /// Whether it accesses no memory but shared memory: there a masked access costs as much as a plain one.
    pub(super) near: bool,
}

/// The region of a branch, if it has one.
pub(super) fn find(function: &Function, block: u32, machine: &impl Effects) -> Option<Region> {
    let (blocks, end) = between(function, block, IF_CONVERSION_MAX_BLOCKS)?;
    let entered = (0..).zip(&function.blocks).any(|(from, content)| {
        from != block
            && !blocks.contains(&from)
            && content.term.successors().iter().any(|to| blocks.contains(&to.0))
    });
    let mut insts = blocks.iter().flat_map(|block| &function.blocks[*block as usize].insts);
    let near = insts.all(|inst| !machine.accesses(inst) || inst.mods.space() == Space::Shared);
    (!entered).then_some(Region { blocks, end, near })
}

/// The blocks between a branch and its reconvergence point, in ascending order, and that point. `None`: there
/// are more than `most`, a loop is among them, the branch leaves a loop, or lanes wait or exit there.
pub(crate) fn between(function: &Function, block: u32, most: usize) -> Option<(Vec<u32>, u32)> {
    let Terminator::Branch { then, els, .. } = &function.blocks[block as usize].term else { return None };
    let (low, high) = (then.0.min(els.0), then.0.max(els.0));
    if low == high || low <= block {
        return None;
    }
    let mut ahead = BTreeSet::from([low, high]);
    let mut blocks = Vec::new();
    while ahead.len() > 1 || blocks.is_empty() {
        let from = ahead.pop_first()?;
        let term = &function.blocks[from as usize].term;
        if !matches!(term, Terminator::Goto(..) | Terminator::Branch { .. }) || blocks.len() == most {
            return None;
        }
        for to in term.successors().into_iter().map(|to| to.0) {
            if to <= from {
                return None;
            }
            ahead.insert(to);
        }
        blocks.push(from);
    }
    Some((blocks, ahead.pop_first()?))
}
