//! Textures, samplers and surfaces on the command line: `tex:SOURCE,FIELD=VALUE,...`, `surf:...`,
//! `sampler:...`.
//!
//! The fields are those of PTX ISA §5.3 (Tables 9 and 10), the geometry, and fields that the manual lacks:
//! the depth comparison (`compare`), the filter between levels (`mip_filter_mode`), the level of a surface
//! (`level`), and the distance of rows in linear memory (`pitch`).
//!
//! Invariant: parsing uses the text only; [`Texels::load`] opens files.

use crate::UsageError;
use crate::arg::Arg;
use crate::npy;
use ptxvm::{
    AddrMode, Array, Buffer, ChannelOrder, ChannelType, Compare, Descriptor, FilterMode, Format, Geom,
    Sampler, Shape, Vm,
};
use std::path::PathBuf;

/// The kind of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A texture, in unified mode with its sampler.
    Texture,
    /// A surface.
    Surface,
    /// A sampler.
    Sampler,
    /// Texels alone, for textures and surfaces that share them.
    Texels,
}

/// The source of texels.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Source {
    /// `@NAME`: the texels of `--texels NAME=...`.
    Shared(String),
    /// `in:`, `inout:`, `out:` or `zeros:` as in `--arg`; a file name alone is `in:`.
    Own(Arg),
}

/// An object, as written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Object {
    /// Its kind.
    pub(crate) kind: Kind,
    /// Its texels; samplers have none.
    pub(crate) source: Option<Source>,
    fields: Fields,
}

/// The fields that are given.
#[derive(Clone, Debug, Default, PartialEq)]
struct Fields {
    geom: Option<Geom>,
    data_type: Option<ChannelType>,
    order: Option<ChannelOrder>,
    size: [Option<u32>; 3],
    layers: u32,
    levels: u32,
    samples: u32,
    linear: bool,
    pitch: Option<u64>,
    normalized: Option<bool>,
    sampler: Option<Sampler>,
    level: u32,
}

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
/// In the order of Table 11.
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
/// In the order of Table 12.
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

impl Kind {
    /// The kind for a prefix of an argument.
    pub(crate) fn of(prefix: &str) -> Option<Self> {
        match prefix {
            "tex" => Some(Kind::Texture),
            "surf" => Some(Kind::Surface),
            "sampler" => Some(Kind::Sampler),
            _ => None,
        }
    }
}

impl Object {
    /// Parses the text after the prefix: `SOURCE,FIELD=VALUE,...`; for a sampler, fields only.
    pub(crate) fn parse(kind: Kind, text: &str) -> Result<Self, String> {
        let mut parts = split(text).into_iter();
        let source = match kind {
            Kind::Sampler => None,
            Kind::Texture | Kind::Surface | Kind::Texels => Some(Source::parse(parts.next().unwrap_or(""))?),
        };
        let fields = parts
            .filter(|part| !part.is_empty())
            .map(|part| part.split_once('=').ok_or_else(|| format!("`{part}` is not `FIELD=VALUE`")));
        Self::new(kind, source, fields)
    }

