//! Permuted accesses: lanes at constant distances that are close together, such as fields of structures,
//! every second element, partners in a sorting network.
//!
//! A few vectors cover all elements, and a constant permutation moves each lane's element to the lane.
//! Gathers and scatters, which cost an access for each lane, remain for elements that are further apart.
//!
//! Invariants: vectors never extend beyond the first and the last element of the lanes, which have been
//! checked. Where lanes are inactive, only elements of active lanes are accessed. Memory between the elements
//! of a store keeps its content.

use super::Codegen;
use super::load_store::Access;
use crate::llvm::Value;
use crate::target::Level;
use crate::wir::Op;

/// The vectors that cover the elements of a chunk's lanes.
pub(super) struct Cluster {
    /// The lowest element, in bytes from the first lane's.
    low: i64,
    vectors: Vec<Cover>,
}

/// One vector of a cluster.
struct Cover {
    /// Its first element, counted from the lowest.
    start: u32,
    /// For each element, the lane that it belongs to, if a lane takes it from this vector.
    owners: Vec<Option<u32>>,
    /// For each lane, its element, if the lane takes it from this vector.
    taken: Vec<Option<u32>>,
}

impl Codegen<'_> {
    /// The vectors that cover the elements of lanes at these distances from the first lane; `None`: too many
    /// vectors are needed, or two lanes share an element where that is not allowed.
    pub(super) fn cluster(&self, lanes: &[i32], access: Access, whole: bool) -> Option<Cluster> {
        let wide = self.env.target.level() == Level::Avx512;
        let most = if wide { 4 } else { 2 };
        // Run-time masks are cheap only where the processor has mask registers.
        if !whole && !wide {
            return None;
        }
        let bytes = (access.bits / 8) as i32;
        let low = *lanes.iter().min()?;
        let mut elements = Vec::new();
        for lane in lanes {
            let distance = lane.checked_sub(low)?;
            if distance % bytes != 0 || distance / bytes >= (most * self.width) as i32 {
                return None;
            }
            elements.push((distance / bytes) as u32);
        }
        let unique = elements.iter().enumerate().all(|(at, element)| !elements[..at].contains(element));
        if !unique && (access.write || !whole) {
            return None;
        }
        let (width, span) = (self.width, elements.iter().max()? + 1);
        // The last vector ends with the last element.
        let count = span.div_ceil(width);
        let vectors = (0..count).map(|at| {
            let start = (at * width).min(span.saturating_sub(width));
            let mut cover =
                Cover { start, owners: vec![None; width as usize], taken: vec![None; width as usize] };
            for (lane, element) in elements.iter().enumerate().filter(|(_, e)| **e / width == at) {
                cover.owners[(element - start) as usize] = Some(lane as u32);
                cover.taken[lane] = Some(element - start);
            }
            cover
        });
        Some(Cluster { low: i64::from(low), vectors: vectors.collect() })
    }

    /// Loads one element for each lane; `base` is the address of the first lane's.
    pub(super) fn load_permuted(
        &self,
        base: Value,
        cluster: &Cluster,
        c: u32,
        access: Access,
        op: &Op,
    ) -> Value {
        let (ty, bytes) = (self.b.vec(self.int(access.bits), self.width), access.bits / 8);
        let whole = self.is_on(c, op);
        let mut result = None;
        for cover in &cluster.vectors {
            let pointer = self.covered(base, cluster, cover, bytes);
            // If there are several vectors, the elements fill at least one whole vector.
            let vector = if whole && (cluster.vectors.len() > 1 || cover.is_wide()) {
                self.b.load(ty, pointer, bytes)
            } else {
                let bits = if whole { self.reached(cover) } else { self.owned(cover, c, op) };
                self.masked_load(pointer, bytes, bits, self.b.zero(ty))
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
        c: u32,
        access: Access,
        op: &Op,
    ) {
        let bytes = access.bits / 8;
        let whole = self.is_on(c, op);
        for cover in cluster.vectors.iter().filter(|cover| cover.owners.iter().any(Option::is_some)) {
            let pointer = self.covered(base, cluster, cover, bytes);
            let indices: Vec<i32> = cover.owners.iter().map(|lane| lane.unwrap_or(0) as i32).collect();
            let vector = self.b.permute(value, &indices);
            if whole && cover.owners.iter().all(Option::is_some) {
                self.b.store(vector, pointer, bytes);
                continue;
            }
            let bits = self.owned(cover, c, op);
            self.masked_store(vector, pointer, bytes, bits);
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
    fn owned(&self, cover: &Cover, c: u32, op: &Op) -> Value {
        let bits: Vec<u64> = cover.owners.iter().map(|lane| u64::from(lane.is_some())).collect();
        let owned = self.b.const_ints(self.int(1), &bits);
        if self.is_on(c, op) {
            return owned;
        }
        let lanes = self.mask_chunk(self.scalar(op.uses[0]), c);
        let indices: Vec<i32> = cover.owners.iter().map(|lane| lane.unwrap_or(0) as i32).collect();
        self.b.and(self.b.permute(lanes, &indices), owned)
    }
}

impl Cover {
    /// Whether the last element of the vector belongs to a lane.
    fn is_wide(&self) -> bool {
        self.owners.last().is_some_and(Option::is_some)
    }
}
