//! Registers whose value is the same wherever it is read.
//!
//! Invariant: each register that is found is written by one instruction, which has no guard and is no
//! terminator, and every path from the entry to an instruction that reads the register contains that one.

use super::cfg::graph;
use super::dominators::Dominators;
use crate::ir::{Function, Reg};
use std::collections::{BTreeMap, HashSet};

/// The registers that are written once, before they are read, with the block and the index of the instruction
/// that writes each.
pub fn written_once(function: &Function) -> BTreeMap<Reg, (usize, usize)> {
    let mut written: BTreeMap<Reg, (usize, usize)> = BTreeMap::new();
    let mut others = HashSet::new();
    for (at, block) in function.blocks.iter().enumerate() {
        for (index, inst) in block.insts.iter().enumerate() {
            inst.for_each_def(&mut |reg| {
                if written.insert(reg, (at, index)).is_some() || inst.guard.is_some() {
                    others.insert(reg);
                }
            });
        }
        block.term.for_each_def(&mut |reg| _ = others.insert(reg));
    }
    let dominators = Dominators::new(&graph(function));
    let mut check = |reg: Reg, block: usize, index: usize| {
        let Some((at, by)) = written.get(&reg) else { return };
        if !(*at == block && *by < index || *at != block && dominators.dominates(*at, block)) {
            others.insert(reg);
        }
    };
    for (at, block) in function.blocks.iter().enumerate() {
        for (index, inst) in block.insts.iter().enumerate() {
            inst.for_each_use(&mut |reg| check(reg, at, index));
        }
        block.term.for_each_use(&mut |reg| check(reg, at, usize::MAX));
    }
    written.retain(|reg, _| !others.contains(reg));
    written
}
