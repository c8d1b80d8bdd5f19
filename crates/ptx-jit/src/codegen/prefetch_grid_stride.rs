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
//! Invariant: only time depends on a prefetch; a prefetch of an address that does not exist does nothing.

use super::Codegen;
use super::load_store::Addresses;
use super::prefetch_next_cta::{NEAREST, ONCE, SECOND};
use crate::analysis::loop_kind::LoopKind;
use crate::tuning::{GRID_STRIDE_ITERATIONS_AHEAD, GRID_STRIDE_LONG_BYTES};
use crate::wir::Op;
use crate::wir::access::Access;
use crate::wir::prefetch::Fact;
use ptx::isa::Space;

impl Codegen<'_> {
    /// Prefetches the part of memory after this CTA's part, if the load belongs to a loop with a long stride.
    /// `whole`: all lanes load.
    pub(super) fn prefetch_grid_stride(&self, access: Access, whole: bool, places: &Addresses, op: &Op) {
        // Loops whose iterations meet at a barrier prefetch as all loads in such loops do.
        let (Addresses::Affine(bases, pattern), LoopKind::Loop) = (places, self.position.loop_kind) else {
            return;
        };
        let stride = op.uses.get(1).and_then(|name| self.facts.analyses.evolution.turn[name.0 as usize]);
        let Some(stride) = stride.filter(|stride| !stride.is_constant()) else { return };
        let bytes = access.bytes();
        let row = pattern.lanes.iter().enumerate().all(|(at, lane)| *lane == (at as u32 * bytes) as i32);
        if !row || pattern.by_chunk || access.space != Space::Global || !whole {
            return self
                .missed("prefetch", "a loop of the grid's stride, but lanes may be inactive or apart");
        }
        self.applied("prefetch", "a loop of the grid's stride: what the next CTA reads");
        let part = self.job.shape.threads() * bytes;
        let next = self.b.add(bases[0], self.c64(part.into()));
        let grid = stride.facts.iter().flatten().any(|fact| matches!(fact, Fact::Ctas(_)));
        let long = grid && part >= GRID_STRIDE_LONG_BYTES;
        // The cache for the next CTA's part; and, for this CTA's part, how many iterations ahead and into
        // which cache.
        let (level, ahead) = match (self.job.target.tuning().l2_prefetch, long) {
            (true, true) => (SECOND, Some((GRID_STRIDE_ITERATIONS_AHEAD, SECOND))),
            (true, false) => (SECOND, Some((1, NEAREST))),
            (false, true) => (ONCE, None),
            (false, false) => (NEAREST, Some((1, NEAREST))),
        };
        self.prefetch_lines(next, self.lanes * bytes, false, level);
        let Some((turns, level)) = ahead else { return };
        if let Some(turn) = self.product(stride) {
            let far = self.b.mul(turn, self.c64(turns));
            self.prefetch_lines(self.b.add(bases[0], far), self.lanes * bytes, false, level);
        }
    }
}
