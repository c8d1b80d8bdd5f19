//! Opaque objects: textures, samplers and surfaces, and their handles. PTX ISA §5.3.
//!
//! A handle is a 64-bit number: the address of a module's `.texref`, `.samplerref` or `.surfref` variable, or
//! the address of an object that the host made and passes to kernels as a `.param .texref` or as a number. In
//! registers it can also be the offset of a kernel parameter that holds a handle, which is the result of
//! `mov` of such a parameter.
//!
//! An [`Image`] is the data: levels, layers and samples in guest memory. A [`Descriptor`] is what is bound to
//! a handle. `Opaques` is the table of a memory. `lookup()` fetches and filters.
//!
//! Invariants: a handle without an object is a trap, never an access. An image keeps its memory while it is
//! bound. A binding may change at any time; an instruction uses either the old or the new binding.

mod image;
pub(crate) mod lookup;

pub use image::{Image, ImageError, Shape};
pub use ptx_sem::{AddrMode, ChannelOrder, ChannelType, Compare, FilterMode, Format};

use crate::mem::{Class, Memory, MemoryError, View};
use crate::trap::{Fault, FaultKind};
use ptx::isa::{Geom, Space, Ty, Word};
use ptx_sem::level_size;
use std::sync::Arc;

/// Bytes of an opaque variable. They are reserved for its handle, and programs cannot read them.
pub const OPAQUE_BYTES: u64 = 8;

/// A sampler. PTX ISA §5.3.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampler {
    /// `filter_mode`
    pub filter: FilterMode,
    /// `addr_mode_0`, `addr_mode_1`, `addr_mode_2`
    pub addr: [AddrMode; 3],
    /// `force_unnormalized_coords` (independent mode).
    pub force_unnormalized: bool,
    /// How a depth is compared. The manual has no field for it (A132).
    pub compare: Compare,
    /// The filter between levels of a mipmap. The manual has no field for it (A134).
    pub level_filter: FilterMode,
}

impl Default for Sampler {
    /// The default, which the manual leaves to the source language: CUDA's, nearest and clamped to the edge.
    fn default() -> Self {
        Self {
            filter: FilterMode::Nearest,
            addr: [AddrMode::ClampToEdge; 3],
            force_unnormalized: false,
            compare: Compare::Lequal,
            level_filter: FilterMode::Nearest,
        }
    }
}

/// The object that the host binds to a handle.
#[derive(Clone, Debug)]
pub enum Descriptor {
    /// A texture, in unified mode with its sampler.
    Texture {
        /// Its data.
        image: Arc<Image>,
        /// `normalized_coords`; `None`: the variable's initial value, or false.
        normalized: Option<bool>,
        /// Its sampler; `None`: from the variable's initial fields.
        sampler: Option<Sampler>,
    },
    /// A sampler.
    Sampler(Sampler),
    /// One level of an image, for reads and writes.
    Surface {
        /// Its data.
        image: Arc<Image>,
        /// The level.
        level: u32,
    },
}

impl Descriptor {
    /// The image, if it is a texture or surface.
    pub fn image(&self) -> Option<&Arc<Image>> {
        match self {
            Descriptor::Texture { image, .. } | Descriptor::Surface { image, .. } => Some(image),
            Descriptor::Sampler(_) => None,
        }
    }

    /// The type of the variables that it can be bound to.
    pub fn ty(&self) -> Ty {
        match self {
            Descriptor::Texture { .. } => Ty::Texref,
            Descriptor::Sampler(_) => Ty::Samplerref,
            Descriptor::Surface { .. } => Ty::Surfref,
        }
    }
}

/// An opaque variable or object.
#[derive(Clone, Debug)]
pub struct Opaque {
    name: String,
    ty: Ty,
    fields: Vec<(String, u64)>,
    bound: Option<Descriptor>,
}

/// A texture, as instructions use it.
pub(crate) struct Texture<'a> {
    /// Its data.
    pub(crate) image: &'a Image,
    /// `normalized_coords`
    pub(crate) normalized: bool,
    /// The sampler of unified mode.
    pub(crate) sampler: Sampler,
}

