//! Texture and surface references: textures and surfaces that modules declare.
//!
//! Invariant: a launch uses the state of a reference at the time of the call. A change binds the module's
//! variable again.

use crate::array::{CudaArray, Plain};
use crate::context::{Context, current};
use crate::driver::{Driver, driver, status_of};
use crate::entry::entries;
use crate::ffi::{In, Out, Text};
use crate::handles::Handle;
use crate::module::Module;
use crate::status::{Answer, Status};
use crate::texture::{
    AS_INTEGER, NORMALIZED, SRGB, address_mode, clamped, filter_mode, linear, refuse, rows, seen,
};
use ptxvm::{Array, Descriptor, Sampler};
use std::ffi::{c_int, c_uint};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Where a reference comes from, which decides how long it lives.
enum Origin {
    /// A variable of a module.
    Variable(Weak<Module>, String),
    /// `cuTexRefCreate`, while this context was current.
    Created(Arc<Context>),
}

/// A reference.
pub(crate) struct Reference {
    origin: Origin,
    /// Whether it is a texture reference.
    texture: bool,
    state: Mutex<State>,
}

/// The memory that a reference binds.
#[derive(Clone)]
enum Source {
    Nothing,
    Array(Handle, Arc<CudaArray>),
    Mipmap(Handle),
    Linear(u64, usize),
    Rows(u64, usize, usize, usize),
}

#[derive(Clone)]
struct State {
    format: (c_int, c_int),
    address: [c_int; 3],
    filter: c_int,
    level_filter: c_int,
    flags: c_uint,
    anisotropy: c_uint,
    /// The levels of a mipmapped array that are read, if a program has set them.
    level_clamp: Option<[f32; 2]>,
    source: Source,
}

impl Reference {
    fn new(origin: Origin, texture: bool) -> Self {
        let state = State {
            format: (32, 1),
            address: [1; 3],
            filter: 0,
            level_filter: 0,
            flags: 0,
            anisotropy: 0,
            level_clamp: None,
            source: Source::Nothing,
        };
        Self { origin, texture, state: Mutex::new(state) }
    }

