//! `tex` and `tld4` for one lane: from coordinates to components. PTX ISA §9.7.9.3, §9.7.9.4.
//!
//! The arithmetic of coordinates, samplers and formats is in `ptx_sem`; this module reads the texels.
//!
//! Choices where the manual is silent: results are the components' own bits, regardless of a 32-bit `.dtype`
//! (a float for a float format, an integer for an integer format), as in hardware, whose instruction does not
//! encode the type. Integer formats are not filtered. Layers and samples beyond the last one are the last one
//! (A28, A139).

use super::{Opaque, Sampler, Texture, wrong_geometry};
use crate::mem::View;
use crate::trap::Fault;
use ptx::isa::{Geom, Space};
use ptx_sem::{
    Component, FilterMode, ONE, Tap, Taps, Texel, blend, cube_face, cube_gradient, depth_compare, float_taps,
    gather_taps, level_of, lod_of_gradients, texel_tap, weight,
};

/// The level of detail of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LevelOfDetail {
    /// Level 0.
    Base,
    /// Given explicitly.
    Level(f64),
    /// From gradients of the coordinates.
    Gradients([f32; 3], [f32; 3]),
}

/// The request of a lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    /// Geometry.
    pub(crate) geom: Geom,
    /// Coordinates in operand order: indices first.
    pub(crate) coords: [u32; 4],
    /// Whether coordinates are `.s32` (else `.f32`).
    pub(crate) integer: bool,
    /// Level of detail.
    pub(crate) lod: LevelOfDetail,
    /// Texel offsets.
    pub(crate) offset: [i32; 3],
    /// Depth to compare with.
    pub(crate) reference: Option<f32>,
}

/// Decoded coordinates.
struct Place {
    /// Coordinates in the dimensions of the image.
    coords: Coords,
    /// Whether they are normalised.
    normalized: bool,
    /// The plane, from layer, face and sample.
    plane: u32,
}

enum Coords {
    Integer([i32; 3]),
    Float([f64; 3]),
}

