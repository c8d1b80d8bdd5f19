//! Chunk loops: executes a long section of straight-line code chunk by chunk, where all chunks together
//! exceed the registers.
//!
//! Usually an instruction is emitted for all chunks before the next instruction, so that the chunks'
//! dependence chains execute in parallel. Where one chunk alone has enough parallelism, and the live values
//! of all chunks do not fit into the registers, that order costs spills and gains nothing. So a section that
//! computes in each lane alone, or loads what was checked before, is emitted once, as a loop over chunks.
//! Kernels in which each thread computes several elements of a matrix are the usual case.
//!
//! While the section is emitted, values stand for their part in the current chunk, with the shapes they have
//! there.
//!
//! Invariants: values that are uniform across chunks are computed before the loop, in program order. Nothing
//! in the section has an effect, so the order of chunks does not matter. A value that the loop defines is
//! read behind the loop only from memory, where each iteration has stored it.

use super::check_coalesce::CoalescedChecks;
use super::interleaved::InterleavedGroups;
use super::{Codegen, Repr};
use crate::llvm::{Block, IntPred, Likely, Value};
use crate::target::Level;
use crate::tuning::{
    CHUNK_LOOP_MAX_OPS, CHUNK_LOOP_MIN_OPS, CHUNK_LOOP_MIN_OPS_PER_SPILL, CHUNK_LOOP_MIN_PARALLEL_OPS,
};
use crate::wir;
use crate::wir::{Affine, Kind, Op, OpKind, Shape, Term};
use ptx::ir::{Addr, Base, Inst, RegClass, Src};
use ptx::isa::{Op as O, Sem, Space, Ty};
use std::collections::{BTreeMap, HashMap, HashSet};

/// A section: consecutive operations of a block.
#[derive(Default)]
pub(super) struct Run {
    /// The first operation.
    start: usize,
    /// The operation after the last.
    pub(super) end: usize,
    /// Whether the section is emitted chunk by chunk.
    pub(super) apart: bool,
    /// Operations that are uniform across chunks, computed before the loop.
    shared: Vec<usize>,
    /// Operations that each chunk executes.
    own: Vec<usize>,
}

/// The role of an operation in a section.
enum Role {
    /// The operation is already emitted.
    Done,
    Shared,
    Own,
    /// The operation ends the section.
    Other,
}

/// Where chunk loops keep values, and facts about the function that they use.
pub(super) struct ChunkLoops {
    /// The LLVM block in which stack memory is allocated: the first block of the function.
    pub(super) rooms: Block,
    places: Vec<Value>,
    /// Shapes that values have within an iteration, where these differ from the shapes outside.
    pub(super) shapes: HashMap<wir::Value, Shape>,
}

impl ChunkLoops {
    pub(super) fn new(rooms: Block) -> Self {
        Self { rooms, places: Vec::new(), shapes: HashMap::new() }
    }
}

