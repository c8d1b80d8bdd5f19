//! The control-flow graph of a function.
//!
//! Invariant: node `i` is block `i`; edges are those of the terminators, in their order. A call has an edge
//! to the next block; the callee is not in the graph.

use crate::ir::Function;
use crate::ir::graph::Graph;

/// The control-flow graph.
pub fn graph(function: &Function) -> Graph {
    let mut edges = Vec::new();
    for (from, block) in function.blocks.iter().enumerate() {
        edges.extend(block.term.successors().iter().map(|to| (from, to.0 as usize)));
    }
    Graph::new(function.blocks.len(), &edges)
}