/// `tex`: the components at the coordinates.
pub(crate) fn lookup(
    mem: &mut View,
    lane: usize,
    opaque: &Opaque,
    (texture, sampler): (&Texture<'_>, &Sampler),
    request: &Request,
) -> Result<Texel, Box<Fault>> {
    let place = place(lane, opaque, texture, sampler, request)?;
    let (levels, second) = levels(texture, sampler, request);
    let first = level(mem, lane, texture, sampler, request, &place, levels[0])?;
    if second == 0 || levels[0] == levels[1] || !is_float(texture) {
        return Ok(first);
    }
    let other = level(mem, lane, texture, sampler, request, &place, levels[1])?;
    let second = f64::from(second) / f64::from(ONE);
    Ok(blend(&[(floats(first), 1.0 - second), (floats(other), second)]).map(f32::to_bits))
}

/// `tld4`: one component of the four texels around the coordinates, in the order (i0,j1) (i1,j1) (i1,j0)
/// (i0,j0) (A137).
pub(crate) fn gather(
    mem: &mut View,
    lane: usize,
    opaque: &Opaque,
    (texture, sampler): (&Texture<'_>, &Sampler),
    request: &Request,
    component: usize,
) -> Result<Texel, Box<Fault>> {
    let place = place(lane, opaque, texture, sampler, request)?;
    let size = texture.image.size(0);
    let Coords::Float(coords) = place.coords else {
        // The table allows only `.f32` coordinates.
        return Ok([0; 4]);
    };
    let [x, y] =
        [0, 1].map(|d| gather_taps(sampler.addr[d], size[d], place.normalized, coords[d], request.offset[d]));
    let mut out = [0; 4];
    for (out, [i, j]) in out.iter_mut().zip([[0, 1], [1, 1], [1, 0], [0, 0]]) {
        let texel = fetch(mem, lane, texture, sampler, request, 0, [x[i], y[j], Some(0)], place.plane)?;
        *out = texel[component];
    }
    Ok(out)
}

fn is_float(texture: &Texture<'_>) -> bool {
    texture.image.format().data_type.component() == Component::Float
}

fn floats(texel: Texel) -> [f32; 4] {
    texel.map(f32::from_bits)
}

/// Decodes the coordinate vector. PTX ISA §9.7.9.3; A128 (index before sample), A129.
fn place(
    lane: usize,
    opaque: &Opaque,
    texture: &Texture<'_>,
    sampler: &Sampler,
    request: &Request,
) -> Result<Place, Box<Fault>> {
    let shape = texture.image.shape();
    if !shape.allows(request.geom) {
        return Err(wrong_geometry(lane, opaque, request.geom, shape.geom));
    }
    let c = request.coords;
    let layer = |index: u32, count: u32| index.min(count.max(1) - 1);
    let sample = |index: u32| layer(index, shape.samples);
    let direction = |at: usize| [c[at], c[at + 1], c[at + 2]].map(f32::from_bits);
    let (first, plane) = match request.geom {
        Geom::D1 | Geom::D2 | Geom::D3 => (0, 0),
        Geom::A1d | Geom::A2d => (1, layer(c[0], shape.planes())),
        Geom::D2ms => (1, sample(c[0])),
        Geom::A2dms => (2, layer(c[0], shape.layers) * shape.samples.max(1) + sample(c[1])),
        Geom::Cube | Geom::Acube => {
            let (cube, at) = match request.geom {
                Geom::Acube => (layer(c[0], shape.layers), 1),
                _ => (0, 0),
            };
            let point = cube_face(direction(at));
            let coords = Coords::Float([point.s, point.t, 0.0]);
            return Ok(Place { coords, normalized: true, plane: cube * 6 + point.face });
        }
    };
    let spatial = [0, 1, 2].map(|d| c.get(first + d).copied().unwrap_or(0));
    let coords = match request.integer {
        true => Coords::Integer(spatial.map(|bits| bits as i32)),
        false => Coords::Float(spatial.map(|bits| f64::from(f32::from_bits(bits)))),
    };
    Ok(Place { coords, normalized: texture.normalized && !sampler.force_unnormalized, plane })
}

/// The two levels to sample, and the weight of the second.
fn levels(texture: &Texture<'_>, sampler: &Sampler, request: &Request) -> ([u32; 2], u32) {
    let shape = texture.image.shape();
    let lod = match request.lod {
        LevelOfDetail::Base => return ([0, 0], 0),
        LevelOfDetail::Level(lod) => lod,
        LevelOfDetail::Gradients(dx, dy) => {
            let size = shape.size.map(f64::from);
            let at = usize::from(request.geom == Geom::Acube);
            let normalized = texture.normalized && !sampler.force_unnormalized;
            let texels =
                |change: [f32; 3]| match request.geom {
                    Geom::Cube | Geom::Acube => {
                        let c = request.coords;
                        let direction = [c[at], c[(at + 1) % 4], c[(at + 2) % 4]].map(f32::from_bits);
                        let [s, t] = cube_gradient(direction, change);
                        [s * size[0], t * size[1], 0.0]
                    }
                    Geom::D1 | Geom::D2 | Geom::D3 | Geom::A1d | Geom::A2d | Geom::D2ms | Geom::A2dms => {
                        let scale = |d: usize| if normalized { size[d] } else { 1.0 };
                        [0, 1, 2].map(|d| {
                            if d < shape.dimensions() { f64::from(change[d]) * scale(d) } else { 0.0 }
                        })
                    }
                };
            lod_of_gradients(texels(dx), texels(dy))
        }
    };
    level_of(sampler.level_filter, lod, shape.levels)
}

/// The components that one level gives.
fn level(
    mem: &mut View,
    lane: usize,
    texture: &Texture<'_>,
    sampler: &Sampler,
    request: &Request,
    place: &Place,
    level: u32,
) -> Result<Texel, Box<Fault>> {
    let size = texture.image.size(level);
    let dimensions = texture.image.shape().dimensions();
    let dimensions = if request.geom == Geom::A2d { 2 } else { dimensions };
    let coords = match place.coords {
        Coords::Integer(coords) => {
            let tap = |d: usize| texel_tap(sampler.addr[d], size[d], coords[d], request.offset[d]);
            let taps = [0, 1, 2].map(|d| if d < dimensions { tap(d) } else { Some(0) });
            return fetch(mem, lane, texture, sampler, request, level, taps, place.plane);
        }
        Coords::Float(coords) => coords,
    };
    let filter = if is_float(texture) { sampler.filter } else { FilterMode::Nearest };
    let nowhere = Taps { texels: [Some(0), None], weight: 0 };
    let taps: [Taps; 3] = [0, 1, 2].map(|d| match d < dimensions {
        true => float_taps(sampler.addr[d], filter, size[d], place.normalized, coords[d], request.offset[d]),
        false => nowhere,
    });
    let mut texels = [([0.0; 4], 0.0); 8];
    let mut count = 0;
    for corner in 0..1usize << dimensions {
        let which = |d: usize| corner >> d & 1;
        let weight = weight(&taps, which);
        if weight == 0.0 {
            continue;
        }
        let at = [0, 1, 2].map(|d| taps[d].texels[which(d)]);
        let texel = fetch(mem, lane, texture, sampler, request, level, at, place.plane)?;
        if weight == 1.0 {
            return Ok(texel);
        }
        texels[count] = (floats(texel), weight);
        count += 1;
    }
    Ok(blend(&texels[..count]).map(f32::to_bits))
}

/// One texel; compares depths if the instruction does.
#[allow(clippy::too_many_arguments, reason = "the state of one lookup, which no caller has as one value")]
fn fetch(
    mem: &mut View,
    lane: usize,
    texture: &Texture<'_>,
    sampler: &Sampler,
    request: &Request,
    level: u32,
    at: [Tap; 3],
    plane: u32,
) -> Result<Texel, Box<Fault>> {
    let image = texture.image;
    let format = image.format();
    let bits = match at {
        [Some(x), Some(y), Some(z)] => {
            let plane = if image.shape().dimensions() == 3 { z } else { plane };
            let address = image.address(level, u64::from(x) * u64::from(format.bytes()), y, plane);
            read_texel(mem, lane, address, format.bytes(), format.unit())?
        }
        _ => 0,
    };
    let mut texel = format.decode(bits);
    if let Some(reference) = request.reference {
        for (component, value) in texel.iter_mut().enumerate() {
            if format.gives(component) {
                let depth = f32::from_bits(*value);
                *value = depth_compare(sampler.compare, reference, depth).to_bits();
            }
        }
    }
    Ok(texel)
}

/// The bits of a texel.
fn read_texel(mem: &mut View, lane: usize, address: u64, bytes: u32, unit: u32) -> Result<u128, Box<Fault>> {
    let mut bits = 0;
    for at in (0..bytes).step_by(unit.max(1) as usize) {
        let address = address + u64::from(at);
        let value = match unit {
            1 => u128::from(mem.load_one::<u8>(Space::Tex, lane, address)?),
            2 => u128::from(mem.load_one::<u16>(Space::Tex, lane, address)?),
            _ => u128::from(mem.load_one::<u32>(Space::Tex, lane, address)?),
        };
        bits |= value << (8 * at);
    }
    Ok(bits)
}
