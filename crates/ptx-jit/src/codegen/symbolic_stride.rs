//! Symbolic-stride addresses: a base, a constant of each lane, and a multiple of a stride that is known only
//! at run time.
//!
//! The threads of a coarse warp form a rectangle, whose rows in memory are as far apart as the launch says.
//! So all addresses are two scalars, compared with the bounds at once, and a chunk's address is one addition.
//! The same holds for a warp whose rows are shorter than a chunk.
//!
//! Where the stride is a kernel parameter times a constant ([`analysis::symbolic_stride`]), it is read from
//! the parameter where it is used. Then all values with that stride share it and what checks derive from it,
//! and none is carried across barriers.
//!
//! [`analysis::symbolic_stride`]: crate::analysis::symbolic_stride
//!
//! Invariant: `base + lanes[l] + rows[l] * stride` is the value in every lane, modulo its width. Where it is
//! widened, a guard has tested that no lane wraps around, with the stride as a signed number.

use super::load_store::{Addresses, Rows};
use super::{Codegen, Repr};
use crate::analysis::expr::{Arith, Expr, operands};
use crate::analysis::symbolic_stride::{NEAR, Stride};
use crate::llvm::{Block, IntPred, Type, Value};
use crate::wir;
use crate::wir::{Affine, Op, Shape};
use ptx::ir::Inst;
use std::cell::RefCell;
use std::collections::HashMap;

/// For each stride and width, the LLVM block in which it was read last, with the value.
pub(super) type StrideReads = RefCell<HashMap<(Stride, u32), (Block, Value)>>;

impl Codegen<'_> {
    /// The second scalar of a symbolic-stride address.
    pub(super) fn stride_of(&self, name: wir::Value) -> Option<Value> {
        match (self.shape(name), self.values.get(name)) {
            (Shape::Affine(pattern), Some(Repr::Bases(bases))) if !pattern.rows.is_empty() => {
                match self.facts.strides.get(&name) {
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
        let near = self.facts.strides.get(&name).is_some_and(|stride| stride.is_near());
        Some(Rows { scalars: [shift(self, base), self.stride_of(name)?], near })
    }

    /// Computes a stride from its parameter.
    fn read_stride(&self, stride: Stride, ty: Type) -> Value {
        let here = self.b.current_block();
        let key = (stride, ty.element_bits());
        let known = self.passes.stride_reads.borrow().get(&key).copied();
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
        self.passes.stride_reads.borrow_mut().insert(key, (here, value));
        value
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
