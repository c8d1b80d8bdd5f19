//! The end of the process while LLVM works.
//!
//! `exit` runs the destructors of LLVM's library while other threads still run; a thread inside LLVM would then use what is gone. So who works
//! there holds a [`Working`], and the end of the process waits for it, for as long as one compilation takes. Work that has not begun by then
//! never does.
//!
//! Invariant: nobody waits in a process that the work was not begun in (a child of `fork` has only the thread that forked), nor for ever.

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

// SAFETY: the C library's, with the signature of the C standard.
unsafe extern "C" {
    fn atexit(function: extern "C" fn()) -> i32;
}

/// Someone works in LLVM.
#[derive(Debug)]
pub(super) struct Working(());

impl Working {
    /// Begins, unless the process is ending.
    pub(super) fn begin() -> Option<Working> {
        if ENDING.load(Ordering::SeqCst) {
            return None;
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
        Some(Working(()))
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
