//! Transposed accesses: lanes of one chunk are far apart, but each is beside a lane of another chunk.
//!
//! A matrix that passes through shared memory is written by rows and read by columns, or the other way round.
//! The elements that lanes of several chunks access form a row, which is one access, and the rows are
//! transposed in registers. A gather or scatter for each chunk would cost an access for each lane.
//!
//! Invariants: a row contains only elements of its lanes, which have been checked. Each element is stored
//! once, so the order does not matter.

use super::Codegen;
use super::load_store::Access;
use crate::llvm::Value;
use crate::target::Level;
use crate::wir::Affine;
use std::collections::{BTreeMap, HashMap, HashSet};

/// A tile: chunks of which each accesses the elements that follow those of the previous chunk, lane by lane.
pub(super) struct Tile {
    chunks: Vec<u32>,
    /// For each lane of a chunk, the start of its row, in bytes from the base.
    rows: Vec<i32>,
}

impl Codegen<'_> {
    /// The tiles of an access that all lanes make.
    pub(super) fn transposed_rows(&self, pattern: &Affine, access: Access, whole: bool) -> Vec<Tile> {
        let plain = whole && !pattern.by_chunk && access.count == 1 && access.bits == 32;
        if !plain || self.chunks() == 1 || self.env.target.level() == Level::Baseline {
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
            let step = access.bytes() as i32;
            let row = lanes.iter().enumerate().all(|(at, lane)| *lane == at as i32 * step);
            let same = lanes.iter().all(|lane| *lane == 0);
            if !row && !same && self.cluster(&lanes, access, whole).is_none() {
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

    /// Loads the elements of tiles, by chunk.
    pub(super) fn load_transposed(&self, base: Value, tiles: &[Tile], access: Access) -> HashMap<u32, Value> {
        let mut all = HashMap::new();
        for tile in tiles {
            let vectors = self.load_rows(base, &tile.rows, tile.chunks.len(), access.bits);
            all.extend(tile.chunks.iter().copied().zip(vectors));
        }
        all
    }

    /// Loads `count` consecutive elements for each lane of a chunk; the rows start at these offsets from the
    /// base, and the count is a power of two. Returns for each element a vector of all lanes.
    pub(super) fn load_rows(&self, base: Value, rows: &[i32], count: usize, bits: u32) -> Vec<Value> {
        let ty = self.b.vec(self.int(bits), count as u32);
        let load = |row: &i32| {
            let place = self.b.add(base, self.c64(i64::from(*row) as u64));
            self.b.load(ty, self.b.int_to_ptr(place), bits / 8)
        };
        let rows: Vec<Value> = rows.iter().map(load).collect();
        let several = rows.len() / count;
        let mut vectors: Vec<Value> = rows.chunks(several).map(|rows| self.joined(rows.to_vec())).collect();
        // The lowest bit of an element's number becomes the highest.
        let width = self.width as i32;
        let [even, odd]: [Vec<i32>; 2] = [0, 1].map(|from| (from..2 * width).step_by(2).collect());
        for _ in 0..count.ilog2() {
            let half = |indices: &Vec<i32>| -> Vec<Value> {
                vectors.chunks(2).map(|pair| self.b.shuffle(pair[0], pair[1], indices)).collect()
            };
            vectors = [half(&even), half(&odd)].concat();
        }
        vectors
    }

    /// Stores the elements of a tile, given by chunk.
    pub(super) fn store_tile(&self, base: Value, tile: &Tile, access: Access, values: &[Vec<Value>]) {
        let vectors = tile.chunks.iter().map(|c| values[*c as usize][0]).collect();
        self.store_rows(base, &tile.rows, vectors, access.bits);
    }

    /// Stores consecutive elements for each lane of a chunk; the rows start at these offsets from the base.
    /// The vectors hold one element of all lanes each, and their number is a power of two.
    pub(super) fn store_rows(&self, base: Value, rows: &[i32], mut vectors: Vec<Value>, bits: u32) {
        let count = vectors.len();
        // The highest bit of an element's number becomes the lowest.
        let width = self.width as i32;
        let mixed = |from: i32| -> Vec<i32> { (0..width).map(|at| from + at / 2 + at % 2 * width).collect() };
        let (low, high) = (mixed(0), mixed(width / 2));
        for _ in 0..count.ilog2() {
            let (first, second) = vectors.split_at(count / 2);
            let pairs = first.iter().zip(second);
            vectors = pairs
                .flat_map(|(a, b)| [&low, &high].map(|indices| self.b.shuffle(*a, *b, indices)))
                .collect();
        }
        let several = rows.len() / count;
        for (at, row) in rows.iter().enumerate() {
            let place = self.b.add(base, self.c64(i64::from(*row) as u64));
            let vector = vectors[at / several];
            let own = self.b.slice(vector, (at % several * count) as u32, count as u32);
            self.b.store(own, self.b.int_to_ptr(place), bits / 8);
        }
    }

    /// Whether a chunk is in one of the tiles.
    pub(super) fn is_transposed(tiles: &[Tile], c: u32) -> bool {
        tiles.iter().any(|tile| tile.chunks.contains(&c))
    }
}
