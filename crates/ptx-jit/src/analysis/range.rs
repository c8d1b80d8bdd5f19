//! Value ranges: bounds of a value that hold in every lane, from the program alone.
//!
//! Thread indices are below the size of the CTA, and variables of shared memory have the addresses of the
//! layout. Most addresses of shared memory are computed from these.
//!
//! Invariant: a range holds for the value of each active lane. Others may have any number where the
//! interpreter's step has executed a load: it leaves their registers as they are. A value loaded from a warp
//! frame has no range, since the interpreter may have written it. So ranges are weak in code that can be
//! entered with a frame; a coarse warp cannot be.

use super::expr::{Arith, Expr, Operand, is_int, operands};
use crate::tuning::RANGE_WIDENING_ROUNDS;
use crate::wir::{Func, Kind, Op, OpKind, Value};
use ptx::ir::{Addr, Base, Function, Inst, RegClass, Src};
use ptx::isa::{Cmp, Op as O, Sreg};

/// Trailing zeros of zero.
const ZEROS: u32 = 63;

/// A range of unsigned numbers: least, greatest, and trailing zero bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The least number.
    pub low: u64,
    /// The greatest number.
    pub high: u64,
    /// The number of trailing bits that are zero.
    pub zeros: u32,
}

impl Bound {
    fn exactly(value: u64) -> Bound {
        Bound { low: value, high: value, zeros: value.trailing_zeros().min(ZEROS) }
    }

    /// Whether its numbers, of so many bits, are the same signed and unsigned, or are not signed.
    pub(crate) fn is_plain(self, signed: bool, bits: u32) -> bool {
        !signed || self.high < 1 << (bits - 1)
    }

    fn below(count: u64) -> Bound {
        Bound { low: 0, high: count.saturating_sub(1), zeros: 0 }
    }

    fn any(bits: u32) -> Bound {
        Bound { low: 0, high: mask(bits), zeros: 0 }
    }

    /// Widening: removes the bounds in which the range exceeds that of the previous round.
    fn beyond(self, before: Bound, bits: u32) -> Bound {
        Bound {
            low: if self.low < before.low { 0 } else { self.low },
            high: if self.high > before.high { mask(bits) } else { self.high },
            zeros: if self.zeros < before.zeros { 0 } else { self.zeros },
        }
    }

    /// Whether no bit can be one in both values.
    pub fn is_disjoint(self, other: Bound) -> bool {
        let below = |low: Bound, high: Bound| low.high < 1 << high.zeros.min(62);
        below(self, other) || below(other, self)
    }

    fn join(self, other: Bound) -> Bound {
        Bound {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
            zeros: self.zeros.min(other.zeros),
        }
    }
}

fn mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// The state of the analysis.
struct Search<'a> {
    func: &'a Func,
    function: &'a Function,
    ntid: [u32; 3],
    /// The addresses of shared-memory variables, by number.
    shared: &'a dyn Fn(u32) -> Option<u64>,
    /// `None`: not computed yet.
    all: Vec<Option<Bound>>,
}

/// The range of each value.
pub fn bounds(
    func: &Func,
    function: &Function,
    ntid: [u32; 3],
    shared: &dyn Fn(u32) -> Option<u64>,
) -> Vec<Option<Bound>> {
    let mut search = Search { func, function, ntid, shared, all: vec![None; func.kinds.len()] };
    for zero in &func.zeros {
        search.all[zero.0 as usize] = Some(Bound::exactly(0));
    }
    for round in 0.. {
        if !search.round(round >= RANGE_WIDENING_ROUNDS) {
            break;
        }
    }
    search.all
}

