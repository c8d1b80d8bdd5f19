//! cuBLAS and cuBLASLt (`libcublas`, `libcublasLt`) for programs that run on the PTX virtual machine, written
//! from the public headers of CUDA 12 and 13.
//!
//! Functions compute on the host, with operands in device memory, in the order of the handle's stream.
//! ptxvm's driver library accepts the computation as work of the stream, so it is ordered after earlier
//! kernels and copies and becomes a node of a captured graph. Both libraries are one file under two names,
//! because a handle of one is also a handle of the other.
//!
//! Each part of the API has its file. `entry` has the macros that define functions, `storage` loads matrices
//! from device memory, `product` multiplies them, `number` has the types.
//!
//! Invariants: every function of the public headers is exported, and unsupported ones return
//! `CUBLAS_STATUS_NOT_SUPPORTED`. No panic crosses into C. Only memory that a kernel could access is
//! accessed, after a check. `unsafe` occurs only in `driver`, `ffi` and `kernel`.
//!
//! What it does not do: the interfaces of the first version (`cublas.h`), several devices (`cublasXt`),
//! floating point of 8 bits or fewer.
#![allow(non_snake_case, reason = "functions have the names of the API")]
#![allow(clippy::too_many_arguments, reason = "functions have the parameters of BLAS")]
// These macros panic if standard output or standard error is full or closed.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod columns;
mod driver;
mod entry;
mod factor;
mod ffi;
mod gemm;
mod gemv_batch;
mod handle;
mod kernel;
mod level1;
mod level1_ex;
mod level2;
mod level3;
mod log;
mod lt;
mod number;
mod operand;
mod product;
mod rank;
mod refused;
mod rotation;
mod status;
mod storage;
mod transfer;
mod triangle;
