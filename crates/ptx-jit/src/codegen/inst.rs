//! Instructions whose result in a lane depends on the operands of that lane only.
//!
//! Invariant: an instruction that has no native code is executed by the interpreter's step.

use super::mask::{LaneBits, Mask};
use super::{Codegen, LANES, Repr};
use crate::analysis::any_nan::bit;
use crate::analysis::expr::Expr;
use crate::frame::Frame;
use crate::isel::{Known, Lower, Lowering, Operand};
use crate::llvm::{Block, FloatPred, Function, Likely, Value};
use crate::tuning::NAN_TEST_CHUNKS;
use crate::wir;
use crate::wir::{Kind, Op, Shape, Site};
use ptx::check::module::{FuncId, VarId};
use ptx::ir::{Addr, Base, Dst, Inst, RegClass, Src};
use ptx::isa::{Space, Sreg, TyKind};
use std::mem::offset_of;

/// The lanes that an operand is needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lanes {
    /// The first lane of a chunk, as a scalar.
    First(u32),
    /// A chunk, as a vector.
    Chunk(u32),
}

/// A branch to code for NaNs.
pub(super) struct NanBranch {
    /// The blocks that go on without that code.
    before: Vec<Block>,
    /// Where both go on.
    on: Block,
}

impl<'a> Codegen<'a> {
    pub(super) fn inst(&mut self, site: Site, op: &Op) {
        let Some(inst) = site.inst(self.job.function) else { return };
        self.remark_op(op);
        use ptx::isa::Op as O;
        if self.in_narrow_lanes(inst, op) {
            self.applied("narrow-lanes", "computed in lanes that are narrower than the registers");
            return self.note_result(inst, op);
        }
        let done = match inst.op {
            O::Ld | O::LdNc | O::Ldu | O::St | O::Atom | O::Red
                if self.entry.thread.is_some() && inst.guard.is_some() =>
            {
                self.guarded_access(site, inst, op);
                true
            }
            O::Ld | O::LdNc | O::Ldu => self.ld(site, inst, op),
            O::St => self.st(site, inst, op),
            O::Atom | O::Red => self.atomic(site, inst, op),
            O::Membar | O::Fence if inst.guard.is_none() => self.fence(inst),
            O::ShflSync => self.shfl(inst, op),
            O::MatchAny | O::MatchAll => self.matched(inst, op),
            O::VoteSync => self.vote(inst, op),
            O::BarWarpSync => true,
            O::BarRed => self.reduce_cta(inst, op),
            O::Activemask => self.activemask(op),
            O::Cvta | O::CvtaTo => self.cvta(inst, op),
            O::Cvt => self.funnel_shift_of(inst, op),
            O::Mov => self.read_clock(site, inst, op),
            O::Mma | O::WmmaMma => self.matrix_product(inst, op),
            O::Ldmatrix => self.load_matrix(site, inst, op),
            O::Stmatrix => self.store_matrix(site, inst, op),
            O::Movmatrix => self.move_matrix(inst, op),
            O::CpAsync => self.copy_async(site, inst, op),
            // A copy is complete when its instruction has been executed.
            O::CpAsyncCommitGroup | O::CpAsyncWaitGroup | O::CpAsyncWaitAll => true,
            _ => false,
        };
        if !done && !self.lowered(site, inst, op) {
            self.fallback(site, inst, op);
        }
        self.narrow_loaded(op);
        for def in &op.defs {
            if let Some(constant) = self.constant(*def) {
                self.values.define(*def, constant);
            }
        }
        self.note_result(inst, op);
    }

