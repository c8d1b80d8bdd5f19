//! Executable graphs: copies of graphs that are launched as a whole.
//!
//! A launch submits the nodes to its stream in an order that respects all edges. The next launch of the same
//! executable graph waits for it, in any stream.
//!
//! Invariant: the nodes of an executable graph are in an order that respects all edges. A graph with a cycle
//! cannot be instantiated.

use super::memory::account;
use super::node::{Action, Work, kernel_action};
use super::{DEPTH_MAX, Graph};
use crate::context::Context;
use crate::driver::{Driver, driver};
use crate::entry::{DefaultStream, entries};
use crate::event::Event;
use crate::ffi::{In, Out};
use crate::handles::Handle;
use crate::log;
use crate::status::{Answer, Status};
use crate::stream::{Queue, When, queue};
use crate::user_object::Held;
use ptxvm::Mark;
use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_uint};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// `CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH`, which cannot be combined with [`DEVICE_LAUNCH`]
const AUTO_FREE: u64 = 1;
/// `CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD`, which has no effect: the graph needs no upload.
const UPLOAD: u64 = 2;
/// `CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH`
const DEVICE_LAUNCH: u64 = 4;
/// All flags. The last one keeps the nodes' priorities, which have no effect.
const INSTANTIATE_FLAGS: u64 = 15;

/// `CUgraphExecUpdateResult`
const UPDATED: c_int = 0;
const UPDATE_ERROR: c_int = 1;
const TOPOLOGY_CHANGED: c_int = 2;
const TYPE_CHANGED: c_int = 3;
const UPDATE_NOT_SUPPORTED: c_int = 6;

/// `CUDA_GRAPH_INSTANTIATE_PARAMS`
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct InstantiateParams {
    flags: u64,
    stream: Handle,
    node: Handle,
    result: c_int,
}

/// `CUgraphExecUpdateResultInfo`
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct UpdateResult {
    result: c_int,
    node: Handle,
    from: Handle,
}

/// `CUgraphExec`
pub(crate) struct Executable {
    number: u32,
    flags: u64,
    steps: Mutex<Vec<Step>>,
    /// Objects of the program that it and each of its launches keep alive.
    held: Arc<Held>,
    /// The end of its last launch.
    last: Mutex<Option<Mark>>,
}

/// A node of an executable graph.
#[derive(Clone)]
struct Step {
    node: Handle,
    work: Work,
    is_enabled: bool,
    /// The earlier steps that it waits for.
    after: Vec<usize>,
    /// The graphs that it contains.
    bodies: Vec<Vec<Step>>,
}

impl Step {
    /// The nodes of a graph, in order. A node's parameters that a program was shown stay as they were.
    fn all(graph: &Graph, depth: usize, is_body: bool) -> Result<Vec<Self>, Status> {
        if depth > DEPTH_MAX {
            return Err(Status::InvalidValue);
        }
        let nodes = graph.nodes();
        let order = Graph::order(&nodes)?;
        let mut at = HashMap::new();
        let mut steps = Vec::with_capacity(order.len());
        for place in order {
            let node = &nodes.list[place];
            let is_body_below = is_body || matches!(node.work, Work::Condition(_));
            if is_body && !may_be_in_a_body(&node.work) {
                return Err(Status::NotSupported);
            }
            let bodies = node.work.bodies().iter().map(|body| Self::all(body, depth + 1, is_body_below));
            let bodies = bodies.collect::<Result<_, _>>()?;
            let mut after: Vec<usize> =
                node.after.iter().filter_map(|before| at.get(before)).copied().collect();
            after.sort_unstable();
            at.insert(node.handle, steps.len());
            steps.push(Self { node: node.handle, work: node.work.clone(), is_enabled: true, after, bodies });
        }
        Ok(steps)
    }

    /// Whether other steps have the same types and edges. If not, the reason and the node.
    fn compare(old: &[Step], new: &[Step]) -> Result<(), (c_int, Handle)> {
        if old.len() != new.len() {
            return Err((TOPOLOGY_CHANGED, Handle::NULL));
        }
        for (old, new) in old.iter().zip(new) {
            if old.work.kind() != new.work.kind() || old.bodies.len() != new.bodies.len() {
                return Err((TYPE_CHANGED, new.node));
            }
            if old.after != new.after {
                return Err((TOPOLOGY_CHANGED, new.node));
            }
            if matches!(new.work, Work::Allocate(_) | Work::Free(_) | Work::Condition(_)) {
                return Err((UPDATE_NOT_SUPPORTED, new.node));
            }
            for (old, new) in old.bodies.iter().zip(&new.bodies) {
                Self::compare(old, new)?;
            }
        }
        Ok(())
    }

