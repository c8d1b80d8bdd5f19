//! Texture and surface objects.
//!
//! An object's handle is the number that kernels take.
//!
//! Invariants: an object lives until all launches are complete that were submitted before it was destroyed.
//! Unsupported features (border colors, level bias, resource views) fail when an object is created, and are
//! never ignored.

use crate::array::{Description, format};
use crate::context::{Context, current};
use crate::driver::{Driver, driver, status_of};
use crate::entry::entries;
use crate::ffi::{In, Out};
use crate::handles::Handle;
use crate::log;
use crate::status::{Answer, Status};
use ptxvm::{AddrMode, Array, Descriptor, FilterMode, Geom, Object, Sampler, Shape};
use std::collections::HashMap;
use std::ffi::{c_int, c_uint};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// `CU_TRSF_READ_AS_INTEGER`, `CU_TRSF_NORMALIZED_COORDINATES`, `CU_TRSF_SRGB`
pub(crate) const AS_INTEGER: c_uint = 1;
pub(crate) const NORMALIZED: c_uint = 2;
pub(crate) const SRGB: c_uint = 0x10;

/// `CUDA_RESOURCE_DESC`
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Resource {
    kind: c_int,
    /// By kind: an array, a mipmapped array, linear memory (address, format and channels, bytes), or rows of
    /// it (address, format and channels, width, height, pitch).
    of: [u64; 16],
    flags: c_uint,
}

/// `CUDA_TEXTURE_DESC`
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct TextureDescription {
    address: [c_int; 3],
    filter: c_int,
    flags: c_uint,
    anisotropy: c_uint,
    level_filter: c_int,
    level_bias: f32,
    level_clamp: [f32; 2],
    border: [f32; 4],
    reserved: [c_int; 12],
}

/// The objects of the process, by handle.
#[derive(Default)]
pub(crate) struct Objects {
    made: Mutex<HashMap<u64, Made>>,
    /// The era of launches that are submitted now.
    now: Mutex<Arc<Era>>,
}

struct Made {
    _object: Object,
    resource: Resource,
    texture: Option<TextureDescription>,
    context: Arc<Context>,
}

/// The time between two destructions of objects. A launch holds the era of its call until it is complete,
/// which keeps alive all objects that were destroyed after the call.
#[derive(Default)]
pub(crate) struct Era {
    destroyed: OnceLock<Vec<Made>>,
    next: OnceLock<Arc<Era>>,
}

