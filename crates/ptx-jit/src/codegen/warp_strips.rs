//! Emits warp strips: a section of a coarse warp that is the whole CTA executes warp by warp instead of
//! instruction by instruction. [`opt::warp_strips`](crate::opt::warp_strips) decides which blocks begin a
//! section, in which others it continues, and which operations end it.
//!
//! A coarse warp of many warps has more lanes than fit into registers, so instruction by instruction every
//! value goes through memory. Between two barriers no warp waits for another, so each may execute the whole
//! section before the next starts: a **strip**. Values of a strip, and shared memory that it accesses at
//! constant addresses, stay in registers: a **row** is one vector of that memory, loaded at most once and
//! stored at most once in a strip. Loads become permutations of rows, and stores become blends. So the steps
//! of a sorting network, a transform or a reduction tree are a few instructions for a row.
//!
//! Invariants: within a warp, accesses happen in program order, all lanes at once; a section ends at every
//! barrier. A row lies within the kernel's own variables, which no other OS thread accesses while the CTA
//! executes, so storing unchanged elements again is not observable. Code for all chunks stands before the
//! strips or behind them, never between.

use super::mask::{LaneBits, Mask};
use super::mask_tree::{Made, Term as MaskTerm};
use super::strip_vectors::{SectionVectors, StripVectors, VectorId, Wanted, filled};
use super::{Codegen, LANES, Repr};
use crate::llvm::{Block, Value};
use crate::tuning::{MASK_PERMUTE_MAX_DEPTH, WARP_STRIP_MAX_MASKS, WARP_STRIPS_PER_LLVM_BLOCK};
use crate::wir;
use crate::wir::access::{Plan, StripPlace};
use crate::wir::decision::Decision;
use crate::wir::{BlockId, Kind, Op};
use ptx::ir::{Inst, Src};
use ptx::isa::BoolOp;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};

/// A section that is being emitted.
pub(super) struct Section {
    /// The LLVM block for code that all strips need.
    first: Block,
    /// The LLVM block of each strip; there is one for each warp.
    strips: Vec<Block>,
    /// The LLVM block for code that needs all strips.
    last: Block,
    /// For each strip, its rows: the value of the row, and whether it has still to be stored to memory.
    rows: Vec<BTreeMap<i64, (VectorId, bool)>>,
    /// The vectors that the strips have made.
    pub(super) vectors: SectionVectors,
    masks: Cell<u32>,
}

/// A mask that is joined in memory if it is read as a whole.
pub(super) struct Joined {
    word: Value,
    /// The last block of its section. The next section uses the memory again.
    last: Block,
    /// The offset in bytes in the memory for joined masks.
    offset: u64,
    parts: Vec<(Block, Value)>,
    /// Whether its words are read from that memory.
    wanted: Cell<bool>,
    /// Whether it is read as one number.
    read: Cell<bool>,
}

/// State that outlives a section.
#[derive(Default)]
pub(super) struct WarpStrips {
    pub(super) open: Option<Section>,
    /// The memory for joined masks.
    room: Option<Value>,
    joined: RefCell<Vec<Joined>>,
    /// The vectors that strips read.
    pub(super) vectors: StripVectors,
    /// The block that continues the section of its predecessor.
    pub(super) fused: Option<BlockId>,
    /// For each phi of such a block, the value that it is.
    fused_phis: HashMap<wir::Value, wir::Value>,
}

