//! Time: wall-clock time and CPU time.
//!
//! Invariant: both times are of the same work. CPU time excludes other programs of the machine.

use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// The time of a piece of work.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Took {
    /// From its start to its end.
    pub(crate) wall: Duration,
    /// Of all threads of the process.
    pub(crate) cpu: Duration,
}

impl Took {
    /// The time that is compared.
    pub(crate) fn by(self, clock: Clock) -> f64 {
        match clock {
            Clock::Wall => self.wall.as_secs_f64(),
            Clock::Cpu => self.cpu.as_secs_f64(),
        }
    }
}

/// The time to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    Wall,
    Cpu,
}

/// The wall-clock time of `work`.
pub(crate) fn wall<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let began = Instant::now();
    let result = work();
    (began.elapsed(), result)
}

/// CPU time of all threads of this process. The latest time of another running thread can be missing.
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

/// The median of several times.
pub(crate) fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}
