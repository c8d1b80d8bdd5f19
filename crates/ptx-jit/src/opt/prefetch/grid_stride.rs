//! Prefetches of grid-stride loops, whose step between iterations is known only at launch, such as the size
//! of the grid.
//!
//! Such a loop reads a few bytes of many pages, which no hardware prefetcher follows. But the threads of the
//! next CTA continue where this CTA's part of a page ends, and the same OS thread executes them next. So a
//! load also prefetches what follows the CTA's part. Where the step is the grid's, no other CTA reads these
//! lines, so they go into the first-level cache alone: on a Zen 5, a sum of 64 MiB takes a tenth less time
//! than with prefetches into all caches. Other loops, and loops whose parts are so short that an iteration
//! takes longer than the prefetch, prefetch the part of the next iteration too, into all caches.
//!
//! On a Zen 4 few lines can be on their way into the first-level cache, and many more into the second
//! ([`Tuning::l2_prefetch`](crate::tuning::Tuning)). There, the next CTA's part and long parts of later
//! iterations go into the second-level cache; prefetches into the first-level cache make the sum slower than
//! no prefetch. A Sapphire Rapids gains as much. The cause was not measured; the lines of one CTA map to few
//! sets of the first-level cache, so they may be evicted before they are used.
//!
//! The loads of a filter's row have addresses that differ by a few bytes, often in blocks of their own, which
//! are skipped at the edges of a picture. Only the first of them prefetches ([`Prefetching::repeated`]): a
//! prefetch costs as much as a load.
//!
//! Invariant: only loads of consecutive elements of global memory have such a prefetch. Code in which lanes
//! may be inactive does not issue it.

use super::Prefetching;
use crate::analysis::distance::{Distance, Distances, Sum};
use crate::analysis::loop_kind::LoopKind;
use crate::tuning::{CACHE_LINE_BYTES, GRID_STRIDE_ITERATIONS_AHEAD, GRID_STRIDE_LONG_BYTES};
use crate::wir::access::Form;
use crate::wir::decision::Decision;
use crate::wir::prefetch::{Cache, Fact, GridStride, Later};
use crate::wir::uses::DefUse;
use crate::wir::{Block, Func, Op, OpKind};
use ptx::ir::Src;
use ptx::isa::Space;
use std::collections::{HashMap, HashSet};

/// Why a load in such a loop has no prefetch.
pub(super) const NOT_ALL_IN_A_ROW: &str = "a loop of the grid's stride, but lanes may be inactive or apart";

impl Prefetching<'_> {
    /// The loads in loops with a long stride whose elements an earlier load of the same iteration prefetches,
    /// by block and index: their addresses are less than a line apart. The earlier load may be in a block
    /// that is not executed; then nothing prefetches them.
    pub(super) fn repeated(&self, func: &Func, def_use: &DefUse) -> HashSet<(usize, usize)> {
        let distances = Distances { func, function: self.function, def_use };
        let mut seen: HashMap<Sum, Vec<i64>> = HashMap::new();
        let mut repeated = HashSet::new();
        for (id, block) in func.blocks.iter().enumerate() {
            for (at, op) in block.ops.iter().enumerate() {
                let (Some(Decision::Applied(_)), OpKind::Inst(site)) =
                    (self.grid_stride(block, op), &op.kind)
                else {
                    continue;
                };
                let address = site.inst(self.function).and_then(|inst| inst.srcs.first());
                let offset = if let Some(Src::Addr(addr)) = address { addr.offset } else { 0 };
                let Some(Distance { from, by, .. }) = distances.of(op.uses[1]) else { continue };
                let by = by.wrapping_add(offset);
                let known = seen.entry(from).or_default();
                let near = |other: &i64| by.wrapping_sub(*other).unsigned_abs() < CACHE_LINE_BYTES.into();
                if known.iter().any(near) {
                    repeated.insert((id, at));
                } else {
                    known.push(by);
                }
            }
        }
        repeated
    }

    /// The decision about a load in a loop with a long stride.
    pub(super) fn grid_stride(&self, block: &Block, op: &Op) -> Option<Decision<GridStride>> {
        let plan = op.access.as_ref()?;
        let (Form::Affine(pattern), false) = (&plan.form, plan.access.write) else { return None };
        if plan.access.space != Space::Global {
            return None;
        }
        // Loops whose iterations meet at a barrier prefetch as all loads in such loops do.
        if self.loop_kind(block) != LoopKind::Loop {
            return None;
        }
        let step = self.evolution.turn[op.uses.get(1)?.0 as usize].filter(|step| !step.is_constant())?;
        let bytes = plan.access.bytes();
        let row = pattern.lanes.iter().enumerate().all(|(at, lane)| *lane == (at as u32 * bytes) as i32);
        // A masked copy may have a version in which all lanes load.
        let whole = plan.active.whole || !block.full;
        if !row || pattern.by_chunk || !whole {
            return Some(Decision::Missed(NOT_ALL_IN_A_ROW));
        }
        // The threads of the next CTA go on behind those of a row.
        let [nx, ny, nz] = self.launch.ntid;
        let part = bytes * if ny * nz > 1 { nx * self.launch.ctas } else { nx };
        let grid = step.facts.iter().flatten().any(|fact| matches!(fact, Fact::Ctas(_)));
        let long = grid && part >= GRID_STRIDE_LONG_BYTES;
        let later = |iterations: u32, cache: Cache| Some(Later { step, iterations, cache });
        let (cache, later) = match (self.target.tuning().l2_prefetch, long) {
            (true, true) => (Cache::Second, later(GRID_STRIDE_ITERATIONS_AHEAD, Cache::Second)),
            (true, false) => (Cache::Second, later(1, Cache::First)),
            (false, true) => (Cache::FirstAlone, None),
            (false, false) => (Cache::First, later(1, Cache::First)),
        };
        Some(Decision::Applied(GridStride { part, cache, later }))
    }
}
