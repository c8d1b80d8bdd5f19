//! Texture and surface references, which CUDA has up to version 11.
//!
//! A reference is a variable of the program with the parameters of its sampling. They are passed to the
//! driver's reference when memory is bound, as documented.
//!
//! Invariant: a reference belongs to the module of its registration, on the current device.
//!
//! What it does not do: level bias and sRGB, which the driver refuses.

use crate::array::Channels;
use crate::device::context;
use crate::driver::Driver;
use crate::entry::runtime;
use crate::error::{Answer, Status, of_driver};
use crate::ffi::{Handle, In, Out};
use crate::registry::{Reads, surface, texture};
use crate::structures::Rows;
use std::ffi::{c_int, c_uint};

/// `textureReference`, up to what is reserved.
#[derive(Clone, Copy)]
#[repr(C)]
struct TextureReference {
    normalized: c_int,
    filter: c_int,
    address: [c_int; 3],
    channels: Channels,
    srgb: c_int,
    anisotropy: c_uint,
    level_filter: c_int,
    level_bias: f32,
    level_clamp: [f32; 2],
    no_trilinear: c_int,
}

/// `CU_TRSF_READ_AS_INTEGER`, `CU_TRSF_NORMALIZED_COORDINATES`, `CU_TRSF_SRGB`
const AS_INTEGER: c_uint = 1;
const NORMALIZED: c_uint = 2;
const SRGB: c_uint = 0x10;
/// `CU_TRSA_OVERRIDE_FORMAT`, which the driver requires for arrays.
const OVERRIDE: c_uint = 1;

/// Prepares the driver's reference for new memory: unbinds it, and sets its parameters and format.
fn prepare(driver: &Driver, reference: Handle, channels: Channels) -> Result<Handle, Status> {
    let given = In::<TextureReference>::at(reference.0).get()?;
    let (handle, reads) = texture(reference)?;
    unbind(driver, handle)?;
    let (format, count) = channels.format()?;
    of_driver((driver.cuTexRefSetFormat)(handle, format as c_int, count as c_int))?;
    for (dimension, mode) in (0..).zip(given.address) {
        of_driver((driver.cuTexRefSetAddressMode)(handle, dimension, mode))?;
    }
    of_driver((driver.cuTexRefSetFilterMode)(handle, given.filter))?;
    of_driver((driver.cuTexRefSetMipmapFilterMode)(handle, given.level_filter))?;
    of_driver((driver.cuTexRefSetMaxAnisotropy)(handle, given.anisotropy))?;
    of_driver((driver.cuTexRefSetMipmapLevelBias)(handle, given.level_bias))?;
    let flag = |set: bool, flag: c_uint| if set { flag } else { 0 };
    let flags = flag(reads == Reads::Elements, AS_INTEGER)
        | flag(given.normalized != 0, NORMALIZED)
        | flag(given.srgb != 0, SRGB);
    of_driver((driver.cuTexRefSetFlags)(handle, flags))?;
    Ok(handle)
}

fn unbind(driver: &Driver, handle: Handle) -> Answer {
    let mut offset = 0usize;
    of_driver((driver.cuTexRefSetAddress_v2)(&mut offset, handle, Handle(0), 0))
}

/// `cudaErrorInvalidTextureBinding`
const NOT_BOUND: Status = Status(19);

runtime! {
    /// Binds linear memory to a texture reference. Memory needs no alignment, so the offset is 0.
    fn cudaBindTexture(
        offset: Out<usize>, reference: Handle, pointer: Handle, channels: In<Channels>, bytes: usize,
    ) {
        let driver = context()?;
        let handle = prepare(driver, reference, channels.get()?)?;
        let mut start = 0usize;
        of_driver((driver.cuTexRefSetAddress_v2)(&mut start, handle, pointer, bytes))?;
        offset.set_optional(start)
    }

    /// Binds rows of memory to a texture reference.
    fn cudaBindTexture2D(
        offset: Out<usize>, reference: Handle, pointer: Handle, channels: In<Channels>, width: usize, height: usize,
        pitch: usize,
    ) {
        let driver = context()?;
        let channels = channels.get()?;
        let handle = prepare(driver, reference, channels)?;
        let (format, channels) = channels.format()?;
        let rows = Rows { width, height, format, channels };
        of_driver((driver.cuTexRefSetAddress2D_v3)(handle, &rows, pointer, pitch))?;
        offset.set_optional(0)
    }

    /// Binds an array to a texture reference.
    fn cudaBindTextureToArray(reference: Handle, array: Handle, channels: In<Channels>) {
        let driver = context()?;
        let handle = prepare(driver, reference, channels.get()?)?;
        of_driver((driver.cuTexRefSetArray)(handle, array, OVERRIDE))
    }

    /// Binds a mipmapped array to a texture reference.
    fn cudaBindTextureToMipmappedArray(reference: Handle, mipmap: Handle, channels: In<Channels>) {
        let driver = context()?;
        let [least, most] = In::<TextureReference>::at(reference.0).get()?.level_clamp;
        let handle = prepare(driver, reference, channels.get()?)?;
        of_driver((driver.cuTexRefSetMipmapLevelClamp)(handle, least, most))?;
        of_driver((driver.cuTexRefSetMipmappedArray)(handle, mipmap, OVERRIDE))
    }

    /// Unbinds a texture reference.
    fn cudaUnbindTexture(reference: Handle) {
        let driver = context()?;
        unbind(driver, texture(reference)?.0)
    }

    /// The offset that binding returned, which is 0.
    fn cudaGetTextureAlignmentOffset(offset: Out<usize>, reference: Handle) {
        let driver = context()?;
        let (handle, _) = texture(reference)?;
        let mut found = 0usize;
        let bound = [driver.cuTexRefGetAddress_v2, driver.cuTexRefGetArray, driver.cuTexRefGetMipmappedArray];
        if bound.iter().all(|get| get(&mut found, handle) != Status::SUCCESS.0) {
            return Err(NOT_BOUND);
        }
        offset.set(0)
    }

    /// The texture reference of a symbol, which is the symbol.
    fn cudaGetTextureReference(reference: Out<Handle>, symbol: Handle) {
        texture(symbol)?;
        reference.set(symbol)
    }

    /// Binds an array to a surface reference. The array has its own format.
    fn cudaBindSurfaceToArray(reference: Handle, array: Handle, channels: In<Channels>) {
        let driver = context()?;
        channels.get()?;
        of_driver((driver.cuSurfRefSetArray)(surface(reference)?, array, 0))
    }

    /// The surface reference of a symbol, which is the symbol.
    fn cudaGetSurfaceReference(reference: Out<Handle>, symbol: Handle) {
        surface(symbol)?;
        reference.set(symbol)
    }
}