    /// Emits a read of a clock.
    fn read_clock(&mut self, site: Site, inst: &Inst, op: &Op) -> bool {
        let (Some(sreg), [_, full, masked]) = (crate::effects::clock(inst), op.uses.as_slice()) else {
            return false;
        };
        let [def] = op.defs.as_slice() else { return true };
        let (_, begun) = self.clock([*full, *masked]);
        // The counts are those at the start of this block.
        let mut value = self.b.add(begun, self.c64(u64::from(site.index) + 1));
        if matches!(sreg, Sreg::Globaltimer | Sreg::GlobaltimerLo | Sreg::GlobaltimerHi) {
            value = self.b.add(value, self.load64(offset_of!(Frame, began)));
        }
        value = match sreg {
            Sreg::ClockHi | Sreg::GlobaltimerHi => self.b.lshr(value, self.c64(32)),
            Sreg::Clock | Sreg::GlobaltimerLo => self.b.and(value, self.c64(u32::MAX.into())),
            _ => value,
        };
        if let Operand::Value(value, _) = self.as_word(value, inst) {
            self.define(*def, value);
        }
        true
    }

    /// The location of the warp's clock, and its value after these counts have been added.
    pub(super) fn clock(&mut self, counts: [wir::Value; 2]) -> (Value, Value) {
        let place = self.b.load(self.b.ptr(), self.field(offset_of!(Frame, clock)), 8);
        let before = self.b.load(self.int(64), place, 8);
        let counts = counts.map(|count| self.scalar(count));
        (place, counts.into_iter().fold(before, |sum, count| self.b.add(sum, count)))
    }

    /// Records facts about an instruction's result, besides its value.
    pub(super) fn note_result(&mut self, inst: &Inst, op: &Op) {
        self.note_scaled_index(inst, op);
        self.note_word_pair(inst, op);
    }

    /// Defines a value of any shape as a scalar.
    pub(super) fn define(&mut self, name: wir::Value, value: Value) {
        let rep = match self.shape(name) {
            Shape::Uniform(_) | Shape::Bottom => Repr::Scalar(value),
            Shape::Affine(pattern) => {
                let mut bases = vec![value; pattern.scalars(self.chunks()) as usize];
                if !pattern.rows.is_empty() {
                    bases[1] = self.b.zero(value.ty());
                }
                Repr::Bases(bases)
            }
            Shape::Varying => {
                let vector = self.b.splat(value, self.width);
                Repr::Chunks(vec![vector; self.chunks() as usize])
            }
        };
        self.values.define(name, rep);
    }