impl Opaque {
    fn field(&self, name: &str) -> Option<u64> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, value)| *value)
    }

    /// Its name for traps: "texture `t`".
    fn what(&self) -> String {
        format!("{} `{}`", noun(self.ty), self.name)
    }

    /// The sampler from its initial fields.
    fn own_sampler(&self) -> Sampler {
        let default = Sampler::default();
        let place = |name: &str| self.field(name).and_then(|value| usize::try_from(value).ok());
        let addr = |name: &str| place(name).and_then(|value| AddrMode::ALL.get(value).copied());
        Sampler {
            filter: place("filter_mode")
                .and_then(|value| FilterMode::ALL.get(value).copied())
                .unwrap_or(default.filter),
            addr: ["addr_mode_0", "addr_mode_1", "addr_mode_2"]
                .map(|name| addr(name).unwrap_or(AddrMode::ClampToEdge)),
            force_unnormalized: self.field("force_unnormalized_coords") == Some(1),
            ..default
        }
    }

    fn normalized(&self, bound: Option<bool>) -> bool {
        bound.unwrap_or_else(|| self.field("normalized_coords") == Some(1))
    }

    fn misused(&self, as_what: Ty) -> FaultKind {
        FaultKind::BadTexture(match self.ty == as_what {
            true => format!("{} is not bound", self.what()),
            false => format!("{} is used as a {}", self.what(), noun(as_what)),
        })
    }

    /// The object as a texture.
    pub(crate) fn texture(&self) -> Result<Texture<'_>, FaultKind> {
        match &self.bound {
            Some(Descriptor::Texture { image, normalized, sampler }) => Ok(Texture {
                image,
                normalized: self.normalized(*normalized),
                sampler: sampler.unwrap_or_else(|| self.own_sampler()),
            }),
            Some(Descriptor::Sampler(_) | Descriptor::Surface { .. }) | None => Err(self.misused(Ty::Texref)),
        }
    }

    /// The object as a sampler. A `.samplerref` variable is a sampler without a binding, from its initial
    /// fields.
    pub(crate) fn sampler(&self) -> Result<Sampler, FaultKind> {
        match &self.bound {
            Some(Descriptor::Sampler(sampler)) => Ok(*sampler),
            None if self.ty == Ty::Samplerref => Ok(self.own_sampler()),
            Some(Descriptor::Texture { .. } | Descriptor::Surface { .. }) | None => {
                Err(self.misused(Ty::Samplerref))
            }
        }
    }

    /// The object as a surface: image and level.
    pub(crate) fn surface(&self) -> Result<(&Image, u32), FaultKind> {
        match &self.bound {
            Some(Descriptor::Surface { image, level }) => Ok((image, *level)),
            Some(Descriptor::Texture { .. } | Descriptor::Sampler(_)) | None => {
                Err(self.misused(Ty::Surfref))
            }
        }
    }

    /// `txq` (of a `texref`), `suq` (of a `surfref`): the property that the word names, at a level for
    /// `txq.level`. Without a binding, the variable's initial field.
    ///
    /// # Traps
    /// The object is neither bound nor initialised, or is of the wrong type.
    pub(crate) fn query(&self, due: Ty, query: Word, level: Option<u32>) -> Result<u32, FaultKind> {
        use Word::{AddrMode0, AddrMode1, AddrMode2, FilterMode as Filter, ForceUnnormalizedCoords};
        match (&self.bound, due) {
            (Some(Descriptor::Surface { .. }), Ty::Texref)
            | (Some(Descriptor::Texture { .. }), Ty::Surfref) => {
                return Err(self.misused(due));
            }
            (Some(_) | None, _) => {}
        }
        if matches!(query, ForceUnnormalizedCoords | Filter | AddrMode0 | AddrMode1 | AddrMode2) {
            let sampler = match self.ty {
                Ty::Samplerref => self.sampler()?,
                _ => match &self.bound {
                    Some(Descriptor::Texture { sampler: Some(sampler), .. }) => *sampler,
                    _ => self.own_sampler(),
                },
            };
            return Ok(match query {
                ForceUnnormalizedCoords => u32::from(sampler.force_unnormalized),
                Filter => sampler.filter as u32,
                AddrMode0 => sampler.addr[0] as u32,
                AddrMode1 => sampler.addr[1] as u32,
                _ => sampler.addr[2] as u32,
            });
        }
        let (image, base) = match &self.bound {
            Some(Descriptor::Texture { image, .. }) => (image, 0),
            Some(Descriptor::Surface { image, level }) => (image, *level),
            Some(Descriptor::Sampler(_)) => return Err(self.misused(Ty::Texref)),
            None => {
                let known = self.field(query.text()).and_then(|value| u32::try_from(value).ok());
                return match (known, query) {
                    (Some(size), Word::Width | Word::Height | Word::Depth) => {
                        Ok(level.map_or(size, |level| level_size(size, level)))
                    }
                    (Some(value), _) => Ok(value),
                    (None, _) => Err(self.misused(self.ty)),
                };
            }
        };
        let shape = image.shape();
        let extent = |dimension: usize| match dimension < shape.dimensions() {
            true => level_size(shape.size[dimension], base.saturating_add(level.unwrap_or(0))),
            false => 0,
        };
        Ok(match query {
            Word::Width => extent(0),
            Word::Height => extent(1),
            Word::Depth => extent(2),
            Word::ChannelDataType => image.format().data_type.number(),
            Word::ChannelOrder => image.format().order.number(),
            Word::NormalizedCoords => match &self.bound {
                Some(Descriptor::Texture { normalized, .. }) => u32::from(self.normalized(*normalized)),
                _ => 0,
            },
            Word::ArraySize => shape.layers,
            Word::NumMipmapLevels if shape.levels > 1 => shape.levels,
            Word::NumMipmapLevels => 0,
            Word::NumSamples => shape.samples,
            Word::MemoryLayout => u32::from(image.is_linear()),
            other => return Err(FaultKind::BadTexture(format!("no property `{}`", other.text()))),
        })
    }
}

