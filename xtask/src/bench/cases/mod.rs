//! The benchmarks, by kind of work.
//!
//! Invariant: PTX comes from `bench/kernels/*.cu` by clang; sizes are those for which the targets are stated.

mod approximate;
mod integers;
mod matrix;
mod pictures;
mod streaming;

use super::case::{Case, Size};

/// Makes a case.
pub(crate) type Make = fn(Size) -> Case;

/// All, with their names, in the order of the table.
pub(crate) const ALL: &[(&str, Make)] = &[
    ("saxpy", streaming::saxpy),
    ("black_scholes", approximate::black_scholes),
    ("nbody", approximate::nbody),
    ("sgemm_16", matrix::sgemm_16),
    ("sgemm_32", matrix::sgemm_32),
    ("sgemm_4x4", matrix::sgemm_4x4),
    ("hgemm", matrix::hgemm),
    ("mandelbrot", pictures::mandelbrot),
    ("reduction", streaming::reduction),
    ("histogram", integers::histogram_random),
    ("histogram_equal", integers::histogram_equal),
    ("sad_stereo", pictures::sad_stereo),
    ("sad_blocks", pictures::sad_blocks),
    ("stencil", streaming::stencil),
    ("transpose", streaming::transpose),
    ("scan", streaming::scan),
    ("bitonic_pairs", integers::bitonic_pairs),
    ("bitonic_keys", integers::bitonic_keys),
    ("sha256", integers::sha256),
    ("monte_carlo", integers::monte_carlo),
    ("softmax", approximate::softmax),
    ("matvec", matrix::matvec),
    ("convolution", pictures::convolution),
    ("particles", streaming::particles),
    ("waves", approximate::waves),
];