    /// Emits native code for an instruction that accesses no memory and no other lanes, if there is any.
    fn lowered(&mut self, site: Site, inst: &Inst, op: &Op) -> bool {
        if op.defs.is_empty() {
            return false;
        }
        if self.joined_numbers(inst, op) {
            return true;
        }
        let Some(lowering) = self.lowering(site, inst) else { return false };
        let copied =
            if op.defs.iter().all(|def| self.may_be_noncanonical(*def)) { lowering.copied_srcs } else { 0 };
        let free = lowering.number_srcs | copied;
        // The carry flag that is read is the last use, and the one that is written is the last definition.
        let flags = |name: &&wir::Value| self.kind(**name) == Kind::Mask;
        let carry_in = op.uses[1..].last().filter(flags).filter(|_| lowering.reads_carry);
        let carry_in = carry_in.map(|name| self.mask(*name));
        let carry_out = op.defs.last().filter(flags).copied();
        if carry_out.is_some() && op.defs.len() == 1 {
            return false;
        }
        let mut carries = Vec::new();
        let shape = match self.shape(op.defs[0]) {
            Shape::Uniform(_) | Shape::Bottom => vec![Lanes::First(0)],
            Shape::Affine(pattern) => {
                let count = if pattern.by_chunk { self.chunks() } else { 1 };
                (0..count).map(Lanes::First).collect()
            }
            Shape::Varying => (0..self.chunks()).map(Lanes::Chunk).collect(),
        };
        let scalar = matches!(shape[0], Lanes::First(_));
        let widens = Expr::of(inst).and_then(Expr::widens).is_some();
        // Chunks whose NaNs may still have any bits, with their operands.
        let rare =
            lowering.rare_nan && (!scalar || self.lanes == 1) && op.defs.len() == 1 && carry_out.is_none();
        let mut again = Vec::new();
        let mut results: Vec<Vec<Value>> = vec![Vec::new(); op.defs.len()];
        for lanes in &shape {
            if let Lanes::Chunk(c) = lanes {
                self.at_chunk(*c);
            }
            if let Lanes::Chunk(chunk) = lanes
                && self.is_beyond(*chunk)
                && carry_in.is_none()
                && carry_out.is_none()
            {
                // No lane is active, so the result is never read.
                let kept = inst.dsts.iter().filter(|dst| !matches!(dst, Dst::Sink));
                for (result, (_, def)) in results.iter_mut().zip(kept.zip(&op.defs)) {
                    let ty = self.b.vec(self.scalar_type(self.kind(*def)), self.width);
                    result.push(self.b.zero(ty));
                }
                continue;
            }
            let Some(mut operands) = self.free_operands(inst, op, *lanes, free) else { return false };
            let ends = if scalar && shape.len() == 1 && widens { self.active_ends(site) } else { None };
            if let Some([first, _]) = ends {
                self.in_lane(inst, op, &mut operands, first);
            }
            let count = if scalar { 1 } else { self.width };
            let flags = match (carry_in, lanes) {
                (Some(mask), Lanes::Chunk(chunk)) => Some(self.mask_chunk(mask, *chunk)),
                (Some(_), Lanes::First(_)) => return false,
                (None, _) => None,
            };
            let mut cx = Lower {
                b: &self.b,
                env: self.env,
                lanes: count,
                carry_in: flags,
                carry_out: None,
                any_nan: rare,
            };
            let values = lowering.emit(&mut cx, &operands);
            if rare {
                again.push((results[0].len(), operands));
            }
            if carry_out.is_some() {
                match (cx.carry_out, lanes) {
                    (Some(flags), Lanes::Chunk(_)) => carries.push(flags),
                    _ => return false,
                }
            }
            let kept = inst.dsts.iter().zip(values).filter(|(dst, _)| !matches!(dst, Dst::Sink));
            for ((result, def), (_, value)) in results.iter_mut().zip(&op.defs).zip(kept) {
                let base = ends.map(|[first, _]| self.base_of_lane(*def, value, first));
                result.push(base.unwrap_or(value));
            }
        }
        let mask = self.partial_mask(op);
        for some in again.chunks(self.nan_test_chunks()) {
            self.exact_nan((&lowering, inst), mask, &mut results[0], some);
        }
        if let Some(def) = carry_out {
            let carries: Vec<LaneBits> = carries.into_iter().map(|bits| self.computed_bits(bits)).collect();
            let mask = self.mask_of(&carries);
            self.values.define(def, Repr::Mask(mask));
        }
        for (def, values) in op.defs.iter().zip(results) {
            if Some(*def) == carry_out {
                continue;
            }
            let rep = match self.shape(*def) {
                Shape::Uniform(_) | Shape::Bottom => Repr::Scalar(values[0]),
                Shape::Affine(pattern) if !pattern.rows.is_empty() => {
                    let Some(stride) = self.stride_made(inst, op, *def) else { return false };
                    Repr::Bases(vec![values[0], stride])
                }
                Shape::Affine(_) => Repr::Bases(values),
                Shape::Varying if self.is_one_number(*def) => {
                    let chunks: Vec<LaneBits> =
                        values.into_iter().map(|bits| self.computed_bits(bits)).collect();
                    Repr::Number(self.mask_of(&chunks))
                }
                Shape::Varying => Repr::Chunks(values),
            };
            self.values.define(*def, rep);
        }
        true
    }

    /// The mask of the lanes that execute an operation, if these may not be all.
    pub(super) fn partial_mask(&self, op: &Op) -> Option<Mask> {
        match self.values.get(op.uses[0]) {
            Some(Repr::Mask(mask)) if self.lanes == self.job.shape.lanes() && !self.whole(op) => Some(*mask),
            _ => None,
        }
    }

    /// For how many chunks one branch tests whether there is a NaN.
    pub(super) fn nan_test_chunks(&self) -> usize {
        if self.facts.large { self.chunks() as usize } else { NAN_TEST_CHUNKS }
    }

