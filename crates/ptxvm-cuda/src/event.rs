//! Events: positions in streams.
//!
//! Invariant: an event that was never recorded counts as complete.

use crate::capture::{Place, Slot};
use crate::context::{Context, current, named_or_current};
use crate::driver::driver;
use crate::entry::entries;
use crate::ffi::Out;
use crate::graph::Work;
use crate::handles::Handle;
use crate::ipc::SharedEvent;
use crate::status::{Answer, Status};
use crate::stream::{Queue, queue};
use ptxvm::Mark;
use std::ffi::c_uint;
use std::sync::{Arc, Mutex, PoisonError};

/// `CU_EVENT_DISABLE_TIMING`
const DISABLE_TIMING: c_uint = 2;
/// `CU_EVENT_INTERPROCESS`
const INTERPROCESS: c_uint = 4;

/// `CU_EVENT_RECORD_EXTERNAL`
const EXTERNAL: c_uint = 1;

/// An event.
pub(crate) struct Event {
    context: Arc<Context>,
    flags: c_uint,
    mark: Mutex<Option<Mark>>,
    /// The position in a capture, if the last record was in one.
    place: Mutex<Option<Place>>,
    /// The part that other processes share.
    shared: Option<Arc<SharedEvent>>,
}

impl Event {
    fn new(context: Arc<Context>, flags: c_uint, shared: Option<SharedEvent>) -> Self {
        let shared = shared.map(Arc::new);
        Self { context, flags, mark: Mutex::new(None), place: Mutex::new(None), shared }
    }

    /// An event that another process created.
    pub(crate) fn shared_with(context: Arc<Context>, shared: SharedEvent) -> Self {
        Self::new(context, DISABLE_TIMING | INTERPROCESS, Some(shared))
    }

    /// The part that other processes share.
    pub(crate) fn shared(&self) -> Option<&Arc<SharedEvent>> {
        self.shared.as_ref()
    }

    /// Makes later work of a stream wait for the event.
    ///
    /// # Errors
    /// The errors of a capture.
    pub(crate) fn wait_in(&self, queue: &Queue) -> Answer {
        let Some(shared) = &self.shared else {
            if let Some(mark) = self.mark() {
                queue.wait(&mark);
            }
            return Ok(());
        };
        let (shared, number, context) = (Arc::clone(shared), shared.recorded(), Arc::clone(&queue.context));
        if shared.is_reached(number) {
            return Ok(());
        }
        queue.submit(move || {
            shared.wait(number, || context.check().is_ok());
            Ok(())
        })
    }

