//! The vectors that warp strips permute ([`warp_strips`](super::warp_strips)), and where their elements come
//! from.
//!
//! A vector has a number of ours. Each element of a permuted vector is traced to the vector that it was first
//! taken from, so a permutation of a permuted vector is one of its source, and two elements are known to be
//! the same if they are traced to one element. A permutation that a strip has made is used again.
//!
//! Invariant: two vectors with one number are the same, and a vector dominates the code of every strip that
//! has its number. A number is given by what WIR says: the representation of a value, a mask, or a constant.
//! LLVM values are not compared. Vectors that are equal for another reason have several numbers.

use super::emitted_values::ReprId;
use super::mask::{LaneBits, Mask};
use super::{Codegen, Repr};
use crate::llvm::{Type, Value};
use crate::wir;
use crate::wir::{Kind, OpKind};
use std::collections::HashMap;

/// A vector that strips read, by its number among those of the function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct VectorId(u32);

/// An element of a vector.
pub(super) type Element = (VectorId, u32);

/// For each element of a vector, where it is taken from; `None`: any value but poison.
pub(super) type Wanted = Vec<Option<Element>>;

/// A vector that strips read.
struct StripVector {
    value: Value,
    /// The elements that it was permuted from.
    from: Option<Vec<Element>>,
}

/// The vectors of a function that strips read.
#[derive(Default)]
pub(super) struct StripVectors {
    all: Vec<StripVector>,
    /// The chunks of representations that have a vector for each chunk.
    chunks: HashMap<(ReprId, u32), VectorId>,
}

/// What a vector is that is made in the strip where it is read.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Made {
    /// A chunk of a value, and whether its NaNs are canonical.
    Chunk(ReprId, u32, bool),
    /// A chunk of a mask.
    Mask(Mask, u32),
    /// A number in all lanes, of so many bits.
    Splat(u64, u32),
}

/// A minimum or maximum: its strip, its operands, whether they are signed, and whether it is the maximum.
type Extreme = (usize, VectorId, VectorId, bool, bool);

/// The vectors that the strips of a section have made.
#[derive(Default)]
pub(super) struct SectionVectors {
    made: HashMap<Made, VectorId>,
    /// For each strip and first source, the permutations: the elements that were taken, and the result.
    permuted: HashMap<(usize, VectorId), Vec<(Wanted, VectorId)>>,
    extremes: HashMap<Extreme, VectorId>,
}

