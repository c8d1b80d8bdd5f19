//! Libraries of device code that programs load themselves, and the parameters of kernels.
//!
//! Invariant: handles of libraries and kernels are the driver's; a kernel can be launched by its handle.

use crate::device::context;
use crate::entry::runtime;
use crate::error::of_driver;
use crate::ffi::Handle;
use crate::registry::function;
use std::ffi::c_uint;

runtime! {
    /// Loads device code. The numbers of options are the driver's.
    fn cudaLibraryLoadData(
        library: Handle, code: Handle, jit_options: Handle, jit_values: Handle, jit_count: c_uint,
        options: Handle, values: Handle, count: c_uint,
    ) => cuLibraryLoadData;

    /// Loads device code from a file.
    fn cudaLibraryLoadFromFile(
        library: Handle, name: Handle, jit_options: Handle, jit_values: Handle, jit_count: c_uint,
        options: Handle, values: Handle, count: c_uint,
    ) => cuLibraryLoadFromFile;

    /// Unloads device code.
    fn cudaLibraryUnload(library: Handle) => cuLibraryUnload;

    /// A kernel of a library.
    fn cudaLibraryGetKernel(kernel: Handle, library: Handle, name: Handle) => cuLibraryGetKernel;

    /// How many kernels a library has.
    fn cudaLibraryGetKernelCount(count: Handle, library: Handle) => cuLibraryGetKernelCount;

    /// The kernels of a library.
    fn cudaLibraryEnumerateKernels(kernels: Handle, count: c_uint, library: Handle) => cuLibraryEnumerateKernels;

    /// A variable of a library.
    fn cudaLibraryGetGlobal(address: Handle, bytes: Handle, library: Handle, name: Handle) => cuLibraryGetGlobal;

    /// A managed variable of a library.
    fn cudaLibraryGetManaged(address: Handle, bytes: Handle, library: Handle, name: Handle) => cuLibraryGetManaged;

    /// A function that host and device share. There are none.
    fn cudaLibraryGetUnifiedFunction(address: Handle, library: Handle, name: Handle) => cuLibraryGetUnifiedFunction;

    /// Offset and size of a parameter of a kernel.
    fn cudaFuncGetParamInfo(kernel: Handle, index: usize, offset: Handle, bytes: Handle) {
        let driver = context()?;
        of_driver((driver.cuFuncGetParamInfo)(function(kernel)?, index, offset, bytes))
    }

    /// How many parameters a kernel has.
    fn cudaFuncGetParamCount(kernel: Handle, count: Handle) {
        let driver = context()?;
        of_driver((driver.cuFuncGetParamCount)(function(kernel)?, count))
    }
}
