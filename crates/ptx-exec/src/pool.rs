//! OS threads that help with launches, kept from launch to launch.
//!
//! The launching thread works itself. Threads of the pool join it when a launch is long enough
//! ([`Pool::help`]). Both sides spin briefly before they sleep, because waking a thread takes longer than
//! most waits. A thread that was idle for a while ends.
//!
//! Invariants: when [`Pool::finish`] returns, no thread of the pool works on the launch or holds a reference
//! to it. A launch never waits for a thread that has not begun to work on it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long an idle thread waits for work before it ends. Chosen: longer than the gaps between launches of a
/// program.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a thread spins before it sleeps. Chosen: about the time to wake it, so spinning at most doubles
/// the cost.
const SPIN_TIME: Duration = Duration::from_micros(50);

/// A pool of threads for launches.
pub(crate) struct Pool {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Signalled when there is work, or when the pool is dropped.
    work: Condvar,
    /// Signalled when a thread has finished its work.
    done: Condvar,
    /// A copy of [`State::count`] that spinning threads read without the lock.
    count: AtomicU64,
    /// The number of hardware threads.
    cores: u32,
}

#[derive(Default)]
struct State {
    jobs: Vec<Job>,
    /// The number of the next job.
    count: u64,
    /// Threads that spin or sleep.
    idle: u32,
    gone: bool,
}

/// The work of a thread, which gets its number.
pub(crate) type Work = Arc<dyn Fn(u32) + Send + Sync>;

/// A launch that needs help.
struct Job {
    number: u64,
    work: Work,
    /// Thread numbers that are not taken yet.
    wanted: std::ops::Range<u32>,
    /// Threads that work on the launch.
    busy: Arc<AtomicU32>,
    /// Whether a thread panicked.
    broken: bool,
}

/// Marks a thread as working on a launch, until it is dropped.
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
        // With the lock held, because a sleeping thread checks the count with the lock held.
        self.busy.fetch_sub(1, Ordering::Release);
        drop(state);
        self.shared.done.notify_all();
    }
}

/// A launch that gets help.
pub(crate) struct Help(u64);

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // A poisoned state is consistent: no step between its changes can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Spins briefly until `happened`, yielding to other threads.
    fn spin_until(&self, happened: impl Fn() -> bool) {
        let began = Instant::now();
        while self.cores > 1 && began.elapsed() < SPIN_TIME {
            for _ in 0..16 {
                if happened() {
                    return;
                }
                std::hint::spin_loop();
            }
        }
    }

    /// The loop of a thread of the pool.
    fn run(&self) {
        let mut state = self.state();
        loop {
            let wants = state.jobs.iter_mut().find(|job| !job.wanted.is_empty());
            if let Some(job) = wants
                && let Some(thread) = job.wanted.next()
            {
                job.busy.fetch_add(1, Ordering::Relaxed);
                let busy = Busy { shared: self, number: job.number, busy: Arc::clone(&job.busy) };
                let work = Arc::clone(&job.work);
                drop(state);
                work(thread);
                drop(work);
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
            self.spin_until(|| self.count.load(Ordering::Relaxed) != seen);
            state = self.state();
            if state.count != seen || state.gone {
                state.idle -= 1;
                continue;
            }
            let (woken, waited) =
                self.work.wait_timeout(state, IDLE_TIMEOUT).unwrap_or_else(PoisonError::into_inner);
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
        // Cached, because querying the system takes longer than a small launch.
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
        Self { shared: Arc::new(Shared { cores, ..Shared::default() }) }
    }

    /// The number of hardware threads.
    pub(crate) fn cores(&self) -> u32 {
        self.shared.cores
    }

    /// Requests threads with these numbers for a launch.
    pub(crate) fn help(&self, work: Work, threads: std::ops::Range<u32>) -> Help {
        let mut state = self.shared.state();
        state.count += 1;
        let number = state.count;
        let wanted = threads.len() as u32;
        let spawn = wanted.saturating_sub(state.idle);
        state.jobs.push(Job { number, work, wanted: threads, busy: Arc::default(), broken: false });
        drop(state);
        self.shared.count.store(number, Ordering::Relaxed);
        self.shared.work.notify_all();
        for _ in 0..spawn {
            let shared = Arc::clone(&self.shared);
            let builder = std::thread::Builder::new().name("ptxvm".to_owned());
            // A failure is harmless: the launch has fewer threads than requested.
            if builder.spawn(move || shared.run()).is_err() {
                break;
            }
        }
        Help(number)
    }

    /// Waits until no thread works on the launch any more, and requests no further help.
    ///
    /// # Panics
    /// If one of the threads panicked, which is a bug.
    pub(crate) fn finish(&self, help: Help) {
        let find = |state: &mut State| state.jobs.iter().position(|job| job.number == help.0);
        let mut state = self.shared.state();
        let Some(at) = find(&mut state) else { return };
        state.jobs[at].wanted = 0..0;
        let busy = Arc::clone(&state.jobs[at].busy);
        drop(state);
        self.shared.spin_until(|| busy.load(Ordering::Acquire) == 0);
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
        // The pool may be dropped by one of its own threads, so it does not wait for threads to end.
        self.shared.state().gone = true;
        self.shared.work.notify_all();
    }
}
