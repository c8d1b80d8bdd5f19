//! The end of the process while LLVM works.
//!
//! `exit` runs the destructors of LLVM's library while other threads still run; a thread inside LLVM would then use what is gone. So who works
//! there holds a [`Working`], and the end of the process waits for it, for as long as one compilation takes. Work that has not begun by then
//! never does.
//!
//! Two things wait, for neither always comes in time. `atexit` runs what was registered last first, and LLVM registers destructors of tables
//! while it compiles: those run before ours. Destructors of the thread that calls `exit` run before all of that, but only threads that are
//! known ([`guard_this_thread`]) have one.
//!
//! Invariant: nobody waits in a process that the work was not begun in (a child of `fork` has only the thread that forked), nor for ever.

use super::api::Error;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, Once, PoisonError};
use std::time::Duration;

/// How long the end of the process waits at most. Chosen: far longer than any kernel takes.
const PATIENCE: Duration = Duration::from_secs(20);

static COUNT: Mutex<u32> = Mutex::new(0);
static DONE: Condvar = Condvar::new();
static ENDING: AtomicBool = AtomicBool::new(false);
/// The process whose threads are counted.
static PROCESS: AtomicU32 = AtomicU32::new(0);

// SAFETY: the C library's, with the signatures of the C standard and of Linux.
unsafe extern "C" {
    fn atexit(function: extern "C" fn()) -> i32;
    #[cfg(target_os = "linux")]
    fn gettid() -> i32;
}

/// What ends with a thread.
struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        // Another thread that ends is no sign that the process does.
        if is_first_thread() {
            wait();
        }
    }
}

thread_local! {
    static GUARD: Guard = const { Guard };
}

/// Whether this is the thread that the process began with, whose end is that of the process.
fn is_first_thread() -> bool {
    #[cfg(target_os = "linux")]
    // SAFETY: it takes nothing and always succeeds.
    return u32::try_from(unsafe { gettid() }) == Ok(std::process::id());
    #[cfg(not(target_os = "linux"))]
    false
}

/// If this is the thread that the process began with: when it calls `exit`, or returns from `main`, then before anything of the process is
/// taken down, it waits for compilations that are under way. To be called by threads that have kernels compiled by others. Does nothing the
/// second time.
pub fn guard_this_thread() {
    // The destructor is registered when the value is first touched; a thread that ends has no use for it any more.
    let _ = GUARD.try_with(|_| ());
}

/// Someone works in LLVM.
#[derive(Debug)]
pub(crate) struct Working(());

impl Working {
    /// Begins.
    ///
    /// # Errors
    /// The process is ending.
    pub(crate) fn begin() -> Result<Working, Error> {
        if ENDING.load(Ordering::SeqCst) {
            return Err(Error::new("the process is ending"));
        }
        // For an end that comes while LLVM is being loaded.
        static FIRST: Once = Once::new();
        FIRST.call_once(watch);
        let mut count = COUNT.lock().unwrap_or_else(PoisonError::into_inner);
        let process = std::process::id();
        if PROCESS.swap(process, Ordering::SeqCst) != process {
            // What a parent's threads were doing will never be done here.
            *count = 0;
        }
        *count += 1;
        Ok(Working(()))
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        let mut count = COUNT.lock().unwrap_or_else(PoisonError::into_inner);
        *count = count.saturating_sub(1);
        DONE.notify_all();
    }
}

/// Makes the end of the process wait. What is asked for later happens earlier at the end: so this is called after LLVM is loaded, to come
/// before its destructors.
pub(super) fn watch() {
    // SAFETY: the function is there as long as this library, and does not unwind.
    // An error only means that the process ends as it would without this.
    let _ = unsafe { atexit(wait) };
}

extern "C" fn wait() {
    ENDING.store(true, Ordering::SeqCst);
    if PROCESS.load(Ordering::SeqCst) != std::process::id() {
        return;
    }
    let Ok(count) = COUNT.lock() else { return };
    // After that long the process ends in any case.
    let _ = DONE.wait_timeout_while(count, PATIENCE, |count| *count > 0);
}
