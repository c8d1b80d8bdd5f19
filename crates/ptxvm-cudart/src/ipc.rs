//! Memory and events that are shared with other processes.
//!
//! Invariant: handles are the driver's.

use crate::entry::runtime;
use crate::ffi::Handle;
use crate::structures::Name;
use std::ffi::c_uint;

runtime! {
    /// A handle by which another process opens an allocation.
    fn cudaIpcGetMemHandle(name: Handle, pointer: Handle) => cuIpcGetMemHandle;

    /// Opens memory of another process.
    fn cudaIpcOpenMemHandle(pointer: Handle, name: Name, flags: c_uint) => cuIpcOpenMemHandle_v2;

    /// Closes memory of another process.
    fn cudaIpcCloseMemHandle(pointer: Handle) => cuIpcCloseMemHandle;

    /// A handle by which another process opens an event.
    fn cudaIpcGetEventHandle(name: Handle, event: Handle) => cuIpcGetEventHandle;

    /// Opens an event of another process.
    fn cudaIpcOpenEventHandle(event: Handle, name: Name) => cuIpcOpenEventHandle;
}
