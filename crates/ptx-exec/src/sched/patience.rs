//! How long warps and CTAs before a trap may continue, so that the first trap in their order is reported.
//!
//! Invariant: only processor time of the calling thread counts. On a loaded machine a thread that waits for a processor does not lose the time in
//! which an earlier warp would trap.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Processor time that each thread may spend on warps or CTAs before a trap. Chosen: a short delay of the report.
const PATIENCE: Duration = Duration::from_secs(1);

/// A thread's processor time when its patience began.
#[derive(Clone, Copy)]
pub(super) struct Patience(Duration);

impl Patience {
    /// Begins now, for the calling thread.
    pub(super) fn begin() -> Self {
        Self(processor_time())
    }

    /// Whether the calling thread, which began it, has spent the time.
    pub(super) fn is_over(self) -> bool {
        processor_time().saturating_sub(self.0) > PATIENCE
    }
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    // The clock is never negative, and nanoseconds are below a second.
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
