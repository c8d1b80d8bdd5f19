//! `suld`, `sust` and `sured` (PTX ISA §9.7.10).
//!
//! Invariant: the bounds of all lanes are checked before any lane accesses memory. An access whose byte
//! coordinate is not a multiple of its size is a misaligned access: the manual leaves it undefined, ptxvm
//! traps.
//!
//! Cache operators do not change results.

use super::Missing;
use super::access::Stored;
use super::opaque::{Handle, fault};
use super::operands::{Bound, Operands};
use crate::bound::{Exec, StepFn, Stepped};
use crate::lanes::{LANES, Lane, LaneMask, lanes_of};
use crate::lift::{Inputs, Operand, Value};
use crate::mem::{Cell, View};
use crate::texture::wrong_geometry;
use crate::trap::{Fault, FaultKind};
use ptx::isa::form::coords;
use ptx::isa::{Clamp, Geom, Sem, Slot, Space, Ty, Word};
use ptx_sem::{
    ChannelType, Component, Format, SurfaceClamp, SurfacePlace, atom_s32, atom_u32, atom_u64, surface_place,
};

/// The coordinates of a surface access.
struct Access {
    surface: Handle,
    coords: Vec<Operand<u32>>,
    geom: Geom,
    clamp: SurfaceClamp,
    unit: Unit,
}

/// The unit of the first coordinate.
#[derive(Clone, Copy)]
enum Unit {
    /// Bytes; the access has this size.
    Bytes(u32),
    /// Samples.
    Sample,
}

/// Addresses of the lanes that access memory, and the format of the samples.
struct Places {
    mask: LaneMask,
    addresses: Lane<u64>,
    formats: [Option<Format>; LANES],
}

fn access(o: &Operands<'_>, unit: Unit) -> Result<Access, Missing> {
    let geom = o.ask(Slot::Geom, |word| Geom::from_word(word).is_some(), |mods| mods.geom())?;
    let is_clamp = |word| matches!(word, Word::Trap | Word::Clamp | Word::Zero);
    let clamp = match o.ask(Slot::Clamp, is_clamp, |mods| mods.clamp())? {
        Clamp::Trap => SurfaceClamp::Trap,
        Clamp::Clamp => SurfaceClamp::Clamp,
        Clamp::Zero => SurfaceClamp::Zero,
    };
    o.ignore(Slot::Cop);
    let count = usize::from(coords(geom, Ty::S32).used);
    let coords = (1..=count).map(|i| o.src::<u32>(i)).collect::<Result<_, _>>()?;
    Ok(Access { surface: Handle::of(o, 0)?, coords, geom, clamp, unit })
}

impl Access {
    /// Index of the first source after the coordinates.
    fn after(&self) -> usize {
        1 + self.coords.len()
    }

    /// The address of each lane of the mask.
    fn places(&self, mask: LaneMask, inputs: Inputs<'_>, mem: &mut View) -> Result<Places, Box<Fault>> {
        let coords: Vec<Lane<u32>> = self.coords.iter().map(|c| c.get(inputs)).collect();
        let mut surfaces = self.surface.read(inputs);
        let mut places = Places { mask: 0, addresses: Lane::splat(0), formats: [None; LANES] };
        for lane in lanes_of(mask) {
            let opaque = surfaces.get(mem, lane)?;
            let (image, level) = opaque.surface().map_err(|kind| fault(kind, lane))?;
            let shape = image.shape();
            if !shape.allows(self.geom) {
                return Err(wrong_geometry(lane, &opaque, self.geom, shape.geom));
            }
            let at = |i: usize| coords.get(i).map_or(0, |value| value.0[lane]);
            let (first, layers) = match self.geom {
                Geom::A1d | Geom::A2d => (1, shape.planes()),
                Geom::D1 | Geom::D2 | Geom::D3 | Geom::Cube | Geom::Acube | Geom::D2ms | Geom::A2dms => {
                    (0, 1)
                }
            };
            let [width, height, depth] = image.size(level);
            let bytes = image.format().bytes();
            let (size, extent) = match self.unit {
                Unit::Bytes(size) => (size, width.saturating_mul(bytes)),
                Unit::Sample => (1, width),
            };
            let coordinate = |i: usize| i64::from(at(first + i) as i32);
            let dimensions = shape.dimensions();
            let place = |coordinate, size, extent| surface_place(self.clamp, coordinate, size, extent);
            // The array index is unsigned.
            let layer = if first == 1 { i64::from(at(0)) } else { 0 };
            let found = [
                place(coordinate(0), size, extent),
                if dimensions > 1 { place(coordinate(1), 1, height) } else { SurfacePlace::At(0) },
                if dimensions > 2 { place(coordinate(2), 1, depth) } else { place(layer, 1, layers) },
            ];
            if found.contains(&SurfacePlace::Trap) {
                let all: Vec<String> = (0..coords.len()).map(|i| (at(i) as i32).to_string()).collect();
                let unit = if matches!(self.unit, Unit::Bytes(_)) { "x in bytes" } else { "x in samples" };
                let why = format!(
                    "({}) ({unit}) lies outside a surface of {width}x{height}x{} texels of {bytes} bytes",
                    all.join(", "),
                    depth.max(layers)
                );
                if mem.leaves_out(lane, &why) {
                    continue;
                }
                return Err(fault(FaultKind::SurfaceBounds(why), lane));
            }
            let [SurfacePlace::At(x), SurfacePlace::At(y), SurfacePlace::At(plane)] = found else { continue };
            let scale = if matches!(self.unit, Unit::Bytes(_)) { 1 } else { u64::from(bytes) };
            places.mask |= 1 << lane;
            places.addresses.0[lane] = image.address(level, u64::from(x) * scale, y, plane);
            places.formats[lane] = Some(image.format());
        }
        Ok(places)
    }
}

