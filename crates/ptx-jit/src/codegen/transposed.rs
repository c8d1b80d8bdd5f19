//! Code of transposed accesses: the rows of a [`Tile`], and of interleaved groups, are transposed in
//! registers.

use super::Codegen;
use crate::llvm::Value;
use crate::wir::access::Access;
use crate::wir::access::Tile;
use std::collections::HashMap;

impl Codegen<'_> {
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
}
