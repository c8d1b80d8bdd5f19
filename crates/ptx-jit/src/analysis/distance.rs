//! Constant distances between addresses: sums of the same terms, which differ by a constant.
//!
//! Compilers fold a constant distance into the offset of an access where they know that the index does not
//! wrap around. Indices without a sign may, and so may indices that are clamped first (versions of blocks
//! assume that a clamp changes none). Then each access of `in[y * w + x - 1]`, `in[y * w + x]` and
//! `in[y * w + x + 1]` has an address of its own, with a sum of 32 bits that is widened.
//!
//! Invariant: two sums with equal terms differ by the difference of their constants, modulo 2^64, in every
//! lane, if no sum of 32 bits wraps around from the least to the greatest constant that it has in them.

use super::expr::{Arith, Expr, Operand, operands};
use crate::wir::uses::{Def, DefUse};
use crate::wir::{Func, Kind, OpKind, Shape, Value};
use ptx::ir::{Function, RegClass};
use ptx::isa::Ty;
use std::collections::BTreeMap;

/// The most operations that one sum is made of.
const MOST: u32 = 24;

/// What a sum is made of, besides its constant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Term {
    /// A register.
    Value(Value),
    /// The product of two registers, the lesser number first.
    Product(Value, Value),
    /// A sum of 32 bits without its constant, widened: sign-extended or not.
    Widened(Vec<(Term, i64)>, bool),
}

/// A sum of terms with coefficients, modulo 2^32 or 2^64. The terms are in order, and no coefficient is zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Sum {
    terms: Vec<(Term, i64)>,
}

/// A value as a sum and a constant.
#[derive(Clone, Debug)]
pub(crate) struct Distance {
    /// What it is relative to.
    pub(crate) from: Sum,
    /// The constant.
    pub(crate) by: i64,
    /// The sums of 32 bits that were widened, as registers, and whether they were sign-extended.
    pub(crate) widened: Vec<(Value, bool)>,
}

/// Finds what the registers of a function are sums of.
#[derive(Clone, Copy)]
pub(crate) struct Distances<'a> {
    pub(crate) func: &'a Func,
    pub(crate) function: &'a Function,
    pub(crate) def_use: &'a DefUse,
}

/// A sum that is being made.
#[derive(Default)]
struct Parts {
    terms: BTreeMap<Term, i64>,
    by: i64,
    widened: Vec<(Value, bool)>,
    made_of: u32,
}

impl Parts {
    fn add(&mut self, term: Term, times: i64) {
        let count = self.terms.entry(term).or_default();
        *count = count.wrapping_add(times);
    }
}

