//! Moves elements between memory and values, at host addresses that have been checked, by the strategy that
//! [`mem::select`](crate::mem::select) chose.
//!
//! No checks are emitted here: an address has been checked for the active lanes of the operation only.

use super::load_store::Addresses;
use super::mask::Mask;
use super::{Codegen, Repr};
use crate::llvm::Value;
use crate::wir;
use crate::wir::access::{Access, Active, Chunk, PerLane, Plan, Strategy};
use crate::wir::{Affine, Op};
use ptx::isa::Space;
use std::collections::HashMap;

impl Codegen<'_> {
    /// The element of memory that a register's value is stored as.
    pub(super) fn narrow(&self, value: Value, access: Access) -> Value {
        let ty = self.b.like(value.ty(), self.int(access.bits));
        let have = value.ty().element_bits();
        if have > access.bits {
            self.b.trunc(value, ty)
        } else if have < access.bits {
            self.b.zext(value, ty)
        } else {
            value
        }
    }

    /// The register's value that an element of memory is loaded as.
    pub(super) fn extend(&self, value: Value, access: Access, def: wir::Value) -> Value {
        let want = self.scalar_type(self.kind(def)).element_bits();
        let ty = self.b.like(value.ty(), self.int(want));
        if want <= access.bits {
            if want == access.bits { value } else { self.b.trunc(value, ty) }
        } else if access.signed {
            self.b.sext(value, ty)
        } else {
            self.b.zext(value, ty)
        }
    }

    /// Emits a load. Returns for each destination a vector of elements for each chunk.
    pub(super) fn load_places(
        &mut self,
        plan: &Plan,
        places: &Addresses,
        op: &Op,
        uniform: bool,
    ) -> Vec<Repr> {
        let access = plan.access;
        self.prefetch_grid_stride(access, plan.active.whole, places, op);
        self.remark_strategy(plan, uniform);
        let mask = self.mask(op.uses[0]);
        match &plan.strategy {
            Strategy::Scalar(_) => self.load_scalar(access, places, op, uniform),
            Strategy::Chunks { tiles, chunks } => {
                let tiled = match places {
                    Addresses::Affine(bases, _) => self.load_transposed(bases[0], tiles, access),
                    _ => HashMap::new(),
                };
                let mut loaded = Vec::new();
                for (c, chunk) in (0..).zip(chunks) {
                    let values = match tiled.get(&c) {
                        Some(value) => vec![*value],
                        None => self.load_elements(plan, chunk, places, c, mask),
                    };
                    loaded.push(self.extend_all(values, access, op));
                }
                by_destination(loaded, access)
            }
            Strategy::PerLane(chunks) => {
                let load = |(c, how)| self.load_per_lane(plan, how, places, c, mask);
                let loaded: Vec<Vec<Value>> = (0..).zip(chunks).map(load).collect();
                by_destination(self.extend_chunks(loaded, access, op), access)
            }
            Strategy::SpanTest { apart, permuted } => {
                let loaded = self.load_spans_or(plan, (apart, *permuted), places, mask);
                by_destination(self.extend_chunks(loaded, access, op), access)
            }
            Strategy::LocalWords => self.load_local(plan, places, op),
            Strategy::Atomic(_) => unreachable!("ptxvm bug: no strategy of a load"),
        }
    }

    /// Emits one scalar load of an address that all lanes share.
    fn load_scalar(&self, access: Access, places: &Addresses, op: &Op, uniform: bool) -> Vec<Repr> {
        let Addresses::Same(place) = places else { unreachable!("ptxvm bug: several addresses, one load") };
        let pointer = self.b.int_to_ptr(*place);
        let bytes = access.bits / 8;
        let load = |(at, def): (u64, &wir::Value)| {
            let from = self.b.offset(pointer, at * u64::from(bytes));
            let value = self.b.load(self.int(access.bits), from, bytes);
            let value = self.extend(value, access, *def);
            if uniform {
                return Repr::Scalar(value);
            }
            let vector = self.b.splat(value, self.width);
            Repr::Chunks(vec![vector; self.chunks() as usize])
        };
        (0..).zip(&op.defs).map(load).collect()
    }

    /// Loads the elements of a chunk. Returns a vector for each element of the access.
    pub(super) fn load_elements(
        &self,
        plan: &Plan,
        chunk: &Chunk,
        places: &Addresses,
        c: u32,
        mask: Mask,
    ) -> Vec<Value> {
        let access = plan.access;
        let bytes = access.bits / 8;
        let lanes = self.lanes(plan, mask, c);
        if let Chunk::Off = chunk {
            return vec![self.b.zero(self.b.vec(self.int(access.bits), self.width)); access.count as usize];
        }
        let (base, pattern) = match places {
            Addresses::Affine(bases, pattern) => (self.chunk_base(bases, pattern, c), pattern),
            Addresses::Rows(rows, pattern) => {
                return self.load_segmented(plan, chunk, (rows.scalars, pattern), c, mask);
            }
            Addresses::Same(_) | Addresses::ScaledIndex(_) | Addresses::Each(_) => {
                unreachable!("ptxvm bug: a chunk of lanes that are not at constant distances")
            }
        };
        match chunk {
            Chunk::Broadcast => {
                let pointer = self.b.int_to_ptr(base);
                let pointer = lanes.map_or(pointer, |lanes| self.sound(pointer, lanes));
                let value = |at: u32| {
                    let from = self.b.offset(pointer, u64::from(at * bytes));
                    let value = self.b.load(self.int(access.bits), from, bytes);
                    self.b.splat(value, self.width)
                };
                (0..access.count).map(value).collect()
            }
            Chunk::Vector => {
                self.fetch(base, c, access);
                self.run(base, c, plan, mask)
            }
            Chunk::WordParts => vec![self.parts_of_words(base, access, lanes)],
            Chunk::Covered(cluster) => {
                let load = |at: u32| {
                    let more = self.c64(u64::from(at * bytes));
                    let base = if at == 0 { base } else { self.b.add(base, more) };
                    self.load_permuted(base, cluster, access, lanes)
                };
                (0..access.count).map(load).collect()
            }
            Chunk::PerLane(how) => {
                let pointers = self.apart(base, &self.relative(pattern, c));
                self.gathered(how, pointers, lanes, access, access.bytes())
            }
            Chunk::Off | Chunk::Transposed | Chunk::FewLanes(_) | Chunk::Segments(_) => {
                unreachable!("ptxvm bug: no strategy of a load from lanes at constant distances")
            }
        }
    }

    /// Loads the elements of a chunk whose lanes have addresses of their own. Returns a vector for each
    /// element of the access.
    pub(super) fn load_per_lane(
        &self,
        plan: &Plan,
        how: &PerLane,
        places: &Addresses,
        c: u32,
        mask: Mask,
    ) -> Vec<Value> {
        let access = plan.access;
        if let PerLane::WordParts = how {
            let lanes = self.lanes(plan, mask, c);
            let parts = self.parts_of_gathered(places, c, access.bits * access.count, lanes);
            return self.sorted(parts, access);
        }
        let pointers = self.pointers(places, c);
        let lanes = self.lanes(plan, mask, c);
        self.gathered(how, pointers, lanes, access, access.bytes())
    }

    /// The elements of a chunk, as registers.
    fn extend_all(&self, loaded: Vec<Value>, access: Access, op: &Op) -> Vec<Value> {
        loaded.into_iter().zip(&op.defs).map(|(value, def)| self.extend(value, access, *def)).collect()
    }

    fn extend_chunks(&self, loaded: Vec<Vec<Value>>, access: Access, op: &Op) -> Vec<Vec<Value>> {
        loaded.into_iter().map(|chunk| self.extend_all(chunk, access, op)).collect()
    }

    /// The address of a chunk's first lane.
    pub(super) fn chunk_base(&self, bases: &[Value], pattern: &Affine, c: u32) -> Value {
        let first = pattern.lanes[(c * self.width) as usize];
        let base = if pattern.by_chunk { bases[c as usize] } else { bases[0] };
        self.b.add(base, self.c64(i64::from(first) as u64))
    }

    /// The mask of the lanes of a chunk that make an access; `None`: all of them.
    pub(super) fn lanes(&self, plan: &Plan, mask: Mask, c: u32) -> Option<Value> {
        match plan.active.chunks[c as usize] {
            Active::All => None,
            Active::None | Active::Known(_) | Active::Computed => Some(self.mask_chunk(mask, c)),
        }
    }

    /// Notes the strategy of an access.
    pub(super) fn remark_strategy(&self, plan: &Plan, uniform: bool) {
        for remark in plan.remarks(uniform, self.position.full) {
            self.remark("access", remark);
        }
    }

    /// Pointers at constant distances from one address.
    fn apart(&self, base: Value, lanes: &[i32]) -> Value {
        let added: Vec<u64> = lanes.iter().map(|l| i64::from(*l) as u64).collect();
        let added = self.b.const_ints(self.int(32), &added);
        self.b.gep(self.b.int_to_ptr(base), added)
    }

    /// The address if any of these lanes is active, and otherwise the address of scratch memory: an address
    /// without active lanes has not been checked.
    pub(super) fn sound(&self, pointer: Value, lanes: Value) -> Value {
        self.b.select(self.any(lanes), pointer, self.entry.scratch.expect("made at the start"))
    }

    /// Consecutive elements of all lanes of a chunk, by element.
    pub(super) fn run(&self, base: Value, c: u32, plan: &Plan, mask: Mask) -> Vec<Value> {
        self.by_element(self.run_part(base, (0, self.width), c, plan, mask), plan.access)
    }

    /// Consecutive elements of `count` lanes of a chunk, starting with lane `from`. If lanes are inactive,
    /// only the active lanes' elements have been checked. A masked load waits for the memory of inactive
    /// lanes too, so if no lane is active, it loads from scratch memory.
    pub(super) fn run_part(
        &self,
        base: Value,
        (from, count): (u32, u32),
        c: u32,
        plan: &Plan,
        mask: Mask,
    ) -> Value {
        let access = plan.access;
        let pointer = self.b.int_to_ptr(base);
        let ty = self.b.vec(self.int(access.bits), count * access.count);
        let Some(lanes) = self.lanes(plan, mask, c) else {
            return self.b.load(ty, pointer, access.bytes());
        };
        let bits = self.part_of(lanes, (from, count));
        let pointer = match access.space {
            Space::Global | Space::Generic => self.sound(pointer, bits),
            _ => pointer,
        };
        let bits = self.interleave(&vec![bits; access.count as usize]);
        self.masked_load(access.space, pointer, access.bits / 8, bits, self.b.zero(ty))
    }

    /// The mask of `count` lanes of a chunk, starting with lane `from`.
    pub(super) fn part_of(&self, lanes: Value, (from, count): (u32, u32)) -> Value {
        if count == self.width { lanes } else { self.b.slice(lanes, from, count) }
    }

    /// One vector for each element, from the consecutive elements of a chunk's lanes.
    pub(super) fn by_element(&self, all: Value, access: Access) -> Vec<Value> {
        if access.count == 1 {
            return vec![all];
        }
        let pick = |at: u32| {
            let indices: Vec<i32> = (0..self.width).map(|lane| (lane * access.count + at) as i32).collect();
            self.b.permute(all, &indices)
        };
        (0..access.count).map(pick).collect()
    }

    /// Loads bytes or halves whose lanes are four bytes apart as parts of aligned words, which are in the
    /// same pages.
    fn parts_of_words(&self, base: Value, access: Access, lanes: Option<Value>) -> Value {
        let ty = self.b.vec(self.int(32), self.width);
        let aligned = self.b.and(base, self.c64(!3));
        let pointer = self.b.int_to_ptr(aligned);
        let words = match lanes {
            None => self.b.load(ty, pointer, 4),
            Some(lanes) => self.masked_load(access.space, pointer, 4, lanes, self.b.zero(ty)),
        };
        let more = self.b.and(base, self.c64(3));
        let more = self.b.trunc(self.b.shl(more, self.c64(3)), self.int(32));
        let parts = self.b.lshr(words, self.b.splat(more, self.width));
        self.b.trunc(parts, self.b.vec(self.int(access.bits), self.width))
    }

    /// Gathers elements of 8 or 16 bits as parts of aligned words, which are in the same pages: gather
    /// instructions exist for words only.
    fn parts_of_gathered(&self, places: &Addresses, c: u32, bits: u32, lanes: Option<Value>) -> Value {
        let ty = self.b.vec(self.int(32), self.width);
        let three = self.b.const_int(ty, 3);
        let (pointers, low) = match places {
            // The index stays within 32 bits, since the bounds check of narrow elements ensures it.
            Addresses::ScaledIndex(spread) => {
                let steps = self.b.mul(spread.index[c as usize], self.b.const_int(ty, spread.scale));
                let base = self.b.trunc(spread.base, self.int(32));
                let low = self.b.and(self.b.add(steps, self.b.splat(base, self.width)), three);
                let bytes = self.b.sub(steps, low);
                (self.b.gep_of(self.int(8), self.b.int_to_ptr(spread.base), bytes), low)
            }
            Addresses::Each(chunks) => {
                let at = chunks[c as usize];
                let aligned = self.b.and(at, self.b.const_int(at.ty(), !3));
                (self.b.int_to_ptr(aligned), self.b.and(self.b.trunc(at, ty), three))
            }
            Addresses::Same(_) | Addresses::Affine(..) | Addresses::Rows(..) => {
                unreachable!("ptxvm bug: places of lanes together")
            }
        };
        let words = self.masked_gather(pointers, 4, lanes, self.b.zero(ty));
        let parts = self.b.lshr(words, self.b.shl(low, self.b.const_int(ty, 3)));
        self.b.trunc(parts, self.b.vec(self.int(bits), self.width))
    }

    /// The pointers of a chunk, where each lane has its own.
    pub(super) fn pointers(&self, places: &Addresses, c: u32) -> Value {
        match places {
            Addresses::ScaledIndex(spread) => self.scaled_index_pointers(spread, c),
            Addresses::Each(chunks) => self.b.int_to_ptr(chunks[c as usize]),
            Addresses::Same(_) | Addresses::Affine(..) | Addresses::Rows(..) => {
                unreachable!("ptxvm bug: places of lanes together")
            }
        }
    }

    /// Gathers the elements of the active lanes of a chunk (`None`: of all), at addresses that are multiples
    /// of `align`. Returns one vector for each element.
    pub(super) fn gathered(
        &self,
        how: &PerLane,
        pointers: Value,
        active: Option<Value>,
        access: Access,
        align: u32,
    ) -> Vec<Value> {
        let ty = self.b.vec(self.int(access.bits), self.width);
        match how {
            PerLane::Wide => self.gather_wide(pointers, active, access, align),
            PerLane::FewLanes(few) => {
                let mut all = self.b.zero(ty);
                for lane in few {
                    let value = self.b.load(self.int(access.bits), self.b.extract(pointers, *lane), align);
                    all = self.b.insert(all, value, *lane);
                }
                vec![all]
            }
            PerLane::Masked => vec![self.masked_gather(pointers, align, active, self.b.zero(ty))],
            PerLane::WordParts => unreachable!("ptxvm bug: words are gathered from addresses of their own"),
        }
    }

    /// Emits a store. The values are given by chunk and element.
    pub(super) fn store_places(&mut self, plan: &Plan, places: &Addresses, op: &Op, values: &[Vec<Value>]) {
        let mask = self.mask(op.uses[0]);
        self.remark_strategy(plan, false);
        match &plan.strategy {
            Strategy::Scalar(last) => self.store_scalar(plan.access, *last, places, values, mask),
            Strategy::Chunks { tiles, chunks } => {
                if let Addresses::Affine(bases, _) = places {
                    tiles.iter().for_each(|tile| self.store_tile(bases[0], tile, plan.access, values));
                }
                for (c, chunk) in (0..).zip(chunks).filter(|(_, chunk)| !matches!(chunk, Chunk::Transposed)) {
                    self.store_elements(plan, chunk, places, c, mask, &values[c as usize]);
                }
            }
            Strategy::PerLane(chunks) => {
                for ((c, how), values) in (0..).zip(chunks).zip(values) {
                    let pointers = self.pointers(places, c);
                    self.scattered(how, pointers, self.lanes(plan, mask, c), plan.access, values);
                }
            }
            Strategy::LocalWords => self.store_local(plan, places, op, values),
            Strategy::SpanTest { .. } | Strategy::Atomic(_) => {
                unreachable!("ptxvm bug: no strategy of a store")
            }
        }
    }

    /// Emits one scalar store of the value of the last active lane.
    fn store_scalar(
        &self,
        access: Access,
        last: Option<u32>,
        places: &Addresses,
        values: &[Vec<Value>],
        mask: Mask,
    ) {
        let Addresses::Same(place) = places else { unreachable!("ptxvm bug: several addresses, one store") };
        let bytes = access.bits / 8;
        let pointer = self.b.int_to_ptr(*place);
        for at in 0..access.count {
            let chunks: Vec<Value> = values.iter().map(|chunk| chunk[at as usize]).collect();
            let value = match last {
                None if self.lanes == 1 => chunks[0],
                Some(lane) => self.b.extract(chunks[(lane / self.width) as usize], lane % self.width),
                None => {
                    let (_, _, highest) = self.running(self.word(mask), None);
                    self.lane_of(&chunks, highest)
                }
            };
            self.b.store(value, self.b.offset(pointer, u64::from(at * bytes)), bytes);
        }
    }

    /// Stores the elements of a chunk.
    fn store_elements(
        &self,
        plan: &Plan,
        chunk: &Chunk,
        places: &Addresses,
        c: u32,
        mask: Mask,
        values: &[Value],
    ) {
        let access = plan.access;
        let bytes = access.bits / 8;
        let lanes = self.lanes(plan, mask, c);
        if let Chunk::Off = chunk {
            return;
        }
        let (base, pattern) = match places {
            Addresses::Affine(bases, pattern) => (self.chunk_base(bases, pattern, c), pattern),
            Addresses::Rows(rows, pattern) => {
                return self.store_segmented(plan, chunk, (rows.scalars, pattern), c, mask, values);
            }
            Addresses::Same(_) | Addresses::ScaledIndex(_) | Addresses::Each(_) => {
                unreachable!("ptxvm bug: a chunk of lanes that are not at constant distances")
            }
        };
        let distances = self.relative(pattern, c);
        match chunk {
            Chunk::FewLanes(few) => {
                for lane in few {
                    let more = self.c64(i64::from(distances[*lane as usize]) as u64);
                    let pointer = self.b.int_to_ptr(self.b.add(base, more));
                    for (at, value) in (0..).zip(values) {
                        let value = self.b.extract(*value, *lane);
                        self.b.store(value, self.b.offset(pointer, at * u64::from(bytes)), bytes);
                    }
                }
            }
            Chunk::Vector => {
                self.fetch(base, c, access);
                let pointer = self.b.int_to_ptr(base);
                let all = self.interleave(values);
                match lanes {
                    None => self.b.store(all, pointer, access.bytes()),
                    Some(lanes) => {
                        let bits = self.interleave(&vec![lanes; access.count as usize]);
                        self.masked_store(access.space, all, pointer, bytes, bits);
                    }
                }
            }
            Chunk::Covered(cluster) => self.store_permuted(values[0], base, cluster, access, lanes),
            Chunk::PerLane(how) => {
                let pointers = self.apart(base, &distances);
                self.scattered(how, pointers, lanes, access, values);
            }
            Chunk::Off | Chunk::Transposed | Chunk::Broadcast | Chunk::WordParts | Chunk::Segments(_) => {
                unreachable!("ptxvm bug: no strategy of a store to lanes at constant distances")
            }
        }
    }

    /// Interleaves the elements of several vectors.
    pub(super) fn interleave(&self, vectors: &[Value]) -> Value {
        let width = vectors[0].ty().lanes() as i32;
        match vectors {
            [one] => *one,
            [a, b] => {
                let indices: Vec<i32> = (0..2 * width).map(|i| i / 2 + i % 2 * width).collect();
                self.b.shuffle(*a, *b, &indices)
            }
            many => {
                let mut level: Vec<Value> = many.to_vec();
                let count = level.len() as i32;
                while level.len() > 1 {
                    level = level.chunks(2).map(|pair| self.b.concat(pair[0], pair[1])).collect();
                }
                let indices: Vec<i32> = (0..count * width).map(|i| i / count + i % count * width).collect();
                self.b.permute(level[0], &indices)
            }
        }
    }

    /// Scatters the elements of the active lanes of a chunk (`None`: of all).
    pub(super) fn scattered(
        &self,
        how: &PerLane,
        pointers: Value,
        active: Option<Value>,
        access: Access,
        values: &[Value],
    ) {
        let bytes = access.bits / 8;
        match how {
            PerLane::FewLanes(few) => {
                for lane in few {
                    let pointer = self.b.extract(pointers, *lane);
                    for (at, value) in (0..).zip(values) {
                        let place = self.b.offset(pointer, at * u64::from(bytes));
                        self.b.store(self.b.extract(*value, *lane), place, bytes);
                    }
                }
            }
            PerLane::Masked => self.masked_scatter(values[0], pointers, bytes, active),
            PerLane::Wide => self.scatter_wide(pointers, active, access, values),
            PerLane::WordParts => unreachable!("ptxvm bug: a store of parts of words"),
        }
    }

    /// The value of a lane.
    pub(super) fn lane_of(&self, chunks: &[Value], lane: Value) -> Value {
        let place = self.entry.scratch.expect("made at the start");
        let bytes = chunks[0].ty().element_bits() / 8;
        for (c, chunk) in chunks.iter().enumerate() {
            let at = c as u64 * u64::from(self.width * bytes);
            self.b.store(*chunk, self.b.offset(place, at), bytes);
        }
        self.lane_at(chunks, lane)
    }

    /// The value of another lane, after [`Codegen::lane_of`] has stored these chunks.
    pub(super) fn lane_at(&self, chunks: &[Value], lane: Value) -> Value {
        let place = self.entry.scratch.expect("made at the start");
        let (ty, bytes) = (chunks[0].ty().element(), chunks[0].ty().element_bits() / 8);
        let offset = self.b.mul(lane, self.c32(bytes));
        let offset = self.b.zext(offset, self.int(64));
        self.b.load(ty, self.b.gep(place, offset), bytes)
    }
}

/// What was loaded by chunk and element, as a value for each destination.
fn by_destination(loaded: Vec<Vec<Value>>, access: Access) -> Vec<Repr> {
    let mut all: Vec<Vec<Value>> = vec![Vec::new(); access.count as usize];
    for chunk in loaded {
        all.iter_mut().zip(chunk).for_each(|(list, value)| list.push(value));
    }
    all.into_iter().map(Repr::Chunks).collect()
}
