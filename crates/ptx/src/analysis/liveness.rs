//! Liveness of registers.
//!
//! Invariant: a register is live at a place if and only if some path from there reads it before an unguarded
//! write. A guarded write does not end the lifetime, because lanes whose guard is false keep the old value; a
//! write by a [`Dst::Video`](crate::ir::Dst::Video) does not end it either, because it has the kept bytes as
//! a source. All paths of the control-flow graph count.
//!
//! Cost: `O(blocks * registers / 64)` memory, usually a few passes over the blocks.

use super::bits::BitSet;
use super::def_use::Registers;
use crate::ir::graph::{DepthFirst, Graph};
use crate::ir::{Function, Inst, Terminator};

/// Reads and writes of a block, for the backward data-flow problem.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Effect {
    /// Read before any unconditional write in the block.
    pub reads: BitSet,
    /// Written unconditionally.
    pub writes: BitSet,
}

/// Live registers at block boundaries.
#[derive(Clone, Debug)]
pub struct Liveness {
    /// The numbers of the registers in the sets.
    pub registers: Registers,
    /// By block: live at its start.
    pub live_in: Vec<BitSet>,
    /// By block: live at its end, after the terminator.
    pub live_out: Vec<BitSet>,
}

impl Liveness {
    /// Solves liveness for a function; `graph` is its [control-flow graph](super::cfg::graph).
    pub fn new(function: &Function, graph: &Graph) -> Self {
        let registers = Registers::new(function);
        let effects: Vec<Effect> = function
            .blocks
            .iter()
            .map(|block| {
                let mut effect =
                    Effect { reads: BitSet::new(registers.len()), writes: BitSet::new(registers.len()) };
                term_backward(registers, &block.term, &mut effect);
                for inst in block.insts.iter().rev() {
                    inst_backward(registers, inst, &mut effect);
                }
                effect
            })
            .collect();
        let (live_in, live_out) = solve(graph, &effects, registers.len());
        Self { registers, live_in, live_out }
    }

    /// Live registers before the instruction at `inst` of a block (`insts.len()`: before the terminator).
    pub fn before(&self, function: &Function, block: usize, inst: usize) -> BitSet {
        let content = &function.blocks[block];
        let mut effect =
            Effect { reads: self.live_out[block].clone(), writes: BitSet::new(self.registers.len()) };
        term_backward(self.registers, &content.term, &mut effect);
        for inst in content.insts[inst..].iter().rev() {
            inst_backward(self.registers, inst, &mut effect);
        }
        effect.reads
    }
}

fn inst_backward(registers: Registers, inst: &Inst, effect: &mut Effect) {
    if inst.guard.is_none() {
        inst.for_each_def(&mut |reg| {
            effect.writes.insert(registers.number(reg));
            effect.reads.remove(registers.number(reg));
        });
    }
    inst.for_each_use(&mut |reg| {
        effect.reads.insert(registers.number(reg));
    });
}

fn term_backward(registers: Registers, term: &Terminator, effect: &mut Effect) {
    term.for_each_def(&mut |reg| {
        effect.writes.insert(registers.number(reg));
        effect.reads.remove(registers.number(reg));
    });
    term.for_each_use(&mut |reg| {
        effect.reads.insert(registers.number(reg));
    });
}

/// The least solution of `in = reads + (out - writes)`, with `out` the union of the successors' `in`: `(in,
/// out)` by node.
pub fn solve(graph: &Graph, effects: &[Effect], len: usize) -> (Vec<BitSet>, Vec<BitSet>) {
    let mut live_in: Vec<BitSet> = effects.iter().map(|e| e.reads.clone()).collect();
    let mut live_out = vec![BitSet::new(len); graph.len()];
    let mut work = DepthFirst::new(graph).preorder;
    let mut queued = vec![false; graph.len()];
    for v in &work {
        queued[*v] = true;
    }
    while let Some(v) = work.pop() {
        queued[v] = false;
        for &s in graph.succs(v) {
            live_out[v].union(&live_in[s]);
        }
        if live_in[v].union_except(&live_out[v], &effects[v].writes) {
            for &p in graph.preds(v) {
                if !std::mem::replace(&mut queued[p], true) {
                    work.push(p);
                }
            }
        }
    }
    (live_in, live_out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::graph::random::{self, Rng};

    /// Whether some path from `v` reads `r` before writing it. Walks every path up to a repeated node.
    fn read_ahead(graph: &Graph, effects: &[Effect], v: usize, r: usize, path: &mut Vec<usize>) -> bool {
        if effects[v].reads.contains(r) {
            return true;
        }
        if effects[v].writes.contains(r) || path.contains(&v) {
            return false;
        }
        path.push(v);
        let found = graph.succs(v).iter().any(|&s| read_ahead(graph, effects, s, r, path));
        path.pop();
        found
    }

    #[test]
    fn live_sets_match_the_enumeration_of_paths() {
        for seed in 0..400 {
            let graph = if seed % 2 == 0 { random::structured(seed, 10) } else { random::graph(seed, 9) };
            let mut rng = Rng::new(seed + 7);
            let effects: Vec<Effect> = (0..graph.len())
                .map(|_| {
                    let mut effect = Effect { reads: BitSet::new(4), writes: BitSet::new(4) };
                    for r in 0..4 {
                        if rng.below(5) == 0 {
                            effect.reads.insert(r);
                        }
                        if rng.below(4) == 0 {
                            effect.writes.insert(r);
                        }
                    }
                    effect
                })
                .collect();
            let (live_in, live_out) = solve(&graph, &effects, 4);
            for v in 0..graph.len() {
                for r in 0..4 {
                    let expected = read_ahead(&graph, &effects, v, r, &mut Vec::new());
                    assert_eq!(live_in[v].contains(r), expected, "seed {seed}: {r} into {v}");
                    let out =
                        graph.succs(v).iter().any(|&s| read_ahead(&graph, &effects, s, r, &mut Vec::new()));
                    assert_eq!(live_out[v].contains(r), out, "seed {seed}: {r} out of {v}");
                }
            }
        }
    }
}
