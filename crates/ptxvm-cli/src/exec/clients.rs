//! Environment variables that make each client produce PTX, and find our libraries if it does not use the
//! loader.
//!
//! Invariant: each variable belongs to one client and has no meaning for others.

use super::folder::Folder;
use std::ffi::OsString;

/// The variables of all clients; a variable that the user has set is omitted.
pub(crate) fn variables(folder: &Folder) -> Vec<(&'static str, OsString)> {
    let cache = |client: &str| OsString::from(folder.cache(client));
    let tool = |name: &str| OsString::from(folder.bin().join(name));
    let lib = OsString::from(folder.lib());
    let driver = OsString::from(folder.lib().join("libcuda.so.1"));
    vec![
        // tinygrad: its CUDA device, with PTX from its own renderer.
        ("DEV", "CUDA:PTX".into()),
        ("CACHEDB", OsString::from(folder.cache("tinygrad.db"))),
        // Triton: its assembler is our stand-in, which forwards the text. Its old cache may contain machine
        // code.
        ("TRITON_PTXAS_PATH", tool("ptxas")),
        ("TRITON_PTXAS_BLACKWELL_PATH", tool("ptxas")),
        ("TRITON_LIBCUDA_PATH", lib.clone()),
        ("TRITON_CACHE_DIR", cache("triton")),
        // numba: the path of the driver, and no cached kernels.
        ("NUMBA_CUDA_DRIVER", driver),
        ("NUMBA_CACHE_DIR", cache("numba")),
        // CuPy: its compiler stops at PTX, and its precompiled reductions are not used.
        ("CUPY_COMPILE_WITH_PTX", "1".into()),
        ("CUPY_ACCELERATORS", "".into()),
        ("CUPY_CACHE_DIR", cache("cupy")),
        // PyCUDA caches binaries by the text of their source.
        ("PYCUDA_DISABLE_CACHE", "1".into()),
        // Compilation caches of libraries of several clients.
        ("CUDA_CACHE_PATH", cache("cuda")),
    ]
}
