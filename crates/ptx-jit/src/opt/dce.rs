//! Dead code elimination: removes phis and operations whose results nothing reads.
//!
//! Invariant: an operation with an observable effect stays: an instruction that is not pure, a store to
//! the warp frame, or a side exit.

use crate::wir::uses::{Def, DefUse};
use crate::wir::{Effects, Func, Op, OpKind, Value};
use ptx::ir::Function;

/// Removes phis and operations whose results nothing reads, and records which values are read
/// ([`Func::needed`]).
pub(crate) fn sweep(func: &mut Func, function: &Function, machine: &impl Effects) {
    let definitions = DefUse::new(func);
    let needed_itself = |op: &Op| match &op.kind {
        OpKind::Inst(site) => !site.inst(function).is_some_and(|inst| machine.is_pure(inst)),
        OpKind::Guard(..) | OpKind::Ahead(_) | OpKind::Spare(..) | OpKind::Spill(_) => true,
        _ => false,
    };
    let mut needed = vec![false; func.kinds.len()];
    let mut work: Vec<Value> = Vec::new();
    for node in &func.blocks {
        for op in node.ops.iter().filter(|op| needed_itself(op)) {
            op.for_each_use(&mut |name| work.push(name));
        }
        node.term.for_each_use(&mut |name| work.push(name));
    }
    while let Some(name) = work.pop() {
        if std::mem::replace(&mut needed[name.0 as usize], true) {
            continue;
        }
        match definitions.def(name) {
            Some(Def::Phi(n, i)) => work.extend(&func.blocks[n.0 as usize].phis[i].from),
            Some(Def::Op(n, i)) => func.blocks[n.0 as usize].ops[i].for_each_use(&mut |name| work.push(name)),
            None => {}
        }
    }
    for node in &mut func.blocks {
        node.phis.retain(|phi| needed[phi.def.0 as usize]);
        node.ops.retain(|op| needed_itself(op) || op.defs.iter().any(|d| needed[d.0 as usize]));
    }
    func.needed = needed;
    func.record_slots();
}
