//! Scalar evolution: by how much a value grows from one CTA to the next and from one iteration of a loop to
//! the next, as a constant times facts of the launch.
//!
//! Only parameters and the size of the grid count as facts, because they can be read anywhere; other values
//! of the function are not available everywhere.
//!
//! Invariant: results are guesses, since overflow is ignored. Only prefetches may use them.

use crate::analysis::expr::{Arith, Expr, Operand, operands};
use crate::tuning::{PREFETCH_MAX_BYTES, SCALAR_EVOLUTION_MAX_DEFINITIONS, SCALAR_EVOLUTION_MAX_LOOPS};
use crate::wir;
use crate::wir::prefetch::{Fact, Product};
use crate::wir::uses::{Def, DefUse};
use crate::wir::{BlockId, Func, Kind, LaunchShape, Op, OpKind, Shape};
use ptx::ir::{Addr, Base, Function, Inst, RegClass, Src};
use ptx::isa::{Op as O, Sreg};
use std::collections::HashMap;

/// The growth of each value.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScalarEvolution {
    /// The growth from one CTA to the next in x, and in y.
    pub(crate) cta: [Vec<Option<Product>>; 2],
    /// The growth from one iteration to the next, of the innermost loop whose iterations meet at a barrier or
    /// whose step is a product.
    pub(crate) turn: Vec<Option<Product>>,
}

impl ScalarEvolution {
    pub(crate) fn new(func: &Func, function: &Function, def_use: &DefUse, shape: LaunchShape) -> Self {
        let mut find = Find { func, function, shape, values: vec![None; func.kinds.len()] };
        find.values = find.all(Of::Value, &HashMap::new());
        let none = HashMap::new();
        let cta = [0, 1].map(|axis| find.all(Of::Cta(axis), &none));
        let mut turn: Vec<Option<Product>> = vec![None; func.kinds.len()];
        for steps in find.steps(def_use) {
            let all = find.all(Of::Turn, &steps);
            for (have, new) in turn.iter_mut().zip(all) {
                if new.is_some_and(|new| !new.is_zero()) {
                    *have = new;
                }
            }
        }
        Self { cta, turn }
    }
}

/// The quantity that is computed for each value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// The value itself.
    Value,
    /// The growth with `%ctaid` on that axis.
    Cta(u8),
    /// The growth with an iteration, given the steps of the loop's phis.
    Turn,
}

struct Find<'a> {
    func: &'a Func,
    function: &'a Function,
    shape: LaunchShape,
    values: Vec<Option<Product>>,
}

