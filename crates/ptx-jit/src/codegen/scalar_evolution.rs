//! Scalar evolution: by how much a value grows from one CTA to the next and from one iteration of a loop to
//! the next, as a constant times facts of the launch.
//!
//! Only parameters and the size of the grid count as facts, because they can be read anywhere; other values
//! of the function are not available everywhere.
//!
//! Invariant: results are guesses, since overflow is ignored. Only prefetches may use them.

use crate::tuning::{PREFETCH_MAX_BYTES, SCALAR_EVOLUTION_MAX_DEFINITIONS, SCALAR_EVOLUTION_MAX_LOOPS};
use crate::wir;
use crate::wir::{BlockId, Func, Kind, LaunchShape, Op, OpKind, Shape};
use ptx::ir::{Addr, Base, Function, Inst, RegClass, Src};
use ptx::isa::{Half, Op as O, Sreg};
use std::collections::HashMap;

/// What a launch says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fact {
    /// A parameter.
    Param {
        /// Where it lies.
        offset: u32,
        /// Its bits.
        bits: u32,
    },
    /// `%nctaid` of that axis.
    Ctas(u8),
}

/// A number times up to two facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Product {
    pub(super) times: i64,
    pub(super) facts: [Option<Fact>; 2],
}

impl Product {
    const ZERO: Product = Product::of(0);

    const fn of(times: i64) -> Self {
        Self { times, facts: [None; 2] }
    }

    const fn fact(fact: Fact) -> Self {
        Self { times: 1, facts: [Some(fact), None] }
    }

    pub(super) fn is_zero(self) -> bool {
        self.times == 0
    }

    /// Whether it is the same in every launch.
    pub(super) fn is_constant(self) -> bool {
        self.facts == [None; 2]
    }

    fn near(self) -> Option<Self> {
        (self.times.abs() < PREFETCH_MAX_BYTES).then_some(self)
    }

    fn plus(self, other: Self) -> Option<Self> {
        match (self.is_zero(), other.is_zero()) {
            (_, true) => Some(self),
            (true, false) => Some(other),
            (false, false) if self.facts == other.facts => match self.times.checked_add(other.times)? {
                0 => Some(Self::ZERO),
                times => Some(Self { times, ..self }),
            },
            (false, false) => None,
        }
    }

    fn minus(self, other: Self) -> Option<Self> {
        self.plus(Self { times: other.times.checked_neg()?, ..other })
    }

    fn by(self, other: Self) -> Option<Self> {
        let times = self.times.checked_mul(other.times)?;
        if times == 0 {
            return Some(Self::ZERO);
        }
        let mut all = self.facts.into_iter().chain(other.facts).flatten();
        let mut facts = [all.next(), all.next()];
        facts.sort_unstable_by_key(|fact| (fact.is_none(), *fact));
        all.next().is_none().then_some(Self { times, facts })
    }
}

/// What is known, by name.
pub(super) struct ScalarEvolution {
    /// From one CTA to the next: in x, in y.
    pub(super) cta: [Vec<Option<Product>>; 2],
    /// From one turn to the next of the innermost loop whose turns meet at a barrier, or that steps on as the launch says.
    pub(super) turn: Vec<Option<Product>>,
}