impl Objects {
    fn table(&self) -> MutexGuard<'_, HashMap<u64, Made>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The era that a launch holds until it is complete.
    pub(crate) fn era(&self) -> Arc<Era> {
        Arc::clone(&self.now.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ends the era. The objects are freed when all earlier launches are complete.
    fn retire(&self, gone: Vec<Made>) {
        let next = Arc::<Era>::default();
        let ended = {
            let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *now, Arc::clone(&next))
        };
        // Each era ends once.
        let _once = ended.destroyed.set(gone);
        let _once = ended.next.set(next);
    }

    /// Removes the objects of a context that has ended, which has no launches any more.
    pub(crate) fn forget(&self, context: &Arc<Context>) {
        self.table().retain(|_, made| !Arc::ptr_eq(&made.context, context));
    }
}

impl Drop for Era {
    fn drop(&mut self) {
        // A loop, because recursive drops of a long chain of eras could overflow the stack.
        let mut next = self.next.take();
        while let Some(era) = next {
            next = Arc::into_inner(era).and_then(|mut era| era.next.take());
        }
    }
}

/// Names what is not supported, and returns the error.
pub(crate) fn refuse(what: &str) -> Status {
    log::refused(what);
    Status::NotSupported
}

/// `CUaddress_mode`
pub(crate) fn address_mode(mode: c_int) -> Result<AddrMode, Status> {
    match mode {
        0 => Ok(AddrMode::Wrap),
        1 => Ok(AddrMode::ClampToEdge),
        2 => Ok(AddrMode::Mirror),
        3 => Ok(AddrMode::ClampToBorder),
        _ => Err(Status::InvalidValue),
    }
}

/// `CUfilter_mode`
pub(crate) fn filter_mode(mode: c_int) -> Result<FilterMode, Status> {
    match mode {
        0 => Ok(FilterMode::Nearest),
        1 => Ok(FilterMode::Linear),
        _ => Err(Status::InvalidValue),
    }
}

/// Linear memory as texels.
pub(crate) fn linear(
    driver: &Driver,
    address: u64,
    kind: (c_int, c_uint),
    bytes: usize,
    as_integer: bool,
) -> Result<Array, Status> {
    let format = format(kind.0, kind.1, as_integer)?;
    let texels = bytes as u64 / u64::from(format.bytes());
    let width = u32::try_from(texels).map_err(|_| Status::InvalidValue)?;
    crate::memory::Side::device(driver, address, bytes)?;
    let shape = Shape::new(Geom::D1, [width, 1, 1]);
    driver.vm.array_at(address, shape, format, bytes as u64).map_err(|error| status_of(&error))
}

/// Rows of memory as texels.
pub(crate) fn rows(
    driver: &Driver,
    address: u64,
    kind: (c_int, c_uint),
    (width, height, pitch): (usize, usize, usize),
    as_integer: bool,
) -> Result<Array, Status> {
    let format = format(kind.0, kind.1, as_integer)?;
    let number = |n: usize| u32::try_from(n).map_err(|_| Status::InvalidValue);
    let shape = Shape::new(Geom::D2, [number(width)?, number(height)?, 1]);
    let bytes = pitch
        .checked_mul(height.saturating_sub(1))
        .and_then(|all| all.checked_add(width * format.bytes() as usize));
    crate::memory::Side::device(driver, address, bytes.ok_or(Status::InvalidValue)?)?;
    driver.vm.array_at(address, shape, format, pitch as u64).map_err(|error| status_of(&error))
}

/// A level of an array in the format of a texture reference.
pub(crate) fn seen(
    array: &Array,
    description: &Description,
    levels: (u32, u32),
    as_integer: bool,
) -> Result<Array, Status> {
    let format = format(description.format, description.channels, as_integer)?;
    array.view(format, levels.0, levels.1).map_err(|error| status_of(&error))
}

/// The first level that is read and the number of levels, of an array with `levels` levels.
///
/// # Errors
/// `CUDA_ERROR_NOT_SUPPORTED` for limits between levels.
pub(crate) fn clamped(clamp: [f32; 2], levels: u32) -> Result<(u32, u32), Status> {
    let last = levels - 1;
    let [least, most] = clamp.map(|level| level.max(0.0));
    if least.fract() != 0.0 || most.fract() != 0.0 && most < last as f32 {
        return Err(refuse("a texture with clamped mipmap levels"));
    }
    let least = (least as u32).min(last);
    let most = (most as u32).clamp(least, last);
    Ok((least, most - least + 1))
}

fn low_high(word: u64) -> (c_int, c_uint) {
    (word as u32 as c_int, (word >> 32) as c_uint)
}

/// The texels of a resource as a texture reads them.
fn texels(driver: &Driver, resource: &Resource, texture: &TextureDescription) -> Result<Array, Status> {
    let as_integer = texture.flags & AS_INTEGER != 0;
    let [first, second, third, fourth, fifth, ..] = resource.of;
    match resource.kind {
        0 => {
            let array = driver.arrays.get(Handle(first as usize))?;
            seen(&array.array, &array.description, (array.level, 1), as_integer)
        }
        1 => {
            let mipmap = driver.mipmaps.get(Handle(first as usize))?;
            let levels = clamped(texture.level_clamp, mipmap.array.shape().levels)?;
            seen(&mipmap.array, &mipmap.description, levels, as_integer)
        }
        2 => linear(driver, first, low_high(second), third as usize, as_integer),
        3 => rows(
            driver,
            first,
            low_high(second),
            (third as usize, fourth as usize, fifth as usize),
            as_integer,
        ),
        _ => Err(Status::InvalidValue),
    }
}

/// The descriptor of a texture object.
fn texture(driver: &Driver, resource: &Resource, texture: &TextureDescription) -> Result<Descriptor, Status> {
    if texture.flags & SRGB != 0 {
        return Err(refuse("an sRGB texture"));
    }
    if texture.level_bias != 0.0 {
        return Err(refuse("a texture with a level bias"));
    }
    if texture.border != [0.0; 4] && texture.address.contains(&3) {
        return Err(refuse("a texture with a border color"));
    }
    let [x, y, z] = texture.address;
    let sampler = Sampler {
        filter: filter_mode(texture.filter)?,
        addr: [address_mode(x)?, address_mode(y)?, address_mode(z)?],
        level_filter: filter_mode(texture.level_filter)?,
        ..Sampler::default()
    };
    let texels = texels(driver, resource, texture)?;
    Ok(Descriptor::texture(&texels, Some(texture.flags & NORMALIZED != 0), Some(sampler)))
}

fn keep(
    (driver, context): (&Driver, Arc<Context>),
    descriptor: Descriptor,
    resource: Resource,
    texture: Option<TextureDescription>,
) -> Result<u64, Status> {
    let name = if texture.is_some() { "texture object" } else { "surface object" };
    let object = context.vm(driver).object(name, descriptor).map_err(|error| status_of(&error))?;
    let handle = object.handle();
    driver.objects.table().insert(handle, Made { _object: object, resource, texture, context });
    Ok(handle)
}

fn destroy(handle: u64, is_texture: bool) -> Answer {
    let (driver, _) = current()?;
    let mut table = driver.objects.table();
    if table.get(&handle).is_none_or(|made| made.texture.is_some() != is_texture) {
        return Err(Status::InvalidValue);
    }
    let gone = table.remove(&handle);
    drop(table);
    driver.objects.retire(gone.into_iter().collect());
    Ok(())
}

fn described(out: Out<Resource>, handle: u64, is_texture: bool) -> Answer {
    out.check()?;
    let driver = driver()?;
    let table = driver.objects.table();
    let made = table.get(&handle).filter(|made| made.texture.is_some() == is_texture);
    out.set(made.ok_or(Status::InvalidValue)?.resource)
}

entries! { ENTRIES;
    /// Creates a texture object.
    fn cuTexObjectCreate(object: Out<u64>, resource: In<Resource>, description: In<TextureDescription>, view: In<c_int>) {
        let (driver, context) = current()?;
        object.check()?;
        let (resource, description) = (resource.get()?, description.get()?);
        if !view.is_null() && view.get()? != 0 {
            return Err(refuse("a texture with a resource view"));
        }
        let descriptor = texture(driver, &resource, &description)?;
        object.set(keep((driver, context), descriptor, resource, Some(description))?)
    }

    /// Destroys a texture object.
    fn cuTexObjectDestroy(object: u64) {
        destroy(object, true)
    }

    /// The resource that a texture object was created with.
    fn cuTexObjectGetResourceDesc(resource: Out<Resource>, object: u64) {
        described(resource, object, true)
    }

    /// The sampling parameters of a texture object.
    fn cuTexObjectGetTextureDesc(description: Out<TextureDescription>, object: u64) {
        description.check()?;
        let driver = driver()?;
        let table = driver.objects.table();
        description.set(table.get(&object).and_then(|made| made.texture).ok_or(Status::InvalidValue)?)
    }

    /// The resource view of a texture object, which no object has.
    fn cuTexObjectGetResourceViewDesc(_view: Out<c_int>, object: u64) {
        let driver = driver()?;
        let known = driver.objects.table().get(&object).is_some_and(|made| made.texture.is_some());
        if known { log::refused("the resource view of a texture without one") }
        Err(Status::InvalidValue)
    }

    /// Creates a surface object.
    fn cuSurfObjectCreate(object: Out<u64>, resource: In<Resource>) {
        let (driver, context) = current()?;
        object.check()?;
        let resource = resource.get()?;
        if resource.kind != 0 {
            return Err(Status::InvalidValue);
        }
        let array = driver.arrays.get(Handle(resource.of[0] as usize))?;
        let descriptor = Descriptor::surface(&array.array, array.level).map_err(|error| status_of(&error))?;
        object.set(keep((driver, context), descriptor, resource, None)?)
    }

    /// Destroys a surface object.
    fn cuSurfObjectDestroy(object: u64) {
        destroy(object, false)
    }

    /// The resource that a surface object was created with.
    fn cuSurfObjectGetResourceDesc(resource: Out<Resource>, object: u64) {
        described(resource, object, false)
    }
}
