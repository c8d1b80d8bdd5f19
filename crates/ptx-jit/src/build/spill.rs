//! Spilled registers: registers of a large function that are in the warp frame wherever no operation uses
//! them.
//!
//! Each entry loads the registers that are live there, each barrier and side exit stores them, and joins have
//! phis for them. In a function with hundreds of such places and as many live registers these moves are most
//! of the code, and they grow with the product of both. A spilled register needs none of them: each
//! definition is followed by a store to the warp frame, in the active lanes, and each block that reads the
//! register loads it once. So the code grows with the number of instructions.
//!
//! Invariant: where an operation may stop or enter the function, the warp frame has the value of each spilled
//! register in all lanes of the call in which it is live, those of pending lanes included. So such a register
//! is never captured, and a function with spilled registers needs a warp frame: it does not run whole CTAs.
//!
//! What it does not do: uniform and affine registers stay values, since a load from the frame would lose
//! their shape.

use crate::tuning::{SPILL_MIN_MOVES, SPILL_MIN_MOVES_PER_ACCESS};
use crate::wir::{Block, Exit, Func, Op, OpKind, Shape, Term, Value};
use ptx::ir::{Function, Reg};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// The registers of a function to spill, from the function without spilled registers; none if it is small.
pub(crate) fn choose(func: &Func, function: &Function) -> BTreeSet<Reg> {
    let mut moves: BTreeMap<Reg, usize> = BTreeMap::new();
    let mut count = |(reg, value): &(Reg, Value), times: usize| {
        if func.shapes[value.0 as usize] == Shape::Varying {
            *moves.entry(*reg).or_default() += times;
        }
    };
    func.entries.iter().flat_map(|entry| &entry.relies).for_each(|slot| count(slot, 1));
    // A barrier stores its registers and loads them again.
    func.resumes.iter().flat_map(|resume| &resume.kept).for_each(|slot| count(slot, 2));
    for exit in exits(func) {
        let pending = exit.parked.iter().flat_map(|pending| &pending.regs);
        exit.regs.iter().chain(pending).for_each(|slot| count(slot, 1));
    }
    if moves.values().sum::<usize>() < SPILL_MIN_MOVES {
        return BTreeSet::new();
    }
    let accesses = accesses(function);
    let pays = |(reg, moves): (Reg, usize)| {
        let accesses = accesses.get(&reg).copied().unwrap_or(0);
        (moves > accesses * SPILL_MIN_MOVES_PER_ACCESS).then_some(reg)
    };
    moves.into_iter().filter_map(pays).collect()
}

/// The number of operations of a function, with one for each register that a side exit saves.
pub(crate) fn size(func: &Func) -> usize {
    let saved = |exit: &Exit| exit.regs.len() + exit.parked.iter().map(|p| p.regs.len()).sum::<usize>();
    func.blocks.iter().map(|block| block.ops.len()).sum::<usize>() + exits(func).map(saved).sum::<usize>()
}

fn exits(func: &Func) -> impl Iterator<Item = &Exit> {
    func.blocks.iter().flat_map(|block| {
        let of_ops = block.ops.iter().filter_map(|op| match &op.kind {
            OpKind::Guard(_, _, exit) | OpKind::Ahead(exit) | OpKind::Spare(_, exit) => Some(&**exit),
            _ => None,
        });
        let end = if let Term::Exit(exit) = &block.term { Some(&**exit) } else { None };
        of_ops.chain(end)
    })
}

/// For each register, the loads and stores that the function has if it is spilled.
fn accesses(function: &Function) -> BTreeMap<Reg, usize> {
    let mut accesses: BTreeMap<Reg, usize> = BTreeMap::new();
    for block in &function.blocks {
        let mut known = HashSet::new();
        let read = |reg: Reg, known: &mut HashSet<Reg>, all: &mut BTreeMap<Reg, usize>| {
            if known.insert(reg) {
                *all.entry(reg).or_default() += 1;
            }
        };
        for inst in &block.insts {
            inst.for_each_use(&mut |reg| read(reg, &mut known, &mut accesses));
            inst.for_each_def(&mut |reg| {
                known.insert(reg);
                *accesses.entry(reg).or_default() += 1;
            });
        }
        block.term.for_each_use(&mut |reg| read(reg, &mut known, &mut accesses));
        block.term.for_each_def(&mut |reg| *accesses.entry(reg).or_default() += 1);
    }
    accesses
}

/// Inserts the loads and stores of spilled registers into a block over variables. `spilled`: the register of
/// a variable, if it is spilled; `mask`: the variable of the active lanes.
pub(super) fn insert(block: &mut Block, spilled: impl Fn(Value) -> Option<Reg>, mask: Value) {
    let mut known: HashSet<Value> = HashSet::new();
    let mut ops = Vec::new();
    let reload = |name: Value, known: &mut HashSet<Value>, ops: &mut Vec<Op>| {
        if let Some(reg) = spilled(name)
            && known.insert(name)
        {
            ops.push(Op {
                kind: OpKind::Reload(reg),
                uses: Vec::new(),
                defs: vec![name],
                access: None,
                prefetch: None,
            });
        }
    };
    for op in std::mem::take(&mut block.ops) {
        op.for_each_use(&mut |name| reload(name, &mut known, &mut ops));
        let defs = op.defs.clone();
        ops.push(op);
        for def in defs {
            if let Some(reg) = spilled(def) {
                known.insert(def);
                let uses = vec![mask, def];
                ops.push(Op {
                    kind: OpKind::Spill(reg),
                    uses,
                    defs: Vec::new(),
                    access: None,
                    prefetch: None,
                });
            }
        }
    }
    block.term.for_each_use(&mut |name| reload(name, &mut known, &mut ops));
    block.ops = ops;
}
