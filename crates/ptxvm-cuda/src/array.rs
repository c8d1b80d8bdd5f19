//! Arrays: the texels of textures and surfaces.
//!
//! Invariant: an array lives at least as long as each texture or surface of it, even if the program destroys
//! it earlier.

use crate::context::{Context, current};
use crate::copy::move_checked;
use crate::driver::{Driver, driver, status_of};
use crate::entry::{DefaultStream, entries};
use crate::ffi::{In, Out, Pointer};
use crate::handles::Handle;
use crate::memory::Side;
use crate::status::{Answer, Status};
use crate::stream::{When, queue};
use host_memory::Access;
use ptxvm::{Array, ChannelOrder, ChannelType, Format, Geom, Shape};
use std::ffi::{c_int, c_uint};
use std::sync::Arc;

/// `CUDA_ARRAY3D_LAYERED`, `..._CUBEMAP`
const LAYERED: c_uint = 1;
const CUBEMAP: c_uint = 4;
/// Flags that announce the use of an array and have no effect here: surfaces, gather, depth, color, sparse.
const HINTS: c_uint = 2 | 8 | 0x10 | 0x20;

/// `CUDA_ARRAY3D_DESCRIPTOR`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Description {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) depth: usize,
    pub(crate) format: c_int,
    pub(crate) channels: c_uint,
    pub(crate) flags: c_uint,
}

/// `CUDA_ARRAY_DESCRIPTOR`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Plain {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) format: c_int,
    pub(crate) channels: c_uint,
}

/// An array, or a level of a mipmapped array.
#[derive(Clone)]
pub(crate) struct CudaArray {
    pub(crate) array: Array,
    pub(crate) level: u32,
    pub(crate) description: Description,
    /// The context that it belongs to.
    pub(crate) context: Arc<Context>,
    /// Whether it is a level of a mipmapped array, which owns it.
    pub(crate) is_level: bool,
}

/// The levels of a mipmapped array.
pub(crate) struct Mipmap {
    pub(crate) array: Array,
    pub(crate) description: Description,
    /// The context that it belongs to.
    pub(crate) context: Arc<Context>,
}

/// The format of texels, from a `CUarray_format` and a number of channels. Integers of 8 and 16 bits are read
/// as fractions unless `as_integer`.
///
/// # Errors
/// `CUDA_ERROR_INVALID_VALUE`
pub(crate) fn format(format: c_int, channels: c_uint, as_integer: bool) -> Result<Format, Status> {
    use ChannelType::*;
    let order = match channels {
        1 => ChannelOrder::R,
        2 => ChannelOrder::Rg,
        4 => ChannelOrder::Rgba,
        _ => return Err(Status::InvalidValue),
    };
    let ty = match (format, as_integer) {
        (1, true) => UnsignedInt8,
        (1, false) => UnormInt8,
        (2, true) => UnsignedInt16,
        (2, false) => UnormInt16,
        (3, _) => UnsignedInt32,
        (8, true) => SignedInt8,
        (8, false) => SnormInt8,
        (9, true) => SignedInt16,
        (9, false) => SnormInt16,
        (10, _) => SignedInt32,
        (16, _) => HalfFloat,
        (32, _) => Float,
        _ => return Err(Status::InvalidValue),
    };
    Format::new(ty, order).ok_or(Status::InvalidValue)
}

