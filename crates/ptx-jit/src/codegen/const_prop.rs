//! Values that [`analysis::constant`](crate::analysis::constant) found to be constant, in the representations
//! that their shapes demand.
//!
//! LLVM folds constant expressions in place. It does not see that a value a warp saves at a barrier is
//! constant, that a loop does not change it, or that a number of lanes without other bits equals its mask.

use super::{Codegen, Repr};
use crate::wir;
use crate::wir::{Kind, Shape};

impl Codegen<'_> {
    /// Notes the number that a count is emitted as, if it is a constant. The versions of a block may have
    /// different ones.
    pub(super) fn note_count(&mut self, name: wir::Value, known: Option<u64>) {
        match known {
            Some(known) => _ = self.values.counts.insert(name, known),
            None => _ = self.values.counts.remove(&name),
        }
    }

    /// The number that a count was emitted as, if it is a constant.
    pub(super) fn constant_count(&self, name: wir::Value) -> Option<u64> {
        let noted = self.values.counts.get(&name).copied();
        noted.or_else(|| self.facts.analyses.constants.lanes(name)?.next())
    }

    /// Whether the lanes of a chunk of a value are constants.
    pub(super) fn is_constant_chunk(&self, name: wir::Value, chunk: u32) -> bool {
        let constants = &self.facts.analyses.constants;
        // In a loop over chunks or warps, a value is constant if it is the same in each iteration.
        let mut chunks = (chunk..self.job.shape.lanes() / self.width).step_by(self.chunks() as usize);
        let first = constants.chunk(name, chunk);
        first.is_some() && chunks.all(|c| constants.chunk(name, c) == first)
    }

    /// The number that a lane of a value has, if it is constant. Within a loop over chunks or warps, lanes
    /// are those of the current iteration.
    pub(super) fn constant_lane(&self, name: wir::Value, lane: u32) -> Option<u64> {
        let chunk = lane / self.width;
        let known = self.is_constant_chunk(name, chunk);
        let lanes = self.facts.analyses.constants.chunk(name, chunk).filter(|_| known)?;
        lanes.get((lane % self.width) as usize).copied()
    }

    /// A value of which all lanes are constant.
    pub(super) fn constant(&self, name: wir::Value) -> Option<Repr> {
        // Within a chunk loop the bases are those of the current chunk.
        if self.lanes != self.job.shape.lanes() {
            return None;
        }
        let lanes: Vec<u64> = self.facts.analyses.constants.lanes(name)?.collect();
        let ty = self.scalar_type(self.kind(name));
        if self.kind(name) == Kind::Mask {
            let bits = |lanes: &[u64]| lanes.iter().rev().fold(0, |bits, lane| bits << 1 | lane & 1);
            let chunks: Vec<u64> = lanes.chunks(self.width as usize).map(bits).collect();
            return Some(Repr::Mask(self.known_mask(&chunks)));
        }
        let width = self.width as usize;
        match self.shape(name) {
            Shape::Uniform(_) | Shape::Bottom => Some(Repr::Scalar(self.b.const_int(ty, lanes[0]))),
            // The stride is not known.
            Shape::Affine(pattern) if !pattern.rows.is_empty() => None,
            Shape::Affine(pattern) => {
                let firsts = lanes.iter().step_by(width).take(pattern.scalars(self.chunks()) as usize);
                Some(Repr::Bases(firsts.map(|first| self.b.const_int(ty, *first)).collect()))
            }
            Shape::Varying => {
                Some(Repr::Chunks(lanes.chunks(width).map(|chunk| self.b.const_ints(ty, chunk)).collect()))
            }
        }
    }
}
