//! The data of textures and surfaces, and the address of each texel.
//!
//! Invariant: every texel lies inside the image's memory, at a multiple of its unit. Rows begin at multiples
//! of 16 bytes, as surface accesses require (PTX ISA §9.7.10.1), except in linear memory, where the host sets
//! the pitch.
//!
//! Order in memory: level after level; in a level plane after plane; in a plane row after row. A plane is a
//! slice of a 3d image, otherwise a sample of a face of a layer.

use crate::mem::{Class, Memory, MemoryError, attempt};
use ptx::isa::Geom;
use ptx_sem::{Format, complete_levels, level_size};
use std::sync::Arc;

/// Alignment of rows in bytes: the widest surface access.
const ROW_ALIGN: u64 = 16;
/// Alignment of levels in bytes.
const LEVEL_ALIGN: u64 = 256;
/// The largest extent, and the most layers and samples. Chosen: twice the limit of sm_90 for one dimension of
/// linear memory.
const LARGEST: u32 = 1 << 28;

/// Geometry and extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Geometry.
    pub geom: Geom,
    /// Width, height and depth in texels; 1 in dimensions that the geometry does not have.
    pub size: [u32; 3],
    /// Layers of an array (for cubemap arrays: cubemaps); otherwise 0.
    pub layers: u32,
    /// Levels of detail; 1 without a mipmap.
    pub levels: u32,
    /// Samples of a multi-sample image; otherwise 0.
    pub samples: u32,
}

impl Shape {
    /// One level, no layers, one sample.
    pub fn new(geom: Geom, size: [u32; 3]) -> Self {
        Self { geom, size, layers: 0, levels: 1, samples: 0 }
    }

    /// The number of dimensions of `size` that the geometry has.
    pub fn dimensions(&self) -> usize {
        match self.geom {
            Geom::D1 | Geom::A1d => 1,
            Geom::D2 | Geom::A2d | Geom::Cube | Geom::Acube | Geom::D2ms | Geom::A2dms => 2,
            Geom::D3 => 3,
        }
    }

    /// Whether instructions of that geometry may access it. A cubemap is also an array of its faces.
    pub fn allows(&self, geom: Geom) -> bool {
        self.geom == geom || geom == Geom::A2d && matches!(self.geom, Geom::Cube | Geom::Acube)
    }

    /// Faces per layer.
    fn faces(&self) -> u32 {
        if matches!(self.geom, Geom::Cube | Geom::Acube) { 6 } else { 1 }
    }

    /// Two-dimensional planes that are no slices of a 3d image, not counting samples.
    pub(crate) fn planes(&self) -> u32 {
        self.layers.max(1).saturating_mul(self.faces())
    }

    fn check(&self) -> Result<(), String> {
        let [width, height, _] = self.size;
        let arrayed = matches!(self.geom, Geom::A1d | Geom::A2d | Geom::Acube | Geom::A2dms);
        let multisample = matches!(self.geom, Geom::D2ms | Geom::A2dms);
        let name = self.geom.word().text();
        if self.size.contains(&0) || self.size.iter().any(|n| *n > LARGEST) {
            return Err(format!("an extent of {:?} texels", self.size));
        }
        if self.size[self.dimensions()..].iter().any(|n| *n != 1) {
            return Err(format!("`.{name}` has {} dimensions", self.dimensions()));
        }
        if arrayed != (self.layers > 0) || self.layers > LARGEST {
            return Err(format!("{} layers in `.{name}`", self.layers));
        }
        if multisample != (self.samples > 0) || self.samples > 64 {
            return Err(format!("{} samples in `.{name}`", self.samples));
        }
        if self.faces() == 6 && width != height {
            return Err(format!("faces of {width}x{height} texels are not square"));
        }
        let most = if multisample { 1 } else { complete_levels(self.size) };
        if !(1..=most).contains(&self.levels) {
            return Err(format!("{} levels, of at most {most}", self.levels));
        }
        Ok(())
    }
}

/// Why an image cannot be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageError {
    /// The shape is invalid, with the reason.
    Shape(String),
    /// No memory.
    Memory(MemoryError),
}

impl From<MemoryError> for ImageError {
    fn from(error: MemoryError) -> Self {
        ImageError::Memory(error)
    }
}