    /// Gives the NaNs among some chunks of a result the bits that the PTX semantics defines. `mask`: the
    /// active lanes, if not all; `some`: the chunks, with their operands.
    fn exact_nan(
        &self,
        (lowering, inst): (&Lowering, &Inst),
        mask: Option<Mask>,
        results: &mut [Value],
        some: &[(usize, Vec<Operand>)],
    ) {
        let numbers: Vec<(u32, Value)> = some.iter().map(|(at, _)| (*at as u32, results[*at])).collect();
        let Some(branch) = self.if_nan(&numbers, mask) else { return };
        let values: Vec<Value> =
            some.iter().map(|(_, operands)| self.exact_chunk(lowering, inst, operands)).collect();
        let before: Vec<Value> = some.iter().map(|(at, _)| results[*at]).collect();
        let values = self.end_if_nan(branch, &before, &values);
        for ((at, _), value) in some.iter().zip(values) {
            results[*at] = value;
        }
    }

    /// Branches if an active lane of some chunks is a NaN, and begins the code of that case. NaNs are rare,
    /// so one branch tests all chunks, and the lanes that are not active, whose NaNs are never read, are left
    /// out behind it. `None`: there is no number.
    pub(super) fn if_nan(&self, numbers: &[(u32, Value)], mask: Option<Mask>) -> Option<NanBranch> {
        let number = |value: Value| self.b.bitcast(value, self.b.like(value.ty(), self.b.f64()));
        let pairs = numbers.chunks(2);
        let odd = pairs.map(|pair| {
            let [first, second] = [pair[0], pair[pair.len() - 1]].map(|(_, value)| number(value));
            self.b.fcmp(FloatPred::Uno, first, second)
        });
        let odd = odd.reduce(|a, b| self.b.or(a, b))?;
        let exact = self.b.append_block(self.function, "exact");
        let on = self.b.append_block(self.function, "numbers");
        let mut before = Vec::new();
        let branch = |odd: Value, then: Block| {
            let odd = self.any(odd);
            let here = self.b.current_block();
            self.b.cond_br(odd, then, on, Likely::No);
            here
        };
        if let Some(mask) = mask {
            let active = self.b.append_block(self.function, "active");
            before.push(branch(odd, active));
            self.b.position_at_end(active);
            let odd = numbers.iter().map(|(chunk, value)| {
                let number = number(*value);
                self.b.and(self.b.fcmp(FloatPred::Uno, number, number), self.mask_chunk(mask, *chunk))
            });
            let odd = odd.reduce(|a, b| self.b.or(a, b))?;
            before.push(branch(odd, exact));
        } else {
            before.push(branch(odd, exact));
        }
        self.b.position_at_end(exact);
        Some(NanBranch { before, on })
    }

    /// Ends the code for NaNs. Returns each value of before, or the one that this code has computed.
    pub(super) fn end_if_nan(&self, branch: NanBranch, before: &[Value], exact: &[Value]) -> Vec<Value> {
        let end = self.b.current_block();
        self.b.br(branch.on);
        self.b.position_at_end(branch.on);
        let phi = |(before, exact): (&Value, &Value)| {
            let phi = self.b.phi(exact.ty());
            branch.before.iter().for_each(|block| self.b.add_incoming(phi, *before, *block));
            self.b.add_incoming(phi, *exact, end);
            phi
        };
        before.iter().zip(exact).map(phi).collect()
    }

    /// The complete instruction for one chunk, by a function of the module: its code is as long as that of
    /// ten instructions, and hardly ever executed.
    pub(super) fn exact_chunk(&self, lowering: &Lowering, inst: &Inst, operands: &[Operand]) -> Value {
        let vector = |operand: &Operand| match operand {
            Operand::Value(value, _) => *value,
            Operand::Imm(bits) => self.b.splat(self.c64(*bits), self.width),
            Operand::Absent => unreachable!("ptxvm bug: arithmetic without an operand"),
        };
        let operands: Vec<Value> = operands.iter().map(vector).collect();
        self.b.call_function(self.exact_function(lowering, inst, operands.len()), &operands)
    }