impl Distances<'_> {
    /// A register of 32 or 64 bits as a sum and a constant.
    pub(crate) fn of(&self, value: Value) -> Option<Distance> {
        let bits = match self.func.kinds[value.0 as usize] {
            Kind::Reg(RegClass::R32) => 32,
            Kind::Reg(RegClass::R64) => 64,
            _ => return None,
        };
        let mut parts = Parts::default();
        self.collect(value, 1, bits, &mut parts);
        let mut widened = parts.widened;
        widened.sort_unstable();
        widened.dedup();
        Some(Distance { from: sum(parts.terms, bits), by: reduced(parts.by, bits), widened })
    }

    /// The value that a value has been since the latest execution of its definition: through phis of one
    /// value, and through registers that are saved at a stop and restored behind it.
    fn origin(&self, value: Value) -> Value {
        let (mut seen, mut at) = (vec![value], 0);
        let mut only = None;
        while let Some(one) = seen.get(at).copied() {
            at += 1;
            let from: &[Value] = match self.def_use.def(one) {
                Some(Def::Phi(block, number)) => &self.func.blocks[block.0 as usize].phis[number].from,
                Some(Def::Op(block, number)) => match self.func.blocks[block.0 as usize].ops[number].kind {
                    OpKind::Restore(resume, reg) => match self.func.kept(resume, reg) {
                        Some(kept) => &[kept],
                        None => return value,
                    },
                    _ => &[],
                },
                None => &[],
            };
            if from.is_empty() && only.replace(one).is_some_and(|other| other != one) {
                return value;
            }
            seen.extend(from.iter().filter(|one| !seen.contains(one)).copied().collect::<Vec<_>>());
            if seen.len() > MOST as usize {
                return value;
            }
        }
        only.unwrap_or(value)
    }

    /// Adds a register to a sum of that many bits.
    fn collect(&self, value: Value, times: i64, bits: u32, parts: &mut Parts) {
        let value = self.origin(value);
        if self.sum_of(value, times, bits, parts).is_none() {
            parts.add(Term::Value(value), times);
        }
    }

    /// Adds what a register is a sum of; `None`: it is a term itself.
    fn sum_of(&self, value: Value, times: i64, bits: u32, parts: &mut Parts) -> Option<()> {
        if let Shape::Uniform(Some(constant)) = self.func.shapes[value.0 as usize] {
            parts.by = parts.by.wrapping_add(times.wrapping_mul(constant as i64));
            return Some(());
        }
        let op = self.def_use.op_of(self.func, value)?;
        let OpKind::Inst(site) = op.kind else { return None };
        let inst = site.inst(self.function).filter(|inst| inst.guard.is_none())?;
        let Expr { arith, ty } = Expr::of(inst)?;
        parts.made_of += 1;
        if parts.made_of > MOST || op.defs.len() != 1 {
            return None;
        }
        let sources = operands(inst, op);
        let number = |at: usize| sources.get(at)?.constant(self.func);
        let register = |at: usize| sources.get(at)?.value();
        let is_operand = |at: usize| matches!(sources.get(at), Some(Operand::Imm(_) | Operand::Value(_)));
        let more = |parts: &mut Parts, at: usize, times: i64| match (number(at), register(at)) {
            (Some(constant), _) => parts.by = parts.by.wrapping_add(times.wrapping_mul(constant as i64)),
            (None, Some(value)) => self.collect(value, times, bits, parts),
            (None, None) => unreachable!("ptxvm bug: a source that is neither a constant nor a register"),
        };
        let same = ty.bits() == bits;
        match arith {
            Arith::Copy if same && is_operand(0) => more(parts, 0, times),
            Arith::ToGeneric(_) | Arith::FromGeneric(_) => return None,
            Arith::Add | Arith::Sub if same && is_operand(0) && is_operand(1) => {
                more(parts, 0, times);
                more(parts, 1, if arith == Arith::Sub { times.wrapping_neg() } else { times });
            }
            Arith::Neg if same && is_operand(0) => more(parts, 0, times.wrapping_neg()),
            Arith::Shl if same && is_operand(0) => {
                let by = number(1).filter(|by| *by < u64::from(bits))?;
                more(parts, 0, times.wrapping_mul(1i64.wrapping_shl(by as u32)));
            }
            Arith::Mul { wide: false } | Arith::Mad { wide: false } if same => {
                let plus = matches!(arith, Arith::Mad { .. });
                if !is_operand(0) || !is_operand(1) || plus && !is_operand(2) {
                    return None;
                }
                match (number(0), number(1)) {
                    (_, Some(factor)) => more(parts, 0, times.wrapping_mul(factor as i64)),
                    (Some(factor), None) => more(parts, 1, times.wrapping_mul(factor as i64)),
                    (None, None) => {
                        let (a, b) = (self.origin(register(0)?), self.origin(register(1)?));
                        parts.add(Term::Product(a.min(b), a.max(b)), times);
                    }
                }
                if plus {
                    more(parts, 2, times);
                }
            }
            Arith::Mul { wide: true } | Arith::Mad { wide: true } if bits == 64 && ty.bits() == 32 => {
                let plus = matches!(arith, Arith::Mad { .. });
                if plus && !is_operand(2) {
                    return None;
                }
                let factor = extended(number(1)?, ty);
                self.widen(register(0)?, ty, times.wrapping_mul(factor), parts)?;
                if plus {
                    more(parts, 2, times);
                }
            }
            Arith::Convert(Ty::U64 | Ty::S64) if bits == 64 && ty.bits() == 32 => {
                self.widen(register(0)?, ty, times, parts)?;
            }
            _ => return None,
        }
        Some(())
    }

    /// Adds a register of 32 bits that is widened to 64.
    fn widen(&self, value: Value, ty: Ty, times: i64, parts: &mut Parts) -> Option<()> {
        let Distance { from, by, .. } = self.of(value)?;
        parts.add(Term::Widened(from.terms, ty.is_signed()), times);
        parts.by = parts.by.wrapping_add(times.wrapping_mul(by));
        parts.widened.push((value, ty.is_signed()));
        Some(())
    }
}

/// The terms of a sum of that many bits.
fn sum(terms: BTreeMap<Term, i64>, bits: u32) -> Sum {
    let terms = terms.into_iter().map(|(term, times)| (term, reduced(times, bits)));
    Sum { terms: terms.filter(|(_, times)| *times != 0).collect() }
}

/// A number modulo 2^32 or 2^64, with a sign.
fn reduced(number: i64, bits: u32) -> i64 {
    if bits == 32 { i64::from(number as i32) } else { number }
}

/// A constant of 32 bits as a factor of a product of 64.
fn extended(bits: u64, ty: Ty) -> i64 {
    if ty.is_signed() { i64::from(bits as i32) } else { i64::from(bits as u32) }
}
