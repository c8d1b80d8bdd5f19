//! The remarks about prefetches.

use super::grid_stride::NOT_ALL_IN_A_ROW;
use crate::mem::remarks::Remark;
use crate::wir::decision::Decision;
use crate::wir::prefetch::{Ahead, GridStride, Prefetch};

impl Decision<Prefetch> {
    /// The remark about an access. `deferred`: its lines are issued behind the barrier, if they fit there.
    pub(crate) fn remark(self, deferred: bool) -> Remark {
        let Prefetch { ahead, cache, .. } = match self {
            Decision::Applied(prefetch) => prefetch,
            Decision::Missed(why) => return (false, why.into()),
        };
        let next = match ahead {
            Ahead::Cta { .. } => "CTA",
            Ahead::Iteration { .. } => "iteration",
        };
        let when = if deferred { ", behind the barrier while it has room" } else { "" };
        (true, format!("for the next {next}, into the {cache}-level cache{when}").into())
    }
}

impl Decision<GridStride> {
    /// The remark about a load. `whole`: it is emitted where all lanes are active.
    pub(crate) fn remark(self, whole: bool) -> Remark {
        match self {
            Decision::Applied(_) if whole => {
                (true, "a loop of the grid's stride: what the next CTA reads".into())
            }
            Decision::Applied(_) => (false, NOT_ALL_IN_A_ROW.into()),
            Decision::Missed(why) => (false, why.into()),
        }
    }
}
