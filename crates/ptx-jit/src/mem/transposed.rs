//! Transposed accesses: lanes of one chunk are far apart, but each is beside a lane of another chunk.
//!
//! A matrix that passes through shared memory is written by rows and read by columns, or the other way round.
//! The elements that lanes of several chunks access form a row, which is one access, and the rows are
//! transposed in registers. A gather or scatter for each chunk would cost an access for each lane.
//!
//! Invariant: a row contains only elements of its lanes. A tile of a store has each element once, so the
//! order of its rows does not matter.

use super::Vectors;
use crate::target::Level;
use crate::wir::Affine;
use crate::wir::access::{Access, Tile};
use std::collections::{BTreeMap, HashSet};

impl Vectors {
    /// The tiles of an access. `whole`: all lanes make it.
    pub(crate) fn tiles(self, pattern: &Affine, access: Access, whole: bool) -> Vec<Tile> {
        let plain = whole && !pattern.by_chunk && access.count == 1 && access.bits == 32;
        if !plain || self.chunks() == 1 || self.level == Level::Baseline {
            return Vec::new();
        }
        // If several lanes store to one element, the last lane's value must stay, which a tile does not
        // ensure.
        let mut seen = HashSet::new();
        if access.write && !pattern.lanes.iter().all(|lane| seen.insert(*lane)) {
            return Vec::new();
        }
        // The relative positions of the lanes of a chunk, with the position of the first lane, and the chunk.
        let mut like: BTreeMap<Vec<i32>, Vec<(i32, u32)>> = BTreeMap::new();
        for c in 0..self.chunks() {
            let lanes = self.relative(pattern, c);
            let same = lanes.iter().all(|lane| *lane == 0);
            if !is_consecutive(&lanes, access) && !same && self.cluster(&lanes, access, whole).is_none() {
                let first = pattern.lanes[(c * self.width) as usize];
                like.entry(lanes).or_default().push((first, c));
            }
        }
        let mut tiles = Vec::new();
        for (lanes, mut chunks) in like {
            chunks.sort_unstable();
            while let Some((first, _)) = chunks.first().copied() {
                let next = |(at, (have, _)): (usize, &(i32, u32))| {
                    first.checked_add(at as i32 * access.bytes() as i32) == Some(*have)
                };
                let run = chunks.iter().enumerate().take_while(|pair| next(*pair)).count();
                let count = 1 << run.min(self.width as usize).ilog2();
                let own: Vec<u32> = chunks.drain(..count).map(|(_, c)| c).collect();
                if count > 1 {
                    let rows = lanes.iter().map(|lane| first + lane).collect();
                    tiles.push(Tile { chunks: own, rows });
                }
            }
        }
        tiles
    }
}

/// Whether the elements of lanes at these distances from the first lane follow each other.
pub(crate) fn is_consecutive(lanes: &[i32], access: Access) -> bool {
    lanes.iter().enumerate().all(|(at, lane)| *lane == (at as u32 * access.bytes()) as i32)
}