    /// What code for one chunk is emitted with.
    pub(super) fn lower_chunk(&self) -> Lower<'_, 'a> {
        let (b, env, lanes) = (&self.b, self.env, self.width);
        Lower { b, env, lanes, carry_in: None, carry_out: None, any_nan: false }
    }

    /// The function of the module that executes an instruction of double precision for one chunk.
    fn exact_function(&self, lowering: &Lowering, inst: &Inst, operands: usize) -> Function {
        let name = format!("{}{}", inst.row.form().mnemonic, inst.mods);
        let chunk = self.b.vec(self.int(64), self.width);
        let types = vec![chunk; operands];
        let (function, new) =
            self.b.module().internal_function(&name, self.b.fn_type(Some(chunk), &types), self.env.flush);
        if new {
            let here = self.b.current_block();
            self.b.position_at_end(self.b.append_block(function, ""));
            let params: Vec<Operand> = (0..operands as u32)
                .map(|at| Operand::Value(self.b.param(function, at), Known::Nothing))
                .collect();
            let result = lowering.emit(&mut self.lower_chunk(), &params);
            self.b.ret(Some(result[0]));
            self.b.position_at_end(here);
        }
        function
    }

    /// The operands of an instruction for the given lanes.
    pub(super) fn operands(&mut self, inst: &Inst, op: &Op, lanes: Lanes) -> Option<Vec<Operand>> {
        self.free_operands(inst, op, lanes, 0)
    }

    /// As [`Codegen::operands`]; sources in the set `free` may hold any NaN.
    pub(super) fn free_operands(
        &mut self,
        inst: &Inst,
        op: &Op,
        lanes: Lanes,
        free: u32,
    ) -> Option<Vec<Operand>> {
        let mut next = 1;
        let mut all = Vec::new();
        for (at, src) in inst.srcs.iter().enumerate() {
            if matches!(src, Src::Reg(_)) && bit(free, at as u32) {
                let name = op.uses[next];
                next += 1;
                let value = self.noncanonical_value(name, lanes);
                all.push(Operand::Value(value, self.known_operand(name, lanes)));
            } else {
                all.push(self.operand(src, op, &mut next, lanes, inst)?);
            }
        }
        Some(all)
    }

    fn noncanonical_value(&mut self, name: wir::Value, lanes: Lanes) -> Value {
        match lanes {
            Lanes::First(chunk) => match self.noncanonical_base(name, chunk) {
                Some(base) => base,
                None => self.lane_of_vector(name, chunk, Self::noncanonical_chunk),
            },
            Lanes::Chunk(chunk) => self.noncanonical_chunk(name, chunk),
        }
    }

    fn name(&mut self, name: wir::Value, lanes: Lanes) -> Value {
        match lanes {
            Lanes::First(chunk) => match self.base(name, chunk) {
                Some(base) => base,
                None => self.lane_of_vector(name, chunk, Self::chunk),
            },
            Lanes::Chunk(chunk) => self.chunk(name, chunk),
        }
    }

    /// The first lane of a chunk of a value that has no base: an instruction can have the same result in all
    /// lanes even if its operands differ.
    fn lane_of_vector(
        &mut self,
        name: wir::Value,
        chunk: u32,
        vector: impl Fn(&mut Self, wir::Value, u32) -> Value,
    ) -> Value {
        let vector = vector(self, name, chunk);
        self.b.extract(vector, 0)
    }

    /// A scalar in the form that the given lanes need.
    pub(super) fn in_lanes(&self, value: Value, lanes: Lanes) -> Value {
        match lanes {
            Lanes::First(_) => value,
            Lanes::Chunk(_) => self.b.splat(value, self.width),
        }
    }

    fn register(&mut self, op: &Op, next: &mut usize, lanes: Lanes) -> Option<Operand> {
        let name = op.uses[*next];
        *next += 1;
        let value = self.name(name, lanes);
        Some(match self.known_operand(name, lanes) {
            // The canonical bits of a NaN are selected in each lane.
            Known::Same(_) if self.may_be_noncanonical(name) => Operand::Value(value, Known::Nothing),
            known => Operand::Value(value, known),
        })
    }

