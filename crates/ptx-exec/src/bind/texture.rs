//! `tex` and `tld4` (PTX ISA §9.7.9.3, §9.7.9.4).
//!
//! Invariant: a register is written only after all lanes have succeeded.

use super::Missing;
use super::opaque::{Handle, fault};
use super::operands::{Bound, Operands};
use crate::bound::{Exec, Stepped};
use crate::lanes::{Lane, LaneMask, Registers, lanes_of};
use crate::lift::{Inputs, Operand, Target};
use crate::texture::lookup::{LevelOfDetail, Request, gather, lookup};
use ptx::isa::form::{companion_lanes, coords};
use ptx::isa::{Geom, Lod, Slot, Ty, Word};
use ptx_sem::{Component, Texel, tex_f16};

/// The operands of a lookup, by position.
struct Operation {
    texture: Handle,
    sampler: Option<Handle>,
    geom: Geom,
    integer: bool,
    coords: Vec<Operand<u32>>,
    lod: Level,
    offset: Vec<Operand<u32>>,
    reference: Option<Operand<u32>>,
    out: Out,
}

enum Level {
    Base,
    Explicit(Operand<u32>),
    Gradients(Vec<Operand<u32>>, Vec<Operand<u32>>),
}

/// The destinations.
enum Out {
    /// Four registers of 32 bits.
    Words(Vec<Target<u32>>),
    /// Four of 16.
    Halves(Vec<Target<u16>>),
    /// Two pairs of halves.
    Pairs(Vec<Target<u32>>),
}

/// The operands' values in every lane.
struct Values {
    coords: Vec<Lane<u32>>,
    lod: Vec<Lane<u32>>,
    offset: Vec<Lane<u32>>,
    reference: Option<Lane<u32>>,
}

pub(super) fn tex(o: &Operands<'_>) -> Bound {
    let operation = operation(o)?;
    Ok(run(operation, None))
}

pub(super) fn tld4(o: &Operands<'_>) -> Bound {
    let place = |word| [Word::R, Word::G, Word::B, Word::A].iter().position(|component| *component == word);
    let component = o.ask(Slot::Comp, |word| place(word).is_some(), |mods| place(mods.get(Slot::Comp)?))?;
    let operation = operation(o)?;
    Ok(run(operation, Some(component)))
}

fn operation(o: &Operands<'_>) -> Result<Operation, Missing> {
    let geom = o.ask(Slot::Geom, |word| Geom::from_word(word).is_some(), |mods| mods.geom())?;
    o.look(|_, word| matches!(word, Word::V2 | Word::V4 | Word::Base | Word::Level | Word::Grad));
    let ctype = o.ty_in(Slot::Ctype).ok_or(Missing)?;
    if !matches!(ctype, Ty::S32 | Ty::F32) {
        return Err(Missing);
    }
    let integer = ctype == Ty::S32;
    let mut next = 0;
    let mut take = |count: usize| {
        let first = next;
        next += if o.given(first) { count } else { 1 };
        first
    };
    let words = |first: usize, count: usize| -> Result<Vec<_>, Missing> {
        (first..first + count).map(|i| o.src::<u32>(i)).collect()
    };
    let texture = Handle::of(o, take(1))?;
    let sampler = take(1);
    let sampler = if o.given(sampler) { Some(Handle::of(o, sampler)?) } else { None };
    let count = usize::from(coords(geom, Ty::U32).used);
    let coords = words(take(count), count)?;
    let companion = usize::from(companion_lanes(geom));
    let lod = match o.mods().lod() {
        Lod::Base | Lod::None => Level::Base,
        Lod::Level => Level::Explicit(o.src::<u32>(take(1))?),
        Lod::Grad => Level::Gradients(words(take(companion), companion)?, words(take(companion), companion)?),
    };
    let offset = take(companion);
    let offset = if o.given(offset) { words(offset, companion)? } else { Vec::new() };
    let reference = take(1);
    let reference = if o.given(reference) { Some(o.src::<u32>(reference)?) } else { None };
    let out = match (o.ty_in(Slot::Dtype).or_else(|| o.ty_in(Slot::Type)).ok_or(Missing)?, o.mods().vec()) {
        (Ty::U32 | Ty::S32 | Ty::F32, 4) => Out::Words(targets(4, |i| o.dst::<u32>(i))?),
        (Ty::F16, 4) => Out::Halves(targets(4, |i| o.dst::<u16>(i))?),
        (Ty::F16x2, 2) => Out::Pairs(targets(2, |i| o.dst::<u32>(i))?),
        _ => return Err(Missing),
    };
    Ok(Operation { texture, sampler, geom, integer, coords, lod, offset, reference, out })
}

