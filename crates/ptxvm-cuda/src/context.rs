//! Contexts: which one is current in a thread, the primary one, and errors that stay.
//!
//! Invariant: a context that a trap has struck answers every call that needs it with the same error until it is destroyed.

use crate::driver::{Driver, driver};
use crate::entry::entries;
use crate::ffi::Out;
use crate::handles::Handle;
use crate::status::Status;
use std::cell::RefCell;
use std::ffi::{c_int, c_uint};
use std::sync::{Arc, Mutex, PoisonError};

/// A context.
pub(crate) struct Context {
    /// Its own handle.
    pub(crate) handle: Handle,
    /// The error that a trap left.
    struck: Mutex<Option<Status>>,
}

impl Context {
    /// Fails if a trap has struck it.
    pub(crate) fn check(&self) -> Result<(), Status> {
        match *self.struck.lock().unwrap_or_else(PoisonError::into_inner) {
            None => Ok(()),
            Some(status) => Err(status),
        }
    }

    /// Notes a trap; the first one stays.
    pub(crate) fn strike(&self, status: Status) {
        self.struck.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(status);
    }
}

thread_local! {
    /// The contexts of the thread, the current one last.
    static STACK: RefCell<Vec<Handle>> = const { RefCell::new(Vec::new()) };
}

/// The current context, if no trap has struck it.
///
/// # Errors
/// `CUDA_ERROR_INVALID_CONTEXT` where none is current, `CUDA_ERROR_CONTEXT_IS_DESTROYED`, and what a trap left.
pub(crate) fn current() -> Result<(&'static Driver, Arc<Context>), Status> {
    let driver = driver()?;
    let handle = STACK.with_borrow(|stack| stack.last().copied()).ok_or(Status::InvalidContext)?;
    let context = driver.contexts.find(handle).ok_or(Status::ContextIsDestroyed)?;
    context.check()?;
    Ok((driver, context))
}

entries! { ENTRIES;
    /// Makes a context and makes it current.
    fn cuCtxCreate_v2(context: Out<Handle>, _flags: c_uint, device: c_int) {
        let driver = driver()?;
        context.check()?;
        crate::init::check_device(device)?;
        let (handle, _) = driver.contexts.insert_with(|handle| Context { handle, struck: Mutex::new(None) });
        STACK.with_borrow_mut(|stack| stack.push(handle));
        context.set(handle)
    }

    /// Waits until all work of the current context is done.
    fn cuCtxSynchronize() {
        current().map(|_| ())
    }
}
