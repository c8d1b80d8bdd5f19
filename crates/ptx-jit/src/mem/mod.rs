//! Memory accesses: [`classify`] determines the kind of each access and the relation of its lanes' addresses,
//! and [`select`] the cheapest strategy. The results are stored in the operations
//! ([`wir::access`](crate::wir::access)).
//!
//! Invariant: nothing here depends on a value of LLVM. Two accesses with equal data have one strategy.

pub(crate) mod classify;
pub(crate) mod covered;
pub(crate) mod plan;
mod remarks;
pub(crate) mod segmented;
pub(crate) mod select;
mod strip;
pub(crate) mod transposed;

use crate::target::Level;
use crate::wir::Affine;

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
}