pub(super) fn suld(o: &Operands<'_>) -> Bound {
    o.ignore_word(Word::B);
    let ty = o.ty_in(Slot::Dtype).ok_or(Missing)?;
    by_width(o, ty, Direction::Load)
}

pub(super) fn sust(o: &Operands<'_>) -> Bound {
    if o.has(Word::P) {
        return sust_p(o);
    }
    o.ignore_word(Word::B);
    let ty = o.ty_in(Slot::Ctype).ok_or(Missing)?;
    by_width(o, ty, Direction::Store)
}

#[derive(Clone, Copy)]
enum Direction {
    Load,
    Store,
}

fn by_width(o: &Operands<'_>, ty: Ty, direction: Direction) -> Bound {
    o.look(|_, word| matches!(word, Word::V2 | Word::V4));
    let count = usize::from(o.mods().vec());
    super::by_type! { ty;
        B8 => by_count::<u8>(o, count, direction),
        B16 => by_count::<u16>(o, count, direction),
        B32 => by_count::<u32>(o, count, direction),
        B64 => by_count::<u64>(o, count, direction),
    }
}

fn by_count<V: Stored>(o: &Operands<'_>, count: usize, direction: Direction) -> Bound {
    match (count, direction) {
        (1, Direction::Load) => load::<V, 1>(o),
        (2, Direction::Load) => load::<V, 2>(o),
        (4, Direction::Load) => load::<V, 4>(o),
        (1, Direction::Store) => store::<V, 1>(o),
        (2, Direction::Store) => store::<V, 2>(o),
        (4, Direction::Store) => store::<V, 4>(o),
        _ => Err(Missing),
    }
}

fn load<V: Stored, const N: usize>(o: &Operands<'_>) -> Bound {
    let access = access(o, Unit::Bytes((size_of::<V::Cell>() * N) as u32))?;
    let targets = (0..N).map(|i| o.dst::<V>(i)).collect::<Result<Vec<_>, _>>()?;
    Ok(Box::new(move |exec: &mut Exec<'_>| -> Stepped {
        let Exec { mask, regs, warp, mem, frame, .. } = exec;
        let places = access.places(*mask, Inputs { regs, warp, frame: *frame }, mem)?;
        // Lanes out of bounds read zeros.
        let mut cells = [Lane([V::Cell::default(); LANES]); N];
        mem.load_vector(Space::Tex, &places.addresses, places.mask, Sem::Weak, cells.each_mut())?;
        for (d, cells) in targets.iter().zip(&cells) {
            d.write(regs, *mask, &Lane(cells.0.map(|cell| V::of_cell(cell).slot())));
        }
        Ok(())
    }))
}

fn store<V: Stored, const N: usize>(o: &Operands<'_>) -> Bound {
    let access = access(o, Unit::Bytes((size_of::<V::Cell>() * N) as u32))?;
    let values = (0..N).map(|i| o.src::<V>(access.after() + i)).collect::<Result<Vec<_>, _>>()?;
    Ok(Box::new(move |exec: &mut Exec<'_>| -> Stepped {
        let Exec { mask, regs, warp, mem, frame, .. } = exec;
        let inputs = Inputs { regs, warp, frame: *frame };
        let places = access.places(*mask, inputs, mem)?;
        let mut cells = [Lane([V::Cell::default(); LANES]); N];
        for (cells, value) in cells.iter_mut().zip(&values) {
            *cells = Lane(value.get(inputs).0.map(V::cell));
        }
        mem.store_vector(Space::Tex, &places.addresses, places.mask, Sem::Weak, cells.each_ref())
    }))
}

