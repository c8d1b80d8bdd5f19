//! Whether a context works: what a trap leaves, and how a context recovers from it.
//!
//! Work belongs to the [`Epoch`] of its context in which it was submitted. A trap ends the epoch: kernels that are running stop, and what was
//! submitted and has not begun is dropped. Every call that needs the context then answers with the error of the trap, and a destroyed context is
//! the only way out. With `PTXVM_RECOVER=1`, and where the error is not one of those that CUDA keeps, the first call that answers with it is also
//! the last: before it returns, all work of the ended epoch has come to its end, and a new epoch begins.
//!
//! Invariant: work of an epoch that has ended neither begins nor leaves an error behind.

use crate::context::Context;
use crate::status::{Answer, Status};
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Contexts that a trap has struck, and that have neither recovered nor been destroyed.
static STRUCK: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The context whose error this call answers with, if it recovers.
    static ANSWERED: RefCell<Option<(Arc<Context>, Epoch)>> = const { RefCell::new(None) };
    /// Whether the thread does the work of a stream.
    static WORKING: Cell<bool> = const { Cell::new(false) };
}

/// The time of a context from its start, or its last recovery, to a trap.
#[derive(Clone, Default)]
pub(crate) struct Epoch(Arc<AtomicBool>);

impl Epoch {
    /// Whether its work is not done any more.
    pub(crate) fn is_over(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// What stops launches.
    pub(crate) fn stops(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    fn end(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What a context knows of that.
#[derive(Default)]
pub(crate) struct Health(Mutex<State>);

#[derive(Default)]
struct State {
    epoch: Epoch,
    /// The error that ended it.
    struck: Option<Status>,
    /// Whether a call has answered with it.
    told: bool,
}

impl Health {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is submitted now belongs to it.
    pub(crate) fn epoch(&self) -> Epoch {
        self.state().epoch.clone()
    }

    /// Ends all work: the context is destroyed.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.epoch.end();
        if state.struck.take().is_some() {
            STRUCK.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The error that is to be answered with, and whether a call has.
    pub(crate) fn error(&self) -> Option<(Status, bool)> {
        if STRUCK.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let state = self.state();
        state.struck.map(|status| (status, state.told))
    }

    /// Ends an epoch with an error; the first one stays.
    pub(crate) fn strike(&self, epoch: &Epoch, status: Status) {
        let mut state = self.state();
        if epoch.is_over() || !Arc::ptr_eq(&state.epoch.0, &epoch.0) {
            return;
        }
        (state.struck, state.told) = (Some(status), false);
        // Who finds the epoch ended finds the error too.
        STRUCK.fetch_add(1, Ordering::Relaxed);
        epoch.end();
    }

    /// Notes that a call answers with the error.
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

    /// Begins a new epoch after that one.
    fn recover(&self, after: &Epoch) {
        let mut state = self.state();
        if !Arc::ptr_eq(&state.epoch.0, &after.0) || state.struck.take().is_none() {
            return;
        }
        (state.epoch, state.told) = (Epoch::default(), false);
        STRUCK.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether CUDA says of an error that the process cannot go on with it: all others are answered once.
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

/// Fails with the error of a trap that has struck a context.
///
/// # Errors
/// What the trap is called.
pub(crate) fn check(context: &Arc<Context>) -> Answer {
    match context.health.error() {
        None => Ok(()),
        Some((status, _)) => {
            context.health.tell(context);
            Err(status)
        }
    }
}

/// Whether any context has been struck, so that functions that need none in order to work look as well.
pub(crate) fn is_any_struck() -> bool {
    STRUCK.load(Ordering::Relaxed) != 0
}

/// A call ends with that status: the context that it answered for goes on, where that is to be.
pub(crate) fn answered(status: Status) {
    if !is_any_struck() {
        return;
    }
    let taken = ANSWERED.try_with(|slot| slot.take()).ok().flatten();
    let Some((context, epoch)) = taken else { return };
    // A check that the call did not answer with.
    if context.health.error().is_none_or(|(struck, _)| struck != status) {
        return;
    }
    // Launches stop soon, and what waits for its turn does nothing.
    context.streams.synchronize();
    context.health.recover(&epoch);
}

/// Does the work of a stream. Functions of the API that it calls do not wait for streams to end.
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
