//! OS threads that help with launches, kept from launch to launch.
//!
//! The thread that launches works itself; the pool's threads join it when a launch turns out to be worth it ([`Pool::help`]). A thread that
//! nobody has wanted for a while ends.
//!
//! Invariants: when [`Pool::finish`] returns, no thread of the pool works on the launch or holds anything of it; no launch waits for a
//! thread that has not begun to work on it.

use super::grid::Launching;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a thread waits for work before it ends. Chosen: launches that follow each other find it.
const PATIENCE: Duration = Duration::from_secs(5);

/// Threads for launches.
pub(crate) struct Pool {
    shared: Arc<Shared>,
    cores: u32,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// There is work, or the pool is gone.
    work: Condvar,
    /// A thread has ended its work.
    done: Condvar,
}

#[derive(Default)]
struct State {
    jobs: Vec<Job>,
    /// Numbers of jobs.
    count: u64,
    /// Threads that wait for work.
    idle: u32,
    gone: bool,
}

/// A launch that wants help.
struct Job {
    number: u64,
    launching: Arc<Launching>,
    /// Numbers of the threads that it wants yet.
    wanted: std::ops::Range<u32>,
    /// Threads that work on it.
    busy: u32,
    /// Whether one of them panicked.
    broken: bool,
}

/// A thread that works on a launch, until it is dropped.
struct Busy<'a> {
    shared: &'a Shared,
    number: u64,
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        if let Some(job) = state.jobs.iter_mut().find(|job| job.number == self.number) {
            job.busy -= 1;
            job.broken |= std::thread::panicking();
        }
        drop(state);
        self.shared.done.notify_all();
    }
}

/// A launch that is being helped.
pub(crate) struct Help(u64);

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that can panic happens between the steps that keep it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a thread of the pool does.
    fn run(&self) {
        let mut state = self.state();
        loop {
            let wants = state.jobs.iter_mut().find(|job| !job.wanted.is_empty());
            if let Some(job) = wants
                && let Some(thread) = job.wanted.next()
            {
                job.busy += 1;
                let busy = Busy { shared: self, number: job.number };
                let launching = Arc::clone(&job.launching);
                drop(state);
                launching.work(thread, None);
                drop(launching);
                drop(busy);
                state = self.state();
                continue;
            }
            if state.gone {
                return;
            }
            state.idle += 1;
            let (woken, waited) =
                self.work.wait_timeout(state, PATIENCE).unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.idle -= 1;
            if waited.timed_out() && state.jobs.iter().all(|job| job.wanted.is_empty()) {
                return;
            }
        }
    }
}

impl Pool {
    /// A pool without threads yet.
    pub(crate) fn new() -> Self {
        // Asking the system takes longer than a small launch.
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
        Self { shared: Arc::default(), cores }
    }

    /// How many threads the machine runs at once.
    pub(crate) fn cores(&self) -> u32 {
        self.cores
    }

    /// Has threads join a launch, with those numbers, as soon as they can.
    pub(crate) fn help(&self, launching: &Arc<Launching>, threads: std::ops::Range<u32>) -> Help {
        let mut state = self.shared.state();
        state.count += 1;
        let number = state.count;
        let wanted = threads.len() as u32;
        let spawn = wanted.saturating_sub(state.idle);
        state.jobs.push(Job {
            number,
            launching: Arc::clone(launching),
            wanted: threads,
            busy: 0,
            broken: false,
        });
        drop(state);
        self.shared.work.notify_all();
        for _ in 0..spawn {
            let shared = Arc::clone(&self.shared);
            let builder = std::thread::Builder::new().name("ptxvm".to_owned());
            // With fewer threads than asked for it only takes longer.
            if builder.spawn(move || shared.run()).is_err() {
                break;
            }
        }
        Help(number)
    }

    /// Waits until no thread works on the launch any more. It gets no more help.
    ///
    /// # Panics
    /// Where one of the threads did, which is a bug.
    pub(crate) fn finish(&self, help: Help) {
        let mut state = self.shared.state();
        loop {
            let Some(at) = state.jobs.iter().position(|job| job.number == help.0) else { return };
            let job = &mut state.jobs[at];
            job.wanted = 0..0;
            if job.busy == 0 {
                let job = state.jobs.swap_remove(at);
                drop(state);
                assert!(
                    !job.broken,
                    "ptxvm bug: a thread of the launch panicked; please report the program and its launch"
                );
                return;
            }
            state = self.shared.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // The last who drops it may be a thread of the pool: nobody waits for anybody.
        self.shared.state().gone = true;
        self.shared.work.notify_all();
    }
}
