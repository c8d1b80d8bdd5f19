//! Emits the prefetches of grid-stride loops, which [`opt::prefetch`](crate::opt::prefetch) decided.
//!
//! Invariant: only time depends on a prefetch; a prefetch of an address that does not exist does nothing.

use super::Codegen;
use super::load_store::Addresses;
use super::prefetch_next_cta::number_of;
use crate::wir::Op;
use crate::wir::access::Access;
use crate::wir::decision::Decision;
use crate::wir::prefetch::{GridStride, Later};

impl Codegen<'_> {
    /// Emits the prefetches beside a load in a loop with a long stride. `whole`: all lanes load.
    pub(super) fn prefetch_grid_stride(&mut self, access: Access, whole: bool, places: &Addresses, op: &Op) {
        let (Some(decision), Addresses::Affine(bases, _)) = (op.prefetches().grid_stride, places) else {
            return;
        };
        self.remark("prefetch", decision.remark(whole));
        let Decision::Applied(GridStride { part, cache, later }) = decision else { return };
        if !whole {
            return;
        }
        let bytes = self.lanes * access.bytes();
        let next = self.b.add(bases[0], self.c64(part.into()));
        self.prefetch_lines(next, bytes, false, number_of(cache));
        let Some(Later { step, iterations, cache }) = later else { return };
        if let Some(step) = self.product(step) {
            let far = self.b.mul(step, self.c64(iterations.into()));
            self.prefetch_lines(self.b.add(bases[0], far), bytes, false, number_of(cache));
        }
    }
}
