//! Symbolic-stride addresses: a base, a constant of each lane, and a multiple of a stride that is known only
//! at run time.
//!
//! The threads of a coarse warp form a rectangle, whose rows in memory are as far apart as the launch says.
//! So all addresses are two scalars, compared with the bounds at once, and a chunk's address is one addition.
//! The same holds for a warp whose rows are shorter than a chunk.
//!
//! Where the stride is a kernel parameter times a constant on every path, as a pitch is, it is read from the
//! parameter where it is used. Then all values with that stride share it and what checks derive from it, and
//! none is carried across barriers.
//!
//! Invariant: `base + lanes[l] + rows[l] * stride` is the value in every lane, modulo its width. Where it is
//! widened, a guard has tested that no lane wraps around, with the stride as a signed number.

use super::load_store::{Addresses, Rows};
use super::{Codegen, Repr};
use crate::analysis::expr::{Arith, Expr, operands};
use crate::analysis::scalar_evolution;
use crate::llvm::{Block, IntPred, Type, Value};
use crate::wir;
use crate::wir::prefetch::Fact;
use crate::wir::{Affine, Func, Kind, Op, OpKind, Shape};
use ptx::ir::{Inst, RegClass};
use ptx::isa::Op as O;
use std::cell::RefCell;
use std::collections::HashMap;

/// Strides stay below this, so that sums of a few thousand of them do not overflow.
const NEAR: u64 = 1 << 40;

/// A 32-bit stride: a parameter times a constant; or a 64-bit one: the 32-bit stride, sign-extended, times
/// another constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Stride {
    /// The offset of the parameter.
    offset: u32,
    times: u32,
    wide: Option<u64>,
}

impl Stride {
    /// The stride with so many bits.
    fn resized(self, bits: u32) -> Option<Self> {
        match (self.wide, bits) {
            (None, 64) => Some(Self { wide: Some(1), ..self }),
            (None, 32) | (Some(_), 64) => Some(self),
            _ => None,
        }
    }

    fn by(self, times: u64) -> Self {
        match self.wide {
            Some(wide) => Self { wide: Some(wide.wrapping_mul(times)), ..self },
            None => Self { times: self.times.wrapping_mul(times as u32), ..self },
        }
    }

    /// Whether the stride is so small for every parameter that all rows lie between the first and the last.
    fn is_near(self) -> bool {
        self.wide.is_some_and(|wide| (wide as i64).unsigned_abs() < NEAR >> 31)
    }
}

/// The strides of a function that are a kernel parameter times a constant.
#[derive(Default)]
pub(super) struct SymbolicStrides {
    /// The stride of each value.
    known: HashMap<wir::Value, Stride>,
    /// For each stride and width, the LLVM block in which it was read last, with the value.
    read: RefCell<HashMap<(Stride, u32), (Block, Value)>>,
}

