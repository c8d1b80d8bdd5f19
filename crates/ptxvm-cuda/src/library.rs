//! Functions of the driver for ptxvm's other libraries: work in a stream's order, access checks, and the
//! error of a trap.
//!
//! `libcublas` computes on the host in device memory. Host functions of the public interface do not suffice
//! for this: they cannot fail, and nothing tells when a graph does not need their data any more. These entry
//! points are not part of the driver API, so they are in none of its lists.
//!
//! Invariant: `release` is called once for each piece of submitted work, also if the submission fails.

use crate::context;
use crate::driver::driver;
use crate::entry::{DefaultStream, enter};
use crate::ffi::{LibraryWork, Out, Pointer, WorkFunction, WorkRelease};
use crate::handles::Handle;
use crate::status::Status;
use crate::stream::{When, queue};
use std::ffi::{c_int, c_uint};
use std::sync::Arc;

/// Runs work in a stream: at its turn, or with `now` before the call returns, which fails in a captured
/// stream. In a captured stream the work becomes a node of the graph, and may run many times. If `run`
/// returns a number other than 0, that is the error of the call, or of the context as after a trap.
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

/// Whether a kernel could access `bytes` bytes at an address: in one allocation, or anywhere in host memory
/// that kernels can access. If they are in no single allocation, `allocation` is the address and size of the
/// one that contains the first byte, or zeros.
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
        if inside {
            // Which of them the library writes is not said.
            driver.vm.report_write(address, bytes);
            return Ok(());
        }
        if of_host() {
            return Ok(());
        }
        driver.accesses_wrongly(address, usize::try_from(bytes).unwrap_or(usize::MAX));
        allocation.set(range.map_or([0; 2], |range| [range.start, range.end - range.start]))?;
        Err(Status::IllegalAddress)
    })
}

/// The error of a trap in the current context, or success. `told` is whether a call has returned it; this
/// call does not count.
#[unsafe(no_mangle)]
extern "C" fn ptxvmStruck(told: Out<c_int>) -> Status {
    let (status, known) = context::struck().map_or((Status::Success, false), |(_, error)| error);
    let _not_wanted = told.set_optional(c_int::from(known));
    status
}
