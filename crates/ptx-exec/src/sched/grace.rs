//! The grace period in which warps and CTAs before a trap may continue, so that the first trap in program
//! order is reported.
//!
//! Invariant: only processor time of the calling thread counts. So on a loaded machine the period does not
//! end while the thread waits for a processor.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Processor time that each thread may spend on warps or CTAs before a trap. Chosen: a short delay of the
/// report.
const GRACE: Duration = Duration::from_secs(1);

/// The processor time of a thread when its grace period began.
#[derive(Clone, Copy)]
pub(super) struct GracePeriod(Duration);

impl GracePeriod {
    /// Begins the period of the calling thread.
    pub(super) fn begin() -> Self {
        Self(processor_time())
    }

    /// Whether the period is over. Must be called by the thread that began it.
    pub(super) fn is_over(self) -> bool {
        processor_time().saturating_sub(self.0) > GRACE
    }
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    // The clock is never negative, and nanoseconds are below a second.
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
