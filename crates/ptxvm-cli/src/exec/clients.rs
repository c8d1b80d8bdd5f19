//! What makes each client hand over PTX, and find our libraries where it does not ask the loader.
//!
//! Invariant: each variable belongs to one client and has no meaning for others.

use super::folder::Folder;
use std::ffi::OsString;

/// The variables of all clients, each set only where the user has not.
pub(crate) fn variables(folder: &Folder) -> Vec<(&'static str, OsString)> {
    let cache = |client: &str| OsString::from(folder.cache(client));
    let tool = |name: &str| OsString::from(folder.bin().join(name));
    let lib = OsString::from(folder.lib());
    let driver = OsString::from(folder.lib().join("libcuda.so.1"));
    vec![
        // tinygrad: its CUDA device, with PTX from its own renderer.
        ("DEV", "CUDA:PTX".into()),
        ("CACHEDB", OsString::from(folder.cache("tinygrad.db"))),
        // Triton: its assembler is our stand-in, which hands the text on. What it cached before may be machine code.
        ("TRITON_PTXAS_PATH", tool("ptxas")),
        ("TRITON_PTXAS_BLACKWELL_PATH", tool("ptxas")),
        ("TRITON_LIBCUDA_PATH", lib.clone()),
        ("TRITON_CACHE_DIR", cache("triton")),
        // numba: the driver by its path, and no kernels of earlier runs.
        ("NUMBA_CUDA_DRIVER", driver),
        ("NUMBA_CACHE_DIR", cache("numba")),
        // CuPy: its compiler stops at PTX, and it does not use the reductions that it brings along as machine code.
        ("CUPY_COMPILE_WITH_PTX", "1".into()),
        ("CUPY_ACCELERATORS", "".into()),
        ("CUPY_CACHE_DIR", cache("cupy")),
        // PyCUDA keeps binaries by the text of their source.
        ("PYCUDA_DISABLE_CACHE", "1".into()),
        // What libraries of several clients keep compiled.
        ("CUDA_CACHE_PATH", cache("cuda")),
    ]
}
