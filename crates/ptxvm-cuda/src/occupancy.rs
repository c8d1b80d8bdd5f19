//! Occupancy: the number of a kernel's CTAs that a multiprocessor of the device can hold.
//!
//! The rules are those of the public occupancy calculator, simplified: registers are allocated to warps in
//! units of 256, shared memory to CTAs in units of 128 bytes.
//!
//! Invariant: no result exceeds the limits of the device.

use crate::attributes::Limits;
use crate::context::current;
use crate::driver::Driver;
use crate::entry::entries;
use crate::ffi::{In, Out, SharedOfBlock};
use crate::function::Function;
use crate::handles::Handle;
use crate::launch::Config;
use crate::status::{Answer, Status};
use std::ffi::{c_int, c_uint};
use std::sync::Arc;

/// The number of CTAs of `threads` threads that a multiprocessor holds.
pub(crate) fn blocks(function: &Function, threads: u32, dynamic: u64) -> u32 {
    let limits = function.limits();
    if threads == 0 || threads > function.max_threads() {
        return 0;
    }
    let warps = threads.div_ceil(32);
    let by_threads = limits.threads as u32 / 32 / warps;
    let registers = (function.resources().registers * 32).next_multiple_of(256) * warps;
    let by_registers = limits.registers as u32 / registers.max(1);
    let shared = u64::from(function.resources().shared).saturating_add(dynamic);
    if shared > limits.shared_optin as u64 {
        return 0;
    }
    let shared = shared.next_multiple_of(128);
    let by_shared = limits.shared as u64 / (shared + limits.shared_reserved as u64).max(1);
    let by_shared = u32::try_from(by_shared).unwrap_or(u32::MAX);
    (limits.blocks as u32).min(by_threads).min(by_registers).min(by_shared)
}

fn function(handle: Handle) -> Result<(&'static Driver, Arc<Function>), Status> {
    let (driver, _) = current()?;
    Ok((driver, driver.functions.get(handle)?))
}

fn active(count: Out<c_int>, handle: Handle, threads: c_int, dynamic: usize) -> Answer {
    count.check()?;
    let (_, function) = function(handle)?;
    let threads = u32::try_from(threads).ok().filter(|threads| *threads > 0).ok_or(Status::InvalidValue)?;
    count.set(blocks(&function, threads, dynamic as u64) as c_int)
}

fn potential(
    (grid, block): (Out<c_int>, Out<c_int>),
    handle: Handle,
    (of_block, dynamic): (SharedOfBlock, usize),
    limit: c_int,
) -> Answer {
    grid.check()?;
    block.check()?;
    let (driver, function) = function(handle)?;
    let most = if limit <= 0 { function.max_threads() } else { function.max_threads().min(limit as u32) };
    of_block.check()?;
    let mut best = (0, 0, 0);
    for threads in (1..=most.div_ceil(32)).map(|warps| (warps * 32).min(most)) {
        let count = blocks(&function, threads, of_block.call(threads as c_int, dynamic) as u64);
        // Of equal occupancies, the larger CTA.
        if count * threads >= best.0 && count > 0 {
            best = (count * threads, threads, count);
        }
    }
    let (_, threads, count) = best;
    grid.set(count as c_int * driver.limits().multiprocessors)?;
    block.set(threads as c_int)
}

impl Driver {
    /// The limits of the device.
    pub(crate) fn limits(&self) -> Limits {
        Limits::of(self.settings.capability)
    }
}

entries! { ENTRIES;
    /// The number of CTAs that a multiprocessor holds.
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(count: Out<c_int>, function: Handle, threads: c_int, dynamic: usize) {
        active(count, function, threads, dynamic)
    }

    /// The number of CTAs that a multiprocessor holds.
    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        count: Out<c_int>, function: Handle, threads: c_int, dynamic: usize, flags: c_uint,
    ) {
        if flags > 1 {
            return Err(Status::InvalidValue);
        }
        active(count, function, threads, dynamic)
    }

    /// The size of CTAs with the highest occupancy.
    fn cuOccupancyMaxPotentialBlockSize(
        grid: Out<c_int>, block: Out<c_int>, function: Handle, of_block: SharedOfBlock, dynamic: usize, limit: c_int,
    ) {
        potential((grid, block), function, (of_block, dynamic), limit)
    }

    /// The size of CTAs with the highest occupancy.
    fn cuOccupancyMaxPotentialBlockSizeWithFlags(
        grid: Out<c_int>, block: Out<c_int>, function: Handle, of_block: SharedOfBlock, dynamic: usize, limit: c_int, flags: c_uint,
    ) {
        if flags > 1 {
            return Err(Status::InvalidValue);
        }
        potential((grid, block), function, (of_block, dynamic), limit)
    }

    /// The most dynamic shared memory with which a number of CTAs fit on a multiprocessor.
    fn cuOccupancyAvailableDynamicSMemPerBlock(bytes: Out<usize>, handle: Handle, count: c_int, threads: c_int) {
        bytes.check()?;
        let (driver, function) = function(handle)?;
        if count <= 0 || threads <= 0 {
            return Err(Status::InvalidValue);
        }
        let limits = driver.limits();
        if blocks(&function, threads as u32, 0) < count as u32 {
            return bytes.set(0);
        }
        let each = (limits.shared / count - limits.shared_reserved) / 128 * 128;
        let each = each.min(limits.shared_optin).max(0) as usize;
        bytes.set(each.saturating_sub(function.resources().shared as usize))
    }

    /// The largest cluster: one CTA.
    fn cuOccupancyMaxPotentialClusterSize(size: Out<c_int>, handle: Handle, config: In<Config>) {
        size.check()?;
        function(handle)?;
        config.get()?;
        size.set(1)
    }

    /// The number of clusters that the device holds, for clusters of one CTA.
    fn cuOccupancyMaxActiveClusters(count: Out<c_int>, handle: Handle, config: In<Config>) {
        count.check()?;
        let (driver, function) = function(handle)?;
        let (threads, shared) = config.get()?.block_and_shared();
        count.set(blocks(&function, threads, shared.into()) as c_int * driver.limits().multiprocessors)
    }
}
