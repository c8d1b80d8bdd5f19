//! Strides of symbolic-stride values that are a kernel parameter times a constant on every path, as the pitch
//! of an image is.
//!
//! Invariant: the stride that is found for a value equals the one that code generation would compute for it.

use super::expr::{Arith, Expr, operands};
use super::scalar_evolution;
use crate::wir::prefetch::Fact;
use crate::wir::uses::DefUse;
use crate::wir::{Func, Kind, Op, OpKind, Shape, Value};
use ptx::ir::{Function, Inst, RegClass};
use ptx::isa::Op as O;
use std::collections::HashMap;

/// Strides stay below this, so that sums of a few thousand of them do not overflow.
pub(crate) const NEAR: u64 = 1 << 40;

/// A 32-bit stride: a parameter times a constant; or a 64-bit one: the 32-bit stride, sign-extended, times
/// another constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stride {
    /// The offset of the parameter.
    pub(crate) offset: u32,
    pub(crate) times: u32,
    pub(crate) wide: Option<u64>,
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
    pub(crate) fn is_near(self) -> bool {
        self.wide.is_some_and(|wide| (wide as i64).unsigned_abs() < NEAR >> 31)
    }
}

/// The strides of this form, for each value that has one. `roots`: for each value, the one that it is a copy
/// of.
pub(crate) fn find(
    func: &Func,
    function: &Function,
    roots: &[Value],
    def_use: &DefUse,
) -> HashMap<Value, Stride> {
    Search { func, function, roots, def_use }.find()
}

/// What the strides are found by.
struct Search<'a> {
    func: &'a Func,
    function: &'a Function,
    roots: &'a [Value],
    def_use: &'a DefUse,
}

impl Search<'_> {
    /// Finds the values whose stride is a parameter times a constant.
    fn find(&self) -> HashMap<Value, Stride> {
        let func = self.func;
        // For each value: not visited, or its stride if it has one of this form.
        let mut found: Vec<Option<Option<Stride>>> = vec![None; func.kinds.len()];
        let mut changed = (0..).map(Value).take(func.kinds.len()).any(|name| has_rows(func, name));
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
        let all = (0..).map(Value).zip(found);
        all.filter_map(|(name, found)| Some((name, found??))).collect()
    }

    /// The stride of an operation's result, as far as the strides of its sources are known.
    fn stride_by(&self, op: &Op, def: Value, found: &[Option<Option<Stride>>]) -> Option<Option<Stride>> {
        let func = self.func;
        match &op.kind {
            OpKind::Restore(resume, reg) => match func.kept(*resume, *reg) {
                Some(name) if has_rows(func, name) => found[name.0 as usize],
                _ => Some(None),
            },
            OpKind::Inst(site) => match site.inst(self.function) {
                Some(inst) => self.stride_by_inst(inst, op, def, found),
                None => Some(None),
            },
            _ => Some(None),
        }
    }

    /// The stride of an instruction's result. It equals the value that
    /// [`codegen::symbolic_stride`](crate::codegen) emits.
    fn stride_by_inst(
        &self,
        inst: &Inst,
        op: &Op,
        def: Value,
        found: &[Option<Option<Stride>>],
    ) -> Option<Option<Stride>> {
        let func = self.func;
        let bits = match func.kinds[def.0 as usize] {
            Kind::Reg(RegClass::R32) => 32,
            Kind::Reg(RegClass::R64) => 64,
            _ => return Some(None),
        };
        let Some(expr) = Expr::of(inst) else { return Some(None) };
        let sources = operands(inst, op);
        let name = |at: usize| sources.get(at).and_then(|source| source.value());
        let of = |at: usize| name(at).filter(|name| has_rows(func, *name));
        let known = |name: Value| found[name.0 as usize].map(|found| found?.resized(bits));
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
                    let class = |name: Value| &func.shapes[name.0 as usize];
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
    fn param_of(&self, name: Value) -> Option<Stride> {
        let func = self.func;
        let root = self.roots[name.0 as usize];
        let OpKind::Inst(site) = self.def_use.op_of(func, root)?.kind else { return None };
        let inst = site.inst(self.function)?;
        let words = [name, root].iter().all(|name| func.kinds[name.0 as usize] == Kind::Reg(RegClass::R32));
        if !words || inst.op != O::Ld || inst.guard.is_some() {
            return None;
        }
        match scalar_evolution::param(self.function, inst)? {
            Fact::Param { offset, bits: 32 } => Some(Stride { offset, times: 1, wide: None }),
            Fact::Param { .. } | Fact::Ctas(_) => None,
        }
    }
}

/// Whether a value has a symbolic stride.
fn has_rows(func: &Func, name: Value) -> bool {
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