    /// An object with these fields.
    pub(crate) fn new<'a>(
        kind: Kind,
        source: Option<Source>,
        fields: impl Iterator<Item = Result<(&'a str, &'a str), String>>,
    ) -> Result<Self, String> {
        let mut object = Self { kind, source, fields: Fields::default() };
        for field in fields {
            let (name, value) = field?;
            object.set(name.trim(), value.trim())?;
        }
        if matches!(object.source, Some(Source::Shared(_))) && object.fields.describe_texels() {
            return Err("the fields of shared texels belong in `--texels`".to_owned());
        }
        Ok(object)
    }

    /// Sets a field, if the kind has it.
    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let bad = |expected: &str| format!("`{name}={value}`: expected {expected}");
        let number = || value.parse::<u32>().map_err(|_| bad("a number"));
        let flag = || match value {
            "0" => Ok(false),
            "1" => Ok(true),
            _ => Err(bad("0 or 1")),
        };
        let filter = || one_of(&FILTERS, value).map(|i| FilterMode::ALL[i]).map_err(|list| bad(&list));
        let addr = || one_of(&ADDR_MODES, value).map(|i| AddrMode::ALL[i]).map_err(|list| bad(&list));
        let (texels, sampled) = match self.kind {
            Kind::Texture => (true, true),
            Kind::Surface | Kind::Texels => (true, false),
            Kind::Sampler => (false, true),
        };
        let fields = &mut self.fields;
        match name {
            "geom" if texels => {
                let names = GEOMS.map(|(name, _)| name);
                fields.geom = Some(GEOMS[one_of(&names, value).map_err(|list| bad(&list))?].1);
            }
            "channel_data_type" if texels => {
                let index = one_of(&TYPES, value).map_err(|list| bad(&list))?;
                fields.data_type = Some(ChannelType::ALL[index]);
            }
            "channel_order" if texels => {
                fields.order = Some(ChannelOrder::ALL[one_of(&ORDERS, value).map_err(|list| bad(&list))?]);
            }
            "width" if texels => fields.size[0] = Some(number()?),
            "height" if texels => fields.size[1] = Some(number()?),
            "depth" if texels => fields.size[2] = Some(number()?),
            "array_size" if texels => fields.layers = number()?,
            "num_mipmap_levels" if texels => fields.levels = number()?,
            "num_samples" if texels => fields.samples = number()?,
            "memory_layout" if texels => fields.linear = flag()?,
            "pitch" if texels => fields.pitch = Some(value.parse().map_err(|_| bad("a number of bytes"))?),
            "level" if self.kind == Kind::Surface => fields.level = number()?,
            "normalized_coords" if self.kind == Kind::Texture => fields.normalized = Some(flag()?),
            "filter_mode" if sampled => fields.sampler().filter = filter()?,
            "mip_filter_mode" if sampled => fields.sampler().level_filter = filter()?,
            "addr_mode" if sampled => fields.sampler().addr = [addr()?; 3],
            "addr_mode_0" if sampled => fields.sampler().addr[0] = addr()?,
            "addr_mode_1" if sampled => fields.sampler().addr[1] = addr()?,
            "addr_mode_2" if sampled => fields.sampler().addr[2] = addr()?,
            "compare" if sampled => {
                let names = COMPARES.map(|(name, _)| name);
                fields.sampler().compare = COMPARES[one_of(&names, value).map_err(|list| bad(&list))?].1;
            }
            "force_unnormalized_coords" if self.kind == Kind::Sampler => {
                fields.sampler().force_unnormalized = flag()?;
            }
            _ => return Err(format!("there is no field `{name}` here")),
        }
        Ok(())
    }

    /// Its descriptor; `texels` are those of its source.
    pub(crate) fn descriptor(&self, texels: Option<&Texels>) -> Result<Descriptor, UsageError> {
        let array = || texels.map(|texels| &texels.array).ok_or("an object without texels");
        Ok(match self.kind {
            Kind::Texture => Descriptor::texture(array()?, self.fields.normalized, self.fields.sampler),
            Kind::Surface => Descriptor::surface(array()?, self.fields.level)?,
            Kind::Sampler => Descriptor::sampler(self.fields.sampler.unwrap_or_default()),
            Kind::Texels => return Err("texels alone are no object".into()),
        })
    }
}

impl Source {
    /// Reads `@NAME`, `in:FILE`, `inout:...`, `out:...`, `zeros:BYTES` or a file name.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if let Some(name) = text.strip_prefix('@') {
            return Ok(Source::Shared(name.to_owned()));
        }
        let prefixed = ["in:", "inout:", "out:", "zeros:"].iter().any(|prefix| text.starts_with(prefix));
        if prefixed {
            return Ok(Source::Own(Arg::parse(text).map_err(|e| e.0)?));
        }
        if text.is_empty() {
            return Err(
                "the texels are missing: `FILE.npy`, `in:`, `inout:`, `out:`, `zeros:` or `@NAME`".to_owned()
            );
        }
        Ok(Source::Own(Arg::In(PathBuf::from(text))))
    }
}

/// The index of a word in a list; the error lists the words.
fn one_of(list: &[&str], value: &str) -> Result<usize, String> {
    let found = list.iter().position(|word| *word == value);
    found.ok_or_else(|| format!("one of {}", list.join(", ")))
}

