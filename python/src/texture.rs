//! Texels, textures, surfaces and samplers.
//!
//! Invariant: names are the manual's (PTX ISA, texture, sampler and surface variables); an unknown name is an
//! error that lists the known ones.

use crate::errors::{raise, usage};
use ptxvm::{
    AddrMode, Array, ChannelOrder, ChannelType, Compare, FilterMode, Format, Geom, Sampler, Shape, Vm,
};
use pyo3::prelude::*;

const GEOMS: [(&str, Geom); 9] = [
    ("1d", Geom::D1),
    ("2d", Geom::D2),
    ("3d", Geom::D3),
    ("a1d", Geom::A1d),
    ("a2d", Geom::A2d),
    ("cube", Geom::Cube),
    ("acube", Geom::Acube),
    ("2dms", Geom::D2ms),
    ("a2dms", Geom::A2dms),
];
/// In the order of [`ChannelType::ALL`].
const TYPES: [&str; 15] = [
    "snorm_int8",
    "snorm_int16",
    "unorm_int8",
    "unorm_int16",
    "unorm_short_565",
    "unorm_short_555",
    "unorm_int_101010",
    "signed_int8",
    "signed_int16",
    "signed_int32",
    "unsigned_int8",
    "unsigned_int16",
    "unsigned_int32",
    "half_float",
    "float",
];
/// In the order of [`ChannelOrder::ALL`].
const ORDERS: [&str; 10] = ["r", "a", "rg", "ra", "rgb", "rgba", "bgra", "argb", "intensity", "luminance"];
/// In the order of [`AddrMode::ALL`].
const ADDR_MODES: [&str; 5] = ["wrap", "mirror", "clamp_ogl", "clamp_to_edge", "clamp_to_border"];
/// In the order of [`FilterMode::ALL`].
const FILTERS: [&str; 2] = ["nearest", "linear"];
const COMPARES: [(&str, Compare); 8] = [
    ("never", Compare::Never),
    ("less", Compare::Less),
    ("equal", Compare::Equal),
    ("lequal", Compare::Lequal),
    ("greater", Compare::Greater),
    ("notequal", Compare::Notequal),
    ("gequal", Compare::Gequal),
    ("always", Compare::Always),
];

/// The place of a name in a list.
fn one_of<'a>(
    py: Python<'_>,
    field: &str,
    list: impl Iterator<Item = &'a str>,
    name: &str,
) -> PyResult<usize> {
    let list: Vec<&str> = list.collect();
    let found = list.iter().position(|word| *word == name);
    found.ok_or_else(|| usage(py, format!("`{field}` is one of {}; found `{name}`", list.join(", "))))
}

/// Geometry, width, height, depth, layers, levels and samples.
pub(crate) type ShapeFields = (String, [u32; 3], u32, u32, u32);

/// Zeroed texels.
pub(crate) fn texels(
    py: Python<'_>,
    vm: &Vm,
    shape: ShapeFields,
    data_type: &str,
    order: &str,
) -> PyResult<Texels> {
    let (geom, size, layers, levels, samples) = shape;
    let geom = GEOMS[one_of(py, "geom", GEOMS.iter().map(|(name, _)| *name), &geom)?].1;
    let data_type = ChannelType::ALL[one_of(py, "channel_data_type", TYPES.into_iter(), data_type)?];
    let order = ChannelOrder::ALL[one_of(py, "channel_order", ORDERS.into_iter(), order)?];
    let format = Format::new(data_type, order)
        .ok_or_else(|| usage(py, "packed channel data types are in the order rgb"))?;
    let array = vm.array(Shape { geom, size, layers, levels, samples }, format);
    Ok(Texels { array: array.map_err(|error| raise(py, error, None))? })
}

/// An object with a handle.
pub(crate) fn object(py: Python<'_>, vm: &Vm, name: &str, descriptor: &Descriptor) -> PyResult<Object> {
    let object = vm.object(name, descriptor.descriptor.clone()).map_err(|error| raise(py, error, None))?;
    Ok(Object { object })
}

/// Texels on the device.
#[pyclass(frozen)]
pub(crate) struct Texels {
    array: Array,
}

#[pymethods]
impl Texels {
    /// Copies a level to the device.
    fn write(&self, py: Python<'_>, level: u32, bytes: &[u8]) -> PyResult<()> {
        self.array.write(level, bytes).map_err(|error| raise(py, error, None))
    }

    /// Copies a level from the device.
    fn read(&self, py: Python<'_>, level: u32) -> PyResult<Vec<u8>> {
        self.array.read(level).map_err(|error| raise(py, error, None))
    }

    /// Bytes of a level.
    fn level_bytes(&self, level: u32) -> u64 {
        self.array.level_bytes(level)
    }

    /// A texture of it.
    fn texture(
        &self,
        py: Python<'_>,
        normalized: Option<bool>,
        sampler: Option<SamplerFields>,
    ) -> PyResult<Descriptor> {
        let sampler = sampler.map(|fields| fields.sampler(py)).transpose()?;
        Ok(Descriptor { descriptor: ptxvm::Descriptor::texture(&self.array, normalized, sampler) })
    }

    /// A surface of one of its levels.
    fn surface(&self, py: Python<'_>, level: u32) -> PyResult<Descriptor> {
        let descriptor = ptxvm::Descriptor::surface(&self.array, level);
        Ok(Descriptor { descriptor: descriptor.map_err(|error| raise(py, error, None))? })
    }
}

/// The fields of a sampler, as `ptxvm/textures.py` hands them over.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct SamplerFields {
    filter_mode: String,
    mip_filter_mode: String,
    addr_mode: [String; 3],
    compare: String,
    force_unnormalized: bool,
}

impl SamplerFields {
    fn sampler(self, py: Python<'_>) -> PyResult<Sampler> {
        let filter = |field: &str, name: &str| {
            one_of(py, field, FILTERS.into_iter(), name).map(|index| FilterMode::ALL[index])
        };
        let mut addr = [AddrMode::ClampToEdge; 3];
        for (slot, name) in addr.iter_mut().zip(&self.addr_mode) {
            *slot = AddrMode::ALL[one_of(py, "addr_mode", ADDR_MODES.into_iter(), name)?];
        }
        let compares = COMPARES.iter().map(|(name, _)| *name);
        Ok(Sampler {
            filter: filter("filter_mode", &self.filter_mode)?,
            addr,
            force_unnormalized: self.force_unnormalized,
            compare: COMPARES[one_of(py, "compare", compares, &self.compare)?].1,
            level_filter: filter("mip_filter_mode", &self.mip_filter_mode)?,
        })
    }
}

/// A texture, surface or sampler.
#[pyclass(frozen)]
pub(crate) struct Descriptor {
    pub(crate) descriptor: ptxvm::Descriptor,
}

#[pymethods]
impl Descriptor {
    /// A sampler, for programs in independent mode.
    #[staticmethod]
    fn sampler(py: Python<'_>, fields: SamplerFields) -> PyResult<Self> {
        Ok(Self { descriptor: ptxvm::Descriptor::sampler(fields.sampler(py)?) })
    }
}

/// A descriptor with a handle, which kernels take as a parameter.
#[pyclass(frozen)]
pub(crate) struct Object {
    object: ptxvm::Object,
}

#[pymethods]
impl Object {
    /// The handle.
    #[getter]
    fn handle(&self) -> u64 {
        self.object.handle()
    }
}