impl ScalarEvolution {
    pub(super) fn new(func: &Func, function: &Function, shape: LaunchShape) -> Self {
        let mut find = Find { func, function, shape, values: vec![None; func.kinds.len()] };
        find.values = find.all(Of::Value, &HashMap::new());
        let none = HashMap::new();
        let cta = [0, 1].map(|axis| find.all(Of::Cta(axis), &none));
        let mut turn: Vec<Option<Product>> = vec![None; func.kinds.len()];
        for steps in find.steps() {
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

/// What of a value is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// Itself.
    Value,
    /// How it grows with `%ctaid` on that axis.
    Cta(u8),
    /// How it grows with what is given.
    Turn,
}

enum Def<'a> {
    Op(&'a Op),
    Phi(&'a [wir::Value]),
}

struct Find<'a> {
    func: &'a Func,
    function: &'a Function,
    shape: LaunchShape,
    values: Vec<Option<Product>>,
}

impl Find<'_> {
    /// Of all names; that of some phis is given.
    fn all(&self, of: Of, given: &HashMap<wir::Value, Product>) -> Vec<Option<Product>> {
        let func = self.func;
        let mut all: Vec<Option<Product>> = vec![None; func.kinds.len()];
        for zero in &func.zeros {
            all[zero.0 as usize] = Some(Product::ZERO);
        }
        // The second round knows what lives across barriers.
        for _ in 0..2 {
            for node in &func.nodes {
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
                if of == Of::Value { Some(found) } else { found.near() }
            }
            OpKind::Restore(resume, reg) => all[self.kept(*resume, *reg)?.0 as usize],
            OpKind::SelectMask | OpKind::SelectPred { .. } => {
                agreed(op.uses[1..].iter().map(|name| all[name.0 as usize]))
            }
            _ => None,
        }
    }

    fn kept(&self, resume: u32, reg: ptx::ir::Reg) -> Option<wir::Value> {
        let kept = &self.func.resumes.get(resume as usize)?.kept;
        kept.iter().find(|(have, _)| *have == reg).map(|(_, name)| *name)
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
        let mut next = op.uses.get(1..)?.iter();
        let mut slopes = Vec::new();
        let mut values = Vec::new();
        for src in &inst.srcs {
            let (slope, value) = match src {
                Src::Reg(_) | Src::Not(_) | Src::Addr(Addr { base: Base::Reg(_), index: None, .. }) => {
                    let name = *next.next()?;
                    let value = self.constant(name).or(self.values[name.0 as usize]);
                    (
                        all[name.0 as usize],
                        if of == Of::Value { value.or(all[name.0 as usize]) } else { value },
                    )
                }
                Src::Imm(bits) => {
                    let bits = if typed(inst.op) && inst.mods.ty().bits() == 32 {
                        i64::from(*bits as i32)
                    } else {
                        *bits as i64
                    };
                    (Some(Product::ZERO), Some(Product::of(bits)))
                }
                Src::Sreg(Sreg::Ctaid, axis) if of == Of::Cta(*axis) => (Some(Product::of(1)), None),
                Src::Sreg(Sreg::Ntid, axis) => {
                    let count = self.shape.ntid.get(usize::from(*axis)).copied()?;
                    (Some(Product::ZERO), Some(Product::of(count.into())))
                }
                Src::Sreg(Sreg::Nctaid, axis @ 0..=2) => {
                    (Some(Product::ZERO), Some(Product::fact(Fact::Ctas(*axis))))
                }
                Src::Absent | Src::Sreg(..) | Src::Addr(Addr { index: None, .. }) => {
                    (Some(Product::ZERO), None)
                }
                Src::Addr(_) | Src::Video(_) => (None, None),
            };
            slopes.push(slope);
            values.push(value);
        }
        let value = |at: usize| values.get(at).copied().flatten();
        let plain = matches!(inst.mods.half(), Some(Half::Lo | Half::Wide));
        if of == Of::Value {
            return match inst.op {
                O::Mov | O::Cvt => value(0),
                O::Add => value(0)?.plus(value(1)?),
                O::Sub => value(0)?.minus(value(1)?),
                O::Mul if plain => value(0)?.by(value(1)?),
                O::Mad if plain => value(0)?.by(value(1)?)?.plus(value(2)?),
                O::Shl => value(0)?.by(power(value(1)?)?),
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
        match inst.op {
            O::Mov | O::Cvt | O::Cvta | O::CvtaTo => slope(0),
            O::Add | O::Or => slope(0)?.plus(slope(1)?),
            O::Sub => slope(0)?.minus(slope(1)?),
            O::Mul if plain => product(),
            O::Mad if plain => product()?.plus(slope(2)?),
            O::Shl => slope(0)?.by(power(value(1)?)?),
            // Mostly what is not the bound.
            O::Min | O::Max => match (slope(0)?, slope(1)?) {
                (a, b) if b.is_zero() || a == b => Some(a),
                (a, b) if a.is_zero() => Some(b),
                _ => None,
            },
            _ => None,
        }
    }

    /// What a load of a parameter gives.
    /// By how much phis grow from turn to turn of loops whose turns meet at barriers or that step on as the launch says, from the outermost
    /// loop to the innermost.
    fn steps(&self) -> Vec<HashMap<wir::Value, Product>> {
        let func = self.func;
        let mut defs: HashMap<wir::Value, Def<'_>> = HashMap::new();
        for node in &func.nodes {
            for phi in &node.phis {
                defs.insert(phi.def, Def::Phi(&phi.from));
            }
            for op in &node.ops {
                for def in &op.defs {
                    defs.insert(*def, Def::Op(op));
                }
            }
        }
        let mut loops: Vec<(u32, BlockId, HashMap<wir::Value, Product>)> = Vec::new();
        for (at, node) in (0..).zip(&func.nodes) {
            let mut steps = HashMap::new();
            for phi in &node.phis {
                let mut left = SCALAR_EVOLUTION_MAX_DEFINITIONS;
                let mut steps_on = |from: &wir::Value| {
                    let (step, crossed) = self.step(&defs, *from, phi.def, false, &mut left)?;
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

    /// What is added on the way from a phi to a value, and whether the way leads across a barrier.
    fn step(
        &self,
        defs: &HashMap<wir::Value, Def<'_>>,
        at: wir::Value,
        phi: wir::Value,
        crossed: bool,
        left: &mut u32,
    ) -> Option<(Product, bool)> {
        if at == phi {
            return Some((Product::ZERO, crossed));
        }
        *left = left.checked_sub(1)?;
        match defs.get(&at)? {
            Def::Phi(from) => {
                let mut found: Option<(Product, bool)> = None;
                for from in *from {
                    match self.step(defs, *from, phi, crossed, left) {
                        Some((step, true)) => return Some((step, true)),
                        Some(other) => found = found.or(Some(other)),
                        None => {}
                    }
                }
                found
            }
            Def::Op(op) => match &op.kind {
                OpKind::Restore(resume, reg) => {
                    let crossed = crossed || self.func.resumes[*resume as usize].id.is_some();
                    self.step(defs, self.kept(*resume, *reg)?, phi, crossed, left)
                }
                OpKind::Inst(site) => {
                    let inst = site.inst(self.function)?;
                    let value = |name: wir::Value| self.constant(name).or(self.values[name.0 as usize]);
                    match (inst.op, op.uses.get(1..)?, inst.srcs.as_slice()) {
                        (O::Mov, [from], _) => self.step(defs, *from, phi, crossed, left),
                        (O::Add, [from], [Src::Reg(_), Src::Imm(bits)]) => {
                            let by = if inst.mods.ty().bits() == 32 {
                                i64::from(*bits as i32)
                            } else {
                                *bits as i64
                            };
                            let (step, crossed) = self.step(defs, *from, phi, crossed, left)?;
                            Some((step.plus(Product::of(by))?, crossed))
                        }
                        (O::Add, [a, b], [Src::Reg(_), Src::Reg(_)]) => {
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

/// The parameter of the kernel that an instruction loads, if it loads one as a whole.
pub(super) fn param(function: &Function, inst: &Inst) -> Option<Fact> {
    let Some(Src::Addr(Addr { base: Base::KernelParam, index: None, offset })) = inst.srcs.first() else {
        return None;
    };
    let bits = inst.mods.ty().bits();
    let offset = u32::try_from(*offset).ok()?;
    let fits = offset.checked_add(bits / 8)? <= function.param_bytes;
    let one = inst.mods.vec() == 1 && matches!(bits, 32 | 64) && fits;
    one.then_some(Fact::Param { offset, bits })
}

/// Whether an instruction has one type, which is that of its constants too.
fn typed(op: O) -> bool {
    matches!(op, O::Add | O::Sub | O::Mul | O::Mad | O::Or | O::Min | O::Max | O::Mov)
}

/// Two to the power of a constant.
fn power(by: Product) -> Option<Product> {
    (by.is_constant() && (0..32).contains(&by.times)).then(|| Product::of(1 << by.times))
}

/// What all that are known have in common.
fn agreed(slopes: impl Iterator<Item = Option<Product>>) -> Option<Product> {
    let mut known = slopes.flatten();
    let first = known.next()?;
    known.all(|other| other == first).then_some(first)
}
