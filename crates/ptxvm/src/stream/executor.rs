//! Executes the operations of streams: those of one stream in order, those of different streams concurrently.
//!
//! An operation is a task, a wait for a position of another stream, or a time stamp. Tasks run on threads of
//! a pool that grows and shrinks with the work, or on a thread that waits for them.
//!
//! Invariants: the operations of a stream are numbered from 1 and complete in that order. No thread blocks in
//! an operation that waits for another stream. A thread of the pool is available for each stream whose next
//! operation is ready, so a task that waits for the host, or for a task of another stream, delays only its
//! own stream.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How long a thread of the pool stays idle before it ends. Chosen.
const LINGER: Duration = Duration::from_secs(5);

/// The order between a stream and the others of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// Ordered with blocking streams: an operation begins after all earlier operations of blocking streams,
    /// and before all later ones.
    Legacy,
    /// Ordered with the legacy stream.
    Blocking,
    /// Not ordered with other streams.
    Independent,
}

/// Work for a thread.
type Task = Box<dyn FnOnce() + Send>;

/// An operation.
enum Op {
    Task(Task),
    /// A task that the submitting thread runs itself.
    Host,
    Wait(u64, u64),
    Stamp(Arc<OnceLock<Instant>>),
}

/// A stream.
struct Lane {
    group: u64,
    kind: StreamKind,
    ops: VecDeque<Op>,
    /// The numbers of submitted and completed operations.
    submitted: u64,
    done: u64,
    /// Whether one of its tasks runs.
    running: bool,
    /// Whether it is in `ready`.
    ready: bool,
    /// Whether it is in the list of waiters of another stream.
    parked: bool,
    /// Streams that wait until this many operations are complete.
    waiters: Vec<(u64, u64)>,
    /// Whether no more operations can be submitted.
    dropped: bool,
}

#[derive(Default)]
struct State {
    lanes: HashMap<u64, Lane>,
    /// The streams of each group.
    groups: HashMap<u64, Vec<u64>>,
    next: u64,
    /// Streams whose first operation is a task.
    ready: VecDeque<u64>,
    /// Idle threads of the pool.
    idle: usize,
    /// Threads outside of the pool that wait for an operation.
    watchers: usize,
}

/// The streams of a device.
#[derive(Default)]
pub(crate) struct Executor {
    state: Mutex<State>,
    work: Condvar,
    done: Condvar,
}

impl State {
    fn is_done(&self, id: u64, count: u64) -> bool {
        self.lanes.get(&id).is_none_or(|lane| lane.done >= count)
    }

    fn push(&mut self, id: u64, op: Op) -> u64 {
        let Some(lane) = self.lanes.get_mut(&id) else { return 0 };
        lane.ops.push_back(op);
        lane.submitted += 1;
        lane.submitted
    }

    /// Adds the waits that the kinds of streams require before the next submission.
    fn order(&mut self, id: u64) {
        let Some(lane) = self.lanes.get(&id) else { return };
        let from = match lane.kind {
            StreamKind::Independent => return,
            StreamKind::Legacy => StreamKind::Blocking,
            StreamKind::Blocking => StreamKind::Legacy,
        };
        let group = self.groups.get(&lane.group).map_or(&[][..], Vec::as_slice);
        let others = group.iter().filter_map(|other| Some((*other, self.lanes.get(other)?)));
        let busy = others.filter(|(_, other)| other.kind == from && other.done < other.submitted);
        let waits: Vec<_> = busy.map(|(other, lane)| Op::Wait(other, lane.submitted)).collect();
        for wait in waits {
            self.push(id, wait);
        }
    }

    /// Advances streams as far as possible without running tasks, including streams that wait for them.
    /// Returns how many have become ready.
    fn advance(&mut self, mut todo: Vec<u64>) -> usize {
        let mut woken = 0;
        while let Some(id) = todo.pop() {
            let Some(lane) = self.lanes.get(&id) else { continue };
            if lane.running {
                continue;
            }
            match lane.ops.front() {
                None => {
                    if lane.dropped {
                        self.forget(id);
                    }
                }
                Some(Op::Wait(other, count)) => {
                    let (other, count, parked) = (*other, *count, lane.parked);
                    if self.is_done(other, count) {
                        todo.extend(self.finish(id));
                        todo.push(id);
                    } else if !parked {
                        if let Some(other) = self.lanes.get_mut(&other) {
                            other.waiters.push((count, id));
                        }
                        if let Some(lane) = self.lanes.get_mut(&id) {
                            lane.parked = true;
                        }
                    }
                }
                Some(Op::Stamp(at)) => {
                    // A stamp that has a time keeps it.
                    let _kept = at.set(Instant::now());
                    todo.extend(self.finish(id));
                    todo.push(id);
                }
                Some(Op::Task(_)) => {
                    if let Some(lane) = self.lanes.get_mut(&id)
                        && !lane.ready
                    {
                        lane.ready = true;
                        self.ready.push_back(id);
                        woken += 1;
                    }
                }
                Some(Op::Host) => {}
            }
        }
        woken
    }

