//! The control-flow graph of a function, and its loops as ranges of blocks.
//!
//! Invariant: node `i` is block `i`; edges are those of the terminators, in their order. A call has an edge
//! to the next block; the callee is not in the graph.

use crate::ir::Function;
use crate::ir::graph::{DepthFirst, Graph, NONE};
use crate::ir::order::LoopForest;

/// The control-flow graph.
pub fn graph(function: &Function) -> Graph {
    let mut edges = Vec::new();
    for (from, block) in function.blocks.iter().enumerate() {
        edges.extend(block.term.successors().iter().map(|to| (from, to.0 as usize)));
    }
    Graph::new(function.blocks.len(), &edges)
}

/// A loop: a contiguous range of blocks, by rule 1 of [`crate::ir`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loop {
    /// Its header: the first block.
    pub header: usize,
    /// Its last block.
    pub last: usize,
    /// Index of the enclosing loop.
    pub outer: Option<usize>,
    /// Nesting depth, from 1.
    pub depth: usize,
    /// Whether the loop has another entry than its header.
    pub irreducible: bool,
}

/// The loops of a function.
#[derive(Clone, Debug)]
pub struct Loops {
    /// All loops, by ascending header, so that outer loops come first.
    pub loops: Vec<Loop>,
    /// For each block the index of the innermost loop that contains it.
    pub innermost: Vec<Option<usize>>,
}

impl Loop {
    /// Whether the block is in the loop.
    pub fn contains(&self, block: usize) -> bool {
        (self.header..=self.last).contains(&block)
    }
}

impl Loops {
    /// Finds the loops of a graph whose nodes are ordered by rule 1.
    pub fn new(graph: &Graph) -> Self {
        let forest = LoopForest::new(graph, &DepthFirst::new(graph));
        let mut found = Self { loops: Vec::new(), innermost: vec![None; graph.len()] };
        let mut of_header = vec![None; graph.len()];
        for v in 0..graph.len() {
            let outer = if forest.within[v] == NONE { None } else { of_header[forest.within[v]] };
            found.innermost[v] = outer;
            if forest.header[v] {
                let depth = outer.map_or(1, |o: usize| found.loops[o].depth + 1);
                let irreducible = forest.irreducible[v];
                of_header[v] = Some(found.loops.len());
                found.innermost[v] = of_header[v];
                found.loops.push(Loop { header: v, last: v, outer, depth, irreducible });
            }
        }
        // Backwards, because inner loops come after outer ones: each is complete before its outer loop
        // includes it.
        for v in 0..graph.len() {
            if let Some(inner) = found.innermost[v] {
                found.loops[inner].last = found.loops[inner].last.max(v);
            }
        }
        for i in (0..found.loops.len()).rev() {
            if let Some(outer) = found.loops[i].outer {
                found.loops[outer].last = found.loops[outer].last.max(found.loops[i].last);
            }
        }
        found
    }

    /// The loops that contain a block, innermost first.
    pub fn around(&self, block: usize) -> impl Iterator<Item = &Loop> + '_ {
        let first = self.innermost[block].map(|i| &self.loops[i]);
        std::iter::successors(first, |l| l.outer.map(|i| &self.loops[i]))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::ir::graph::random;
    use crate::ir::order::block_order;

    /// The graph with nodes renumbered in block order.
    pub(crate) fn ordered(graph: &Graph) -> Graph {
        let order = block_order(graph);
        let mut number = vec![0; graph.len()];
        for (new, old) in order.iter().enumerate() {
            number[*old] = new;
        }
        let edges: Vec<(usize, usize)> =
            order.iter().flat_map(|&v| graph.succs(v).iter().map(move |&s| (v, s))).collect();
        let edges: Vec<(usize, usize)> = edges.into_iter().map(|(f, t)| (number[f], number[t])).collect();
        Graph::new(graph.len(), &edges)
    }

    #[test]
    fn loops_are_ranges_that_hold_their_back_edges() {
        for seed in 0..500 {
            let graph =
                ordered(&if seed % 2 == 0 { random::structured(seed, 25) } else { random::graph(seed, 15) });
            let loops = Loops::new(&graph);
            for (from, to) in graph.edges().filter(|(from, to)| to <= from) {
                let own = loops.loops.iter().find(|l| l.header == to);
                assert!(own.is_some_and(|l| l.contains(from)), "seed {seed}: {from} -> {to}");
            }
            for v in 0..graph.len() {
                let around: Vec<&Loop> = loops.around(v).collect();
                let expected = loops.loops.iter().filter(|l| l.contains(v)).count();
                assert_eq!(around.len(), expected, "seed {seed}: loops around {v}");
                assert_eq!(around.first().map_or(0, |l| l.depth), expected, "seed {seed}");
            }
        }
    }
}
