//! Code of permuted accesses: the vectors of a [`Cluster`] and the permutation of their elements.
//!
//! Invariant: where lanes are inactive, only elements of active lanes are accessed. Memory between the
//! elements of a store keeps its content.

use super::Codegen;
use crate::llvm::Value;
use crate::wir::access::Access;
use crate::wir::access::{Cluster, Cover};

impl Codegen<'_> {
    /// Loads one element for each lane; `base` is the address of the first lane's. `lanes`: the mask of the
    /// active lanes, if not all are.
    pub(super) fn load_permuted(
        &self,
        base: Value,
        cluster: &Cluster,
        access: Access,
        lanes: Option<Value>,
    ) -> Value {
        let (ty, bytes) = (self.b.vec(self.int(access.bits), self.width), access.bits / 8);
        let whole = lanes.is_none();
        let mut result = None;
        for cover in &cluster.vectors {
            let pointer = self.covered(base, cluster, cover, bytes);
            // If there are several vectors, the elements fill at least one whole vector.
            let vector = if whole && (cluster.vectors.len() > 1 || cover.is_wide()) {
                self.b.load(ty, pointer, bytes)
            } else {
                let bits = if whole { self.reached(cover) } else { self.owned(cover, lanes) };
                self.masked_load(access.space, pointer, bytes, bits, self.b.zero(ty))
            };
            let width = self.width as i32;
            result = Some(match result {
                None => {
                    let indices: Vec<i32> = cover.taken.iter().map(|e| e.unwrap_or(0) as i32).collect();
                    self.b.permute(vector, &indices)
                }
                Some(others) => {
                    let pick = |(lane, element): (usize, &Option<u32>)| match element {
                        Some(element) => width + *element as i32,
                        None => lane as i32,
                    };
                    let indices: Vec<i32> = cover.taken.iter().enumerate().map(pick).collect();
                    self.b.shuffle(others, vector, &indices)
                }
            });
        }
        result.expect("a cluster has a vector")
    }

    /// Stores one element of each lane; `base` is the address of the first lane's.
    pub(super) fn store_permuted(
        &self,
        value: Value,
        base: Value,
        cluster: &Cluster,
        access: Access,
        lanes: Option<Value>,
    ) {
        let bytes = access.bits / 8;
        for cover in cluster.vectors.iter().filter(|cover| cover.owners.iter().any(Option::is_some)) {
            let pointer = self.covered(base, cluster, cover, bytes);
            let indices: Vec<i32> = cover.owners.iter().map(|lane| lane.unwrap_or(0) as i32).collect();
            let vector = self.b.permute(value, &indices);
            if lanes.is_none() && cover.owners.iter().all(Option::is_some) {
                self.b.store(vector, pointer, bytes);
                continue;
            }
            let bits = self.owned(cover, lanes);
            self.masked_store(access.space, vector, pointer, bytes, bits);
        }
    }

    fn covered(&self, base: Value, cluster: &Cluster, cover: &Cover, bytes: u32) -> Value {
        let more = cluster.low + i64::from(cover.start * bytes);
        let place = if more == 0 { base } else { self.b.add(base, self.c64(more as u64)) };
        self.b.int_to_ptr(place)
    }

    /// The mask of the elements up to the last one that belongs to a lane.
    fn reached(&self, cover: &Cover) -> Value {
        let last = cover.owners.iter().rposition(Option::is_some);
        let bits: Vec<u64> =
            (0..cover.owners.len()).map(|at| u64::from(last.is_some_and(|last| at <= last))).collect();
        self.b.const_ints(self.int(1), &bits)
    }

    /// The mask of the elements of active lanes.
    fn owned(&self, cover: &Cover, lanes: Option<Value>) -> Value {
        let bits: Vec<u64> = cover.owners.iter().map(|lane| u64::from(lane.is_some())).collect();
        let owned = self.b.const_ints(self.int(1), &bits);
        let Some(lanes) = lanes else { return owned };
        let indices: Vec<i32> = cover.owners.iter().map(|lane| lane.unwrap_or(0) as i32).collect();
        self.b.and(self.b.permute(lanes, &indices), owned)
    }
}