impl Codegen<'_> {
    /// Finds the section that starts at an operation.
    pub(super) fn find_chunk_loop(
        &mut self,
        node: &wir::Block,
        from: usize,
        foreseen: &CoalescedChecks,
        pieces: &InterleavedGroups,
    ) -> Run {
        let mut run = Run { start: from, end: from, ..Run::default() };
        if !self.position.full
            || self.in_section()
            || self.chunks() < 2
            || node.ops[from..].iter().flat_map(single_ops).nth(CHUNK_LOOP_MIN_OPS - 1).is_none()
        {
            run.end = node.ops.len();
            return run;
        }
        let mut defs = HashSet::new();
        while run.end < node.ops.len() && run.own.len() < CHUNK_LOOP_MAX_OPS {
            let op = &node.ops[run.end];
            match self.role(node, (from, run.end), &defs, foreseen, pieces) {
                Role::Done => {}
                Role::Shared => run.shared.push(run.end),
                Role::Own => {
                    run.own.push(run.end);
                    defs.extend(op.defs.iter().copied());
                }
                Role::Other => break,
            }
            run.end += 1;
        }
        // An interleaved group must not be divided.
        let beyond = |run: &Run, at: usize| pieces.with(at).iter().any(|other| *other >= run.end);
        while let Some(first) = run.own.iter().copied().find(|at| beyond(&run, *at)) {
            run.end = first;
            run.own.retain(|at| *at < first);
            run.shared.retain(|at| *at < first);
        }
        while run.end > from && matches!(node.ops[run.end - 1].kind, OpKind::Spare(..)) {
            run.end -= 1;
        }
        run.apart = self.is_worth(node, &run);
        run
    }

    fn role(
        &mut self,
        node: &wir::Block,
        (from, at): (usize, usize),
        defs: &HashSet<wir::Value>,
        foreseen: &CoalescedChecks,
        pieces: &InterleavedGroups,
    ) -> Role {
        let op = &node.ops[at];
        let together = pieces.with(at);
        if together.iter().any(|other| *other < from) {
            return Role::Other;
        }
        if together.is_empty() && foreseen.is_done(at) {
            return Role::Done;
        }
        let late = op.uses.iter().any(|name| defs.contains(name));
        match &op.kind {
            OpKind::Inst(site) => {
                let Some(inst) = site.inst(self.job.function) else { return Role::Other };
                let loads = matches!(inst.op, O::Ld | O::LdNc | O::Ldu) && inst.mods.sem() == Sem::Weak;
                let fits = foreseen.fits(at)
                    || loads
                        && self.access(inst, false).is_some_and(|a| self.is_within((*site, inst, op), a));
                let lowered = self.lowering(*site, inst).is_some_and(|lowering| !lowering.reads_carry);
                // A load that fails a check for observers leaves native code, which no single chunk can.
                if inst.guard.is_some() || op.defs.is_empty() || loads && self.job.exits_at_accesses() {
                    return Role::Other;
                }
                let plain = crate::effects::is_pure(inst) && lowered;
                if op.defs.iter().all(|def| !self.is_vector(*def) && self.kind(*def) != Kind::Mask) {
                    let param =
                        matches!(inst.srcs.first(), Some(Src::Addr(Addr { base: Base::KernelParam, .. })));
                    let known = if loads { fits || param } else { plain };
                    return if known && !late { Role::Shared } else { Role::Other };
                }
                let vectors = op.defs.iter().all(|def| self.is_vector(*def));
                let own =
                    if loads { fits && self.is_own_load(inst, op) } else { plain && self.is_own(inst, op) };
                if vectors && own && self.is_everywhere(op) { Role::Own } else { Role::Other }
            }
            OpKind::Chain(_) => {
                let alike = op.uses[1..].iter().all(|name| self.is_alike(*name));
                if alike && self.is_everywhere(op) { Role::Own } else { Role::Other }
            }
            OpKind::SelectPred { .. } if self.is_vector(op.defs[0]) => {
                let word = self.kind(op.defs[0]) != Kind::Reg(RegClass::R64);
                if word && op.uses.iter().all(|name| self.is_alike(*name)) { Role::Own } else { Role::Other }
            }
            // The side exit of the next access, which needs none if it belongs to the section.
            OpKind::Ahead(_) | OpKind::Spare(..) => Role::Done,
            OpKind::Count(_) | OpKind::Add(_) | OpKind::Restore(..) if !late => Role::Shared,
            _ => Role::Other,
        }
    }

    fn is_vector(&self, name: wir::Value) -> bool {
        *self.shape(name) == Shape::Varying && matches!(self.kind(name), Kind::Reg(_))
    }

    /// Whether it is known that all lanes execute an operation.
    fn is_everywhere(&self, op: &Op) -> bool {
        let mask = op.uses[0];
        self.values.get(mask).is_some() && !self.values.later.contains_key(&mask) && self.whole(op)
    }

    /// Whether the chunks of a value differ by a scalar at most, or are vectors in memory or in registers.
    fn is_alike(&self, name: wir::Value) -> bool {
        let register = matches!(self.kind(name), Kind::Reg(_));
        register
            && match self.shape(name) {
                Shape::Bottom | Shape::Uniform(_) => true,
                Shape::Affine(pattern) => {
                    let first = self.relative(pattern, 0);
                    !pattern.splits(self.width as usize)
                        && (1..self.chunks()).all(|c| self.relative(pattern, c) == first)
                }
                Shape::Varying => {
                    !self.values.scaled_indices.contains_key(&name)
                        && !self.values.word_pairs.contains_key(&name)
                }
            }
    }

    /// Whether an instruction without side effects can be emitted for one chunk.
    fn is_own(&self, inst: &Inst, op: &Op) -> bool {
        let plain = |src: &Src| matches!(src, Src::Reg(_) | Src::Not(_) | Src::Imm(_) | Src::Absent);
        // Other passes know more of a 64-bit integer than its value
        // ([`ScaledIndex`](super::scaled_index::ScaledIndex)).
        let wide = op.defs.iter().any(|def| self.kind(*def) == Kind::Reg(RegClass::R64));
        let whole = match inst.op {
            O::Cvt | O::Shl | O::Shr | O::Or => true,
            O::Add | O::Sub | O::Mul | O::Mad => inst.mods.ty() != Ty::F64,
            _ => false,
        };
        let other = matches!(inst.op, O::Cvta | O::CvtaTo | O::MovPack);
        !(other || wide && whole)
            && inst.srcs.iter().all(plain)
            && op.uses[1..].iter().all(|name| self.is_alike(*name))
    }

    /// Whether a load that has been checked can be emitted for one chunk.
    fn is_own_load(&self, inst: &Inst, op: &Op) -> bool {
        let near = self
            .access(inst, false)
            .is_some_and(|access| access.space == Space::Shared && op.defs.len() == access.count as usize);
        let address =
            matches!(inst.srcs.first(), Some(Src::Addr(Addr { base: Base::Reg(_), index: None, .. })));
        let [_, name] = op.uses.as_slice() else { return false };
        let narrow = self.kind(*name) != Kind::Reg(RegClass::R64);
        near && address && !narrow && *self.shape(*name) != Shape::Varying && self.is_alike(*name)
    }

    /// Whether a chunk loop saves spills, and passes few values through memory.
    fn is_worth(&self, node: &wir::Block, run: &Run) -> bool {
        let ops: Vec<&Op> = run.own.iter().flat_map(|at| single_ops(&node.ops[*at])).collect();
        if ops.len() < CHUNK_LOOP_MIN_OPS {
            return false;
        }
        let (ins, outs) = self.ends(node, run);
        let through = ins.iter().filter(|name| self.is_vector(**name)).count() + outs.len();
        let size = |name: wir::Value| match self.kind(name) {
            _ if !self.is_vector(name) => 0,
            Kind::Reg(RegClass::R64) => 2,
            _ => 1,
        };
        self.remark_op(&node.ops[run.own[0]]);
        let count = ops.len();
        if through * CHUNK_LOOP_MIN_OPS_PER_SPILL > count {
            self.missed(
                "chunk-loop",
                format!("{through} values of {count} operations would go through memory"),
            );
            return false;
        }
        let gains = gains(&ops, &outs, size, self.chunks(), self.env.target.level());
        match gains {
            true => self.applied("chunk-loop", format!("{count} operations, chunk by chunk")),
            false => self
                .missed("chunk-loop", "all chunks fit into registers, or one has too little to do at once"),
        }
        gains
    }

    /// The values that the section reads from outside, and those that it defines for readers outside.
    fn ends(&self, node: &wir::Block, run: &Run) -> (Vec<wir::Value>, Vec<wir::Value>) {
        let mut own: HashMap<wir::Value, u32> = HashMap::new();
        // The side exits of accesses that have been checked are never taken.
        for op in &node.ops[run.start..run.end] {
            if let OpKind::Spare(..) = op.kind {
                op.for_each_use(&mut |name| *own.entry(name).or_insert(0) += 1);
            }
        }
        let (mut defs, mut ins) = (Vec::new(), Vec::new());
        let mut made = HashSet::new();
        for at in &run.own {
            let op = &node.ops[*at];
            for name in &op.uses {
                *own.entry(*name).or_insert(0) += 1;
                if !made.contains(name) {
                    ins.push(*name);
                    made.insert(*name);
                }
            }
            defs.extend(op.defs.iter().copied());
            made.extend(op.defs.iter().copied());
        }
        defs.retain(|def| self.facts.def_use.reads(*def) > own.get(def).copied().unwrap_or(0));
        (ins, defs)
    }

    /// Emits a section as a chunk loop.
    pub(super) fn emit_chunk_loop(
        &mut self,
        node: &wir::Block,
        run: &Run,
        foreseen: &CoalescedChecks,
        pieces: &mut InterleavedGroups,
    ) {
        self.out.runs += 1;
        for at in &run.shared {
            self.position.access_checked = foreseen.fits(*at);
            self.op(&node.ops[*at]);
        }
        let (ins, outs) = self.ends(node, run);
        let homes = self.only_slot(node, run.end, &outs);
        let count = self.chunks();
        let mut places = 0;
        let mut stored: Vec<(wir::Value, Option<Value>)> = Vec::new();
        for name in ins {
            let place = self.laid_out(name, places);
            places += usize::from(place.is_some());
            stored.push((name, place));
        }
        let before = self.b.current_block();
        let (turn, done) =
            (self.b.append_block(self.function, "apart"), self.b.append_block(self.function, "together"));
        self.b.br(turn);
        self.b.position_at_end(turn);
        let index = self.b.phi(self.int(64));
        self.b.add_incoming(index, self.c64(0), before);
        let inside: Vec<(wir::Value, Repr, Option<Shape>)> =
            stored.into_iter().map(|(name, place)| self.inside(name, place, index)).collect();
        let lanes = std::mem::replace(&mut self.lanes, self.width);
        let known =
            (std::mem::take(&mut self.values.scaled_indices), std::mem::take(&mut self.values.word_pairs));
        let mut outside = Vec::new();
        for (name, rep, class) in inside {
            outside.push((name, self.values.replace(name, rep)));
            if let Some(class) = class {
                self.passes.chunk_loops.shapes.insert(name, class);
            }
        }
        self.prefetch_in_iteration(index, count);
        for at in &run.own {
            self.interleaved_groups_at(node, pieces, *at);
            if !foreseen.is_done(*at) {
                // All accesses of the section have been checked before.
                self.position.access_checked = true;
                self.op(&node.ops[*at]);
            }
        }
        let mut left = Vec::new();
        for out in &outs {
            if let Some(home) = homes.get(out) {
                // Values in memory have canonical NaN bits.
                let value = self.chunk(*out, 0);
                let place = self.b.offset(self.barrier_slot_memory(), (*home).into());
                self.store_iteration(value, place, index);
                continue;
            }
            let value = self.noncanonical_chunk(*out, 0);
            let place = self.place_of_run(places);
            places += 1;
            self.store_iteration(value, place, index);
            left.push((*out, place, value));
        }
        let next = self.b.add(index, self.c64(1));
        self.b.add_incoming(index, next, self.b.current_block());
        let more = self.b.icmp(IntPred::Ne, next, self.c64(count.into()));
        self.b.cond_br(more, turn, done, Likely::Yes);
        self.b.position_at_end(done);
        self.lanes = lanes;
        (self.values.scaled_indices, self.values.word_pairs) = known;
        self.passes.chunk_loops.shapes.clear();
        for (name, rep) in outside {
            self.values.restore(name, rep);
        }
        for def in run.own.iter().flat_map(|at| &node.ops[*at].defs) {
            self.values.forget(*def);
        }
        for (name, home) in homes {
            self.values.define(name, Repr::Kept(home));
        }
        for (name, place, like) in left {
            let chunks = (0..count).map(|c| self.load_iteration(like, place, self.c64(c.into()))).collect();
            self.values.define(name, Repr::Chunks(chunks));
        }
    }

    /// Values that the section leaves only for the barrier at the end of its block, with the offsets of their
    /// slots. The slots' previous contents are not read any more.
    fn only_slot(&mut self, node: &wir::Block, end: usize, outs: &[wir::Value]) -> BTreeMap<wir::Value, u32> {
        let mut homes = BTreeMap::new();
        let Term::Exit(exit) = &node.term else { return homes };
        let (Some(resume), true) = (exit.resume, self.passes.barrier_slots.room() > 0) else { return homes };
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
            let place = self.passes.barrier_slots.wanted(resume, at).filter(|_| word && outs.contains(name));
            let free =
                |place: &usize| self.passes.barrier_slots.beside(*place).all(|other| !after.contains(&other));
            if let Some(place) = place.filter(free) {
                homes.insert(*name, self.passes.barrier_slots.write(place, *name));
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
            self.b.zext(self.b.bitcast(value, self.int(value.ty().lanes())), self.int(32))
        } else {
            value
        };
        self.b.store(value, pointer, align);
    }

    fn load_iteration(&self, like: Value, place: Value, index: Value) -> Value {
        let (pointer, align) = self.iteration_place(like, place, index);
        if like.ty().element_bits() == 1 {
            let bits = self.b.load(self.int(32), pointer, align);
            return self.b.bitcast(self.b.trunc(bits, self.int(like.ty().lanes())), like.ty());
        }
        self.b.load(like.ty(), pointer, align)
    }
}

