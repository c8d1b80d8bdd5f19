//! Which lanes of a warp are known to have equal values.
//!
//! A warp adds up its lanes by a butterfly: `v = v + shfl.bfly(v, 16)`, then 8, 4, 2, 1. After each step,
//! lanes whose numbers differ in one more bit have equal values, because the operation commutes: lane `i`
//! computes `v[i] + v[i ^ 16]`, lane `i ^ 16` computes `v[i ^ 16] + v[i]`. After the last step all lanes are
//! equal, and so is what is computed from the sum. Minima and maxima of floating-point numbers do not
//! commute: of two zeros they give the second.
//!
//! Invariant: what is claimed holds for the bits of a value, up to the payload of a NaN, in all lanes of a
//! warp. Only shuffles that all lanes execute count.

use crate::analysis::expr::{Operand, operands};
use crate::wir::{Affine, Func, Op, OpKind, Shape, Value};
use ptx::ir::{Dst, Function, Inst};
use ptx::isa::{Op as O, TyKind};
use ptx_exec::bind::shfl_semantics;
use ptx_sem::shfl_source;
use std::collections::HashMap;

/// Lanes of a warp.
const LANES: u32 = 32;

/// A set of bits of the lane number: lanes whose numbers differ in these bits alone have equal values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EqualLanes(u8);

impl EqualLanes {
    /// All lanes have equal values.
    pub(super) const ALL: EqualLanes = EqualLanes(31);
    /// Nothing is known.
    pub(super) const NONE: EqualLanes = EqualLanes(0);

    /// The equal lanes that a shape implies. All lanes of `Bottom` are, as in any optimistic analysis.
    pub(super) fn of_shape(shape: &Shape) -> Self {
        match shape {
            Shape::Bottom | Shape::Uniform(_) => Self::ALL,
            Shape::Affine(affine) => Self::of_affine(affine),
            Shape::Varying => Self::NONE,
        }
    }

    fn of_affine(affine: &Affine) -> Self {
        if affine.by_chunk || !affine.rows.is_empty() || affine.lanes.len() != LANES as usize {
            return Self::NONE;
        }
        Self::of_lanes(|a, b| affine.lanes[a as usize] == affine.lanes[b as usize])
    }

    /// The bits for which all pairs of lanes that differ in the bit alone are equal.
    fn of_lanes(equal: impl Fn(u32, u32) -> bool) -> Self {
        let all = |bit: &u8| (0..LANES).all(|lane| equal(lane, lane ^ u32::from(*bit)));
        Self([1, 2, 4, 8, 16].into_iter().filter(all).sum())
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(super) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether these lanes are known to be equal.
    fn has(self, a: u32, b: u32) -> bool {
        (a ^ b) & !u32::from(self.0) == 0
    }
}

/// A shuffle in which each lane takes from a lane that is known at compile time.
#[derive(Clone, Debug)]
struct Shuffle {
    /// The value whose lanes are exchanged.
    from: Value,
    /// By lane: the lane that it takes from, and whether that is in its segment.
    table: Vec<(u32, bool)>,
}

impl Shuffle {
    /// `None` for other instructions, and for shuffles by registers.
    fn of(inst: &Inst, op: &Op) -> Option<Self> {
        let mode = shfl_semantics(inst.mods.shfl_mode()?);
        let all = operands(inst, op);
        let (Some(from), Some(Operand::Imm(b)), Some(Operand::Imm(c))) =
            (all.first()?.value(), all.get(1), all.get(2))
        else {
            return None;
        };
        let table = (0..LANES).map(|lane| shfl_source(mode, lane, *b as u32, *c as u32)).collect();
        Some(Self { from, table })
    }

    /// The bit of the lane number in which each lane differs from the lane that it takes from.
    fn exchanged_bit(&self) -> Option<EqualLanes> {
        let bit = self.table[0].0;
        let exchanges =
            bit.is_power_of_two() && (0..).zip(&self.table).all(|(lane, (from, _))| *from == lane ^ bit);
        exchanges.then_some(EqualLanes(bit as u8))
    }
}

/// The shuffles of a function that all lanes execute, by the values that they define.
#[derive(Debug, Default)]
pub(super) struct Shuffles {
    by_result: HashMap<Value, Shuffle>,
}

impl Shuffles {
    pub(super) fn of(func: &Func, function: &Function) -> Self {
        let full = func.blocks.iter().filter(|block| block.full);
        let found = full.flat_map(|block| &block.ops).filter_map(|op| {
            let OpKind::Inst(site) = &op.kind else { return None };
            let inst = site.inst(function).filter(|inst| inst.op == O::ShflSync && inst.guard.is_none())?;
            if !matches!(inst.dsts.first(), Some(Dst::Reg(_))) {
                return None;
            }
            Some((*op.defs.first()?, Shuffle::of(inst, op)?))
        });
        Self { by_result: found.collect() }
    }

    /// Whether the function has none. Then only shapes imply that lanes are equal.
    pub(super) fn is_empty(&self) -> bool {
        self.by_result.is_empty()
    }

    /// The equal lanes of each result of a shuffle. `equal`: the equal lanes of a value.
    pub(super) fn results(&self, op: &Op, equal: impl Fn(Value) -> EqualLanes) -> Vec<EqualLanes> {
        let nothing = vec![EqualLanes::NONE; op.defs.len()];
        let Some(shuffle) = op.defs.first().and_then(|def| self.by_result.get(def)) else { return nothing };
        let (from, table) = (equal(shuffle.from), &shuffle.table);
        let taken = EqualLanes::of_lanes(|a, b| from.has(table[a as usize].0, table[b as usize].0));
        let valid = EqualLanes::of_lanes(|a, b| table[a as usize].1 == table[b as usize].1);
        [taken, valid].into_iter().take(op.defs.len()).collect()
    }

    /// The lanes that are equal because an instruction combines a value with an exchange of its lanes.
    pub(super) fn combined(&self, inst: &Inst, op: &Op) -> EqualLanes {
        let commutes = match inst.op {
            O::Add | O::Mul | O::And | O::Or | O::Xor => true,
            // Of two zeros with different signs, the result is the second one.
            O::Min | O::Max => inst.mods.ty().kind() != TyKind::Float,
            _ => false,
        };
        let all = operands(inst, op);
        let ([Some(a), Some(b)], true) = ([0, 1].map(|at| all.get(at).and_then(|o| o.value())), commutes)
        else {
            return EqualLanes::NONE;
        };
        let exchanged = |from: Value, result: &Value| {
            self.by_result.get(result).filter(|shuffle| shuffle.from == from)?.exchanged_bit()
        };
        exchanged(a, &b).or_else(|| exchanged(b, &a)).unwrap_or(EqualLanes::NONE)
    }
}
