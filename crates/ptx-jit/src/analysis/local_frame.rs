//! Addresses of the function's own variables in local memory, in all lanes at the same offset.
//!
//! Code that clang does not optimise keeps all variables in one block of local memory, whose generic address
//! is a register that is written once, where the function begins. All accesses are relative to it. So it is
//! followed through sums with constants, phis and selections, and through the registers that are restored
//! where a warp enters the function: a register that is written once, on every path to an instruction that
//! reads it, has that value wherever it is read.
//!
//! Invariant: each value found is that address, plus the offset, in every lane in which it is observed. The
//! address of a phi is that of all its operands, apart from undefined ones.

use super::expr::{Arith, Expr, Operand, operands};
use crate::wir::{Func, Kind, Op, OpKind, Value};
use ptx::analysis::written_once::written_once;
use ptx::ir::{Addr, Base, Function, Inst, Reg, RegClass, Src};
use ptx::isa::{Op as O, Space};
use std::collections::{HashMap, HashSet};

/// Local memory of a lane begins at a multiple of this, and so do a kernel's variables in it.
const ALIGNED: i64 = 16;

/// What is known of a value or a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// An offset in local memory, from the start of the function's variables.
    Offset(i64),
    /// The generic address of that offset.
    Generic(i64),
    /// Something else.
    Other,
}

/// The values that are generic addresses of the function's variables, with their offsets from the first one.
pub(super) fn generic(func: &Func, function: &Function) -> HashMap<Value, i64> {
    if function.frame_bytes == 0 {
        return HashMap::new();
    }
    let search = Search { func, function, registers: registers(function) };
    let mut known = HashMap::new();
    // The analysis is optimistic: a phi ignores operands that have no result yet. It ends at a fixed point.
    while search.visit(&mut known) {}
    let generic = |(value, known): (Value, Known)| match known {
        Known::Generic(offset) => Some((value, offset)),
        Known::Offset(_) | Known::Other => None,
    };
    known.into_iter().filter_map(generic).collect()
}

struct Search<'a> {
    func: &'a Func,
    function: &'a Function,
    /// Registers that are written once, before they are read.
    registers: HashMap<Reg, Known>,
}

impl Search<'_> {
    /// Visits all operations; returns whether it has found something new.
    fn visit(&self, known: &mut HashMap<Value, Known>) -> bool {
        let undefined: HashSet<Value> = self.func.undef.iter().copied().collect();
        let mut changed = false;
        let mut set = |known: &mut HashMap<Value, Known>, value: Value, now: Option<Known>| {
            let Some(now) = now else { return };
            let before = known.insert(value, now);
            changed |= before != Some(now);
        };
        for zero in self.func.zeros.iter().filter(|zero| !undefined.contains(zero)) {
            set(known, *zero, Some(Known::Other));
        }
        for id in self.func.reverse_postorder() {
            let block = &self.func.blocks[id.0 as usize];
            for phi in &block.phis {
                set(known, phi.def, met(phi.from.iter().filter_map(|from| known.get(from))));
            }
            for op in &block.ops {
                let [first, rest @ ..] = op.defs.as_slice() else { continue };
                set(known, *first, self.of(known, op));
                for def in rest {
                    set(known, *def, Some(Known::Other));
                }
            }
        }
        changed
    }

    /// What is known of the result of an operation; `None`: nothing yet.
    fn of(&self, known: &HashMap<Value, Known>, op: &Op) -> Option<Known> {
        let is_long = self.func.kinds[op.defs[0].0 as usize] == Kind::Reg(RegClass::R64);
        match op.kind {
            OpKind::Inst(site) if is_long => {
                let inst = site.inst(self.function).filter(|inst| inst.guard.is_none());
                let sources = inst.map(|inst| operands(inst, op));
                let source = |at: usize| match sources.as_ref()?.get(at)? {
                    Operand::Value(value) => known.get(value).copied(),
                    _ => Some(Known::Other),
                };
                inst.map_or(Some(Known::Other), |inst| computed(inst, source))
            }
            OpKind::Load(reg) | OpKind::Restore(_, reg) | OpKind::Reload(reg) => {
                Some(self.registers.get(&reg).copied().unwrap_or(Known::Other))
            }
            OpKind::SelectMask | OpKind::SelectPred { .. } => {
                met(op.uses[1..].iter().filter_map(|from| known.get(from)))
            }
            _ => Some(Known::Other),
        }
    }
}

/// What all of some values are; `None`: there are none.
fn met<'a>(mut values: impl Iterator<Item = &'a Known>) -> Option<Known> {
    let first = *values.next()?;
    Some(if values.all(|other| *other == first) { first } else { Known::Other })
}

/// The result of an instruction without a guard. `source`: what is known of a source that is a register.
fn computed(inst: &Inst, source: impl Fn(usize) -> Option<Known>) -> Option<Known> {
    let constant = |at: usize| match inst.srcs.get(at) {
        Some(Src::Imm(bits)) => Some(*bits as i64),
        _ => None,
    };
    let moved = |known: Known, by: i64| match known {
        Known::Offset(at) => Known::Offset(at.wrapping_add(by)),
        Known::Generic(at) => Known::Generic(at.wrapping_add(by)),
        Known::Other => Known::Other,
    };
    let frame = match inst.srcs.first() {
        Some(Src::Addr(Addr { base: Base::Frame, index: None, offset })) => Some(*offset),
        _ => None,
    };
    let to_generic = |known: Known| match known {
        Known::Offset(at) => Known::Generic(at),
        Known::Generic(_) | Known::Other => Known::Other,
    };
    match (inst.op, frame) {
        (O::Mov, Some(at)) => return Some(Known::Offset(at)),
        (O::Cvta, Some(at)) if inst.mods.space() == Space::Local => return Some(Known::Generic(at)),
        _ => {}
    }
    match Expr::of(inst).map(|expr| expr.arith) {
        Some(Arith::Copy) => source(0),
        Some(Arith::ToGeneric(Space::Local)) => Some(to_generic(source(0)?)),
        Some(Arith::Add) => match (constant(0), constant(1)) {
            (None, Some(by)) => Some(moved(source(0)?, by)),
            (Some(by), None) => Some(moved(source(1)?, by)),
            _ => Some(Known::Other),
        },
        // The start of the variables is a multiple of their alignment, and so is its generic address.
        Some(Arith::Or) => match (source(0)?, constant(1)) {
            (Known::Offset(at), Some(by @ 0..ALIGNED)) => Some(Known::Offset(at | by)),
            (Known::Generic(at), Some(by @ 0..ALIGNED)) => Some(Known::Generic(at | by)),
            _ => Some(Known::Other),
        },
        _ => Some(Known::Other),
    }
}

/// What is known of registers that are written once, on every path to an instruction that reads them.
fn registers(function: &Function) -> HashMap<Reg, Known> {
    let mut written = written_once(function);
    written.retain(|reg, _| reg.class == RegClass::R64);
    let mut known: HashMap<Reg, Known> = HashMap::new();
    loop {
        let before = known.len();
        for (reg, (block, index)) in &written {
            let inst = &function.blocks[*block].insts[*index];
            let source = |at: usize| match inst.srcs.get(at) {
                Some(Src::Reg(reg)) => known.get(reg).copied(),
                _ => Some(Known::Other),
            };
            if let Some(found) = computed(inst, source).filter(|found| *found != Known::Other) {
                known.insert(*reg, found);
            }
        }
        if known.len() == before {
            return known;
        }
    }
}