impl Codegen<'_> {
    /// The LLVM value of a vector.
    pub(super) fn strip_value(&self, vector: VectorId) -> Value {
        self.passes.warp_strips.vectors.all[vector.0 as usize].value
    }

    /// Numbers a vector that is equal to no other one that strips read.
    pub(super) fn new_strip_vector(&mut self, value: Value) -> VectorId {
        self.add_strip_vector(value, None)
    }

    fn add_strip_vector(&mut self, value: Value, from: Option<Vec<Element>>) -> VectorId {
        let all = &mut self.passes.warp_strips.vectors.all;
        all.push(StripVector { value, from });
        VectorId(all.len() as u32 - 1)
    }

    /// A chunk of a value, with canonical NaNs or with any.
    pub(super) fn strip_chunk(&mut self, name: wir::Value, c: u32, canonical: bool) -> VectorId {
        let name = self.strip_source(name, c);
        let loose = self.may_be_noncanonical(name);
        let value = if canonical { self.chunk(name, c) } else { self.noncanonical_chunk(name, c) };
        let Some(id) = self.values.id(name) else { return self.new_strip_vector(value) };
        if matches!(self.values.get(name), Some(Repr::Chunks(_))) && !(loose && canonical) {
            if let Some(known) = self.passes.warp_strips.vectors.chunks.get(&(id, c)) {
                return *known;
            }
            let vector = self.new_strip_vector(value);
            self.passes.warp_strips.vectors.chunks.insert((id, c), vector);
            return vector;
        }
        self.made_in_strip(Made::Chunk(id, c, canonical || !loose), value)
    }

    /// Notes which vector a chunk of a value is, as the value is held now.
    pub(super) fn note_strip_chunk(&mut self, name: wir::Value, c: u32, vector: VectorId) {
        if let Some(id) = self.values.id(name) {
            self.passes.warp_strips.vectors.chunks.insert((id, c), vector);
        }
    }

    /// The value that a chunk of a value is an unchanged copy of.
    fn strip_source(&self, mut name: wir::Value, c: u32) -> wir::Value {
        while let Some(from) = self.copied_from(name, c)
            && matches!(self.values.get(from), Some(Repr::Chunks(_)))
            && !self.may_be_noncanonical(name)
            && !self.may_be_noncanonical(from)
        {
            name = from;
        }
        name
    }

    /// The value that a phi of a block that continues a section was replaced with, or that a select under a
    /// known mask takes.
    fn copied_from(&self, name: wir::Value, c: u32) -> Option<wir::Value> {
        if let Some(from) = self.fused_from(name) {
            return Some(from);
        }
        let op = self.facts.analyses.def_use.op_of(self.job.func, name)?;
        match (&op.kind, self.emitted_part(*op.uses.first()?, c)?) {
            (OpKind::SelectMask, LaneBits::Known(0)) => Some(op.uses[2]),
            (OpKind::SelectMask, LaneBits::Known(bits)) if bits == self.all_bits() => Some(op.uses[1]),
            _ => None,
        }
    }

    /// A number in all lanes, of so many bits.
    pub(super) fn strip_splat(&mut self, bits: u64, width: u32) -> VectorId {
        let bits = bits & u64::MAX >> (64 - width);
        let value = self.b.const_splat(self.b.vec(self.int(width), self.width), bits);
        self.made_in_strip(Made::Splat(bits, width), value)
    }

    /// The bits of a chunk of a mask or a predicate as a vector.
    pub(super) fn strip_bits_vector(&mut self, name: wir::Value, c: u32) -> VectorId {
        if self.kind(name) == Kind::Mask {
            let mask = self.mask(name);
            let value = self.vector_of(self.cached_bits(mask, c));
            return self.made_in_strip(Made::Mask(mask, c), value);
        }
        match self.predicate_bits(name, c) {
            LaneBits::Computed(..) => self.strip_chunk(name, c, true),
            known @ LaneBits::Known(_) => self.new_strip_vector(self.vector_of(known)),
        }
    }

    /// The number of a vector that the open section makes; `value` is the vector if it has none yet.
    fn made_in_strip(&mut self, made: Made, value: Value) -> VectorId {
        let section = self.passes.warp_strips.open.as_ref().expect("a strip belongs to a section");
        if let Some(known) = section.vectors.made.get(&made) {
            return *known;
        }
        let vector = self.new_strip_vector(value);
        self.section_vectors().made.insert(made, vector);
        vector
    }

    fn section_vectors(&mut self) -> &mut SectionVectors {
        &mut self.passes.warp_strips.open.as_mut().expect("a strip belongs to a section").vectors
    }

    /// The element that an element is, traced through permutations.
    pub(super) fn origin(&self, mut element: Element) -> Element {
        let all = &self.passes.warp_strips.vectors.all;
        while let Some(from) = &all[element.0.0 as usize].from {
            element = from[element.1 as usize];
        }
        element
    }

    /// The minimum or the maximum of each two elements, in the strip of a chunk.
    pub(super) fn extreme(&mut self, c: u32, [a, b]: [VectorId; 2], signed: bool, max: bool) -> VectorId {
        let key = (self.strip(c), a, b, signed, max);
        if let Some(known) = self.section_vectors().extremes.get(&key) {
            return *known;
        }
        let name = match (signed, max) {
            (false, false) => "llvm.umin",
            (false, true) => "llvm.umax",
            (true, false) => "llvm.smin",
            (true, true) => "llvm.smax",
        };
        let operands = [a, b].map(|operand| self.strip_value(operand));
        let value = self.b.intrinsic(name, &[operands[0].ty()], &operands);
        let vector = self.new_strip_vector(value);
        self.section_vectors().extremes.insert(key, vector);
        vector
    }

    /// A vector of elements of other vectors, in the strip of a chunk. `ty`: its type.
    pub(super) fn picked(&mut self, c: u32, wanted: &[Option<Element>], ty: Type) -> VectorId {
        let wanted: Wanted = wanted.iter().map(|from| from.map(|from| self.origin(from))).collect();
        let mut sources: Vec<VectorId> = Vec::new();
        for (source, _) in wanted.iter().flatten() {
            if !sources.contains(source) {
                sources.push(*source);
            }
        }
        let Some(first) = sources.first().copied() else { return self.strip_splat(0, ty.element_bits()) };
        let whole = wanted.iter().zip(0..).all(|(from, at)| from.is_none_or(|from| from == (first, at)));
        if whole {
            return first;
        }
        let key = (self.strip(c), first);
        let agrees =
            |have: &Wanted| wanted.iter().zip(have).all(|(want, have)| want.is_none() || want == have);
        let known = self.section_vectors().permuted.get(&key);
        if let Some((_, vector)) = known.and_then(|all| all.iter().find(|(have, _)| agrees(have))) {
            return *vector;
        }
        let elements: Vec<Option<u32>> = wanted.iter().map(|from| from.map(|(_, element)| element)).collect();
        let elements = if sources.len() == 1 { filled(&elements) } else { stayed(&elements) };
        let full: Vec<Element> = wanted
            .iter()
            .zip(elements)
            .map(|(from, at)| (from.map_or(first, |(source, _)| source), at))
            .collect();
        let value = self.permutation(&sources, &full);
        let vector = self.add_strip_vector(value, Some(full.clone()));
        let full = full.into_iter().map(Some).collect();
        self.section_vectors().permuted.entry(key).or_default().push((full, vector));
        vector
    }

    /// Emits a permutation of one or more vectors.
    fn permutation(&self, sources: &[VectorId], full: &[Element]) -> Value {
        let width = self.width as i32;
        let first = sources[0];
        // The second source is merged with the first, and each further one with the result, whose elements
        // stay.
        let indices = |of: [Option<VectorId>; 2]| -> Vec<i32> {
            let index = |(at, (source, element)): (usize, &Element)| match of
                .iter()
                .position(|have| *have == Some(*source))
            {
                Some(number) => number as i32 * width + *element as i32,
                None => at as i32,
            };
            full.iter().enumerate().map(index).collect()
        };
        if sources.len() == 1 {
            return self.b.permute(self.strip_value(first), &indices([Some(first), None]));
        }
        let mut result = self.strip_value(first);
        for (number, source) in sources.iter().enumerate().skip(1) {
            let before = (number == 1).then_some(first);
            result = self.b.shuffle(result, self.strip_value(*source), &indices([before, Some(*source)]));
        }
        result
    }
}

/// Indices of which some are not wanted: these move by the same distance as the others where the others are
/// exchanged, and stay otherwise.
pub(super) fn filled(wanted: &[Option<u32>]) -> Vec<u32> {
    let distance = wanted.iter().zip(0..).find_map(|(from, at)| from.map(|element| element ^ at));
    let exchanges = |distance: &u32| {
        wanted.iter().zip(0..).all(|(from, at)| from.is_none_or(|element| element == at ^ distance))
    };
    let distance = distance.filter(exchanges).unwrap_or(0);
    wanted.iter().zip(0..).map(|(from, at)| from.unwrap_or(at ^ distance)).collect()
}

/// Indices of which some are not wanted: these stay.
fn stayed(wanted: &[Option<u32>]) -> Vec<u32> {
    wanted.iter().zip(0..).map(|(from, at)| from.unwrap_or(at)).collect()
}