/// The shape of an array with this description.
fn shape(description: &Description, levels: u32) -> Result<Shape, Status> {
    let number = |n: usize| u32::try_from(n).map_err(|_| Status::InvalidValue);
    let (width, height, depth) =
        (number(description.width)?, number(description.height)?, number(description.depth)?);
    let flags = description.flags;
    if width == 0 || flags & !(LAYERED | CUBEMAP | HINTS) != 0 {
        return Err(Status::InvalidValue);
    }
    let (geom, size, layers) = match (flags & LAYERED != 0, flags & CUBEMAP != 0) {
        (false, false) if height == 0 && depth == 0 => (Geom::D1, [width, 1, 1], 0),
        (false, false) if depth == 0 => (Geom::D2, [width, height, 1], 0),
        (false, false) if height != 0 => (Geom::D3, [width, height, depth], 0),
        (true, false) if height == 0 && depth != 0 => (Geom::A1d, [width, 1, 1], depth),
        (true, false) if depth != 0 => (Geom::A2d, [width, height, 1], depth),
        (false, true) if depth == 6 => (Geom::Cube, [width, height, 1], 0),
        (true, true) if depth != 0 && depth.is_multiple_of(6) => (Geom::Acube, [width, height, 1], depth / 6),
        _ => return Err(Status::InvalidValue),
    };
    Ok(Shape { geom, size, layers, levels, samples: 0 })
}

fn create(description: Description, levels: u32) -> Result<(&'static Driver, Arc<Context>, Array), Status> {
    let (driver, context) = current()?;
    let shape = shape(&description, levels)?;
    let format = format(description.format, description.channels, true)?;
    // The texels must fit into the device's memory. Creating the image checks the rest, which levels and
    // alignment add.
    let [width, height, depth] = shape.size;
    let dimensions = [width, height, depth, shape.layers.max(1)];
    let bytes = dimensions.iter().fold(u64::from(format.bytes()), |all, n| all.saturating_mul(u64::from(*n)));
    let vm = context.vm(driver);
    if bytes > driver.memory_total.saturating_sub(vm.memory_usage().0) {
        return Err(Status::OutOfMemory);
    }
    let array = vm.array(shape, format).map_err(|error| status_of(&error))?;
    Ok((driver, context, array))
}

fn create_array(out: Out<Handle>, description: Description) -> Answer {
    out.check()?;
    let (driver, context, array) = create(description, 1)?;
    out.set(driver.arrays.insert(CudaArray { array, level: 0, description, context, is_level: false }))
}

fn find(handle: Handle) -> Result<(&'static Driver, Arc<CudaArray>), Status> {
    let driver = driver()?;
    Ok((driver, driver.arrays.get(handle)?))
}

impl Mipmap {
    /// The size of all levels.
    pub(crate) fn bytes(&self) -> u64 {
        (0..self.array.shape().levels).map(|level| self.array.level_bytes(level)).sum()
    }
}

impl CudaArray {
    /// Its size.
    pub(crate) fn bytes(&self) -> u64 {
        self.array.level_bytes(self.level)
    }

    /// Bytes of a texel.
    pub(crate) fn texel(&self) -> usize {
        self.array.format().bytes() as usize
    }

    /// The address of bytes in a row, after a check that they lie in it.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE` if the bytes are not in the row.
    pub(crate) fn row(&self, plane: usize, y: usize, x: usize, bytes: usize) -> Result<u64, Status> {
        let (size, _) = self.array.extent(self.level).ok_or(Status::InvalidValue)?;
        let row = size[0] as usize * self.texel();
        if x > row || bytes > row - x {
            return Err(Status::InvalidValue);
        }
        let start = self.array.row(self.level, plane as u64, y as u64).ok_or(Status::InvalidValue)?;
        Ok(start + x as u64)
    }
}

/// A side of a copy with an array.
#[derive(Clone)]
enum End {
    Array(Arc<CudaArray>, usize),
    Memory(Side),
}

impl End {
    /// Fails unless the side has `bytes` bytes that permit the access.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE`.
    fn check(&self, driver: &Driver, bytes: usize, access: Access) -> Answer {
        match self {
            End::Memory(side) if access == Access::Write => side.writable(driver, bytes)?.check(access),
            End::Memory(side) => side.check(access),
            End::Array(array, offset) => {
                let last = offset.checked_add(bytes - 1).ok_or(Status::InvalidValue)?;
                array.piece(last, 1).map(|_| ())
            }
        }
    }

