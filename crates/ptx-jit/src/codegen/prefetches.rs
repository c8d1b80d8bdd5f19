//! The prefetches of a function, while they are emitted.

use super::prefetch_deferred::DeferredPrefetches;
use super::prefetch_next_cta::{NextCtaDistance, Prefetch};
use crate::wir;
use std::collections::HashSet;

/// The prefetches of a function.
#[derive(Default)]
pub(super) struct Prefetches {
    /// Prefetches that are issued behind barriers.
    pub(super) deferred: DeferredPrefetches,
    /// The prefetch beside the access that is emitted.
    pub(super) beside_access: Option<Prefetch>,
    /// The last distance to the next CTA's addresses, with the growth and the LLVM block that it is for.
    pub(super) next_cta_distance: Option<NextCtaDistance>,
    /// Lines that the block that is emitted has prefetched, relative to an address, and whether for a write.
    pub(super) issued: HashSet<(wir::Value, i64, bool)>,
}