impl Find<'_> {
    /// The quantity for all values; `given` has it for some phis.
    fn all(&self, of: Of, given: &HashMap<wir::Value, Product>) -> Vec<Option<Product>> {
        let func = self.func;
        let mut all: Vec<Option<Product>> = vec![None; func.kinds.len()];
        for zero in &func.zeros {
            all[zero.0 as usize] = Some(Product::ZERO);
        }
        // The second pass propagates values across barriers.
        for _ in 0..2 {
            for node in &func.blocks {
                for phi in &node.phis {
                    let known = || agreed(phi.from.iter().map(|name| all[name.0 as usize]));
                    all[phi.def.0 as usize] = given.get(&phi.def).copied().or_else(known);
                }
                for op in &node.ops {
                    let found = self.of_op(of, op, &all);
                    for def in &op.defs {
                        all[def.0 as usize] = found;
                    }
                }
            }
        }
        all
    }

    fn of_op(&self, of: Of, op: &Op, all: &[Option<Product>]) -> Option<Product> {
        match &op.kind {
            OpKind::Inst(site) => {
                let found = self.of_inst(of, site.inst(self.function)?, op, all)?;
                if of == Of::Value { Some(found) } else { near(found) }
            }
            OpKind::Restore(resume, reg) => all[self.func.kept(*resume, *reg)?.0 as usize],
            OpKind::SelectMask | OpKind::SelectPred { .. } => {
                agreed(op.uses[1..].iter().map(|name| all[name.0 as usize]))
            }
            _ => None,
        }
    }

    fn constant(&self, name: wir::Value) -> Option<Product> {
        let Shape::Uniform(Some(bits)) = self.func.shapes[name.0 as usize] else { return None };
        Some(Product::of(match self.func.kinds[name.0 as usize] {
            Kind::Reg(RegClass::R32) => i64::from(bits as i32),
            _ => bits as i64,
        }))
    }

    fn of_inst(&self, of: Of, inst: &Inst, op: &Op, all: &[Option<Product>]) -> Option<Product> {
        if of == Of::Value && inst.op == O::Ld {
            return param(self.function, inst).map(Product::fact);
        }
        let expr = Expr::of(inst);
        let number = |bits: u64| expr.map_or(bits as i64, |expr| expr.number(bits));
        let mut slopes = Vec::new();
        let mut values = Vec::new();
        for operand in operands(inst, op) {
            let (slope, value) = match operand {
                Operand::Value(name) | Operand::Not(name) | Operand::Based(name, _) => {
                    let value = self.constant(name).or(self.values[name.0 as usize]);
                    (
                        all[name.0 as usize],
                        if of == Of::Value { value.or(all[name.0 as usize]) } else { value },
                    )
                }
                Operand::Imm(bits) => (Some(Product::ZERO), Some(Product::of(number(bits)))),
                Operand::Sreg(Sreg::Ctaid, axis) if of == Of::Cta(axis) => {
                    // In x, the CTAs behind those that execute as one are the next ones.
                    let step = if axis == 0 { self.shape.ctas } else { 1 };
                    (Some(Product::of(step.into())), None)
                }
                Operand::Sreg(Sreg::Ntid, axis) => {
                    let count = self.shape.ntid.get(usize::from(axis)).copied()?;
                    (Some(Product::ZERO), Some(Product::of(count.into())))
                }
                Operand::Sreg(Sreg::Nctaid, axis @ 0..=2) => {
                    (Some(Product::ZERO), Some(Product::fact(Fact::Ctas(axis))))
                }
                Operand::Absent | Operand::Sreg(..) | Operand::Symbol(_) => (Some(Product::ZERO), None),
                Operand::Indexed(_) | Operand::Video(_) => (None, None),
            };
            slopes.push(slope);
            values.push(value);
        }
        let value = |at: usize| values.get(at).copied().flatten();
        if of == Of::Value {
            return match expr?.arith {
                Arith::Copy | Arith::Convert(_) => value(0),
                Arith::Add => value(0)?.plus(value(1)?),
                Arith::Sub => value(0)?.minus(value(1)?),
                Arith::Neg => Product::ZERO.minus(value(0)?),
                Arith::Mul { .. } => value(0)?.by(value(1)?),
                Arith::Mad { .. } => value(0)?.by(value(1)?)?.plus(value(2)?),
                Arith::Shl => value(0)?.by(power(value(1)?)?),
                _ => None,
            };
        }
        if slopes.iter().all(|slope| *slope == Some(Product::ZERO)) {
            return Some(Product::ZERO);
        }
        let slope = |at: usize| slopes.get(at).copied().flatten();
        let term = |a: usize, b: usize| {
            let slope = slope(a)?;
            if slope.is_zero() { Some(slope) } else { slope.by(value(b)?) }
        };
        let product = || term(0, 1)?.plus(term(1, 0)?);
        match expr?.arith {
            Arith::Copy | Arith::Convert(_) | Arith::ToGeneric(_) | Arith::FromGeneric(_) => slope(0),
            Arith::Add | Arith::Or => slope(0)?.plus(slope(1)?),
            Arith::Sub => slope(0)?.minus(slope(1)?),
            Arith::Neg => Product::ZERO.minus(slope(0)?),
            Arith::Mul { .. } => product(),
            Arith::Mad { .. } => product()?.plus(slope(2)?),
            Arith::Shl => slope(0)?.by(power(value(1)?)?),
            // Usually the operand that grows is the index, and the other one is its bound.
            Arith::Min | Arith::Max => match (slope(0)?, slope(1)?) {
                (a, b) if b.is_zero() || a == b => Some(a),
                (a, b) if a.is_zero() => Some(b),
                _ => None,
            },
            _ => None,
        }
    }

    /// The steps of phis in loops whose iterations meet at barriers or whose step is a product, from the
    /// outermost loop to the innermost.
    fn steps(&self, defs: &DefUse) -> Vec<HashMap<wir::Value, Product>> {
        let func = self.func;
        let mut loops: Vec<(u32, BlockId, HashMap<wir::Value, Product>)> = Vec::new();
        for (at, node) in (0..).zip(&func.blocks) {
            let mut steps = HashMap::new();
            for phi in &node.phis {
                let mut left = SCALAR_EVOLUTION_MAX_DEFINITIONS;
                let mut steps_on = |from: &wir::Value| {
                    let (step, crossed) = self.step(defs, *from, phi.def, false, &mut left)?;
                    (crossed || !step.is_constant()).then_some(step)
                };
                if let Some(step) = phi.from.iter().find_map(&mut steps_on) {
                    steps.insert(phi.def, step);
                }
            }
            if !steps.is_empty() {
                loops.push((node.block, BlockId(at), steps));
            }
        }
        loops.sort_by_key(|(block, node, _)| (*block, *node));
        let skipped = loops.len().saturating_sub(SCALAR_EVOLUTION_MAX_LOOPS);
        loops.drain(..skipped);
        loops.into_iter().map(|(_, _, steps)| steps).collect()
    }

    /// The sum that is added on the path from a phi to a value, and whether the path crosses a barrier.
    fn step(
        &self,
        defs: &DefUse,
        at: wir::Value,
        phi: wir::Value,
        crossed: bool,
        left: &mut u32,
    ) -> Option<(Product, bool)> {
        if at == phi {
            return Some((Product::ZERO, crossed));
        }
        *left = left.checked_sub(1)?;
        match defs.def(at)? {
            Def::Phi(block, index) => {
                let mut found: Option<(Product, bool)> = None;
                for from in &self.func.blocks[block.0 as usize].phis[index].from {
                    match self.step(defs, *from, phi, crossed, left) {
                        Some((step, true)) => return Some((step, true)),
                        Some(other) => found = found.or(Some(other)),
                        None => {}
                    }
                }
                found
            }
            Def::Op(block, index) => match &self.func.blocks[block.0 as usize].ops[index].kind {
                OpKind::Restore(resume, reg) => {
                    let crossed = crossed || self.func.resumes[*resume as usize].id.is_some();
                    self.step(defs, self.func.kept(*resume, *reg)?, phi, crossed, left)
                }
                OpKind::Inst(site) => {
                    let (inst, op) =
                        (site.inst(self.function)?, &self.func.blocks[block.0 as usize].ops[index]);
                    let value = |name: wir::Value| self.constant(name).or(self.values[name.0 as usize]);
                    let expr = Expr::of(inst)?;
                    let sources = operands(inst, op);
                    match (expr.arith, sources.as_slice()) {
                        (Arith::Copy, [Operand::Value(from)]) => self.step(defs, *from, phi, crossed, left),
                        (Arith::Add, [Operand::Value(from), Operand::Imm(bits)]) => {
                            let (step, crossed) = self.step(defs, *from, phi, crossed, left)?;
                            Some((step.plus(Product::of(expr.number(*bits)))?, crossed))
                        }
                        (Arith::Add, [Operand::Value(a), Operand::Value(b)]) => {
                            let (from, by) = match (value(*a), value(*b)) {
                                (_, Some(by)) => (*a, by),
                                (Some(by), None) => (*b, by),
                                (None, None) => return None,
                            };
                            let (step, crossed) = self.step(defs, from, phi, crossed, left)?;
                            Some((step.plus(by)?, crossed))
                        }
                        _ => None,
                    }
                }
                _ => None,
            },
        }
    }
}

/// The kernel parameter that an instruction loads, if it loads exactly one.
pub(crate) fn param(function: &Function, inst: &Inst) -> Option<Fact> {
    let Some(Src::Addr(Addr { base: Base::KernelParam, index: None, offset })) = inst.srcs.first() else {
        return None;
    };
    let bits = inst.mods.ty().bits();
    let offset = u32::try_from(*offset).ok()?;
    let fits = offset.checked_add(bits / 8)? <= function.param_bytes;
    let one = inst.mods.vec() == 1 && matches!(bits, 32 | 64) && fits;
    one.then_some(Fact::Param { offset, bits })
}

/// A growth, unless it is so large that it is a mistake.
fn near(growth: Product) -> Option<Product> {
    (growth.times.abs() < PREFETCH_MAX_BYTES).then_some(growth)
}

/// Two to the power of a constant.
fn power(by: Product) -> Option<Product> {
    (by.is_constant() && (0..32).contains(&by.times)).then(|| Product::of(1 << by.times))
}

/// The growth that all known operands agree on.
fn agreed(slopes: impl Iterator<Item = Option<Product>>) -> Option<Product> {
    let mut known = slopes.flatten();
    let first = known.next()?;
    known.all(|other| other == first).then_some(first)
}