impl Search<'_> {
    fn bits(&self, name: Value) -> u32 {
        match self.func.kinds[name.0 as usize] {
            Kind::Reg(RegClass::Pred) => 1,
            Kind::Reg(RegClass::R16) => 16,
            Kind::Reg(RegClass::R32) => 32,
            Kind::Reg(RegClass::R64) | Kind::Mask | Kind::Count => 64,
        }
    }

    /// One pass over all operations; returns whether a range changed. `last`: ranges that still change become
    /// unbounded.
    fn round(&mut self, last: bool) -> bool {
        let func = self.func;
        let mut changed = false;
        let mut set = |search: &mut Self, def: Value, new: Option<Bound>| {
            let Some(new) = new else { return };
            let old = search.all[def.0 as usize];
            let both = old.map_or(new, |old| old.join(new));
            if old != Some(both) {
                let both = match old {
                    Some(old) if last => both.beyond(old, search.bits(def)),
                    _ => both,
                };
                changed |= old != Some(both);
                search.all[def.0 as usize] = Some(both);
            }
        };
        for node in &func.blocks {
            for phi in &node.phis {
                let new = phi.from.iter().filter_map(|name| self.all[name.0 as usize]).reduce(Bound::join);
                set(self, phi.def, new);
            }
            for op in &node.ops {
                match &op.kind {
                    OpKind::Inst(site) => {
                        let made = site.inst(self.function).and_then(|inst| self.inst(inst, op));
                        let waits = op.uses[1..].iter().any(|name| self.all[name.0 as usize].is_none());
                        for def in &op.defs {
                            let any = (!waits).then(|| Bound::any(self.bits(*def)));
                            set(self, *def, made.filter(|_| op.defs.len() == 1).or(any));
                        }
                    }
                    OpKind::SelectMask | OpKind::SelectPred { .. } => {
                        let new = op.uses[1..].iter().filter_map(|name| self.all[name.0 as usize]);
                        let new = new.reduce(Bound::join);
                        set(self, op.defs[0], new);
                    }
                    OpKind::Restore(resume, reg) => {
                        let any = Bound::any(self.bits(op.defs[0]));
                        let new = match func.kept(*resume, *reg) {
                            Some(name) => self.all[name.0 as usize],
                            None => Some(any),
                        };
                        set(self, op.defs[0], new);
                    }
                    _ => {
                        for def in &op.defs {
                            set(self, *def, Some(Bound::any(self.bits(*def))));
                        }
                    }
                }
            }
        }
        changed
    }

    fn sreg(&self, sreg: Sreg, axis: u8) -> Bound {
        let ntid = self.ntid.get(usize::from(axis)).copied().map_or(1, u64::from);
        match sreg {
            Sreg::Tid if axis > 2 => Bound::exactly(0),
            // The thread indices of lanes behind the last thread of a CTA continue to grow.
            Sreg::Tid if axis == 2 => Bound::below(ntid + 32),
            Sreg::Tid => Bound::below(ntid),
            Sreg::Ntid => Bound::exactly(ntid),
            Sreg::Laneid => Bound::below(32),
            Sreg::Clock64 | Sreg::Globaltimer | Sreg::Gridid | Sreg::Pm64(_) => Bound::any(64),
            _ => Bound::any(32),
        }
    }

    /// The ranges of the sources as the expression reads them; `None` if one of them is not known yet.
    fn sources(&self, expr: Expr, inst: &Inst, op: &Op) -> Option<Vec<Bound>> {
        let one = |(at, operand): (usize, &Operand<'_>)| {
            Some(match operand {
                Operand::Value(name) | Operand::Not(name) => self.all[name.0 as usize]?,
                Operand::Imm(value) => Bound::exactly(*value & mask(expr.source_bits(at))),
                Operand::Sreg(sreg, axis) => self.sreg(*sreg, *axis),
                Operand::Symbol(Addr { base: Base::Var(var), offset, .. }) => match (self.shared)(var.0) {
                    Some(start) => Bound::exactly(start.wrapping_add(*offset as u64)),
                    None => Bound::any(64),
                },
                Operand::Symbol(Addr { base: Base::KernelParam, offset, .. }) => {
                    Bound::exactly(*offset as u64)
                }
                Operand::Absent
                | Operand::Based(..)
                | Operand::Indexed(_)
                | Operand::Symbol(_)
                | Operand::Video(_) => Bound::any(64),
            })
        };
        operands(inst, op).iter().enumerate().map(one).collect()
    }

    /// The range of an instruction's result; `None` if it is unbounded, or not known yet.
    fn inst(&self, inst: &Inst, op: &Op) -> Option<Bound> {
        let to = self.bits(*op.defs.first()?);
        if matches!(inst.op, O::Ld | O::LdNc) {
            let ty = inst.mods.ty();
            let plain = inst.mods.vec() == 1 && !ty.is_signed() && ty.bits() < to && ty.bits() >= 8;
            return plain.then(|| Bound::any(ty.bits()));
        }
        let converts = |expr: &Expr| matches!(expr.arith, Arith::Convert(_)) && !expr.ty.is_signed();
        let expr =
            Expr::of(inst).filter(|expr| is_int(expr.ty) && (expr.ty.bits() >= 16 || converts(expr)))?;
        let ty = expr.ty;
        let found = self.sources(expr, inst, op)?;
        let of = |at: usize| found.get(at).copied().filter(|bound| bound.high <= mask(ty.bits()));
        let plain = |bound: &Bound| bound.is_plain(ty.is_signed(), ty.bits());
        let fit = |low: i128, high: i128, zeros: u32| {
            let fits = low >= 0 && high <= i128::from(mask(to.min(64)));
            // A result that wraps around keeps its trailing zeros.
            let (low, high) = if fits { (low as u64, high as u64) } else { (0, mask(to)) };
            Some(Bound { low, high, zeros: zeros.min(ZEROS) })
        };
        // A subtraction is often an addition of a negative constant.
        let signed = |at: usize| {
            let bound = of(at)?;
            let turn = i128::from(bound.high) + 1 > 1 << (ty.bits() - 1)
                && matches!(inst.srcs.get(at), Some(Src::Imm(_)));
            let less = if turn { 1i128 << ty.bits() } else { 0 };
            Some((i128::from(bound.low) - less, i128::from(bound.high) - less, bound.zeros))
        };
        let sum = |a: (i128, i128, u32), b: (i128, i128, u32)| fit(a.0 + b.0, a.1 + b.1, a.2.min(b.2));
        let product = || {
            let (a, b) = (of(0).filter(plain)?, of(1).filter(plain)?);
            let most = if expr.widens().is_some() { 2 * ty.bits() } else { ty.bits() };
            let high = u128::from(a.high) * u128::from(b.high);
            let zeros = (a.zeros + b.zeros).min(ZEROS);
            (high <= u128::from(mask(most))).then(|| Bound { low: a.low * b.low, high: high as u64, zeros })
        };
        let wide = |bound: Bound| (i128::from(bound.low), i128::from(bound.high), bound.zeros);
        let constant = |at: usize| of(at).filter(|bound| bound.low == bound.high).map(|bound| bound.low);
        match expr.arith {
            Arith::Copy => of(0),
            Arith::Convert(dtype) => {
                // As many bits of the register are read as the type has.
                let read = of(0).or((!ty.is_signed()).then(|| Bound::any(ty.bits())));
                let bound = read.filter(plain)?;
                let (bits, sign) = (dtype.bits(), dtype.is_signed());
                match bound.high <= mask(if sign { bits - 1 } else { bits }) {
                    true => Some(bound),
                    false => (!sign).then(|| Bound::any(bits)),
                }
            }
            Arith::Add => sum(signed(0)?, signed(1)?),
            Arith::Sub => {
                let (a, b) = (signed(0)?, signed(1)?);
                fit(a.0 - b.1, a.1 - b.0, a.2.min(b.2))
            }
            Arith::Neg => {
                let a = signed(0)?;
                fit(-a.1, -a.0, a.2)
            }
            Arith::Mul { .. } => product(),
            Arith::Mad { .. } => {
                let more = found.get(2)?;
                // The third operand is as wide as the result.
                sum(wide(product()?), wide(*more)).filter(|_| more.high <= mask(to))
            }
            Arith::Shl => {
                let (a, k) = (of(0)?, found.get(1)?);
                let k = (k.low == k.high && k.low < 32).then_some(k.low as u32)?;
                fit(i128::from(a.low) << k, i128::from(a.high) << k, a.zeros + k)
            }
            Arith::Shr => {
                let (a, k) = (of(0).filter(plain)?, found.get(1)?);
                if k.high >= u64::from(ty.bits()) {
                    return Some(Bound { low: 0, high: a.high, zeros: 0 });
                }
                let zeros = a.zeros.saturating_sub(k.high as u32);
                Some(Bound { low: a.low >> k.high, high: a.high >> k.low, zeros })
            }
            Arith::And => {
                let (a, b) = (of(0)?, of(1)?);
                Some(Bound { low: 0, high: a.high.min(b.high), zeros: a.zeros.max(b.zeros) })
            }
            Arith::Or | Arith::Xor => {
                let (a, b) = (of(0)?, of(1)?);
                let top = 64 - (a.high | b.high).leading_zeros();
                Some(Bound { low: 0, high: mask(top), zeros: a.zeros.min(b.zeros) })
            }
            Arith::Min if of(0).is_some_and(|a| plain(&a)) && of(1).is_some_and(|b| plain(&b)) => {
                let (a, b) = (of(0)?, of(1)?);
                Some(Bound { low: a.low.min(b.low), high: a.high.min(b.high), zeros: a.zeros.min(b.zeros) })
            }
            Arith::Max if of(0).is_some_and(|a| plain(&a)) && of(1).is_some_and(|b| plain(&b)) => {
                let (a, b) = (of(0)?, of(1)?);
                Some(Bound { low: a.low.max(b.low), high: a.high.max(b.high), zeros: a.zeros.min(b.zeros) })
            }
            Arith::Select => Some(of(0)?.join(of(1)?)),
            Arith::Compare(cmp) => {
                let (a, b) = (of(0)?, of(1)?);
                let outcome = decided(cmp, a, b, (ty.is_signed(), ty.bits()))?;
                Some(Bound::exactly(outcome.into()))
            }
            Arith::Rem if !ty.is_signed() => {
                constant(1).filter(|k| *k > 0).map(|k| Bound { low: 0, high: k - 1, zeros: 0 })
            }
            Arith::Min
            | Arith::Max
            | Arith::Div
            | Arith::Rem
            | Arith::ToGeneric(_)
            | Arith::FromGeneric(_) => None,
        }
    }
}

/// The outcome of a comparison of numbers with so many bits, if the ranges decide it.
pub(crate) fn decided(cmp: Cmp, a: Bound, b: Bound, (signed, bits): (bool, u32)) -> Option<bool> {
    if !a.is_plain(signed, bits) || !b.is_plain(signed, bits) {
        return None;
    }
    let less = |a: Bound, b: Bound| match () {
        () if a.high < b.low => Some(true),
        () if a.low >= b.high => Some(false),
        () => None,
    };
    let equal = match () {
        () if a.high < b.low || b.high < a.low => Some(false),
        () if a.low == a.high && a == b => Some(true),
        () => None,
    };
    match cmp {
        Cmp::Lt | Cmp::Lo => less(a, b),
        Cmp::Ge | Cmp::Hs => less(a, b).map(|less| !less),
        Cmp::Gt | Cmp::Hi => less(b, a),
        Cmp::Le | Cmp::Ls => less(b, a).map(|less| !less),
        Cmp::Eq => equal,
        Cmp::Ne => equal.map(|equal| !equal),
        _ => None,
    }
}
