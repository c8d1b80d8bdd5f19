//! Warp strips: a section of a coarse warp that is the whole CTA executes warp by warp instead of instruction
//! by instruction.
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
use super::{Codegen, LANES, Repr};
use crate::llvm::{Block, Type, Value};
use crate::tuning::{
    MASK_PERMUTE_MAX_DEPTH, WARP_STRIP_MAX_MASKS, WARP_STRIP_MAX_SPECULATED_OPS, WARP_STRIPS_PER_LLVM_BLOCK,
};
use crate::wir;
use crate::wir::access::{Access, Plan, StripPlace};
use crate::wir::{BlockId, Cond, Kind, Op, OpKind, Shape, Term};
use ptx::ir::{Inst, RegClass, Src, Terminator};
use ptx::isa::{BoolOp, Op as O, Sem, Space};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};

/// A section that is being emitted.
pub(super) struct Section {
    /// The LLVM block for code that all strips need.
    first: Block,
    /// The LLVM block of each strip; there is one for each warp.
    strips: Vec<Block>,
    /// The LLVM block for code that needs all strips.
    last: Block,
    /// For each strip, its rows: the value of the row, and whether it has still to be stored to memory.
    rows: RefCell<Vec<BTreeMap<i64, (Value, bool)>>>,
    /// The permutations of each source in each strip.
    known: RefCell<HashMap<(Block, Value), Permuted>>,
    /// Minima and maxima that were emitted.
    extremes: RefCell<HashMap<Extreme, Value>>,
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

/// For each element, its source vector and the index there; `None`: any value but poison.
type Wanted = Vec<Option<(Value, u32)>>;

/// The permutations of a source: the wanted elements, and the result.
type Permuted = Vec<(Wanted, Value)>;

/// A minimum or maximum: its strip, its operands, whether they are signed, and whether it is the maximum.
type Extreme = (Block, Value, Value, bool, bool);

/// State that outlives a section.
#[derive(Default)]
pub(super) struct WarpStrips {
    open: Option<Section>,
    /// The memory for joined masks.
    room: Option<Value>,
    joined: RefCell<Vec<Joined>>,
    /// The elements that permuted vectors consist of.
    made: RefCell<HashMap<Value, Wanted>>,
    /// The vectors that were permuted, and the results. A result that is already among them is a constant,
    /// whose elements are not followed.
    seen: RefCell<HashSet<Value>>,
    /// For each value, whether it depends only on which thread the lane is.
    constant: Vec<bool>,
    /// For each block, the number of edges to it that have been emitted.
    ways: RefCell<Vec<u32>>,
    emitted: Vec<bool>,
    /// The block that continues the section of its predecessor.
    fused: Option<BlockId>,
    /// For each phi of such a block, the value that it is.
    fused_phis: HashMap<wir::Value, wir::Value>,
    /// The blocks in the order of emission.
    order: Vec<BlockId>,
}

impl Codegen<'_> {
    /// Prepares for sections, if the function may have any.
    pub(super) fn find_warp_strips(&mut self) {
        let func = self.job.func;
        self.passes.warp_strips.ways = RefCell::new(vec![0; func.blocks.len()]);
        self.passes.warp_strips.emitted = vec![false; func.blocks.len()];
        if self.job.shape.is_alone() && func.entries.is_empty() && !self.job.exits_at_accesses() {
            self.passes.warp_strips.constant =
                crate::analysis::thread_constant::constants(func, self.job.function);
            let bits = self.b.vec(self.int(8), WARP_STRIP_MAX_MASKS * self.lanes / 8);
            self.passes.warp_strips.room = Some(self.b.alloca(bits, 64));
        }
    }

