//! Copies in one dimension, and memset.
//!
//! Invariant: both sides are checked before the call returns. The bytes move at the operation's turn in the
//! stream.

use crate::copy_box::{Copy3d, DEVICE, HOST, UNIFIED};
use crate::driver::Driver;
use crate::entry::{DefaultStream, entries};
use crate::ffi::Pointer;
use crate::graph::{CopyNode, Set, Work};
use crate::handles::Handle;
use crate::memory::Side;
use crate::status::{Answer, Status};
use crate::stream::{When, queue};
use host_memory::Access;
use ptxvm::Error;
use std::ffi::{c_int, c_uchar, c_uint, c_ushort};

/// Bytes that are set at a time to a pattern of several bytes.
const CHUNK: usize = 256 << 10;

/// Copies bytes.
///
/// # Errors
/// `CUDA_ERROR_ILLEGAL_ADDRESS` if device memory was freed after the call was checked,
/// `CUDA_ERROR_INVALID_VALUE` if host memory is not mapped or does not permit the copy.
pub(crate) fn move_bytes(driver: &Driver, to: Side, from: Side, bytes: usize) -> Answer {
    to.check(Access::Write)?;
    from.check(Access::Read)?;
    move_checked(driver, to, from, bytes)
}

/// Like [`move_bytes`], for host memory that was just checked.
///
/// # Errors
/// `CUDA_ERROR_ILLEGAL_ADDRESS` if device memory was freed after the call was checked.
pub(crate) fn move_checked(driver: &Driver, to: Side, from: Side, bytes: usize) -> Answer {
    let gone = |_: Error| Status::IllegalAddress;
    match (to, from) {
        (Side::Device(to), Side::Host(from)) => from.read(|from| driver.vm.write(to, from)).map_err(gone),
        (Side::Host(to), Side::Device(from)) => to.write(|to| driver.vm.read(from, to)).map_err(gone),
        (Side::Host(to), Side::Host(from)) => {
            to.copy(&from);
            Ok(())
        }
        (Side::Device(to), Side::Device(from)) => driver.vm.copy(to, from, bytes as u64).map_err(gone),
    }
}

/// The kinds of memory of a copy's two addresses.
#[derive(Clone, Copy)]
pub(crate) enum Way {
    HostToDevice,
    DeviceToHost,
    DeviceToDevice,
    Unified,
}

impl Way {
    /// The `CUmemorytype` of destination and source.
    fn kinds(self) -> (c_int, c_int) {
        match self {
            Way::HostToDevice => (DEVICE, HOST),
            Way::DeviceToHost => (HOST, DEVICE),
            Way::DeviceToDevice => (DEVICE, DEVICE),
            Way::Unified => (UNIFIED, UNIFIED),
        }
    }
}

/// Copies bytes in a stream.
///
/// # Errors
/// `CUDA_ERROR_INVALID_VALUE`, and the errors of a capture.
pub(crate) fn copy(
    way: Way,
    (to, from, bytes): (u64, u64, usize),
    (stream, default): (Handle, DefaultStream),
    when: When,
) -> Answer {
    let (driver, queue) = queue(stream, default)?;
    let (to_address, from_address) = (to, from);
    let host = |address| Side::host(driver, Pointer::from_address(address), bytes);
    let device = |address| Side::device(driver, address, bytes);
    let unified = |address| Side::unified(driver, address, bytes);
    if bytes == 0 {
        return Ok(());
    }
    // Programs whose kernels access host memory expect copies to be complete without waiting.
    let when = if driver.vm.reaches_host() { When::Now } else { when };
    let (to, from) = match way {
        Way::HostToDevice => (device(to)?, host(from)?),
        Way::DeviceToHost => (host(to)?, device(from)?),
        Way::DeviceToDevice => (device(to)?, device(from)?),
        Way::Unified => (unified(to)?, unified(from)?),
    };
    let to = to.writable(driver, bytes)?;
    if let Some(added) =
        queue.captured(|| CopyNode::of(driver, Copy3d::line(way.kinds(), (to_address, from_address), bytes)))
    {
        return added;
    }
    if when == When::InTurn
        && let Side::Host(host) = from
    {
        // By the documentation, memory that is not pinned may be reused as soon as the call returns.
        let bytes = host.copied()?;
        return queue.perform(When::InTurn, move || match to {
            Side::Device(to) => driver.vm.write(to, &bytes).map_err(|_| Status::IllegalAddress),
            Side::Host(to) => {
                to.check(Access::Write)?;
                to.write(|to| to.copy_from_slice(&bytes));
                Ok(())
            }
        });
    }
    // By the documentation, copies to memory that is not pinned are complete when the call returns.
    let when = if matches!(to, Side::Host(_)) { When::Now } else { when };
    queue.perform(when, move || move_bytes(driver, to, from, bytes))
}

