//! Arrays, and copies of rows and slices.
//!
//! The runtime's structures are converted to the driver's and back here.
//!
//! Invariant: handles of arrays are the driver's. Widths in elements become bytes by the array's
//! format.

use crate::device::context;
use crate::driver::Driver;
use crate::entry::runtime;
use crate::error::{Answer, Status, of_driver};
use crate::ffi::{Handle, In, Out};
use crate::memory::{Direction, Extent, Pitched, in_stream};
use crate::structures::{Copy2D, Copy3D, Description, Side2D, Side3D};
use crate::symbol::{wait, waited};
use std::ffi::{c_int, c_uint};

/// `cudaChannelFormatDesc`: bits of each channel, and whether they are signed (0), unsigned (1) or floating
/// point (2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Channels {
    pub(crate) bits: [c_int; 4],
    pub(crate) kind: c_int,
}

/// `cudaMemcpy3DPeerParms`
#[derive(Clone, Copy)]
#[repr(C)]
struct ParametersPeer {
    from_array: usize,
    from: [usize; 3],
    from_pointer: Pitched,
    from_device: c_int,
    to_array: usize,
    to: [usize; 3],
    to_pointer: Pitched,
    to_device: c_int,
    extent: Extent,
}

impl ParametersPeer {
    /// Converts to a copy within unified memory, whose addresses tell the devices.
    fn on_devices(self) -> Result<Parameters3D, Status> {
        let driver = context()?;
        crate::device::check(driver, self.from_device)?;
        crate::device::check(driver, self.to_device)?;
        let Self { from_array, from, from_pointer, to_array, to, to_pointer, extent, .. } = self;
        // `cudaMemcpyDeviceToDevice`
        Ok(Parameters3D { from_array, from, from_pointer, to_array, to, to_pointer, extent, kind: 3 })
    }
}

/// `cudaMemcpy3DParms`
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Parameters3D {
    from_array: usize,
    from: [usize; 3],
    from_pointer: Pitched,
    to_array: usize,
    to: [usize; 3],
    to_pointer: Pitched,
    extent: Extent,
    kind: c_int,
}

/// `CU_MEMORYTYPE_*`
const HOST: c_uint = 1;
const DEVICE: c_uint = 2;
const ARRAY: c_uint = 3;
const UNIFIED: c_uint = 4;

impl Description {
    /// The description of an array with this format and size.
    pub(crate) fn of(channels: Channels, extent: Extent, flags: c_uint) -> Result<Self, Status> {
        let (format, channels) = channels.format()?;
        let Extent { width, height, depth } = extent;
        Ok(Self { width, height, depth, format, channels, flags })
    }
}

impl Channels {
    /// The driver's format and the number of channels.
    pub(crate) fn format(self) -> Result<(c_uint, c_uint), Status> {
        let count = self.bits.iter().take_while(|bits| **bits != 0).count() as c_uint;
        let even = self.bits[..count as usize].iter().all(|bits| *bits == self.bits[0]);
        let rest = self.bits[count as usize..].iter().all(|bits| *bits == 0);
        let format = match (self.kind, self.bits[0]) {
            (1, 8) => 0x01,
            (1, 16) => 0x02,
            (1, 32) => 0x03,
            (0, 8) => 0x08,
            (0, 16) => 0x09,
            (0, 32) => 0x0a,
            (2, 16) => 0x10,
            (2, 32) => 0x20,
            _ => return Err(Status(20)),
        };
        // `cudaErrorInvalidChannelDescriptor`
        if even && rest && [1, 2, 4].contains(&count) { Ok((format, count)) } else { Err(Status(20)) }
    }

    /// The format of the driver's numbers.
    pub(crate) fn of(format: c_uint, count: c_uint) -> Self {
        let (kind, width) = match format {
            0x01 => (1, 8),
            0x02 => (1, 16),
            0x03 => (1, 32),
            0x08 => (0, 8),
            0x09 => (0, 16),
            0x0a => (0, 32),
            0x10 => (2, 16),
            _ => (2, 32),
        };
        Self { bits: std::array::from_fn(|index| if index < count as usize { width } else { 0 }), kind }
    }
}

fn describe(driver: &Driver, array: Handle) -> Result<Description, Status> {
    let mut description = Description::default();
    of_driver((driver.cuArray3DGetDescriptor_v2)(&mut description, array))?;
    Ok(description)
}

/// Bytes of an array's element.
fn element(driver: &Driver, array: usize) -> Result<usize, Status> {
    let description = describe(driver, Handle(array))?;
    let bits: c_int = Channels::of(description.format, description.channels).bits.iter().sum();
    Ok(bits as usize / 8)
}

