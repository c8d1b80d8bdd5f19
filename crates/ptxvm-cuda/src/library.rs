//! What our other libraries ask of the driver: work in the order of a stream, whether a kernel could reach some bytes, and what a trap has left.
//!
//! `libcublas` computes on the host with memory of the device. Host functions of the public interface do not do for it: they cannot fail, and
//! nothing says when a graph is done with their data. These entry points are not part of the driver API, so no list of it names them.
//!
//! Invariant: `release` is called once for each piece of work that was handed over, also where that fails.

use crate::context;
use crate::driver::driver;
use crate::entry::{DefaultStream, enter};
use crate::ffi::{LibraryWork, Out, Pointer, WorkFunction, WorkRelease};
use crate::handles::Handle;
use crate::status::Status;
use crate::stream::{When, queue};
use std::ffi::{c_int, c_uint};
use std::sync::Arc;

/// Does work in a stream: in its turn, or with `now` set before the call returns, which a captured stream refuses. In a captured stream the
/// work becomes a node of the graph, and may run many times. What `run` returns other than 0 is the error of the call, or strikes the context as
/// the trap of a kernel does.
#[unsafe(no_mangle)]
extern "C" fn ptxvmSubmit(
    stream: Handle,
    now: c_uint,
    run: WorkFunction,
    release: WorkRelease,
    work: Pointer,
) -> Status {
    let work = Arc::new(LibraryWork::new(run, release, work));
    enter("ptxvmSubmit", move || {
        let (_, queue) = queue(stream, DefaultStream::Legacy)?;
        let when = if now != 0 { When::Now } else { When::InTurn };
        if when == When::Now {
            queue.refuse_capture()?;
        }
        queue.perform(when, move || work.run())
    })
}

/// Whether a kernel could access `bytes` bytes at an address: in one allocation, or anywhere in the host's memory where kernels reach it. Where
/// they lie in no single allocation, `allocation` is the first address and the size of the one that holds the first byte, or zeros.
#[unsafe(no_mangle)]
extern "C" fn ptxvmReach(address: u64, bytes: u64, allocation: Out<[u64; 2]>) -> Status {
    enter("ptxvmReach", move || {
        let driver = driver()?;
        let range = driver.vm.allocation_at(address);
        let inside = range.as_ref().is_some_and(|range| bytes <= range.end - address);
        let of_host = || {
            let end = address.saturating_add(bytes);
            driver.vm.reaches_host()
                && (end <= driver.range.start || address >= driver.range.end)
                && host_memory::is_mapped(address as usize, bytes as usize)
        };
        if inside || of_host() {
            return Ok(());
        }
        allocation.set(range.map_or([0; 2], |range| [range.start, range.end - range.start]))?;
        Err(Status::IllegalAddress)
    })
}

/// The error that a trap has left in the current context, or success; `told`: whether a call has answered with it. This call does not count as
/// one.
#[unsafe(no_mangle)]
extern "C" fn ptxvmStruck(told: Out<c_int>) -> Status {
    let (status, known) = context::struck().map_or((Status::Success, false), |(_, error)| error);
    let _not_wanted = told.set_optional(c_int::from(known));
    status
}