/// Splits at commas outside of brackets.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0u32);
    for (at, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

impl Fields {
    fn sampler(&mut self) -> &mut Sampler {
        self.sampler.get_or_insert_default()
    }

    /// Whether any of the fields describes texels.
    fn describe_texels(&self) -> bool {
        let Fields { geom, data_type, order, size, layers, levels, samples, linear, pitch, .. } = self;
        let numbers = [layers, levels, samples].iter().any(|n| **n > 0)
            || size.iter().any(Option::is_some)
            || pitch.is_some();
        geom.is_some() || data_type.is_some() || order.is_some() || numbers || *linear
    }

    /// Geometry, extent and format of the texels in a file.
    ///
    /// With an explicit extent, the file contains the levels one after another, with any array shape.
    /// Otherwise the array shape gives the extent: layers, cube faces or samples, depth, height, width, and
    /// if there is one more axis, the channels.
    fn texels(&self, file: &npy::Array) -> Result<(Shape, Format), String> {
        let sized = self.size.iter().any(Option::is_some);
        let axes = file.shape.len();
        // For several channels without a geometry, the last axis is that of the channels if its size matches.
        let channels = self.order.filter(|_| !self.is_packed()).map(|order| order.stored().len() as u64);
        let last_is_channels = channels.is_some_and(|n| n > 1 && file.shape.last() == Some(&n) && axes > 1);
        let geom = match (self.geom, sized) {
            (Some(geom), _) => geom,
            (None, true) => match self.size {
                [_, _, Some(_)] => Geom::D3,
                [_, Some(_), _] => Geom::D2,
                [_, _, None] => Geom::D1,
            },
            (None, false) => match axes - usize::from(last_is_channels) {
                1 => Geom::D1,
                2 => Geom::D2,
                3 => Geom::D3,
                _ => return Err(format!("an array of {axes} axes needs `geom=`")),
            },
        };
        let data_type = self.data_type.map_or_else(|| type_of(&file.dtype), Ok)?;
        if sized {
            let size = self.size.map(|n| n.unwrap_or(1));
            let (layers, levels, samples) = (self.layers, self.levels.max(1), self.samples);
            let order =
                self.order.unwrap_or(if self.is_packed() { ChannelOrder::Rgb } else { ChannelOrder::R });
            return Ok((Shape { geom, size, layers, levels, samples }, format(data_type, order)?));
        }
        if self.levels > 1 || self.layers > 0 || self.samples > 0 {
            return Err("`num_mipmap_levels`, `array_size` and `num_samples` go with `width` (and `height`, `depth`); else the shape of the file says them".to_owned());
        }
        let needed = axes_of(geom);
        let name = geom.word().text();
        let order = match (axes.checked_sub(needed), self.order) {
            (Some(0), order) => {
                order.unwrap_or(if self.is_packed() { ChannelOrder::Rgb } else { ChannelOrder::R })
            }
            (Some(1), Some(order)) if Some(order.stored().len() as u64) == file.shape.last().copied() => {
                order
            }
            (Some(1), Some(_)) => {
                return Err(format!("the last axis of {:?} is not the channels", file.shape));
            }
            (Some(1), None) => match file.shape.last() {
                Some(1) => ChannelOrder::R,
                Some(2) => ChannelOrder::Rg,
                Some(3) => ChannelOrder::Rgb,
                Some(4) => ChannelOrder::Rgba,
                _ => return Err(format!("the last axis of {:?} is not 1 to 4 channels", file.shape)),
            },
            _ => {
                return Err(format!(
                    "`geom={name}` takes an array of {needed} axes (and one of channels), found {axes}"
                ));
            }
        };
        let extents = file.shape[..needed].iter().map(|n| u32::try_from(*n)).collect::<Result<Vec<u32>, _>>();
        let extents = extents.map_err(|_| format!("an extent of {:?} is too large", file.shape))?;
        let shape = shape_of(geom, &extents)
            .ok_or_else(|| format!("an array of cube faces has 6 of them, not the shape {:?}", file.shape))?;
        Ok((shape, format(data_type, order)?))
    }

    fn is_packed(&self) -> bool {
        use ChannelType::{UnormInt101010, UnormShort555, UnormShort565};
        matches!(self.data_type, Some(UnormShort565 | UnormShort555 | UnormInt101010))
    }
}

fn format(data_type: ChannelType, order: ChannelOrder) -> Result<Format, String> {
    Format::new(data_type, order).ok_or_else(|| "packed channel data types are in the order rgb".to_owned())
}

/// The channel data type of an element type: values are not normalised.
fn type_of(dtype: &str) -> Result<ChannelType, String> {
    Ok(match dtype.trim_start_matches(['<', '|']) {
        "f4" => ChannelType::Float,
        "f2" => ChannelType::HalfFloat,
        "i1" => ChannelType::SignedInt8,
        "i2" => ChannelType::SignedInt16,
        "i4" => ChannelType::SignedInt32,
        "u1" => ChannelType::UnsignedInt8,
        "u2" => ChannelType::UnsignedInt16,
        "u4" => ChannelType::UnsignedInt32,
        _ => return Err(format!("texels of `{dtype}` need `channel_data_type=`")),
    })
}

/// Axes of an array of that geometry, without channels.
fn axes_of(geom: Geom) -> usize {
    match geom {
        Geom::D1 => 1,
        Geom::D2 | Geom::A1d => 2,
        Geom::D3 | Geom::A2d | Geom::Cube | Geom::D2ms => 3,
        Geom::Acube | Geom::A2dms => 4,
    }
}

/// The shape of an array with these axes, from the last: width, height, depth; before them samples or faces,
/// and layers.
fn shape_of(geom: Geom, axes: &[u32]) -> Option<Shape> {
    let plain = |size| Shape::new(geom, size);
    Some(match (geom, axes) {
        (Geom::D1, [w]) => plain([*w, 1, 1]),
        (Geom::D2, [h, w]) => plain([*w, *h, 1]),
        (Geom::D3, [d, h, w]) => plain([*w, *h, *d]),
        (Geom::A1d, [n, w]) => Shape { layers: *n, ..plain([*w, 1, 1]) },
        (Geom::A2d, [n, h, w]) => Shape { layers: *n, ..plain([*w, *h, 1]) },
        (Geom::Cube, [6, h, w]) => plain([*w, *h, 1]),
        (Geom::Acube, [n, 6, h, w]) => Shape { layers: *n, ..plain([*w, *h, 1]) },
        (Geom::D2ms, [s, h, w]) => Shape { samples: *s, ..plain([*w, *h, 1]) },
        (Geom::A2dms, [n, s, h, w]) => Shape { layers: *n, samples: *s, ..plain([*w, *h, 1]) },
        _ => return None,
    })
}

/// Texels on the device, and their output file.
#[derive(Debug)]
pub(crate) struct Texels {
    array: Array,
    /// The contents of the input file, and the output file.
    output: Option<(npy::Array, PathBuf)>,
    /// The linear memory of the texels.
    _memory: Option<Buffer<u8>>,
}

impl Texels {
    /// Reads the texels of an object and loads them to the device; `label` is for errors and traps.
    pub(crate) fn load(vm: &Vm, label: &str, source: &Arg, object: &Object) -> Result<Self, UsageError> {
        let fail = |why: String| UsageError(format!("{label}: {why}"));
        let fields = &object.fields;
        let (file, output) = match source {
            Arg::In(path) => (npy::Array::read(path)?, None),
            Arg::InOut(from, to) => (npy::Array::read(from)?, Some(to)),
            Arg::Out { dtype, shape, file } => (npy::Array::zeros(dtype, shape.clone())?, Some(file)),
            Arg::Zeros(_) => (npy::Array::zeros("u1", vec![0])?, None),
            Arg::Scalar { .. } | Arg::Bytes(_) | Arg::Object(_) => {
                return Err(fail("these are no texels".to_owned()));
            }
        };
        if !file.is_c_order() {
            return Err(fail(
                "texels in Fortran order; save the array with numpy.ascontiguousarray".to_owned(),
            ));
        }
        let (shape, format) = fields.texels(&file).map_err(fail)?;
        let (array, memory) = if fields.linear {
            let row = u64::from(shape.size[0]) * u64::from(format.bytes());
            let pitch = fields.pitch.unwrap_or(row);
            let bytes = pitch.checked_mul(u64::from(shape.size[1])).filter(|n| *n <= 1 << 40);
            let bytes = bytes.ok_or_else(|| fail("rows of more than 1 TiB".to_owned()))?;
            let memory = vm.named_zeros(label, bytes)?;
            let array = vm.linear_array(&memory, shape, format, pitch).map_err(|e| fail(e.to_string()))?;
            (array, Some(memory))
        } else {
            if fields.pitch.is_some() {
                return Err(fail("`pitch` goes with `memory_layout=1`".to_owned()));
            }
            (vm.array(shape, format).map_err(|e| fail(e.to_string()))?, None)
        };
        let wanted: u64 = (0..shape.levels).map(|level| array.level_bytes(level)).sum();
        let has = if let Arg::Zeros(bytes) = source { *bytes } else { file.len() };
        if wanted != has {
            let ty = &file.dtype;
            return Err(fail(format!("{has} bytes of `{ty}` do not fit the texture's {wanted}")));
        }
        let mut rest = &file.bytes[..];
        // New memory is zero: `zeros:` and `out:` need no copy.
        for level in (0..shape.levels).filter(|_| !file.bytes.is_empty()) {
            let (texels, after) = rest.split_at(array.level_bytes(level) as usize);
            array.write(level, texels)?;
            rest = after;
        }
        Ok(Self { array, output: output.map(|path| (file, path.clone())), _memory: memory })
    }

    /// Writes the texels to their file, if they have one.
    pub(crate) fn write_back(self, vm: &Vm) -> Result<(), UsageError> {
        let Some((file, path)) = self.output else { return Ok(()) };
        let array = &self.array;
        let mut row = Vec::new();
        file.write(&path, |out| {
            for level in 0..array.shape().levels {
                let Some((size, planes)) = array.extent(level) else { continue };
                row.resize(size[0] as usize * array.format().bytes() as usize, 0);
                for (plane, y) in
                    (0..planes).flat_map(|plane| (0..u64::from(size[1])).map(move |y| (plane, y)))
                {
                    let Some(address) = array.row(level, plane, y) else { continue };
                    vm.read(address, &mut row)?;
                    out.write_all(&row)?;
                }
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(dtype: &str, shape: &[u64]) -> npy::Array {
        npy::Array::zeros(dtype, shape.to_vec()).unwrap()
    }

    fn texels(fields: &str, file: &npy::Array) -> Result<(Shape, Format), String> {
        Object::parse(Kind::Texels, &format!("x.npy,{fields}")).unwrap().fields.texels(file)
    }

    #[test]
    fn shapes_follow_the_file() {
        let plain = |geom, size| Shape::new(geom, size);
        for (fields, dtype, axes, shape, ty, order) in [
            ("", "f4", &[7][..], plain(Geom::D1, [7, 1, 1]), ChannelType::Float, ChannelOrder::R),
            ("", "u1", &[5, 7], plain(Geom::D2, [7, 5, 1]), ChannelType::UnsignedInt8, ChannelOrder::R),
            ("", "i2", &[3, 5, 7], plain(Geom::D3, [7, 5, 3]), ChannelType::SignedInt16, ChannelOrder::R),
            (
                "channel_order=rgba",
                "f2",
                &[5, 4],
                plain(Geom::D1, [5, 1, 1]),
                ChannelType::HalfFloat,
                ChannelOrder::Rgba,
            ),
            (
                "channel_order=bgra",
                "u4",
                &[5, 4],
                plain(Geom::D1, [5, 1, 1]),
                ChannelType::UnsignedInt32,
                ChannelOrder::Bgra,
            ),
            (
                "geom=2d",
                "i1",
                &[5, 7, 2],
                plain(Geom::D2, [7, 5, 1]),
                ChannelType::SignedInt8,
                ChannelOrder::Rg,
            ),
            (
                "geom=a1d",
                "u2",
                &[3, 9],
                Shape { layers: 3, ..plain(Geom::A1d, [9, 1, 1]) },
                ChannelType::UnsignedInt16,
                ChannelOrder::R,
            ),
            (
                "geom=acube",
                "f4",
                &[2, 6, 4, 4],
                Shape { layers: 2, ..plain(Geom::Acube, [4, 4, 1]) },
                ChannelType::Float,
                ChannelOrder::R,
            ),
            (
                "geom=2dms",
                "i4",
                &[4, 2, 3],
                Shape { samples: 4, ..plain(Geom::D2ms, [3, 2, 1]) },
                ChannelType::SignedInt32,
                ChannelOrder::R,
            ),
            (
                "channel_data_type=unorm_short_565",
                "u2",
                &[5, 7],
                plain(Geom::D2, [7, 5, 1]),
                ChannelType::UnormShort565,
                ChannelOrder::Rgb,
            ),
            // Whole texels in one element.
            (
                "channel_data_type=unorm_int8,channel_order=rgba",
                "u4",
                &[5, 7],
                plain(Geom::D2, [7, 5, 1]),
                ChannelType::UnormInt8,
                ChannelOrder::Rgba,
            ),
            (
                "width=4,height=2,num_mipmap_levels=3",
                "f4",
                &[11],
                Shape { levels: 3, ..plain(Geom::D2, [4, 2, 1]) },
                ChannelType::Float,
                ChannelOrder::R,
            ),
        ] {
            let want = (shape, Format::new(ty, order).unwrap());
            assert_eq!(texels(fields, &file(dtype, axes)), Ok(want), "{fields} {dtype} {axes:?}");
        }
        for (fields, dtype, axes) in [
            ("", "f8", &[7][..]),
            ("", "f4", &[1, 2, 3, 4]),
            ("geom=2d", "f4", &[7]),
            ("geom=2d", "f4", &[2, 2, 5]),
            ("geom=2d,channel_order=rg", "f4", &[2, 2, 3]),
            ("geom=cube", "f4", &[5, 4, 4]),
            ("num_mipmap_levels=2", "f4", &[4, 4]),
            ("channel_data_type=unorm_short_565,channel_order=rgba", "u2", &[4]),
        ] {
            assert!(texels(fields, &file(dtype, axes)).is_err(), "{fields} {dtype} {axes:?}");
        }
    }

    #[test]
    fn fields_belong_to_their_kind() {
        let texture = "inout:a.npy=b.npy,geom=3d,channel_order=rg,normalized_coords=1,filter_mode=linear,addr_mode=wrap,addr_mode_1=mirror,compare=less,mip_filter_mode=linear";
        let object = Object::parse(Kind::Texture, texture).unwrap();
        assert_eq!(object.source, Some(Source::Own(Arg::InOut("a.npy".into(), "b.npy".into()))));
        let sampler = object.fields.sampler.unwrap();
        assert_eq!(sampler.addr, [AddrMode::Wrap, AddrMode::Mirror, AddrMode::Wrap]);
        assert_eq!((sampler.filter, sampler.level_filter), (FilterMode::Linear, FilterMode::Linear));
        assert_eq!((sampler.compare, object.fields.normalized), (Compare::Less, Some(true)));
        let out = Object::parse(Kind::Surface, "out:f4[2,3]=o.npy,level=1").unwrap();
        let arg = Arg::Out { dtype: "f4".into(), shape: vec![2, 3], file: "o.npy".into() };
        assert_eq!((out.source, out.fields.level), (Some(Source::Own(arg)), 1));
        let forced = Object::parse(Kind::Sampler, "force_unnormalized_coords=1").unwrap();
        assert!(forced.fields.sampler.unwrap().force_unnormalized);
        assert_eq!(Object::parse(Kind::Texture, "a.npy").unwrap().fields.sampler, None);
        for (kind, wrong) in [
            (Kind::Texture, ""),
            (Kind::Texture, "a.npy,filter_mode"),
            (Kind::Texture, "a.npy,filter_mode=cubic"),
            (Kind::Texture, "a.npy,level=1"),
            (Kind::Texture, "a.npy,force_unnormalized_coords=1"),
            (Kind::Texture, "@shared,geom=2d"),
            (Kind::Surface, "a.npy,addr_mode=wrap"),
            (Kind::Surface, "out:f4=o.npy"),
            (Kind::Sampler, "geom=2d"),
            (Kind::Sampler, "normalized_coords=1"),
        ] {
            assert!(Object::parse(kind, wrong).is_err(), "{wrong}");
        }
    }
}
