//! Selects how elements move between memory and values, at host addresses that have been checked.
//!
//! No checks are emitted here: an address has been checked for the active lanes of the operation only.

use super::load_store::{Access, Addresses};
use super::{Codegen, Repr};
use crate::llvm::Value;
use crate::target::Level;
use crate::tuning::SCALAR_ACCESS_MAX_LANES;
use crate::wir;
use crate::wir::Op;
use ptx::isa::Space;

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
        access: Access,
        places: &Addresses,
        op: &Op,
        uniform: bool,
    ) -> Vec<Repr> {
        let (count, element) = (access.count as usize, self.int(access.bits));
        let bytes = access.bits / 8;
        self.prefetch_grid_stride(access, places, op);
        match places {
            Addresses::Same(place) => {
                self.applied(
                    "access",
                    if uniform { "one scalar load" } else { "one scalar load, broadcast" },
                );
                let pointer = self.b.int_to_ptr(*place);
                let mut reps = Vec::new();
                for at in 0..count {
                    let from = self.b.offset(pointer, at as u64 * u64::from(bytes));
                    let value = self.b.load(element, from, bytes);
                    let value = self.extend(value, access, op.defs[at]);
                    reps.push(if uniform {
                        Repr::Scalar(value)
                    } else {
                        let vector = self.b.splat(value, self.width);
                        Repr::Chunks(vec![vector; self.chunks() as usize])
                    });
                }
                reps
            }
            Addresses::Affine(bases, pattern) => {
                let mut all: Vec<Vec<Value>> = vec![Vec::new(); count];
                let tiles = self.transposed_rows(pattern, access, self.whole(op));
                let tiled = self.load_transposed(bases[0], &tiles, access);
                for c in 0..self.chunks() {
                    if self.is_off(c, op) {
                        let nothing = self.b.zero(self.b.vec(element, self.width));
                        for (list, def) in all.iter_mut().zip(&op.defs) {
                            list.push(self.extend(nothing, access, *def));
                        }
                        continue;
                    }
                    let lanes = self.relative(pattern, c);
                    let first = pattern.lanes[(c * self.width) as usize];
                    let base = if pattern.by_chunk { bases[c as usize] } else { bases[0] };
                    let base = self.b.add(base, self.c64(i64::from(first) as u64));
                    let step = access.bytes() as i32;
                    let loaded = if let Some(value) = tiled.get(&c) {
                        self.applied("access", "rows of several chunks, transposed in registers");
                        vec![*value]
                    } else if lanes.iter().all(|l| *l == 0) {
                        self.applied("access", "one scalar load for a chunk, broadcast");
                        let pointer = self.b.int_to_ptr(base);
                        let pointer = if self.is_on(c, op) {
                            pointer
                        } else {
                            self.sound(pointer, self.mask_chunk(self.scalar(op.uses[0]), c))
                        };
                        let value = |at: usize| {
                            let from = self.b.offset(pointer, at as u64 * u64::from(bytes));
                            let value = self.b.load(element, from, bytes);
                            self.b.splat(value, self.width)
                        };
                        (0..count).map(value).collect()
                    } else if lanes.iter().enumerate().all(|(i, l)| *l == i as i32 * step) {
                        self.applied("access", self.by_mask("one vector load for a chunk"));
                        self.fetch(base, c, access);
                        self.run(base, c, access, op)
                    } else if access.count == 1
                        && access.bits < 32
                        && lanes.iter().enumerate().all(|(i, l)| *l == i as i32 * 4)
                    {
                        self.applied("access", "a vector of words that have the elements, shifted");
                        vec![self.parts_of_words(base, c, access, op)]
                    } else if let Some(cluster) = self.cluster(&lanes, access, self.is_on(c, op)) {
                        self.applied(
                            "access",
                            self.by_mask("vectors that cover a chunk's elements, permuted"),
                        );
                        let load = |at: usize| {
                            let more = self.c64(at as u64 * u64::from(bytes));
                            let base = if at == 0 { base } else { self.b.add(base, more) };
                            self.load_permuted(base, &cluster, c, access, op)
                        };
                        (0..count).map(load).collect()
                    } else {
                        self.missed(
                            "access",
                            "a gather: lanes are at constant distances that no vectors cover",
                        );
                        self.gathered(self.apart(base, &lanes), c, access, access.bytes(), op)
                    };
                    for ((list, value), def) in all.iter_mut().zip(loaded).zip(&op.defs) {
                        list.push(self.extend(value, access, *def));
                    }
                }
                all.into_iter().map(Repr::Chunks).collect()
            }
            Addresses::Rows(rows, pattern) if pattern.splits(self.width as usize) => {
                self.load_segmented(access, *rows, pattern, op)
            }
            Addresses::Rows(rows, pattern) => {
                let unrolled = self.unrolled(*rows, pattern);
                self.load_places(access, &unrolled, op, uniform)
            }
            Addresses::ScaledIndex(_) | Addresses::Each(_) => {
                let mut all: Vec<Vec<Value>> = vec![Vec::new(); count];
                let bits = access.bits * access.count;
                if !matches!(places, Addresses::ScaledIndex(spread) if spread.scale == u64::from(access.bytes()))
                {
                    self.missed("access", "a gather: each lane has an address of its own");
                }
                let gather = |emit: &mut Self, c: u32| {
                    if bits < 32 && emit.env.target.level() == Level::Avx512 {
                        let parts = emit.parts_of_gathered(places, c, bits, op);
                        return emit.sorted(parts, access);
                    }
                    let pointers = emit.pointers(places, c);
                    emit.gathered(pointers, c, access, access.bytes(), op)
                };
                for loaded in self.load_contiguous_or(places, access, op, gather) {
                    for ((list, value), def) in all.iter_mut().zip(loaded).zip(&op.defs) {
                        list.push(self.extend(value, access, *def));
                    }
                }
                all.into_iter().map(Repr::Chunks).collect()
            }
        }
    }

    /// The text of a remark about an access, in a full or a masked copy of its block.
    fn by_mask(&self, how: &'static str) -> std::borrow::Cow<'static, str> {
        if self.full { how.into() } else { format!("{how}, under a mask").into() }
    }

    /// Pointers at constant distances from one address.
    fn apart(&self, base: Value, lanes: &[i32]) -> Value {
        let added: Vec<u64> = lanes.iter().map(|l| i64::from(*l) as u64).collect();
        let added = self.b.const_ints(self.int(32), &added);
        self.b.gep(self.b.int_to_ptr(base), added)
    }

    /// The address if any of these lanes is active, and otherwise the address of scratch memory: an address
    /// without active lanes has not been checked.
    fn sound(&self, pointer: Value, lanes: Value) -> Value {
        self.b.select(self.any(lanes), pointer, self.scratch.expect("made at the start"))
    }

    /// Consecutive elements of all lanes of a chunk, by element.
    pub(super) fn run(&self, base: Value, c: u32, access: Access, op: &Op) -> Vec<Value> {
        self.by_element(self.run_part(base, (0, self.width), c, access, op), access)
    }

    /// Consecutive elements of `lanes` lanes of a chunk, starting with lane `from`. If lanes are inactive,
    /// only the active lanes' elements have been checked. A masked load waits for the memory of inactive
    /// lanes too, so if no lane is active, it loads from scratch memory.
    pub(super) fn run_part(
        &self,
        base: Value,
        (from, lanes): (u32, u32),
        c: u32,
        access: Access,
        op: &Op,
    ) -> Value {
        let pointer = self.b.int_to_ptr(base);
        let ty = self.b.vec(self.int(access.bits), lanes * access.count);
        if self.is_on(c, op) {
            return self.b.load(ty, pointer, access.bytes());
        }
        let bits = self.mask_part((from, lanes), c, op);
        let pointer = match access.space {
            Space::Global | Space::Generic => self.sound(pointer, bits),
            _ => pointer,
        };
        let bits = self.interleave(&vec![bits; access.count as usize]);
        self.masked_load(pointer, access.bits / 8, bits, self.b.zero(ty))
    }

    /// The mask of `lanes` lanes of a chunk, starting with lane `from`.
    pub(super) fn mask_part(&self, (from, lanes): (u32, u32), c: u32, op: &Op) -> Value {
        let bits = self.mask_chunk(self.scalar(op.uses[0]), c);
        if lanes == self.width { bits } else { self.b.slice(bits, from, lanes) }
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
    fn parts_of_words(&self, base: Value, c: u32, access: Access, op: &Op) -> Value {
        let ty = self.b.vec(self.int(32), self.width);
        let aligned = self.b.and(base, self.c64(!3));
        let pointer = self.b.int_to_ptr(aligned);
        let words = if self.is_on(c, op) {
            self.b.load(ty, pointer, 4)
        } else {
            let bits = self.mask_chunk(self.scalar(op.uses[0]), c);
            self.masked_load(pointer, 4, bits, self.b.zero(ty))
        };
        let more = self.b.and(base, self.c64(3));
        let more = self.b.trunc(self.b.shl(more, self.c64(3)), self.int(32));
        let parts = self.b.lshr(words, self.b.splat(more, self.width));
        self.b.trunc(parts, self.b.vec(self.int(access.bits), self.width))
    }

    /// Gathers elements of 8 or 16 bits as parts of aligned words, which are in the same pages: gather
    /// instructions exist for words only.
    fn parts_of_gathered(&self, places: &Addresses, c: u32, bits: u32, op: &Op) -> Value {
        let ty = self.b.vec(self.int(32), self.width);
        let three = self.b.const_int(ty, 3);
        let lanes = if self.is_on(c, op) {
            self.b.ones(self.bits_type())
        } else {
            self.mask_chunk(self.scalar(op.uses[0]), c)
        };
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

    /// Gathers the elements of the active lanes of a chunk, at addresses that are multiples of `align`.
    /// Returns one vector for each element.
    pub(super) fn gathered(
        &self,
        pointers: Value,
        c: u32,
        access: Access,
        align: u32,
        op: &Op,
    ) -> Vec<Value> {
        let whole = self.is_on(c, op);
        let lanes =
            if whole { self.b.ones(self.bits_type()) } else { self.mask_chunk(self.scalar(op.uses[0]), c) };
        if access.count > 1 {
            return self.gather_wide(pointers, (lanes, whole), access, align);
        }
        let ty = self.b.vec(self.int(access.bits), self.width);
        if let Some(few) = self.known_few(lanes) {
            let mut all = self.b.zero(ty);
            for lane in few {
                let value = self.b.load(self.int(access.bits), self.b.extract(pointers, lane), align);
                all = self.b.insert(all, value, lane);
            }
            return vec![all];
        }
        vec![self.masked_gather(pointers, align, lanes, self.b.zero(ty))]
    }

    /// The lanes of a chunk of a mask, if they are constant and few.
    fn known_few(&self, lanes: Value) -> Option<Vec<u32>> {
        let on = lanes.bits()?;
        (on.count_ones() <= SCALAR_ACCESS_MAX_LANES)
            .then(|| (0..self.width).filter(|lane| on >> lane & 1 != 0).collect())
    }

    /// Emits a store. The values are given by chunk and element.
    pub(super) fn store_places(
        &mut self,
        access: Access,
        places: &Addresses,
        op: &Op,
        values: &[Vec<Value>],
    ) {
        let bytes = access.bits / 8;
        let mask = self.scalar(op.uses[0]);
        let whole = self.whole(op);
        match places {
            Addresses::Same(place) => {
                self.applied("access", "one scalar store of the last lane's value");
                // If all lanes store to one address, the value of the last lane stays.
                let pointer = self.b.int_to_ptr(*place);
                for at in 0..access.count {
                    let value = if whole {
                        let last = values.last().expect("there are chunks");
                        self.b.extract(last[at as usize], self.width - 1)
                    } else {
                        let chunks: Vec<Value> = values.iter().map(|chunk| chunk[at as usize]).collect();
                        match self.last_of(mask) {
                            Some(lane) => {
                                self.b.extract(chunks[(lane / self.width) as usize], lane % self.width)
                            }
                            None => {
                                let (_, _, highest) = self.running(mask, None);
                                self.lane_of(&chunks, highest)
                            }
                        }
                    };
                    self.b.store(value, self.b.offset(pointer, u64::from(at * bytes)), bytes);
                }
            }
            Addresses::Affine(bases, pattern) => {
                let tiles = self.transposed_rows(pattern, access, whole);
                for tile in &tiles {
                    self.applied("access", "rows of several chunks, transposed in registers");
                    self.store_tile(bases[0], tile, access, values);
                }
                for c in (0..self.chunks()).filter(|c| !Self::is_transposed(&tiles, *c)) {
                    if self.is_off(c, op) {
                        continue;
                    }
                    let whole = self.is_on(c, op);
                    let lanes = self.relative(pattern, c);
                    let first = pattern.lanes[(c * self.width) as usize];
                    let base = if pattern.by_chunk { bases[c as usize] } else { bases[0] };
                    let base = self.b.add(base, self.c64(i64::from(first) as u64));
                    let step = access.bytes() as i32;
                    if let Some(few) = self.few(&lanes, c, op) {
                        self.applied("access", "scalar stores of the few lanes of a constant mask");
                        for lane in few {
                            let more = self.c64(i64::from(lanes[lane as usize]) as u64);
                            let pointer = self.b.int_to_ptr(self.b.add(base, more));
                            for (at, value) in (0..).zip(&values[c as usize]) {
                                let value = self.b.extract(*value, lane);
                                self.b.store(value, self.b.offset(pointer, at * u64::from(bytes)), bytes);
                            }
                        }
                    } else if lanes.iter().enumerate().all(|(i, l)| *l == i as i32 * step) {
                        self.applied("access", self.by_mask("one vector store for a chunk"));
                        self.fetch(base, c, access);
                        let pointer = self.b.int_to_ptr(base);
                        let all = self.interleave(&values[c as usize]);
                        if whole {
                            self.b.store(all, pointer, access.bytes());
                        } else {
                            let bits = self.mask_chunk(mask, c);
                            let bits = self.interleave(&vec![bits; access.count as usize]);
                            self.masked_store(all, pointer, bytes, bits);
                        }
                    } else if let Some(cluster) =
                        self.cluster(&lanes, access, whole).filter(|_| access.count == 1)
                    {
                        self.applied(
                            "access",
                            self.by_mask("permuted, vectors that cover a chunk's elements"),
                        );
                        self.store_permuted(values[c as usize][0], base, &cluster, c, access, op);
                    } else {
                        self.missed(
                            "access",
                            "a scatter: lanes are at constant distances that no vectors cover",
                        );
                        let pointers = self.apart(base, &lanes);
                        self.scattered(pointers, c, access, op, &values[c as usize]);
                    }
                }
            }
            Addresses::Rows(rows, pattern) if pattern.splits(self.width as usize) => {
                self.store_segmented(access, *rows, pattern, op, values);
            }
            Addresses::Rows(rows, pattern) => {
                let unrolled = self.unrolled(*rows, pattern);
                self.store_places(access, &unrolled, op, values);
            }
            Addresses::ScaledIndex(_) | Addresses::Each(_) => {
                self.missed("access", "a scatter: each lane has an address of its own");
                for c in 0..self.chunks() {
                    let pointers = self.pointers(places, c);
                    self.scattered(pointers, c, access, op, &values[c as usize]);
                }
            }
        }
    }

    /// The lanes of a chunk whose elements are stored one by one, if they are constant and few. Of several
    /// lanes that store to one address, only the last one is included.
    fn few(&self, lanes: &[i32], c: u32, op: &Op) -> Option<Vec<u32>> {
        let on = match self.is_on(c, op) {
            true => self.b.ones(self.bits_type()),
            false => self.mask_chunk(self.scalar(op.uses[0]), c),
        };
        let bits = on.bits()?;
        let last = (0..self.width).rev().find(|lane| bits >> lane & 1 != 0)?;
        if lanes.iter().all(|lane| *lane == lanes[0]) {
            return Some(vec![last]);
        }
        self.known_few(on)
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

    pub(super) fn scattered(&self, pointers: Value, c: u32, access: Access, op: &Op, values: &[Value]) {
        let lanes = if self.is_on(c, op) {
            self.b.ones(self.bits_type())
        } else {
            self.mask_chunk(self.scalar(op.uses[0]), c)
        };
        if let Some(few) = self.known_few(lanes) {
            for lane in few {
                let pointer = self.b.extract(pointers, lane);
                for (at, value) in (0..).zip(values) {
                    let place = self.b.offset(pointer, at * u64::from(access.bits / 8));
                    self.b.store(self.b.extract(*value, lane), place, access.bits / 8);
                }
            }
            return;
        }
        match values {
            [value] => self.masked_scatter(*value, pointers, access.bits / 8, lanes),
            values => self.scatter_wide(pointers, lanes, self.is_on(c, op), access, values),
        }
    }

    /// The value of a lane.
    pub(super) fn lane_of(&self, chunks: &[Value], lane: Value) -> Value {
        let place = self.scratch.expect("made at the start");
        let bytes = chunks[0].ty().element_bits() / 8;
        for (c, chunk) in chunks.iter().enumerate() {
            let at = c as u64 * u64::from(self.width * bytes);
            self.b.store(*chunk, self.b.offset(place, at), bytes);
        }
        self.lane_at(chunks, lane)
    }

    /// The last lane of a constant mask, if the mask is not empty.
    fn last_of(&self, mask: Value) -> Option<u32> {
        let lane = |lane: &u32| self.word(mask, *lane, 1) == Some(1);
        mask.is_constant().then(|| (0..self.lanes).rev().find(lane)).flatten()
    }

    /// The value of another lane, after [`Codegen::lane_of`] has stored these chunks.
    pub(super) fn lane_at(&self, chunks: &[Value], lane: Value) -> Value {
        let place = self.scratch.expect("made at the start");
        let (ty, bytes) = (chunks[0].ty().element(), chunks[0].ty().element_bits() / 8);
        let offset = self.b.mul(lane, self.c32(bytes));
        let offset = self.b.zext(offset, self.int(64));
        self.b.load(ty, self.b.gep(place, offset), bytes)
    }
}
