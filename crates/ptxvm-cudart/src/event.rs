//! Events.
//!
//! Invariant: handles are the driver's.

use crate::device::context;
use crate::entry::runtime;
use crate::error::of_driver;
use crate::ffi::Handle;
use std::ffi::c_uint;

runtime! {
    /// Makes an event.
    fn cudaEventCreate(event: Handle) {
        let driver = context()?;
        of_driver((driver.cuEventCreate)(event, 0))
    }

    /// Makes an event.
    fn cudaEventCreateWithFlags(event: Handle, flags: c_uint) => cuEventCreate;

    /// Records an event in a stream.
    fn cudaEventRecord | cudaEventRecord_ptsz as default (event: Handle, stream: Handle) {
        let driver = context()?;
        of_driver((driver.cuEventRecord)(event, default.or(stream)))
    }

    /// Records an event in a stream.
    fn cudaEventRecordWithFlags | cudaEventRecordWithFlags_ptsz as default (event: Handle, stream: Handle, _flags: c_uint) {
        let driver = context()?;
        of_driver((driver.cuEventRecord)(event, default.or(stream)))
    }

    /// Whether an event has completed.
    fn cudaEventQuery(event: Handle) => cuEventQuery;

    /// Waits for an event.
    fn cudaEventSynchronize(event: Handle) => cuEventSynchronize;

    /// Milliseconds between two events.
    fn cudaEventElapsedTime(milliseconds: Handle, start: Handle, end: Handle) => cuEventElapsedTime;

    /// Milliseconds between two events.
    fn cudaEventElapsedTime_v2(milliseconds: Handle, start: Handle, end: Handle) => cuEventElapsedTime;

    /// Destroys an event.
    fn cudaEventDestroy(event: Handle) => cuEventDestroy_v2;
}