fn make(array: Out<usize>, channels: In<Channels>, extent: Extent, flags: c_uint) -> Answer {
    let driver = context()?;
    let description = Description::of(channels.get()?, extent, flags)?;
    of_driver((driver.cuArray3DCreate_v2)(Handle(array.address()), &description))
}

/// The memory types of source and destination of a copy between pointers.
fn sides(kind: c_int) -> Result<(c_uint, c_uint), Status> {
    Ok(match Direction::of(kind)? {
        Direction::HostToHost => (HOST, HOST),
        Direction::HostToDevice => (HOST, DEVICE),
        Direction::DeviceToHost => (DEVICE, HOST),
        Direction::DeviceToDevice => (DEVICE, DEVICE),
        Direction::Default => (UNIFIED, UNIFIED),
    })
}

fn side(kind: c_uint, at: Handle, pitch: usize) -> Side2D {
    let (host, device) = if kind == HOST { (at.0, 0) } else { (0, at.0) };
    Side2D { kind, host, device, pitch, ..Side2D::default() }
}

fn array_side(array: Handle, x: usize, y: usize) -> Side2D {
    Side2D { kind: ARRAY, array: array.0, x, y, ..Side2D::default() }
}

fn copy2(from: Side2D, to: Side2D, width: usize, height: usize, stream: Option<Handle>) -> Answer {
    let driver = context()?;
    if width == 0 || height == 0 {
        return Ok(());
    }
    let short = |side: &Side2D| side.kind != ARRAY && side.pitch < width;
    if short(&from) || short(&to) {
        // `cudaErrorInvalidPitchValue`
        return Err(Status(12));
    }
    let copy = Copy2D { from, to, width, height };
    of_driver(match stream {
        None => (driver.cuMemcpy2DUnaligned_v2)(&copy),
        Some(stream) => (driver.cuMemcpy2DAsync_v2)(&copy, stream),
    })
}

/// Converts the parameters of a slice copy to the driver's form.
pub(crate) fn driver_copy(driver: &Driver, p: Parameters3D) -> Result<Copy3D, Status> {
    let (from_kind, to_kind) = sides(p.kind)?;
    // If a side is an array, widths and x coordinates count elements.
    let bytes = match (p.from_array, p.to_array) {
        (0, 0) => 1,
        (0, array) | (array, _) => element(driver, array)?,
    };
    let bytes_of = |elements: usize| elements.checked_mul(bytes).ok_or(Status::INVALID_VALUE);
    let make = |array: usize, kind: c_uint, at: [usize; 3], pointer: Pitched| -> Result<Side3D, Status> {
        let (host, device) = if kind == HOST { (pointer.at.0, 0) } else { (0, pointer.at.0) };
        let [x, y, z] = at;
        Ok(if array != 0 {
            Side3D { kind: ARRAY, array, x: bytes_of(x)?, y, z, ..Side3D::default() }
        } else {
            Side3D {
                kind,
                host,
                device,
                x,
                y,
                z,
                pitch: pointer.pitch,
                height: pointer.height,
                ..Side3D::default()
            }
        })
    };
    let Extent { width, height, depth } = p.extent;
    let from = make(p.from_array, from_kind, p.from, p.from_pointer)?;
    let to = make(p.to_array, to_kind, p.to, p.to_pointer)?;
    Ok(Copy3D { from, to, width: bytes_of(width)?, height, depth })
}

/// Converts a slice copy of the driver to the runtime's form.
pub(crate) fn runtime_copy(driver: &Driver, copy: &Copy3D) -> Result<Parameters3D, Status> {
    let Copy3D { from, to, width, height, depth } = *copy;
    let bytes = match (from.array, to.array) {
        (0, 0) => 1,
        (0, array) | (array, _) => element(driver, array)?,
    };
    let is_array = |side: &Side3D| side.kind == ARRAY;
    let at = |side: &Side3D| [if is_array(side) { side.x / bytes } else { side.x }, side.y, side.z];
    let pointer = |side: &Side3D| {
        let at = Handle(if side.kind == HOST { side.host } else { side.device });
        let width = if is_array(side) { 0 } else { width };
        Pitched { at, pitch: side.pitch, width, height: side.height }
    };
    let array = |side: &Side3D| if is_array(side) { side.array } else { 0 };
    let kind = match (from.kind, to.kind) {
        (UNIFIED, _) | (_, UNIFIED) => 4,
        (HOST, HOST) => 0,
        (HOST, _) => 1,
        (_, HOST) => 2,
        _ => 3,
    };
    Ok(Parameters3D {
        from_array: array(&from),
        from: at(&from),
        from_pointer: pointer(&from),
        to_array: array(&to),
        to: at(&to),
        to_pointer: pointer(&to),
        extent: Extent { width: width / bytes, height, depth },
        kind,
    })
}

