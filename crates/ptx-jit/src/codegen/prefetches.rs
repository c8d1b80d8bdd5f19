//! The prefetches of a function, while they are emitted.

use super::prefetch_deferred::DeferredPrefetches;
use super::prefetch_next_cta::{BesideAccess, NextCtaDistance};

/// The prefetches of a function.
#[derive(Default)]
pub(super) struct Prefetches {
    /// Prefetches that are issued behind barriers.
    pub(super) deferred: DeferredPrefetches,
    /// The prefetch beside the access that is emitted.
    pub(super) beside_access: Option<BesideAccess>,
    /// The last distance to the next CTA's addresses, with what it is for and the LLVM block that it is in.
    pub(super) next_cta_distance: Option<NextCtaDistance>,
}