/// An object of the host: a handle to pass to kernels, valid until it is dropped.
pub struct Object {
    memory: Arc<Memory>,
    handle: u64,
}

impl Object {
    /// A handle for a descriptor; `name` is for traps.
    ///
    /// # Errors
    /// No memory for the handle.
    pub fn new(memory: &Arc<Memory>, name: &str, descriptor: Descriptor) -> Result<Self, MemoryError> {
        let label = format!("{} `{name}`", noun(descriptor.ty()));
        let handle = memory.alloc(Class::Texture, OPAQUE_BYTES, OPAQUE_BYTES, &label)?;
        Opaques(memory).declare(handle, name, descriptor.ty(), &[]);
        Opaques(memory).bind(handle, descriptor);
        Ok(Self { memory: Arc::clone(memory), handle })
    }

    /// The handle.
    pub fn handle(&self) -> u64 {
        self.handle
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        Opaques(&self.memory).remove(self.handle);
        // Cannot fail: guests cannot free the handle.
        let _ = self.memory.free(self.handle);
    }
}

/// The noun for a type, in messages.
fn noun(ty: Ty) -> &'static str {
    match ty {
        Ty::Texref => "texture",
        Ty::Samplerref => "sampler",
        _ => "surface",
    }
}

/// The opaque variables and objects of a memory, by handle.
pub(crate) struct Opaques<'m>(pub(crate) &'m Memory);

impl Opaques<'_> {
    /// Declares a variable with its name, type and initial fields, at a handle.
    pub(crate) fn declare(&self, handle: u64, name: &str, ty: Ty, fields: &[(String, u64)]) {
        let opaque = Opaque { name: name.to_owned(), ty, fields: fields.to_vec(), bound: None };
        self.put(handle, Some(opaque));
    }

    /// Binds a descriptor to a declared handle; false if the handle is not declared or has another type.
    pub(crate) fn bind(&self, handle: u64, descriptor: Descriptor) -> bool {
        let Some(old) = self.0.handles().find::<Opaque>(handle) else { return false };
        let fits = old.ty == descriptor.ty();
        if fits {
            self.put(handle, Some(Opaque { bound: Some(descriptor), ..(*old).clone() }));
        }
        fits
    }

    /// Removes a handle.
    pub(crate) fn remove(&self, handle: u64) {
        self.put(handle, None);
    }

    fn put(&self, handle: u64, opaque: Option<Opaque>) {
        self.0.handles().put(handle, opaque.map(|opaque| Arc::new(opaque) as _));
    }
}

impl View {
    /// The object of a register's value: a handle, or the offset of a kernel parameter that holds one.
    pub(crate) fn opaque_at(&mut self, lane: usize, value: u64) -> Option<Arc<Opaque>> {
        if let Some(found) = self.object(value) {
            return Some(found);
        }
        let handle = self.load_one::<u64>(Space::Param, lane, value).ok()?;
        self.object(handle)
    }

    /// The object of the handle in a kernel parameter.
    pub(crate) fn opaque_param(&mut self, lane: usize, offset: u64) -> Option<Arc<Opaque>> {
        let handle = self.load_one::<u64>(Space::Param, lane, offset).ok()?;
        self.object(handle)
    }
}

/// `istypep`: whether the object has that type.
pub(crate) fn is_type(opaque: &Opaque, ty: Ty) -> bool {
    opaque.ty == ty
}

/// The fault of an instruction whose geometry does not match the image.
pub(crate) fn wrong_geometry(lane: usize, opaque: &Opaque, geom: Geom, have: Geom) -> Box<Fault> {
    let (wanted, have) = (geom.word().text(), have.word().text());
    let why = format!("{} is `.{have}`, but the instruction wants `.{wanted}`", opaque.what());
    Fault::new(FaultKind::BadTexture(why), lane)
}