    /// The contiguous piece at a byte offset, of at most `bytes` bytes, and its length.
    fn piece(&self, at: usize, bytes: usize) -> Result<(Side, usize), Status> {
        match self {
            End::Memory(side) => Ok((side.part(at, bytes)?, bytes)),
            End::Array(array, offset) => array.piece(offset + at, bytes),
        }
    }
}

impl CudaArray {
    /// The piece of a row at a byte offset. Rows count as contiguous.
    fn piece(&self, at: usize, bytes: usize) -> Result<(Side, usize), Status> {
        let (size, _) = self.array.extent(self.level).ok_or(Status::InvalidValue)?;
        let row = size[0] as usize * self.texel();
        let (line, x) = (at / row, at % row);
        let (plane, y) = (line / size[1] as usize, line % size[1] as usize);
        let part = (row - x).min(bytes);
        Ok((Side::Device(self.row(plane, y, x, part)?), part))
    }
}

/// Copies bytes of an array's rows, which count as contiguous.
fn copy(
    (to, from): (impl FnOnce(&Driver) -> Result<End, Status>, impl FnOnce(&Driver) -> Result<End, Status>),
    bytes: usize,
    (stream, default): (Handle, DefaultStream),
    when: When,
) -> Answer {
    let (driver, queue) = queue(stream, default)?;
    let (to, from) = (to(driver)?, from(driver)?);
    if bytes == 0 {
        return Ok(());
    }
    let check = move |to: &End, from: &End| {
        to.check(driver, bytes, Access::Write)?;
        from.check(driver, bytes, Access::Read)
    };
    check(&to, &from)?;
    queue.perform(when, move || {
        check(&to, &from)?;
        let mut at = 0;
        while at < bytes {
            let (into, room) = to.piece(at, bytes - at)?;
            let (out, part) = from.piece(at, room)?;
            move_checked(driver, into.part(0, part)?, out, part)?;
            at += part;
        }
        Ok(())
    })
}

fn array_end(handle: Handle, offset: usize) -> impl FnOnce(&Driver) -> Result<End, Status> {
    move |driver| Ok(End::Array(driver.arrays.get(handle)?, offset))
}

fn host_end(host: Pointer, bytes: usize) -> impl FnOnce(&Driver) -> Result<End, Status> {
    move |driver| Ok(End::Memory(Side::host(driver, host, bytes)?))
}

fn device_end(address: u64, bytes: usize) -> impl FnOnce(&Driver) -> Result<End, Status> {
    move |driver| Ok(End::Memory(Side::device(driver, address, bytes)?))
}

