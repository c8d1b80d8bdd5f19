//! Variables of modules, which programs identify by their host shadows.
//!
//! Invariant: a copy that does not fit into the variable is an error.

use crate::device::context;
use crate::entry::{DefaultStream, runtime};
use crate::error::{Answer, Status, of_driver};
use crate::ffi::{Handle, Out};
use crate::memory::{Direction, copy};
use crate::registry::variable;
use std::ffi::c_int;

/// The address of a part of a variable.
pub(crate) fn part(symbol: Handle, bytes: usize, offset: usize) -> Result<Handle, Status> {
    let (address, size) = variable(symbol)?;
    let fits = offset.checked_add(bytes).is_some_and(|end| end <= size);
    if fits { Ok(Handle(address + offset)) } else { Err(Status::INVALID_VALUE) }
}

fn to_symbol(
    symbol: Handle,
    from: Handle,
    bytes: usize,
    offset: usize,
    kind: c_int,
    stream: Option<Handle>,
) -> Answer {
    let direction = match Direction::of(kind)? {
        direction @ (Direction::HostToDevice | Direction::DeviceToDevice | Direction::Default) => direction,
        Direction::HostToHost | Direction::DeviceToHost => return Err(Status::INVALID_MEMCPY_DIRECTION),
    };
    copy(part(symbol, bytes, offset)?, from, bytes, direction, stream)
}

fn from_symbol(
    to: Handle,
    symbol: Handle,
    bytes: usize,
    offset: usize,
    kind: c_int,
    stream: Option<Handle>,
) -> Answer {
    let direction = match Direction::of(kind)? {
        direction @ (Direction::DeviceToHost | Direction::DeviceToDevice | Direction::Default) => direction,
        Direction::HostToHost | Direction::HostToDevice => return Err(Status::INVALID_MEMCPY_DIRECTION),
    };
    copy(to, part(symbol, bytes, offset)?, bytes, direction, stream)
}

/// The stream of a synchronous copy: none, or the thread's default stream.
pub(crate) fn waited(default: DefaultStream) -> Option<Handle> {
    match default {
        DefaultStream::Legacy => None,
        DefaultStream::PerThread => Some(Handle(2)),
    }
}

/// Waits for a synchronous copy.
pub(crate) fn wait(default: DefaultStream) -> Answer {
    match waited(default) {
        Some(stream) => of_driver((context()?.cuStreamSynchronize)(stream)),
        None => Ok(()),
    }
}

runtime! {
    /// The address of a variable.
    fn cudaGetSymbolAddress(address: Out<usize>, symbol: Handle) {
        address.set(variable(symbol)?.0)
    }

    /// The size of a variable.
    fn cudaGetSymbolSize(bytes: Out<usize>, symbol: Handle) {
        bytes.set(variable(symbol)?.1)
    }

    /// Copies to a variable.
    fn cudaMemcpyToSymbol | cudaMemcpyToSymbol_ptds as default (
        symbol: Handle, from: Handle, bytes: usize, offset: usize, kind: c_int,
    ) {
        to_symbol(symbol, from, bytes, offset, kind, waited(default))?;
        wait(default)
    }

    /// Copies from a variable.
    fn cudaMemcpyFromSymbol | cudaMemcpyFromSymbol_ptds as default (
        to: Handle, symbol: Handle, bytes: usize, offset: usize, kind: c_int,
    ) {
        from_symbol(to, symbol, bytes, offset, kind, waited(default))?;
        wait(default)
    }

    /// Copies to a variable, in a stream.
    fn cudaMemcpyToSymbolAsync | cudaMemcpyToSymbolAsync_ptsz as default (
        symbol: Handle, from: Handle, bytes: usize, offset: usize, kind: c_int, stream: Handle,
    ) {
        to_symbol(symbol, from, bytes, offset, kind, Some(default.or(stream)))
    }

    /// Copies from a variable, in a stream.
    fn cudaMemcpyFromSymbolAsync | cudaMemcpyFromSymbolAsync_ptsz as default (
        to: Handle, symbol: Handle, bytes: usize, offset: usize, kind: c_int, stream: Handle,
    ) {
        from_symbol(to, symbol, bytes, offset, kind, Some(default.or(stream)))
    }
}