/// The driver's form of a copy of contiguous bytes.
pub(crate) fn line(to: Handle, from: Handle, bytes: usize, kind: c_int) -> Result<Copy3D, Status> {
    let (from_kind, to_kind) = sides(kind)?;
    let side = |kind: c_uint, at: Handle| {
        let (host, device) = if kind == HOST { (at.0, 0) } else { (0, at.0) };
        Side3D { kind, host, device, pitch: bytes, height: 1, ..Side3D::default() }
    };
    Ok(Copy3D { from: side(from_kind, from), to: side(to_kind, to), width: bytes, height: 1, depth: 1 })
}

fn copy3(parameters: Parameters3D, stream: Option<Handle>) -> Answer {
    let driver = context()?;
    let Extent { width, height, depth } = parameters.extent;
    if width == 0 || height == 0 || depth == 0 {
        return Ok(());
    }
    let copy = driver_copy(driver, parameters)?;
    of_driver(match stream {
        None => (driver.cuMemcpy3D_v2)(&copy),
        Some(stream) => (driver.cuMemcpy3DAsync_v2)(&copy, stream),
    })
}

runtime! {
    /// Allocates an array of one or two dimensions.
    fn cudaMallocArray(array: Out<usize>, channels: In<Channels>, width: usize, height: usize, flags: c_uint) {
        make(array, channels, Extent { width, height, depth: 0 }, flags)
    }

    /// Allocates an array of up to three dimensions.
    fn cudaMalloc3DArray(array: Out<usize>, channels: In<Channels>, extent: Extent, flags: c_uint) {
        make(array, channels, extent, flags)
    }

    /// The largest width of a linear texture with this format.
    fn cudaDeviceGetTexture1DLinearMaxWidth(width: Handle, channels: In<Channels>, device: c_int) {
        let driver = context()?;
        let (format, count) = channels.get()?.format()?;
        of_driver((driver.cuDeviceGetTexture1DLinearMaxWidth)(width, format as c_int, count, device))
    }

    /// Frees an array.
    fn cudaFreeArray(array: Handle) {
        let driver = context()?;
        if array.is_null() { Ok(()) } else { of_driver((driver.cuArrayDestroy)(array)) }
    }

    /// The format of an array.
    fn cudaGetChannelDesc(channels: Out<Channels>, array: Handle) {
        let description = describe(context()?, array)?;
        channels.set(Channels::of(description.format, description.channels))
    }

    /// Format, size and flags of an array.
    fn cudaArrayGetInfo(channels: Out<Channels>, extent: Out<Extent>, flags: Out<c_uint>, array: Handle) {
        let found = describe(context()?, array)?;
        channels.set_optional(Channels::of(found.format, found.channels))?;
        extent.set_optional(Extent { width: found.width, height: found.height, depth: found.depth })?;
        flags.set_optional(found.flags)
    }

    /// Copies rows.
    fn cudaMemcpy2D | cudaMemcpy2D_ptds as default (
        to: Handle, to_pitch: usize, from: Handle, from_pitch: usize, width: usize, height: usize, kind: c_int,
    ) {
        let (from_kind, to_kind) = sides(kind)?;
        copy2(side(from_kind, from, from_pitch), side(to_kind, to, to_pitch), width, height, waited(default))?;
        wait(default)
    }

    /// Copies rows, in a stream.
    fn cudaMemcpy2DAsync | cudaMemcpy2DAsync_ptsz as default (
        to: Handle, to_pitch: usize, from: Handle, from_pitch: usize, width: usize, height: usize, kind: c_int,
        stream: Handle,
    ) {
        let (from_kind, to_kind) = sides(kind)?;
        let stream = in_stream(default, stream);
        copy2(side(from_kind, from, from_pitch), side(to_kind, to, to_pitch), width, height, stream)
    }

    /// Copies rows to an array.
    fn cudaMemcpy2DToArray | cudaMemcpy2DToArray_ptds as default (
        array: Handle, x: usize, y: usize, from: Handle, pitch: usize, width: usize, height: usize, kind: c_int,
    ) {
        let (from_kind, _) = sides(kind)?;
        copy2(side(from_kind, from, pitch), array_side(array, x, y), width, height, waited(default))?;
        wait(default)
    }

    /// Copies rows to an array, in a stream.
    fn cudaMemcpy2DToArrayAsync | cudaMemcpy2DToArrayAsync_ptsz as default (
        array: Handle, x: usize, y: usize, from: Handle, pitch: usize, width: usize, height: usize, kind: c_int,
        stream: Handle,
    ) {
        let (from_kind, _) = sides(kind)?;
        copy2(side(from_kind, from, pitch), array_side(array, x, y), width, height, in_stream(default, stream))
    }

    /// Copies rows from an array.
    fn cudaMemcpy2DFromArray | cudaMemcpy2DFromArray_ptds as default (
        to: Handle, pitch: usize, array: Handle, x: usize, y: usize, width: usize, height: usize, kind: c_int,
    ) {
        let (_, to_kind) = sides(kind)?;
        copy2(array_side(array, x, y), side(to_kind, to, pitch), width, height, waited(default))?;
        wait(default)
    }

    /// Copies rows from an array, in a stream.
    fn cudaMemcpy2DFromArrayAsync | cudaMemcpy2DFromArrayAsync_ptsz as default (
        to: Handle, pitch: usize, array: Handle, x: usize, y: usize, width: usize, height: usize, kind: c_int,
        stream: Handle,
    ) {
        let (_, to_kind) = sides(kind)?;
        copy2(array_side(array, x, y), side(to_kind, to, pitch), width, height, in_stream(default, stream))
    }

    /// Copies slices.
    fn cudaMemcpy3D | cudaMemcpy3D_ptds as default (parameters: In<Parameters3D>) {
        copy3(parameters.get()?, waited(default))?;
        wait(default)
    }

    /// Copies slices, in a stream.
    fn cudaMemcpy3DAsync | cudaMemcpy3DAsync_ptsz as default (parameters: In<Parameters3D>, stream: Handle) {
        copy3(parameters.get()?, in_stream(default, stream))
    }

    /// Copies slices between devices.
    fn cudaMemcpy3DPeer | cudaMemcpy3DPeer_ptds as default (parameters: In<ParametersPeer>) {
        copy3(parameters.get()?.on_devices()?, waited(default))?;
        wait(default)
    }

    /// Copies slices between devices, in a stream.
    fn cudaMemcpy3DPeerAsync | cudaMemcpy3DPeerAsync_ptsz as default (parameters: In<ParametersPeer>, stream: Handle) {
        copy3(parameters.get()?.on_devices()?, in_stream(default, stream))
    }

}