    /// The position of the last record.
    pub(crate) fn mark(&self) -> Option<Mark> {
        self.mark.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether it belongs to a context.
    pub(crate) fn belongs_to(&self, context: &Arc<Context>) -> bool {
        Arc::ptr_eq(&self.context, context)
    }

    /// The position in a capture, if the last record was in one.
    pub(crate) fn place(&self) -> Option<Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn record(&self, mark: Mark) {
        *self.mark.lock().unwrap_or_else(PoisonError::into_inner) = Some(mark);
        *self.place.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Records the position in a stream, or in the capture that it takes part in.
    pub(crate) fn record_in(&self, queue: &Queue) {
        match queue.slot().and_then(Slot::place) {
            Some(place) => *self.place.lock().unwrap_or_else(PoisonError::into_inner) = Some(place),
            None => {
                let number = self.shared.as_ref().map(|shared| shared.record());
                if let (Some(shared), Some(number)) = (self.shared.clone(), number) {
                    queue.note(move || shared.reach(number));
                }
                self.record(queue.record());
            }
        }
    }

    /// Fails if it was recorded in a capture.
    fn check_reachable(&self) -> Answer {
        if self.place().is_some() { Err(Status::CapturedEvent) } else { Ok(()) }
    }
}

fn elapsed(milliseconds: Out<f32>, start: Handle, end: Handle) -> Answer {
    let (driver, _) = current()?;
    milliseconds.check()?;
    let (start, end) = (driver.events.get(start)?, driver.events.get(end)?);
    if (start.flags | end.flags) & DISABLE_TIMING != 0 {
        return Err(Status::InvalidHandle);
    }
    let (Some(start), Some(end)) = (start.mark(), end.mark()) else { return Err(Status::InvalidHandle) };
    let (Some(start), Some(end)) = (start.reached(), end.reached()) else { return Err(Status::NotReady) };
    let seconds = match end.checked_duration_since(start) {
        Some(forward) => forward.as_secs_f64(),
        None => -start.duration_since(end).as_secs_f64(),
    };
    milliseconds.set((seconds * 1000.0) as f32)
}

entries! { ENTRIES;
    /// Creates an event.
    fn cuEventCreate(event: Out<Handle>, flags: c_uint) {
        let (driver, context) = current()?;
        event.check()?;
        if flags & !7 != 0 || flags & INTERPROCESS != 0 && flags & DISABLE_TIMING == 0 {
            return Err(Status::InvalidValue);
        }
        let shared = if flags & INTERPROCESS != 0 { Some(SharedEvent::made(driver)?) } else { None };
        event.set(driver.events.insert(Event::new(context, flags, shared)))
    }

    /// Destroys an event.
    fn cuEventDestroy_v2(event: Handle) {
        driver()?.events.remove(event).map(|_| ())
    }

    /// Records an event in a stream.
    fn cuEventRecord | cuEventRecord_ptsz as default (event: Handle, stream: Handle) {
        let (driver, queue) = queue(stream, default)?;
        let event = driver.events.get(event)?;
        if !event.belongs_to(&queue.context) {
            return Err(Status::InvalidHandle);
        }
        event.record_in(&queue);
        Ok(())
    }

    /// Records an event in a stream.
    fn cuEventRecordWithFlags | cuEventRecordWithFlags_ptsz as default (event: Handle, stream: Handle, flags: c_uint) {
        let (driver, queue) = queue(stream, default)?;
        let handle = event;
        let event = driver.events.get(event)?;
        if flags > EXTERNAL {
            return Err(Status::InvalidValue);
        }
        if !event.belongs_to(&queue.context) {
            return Err(Status::InvalidHandle);
        }
        // In a capture, `CU_EVENT_RECORD_EXTERNAL` adds a node that records the event at each launch.
        if flags == EXTERNAL
            && let Some(added) = queue.captured(|| Ok(Work::Record(handle, Arc::clone(&event))))
        {
            return added;
        }
        event.record_in(&queue);
        Ok(())
    }

    /// Whether all work before an event is complete.
    fn cuEventQuery(event: Handle) {
        let event = driver()?.events.get(event)?;
        event.check_reachable()?;
        if let Some(shared) = event.shared()
            && !shared.is_reached(shared.recorded())
        {
            return event.context.check().and(Err(Status::NotReady));
        }
        if event.mark().is_none_or(|mark| mark.is_done()) { event.context.check() } else { Err(Status::NotReady) }
    }

    /// Waits for all work before an event.
    fn cuEventSynchronize(event: Handle) {
        let event = driver()?.events.get(event)?;
        event.check_reachable()?;
        if let Some(mark) = event.mark() {
            mark.wait();
        }
        if let Some(shared) = event.shared() {
            shared.wait(shared.recorded(), || event.context.check().is_ok());
        }
        event.context.check()
    }

    /// Milliseconds from one event to another.
    fn cuEventElapsedTime(milliseconds: Out<f32>, start: Handle, end: Handle) {
        elapsed(milliseconds, start, end)
    }

    /// Milliseconds from one event to another.
    fn cuEventElapsedTime_v2(milliseconds: Out<f32>, start: Handle, end: Handle) {
        elapsed(milliseconds, start, end)
    }

    /// Records an event after all work of a context.
    fn cuCtxRecordEvent(context: Handle, event: Handle) {
        let (driver, context) = named_or_current(context)?;
        let event = driver.events.get(event)?;
        if let Some(shared) = event.shared().cloned() {
            let number = shared.record();
            context.legacy.submit(move || shared.reach(number));
        }
        event.record(context.legacy.record());
        Ok(())
    }
}
