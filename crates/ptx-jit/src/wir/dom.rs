//! Dominators of WIR: which blocks are on every path from a root to a block.
//!
//! The graph has an entry of its own, with an edge to each root of the function, and is handed to the
//! analysis that the PTX front end has ([`ptx::analysis::dominators`]).
//!
//! Invariant: a block that no root reaches is dominated by every block, since no path leads to it.

use super::{BlockId, Func};
use ptx::analysis::dominators;
use ptx::ir::graph::Graph;

/// The dominator tree of a function.
#[derive(Clone, Debug)]
pub struct Dominators {
    tree: dominators::Dominators,
    reached: Vec<bool>,
}

impl Dominators {
    /// Finds the dominators of all blocks.
    pub fn new(func: &Func) -> Self {
        let number = |block: BlockId| block.0 as usize + 1;
        let mut edges: Vec<(usize, usize)> = func.roots().map(|root| (0, number(root))).collect();
        for (from, block) in (1..).zip(&func.blocks) {
            edges.extend(block.term.successors().into_iter().map(|to| (from, number(to))));
        }
        let tree = dominators::Dominators::new(&Graph::new(func.blocks.len() + 1, &edges));
        // The entry dominates exactly what it reaches.
        let reached = (1..=func.blocks.len()).map(|block| tree.dominates(0, block)).collect();
        Self { tree, reached }
    }

    /// Whether every path from a root to `b` passes `a`; each block dominates itself.
    pub fn dominates(&self, a: BlockId, b: BlockId) -> bool {
        !self.is_reached(b) || self.tree.dominates(a.0 as usize + 1, b.0 as usize + 1)
    }

    /// Whether a path from a root leads to the block.
    pub fn is_reached(&self, block: BlockId) -> bool {
        self.reached[block.0 as usize]
    }
}
