//! Capture of streams: work that is submitted to a stream becomes nodes of a graph, and runs when the graph
//! is launched.
//!
//! A capture begins in one stream. Other streams join it when they wait for an event that was recorded in it.
//! Each captured stream keeps the nodes that its next node depends on.
//!
//! Invariant: while a stream is captured none of its work runs. An operation that cannot be a node fails and
//! invalidates the capture. What it does not do: callbacks of `cuStreamAddCallback` cannot be captured, and
//! the capture modes that restrict other calls of the process have no effect.

use crate::driver::{Driver, driver};
use crate::entry::{DefaultStream, entries};
use crate::ffi::{In, Out, Pointer};
use crate::graph::{Graph, Work, append};
use crate::handles::Handle;
use crate::status::{Answer, Status};
use crate::stream::queue;
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::ffi::{c_int, c_uint};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// `CU_STREAM_CAPTURE_STATUS_NONE`, `..._ACTIVE`, `..._INVALIDATED`
const STATUS: [c_int; 3] = [0, 1, 2];

/// A capture that was started.
pub(crate) struct Capture {
    id: u64,
    graph: Handle,
    /// Whether the graph was created for the capture and is not the program's.
    is_own: bool,
    /// The stream in which the capture began.
    origin: Slot,
    /// The streams that take part, including the first.
    streams: Mutex<Vec<Slot>>,
    /// The last nodes of participating streams that were destroyed.
    left: Mutex<Vec<Handle>>,
    /// An operation failed that cannot be in a graph.
    invalid: AtomicBool,
    ended: AtomicBool,
}

/// A stream's position in a capture.
#[derive(Clone)]
pub(crate) struct Place {
    capture: Arc<Capture>,
    /// The nodes that the next node depends on.
    after: Vec<Handle>,
}

/// The position of a stream, if it is captured. All handles of the stream share it.
#[derive(Clone, Default)]
pub(crate) struct Slot(Arc<Mutex<Option<Place>>>);

thread_local! {
    /// `CUstreamCaptureMode` of this thread.
    static MODE: Cell<c_int> = const { Cell::new(0) };
    /// The nodes that `cuStreamGetCaptureInfo` returned last. They are valid until the next call.
    static GIVEN: RefCell<Vec<Handle>> = const { RefCell::new(Vec::new()) };
}

impl Slot {
    /// Whether it is the position of the same stream.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Place>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stream's position.
    pub(crate) fn place(&self) -> Option<Place> {
        self.lock().clone()
    }

    /// Whether the stream is captured.
    pub(crate) fn is_captured(&self) -> bool {
        self.lock().is_some()
    }

    /// Fails and invalidates the capture if the stream is captured: for operations that cannot be nodes.
    ///
    /// # Errors
    /// `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED`.
    pub(crate) fn refuse(&self) -> Answer {
        match &*self.lock() {
            None => Ok(()),
            Some(place) => {
                place.capture.invalid.store(true, Ordering::Relaxed);
                Err(Status::StreamCaptureUnsupported)
            }
        }
    }

    /// Adds work as the next node.
    ///
    /// # Errors
    /// `CUDA_ERROR_STREAM_CAPTURE_INVALIDATED`.
    pub(crate) fn add(&self, work: Work) -> Answer {
        let mut place = self.lock();
        let place = place.as_mut().ok_or(Status::StreamCaptureInvalidated)?;
        place.capture.check()?;
        let driver = driver()?;
        let graph = driver.graphs.get(place.capture.graph)?;
        let node = append(driver, &graph, place.after.clone(), work)?;
        place.after = vec![node];
        Ok(())
    }

    /// Makes the next node also depend on the position in an event.
    ///
    /// # Errors
    /// `CUDA_ERROR_CAPTURED_EVENT` if the event's capture has ended, `CUDA_ERROR_STREAM_CAPTURE_MERGE` if the
    /// stream is in another.
    pub(crate) fn join(&self, event: Place) -> Answer {
        if event.capture.ended.load(Ordering::Relaxed) {
            return Err(Status::CapturedEvent);
        }
        event.capture.check()?;
        let mut place = self.lock();
        match &mut *place {
            None => {
                event.capture.streams().push(self.clone());
                *place = Some(event);
            }
            Some(place) if Arc::ptr_eq(&place.capture, &event.capture) => {
                let new =
                    event.after.into_iter().filter(|node| !place.after.contains(node)).collect::<Vec<_>>();
                place.after.extend(new);
            }
            Some(place) => {
                place.capture.invalid.store(true, Ordering::Relaxed);
                return Err(Status::StreamCaptureMerge);
            }
        }
        Ok(())
    }

