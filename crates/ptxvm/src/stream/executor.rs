//! Runs the operations of streams: each stream's in order, those of several streams at once.
//!
//! An operation is a task, a wait for a place in another stream, or a stamp that notes the time. Tasks run on threads that come when there is
//! work and go when there is none, or on a thread that waits for them.
//!
//! Invariants: the operations of a stream are counted from 1 and are done in that order; no thread sleeps in an operation that waits for
//! another stream; a thread of the pool is free for each stream whose next operation is ready, so that a task that waits for the host, or for a task
//! of another stream, holds up only its own stream.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How long a thread of the pool stays without work. Chosen.
const LINGER: Duration = Duration::from_secs(5);

/// How a stream is ordered with the others of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// With the blocking ones: an operation begins after all that was submitted to them before, and theirs that come later after it.
    Legacy,
    /// With the legacy one.
    Blocking,
    /// With none.
    Independent,
}

/// Work that a thread can take.
type Task = Box<dyn FnOnce() + Send>;

/// An operation.
enum Op {
    Task(Task),
    /// A task that the thread that submitted it runs itself.
    Host,
    Wait(u64, u64),
    Stamp(Arc<OnceLock<Instant>>),
}

/// A stream.
struct Lane {
    group: u64,
    kind: StreamKind,
    ops: VecDeque<Op>,
    /// How many operations were submitted, and are done.
    submitted: u64,
    done: u64,
    /// A task of it runs.
    running: bool,
    /// It is in `ready`.
    ready: bool,
    /// It is in the list of a stream that it waits for.
    parked: bool,
    /// Streams that wait until so many operations are done.
    waiters: Vec<(u64, u64)>,
    /// Nobody submits any more.
    dropped: bool,
}

#[derive(Default)]
struct State {
    lanes: HashMap<u64, Lane>,
    /// By group, its streams.
    groups: HashMap<u64, Vec<u64>>,
    next: u64,
    /// Streams with a task at their head.
    ready: VecDeque<u64>,
    /// Threads of the pool that wait for work.
    idle: usize,
    /// Threads outside that wait for an operation.
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

    /// Makes what is submitted next to a stream wait for what its kind says.
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

    /// Does what can be done without a thread, for streams and those that wait for them. Returns how many streams have become ready.
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
                    // A stamp that was given a time already keeps it.
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

    /// The first operation of a stream is done. Returns the streams that waited for it.
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

    /// Takes the task at the head of a stream to run it.
    fn take(&mut self, id: u64) -> Option<Task> {
        let lane = self.lanes.get_mut(&id)?;
        if lane.running || !matches!(lane.ops.front(), Some(Op::Task(_))) {
            return None;
        }
        let Some(Op::Task(task)) = lane.ops.pop_front() else { return None };
        lane.running = true;
        Some(task)
    }

    /// The task that must run next for a stream to go on.
    fn next_for(&mut self, mut id: u64) -> Option<(u64, Task)> {
        // Streams may wait for each other in a circle only through a mistake of the caller, who then waits for ever.
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

    /// Removes a stream. What waited for it finds it gone, which counts as done.
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
        // Tasks run outside of the lock, and nothing inside it panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number that no group or stream has.
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

    /// The stream takes no more operations, and goes when its last one is done.
    pub(crate) fn close(self: &Arc<Self>, id: u64) {
        let mut state = self.state();
        if let Some(lane) = state.lanes.get_mut(&id) {
            lane.dropped = true;
        }
        self.settle(state, vec![id], 0);
    }

    /// Appends an operation. Returns its count in the stream.
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

    /// Appends a note of the time.
    pub(crate) fn stamp(self: &Arc<Self>, id: u64, at: Arc<OnceLock<Instant>>) -> u64 {
        self.submit(id, Op::Stamp(at))
    }

    /// What is submitted next to a stream waits until another has done so many operations.
    pub(crate) fn wait_for(self: &Arc<Self>, id: u64, other: u64, count: u64) {
        if other != id && !self.is_done(other, count) {
            self.submit(id, Op::Wait(other, count));
        }
    }

    /// Whether a stream has done so many operations.
    pub(crate) fn is_done(&self, id: u64, count: u64) -> bool {
        self.state().is_done(id, count)
    }

    /// How many operations a stream has been given.
    pub(crate) fn submitted(&self, id: u64) -> u64 {
        self.state().lanes.get(&id).map_or(0, |lane| lane.submitted)
    }

    /// Waits until a stream has done so many operations, and helps.
    pub(crate) fn wait(self: &Arc<Self>, id: u64, count: u64) {
        drop(self.wait_until(id, |state| state.is_done(id, count)));
    }

    /// Waits for everything that streams of a group were given; without a group, all streams.
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

    /// Runs a task while no stream does anything: waits until all are done, and lets none begin meanwhile.
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

    /// Runs a task on this thread when its turn in the stream has come.
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

    /// Waits until something holds, and meanwhile runs what a stream waits for.
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

    /// What a thread of the pool does.
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

    /// Runs a task that was taken. A panic in it is a bug that the panic hook has reported; the stream goes on.
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

    /// Goes on with streams, and wakes whom it concerns; `spare` threads will look for work anyway.
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
            // Without a thread the work is done by whoever waits for it.
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
