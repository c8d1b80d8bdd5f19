//! Deferred prefetches: prefetches for the next iteration of a loop are issued behind the barrier, between
//! computations.
//!
//! Where a tile is loaded, the processor already waits for memory, and prefetches issued there wait too.
//! Behind the barrier a long block computes, and memory is idle. So a block of a coarse warp that loads a
//! tile leaves the addresses of the next tile's lines in memory, and the block behind the barrier prefetches
//! them. Lines that continue the same rows go into the first-level cache, lines of later rows into the
//! second.
//!
//! Not handled: a single warp, and a coarse warp without a long block behind the barrier, prefetch beside
//! their loads.
//!
//! Invariant: both blocks are full copies, in a loop whose iterations meet at a barrier. The block that
//! issues the prefetches is emitted later, when it is known how many lines are deferred.

use super::Prefetching;
use crate::analysis::loop_kind::LoopKind;
use crate::tuning::{DEFERRED_PREFETCH_MAX_LINES, DEFERRED_PREFETCH_MIN_OPS, DEFERRED_PREFETCH_OPS_PER_LINE};
use crate::wir::decision::Decision;
use crate::wir::prefetch::{Ahead, Deferral, Prefetch};
use crate::wir::{Block, BlockId, Func, Op};

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
