//! cuBLAS and cuBLASLt (`libcublas`, `libcublasLt`) for programs that run on the PTX virtual machine, written from the public headers of CUDA 12
//! and 13.
//!
//! What a function computes is done on the host, with memory of the device, in the order of the handle's stream: our driver library takes it as work
//! of the stream, so that it comes behind kernels and copies, and into graphs that are captured. Both libraries are one file under two names, as a handle
//! of the one is also one of the other.
//!
//! One file for each part of the API. `entry` says how a function is written, `storage` how matrices come from the device's memory, `product` how they
//! are multiplied, `number` in which types.
//!
//! Invariants: every function of the public headers is exported; what is not done answers `CUBLAS_STATUS_NOT_SUPPORTED`, never success; no panic crosses into C;
//! only memory that a kernel could access is accessed, and checked before; `unsafe` stands in `driver`, `ffi` and `kernel` alone.
//!
//! What it does not do: the interfaces of the first version (`cublas.h`), several devices (`cublasXt`), floating point of 8 and
//! fewer bits.
#![allow(non_snake_case, reason = "functions have the names of the API")]
#![allow(clippy::too_many_arguments, reason = "functions have the parameters of BLAS")]
// They panic where the descriptor is full or its reader is gone.
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