impl Codegen<'_> {
    /// The second scalar of a symbolic-stride address.
    pub(super) fn stride_of(&self, name: wir::Value) -> Option<Value> {
        match (self.shape(name), self.values.get(name)) {
            (Shape::Affine(pattern), Some(Repr::Bases(bases))) if !pattern.rows.is_empty() => {
                match self.facts.symbolic_strides.known.get(&name) {
                    Some(stride) => Some(self.read_stride(*stride, self.scalar_type(self.kind(name)))),
                    None => bases.get(1).copied(),
                }
            }
            _ => None,
        }
    }

    /// A symbolic-stride address, with its base shifted by `shift`.
    pub(super) fn rows_of(
        &mut self,
        name: wir::Value,
        shift: impl Fn(&Self, Value) -> Value,
    ) -> Option<Rows> {
        let base = self.base(name, 0)?;
        let near = self.facts.symbolic_strides.known.get(&name).is_some_and(|stride| stride.is_near());
        Some(Rows { scalars: [shift(self, base), self.stride_of(name)?], near })
    }

    /// Computes a stride from its parameter.
    fn read_stride(&self, stride: Stride, ty: Type) -> Value {
        let here = self.b.current_block();
        let key = (stride, ty.element_bits());
        let known = self.facts.symbolic_strides.read.borrow().get(&key).copied();
        if let Some((_, value)) = known.filter(|(block, _)| *block == here) {
            return value;
        }
        let place = self.b.int_to_ptr(self.b.add(self.entry.params, self.c64(stride.offset.into())));
        let mut value = self.b.load(self.int(32), place, 1);
        if stride.times != 1 {
            value = self.b.mul(value, self.c32(stride.times));
        }
        if let Some(wide) = stride.wide {
            value = self.b.sext(value, self.int(64));
            if wide != 1 {
                value = self.b.mul(value, self.c64(wide));
            }
        }
        self.facts.symbolic_strides.read.borrow_mut().insert(key, (here, value));
        value
    }

    /// Finds the values whose stride is a parameter times a constant.
    pub(super) fn find_symbolic_strides(&mut self) {
        let func = self.job.func;
        // For each value: not visited, or its stride if it has one of this form.
        let mut found: Vec<Option<Option<Stride>>> = vec![None; func.kinds.len()];
        let mut changed = (0..).map(wir::Value).take(func.kinds.len()).any(|name| has_rows(func, name));
        while std::mem::take(&mut changed) {
            for node in &func.blocks {
                for phi in node.phis.iter().filter(|phi| has_rows(func, phi.def)) {
                    for from in &phi.from {
                        let new = if has_rows(func, *from) { found[from.0 as usize] } else { Some(None) };
                        changed |= meet(&mut found[phi.def.0 as usize], new);
                    }
                }
                for op in &node.ops {
                    for def in op.defs.iter().filter(|def| has_rows(func, **def)) {
                        let new = self.stride_by(op, *def, &found);
                        changed |= meet(&mut found[def.0 as usize], new);
                    }
                }
            }
        }
        let all = (0..).map(wir::Value).zip(found);
        self.facts.symbolic_strides.known = all.filter_map(|(name, found)| Some((name, found??))).collect();
    }

    /// The stride of an operation's result, as far as the strides of its sources are known.
    fn stride_by(
        &self,
        op: &Op,
        def: wir::Value,
        found: &[Option<Option<Stride>>],
    ) -> Option<Option<Stride>> {
        let func = self.job.func;
        match &op.kind {
            OpKind::Restore(resume, reg) => match func.kept(*resume, *reg) {
                Some(name) if has_rows(func, name) => found[name.0 as usize],
                _ => Some(None),
            },
            OpKind::Inst(site) => match site.inst(self.job.function) {
                Some(inst) => self.stride_by_inst(inst, op, def, found),
                None => Some(None),
            },
            _ => Some(None),
        }
    }

    /// The stride of an instruction's result. It equals the value that [`Codegen::stride_made`] emits.
    fn stride_by_inst(
        &self,
        inst: &Inst,
        op: &Op,
        def: wir::Value,
        found: &[Option<Option<Stride>>],
    ) -> Option<Option<Stride>> {
        let func = self.job.func;
        let bits = match func.kinds[def.0 as usize] {
            Kind::Reg(RegClass::R32) => 32,
            Kind::Reg(RegClass::R64) => 64,
            _ => return Some(None),
        };
        let Some(expr) = Expr::of(inst) else { return Some(None) };
        let sources = operands(inst, op);
        let name = |at: usize| sources.get(at).and_then(|source| source.value());
        let of = |at: usize| name(at).filter(|name| has_rows(func, *name));
        let known = |name: wir::Value| found[name.0 as usize].map(|found| found?.resized(bits));
        let constant = |at: usize| sources.get(at)?.constant(func);
        match expr.arith {
            Arith::Copy | Arith::Convert(_) | Arith::ToGeneric(_) | Arith::FromGeneric(_) => {
                of(0).map_or(Some(None), known)
            }
            Arith::Add | Arith::Or | Arith::Xor => of(0).or_else(|| of(1)).map_or(Some(None), known),
            Arith::Sub => of(0).map_or(Some(None), known),
            Arith::Shl => match (of(0), constant(1).filter(|by| *by < bits.into())) {
                (Some(name), Some(by)) => known(name).map(|found| Some(found?.by(1 << by))),
                _ => Some(None),
            },
            Arith::Mul { .. } | Arith::Mad { .. } => {
                for (at, other) in [(0, 1), (1, 0)] {
                    if let (Some(name), Some(k)) = (of(at), constant(other)) {
                        return known(name).map(|found| Some(found?.by(expr.number(k) as u64)));
                    }
                }
                for (at, other) in [(0, 1), (1, 0)] {
                    let (Some(rows), Some(stride)) = (name(at), name(other)) else { continue };
                    let class = |name: wir::Value| &func.shapes[name.0 as usize];
                    let counts = matches!(class(rows), Shape::Affine(p) if p.rows.is_empty());
                    if counts && matches!(class(stride), Shape::Uniform(_) | Shape::Bottom) {
                        let signed = bits == 32 || expr.ty.is_signed();
                        let stride = self.param_of(stride).filter(|_| signed);
                        return Some(stride.and_then(|stride| stride.resized(bits)));
                    }
                }
                of(2).map_or(Some(None), known)
            }
            _ => Some(None),
        }
    }

    /// The 32-bit parameter that a value was loaded from.
    fn param_of(&self, name: wir::Value) -> Option<Stride> {
        let func = self.job.func;
        let root = self.facts.analyses.constants.roots()[name.0 as usize];
        let OpKind::Inst(site) = self.facts.def_use.op_of(func, root)?.kind else { return None };
        let inst = site.inst(self.job.function)?;
        let words = [name, root].iter().all(|name| func.kinds[name.0 as usize] == Kind::Reg(RegClass::R32));
        if !words || inst.op != O::Ld || inst.guard.is_some() {
            return None;
        }
        match scalar_evolution::param(self.job.function, inst)? {
            Fact::Param { offset, bits: 32 } => Some(Stride { offset, times: 1, wide: None }),
            Fact::Param { .. } | Fact::Ctas(_) => None,
        }
    }

    /// The base address of a chunk's row.
    pub(super) fn row_base(&self, base: Value, stride: Value, pattern: &Affine, chunk: u32) -> Value {
        let times = pattern.rows.get((chunk * self.width) as usize).copied().unwrap_or(0);
        match times {
            0 => base,
            times => {
                let more = self.b.mul(stride, self.b.const_int(stride.ty(), i64::from(times) as u64));
                self.b.add(base, more)
            }
        }
    }

    /// For each run of lanes in a chunk, the start of its row, without the lanes' constants.
    pub(super) fn run_bases(&self, [base, stride]: [Value; 2], pattern: &Affine, chunk: u32) -> Vec<Value> {
        let run = pattern.run(self.width as usize);
        let start = (chunk * self.width) as usize;
        let rows = pattern.rows[start..start + self.width as usize].iter().step_by(run);
        let mut last: Option<(i32, Value)> = None;
        let base = |times: &i32| {
            let more = times - last.map_or(0, |(times, _)| times);
            let from = last.map_or(base, |(_, base)| base);
            let base = match more {
                0 => from,
                1 => self.b.add(from, stride),
                more => {
                    let more = self.b.mul(stride, self.b.const_int(stride.ty(), i64::from(more) as u64));
                    self.b.add(from, more)
                }
            };
            last = Some((*times, base));
            base
        };
        rows.map(base).collect()
    }

    /// A vector of the row starts of a chunk's lanes, plus the constant of the chunk's first lane.
    pub(super) fn vector_of_rows(&self, rows: [Value; 2], pattern: &Affine, chunk: u32) -> Value {
        let run = pattern.run(self.width as usize) as u32;
        let first = pattern.lanes[(chunk * self.width) as usize];
        let base = |base: Value| {
            let more = self.b.const_int(base.ty(), i64::from(first) as u64);
            self.b.splat(if first == 0 { base } else { self.b.add(base, more) }, run)
        };
        self.joined(self.run_bases(rows, pattern, chunk).into_iter().map(base).collect())
    }

    /// Emits the stride of an instruction's result, from affine operands of which one has a stride, or from
    /// row numbers and the stride.
    pub(super) fn stride_made(&mut self, inst: &Inst, op: &Op, def: wir::Value) -> Option<Value> {
        let to = self.scalar_type(self.kind(def));
        let expr = Expr::of(inst)?;
        let sources = operands(inst, op);
        let name = |at: usize| sources.get(at).and_then(|source| source.value());
        let signed = |value: Value| self.resized(value, to, true);
        let of = |at: usize| name(at).and_then(|name| self.stride_of(name)).map(signed);
        let constant = |at: usize| sources.get(at)?.constant(self.job.func);
        match expr.arith {
            Arith::Copy | Arith::Convert(_) | Arith::ToGeneric(_) | Arith::FromGeneric(_) => of(0),
            Arith::Add | Arith::Or | Arith::Xor => of(0).or_else(|| of(1)),
            Arith::Sub => of(0).or_else(|| of(1).map(|stride| self.b.neg(stride))),
            Arith::Shl => Some(self.b.shl(of(0)?, self.b.const_int(to, constant(1)?))),
            Arith::Mul { .. } | Arith::Mad { .. } => {
                for (at, other) in [(0, 1), (1, 0)] {
                    if let (Some(stride), Some(k)) = (of(at), constant(other)) {
                        return Some(self.b.mul(stride, self.b.const_int(to, expr.number(k) as u64)));
                    }
                }
                for (at, other) in [(0, 1), (1, 0)] {
                    let (Some(rows), Some(stride)) = (name(at), name(other)) else { continue };
                    let counts = matches!(self.shape(rows), Shape::Affine(p) if p.rows.is_empty());
                    if counts && self.is_scalar(stride) && constant(other).is_none() {
                        let stride = self.scalar(stride);
                        return Some(self.resized(stride, to, expr.ty.is_signed()));
                    }
                }
                of(2)
            }
            _ => None,
        }
    }

    fn resized(&self, value: Value, to: crate::llvm::Type, signed: bool) -> Value {
        let (have, want) = (value.ty().element_bits(), to.element_bits());
        match (have.cmp(&want), signed) {
            (std::cmp::Ordering::Equal, _) => value,
            (std::cmp::Ordering::Greater, _) => self.b.trunc(value, to),
            (std::cmp::Ordering::Less, true) => self.b.sext(value, to),
            (std::cmp::Ordering::Less, false) => self.b.zext(value, to),
        }
    }

    /// The least and the greatest row start of 64-bit addresses, for either sign of the stride.
    pub(super) fn row_ends(&self, [base, stride]: [Value; 2], pattern: &Affine) -> (Value, Value) {
        let ends = [pattern.rows.iter().min(), pattern.rows.iter().max()];
        let low = i64::from(pattern.lanes.iter().min().copied().unwrap_or(0));
        let [a, b] = ends.map(|end| {
            let times = i64::from(end.copied().unwrap_or(0)) as u64;
            self.b.mul(stride, self.c64(times))
        });
        let pick = |name: &str| self.b.intrinsic(name, &[self.int(64)], &[a, b]);
        let at = |more: Value| self.b.add(self.b.add(base, more), self.c64(low as u64));
        (at(pick("llvm.smin")), at(pick("llvm.smax")))
    }

    /// The condition that a 64-bit stride is so small that all rows lie between the first and the last;
    /// `None` if that is known.
    pub(super) fn is_near(&self, rows: Rows) -> Option<Value> {
        if rows.near {
            return None;
        }
        let from = self.b.add(rows.scalars[1], self.c64(NEAR));
        Some(self.b.icmp(IntPred::Ult, from, self.c64(2 * NEAR)))
    }

    /// The condition that a lane of a 32-bit value wraps around where it is widened.
    pub(super) fn rows_wrap(&mut self, name: wir::Value, pattern: &Affine, signed: bool) -> Value {
        let long = self.int(64);
        let base = self.base(name, 0).expect("a pattern has bases");
        let stride = self.stride_of(name).expect("a pattern of rows has a stride");
        let rows = [self.resized(base, long, signed), self.resized(stride, long, true)];
        let (low, high) = self.row_ends(rows, pattern);
        let low_lane = i64::from(pattern.lanes.iter().min().copied().unwrap_or(0));
        let high_lane = i64::from(pattern.lanes.iter().max().copied().unwrap_or(0));
        let high = self.b.add(high, self.c64((high_lane - low_lane) as u64));
        let least = if signed { i64::from(i32::MIN) } else { 0 };
        let most = if signed { i64::from(i32::MAX) } else { i64::from(u32::MAX) };
        let under = self.b.icmp(IntPred::Slt, low, self.c64(least as u64));
        let over = self.b.icmp(IntPred::Sgt, high, self.c64(most as u64));
        self.b.or(under, over)
    }

    /// The addresses with a base for each chunk, unless a chunk contains several rows.
    pub(super) fn by_chunk(&self, rows: Rows, pattern: &Affine) -> Addresses {
        match pattern.splits(self.width as usize) {
            true => Addresses::Rows(rows, pattern.clone()),
            false => self.unrolled(rows.scalars, pattern),
        }
    }

    /// The addresses with a base for each chunk, or with one address for each lane if a chunk contains
    /// several rows.
    pub(super) fn unrolled(&self, [base, stride]: [Value; 2], pattern: &Affine) -> Addresses {
        let Some(apart) = pattern.by_chunks(self.width as usize) else {
            let chunks = (0..self.chunks()).map(|c| {
                let rows = self.vector_of_rows([base, stride], pattern, c);
                self.add_lanes(rows, pattern, c)
            });
            return Addresses::Each(chunks.collect());
        };
        let (mut row, mut at) = (base, 0);
        let mut bases = Vec::new();
        for chunk in 0..self.chunks() {
            let start = (chunk * self.width) as usize;
            let more = pattern.rows[start] - at;
            if more != 0 {
                let step = match more {
                    1 => stride,
                    more => self.b.mul(stride, self.c64(i64::from(more) as u64)),
                };
                row = self.b.add(row, step);
                at = pattern.rows[start];
            }
            let lane = i64::from(pattern.lanes[start]);
            bases.push(if lane == 0 { row } else { self.b.add(row, self.c64(lane as u64)) });
        }
        Addresses::Affine(bases, apart)
    }
}

/// Whether a value has a symbolic stride.
fn has_rows(func: &Func, name: wir::Value) -> bool {
    matches!(&func.shapes[name.0 as usize], Shape::Affine(pattern) if !pattern.rows.is_empty())
}

/// Merges new information into what is known. Returns whether anything changed.
fn meet(known: &mut Option<Option<Stride>>, new: Option<Option<Stride>>) -> bool {
    let both = match (*known, new) {
        (have, None) => have,
        (None, new) => new,
        (Some(have), Some(new)) => Some(if have == new { have } else { None }),
    };
    std::mem::replace(known, both) != both
}
