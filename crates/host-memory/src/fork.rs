//! Tells whether the process was forked after the library started to work.
//!
//! A child of `fork` has only the thread that called `fork`. Queues that other threads served stand still in
//! it, and locks that other threads held stay locked. A library with threads must therefore do nothing in
//! such a child.
//!
//! Invariant: the handler only stores a number.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

static FORKED: AtomicBool = AtomicBool::new(false);

/// Registers the handler that notes a fork. Only forks after this call are noticed.
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
    // SAFETY: the declarations have the signatures that POSIX gives these functions of the C library.
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
    // SAFETY: the handler only stores a number, which is allowed after `fork`. It stays valid as long as the
    // library is loaded, and the C library removes it at unloading. If registration fails, [`is_forked`]
    // stays false in children.
    let _ = unsafe { pthread_atfork(None, None, Some(child)) };
}

#[cfg(not(unix))]
fn system_watch() {}
