//! The only algorithm, number 0. It needs no workspace and accepts every alignment of the types.
//!
//! Invariant: it is offered for exactly the products that `cublasLtMatmul` computes. It has no options:
//! attributes other than its number are not supported.

use super::descriptor::{Kind, find};
use super::matmul::Plan;
use crate::entry::functions;
use crate::ffi::Pointer;
use crate::handle;
use crate::log;
use crate::number::DataType;
use crate::status::{Answer, valid};
use std::ffi::c_int;

/// The first word of this library's `cublasLtMatmulAlgo_t`. Chosen.
const MARK: u64 = 0x7074_7876_6d30_0000;

/// `cublasLtMatmulAlgo_t`, as bytes.
fn algorithm() -> [u8; 64] {
    let mut bytes = [0; 64];
    bytes[..8].copy_from_slice(&MARK.to_ne_bytes());
    bytes
}

/// Fails for bytes that are not this library's algorithm. A null pointer leaves the choice to the library.
///
/// # Errors
/// `CUBLAS_STATUS_INVALID_VALUE`.
pub(super) fn check(at: Pointer) -> Answer {
    if at.is_null() {
        return Ok(());
    }
    let mut mark = [0; 8];
    at.read(&mut mark)?;
    valid(u64::from_ne_bytes(mark) == MARK)
}

/// `cublasLtMatmulHeuristicResult_t`: the algorithm, no workspace, a state, and one wave.
fn result() -> [u8; 96] {
    let mut bytes = [0; 96];
    bytes[..64].copy_from_slice(&algorithm());
    bytes[76..80].copy_from_slice(&1f32.to_ne_bytes());
    bytes
}

/// Whether products of these types are supported.
fn is_known(compute: c_int, [a, b, c, d]: [c_int; 4]) -> bool {
    let known = |a, d| crate::gemm::kind(a, d, compute.into()).is_some();
    match (DataType::of(a.into()), DataType::of(d.into())) {
        (Some(input), Some(output)) => a == b && c == d && known(input, output),
        _ => false,
    }
}

/// Writes the only result, if the product is supported.
fn heuristic(
    handle: Pointer,
    operation: Pointer,
    layouts: [Pointer; 4],
    preference: Pointer,
    wanted: c_int,
    (results, count): (Pointer, Pointer),
) -> Answer {
    handle::settings(handle)?;
    find(preference, Kind::Preference)?;
    valid(wanted > 0 && !results.is_null() && !count.is_null())?;
    count.write(&0i32.to_ne_bytes())?;
    Plan::of(operation, layouts)?;
    results.write(&result())?;
    count.write(&1i32.to_ne_bytes())
}

/// Writes the result for an algorithm, if the product is supported.
fn fits(
    handle: Pointer,
    operation: Pointer,
    layouts: [Pointer; 4],
    which: Pointer,
    place: Pointer,
) -> Answer {
    handle::settings(handle)?;
    valid(!which.is_null())?;
    check(which)?;
    Plan::of(operation, layouts)?;
    place.write(&result())
}

functions! {
    cublasLtMatmulAlgoGetHeuristic(
        handle: Pointer, operation: Pointer, a: Pointer, b: Pointer, c: Pointer, d: Pointer, preference: Pointer,
        wanted: c_int, results: Pointer, count: Pointer
    ) {
        heuristic(handle, operation, [a, b, c, d], preference, wanted, (results, count))
    }

    // The algorithm does not depend on the stream.
    cublasLtMatmulAlgoGetHeuristicForStream(
        handle: Pointer, operation: Pointer, a: Pointer, b: Pointer, c: Pointer, d: Pointer, preference: Pointer,
        wanted: c_int, results: Pointer, count: Pointer, _stream: Pointer
    ) {
        heuristic(handle, operation, [a, b, c, d], preference, wanted, (results, count))
    }

    cublasLtMatmulAlgoGetIds(
        handle: Pointer, compute: c_int, _scale: c_int, a: c_int, b: c_int, c: c_int, d: c_int, wanted: c_int,
        ids: Pointer, count: Pointer
    ) {
        handle::settings(handle)?;
        valid(wanted > 0 && !ids.is_null())?;
        let there = is_known(compute, [a, b, c, d]);
        if there {
            ids.write(&0i32.to_ne_bytes())?;
        }
        if count.is_null() { Ok(()) } else { count.write(&c_int::from(there).to_ne_bytes()) }
    }

    cublasLtMatmulAlgoInit(
        handle: Pointer, compute: c_int, _scale: c_int, a: c_int, b: c_int, c: c_int, d: c_int, id: c_int,
        place: Pointer
    ) {
        handle::settings(handle)?;
        valid(id == 0)?;
        if !is_known(compute, [a, b, c, d]) {
            return log::refused(&format!("cublasLtMatmulAlgoInit with cudaDataType {a}, {b}, {c}, {d}"));
        }
        place.write(&algorithm())
    }

    cublasLtMatmulAlgoCheck(
        handle: Pointer, operation: Pointer, a: Pointer, b: Pointer, c: Pointer, d: Pointer, which: Pointer,
        place: Pointer
    ) {
        fits(handle, operation, [a, b, c, d], which, place)
    }

    cublasLtMatmulAlgoCheckForStream(
        handle: Pointer, operation: Pointer, a: Pointer, b: Pointer, c: Pointer, d: Pointer, which: Pointer,
        place: Pointer, _stream: Pointer
    ) {
        fits(handle, operation, [a, b, c, d], which, place)
    }

    cublasLtMatmulAlgoConfigGetAttribute(
        which: Pointer, attribute: c_int, to: Pointer, bytes: usize, written: Pointer
    ) {
        valid(!which.is_null())?;
        check(which)?;
        if attribute != 0 {
            return log::refused(&format!("cublasLtMatmulAlgoConfigGetAttribute of attribute {attribute}"));
        }
        if !written.is_null() {
            written.write(&4usize.to_ne_bytes())?;
        }
        if bytes == 0 {
            return valid(!written.is_null());
        }
        valid(bytes == 4)?;
        to.write(&0i32.to_ne_bytes())
    }

    cublasLtMatmulAlgoConfigSetAttribute(which: Pointer, attribute: c_int, _from: Pointer, _bytes: usize) {
        valid(!which.is_null())?;
        check(which)?;
        log::refused(&format!("cublasLtMatmulAlgoConfigSetAttribute of attribute {attribute}"))
    }

    cublasLtMatmulAlgoCapGetAttribute(
        which: Pointer, attribute: c_int, _to: Pointer, _bytes: usize, _written: Pointer
    ) {
        valid(!which.is_null())?;
        check(which)?;
        log::refused(&format!("cublasLtMatmulAlgoCapGetAttribute of attribute {attribute}"))
    }
}