    /// What is known of a register that was just read for these lanes.
    fn known_operand(&mut self, name: wir::Value, lanes: Lanes) -> Known {
        self.forget_vectors();
        let (Lanes::First(chunk) | Lanes::Chunk(chunk)) = lanes;
        if self.is_constant_chunk(name, chunk) {
            return Known::Constant;
        }
        match (lanes, self.values.splats.get(&(name, chunk))) {
            (Lanes::Chunk(_), Some(scalar)) => Known::Same(*scalar),
            _ => Known::Nothing,
        }
    }

    /// One operand; `next` is the index of the next register.
    pub(super) fn operand(
        &mut self,
        src: &Src,
        op: &Op,
        next: &mut usize,
        lanes: Lanes,
        inst: &Inst,
    ) -> Option<Operand> {
        Some(match src {
            Src::Absent => Operand::Absent,
            Src::Imm(bits) => Operand::Imm(*bits),
            Src::Reg(_) | Src::Not(_) => self.register(op, next, lanes)?,
            Src::Video(video) => match &video.value {
                Src::Reg(_) => self.register(op, next, lanes)?,
                Src::Imm(bits) => Operand::Imm(*bits),
                Src::Absent | Src::Not(_) | Src::Sreg(..) | Src::Addr(_) | Src::Video(_) => return None,
            },
            Src::Sreg(sreg, axis) => {
                let value = self.sreg(*sreg, usize::from(*axis), lanes)?;
                self.as_word(value, inst)
            }
            Src::Addr(addr) => {
                if let Base::Reg(_) = addr.base {
                    return None;
                }
                if addr.index.is_some() {
                    return None;
                }
                let value = self.symbol(addr)?;
                let value = self.in_lanes(value, lanes);
                self.as_word(value, inst)
            }
        })
    }

    /// A 32- or 64-bit value, resized to the destination.
    fn as_word(&self, value: Value, inst: &Inst) -> Operand {
        let class = inst.dsts.first().and_then(Dst::reg).map_or(RegClass::R64, |reg| reg.class);
        let bits = match class {
            RegClass::R16 => 16,
            RegClass::R32 | RegClass::Pred => 32,
            RegClass::R64 => 64,
        };
        let have = value.ty().element_bits();
        let ty = self.b.like(value.ty(), self.int(bits));
        let value = if have > bits {
            self.b.trunc(value, ty)
        } else if have < bits {
            self.b.zext(value, ty)
        } else {
            value
        };
        Operand::Value(value, Known::Nothing)
    }

    /// The 64-bit address of the symbol that an operand names.
    pub(super) fn symbol(&self, addr: &Addr) -> Option<Value> {
        let offset = addr.offset as u64;
        Some(match addr.base {
            Base::Absolute | Base::KernelParam => self.c64(offset),
            // The variable is placed separately for each module: the code refers to a symbol, so that it
            // serves every module with the same text.
            Base::Var(VarId(id)) if self.is_placed(id) => self.symbolic(&format!("v{id}"), offset),
            Base::Var(var) => self.c64(self.job.layout.variable(var).wrapping_add(offset)),
            Base::Func(FuncId(id)) => self.symbolic(&format!("f{id}"), offset),
            Base::Frame => {
                let frame = self.load64(offset_of!(Frame, offset));
                self.b.add(frame, self.c64(offset))
            }
            Base::Reg(_) => return None,
        })
    }

    /// Whether the address of a variable belongs to the module, and is not an offset in a window.
    fn is_placed(&self, var: u32) -> bool {
        let variable = self.job.program.variables.get(var as usize);
        variable.is_some_and(|v| {
            matches!(v.space, Space::Global | Space::Const | Space::Tex) || v.ty.kind() == TyKind::Opaque
        })
    }

    fn symbolic(&self, name: &str, offset: u64) -> Value {
        let address = self.b.address(name);
        if offset == 0 { address } else { self.b.add(address, self.c64(offset)) }
    }