    /// Counts an edge to a block.
    pub(super) fn count_edge(&self, to: BlockId) {
        self.passes.warp_strips.ways.borrow_mut()[to.0 as usize] += 1;
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

    fn strip(&self, c: u32) -> usize {
        (c * self.width / LANES) as usize
    }

    /// Begins a block: opens a section if that is worth it. An open section continues.
    pub(super) fn begin_section(&mut self, node: &wir::Block) {
        if self.in_section() || self.passes.warp_strips.room.is_none() {
            return;
        }
        let accesses = node.ops.iter().any(|op| self.row_access(op).is_some());
        if let Some(op) = node.ops.iter().find(|op| self.row_access(op).is_some()) {
            self.remark_op(op);
        }
        if !accesses {
            return;
        }
        if !node.ops.iter().all(|op| self.is_stripped(op)) {
            return self.missed("warp-strips", "the block has operations that are not done warp by warp");
        }
        self.applied("warp-strips", "warp by warp, shared memory in registers");
        let first = self.b.current_block();
        let block = |emit: &Self, name: &str| emit.b.append_block(emit.function, name);
        let strips: Vec<Block> = (0..self.job.shape.team).map(|_| block(self, "strip")).collect();
        let rows = RefCell::new(vec![BTreeMap::new(); strips.len()]);
        let last = block(self, "behind");
        let (known, extremes, masks) = (RefCell::default(), RefCell::default(), Cell::new(0));
        self.passes.warp_strips.open = Some(Section { first, strips, last, rows, known, extremes, masks });
    }

    /// Ends the open section, if there is one: its rows are stored, and emission continues behind it.
    pub(super) fn close_section(&mut self) {
        let Some(section) = self.passes.warp_strips.open.take() else { return };
        let bytes = self.width * 4;
        let mut from = section.first;
        for (number, (strip, rows)) in section.strips.iter().zip(section.rows.take()).enumerate() {
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
                    self.b.store(value, pointer, 4);
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

    /// Whether an operation can be emitted strip by strip.
    pub(super) fn is_stripped(&self, op: &Op) -> bool {
        let narrow = |name: &wir::Value| {
            *self.shape(*name) != Shape::Varying || self.kind(*name) != Kind::Reg(RegClass::R64)
        };
        match &op.kind {
            OpKind::Spare(..)
            | OpKind::Ahead(_)
            | OpKind::Mask(_)
            | OpKind::Count(_)
            | OpKind::And
            | OpKind::AndNot
            | OpKind::Or
            | OpKind::Add(_)
            | OpKind::AddLanes(_)
            | OpKind::AddWarps(_)
            | OpKind::Truths { .. }
            | OpKind::InRange { .. } => true,
            OpKind::SelectMask | OpKind::SelectPred { .. } => {
                *self.shape(op.defs[0]) == Shape::Varying && self.kind(op.defs[0]) != Kind::Mask
            }
            OpKind::Inst(site) => {
                let Some(inst) = site.inst(self.job.function) else { return false };
                let plain = |src: &Src| matches!(src, Src::Absent | Src::Imm(_) | Src::Reg(_) | Src::Not(_));
                if self.row_access(op).is_some() {
                    return true;
                }
                let moved = matches!(inst.op, O::Cvt | O::Cvta | O::CvtaTo)
                    && op.defs.iter().any(|def| *self.shape(*def) == Shape::Varying);
                crate::effects::is_pure(inst)
                    && crate::effects::carry(inst) == (false, false)
                    && !moved
                    && op.defs.iter().all(narrow)
                    && inst.srcs.iter().all(plain)
                    && crate::isel::choose(inst, &self.env).is_some_and(|lowering| !lowering.branches)
            }
            OpKind::Load(_)
            | OpKind::Reload(_)
            | OpKind::Spill(_)
            | OpKind::Restore(..)
            | OpKind::Reduced(..)
            | OpKind::EntryMask
            | OpKind::EntryLive
            | OpKind::EntryCarry
            | OpKind::EntryTurns
            | OpKind::Picks { .. }
            | OpKind::SameQuotient(_)
            | OpKind::Rebase
            | OpKind::Guard(..) => false,
        }
    }

    /// The access of an operation that accesses words of shared memory at constant addresses.
    fn row_access(&self, op: &Op) -> Option<Access> {
        let OpKind::Inst(site) = op.kind else { return None };
        let inst = site.inst(self.job.function)?;
        let write = match inst.op {
            O::Ld => false,
            O::St => true,
            _ => return None,
        };
        let access = self.access(inst, write)?;
        let varying = |name: &wir::Value| *self.shape(*name) == Shape::Varying;
        let word = access.bits == 32 && access.count == 1 && access.space == Space::Shared;
        let address = *op.uses.get(1)?;
        let constant = self.passes.warp_strips.constant[address.0 as usize] && !self.is_scalar_class(address);
        let fits = word
            && constant
            && inst.mods.sem() == Sem::Weak
            && !self.is_guarded(inst)
            && op.defs.iter().all(|def| varying(def) && self.kind(*def) == Kind::Reg(RegClass::R32));
        fits.then_some(access)
    }

    fn is_scalar_class(&self, name: wir::Value) -> bool {
        matches!(self.shape(name), Shape::Uniform(_) | Shape::Bottom)
    }

    /// The current value of a row in the strip.
    fn row_now(&self, c: u32, row: i64) -> Value {
        let section = self.passes.warp_strips.open.as_ref().expect("a row belongs to a piece");
        let strip = self.strip(c);
        if let Some((value, _)) = section.rows.borrow()[strip].get(&row) {
            return *value;
        }
        let ty = self.b.vec(self.int(32), self.width);
        let value = self.b.load(ty, self.row_place(row, self.width * 4), 4);
        section.rows.borrow_mut()[strip].insert(row, (value, false));
        value
    }

    /// Loads from rows. Returns `false` if rows cannot be used; then no section is open afterwards.
    pub(super) fn load_from_strips(&mut self, plan: &Plan, op: &Op) -> bool {
        let Some(places) = plan.strip.as_ref().filter(|_| self.in_section()) else {
            self.close_section();
            return false;
        };
        let ty = self.b.vec(self.int(32), self.width);
        let mut chunks = Vec::new();
        for (c, places) in (0..).zip(places) {
            self.at_chunk(c);
            if places.is_empty() {
                chunks.push(self.b.zero(ty));
                continue;
            }
            let wanted = places.iter().map(|place| place.map(|(row, at)| (self.row_now(c, row), at)));
            let wanted: Wanted = wanted.collect();
            chunks.push(self.picked(c, &wanted, ty));
        }
        self.at_first();
        self.values.define(op.defs[0], Repr::Chunks(chunks));
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
            let value = if value.ty().element_bits() > 32 {
                self.b.trunc(value, self.b.vec(self.int(32), self.width))
            } else {
                value
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
    fn blend_row(&mut self, c: u32, row: i64, places: &[StripPlace], value: Value, mask: Option<wir::Value>) {
        if let Some(new) = mask.and_then(|mask| self.exchanged(c, row, places, value, mask)) {
            return self.set_row(c, row, new);
        }
        let lane_at = |element: u32| places.iter().position(|place| *place == Some((row, element)));
        let owners: Vec<Option<u32>> = (0..self.width).map(|e| lane_at(e).map(|lane| lane as u32)).collect();
        let wanted: Wanted = owners.iter().map(|lane| lane.map(|lane| (value, lane))).collect();
        let new = self.picked(c, &wanted, value.ty());
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
                self.b.select(self.vector_of(bits), new, self.row_now(c, row))
            }
        };
        self.set_row(c, row, new);
    }

    fn set_row(&self, c: u32, row: i64, new: Value) {
        let section = self.passes.warp_strips.open.as_ref().expect("a row belongs to a piece");
        section.rows.borrow_mut()[self.strip(c)].insert(row, (new, true));
    }

    /// The new value of a row that holds one of two elements and receives the other one if that is less (or
    /// greater): the minimum or the maximum. If both are equal, either result is right.
    fn exchanged(
        &mut self,
        c: u32,
        row: i64,
        places: &[StripPlace],
        value: Value,
        mask: wir::Value,
    ) -> Option<Value> {
        let decided = self.decided(mask, c)?;
        let old = self.row_now(c, row);
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
        let (here, there) = (self.picked(c, &here, old.ty()), self.picked(c, &there, old.ty()));
        let [least, greatest] = [false, true].map(|max| {
            let wanted = greater.contains(&Some(max));
            wanted.then(|| self.extreme(c, here, there, decided.signed, max))
        });
        let mut wanted: Wanted = Vec::new();
        for (at, greater) in (0..).zip(&greater) {
            wanted.push(match greater {
                Some(true) => greatest.map(|value| (value, at)),
                Some(false) => least.map(|value| (value, at)),
                None => Some((old, at)),
            });
        }
        Some(self.picked(c, &wanted, old.ty()))
    }

    /// The minimum or the maximum of each two elements.
    fn extreme(&self, c: u32, a: Value, b: Value, signed: bool, max: bool) -> Value {
        let section = self.passes.warp_strips.open.as_ref().expect("exchanges belong to a piece");
        let key = (section.strips[self.strip(c)], a, b, signed, max);
        if let Some(value) = section.extremes.borrow().get(&key) {
            return *value;
        }
        let name = match (signed, max) {
            (false, false) => "llvm.umin",
            (false, true) => "llvm.umax",
            (true, false) => "llvm.smin",
            (true, true) => "llvm.smax",
        };
        let value = self.b.intrinsic(name, &[a.ty()], &[a, b]);
        section.extremes.borrow_mut().insert(key, value);
        value
    }

    /// The origin of an element, traced through earlier permutations.
    fn origin(&self, mut from: (Value, u32)) -> (Value, u32) {
        let made = self.passes.warp_strips.made.borrow();
        while let Some(Some(before)) = made.get(&from.0).map(|all| all[from.1 as usize]) {
            from = before;
        }
        from
    }

    /// A vector of elements of other vectors.
    fn picked(&self, c: u32, wanted: &[Option<(Value, u32)>], ty: Type) -> Value {
        let wanted: Wanted = wanted.iter().map(|from| from.map(|from| self.origin(from))).collect();
        let mut sources: Vec<Value> = Vec::new();
        for (source, _) in wanted.iter().flatten() {
            if !sources.contains(source) {
                sources.push(*source);
            }
        }
        let Some(first) = sources.first().copied() else { return self.b.zero(ty) };
        let whole = wanted.iter().zip(0..).all(|(from, at)| from.is_none_or(|from| from == (first, at)));
        if whole {
            return first;
        }
        let section = self.passes.warp_strips.open.as_ref().expect("permutations belong to a piece");
        let block = section.strips[self.strip(c)];
        let agrees =
            |have: &Wanted| wanted.iter().zip(have).all(|(want, have)| want.is_none() || want == have);
        if let Some(all) = section.known.borrow().get(&(block, first))
            && let Some((_, value)) = all.iter().find(|(have, _)| agrees(have))
        {
            return *value;
        }
        let elements: Vec<Option<u32>> = wanted.iter().map(|from| from.map(|(_, element)| element)).collect();
        let elements = if sources.len() == 1 { filled(&elements) } else { stayed(&elements) };
        let full: Vec<(Value, u32)> = wanted
            .iter()
            .zip(elements)
            .map(|(from, at)| (from.map_or(first, |(source, _)| source), at))
            .collect();
        let width = self.width as i32;
        let mut result = first;
        // The second source is merged with the first, and each further one with the result.
        let indices = |of: &[Value], done: Option<usize>| -> Vec<i32> {
            let index = |(at, (source, element)): (usize, &(Value, u32))| match of
                .iter()
                .position(|have| have == source)
            {
                Some(number) if done.is_none() => number as i32 * width + *element as i32,
                Some(1) => width + *element as i32,
                _ => at as i32,
            };
            full.iter().enumerate().map(index).collect()
        };
        if sources.len() == 1 {
            result = self.b.permute(first, &indices(&[first], None));
        }
        for (number, source) in sources.iter().enumerate().skip(1) {
            let done = (number > 1).then_some(number);
            let of = if number == 1 { [first, *source] } else { [result, *source] };
            result = self.b.shuffle(result, *source, &indices(&of, done));
        }
        let full: Wanted = full.into_iter().map(Some).collect();
        let mut seen = self.passes.warp_strips.seen.borrow_mut();
        seen.extend(&sources);
        if seen.insert(result) {
            self.passes.warp_strips.made.borrow_mut().insert(result, full.clone());
            section.known.borrow_mut().entry((block, first)).or_default().push((full, result));
        }
        result
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
                    let value = self.compared_vector(&comparison, source, c)?;
                    let wanted: Wanted = lanes.iter().map(|lane| lane.map(|lane| (value, lane))).collect();
                    let register = self.picked(c, &wanted, value.ty());
                    Some(comparison.read(&self.lower_chunk(), register))
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
        let bits = self.strip_bits(name, c);
        let bits = self.vector_of(bits);
        let wanted: Wanted = lanes.iter().map(|lane| lane.map(|lane| (bits, lane))).collect();
        self.computed_bits(self.picked(c, &wanted, bits.ty()))
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
                let bits = self.b.bitcast(*part, self.int(self.width));
                let place = self.b.offset(room, joined.offset + u64::from(c * self.width / 8));
                self.b.store(bits, place, 1);
            }
        }
    }

    /// The successor of a block that can continue in the same section. No terminator is emitted between the
    /// two.
    pub(super) fn fuses(&mut self, id: BlockId, term: &Term) -> Option<BlockId> {
        if !self.in_section() {
            return None;
        }
        let func = self.job.func;
        let block = func.blocks[id.0 as usize].block as usize;
        if !matches!(self.job.function.blocks[block].term, Terminator::Goto(..) | Terminator::Branch { .. }) {
            return None;
        }
        let to = match term {
            Term::Goto(to) => *to,
            // A block whose mask was sunk into it begins where it is entered.
            Term::If { cond: Cond::Empty(mask), .. } if self.passes.sunk_masks.some(*mask).is_some() => {
                return None;
            }
            Term::If { cond, then, els, .. } => match self.constant_condition(id, cond) {
                Some(true) => *then,
                Some(false) => *els,
                None => {
                    if !matches!(cond, Cond::Empty(_)) || !self.is_nothing(id, *els, *then) {
                        return None;
                    }
                    *els
                }
            },
            Term::Switch { .. } | Term::Exit(_) => return None,
        };
        let alone = self.passes.warp_strips.ways.borrow()[to.0 as usize] == 0
            && func.blocks[to.0 as usize]
                .preds
                .iter()
                .all(|pred| self.passes.warp_strips.emitted[pred.0 as usize])
            && !self.passes.barrier_slots.is_entered(id, to);
        let order = &self.passes.warp_strips.order;
        let at = order.iter().position(|node| *node == id)?;
        let mut behind = order[at + 1..].iter();
        let next = behind.find(|node| **node == to || self.flow.reached.borrow().contains(node));
        (alone && next == Some(&to)).then_some(to)
    }

    /// Whether a few operations under a mask have no effect if no lane is active, so that they can be
    /// executed instead of skipped.
    fn is_nothing(&self, from: BlockId, body: BlockId, over: BlockId) -> bool {
        let func = self.job.func;
        let (content, behind) = (&func.blocks[body.0 as usize], &func.blocks[over.0 as usize]);
        let short = matches!(content.term, Term::Goto(to) if to == over)
            && content.preds == [from]
            && content.ops.len() <= WARP_STRIP_MAX_SPECULATED_OPS
            && content.ops.iter().all(|op| self.is_stripped(op) && !matches!(op.kind, OpKind::Add(_)));
        let way = |pred: BlockId| behind.pred_index(pred);
        let (true, Some(around), Some(through)) = (short, way(from), way(body)) else { return false };
        behind.phis.iter().all(|phi| {
            let (old, new) = (phi.from[around], phi.from[through]);
            let keeps = |op: &Op| match op.kind {
                OpKind::Or => op.uses.contains(&old),
                OpKind::SelectMask => op.uses[2] == old,
                // A counter is increased by the number of active lanes, which is zero.
                _ => self.kind(new) == Kind::Count,
            };
            old == new
                || !func.needed[phi.def.0 as usize]
                || content.op_of(new).is_some_and(|at| keeps(&content.ops[at]))
        })
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

    /// Notes that a block is emitted now. Returns whether it continues a section.
    pub(super) fn is_fused(&mut self, id: BlockId) -> bool {
        self.passes.warp_strips.emitted[id.0 as usize] = true;
        self.passes.warp_strips.fused.take_if(|fused| *fused == id).is_some()
    }

    /// Whether a block has been emitted already.
    pub(super) fn is_emitted(&self, id: BlockId) -> bool {
        self.passes.warp_strips.emitted[id.0 as usize]
    }

    pub(super) fn set_order(&mut self, order: &[BlockId]) {
        self.passes.warp_strips.order = order.to_vec();
    }
}

/// Indices of which some are not wanted: these move by the same distance as the others where the others are
/// exchanged, and stay otherwise.
fn filled(wanted: &[Option<u32>]) -> Vec<u32> {
    let distance = wanted.iter().zip(0..).find_map(|(from, at)| from.map(|element| element ^ at));
    let exchanges = |distance: &u32| {
        wanted.iter().zip(0..).all(|(from, at)| from.is_none_or(|element| element == at ^ distance))
    };
    let distance = distance.filter(exchanges).unwrap_or(0);
    wanted.iter().zip(0..).map(|(from, at)| from.unwrap_or(at ^ distance)).collect()
}

/// Indices of which some are not wanted: these stay.
fn stayed(wanted: &[Option<u32>]) -> Vec<u32> {
    wanted.iter().zip(0..).map(|(from, at)| from.unwrap_or(at)).collect()
}

/// Known bits at the given lanes.
fn picked_known(bits: u64, lanes: &[Option<u32>]) -> u64 {
    filled(lanes).iter().enumerate().map(|(at, from)| (bits >> from & 1) << at).sum()
}
