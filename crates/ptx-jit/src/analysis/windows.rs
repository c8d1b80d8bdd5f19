//! Generic addresses of shared memory and of the kernel's parameters.
//!
//! An address is followed through sums, copies, selections and phis, so that a loop's pointers are found. The
//! analysis is optimistic: a phi ignores operands that have no result yet, and values that are restored where
//! a warp enters the function, which are the same registers at the same place.
//!
//! Invariant: none is needed. An address may have been moved out of the space, and each access keeps its
//! check; where the check fails, the interpreter executes the access.

use super::expr::{Arith, Expr, Operand, operands};
use crate::wir::{Func, Kind, Op, OpKind, Value};
use ptx::ir::{Function, RegClass};
use ptx::isa::{Op as O, Space};
use std::collections::HashMap;

/// The spaces of the windows that are followed: the generic address of a window is unknown, and the same in
/// all threads of a CTA.
const FOLLOWED: [Space; 2] = [Space::Shared, Space::Param];

/// The values that are generic addresses of a window, with the state space of the window.
pub(super) fn windows(func: &Func, function: &Function) -> HashMap<Value, Space> {
    let makes = |op: &Op| {
        let OpKind::Inst(site) = op.kind else { return false };
        site.inst(function).is_some_and(|inst| inst.op == O::Cvta && FOLLOWED.contains(&inst.mods.space()))
    };
    if !func.blocks.iter().any(|block| block.ops.iter().any(makes)) {
        return HashMap::new();
    }
    let mut known: HashMap<Value, Option<Space>> = HashMap::new();
    // Each value changes at most twice: from no result to a window, and to none.
    loop {
        let mut changed = false;
        let mut set =
            |known: &mut HashMap<Value, Option<Space>>, value: Value, now: Option<Option<Space>>| {
                let Some(now) = now else { return };
                let before = known.get(&value).copied();
                let now = if before.is_some_and(|before| before != now) { None } else { now };
                changed |= before != Some(now);
                known.insert(value, now);
            };
        for id in func.reverse_postorder() {
            let block = &func.blocks[id.0 as usize];
            for phi in &block.phis {
                let met = met(phi.from.iter().filter_map(|from| known.get(from).copied()));
                set(&mut known, phi.def, met);
            }
            for op in &block.ops {
                for def in &op.defs {
                    let is_long = func.kinds[def.0 as usize] == Kind::Reg(RegClass::R64);
                    let now = if is_long { of(function, &known, op) } else { Some(None) };
                    set(&mut known, *def, now);
                }
            }
        }
        if !changed {
            return known.into_iter().filter_map(|(value, space)| Some((value, space?))).collect();
        }
    }
}

/// What all of some values are addresses of; `None`: there are none.
fn met(mut values: impl Iterator<Item = Option<Space>>) -> Option<Option<Space>> {
    let first = values.next()?;
    Some(first.filter(|first| values.all(|other| other == Some(*first))))
}

/// The window that the result of an operation is an address of; `None`: nothing is known yet.
fn of(function: &Function, known: &HashMap<Value, Option<Space>>, op: &Op) -> Option<Option<Space>> {
    match op.kind {
        OpKind::Inst(site) => {
            let Some(inst) = site.inst(function).filter(|inst| inst.guard.is_none()) else {
                return Some(None);
            };
            let sources = operands(inst, op);
            let source = |at: usize| match sources.get(at) {
                Some(Operand::Value(value)) => known.get(value).copied(),
                _ => Some(None),
            };
            match Expr::of(inst).map(|expr| expr.arith) {
                Some(Arith::ToGeneric(space)) => Some(Some(space).filter(|space| FOLLOWED.contains(space))),
                Some(Arith::Copy) => source(0),
                Some(Arith::Add) => match (source(0), source(1)) {
                    (Some(Some(space)), _) | (_, Some(Some(space))) => Some(Some(space)),
                    (None, _) | (_, None) => None,
                    (Some(None), Some(None)) => Some(None),
                },
                _ => Some(None),
            }
        }
        OpKind::Load(_) | OpKind::Restore(..) | OpKind::Reload(_) => None,
        OpKind::SelectMask | OpKind::SelectPred { .. } => {
            met(op.uses[1..].iter().filter_map(|from| known.get(from).copied()))
        }
        _ => Some(None),
    }
}
