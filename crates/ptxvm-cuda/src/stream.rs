//! Streams: ordered work of a context.
//!
//! Invariant: an operation does nothing if a trap hit its context after it was submitted, or if the context
//! is destroyed.

use crate::capture::Slot;
use crate::context::{Context, current, named_or_current};
use crate::driver::{Driver, driver};
use crate::entry::{DefaultStream, entries};
use crate::ffi::{HostFunction, Out, Pointer, StreamCallback};
use crate::graph::Work;
use crate::handles::Handle;
use crate::health;
use crate::status::{Answer, Status};
use crate::stream_attributes::Attributes;
use ptxvm::{Mark, Stream, StreamKind};
use std::cell::RefCell;
use std::ffi::{c_int, c_uint};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The highest priority of streams on such devices. Priorities have no effect.
pub(crate) const GREATEST_PRIORITY: c_int = -5;
/// `CU_STREAM_NON_BLOCKING`
const NON_BLOCKING: c_uint = 1;
/// `CU_EVENT_WAIT_EXTERNAL`
const EXTERNAL: c_uint = 1;
/// `CU_STREAM_LEGACY`
const LEGACY: Handle = Handle(1);
/// `CU_STREAM_PER_THREAD`
const PER_THREAD: Handle = Handle(2);

/// `CU_GRAPH_NODE_TYPE_MEMCPY`
const MEMCPY: c_int = 1;

/// A stream, and the context that it belongs to.
#[derive(Clone)]
pub(crate) struct Queue {
    pub(crate) context: Arc<Context>,
    stream: Arc<Stream>,
    flags: c_uint,
    priority: c_int,
    number: u64,
    /// Its position in a capture. The default stream of a context is never captured.
    slot: Option<Slot>,
    attributes: Arc<Attributes>,
}

thread_local! {
    /// The thread's own default streams, one for each context in which it used one.
    static OWN: RefCell<Own> = const { RefCell::new(Own(Vec::new())) };
}

/// Streams that end with their thread.
struct Own(Vec<Queue>);

impl Drop for Own {
    fn drop(&mut self) {
        if host_memory::is_forked() {
            // A thread that does not exist in a forked child may hold locks that dropping would wait for.
            std::mem::take(&mut self.0).into_iter().for_each(std::mem::forget);
            return;
        }
        for queue in &self.0 {
            let Some(slot) = &queue.slot else { continue };
            queue.context.own_slots().retain(|other| !other.is(slot));
            if let Ok(driver) = crate::driver::driver() {
                slot.leave(driver);
            }
        }
    }
}

fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(3);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The stream of a handle.
///
/// # Errors
/// `CUDA_ERROR_INVALID_HANDLE`, the errors of [`current`], and the error of a trap in the stream's context.
pub(crate) fn queue(handle: Handle, default: DefaultStream) -> Result<(&'static Driver, Queue), Status> {
    let (driver, context) = current()?;
    match (handle, default) {
        (LEGACY, _) | (Handle::NULL, DefaultStream::Legacy) => Ok((driver, legacy(context))),
        (PER_THREAD, _) | (Handle::NULL, DefaultStream::PerThread) => Ok((driver, own(context))),
        _ => {
            let queue = driver.streams.get(handle)?;
            queue.context.check()?;
            Ok((driver, Queue::clone(&queue)))
        }
    }
}

/// A context's stream for the handles 0 and 1.
fn legacy(context: Arc<Context>) -> Queue {
    let (stream, attributes) = (Arc::clone(&context.legacy), Arc::clone(&context.attributes));
    Queue { context, stream, flags: 0, priority: 0, number: 1, slot: None, attributes }
}

fn own(context: Arc<Context>) -> Queue {
    let late = Arc::clone(&context);
    let find = |own: &RefCell<Own>| {
        let own = &mut own.borrow_mut().0;
        own.retain(|queue| !queue.context.is_gone());
        if let Some(queue) = own.iter().find(|queue| Arc::ptr_eq(&queue.context, &context)) {
            return queue.clone();
        }
        let stream = Arc::new(context.streams.stream(StreamKind::Blocking));
        let slot = Slot::default();
        context.own_slots().push(slot.clone());
        let queue = Queue {
            context,
            stream,
            flags: 0,
            priority: 0,
            number: next_number(),
            slot: Some(slot),
            attributes: Arc::default(),
        };
        own.push(queue.clone());
        queue
    };
    // A thread that is ending has no own stream any more. The legacy stream replaces it: it is ordered after
    // all work that was in the own stream.
    OWN.try_with(find).unwrap_or_else(|_| legacy(late))
}

impl Queue {
    /// Leaves a capture, because the stream is destroyed.
    pub(crate) fn leave_capture(&self, driver: &Driver) {
        if let Some(slot) = &self.slot {
            slot.leave(driver);
        }
    }

    /// Its attributes.
    pub(crate) fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// The priority that it was created with.
    pub(crate) fn priority(&self) -> c_int {
        self.priority
    }

    /// Its position in a capture, unless it can never be captured.
    pub(crate) fn slot(&self) -> Option<&Slot> {
        self.slot.as_ref()
    }