    /// Removes a stream that is destroyed. A capture that began in it can never end and is invalidated. A
    /// capture that it only joined continues; its last nodes must be joined like those of the other streams.
    /// If no stream takes part in a capture any more, nothing can return its graph, which is destroyed.
    pub(crate) fn leave(&self, driver: &Driver) {
        let Some(Place { capture, after }) = self.lock().take() else { return };
        match capture.origin.is(self) {
            true => capture.invalid.store(true, Ordering::Relaxed),
            false => capture.left().extend(after),
        }
        let is_last = {
            let mut streams = capture.streams();
            streams.retain(|slot| !slot.is(self));
            streams.is_empty()
        };
        if is_last
            && capture.is_own
            && !capture.ended.swap(true, Ordering::Relaxed)
            && let Ok(graph) = driver.graphs.get(capture.graph)
        {
            graph.forget(driver);
        }
    }

    /// Fails if the stream is captured: for waiting on an event from outside the capture.
    ///
    /// # Errors
    /// `CUDA_ERROR_STREAM_CAPTURE_ISOLATION`.
    pub(crate) fn isolate(&self) -> Answer {
        self.refuse().map_err(|_| Status::StreamCaptureIsolation)
    }
}

impl Capture {
    fn check(&self) -> Answer {
        if self.invalid.load(Ordering::Relaxed) { Err(Status::StreamCaptureInvalidated) } else { Ok(()) }
    }

    fn left(&self) -> MutexGuard<'_, Vec<Handle>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn streams(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn begin(
    (stream, default): (Handle, DefaultStream),
    into: Option<(Handle, Vec<Handle>)>,
    mode: c_int,
) -> Answer {
    let (driver, queue) = queue(stream, default)?;
    if !(0..=2).contains(&mode) {
        return Err(Status::InvalidValue);
    }
    let slot = queue.slot().ok_or(Status::StreamCaptureUnsupported)?;
    let mut place = slot.lock();
    if place.is_some() {
        return Err(Status::IllegalState);
    }
    let (graph, after, is_own) = match into {
        Some((graph, after)) => {
            if !driver.graphs.get(graph)?.has_all(&after) {
                return Err(Status::InvalidValue);
            }
            (graph, after, false)
        }
        None => (Graph::make(driver).0, Vec::new(), true),
    };
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let capture = Arc::new(Capture {
        id: NEXT.fetch_add(1, Ordering::Relaxed),
        graph,
        is_own,
        origin: slot.clone(),
        streams: Mutex::new(vec![slot.clone()]),
        left: Mutex::default(),
        invalid: AtomicBool::new(false),
        ended: AtomicBool::new(false),
    });
    *place = Some(Place { capture, after });
    Ok(())
}

fn end((stream, default): (Handle, DefaultStream), out: Out<Handle>) -> Answer {
    let (driver, queue) = queue(stream, default)?;
    let slot = queue.slot().ok_or(Status::IllegalState)?;
    let place = slot.place().ok_or(Status::IllegalState)?;
    let capture = place.capture;
    // The program knows the graph that it captures into, and need not ask for it.
    let wants_graph = capture.is_own || !In::from(out).is_null();
    let give = |graph: Handle| if wants_graph { out.set(graph) } else { Ok(()) };
    if wants_graph {
        out.check()?;
    }
    if !Arc::ptr_eq(&capture.origin.0, &slot.0) {
        return Err(Status::StreamCaptureUnmatched);
    }
    capture.ended.store(true, Ordering::Relaxed);
    // The program may have destroyed the graph. The streams leave the capture in any case.
    let graph = driver.graphs.get(capture.graph);
    let before = graph.as_ref().map(|graph| graph.ancestors(&place.after)).unwrap_or_default();
    let mut joined = capture.left().iter().all(|node| before.contains(node));
    let streams: Vec<Slot> = capture.streams().drain(..).collect();
    for slot in streams {
        let other = slot.lock().take();
        joined &= other.is_none_or(|other| other.after.iter().all(|node| before.contains(node)));
    }
    let result = match capture.check() {
        Ok(()) if graph.is_err() => Err(Status::StreamCaptureInvalidated),
        Ok(()) if !joined => Err(Status::StreamCaptureUnjoined),
        result => result,
    };
    match result {
        Ok(()) => give(capture.graph),
        Err(status) => {
            if capture.is_own
                && let Ok(graph) = driver.graphs.get(capture.graph)
            {
                graph.forget(driver);
            }
            give(Handle::NULL)?;
            Err(status)
        }
    }
}

/// Writes the state of a stream's capture. Returns the stream's position if it is captured.
fn info((stream, default): (Handle, DefaultStream), status: Out<c_int>) -> Result<Option<Place>, Status> {
    let (_, queue) = queue(stream, default)?;
    let place = queue.slot().and_then(Slot::place);
    status.set(match &place {
        None => STATUS[0],
        Some(place) if place.capture.check().is_ok() => STATUS[1],
        Some(_) => STATUS[2],
    })?;
    Ok(place)
}

