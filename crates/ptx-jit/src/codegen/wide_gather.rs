//! Wide gathers: vectors of memory (`.v2`, `.v4`, `.v8`), each lane's at an address of its own.
//!
//! A gather costs a load for each lane, however small the elements. So a lane's vector is gathered as one
//! element up to 64 bits, and is one load for each lane where it is wider; shuffles then separate the
//! elements. Stores work the same way.
//!
//! Invariants: memory of inactive lanes is never accessed. Of several lanes that store to one location, the
//! last one's value stays.

use super::Codegen;
use crate::llvm::Value;
use crate::wir::access::Access;

impl Codegen<'_> {
    /// Gathers the vectors of a chunk's active lanes, at addresses that are multiples of `align`. Returns one
    /// vector for each element.
    pub(super) fn gather_wide(
        &self,
        pointers: Value,
        lanes: Option<Value>,
        access: Access,
        align: u32,
    ) -> Vec<Value> {
        let bits = access.bits * access.count;
        let all = if bits <= 64 {
            let ty = self.b.vec(self.int(bits), self.width);
            self.masked_gather(pointers, align, lanes, self.b.zero(ty))
        } else {
            let ty = self.b.vec(self.int(64), bits / 64);
            let pointers = lanes.map_or(pointers, |lanes| self.or_spare(pointers, lanes));
            let load = |lane| self.b.load(ty, self.b.extract(pointers, lane), align);
            self.joined((0..self.width).map(load).collect())
        };
        self.sorted(all, access)
    }

    /// The elements of vectors that were gathered as one element for each lane.
    pub(super) fn sorted(&self, all: Value, access: Access) -> Vec<Value> {
        if access.count == 1 {
            return vec![all];
        }
        let all = self.b.bitcast(all, self.b.vec(self.int(access.bits), self.width * access.count));
        let pick = |at: u32| {
            let indices: Vec<i32> = (0..self.width).map(|lane| (lane * access.count + at) as i32).collect();
            self.b.permute(all, &indices)
        };
        (0..access.count).map(pick).collect()
    }

    /// Scatters vectors to the active lanes of a chunk; `values` holds one vector for each element.
    pub(super) fn scatter_wide(
        &self,
        pointers: Value,
        lanes: Option<Value>,
        access: Access,
        values: &[Value],
    ) {
        let bits = access.bits * access.count;
        let all = self.interleave(values);
        if bits <= 64 {
            let all = self.b.bitcast(all, self.b.vec(self.int(bits), self.width));
            return self.masked_scatter(all, pointers, bits / 8, lanes);
        }
        let pointers = lanes.map_or(pointers, |lanes| self.or_spare(pointers, lanes));
        for lane in 0..self.width {
            let own = self.b.slice(all, lane * access.count, access.count);
            self.b.store(own, self.b.extract(pointers, lane), bits / 8);
        }
    }

    /// Concatenates vectors of one length, whose number is a power of two.
    pub(super) fn joined(&self, mut vectors: Vec<Value>) -> Value {
        while vectors.len() > 1 {
            vectors = vectors.chunks(2).map(|pair| self.b.concat(pair[0], pair[1])).collect();
        }
        vectors[0]
    }
}