/// The offset of an element of an array if its rows were contiguous. `x` counts bytes.
fn offset(driver: &Driver, array: Handle, x: usize, y: usize) -> Result<usize, Status> {
    let row = describe(driver, array)?.width.checked_mul(element(driver, array.0)?);
    let start = row.and_then(|row| row.checked_mul(y)).and_then(|start| start.checked_add(x));
    start.ok_or(Status::INVALID_VALUE)
}

/// Copies contiguous bytes to the rows of an array. The driver determines whether the pointer is a host
/// pointer.
fn to_array(
    array: Handle,
    x: usize,
    y: usize,
    from: Handle,
    bytes: usize,
    kind: c_int,
    stream: Option<Handle>,
) -> Answer {
    let driver = context()?;
    if !matches!(
        Direction::of(kind)?,
        Direction::HostToDevice | Direction::DeviceToDevice | Direction::Default
    ) {
        return Err(Status::INVALID_MEMCPY_DIRECTION);
    }
    let at = offset(driver, array, x, y)?;
    of_driver(match stream {
        None => (driver.cuMemcpyHtoA_v2)(array, at, from, bytes),
        Some(stream) => (driver.cuMemcpyHtoAAsync_v2)(array, at, from, bytes, stream),
    })
}

/// Copies bytes from the rows of an array to contiguous memory.
fn from_array(
    to: Handle,
    array: Handle,
    x: usize,
    y: usize,
    bytes: usize,
    kind: c_int,
    stream: Option<Handle>,
) -> Answer {
    let driver = context()?;
    if !matches!(
        Direction::of(kind)?,
        Direction::DeviceToHost | Direction::DeviceToDevice | Direction::Default
    ) {
        return Err(Status::INVALID_MEMCPY_DIRECTION);
    }
    let at = offset(driver, array, x, y)?;
    of_driver(match stream {
        None => (driver.cuMemcpyAtoH_v2)(to, array, at, bytes),
        Some(stream) => (driver.cuMemcpyAtoHAsync_v2)(to, array, at, bytes, stream),
    })
}