    /// Whether it is captured.
    pub(crate) fn is_captured(&self) -> bool {
        self.slot.as_ref().is_some_and(Slot::is_captured)
    }

    /// Fails if it is captured, for operations that cannot be nodes of a graph.
    ///
    /// # Errors
    /// `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED`.
    pub(crate) fn refuse_capture(&self) -> Answer {
        self.slot.as_ref().map_or(Ok(()), Slot::refuse)
    }

    /// Runs work on another thread at its turn, or makes it a node of a graph. An error sets the context's
    /// error.
    ///
    /// # Errors
    /// The errors of a capture.
    pub(crate) fn submit(&self, work: impl Fn() -> Answer + Send + Sync + 'static) -> Answer {
        self.perform(When::InTurn, work)
    }

    /// Runs a function on another thread at its turn, also after a trap.
    pub(crate) fn note(&self, work: impl FnOnce() + Send + 'static) {
        self.stream.submit(work);
    }

    fn later(&self, work: impl FnOnce() -> Answer + Send + 'static) {
        let context = Arc::clone(&self.context);
        let epoch = context.health.epoch();
        self.stream.submit(move || {
            if epoch.is_over() {
                return;
            }
            if let Err(status) = health::working(work) {
                context.health.strike(&epoch, status);
            }
        });
    }

    /// Runs work on this thread at its turn.
    ///
    /// # Errors
    /// The work's own error, and the error of an earlier trap.
    fn run(&self, work: impl FnOnce() -> Answer) -> Answer {
        let result = self.stream.run(|| self.context.check().and_then(|()| work()));
        // If the work itself or other work set the context's error, that error is returned.
        result.map_err(|status| self.context.check().err().unwrap_or(status))
    }

    /// Runs work synchronously if the call is synchronous, else at its turn. In a captured stream it becomes
    /// a node of a graph, and may run repeatedly.
    ///
    /// # Errors
    /// The errors of [`Queue::run`] and of a capture.
    pub(crate) fn perform(&self, when: When, work: impl Fn() -> Answer + Send + Sync + 'static) -> Answer {
        if let Some(slot) = self.slot.as_ref().filter(|slot| slot.is_captured()) {
            return slot.add(Work::Again(MEMCPY, Arc::new(work)));
        }
        match when {
            When::Now => self.run(work),
            When::InTurn => {
                self.later(work);
                Ok(())
            }
        }
    }

    /// Adds work as the next node if the stream is captured. `None` if it is not.
    pub(crate) fn captured(&self, work: impl FnOnce() -> Result<Work, Status>) -> Option<Answer> {
        let slot = self.slot.as_ref().filter(|slot| slot.is_captured())?;
        Some(work().and_then(|work| slot.add(work)))
    }

    /// The position after all submitted work.
    pub(crate) fn record(&self) -> Mark {
        self.stream.record()
    }

    /// Makes later work wait for a position in another stream.
    pub(crate) fn wait(&self, mark: &Mark) {
        self.stream.wait(mark);
    }

    /// Waits for all submitted work.
    ///
    /// # Errors
    /// The error of a trap.
    pub(crate) fn synchronize(&self) -> Answer {
        self.refuse_capture()?;
        self.stream.synchronize();
        self.context.check()
    }
}

/// Whether a call returns after its work or before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// After its work.
    Now,
    /// Before its work.
    InTurn,
}

/// Whether a handle means the legacy default stream.
pub(crate) fn is_legacy(stream: Handle, default: DefaultStream) -> bool {
    stream == LEGACY || stream == Handle::NULL && default == DefaultStream::Legacy
}

fn create(out: Out<Handle>, flags: c_uint, priority: c_int) -> Answer {
    let (driver, context) = current()?;
    out.check()?;
    if flags & !NON_BLOCKING != 0 {
        return Err(Status::InvalidValue);
    }
    let kind = if flags & NON_BLOCKING != 0 { StreamKind::Independent } else { StreamKind::Blocking };
    let stream = Arc::new(context.streams.stream(kind));
    let priority = priority.clamp(GREATEST_PRIORITY, 0);
    out.set(driver.streams.insert(Queue {
        context,
        stream,
        flags,
        priority,
        number: next_number(),
        slot: Some(Slot::default()),
        attributes: Arc::default(),
    }))
}

fn call_in(queue: &Queue, function: HostFunction, data: Pointer) -> Answer {
    function.check()?;
    if let Some(added) = queue.captured(|| Ok(Work::Host(function, data))) {
        return added;
    }
    queue.submit(move || {
        function.call(data);
        Ok(())
    })
}

