//! Streams.
//!
//! Invariant: handles are the driver's. Handles 1 and 2 are the default streams.

use crate::device::context;
use crate::entry::runtime;
use crate::error::of_driver;
use crate::ffi::Handle;
use std::ffi::{c_int, c_uint};

runtime! {
    /// Makes a stream.
    fn cudaStreamCreate(stream: Handle) {
        let driver = context()?;
        of_driver((driver.cuStreamCreate)(stream, 0))
    }

    /// Makes a stream.
    fn cudaStreamCreateWithFlags(stream: Handle, flags: c_uint) => cuStreamCreate;

    /// Makes a stream with a priority.
    fn cudaStreamCreateWithPriority(stream: Handle, flags: c_uint, priority: c_int) => cuStreamCreateWithPriority;

    /// Destroys a stream.
    fn cudaStreamDestroy(stream: Handle) => cuStreamDestroy_v2;

    /// Waits for a stream.
    fn cudaStreamSynchronize | cudaStreamSynchronize_ptsz as default (stream: Handle) {
        let driver = context()?;
        of_driver((driver.cuStreamSynchronize)(default.or(stream)))
    }

    /// Whether the work of a stream is complete.
    fn cudaStreamQuery | cudaStreamQuery_ptsz as default (stream: Handle) {
        let driver = context()?;
        of_driver((driver.cuStreamQuery)(default.or(stream)))
    }

    /// Makes a stream wait for an event.
    fn cudaStreamWaitEvent | cudaStreamWaitEvent_ptsz as default (stream: Handle, event: Handle, flags: c_uint) {
        let driver = context()?;
        of_driver((driver.cuStreamWaitEvent)(default.or(stream), event, flags))
    }

    /// Calls a host function after the stream's earlier work.
    fn cudaStreamAddCallback | cudaStreamAddCallback_ptsz as default (
        stream: Handle, callback: Handle, data: Handle, flags: c_uint,
    ) {
        let driver = context()?;
        of_driver((driver.cuStreamAddCallback)(default.or(stream), callback, data, flags))
    }

    /// The priority of a stream.
    fn cudaStreamGetPriority | cudaStreamGetPriority_ptsz as default (stream: Handle, priority: Handle) {
        let driver = context()?;
        of_driver((driver.cuStreamGetPriority)(default.or(stream), priority))
    }

    /// The flags of a stream.
    fn cudaStreamGetFlags | cudaStreamGetFlags_ptsz as default (stream: Handle, flags: Handle) {
        let driver = context()?;
        of_driver((driver.cuStreamGetFlags)(default.or(stream), flags))
    }

    /// The number of a stream.
    fn cudaStreamGetId | cudaStreamGetId_ptsz as default (stream: Handle, id: Handle) {
        let driver = context()?;
        of_driver((driver.cuStreamGetId)(default.or(stream), id))
    }

    /// The device of a stream.
    fn cudaStreamGetDevice | cudaStreamGetDevice_ptsz as default (stream: Handle, device: Handle) {
        let driver = context()?;
        of_driver((driver.cuStreamGetDevice)(default.or(stream), device))
    }

    /// An attribute of a stream. The numbers are the driver's.
    fn cudaStreamGetAttribute | cudaStreamGetAttribute_ptsz as default (stream: Handle, attribute: c_int, value: Handle) {
        let driver = context()?;
        of_driver((driver.cuStreamGetAttribute)(default.or(stream), attribute, value))
    }

    /// Sets an attribute of a stream.
    fn cudaStreamSetAttribute | cudaStreamSetAttribute_ptsz as default (stream: Handle, attribute: c_int, value: Handle) {
        let driver = context()?;
        of_driver((driver.cuStreamSetAttribute)(default.or(stream), attribute, value))
    }

    /// Gives a stream the attributes of another.
    fn cudaStreamCopyAttributes | cudaStreamCopyAttributes_ptsz as default (to: Handle, from: Handle) {
        let driver = context()?;
        of_driver((driver.cuStreamCopyAttributes)(default.or(to), default.or(from)))
    }

    /// Whether a stream is captured.
    fn cudaStreamIsCapturing | cudaStreamIsCapturing_ptsz as default (stream: Handle, status: Handle) {
        let driver = context()?;
        of_driver((driver.cuStreamIsCapturing)(default.or(stream), status))
    }
}
