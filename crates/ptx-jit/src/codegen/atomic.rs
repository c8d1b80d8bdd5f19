//! `atom`, `red` and fences.
//!
//! Lanes act one after another in ascending order, each on its own location. Shared memory belongs to the one
//! OS thread of the CTA, so its updates are plain loads and stores; updates of other memory are atomic. Where
//! all lanes have one address and the old value is not read, the lanes' operands are combined into one
//! update.
//!
//! Invariant: a loop that may only wait for others ([`effects::waits`](crate::effects::waits)) has no native
//! atomics. There the interpreter's step executes them, which tells the scheduler whether it changed
//! anything.

use super::inst::Lanes;
use super::load_store::Addresses;
use super::mask::Mask;
use super::scaled_index::ScaledIndex;
use super::{Codegen, Repr, Touch};
use crate::isel::{Lower, Operand};
use crate::llvm::{AtomicOp, Block, FloatPred, IntPred, Likely, Ordering, Value};
use crate::reduction_buffer::{self, Kind};
use crate::tuning::SAME_ADDRESS_TEST_CHUNKS;
use crate::wir;
use crate::wir::access::{Access, Atomic, Plan, Strategy};
use crate::wir::{Op, Site};
use ptx::ir::{Inst, Src};
use ptx::isa::{AtomOp, Op as O, Sem, Space, Ty};

/// The areas of scratch memory: each holds eight bytes for every lane, in lane order.
#[derive(Clone, Copy)]
enum Put {
    Addresses,
    Second,
    Third,
    Old,
}

/// The atomic operation that is applied to one location.
#[derive(Clone, Copy)]
struct Update {
    op: AtomOp,
    ty: Ty,
    /// Whether only this OS thread accesses the memory.
    own: bool,
    /// Whether subnormal numbers are flushed to zero.
    ftz: bool,
    /// The kind of reduction that it is postponed as.
    postponed: Option<Kind>,
}

/// An operand of a lane: one value for all lanes, or an element of the scratch area.
#[derive(Clone, Copy)]
enum ByLane {
    Same(Value),
    Stored(Put),
}