entries! { ENTRIES;
    /// Creates a stream.
    fn cuStreamCreate(stream: Out<Handle>, flags: c_uint) {
        create(stream, flags, 0)
    }

    /// Creates a stream with a priority, which is stored but has no effect.
    fn cuStreamCreateWithPriority(stream: Out<Handle>, flags: c_uint, priority: c_int) {
        create(stream, flags, priority)
    }

    /// Destroys a stream. Its work continues.
    fn cuStreamDestroy_v2(stream: Handle) {
        let driver = driver()?;
        driver.streams.remove(stream)?.leave_capture(driver);
        Ok(())
    }

    /// Waits for all work of a stream.
    fn cuStreamSynchronize | cuStreamSynchronize_ptsz as default (stream: Handle) {
        queue(stream, default)?.1.synchronize()
    }

    /// Whether the work of a stream is complete.
    fn cuStreamQuery | cuStreamQuery_ptsz as default (stream: Handle) {
        let (_, queue) = queue(stream, default)?;
        queue.refuse_capture()?;
        if queue.stream.is_idle() { queue.context.check() } else { Err(Status::NotReady) }
    }

    /// Makes later work of a stream wait for an event.
    fn cuStreamWaitEvent | cuStreamWaitEvent_ptsz as default (stream: Handle, event: Handle, flags: c_uint) {
        let (driver, queue) = queue(stream, default)?;
        if flags > 1 {
            return Err(Status::InvalidValue);
        }
        let handle = event;
        let event = driver.events.get(event)?;
        // In a capture, `CU_EVENT_WAIT_EXTERNAL` adds a node that waits for the event at each launch.
        if flags == EXTERNAL
            && let Some(added) = queue.captured(|| Ok(Work::Wait(handle, Arc::clone(&event))))
        {
            return added;
        }
        if let Some(place) = event.place() {
            return queue.slot.as_ref().ok_or(Status::StreamCaptureImplicit)?.join(place);
        }
        queue.slot.as_ref().map_or(Ok(()), Slot::isolate)?;
        event.wait_in(&queue)
    }

    /// The context of a stream.
    fn cuStreamGetCtx | cuStreamGetCtx_ptsz as default (stream: Handle, context: Out<Handle>) {
        context.set(queue(stream, default)?.1.context.handle)
    }

    /// The context of a stream.
    fn cuStreamGetCtx_v2 | cuStreamGetCtx_v2_ptsz as default (stream: Handle, context: Out<Handle>, green: Out<Handle>) {
        context.set(queue(stream, default)?.1.context.handle)?;
        green.set_optional(Handle::NULL)
    }

    /// The device of a stream.
    fn cuStreamGetDevice | cuStreamGetDevice_ptsz as default (stream: Handle, device: Out<c_int>) {
        device.set(queue(stream, default)?.1.context.device)
    }

    /// The flags that a stream was created with.
    fn cuStreamGetFlags | cuStreamGetFlags_ptsz as default (stream: Handle, flags: Out<c_uint>) {
        flags.set(queue(stream, default)?.1.flags)
    }

    /// The priority that a stream was created with.
    fn cuStreamGetPriority | cuStreamGetPriority_ptsz as default (stream: Handle, priority: Out<c_int>) {
        priority.set(queue(stream, default)?.1.priority)
    }

    /// A unique number of a stream.
    fn cuStreamGetId | cuStreamGetId_ptsz as default (stream: Handle, id: Out<u64>) {
        id.set(queue(stream, default)?.1.number)
    }

    /// Accepts a stream for managed memory. It has no effect: all streams and the host may use the memory.
    fn cuStreamAttachMemAsync | cuStreamAttachMemAsync_ptsz as default (stream: Handle, address: u64, _bytes: usize, flags: c_uint) {
        let (driver, _) = queue(stream, default)?;
        if !matches!(flags, 1 | 2 | 4) || driver.vm.allocation_at(address).is_none() {
            return Err(Status::InvalidValue);
        }
        Ok(())
    }

    /// Calls a host function after all earlier work.
    fn cuLaunchHostFunc | cuLaunchHostFunc_ptsz as default (stream: Handle, function: HostFunction, data: Pointer) {
        call_in(&queue(stream, default)?.1, function, data)
    }

    /// Calls a host function after all earlier work.
    fn cuLaunchHostFunc_v2 | cuLaunchHostFunc_v2_ptsz as default (
        stream: Handle, function: HostFunction, data: Pointer, _mode: c_uint,
    ) {
        call_in(&queue(stream, default)?.1, function, data)
    }

    /// Calls a host function after all earlier work, also after a trap.
    fn cuStreamAddCallback | cuStreamAddCallback_ptsz as default (
        stream: Handle, callback: StreamCallback, data: Pointer, flags: c_uint,
    ) {
        let (_, queue) = queue(stream, default)?;
        callback.check()?;
        if flags != 0 {
            return Err(Status::InvalidValue);
        }
        queue.refuse_capture()?;
        let context = Arc::clone(&queue.context);
        queue.stream.submit(move || {
            let status = context.health.error().map_or(Status::Success, |(status, _)| status);
            let status = if context.is_gone() { Status::ContextIsDestroyed } else { status };
            health::working(|| callback.call(stream, status, data));
        });
        Ok(())
    }

    /// Makes a context's later work wait for an event.
    fn cuCtxWaitEvent(context: Handle, event: Handle) {
        let (driver, context) = named_or_current(context)?;
        if let Some(mark) = driver.events.get(event)?.mark() {
            context.legacy.wait(&mark);
        }
        Ok(())
    }
}
