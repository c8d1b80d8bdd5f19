//! The end of the process while a thread executes LLVM.
//!
//! `exit` runs the destructors of LLVM's library while other threads still run. A thread inside LLVM would
//! then read tables that have been freed, and crash. So every thread that executes LLVM holds a [`Working`],
//! and the end of the process stops those threads before any part of LLVM is destroyed:
//!
//! 1. No new work begins, and code that is being emitted is abandoned at the next block ([`is_ending`]).
//! 2. If no part of LLVM is destroyed yet, a compilation that is nearly done has [`GRACE`] to finish, so that
//!    its code is cached for later processes.
//! 3. A thread that is still inside LLVM is parked permanently ([`park`](super::park)).
//! 4. If it cannot be parked, the end of the process waits for it, but no longer than [`PATIENCE`].
//! 5. The function that was given to [`before_exit`] is called.
//!
//! The first of these events starts it:
//!
//! - Destructors of the thread that calls `exit` run before everything else, but only the first thread can
//!   use one: the end of any other thread does not mean that the process ends. A constructor of this library
//!   registers it ([`CONSTRUCTOR`]), since most programs load the library from their first thread and then
//!   launch from any; [`guard_this_thread`] serves the others.
//! - A destructor of LLVM's is about to run ([`destructors`](super::destructors)), or all of those that LLVM
//!   has registered after it was loaded have run.
//! - Where destructors cannot be preceded, `atexit`. LLVM may have registered destructors later, which run
//!   earlier; so the function is registered again with each compilation, and gives no time to finish. A
//!   thread inside LLVM may still crash before it is parked.
//!
//! Invariant: nothing waits in a process in which the work was not begun (a child of `fork` has only the
//! thread that forked), and a process waits once. A thread never waits for itself, for a parked thread, or
//! without a time limit.

use super::api::{Error, address_in_library};
use super::destructors;
use super::park::{self, Interruptible, Parking};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How long the end of the process waits for work that finishes by itself. Chosen: most kernels take less.
const GRACE: Duration = Duration::from_millis(500);
/// How long the end of the process waits at most. Chosen: threads are parked within milliseconds where that
/// is possible at all.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a thread that was interrupted outside of LLVM's code runs before it is interrupted again.
const AGAIN: Duration = Duration::from_millis(1);

/// A thread that executes LLVM.
struct Worker {
    /// The system's number of the thread; 0 if the system has none.
    thread: i32,
    /// The number of [`Working`] that it holds.
    held: u32,
    _interruptible: Interruptible,
}

static WORKERS: Mutex<Vec<Worker>> = Mutex::new(Vec::new());
static DONE: Condvar = Condvar::new();
static ENDING: AtomicBool = AtomicBool::new(false);
/// Whether the workers were stopped, or are being stopped.
static STOPPED: AtomicBool = AtomicBool::new(false);
/// Whether LLVM's destructors run after [`stop_workers`].
static PRECEDES_DESTRUCTORS: AtomicBool = AtomicBool::new(false);
/// The process whose threads are in the list.
static PROCESS: AtomicU32 = AtomicU32::new(0);
static BEFORE_EXIT: OnceLock<fn()> = OnceLock::new();

// SAFETY: the function of the C library, with the signature of the C standard.
unsafe extern "C" {
    fn atexit(function: extern "C" fn()) -> i32;
}

/// A value whose destructor runs when its thread ends.
struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        // The end of another thread does not mean that the process ends.
        if u32::try_from(this_thread()) == Ok(std::process::id()) {
            stop_workers(GRACE);
        }
    }
}

thread_local! {
    static GUARD: Guard = const { Guard };
}

/// Called when the library or program that contains this crate is loaded: by the first thread, unless another
/// one loads the library later.
#[cfg(target_os = "linux")]
#[used]
// SAFETY: the section holds addresses of functions that take up to three arguments in registers, which the
// function ignores, and return nothing.
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = guard_at_load;

#[cfg(target_os = "linux")]
extern "C" fn guard_at_load() {
    guard_this_thread();
}

/// The system's number of this thread; that of the first thread is the number of the process.
fn this_thread() -> i32 {
    #[cfg(target_os = "linux")]
    // SAFETY: it has no parameters and always succeeds.
    return unsafe { libc::gettid() };
    #[cfg(not(target_os = "linux"))]
    0
}

/// If this is the first thread of the process: when it calls `exit`, or returns from `main`, running
/// compilations are stopped before any part of the process is destroyed. It is called when the library is
/// loaded; programs whose first thread does not load it must call it there. A second call has no effect.
pub fn guard_this_thread() {
    // The destructor is registered when the value is first accessed; a thread that is ending does not need it
    // any more.
    let _ = GUARD.try_with(|_| ());
}

/// Lets the end of the process stop the work in LLVM before LLVM's destructors run; LLVM is loaded. A second
/// call has no effect.
pub(super) fn precede_destructors() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let first = |address| destructors::run_first(address, || stop_workers(GRACE));
        PRECEDES_DESTRUCTORS.store(address_in_library().is_some_and(first), Ordering::SeqCst);
    });
}

/// Calls `action` when the process ends, once the work in LLVM is stopped; not in a process that never began
/// such work. One function is enough: a second one is ignored.
pub(crate) fn before_exit(action: fn()) {
    let _ = BEFORE_EXIT.set(action);
}

/// Whether the process is ending, so that work in LLVM must be abandoned.
pub fn is_ending() -> bool {
    ENDING.load(Ordering::Relaxed)
}

/// This thread executes LLVM. Several values in one thread count as one.
#[derive(Debug)]
pub(crate) struct Working {
    /// It must be dropped on the thread that created it.
    _thread: PhantomData<*const ()>,
}

impl Working {
    /// Begins work in LLVM.
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
            // The work of a parent's threads does not continue in this process.
            workers.clear();
        }
        match workers.iter_mut().find(|worker| worker.thread == thread && thread != 0) {
            Some(worker) => worker.held += 1,
            None => {
                if !PRECEDES_DESTRUCTORS.load(Ordering::SeqCst) {
                    // Registered each time: otherwise, functions that LLVM has registered since would run
                    // first.
                    // SAFETY: the function exists as long as this library, and does not unwind. If the
                    // registration fails, the process ends as it would without it.
                    let _ = unsafe { atexit(at_exit) };
                }
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

/// Stops all other threads that execute LLVM; those that finish within `grace` are not parked.
fn stop_workers(grace: Duration) {
    ENDING.store(true, Ordering::SeqCst);
    if PROCESS.load(Ordering::SeqCst) != std::process::id() || STOPPED.swap(true, Ordering::SeqCst) {
        return;
    }
    park_workers(grace);
    if let Some(action) = BEFORE_EXIT.get() {
        action();
    }
}

fn park_workers(grace: Duration) {
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
        // A thread that finishes its work needs the lock to report it.
        workers = DONE.wait_timeout(workers, AGAIN).unwrap_or_else(PoisonError::into_inner).0;
    }
}
