//! Endpoint tests as data of the IR: a branch that decides from the first and the last lane whether a
//! comparison holds in all lanes.
//!
//! The pass in [`opt::endpoint_tests`](crate::opt::endpoint_tests) finds them. Code generation emits a test
//! where its block ends.
//!
//! # Shape
//! One line behind the operations of a block, as a comment: the predicate, the comparisons and what joins
//! them, and the block that is entered where no lane satisfies the condition, if the test is for that too.
//! ```text
//! ; endpoint test of v12 by 0.5 0.6 0.7, or of its negation to b5
//! ```
//!
//! Invariant: nothing here depends on a value of LLVM.

use super::{Block, BlockId, Value};

/// The test at the end of a block of whether a condition holds in all lanes.
#[derive(Clone, Debug)]
pub(crate) struct EndpointTest {
    /// The comparisons, the operations that join them, and the operations that make a mask of the result, in
    /// program order.
    pub(crate) ops: Vec<usize>,
    /// The predicate that the mask is made of.
    pub(crate) pred: Value,
    /// Whether the test is for the negation of the predicate.
    pub(crate) negated: bool,
    /// The edge that is taken if no lane satisfies the condition, from the block that tests for it.
    pub(crate) none: Option<(BlockId, BlockId)>,
}

impl EndpointTest {
    /// Whether an operation is executed only where the test does not decide.
    pub(crate) fn has(&self, at: usize) -> bool {
        self.ops.contains(&at)
    }

    /// The line of the text form.
    pub(crate) fn text(&self, block: &Block) -> String {
        let is_inst = |at: &&usize| block.ops[**at].insts().next().is_some();
        let sites: Vec<String> = self.ops.iter().filter(is_inst).map(|at| block.place(*at)).collect();
        let none = self.none.map_or_else(String::new, |(_, to)| format!(", or of its negation to b{}", to.0));
        format!("; endpoint test of v{} by {}{none}", self.pred.0, sites.join(" "))
    }
}