    /// Completes the first operation of a stream. Returns the streams that waited for it.
    fn finish(&mut self, id: u64) -> Vec<u64> {
        let Some(lane) = self.lanes.get_mut(&id) else { return Vec::new() };
        if !lane.running {
            lane.ops.pop_front();
        }
        lane.running = false;
        lane.parked = false;
        lane.done += 1;
        let done = lane.done;
        let (free, waiting) = std::mem::take(&mut lane.waiters).into_iter().partition(|(n, _)| *n <= done);
        lane.waiters = waiting;
        let free: Vec<u64> = Vec::into_iter(free).map(|(_, id)| id).collect();
        for id in &free {
            if let Some(lane) = self.lanes.get_mut(id) {
                lane.parked = false;
            }
        }
        free
    }

    /// Removes the first task of a stream, to run it.
    fn take(&mut self, id: u64) -> Option<Task> {
        let lane = self.lanes.get_mut(&id)?;
        if lane.running || !matches!(lane.ops.front(), Some(Op::Task(_))) {
            return None;
        }
        let Some(Op::Task(task)) = lane.ops.pop_front() else { return None };
        lane.running = true;
        Some(task)
    }

    /// The next task that must run for a stream to advance.
    fn next_for(&mut self, mut id: u64) -> Option<(u64, Task)> {
        // Streams wait for each other in a circle only by a mistake of the caller; the wait is then endless.
        for _ in 0..self.lanes.len() {
            let lane = self.lanes.get(&id)?;
            match lane.ops.front() {
                Some(Op::Wait(other, _)) if !lane.running => id = *other,
                Some(Op::Task(_)) => return self.take(id).map(|task| (id, task)),
                Some(Op::Wait(..) | Op::Host | Op::Stamp(_)) | None => return None,
            }
        }
        None
    }

    /// Removes a stream. Waits for it count as complete.
    fn forget(&mut self, id: u64) {
        if let Some(lane) = self.lanes.remove(&id)
            && let Some(group) = self.groups.get_mut(&lane.group)
        {
            group.retain(|member| *member != id);
            if group.is_empty() {
                self.groups.remove(&lane.group);
            }
        }
    }
}

impl Executor {
    fn state(&self) -> MutexGuard<'_, State> {
        // Tasks run without the lock, and code with the lock does not panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An unused number for a group or stream.
    pub(crate) fn number(&self) -> u64 {
        let mut state = self.state();
        state.next += 1;
        state.next
    }

    /// A stream.
    pub(crate) fn stream(&self, group: u64, kind: StreamKind) -> u64 {
        let id = self.number();
        let mut state = self.state();
        let lane = Lane {
            group,
            kind,
            ops: VecDeque::new(),
            submitted: 0,
            done: 0,
            running: false,
            ready: false,
            parked: false,
            waiters: Vec::new(),
            dropped: false,
        };
        state.lanes.insert(id, lane);
        state.groups.entry(group).or_default().push(id);
        id
    }

    /// Closes a stream: it is removed after its last operation.
    pub(crate) fn close(self: &Arc<Self>, id: u64) {
        let mut state = self.state();
        if let Some(lane) = state.lanes.get_mut(&id) {
            lane.dropped = true;
        }
        self.settle(state, vec![id], 0);
    }

    /// Appends an operation, and returns its number.
    fn submit(self: &Arc<Self>, id: u64, op: Op) -> u64 {
        let mut state = self.state();
        state.order(id);
        let count = state.push(id, op);
        self.settle(state, vec![id], 0);
        count
    }

    /// Appends a task.
    pub(crate) fn task(self: &Arc<Self>, id: u64, task: impl FnOnce() + Send + 'static) -> u64 {
        self.submit(id, Op::Task(Box::new(task)))
    }

    /// Appends a time stamp.
    pub(crate) fn stamp(self: &Arc<Self>, id: u64, at: Arc<OnceLock<Instant>>) -> u64 {
        self.submit(id, Op::Stamp(at))
    }

    /// Makes later operations of a stream wait until another stream has completed this many operations.
    pub(crate) fn wait_for(self: &Arc<Self>, id: u64, other: u64, count: u64) {
        if other != id && !self.is_done(other, count) {
            self.submit(id, Op::Wait(other, count));
        }
    }

    /// Whether a stream has completed this many operations.
    pub(crate) fn is_done(&self, id: u64, count: u64) -> bool {
        self.state().is_done(id, count)
    }

    /// The number of operations submitted to a stream.
    pub(crate) fn submitted(&self, id: u64) -> u64 {
        self.state().lanes.get(&id).map_or(0, |lane| lane.submitted)
    }