fn targets<S>(
    count: usize,
    make: impl Fn(usize) -> Result<Target<S>, Missing>,
) -> Result<Vec<Target<S>>, Missing> {
    (0..count).map(make).collect()
}

/// The step: `tld4` if a component is given, else `tex`.
fn run(operation: Operation, component: Option<usize>) -> crate::bound::StepFn {
    Box::new(move |exec: &mut Exec<'_>| -> Stepped {
        let Exec { mask, regs, warp, mem, frame, .. } = exec;
        let inputs = Inputs { regs, warp, frame: *frame };
        let values = operation.values(inputs);
        let mut textures = operation.texture.read(inputs);
        let mut samplers = operation.sampler.as_ref().map(|sampler| sampler.read(inputs));
        let mut texels = [([0; 4], Component::Float); crate::lanes::LANES];
        for lane in lanes_of(*mask) {
            let opaque = textures.get(mem, lane)?;
            let texture = opaque.texture().map_err(|kind| fault(kind, lane))?;
            let sampler = match &mut samplers {
                Some(samplers) => samplers.get(mem, lane)?.sampler().map_err(|kind| fault(kind, lane))?,
                None => texture.sampler,
            };
            let request = operation.request(&values, lane);
            let state = (&texture, &sampler);
            let texel = match component {
                Some(component) => gather(mem, lane, &opaque, state, &request, component)?,
                None => lookup(mem, lane, &opaque, state, &request)?,
            };
            texels[lane] = (texel, texture.image.format().data_type.component());
        }
        operation.out.write(regs, *mask, &texels);
        Ok(())
    })
}

impl Operation {
    fn values(&self, inputs: Inputs<'_>) -> Values {
        let all = |operands: &[Operand<u32>]| operands.iter().map(|a| a.get(inputs)).collect();
        Values {
            coords: all(&self.coords),
            lod: match &self.lod {
                Level::Base => Vec::new(),
                Level::Explicit(lod) => vec![lod.get(inputs)],
                Level::Gradients(dx, dy) => dx.iter().chain(dy).map(|a| a.get(inputs)).collect(),
            },
            offset: all(&self.offset),
            reference: self.reference.as_ref().map(|a| a.get(inputs)),
        }
    }

    fn request(&self, values: &Values, lane: usize) -> Request {
        let at = |list: &[Lane<u32>], i: usize| list.get(i).map_or(0, |value| value.0[lane]);
        let lod = match &self.lod {
            Level::Base => LevelOfDetail::Base,
            Level::Explicit(_) if self.integer => LevelOfDetail::Level(f64::from(at(&values.lod, 0) as i32)),
            Level::Explicit(_) => LevelOfDetail::Level(f64::from(f32::from_bits(at(&values.lod, 0)))),
            Level::Gradients(dx, dy) => {
                let (dx, dy) = values.lod.split_at(dx.len().min(values.lod.len() - dy.len()));
                let vector = |list: &[Lane<u32>]| [0, 1, 2].map(|i| f32::from_bits(at(list, i)));
                LevelOfDetail::Gradients(vector(dx), vector(dy))
            }
        };
        Request {
            geom: self.geom,
            coords: [0, 1, 2, 3].map(|i| at(&values.coords, i)),
            integer: self.integer,
            lod,
            offset: [0, 1, 2].map(|i| at(&values.offset, i) as i32),
            reference: values.reference.as_ref().map(|value| f32::from_bits(value.0[lane])),
        }
    }
}

/// A component as 16 bits: a float rounded to nearest even, or the low half of an integer, for which the
/// manual is silent.
fn half((texel, component): &(Texel, Component), i: usize) -> u16 {
    match component {
        Component::Float => tex_f16(f32::from_bits(texel[i])),
        Component::Unsigned | Component::Signed => texel[i] as u16,
    }
}

impl Out {
    fn write(
        &self,
        regs: &mut Registers,
        mask: LaneMask,
        texels: &[(Texel, Component); crate::lanes::LANES],
    ) {
        match self {
            Out::Words(targets) => {
                for (i, d) in targets.iter().enumerate() {
                    d.write(regs, mask, &Lane(texels.map(|(texel, _)| texel[i])));
                }
            }
            Out::Halves(targets) => {
                for (i, d) in targets.iter().enumerate() {
                    d.write(regs, mask, &Lane(texels.map(|texel| half(&texel, i))));
                }
            }
            Out::Pairs(targets) => {
                for (i, d) in targets.iter().enumerate() {
                    let pair =
                        |texel| u32::from(half(&texel, 2 * i + 1)) << 16 | u32::from(half(&texel, 2 * i));
                    d.write(regs, mask, &Lane(texels.map(pair)));
                }
            }
        }
    }
}
