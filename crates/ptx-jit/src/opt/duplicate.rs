//! Duplicates all code behind a block for one of its predecessors, so that the copy knows what is true on
//! that way only.
//!
//! Invariants: the function stays in SSA form, and each copy computes what its original computes. The block
//! is in no loop, and no code behind it waits for the CTA: a place where warps continue belongs to one copy.

use crate::wir::{BlockId, Func, Phi, Term, Value};
use std::collections::{HashMap, HashSet};

/// Makes a copy of a block and of all code that can follow it, and lets `from`, which goes on there, go on at
/// the copy. Returns the copies of blocks; `None`: nothing has changed, since the code has more than so many
/// operations, or the invariants do not permit a copy. Predecessors are right, but not in the order in which
/// [`Func::link`] lists them.
pub(crate) fn duplicate(
    func: &mut Func,
    start: BlockId,
    from: BlockId,
    max_ops: usize,
) -> Option<HashMap<BlockId, BlockId>> {
    let region = reachable(func, start);
    let block = |id: &BlockId| &func.blocks[id.0 as usize];
    let in_loop = region.iter().any(|id| block(id).term.successors().contains(&start));
    let waits = |id: &BlockId| matches!(&block(id).term, Term::Exit(exit) if exit.resume.is_some());
    let size: usize = region.iter().map(|id| block(id).ops.len()).sum();
    let goes_on = matches!(block(&from).term, Term::Goto(to) if to == start);
    if in_loop || size > max_ops || !goes_on || region.iter().any(waits) {
        return None;
    }
    let first = func.blocks.len() as u32;
    let copies: HashMap<BlockId, BlockId> = region.iter().copied().zip((first..).map(BlockId)).collect();
    let mut values: HashMap<Value, Value> = HashMap::new();
    for id in &region {
        let block = &func.blocks[id.0 as usize];
        let defs =
            block.phis.iter().map(|phi| phi.def).chain(block.ops.iter().flat_map(|op| op.defs.clone()));
        for def in defs {
            values.insert(def, Value(func.kinds.len() as u32));
            func.kinds.push(func.kinds[def.0 as usize]);
        }
    }
    let renamed = |value: &Value| values.get(value).copied().unwrap_or(*value);
    for id in &region {
        let mut copy = func.blocks[id.0 as usize].clone();
        let enters = |pred: &BlockId| match copies.get(pred) {
            Some(pred) => Some(*pred),
            None => (*id == start && *pred == from).then_some(from),
        };
        for phi in &mut copy.phis {
            let from = phi.from.iter().zip(&copy.preds).filter(|(_, pred)| enters(pred).is_some());
            *phi = Phi { def: renamed(&phi.def), from: from.map(|(value, _)| renamed(value)).collect() };
        }
        copy.preds = copy.preds.iter().filter_map(enters).collect();
        for op in &mut copy.ops {
            op.defs.iter_mut().for_each(|def| *def = renamed(def));
            op.for_each_use_mut(&mut |value| *value = renamed(value));
        }
        copy.term.for_each_use_mut(&mut |value| *value = renamed(value));
        copy.term.for_each_target_mut(&mut |to| *to = copies[to]);
        func.blocks.push(copy);
    }
    func.blocks[from.0 as usize].term = Term::Goto(copies[&start]);
    let original = &mut func.blocks[start.0 as usize];
    let stays: Vec<bool> = original.preds.iter().map(|pred| *pred != from).collect();
    let mut each = stays.iter();
    original.preds.retain(|_| each.next().copied().unwrap_or(true));
    for phi in &mut original.phis {
        let mut each = stays.iter();
        phi.from.retain(|_| each.next().copied().unwrap_or(true));
    }
    Some(copies)
}

/// A block and all that can follow it, in any order.
fn reachable(func: &Func, start: BlockId) -> Vec<BlockId> {
    let (mut found, mut left) = (vec![start], vec![start]);
    let mut seen = HashSet::from([start]);
    while let Some(id) = left.pop() {
        let next = func.blocks[id.0 as usize].term.successors();
        let new: Vec<BlockId> = next.into_iter().filter(|to| seen.insert(*to)).collect();
        found.extend(&new);
        left.extend(new);
    }
    found
}
