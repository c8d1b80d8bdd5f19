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
use ptxvm::Access;
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

/// Fails unless a kernel could read `bytes` bytes at an address, or with bit 0 of `how` also write them: in
/// one allocation, or in host memory that kernels can access. The error is `CUDA_ERROR_INVALID_VALUE` if the
/// address is not one of a device, and kernels cannot access host memory there. Otherwise `allocation` is the
/// address and size of the allocation that contains the first byte, or zeros. Sanitizers are told, unless bit
/// 1 of `how` is set. Rights for mapped memory are the most that any device has.
#[unsafe(no_mangle)]
extern "C" fn ptxvmReach(address: u64, bytes: u64, how: c_uint, allocation: Out<[u64; 2]>) -> Status {
    enter("ptxvmReach", move || {
        let driver = driver()?;
        let (writes, tells) = (how & 1 != 0, how & 2 == 0);
        let (of_device, of_host) = match writes {
            false => (Access::Read, host_memory::Access::Read),
            true => (Access::ReadWrite, host_memory::Access::Write),
        };
        let end = address.saturating_add(bytes);
        let is_on_host = end <= driver.range.start || address >= driver.range.end;
        // Memory that the program registered is at addresses of the host.
        let permitted = driver.vm.permits(address, bytes, of_device)
            && (!is_on_host || host_memory::permits(address as usize, bytes as usize, of_host));
        if permitted {
            if writes && tells {
                driver.vm.report_write(address, bytes);
            }
            return Ok(());
        }
        if tells {
            driver.accesses_wrongly(address, usize::try_from(bytes).unwrap_or(usize::MAX));
        }
        let range = driver.vm.allocation_at(address);
        if is_on_host && range.is_none() {
            return Err(Status::InvalidValue);
        }
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
