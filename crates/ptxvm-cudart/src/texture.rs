//! Texture and surface objects.
//!
//! Invariant: handles of objects are the driver's, and an object's descriptions are those that it was created
//! with.
//!
//! What it does not do: textures with resource views, which the driver refuses.

use crate::array::Channels;
use crate::device::context;
use crate::driver::Driver;
use crate::entry::runtime;
use crate::error::{Answer, Status, of_driver};
use crate::ffi::{Handle, In, Out};
use crate::structures::{Resource, Sampling};
use crate::version::{is_11, is_13};
use std::ffi::{c_int, c_uint};

/// `cudaResourceDesc` of CUDA 11 and 12: its kind, and the union as words.
#[derive(Clone, Copy)]
#[repr(C)]
struct RuntimeResource {
    kind: c_uint,
    padding: c_uint,
    fields: [u64; 7],
}

/// `cudaResourceDesc` of CUDA 13.
#[derive(Clone, Copy)]
#[repr(C)]
struct LargeResource {
    first: RuntimeResource,
    reserved: [u64; 9],
    flags: c_uint,
}

/// `cudaTextureDesc` of CUDA 11, in which later fields have their own structure for the functions with `_v2`.
#[derive(Clone, Copy)]
#[repr(C)]
struct FirstSampling {
    address: [c_uint; 3],
    filter: c_uint,
    read: c_uint,
    srgb: c_int,
    border: [f32; 4],
    normalized: c_int,
    anisotropy: c_uint,
    mipmap_filter: c_uint,
    mipmap: [f32; 3],
    no_trilinear: c_int,
}

/// `cudaTextureDesc` of CUDA 12 and 13, and `cudaTextureDesc_v2` of CUDA 11.
#[derive(Clone, Copy)]
#[repr(C)]
struct RuntimeSampling {
    first: FirstSampling,
    seamless: c_int,
}

/// Converts a resource to the driver's form. An array is one word in both; the format of linear memory
/// becomes the driver's.
fn resource(from: RuntimeResource) -> Result<Resource, Status> {
    let mut to = Resource { kind: from.kind, ..Resource::default() };
    to.fields[0] = from.fields[0];
    // The format of linear and pitched memory takes two and a half words.
    let low = |word: u64| word as u32 as c_int;
    let high = |word: u64| (word >> 32) as c_int;
    let channels = Channels {
        bits: [low(from.fields[1]), high(from.fields[1]), low(from.fields[2]), high(from.fields[2])],
        kind: low(from.fields[3]),
    };
    match from.kind {
        0 | 1 => {}
        2 | 3 => {
            let (format, count) = channels.format()?;
            to.fields[1] = u64::from(format) | u64::from(count) << 32;
            // The size in bytes, or width, height and pitch.
            to.fields[2..5].copy_from_slice(&from.fields[4..7]);
        }
        _ => return Err(Status::INVALID_VALUE),
    }
    Ok(to)
}

/// Converts a texture description to the driver's form. `CU_TRSF_READ_AS_INTEGER` is 1, normalized
/// coordinates 2, sRGB 0x10, disabled trilinear optimization 0x20, seamless cube maps 0x40.
fn sampling(from: RuntimeSampling) -> Sampling {
    let RuntimeSampling { first: from, seamless } = from;
    let flag = |set: bool, flag: c_uint| if set { flag } else { 0 };
    Sampling {
        address: from.address,
        filter: from.filter,
        flags: flag(from.read == 0, 1)
            | flag(from.normalized != 0, 2)
            | flag(from.srgb != 0, 0x10)
            | flag(from.no_trilinear != 0, 0x20)
            | flag(seamless != 0, 0x40),
        anisotropy: from.anisotropy,
        mipmap_filter: from.mipmap_filter,
        mipmap: from.mipmap,
        border: from.border,
        reserved: [0; 12],
    }
}

/// Converts a resource of the driver to the runtime's form.
fn runtime_resource(from: &Resource) -> RuntimeResource {
    let mut fields = [0; 7];
    fields[0] = from.fields[0];
    if matches!(from.kind, 2 | 3) {
        let Channels { bits: [x, y, z, w], kind } =
            Channels::of(from.fields[1] as c_uint, (from.fields[1] >> 32) as c_uint);
        let pair = |low: c_int, high: c_int| u64::from(low as u32) | u64::from(high as u32) << 32;
        fields[1] = pair(x, y);
        fields[2] = pair(z, w);
        fields[3] = pair(kind, 0);
        fields[4..7].copy_from_slice(&from.fields[2..5]);
    }
    RuntimeResource { kind: from.kind, padding: 0, fields }
}

