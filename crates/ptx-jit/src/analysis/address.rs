//! Addresses: the state space that a generic address was made in, and which 64-bit values are a scalar plus
//! scaled 32-bit indices of the lanes, as most computed addresses are.
//!
//! Invariant: `base + extended(index) * scale` is the value's bits in every lane, modulo 2^64. A generic
//! address may have been moved out of the space that it was made in, so every access still needs its check.

use super::expr::{Arith, Expr, Operand, operands};
use super::local_frame;
use super::range::Bound;
use super::windows;
use crate::wir::{Func, Kind, Op, OpKind, Shape, Value};
use ptx::ir::{Function, Inst, RegClass, Src};
use ptx::isa::{Op as O, Space, Ty};
use std::collections::HashMap;

/// The largest scale that is recorded: sums of bounds then stay far below 2^63.
const SCALES: u64 = 1 << 20;

/// The space that a generic address was made in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Provenance {
    /// From an address of this space, whose generic addresses are those of a window: shared memory, or the
    /// kernel's parameters.
    Window(Space),
    /// From this address of local memory, the same in all lanes, and a constant.
    Local(LocalBase, i64),
}

/// An address of local memory that is the same in all lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LocalBase {
    /// A value.
    Value(Value),
    /// The start of the function's variables in local memory.
    Frame,
}

/// A scalar plus scaled 32-bit indices of the lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScaledForm {
    pub(crate) scale: u64,
    /// Whether the indices are sign-extended.
    pub(crate) signed: bool,
    /// Whether the indices are below 256 in every lane.
    pub(crate) bytes: bool,
    pub(crate) made: Made,
}

/// How the scalar and the indices follow from the sources of the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Made {
    /// The scalar is zero, and the indices are the low words of the result.
    LowWords,
    /// The indices are the first source. The scalar is the third source, or zero.
    FirstSource {
        /// Whether there is a third source.
        plus: bool,
    },
    /// Those of a register, with the scalar shifted to the left.
    Shifted(Value, u64),
    /// Those of a register, with the scalar multiplied.
    Multiplied(Value, u64),
    /// Those of a register, with another source added to the scalar, or subtracted from it.
    Moved(Value, Other),
    /// Those of a register.
    Copied(Value),
    /// Those of a register, an address of shared memory that becomes a generic one.
    ToShared(Value),
    /// Those of a register, a generic address that becomes one of shared memory.
    FromShared(Value),
}

/// The source that is added to a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Other {
    /// Its number.
    pub(crate) source: usize,
    /// Whether it is subtracted.
    pub(crate) subtracted: bool,
}

/// What is known of the addresses of a function.
#[derive(Clone, Debug, Default)]
pub(crate) struct AddressFacts {
    provenance: HashMap<Value, Provenance>,
    scaled: HashMap<Value, ScaledForm>,
}

impl AddressFacts {
    /// Finds them.
    pub(crate) fn find(func: &Func, function: &Function, bounds: &[Option<Bound>]) -> Self {
        let mut facts = AddressFacts::default();
        let own = local_frame::generic(func, function).into_iter();
        facts.provenance.extend(own.map(|(value, at)| (value, Provenance::Local(LocalBase::Frame, at))));
        let windows = windows::windows(func, function).into_iter();
        facts.provenance.extend(windows.map(|(value, space)| (value, Provenance::Window(space))));
        let search = Search { func, bounds };
        for id in func.reverse_postorder() {
            for op in &func.blocks[id.0 as usize].ops {
                let OpKind::Inst(site) = op.kind else { continue };
                let ([def], Some(inst)) = (op.defs.as_slice(), site.inst(function)) else { continue };
                if func.kinds[def.0 as usize] != Kind::Reg(RegClass::R64) {
                    continue;
                }
                if let Some(from) = search.provenance(&facts, inst, op) {
                    facts.provenance.entry(*def).or_insert(from);
                }
                let form = search.scaled(&facts, inst, op, *def);
                if let Some(form) = form.filter(|form| form.scale != 0 && form.scale <= SCALES) {
                    facts.scaled.insert(*def, form);
                }
            }
        }
        facts
    }

    /// The space that a generic address was made in, if it is known.
    pub(crate) fn provenance(&self, address: Value) -> Option<Provenance> {
        self.provenance.get(&address).copied()
    }

    /// The value as a scalar plus scaled indices, if it is one.
    pub(crate) fn scaled(&self, value: Value) -> Option<ScaledForm> {
        self.scaled.get(&value).copied()
    }
}

struct Search<'a> {
    func: &'a Func,
    bounds: &'a [Option<Bound>],
}

