//! First forms of functions whose second form has the same parameters.
//!
//! Headers replace the names by those of the second form, so only programs that search a function by its
//! plain name call these. First forms that differ have addresses and sizes of 32 bits, and are refused.
//!
//! Invariant: a first form does what the second does, and is logged by the second's name.

use crate::array::Plain;
use crate::context::{
    cuCtxDestroy_v2, cuCtxPopCurrent_v2, cuCtxPushCurrent_v2, cuDevicePrimaryCtxRelease_v2,
    cuDevicePrimaryCtxReset_v2, cuDevicePrimaryCtxSetFlags_v2,
};
use crate::entry::{Entry, row};
use crate::event::cuEventDestroy_v2;
use crate::ffi::{In, Out, Pointer, Text};
use crate::handles::Handle;
use crate::link::{cuLinkAddData_v2, cuLinkAddFile_v2, cuLinkCreate_v2};
use crate::memory::cuMemHostRegister_v2;
use crate::memory_operations::Words;
use crate::status::Status;
use crate::stream::cuStreamDestroy_v2;
use crate::stream_values::{
    cuStreamBatchMemOp_v2, cuStreamBatchMemOp_v2_ptsz, cuStreamWaitValue32_v2, cuStreamWaitValue32_v2_ptsz,
    cuStreamWaitValue64_v2, cuStreamWaitValue64_v2_ptsz, cuStreamWriteValue32_v2,
    cuStreamWriteValue32_v2_ptsz, cuStreamWriteValue64_v2, cuStreamWriteValue64_v2_ptsz,
};
use crate::texref::cuTexRefSetAddress2D_v3;
use std::ffi::{c_int, c_uint};

macro_rules! first_forms {
    ($(#[doc = $doc:literal] fn $name:ident($($arg:ident: $ty:ty),*) => $second:ident;)*) => {
        $(
            #[doc = $doc]
            #[unsafe(no_mangle)]
            extern "C" fn $name($($arg: $ty),*) -> Status {
                $second($($arg),*)
            }
        )*

        /// The entry points of this file.
        pub(crate) const ENTRIES: &[Entry] = &[$(row!($doc; $name)),*];
    };
}

first_forms! {
    /// Destroys a context.
    fn cuCtxDestroy(context: Handle) => cuCtxDestroy_v2;
    /// Pops the current context from the thread's stack.
    fn cuCtxPopCurrent(context: Out<Handle>) => cuCtxPopCurrent_v2;
    /// Pushes a context onto the thread's stack.
    fn cuCtxPushCurrent(context: Handle) => cuCtxPushCurrent_v2;
    /// Releases the primary context of a device.
    fn cuDevicePrimaryCtxRelease(number: c_int) => cuDevicePrimaryCtxRelease_v2;
    /// Destroys the primary context of a device.
    fn cuDevicePrimaryCtxReset(number: c_int) => cuDevicePrimaryCtxReset_v2;
    /// Sets the flags of the primary context of a device.
    fn cuDevicePrimaryCtxSetFlags(number: c_int, flags: c_uint) => cuDevicePrimaryCtxSetFlags_v2;
    /// Destroys a stream. Its work continues.
    fn cuStreamDestroy(stream: Handle) => cuStreamDestroy_v2;
    /// Destroys an event.
    fn cuEventDestroy(event: Handle) => cuEventDestroy_v2;
    /// Lets kernels access memory of the host.
    fn cuMemHostRegister(start: Pointer, bytes: usize, flags: c_uint) => cuMemHostRegister_v2;
    /// Binds rows of memory to a texture reference.
    fn cuTexRefSetAddress2D_v2(handle: Handle, description: In<Plain>, address: u64, pitch: usize) => cuTexRefSetAddress2D_v3;
    /// Starts to link.
    fn cuLinkCreate(count: c_uint, options: In<c_int>, values: Pointer, state: Out<Handle>) => cuLinkCreate_v2;
    /// Adds a module that is linked.
    fn cuLinkAddData(state: Handle, kind: c_int, data: Pointer, bytes: usize, name: Text, count: c_uint, options: In<c_int>, values: Pointer) => cuLinkAddData_v2;
    /// Adds a file that is linked.
    fn cuLinkAddFile(state: Handle, kind: c_int, path: Text, count: c_uint, options: In<c_int>, values: Pointer) => cuLinkAddFile_v2;
    /// Waits until a number in memory satisfies a condition.
    fn cuStreamWaitValue32(stream: Handle, address: u64, value: u32, flags: c_uint) => cuStreamWaitValue32_v2;
    /// Waits until a number in memory satisfies a condition.
    fn cuStreamWaitValue32_ptsz(stream: Handle, address: u64, value: u32, flags: c_uint) => cuStreamWaitValue32_v2_ptsz;
    /// Waits until a number in memory satisfies a condition.
    fn cuStreamWaitValue64(stream: Handle, address: u64, value: u64, flags: c_uint) => cuStreamWaitValue64_v2;
    /// Waits until a number in memory satisfies a condition.
    fn cuStreamWaitValue64_ptsz(stream: Handle, address: u64, value: u64, flags: c_uint) => cuStreamWaitValue64_v2_ptsz;
    /// Writes a number to memory.
    fn cuStreamWriteValue32(stream: Handle, address: u64, value: u32, flags: c_uint) => cuStreamWriteValue32_v2;
    /// Writes a number to memory.
    fn cuStreamWriteValue32_ptsz(stream: Handle, address: u64, value: u32, flags: c_uint) => cuStreamWriteValue32_v2_ptsz;
    /// Writes a number to memory.
    fn cuStreamWriteValue64(stream: Handle, address: u64, value: u64, flags: c_uint) => cuStreamWriteValue64_v2;
    /// Writes a number to memory.
    fn cuStreamWriteValue64_ptsz(stream: Handle, address: u64, value: u64, flags: c_uint) => cuStreamWriteValue64_v2_ptsz;
    /// Waits for numbers in memory and writes numbers, in order.
    fn cuStreamBatchMemOp(stream: Handle, count: c_uint, operations: In<Words>, flags: c_uint) => cuStreamBatchMemOp_v2;
    /// Waits for numbers in memory and writes numbers, in order.
    fn cuStreamBatchMemOp_ptsz(stream: Handle, count: c_uint, operations: In<Words>, flags: c_uint) => cuStreamBatchMemOp_v2_ptsz;
}
