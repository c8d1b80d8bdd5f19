//! Emits chunk loops: sections of straight-line code that
//! [`opt::chunk_loops`](crate::opt::chunk_loops) found, emitted once, as a loop over chunks.
//!
//! While the section is emitted, values stand for their part in the current chunk, with the shapes they have
//! there.
//!
//! Invariant: a value that the loop defines is read behind the loop only from memory, where each iteration
//! has stored it.

use super::check_coalesce::CoalescedChecks;
use super::emitted_values::NumberedRepr;
use super::funnel_shift::WordPair;
use super::interleaved::InterleavedGroups;
use super::scaled_index::ScaledIndex;
use super::{Codegen, Repr};
use crate::llvm::{Block, IntPred, Likely, Value};
use crate::wir;
use crate::wir::section::Section;
use crate::wir::{Affine, Kind, Shape, Term};
use ptx::ir::RegClass;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Where chunk loops keep values, and facts about the function that they use.
pub(super) struct ChunkLoops {
    /// The LLVM block in which stack memory is allocated: the first block of the function.
    pub(super) rooms: Block,
    places: Vec<Value>,
    /// The slot memory, while a chunk loop is emitted.
    pub(super) slot_memory: Option<Value>,
    /// Shapes that values have within an iteration, where these differ from the shapes outside.
    pub(super) shapes: HashMap<wir::Value, Shape>,
}

/// What belongs to all chunks, while code for one chunk is emitted.
struct Whole {
    lanes: u32,
    scaled_indices: HashMap<wir::Value, ScaledIndex>,
    word_pairs: HashMap<wir::Value, WordPair>,
}

impl ChunkLoops {
    pub(super) fn new(rooms: Block) -> Self {
        Self { rooms, places: Vec::new(), slot_memory: None, shapes: HashMap::new() }
    }
}