impl std::fmt::Display for ImageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ImageError::Shape(why) => write!(f, "an image of {why}"),
            ImageError::Memory(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ImageError {}

/// One level of detail.
#[derive(Clone, Copy, Debug)]
struct Level {
    /// Address.
    start: u64,
    /// Distance between rows in bytes.
    pitch: u64,
    /// Distance between planes in bytes.
    plane: u64,
    /// Number of planes.
    planes: u64,
    /// Extent in texels.
    size: [u32; 3],
}

/// Texels in guest memory.
pub struct Image {
    memory: Arc<Memory>,
    shape: Shape,
    format: Format,
    levels: Vec<Level>,
    /// The image's own allocation, if it has one.
    owned: Option<u64>,
    /// The image that this one is a view of.
    whole: Option<Arc<Image>>,
}

impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Image").field("shape", &self.shape).field("format", &self.format).finish()
    }
}

impl Image {
    /// Creates an image of zeros with its own memory.
    ///
    /// # Errors
    /// [`ImageError`].
    pub fn new(memory: &Arc<Memory>, shape: Shape, format: Format) -> Result<Arc<Self>, ImageError> {
        shape.check().map_err(ImageError::Shape)?;
        let (mut levels, mut end) = (Vec::new(), 0u64);
        let too_large = || ImageError::Shape(format!("{:?} texels and {} layers", shape.size, shape.layers));
        for number in 0..shape.levels {
            let size = shape.size.map(|n| level_size(n, number));
            let planes = u64::from(size[2]) * u64::from(shape.planes()) * u64::from(shape.samples.max(1));
            let pitch = (u64::from(size[0]) * u64::from(format.bytes())).next_multiple_of(ROW_ALIGN);
            let plane = pitch.checked_mul(u64::from(size[1])).ok_or_else(too_large)?;
            let start = end.next_multiple_of(LEVEL_ALIGN);
            end = plane.checked_mul(planes).and_then(|n| n.checked_add(start)).ok_or_else(too_large)?;
            if end > 1 << 47 {
                return Err(too_large());
            }
            levels.push(Level { start, pitch, plane, planes, size });
        }
        let address = memory.alloc(Class::Texture, end, LEVEL_ALIGN, "array")?;
        for level in &mut levels {
            level.start += address;
        }
        Ok(Arc::new(Self {
            memory: Arc::clone(memory),
            shape,
            format,
            levels,
            owned: Some(address),
            whole: None,
        }))
    }

    /// An image of one or two dimensions in existing memory, with rows `pitch` bytes apart. The host keeps
    /// the memory; an access after it is freed traps.
    ///
    /// # Errors
    /// [`ImageError::Shape`]: several levels or planes, overlapping rows, or an address or pitch that is not
    /// a multiple of the format's unit.
    pub fn linear(
        memory: &Arc<Memory>,
        address: u64,
        shape: Shape,
        format: Format,
        pitch: u64,
    ) -> Result<Arc<Self>, ImageError> {
        shape.check().map_err(ImageError::Shape)?;
        if !matches!(shape.geom, Geom::D1 | Geom::D2) || shape.levels != 1 {
            return Err(ImageError::Shape(
                "linear memory that is not one level of `.1d` or `.2d`".to_owned(),
            ));
        }
        let row = u64::from(shape.size[0]) * u64::from(format.bytes());
        let unit = u64::from(format.unit());
        let rows = u64::from(shape.size[1]);
        let fits = pitch.checked_mul(rows).and_then(|bytes| address.checked_add(bytes)).is_some();
        if pitch < row && rows > 1 || !fits || !(address | pitch).is_multiple_of(unit) {
            return Err(ImageError::Shape(format!(
                "rows of {row} bytes, {pitch} bytes apart at {address:#x}"
            )));
        }
        let level = Level { start: address, pitch, plane: pitch * rows, planes: 1, size: shape.size };
        Ok(Arc::new(Self {
            memory: Arc::clone(memory),
            shape,
            format,
            levels: vec![level],
            owned: None,
            whole: None,
        }))
    }

    /// A view of the same texels in another format of the same size, with `levels` levels from level `first`
    /// on.
    ///
    /// # Errors
    /// [`ImageError::Shape`] if the levels do not exist, or the format's texels differ in size or alignment.
    pub fn view(self: &Arc<Self>, format: Format, first: u32, levels: u32) -> Result<Arc<Self>, ImageError> {
        let end = first.checked_add(levels).filter(|end| levels > 0 && *end <= self.shape.levels);
        let Some(end) = end else {
            return Err(ImageError::Shape(format!(
                "{levels} levels from {first} on, of {}",
                self.shape.levels
            )));
        };
        if format.bytes() != self.format.bytes() || format.unit() != self.format.unit() {
            return Err(ImageError::Shape(format!(
                "texels of {} bytes seen as {format:?}",
                self.format.bytes()
            )));
        }
        let size = self.shape.size.map(|n| level_size(n, first));
        let levels_seen = self.levels[first as usize..end as usize].to_vec();
        Ok(Arc::new(Self {
            memory: Arc::clone(&self.memory),
            shape: Shape { size, levels, ..self.shape },
            format,
            levels: levels_seen,
            owned: None,
            whole: Some(Arc::clone(self)),
        }))
    }