/// Writes the state of a stream's capture with the graph and the next node's dependencies.
fn whole_info(
    stream: (Handle, DefaultStream),
    status: Out<c_int>,
    (id, graph): (Out<u64>, Out<Handle>),
    (nodes, count): (Out<Pointer>, Out<usize>),
) -> Answer {
    let place = info(stream, status)?;
    id.set_optional(place.as_ref().map_or(0, |place| place.capture.id))?;
    graph.set_optional(place.as_ref().map_or(Handle::NULL, |place| place.capture.graph))?;
    let after = place.map_or_else(Vec::new, |place| place.after);
    count.set_optional(after.len())?;
    let give = |given: &RefCell<Vec<Handle>>| {
        let mut given = given.borrow_mut();
        *given = after;
        nodes.set_optional(if given.is_empty() { Pointer::NULL } else { Pointer::of_values(&given) })
    };
    // The list of a thread that is ending is gone.
    GIVEN.try_with(give).unwrap_or(Err(Status::Deinitialized))
}

/// Adds to the next node's dependencies, or replaces them.
fn update(stream: (Handle, DefaultStream), (nodes, count): (In<Handle>, usize), flags: c_uint) -> Answer {
    let (driver, queue) = queue(stream.0, stream.1)?;
    let nodes = if count == 0 { Vec::new() } else { nodes.all(count)? };
    let slot = queue.slot().ok_or(Status::IllegalState)?;
    let mut place = slot.lock();
    let place = place.as_mut().ok_or(Status::IllegalState)?;
    if flags > 1 || !driver.graphs.get(place.capture.graph)?.has_all(&nodes) {
        return Err(Status::InvalidValue);
    }
    if flags == 1 {
        place.after = nodes;
    } else {
        let known: HashSet<Handle> = place.after.iter().copied().collect();
        place.after.extend(nodes.into_iter().filter(|node| !known.contains(node)));
    }
    Ok(())
}

entries! { ENTRIES;
    /// Begins to capture a stream.
    fn cuStreamBeginCapture | cuStreamBeginCapture_ptsz as default (stream: Handle) {
        begin((stream, default), None, 0)
    }

    /// Begins to capture a stream.
    fn cuStreamBeginCapture_v2 | cuStreamBeginCapture_v2_ptsz as default (stream: Handle, mode: c_int) {
        begin((stream, default), None, mode)
    }

    /// Begins to capture a stream into a graph.
    fn cuStreamBeginCaptureToGraph | cuStreamBeginCaptureToGraph_ptsz as default (
        stream: Handle, graph: Handle, after: In<Handle>, _edges: Pointer, count: usize, mode: c_int,
    ) {
        let after = if count == 0 { Vec::new() } else { after.all(count)? };
        begin((stream, default), Some((graph, after)), mode)
    }

    /// Ends a capture, and returns its graph.
    fn cuStreamEndCapture | cuStreamEndCapture_ptsz as default (stream: Handle, graph: Out<Handle>) {
        end((stream, default), graph)
    }

    /// Whether a stream is captured.
    fn cuStreamIsCapturing | cuStreamIsCapturing_ptsz as default (stream: Handle, status: Out<c_int>) {
        info((stream, default), status).map(|_| ())
    }

    /// The capture that a stream takes part in.
    fn cuStreamGetCaptureInfo | cuStreamGetCaptureInfo_ptsz as default (stream: Handle, status: Out<c_int>, id: Out<u64>) {
        let place = info((stream, default), status)?;
        id.set_optional(place.map_or(0, |place| place.capture.id))
    }

    /// The capture that a stream takes part in, with its graph.
    fn cuStreamGetCaptureInfo_v2 | cuStreamGetCaptureInfo_v2_ptsz as default (
        stream: Handle, status: Out<c_int>, id: Out<u64>, graph: Out<Handle>, nodes: Out<Pointer>, count: Out<usize>,
    ) {
        whole_info((stream, default), status, (id, graph), (nodes, count))
    }

    /// The capture that a stream takes part in, with its graph; edges have no data.
    fn cuStreamGetCaptureInfo_v3 | cuStreamGetCaptureInfo_v3_ptsz as default (
        stream: Handle, status: Out<c_int>, id: Out<u64>, graph: Out<Handle>, nodes: Out<Pointer>, edges: Out<Pointer>,
        count: Out<usize>,
    ) {
        edges.set_optional(Pointer::NULL)?;
        whole_info((stream, default), status, (id, graph), (nodes, count))
    }

    /// Changes the dependencies of the next node of a captured stream.
    fn cuStreamUpdateCaptureDependencies | cuStreamUpdateCaptureDependencies_ptsz as default (
        stream: Handle, nodes: In<Handle>, count: usize, flags: c_uint,
    ) {
        update((stream, default), (nodes, count), flags)
    }

    /// Changes the dependencies of the next node of a captured stream; edges have no data.
    fn cuStreamUpdateCaptureDependencies_v2 | cuStreamUpdateCaptureDependencies_v2_ptsz as default (
        stream: Handle, nodes: In<Handle>, _edges: Pointer, count: usize, flags: c_uint,
    ) {
        update((stream, default), (nodes, count), flags)
    }

    /// Stores the thread's mode and returns the previous one. The mode has no effect.
    fn cuThreadExchangeStreamCaptureMode(mode: Out<c_int>) {
        let new = In::from(mode).get()?;
        if !(0..=2).contains(&new) {
            return Err(Status::InvalidValue);
        }
        mode.set(MODE.replace(new))
    }
}