    /// Takes over the work of other steps with the same types and edges.
    fn update(old: &mut [Step], new: Vec<Step>) {
        for (old, new) in old.iter_mut().zip(new) {
            old.work = new.work;
            for (old, new) in old.bodies.iter_mut().zip(new.bodies) {
                Self::update(old, new);
            }
        }
    }

    fn find(steps: &mut [Step], node: Handle) -> Option<&mut Step> {
        for step in steps {
            if step.node == node {
                return Some(step);
            }
            for body in &mut step.bodies {
                if let Some(found) = Self::find(body, node) {
                    return Some(found);
                }
            }
        }
        None
    }

    /// The work of all steps and of the graphs in them, in order.
    fn works<'a>(steps: &'a [Step], all: &mut Vec<&'a Work>) {
        for step in steps {
            all.push(&step.work);
            step.bodies.iter().for_each(|body| Self::works(body, all));
        }
    }
}

/// Whether a node of this kind is allowed in the body of a condition.
fn may_be_in_a_body(work: &Work) -> bool {
    matches!(
        work,
        Work::Nothing | Work::Kernel(_) | Work::Copy(_) | Work::Set(_) | Work::Child(_) | Work::Condition(_)
    )
}

impl Executable {
    fn steps(&self) -> MutexGuard<'_, Vec<Step>> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<R>(&self, node: Handle, with: impl FnOnce(&mut Step) -> Result<R, Status>) -> Result<R, Status> {
        with(Step::find(&mut self.steps(), node).ok_or(Status::InvalidValue)?)
    }

    /// Sets the parameters of a node; its type stays.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE`; `CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE` for a child graph with other nodes
    /// or edges.
    pub(super) fn set(&self, node: Handle, work: Work) -> Answer {
        self.with(node, |step| {
            if step.work.kind() != work.kind() {
                return Err(Status::InvalidValue);
            }
            match work {
                Work::Child(child) => {
                    let new = Step::all(&child, 1, false)?;
                    let old = step.bodies.first_mut().ok_or(Status::InvalidValue)?;
                    Step::compare(old, &new).map_err(|_| Status::GraphExecUpdateFailure)?;
                    Step::update(old, new);
                }
                Work::Kernel(new) => {
                    // Attributes stay unchanged.
                    let before = match &step.work {
                        Work::Kernel(old) => (old.attributes.clone(), old.size.cooperative),
                        _ => return Err(Status::InvalidValue),
                    };
                    step.work = Work::Kernel(Arc::new(new.with(before.0, before.1)));
                }
                work => step.work = work,
            }
            Ok(())
        })
    }

    /// Enables or disables a kernel, memcpy or memset node.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE` for other nodes.
    pub(super) fn enable(&self, node: Handle, on: bool) -> Answer {
        self.with(node, |step| {
            if !matches!(step.work, Work::Kernel(_) | Work::Copy(_) | Work::Set(_)) {
                return Err(Status::InvalidValue);
            }
            step.is_enabled = on;
            Ok(())
        })
    }

    /// Whether a node is enabled.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE`.
    pub(super) fn is_enabled(&self, node: Handle) -> Result<bool, Status> {
        self.with(node, |step| Ok(step.is_enabled))
    }
}

/// A node that is about to run.
enum Ready {
    Do(Action),
    Record(Arc<Event>),
    Wait(Arc<Event>),
}

