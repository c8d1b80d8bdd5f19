//! Memory: allocation, copies, memset, attributes of pointers.
//!
//! Invariant: an unknown direction is an error; a copy of zero bytes succeeds.

use crate::device::context;
use crate::entry::{DefaultStream, runtime};
use crate::error::{Answer, Status, of_driver};
use crate::ffi::{Handle, Out};
use crate::symbol::{wait, waited};
use std::ffi::{c_int, c_uint};

/// `cudaMemcpyKind`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    HostToHost,
    HostToDevice,
    DeviceToHost,
    DeviceToDevice,
    /// The pointers determine the direction.
    Default,
}

impl Direction {
    pub(crate) fn of(kind: c_int) -> Result<Self, Status> {
        match kind {
            0 => Ok(Direction::HostToHost),
            1 => Ok(Direction::HostToDevice),
            2 => Ok(Direction::DeviceToHost),
            3 => Ok(Direction::DeviceToDevice),
            4 => Ok(Direction::Default),
            _ => Err(Status::INVALID_MEMCPY_DIRECTION),
        }
    }
}

/// Copies in a stream, or synchronously.
pub(crate) fn copy(
    to: Handle,
    from: Handle,
    bytes: usize,
    direction: Direction,
    stream: Option<Handle>,
) -> Answer {
    let driver = context()?;
    if bytes == 0 {
        return Ok(());
    }
    of_driver(match (direction, stream) {
        (Direction::HostToHost | Direction::Default, None) => (driver.cuMemcpy)(to, from, bytes),
        (Direction::HostToHost | Direction::Default, Some(stream)) => {
            (driver.cuMemcpyAsync)(to, from, bytes, stream)
        }
        (Direction::HostToDevice, None) => (driver.cuMemcpyHtoD_v2)(to, from, bytes),
        (Direction::HostToDevice, Some(stream)) => (driver.cuMemcpyHtoDAsync_v2)(to, from, bytes, stream),
        (Direction::DeviceToHost, None) => (driver.cuMemcpyDtoH_v2)(to, from, bytes),
        (Direction::DeviceToHost, Some(stream)) => (driver.cuMemcpyDtoHAsync_v2)(to, from, bytes, stream),
        (Direction::DeviceToDevice, None) => (driver.cuMemcpyDtoD_v2)(to, from, bytes),
        (Direction::DeviceToDevice, Some(stream)) => (driver.cuMemcpyDtoDAsync_v2)(to, from, bytes, stream),
    })
}

/// Sets bytes in a stream, or synchronously.
fn fill(at: Handle, byte: c_int, bytes: usize, stream: Option<Handle>) -> Answer {
    let driver = context()?;
    if bytes == 0 {
        return Ok(());
    }
    of_driver(match stream {
        None => (driver.cuMemsetD8_v2)(at, byte as u8, bytes),
        Some(stream) => (driver.cuMemsetD8Async)(at, byte as u8, bytes, stream),
    })
}

fn fill2(
    at: Handle,
    pitch: usize,
    byte: c_int,
    width: usize,
    height: usize,
    stream: Option<Handle>,
) -> Answer {
    let driver = context()?;
    if width == 0 || height == 0 {
        return Ok(());
    }
    of_driver(match stream {
        None => (driver.cuMemsetD2D8_v2)(at, pitch, byte as u8, width, height),
        Some(stream) => (driver.cuMemsetD2D8Async)(at, pitch, byte as u8, width, height, stream),
    })
}

/// `cudaPitchedPtr`
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Pitched {
    pub(crate) at: Handle,
    pub(crate) pitch: usize,
    pub(crate) width: usize,
    pub(crate) height: usize,
}

/// `cudaExtent`
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Extent {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) depth: usize,
}

fn fill3(at: Pitched, byte: c_int, extent: Extent, stream: Option<Handle>) -> Answer {
    let slice = at.pitch.checked_mul(at.height).ok_or(Status::INVALID_VALUE)?;
    if extent.width == 0 || extent.height == 0 {
        return Ok(());
    }
    // If slices overlapped, `depth` would be unlimited and the same memory would be set many times.
    if extent.depth > 1 && (at.height < extent.height || at.pitch < extent.width) {
        return Err(Status::INVALID_VALUE);
    }
    for z in 0..extent.depth {
        let start = slice.checked_mul(z).and_then(|offset| at.at.0.checked_add(offset));
        fill2(
            Handle(start.ok_or(Status::INVALID_VALUE)?),
            at.pitch,
            byte,
            extent.width,
            extent.height,
            stream,
        )?;
    }
    Ok(())
}

