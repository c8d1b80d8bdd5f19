//! Loop predication of bounds checks: an access that steps by a constant is checked for many iterations at
//! once.
//!
//! Where each iteration adds a constant to an address, the comparison with the bounds in the first iteration
//! says in how many further iterations the access is in bounds. That many iterations execute without a check,
//! counted by the counter of fuel; then the next iteration checks again.
//!
//! Invariants: the step is exact in every lane, modulo the width of an address. Where an iteration may
//! differ, or the loop is entered, the next comparison is made. Bounds are those of live memory, which stays
//! as long as native code runs.
//!
//! Not handled: steps that only the launch knows, and accesses in blocks of a loop other than its header.

use super::Codegen;
use super::load_store::Addresses;
use crate::analysis::expr::{Arith, Expr, Operand, operands};
use crate::llvm::Value;
use crate::tuning::{LOOP_PREDICATION_MAX_DEFINITIONS, LOOP_PREDICATION_MIN_ADDRESSES};
use crate::wir;
use crate::wir::checks::Reach;
use crate::wir::{BlockId, Kind, Op, OpKind, Shape};
use ptx::ir::{Addr, Base, Inst, RegClass, Src};
use ptx::isa::{Op as O, Space, Ty};
use std::collections::HashMap;
use std::rc::Rc;

/// The most iterations without a check, and the most bytes of a step. Their products do not overflow.
const FAR: u64 = 1 << 31;

/// A loop whose header is the block.
pub(super) struct Turns {
    /// The fuel at the start of the block.
    left: wir::Value,
    /// For each predecessor, whether the edge only ends an iteration of the loop.
    again: Vec<bool>,
    /// The least fuel that an iteration uses.
    price: u64,
    /// The steps of addresses.
    steps: HashMap<wir::Value, Step>,
}

/// The constant that each iteration adds to an address.
struct Step {
    by: i64,
    widened: Vec<Widened>,
}

/// A uniform 32-bit number that must not wrap around.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Widened {
    name: wir::Value,
    by: i64,
    signed: bool,
}

/// The predicated loops of a function.
#[derive(Default)]
pub(super) struct LoopPredication {
    turns: HashMap<BlockId, Option<Rc<Turns>>>,
    /// For each loop header, the accesses are in bounds while more fuel is left than this.
    until: HashMap<BlockId, Value>,
}

/// A source of an instruction in a loop.
#[derive(Clone, Copy)]
struct Stepping {
    name: Option<wir::Value>,
    /// The constant that each iteration adds.
    by: i64,
    /// The bits of the source, as far as they are known.
    bits: Option<u64>,
}