/// `sust.p`: converts components R, G, B, A to the format; missing components become 0 (A142: unpredictable).
fn sust_p(o: &Operands<'_>) -> Bound {
    if o.ty()? != Ty::B32 {
        return Err(Missing);
    }
    o.look(|_, word| matches!(word, Word::V2 | Word::V4));
    let access = access(o, Unit::Sample)?;
    let count = usize::from(o.mods().vec());
    let values = (0..count).map(|i| o.src::<u32>(access.after() + i)).collect::<Result<Vec<_>, _>>()?;
    Ok(Box::new(move |exec: &mut Exec<'_>| -> Stepped {
        let Exec { mask, regs, warp, mem, frame, .. } = exec;
        let inputs = Inputs { regs, warp, frame: *frame };
        let places = access.places(*mask, inputs, mem)?;
        let values: Vec<Lane<u32>> = values.iter().map(|value| value.get(inputs)).collect();
        for lane in lanes_of(places.mask) {
            let Some(format) = places.formats[lane] else { continue };
            let texel = [0, 1, 2, 3].map(|i| values.get(i).map_or(0, |value| value.0[lane]));
            write_texel(mem, lane, places.addresses.0[lane], format, format.encode(texel))?;
        }
        Ok(())
    }))
}

fn write_texel(mem: &mut View, lane: usize, address: u64, format: Format, bits: u128) -> Stepped {
    for at in (0..format.bytes()).step_by(format.unit().max(1) as usize) {
        let (address, value) = (address + u64::from(at), bits >> (8 * at));
        match format.unit() {
            1 => mem.store_one(Space::Tex, lane, address, value as u8)?,
            2 => mem.store_one(Space::Tex, lane, address, value as u16)?,
            _ => mem.store_one(Space::Tex, lane, address, value as u32)?,
        }
    }
    Ok(())
}

pub(super) fn sured(o: &Operands<'_>) -> Bound {
    let words = |w| matches!(w, Word::Add | Word::Min | Word::Max | Word::And | Word::Or);
    let op = super::access::sem_op(o.ask(Slot::Op, words, |mods| mods.atom_op())?);
    let ty = o.ty_in(Slot::Ctype).ok_or(Missing)?;
    if o.has(Word::P) {
        return if ty == Ty::B32 { sured_p(o, op) } else { Err(Missing) };
    }
    o.ignore_word(Word::B);
    super::by_type! { ty;
        U32 | B32 => sured_b::<u32>(o, move |old, b| atom_u32(op, old, b, 0)),
        S32 => sured_b::<u32>(o, move |old, b| atom_s32(op, old as i32, b as i32, 0) as u32),
        U64 => sured_b::<u64>(o, move |old, b| atom_u64(op, old, b, 0)),
    }
}

fn sured_b<V: Value<Slot = V> + crate::lift::Slot + Cell>(
    o: &Operands<'_>,
    f: impl Fn(V, V) -> V + Copy + Send + Sync + 'static,
) -> Bound {
    let access = access(o, Unit::Bytes(size_of::<V>() as u32))?;
    let b = o.src::<V>(access.after())?;
    Ok(Box::new(move |exec: &mut Exec<'_>| -> Stepped {
        let Exec { mask, regs, warp, mem, frame, .. } = exec;
        let inputs = Inputs { regs, warp, frame: *frame };
        let places = access.places(*mask, inputs, mem)?;
        let b = b.get(inputs);
        mem.atomic(Space::Tex, &places.addresses, places.mask, Sem::Relaxed, |lane, old: V| {
            Some(f(old, b.0[lane]))
        })?;
        Ok(())
    }))
}

/// `sured.p`: 32-bit samples, signed or unsigned by the format. The manual does not define other formats:
/// they trap.
fn sured_p(o: &Operands<'_>, op: ptx_sem::AtomOp) -> Result<StepFn, Missing> {
    let access = access(o, Unit::Sample)?;
    let b = o.src::<u32>(access.after())?;
    Ok(Box::new(move |exec: &mut Exec<'_>| -> Stepped {
        let Exec { mask, regs, warp, mem, frame, .. } = exec;
        let inputs = Inputs { regs, warp, frame: *frame };
        let places = access.places(*mask, inputs, mem)?;
        let mut signed = 0;
        for lane in lanes_of(places.mask) {
            let ty = places.formats[lane].map(|format| format.data_type);
            if !matches!(ty, Some(ChannelType::SignedInt32 | ChannelType::UnsignedInt32)) {
                let why = "`sured.p` needs a surface of 32-bit integers".to_owned();
                return Err(fault(FaultKind::BadTexture(why), lane));
            }
            let is_signed = ty.is_some_and(|ty| ty.component() == Component::Signed);
            signed |= LaneMask::from(is_signed) << lane;
        }
        let b = b.get(inputs);
        mem.atomic(Space::Tex, &places.addresses, places.mask, Sem::Relaxed, |lane, old: u32| {
            let b = b.0[lane];
            Some(match signed >> lane & 1 {
                1 => atom_s32(op, old as i32, b as i32, 0) as u32,
                _ => atom_u32(op, old, b, 0),
            })
        })?;
        Ok(())
    }))
}