    /// A special register that does not change during execution, as a 32- or 64-bit value.
    fn sreg(&mut self, sreg: Sreg, axis: usize, lanes: Lanes) -> Option<Value> {
        let field = match sreg {
            Sreg::Tid if axis < 3 => return self.tid(axis, lanes),
            Sreg::Tid | Sreg::Ntid | Sreg::Ctaid | Sreg::Nctaid if axis > 2 => {
                return Some(self.in_lanes(self.c32(0), lanes));
            }
            Sreg::Ntid => return Some(self.in_lanes(self.c32(self.job.shape.ntid[axis]), lanes)),
            Sreg::Ctaid if axis == 0 && self.job.shape.ctas > 1 => return self.ctaid(lanes),
            Sreg::Ctaid => offset_of!(Frame, ctaid) + 4 * axis,
            Sreg::Nctaid => offset_of!(Frame, nctaid) + 4 * axis,
            Sreg::Warpid if self.job.shape.team > 1 => return Some(self.warpid(lanes)),
            Sreg::Warpid => offset_of!(Frame, warp),
            Sreg::Nwarpid => offset_of!(Frame, warp) + 4,
            Sreg::Smid => offset_of!(Frame, warp) + 8,
            Sreg::Nsmid => offset_of!(Frame, warp) + 12,
            Sreg::TotalSmemSize => offset_of!(Frame, smem),
            Sreg::DynamicSmemSize => offset_of!(Frame, smem) + 4,
            Sreg::ReservedSmemOffsetBegin
            | Sreg::ReservedSmemOffsetEnd
            | Sreg::ReservedSmemOffsetCap
            | Sreg::ReservedSmemOffset0
            | Sreg::ReservedSmemOffset1 => {
                let value = self.c32(sreg.reserved_smem().unwrap_or(0));
                return Some(self.in_lanes(value, lanes));
            }
            Sreg::Pm(_) | Sreg::Pm64(_) => return Some(self.in_lanes(self.c32(0), lanes)),
            Sreg::Gridid => {
                let value = self.load64(offset_of!(Frame, gridid));
                return Some(self.in_lanes(value, lanes));
            }
            Sreg::Laneid
            | Sreg::LanemaskEq
            | Sreg::LanemaskLe
            | Sreg::LanemaskLt
            | Sreg::LanemaskGe
            | Sreg::LanemaskGt => {
                return match self.entry.thread {
                    Some(_) => self.of_thread(sreg),
                    None => Some(self.by_lane(lanes, |lane| sreg.of_lane(lane).unwrap_or_default())),
                };
            }
            Sreg::Tid
            | Sreg::Envreg(_)
            | Sreg::Clock
            | Sreg::ClockHi
            | Sreg::Clock64
            | Sreg::Globaltimer
            | Sreg::GlobaltimerLo
            | Sreg::GlobaltimerHi => return None,
        };
        let value = self.load32(field);
        Some(self.in_lanes(value, lanes))
    }

    fn by_lane(&self, lanes: Lanes, f: impl Fn(u32) -> u32) -> Value {
        match lanes {
            Lanes::First(chunk) => self.c32(f(chunk * self.width)),
            Lanes::Chunk(chunk) => {
                let values: Vec<u64> =
                    (0..self.width).map(|lane| u64::from(f(chunk * self.width + lane))).collect();
                self.b.const_ints(self.int(32), &values)
            }
        }
    }

    fn tid(&mut self, axis: usize, lanes: Lanes) -> Option<Value> {
        if let Some(value) = self.constant_tid(axis, lanes) {
            return Some(value);
        }
        let tid = self.b.load(self.b.ptr(), self.field(offset_of!(Frame, tid)), 8);
        if let Some(thread) = self.entry.thread {
            let row = self.b.offset(tid, axis as u64 * u64::from(4 * LANES));
            return Some(self.b.load(self.int(32), thread.place(self, row, 4), 4));
        }
        let axis = axis as u64 * u64::from(4 * self.lanes);
        let start = |chunk: u32| axis + u64::from(chunk * self.width * 4);
        Some(match lanes {
            Lanes::First(chunk) => self.b.load(self.int(32), self.b.offset(tid, start(chunk)), 4),
            Lanes::Chunk(chunk) => {
                let ty = self.b.vec(self.int(32), self.width);
                self.b.load(ty, self.b.offset(tid, start(chunk)), 4 * self.width)
            }
        })
    }