/// Prepares all nodes first, so that none is submitted if one of them cannot run.
fn prepare(driver: &'static Driver, context: &Arc<Context>, steps: &[Step], all: &mut Vec<Ready>) -> Answer {
    for step in steps.iter().filter(|step| step.is_enabled) {
        let action: Action = match &step.work {
            // A graph's memory is allocated as long as the graph lives.
            Work::Nothing | Work::Allocate(_) | Work::Free(_) => continue,
            Work::Child(_) => {
                step.bodies.iter().try_for_each(|body| prepare(driver, context, body, all))?;
                continue;
            }
            Work::Record(_, event) => {
                all.push(Ready::Record(Arc::clone(event)));
                continue;
            }
            Work::Wait(_, event) => {
                all.push(Ready::Wait(Arc::clone(event)));
                continue;
            }
            Work::Kernel(node) => kernel_action(driver, context, node)?,
            Work::Copy(node) => {
                let node = Arc::clone(node);
                Arc::new(move || node.run(driver))
            }
            Work::Set(set) => {
                let set = *set;
                Arc::new(move || set.run(driver))
            }
            Work::Host(function, data) => {
                let (function, data) = (*function, *data);
                Arc::new(move || {
                    function.call(data);
                    Ok(())
                })
            }
            Work::Batch(batch) => {
                let (batch, context) = (Arc::clone(batch), Arc::clone(context));
                Arc::new(move || {
                    let epoch = context.health.epoch();
                    batch.run(&driver.vm, || !epoch.is_over())
                })
            }
            Work::Again(_, action) => Arc::clone(action),
            Work::Condition(condition) => {
                let mut bodies = Vec::new();
                for body in &step.bodies {
                    let mut ready = Vec::new();
                    prepare(driver, context, body, &mut ready)?;
                    bodies.push(ready);
                }
                let (condition, context) = (Arc::clone(condition), Arc::clone(context));
                Arc::new(move || condition.run(&context, |index| run_all(&bodies[index])))
            }
        };
        all.push(Ready::Do(action));
    }
    Ok(())
}

/// Runs the body of a condition, which contains no event nodes.
fn run_all(body: &[Ready]) -> Answer {
    body.iter().try_for_each(|ready| match ready {
        Ready::Do(action) => action(),
        Ready::Record(_) | Ready::Wait(_) => Ok(()),
    })
}

/// Adds the nodes of a graph that is launched in a captured stream to the capture.
fn capture(queue: &Queue, steps: &[Step]) -> Answer {
    let Some(slot) = queue.slot() else { return Err(Status::StreamCaptureUnsupported) };
    for step in steps {
        match &step.work {
            Work::Child(_) => step.bodies.iter().try_for_each(|body| capture(queue, body))?,
            Work::Allocate(_) | Work::Free(_) | Work::Condition(_) => {
                log::refused("the launch of a graph with allocations or conditions in a captured stream");
                return queue.refuse_capture();
            }
            work => slot.add(if step.is_enabled { work.clone() } else { Work::Nothing })?,
        }
    }
    Ok(())
}

/// Submits all nodes to a stream.
fn run(executable: Handle, (stream, default): (Handle, DefaultStream)) -> Answer {
    let (driver, queue) = queue(stream, default)?;
    let executable = driver.executables.get(executable)?;
    let steps = executable.steps().clone();
    if queue.is_captured() {
        return capture(&queue, &steps);
    }
    let mut ready = Vec::new();
    prepare(driver, &queue.context, &steps, &mut ready)?;
    let mut works = Vec::new();
    Step::works(&steps, &mut works);
    account(driver, works.iter().copied(), executable.flags & AUTO_FREE != 0)?;
    let words: Vec<_> = works.iter().filter_map(|work| work.word()).collect();
    let mut last = executable.last.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(before) = &*last {
        queue.wait(before);
    }
    queue.submit(move || words.iter().try_for_each(|word| word.start()))?;
    // Programs that pass host memory to kernels read it without waiting.
    let when = if driver.vm.reaches_host() { When::Now } else { When::InTurn };
    let era = driver.objects.era();
    for ready in ready {
        match ready {
            Ready::Do(action) => queue.perform(when, move || action())?,
            Ready::Record(event) => event.record_in(&queue),
            Ready::Wait(event) => {
                if let Some(mark) = event.mark() {
                    queue.wait(&mark);
                }
            }
        }
    }
    // Data that the nodes use lives until they are complete.
    let kept = (steps, Arc::clone(&executable.held), era);
    queue.submit(move || {
        let _until_here = &kept;
        Ok(())
    })?;
    *last = Some(queue.record());
    Ok(())
}

fn instantiate(executable: Out<Handle>, graph: Handle, flags: u64) -> Answer {
    let driver = driver()?;
    executable.check()?;
    if flags & !INSTANTIATE_FLAGS != 0 || flags & (AUTO_FREE | DEVICE_LAUNCH) == AUTO_FREE | DEVICE_LAUNCH {
        return Err(Status::InvalidValue);
    }
    if flags & DEVICE_LAUNCH != 0 {
        log::refused("a graph that can be launched from kernels");
        return Err(Status::NotSupported);
    }
    let graph = driver.graphs.get(graph)?;
    let steps = Mutex::new(Step::all(&graph, 0, false)?);
    let held = Arc::new(graph.held.again()?);
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let made = Executable { number, flags, steps, held, last: Mutex::default() };
    executable.set(driver.executables.insert(made))
}