/// Fails unless the direction of a copy between arrays stays on the device.
fn check_between_arrays(kind: c_int) -> Answer {
    match Direction::of(kind)? {
        Direction::DeviceToDevice | Direction::Default => Ok(()),
        Direction::HostToHost | Direction::HostToDevice | Direction::DeviceToHost => {
            Err(Status::INVALID_MEMCPY_DIRECTION)
        }
    }
}

runtime! {
    /// Copies bytes to an array.
    fn cudaMemcpyToArray | cudaMemcpyToArray_ptds as default (
        array: Handle, x: usize, y: usize, from: Handle, bytes: usize, kind: c_int,
    ) {
        to_array(array, x, y, from, bytes, kind, waited(default))?;
        wait(default)
    }

    /// Copies bytes to an array, in a stream.
    fn cudaMemcpyToArrayAsync | cudaMemcpyToArrayAsync_ptsz as default (
        array: Handle, x: usize, y: usize, from: Handle, bytes: usize, kind: c_int, stream: Handle,
    ) {
        to_array(array, x, y, from, bytes, kind, in_stream(default, stream))
    }

    /// Copies bytes from an array.
    fn cudaMemcpyFromArray | cudaMemcpyFromArray_ptds as default (
        to: Handle, array: Handle, x: usize, y: usize, bytes: usize, kind: c_int,
    ) {
        from_array(to, array, x, y, bytes, kind, waited(default))?;
        wait(default)
    }

    /// Copies bytes from an array, in a stream.
    fn cudaMemcpyFromArrayAsync | cudaMemcpyFromArrayAsync_ptsz as default (
        to: Handle, array: Handle, x: usize, y: usize, bytes: usize, kind: c_int, stream: Handle,
    ) {
        from_array(to, array, x, y, bytes, kind, in_stream(default, stream))
    }

    /// Copies bytes from one array to another.
    fn cudaMemcpyArrayToArray | cudaMemcpyArrayToArray_ptds as default (
        to: Handle, to_x: usize, to_y: usize, from: Handle, from_x: usize, from_y: usize, bytes: usize, kind: c_int,
    ) {
        let driver = context()?;
        check_between_arrays(kind)?;
        let (to_at, from_at) = (offset(driver, to, to_x, to_y)?, offset(driver, from, from_x, from_y)?);
        wait(default)?;
        of_driver((driver.cuMemcpyAtoA_v2)(to, to_at, from, from_at, bytes))
    }

    /// Copies rows from one array to another.
    fn cudaMemcpy2DArrayToArray | cudaMemcpy2DArrayToArray_ptds as default (
        to: Handle, to_x: usize, to_y: usize, from: Handle, from_x: usize, from_y: usize, width: usize, height: usize,
        kind: c_int,
    ) {
        check_between_arrays(kind)?;
        let (from, to) = (array_side(from, from_x, from_y), array_side(to, to_x, to_y));
        copy2(from, to, width, height, waited(default))?;
        wait(default)
    }
}

/// Makes a format from the bits of its channels.
#[unsafe(no_mangle)]
extern "C" fn cudaCreateChannelDesc(x: c_int, y: c_int, z: c_int, w: c_int, kind: c_int) -> Channels {
    Channels { bits: [x, y, z, w], kind }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::DefaultStream;

    #[test]
    fn formats_are_the_drivers_and_back() {
        for kind in 0..3 {
            for bits in [8, 16, 32] {
                for count in [1usize, 2, 4] {
                    let channels =
                        Channels { bits: std::array::from_fn(|i| if i < count { bits } else { 0 }), kind };
                    match channels.format() {
                        Ok((format, channels_found)) => {
                            assert_eq!(Channels::of(format, channels_found), channels)
                        }
                        Err(_) => assert_eq!((kind, bits), (2, 8)),
                    }
                }
            }
        }
        assert!(Channels { bits: [8, 8, 8, 0], kind: 0 }.format().is_err());
        assert!(Channels { bits: [8, 16, 0, 0], kind: 0 }.format().is_err());
        assert!(Channels { bits: [8, 0, 8, 0], kind: 0 }.format().is_err());
    }

    #[test]
    fn structures_have_the_sizes_of_the_headers() {
        assert_eq!(size_of::<Description>(), 40);
        assert_eq!(size_of::<Copy2D>(), 128);
        assert_eq!(size_of::<Copy3D>(), 200);
        assert_eq!(size_of::<Parameters3D>(), 160);
        assert_eq!(in_stream(DefaultStream::PerThread, Handle(0)), Some(Handle(2)));
    }
}
