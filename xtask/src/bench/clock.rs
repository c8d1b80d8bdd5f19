//! Time spent: of the clock on the wall, and of the processors.
//!
//! Invariant: both are of the same work. CPU time leaves out what other programs of the machine took.

use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// What a piece of work took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Took {
    /// From its start to its end.
    pub(crate) wall: Duration,
    /// Of all threads of the process.
    pub(crate) cpu: Duration,
}

impl Took {
    /// The one that counts.
    pub(crate) fn by(self, clock: Clock) -> f64 {
        match clock {
            Clock::Wall => self.wall.as_secs_f64(),
            Clock::Cpu => self.cpu.as_secs_f64(),
        }
    }
}

/// Which time is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    Wall,
    Cpu,
}

/// Times `work` on the wall.
pub(crate) fn wall<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let began = Instant::now();
    let result = work();
    (began.elapsed(), result)
}

/// CPU time of all threads of this process. Of another that runs, what it took of late may be missing.
pub(crate) fn cpu() -> Duration {
    time(ClockId::ProcessCPUTime)
}

/// CPU time of this thread.
pub(crate) fn cpu_of_this_thread() -> Duration {
    time(ClockId::ThreadCPUTime)
}

fn time(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The middle of several times.
pub(crate) fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}