impl Codegen<'_> {
    /// Prepares for sections, if the function may have any.
    pub(super) fn find_warp_strips(&mut self) {
        let func = self.job.func;
        if func.blocks.iter().any(|block| block.strips.is_some()) {
            let bits = self.b.vec(self.int(8), WARP_STRIP_MAX_MASKS * self.lanes / 8);
            self.passes.warp_strips.room = Some(self.b.alloca(bits, 64));
        }
    }

    pub(super) fn in_section(&self) -> bool {
        self.passes.warp_strips.open.is_some()
    }

    /// Moves the builder to the code of a chunk.
    pub(super) fn at_chunk(&self, c: u32) {
        if let Some(section) = &self.passes.warp_strips.open {
            self.b.position_at_end(section.strips[self.strip(c)]);
        }
    }

    /// Moves the builder to the code that precedes all strips.
    pub(super) fn at_first(&self) {
        if let Some(section) = &self.passes.warp_strips.open {
            self.b.position_at_end(section.first);
        }
    }

    /// Moves the builder to the code that follows all strips.
    pub(super) fn at_last(&self) {
        if let Some(section) = &self.passes.warp_strips.open {
            self.b.position_at_end(section.last);
        }
    }

    /// The strip of a chunk.
    pub(super) fn strip(&self, c: u32) -> usize {
        (c * self.width / LANES) as usize
    }

    /// Begins a block: opens a section if the block begins one. An open section continues.
    pub(super) fn begin_section(&mut self, node: &wir::Block) {
        if self.in_section() || self.passes.warp_strips.room.is_none() {
            return;
        }
        let Some((at, decision)) = node.strips.as_ref().and_then(|strips| strips.begin) else { return };
        self.remark_op(&node.ops[at]);
        match decision {
            Decision::Missed(why) => return self.missed("warp-strips", why),
            Decision::Applied(()) => {
                self.applied("warp-strips", "warp by warp, shared memory in registers");
            }
        }
        let first = self.b.current_block();
        let block = |emit: &Self, name: &str| emit.b.append_block(emit.function, name);
        let strips: Vec<Block> = (0..self.job.shape.team).map(|_| block(self, "strip")).collect();
        let rows = vec![BTreeMap::new(); strips.len()];
        let last = block(self, "behind");
        let (vectors, masks) = (SectionVectors::default(), Cell::new(0));
        self.passes.warp_strips.open = Some(Section { first, strips, last, rows, vectors, masks });
    }

    /// Ends the open section, if there is one: its rows are stored, and emission continues behind it.
    pub(super) fn close_section(&mut self) {
        let Some(section) = self.passes.warp_strips.open.take() else { return };
        let bytes = self.width * 4;
        let mut from = section.first;
        for (number, (strip, rows)) in section.strips.iter().zip(section.rows).enumerate() {
            self.b.position_at_end(from);
            if number % WARP_STRIPS_PER_LLVM_BLOCK == 0 {
                self.branch_opaquely(*strip)
            } else {
                self.b.br(*strip)
            }
            self.b.position_at_end(*strip);
            for (row, (value, changed)) in rows {
                if changed {
                    let pointer = self.row_place(row, bytes);
                    self.b.store(self.strip_value(value), pointer, 4);
                }
            }
            from = *strip;
        }
        self.b.position_at_end(from);
        self.branch_opaquely(section.last);
        self.b.position_at_end(section.last);
    }

    fn row_place(&self, row: i64, bytes: u32) -> Value {
        let place = self.b.add(self.entry.shared[0], self.c64((row * i64::from(bytes)) as u64));
        self.b.int_to_ptr(place)
    }

    /// The current value of a row in the strip.
    fn row_now(&mut self, c: u32, row: i64) -> VectorId {
        if let Some((vector, _)) = self.rows_of_strip(c).get(&row) {
            return *vector;
        }
        let ty = self.b.vec(self.int(32), self.width);
        let value = self.b.load(ty, self.row_place(row, self.width * 4), 4);
        let vector = self.new_strip_vector(value);
        self.rows_of_strip(c).insert(row, (vector, false));
        vector
    }

    /// The rows of a chunk's strip.
    fn rows_of_strip(&mut self, c: u32) -> &mut BTreeMap<i64, (VectorId, bool)> {
        let strip = self.strip(c);
        let section = self.passes.warp_strips.open.as_mut().expect("a row belongs to a section");
        &mut section.rows[strip]
    }

    /// Loads from rows. Returns `false` if rows cannot be used; then no section is open afterwards.
    pub(super) fn load_from_strips(&mut self, plan: &Plan, op: &Op) -> bool {
        let Some(places) = plan.strip.as_ref().filter(|_| self.in_section()) else {
            self.close_section();
            return false;
        };
        let ty = self.b.vec(self.int(32), self.width);
        let mut vectors = Vec::new();
        for (c, places) in (0..).zip(places) {
            self.at_chunk(c);
            let wanted = places.iter().map(|place| place.map(|(row, at)| (self.row_now(c, row), at)));
            let wanted: Wanted = wanted.collect();
            vectors.push(self.picked(c, &wanted, ty));
        }
        self.at_first();
        let def = op.defs[0];
        let chunks = vectors.iter().map(|vector| self.strip_value(*vector)).collect();
        self.values.define(def, Repr::Chunks(chunks));
        for (c, vector) in (0..).zip(vectors) {
            self.note_strip_chunk(def, c, vector);
        }
        true
    }

    /// Stores to rows. Returns `false` if rows cannot be used; then no section is open afterwards.
    pub(super) fn store_to_strips(&mut self, inst: &Inst, plan: &Plan, op: &Op, next: usize) -> bool {
        let Some(places) = plan.strip.as_ref().filter(|_| self.in_section()) else {
            self.close_section();
            return false;
        };
        for (c, places) in (0..).zip(places).filter(|(_, places)| !places.is_empty()) {
            self.at_chunk(c);
            let value = self.values(inst, op, c, next).and_then(|values| values.first().copied());
            let value = value.expect("ptxvm bug: a register that is stored has no value");
            let word = self.b.vec(self.int(32), self.width);
            let value = match inst.srcs.get(1) {
                Some(Src::Imm(bits)) => self.strip_splat(*bits, 32),
                Some(Src::Reg(_)) if value.ty() == word => self.strip_chunk(op.uses[next], c, true),
                _ => self.new_strip_vector(self.b.trunc(value, word)),
            };
            let mask = (!plan.active.whole).then_some(op.uses[0]);
            let mut rows: Vec<i64> = places.iter().flatten().map(|(row, _)| *row).collect();
            rows.sort_unstable();
            rows.dedup();
            for row in rows {
                self.blend_row(c, row, places, value, mask);
            }
        }
        self.at_first();
        true
    }

    /// Stores to a row, in the lanes of the mask (`None`: in all).
    fn blend_row(
        &mut self,
        c: u32,
        row: i64,
        places: &[StripPlace],
        value: VectorId,
        mask: Option<wir::Value>,
    ) {
        if let Some(new) = mask.and_then(|mask| self.exchanged(c, row, places, value, mask)) {
            return self.set_row(c, row, new);
        }
        let lane_at = |element: u32| places.iter().position(|place| *place == Some((row, element)));
        let owners: Vec<Option<u32>> = (0..self.width).map(|e| lane_at(e).map(|lane| lane as u32)).collect();
        let wanted: Wanted = owners.iter().map(|lane| lane.map(|lane| (value, lane))).collect();
        let new = self.picked(c, &wanted, self.strip_value(value).ty());
        let mut bits = match mask {
            Some(mask) => self.picked_bits(c, mask, &owners, MASK_PERMUTE_MAX_DEPTH),
            None => LaneBits::Known(self.all_bits()),
        };
        if owners.iter().any(Option::is_none) {
            let owned = owners.iter().enumerate().map(|(at, lane)| u64::from(lane.is_some()) << at).sum();
            bits = self.bits_and(bits, LaneBits::Known(owned));
        }
        let new = match bits {
            LaneBits::Known(0) => return,
            LaneBits::Known(bits) if bits == self.all_bits() => new,
            LaneBits::Known(_) | LaneBits::Computed(..) => {
                let old = self.row_now(c, row);
                let [new, old] = [new, old].map(|vector| self.strip_value(vector));
                self.new_strip_vector(self.b.select(self.vector_of(bits), new, old))
            }
        };
        self.set_row(c, row, new);
    }

    fn set_row(&mut self, c: u32, row: i64, new: VectorId) {
        self.rows_of_strip(c).insert(row, (new, true));
    }

    /// The new value of a row that holds one of two elements and receives the other one if that is less (or
    /// greater): the minimum or the maximum. If both are equal, either result is right.
    fn exchanged(
        &mut self,
        c: u32,
        row: i64,
        places: &[StripPlace],
        value: VectorId,
        mask: wir::Value,
    ) -> Option<VectorId> {
        let decided = self.decided(mask, c)?;
        let old = self.row_now(c, row);
        let ty = self.strip_value(old).ty();
        let width = self.width as usize;
        let (mut here, mut there): (Wanted, Wanted) = (vec![None; width], vec![None; width]);
        let mut greater = vec![None; width];
        for (lane, place) in (0..).zip(places) {
            let Some((_, element)) = place.filter(|(have, _)| *have == row) else { continue };
            if decided.on >> lane & 1 == 0 {
                continue;
            }
            let [own, new] = [self.origin((old, element)), self.origin((value, lane))];
            let [a, b] = [self.origin((decided.a, lane)), self.origin((decided.b, lane))];
            if [own, new] != [a, b] && [own, new] != [b, a] {
                return None;
            }
            let at = element as usize;
            (here[at], there[at]) = (Some(own), Some(new));
            greater[at] = Some((new == a) ^ (decided.flipped >> lane & 1 != 0) ^ decided.less);
        }
        if greater.iter().all(Option::is_none) {
            return Some(old);
        }
        let operands = [self.picked(c, &here, ty), self.picked(c, &there, ty)];
        let [least, greatest] = [false, true].map(|max| {
            let wanted = greater.contains(&Some(max));
            wanted.then(|| self.extreme(c, operands, decided.signed, max))
        });
        let mut wanted: Wanted = Vec::new();
        for (at, greater) in (0..).zip(&greater) {
            wanted.push(match greater {
                Some(true) => greatest.map(|value| (value, at)),
                Some(false) => least.map(|value| (value, at)),
                None => Some((old, at)),
            });
        }
        Some(self.picked(c, &wanted, ty))
    }

    /// The bits of a chunk of a mask or a predicate at the given lanes; any bits where there is no lane.
    /// Comparisons are repeated on permuted operands, which have usually been permuted in the same way
    /// already: some processors permute masks slowly.
    fn picked_bits(&mut self, c: u32, name: wir::Value, lanes: &[Option<u32>], depth: u32) -> LaneBits {
        let stays = lanes.iter().zip(0..).all(|(lane, at)| lane.is_none_or(|lane| lane == at));
        if stays {
            return self.strip_bits(name, c);
        }
        self.picked_term(c, MaskTerm { name, negated: false }, lanes, depth)
    }

    /// As [`Codegen::picked_bits`], for a term. Complements, and exclusive ors with known bits, are combined.
    fn picked_term(&mut self, c: u32, mut term: MaskTerm, lanes: &[Option<u32>], depth: u32) -> LaneBits {
        let every = self.all_bits();
        let mut flipped = 0;
        let bits = loop {
            if term.negated {
                flipped ^= every;
            }
            match self.made_of(term.name, c) {
                Made::Is(other) if depth > 0 => term = other,
                Made::Joined(BoolOp::Xor, [a, b]) if depth > 0 => {
                    match (self.known_term(a, c), self.known_term(b, c)) {
                        (Some(bits), _) => (flipped, term) = (flipped ^ bits, b),
                        (None, Some(bits)) => (flipped, term) = (flipped ^ bits, a),
                        (None, None) => break self.picked_made(c, term.name, lanes, depth),
                    }
                }
                _ => break self.picked_made(c, term.name, lanes, depth),
            }
        };
        self.bits_joined(BoolOp::Xor, bits, LaneBits::Known(picked_known(flipped, lanes)))
    }

    /// As [`Codegen::picked_bits`], by the operation that computes the bits.
    fn picked_made(&mut self, c: u32, name: wir::Value, lanes: &[Option<u32>], depth: u32) -> LaneBits {
        match self.made_of(name, c) {
            Made::Known(bits) => LaneBits::Known(picked_known(bits, lanes)),
            Made::Joined(how, [a, b]) if depth > 0 => {
                // What changes nothing is no step.
                let nothing = if how == BoolOp::And { self.all_bits() } else { 0 };
                if self.known_term(a, c) == Some(nothing) {
                    return self.picked_term(c, b, lanes, depth);
                }
                if self.known_term(b, c) == Some(nothing) {
                    return self.picked_term(c, a, lanes, depth);
                }
                let a = self.picked_term(c, a, lanes, depth - 1);
                let b = self.picked_term(c, b, lanes, depth - 1);
                self.bits_joined(how, a, b)
            }
            Made::Compared(comparison, [a, b], join) if depth > 0 => {
                let [a, b] = [a, b].map(|source| {
                    let vector = self.compared_vector(&comparison, source, c)?;
                    let wanted: Wanted = lanes.iter().map(|lane| lane.map(|lane| (vector, lane))).collect();
                    let register = self.picked(c, &wanted, self.strip_value(vector).ty());
                    Some(comparison.read(&self.lower_chunk(), self.strip_value(register)))
                });
                let (Some(a), Some(b)) = (a, b) else { return self.permuted_bits(c, name, lanes) };
                let truth = comparison.emit(&self.lower_chunk(), a, b);
                let truth = self.computed_bits(truth);
                match join {
                    None => truth,
                    Some((how, other)) => {
                        let other = self.picked_term(c, other, lanes, depth - 1);
                        self.bits_joined(how, truth, other)
                    }
                }
            }
            Made::Is(_) | Made::Joined(..) | Made::Compared(..) | Made::Other => {
                self.permuted_bits(c, name, lanes)
            }
        }
    }

    /// The bits of a chunk of a mask or a predicate at the given lanes, permuted as bits.
    fn permuted_bits(&mut self, c: u32, name: wir::Value, lanes: &[Option<u32>]) -> LaneBits {
        let bits = self.strip_bits_vector(name, c);
        let wanted: Wanted = lanes.iter().map(|lane| lane.map(|lane| (bits, lane))).collect();
        let bits = self.picked(c, &wanted, self.bits_type());
        self.computed_bits(self.strip_value(bits))
    }

    /// The bits of a chunk of a mask or a predicate.
    fn strip_bits(&mut self, name: wir::Value, c: u32) -> LaneBits {
        if self.kind(name) == Kind::Mask {
            let mask = self.mask(name);
            return self.cached_bits(mask, c);
        }
        self.predicate_bits(name, c)
    }

    /// The predicate or the mask that a phi was replaced with where its block continues a section.
    pub(super) fn fused_from(&self, name: wir::Value) -> Option<wir::Value> {
        self.passes.warp_strips.fused_phis.get(&name).copied()
    }

    /// Registers a mask of the open section's chunks; `None`: there is no open section, or no memory for
    /// another mask.
    pub(super) fn join_mask(&self, chunks: &[LaneBits]) -> Option<Mask> {
        let (section, room) = (self.passes.warp_strips.open.as_ref()?, self.passes.warp_strips.room?);
        let number = section.masks.get();
        if number == WARP_STRIP_MAX_MASKS {
            self.at_last();
            return None;
        }
        section.masks.set(number + 1);
        self.at_last();
        let offset = u64::from(number * self.lanes / 8);
        let word = self.b.load(self.mask_type(), self.b.offset(room, offset), 4);
        let part = |(c, chunk): (u32, &LaneBits)| (section.strips[self.strip(c)], self.vector_of(*chunk));
        let parts = (0..).zip(chunks).map(part).collect();
        let mut joined = self.passes.warp_strips.joined.borrow_mut();
        let mask = self.values.masks.borrow_mut().add(word, Some(joined.len()));
        self.note_chunks(mask, chunks.to_vec());
        let last = section.last;
        joined.push(Joined { word, last, offset, parts, wanted: Cell::new(false), read: Cell::new(false) });
        self.at_first();
        Some(mask)
    }

    /// Notes that a joined mask is read as one number.
    pub(super) fn note_read(&self, joined: usize) {
        self.passes.warp_strips.joined.borrow()[joined].read.set(true);
    }

    /// A mask of the open section as a vector; `None`: it is not one of that section.
    pub(super) fn joined_vector(&self, mask: Mask, bits: u32) -> Option<Value> {
        let (section, room) = (self.passes.warp_strips.open.as_ref()?, self.passes.warp_strips.room?);
        let joined = self.passes.warp_strips.joined.borrow();
        let joined = joined.get(self.join_of(mask)?).filter(|joined| joined.last == section.last)?;
        joined.wanted.set(true);
        let place = self.b.offset(room, joined.offset);
        Some(self.b.load(self.b.vec(self.int(bits), self.lanes / bits), place, 4))
    }

    /// Stores the parts of masks that are read as a whole.
    pub(super) fn store_joined_masks(&mut self) {
        let Some(room) = self.passes.warp_strips.room else { return };
        for joined in self.passes.warp_strips.joined.take() {
            if !joined.read.get() {
                self.b.erase(joined.word);
                if !joined.wanted.get() {
                    continue;
                }
            }
            for (c, (block, part)) in (0..).zip(&joined.parts) {
                self.b.position_before_end(*block);
                let bits = self.bits_to_int(*part);
                let place = self.b.offset(room, joined.offset + u64::from(c * self.width / 8));
                self.b.store(bits, place, 1);
            }
        }
    }

    /// The successor in which the open section continues. No terminator is emitted between the two. Where an
    /// earlier section was dropped, there may be a branch to the successor.
    pub(super) fn continues_in(&self, id: BlockId) -> Option<BlockId> {
        let strips = self.job.func.blocks[id.0 as usize].strips.as_ref().filter(|_| self.in_section())?;
        strips.continues.filter(|to| !self.flow.reached.borrow().contains(to))
    }

    /// Continues with a block in the section of its predecessor.
    pub(super) fn fuse(&mut self, from: BlockId, to: BlockId) {
        let target = &self.job.func.blocks[to.0 as usize];
        if let Some(place) = target.pred_index(from) {
            for phi in &target.phis {
                let rep = self.coerce(phi.from[place], phi.def);
                self.values.define(phi.def, rep);
                self.passes.warp_strips.fused_phis.insert(phi.def, phi.from[place]);
                if self.kind(phi.def) == Kind::Count {
                    let known = self.constant_count(phi.from[place]);
                    self.note_count(phi.def, known);
                }
            }
        }
        self.at_first();
        self.flow.reached.borrow_mut().insert(to);
        self.passes.warp_strips.fused = Some(to);
    }

    /// Whether a block continues a section, when it is emitted.
    pub(super) fn is_fused(&mut self, id: BlockId) -> bool {
        self.passes.warp_strips.fused.take_if(|fused| *fused == id).is_some()
    }
}

/// Known bits at the given lanes.
fn picked_known(bits: u64, lanes: &[Option<u32>]) -> u64 {
    filled(lanes).iter().enumerate().map(|(at, from)| (bits >> from & 1) << at).sum()
}
