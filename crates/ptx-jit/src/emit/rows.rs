//! Patterns of rows: a base, a constant of each lane, and a stride that lanes add several times, known only when the code runs.
//!
//! The threads of a team make up a rectangle, whose rows lie in memory as far apart as the launch says. So all its addresses are two
//! scalars, which are compared with bounds at once; a chunk's own address is one addition.
//!
//! Invariant: `base + lanes[l] + rows[l] * stride` is the value in every lane, modulo its width; where it is widened, the guard has found
//! that no lane wraps around, with the stride taken as a signed number.

use super::memory::Addresses;
use super::{Emit, Rep};
use crate::llvm::{IntPred, Value};
use crate::plan::{Class, Name, Op, Pattern};
use ptx::ir::{Inst, Src};
use ptx::isa::Op as O;

/// Strides stay below this, so that no sum of a few thousand wraps around.
const NEAR: u64 = 1 << 40;

impl Emit<'_> {
    /// The second scalar of a pattern of rows.
    pub(super) fn stride_of(&self, name: Name) -> Option<Value> {
        match (self.class(name), self.reps[name.0 as usize].as_ref()) {
            (Class::Pattern(pattern), Some(Rep::Bases(bases))) if !pattern.rows.is_empty() => {
                bases.get(1).copied()
            }
            _ => None,
        }
    }

    /// The base of a chunk's row.
    pub(super) fn row_base(&self, bases: &[Value], pattern: &Pattern, chunk: u32) -> Value {
        let times = pattern.rows.get((chunk * self.width) as usize).copied().unwrap_or(0);
        match times {
            0 => bases[0],
            times => {
                let more = self.b.mul(bases[1], self.b.const_int(bases[1].ty(), i64::from(times) as u64));
                self.b.add(bases[0], more)
            }
        }
    }

    /// The stride of what an instruction makes of patterns of which one has a stride, or of rows and the stride itself.
    pub(super) fn stride_made(&mut self, inst: &Inst, op: &Op, def: Name) -> Option<Value> {
        let to = self.scalar_type(self.kind(def));
        let mut next = 1;
        let mut names: Vec<Option<Name>> = Vec::new();
        for src in &inst.srcs {
            let mut count = 0;
            src.for_each_reg(&mut |_| count += 1);
            names.push(if count == 1 { op.uses.get(next).copied() } else { None });
            next += count;
        }
        let signed = |value: Value| self.resized(value, to, true);
        let of =
            |at: usize| names.get(at).copied().flatten().and_then(|name| self.stride_of(name)).map(signed);
        let constant = |at: usize| match (inst.srcs.get(at), names.get(at).copied().flatten()) {
            (Some(Src::Imm(bits)), _) => Some(*bits),
            (_, Some(name)) => match self.class(name) {
                Class::Uniform(value) => *value,
                Class::Bottom | Class::Pattern(_) | Class::Varying => None,
            },
            _ => None,
        };
        match inst.op {
            O::Mov | O::Cvt | O::Cvta | O::CvtaTo => of(0),
            O::Add | O::Or | O::Xor => of(0).or_else(|| of(1)),
            O::Sub => of(0).or_else(|| of(1).map(|stride| self.b.neg(stride))),
            O::Shl => Some(self.b.shl(of(0)?, self.b.const_int(to, constant(1)?))),
            O::Mul | O::Mad => {
                let ty = inst.mods.ty();
                for (at, other) in [(0, 1), (1, 0)] {
                    if let (Some(stride), Some(k)) = (of(at), constant(other)) {
                        let shift = 64 - ty.bits();
                        let k = (((k << shift) as i64) >> shift) as u64;
                        return Some(self.b.mul(stride, self.b.const_int(to, k)));
                    }
                }
                for (at, other) in [(0, 1), (1, 0)] {
                    let (Some(rows), Some(stride)) = (names[at], names[other]) else { continue };
                    let counts = matches!(self.class(rows), Class::Pattern(p) if p.rows.is_empty());
                    if counts && self.is_scalar(stride) && constant(other).is_none() {
                        let stride = self.scalar(stride);
                        return Some(self.resized(stride, to, ty.is_signed()));
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

    /// The first and the last row's part of 64-bit values: base and stride, whichever way it counts.
    pub(super) fn row_ends(&self, [base, stride]: [Value; 2], pattern: &Pattern) -> (Value, Value) {
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

    /// Whether a stride of 64 bits is so small that rows lie between the first and the last.
    pub(super) fn is_near(&self, stride: Value) -> Value {
        let from = self.b.add(stride, self.c64(NEAR));
        self.b.icmp(IntPred::Ult, from, self.c64(2 * NEAR))
    }

    /// Whether a lane of a 32-bit value wraps around where it is widened.
    pub(super) fn rows_wrap(&mut self, name: Name, pattern: &Pattern, signed: bool) -> Value {
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

    /// Addresses with a base for each chunk.
    pub(super) fn unrolled(&self, [base, stride]: [Value; 2], pattern: &Pattern) -> Addresses {
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
        Addresses::Pattern(bases, pattern.by_chunks(self.width as usize))
    }
}