impl Search<'_> {
    fn shape(&self, value: Value) -> &Shape {
        &self.func.shapes[value.0 as usize]
    }

    /// Tracks generic addresses of local memory through copies, and sums with constants.
    fn provenance(&self, facts: &AddressFacts, inst: &Inst, op: &Op) -> Option<Provenance> {
        let sources = operands(inst, op);
        let known = |at: usize| facts.provenance(sources.get(at)?.value()?);
        match (Expr::of(inst)?.arith, sources.as_slice()) {
            (Arith::ToGeneric(Space::Local), [Operand::Value(first)])
                if inst.guard.is_none() && self.shape(*first).is_uniform() =>
            {
                Some(Provenance::Local(LocalBase::Value(*first), 0))
            }
            (Arith::Copy, _) => known(0),
            (Arith::Add, [a, b]) => match (known(0).or_else(|| known(1)), a, b) {
                (Some(Provenance::Local(base, offset)), Operand::Imm(more), _)
                | (Some(Provenance::Local(base, offset)), _, Operand::Imm(more)) => {
                    Some(Provenance::Local(base, offset.wrapping_add(*more as i64)))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The base and the scaled index of an instruction's result.
    fn scaled(&self, facts: &AddressFacts, inst: &Inst, op: &Op, def: Value) -> Option<ScaledForm> {
        if inst.guard.is_some() || *self.shape(def) != Shape::Varying {
            return None;
        }
        let known = |at: usize| {
            let name = *op.uses.get(at)?;
            Some((name, facts.scaled(name)?))
        };
        let constant = |at: usize| match inst.srcs.get(at) {
            Some(Src::Imm(bits)) => Some(*bits),
            _ => None,
        };
        let low_words =
            |signed: bool| ScaledForm { scale: 1, signed, bytes: self.is_byte(def), made: Made::LowWords };
        if matches!(inst.op, O::Ld | O::LdNc | O::Ldu) {
            let ty = inst.mods.ty();
            return (inst.mods.vec() == 1 && ty.bits() <= 32).then(|| low_words(ty.is_signed()));
        }
        let Expr { arith, ty } = Expr::of(inst)?;
        match arith {
            Arith::Convert(Ty::U64 | Ty::S64) if is_word(ty) => {
                let bytes = self.first_is_byte(inst, op)?;
                Some(ScaledForm {
                    scale: 1,
                    signed: ty.is_signed(),
                    bytes,
                    made: Made::FirstSource { plus: false },
                })
            }
            Arith::Mul { wide: true } | Arith::Mad { wide: true } if is_word(ty) => {
                let scale = constant(1)? & 0xffff_ffff;
                // A negative scale would need bounds in the opposite order.
                if ty.is_signed() && scale >> 31 != 0 {
                    return None;
                }
                let bytes = self.first_is_byte(inst, op)?;
                let plus = matches!(arith, Arith::Mad { .. });
                if plus && !self.is_uniform(inst, op, 2) {
                    return None;
                }
                Some(ScaledForm { scale, signed: ty.is_signed(), bytes, made: Made::FirstSource { plus } })
            }
            Arith::And if constant(1).is_some_and(|bits| bits < 1 << 31) => Some(low_words(false)),
            Arith::Shl => {
                let ((name, form), by) = (known(1)?, constant(1)?);
                (by < 20).then(|| ScaledForm {
                    scale: form.scale << by,
                    made: Made::Shifted(name, by),
                    ..form
                })
            }
            Arith::Mul { wide: false } if ty.bits() == 64 => {
                let ((name, form), by) = (known(1)?, constant(1)?);
                (by < SCALES).then(|| ScaledForm {
                    scale: form.scale * by,
                    made: Made::Multiplied(name, by),
                    ..form
                })
            }
            Arith::Add | Arith::Sub if ty.bits() == 64 => {
                let first = matches!(inst.srcs.first(), Some(Src::Reg(_)));
                let subtracted = arith == Arith::Sub;
                let ((name, form), source) = match known(1).filter(|_| first) {
                    Some(known) => (known, 1),
                    None if subtracted => return None,
                    None => (known(if first { 2 } else { 1 })?, 0),
                };
                let made = Made::Moved(name, Other { source, subtracted });
                self.is_uniform(inst, op, source).then_some(ScaledForm { made, ..form })
            }
            Arith::Copy
            | Arith::ToGeneric(Space::Global | Space::Const)
            | Arith::FromGeneric(Space::Global | Space::Const) => {
                known(1).map(|(name, form)| ScaledForm { made: Made::Copied(name), ..form })
            }
            Arith::ToGeneric(Space::Shared) => {
                known(1).map(|(name, form)| ScaledForm { made: Made::ToShared(name), ..form })
            }
            Arith::FromGeneric(Space::Shared) => {
                known(1).map(|(name, form)| ScaledForm { made: Made::FromShared(name), ..form })
            }
            _ => None,
        }
    }

    /// Whether the first source, a 32-bit register, is below 256 in every lane; `None` if it is another
    /// source.
    fn first_is_byte(&self, inst: &Inst, op: &Op) -> Option<bool> {
        match (inst.srcs.first(), op.uses.get(1)) {
            (Some(Src::Reg(reg)), Some(name)) if reg.class == RegClass::R32 => Some(self.is_byte(*name)),
            _ => None,
        }
    }

    fn is_byte(&self, value: Value) -> bool {
        self.bounds[value.0 as usize].is_some_and(|bound| bound.high < 256)
    }

    /// Whether a source is a constant, or a 64-bit register that is the same in all lanes.
    fn is_uniform(&self, inst: &Inst, op: &Op, at: usize) -> bool {
        match operands(inst, op).get(at) {
            Some(Operand::Imm(_)) => true,
            Some(Operand::Value(name)) => {
                self.shape(*name).is_uniform() && self.func.kinds[name.0 as usize] == Kind::Reg(RegClass::R64)
            }
            _ => false,
        }
    }
}

/// Whether a type is an integer of 32 bits.
fn is_word(ty: Ty) -> bool {
    matches!(ty, Ty::U32 | Ty::S32)
}