/// Updates the nodes with the parameters of another graph with the same nodes and edges.
fn update(executable: Handle, graph: Handle, tell: impl FnOnce(c_int, Handle) -> Answer) -> Answer {
    let driver = driver()?;
    let executable = driver.executables.get(executable)?;
    let graph = driver.graphs.get(graph)?;
    let new = match Step::all(&graph, 0, false) {
        Ok(new) => new,
        Err(_) => {
            tell(UPDATE_ERROR, Handle::NULL)?;
            return Err(Status::GraphExecUpdateFailure);
        }
    };
    let mut steps = executable.steps();
    match Step::compare(&steps, &new) {
        Ok(()) => {
            tell(UPDATED, Handle::NULL)?;
            Step::update(&mut steps, new);
            Ok(())
        }
        Err((why, node)) => {
            tell(why, node)?;
            Err(Status::GraphExecUpdateFailure)
        }
    }
}

entries! { ENTRIES;
    /// Instantiates a graph.
    fn cuGraphInstantiate(executable: Out<Handle>, graph: Handle, _node: Out<Handle>, _log: Out<c_char>, _bytes: usize) {
        instantiate(executable, graph, 0)
    }

    /// Instantiates a graph.
    fn cuGraphInstantiate_v2(executable: Out<Handle>, graph: Handle, _node: Out<Handle>, _log: Out<c_char>, _bytes: usize) {
        instantiate(executable, graph, 0)
    }

    /// Instantiates a graph.
    fn cuGraphInstantiateWithFlags(executable: Out<Handle>, graph: Handle, flags: u64) {
        // Only the function below has a parameter for the upload's stream.
        if flags & UPLOAD != 0 {
            return Err(Status::InvalidValue);
        }
        instantiate(executable, graph, flags)
    }

    /// Instantiates a graph, and returns the outcome in the parameters.
    fn cuGraphInstantiateWithParams | cuGraphInstantiateWithParams_ptsz as default (
        executable: Out<Handle>, graph: Handle, params: Out<InstantiateParams>,
    ) {
        let mut given = In::from(params).get()?;
        params.check()?;
        if given.flags & UPLOAD != 0 {
            queue(given.stream, default)?;
        }
        let result = instantiate(executable, graph, given.flags);
        given.node = Handle::NULL;
        // `CUDA_GRAPH_INSTANTIATE_SUCCESS`, `..._ERROR`, `..._INVALID_STRUCTURE`
        given.result = match result {
            Ok(()) => 0,
            Err(Status::InvalidValue) => 2,
            Err(_) => 1,
        };
        params.set(given)?;
        result
    }

    /// The flags of an executable graph's instantiation.
    fn cuGraphExecGetFlags(executable: Handle, flags: Out<u64>) {
        flags.check()?;
        flags.set(driver()?.executables.get(executable)?.flags)
    }

    /// The number of an executable graph.
    fn cuGraphExecGetId(executable: Handle, number: Out<c_uint>) {
        number.check()?;
        number.set(driver()?.executables.get(executable)?.number)
    }

    /// Updates an executable graph with the parameters of another graph with the same nodes and edges.
    fn cuGraphExecUpdate(executable: Handle, graph: Handle, node: Out<Handle>, result: Out<c_int>) {
        result.check()?;
        update(executable, graph, |why, which| {
            node.set_optional(which)?;
            result.set(why)
        })
    }

    /// Updates an executable graph with the parameters of another graph with the same nodes and edges.
    fn cuGraphExecUpdate_v2(executable: Handle, graph: Handle, result: Out<UpdateResult>) {
        result.check()?;
        update(executable, graph, |why, node| result.set(UpdateResult { result: why, node, from: Handle::NULL }))
    }

    /// Launches a graph.
    fn cuGraphLaunch | cuGraphLaunch_ptsz as default (executable: Handle, stream: Handle) {
        run(executable, (stream, default))
    }

    /// Uploads an executable graph to the device, which has no effect.
    fn cuGraphUpload | cuGraphUpload_ptsz as default (executable: Handle, stream: Handle) {
        let (driver, _) = queue(stream, default)?;
        driver.executables.get(executable).map(|_| ())
    }

    /// Destroys an executable graph. Its launches continue.
    fn cuGraphExecDestroy(executable: Handle) {
        driver()?.executables.remove(executable).map(|_| ())
    }
}