impl Codegen<'_> {
    pub(super) fn atomic(&mut self, site: Site, inst: &Inst, op: &Op) -> bool {
        if !crate::effects::is_native_atomic(&inst.mods) || self.facts.waits[site.block as usize] {
            return false;
        }
        let Some(plan) = self.plan_of(site, op) else { return false };
        let access = plan.access;
        let mut next = 1;
        let Some(addresses) = self.addresses(inst, op, &mut next, &plan) else { return false };
        if !matches!(access.space, Space::Shared | Space::Global | Space::Generic) {
            return false;
        }
        let (Some(kind), ty) = (inst.mods.atom_op(), inst.mods.ty()) else { return false };
        let bits = |name: &wir::Value| self.scalar_type(self.kind(*name)).element_bits();
        if op.defs.first().is_some_and(|def| bits(def) != ty.bits()) {
            return false;
        }
        let own = access.space == Space::Shared;
        let postponed = match access.postponed {
            true => reduction_buffer::postponed(self.job.function, inst, access.space),
            false => None,
        };
        if postponed.is_some() {
            self.applied("postpone-reductions", "kept in a buffer, and performed with others");
        }
        let update = Update { op: kind, ty, own, ftz: !own, postponed };
        let mut operands = Vec::new();
        for src in inst.srcs.iter().skip(1).filter(|src| **src != Src::Absent) {
            let Some(values) = self.operand_of(src, op, &mut next, inst, access) else { return false };
            operands.push(values);
        }
        if operands.len() != if kind == AtomOp::Cas { 2 } else { 1 } {
            return false;
        }
        if self.position.access_checked || self.is_within((site, inst, op), access) {
            let Some(places) = self.placed(access, &addresses) else { return false };
            let Some(()) = self.or_undefined_atomic(site, &plan, &places, op) else { return false };
            let Some(()) = self.or_unordered(site, &plan, &places, op, Touch::Update) else { return false };
            let old = self.updates((update, &plan), &places, &operands, inst.mods.sem(), op);
            self.give(op, old);
            return true;
        }
        let Some((fits, places)) = self.places(site, access, &addresses, op) else { return false };
        if self.job.shape.only_starts() || self.job.exits_at_accesses() {
            let Some(()) = self.or_side_exit(fits, site, access, &addresses, op) else { return false };
            let Some(()) = self.or_undefined_atomic(site, &plan, &places, op) else { return false };
            let Some(()) = self.or_unordered(site, &plan, &places, op, Touch::Update) else { return false };
            let old = self.updates((update, &plan), &places, &operands, inst.mods.sem(), op);
            self.give(op, old);
            return true;
        }
        let (fast, slow) = self.fork(fits);
        self.b.position_at_end(fast);
        let old = self.updates((update, &plan), &places, &operands, inst.mods.sem(), op);
        let fast_end = self.b.current_block();
        let done = self.b.append_block(self.function, "updated");
        self.b.br(done);
        self.b.position_at_end(slow);
        let stepped = self.slow(site, inst, op, access, &addresses);
        let slow_end = self.b.current_block();
        self.b.br(done);
        self.b.position_at_end(done);
        if let (Some(old), Some(Repr::Chunks(stepped))) = (old, stepped.first()) {
            let merged = old.iter().zip(stepped).map(|(a, b)| {
                let phi = self.b.phi(a.ty());
                self.b.add_incoming(phi, *a, fast_end);
                self.b.add_incoming(phi, *b, slow_end);
                phi
            });
            let merged = merged.collect();
            self.give(op, Some(merged));
        } else {
            self.give(op, None);
        }
        true
    }

    /// Defines the result: the old values, or zeros if `old` is `None`, which happens only if nothing reads
    /// them.
    fn give(&mut self, op: &Op, old: Option<Vec<Value>>) {
        if let Some(def) = op.defs.first() {
            let zero = self.b.zero(self.b.vec(self.scalar_type(self.kind(*def)), self.width));
            let old = old.unwrap_or_else(|| vec![zero; self.chunks() as usize]);
            let rep = match self.job.shape.is_scalar() {
                true => Repr::Scalar(self.b.extract(old[0], 0)),
                false => Repr::Chunks(old),
            };
            self.values.define(*def, rep);
        }
    }

    /// An operand after the address: one value for all lanes, or a vector for each chunk.
    fn operand_of(
        &mut self,
        src: &Src,
        op: &Op,
        next: &mut usize,
        inst: &Inst,
        access: Access,
    ) -> Option<Repr> {
        let at = *next;
        let uniform = match src {
            Src::Imm(_) => true,
            Src::Reg(_) => op.uses.get(at).is_some_and(|name| self.is_scalar(*name)),
            _ => false,
        };
        if uniform {
            let value = match self.operand(src, op, next, Lanes::First(0), inst)? {
                Operand::Value(value, _) => value,
                Operand::Imm(bits) => self.c64(bits),
                Operand::Absent => return None,
            };
            return Some(Repr::Scalar(self.narrow(value, access)));
        }
        let mut chunks = Vec::new();
        for c in 0..self.chunks() {
            *next = at;
            let Operand::Value(value, _) = self.operand(src, op, next, Lanes::Chunk(c), inst)? else {
                return None;
            };
            chunks.push(self.narrow(value, access));
        }
        Some(Repr::Chunks(chunks))
    }

    /// Emits the updates. Returns the old values if they are read.
    fn updates(
        &mut self,
        (update, plan): (Update, &Plan),
        places: &Addresses,
        operands: &[Repr],
        sem: Sem,
        op: &Op,
    ) -> Option<Vec<Value>> {
        match sem {
            Sem::Release | Sem::AcqRel => self.b.fence(Ordering::Release),
            Sem::Sc => self.b.fence(Ordering::SequentiallyConsistent),
            Sem::Weak | Sem::Volatile | Sem::Relaxed | Sem::Acquire => {}
        }
        let (mask, whole) = (self.mask(op.uses[0]), plan.active.whole);
        let wanted = op.defs.iter().any(|def| self.job.func.needed[def.0 as usize]);
        let Strategy::Atomic(how) = plan.strategy else { unreachable!("ptxvm bug: no atomic operation") };
        self.remark_strategy(plan, false);
        let old = match (how, places) {
            (Atomic::Combined, Addresses::Same(place)) => {
                self.summed(update, *place, &operands[0], mask, whole);
                None
            }
            (Atomic::SameAddressTest, _) => {
                let done = self.b.append_block(self.function, "done");
                let (one, several) = (
                    self.b.append_block(self.function, "one"),
                    self.b.append_block(self.function, "several"),
                );
                let place = self.branch_if_one(places, mask, whole, [one, several]);
                self.b.position_at_end(one);
                self.summed(update, place, &operands[0], mask, whole);
                self.b.br(done);
                self.b.position_at_end(several);
                self.each_lane(update, places, operands, mask, whole, false);
                self.b.br(done);
                self.b.position_at_end(done);
                None
            }
            (Atomic::Combined | Atomic::InRegister | Atomic::EachLane, _) => {
                self.each_lane(update, places, operands, mask, whole, wanted)
            }
        };
        if update.postponed.is_some() {
            self.perform_if_full();
        }
        match sem {
            Sem::Acquire | Sem::AcqRel => self.b.fence(Ordering::Acquire),
            Sem::Sc => self.b.fence(Ordering::SequentiallyConsistent),
            Sem::Weak | Sem::Volatile | Sem::Relaxed | Sem::Release => {}
        }
        old
    }

    /// Branches to the first block if all active lanes have one address, which this function returns, and to
    /// the second block otherwise.
    ///
    /// Usually two lanes of the first chunk differ already, so the other chunks are compared only if the
    /// lanes of the first are equal.
    fn branch_if_one(
        &mut self,
        places: &Addresses,
        mask: Mask,
        whole: bool,
        [one, several]: [Block; 2],
    ) -> Value {
        let chunks = match places {
            Addresses::ScaledIndex(spread) => spread.index.clone(),
            Addresses::Same(_) | Addresses::Affine(..) | Addresses::Rows(..) | Addresses::Each(_) => {
                self.each(places)
            }
        };
        let place = if whole {
            self.b.extract(chunks[0], 0)
        } else {
            let lane = self.lowest(self.word(mask));
            self.lane_of(&chunks, lane)
        };
        let differ = |emit: &mut Self, part: std::ops::Range<usize>| {
            let mut differ = None;
            for c in part {
                let mut other = emit.b.icmp(IntPred::Ne, chunks[c], emit.b.splat(place, emit.width));
                if !whole {
                    let lanes = emit.mask_chunk(mask, c as u32);
                    other = emit.b.and(other, lanes);
                }
                differ = Some(differ.map_or(other, |others| emit.b.or(others, other)));
            }
            emit.any(differ.expect("there are chunks"))
        };
        let named = match places {
            Addresses::ScaledIndex(spread) => self.one_of(spread, place),
            Addresses::Same(_) | Addresses::Affine(..) | Addresses::Rows(..) | Addresses::Each(_) => place,
        };
        let mut last = 0..chunks.len();
        if chunks.len() > SAME_ADDRESS_TEST_CHUNKS {
            let rest = self.b.append_block(self.function, "rest");
            let first = differ(self, 0..1);
            self.b.cond_br(first, several, rest, Likely::Unknown);
            self.b.position_at_end(rest);
            last.start = 1;
        }
        let mut several_of = differ(self, last);
        if !whole {
            let word = self.word(mask);
            let none = self.b.icmp(IntPred::Eq, word, self.b.zero(word.ty()));
            several_of = self.b.or(several_of, none);
        }
        self.b.cond_br(several_of, several, one, Likely::Unknown);
        named
    }

    /// One update with the combined operands of all active lanes.
    fn summed(&mut self, update: Update, place: Value, operand: &Repr, mask: Mask, whole: bool) {
        let Some((name, idle)) = sum(update) else { return };
        let ty = self.int(update.ty.bits());
        let add = update.op == AtomOp::Add;
        let total = match operand {
            Repr::Scalar(value) if add => {
                let word = self.word(mask);
                let count = self.b.intrinsic("llvm.ctpop", &[word.ty()], &[word]);
                let count = self.as_long(count);
                let count = if ty == self.int(32) { self.b.trunc(count, ty) } else { count };
                self.b.mul(count, *value)
            }
            Repr::Scalar(value) => *value,
            Repr::Mask(_) | Repr::Number(_) | Repr::Narrow(_) | Repr::Kept(_) => {
                unreachable!("ptxvm bug: an operand that was not read")
            }
            Repr::Bases(chunks) | Repr::Chunks(chunks) => {
                let mut all = None;
                for (c, chunk) in chunks.iter().enumerate() {
                    let mut chunk = *chunk;
                    if !whole {
                        let lanes = self.mask_chunk(mask, c as u32);
                        chunk = self.b.select(lanes, chunk, self.b.const_int(chunk.ty(), idle));
                    }
                    let part = match chunk.ty().lanes() {
                        1 => chunk,
                        _ => self.b.intrinsic(name, &[chunk.ty()], &[chunk]),
                    };
                    all = Some(match all {
                        None => part,
                        Some(others) => self.combined(update, others, part, None),
                    });
                }
                all.expect("there are chunks")
            }
        };
        if let Some(kind) = update.postponed {
            if whole {
                self.postpone(kind, place, total);
            } else {
                let word = self.word(mask);
                let some = self.b.icmp(IntPred::Ne, word, self.b.zero(word.ty()));
                self.postpone_if(some, kind, place, total);
            }
            return;
        }
        // A scalar operand is not the identity of the operation.
        let place = self.place_of_some(place, mask, whole);
        self.update(update, place, total, None);
    }

    /// The place that the active lanes access, or scratch memory if no lane is active.
    fn place_of_some(&self, place: Value, mask: Mask, whole: bool) -> Value {
        let place = self.b.int_to_ptr(place);
        if whole {
            return place;
        }
        let word = self.word(mask);
        let some = self.b.icmp(IntPred::Ne, word, self.b.zero(word.ty()));
        self.b.select(some, place, self.entry.scratch.expect("made at the start"))
    }

    /// The updates of the lanes, one after another.
    fn each_lane(
        &mut self,
        update: Update,
        places: &Addresses,
        operands: &[Repr],
        mask: Mask,
        whole: bool,
        wanted: bool,
    ) -> Option<Vec<Value>> {
        if let (Some(kind), true) = (update.postponed, whole) {
            self.postpone_all(kind, places, operands.first()?);
            return None;
        }
        let bytes = u64::from(update.ty.bits() / 8);
        let address = match places {
            Addresses::Same(place) => ByLane::Same(*place),
            Addresses::ScaledIndex(spread) if spread.bytes => {
                let ty = self.b.vec(self.int(8), self.width);
                let cut: Vec<Value> = spread.index.iter().map(|chunk| self.b.trunc(*chunk, ty)).collect();
                self.put(Put::Addresses, &cut);
                ByLane::Stored(Put::Addresses)
            }
            Addresses::ScaledIndex(spread) => {
                self.put(Put::Addresses, &spread.index);
                ByLane::Stored(Put::Addresses)
            }
            Addresses::Affine(..) | Addresses::Rows(..) | Addresses::Each(_) => {
                let chunks = self.each(places);
                self.put(Put::Addresses, &chunks);
                ByLane::Stored(Put::Addresses)
            }
        };
        let put = |emit: &mut Self, at: Put, operand: Option<&Repr>| match operand {
            None => None,
            Some(Repr::Mask(_) | Repr::Number(_) | Repr::Narrow(_) | Repr::Kept(_)) => {
                unreachable!("ptxvm bug: an operand that was not read")
            }
            Some(Repr::Scalar(value)) => Some(ByLane::Same(*value)),
            Some(Repr::Bases(chunks) | Repr::Chunks(chunks)) => {
                emit.put(at, chunks);
                Some(ByLane::Stored(at))
            }
        };
        let second = put(self, Put::Second, operands.first())?;
        let third = put(self, Put::Third, operands.get(1));
        let ty = self.int(update.ty.bits());
        let old = |emit: &mut Self, lane: Value, old: Value| {
            if wanted {
                let at = emit.b.mul(lane, emit.c64(bytes));
                let to = emit.b.gep(emit.area(Put::Old), at);
                emit.b.store(old, to, bytes as u32);
            }
        };
        match places {
            Addresses::Same(place) if update.own => {
                let place = self.place_of_some(*place, mask, whole);
                let operands = |emit: &Self, lane: Value| {
                    (emit.take(second, ty, lane), third.map(|third| emit.take(third, ty, lane)))
                };
                self.in_register(update, place, operands, (mask, whole), wanted.then_some(old));
            }
            _ => {
                self.each_active_lane(mask, whole, None, |emit, lane, _| {
                    let place = match places {
                        Addresses::ScaledIndex(spread) => {
                            let index = emit.take(address, emit.int(if spread.bytes { 8 } else { 32 }), lane);
                            let index = if spread.bytes { emit.b.zext(index, emit.int(32)) } else { index };
                            emit.one_of(spread, index)
                        }
                        Addresses::Same(_)
                        | Addresses::Affine(..)
                        | Addresses::Rows(..)
                        | Addresses::Each(_) => emit.take(address, emit.int(64), lane),
                    };
                    let second = emit.take(second, ty, lane);
                    if let Some(kind) = update.postponed {
                        emit.postpone(kind, place, second);
                    } else {
                        let third = third.map(|third| emit.take(third, ty, lane));
                        let before = emit.update(update, emit.b.int_to_ptr(place), second, third);
                        old(emit, lane, before);
                    }
                    None
                });
            }
        }
        if !wanted {
            return None;
        }
        let vector = self.b.vec(ty, self.width);
        let chunk = |c: u32| {
            let at = u64::from(c * self.width) * bytes;
            self.b.load(vector, self.b.offset(self.area(Put::Old), at), bytes as u32)
        };
        Some((0..self.chunks()).map(chunk).collect())
    }

    /// The updates of all active lanes at one place that nothing else accesses meanwhile: it is loaded and
    /// stored once. `old`: what is done with the old values, by lane, if they are read.
    fn in_register(
        &mut self,
        update: Update,
        place: Value,
        operands: impl Fn(&Self, Value) -> (Value, Option<Value>),
        (mask, whole): (Mask, bool),
        old: Option<impl Fn(&mut Self, Value, Value)>,
    ) {
        let (bits, bytes) = (self.int(update.ty.bits()), update.ty.bits() / 8);
        let number = match (update.op, update.ty) {
            (AtomOp::Add, Ty::F32) => Some(self.b.f32()),
            (AtomOp::Add, Ty::F64) => Some(self.b.f64()),
            _ => None,
        };
        let ty = number.unwrap_or(bits);
        let first = self.b.load(ty, place, bytes);
        let exact = |emit: &mut Self| {
            let last = emit.each_active_lane(mask, whole, Some(first), |emit, lane, kept| {
                let (before, (second, third)) = (emit.b.bitcast(kept?, bits), operands(emit, lane));
                let new = emit.combined(update, before, second, third);
                if let Some(old) = &old {
                    old(emit, lane, before);
                }
                Some(emit.b.bitcast(new, ty))
            });
            last.unwrap_or(first)
        };
        let plain = number.is_some() && !update.ftz && old.is_none();
        let last = if plain {
            // The processor's sum is that of PTX unless it is a NaN.
            let add = |emit: &mut Self, lane: Value, kept: Option<Value>| {
                let more = operands(emit, lane).0;
                Some(emit.b.fadd(kept?, emit.b.bitcast(more, ty)))
            };
            let sum = self.each_active_lane(mask, whole, Some(first), add).unwrap_or(first);
            let from = self.b.current_block();
            let (again, done) =
                (self.b.append_block(self.function, "nan"), self.b.append_block(self.function, "sum"));
            self.b.cond_br(self.b.fcmp(FloatPred::Uno, sum, sum), again, done, Likely::No);
            self.b.position_at_end(again);
            let nan = exact(self);
            let end = self.b.current_block();
            self.b.br(done);
            self.b.position_at_end(done);
            self.phi_of([(sum, from), (nan, end)])
        } else {
            exact(self)
        };
        self.b.store(last, place, bytes);
    }

    /// The value that a base plus scaled index has for this index.
    pub(super) fn one_of(&self, spread: &ScaledIndex, index: Value) -> Value {
        let long = self.int(64);
        let wide = if spread.signed { self.b.sext(index, long) } else { self.b.zext(index, long) };
        let steps = self.b.mul(wide, self.c64(spread.scale));
        self.b.add(steps, spread.base)
    }

    fn area(&self, put: Put) -> Value {
        let at = put as u64 * 8 * u64::from(self.lanes);
        self.b.offset(self.entry.scratch.expect("made at the start"), at)
    }

    /// Stores the chunks of a value into an area of scratch memory.
    fn put(&self, put: Put, chunks: &[Value]) {
        for (c, chunk) in chunks.iter().enumerate() {
            let bytes = chunk.ty().element_bits() / 8;
            let more = c as u64 * u64::from(self.width * bytes);
            self.b.store(*chunk, self.b.offset(self.area(put), more), bytes);
        }
    }

    /// The operand of a lane.
    fn take(&self, operand: ByLane, ty: crate::llvm::Type, lane: Value) -> Value {
        match operand {
            ByLane::Same(value) => value,
            ByLane::Stored(at) => {
                let bytes = ty.element_bits() / 8;
                let offset = self.b.mul(lane, self.c64(bytes.into()));
                self.b.load(ty, self.b.gep(self.area(at), offset), bytes)
            }
        }
    }

    /// The update of one lane. Returns the old value.
    fn update(&mut self, update: Update, place: Value, b: Value, c: Option<Value>) -> Value {
        let (ty, bytes) = (self.int(update.ty.bits()), update.ty.bits() / 8);
        if update.own {
            let old = self.b.load(ty, place, bytes);
            let new = self.combined(update, old, b, c);
            self.b.store(new, place, bytes);
            return old;
        }
        self.out.updates = true;
        if let (AtomOp::Cas, Some(c)) = (update.op, c) {
            return self.b.cmpxchg(place, b, c, Ordering::Monotonic).0;
        }
        if let Some(op) = machine_op(update) {
            return self.b.atomicrmw(op, place, b, Ordering::Monotonic);
        }
        let first = self.b.load_atomic(ty, place, bytes, Ordering::Monotonic);
        let from = self.b.current_block();
        let (again, done) =
            (self.b.append_block(self.function, "again"), self.b.append_block(self.function, "replaced"));
        self.b.br(again);
        self.b.position_at_end(again);
        let old = self.b.phi(ty);
        self.b.add_incoming(old, first, from);
        let new = self.combined(update, old, b, c);
        let (found, stored) = self.b.cmpxchg(place, old, new, Ordering::Monotonic);
        self.b.add_incoming(old, found, self.b.current_block());
        self.b.cond_br(stored, done, again, Likely::Yes);
        self.b.position_at_end(done);
        old
    }

    /// The result of the operation on the old value and the operands.
    fn combined(&self, update: Update, old: Value, b: Value, c: Option<Value>) -> Value {
        let signed = matches!(update.ty, Ty::S32 | Ty::S64);
        let pick = |name: &str| self.b.intrinsic(name, &[old.ty()], &[old, b]);
        let compare = |pred| self.b.icmp(pred, old, b);
        let (zero, one) = (self.b.zero(old.ty()), self.b.const_int(old.ty(), 1));
        match update.op {
            AtomOp::And => self.b.and(old, b),
            AtomOp::Or => self.b.or(old, b),
            AtomOp::Xor => self.b.xor(old, b),
            AtomOp::Exch => b,
            AtomOp::Add if matches!(update.ty, Ty::F32 | Ty::F64) => {
                self.lower_scalar().atomic_sum(old, b, update.ftz)
            }
            AtomOp::Add => self.b.add(old, b),
            AtomOp::Min => pick(if signed { "llvm.smin" } else { "llvm.umin" }),
            AtomOp::Max => pick(if signed { "llvm.smax" } else { "llvm.umax" }),
            AtomOp::Inc => {
                let more = self.b.add(old, one);
                self.b.select(compare(IntPred::Uge), zero, more)
            }
            AtomOp::Dec => {
                let less = self.b.sub(old, one);
                let none = self.b.icmp(IntPred::Eq, old, zero);
                let over = self.b.or(none, compare(IntPred::Ugt));
                self.b.select(over, b, less)
            }
            AtomOp::Cas => match c {
                Some(c) => self.b.select(compare(IntPred::Eq), c, old),
                None => old,
            },
        }
    }

    /// Lowers operations of one lane.
    fn lower_scalar(&self) -> Lower<'_, '_> {
        Lower { b: &self.b, env: self.env, lanes: 1, carry_in: None, carry_out: None, any_nan: false }
    }

    /// `membar` and `fence`.
    pub(super) fn fence(&mut self, inst: &Inst) -> bool {
        let weaker = inst.op == O::Fence && inst.mods.sem() == Sem::AcqRel;
        self.b.fence(if weaker { Ordering::AcquireRelease } else { Ordering::SequentiallyConsistent });
        true
    }
}

