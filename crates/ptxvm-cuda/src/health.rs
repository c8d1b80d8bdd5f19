//! The state of a context: the error of a trap, and recovery from it.
//!
//! Work belongs to the [`Epoch`] of its context in which it was submitted. A trap ends the epoch: running
//! kernels stop, and submitted work that has not begun is dropped. Every call that needs the context then
//! returns the error of the trap, until the context is destroyed. With `PTXVM_RECOVER=1`, and unless CUDA
//! documents the error as fatal for the process, only the first call returns it: before that call returns,
//! all work of the ended epoch has finished, and a new epoch begins.
//!
//! Invariant: work of an ended epoch neither begins nor leaves an error behind.

use crate::context::Context;
use crate::status::{Answer, Status};
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The number of contexts with the error of a trap that have neither recovered nor been destroyed.
static STRUCK: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The context whose error this call returns, if the context recovers.
    static ANSWERED: RefCell<Option<(Arc<Context>, Epoch)>> = const { RefCell::new(None) };
    /// Whether the thread runs the work of a stream.
    static WORKING: Cell<bool> = const { Cell::new(false) };
}

/// The time of a context from its start, or its last recovery, to a trap.
#[derive(Clone, Default)]
pub(crate) struct Epoch(Arc<AtomicBool>);

impl Epoch {
    /// Whether the epoch has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The flag that stops its launches.
    pub(crate) fn stops(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    fn end(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The health of a context.
#[derive(Default)]
pub(crate) struct Health(Mutex<State>);

#[derive(Default)]
struct State {
    epoch: Epoch,
    /// The error that ended the epoch.
    struck: Option<Status>,
    /// Whether a call has returned the error.
    told: bool,
}

impl Health {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The epoch of work that is submitted now.
    pub(crate) fn epoch(&self) -> Epoch {
        self.state().epoch.clone()
    }

    /// Ends all work, because the context is destroyed.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.epoch.end();
        if state.struck.take().is_some() {
            STRUCK.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The error that calls return, and whether a call has returned it.
    pub(crate) fn error(&self) -> Option<(Status, bool)> {
        if STRUCK.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let state = self.state();
        state.struck.map(|status| (status, state.told))
    }

    /// Ends an epoch with an error. The first error counts.
    pub(crate) fn strike(&self, epoch: &Epoch, status: Status) {
        let mut state = self.state();
        if epoch.is_over() || !Arc::ptr_eq(&state.epoch.0, &epoch.0) {
            return;
        }
        (state.struck, state.told) = (Some(status), false);
        // The error is stored before the epoch ends, so a thread that finds the epoch ended also finds the
        // error.
        STRUCK.fetch_add(1, Ordering::Relaxed);
        epoch.end();
    }

    /// Notes that a call returns the error.
    fn tell(&self, context: &Arc<Context>) {
        let mut state = self.state();
        let Some(status) = state.struck else { return };
        state.told = true;
        let recovers = !stays(status) || crate::driver::driver().is_ok_and(|driver| driver.settings.recover);
        if recovers && !WORKING.get() {
            let answered = (Arc::clone(context), state.epoch.clone());
            let _ending = ANSWERED.try_with(|slot| slot.replace(Some(answered)));
        }
    }

    /// Begins a new epoch after an ended one.
    fn recover(&self, after: &Epoch) {
        let mut state = self.state();
        if !Arc::ptr_eq(&state.epoch.0, &after.0) || state.struck.take().is_none() {
            return;
        }
        (state.epoch, state.told) = (Epoch::default(), false);
        STRUCK.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether CUDA documents an error as fatal for the process. Other errors are returned once.
fn stays(status: Status) -> bool {
    matches!(
        status,
        Status::IllegalAddress
            | Status::LaunchTimeout
            | Status::Assert
            | Status::HardwareStackError
            | Status::IllegalInstruction
            | Status::MisalignedAddress
            | Status::InvalidAddressSpace
            | Status::InvalidPc
            | Status::LaunchFailed
            | Status::TensorMemoryLeak
            | Status::EccUncorrectable
            | Status::NvlinkUncorrectable
            | Status::Contained
            | Status::ExternalDevice
            | Status::Unknown
    )
}

/// Fails with the error of a trap, if the context has one.
///
/// # Errors
/// The error of the trap.
pub(crate) fn check(context: &Arc<Context>) -> Answer {
    match context.health.error() {
        None => Ok(()),
        Some((status, _)) => {
            context.health.tell(context);
            Err(status)
        }
    }
}

/// Whether any context has the error of a trap. If so, functions that need no context check the current one,
/// too.
pub(crate) fn is_any_struck() -> bool {
    STRUCK.load(Ordering::Relaxed) != 0
}

/// Called at the end of each call with its status. If the call returned the error of a context that recovers,
/// starts a new epoch.
pub(crate) fn answered(status: Status) {
    if !is_any_struck() {
        return;
    }
    let taken = ANSWERED.try_with(|slot| slot.take()).ok().flatten();
    let Some((context, epoch)) = taken else { return };
    // The context was checked, but the call returned something else.
    if context.health.error().is_none_or(|(struck, _)| struck != status) {
        return;
    }
    // Launches stop soon, and waiting work does nothing.
    context.streams.synchronize();
    context.health.recover(&epoch);
}

/// Runs the work of a stream. Functions of the API that it calls do not wait for streams.
pub(crate) fn working<R>(work: impl FnOnce() -> R) -> R {
    struct Done;
    impl Drop for Done {
        fn drop(&mut self) {
            WORKING.set(false);
        }
    }
    WORKING.set(true);
    let _done = Done;
    work()
}
