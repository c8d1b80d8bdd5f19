//! Streams: queues of work that run concurrently with the caller.
//!
//! A [`Stream`] executes its operations in order; streams run concurrently. A [`Mark`] is a position in a
//! stream for which other streams and the host can wait.
//!
//! ```
//! use ptxvm::{Arg, Launch, Vm};
//!
//! # let ptx = ".version 6.4\n.target sm_70\n.address_size 64\n.visible .entry nothing() { ret; }";
//! let vm = Vm::new()?;
//! let kernel = vm.load("nothing.ptx", ptx)?.kernel("nothing")?;
//! let stream = vm.stream();
//! let pending = stream.launch(&kernel, Launch::new([1, 1, 1], [32, 1, 1]));
//! // ... the caller does something else ...
//! let report = pending.wait()?;
//! assert_eq!(report.thread_instructions, 32);
//! # Ok::<(), ptxvm::Error>(())
//! ```
//!
//! Invariant: dropping a stream does not stop its work.

mod executor;
#[cfg(test)]
mod tests;

use crate::{Error, Kernel, Launch, Report, Vm};
pub(crate) use executor::Executor;
pub use executor::StreamKind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

/// Streams that are ordered by a legacy stream of the group.
#[derive(Clone)]
pub struct StreamGroup {
    executor: Arc<Executor>,
    number: u64,
}

impl StreamGroup {
    /// A stream of the group.
    pub fn stream(&self, kind: StreamKind) -> Stream {
        let id = self.executor.stream(self.number, kind);
        Stream { executor: Arc::clone(&self.executor), id, kind }
    }

    /// Waits for all submitted operations of the group's streams.
    pub fn synchronize(&self) {
        self.executor.wait_group(Some(self.number));
    }
}

impl std::fmt::Debug for StreamGroup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamGroup").field("number", &self.number).finish()
    }
}

/// A queue of work.
pub struct Stream {
    executor: Arc<Executor>,
    id: u64,
    kind: StreamKind,
}

impl Stream {
    /// The order with other streams of its group.
    pub fn kind(&self) -> StreamKind {
        self.kind
    }

    /// Runs a kernel, in order.
    pub fn launch(&self, kernel: &Kernel, mut launch: Launch) -> Pending {
        let cancel = Arc::clone(launch.cancel.get_or_insert_default());
        let progress = (Arc::clone(launch.progress.get_or_insert_default()), launch.ctas());
        let kernel = kernel.clone();
        let result = Arc::new(Mutex::new(None));
        let slot = Arc::clone(&result);
        let mark = self.submit(move || {
            let done = kernel.launch(&launch);
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
        });
        Pending { mark, result, cancel, progress }
    }

    /// Runs a task on another thread, in order.
    pub fn submit(&self, task: impl FnOnce() + Send + 'static) -> Mark {
        self.mark_at(self.executor.task(self.id, task))
    }

    /// Runs a task on this thread, in order, and returns its result.
    pub fn run<R>(&self, task: impl FnOnce() -> R) -> R {
        self.executor.run_here(self.id, task)
    }

    /// Makes later operations wait for a mark.
    pub fn wait(&self, mark: &Mark) {
        self.executor.wait_for(self.id, mark.stream, mark.count);
    }

    /// A mark after all submitted operations.
    pub fn record(&self) -> Mark {
        let at = Arc::new(OnceLock::new());
        let count = self.executor.stamp(self.id, Arc::clone(&at));
        Mark { at: Some(at), ..self.mark_at(count) }
    }

    /// Waits for all submitted operations.
    pub fn synchronize(&self) {
        self.executor.wait(self.id, self.executor.submitted(self.id));
    }

    /// Whether all submitted operations are complete.
    pub fn is_idle(&self) -> bool {
        self.executor.is_done(self.id, self.executor.submitted(self.id))
    }

    fn mark_at(&self, count: u64) -> Mark {
        Mark { executor: Arc::clone(&self.executor), stream: self.id, count, at: None }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.executor.close(self.id);
    }
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("id", &self.id).field("kind", &self.kind).finish()
    }
}

/// A position in a stream.
#[derive(Clone)]
pub struct Mark {
    executor: Arc<Executor>,
    stream: u64,
    count: u64,
    at: Option<Arc<OnceLock<Instant>>>,
}

impl Mark {
    /// Whether all operations before it are complete.
    pub fn is_done(&self) -> bool {
        self.executor.is_done(self.stream, self.count)
    }

    /// Waits until it is reached.
    pub fn wait(&self) {
        self.executor.wait(self.stream, self.count);
    }

    /// The time at which the stream reached it; `None` before, and for marks that [`Stream::record`] did not
    /// make.
    pub fn reached(&self) -> Option<Instant> {
        self.at.as_ref()?.get().copied()
    }
}

impl std::fmt::Debug for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mark").field("stream", &self.stream).field("count", &self.count).finish()
    }
}

/// A launch in a stream.
#[derive(Debug)]
pub struct Pending {
    mark: Mark,
    result: Arc<Mutex<Option<Result<Report, Error>>>>,
    cancel: Arc<AtomicBool>,
    /// The number of finished CTAs, and of all.
    progress: (Arc<AtomicU64>, u64),
}

impl Pending {
    /// The number of finished CTAs, and of all CTAs.
    pub fn progress(&self) -> (u64, u64) {
        (self.progress.0.load(Ordering::Relaxed), self.progress.1)
    }

    /// Stops it with a trap soon, even if it has not begun.
    pub fn cancel(&self) {
        self.cancel.store(true, Ordering::Relaxed);
    }

    /// Its place in the stream.
    pub fn mark(&self) -> &Mark {
        &self.mark
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// As [`Vm::launch`].
    pub fn wait(self) -> Result<Report, Error> {
        self.mark.wait();
        let result = self.result.lock().unwrap_or_else(PoisonError::into_inner).take();
        result.unwrap_or_else(|| Err(Error::caller("the launch ended without a result (a bug of ptxvm)")))
    }
}

impl Vm {
    /// A new independent stream.
    pub fn stream(&self) -> Stream {
        self.streams().stream(StreamKind::Independent)
    }

    /// A group of streams.
    pub fn streams(&self) -> StreamGroup {
        let executor = Arc::clone(&self.device.executor);
        let number = executor.number();
        StreamGroup { executor, number }
    }

    /// Waits for all submitted operations of this device's streams.
    pub fn synchronize(&self) {
        self.device.executor.wait_group(None);
    }
}
