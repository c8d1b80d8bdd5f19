//! OS threads that help with launches, kept from launch to launch.
//!
//! The thread that launches works itself; the pool's threads join it when a launch turns out to be worth it ([`Pool::help`]). Both sides
//! look around for a moment before they sleep, as being woken takes longer than most of what they wait for. A thread that nobody has
//! wanted for a while ends.
//!
//! Invariants: when [`Pool::finish`] returns, no thread of the pool works on the launch or holds anything of it; no launch waits for a
//! thread that has not begun to work on it.

use super::grid::Launching;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a thread waits for work before it ends. Chosen: launches that follow each other find it.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a thread looks around before it sleeps. Chosen: about what waking it takes, so that at most as much is lost as is won.
const AROUND: Duration = Duration::from_micros(50);

/// Threads for launches.
pub(crate) struct Pool {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// There is work, or the pool is gone.
    work: Condvar,
    /// A thread has ended its work.
    done: Condvar,
    /// [`State::count`], for those who look around.
    count: AtomicU64,
    /// How many threads the machine runs at once.
    cores: u32,
}

#[derive(Default)]
struct State {
    jobs: Vec<Job>,
    /// Numbers of jobs.
    count: u64,
    /// Threads that look around for work, or sleep.
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
    busy: Arc<AtomicU32>,
    /// Whether one of them panicked.
    broken: bool,
}

/// A thread that works on a launch, until it is dropped.
struct Busy<'a> {
    shared: &'a Shared,
    number: u64,
    busy: Arc<AtomicU32>,
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        if let Some(job) = state.jobs.iter_mut().find(|job| job.number == self.number) {
            job.broken |= std::thread::panicking();
        }
        // With the lock, as who sleeps looks with it.
        self.busy.fetch_sub(1, Ordering::Release);
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

    /// Looks for a moment whether something has happened, where others can run meanwhile.
    fn look_around(&self, happened: impl Fn() -> bool) {
        let began = Instant::now();
        while self.cores > 1 && began.elapsed() < AROUND {
            for _ in 0..16 {
                if happened() {
                    return;
                }
                std::hint::spin_loop();
            }
        }
    }

    /// What a thread of the pool does.
    fn run(&self) {
        let mut state = self.state();
        loop {
            let wants = state.jobs.iter_mut().find(|job| !job.wanted.is_empty());
            if let Some(job) = wants
                && let Some(thread) = job.wanted.next()
            {
                job.busy.fetch_add(1, Ordering::Relaxed);
                let busy = Busy { shared: self, number: job.number, busy: Arc::clone(&job.busy) };
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
            let seen = state.count;
            drop(state);
            self.look_around(|| self.count.load(Ordering::Relaxed) != seen);
            state = self.state();
            if state.count != seen || state.gone {
                state.idle -= 1;
                continue;
            }
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
        Self { shared: Arc::new(Shared { cores, ..Shared::default() }) }
    }

    /// How many threads the machine runs at once.
    pub(crate) fn cores(&self) -> u32 {
        self.shared.cores
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
            busy: Arc::default(),
            broken: false,
        });
        drop(state);
        self.shared.count.store(number, Ordering::Relaxed);
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
        let find = |state: &mut State| state.jobs.iter().position(|job| job.number == help.0);
        let mut state = self.shared.state();
        let Some(at) = find(&mut state) else { return };
        state.jobs[at].wanted = 0..0;
        let busy = Arc::clone(&state.jobs[at].busy);
        drop(state);
        self.shared.look_around(|| busy.load(Ordering::Acquire) == 0);
        let mut state = self.shared.state();
        while busy.load(Ordering::Acquire) != 0 {
            state = self.shared.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let Some(at) = find(&mut state) else { return };
        let job = state.jobs.swap_remove(at);
        drop(state);
        assert!(
            !job.broken,
            "ptxvm bug: a thread of the launch panicked; please report the program and its launch"
        );
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // The last who drops it may be a thread of the pool: nobody waits for anybody.
        self.shared.state().gone = true;
        self.shared.work.notify_all();
    }
}
