//! Integers in narrow lanes: vectors with an element of 8 or 16 bits for each lane of a warp.
//!
//! The pass in [`opt::narrow_lanes`](crate::opt::narrow_lanes) says which values are computed in such vectors
//! ([`Func::lane_widths`](wir::Func::lane_widths)). LLVM splits them into as many registers as they need.
//!
//! Invariant: an element is the value in the register without the bits above, which are zero. A predicate has
//! one bit. What reads a chunk of the value gets its elements extended ([`Codegen::widened_lanes`]).

use super::{Codegen, LANES, Repr};
use crate::analysis::expr::{Arith, Expr, Operand, operands};
use crate::isel::int_pred;
use crate::llvm::{Type, Value};
use crate::wir;
use crate::wir::lane_width::LaneWidth;
use crate::wir::{Kind, Op};
use ptx::ir::{Inst, RegClass};

impl Codegen<'_> {
    /// The vectors that hold a value in narrow lanes: one for each warp of a coarse warp.
    fn narrow_vectors(&self) -> u32 {
        self.lanes / LANES
    }

    fn narrow_type(&self, bits: u32) -> Type {
        self.b.vec(self.int(bits), LANES)
    }

    /// Emits an operation that is computed in narrow lanes, if it is one; a load is done before.
    pub(super) fn in_narrow_lanes(&mut self, inst: &Inst, op: &Op) -> bool {
        let [def] = op.defs.as_slice() else { return false };
        let Some(width) = self.lane_width(*def).filter(|_| op.access.is_none()) else { return false };
        let Some(expr) = Expr::of(inst) else { return false };
        let sources = operands(inst, op);
        let vectors = (0..self.narrow_vectors()).map(|at| self.narrow_result(expr, &sources, width, at));
        let vectors = vectors.collect();
        self.values.define(*def, Repr::Narrow(vectors));
        true
    }

    /// Puts a loaded value into narrow lanes, if that was decided.
    pub(super) fn narrow_loaded(&mut self, op: &Op) {
        let [def] = op.defs.as_slice() else { return };
        let Some(width) = self.lane_width(*def) else { return };
        if let Some(Repr::Chunks(_)) = self.values.get(*def) {
            let vectors = self.in_lanes_of(*def, width);
            self.values.define(*def, vectors);
        }
    }

    /// The width of the lanes that a value is computed in, if these are narrow.
    pub(super) fn lane_width(&self, name: wir::Value) -> Option<LaneWidth> {
        self.job.func.lane_widths.get(&name).copied()
    }

    /// A value in lanes of a width.
    pub(super) fn in_lanes_of(&mut self, name: wir::Value, width: LaneWidth) -> Repr {
        Repr::Narrow((0..self.narrow_vectors()).map(|at| self.narrow_value(name, width, at)).collect())
    }

    /// Emits a selection by a mask in narrow lanes, if that was decided.
    pub(super) fn select_narrow(&mut self, op: &Op) -> bool {
        let Some(width) = self.lane_width(op.defs[0]) else { return false };
        let mask = self.mask(op.uses[0]);
        let each = LANES / self.width;
        let count = self.narrow_vectors();
        let one = |at: u32| {
            let bits = (at * each..(at + 1) * each).map(|c| self.mask_chunk(mask, c)).collect();
            let bits = self.joined(bits);
            let [a, b] = [1, 2].map(|source: usize| self.narrow_value(op.uses[source], width, at));
            self.b.select(bits, a, b)
        };
        let vectors = (0..count).map(one).collect();
        self.values.define(op.defs[0], Repr::Narrow(vectors));
        true
    }

    /// One value where a predicate is true and another elsewhere, in lanes of a width.
    pub(super) fn select_lanes(
        &mut self,
        pred: wir::Value,
        (a, b): (wir::Value, wir::Value),
        width: LaneWidth,
    ) -> Repr {
        let vectors = self.narrow_vectors();
        let one = |at: u32| {
            let bits = self.narrow_value(pred, LaneWidth::B1, at);
            let (a, b) = (self.narrow_value(a, width, at), self.narrow_value(b, width, at));
            self.b.select(bits, a, b)
        };
        Repr::Narrow((0..vectors).map(one).collect())
    }

    /// Phis of a value in narrow lanes, if it has such.
    pub(super) fn narrow_phi(&self, name: wir::Value) -> Option<Repr> {
        let ty = self.narrow_type(self.lane_width(name)?.bits());
        Some(Repr::Narrow((0..self.narrow_vectors()).map(|_| self.b.phi(ty)).collect()))
    }

    fn narrow_result(&mut self, expr: Expr, sources: &[Operand<'_>], width: LaneWidth, at: u32) -> Value {
        let mut source = |number: usize| {
            let width = match (expr.arith, number) {
                (Arith::Select, 2) => LaneWidth::B1,
                _ => width,
            };
            self.narrow_operand(sources[number], width, at)
        };
        let (a, b, c) = match expr.arith {
            Arith::Copy | Arith::Convert(_) | Arith::Neg => (source(0), None, None),
            Arith::Mad { .. } | Arith::Select => (source(0), Some(source(1)), Some(source(2))),
            _ => (source(0), Some(source(1)), None),
        };
        let b = b.unwrap_or(a);
        let c = c.unwrap_or(a);
        let extreme = |name: &str| self.b.intrinsic(name, &[a.ty()], &[a, b]);
        match expr.arith {
            Arith::Copy => a,
            Arith::Convert(to) => match to.bits().min(expr.ty.bits()) {
                bits if bits < width.bits() => self.b.and(a, self.b.const_splat(a.ty(), (1 << bits) - 1)),
                _ => a,
            },
            Arith::Add => self.b.add(a, b),
            Arith::Sub => self.b.sub(a, b),
            Arith::Neg => self.b.neg(a),
            Arith::Mul { .. } => self.b.mul(a, b),
            Arith::Mad { .. } => self.b.add(self.b.mul(a, b), c),
            Arith::Shl => self.b.shl(a, b),
            Arith::Shr => self.b.lshr(a, b),
            Arith::And => self.b.and(a, b),
            Arith::Or => self.b.or(a, b),
            Arith::Xor => self.b.xor(a, b),
            Arith::Min => extreme("llvm.umin"),
            Arith::Max => extreme("llvm.umax"),
            Arith::Select => self.b.select(c, a, b),
            Arith::Compare(cmp) => {
                // The numbers are the same signed and unsigned.
                let relation = int_pred(cmp, false).expect("ptxvm bug: integers are compared like numbers");
                self.b.icmp(relation, a, b)
            }
            Arith::Div | Arith::Rem | Arith::ToGeneric(_) | Arith::FromGeneric(_) => {
                unreachable!("ptxvm bug: arithmetic without narrow lanes")
            }
        }
    }

    fn narrow_operand(&mut self, operand: Operand<'_>, width: LaneWidth, at: u32) -> Value {
        match operand {
            Operand::Value(name) => self.narrow_value(name, width, at),
            Operand::Not(name) => {
                let value = self.narrow_value(name, width, at);
                self.b.not(value)
            }
            Operand::Imm(bits) => self.b.const_splat(self.narrow_type(width.bits()), bits & width.greatest()),
            Operand::Absent
            | Operand::Sreg(..)
            | Operand::Based(..)
            | Operand::Symbol(_)
            | Operand::Indexed(_)
            | Operand::Video(_) => unreachable!("ptxvm bug: a source without narrow lanes"),
        }
    }

    /// A value in lanes of a width, of the warp with that number.
    fn narrow_value(&mut self, name: wir::Value, width: LaneWidth, at: u32) -> Value {
        let bits = width.bits();
        if let Some(Repr::Narrow(vectors)) = self.values.get(name) {
            return self.with_lanes_of(vectors[at as usize], bits);
        }
        if self.is_scalar(name) {
            let scalar = self.scalar(name);
            let scalar =
                if scalar.ty().element_bits() > bits { self.b.trunc(scalar, self.int(bits)) } else { scalar };
            return self.b.splat(scalar, LANES);
        }
        let each = LANES / self.width;
        let mut chunks: Vec<Value> = Vec::new();
        for c in at * each..(at + 1) * each {
            let chunk = self.chunk(name, c);
            chunks.push(self.with_lanes_of(chunk, bits));
        }
        self.joined(chunks)
    }

    /// A vector with elements of so many bits.
    fn with_lanes_of(&self, vector: Value, bits: u32) -> Value {
        let ty = self.b.like(vector.ty(), self.int(bits));
        match vector.ty().element_bits() {
            own if own < bits => self.b.zext(vector, ty),
            own if own > bits => self.b.trunc(vector, ty),
            _ => vector,
        }
    }

    /// The vector of a chunk of a value in narrow lanes, in the width of its register.
    pub(super) fn widened_lanes(&self, name: wir::Value, vectors: &[Value], chunk: u32) -> Value {
        let each = LANES / self.width;
        let lanes = self.b.slice(vectors[(chunk / each) as usize], chunk % each * self.width, self.width);
        let bits = match self.kind(name) {
            Kind::Reg(RegClass::Pred) => 1,
            Kind::Reg(RegClass::R16) => 16,
            Kind::Reg(RegClass::R32 | RegClass::R64) | Kind::Mask | Kind::Count => 32,
        };
        self.with_lanes_of(lanes, bits)
    }

    /// The lanes of all warps in which a predicate in narrow lanes is true, as one number; `None`: it has
    /// other lanes.
    pub(super) fn narrow_truths(&self, pred: wir::Value) -> Option<Value> {
        let Some(Repr::Narrow(vectors)) = self.values.get(pred) else { return None };
        let word = |(at, vector): (u32, &Value)| {
            let word = self.b.bitcast(*vector, self.int(LANES));
            let word = if vectors.len() > 1 { self.b.zext(word, self.mask_type()) } else { word };
            match at {
                0 => word,
                _ => self.b.shl(word, self.b.const_int(self.mask_type(), u64::from(at * LANES))),
            }
        };
        (0..).zip(vectors).map(word).reduce(|all, word| self.b.or(all, word))
    }
}