impl Codegen<'_> {
    /// The loop whose header is a block, if enough of its accesses step by constants.
    fn turns(&mut self, id: BlockId) -> Option<Rc<Turns>> {
        if let Some(known) = self.passes.loop_predication.turns.get(&id) {
            return known.clone();
        }
        let found = self.find_turns(id).map(Rc::new);
        self.passes.loop_predication.turns.insert(id, found.clone());
        found
    }

    fn find_turns(&self, id: BlockId) -> Option<Turns> {
        let node = &self.job.func.blocks[id.0 as usize];
        if !node.full || node.preds.len() < 2 {
            return None;
        }
        let left = node.ops.iter().find_map(|op| match &op.kind {
            OpKind::Ahead(exit) => Some(exit.turns),
            _ => None,
        })?;
        let phi = node.phis.iter().find(|phi| phi.def == left)?;
        let prices: Vec<Option<u64>> = phi.from.iter().map(|from| self.price(*from, left)).collect();
        let price = prices.iter().flatten().min().copied()?;
        let again: Vec<bool> = prices.iter().map(Option::is_some).collect();
        let mut steps = HashMap::new();
        for op in &node.ops {
            let OpKind::Inst(site) = op.kind else { continue };
            let accesses =
                |inst: &Inst| matches!(inst.op, O::Ld | O::LdNc | O::Ldu | O::St | O::Atom | O::Red);
            let Some(inst) = site.inst(self.job.function).filter(|inst| accesses(inst)) else { continue };
            let Some(Src::Reg(_) | Src::Addr(Addr { base: Base::Reg(_), index: None, .. })) =
                inst.srcs.first()
            else {
                continue;
            };
            let Some(name) = op.uses.get(1).copied() else { continue };
            if self.kind(name) != Kind::Reg(RegClass::R64) || steps.contains_key(&name) {
                continue;
            }
            let (mut looks, mut widened) = (LOOP_PREDICATION_MAX_DEFINITIONS, Vec::new());
            if let Some(by) = self.step(node, &again, id, name, &mut looks, &mut widened)
                && by.unsigned_abs() < FAR
            {
                steps.insert(name, Step { by, widened });
            }
        }
        if steps.len() < LOOP_PREDICATION_MIN_ADDRESSES {
            self.remark_block(id, false);
            self.missed("loop-predication", "too few addresses of the loop's first block step by a constant");
            return None;
        }
        Some(Turns { left, again, price, steps })
    }

    /// By how much the fuel decreases between the start of the loop header and this value, if that is known.
    fn price(&self, mut at: wir::Value, left: wir::Value) -> Option<u64> {
        let mut price = 0_i64;
        for _ in 0..LOOP_PREDICATION_MAX_DEFINITIONS {
            if at == left {
                return u64::try_from(price).ok().filter(|price| (1..FAR).contains(price));
            }
            let op = self.facts.def_use.op_of(self.job.func, at)?;
            let OpKind::Add(by) = op.kind else { return None };
            price = price.checked_sub(by)?;
            at = op.uses[0];
        }
        None
    }

    /// The constant that each iteration adds to a value, in every lane. A value from outside the block does
    /// not change: its definition dominates the block, and the block dominates the ends of the iterations.
    fn step(
        &self,
        node: &wir::Block,
        again: &[bool],
        id: BlockId,
        name: wir::Value,
        looks: &mut u32,
        widened: &mut Vec<Widened>,
    ) -> Option<i64> {
        *looks = looks.checked_sub(1)?;
        if let Some(phi) = node.phis.iter().find(|phi| phi.def == name) {
            let ends = phi.from.iter().zip(again).filter(|(_, again)| **again);
            let mut steps = ends.map(|(from, _)| self.added(*from, name));
            let first = steps.next()??;
            return steps.all(|step| step == Some(first)).then_some(first);
        }
        let Some((_, index)) = self.facts.def_use.op(name).filter(|(at, _)| *at == id) else {
            return Some(0);
        };
        let op = &node.ops[index];
        let inst = match op.kind {
            OpKind::Inst(site) => site.inst(self.job.function)?,
            OpKind::Count(_) | OpKind::Mask(_) => return Some(0),
            _ => return None,
        };
        if inst.guard.is_some() {
            return None;
        }
        if let (O::Ld, Some(Src::Addr(Addr { base: Base::KernelParam, index: None, .. }))) =
            (inst.op, inst.srcs.first())
        {
            return Some(0);
        }
        let mut sources = Vec::new();
        for operand in operands(inst, op) {
            sources.push(match operand {
                Operand::Value(name) => {
                    let by = self.step(node, again, id, name, looks, widened)?;
                    let bits = match self.shape(name) {
                        Shape::Uniform(bits) => *bits,
                        Shape::Bottom | Shape::Affine(_) | Shape::Varying => None,
                    };
                    Stepping { name: Some(name), by, bits }
                }
                Operand::Imm(bits) => Stepping { name: None, by: 0, bits: Some(bits) },
                Operand::Absent | Operand::Sreg(..) => Stepping { name: None, by: 0, bits: None },
                Operand::Not(_)
                | Operand::Based(..)
                | Operand::Indexed(_)
                | Operand::Symbol(_)
                | Operand::Video(_) => return None,
            });
        }
        // A function of unchanged sources is unchanged.
        if sources.iter().all(|source| source.by == 0) {
            return crate::effects::is_pure(inst).then_some(0);
        }
        let [to] = op.defs.as_slice() else { return None };
        self.step_of_sum(Expr::of(inst)?, *to, &sources, widened)
    }

    /// The step of an instruction's result, computed from the steps of its operands.
    fn step_of_sum(
        &self,
        expr: Expr,
        to: wir::Value,
        sources: &[Stepping],
        widened: &mut Vec<Widened>,
    ) -> Option<i64> {
        let by = |at: usize| sources.get(at).map(|source| source.by);
        let Kind::Reg(class @ (RegClass::R32 | RegClass::R64)) = self.kind(to) else { return None };
        let same = |source: &Stepping| source.name.is_none_or(|name| self.kind(name) == self.kind(to));
        let one_width = sources.iter().all(same);
        match expr.arith {
            Arith::ToGeneric(space) | Arith::FromGeneric(space)
                if class == RegClass::R64 && space != Space::Generic =>
            {
                return by(0).filter(|_| one_width);
            }
            Arith::Convert(_) => {
                let (from, 64) = expr.widens()? else { return None };
                return self.widen(*sources.first()?, from, 1, widened);
            }
            Arith::Copy if expr.is_of_words() && one_width => return by(0),
            _ if !expr.is_of_words() => return None,
            _ => {}
        }
        let constant = |source: Stepping| Some(expr.number(source.bits?));
        let product = |widened: &mut Vec<Widened>| {
            let (a, b) = (*sources.first()?, *sources.get(1)?);
            let (steps, times) = match (a.by, b.by) {
                (0, 0) => return Some(0),
                (_, 0) => (a, constant(b)?),
                (0, _) => (b, constant(a)?),
                _ => return None,
            };
            match expr.widens() {
                None => Some(steps.by.wrapping_mul(times)),
                Some((from, _)) => self.widen(steps, from, times, widened),
            }
        };
        let sum = match expr.arith {
            Arith::Add if one_width => by(0)?.wrapping_add(by(1)?),
            Arith::Sub if one_width => by(0)?.wrapping_sub(by(1)?),
            Arith::Mul { .. } => product(widened)?,
            Arith::Mad { .. } => product(widened)?.wrapping_add(by(2)?),
            Arith::Shl if by(1)? == 0 => {
                let places = sources.get(1)?.bits?;
                let bits = if class == RegClass::R32 { 32 } else { 64 };
                if places >= bits {
                    return None;
                }
                by(0)?.wrapping_shl(places as u32)
            }
            _ => return None,
        };
        Some(match class {
            RegClass::R32 => i64::from(sum as i32),
            _ => sum,
        })
    }

    /// The step of a number that is widened and multiplied by a constant.
    fn widen(&self, source: Stepping, from: Ty, times: i64, widened: &mut Vec<Widened>) -> Option<i64> {
        let name = source.name?;
        let scalar = self.shape(name).is_uniform() && self.kind(name) == Kind::Reg(RegClass::R32);
        if !scalar || from.bits() != 32 {
            return None;
        }
        let new = Widened { name, by: source.by, signed: from.is_signed() };
        if new.by != 0 && !widened.contains(&new) {
            widened.push(new);
        }
        source.by.checked_mul(times)
    }

    /// The sum of the constants that are added between a phi and a value, in every lane.
    fn added(&self, mut at: wir::Value, phi: wir::Value) -> Option<i64> {
        let kind = self.kind(phi);
        let Kind::Reg(class @ (RegClass::R32 | RegClass::R64)) = kind else { return None };
        let mut sum = 0_i64;
        for _ in 0..LOOP_PREDICATION_MAX_DEFINITIONS {
            if at == phi {
                return Some(if class == RegClass::R32 { i64::from(sum as i32) } else { sum });
            }
            let (node, index) = self.facts.def_use.op(at)?;
            let node = &self.job.func.blocks[node.0 as usize];
            let op: &Op = &node.ops[index];
            let OpKind::Inst(site) = op.kind else { return None };
            let inst = site.inst(self.job.function)?;
            let expr = Expr::of(inst).filter(|expr| expr.is_of_words())?;
            if !node.full || inst.guard.is_some() || self.kind(at) != kind {
                return None;
            }
            let constant = |name: wir::Value| match self.shape(name) {
                Shape::Uniform(bits) => bits.map(|bits| bits as i64),
                Shape::Bottom | Shape::Affine(_) | Shape::Varying => None,
            };
            let (from, by) = match (expr.arith, operands(inst, op).as_slice()) {
                (Arith::Copy, [Operand::Value(from)]) => (*from, 0),
                (
                    Arith::Add,
                    [Operand::Value(from), Operand::Imm(bits)] | [Operand::Imm(bits), Operand::Value(from)],
                ) => (*from, *bits as i64),
                (Arith::Sub, [Operand::Value(from), Operand::Imm(bits)]) => {
                    (*from, (*bits as i64).wrapping_neg())
                }
                (Arith::Add, [Operand::Value(a), Operand::Value(b)]) => match (constant(*a), constant(*b)) {
                    (_, Some(by)) => (*a, by),
                    (Some(by), None) => (*b, by),
                    (None, None) => return None,
                },
                _ => return None,
            };
            sum = sum.wrapping_add(by);
            at = from;
        }
        None
    }

    /// At the start of a loop header, merges how long its accesses stay in bounds from the predecessors.
    pub(super) fn begin_predicated_loop(&mut self, id: BlockId) {
        if self.turns(id).is_some() {
            let until = self.b.phi(self.int(64));
            self.flow
                .phis
                .insert((id.0, self.job.func.blocks[id.0 as usize].phis.len()), super::Repr::Scalar(until));
            self.passes.loop_predication.until.insert(id, until);
        }
    }

    /// The value of `until` on the edge to a loop header, if the header needs it.
    pub(super) fn predicated_until(&mut self, to: BlockId, place: usize) -> Option<Value> {
        let turns = self.turns(to)?;
        let again = turns.again.get(place).copied().unwrap_or(false);
        let until = self.passes.loop_predication.until.get(&to).copied().filter(|_| again);
        // No more fuel than this is ever left, so the next iteration checks.
        Some(until.unwrap_or_else(|| self.c64(i64::MAX as u64)))
    }

    /// The predicated loop whose header is the block that is emitted.
    pub(super) fn predicated_loop(&mut self, node: &wir::Block) -> Option<(BlockId, Rc<Turns>)> {
        let id = self.position.node?;
        let mine = std::ptr::eq(&self.job.func.blocks[id.0 as usize], node);
        let once =
            self.position.versioned_block.is_none() && self.position.prefix.is_none() && self.position.full;
        if !mine || !once || !self.passes.loop_predication.until.contains_key(&id) {
            return None;
        }
        Some((id, self.turns(id)?))
    }

    /// Whether accesses relative to a register can be checked for many iterations.
    pub(super) fn is_predicated(
        &self,
        turns: &Turns,
        name: wir::Value,
        reach: Reach,
        addresses: &Addresses,
    ) -> bool {
        let Some(step) = turns.steps.get(&name) else { return false };
        let regular = match addresses {
            Addresses::Same(_) => true,
            Addresses::Affine(_, pattern) | Addresses::Rows(_, pattern) => {
                self.vectors().is_regular(reach.space, reach.align, pattern, true)
            }
            Addresses::ScaledIndex(_) | Addresses::Each(_) => false,
        };
        let space = matches!(reach.space, Space::Global | Space::Const | Space::Generic | Space::Shared);
        regular && space && step.by % i64::from(reach.align) == 0
    }

    /// The condition that this iteration needs no check, and the fuel limit it was compared with.
    pub(super) fn is_before(&mut self, id: BlockId, turns: &Turns) -> (Value, Value) {
        let until = self.passes.loop_predication.until[&id];
        let left = self.scalar(turns.left);
        (self.b.icmp(crate::llvm::IntPred::Sgt, left, until), until)
    }

    /// Records how long the accesses stay in bounds; the value merges the paths with and without a check.
    pub(super) fn set_predicated(&mut self, id: BlockId, until: Value) {
        self.passes.loop_predication.until.insert(id, until);
    }

    /// Computes the fuel down to which accesses that are in bounds now stay in bounds. Later iterations
    /// compare their fuel with it.
    pub(super) fn fit_until(
        &mut self,
        turns: &Turns,
        groups: &[(wir::Value, Reach, &Addresses)],
    ) -> Option<Value> {
        let mut most = self.c64(FAR - 1);
        let mut numbers: Vec<Widened> = Vec::new();
        for (name, reach, addresses) in groups {
            let step = turns.steps.get(name)?;
            for number in &step.widened {
                if !numbers.contains(number) {
                    numbers.push(*number);
                }
            }
            if step.by == 0 {
                continue;
            }
            let span = self.window_span(*reach, addresses, true);
            let (bias, limit) = self.bounds(*reach, span)?;
            let bias = self.b.add(bias, self.c64(reach.lo as u64));
            let low = |lanes: &[i32]| i64::from(lanes.iter().min().copied().unwrap_or(0)) as u64;
            let firsts = match addresses {
                Addresses::Same(address) => vec![*address],
                Addresses::Affine(bases, pattern) => {
                    bases.iter().map(|base| self.b.add(*base, self.c64(low(&pattern.lanes)))).collect()
                }
                Addresses::Rows(rows, pattern) => <[Value; 2]>::from(self.row_ends(*rows, pattern)).to_vec(),
                Addresses::ScaledIndex(_) | Addresses::Each(_) => return None,
            };
            for first in firsts {
                let from = self.b.add(first, bias);
                let room = match step.by > 0 {
                    true => self.b.sub(self.b.sub(limit, self.c64(1)), from),
                    false => from,
                };
                most = self.least(most, room, step.by);
            }
        }
        for Widened { name, by, signed } in numbers {
            let long = self.int(64);
            let value = self.scalar(name);
            let (value, low, high) = match signed {
                true => (self.b.sext(value, long), i64::from(i32::MIN), i64::from(i32::MAX)),
                false => (self.b.zext(value, long), 0, i64::from(u32::MAX)),
            };
            let room = match by > 0 {
                true => self.b.sub(self.c64(high as u64), value),
                false => self.b.sub(value, self.c64(low as u64)),
            };
            most = self.least(most, room, by);
        }
        let left = self.scalar(turns.left);
        let more = self.b.mul(most, self.c64(turns.price));
        Some(self.b.sub(self.b.sub(left, more), self.c64(1)))
    }

    /// The smaller of `most` iterations and the iterations in which `room` bytes are stepped through.
    fn least(&self, most: Value, room: Value, by: i64) -> Value {
        let by = by.unsigned_abs();
        let turns = match by.is_power_of_two() {
            true => self.b.lshr(room, self.c64(u64::from(by.trailing_zeros()))),
            false => self.b.udiv(room, self.c64(by)),
        };
        self.b.intrinsic("llvm.umin", &[self.int(64)], &[most, turns])
    }
}
