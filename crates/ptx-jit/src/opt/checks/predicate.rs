//! Loop predication of bounds checks: which accesses of a loop are checked for many iterations at once.
//!
//! Where each iteration adds a constant to an address, the comparison with the bounds in the first iteration
//! says in how many further iterations the access is in bounds. That many iterations execute without a check,
//! counted by the counter of fuel; then the next iteration checks again.
//!
//! Invariant: the step is exact in every lane, modulo the width of an address.
//!
//! Not handled: steps that only the launch knows, and accesses in blocks of a loop other than its header.

use crate::analysis::expr::{Arith, Expr, Operand, operands};
use crate::effects;
use crate::mem::Vectors;
use crate::tuning::{LOOP_PREDICATION_MAX_DEFINITIONS, LOOP_PREDICATION_MIN_ADDRESSES};
use crate::wir::access::Form;
use crate::wir::checks::{Anchor, CheckGroup, FAR, PredicatedLoop, Predication, Step, Widened};
use crate::wir::uses::DefUse;
use crate::wir::{Block, BlockId, Func, Kind, Op, OpKind, Shape, Value};
use ptx::ir::{Addr, Base, Function, Inst, RegClass, Src};
use ptx::isa::{Op as O, Space, Ty};
use std::collections::BTreeMap;
use std::rc::Rc;

/// What loops are found in.
struct Predicating<'a> {
    func: &'a Func,
    function: &'a Function,
    def_use: &'a DefUse,
}

/// A source of an instruction in a loop.
#[derive(Clone, Copy)]
struct Stepping {
    name: Option<Value>,
    /// The constant that each iteration adds.
    by: i64,
    /// The bits of the source, as far as they are known.
    bits: Option<u64>,
}

/// Decides for each block with checks whether they are made for many iterations at once.
pub(crate) fn predicate(func: &mut Func, function: &Function, def_use: &DefUse, vectors: Vectors) {
    let pass = Predicating { func, function, def_use };
    let found: Vec<Predication> = (0..func.blocks.len() as u32).map(|id| pass.of(BlockId(id))).collect();
    for (block, found) in func.blocks.iter_mut().zip(found) {
        let Some(checks) = &mut block.checks else { continue };
        let checks = Rc::make_mut(checks);
        if let Predication::Loop(header) = &found {
            for group in &mut checks.groups {
                group.predicated = is_predicated(header, group, vectors);
            }
        }
        checks.predication = found;
    }
}

/// Whether a group of accesses can be checked for many iterations of a loop.
fn is_predicated(header: &PredicatedLoop, group: &CheckGroup, vectors: Vectors) -> bool {
    let Anchor::Value(name) = group.anchor else { return false };
    let Some(step) = header.steps.get(&name).filter(|_| !group.inside) else { return false };
    let reach = group.reach;
    let regular = match &group.form {
        Form::Same => true,
        Form::Affine(pattern) | Form::Rows(pattern) => {
            vectors.is_regular(reach.space, reach.align, pattern, true)
        }
        Form::ScaledIndex(_) | Form::Each | Form::Local | Form::EachLocal => false,
    };
    let space = matches!(reach.space, Space::Global | Space::Const | Space::Generic | Space::Shared);
    regular && space && step.by % i64::from(reach.align) == 0
}

impl Predicating<'_> {
    fn kind(&self, name: Value) -> Kind {
        self.func.kinds[name.0 as usize]
    }

    fn shape(&self, name: Value) -> &Shape {
        &self.func.shapes[name.0 as usize]
    }

    /// The loop whose header is a block, if enough of its accesses step by constants.
    fn of(&self, id: BlockId) -> Predication {
        match self.header(id) {
            None => Predication::None,
            Some(found) if found.steps.len() < LOOP_PREDICATION_MIN_ADDRESSES => Predication::TooFewSteps,
            Some(found) => Predication::Loop(Rc::new(found)),
        }
    }

    /// The loop whose header is a block, with the steps of its addresses.
    fn header(&self, id: BlockId) -> Option<PredicatedLoop> {
        let node = &self.func.blocks[id.0 as usize];
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
        let mut steps = BTreeMap::new();
        for op in &node.ops {
            let OpKind::Inst(site) = op.kind else { continue };
            let accesses =
                |inst: &Inst| matches!(inst.op, O::Ld | O::LdNc | O::Ldu | O::St | O::Atom | O::Red);
            let Some(inst) = site.inst(self.function).filter(|inst| accesses(inst)) else { continue };
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
        Some(PredicatedLoop { left, again, price, steps })
    }

    /// By how much the fuel decreases between the start of the loop header and this value, if that is known.
    fn price(&self, mut at: Value, left: Value) -> Option<u64> {
        let mut price = 0_i64;
        for _ in 0..LOOP_PREDICATION_MAX_DEFINITIONS {
            if at == left {
                return u64::try_from(price).ok().filter(|price| (1..FAR).contains(price));
            }
            let op = self.def_use.op_of(self.func, at)?;
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
        node: &Block,
        again: &[bool],
        id: BlockId,
        name: Value,
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
        let Some((_, index)) = self.def_use.op(name).filter(|(at, _)| *at == id) else {
            return Some(0);
        };
        let op = &node.ops[index];
        let inst = match op.kind {
            OpKind::Inst(site) => site.inst(self.function)?,
            OpKind::Count(_) | OpKind::Mask(_) => return Some(0),
            _ => return None,
        };
        if inst.guard.is_some() {
            return None;
        }
        if effects::reads_parameter(inst) {
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
        to: Value,
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
            Arith::Neg if one_width => by(0)?.wrapping_neg(),
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
    fn added(&self, mut at: Value, phi: Value) -> Option<i64> {
        let kind = self.kind(phi);
        let Kind::Reg(class @ (RegClass::R32 | RegClass::R64)) = kind else { return None };
        let mut sum = 0_i64;
        for _ in 0..LOOP_PREDICATION_MAX_DEFINITIONS {
            if at == phi {
                return Some(if class == RegClass::R32 { i64::from(sum as i32) } else { sum });
            }
            let (node, index) = self.def_use.op(at)?;
            let node = &self.func.blocks[node.0 as usize];
            let op: &Op = &node.ops[index];
            let OpKind::Inst(site) = op.kind else { return None };
            let inst = site.inst(self.function)?;
            let expr = Expr::of(inst).filter(|expr| expr.is_of_words())?;
            if !node.full || inst.guard.is_some() || self.kind(at) != kind {
                return None;
            }
            let constant = |name: Value| match self.shape(name) {
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
}