impl Codegen<'_> {
    /// Notes whether a section is emitted as a chunk loop, if that was considered.
    pub(super) fn remark_section(&self, node: &wir::Block, section: &Section) {
        let (Some(remark), Some(first)) = (section.remark(), section.own.iter().min()) else { return };
        self.remark_op(&node.ops[*first]);
        self.remark("chunk-loop", remark);
        if let Some([now, then]) = section.ordered {
            let what = format!("result by result: {then} moves of vectors instead of {now}");
            self.remark("section-order", (true, what.into()));
        }
    }

    /// Emits a section as a chunk loop.
    pub(super) fn emit_chunk_loop(
        &mut self,
        node: &wir::Block,
        section: &Section,
        foreseen: &CoalescedChecks,
        pieces: &mut InterleavedGroups,
    ) {
        for at in &section.shared {
            self.position.access_checked = foreseen.fits(*at);
            self.op(node, *at);
        }
        let same: HashSet<wir::Value> = defs(node, &section.same).collect();
        let (same, outs): (Vec<wir::Value>, Vec<wir::Value>) =
            section.outs.iter().partition(|out| same.contains(out));
        let homes = self.only_slot(node, section.end, &outs);
        let count = self.chunks();
        let mut places = 0;
        let mut stored: Vec<(wir::Value, Option<Value>)> = Vec::new();
        for name in section.ins.iter().copied() {
            let place = self.laid_out(name, places);
            places += usize::from(place.is_some());
            stored.push((name, place));
        }
        self.passes.chunk_loops.slot_memory = (self.slots().room() > 0).then(|| self.barrier_slot_memory());
        let mut outside = Vec::new();
        self.emit_same(node, section, &mut stored, (foreseen, pieces), &mut outside);
        let before = self.b.current_block();
        let (turn, done) =
            (self.b.append_block(self.function, "apart"), self.b.append_block(self.function, "together"));
        self.b.br(turn);
        self.b.position_at_end(turn);
        let index = self.b.phi(self.int(64));
        self.b.add_incoming(index, self.c64(0), before);
        // Where results are computed one after another, a vector is loaded where it is read first.
        let (mut unread, stored): (HashMap<_, _>, Vec<_>) = match section.ordered {
            Some(_) => {
                let (late, early): (Vec<_>, Vec<_>) =
                    stored.into_iter().partition(|(name, _)| *self.shape(*name) == Shape::Varying);
                (late.into_iter().collect(), early)
            }
            None => (HashMap::new(), stored),
        };
        let inside: Vec<(wir::Value, Repr, Option<Shape>)> =
            stored.into_iter().map(|(name, place)| self.inside(name, place, index)).collect();
        let whole = self.begin_chunk();
        inside.into_iter().for_each(|part| self.enter_chunk(part, &mut outside));
        self.prefetch_in_iteration(index, count);
        let mut left = Vec::new();
        let mut leave = |codegen: &mut Self, out: wir::Value| {
            if let Some((_, home)) = homes.get(&out) {
                // Values in memory have canonical NaN bits.
                let value = codegen.chunk(out, 0);
                let place = codegen.b.offset(codegen.barrier_slot_memory(), (*home).into());
                codegen.store_iteration(value, place, index);
                return;
            }
            let value = codegen.noncanonical_chunk(out, 0);
            let place = codegen.place_of_run(places);
            places += 1;
            codegen.store_iteration(value, place, index);
            left.push((out, place, value));
        };
        for at in &section.own {
            let mut read = Vec::new();
            node.ops[*at].for_each_use(&mut |name| read.push(name));
            if section.ordered.is_some() {
                // A result may be stored in the slot that another result's operand is in.
                let defs = node.ops[*at].defs.iter().filter_map(|def| homes.get(def));
                read.extend(defs.flat_map(|(place, _)| self.slots().beside(*place)));
            }
            for name in read {
                if let Some(place) = unread.remove(&name) {
                    let part = self.inside(name, place, index);
                    self.enter_chunk(part, &mut outside);
                }
            }
            self.op_of_chunk(node, *at, foreseen, pieces);
            if section.ordered.is_some() {
                for out in node.ops[*at].defs.iter().filter(|def| outs.contains(def)) {
                    leave(self, *out);
                    // LLVM's scheduler would compute several results at once.
                    self.b.scheduling_barrier();
                }
            }
        }
        if section.ordered.is_none() {
            outs.iter().for_each(|out| leave(self, *out));
        }
        let next = self.b.add(index, self.c64(1));
        self.b.add_incoming(index, next, self.b.current_block());
        let more = self.b.icmp(IntPred::Ne, next, self.c64(count.into()));
        self.b.cond_br(more, turn, done, Likely::Yes);
        self.b.position_at_end(done);
        self.end_chunk(whole);
        self.passes.chunk_loops.shapes.clear();
        self.passes.chunk_loops.slot_memory = None;
        for (name, rep) in outside {
            self.values.restore(name, rep);
        }
        let same: Vec<(wir::Value, Value)> =
            same.into_iter().map(|name| (name, self.noncanonical_chunk(name, 0))).collect();
        defs(node, &section.same).chain(defs(node, &section.own)).for_each(|def| self.values.forget(def));
        for (name, vector) in same {
            self.values.define(name, Repr::Chunks(vec![vector; count as usize]));
        }
        for (name, (_, home)) in homes {
            self.values.define(name, Repr::Kept(home));
        }
        for (name, place, like) in left {
            let chunks = (0..count).map(|c| self.load_iteration(like, place, self.c64(c.into()))).collect();
            self.values.define(name, Repr::Chunks(chunks));
        }
    }

    /// Emits the operations that are the same for each chunk, for one chunk. Their operands keep the
    /// representation that they have in an iteration; `stored` loses them.
    fn emit_same(
        &mut self,
        node: &wir::Block,
        section: &Section,
        stored: &mut Vec<(wir::Value, Option<Value>)>,
        (foreseen, pieces): (&CoalescedChecks, &mut InterleavedGroups),
        outside: &mut Vec<(wir::Value, Option<NumberedRepr>)>,
    ) {
        let mut read = HashSet::new();
        for at in &section.same {
            node.ops[*at].for_each_use(&mut |name| {
                read.insert(name);
            });
        }
        let zero = self.c64(0);
        let operands = stored.extract_if(.., |(name, _)| read.contains(name));
        let inside: Vec<_> = operands.map(|(name, place)| self.inside(name, place, zero)).collect();
        let whole = self.begin_chunk();
        inside.into_iter().for_each(|part| self.enter_chunk(part, outside));
        section.same.iter().for_each(|at| self.op_of_chunk(node, *at, foreseen, pieces));
        self.end_chunk(whole);
    }

    /// Begins code for one chunk. Returns what [`Codegen::end_chunk`] restores.
    fn begin_chunk(&mut self) -> Whole {
        Whole {
            lanes: std::mem::replace(&mut self.lanes, self.width),
            scaled_indices: std::mem::take(&mut self.values.scaled_indices),
            word_pairs: std::mem::take(&mut self.values.word_pairs),
        }
    }

    fn end_chunk(&mut self, whole: Whole) {
        self.lanes = whole.lanes;
        self.values.scaled_indices = whole.scaled_indices;
        self.values.word_pairs = whole.word_pairs;
    }

    /// Lets a value stand for its part in a chunk; `outside` gets its representation for all chunks.
    fn enter_chunk(
        &mut self,
        (name, rep, shape): (wir::Value, Repr, Option<Shape>),
        outside: &mut Vec<(wir::Value, Option<NumberedRepr>)>,
    ) {
        outside.push((name, self.values.replace(name, rep)));
        if let Some(shape) = shape {
            self.passes.chunk_loops.shapes.insert(name, shape);
        }
    }

    /// Emits an operation for one chunk. All accesses of the section have been checked before.
    fn op_of_chunk(
        &mut self,
        node: &wir::Block,
        at: usize,
        foreseen: &CoalescedChecks,
        pieces: &mut InterleavedGroups,
    ) {
        self.interleaved_groups_at(node, pieces, at);
        if !foreseen.is_done(at) {
            self.position.access_checked = true;
            self.op(node, at);
        }
    }

    /// Values that the section leaves only for the barrier at the end of its block, with their slots and the
    /// offsets of these. The slots' previous contents are not read any more.
    fn only_slot(
        &mut self,
        node: &wir::Block,
        end: usize,
        outs: &[wir::Value],
    ) -> BTreeMap<wir::Value, (usize, u32)> {
        let mut homes = BTreeMap::new();
        let Term::Exit(exit) = &node.term else { return homes };
        let (Some(resume), true) = (exit.resume, self.slots().room() > 0) else { return homes };
        let kept = &self.job.func.resumes[resume as usize].kept;
        let mut after: HashSet<wir::Value> = kept.iter().map(|(_, name)| *name).collect();
        node.ops[end..].iter().for_each(|op| {
            op.for_each_use(&mut |name| {
                after.insert(name);
            });
        });
        exit.for_each_use(&mut |name| {
            after.insert(name);
        });
        for (at, (reg, name)) in kept.iter().enumerate() {
            let word = matches!(reg.class, RegClass::R32 | RegClass::R64);
            let place = self.slots().wanted(resume, at).filter(|_| word && outs.contains(name));
            let free = |place: &usize| self.slots().beside(*place).all(|other| !after.contains(&other));
            if let Some(place) = place.filter(free) {
                self.passes.written_slots.write(place, *name);
                homes.insert(*name, (place, self.slots().places[place].offset));
            }
        }
        homes
    }

    /// Stores the chunks of a value in memory; `None` if an iteration computes its chunk from scalars, or
    /// reads it from its barrier slot.
    fn laid_out(&mut self, name: wir::Value, number: usize) -> Option<Value> {
        let values: Vec<Value> = match self.shape(name) {
            Shape::Bottom | Shape::Uniform(_) => return None,
            Shape::Affine(pattern) if steps(pattern, self.width).is_some() => return None,
            Shape::Affine(_) => (0..self.chunks())
                .map(|c| self.noncanonical_base(name, c).expect("ptxvm bug: a pattern has bases"))
                .collect(),
            Shape::Varying if matches!(self.values.get(name), Some(Repr::Kept(_))) => {
                return None;
            }
            Shape::Varying => (0..self.chunks()).map(|c| self.noncanonical_chunk(name, c)).collect(),
        };
        let place = self.place_of_run(number);
        for (c, value) in values.into_iter().enumerate() {
            self.store_iteration(value, place, self.c64(c as u64));
        }
        Some(place)
    }

    /// The representation of a value within the iteration of a chunk.
    fn inside(
        &mut self,
        name: wir::Value,
        place: Option<Value>,
        index: Value,
    ) -> (wir::Value, Repr, Option<Shape>) {
        if self.kind(name) == Kind::Mask {
            return (name, Repr::Mask(self.known_mask(&[self.all_bits()])), None);
        }
        match self.shape(name).clone() {
            Shape::Bottom | Shape::Uniform(_) => {
                let rep = self.values.get(name).cloned();
                (name, rep.expect("ptxvm bug: a value is used before it is made"), None)
            }
            Shape::Affine(pattern) => {
                let first = self.noncanonical_base(name, 0).expect("ptxvm bug: a pattern has bases");
                let base = match (place, steps(&pattern, self.width)) {
                    (Some(place), _) => self.load_iteration(first, place, index),
                    (None, Some(step)) if step != 0 => {
                        let times = if first.ty().element_bits() < 64 {
                            self.b.trunc(index, first.ty())
                        } else {
                            index
                        };
                        let more = self.b.mul(times, self.b.const_int(first.ty(), i64::from(step) as u64));
                        self.b.add(first, more)
                    }
                    (None, _) => first,
                };
                let lanes = self.relative(&pattern, 0);
                if lanes.iter().all(|lane| *lane == 0) {
                    return (name, Repr::Scalar(base), Some(Shape::Uniform(None)));
                }
                let (lanes, rows) = (lanes.into(), Box::default());
                let own = Affine { by_chunk: false, align: pattern.align, lanes, rows };
                (name, Repr::Bases(vec![base]), Some(Shape::Affine(Box::new(own))))
            }
            Shape::Varying => {
                if let Some(Repr::Kept(offset)) = self.values.get(name).cloned() {
                    return (name, Repr::Chunks(vec![self.load_from_slot(name, offset, index)]), None);
                }
                let value = self.noncanonical_chunk(name, 0);
                let place = place.expect("ptxvm bug: the chunks of a vector are not in memory");
                let value = self.load_iteration(value, place, index);
                (name, Repr::Chunks(vec![value]), None)
            }
        }
    }

    /// Stack memory for all chunks of a value.
    fn place_of_run(&mut self, number: usize) -> Value {
        while self.passes.chunk_loops.places.len() <= number {
            let here = self.b.current_block();
            self.b.position_at_end(self.passes.chunk_loops.rooms);
            // Within an iteration `self.lanes` is the number of lanes of one chunk, so the launch's number is
            // used.
            let place = self.b.alloca(self.b.vec(self.int(64), self.job.shape.lanes()), 64);
            self.passes.chunk_loops.places.push(place);
            self.b.position_at_end(here);
        }
        self.passes.chunk_loops.places[number]
    }

    /// The address of a chunk's part of such memory, and its alignment in bytes.
    fn iteration_place(&self, like: Value, place: Value, index: Value) -> (Value, u32) {
        let ty = like.ty();
        let bytes = if ty.element_bits() == 1 { 4 } else { ty.lanes() * ty.element_bits() / 8 };
        (self.b.gep(place, self.b.mul(index, self.c64(bytes.into()))), bytes.min(64))
    }

    fn store_iteration(&self, value: Value, place: Value, index: Value) {
        let (pointer, align) = self.iteration_place(value, place, index);
        let value = if value.ty().element_bits() == 1 {
            self.b.zext(self.bits_to_int(value), self.int(32))
        } else {
            value
        };
        self.b.store(value, pointer, align);
    }

    fn load_iteration(&self, like: Value, place: Value, index: Value) -> Value {
        let (pointer, align) = self.iteration_place(like, place, index);
        if like.ty().element_bits() == 1 {
            let bits = self.b.load(self.int(32), pointer, align);
            return self.bits_from(bits, 0, like.ty().lanes());
        }
        self.b.load(like.ty(), pointer, align)
    }
}

/// The values that operations of a block define.
fn defs<'a>(node: &'a wir::Block, ops: &'a [usize]) -> impl Iterator<Item = wir::Value> + 'a {
    ops.iter().flat_map(|at| node.ops[*at].defs.iter().copied())
}

/// The constant distance between the first lanes of neighbouring chunks, if there is one.
fn steps(pattern: &Affine, width: u32) -> Option<i32> {
    if pattern.by_chunk || !pattern.rows.is_empty() {
        return None;
    }
    let firsts: Vec<i32> = pattern.lanes.iter().step_by(width as usize).copied().collect();
    let step = firsts.get(1)?.checked_sub(firsts[0])?;
    firsts.windows(2).all(|pair| pair[1].checked_sub(pair[0]) == Some(step)).then_some(step)
}
