//! The control-flow graph of WIR: where execution begins, predecessors, order and reachability.
//!
//! Invariant: a function is entered at its roots only: its entries, its start, and the blocks that warps
//! continue at behind barriers.

use super::{BlockId, Func};

impl Func {
    /// Where execution begins: entries by ascending PTX block, the start, and the blocks behind barriers.
    pub fn roots(&self) -> impl Iterator<Item = BlockId> + '_ {
        let entries = self.entries.iter().map(|entry| entry.node);
        entries.chain([self.start]).chain(self.resumes.iter().map(|resume| resume.node))
    }

    /// Fills in the predecessors of every block from the terminators.
    pub fn link(&mut self) {
        self.blocks.iter_mut().for_each(|block| block.preds.clear());
        for from in 0..self.blocks.len() {
            for to in self.blocks[from].term.successors() {
                self.blocks[to.0 as usize].preds.push(BlockId(from as u32));
            }
        }
    }

    /// The blocks that can be reached, root by root: those of each root in reverse postorder, without those
    /// of an earlier root.
    pub fn reverse_postorder(&self) -> Vec<BlockId> {
        let mut seen = vec![false; self.blocks.len()];
        let mut order = Vec::new();
        for root in self.roots() {
            if std::mem::replace(&mut seen[root.0 as usize], true) {
                continue;
            }
            let mut tree = Vec::new();
            let mut stack = vec![(root, self.blocks[root.0 as usize].term.successors(), 0)];
            while let Some((block, successors, at)) = stack.last_mut() {
                match successors.get(*at) {
                    Some(next) => {
                        *at += 1;
                        let next = *next;
                        if !std::mem::replace(&mut seen[next.0 as usize], true) {
                            stack.push((next, self.blocks[next.0 as usize].term.successors(), 0));
                        }
                    }
                    None => {
                        tree.push(*block);
                        stack.pop();
                    }
                }
            }
            order.extend(tree.into_iter().rev());
        }
        order
    }

    /// Whether a path of at least one edge leads from one block to another.
    pub fn reaches(&self, from: BlockId, to: BlockId) -> bool {
        let mut seen = vec![false; self.blocks.len()];
        let mut left = vec![from];
        while let Some(block) = left.pop() {
            for next in self.blocks[block.0 as usize].term.successors() {
                if next == to {
                    return true;
                }
                if !std::mem::replace(&mut seen[next.0 as usize], true) {
                    left.push(next);
                }
            }
        }
        false
    }
}