    /// `cvta`: a generic address is an address of a space plus the start of that space's window.
    fn cvta(&mut self, inst: &Inst, op: &Op) -> bool {
        let Kind::Reg(RegClass::R64) = self.kind(op.defs[0]) else { return false };
        let to_space = inst.op == ptx::isa::Op::CvtaTo;
        if inst.mods.space() == Space::Local {
            return self.cvta_local(inst, op, to_space);
        }
        let origin = match inst.mods.space() {
            space @ (Space::Global | Space::Const | Space::Shared | Space::Param) => self.window_start(space),
            _ => return false,
        };
        let shape: Vec<Lanes> = match self.shape(op.defs[0]) {
            Shape::Uniform(_) | Shape::Bottom => vec![Lanes::First(0)],
            Shape::Affine(p) if p.by_chunk => (0..self.chunks()).map(Lanes::First).collect(),
            Shape::Affine(_) => vec![Lanes::First(0)],
            Shape::Varying => (0..self.chunks()).map(Lanes::Chunk).collect(),
        };
        let mut values = Vec::new();
        for lanes in shape {
            let Some(operands) = self.operands(inst, op, lanes) else { return false };
            let value = match operands.first() {
                Some(Operand::Value(value, _)) if value.ty().element_bits() == 64 => *value,
                Some(Operand::Imm(bits)) => self.in_lanes(self.c64(*bits), lanes),
                _ => return false,
            };
            let origin = self.in_lanes(origin, lanes);
            values.push(if to_space { self.b.sub(value, origin) } else { self.b.add(value, origin) });
        }
        let rep = match self.shape(op.defs[0]) {
            Shape::Uniform(_) | Shape::Bottom => Repr::Scalar(values[0]),
            Shape::Affine(pattern) if !pattern.rows.is_empty() => {
                let Some(stride) = self.stride_made(inst, op, op.defs[0]) else { return false };
                Repr::Bases(vec![values[0], stride])
            }
            Shape::Affine(_) => Repr::Bases(values),
            Shape::Varying => Repr::Chunks(values),
        };
        self.values.define(op.defs[0], rep);
        true
    }

    /// `cvta` for local memory, which is separate for each lane.
    fn cvta_local(&mut self, inst: &Inst, op: &Op, to_space: bool) -> bool {
        let (origin, stride) =
            (self.load64(offset_of!(Frame, local)), self.load64(offset_of!(Frame, local) + 8));
        if let Some(thread) = self.entry.thread {
            let Some(operands) = self.operands(inst, op, Lanes::First(0)) else { return false };
            let Some(Operand::Value(value, _)) = operands.first().filter(is_long) else {
                return false;
            };
            let own = thread.local[0];
            let moved = if to_space { self.b.sub(*value, own) } else { self.b.add(*value, own) };
            self.values.define(op.defs[0], Repr::Scalar(moved));
            return true;
        }
        let mut values = Vec::new();
        for c in 0..self.chunks() {
            let Some(operands) = self.operands(inst, op, Lanes::Chunk(c)) else { return false };
            let Some(Operand::Value(value, _)) = operands.first() else { return false };
            if value.ty().element_bits() != 64 {
                return false;
            }
            let own = self.strided(origin, stride, c);
            values.push(if to_space { self.b.sub(*value, own) } else { self.b.add(*value, own) });
        }
        self.values.define(op.defs[0], Repr::Chunks(values));
        true
    }
}

/// Whether an operand is a value of 64 bits.
fn is_long(operand: &&Operand) -> bool {
    matches!(operand, Operand::Value(value, _) if value.ty().element_bits() == 64)
}