/// Sets rows to a pattern of `size` bytes. `when` applies to memory that the host can access. Other memory is
/// always set asynchronously, as documented for the functions without a stream.
fn set(
    (address, pitch): (u64, usize),
    (pattern, size): (u32, usize),
    (width, height): (usize, usize),
    (stream, default): (Handle, DefaultStream),
    when: When,
) -> Answer {
    let (driver, queue) = queue(stream, default)?;
    let rows = Rows { address, pitch, pattern, size, width, height };
    if !rows.check(driver)? {
        return Ok(());
    }
    if let Some(added) = queue.captured(|| Ok(Work::Set(Set::of_rows(&rows)))) {
        return added;
    }
    let seen = driver.blocks.at(address).is_some_and(|(_, block)| block.kind.is_seen_by_the_host());
    let when = if seen { when } else { When::InTurn };
    queue.perform(when, move || rows.fill(driver))
}

/// Rows of device memory that are set to a pattern.
#[derive(Clone, Copy)]
pub(crate) struct Rows {
    /// The address of the first row.
    pub(crate) address: u64,
    /// The distance between rows in bytes.
    pub(crate) pitch: usize,
    /// The number that is repeated.
    pub(crate) pattern: u32,
    /// The size of the pattern in bytes: 1, 2 or 4.
    pub(crate) size: usize,
    /// The number of patterns in a row.
    pub(crate) width: usize,
    /// The number of rows.
    pub(crate) height: usize,
}

impl Rows {
    /// Checks the rows. Returns whether there is something to set.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE` if rows are misaligned or overlap, or are not in one allocation.
    pub(crate) fn check(&self, driver: &Driver) -> Result<bool, Status> {
        let Self { address, pitch, pattern: _, size, width, height } = *self;
        let row = width.checked_mul(size).ok_or(Status::InvalidValue)?;
        if row == 0 || height == 0 {
            return Ok(false);
        }
        if !address.is_multiple_of(size as u64) || height > 1 && (pitch < row || !pitch.is_multiple_of(size))
        {
            return Err(Status::InvalidValue);
        }
        let all = pitch.checked_mul(height - 1).and_then(|bytes| bytes.checked_add(row));
        let all = all.ok_or(Status::InvalidValue)?;
        Side::device(driver, address, all)?.writable(driver, all).map(|_| true)
    }

    /// Sets the rows, after [`Rows::check`].
    ///
    /// # Errors
    /// `CUDA_ERROR_ILLEGAL_ADDRESS` if memory was freed after the check.
    pub(crate) fn fill(&self, driver: &Driver) -> Answer {
        let row = self.width * self.size;
        let pattern = self.pattern.to_le_bytes();
        let pattern = &pattern[..self.size];
        let lines = (0..self.height).map(|line| self.address + (line * self.pitch) as u64);
        if pattern.iter().all(|byte| *byte == pattern[0]) {
            for start in lines {
                driver.vm.fill(start, pattern[0], row as u64).map_err(|_| Status::IllegalAddress)?;
            }
            return Ok(());
        }
        let chunk = pattern.repeat(row.min(CHUNK) / self.size);
        for start in lines {
            for at in (0..row).step_by(CHUNK) {
                let part = &chunk[..CHUNK.min(row - at)];
                driver.vm.write(start + at as u64, part).map_err(|_| Status::IllegalAddress)?;
            }
        }
        Ok(())
    }
}

