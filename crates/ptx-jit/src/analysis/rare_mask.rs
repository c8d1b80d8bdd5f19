//! Masks that at most side exits read, which are computed at the side exit.
//!
//! Invariant: a mask that an operation, a phi or a terminator reads is none of them, unless that operation
//! computes such a mask itself.

use crate::wir::uses::DefUse;
use crate::wir::{Func, OpKind, Value};

/// For each value, whether it is a mask that at most side exits read.
pub(crate) fn find(func: &Func, def_use: &DefUse) -> Vec<bool> {
    let mut rare = vec![true; func.kinds.len()];
    let mut work: Vec<Value> = Vec::new();
    for node in &func.blocks {
        node.phis.iter().for_each(|phi| work.extend(&phi.from));
        node.term.for_each_use(&mut |name| work.push(name));
        for op in &node.ops {
            if !matches!(op.kind, OpKind::And | OpKind::AndNot | OpKind::Or) {
                work.extend(&op.uses);
            }
        }
    }
    while let Some(name) = work.pop() {
        if std::mem::replace(&mut rare[name.0 as usize], false)
            && let Some(op) = def_use.op_of(func, name)
        {
            work.extend(&op.uses);
        }
    }
    rare
}