/// The vector reduction that gives the same result as updates one after another, and the identity of the
/// operation.
fn sum(update: Update) -> Option<(&'static str, u64)> {
    if matches!(update.ty, Ty::F32 | Ty::F64) {
        return None;
    }
    let bits = update.ty.bits();
    let all = u64::MAX >> (64 - bits);
    let top = 1 << (bits - 1);
    Some(match (update.op, matches!(update.ty, Ty::S32 | Ty::S64)) {
        (AtomOp::Add, _) => ("llvm.vector.reduce.add", 0),
        (AtomOp::And, _) => ("llvm.vector.reduce.and", all),
        (AtomOp::Or, _) => ("llvm.vector.reduce.or", 0),
        (AtomOp::Min, false) => ("llvm.vector.reduce.umin", all),
        (AtomOp::Max, false) => ("llvm.vector.reduce.umax", 0),
        (AtomOp::Min, true) => ("llvm.vector.reduce.smin", all ^ top),
        (AtomOp::Max, true) => ("llvm.vector.reduce.smax", top),
        (AtomOp::Xor | AtomOp::Exch | AtomOp::Cas | AtomOp::Inc | AtomOp::Dec, _) => return None,
    })
}

/// The atomic operation of the processor, if it has one.
fn machine_op(update: Update) -> Option<AtomicOp> {
    let number = matches!(update.ty, Ty::F32 | Ty::F64);
    let signed = matches!(update.ty, Ty::S32 | Ty::S64);
    Some(match update.op {
        AtomOp::Exch => AtomicOp::Xchg,
        AtomOp::Add if !number => AtomicOp::Add,
        AtomOp::And => AtomicOp::And,
        AtomOp::Or => AtomicOp::Or,
        AtomOp::Xor => AtomicOp::Xor,
        AtomOp::Min if signed => AtomicOp::Min,
        AtomOp::Max if signed => AtomicOp::Max,
        AtomOp::Min => AtomicOp::Umin,
        AtomOp::Max => AtomicOp::Umax,
        AtomOp::Add | AtomOp::Inc | AtomOp::Dec | AtomOp::Cas => return None,
    })
}