    /// Whether it was created in a context, with which it ends.
    pub(crate) fn belongs_to(&self, context: &Arc<Context>) -> bool {
        matches!(&self.origin, Origin::Created(own) if Arc::ptr_eq(own, context))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and binds the variable again.
    fn change(&self, driver: &Driver, change: impl FnOnce(&mut State) -> Answer) -> Answer {
        let mut state = self.state();
        // If the new state cannot be bound, the reference stays unchanged.
        let mut next = state.clone();
        change(&mut next)?;
        if let Origin::Variable(module, name) = &self.origin {
            let module = module.upgrade().ok_or(Status::InvalidHandle)?;
            if let Some(descriptor) = self.descriptor(driver, &next)? {
                module.loaded.bind(name, &descriptor).map_err(|error| status_of(&error))?;
            }
        }
        *state = next;
        Ok(())
    }

    fn texels(driver: &Driver, state: &State) -> Result<Option<Array>, Status> {
        let as_integer = state.flags & AS_INTEGER != 0;
        let kind = (state.format.0, state.format.1 as c_uint);
        Ok(Some(match &state.source {
            Source::Nothing => return Ok(None),
            Source::Array(_, array) => seen(&array.array, &array.description, (array.level, 1), as_integer)?,
            Source::Mipmap(handle) => {
                let mipmap = driver.mipmaps.get(*handle)?;
                let levels = match state.level_clamp {
                    Some(clamp) => clamped(clamp, mipmap.array.shape().levels)?,
                    None => (0, mipmap.array.shape().levels),
                };
                seen(&mipmap.array, &mipmap.description, levels, as_integer)?
            }
            Source::Linear(address, bytes) => linear(driver, *address, kind, *bytes, as_integer)?,
            Source::Rows(address, width, height, pitch) => {
                rows(driver, *address, kind, (*width, *height, *pitch), as_integer)?
            }
        }))
    }

    fn descriptor(&self, driver: &Driver, state: &State) -> Result<Option<Descriptor>, Status> {
        if !self.texture {
            return match &state.source {
                Source::Array(_, array) => Ok(Some(
                    Descriptor::surface(&array.array, array.level).map_err(|error| status_of(&error))?,
                )),
                Source::Nothing | Source::Mipmap(_) | Source::Linear(..) | Source::Rows(..) => Ok(None),
            };
        }
        let Some(texels) = Self::texels(driver, state)? else { return Ok(None) };
        let [x, y, z] = state.address;
        let sampler = Sampler {
            filter: filter_mode(state.filter)?,
            addr: [address_mode(x)?, address_mode(y)?, address_mode(z)?],
            level_filter: filter_mode(state.level_filter)?,
            ..Sampler::default()
        };
        Ok(Some(Descriptor::texture(&texels, Some(state.flags & NORMALIZED != 0), Some(sampler))))
    }
}

fn reference(handle: Handle, texture: bool) -> Result<(&'static Driver, Arc<Reference>), Status> {
    let driver = driver()?;
    let reference = driver.references.get(handle)?;
    if reference.texture == texture { Ok((driver, reference)) } else { Err(Status::InvalidHandle) }
}

/// The reference of a module's variable.
fn of_module(out: Out<Handle>, module: Handle, name: Text, texture: bool) -> Answer {
    let (driver, _) = current()?;
    out.check()?;
    let module = driver.modules.get(module)?;
    let name = name.get()?;
    if module.loaded.opaque_is_surface(&name) != Some(!texture) {
        return Err(Status::NotFound);
    }
    let mut known = module.references.lock().unwrap_or_else(PoisonError::into_inner);
    let origin = || Origin::Variable(Arc::downgrade(&module), name.clone());
    let make = || driver.references.insert(Reference::new(origin(), texture));
    out.set(*known.entry(name.clone()).or_insert_with(make))
}

fn change(handle: Handle, with: impl FnOnce(&mut State) -> Answer) -> Answer {
    let (driver, reference) = reference(handle, true)?;
    reference.change(driver, with)
}

fn set_array(handle: Handle, array: Handle, texture: bool) -> Answer {
    let (driver, reference) = reference(handle, texture)?;
    let found = driver.arrays.get(array)?;
    reference.change(driver, |state| {
        state.format = (found.description.format, found.description.channels as c_int);
        state.source = Source::Array(array, found);
        Ok(())
    })
}

fn get_array(out: Out<Handle>, handle: Handle, texture: bool) -> Answer {
    out.check()?;
    match &reference(handle, texture)?.1.state().source {
        Source::Array(array, _) => out.set(*array),
        Source::Nothing | Source::Mipmap(_) | Source::Linear(..) | Source::Rows(..) => {
            Err(Status::InvalidValue)
        }
    }
}

fn dimension(number: c_int) -> Result<usize, Status> {
    usize::try_from(number).ok().filter(|number| *number < 3).ok_or(Status::InvalidValue)
}

entries! { ENTRIES;
    /// A texture that a module declares.
    fn cuModuleGetTexRef(handle: Out<Handle>, module: Handle, name: Text) {
        of_module(handle, module, name, true)
    }

    /// A surface that a module declares.
    fn cuModuleGetSurfRef(handle: Out<Handle>, module: Handle, name: Text) {
        of_module(handle, module, name, false)
    }

    /// Creates a texture reference without a module.
    fn cuTexRefCreate(handle: Out<Handle>) {
        let (driver, context) = current()?;
        handle.check()?;
        handle.set(driver.references.insert(Reference::new(Origin::Created(context), true)))
    }

    /// Destroys a texture reference.
    fn cuTexRefDestroy(handle: Handle) {
        let (driver, _) = reference(handle, true)?;
        driver.references.remove(handle).map(|_| ())
    }

    /// Binds an array.
    fn cuTexRefSetArray(handle: Handle, array: Handle, flags: c_uint) {
        // `CU_TRSA_OVERRIDE_FORMAT` is required.
        if flags != 1 {
            return Err(Status::InvalidValue);
        }
        set_array(handle, array, true)
    }

    /// Binds a mipmapped array.
    fn cuTexRefSetMipmappedArray(handle: Handle, mipmap: Handle, flags: c_uint) {
        let (driver, reference) = reference(handle, true)?;
        if flags != 1 {
            return Err(Status::InvalidValue);
        }
        driver.mipmaps.get(mipmap)?;
        reference.change(driver, |state| {
            state.source = Source::Mipmap(mipmap);
            Ok(())
        })
    }

    /// Binds linear memory.
    fn cuTexRefSetAddress_v2(offset: Out<usize>, handle: Handle, address: u64, bytes: usize) {
        offset.set_optional(0)?;
        change(handle, |state| {
            state.source = if address == 0 { Source::Nothing } else { Source::Linear(address, bytes) };
            Ok(())
        })
    }

    /// Binds rows of memory.
    fn cuTexRefSetAddress2D_v3(handle: Handle, description: In<Plain>, address: u64, pitch: usize) {
        let Plain { width, height, format, channels } = description.get()?;
        change(handle, |state| {
            state.format = (format, channels as c_int);
            state.source = Source::Rows(address, width, height, pitch);
            Ok(())
        })
    }

    /// Sets the format of texels in memory.
    fn cuTexRefSetFormat(handle: Handle, format: c_int, channels: c_int) {
        crate::array::format(format, channels as c_uint, true)?;
        change(handle, |state| {
            state.format = (format, channels);
            Ok(())
        })
    }

    /// Sets the address mode of a dimension.
    fn cuTexRefSetAddressMode(handle: Handle, number: c_int, mode: c_int) {
        address_mode(mode)?;
        let number = dimension(number)?;
        change(handle, |state| {
            state.address[number] = mode;
            Ok(())
        })
    }

    /// Sets the filter mode.
    fn cuTexRefSetFilterMode(handle: Handle, mode: c_int) {
        filter_mode(mode)?;
        change(handle, |state| {
            state.filter = mode;
            Ok(())
        })
    }

    /// Sets the filter mode between levels.
    fn cuTexRefSetMipmapFilterMode(handle: Handle, mode: c_int) {
        filter_mode(mode)?;
        change(handle, |state| {
            state.level_filter = mode;
            Ok(())
        })
    }

    /// Sets whether texels are read as integers, and whether coordinates are normalized.
    fn cuTexRefSetFlags(handle: Handle, flags: c_uint) {
        if flags & SRGB != 0 {
            return Err(refuse("an sRGB texture"));
        }
        if flags & !(AS_INTEGER | NORMALIZED) != 0 {
            return Err(Status::InvalidValue);
        }
        change(handle, |state| {
            state.flags = flags;
            Ok(())
        })
    }

    /// Stores the maximum anisotropy, which has no effect.
    fn cuTexRefSetMaxAnisotropy(handle: Handle, anisotropy: c_uint) {
        change(handle, |state| {
            state.anisotropy = anisotropy;
            Ok(())
        })
    }

    /// Accepts a level bias of 0; others are refused.
    fn cuTexRefSetMipmapLevelBias(handle: Handle, bias: f32) {
        reference(handle, true)?;
        if bias == 0.0 { Ok(()) } else { Err(refuse("a texture with a level bias")) }
    }

    /// Sets the levels of a mipmapped array that are read.
    fn cuTexRefSetMipmapLevelClamp(handle: Handle, least: f32, most: f32) {
        change(handle, |state| {
            state.level_clamp = Some([least, most]);
            Ok(())
        })
    }

    /// Accepts a border color of zeros; others are refused.
    fn cuTexRefSetBorderColor(handle: Handle, color: In<[f32; 4]>) {
        reference(handle, true)?;
        if color.get()? == [0.0; 4] { Ok(()) } else { Err(refuse("a texture with a border color")) }
    }

    /// The filter mode between levels.
    fn cuTexRefGetMipmapFilterMode(mode: Out<c_int>, handle: Handle) {
        mode.check()?;
        mode.set(reference(handle, true)?.1.state().level_filter)
    }

    /// The level bias, which is 0.
    fn cuTexRefGetMipmapLevelBias(bias: Out<f32>, handle: Handle) {
        bias.check()?;
        reference(handle, true)?;
        bias.set(0.0)
    }

    /// The levels of a mipmapped array that are read.
    fn cuTexRefGetMipmapLevelClamp(least: Out<f32>, most: Out<f32>, handle: Handle) {
        least.check()?;
        most.check()?;
        let [low, high] = reference(handle, true)?.1.state().level_clamp.unwrap_or_default();
        least.set(low)?;
        most.set(high)
    }

    /// The border color, which is zeros.
    fn cuTexRefGetBorderColor(color: Out<[f32; 4]>, handle: Handle) {
        color.check()?;
        reference(handle, true)?;
        color.set([0.0; 4])
    }

    /// The bound mipmapped array.
    fn cuTexRefGetMipmappedArray(mipmap: Out<Handle>, handle: Handle) {
        mipmap.check()?;
        match &reference(handle, true)?.1.state().source {
            Source::Mipmap(found) => mipmap.set(*found),
            Source::Nothing | Source::Array(..) | Source::Linear(..) | Source::Rows(..) => Err(Status::InvalidValue),
        }
    }

    /// The bound array.
    fn cuTexRefGetArray(array: Out<Handle>, handle: Handle) {
        get_array(array, handle, true)
    }

    /// The bound memory.
    fn cuTexRefGetAddress_v2(address: Out<u64>, handle: Handle) {
        address.check()?;
        match &reference(handle, true)?.1.state().source {
            Source::Linear(at, _) | Source::Rows(at, ..) => address.set(*at),
            Source::Nothing | Source::Array(..) | Source::Mipmap(_) => Err(Status::InvalidValue),
        }
    }

    /// The address mode of a dimension.
    fn cuTexRefGetAddressMode(mode: Out<c_int>, handle: Handle, number: c_int) {
        mode.check()?;
        mode.set(reference(handle, true)?.1.state().address[dimension(number)?])
    }

    /// The filter mode.
    fn cuTexRefGetFilterMode(mode: Out<c_int>, handle: Handle) {
        mode.check()?;
        mode.set(reference(handle, true)?.1.state().filter)
    }

    /// The format and the number of channels.
    fn cuTexRefGetFormat(format: Out<c_int>, channels: Out<c_int>, handle: Handle) {
        let (_, reference) = reference(handle, true)?;
        let state = reference.state();
        format.set_optional(state.format.0)?;
        channels.set_optional(state.format.1)
    }

    /// Whether texels are read as integers, and whether coordinates are normalized.
    fn cuTexRefGetFlags(flags: Out<c_uint>, handle: Handle) {
        flags.check()?;
        flags.set(reference(handle, true)?.1.state().flags)
    }

    /// The maximum anisotropy.
    fn cuTexRefGetMaxAnisotropy(anisotropy: Out<c_int>, handle: Handle) {
        anisotropy.check()?;
        anisotropy.set(reference(handle, true)?.1.state().anisotropy as c_int)
    }

    /// Adds a texture reference to a function. It has no effect: kernels read the module's variable.
    fn cuParamSetTexRef(function: Handle, _unit: c_int, handle: Handle) {
        let (driver, _) = reference(handle, true)?;
        driver.functions.get(function).map(|_| ())
    }

    /// Binds an array to a surface reference.
    fn cuSurfRefSetArray(handle: Handle, array: Handle, flags: c_uint) {
        if flags != 0 {
            return Err(Status::InvalidValue);
        }
        set_array(handle, array, false)
    }

    /// The array bound to a surface reference.
    fn cuSurfRefGetArray(array: Out<Handle>, handle: Handle) {
        get_array(array, handle, false)
    }
}
