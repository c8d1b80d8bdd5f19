//! Instructions in which the lanes of a warp exchange values: `shfl`, `vote`, `match`, `bar.warp.sync`,
//! `activemask`.

use super::inst::Lanes;
use super::mask::LaneBits;
use super::{Codegen, LANES, Repr};
use crate::isel::Operand;
use crate::llvm::{IntPred, Likely, Value};
use crate::target::Level;
use crate::wir;
use crate::wir::{Op, Shape, Site};
use ptx::ir::{Dst, Inst, Src};
use ptx::isa::VoteMode;
use ptx_exec::bind::shfl_semantics;
use ptx_sem::shfl_source;
use std::collections::BTreeMap;

impl Codegen<'_> {
    /// Whether the active lanes are all the live members of a warp-synchronous instruction.
    pub(super) fn together(
        &mut self,
        site: Site,
        members: Option<wir::Value>,
        mask: wir::Value,
        live: wir::Value,
    ) -> Value {
        let (mask, live) = (self.scalar(mask), self.scalar(live));
        if self.job.shape.team > 1 {
            return self.together_in_each(site, members, mask, live);
        }
        let members = match members {
            Some(name) if self.is_scalar(name) => self.scalar(name),
            Some(name) => {
                // All active lanes must name the same members.
                let first = self.first_lane(name, mask);
                let mut same = self.c32(0);
                let chunks: Vec<LaneBits> = (0..self.chunks())
                    .map(|c| {
                        let (have, want) = (self.chunk(name, c), self.b.splat(first, self.width));
                        self.computed_bits(self.b.icmp(IntPred::Eq, have, want))
                    })
                    .collect();
                let equal = self.word(self.mask_of(&chunks));
                same = self.b.or(same, equal);
                let differ = self.b.not(same);
                let differ = self.b.and(differ, mask);
                let differ = self.b.icmp(IntPred::Ne, differ, self.c32(0));
                // Then the member mask becomes empty, which never passes the test.
                self.b.select(differ, self.c32(0), first)
            }
            None => {
                let inst = site.inst(self.job.function);
                match inst.and_then(|inst| inst.srcs.last()) {
                    Some(Src::Imm(bits)) => self.c32(*bits as u32),
                    _ => self.c32(0),
                }
            }
        };
        let both = self.b.and(members, live);
        let outside = self.b.not(members);
        let outside = self.b.and(mask, outside);
        let all = self.b.icmp(IntPred::Eq, both, mask);
        let none = self.b.icmp(IntPred::Eq, outside, self.c32(0));
        self.b.and(all, none)
    }

    /// As [`Codegen::together`], for each warp of a coarse warp.
    fn together_in_each(
        &mut self,
        site: Site,
        members: Option<wir::Value>,
        mask: Value,
        live: Value,
    ) -> Value {
        let members = match (members, site.inst(self.job.function).and_then(|inst| inst.srcs.last())) {
            (Some(name), _) if self.is_scalar(name) => self.scalar(name),
            (None, Some(Src::Imm(bits))) => self.c32(*bits as u32),
            _ => {
                self.out.unfit = true;
                self.c32(0)
            }
        };
        let live = if self.position.full { mask } else { live };
        let ty = self.b.vec(self.int(32), self.job.shape.team);
        let (mask, live) = (self.b.bitcast(mask, ty), self.b.bitcast(live, ty));
        let members = self.b.splat(members, self.job.shape.team);
        let outside = self.b.and(mask, self.b.not(members));
        let here = self.b.xor(self.b.and(members, live), mask);
        // Warps without an active lane are not tested.
        let odd = self.b.icmp(IntPred::Ne, self.b.or(outside, here), self.b.zero(ty));
        let runs = self.b.icmp(IntPred::Ne, mask, self.b.zero(ty));
        let odd = self.b.bitcast(self.b.and(odd, runs), self.int(self.job.shape.team));
        self.b.icmp(IntPred::Eq, odd, self.b.zero(odd.ty()))
    }

    /// The part of a mask that belongs to a warp.
    fn word_of(&self, mask: Value, warp: u32) -> Value {
        if self.job.shape.team == 1 {
            return mask;
        }
        let shifted = self.b.lshr(mask, self.b.const_int(mask.ty(), u64::from(warp * LANES)));
        self.b.trunc(shifted, self.int(32))
    }

    /// Defines a value from one scalar for each warp.
    pub(super) fn define_by_warp(&mut self, name: wir::Value, of: impl Fn(&Self, u32) -> Value) {
        let warps: Vec<Value> = (0..self.job.shape.team).map(|warp| of(self, warp)).collect();
        if let [one] = warps.as_slice() {
            return self.define(name, *one);
        }
        let chunk = |c: u32| warps[(c * self.width / LANES) as usize];
        let rep = match self.shape(name) {
            Shape::Varying => {
                Repr::Chunks((0..self.chunks()).map(|c| self.b.splat(chunk(c), self.width)).collect())
            }
            Shape::Affine(pattern) if pattern.by_chunk => {
                Repr::Bases((0..self.chunks()).map(chunk).collect())
            }
            Shape::Uniform(_) | Shape::Bottom | Shape::Affine(_) => {
                self.out.unfit = true;
                return self.define(name, warps[0]);
            }
        };
        self.values.define(name, rep);
    }

    /// `activemask`
    pub(super) fn activemask(&mut self, op: &Op) -> bool {
        let mask = self.scalar(op.uses[0]);
        self.define_by_warp(op.defs[0], |emit, warp| emit.word_of(mask, warp));
        true
    }

    /// The value of the lowest active lane.
    fn first_lane(&mut self, name: wir::Value, mask: Value) -> Value {
        let lane = self.lowest(mask);
        let place = self.entry.scratch.expect("made at the start");
        let mut bytes = 0;
        for c in 0..self.chunks() {
            let chunk = self.chunk(name, c);
            bytes = chunk.ty().element_bits() / 8;
            self.b.store(chunk, self.b.offset(place, u64::from(c * self.width * bytes)), bytes);
        }
        let offset = self.b.mul(lane, self.c32(bytes));
        let offset = self.b.zext(offset, self.int(64));
        self.b.load(self.int(8 * bytes), self.b.gep(place, offset), bytes)
    }

    pub(super) fn vote(&mut self, inst: &Inst, op: &Op) -> bool {
        let mask = self.scalar(op.uses[0]);
        let holds = match &inst.srcs[0] {
            Src::Reg(_) => self.truths(op.uses[1], false),
            Src::Not(_) => self.truths(op.uses[1], true),
            Src::Imm(bits) if bits & 1 != 0 => self.all_lanes(),
            Src::Imm(_) => self.no_lane(),
            Src::Absent | Src::Sreg(..) | Src::Addr(_) | Src::Video(_) => {
                unreachable!("ptxvm bug: `vote` of something else")
            }
        };
        let holds = self.b.and(self.word(holds), mask);
        let Some(def) = op.defs.first() else { return true };
        self.define_by_warp(*def, |emit, warp| {
            let (holds, mask) = (emit.word_of(holds, warp), emit.word_of(mask, warp));
            let all = emit.b.icmp(IntPred::Eq, holds, mask);
            let none = emit.b.icmp(IntPred::Eq, holds, emit.c32(0));
            match inst.mods.vote_mode() {
                Some(VoteMode::All) => all,
                Some(VoteMode::Any) => emit.b.not(none),
                Some(VoteMode::Uni) => emit.b.or(all, none),
                Some(VoteMode::Ballot) | None => holds,
            }
        });
        true
    }

    /// `match.any` and `match.all`.
    pub(super) fn matched(&mut self, inst: &Inst, op: &Op) -> bool {
        if self.job.shape.team > 1 {
            return false;
        }
        let mask = self.scalar(op.uses[0]);
        let mut values = Vec::new();
        for c in 0..self.chunks() {
            let mut next = 1;
            let Some(operand) = self.operand(&inst.srcs[0], op, &mut next, Lanes::Chunk(c), inst) else {
                return false;
            };
            values.push(match operand {
                Operand::Value(value, _) => value,
                Operand::Imm(bits) => self.b.const_splat(self.b.vec(self.int(64), self.width), bits),
                Operand::Absent => return false,
            });
        }
        let equal = |emit: &Self, value: Value| {
            let one = |chunk: &Value| {
                emit.computed_bits(emit.b.icmp(IntPred::Eq, *chunk, emit.b.splat(value, emit.width)))
            };
            let chunks: Vec<LaneBits> = values.iter().map(one).collect();
            let all = emit.word(emit.mask_of(&chunks));
            emit.b.and(all, mask)
        };
        let lane = self.lowest(mask);
        let first = self.lane_of(&values, lane);
        let with_first = equal(self, first);
        if inst.op == ptx::isa::Op::MatchAll {
            let all = self.b.icmp(IntPred::Eq, with_first, mask);
            let given = self.b.select(all, mask, self.c32(0));
            let mut defs = op.defs.iter();
            for (dst, value) in inst.dsts.iter().zip([given, all]) {
                if let (Dst::Reg(_), Some(def)) = (dst, defs.next()) {
                    self.define(*def, value);
                }
            }
            return true;
        }
        let Some(def) = op.defs.first().copied() else { return true };
        // One iteration for each distinct value. The values are in the scratch area.
        let from = self.b.current_block();
        let (turn, done) =
            (self.b.append_block(self.function, "value"), self.b.append_block(self.function, "matched"));
        self.b.br(turn);
        self.b.position_at_end(turn);
        let left = self.b.phi(self.int(32));
        let same = self.b.phi(self.int(32));
        let ty = self.b.vec(self.int(32), self.width);
        let found: Vec<Value> = (0..self.chunks()).map(|_| self.b.phi(ty)).collect();
        let mut next = Vec::new();
        for (c, old) in found.iter().enumerate() {
            let lanes = self.chunk_of_word(same, c as u32);
            next.push(self.b.select(lanes, self.b.splat(same, self.width), *old));
        }
        let others = self.b.not(same);
        let rest = self.b.and(left, others);
        let lane = self.lowest(rest);
        let value = self.lane_at(&values, lane);
        let with = equal(self, value);
        let end = self.b.current_block();
        for (phi, start, again) in [(left, mask, rest), (same, with_first, with)] {
            self.b.add_incoming(phi, start, from);
            self.b.add_incoming(phi, again, end);
        }
        for (phi, again) in found.iter().zip(&next) {
            self.b.add_incoming(*phi, self.b.zero(ty), from);
            self.b.add_incoming(*phi, *again, end);
        }
        let none = self.b.icmp(IntPred::Eq, rest, self.c32(0));
        self.b.cond_br(none, done, turn, Likely::Unknown);
        self.b.position_at_end(done);
        self.values.define(def, Repr::Chunks(next));
        true
    }

    pub(super) fn shfl(&mut self, inst: &Inst, op: &Op) -> bool {
        let mode = inst.mods.shfl_mode().map_or(ptx_sem::ShflMode::Idx, shfl_semantics);
        let mask = self.scalar(op.uses[0]);
        let mut sources: [Vec<Operand>; 3] = Default::default();
        let loose = matches!(inst.dsts.first(), Some(Dst::Reg(_))) && self.may_be_noncanonical(op.defs[0]);
        for c in 0..self.chunks() {
            let operands = self.free_operands(inst, op, Lanes::Chunk(c), u32::from(loose));
            let operands = operands.expect("`shfl` has plain operands");
            for (list, operand) in sources.iter_mut().zip(operands) {
                list.push(operand);
            }
        }
        let [a, b, c] = sources;
        let vector = |emit: &Self, operand: &Operand| match operand {
            Operand::Value(value, _) => *value,
            Operand::Imm(bits) => emit.b.const_splat(emit.b.vec(emit.int(32), emit.width), *bits),
            Operand::Absent => emit.b.zero(emit.b.vec(emit.int(32), emit.width)),
        };
        let own: Vec<Value> = a.iter().map(|a| vector(self, a)).collect();
        let mut results = [Vec::new(), Vec::new()];
        let each = (LANES / self.width) as usize;
        for warp in 0..self.job.shape.team {
            let mask = self.word_of(mask, warp);
            let at = warp as usize * each..(warp as usize + 1) * each;
            let own = &own[at.clone()];
            let (taken, valid) = match (&b[0], &c[0]) {
                (Operand::Imm(b), Operand::Imm(c)) => {
                    let table: Vec<(u32, bool)> =
                        (0..LANES).map(|lane| shfl_source(mode, lane, *b as u32, *c as u32)).collect();
                    self.fixed(own, mask, &table)
                }
                _ => {
                    let b: Vec<Value> = b[at.clone()].iter().map(|b| vector(self, b)).collect();
                    let c: Vec<Value> = c[at].iter().map(|c| vector(self, c)).collect();
                    self.computed(own, mask, mode, &b, &c)
                }
            };
            results[0].extend(taken);
            results[1].extend(valid);
        }
        let mut defs = op.defs.iter();
        for (dst, result) in inst.dsts.iter().zip(results) {
            if let Dst::Reg(_) = dst
                && let Some(def) = defs.next()
            {
                let rep = match self.shape(*def) {
                    Shape::Uniform(_) | Shape::Bottom => Repr::Scalar(self.b.extract(result[0], 0)),
                    Shape::Affine(_) | Shape::Varying => Repr::Chunks(result),
                };
                self.values.define(*def, rep);
            }
        }
        true
    }

    /// Each lane takes the value of a lane that is known at compile time.
    fn fixed(&mut self, own: &[Value], mask: Value, table: &[(u32, bool)]) -> (Vec<Value>, Vec<Value>) {
        let mut whole = own[0];
        let mut level: Vec<Value> = own.to_vec();
        while level.len() > 1 {
            level = level.chunks(2).map(|pair| self.b.concat(pair[0], pair[1])).collect();
            whole = level[0];
        }
        let (mut taken, mut valid) = (Vec::new(), Vec::new());
        let runs = if self.position.full { mask } else { self.givers(mask, table) };
        for at in 0..own.len() {
            let start = at * self.width as usize;
            let part = &table[start..start + self.width as usize];
            let indices: Vec<i32> = part.iter().map(|(lane, _)| *lane as i32).collect();
            let from = self.b.permute(whole, &indices);
            let value = if self.position.full {
                from
            } else {
                // An inactive lane gives zero.
                self.b.select(
                    self.bits_from(runs, start as u32, self.width),
                    from,
                    self.b.zero(self.b.vec(self.int(32), self.width)),
                )
            };
            taken.push(value);
            let bits: Vec<u64> = part.iter().map(|(_, valid)| u64::from(*valid)).collect();
            valid.push(self.b.const_ints(self.int(1), &bits));
        }
        (taken, valid)
    }

    /// The lanes of a warp that take from a lane of the mask, or from themselves. The bits of lanes outside
    /// of the mask have no meaning.
    fn givers(&self, mask: Value, table: &[(u32, bool)]) -> Value {
        // Lanes that take from the same distance are handled together, by one shift of the mask for each
        // distance.
        let mut distances: BTreeMap<i64, u32> = BTreeMap::new();
        for (lane, (from, _)) in (0..).zip(table) {
            if *from != lane {
                *distances.entry(i64::from(*from) - i64::from(lane)).or_default() |= 1 << lane;
            }
        }
        let own = (0..).zip(table).filter(|(lane, (from, _))| from == lane);
        let mut givers = self.c32(own.fold(0, |lanes: u32, (lane, _): (u32, _)| lanes | 1 << lane));
        for (distance, lanes) in distances {
            let by = self.c32(distance.unsigned_abs() as u32);
            let shifted = if distance < 0 { self.b.shl(mask, by) } else { self.b.lshr(mask, by) };
            givers = self.b.or(givers, self.b.and(shifted, self.c32(lanes)));
        }
        givers
    }

    /// Each lane takes the value of a lane that is computed at run time.
    fn computed(
        &mut self,
        own: &[Value],
        mask: Value,
        mode: ptx_sem::ShflMode,
        b: &[Value],
        c: &[Value],
    ) -> (Vec<Value>, Vec<Value>) {
        let ty = self.b.vec(self.int(32), self.width);
        let splat = |emit: &Self, value: u64| emit.b.const_splat(ty, value);
        let place = self.entry.scratch.expect("made at the start");
        // With 16 lanes in a chunk, one instruction permutes both chunks.
        let pair = (self.env.target.level() == Level::Avx512 && own.len() == 2).then(|| (own[0], own[1]));
        if pair.is_none() {
            for (at, own) in own.iter().enumerate() {
                self.b.store(*own, self.b.offset(place, at as u64 * u64::from(self.width) * 4), 4);
            }
        }
        let (mut taken, mut valid) = (Vec::new(), Vec::new());
        for (at, own) in own.iter().enumerate() {
            let lanes: Vec<u64> = (0..self.width).map(|l| u64::from(at as u32 * self.width + l)).collect();
            let lane = self.b.const_ints(self.int(32), &lanes);
            let low = splat(self, 31);
            let bval = self.b.and(b[at], low);
            let segment = self.b.lshr(c[at], splat(self, 8));
            let segment = self.b.and(segment, low);
            let outside = self.b.not(segment);
            let least = self.b.and(lane, segment);
            let clamp = self.b.and(c[at], low);
            let clamp = self.b.and(clamp, outside);
            let most = self.b.or(least, clamp);
            let (source, ok) = match mode {
                ptx_sem::ShflMode::Up => {
                    let first = self.b.add(bval, most);
                    (self.b.sub(lane, bval), self.b.icmp(IntPred::Uge, lane, first))
                }
                ptx_sem::ShflMode::Down => {
                    let source = self.b.add(lane, bval);
                    (source, self.b.icmp(IntPred::Ule, source, most))
                }
                ptx_sem::ShflMode::Bfly => {
                    let source = self.b.xor(lane, bval);
                    (source, self.b.icmp(IntPred::Ule, source, most))
                }
                ptx_sem::ShflMode::Idx => {
                    let inner = self.b.and(bval, outside);
                    let source = self.b.or(least, inner);
                    (source, self.b.icmp(IntPred::Ule, source, most))
                }
            };
            let source = self.b.select(ok, source, lane);
            let source = self.b.and(source, low);
            let from = if let Some((low, high)) = pair {
                self.b.intrinsic("llvm.x86.avx512.vpermi2var.d.512", &[], &[low, source, high])
            } else {
                let offsets = self.b.shl(source, splat(self, 2));
                let places = self.b.gep(place, offsets);
                self.masked_gather(places, 4, None, *own)
            };
            let value = if self.position.full {
                from
            } else {
                let shifted = self.b.lshr(self.b.splat(mask, self.width), source);
                let runs = self.b.trunc(shifted, self.bits_type());
                self.b.select(runs, from, splat(self, 0))
            };
            taken.push(value);
            valid.push(ok);
        }
        (taken, valid)
    }
}
