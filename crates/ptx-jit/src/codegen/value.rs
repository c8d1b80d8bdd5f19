//! Values of all lanes in their different representations.
//!
//! Invariant: [`Codegen::scalar`], [`Codegen::base`] and [`Codegen::chunk`] return canonical NaNs; the NaNs
//! of their `noncanonical_` variants may have any bits.

use super::mask::{LaneBits, Mask};
use super::{Codegen, LANES, Repr};
use crate::llvm::{IntPred, Type, Value};
use crate::mem::Vectors;
use crate::target::Level;
use crate::wir;
use crate::wir::{Affine, Kind, Op, OpKind, Shape};
use ptx::ir::{Reg, RegClass};
use ptx::isa::BoolOp;

impl Codegen<'_> {
    pub(super) fn rep(&self, name: wir::Value) -> &Repr {
        self.values.get(name).expect("ptxvm bug: a value is used before it is made")
    }

    /// A value that is the same in all lanes.
    pub(super) fn scalar(&self, name: wir::Value) -> Value {
        let value = self.noncanonical_scalar(name);
        if self.may_be_noncanonical(name) { self.exact(value) } else { value }
    }

    /// As [`Codegen::scalar`]; a NaN may have any bits.
    fn noncanonical_scalar(&self, name: wir::Value) -> Value {
        if let Some(op) = self.values.later.get(&name) {
            return self.word(self.mask_op(op));
        }
        match self.rep(name) {
            Repr::Scalar(value) => *value,
            Repr::Mask(mask) => self.word(*mask),
            Repr::Bases(_) | Repr::Chunks(_) | Repr::Number(_) | Repr::Narrow(_) | Repr::Kept(_) => {
                unreachable!("ptxvm bug: a uniform value is not a scalar")
            }
        }
    }

    pub(super) fn is_scalar(&self, name: wir::Value) -> bool {
        matches!(self.rep(name), Repr::Scalar(_) | Repr::Mask(_))
    }

    /// The affine shape of a value that has a base for each chunk or for all lanes.
    pub(super) fn pattern(&self, name: wir::Value) -> Option<Affine> {
        match self.shape(name) {
            Shape::Affine(pattern) => Some((**pattern).clone()),
            Shape::Bottom | Shape::Uniform(_) | Shape::Varying => None,
        }
    }

    /// The base of a chunk, of a uniform or affine value.
    pub(super) fn base(&mut self, name: wir::Value, chunk: u32) -> Option<Value> {
        let value = self.noncanonical_base(name, chunk)?;
        Some(if self.may_be_noncanonical(name) { self.exact(value) } else { value })
    }

    /// As [`Codegen::base`]; a NaN may have any bits.
    pub(super) fn noncanonical_base(&mut self, name: wir::Value, chunk: u32) -> Option<Value> {
        match self.rep(name).clone() {
            Repr::Scalar(value) => Some(value),
            Repr::Mask(mask) => Some(self.word(mask)),
            Repr::Bases(bases) => {
                let pattern = self.pattern(name)?;
                if pattern.by_chunk {
                    return Some(bases[chunk as usize]);
                }
                let offset = pattern.lanes[(chunk * self.width) as usize];
                let base = match self.stride_of(name) {
                    Some(stride) => self.row_base(bases[0], stride, &pattern, chunk),
                    None => bases[0],
                };
                Some(if offset == 0 { base } else { self.b.add(base, self.offset_of(base, offset)) })
            }
            Repr::Chunks(_) | Repr::Number(_) | Repr::Narrow(_) | Repr::Kept(_) => None,
        }
    }

    fn offset_of(&self, like: Value, offset: i32) -> Value {
        self.b.const_int(like.ty(), i64::from(offset) as u64)
    }

    /// The vector of a chunk.
    pub(super) fn chunk(&mut self, name: wir::Value, chunk: u32) -> Value {
        if !self.may_be_noncanonical(name) {
            return self.noncanonical_chunk(name, chunk);
        }
        self.forget_vectors();
        if let Some(vector) = self.values.exacts.get(&(name, chunk)) {
            return *vector;
        }
        let vector = self.noncanonical_chunk(name, chunk);
        let vector = self.exact(vector);
        self.values.exacts.insert((name, chunk), vector);
        vector
    }

    /// Forgets vectors that were made in another LLVM block, which may not dominate this one.
    pub(super) fn forget_vectors(&mut self) {
        let block = self.b.current_block();
        if self.values.vectors_of != Some(block) {
            self.values.vectors.clear();
            self.values.splats.clear();
            self.values.exacts.clear();
            self.values.vectors_of = Some(block);
        }
    }

    /// As [`Codegen::chunk`]; a NaN may have any bits.
    pub(super) fn noncanonical_chunk(&mut self, name: wir::Value, chunk: u32) -> Value {
        match self.rep(name) {
            Repr::Chunks(chunks) => return chunks[chunk as usize],
            Repr::Number(mask) => return self.vector_of(self.cached_bits(*mask, chunk)),
            Repr::Scalar(_) | Repr::Mask(_) | Repr::Bases(_) | Repr::Narrow(_) | Repr::Kept(_) => {}
        }
        self.forget_vectors();
        if let Some(vector) = self.values.vectors.get(&(name, chunk)) {
            return *vector;
        }
        if let Repr::Narrow(vectors) = self.rep(name) {
            let vector = self.widened_lanes(name, vectors, chunk);
            self.values.vectors.insert((name, chunk), vector);
            return vector;
        }
        if let Repr::Kept(offset) = *self.rep(name) {
            let vector = self.load_from_slot(name, offset, self.c64(chunk.into()));
            self.values.vectors.insert((name, chunk), vector);
            return vector;
        }
        let pattern = self.pattern(name);
        let splits = pattern.as_ref().filter(|pattern| pattern.splits(self.width as usize));
        let mut splat = None;
        let mut vector = match (splits, self.stride_of(name)) {
            (Some(pattern), Some(stride)) => {
                let Repr::Bases(bases) = self.rep(name) else { unreachable!("ptxvm bug: rows have bases") };
                self.vector_of_rows([bases[0], stride], pattern, chunk)
            }
            _ => {
                let base = self.noncanonical_base(name, chunk).expect("a value that is no vector has a base");
                splat = Some(base);
                self.b.splat(base, self.width)
            }
        };
        if let Some(pattern) = pattern {
            vector = self.add_lanes(vector, &pattern, chunk);
            splat = splat.filter(|_| self.relative(&pattern, chunk).iter().all(|lane| *lane == 0));
        }
        if let Some(splat) = splat {
            self.values.splats.insert((name, chunk), splat);
        }
        self.values.vectors.insert((name, chunk), vector);
        vector
    }

    /// Adds the constants of a chunk's lanes, relative to the chunk's first lane.
    pub(super) fn add_lanes(&self, vector: Value, pattern: &Affine, chunk: u32) -> Value {
        let lanes = self.relative(pattern, chunk);
        if lanes.iter().all(|lane| *lane == 0) {
            return vector;
        }
        let values: Vec<u64> = lanes.iter().map(|lane| i64::from(*lane) as u64).collect();
        let constants = self.b.const_ints(vector.ty().element(), &values);
        self.b.add(vector, constants)
    }

    /// The constants of a chunk's lanes, relative to the chunk's first lane.
    pub(super) fn relative(&self, pattern: &Affine, chunk: u32) -> Vec<i32> {
        self.vectors().relative(pattern, chunk)
    }

    /// The lanes of a chunk in a mask, as a vector of bits.
    pub(super) fn mask_chunk(&self, mask: Mask, chunk: u32) -> Value {
        let block = self.b.current_block();
        if let Some(bits) = self.values.masks.borrow().cut(mask, chunk, block) {
            return bits;
        }
        let bits = self.vector_of(self.mask_bits(mask, chunk));
        self.values.masks.borrow_mut().note_cut(mask, chunk, (block, bits));
        bits
    }

    /// The lanes of a chunk in a mask.
    pub(super) fn mask_bits(&self, mask: Mask, chunk: u32) -> LaneBits {
        if let Some(bits) = self.noted_chunk(mask, chunk) {
            return bits;
        }
        self.computed_bits(self.chunk_of_word(self.word(mask), chunk))
    }

    /// The lanes of a chunk in a mask that is one number.
    pub(super) fn chunk_of_word(&self, word: Value, chunk: u32) -> Value {
        self.bits_from(word, chunk * self.width, self.width)
    }

    /// The type of a mask: an integer with a bit for each lane.
    pub(super) fn mask_type(&self) -> Type {
        self.int(self.lanes)
    }

    /// A number of at most 64 bits in an integer of any width, as a 64-bit integer.
    pub(super) fn as_long(&self, value: Value) -> Value {
        if value.ty().element_bits() > 64 {
            self.b.trunc(value, self.int(64))
        } else {
            self.b.zext(value, self.int(64))
        }
    }

    pub(super) fn bits_type(&self) -> Type {
        self.b.vec(self.int(1), self.width)
    }

    /// A mask of one bit for each lane, joined from chunks.
    pub(super) fn mask_of(&self, chunks: &[LaneBits]) -> Mask {
        let known = |chunk: &LaneBits| match chunk {
            LaneBits::Known(bits) => Some(*bits),
            LaneBits::Computed(..) => None,
        };
        if let Some(known) = chunks.iter().map(known).collect::<Option<Vec<u64>>>() {
            return self.known_mask(&known);
        }
        self.join_mask(chunks).unwrap_or_else(|| {
            let mask = self.new_mask(self.side_by_side(chunks));
            self.note_chunks(mask, chunks.to_vec());
            mask
        })
    }

    /// The vectors that code is generated for.
    pub(super) fn vectors(&self) -> Vectors {
        Vectors { level: self.env.target.level(), width: self.width, lanes: self.lanes }
    }

    /// Combines two masks: chunk by chunk if both were joined from chunks, and as words otherwise.
    fn mask_made(
        &self,
        a: Mask,
        b: Mask,
        made: impl Fn(&Self, LaneBits, LaneBits) -> LaneBits,
        words: impl Fn(&Self, Mask, Mask) -> Mask,
    ) -> Mask {
        if self.in_section() {
            let made = (0..self.chunks()).map(|c| {
                self.at_chunk(c);
                made(self, self.cached_bits(a, c), self.cached_bits(b, c))
            });
            let chunks: Vec<LaneBits> = made.collect();
            return self.mask_of(&chunks);
        }
        let noted = |c| (self.noted_chunk(a, c), self.noted_chunk(b, c));
        let noted: Vec<(Option<LaneBits>, Option<LaneBits>)> = (0..self.chunks()).map(noted).collect();
        let known = |bits: &Option<LaneBits>| matches!(bits, Some(LaneBits::Known(_)));
        if noted.iter().any(|(a, b)| a.is_none() || b.is_none()) {
            let mask = words(self, a, b);
            if !self.holds_bits() && noted.iter().any(|(a, b)| known(a) || known(b)) {
                let chunks = (0..).zip(noted).map(|(c, (left, right))| {
                    if !known(&left) && !known(&right) {
                        return None;
                    }
                    let bits =
                        |mask, noted: Option<LaneBits>| noted.unwrap_or_else(|| self.cached_bits(mask, c));
                    Some(made(self, bits(a, left), bits(b, right)))
                });
                self.note_some_chunks(mask, chunks.collect());
            }
            return mask;
        }
        let chunks = noted.into_iter().filter_map(|(a, b)| Some(made(self, a?, b?)));
        let chunks: Vec<LaneBits> = chunks.collect();
        if chunks.iter().any(|chunk| matches!(chunk, LaneBits::Known(_))) {
            return self.mask_of(&chunks);
        }
        let mask = words(self, a, b);
        self.note_chunks(mask, chunks);
        mask
    }

    /// The lanes of a chunk in a mask; a vector that was made in this LLVM block is used again.
    pub(super) fn cached_bits(&self, mask: Mask, chunk: u32) -> LaneBits {
        let noted = self.noted_chunk(mask, chunk);
        noted.unwrap_or_else(|| self.computed_bits(self.mask_chunk(mask, chunk)))
    }

    /// The mask that an operation computes from one or two others.
    pub(super) fn mask_op(&self, op: &Op) -> Mask {
        let (a, b) = (self.mask(op.uses[0]), self.mask(op.uses[1]));
        match op.kind {
            OpKind::And => self.mask_and(a, b),
            OpKind::AndNot => {
                let b = self.mask_not(b);
                self.mask_and(a, b)
            }
            _ => self.mask_or(a, b),
        }
    }

    pub(super) fn mask_and(&self, a: Mask, b: Mask) -> Mask {
        self.mask_made(a, b, Self::bits_and, |emit, a, b| {
            match (emit.is_all_or_none(a), emit.is_all_or_none(b)) {
                (Some(false), _) | (_, Some(true)) => a,
                (_, Some(false)) | (Some(true), _) => b,
                (None, None) => emit.new_mask(emit.b.and(emit.word(a), emit.word(b))),
            }
        })
    }

    pub(super) fn mask_or(&self, a: Mask, b: Mask) -> Mask {
        self.mask_made(a, b, Self::bits_or, |emit, a, b| {
            match (emit.is_all_or_none(a), emit.is_all_or_none(b)) {
                (Some(true), _) | (_, Some(false)) => a,
                (_, Some(true)) | (Some(false), _) => b,
                (None, None) => emit.new_mask(emit.b.or(emit.word(a), emit.word(b))),
            }
        })
    }

    /// The lanes that are in either of two masks, or in both, or in one.
    pub(super) fn mask_joined(&self, how: BoolOp, a: Mask, b: Mask) -> Mask {
        match how {
            BoolOp::And => self.mask_and(a, b),
            BoolOp::Or => self.mask_or(a, b),
            BoolOp::Xor => self.mask_made(
                a,
                b,
                |emit, a, b| emit.bits_joined(how, a, b),
                |emit, a, b| emit.new_mask(emit.b.xor(emit.word(a), emit.word(b))),
            ),
        }
    }

    pub(super) fn mask_not(&self, a: Mask) -> Mask {
        let word = |emit: &Self, a: Mask, _: Mask| emit.new_mask(emit.b.not(emit.word(a)));
        self.mask_made(a, a, |emit, a, _| emit.bits_not(a), word)
    }

    fn side_by_side(&self, chunks: &[LaneBits]) -> Value {
        let ty = self.mask_type();
        // This processor joins masks to words by single instructions. But two chunks are joined faster in
        // integer registers, where the branch that tests them is decided (Mandelbrot: 0.88 and 1.02 times
        // hand-written code).
        if self.env.target.level() == Level::Avx512 && self.width == 16 && self.lanes > LANES {
            let mut mask: Option<Value> = None;
            for (at, word) in chunks.chunks(4).enumerate() {
                if word.iter().all(|chunk| matches!(chunk, LaneBits::Known(0))) {
                    continue;
                }
                // A part of a mask joined with zeros would become a move that LLVM's register allocator takes
                // for a copy of the whole mask.
                let parts: Vec<(usize, Value)> =
                    if word.iter().any(|chunk| matches!(chunk, LaneBits::Known(_))) {
                        let some =
                            word.iter().enumerate().filter(|(_, chunk)| !matches!(chunk, LaneBits::Known(0)));
                        some.map(|(at, chunk)| (at, self.vector_of(*chunk))).collect()
                    } else {
                        let mut level: Vec<Value> = word.iter().map(|chunk| self.vector_of(*chunk)).collect();
                        while level.len() > 1 {
                            level = level.chunks(2).map(|pair| self.b.concat(pair[0], pair[1])).collect();
                        }
                        vec![(0, level[0])]
                    };
                for (part, vector) in parts {
                    let bits = self.b.bitcast(vector, self.int(vector.ty().lanes()));
                    let bits = self.b.zext(bits, ty);
                    let bits = match 4 * at + part {
                        0 => bits,
                        chunk => self.b.shl(bits, self.b.const_int(ty, chunk as u64 * u64::from(self.width))),
                    };
                    mask = Some(mask.map_or(bits, |mask| self.b.or(mask, bits)));
                }
            }
            return mask.expect("there are chunks");
        }
        let mut mask = self.b.zero(ty);
        for (at, chunk) in chunks.iter().enumerate() {
            let bits = self.bits_to_int(self.vector_of(*chunk));
            let bits = self.b.zext(bits, ty);
            let shift = self.b.const_int(ty, u64::from(at as u32 * self.width));
            let bits = if at == 0 { bits } else { self.b.shl(bits, shift) };
            mask = if at == 0 { bits } else { self.b.or(mask, bits) };
        }
        mask
    }

    /// The lanes in which a predicate is true, or false if `negated`.
    pub(super) fn truths(&mut self, pred: wir::Value, negated: bool) -> Mask {
        let mask = if self.is_scalar(pred) {
            match self.constant_lane(pred, 0) {
                Some(all) => self.all_or_none(all != 0),
                None => {
                    let all = self.scalar(pred);
                    self.new_mask(self.b.sext(all, self.mask_type()))
                }
            }
        } else if let Some(Repr::Number(mask)) = self.values.get(pred) {
            *mask
        } else if let Some(lanes) = self.narrow_truths(pred) {
            self.new_mask(lanes)
        } else {
            let mut chunks = Vec::new();
            for c in 0..self.chunks() {
                self.at_chunk(c);
                chunks.push(self.predicate_bits(pred, c));
            }
            self.mask_of(&chunks)
        };
        if negated { self.mask_not(mask) } else { mask }
    }

    /// The lanes whose number is one of `count` numbers from `first` on.
    pub(super) fn in_range(&mut self, name: wir::Value, first: u32, count: u32) -> Mask {
        let inside = |emit: &Self, value: Value| {
            let number = |bits: u32| emit.b.splat(emit.c32(bits), value.ty().lanes());
            if count == 1 {
                return emit.b.icmp(IntPred::Eq, value, number(first));
            }
            let above = if first == 0 { value } else { emit.b.sub(value, number(first)) };
            emit.b.icmp(IntPred::Ult, above, number(count))
        };
        if self.is_scalar(name) {
            if let Some(number) = self.constant_lane(name, 0) {
                return self.all_or_none((number as u32).wrapping_sub(first) < count);
            }
            let value = self.scalar(name);
            return self.new_mask(self.b.sext(inside(self, value), self.mask_type()));
        }
        let mut chunks = Vec::new();
        for c in 0..self.chunks() {
            self.at_chunk(c);
            let known = self.is_constant_chunk(name, c);
            if let Some(lanes) = self.facts.analyses.constants.chunk(name, c).filter(|_| known) {
                let inside = |lane: &u64| u64::from((*lane as u32).wrapping_sub(first) < count);
                let bits = lanes.iter().rev().fold(0, |bits, lane| bits << 1 | inside(lane));
                chunks.push(LaneBits::Known(bits));
                continue;
            }
            let value = self.chunk(name, c);
            let bits = inside(self, value);
            chunks.push(self.computed_bits(bits));
        }
        self.mask_of(&chunks)
    }

    /// A value in the representation that the shape of `like` demands. Its NaNs are canonical unless those of
    /// `like` need not be.
    pub(super) fn coerce(&mut self, name: wir::Value, like: wir::Value) -> Repr {
        if self.kind(like) == Kind::Mask {
            return Repr::Mask(self.mask(name));
        }
        let loose = self.may_be_noncanonical(like);
        match self.shape(like).clone() {
            Shape::Uniform(_) | Shape::Bottom if loose => Repr::Scalar(self.noncanonical_scalar(name)),
            Shape::Uniform(_) | Shape::Bottom => Repr::Scalar(self.scalar(name)),
            Shape::Affine(pattern) => {
                let base = |emit: &mut Self, c| {
                    let base = if loose { emit.noncanonical_base(name, c) } else { emit.base(name, c) };
                    base.expect("ptxvm bug: a pattern has bases")
                };
                if !pattern.rows.is_empty() {
                    let first = base(self, 0);
                    let stride = self.stride_of(name).unwrap_or_else(|| self.b.zero(first.ty()));
                    return Repr::Bases(vec![first, stride]);
                }
                let count = pattern.scalars(self.chunks());
                Repr::Bases((0..count).map(|c| base(self, c)).collect())
            }
            Shape::Varying if let Some(width) = self.lane_width(like) => self.in_lanes_of(name, width),
            Shape::Varying if self.is_one_number(like) => Repr::Number(self.truths(name, false)),
            Shape::Varying => {
                let mut chunks = Vec::new();
                for c in 0..self.chunks() {
                    self.at_chunk(c);
                    chunks.push(self.chunk_for(like, name, c));
                }
                self.at_first();
                Repr::Chunks(chunks)
            }
        }
    }

    pub(super) fn select_mask(&mut self, op: &Op) {
        if self.select_narrow(op) {
            return;
        }
        let def = op.defs[0];
        let rep = if self.kind(def) == Kind::Mask {
            let [mask, a, b] = [0, 1, 2].map(|at| self.scalar(op.uses[at]));
            Repr::Mask(self.blend(mask, a, b))
        } else if self.shape(def) == &Shape::Varying && self.is_one_number(def) {
            let mask = self.scalar(op.uses[0]);
            let [a, b] = [1, 2].map(|at| self.truths(op.uses[at], false));
            Repr::Number(self.blend(mask, self.word(a), self.word(b)))
        } else {
            let mask = self.mask(op.uses[0]);
            let chunks = (0..self.chunks()).map(|c| {
                self.at_chunk(c);
                let bits = self.cached_bits(mask, c);
                let (a, b) = (self.chunk_for(def, op.uses[1], c), self.chunk_for(def, op.uses[2], c));
                match bits {
                    LaneBits::Known(0) => b,
                    LaneBits::Known(bits) if bits == self.all_bits() => a,
                    LaneBits::Known(_) | LaneBits::Computed(..) => self.b.select(self.vector_of(bits), a, b),
                }
            });
            Repr::Chunks(chunks.collect())
        };
        self.values.define(def, rep);
    }

    /// The bits of `a` in the lanes of a mask, and those of `b` in the others.
    fn blend(&self, mask: Value, a: Value, b: Value) -> Mask {
        let (a, b) = (self.b.and(a, mask), self.b.and(b, self.b.not(mask)));
        self.new_mask(self.b.or(a, b))
    }

    pub(super) fn select_pred(&mut self, negated: bool, op: &Op) {
        let (pred, def) = (op.uses[0], op.defs[0]);
        let (mut a, mut b) = (op.uses[1], op.uses[2]);
        if negated {
            (a, b) = (b, a);
        }
        let rep = if self.is_scalar(pred) {
            let pred = self.scalar(pred);
            let pick = |emit: &Self, (a, b): (&Value, &Value)| emit.b.select(pred, *a, *b);
            match (self.coerce(a, def), self.coerce(b, def)) {
                (Repr::Scalar(a), Repr::Scalar(b)) => Repr::Scalar(pick(self, (&a, &b))),
                (Repr::Mask(a), Repr::Mask(b)) => {
                    let words = [a, b].map(|mask| self.word(mask));
                    Repr::Mask(self.new_mask(pick(self, (&words[0], &words[1]))))
                }
                (Repr::Number(a), Repr::Number(b)) => {
                    let words = [a, b].map(|mask| self.word(mask));
                    Repr::Number(self.new_mask(pick(self, (&words[0], &words[1]))))
                }
                (Repr::Bases(a), Repr::Bases(b)) => {
                    Repr::Bases(a.iter().zip(&b).map(|x| pick(self, x)).collect())
                }
                (Repr::Narrow(a), Repr::Narrow(b)) => {
                    Repr::Narrow(a.iter().zip(&b).map(|x| pick(self, x)).collect())
                }
                (Repr::Chunks(a), Repr::Chunks(b)) => {
                    let chunks = (0..).zip(a.iter().zip(&b)).map(|(c, x)| {
                        self.at_chunk(c);
                        pick(self, x)
                    });
                    Repr::Chunks(chunks.collect())
                }
                _ => unreachable!("ptxvm bug: one class, two shapes"),
            }
        } else if let Some(width) = self.lane_width(def) {
            self.select_lanes(pred, (a, b), width)
        } else if self.is_one_number(def) {
            let [mask, a, b] = [pred, a, b].map(|name| self.truths(name, false));
            Repr::Number(self.blend(self.word(mask), self.word(a), self.word(b)))
        } else {
            let chunks = (0..self.chunks()).map(|c| {
                self.at_chunk(c);
                let bits = self.chunk(pred, c);
                let (a, b) = (self.chunk_for(def, a, c), self.chunk_for(def, b, c));
                self.b.select(bits, a, b)
            });
            Repr::Chunks(chunks.collect())
        };
        self.values.define(def, rep);
    }

    /// The place of a register in the warp frame.
    pub(super) fn place(&self, reg: Reg) -> (Value, u32) {
        let (file, bits) = file_of(reg);
        let bytes = if bits == 1 { 4 } else { LANES * bits / 8 };
        (self.b.offset(self.entry.regs[file], u64::from(reg.index) * u64::from(bytes)), bits)
    }

    /// The place of a chunk of a register in the warp frame.
    fn place_chunk(&self, reg: Reg, chunk: u32) -> Value {
        let (file, bits) = file_of(reg);
        let lane = u64::from(reg.index) * u64::from(LANES) + u64::from(chunk * self.width);
        self.b.offset(self.entry.regs[file], lane * u64::from(bits / 8))
    }

    /// Loads a chunk of a register from the warp frame.
    pub(super) fn load_chunk(&self, reg: Reg, chunk: u32) -> Value {
        let (place, bits) = self.place(reg);
        if bits == 1 {
            let mask = self.b.load(self.int(32), place, 4);
            return self.chunk_of_word(mask, chunk);
        }
        let ty = self.b.vec(self.int(bits), self.width);
        self.b.load(ty, self.place_chunk(reg, chunk), self.width * bits / 8)
    }

    /// Loads one lane of a register from the warp frame.
    pub(super) fn load_lane(&self, reg: Reg, lane: Value) -> Value {
        let (place, bits) = self.place(reg);
        if bits == 1 {
            let mask = self.b.load(self.int(32), place, 4);
            let bit = self.b.lshr(mask, lane);
            return self.b.trunc(bit, self.int(1));
        }
        let lane = self.b.zext(lane, self.int(64));
        let offset = self.b.mul(lane, self.c64(u64::from(bits / 8)));
        self.b.load(self.int(bits), self.b.gep(place, offset), bits / 8)
    }

    /// The lowest lane of a mask, as 32 bits; some lane if the mask is empty.
    pub(super) fn lowest(&self, mask: Value) -> Value {
        if self.lanes == 1 {
            return self.c32(0);
        }
        let (zero, ty) = (self.b.const_int(self.int(1), 0), mask.ty());
        let count = self.b.intrinsic("llvm.cttz", &[ty], &[mask, zero]);
        self.lane_number(count)
    }

    /// A number of bits counted in a mask, clamped to the number of a lane.
    pub(super) fn lane_number(&self, count: Value) -> Value {
        let bits = count.ty().element_bits();
        let word = if bits > 32 { self.b.trunc(count, self.int(32)) } else { count };
        let last = self.c32(bits - 1);
        if bits.is_power_of_two() {
            return self.b.and(word, last);
        }
        // A coarse warp of three warps has 96 lanes.
        self.b.intrinsic("llvm.umin", &[word.ty()], &[word, last])
    }

    /// Loads a register from the warp frame, in the representation that the shape of `name` demands; the
    /// given lanes hold the value.
    pub(super) fn load_reg(&mut self, reg: Reg, name: wir::Value, lanes: Value) -> Repr {
        match self.shape(name).clone() {
            Shape::Varying => Repr::Chunks((0..self.chunks()).map(|c| self.load_chunk(reg, c)).collect()),
            Shape::Uniform(_) | Shape::Bottom => {
                let lane = self.entry.thread.map_or_else(|| self.lowest(lanes), |thread| thread.lane);
                Repr::Scalar(self.load_lane(reg, lane))
            }
            Shape::Affine(pattern) => {
                let count = if pattern.by_chunk { self.chunks() } else { 1 };
                let values: Vec<u64> = pattern.lanes.iter().map(|l| i64::from(*l) as u64).collect();
                let bases = (0..count).map(|c| {
                    // The value of the first active lane, less the constant of that lane.
                    let mask = if pattern.by_chunk {
                        let bits = (u64::from(u32::MAX) >> (LANES - self.width)) << (c * self.width);
                        self.b.and(lanes, self.c32(bits as u32))
                    } else {
                        lanes
                    };
                    let lane = self.lowest(mask);
                    let value = self.load_lane(reg, lane);
                    let table = self.b.const_ints(value.ty(), &values);
                    let added = self.b.extract_at(table, lane);
                    self.b.sub(value, added)
                });
                Repr::Bases(bases.collect())
            }
        }
    }

    /// Stores vectors, one for each chunk, to a register in the warp frame.
    pub(super) fn store_chunks(&mut self, reg: Reg, chunks: &[Value]) {
        let (place, bits) = self.place(reg);
        if bits == 1 {
            let chunks: Vec<LaneBits> = chunks.iter().map(|chunk| self.computed_bits(*chunk)).collect();
            return self.b.store(self.word(self.mask_of(&chunks)), place, 4);
        }
        for (c, chunk) in (0..).zip(chunks) {
            self.b.store(*chunk, self.place_chunk(reg, c), self.width * bits / 8);
        }
    }

    /// Stores a value to its register in the warp frame, in the lanes of `mask`; `None`: in all lanes.
    pub(super) fn store_reg(&mut self, reg: Reg, name: wir::Value, mask: Option<Mask>) {
        let (place, bits) = self.place(reg);
        if let Some(thread) = self.entry.thread {
            let value = self.scalar(name);
            if bits > 1 {
                return self.b.store(value, thread.place(self, place, bits / 8), bits / 8);
            }
            let old = self.b.load(self.int(32), place, 4);
            let others = self.b.and(old, self.b.not(thread.mask(self)));
            let own = self.b.shl(self.b.zext(value, self.int(32)), thread.lane);
            return self.b.store(self.b.or(others, own), place, 4);
        }
        if bits == 1 {
            let new = self.truths(name, false);
            let new = self.word(new);
            let new = match mask {
                None => new,
                Some(mask) => {
                    let mask = self.word(mask);
                    let old = self.b.load(self.int(32), place, 4);
                    let kept = self.b.not(mask);
                    let (old, new) = (self.b.and(old, kept), self.b.and(new, mask));
                    self.b.or(old, new)
                }
            };
            return self.b.store(new, place, 4);
        }
        let align = self.width * bits / 8;
        for c in 0..self.chunks() {
            let at = self.place_chunk(reg, c);
            let mut new = self.chunk(name, c);
            if let Some(mask) = mask {
                if bits >= 32 && self.env.target.level() == Level::Avx512 {
                    let lanes = self.mask_chunk(mask, c);
                    self.b.masked_store(new, at, align, lanes);
                    continue;
                }
                let old = self.b.load(new.ty(), at, align);
                let lanes = self.mask_chunk(mask, c);
                new = self.b.select(lanes, new, old);
            }
            self.b.store(new, at, align);
        }
    }

    /// `base + lane * stride` in a chunk.
    pub(super) fn strided(&self, base: Value, stride: Value, chunk: u32) -> Value {
        let lanes: Vec<u64> = (0..self.width).map(|l| u64::from(chunk * self.width + l)).collect();
        let lanes = self.b.const_ints(self.int(64), &lanes);
        let steps = self.b.mul(lanes, self.b.splat(stride, self.width));
        self.b.add(steps, self.b.splat(base, self.width))
    }

    /// An affine value as a vector.
    pub(super) fn expand(&self, bases: &[Value], pattern: &Affine, chunk: u32) -> Value {
        let base = if pattern.by_chunk { bases[chunk as usize] } else { bases[0] };
        let start = (chunk * self.width) as usize;
        let lanes: Vec<u64> =
            pattern.lanes[start..start + self.width as usize].iter().map(|l| i64::from(*l) as u64).collect();
        let lanes = self.b.const_ints(self.int(64), &lanes);
        self.b.add(self.b.splat(base, self.width), lanes)
    }

    /// The condition that any element of a vector of bits is set.
    pub(super) fn any(&self, bits: Value) -> Value {
        let word = self.bits_to_int(bits);
        self.b.icmp(IntPred::Ne, word, self.b.zero(word.ty()))
    }
}

/// The index of a register's file in the warp frame, and the width of a register in bits.
fn file_of(reg: Reg) -> (usize, u32) {
    match reg.class {
        RegClass::Pred => (0, 1),
        RegClass::R16 => (1, 16),
        RegClass::R32 => (2, 32),
        RegClass::R64 => (3, 64),
    }
}
