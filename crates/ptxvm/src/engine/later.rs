//! Code that is compiled beside launches which do without it, and the threads that compile it.
//!
//! There are two queues with a thread each. Code that makes a running launch faster, or the next one, is in
//! the first. The second has code that stands in for code which exists: it takes long to compile, and other
//! code does not wait behind it.
//!
//! Invariant: every compilation that has begun ends with a result or a reason for none ([`Later::set`]), also
//! if it panics or there is no thread. Nothing here decides whether code pays.

use super::{Shared, Slot};
use crate::engine::Source;
use crate::engine::until::Until;
use ptx_exec::launch::Kernel;
use ptx_jit::{Compiled, compiler_thread};
use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Code that is compiled beside launches, or the state before there is any.
#[derive(Default)]
pub(super) struct Later {
    /// `None`: it cannot be compiled.
    made: OnceLock<Option<Arc<Compiled>>>,
    /// Whether it is being compiled.
    begun: AtomicBool,
    /// For launches that wait for the code.
    waiting: Mutex<()>,
    ready: Condvar,
}

impl Later {
    pub(super) fn code(&self) -> Option<&Arc<Compiled>> {
        self.made.get()?.as_ref()
    }

    /// Whether the compilation has ended.
    pub(super) fn is_done(&self) -> bool {
        self.made.get().is_some()
    }

    /// Marks the compilation as begun. Returns whether it had not begun before.
    pub(super) fn begin(&self) -> bool {
        !self.begun.swap(true, Ordering::Relaxed)
    }

    /// Ends the compilation with code, or without.
    pub(super) fn set(&self, code: Option<Arc<Compiled>>) {
        drop(self.made.set(code));
        // A launch that found no result holds the lock until it waits.
        drop(self.lock());
        self.ready.notify_all();
    }

    /// Waits until the compilation has ended, that time is over, or the launch must stop.
    pub(super) fn wait(&self, until: &Until, at_most: Option<Duration>) {
        let start = Instant::now();
        let mut guard = self.lock();
        while !self.is_done() && at_most.is_none_or(|at_most| start.elapsed() < at_most) {
            let Some(time) = until.wait() else { return };
            guard = self.ready.wait_timeout(guard, time).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a task compiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The code that a launch can begin with; if it is partial, the rest follows.
    First,
    /// The rest of code that is partial.
    Rest,
    /// The code once more, with optimisation.
    Optimised,
    /// Scalar code.
    Scalar,
}

impl Wanted {
    /// Whether there is no other code that does the same.
    fn is_urgent(self) -> bool {
        match self {
            Wanted::First | Wanted::Rest => true,
            Wanted::Optimised | Wanted::Scalar => false,
        }
    }
}

pub(super) struct Task {
    pub(super) wanted: Wanted,
    pub(super) kernel: Arc<Kernel>,
    pub(super) slot: Arc<Slot>,
}

/// Compilations that wait for a thread.
#[derive(Default)]
pub(super) struct Queues {
    urgent: Mutex<Queue>,
    others: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    tasks: VecDeque<Task>,
    /// Whether a thread takes them.
    running: bool,
}

impl Queues {
    fn lock(&self, urgent: bool) -> MutexGuard<'_, Queue> {
        let queue = if urgent { &self.urgent } else { &self.others };
        queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels the tasks that no thread has taken.
    pub(super) fn clear(&self) {
        self.lock(true).tasks.clear();
        self.lock(false).tasks.clear();
    }
}

impl Slot {
    /// What a task sets.
    fn later(&self, wanted: Wanted) -> Option<&Later> {
        match wanted {
            Wanted::First => None,
            Wanted::Rest => Some(&self.rest),
            Wanted::Optimised => Some(&self.again.code),
            Wanted::Scalar => Some(&self.scalar.code),
        }
    }
}

impl Shared {
    /// Queues a compilation for a thread. If there is no thread, there is no code beside that of the launch.
    pub(super) fn begin(self: &Arc<Self>, task: Task) {
        let urgent = task.wanted.is_urgent();
        let mut queue = self.queues.lock(urgent);
        queue.tasks.push_back(task);
        if !queue.running {
            let shared = Arc::clone(self);
            queue.running = compiler_thread().spawn(move || shared.work(urgent)).is_ok();
        }
        if queue.running {
            return;
        }
        // Tasks without a result of their own are left to the next call.
        let (lost, left) = std::mem::take(&mut queue.tasks)
            .into_iter()
            .partition::<VecDeque<_>, _>(|task| task.slot.later(task.wanted).is_some());
        queue.tasks = left;
        drop(queue);
        for later in lost.iter().filter_map(|task| task.slot.later(task.wanted)) {
            later.set(None);
        }
    }

    /// Compiles on a thread of its own, while a launch waits until then.
    pub(super) fn wait_for(self: &Arc<Self>, task: Task, until: &Until) {
        let (shared, slot, wanted) = (Arc::clone(self), Arc::clone(&task.slot), task.wanted);
        let thread = compiler_thread().spawn(move || shared.compile(&task));
        match (slot.later(wanted), thread) {
            (Some(later), Ok(_)) => later.wait(until, None),
            (Some(later), Err(_)) => later.set(None),
            (None, _) => {}
        }
    }

    fn work(self: &Arc<Self>, urgent: bool) {
        loop {
            let task = {
                let mut queue = self.queues.lock(urgent);
                let task = queue.tasks.pop_front();
                queue.running = task.is_some();
                task
            };
            let Some(task) = task else { return };
            // The code is not needed if only this task refers to it.
            if Arc::strong_count(&task.slot) > 1 {
                self.compile(&task);
            }
        }
    }

    /// Compiles what a task is for.
    fn compile(self: &Arc<Self>, Task { wanted, kernel, slot }: &Task) {
        let (compiler, shape) = (&self.compiler, slot.shape);
        let Some(later) = slot.later(*wanted) else {
            slot.make(compiler, kernel, Source::Background);
            return self.begin_rest(kernel, slot);
        };
        // Without code of the kernel there was a reason for none, which applies here, too.
        let made = slot.code().and_then(|code| {
            compiled(|| match wanted {
                Wanted::First | Wanted::Rest => compiler.compile_rest(kernel, shape, code),
                Wanted::Optimised => compiler.compile_again(kernel, shape, code),
                Wanted::Scalar => compiler.compile_scalar(kernel, shape, code),
            })
            .ok()
        });
        // Launches continue with the code that there is, if it fails.
        later.set(made);
    }
}

/// The result of a compilation, or why there is none. A panic must not leave launches waiting for the code.
pub(super) fn compiled<T>(compile: impl FnOnce() -> Result<T, ptx_jit::Error>) -> Result<T, String> {
    match std::panic::catch_unwind(AssertUnwindSafe(compile)) {
        Ok(made) => made.map_err(|error| error.to_string()),
        Err(_) => Err("a ptxvm bug stopped the compilation; the panic's message says where".to_owned()),
    }
}
