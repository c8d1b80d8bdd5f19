//! Textures, samplers and surfaces.
//!
//! An [`Array`] contains texels. A [`Descriptor`] is a program's view of it: a texture, a surface, or a
//! sampler to use with textures. A descriptor is bound to a module's variable
//! ([`Module::bind`](crate::Module::bind)), or passed to a kernel as an [`Object`].
//!
//! Invariant: an array lives as long as a descriptor or view of it.

use crate::vm::Device;
use crate::{Buffer, Element, Error, ErrorKind};
pub use ptx_exec::texture::{AddrMode, ChannelOrder, ChannelType, Compare, FilterMode, Format};
use ptx_exec::texture::{Image, ImageError, Sampler, Shape};
use std::sync::Arc;

impl From<ImageError> for Error {
    fn from(error: ImageError) -> Self {
        match error {
            ImageError::Memory(error) => error.into(),
            ImageError::Shape(_) => Error::caller(error.to_string()),
        }
    }
}

/// Texels in device memory.
///
/// # Shape
/// Order in a level: layers (or slices of a 3d array), in each the faces, in each the samples, in each the
/// rows, in each the texels.
#[derive(Clone, Debug)]
pub struct Array {
    image: Arc<Image>,
    _device: Arc<Device>,
}

impl Array {
    pub(crate) fn new(device: &Arc<Device>, shape: Shape, format: Format) -> Result<Self, Error> {
        let image = Image::new(&device.memory, shape, format)?;
        Ok(Self { image, _device: Arc::clone(device) })
    }

    pub(crate) fn linear<T: Element>(
        device: &Arc<Device>,
        buffer: &Buffer<T>,
        shape: Shape,
        format: Format,
        pitch: u64,
    ) -> Result<Self, Error> {
        let rows = u64::from(shape.size[1]);
        let last = u64::from(shape.size[0]) * u64::from(format.bytes());
        let needed = pitch.checked_mul(rows.saturating_sub(1)).and_then(|bytes| bytes.checked_add(last));
        let has = buffer.len() as u64 * size_of::<T>() as u64;
        if needed.is_none_or(|needed| needed > has) {
            return Err(Error::caller(format!("{rows} rows of {last} bytes do not fit a buffer of {has}")));
        }
        let image = Image::linear(&device.memory, buffer.address(), shape, format, pitch)?;
        Ok(Self { image, _device: Arc::clone(device) })
    }

    /// Texels of device memory by address: rows of a 1d or 2d image, `pitch` bytes apart. Accesses after the
    /// memory is freed trap.
    pub(crate) fn at(
        device: &Arc<Device>,
        address: u64,
        shape: Shape,
        format: Format,
        pitch: u64,
    ) -> Result<Self, Error> {
        let image = Image::linear(&device.memory, address, shape, format, pitch)?;
        Ok(Self { image, _device: Arc::clone(device) })
    }

    /// A view of the same texels in another format of the same size, with `levels` levels from level `first`
    /// on.
    ///
    /// # Errors
    /// Of the caller, if the levels do not exist, or the format has another size.
    pub fn view(&self, format: Format, first: u32, levels: u32) -> Result<Self, Error> {
        Ok(Self { image: self.image.view(format, first, levels)?, _device: Arc::clone(&self._device) })
    }

    /// The device address of row `y` of a plane of a level, for [`Vm::read`](crate::Vm::read) and
    /// [`Vm::write`](crate::Vm::write). A plane is a slice of a 3d array, otherwise a face of a layer.
    pub fn row(&self, level: u32, plane: u64, y: u64) -> Option<u64> {
        self.image.row(level, plane, y)
    }

    /// Extent of a level in texels, and its number of planes.
    pub fn extent(&self, level: u32) -> Option<([u32; 3], u64)> {
        self.image.extent(level)
    }

    /// Its geometry and extent.
    pub fn shape(&self) -> &Shape {
        self.image.shape()
    }

    /// The format of its texels.
    pub fn format(&self) -> Format {
        self.image.format()
    }

    /// Bytes of a level without padding, as for [`Array::write`] and [`Array::read`].
    pub fn level_bytes(&self, level: u32) -> u64 {
        self.image.level_bytes(level)
    }

    /// Copies a level to the device.
    ///
    /// # Errors
    /// Of the caller, if the level does not exist, or the length is not [`Array::level_bytes`].
    pub fn write(&self, level: u32, bytes: &[u8]) -> Result<(), Error> {
        Ok(self.image.write(level, bytes)?)
    }

    /// Copies a level to the host.
    ///
    /// # Errors
    /// Of the caller, if the level does not exist.
    pub fn read(&self, level: u32) -> Result<Vec<u8>, Error> {
        Ok(self.image.read(level)?)
    }
}

/// A texture, a sampler or a surface.
#[derive(Clone, Debug)]
pub struct Descriptor(ptx_exec::texture::Descriptor);

impl Descriptor {
    /// A texture with its sampler. Without `normalized` or `sampler`, the initial fields of the bound
    /// variable apply; their defaults are unnormalised coordinates, and the nearest texel, clamped to the
    /// edge.
    pub fn texture(array: &Array, normalized: Option<bool>, sampler: Option<Sampler>) -> Self {
        let image = Arc::clone(&array.image);
        Self(ptx_exec::texture::Descriptor::Texture { image, normalized, sampler })
    }

    /// A sampler, for programs in independent mode.
    pub fn sampler(sampler: Sampler) -> Self {
        Self(ptx_exec::texture::Descriptor::Sampler(sampler))
    }

    /// A level of an array, for reads and writes.
    ///
    /// # Errors
    /// Of the caller, if the array has no such level, or has multi-sample texels.
    pub fn surface(array: &Array, level: u32) -> Result<Self, Error> {
        let shape = array.shape();
        if level >= shape.levels || shape.samples > 0 {
            return Err(ErrorKind::Caller(format!("no surface of level {level} of {shape:?}")).into());
        }
        Ok(Self(ptx_exec::texture::Descriptor::Surface { image: Arc::clone(&array.image), level }))
    }

    pub(crate) fn exec(&self) -> &ptx_exec::texture::Descriptor {
        &self.0
    }
}

/// A texture, sampler or surface with a handle, which kernels take as a `.param .texref`, `.samplerref`,
/// `.surfref` or as a 64-bit number. The handle is valid until the object is dropped.
pub struct Object {
    object: ptx_exec::texture::Object,
    _device: Arc<Device>,
}

impl Object {
    pub(crate) fn new(device: &Arc<Device>, name: &str, descriptor: Descriptor) -> Result<Self, Error> {
        let object = ptx_exec::texture::Object::new(&device.memory, name, descriptor.0)?;
        Ok(Self { object, _device: Arc::clone(device) })
    }

    /// The handle.
    pub fn handle(&self) -> u64 {
        self.object.handle()
    }
}

impl std::fmt::Debug for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Object").field("handle", &self.handle()).finish()
    }
}
