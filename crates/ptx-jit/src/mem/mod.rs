//! Memory accesses: [`classify`] determines the kind of each access and the relation of its lanes' addresses,
//! [`group`] the accesses that are emitted together, and [`select`] the cheapest strategy. The results are
//! stored in the operations ([`wir::access`](crate::wir::access)) and blocks
//! ([`wir::group`](crate::wir::group)).
//!
//! Invariant: nothing here depends on a value of LLVM. Two accesses with equal data have one strategy.

pub(crate) mod classify;
pub(crate) mod covered;
pub(crate) mod group;
pub(crate) mod plan;
pub(crate) mod remarks;
pub(crate) mod segmented;
pub(crate) mod select;
mod strip;
pub(crate) mod transposed;
mod within;

use crate::target::Level;
use crate::wir::Affine;
use ptx::isa::Space;

/// The vectors that code is generated for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vectors {
    pub(crate) level: Level,
    /// Lanes of a chunk.
    pub(crate) width: u32,
    /// Lanes that execute as one: of a warp, of a coarse warp, or of the chunk of a chunk loop.
    pub(crate) lanes: u32,
}

impl Vectors {
    pub(crate) fn chunks(self) -> u32 {
        self.lanes / self.width
    }

    /// The constants of a chunk's lanes, relative to the chunk's first lane.
    pub(crate) fn relative(self, pattern: &Affine, chunk: u32) -> Vec<i32> {
        let start = (chunk * self.width) as usize;
        let lanes = &pattern.lanes[start..start + self.width as usize];
        lanes.iter().map(|lane| lane - lanes[0]).collect()
    }

    /// Whether one comparison checks all lanes of an affine address: all lanes access one memory, and all are
    /// aligned if one is. Where lanes may be inactive the addresses must also be evenly spaced, so that the
    /// lowest and the highest active lane give the extremes.
    pub(crate) fn is_regular(self, space: Space, align: u32, pattern: &Affine, whole: bool) -> bool {
        self.is_together(space, align, pattern) && (whole || self.step_of(pattern).is_some())
    }

    /// Whether all lanes of an affine address access one memory, and all are aligned if one is.
    pub(crate) fn is_together(self, space: Space, align: u32, pattern: &Affine) -> bool {
        space != Space::Local && pattern.lanes.iter().all(|lane| i64::from(*lane) % i64::from(align) == 0)
    }

    /// The constant distance between neighbouring lanes, if there is one (within a chunk, if each chunk has a
    /// base).
    pub(crate) fn step_of(self, pattern: &Affine) -> Option<i64> {
        let group = if pattern.by_chunk { self.width as usize } else { self.lanes as usize };
        let step = pattern.lanes[1] - pattern.lanes[0];
        let even = |lanes: &[i32]| lanes.windows(2).all(|pair| pair[1] - pair[0] == step);
        pattern.lanes.chunks(group).all(even).then_some(i64::from(step))
    }
}