    /// Waits until a stream has completed this many operations, and runs tasks meanwhile.
    pub(crate) fn wait(self: &Arc<Self>, id: u64, count: u64) {
        drop(self.wait_until(id, |state| state.is_done(id, count)));
    }

    /// Waits for all submitted operations of a group's streams; without a group, of all streams.
    pub(crate) fn wait_group(self: &Arc<Self>, group: Option<u64>) {
        let lanes = {
            let state = self.state();
            let all = state.lanes.iter().filter(|(_, lane)| group.is_none_or(|group| lane.group == group));
            let busy = all.filter(|(_, lane)| lane.done < lane.submitted);
            let mut busy: Vec<_> = busy.map(|(id, lane)| (*id, lane.submitted)).collect();
            busy.sort_unstable();
            busy
        };
        for (id, count) in lanes {
            self.wait(id, count);
        }
    }

    /// Runs a task while no stream is active: waits for all, and starts none meanwhile.
    pub(crate) fn run_alone<R>(self: &Arc<Self>, task: impl FnOnce() -> R) -> R {
        loop {
            self.wait_group(None);
            let state = self.state();
            if state.lanes.values().all(|lane| lane.done >= lane.submitted) {
                let result = task();
                drop(state);
                return result;
            }
        }
    }

    /// Runs a task on this thread, in the order of the stream.
    pub(crate) fn run_here<R>(self: &Arc<Self>, id: u64, task: impl FnOnce() -> R) -> R {
        let mut state = self.state();
        state.order(id);
        let count = state.push(id, Op::Host);
        let woken = state.advance(vec![id]);
        self.wake(state, woken, 0);
        let mine = |state: &State| match state.lanes.get(&id) {
            Some(lane) => !lane.running && lane.done + 1 == count,
            None => true,
        };
        let mut state = self.wait_until(id, mine);
        if let Some(lane) = state.lanes.get_mut(&id) {
            lane.ops.pop_front();
            lane.running = true;
        }
        drop(state);
        let result = catch_unwind(AssertUnwindSafe(task));
        self.finished(id, 0);
        result.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Waits for a condition, and meanwhile runs the tasks on which the stream depends.
    fn wait_until(self: &Arc<Self>, id: u64, holds: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let mut state = self.state();
        while !holds(&state) {
            if let Some((id, task)) = state.next_for(id) {
                drop(state);
                self.run(id, task, 0);
                state = self.state();
            } else {
                state.watchers += 1;
                state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.watchers -= 1;
            }
        }
        state
    }

    /// The loop of a thread of the pool.
    fn work(self: Arc<Self>) {
        let mut state = self.state();
        loop {
            while let Some(id) = state.ready.pop_front() {
                if let Some(lane) = state.lanes.get_mut(&id) {
                    lane.ready = false;
                }
                if let Some(task) = state.take(id) {
                    drop(state);
                    self.run(id, task, 1);
                    state = self.state();
                }
            }
            state.idle += 1;
            let waited = self.work.wait_timeout(state, LINGER).unwrap_or_else(PoisonError::into_inner);
            state = waited.0;
            state.idle -= 1;
            if waited.1.timed_out() && state.ready.is_empty() {
                return;
            }
        }
    }

    /// Runs a task. A panic in it is a bug that the panic hook has reported; the stream continues.
    fn run(self: &Arc<Self>, id: u64, task: Task, spare: usize) {
        let _reported: Result<(), Box<dyn Any + Send>> = catch_unwind(AssertUnwindSafe(task));
        self.finished(id, spare);
    }

    fn finished(self: &Arc<Self>, id: u64, spare: usize) {
        let mut state = self.state();
        let mut todo = state.finish(id);
        todo.push(id);
        self.settle(state, todo, spare);
    }

    /// Advances streams, and wakes the threads concerned; `spare` threads will look for work in any case.
    fn settle(self: &Arc<Self>, mut state: MutexGuard<'_, State>, ids: Vec<u64>, spare: usize) {
        let woken = state.advance(ids);
        self.wake(state, woken, spare);
    }

    fn wake(self: &Arc<Self>, state: MutexGuard<'_, State>, woken: usize, spare: usize) {
        let wanted = state.ready.len().saturating_sub(spare).min(woken);
        let new = state.ready.len().saturating_sub(spare + state.idle).min(wanted);
        let watched = state.watchers > 0;
        drop(state);
        for _ in 0..new {
            let pool = Arc::clone(self);
            // Without a new thread, the threads that wait for the work run it.
            let _none =
                std::thread::Builder::new().name("ptxvm stream".to_owned()).spawn(move || pool.work());
        }
        for _ in new..wanted {
            self.work.notify_one();
        }
        if watched {
            self.done.notify_all();
        }
    }
}