/// The instructions of a chain, or the operation itself.
fn single_ops(op: &Op) -> &[Op] {
    match &op.kind {
        OpKind::Chain(chain) => &chain.ops,
        _ => std::slice::from_ref(op),
    }
}

/// Whether a section gains by a chunk loop: more values are live than there are registers, and one chunk
/// alone has enough parallelism. `size`: the registers that a value takes for one chunk.
pub(crate) fn gains(
    ops: &[&Op],
    outs: &[wir::Value],
    size: impl Fn(wir::Value) -> isize,
    chunks: u32,
    level: Level,
) -> bool {
    if ops.len() < CHUNK_LOOP_MIN_OPS {
        return false;
    }
    // The live range of each vector, and the length of the dependence chain that leads to it.
    let mut spans: BTreeMap<wir::Value, [usize; 2]> = BTreeMap::new();
    let mut depths: HashMap<wir::Value, usize> = HashMap::new();
    for (at, op) in ops.iter().enumerate() {
        let mut depth = 0;
        for name in op.uses.iter().filter(|name| size(**name) > 0) {
            spans.entry(*name).or_insert([0, at])[1] = at;
            depth = depth.max(depths.get(name).copied().unwrap_or(0));
        }
        for def in &op.defs {
            spans.insert(*def, [at, at]);
            depths.insert(*def, depth + 1);
        }
    }
    for out in outs {
        spans.entry(*out).or_insert([0, 0])[1] = ops.len();
    }
    let mut change = vec![0; ops.len() + 2];
    for (name, [start, end]) in &spans {
        change[*start] += size(*name);
        change[*end + 1] -= size(*name);
    }
    let mut alive = 0;
    let most = change.iter().map(|by| {
        alive += by;
        alive
    });
    let most = most.max().unwrap_or(0) * chunks as isize;
    let depth = depths.values().copied().max().unwrap_or(1);
    most > level.vector_registers() as isize && ops.len() / depth >= CHUNK_LOOP_MIN_PARALLEL_OPS
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