entries! { ENTRIES;
    /// Creates an array of one or two dimensions.
    fn cuArrayCreate_v2(array: Out<Handle>, description: In<Plain>) {
        let Plain { width, height, format, channels } = description.get()?;
        create_array(array, Description { width, height, depth: 0, format, channels, flags: 0 })
    }

    /// Creates an array.
    fn cuArray3DCreate_v2(array: Out<Handle>, description: In<Description>) {
        create_array(array, description.get()?)
    }

    /// Destroys an array.
    fn cuArrayDestroy(array: Handle) {
        let (driver, _) = current()?;
        driver.arrays.remove(array).map(|_| driver.destroys_array(array)).inspect_err(|_| {
            driver.destroys_wrongly(array);
        })
    }

    /// The description that an array was created with.
    fn cuArrayGetDescriptor_v2(description: Out<Plain>, array: Handle) {
        description.check()?;
        let Description { width, height, depth: _, format, channels, flags: _ } = find(array)?.1.description;
        description.set(Plain { width, height, format, channels })
    }

    /// The description that an array was created with.
    fn cuArray3DGetDescriptor_v2(description: Out<Description>, array: Handle) {
        description.check()?;
        description.set(find(array)?.1.description)
    }

    /// Creates a mipmapped array.
    fn cuMipmappedArrayCreate(mipmap: Out<Handle>, description: In<Description>, levels: c_uint) {
        mipmap.check()?;
        let description = description.get()?;
        let largest = description.width.max(description.height);
        let depth = if description.flags & (LAYERED | CUBEMAP) == 0 { description.depth } else { 0 };
        let complete = usize::BITS - largest.max(depth).leading_zeros();
        let (driver, context, array) = create(description, levels.clamp(1, complete.max(1)))?;
        mipmap.set(driver.mipmaps.insert(Mipmap { array, description, context }))
    }

    /// A level of a mipmapped array, as an array.
    fn cuMipmappedArrayGetLevel(level_array: Out<Handle>, mipmap: Handle, level: c_uint) {
        let driver = driver()?;
        level_array.check()?;
        let mipmap = driver.mipmaps.get(mipmap)?;
        let (size, _) = mipmap.array.extent(level).ok_or(Status::InvalidValue)?;
        let whole = mipmap.description;
        let dimension = |whole: usize, level: u32| if whole == 0 { 0 } else { level as usize };
        let layered = whole.flags & (LAYERED | CUBEMAP) != 0;
        let description = Description {
            width: size[0] as usize,
            height: dimension(whole.height, size[1]),
            depth: if layered { whole.depth } else { dimension(whole.depth, size[2]) },
            ..whole
        };
        let (array, context) = (mipmap.array.clone(), Arc::clone(&mipmap.context));
        level_array.set(driver.arrays.insert(CudaArray { array, level, description, context, is_level: true }))
    }

    /// Destroys a mipmapped array.
    fn cuMipmappedArrayDestroy(mipmap: Handle) {
        let (driver, _) = current()?;
        driver.mipmaps.remove(mipmap).map(|_| driver.destroys_array(mipmap)).inspect_err(|_| {
            driver.destroys_wrongly(mipmap);
        })
    }

    /// Copies from the host to an array.
    fn cuMemcpyHtoA_v2 | cuMemcpyHtoA_v2_ptds as default (array: Handle, offset: usize, host: Pointer, bytes: usize) {
        copy((array_end(array, offset), host_end(host, bytes)), bytes, (Handle::NULL, default), When::Now)
    }

    /// Copies from the host to an array.
    fn cuMemcpyHtoAAsync_v2 | cuMemcpyHtoAAsync_v2_ptsz as default (
        array: Handle, offset: usize, host: Pointer, bytes: usize, stream: Handle,
    ) {
        copy((array_end(array, offset), host_end(host, bytes)), bytes, (stream, default), When::Now)
    }

    /// Copies from an array to the host.
    fn cuMemcpyAtoH_v2 | cuMemcpyAtoH_v2_ptds as default (host: Pointer, array: Handle, offset: usize, bytes: usize) {
        copy((host_end(host, bytes), array_end(array, offset)), bytes, (Handle::NULL, default), When::Now)
    }

    /// Copies from an array to the host.
    fn cuMemcpyAtoHAsync_v2 | cuMemcpyAtoHAsync_v2_ptsz as default (
        host: Pointer, array: Handle, offset: usize, bytes: usize, stream: Handle,
    ) {
        copy((host_end(host, bytes), array_end(array, offset)), bytes, (stream, default), When::Now)
    }

    /// Copies from device memory to an array.
    fn cuMemcpyDtoA_v2 | cuMemcpyDtoA_v2_ptds as default (array: Handle, offset: usize, address: u64, bytes: usize) {
        copy((array_end(array, offset), device_end(address, bytes)), bytes, (Handle::NULL, default), When::Now)
    }

    /// Copies from an array to device memory.
    fn cuMemcpyAtoD_v2 | cuMemcpyAtoD_v2_ptds as default (address: u64, array: Handle, offset: usize, bytes: usize) {
        copy((device_end(address, bytes), array_end(array, offset)), bytes, (Handle::NULL, default), When::Now)
    }

    /// Copies from one array to another.
    fn cuMemcpyAtoA_v2 | cuMemcpyAtoA_v2_ptds as default (
        to: Handle, to_offset: usize, from: Handle, from_offset: usize, bytes: usize,
    ) {
        copy((array_end(to, to_offset), array_end(from, from_offset)), bytes, (Handle::NULL, default), When::Now)
    }
}