/// `cudaPointerAttributes`, up to what is reserved.
#[derive(Clone, Copy)]
#[repr(C)]
struct PointerAttributes {
    kind: c_int,
    device: c_int,
    on_device: usize,
    on_host: usize,
}

runtime! {
    /// Allocates device memory.
    fn cudaMalloc(pointer: Out<usize>, bytes: usize) {
        let driver = context()?;
        if bytes == 0 {
            return pointer.set(0);
        }
        of_driver((driver.cuMemAlloc_v2)(Handle(pointer.address()), bytes))
    }

    /// Allocates device memory in rows.
    fn cudaMallocPitch(pointer: Handle, pitch: Handle, width: usize, height: usize) {
        let driver = context()?;
        of_driver((driver.cuMemAllocPitch_v2)(pointer, pitch, width, height, 16))
    }

    /// Allocates device memory in slices of rows.
    fn cudaMalloc3D(pitched: Out<Pitched>, extent: Extent) {
        let driver = context()?;
        let (mut at, mut pitch) = (0usize, 0usize);
        let rows = extent.height.checked_mul(extent.depth).ok_or(Status::INVALID_VALUE)?;
        let (place, row) = (Handle(Out::to(&mut at).address()), Handle(Out::to(&mut pitch).address()));
        of_driver((driver.cuMemAllocPitch_v2)(place, row, extent.width, rows, 16))?;
        pitched.set(Pitched { at: Handle(at), pitch, width: extent.width, height: extent.height })
    }

    /// Frees device memory.
    fn cudaFree(pointer: Handle) {
        let driver = context()?;
        if pointer.is_null() { Ok(()) } else { of_driver((driver.cuMemFree_v2)(pointer)) }
    }

    /// Allocates managed memory.
    fn cudaMallocManaged(pointer: Handle, bytes: usize, flags: c_uint) => cuMemAllocManaged;

    /// Allocates host memory that the device can access.
    fn cudaMallocHost(pointer: Handle, bytes: usize) {
        let driver = context()?;
        of_driver((driver.cuMemHostAlloc)(pointer, bytes, 0))
    }

    /// Allocates host memory that the device can access.
    fn cudaHostAlloc(pointer: Handle, bytes: usize, flags: c_uint) => cuMemHostAlloc;

    /// Frees host memory.
    fn cudaFreeHost(pointer: Handle) {
        let driver = context()?;
        if pointer.is_null() { Ok(()) } else { of_driver((driver.cuMemFreeHost)(pointer)) }
    }

    /// Registers host memory, so that the device can access it.
    fn cudaHostRegister(pointer: Handle, bytes: usize, flags: c_uint) => cuMemHostRegister_v2;

    /// Ends the registration of host memory.
    fn cudaHostUnregister(pointer: Handle) => cuMemHostUnregister;

    /// The device address of host memory.
    fn cudaHostGetDevicePointer(on_device: Handle, on_host: Handle, flags: c_uint) => cuMemHostGetDevicePointer_v2;

    /// The flags of a host allocation.
    fn cudaHostGetFlags(flags: Handle, pointer: Handle) => cuMemHostGetFlags;

    /// The amounts of free and of total memory.
    fn cudaMemGetInfo(free: Handle, total: Handle) => cuMemGetInfo_v2;

    /// The attributes of a pointer.
    fn cudaPointerGetAttributes(attributes: Out<PointerAttributes>, pointer: Handle) {
        let driver = context()?;
        let number = |attribute: c_int| {
            let mut value = 0u64;
            let place = Handle(Out::to(&mut value).address());
            of_driver((driver.cuPointerGetAttribute)(place, attribute, pointer)).map(|()| value)
        };
        // `CU_POINTER_ATTRIBUTE_MEMORY_TYPE`, `..._IS_MANAGED`, `..._DEVICE_POINTER`, `..._HOST_POINTER`.
        let Ok(kind) = number(2) else {
            return attributes.set(PointerAttributes { kind: 0, device: -2, on_device: 0, on_host: pointer.0 });
        };
        let managed = number(8).is_ok_and(|managed| managed as u8 != 0);
        let kind = if managed { 3 } else { c_int::from(kind as u32 == 2) + 1 };
        let on_device = number(3).unwrap_or(0) as usize;
        let on_host = number(4).unwrap_or(0) as usize;
        let device = number(9).unwrap_or(0) as c_int;
        attributes.set(PointerAttributes { kind, device, on_device, on_host })
    }

    /// Copies.
    fn cudaMemcpy | cudaMemcpy_ptds as default (to: Handle, from: Handle, bytes: usize, kind: c_int) {
        copy(to, from, bytes, Direction::of(kind)?, waited(default))?;
        wait(default)
    }

    /// Copies, in a stream.
    fn cudaMemcpyAsync | cudaMemcpyAsync_ptsz as default (to: Handle, from: Handle, bytes: usize, kind: c_int, stream: Handle) {
        copy(to, from, bytes, Direction::of(kind)?, Some(default.or(stream)))
    }

    /// Copies between devices.
    fn cudaMemcpyPeer(to: Handle, to_device: c_int, from: Handle, from_device: c_int, bytes: usize) {
        let driver = context()?;
        crate::device::check(driver, to_device)?;
        crate::device::check(driver, from_device)?;
        copy(to, from, bytes, Direction::DeviceToDevice, None)
    }

    /// Copies between devices, in a stream.
    fn cudaMemcpyPeerAsync(to: Handle, to_device: c_int, from: Handle, from_device: c_int, bytes: usize, stream: Handle) {
        let driver = context()?;
        crate::device::check(driver, to_device)?;
        crate::device::check(driver, from_device)?;
        copy(to, from, bytes, Direction::DeviceToDevice, Some(stream))
    }

    /// Sets bytes.
    fn cudaMemset | cudaMemset_ptds as default (at: Handle, byte: c_int, bytes: usize) {
        fill(at, byte, bytes, waited(default))?;
        wait(default)
    }

    /// Sets bytes, in a stream.
    fn cudaMemsetAsync | cudaMemsetAsync_ptsz as default (at: Handle, byte: c_int, bytes: usize, stream: Handle) {
        fill(at, byte, bytes, Some(default.or(stream)))
    }

    /// Sets bytes in rows.
    fn cudaMemset2D | cudaMemset2D_ptds as default (at: Handle, pitch: usize, byte: c_int, width: usize, height: usize) {
        fill2(at, pitch, byte, width, height, waited(default))?;
        wait(default)
    }

    /// Sets bytes in rows, in a stream.
    fn cudaMemset2DAsync | cudaMemset2DAsync_ptsz as default (
        at: Handle, pitch: usize, byte: c_int, width: usize, height: usize, stream: Handle,
    ) {
        fill2(at, pitch, byte, width, height, Some(default.or(stream)))
    }

    /// Sets bytes in slices.
    fn cudaMemset3D | cudaMemset3D_ptds as default (at: Pitched, byte: c_int, extent: Extent) {
        fill3(at, byte, extent, waited(default))?;
        wait(default)
    }

    /// Sets bytes in slices, in a stream.
    fn cudaMemset3DAsync | cudaMemset3DAsync_ptsz as default (at: Pitched, byte: c_int, extent: Extent, stream: Handle) {
        fill3(at, byte, extent, Some(default.or(stream)))
    }

    /// Accepts a hint about the location of memory, which has no effect. The omitted parameters differ
    /// between CUDA 12 and 13.
    fn cudaMemPrefetchAsync | cudaMemPrefetchAsync_ptsz as _default (pointer: Handle, _bytes: usize) {
        known(pointer)
    }

    /// Accepts a hint about the use of memory, which has no effect. The omitted parameters differ between
    /// CUDA 12 and 13.
    fn cudaMemAdvise(pointer: Handle, _bytes: usize) {
        known(pointer)
    }

    /// Accepts a hint about the location of memory, which has no effect.
    fn cudaMemPrefetchAsync_v2 | cudaMemPrefetchAsync_v2_ptsz as _default (pointer: Handle, _bytes: usize) {
        known(pointer)
    }

    /// Accepts a hint about the use of memory, which has no effect.
    fn cudaMemAdvise_v2(pointer: Handle, _bytes: usize) {
        known(pointer)
    }

    /// An attribute of managed memory. The numbers are the driver's.
    fn cudaMemRangeGetAttribute(data: Handle, bytes: usize, attribute: c_int, pointer: Handle, count: usize) => cuMemRangeGetAttribute;

    /// Attributes of managed memory.
    fn cudaMemRangeGetAttributes(
        data: Handle, bytes: Handle, attributes: Handle, number: usize, pointer: Handle, count: usize,
    ) => cuMemRangeGetAttributes;

    /// Accepts a stream for managed memory. It has no effect: all streams may use the memory.
    fn cudaStreamAttachMemAsync | cudaStreamAttachMemAsync_ptsz as _default (_stream: Handle, pointer: Handle) {
        known(pointer)
    }
}

/// Fails unless the driver knows the pointer.
fn known(pointer: Handle) -> Answer {
    let driver = context()?;
    let mut kind = 0u64;
    of_driver((driver.cuPointerGetAttribute)(Handle(Out::to(&mut kind).address()), 2, pointer))
}

/// The stream of an asynchronous operation.
pub(crate) fn in_stream(default: DefaultStream, stream: Handle) -> Option<Handle> {
    Some(default.or(stream))
}
