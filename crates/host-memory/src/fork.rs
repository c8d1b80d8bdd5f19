//! Whether the process was forked since the library began to work.
//!
//! A child of `fork` has the thread that forked and no other: queues that other threads served stand still, and locks that they held stay locked.
//! So a library with threads must do nothing in it.
//!
//! Invariant: the handler only stores a number.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

static FORKED: AtomicBool = AtomicBool::new(false);

/// Notes from now on that the process is a child.
pub fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(system_watch);
}

/// Whether this process is a child that was forked after [`watch`].
#[inline]
pub fn is_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

#[cfg(unix)]
fn system_watch() {
    // SAFETY: the C library's, with the signature of POSIX.
    unsafe extern "C" {
        fn pthread_atfork(
            prepare: Option<extern "C" fn()>,
            parent: Option<extern "C" fn()>,
            child: Option<extern "C" fn()>,
        ) -> std::ffi::c_int;
    }
    extern "C" fn child() {
        FORKED.store(true, Ordering::Relaxed);
    }
    // SAFETY: the handler stores a number, which may be done after `fork`; it stays as long as the library, and the system forgets it with that.
    // An error only means that a child is not told.
    let _ = unsafe { pthread_atfork(None, None, Some(child)) };
}

#[cfg(not(unix))]
fn system_watch() {}
