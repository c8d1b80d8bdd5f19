//! The end of the process while LLVM works.
//!
//! `exit` runs the destructors of LLVM's library while other threads still run; a thread inside LLVM would then read tables that are gone, and
//! crash. So every thread that works in LLVM holds a [`Working`], and the end of the process brings those threads to rest before anything of
//! LLVM is taken down:
//!
//! 1. No new work begins, and code that is being emitted is given up at the next block ([`is_ending`]).
//! 2. If nothing of LLVM is taken down yet, a compilation that is nearly done has [`GRACE`] to finish, so that its code is kept for later processes.
//! 3. A thread that is still inside LLVM is parked for good ([`park`](super::park)).
//! 4. Where that cannot be done, the end waits, but no longer than [`PATIENCE`].
//!
//! Two things begin this. Destructors of the thread that calls `exit` run before everything else, but only the first thread can have one
//! ([`guard_this_thread`]): the end of any other thread is no sign that the process ends. `atexit` is for the others. It runs what was
//! registered last first, and LLVM registers destructors of tables when it first needs them, so some may have run; ours is registered again
//! with each compilation, and gives no time to finish.
//!
//! Invariant: nothing waits in a process that the work was not begun in (a child of `fork` has only the thread that forked), for itself, for
//! a thread that is parked, or for ever.

use super::api::{Error, address_in_library};
use super::park::{self, Interruptible, Parking};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long the end of the process waits for work that goes on by itself. Chosen: most kernels take less.
const GRACE: Duration = Duration::from_millis(500);
/// How long the end of the process waits at most. Chosen: threads are parked within milliseconds where that is possible at all.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a thread that was interrupted outside of LLVM's code is left alone.
const AGAIN: Duration = Duration::from_millis(1);

/// A thread that works in LLVM.
struct Worker {
    /// The system's number of the thread; 0 where the system has none.
    thread: i32,
    /// How many [`Working`] it holds.
    held: u32,
    _interruptible: Interruptible,
}

static WORKERS: Mutex<Vec<Worker>> = Mutex::new(Vec::new());
static DONE: Condvar = Condvar::new();
static ENDING: AtomicBool = AtomicBool::new(false);
/// The process whose threads are counted.
static PROCESS: AtomicU32 = AtomicU32::new(0);

// SAFETY: the C library's, with the signature of the C standard.
unsafe extern "C" {
    fn atexit(function: extern "C" fn()) -> i32;
}

/// What ends with a thread.
struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        // Another thread that ends is no sign that the process does.
        if u32::try_from(this_thread()) == Ok(std::process::id()) {
            stop_workers(GRACE);
        }
    }
}

thread_local! {
    static GUARD: Guard = const { Guard };
}

/// The system's number of this thread; that of the first thread is the number of the process.
fn this_thread() -> i32 {
    #[cfg(target_os = "linux")]
    // SAFETY: it takes nothing and always succeeds.
    return unsafe { libc::gettid() };
    #[cfg(not(target_os = "linux"))]
    0
}

/// If this is the thread that the process began with: when it calls `exit`, or returns from `main`, then compilations that are under way are
/// stopped before anything of the process is taken down. To be called by threads that have kernels compiled by others. Does nothing the second
/// time.
pub fn guard_this_thread() {
    // The destructor is registered when the value is first touched; a thread that ends has no use for it any more.
    let _ = GUARD.try_with(|_| ());
}

/// Whether the process is ending, so that work in LLVM is to be given up.
pub fn is_ending() -> bool {
    ENDING.load(Ordering::Relaxed)
}

/// This thread works in LLVM. Several of one thread count as one.
#[derive(Debug)]
pub(crate) struct Working {
    /// It ends on the thread that it began on.
    _thread: PhantomData<*const ()>,
}

impl Working {
    /// Begins.
    ///
    /// # Errors
    /// The process is ending.
    pub(crate) fn begin() -> Result<Working, Error> {
        if ENDING.load(Ordering::SeqCst) {
            return Err(Error::new("the process is ending"));
        }
        let thread = this_thread();
        let mut workers = workers();
        let process = std::process::id();
        if PROCESS.swap(process, Ordering::SeqCst) != process {
            // What a parent's threads were doing will never be done here.
            workers.clear();
        }
        match workers.iter_mut().find(|worker| worker.thread == thread && thread != 0) {
            Some(worker) => worker.held += 1,
            None => {
                // Again each time: what LLVM has registered since would come first otherwise.
                // SAFETY: the function is there as long as this library, and does not unwind.
                // An error only means that the process ends as it would without this.
                let _ = unsafe { atexit(at_exit) };
                workers.push(Worker { thread, held: 1, _interruptible: Interruptible::begin() });
            }
        }
        Ok(Working { _thread: PhantomData })
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        let thread = this_thread();
        let mut workers = workers();
        let Some(at) = workers.iter().position(|worker| worker.thread == thread) else { return };
        workers[at].held -= 1;
        if workers[at].held == 0 {
            workers.swap_remove(at);
            DONE.notify_all();
        }
    }
}

fn workers() -> MutexGuard<'static, Vec<Worker>> {
    WORKERS.lock().unwrap_or_else(PoisonError::into_inner)
}

extern "C" fn at_exit() {
    stop_workers(Duration::ZERO);
}

/// Brings all other threads that work in LLVM to rest; those that are done within that time are not parked.
fn stop_workers(grace: Duration) {
    ENDING.store(true, Ordering::SeqCst);
    if PROCESS.load(Ordering::SeqCst) != std::process::id() {
        return;
    }
    let own = this_thread();
    let is_own = |worker: &Worker| worker.thread != 0 && worker.thread == own;
    let runs = |worker: &Worker| !is_own(worker) && !park::is_parked(worker.thread);
    let begin = Instant::now();
    let guard = DONE.wait_timeout_while(workers(), grace, |workers| workers.iter().any(&runs));
    let (workers, waited) = guard.unwrap_or_else(PoisonError::into_inner);
    if !waited.timed_out() {
        return;
    }
    let parking = address_in_library().and_then(Parking::begin);
    let mut workers = workers;
    while begin.elapsed() < PATIENCE {
        let running: Vec<i32> = workers.iter().filter(|worker| runs(worker)).map(|w| w.thread).collect();
        if running.is_empty() {
            return;
        }
        if let Some(parking) = &parking {
            running.iter().for_each(|thread| parking.interrupt(*thread));
        }
        // Work that ends needs the lock to say so.
        workers = DONE.wait_timeout(workers, AGAIN).unwrap_or_else(PoisonError::into_inner).0;
    }
}
