//! One of the sixteen barriers of a CTA. PTX ISA §9.7.12.1.
//!
//! A warp arrives when all its live lanes have arrived, and counts as 32 threads. Without a thread count the
//! barrier completes when all warps of the CTA that have not exited have arrived; with a thread count, when
//! that many threads have arrived.
//!
//! Invariant: a completed barrier is in its initial state again, and each waiting warp is released exactly
//! once.

use crate::bound::BarrierKind;
use crate::frame::BarrierWait;
use crate::interp::{Arrival, Reduced, is_reduction};
use crate::lanes::LANES;

/// State of a barrier.
#[derive(Clone, Debug, Default)]
pub(super) struct Barrier {
    /// Warps that have arrived.
    arrived: u32,
    /// Warps that have lanes waiting.
    waiting: Vec<u32>,
    /// Whether a participant gave no thread count, so that all threads of the CTA must arrive.
    all: bool,
    /// The thread count that participants gave.
    count: Option<u32>,
    /// The kind of reduction, if the participants reduce a predicate.
    reduction: Option<BarrierKind>,
    popc: u32,
    falsities: u32,
}

/// The result of a completed barrier.
pub(super) struct Release {
    /// Warps that waited.
    pub(super) warps: Vec<u32>,
    /// Result of the reduction.
    pub(super) reduced: Reduced,
}

impl Barrier {
    /// Records the arrival of a warp; `warps` is the number of warps of the CTA.
    ///
    /// # Errors
    /// The reason why this form cannot be combined with the forms that arrived before.
    pub(super) fn arrive(
        &mut self,
        warp: u32,
        wait: &BarrierWait,
        arrival: Arrival,
        lanes: u32,
        warps: u32,
        mends: bool,
    ) -> Result<(), String> {
        let reduction = is_reduction(wait.kind).then_some(wait.kind);
        if self.arrived == 0 {
            self.reduction = reduction;
        } else if self.reduction != reduction && !mends {
            return Err("reductions mixed with other forms on one barrier".to_owned());
        }
        match wait.count {
            None => self.all = true,
            Some(count) if self.count.is_some_and(|c| c != count) && mends => {}
            Some(count) if self.count.is_some_and(|c| c != count) => {
                let other = self.count.unwrap_or(0);
                return Err(format!("thread counts {other} and {count} on one barrier"));
            }
            Some(count) => self.count = Some(count),
        }
        if let (true, Some(count)) = (self.all, self.count)
            && count != warps * LANES as u32
            && !mends
        {
            return Err(format!(
                "a thread count of {count} and all {} threads of the CTA on one barrier",
                warps * LANES as u32
            ));
        }
        self.arrived += 1;
        self.popc += wait.truths.count_ones();
        self.falsities += (lanes & !wait.truths).count_ones();
        if arrival.waiting != 0 {
            self.waiting.push(warp);
        }
        Ok(())
    }

    /// Completes the barrier if all participants have arrived; `live` is the number of warps that have not
    /// exited.
    pub(super) fn complete(&mut self, live: u32) -> Option<Release> {
        let done = self.arrived != 0
            && (self.all && self.arrived >= live
                || self.count.is_some_and(|count| self.arrived * LANES as u32 >= count));
        done.then(|| {
            let gone = std::mem::take(self);
            Release { warps: gone.waiting, reduced: Reduced { popc: gone.popc, all: gone.falsities == 0 } }
        })
    }

    /// Releases the waiting warps of an incomplete barrier. `None` if no warp waits.
    pub(super) fn give_up(&mut self) -> Option<Release> {
        if self.waiting.is_empty() {
            return None;
        }
        let gone = std::mem::take(self);
        Some(Release { warps: gone.waiting, reduced: Reduced { popc: gone.popc, all: gone.falsities == 0 } })
    }

    /// The missing arrivals, as text.
    pub(super) fn progress(&self, live: u32) -> String {
        match self.count {
            Some(count) => format!("{} of {count} threads have arrived", self.arrived * LANES as u32),
            None => format!("{} of {live} warps have arrived", self.arrived),
        }
    }
}