entries! { ENTRIES;
    /// Copies between addresses of any kind.
    fn cuMemcpy | cuMemcpy_ptds as default (to: u64, from: u64, bytes: usize) {
        copy(Way::Unified, (to, from, bytes), (Handle::NULL, default), When::Now)
    }

    /// Copies between addresses of any kind.
    fn cuMemcpyAsync | cuMemcpyAsync_ptsz as default (to: u64, from: u64, bytes: usize, stream: Handle) {
        copy(Way::Unified, (to, from, bytes), (stream, default), When::InTurn)
    }

    /// Copies from the host to the device.
    fn cuMemcpyHtoD_v2 | cuMemcpyHtoD_v2_ptds as default (to: u64, from: Pointer, bytes: usize) {
        copy(Way::HostToDevice, (to, from.address(), bytes), (Handle::NULL, default), When::Now)
    }

    /// Copies from the host to the device.
    fn cuMemcpyHtoDAsync_v2 | cuMemcpyHtoDAsync_v2_ptsz as default (to: u64, from: Pointer, bytes: usize, stream: Handle) {
        copy(Way::HostToDevice, (to, from.address(), bytes), (stream, default), When::InTurn)
    }

    /// Copies from the device to the host.
    fn cuMemcpyDtoH_v2 | cuMemcpyDtoH_v2_ptds as default (to: Pointer, from: u64, bytes: usize) {
        copy(Way::DeviceToHost, (to.address(), from, bytes), (Handle::NULL, default), When::Now)
    }

    /// Copies from the device to the host.
    fn cuMemcpyDtoHAsync_v2 | cuMemcpyDtoHAsync_v2_ptsz as default (to: Pointer, from: u64, bytes: usize, stream: Handle) {
        copy(Way::DeviceToHost, (to.address(), from, bytes), (stream, default), When::InTurn)
    }

    /// Copies from device memory to device memory.
    fn cuMemcpyDtoD_v2 | cuMemcpyDtoD_v2_ptds as default (to: u64, from: u64, bytes: usize) {
        copy(Way::DeviceToDevice, (to, from, bytes), (Handle::NULL, default), When::InTurn)
    }

    /// Copies from device memory to device memory.
    fn cuMemcpyDtoDAsync_v2 | cuMemcpyDtoDAsync_v2_ptsz as default (to: u64, from: u64, bytes: usize, stream: Handle) {
        copy(Way::DeviceToDevice, (to, from, bytes), (stream, default), When::InTurn)
    }

    /// Copies between contexts, which share one address space.
    fn cuMemcpyPeer | cuMemcpyPeer_ptds as default (to: u64, to_context: Handle, from: u64, from_context: Handle, bytes: usize) {
        crate::context::named_or_current(to_context)?;
        crate::context::named_or_current(from_context)?;
        copy(Way::DeviceToDevice, (to, from, bytes), (Handle::NULL, default), When::InTurn)
    }

    /// Copies between contexts, which share one address space.
    fn cuMemcpyPeerAsync | cuMemcpyPeerAsync_ptsz as default (
        to: u64, to_context: Handle, from: u64, from_context: Handle, bytes: usize, stream: Handle,
    ) {
        crate::context::named_or_current(to_context)?;
        crate::context::named_or_current(from_context)?;
        copy(Way::DeviceToDevice, (to, from, bytes), (stream, default), When::InTurn)
    }

    /// Sets bytes.
    fn cuMemsetD8_v2 | cuMemsetD8_v2_ptds as default (address: u64, value: c_uchar, count: usize) {
        set((address, 0), (value.into(), 1), (count, 1), (Handle::NULL, default), When::Now)
    }

    /// Sets bytes.
    fn cuMemsetD8Async | cuMemsetD8Async_ptsz as default (address: u64, value: c_uchar, count: usize, stream: Handle) {
        set((address, 0), (value.into(), 1), (count, 1), (stream, default), When::InTurn)
    }

    /// Sets 16-bit numbers.
    fn cuMemsetD16_v2 | cuMemsetD16_v2_ptds as default (address: u64, value: c_ushort, count: usize) {
        set((address, 0), (value.into(), 2), (count, 1), (Handle::NULL, default), When::Now)
    }

    /// Sets 16-bit numbers.
    fn cuMemsetD16Async | cuMemsetD16Async_ptsz as default (address: u64, value: c_ushort, count: usize, stream: Handle) {
        set((address, 0), (value.into(), 2), (count, 1), (stream, default), When::InTurn)
    }

    /// Sets 32-bit numbers.
    fn cuMemsetD32_v2 | cuMemsetD32_v2_ptds as default (address: u64, value: c_uint, count: usize) {
        set((address, 0), (value, 4), (count, 1), (Handle::NULL, default), When::Now)
    }

    /// Sets 32-bit numbers.
    fn cuMemsetD32Async | cuMemsetD32Async_ptsz as default (address: u64, value: c_uint, count: usize, stream: Handle) {
        set((address, 0), (value, 4), (count, 1), (stream, default), When::InTurn)
    }

    /// Sets rows of bytes.
    fn cuMemsetD2D8_v2 | cuMemsetD2D8_v2_ptds as default (address: u64, pitch: usize, value: c_uchar, width: usize, height: usize) {
        set((address, pitch), (value.into(), 1), (width, height), (Handle::NULL, default), When::Now)
    }

    /// Sets rows of bytes.
    fn cuMemsetD2D8Async | cuMemsetD2D8Async_ptsz as default (
        address: u64, pitch: usize, value: c_uchar, width: usize, height: usize, stream: Handle,
    ) {
        set((address, pitch), (value.into(), 1), (width, height), (stream, default), When::InTurn)
    }

    /// Sets rows of 16-bit numbers.
    fn cuMemsetD2D16_v2 | cuMemsetD2D16_v2_ptds as default (address: u64, pitch: usize, value: c_ushort, width: usize, height: usize) {
        set((address, pitch), (value.into(), 2), (width, height), (Handle::NULL, default), When::Now)
    }

    /// Sets rows of 16-bit numbers.
    fn cuMemsetD2D16Async | cuMemsetD2D16Async_ptsz as default (
        address: u64, pitch: usize, value: c_ushort, width: usize, height: usize, stream: Handle,
    ) {
        set((address, pitch), (value.into(), 2), (width, height), (stream, default), When::InTurn)
    }

    /// Sets rows of 32-bit numbers.
    fn cuMemsetD2D32_v2 | cuMemsetD2D32_v2_ptds as default (address: u64, pitch: usize, value: c_uint, width: usize, height: usize) {
        set((address, pitch), (value, 4), (width, height), (Handle::NULL, default), When::Now)
    }

    /// Sets rows of 32-bit numbers.
    fn cuMemsetD2D32Async | cuMemsetD2D32Async_ptsz as default (
        address: u64, pitch: usize, value: c_uint, width: usize, height: usize, stream: Handle,
    ) {
        set((address, pitch), (value, 4), (width, height), (stream, default), When::InTurn)
    }
}