    /// The address of row `y` of plane `plane` of a level, with planes in memory order.
    pub fn row(&self, level: u32, plane: u64, y: u64) -> Option<u64> {
        let level = self.levels.get(level as usize)?;
        let inside = plane < level.planes && y < u64::from(level.size[1]);
        inside.then(|| level.start + plane * level.plane + y * level.pitch)
    }

    /// Extent of a level in texels, and its number of planes.
    pub fn extent(&self, level: u32) -> Option<([u32; 3], u64)> {
        self.levels.get(level as usize).map(|level| (level.size, level.planes))
    }

    /// The memory of the image.
    pub fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// Geometry and extent.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The format of its texels.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Whether it is in memory of the host's choice.
    pub fn is_linear(&self) -> bool {
        self.whole.as_ref().map_or(self.owned.is_none(), |whole| whole.is_linear())
    }

    /// Extent of a level; of the last level if there are not as many.
    pub(crate) fn size(&self, level: u32) -> [u32; 3] {
        self.level(level).map_or([1; 3], |level| level.size)
    }

    fn level(&self, level: u32) -> Option<&Level> {
        self.levels.get(level as usize).or(self.levels.last())
    }

    /// The address of byte `x` of row `y` of a plane. The caller has checked that it lies in the level.
    pub(crate) fn address(&self, level: u32, x: u64, y: u32, plane: u32) -> u64 {
        self.level(level)
            .map_or(0, |level| level.start + u64::from(plane) * level.plane + u64::from(y) * level.pitch + x)
    }

    /// Bytes of a level without padding, as for [`Image::write`] and [`Image::read`].
    pub fn level_bytes(&self, level: u32) -> u64 {
        self.levels.get(level as usize).map_or(0, |l| {
            l.planes * u64::from(l.size[1]) * u64::from(l.size[0]) * u64::from(self.format.bytes())
        })
    }

    /// Rows of a level: address and length.
    fn rows(&self, level: u32) -> impl Iterator<Item = (u64, usize)> {
        let level = self.levels.get(level as usize).copied();
        let bytes = self.format.bytes() as usize;
        level.into_iter().flat_map(move |l| {
            (0..l.planes).flat_map(move |plane| {
                (0..u64::from(l.size[1]))
                    .map(move |y| (l.start + plane * l.plane + y * l.pitch, l.size[0] as usize * bytes))
            })
        })
    }

    /// Copies texels of a level from the host, in memory order without padding.
    ///
    /// # Errors
    /// [`ImageError::Shape`] if the length is not [`Image::level_bytes`]; [`ImageError::Memory`] for linear
    /// memory that was freed.
    pub fn write(&self, level: u32, from: &[u8]) -> Result<(), ImageError> {
        self.right_length(level, from.len())?;
        let mut from = from;
        for (address, bytes) in self.rows(level) {
            let (row, rest) = from.split_at(bytes.min(from.len()));
            self.memory.write(address, row)?;
            from = rest;
        }
        Ok(())
    }

    /// Copies texels of a level to the host, in memory order without padding.
    ///
    /// # Errors
    /// As [`Image::write`].
    pub fn read(&self, level: u32) -> Result<Vec<u8>, ImageError> {
        let bytes = usize::try_from(self.level_bytes(level)).unwrap_or(0);
        self.right_length(level, bytes)?;
        let mut all = Vec::new();
        attempt(|| all.try_reserve_exact(bytes)).map_err(|_| MemoryError::Host { bytes: bytes as u64 })?;
        for (address, bytes) in self.rows(level) {
            let start = all.len();
            all.resize(start + bytes, 0);
            self.memory.read(address, &mut all[start..])?;
        }
        Ok(all)
    }

    fn right_length(&self, level: u32, bytes: usize) -> Result<(), ImageError> {
        let wanted = self.level_bytes(level);
        match wanted != 0 && wanted == bytes as u64 {
            true => Ok(()),
            false => {
                Err(ImageError::Shape(format!("expected {wanted} bytes for level {level}, found {bytes}")))
            }
        }
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        if let Some(address) = self.owned {
            // Cannot fail: the guest's `free` takes only memory of the guest's `malloc`.
            let _ = self.memory.free(address);
        }
    }
}
