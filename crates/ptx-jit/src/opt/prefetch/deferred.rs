//! Deferred prefetches: prefetches for the next iteration of a loop are issued behind the barrier, between
//! computations.
//!
//! Where a tile is loaded, the processor already waits for memory, and prefetches issued there wait too.
//! Behind the barrier a long block computes, and memory is idle. So a block of a coarse warp that loads a
//! tile leaves the addresses of the next tile's lines in memory, and the block behind the barrier prefetches
//! them. Lines that continue the same rows go into the first-level cache, lines of later rows into the
//! second.
//!
//! That block issues them one by one between its operations, if it may become one LLVM block, or a few in
//! each iteration of a chunk loop. (A load stays behind the prefetches before it, and LLVM would place all
//! loads of a section first.)
//!
//! Not handled: a single warp, and a coarse warp without a long block behind the barrier, prefetch beside
//! their loads.
//!
//! Invariant: both blocks are full copies, in a loop whose iterations meet at a barrier. The block that
//! issues the prefetches is emitted later, when it is known how many lines are deferred.

use super::Prefetching;
use crate::analysis::loop_kind::LoopKind;
use crate::effects;
use crate::llvm::Builder;
use crate::tuning::{
    DEFERRED_PREFETCH_MAX_LINES, DEFERRED_PREFETCH_MAX_OPS, DEFERRED_PREFETCH_MIN_OPS,
    DEFERRED_PREFETCH_OPS_PER_LINE,
};
use crate::wir::decision::Decision;
use crate::wir::prefetch::{Ahead, Deferral, Issue, Prefetch};
use crate::wir::section::Section;
use crate::wir::{Block, BlockId, Func, Kind, LaunchShape, Op, OpKind, Shape, Value};
use ptx::ir::{Function, RegClass};

impl Prefetching<'_> {
    /// Decides for each block whether it defers its prefetches.
    pub(super) fn defer(&self, func: &mut Func) {
        if self.launch.team == 1 {
            return;
        }
        let mut places = vec![None; func.blocks.len()];
        for (place, id) in func.reverse_postorder().into_iter().enumerate() {
            places[id.0 as usize] = Some(place);
        }
        let is_later = |id: BlockId, to: BlockId| places[to.0 as usize] > places[id.0 as usize];
        for id in (0..func.blocks.len() as u32).map(BlockId) {
            let deferral = self.deferral(func, &func.blocks[id.0 as usize]);
            func.blocks[id.0 as usize].deferral = deferral.filter(|deferral| is_later(id, deferral.to));
        }
    }

    /// The block behind the barrier that a block ends at, if it is long, and how many lines it issues at
    /// most.
    fn deferral(&self, func: &Func, block: &Block) -> Option<Deferral> {
        if !block.ops.iter().any(has_next_iteration) {
            return None;
        }
        let to = block.behind_barrier(func)?;
        let behind = &func.blocks[to.0 as usize];
        let fits = |block: &Block| block.full && self.loop_kind(block) == LoopKind::Barrier;
        let count = behind.ops.len();
        let vectors = count * (self.launch.lanes() / self.launch.chunk) as usize;
        let lines =
            (vectors / DEFERRED_PREFETCH_OPS_PER_LINE).min(DEFERRED_PREFETCH_MAX_LINES as usize) as u32;
        (fits(block) && fits(behind) && count >= DEFERRED_PREFETCH_MIN_OPS).then_some(Deferral { to, lines })
    }
}

/// Whether an access has a prefetch for the next iteration.
fn has_next_iteration(op: &Op) -> bool {
    let next = op.prefetches().next;
    matches!(next, Some(Decision::Applied(Prefetch { ahead: Ahead::Iteration { .. }, .. })))
}

/// Decides how blocks issue the prefetches that are deferred to them, once their sections are known.
pub(crate) fn issue(func: &mut Func, function: &Function, launch: LaunchShape) {
    let targets = func.blocks.iter().filter_map(|block| block.deferral).map(|deferral| deferral.to);
    for to in targets.collect::<Vec<_>>() {
        let issue = issue_in(func, function, launch, &func.blocks[to.0 as usize]);
        func.blocks[to.0 as usize].issue = Some(issue);
    }
}

/// How a block issues prefetches: in its first chunk loop, or in its first long section.
fn issue_in(func: &Func, function: &Function, launch: LaunchShape, block: &Block) -> Issue {
    let long = |section: &&Section| {
        section.is_chunk_loop() || section.end - section.start >= DEFERRED_PREFETCH_MIN_OPS
    };
    let Some(section) = block.sections.iter().find(long) else { return Issue::AtEnd };
    if section.is_chunk_loop() {
        return Issue::InIterations;
    }
    let (start, ops) = (section.start, &block.ops[section.start..section.end]);
    let chunks = launch.lanes() / launch.chunk;
    let vectors = ops.iter().filter(|op| computes(func, function, op)).count() as u32 * chunks;
    let one_block = Builder::ASKS_BESIDE && ops.len() as u32 * chunks <= DEFERRED_PREFETCH_MAX_OPS;
    if one_block && vectors > 0 { Issue::Between { start, vectors } } else { Issue::AtOnce(start) }
}

/// Whether an operation computes a vector of words for each chunk, behind which a prefetch can be issued.
pub(crate) fn computes(func: &Func, function: &Function, op: &Op) -> bool {
    let OpKind::Inst(site) = op.kind else { return false };
    let pure = site.inst(function).is_some_and(effects::is_pure);
    let vector = |def: &Value| {
        let at = def.0 as usize;
        func.shapes[at] == Shape::Varying && func.kinds[at] == Kind::Reg(RegClass::R32)
    };
    pure && op.defs.len() == 1 && op.defs.iter().all(vector)
}