/// Converts a texture description of the driver to the runtime's form.
fn runtime_sampling(from: &Sampling) -> RuntimeSampling {
    let has = |flag: c_uint| c_int::from(from.flags & flag != 0);
    let first = FirstSampling {
        address: from.address,
        filter: from.filter,
        read: c_uint::from(from.flags & 1 == 0),
        srgb: has(0x10),
        border: from.border,
        normalized: has(2),
        anisotropy: from.anisotropy,
        mipmap_filter: from.mipmap_filter,
        mipmap: from.mipmap,
        no_trilinear: has(0x20),
    };
    RuntimeSampling { first, seamless: has(0x40) }
}

runtime! {
    /// Creates a texture object. In CUDA 11 the description has no field for seamless cube maps.
    fn cudaCreateTextureObject(object: Handle, from: Handle, how: Handle, view: Handle) {
        let how = if is_11() {
            RuntimeSampling { first: In::at(how.0).get()?, seamless: 0 }
        } else {
            In::at(how.0).get()?
        };
        create_texture(object, from, how, view)
    }

    /// Destroys a texture object.
    fn cudaDestroyTextureObject(object: u64) => cuTexObjectDestroy;

    /// Creates a surface object.
    fn cudaCreateSurfaceObject(object: Handle, from: Handle) {
        let driver = context()?;
        let resource = given_resource(driver, from)?;
        of_driver((driver.cuSurfObjectCreate)(object, &resource))
    }

    /// Destroys a surface object.
    fn cudaDestroySurfaceObject(object: u64) => cuSurfObjectDestroy;

    /// Creates a texture object, with a field for seamless cube maps. Only CUDA 11 has this name.
    fn cudaCreateTextureObject_v2(object: Handle, from: Handle, how: In<RuntimeSampling>, view: Handle) {
        create_texture(object, from, how.get()?, view)
    }

    /// The resource of a texture object.
    fn cudaGetTextureObjectResourceDesc(to: Handle, object: u64) {
        let driver = context()?;
        let mut found = Resource::default();
        of_driver((driver.cuTexObjectGetResourceDesc)(&mut found, object))?;
        put_resource(driver, to, &found)
    }

    /// The sampling parameters of a texture object. In CUDA 11 the description has no field for seamless cube
    /// maps.
    fn cudaGetTextureObjectTextureDesc(to: Handle, object: u64) {
        let found = sampling_of(object)?;
        if is_11() { Out::at(to.0).set(found.first) } else { Out::at(to.0).set(found) }
    }

    /// The sampling parameters of a texture object. Only CUDA 11 has this name.
    fn cudaGetTextureObjectTextureDesc_v2(to: Out<RuntimeSampling>, object: u64) {
        to.set(sampling_of(object)?)
    }

    /// The resource view of a texture object, which no object has.
    fn cudaGetTextureObjectResourceViewDesc(view: Handle, object: u64) => cuTexObjectGetResourceViewDesc;

    /// The resource of a surface object.
    fn cudaGetSurfaceObjectResourceDesc(to: Handle, object: u64) {
        let driver = context()?;
        let mut found = Resource::default();
        of_driver((driver.cuSurfObjectGetResourceDesc)(&mut found, object))?;
        put_resource(driver, to, &found)
    }
}

/// The resource that the program passes, in the driver's form.
fn given_resource(driver: &Driver, from: Handle) -> Result<Resource, Status> {
    if is_13(driver)? {
        let LargeResource { first, reserved: _, flags } = In::at(from.0).get()?;
        return if flags == 0 { resource(first) } else { Err(Status::INVALID_VALUE) };
    }
    resource(In::at(from.0).get()?)
}

/// Writes a resource of the driver in the program's form.
fn put_resource(driver: &Driver, to: Handle, found: &Resource) -> Answer {
    let first = runtime_resource(found);
    if is_13(driver)? {
        Out::at(to.0).set(LargeResource { first, reserved: [0; 9], flags: 0 })
    } else {
        Out::at(to.0).set(first)
    }
}

fn create_texture(object: Handle, from: Handle, how: RuntimeSampling, view: Handle) -> Answer {
    let driver = context()?;
    let (resource, sampling) = (given_resource(driver, from)?, sampling(how));
    of_driver((driver.cuTexObjectCreate)(object, &resource, &sampling, view))
}

fn sampling_of(object: u64) -> Result<RuntimeSampling, Status> {
    let driver = context()?;
    let mut found = Sampling::default();
    of_driver((driver.cuTexObjectGetTextureDesc)(&mut found, object))?;
    Ok(runtime_sampling(&found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_have_the_sizes_of_the_headers() {
        assert_eq!(size_of::<Resource>(), 144);
        assert_eq!(size_of::<Sampling>(), 104);
        assert_eq!(size_of::<RuntimeResource>(), 64);
        assert_eq!(size_of::<LargeResource>(), 144);
        assert_eq!(size_of::<FirstSampling>(), 68);
        assert_eq!(size_of::<RuntimeSampling>(), 72);
    }
}
