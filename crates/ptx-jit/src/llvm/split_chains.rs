//! Splits a long chain of dot products into two independent sums.
//!
//! A dot product waits for the sum that it adds to, which takes four or five cycles, while the processor can
//! execute two at a time: a chain takes the sum of its latencies. Every second link adds to a sum of its own,
//! and one addition joins both sums.
//!
//! Invariant: integer sums wrap, so reordering them does not change the result; only links without other
//! readers are changed. Not handled: chains that pass through another instruction, such as a select or the
//! phi of a loop.

use crate::tuning::SPLIT_CHAIN_MIN_LINKS;
use std::collections::{HashMap, HashSet};

use llvm_sys::prelude::LLVMValueRef;

use super::api::call;
use super::builder::Builder;
use super::module::Value;

impl Builder<'_> {
    /// The intrinsic of that name: `sum` plus the products of four unsigned and four signed bytes, for each
    /// element.
    pub(crate) fn dot(&self, name: &str, sum: Value, unsigned: Value, signed: Value) -> Value {
        let dot = self.intrinsic(name, &[], &[sum, unsigned, signed]);
        self.dots.borrow_mut().push(dot);
        dot
    }

    /// Splits the long chains of [`Builder::dot`] at the end of a function; each block must have its
    /// terminator.
    pub(crate) fn split_long_chains(&self) {
        let dots = self.dots.take();
        let all: HashSet<LLVMValueRef> = dots.iter().map(|dot| dot.0).collect();
        let mut next: HashMap<LLVMValueRef, Value> = HashMap::new();
        let mut follows: Vec<bool> = Vec::with_capacity(dots.len());
        for dot in &dots {
            let sum = dot.operand(0);
            let is_link = sum.is_used_once() && all.contains(&sum.0);
            follows.push(is_link);
            if is_link {
                next.insert(sum.0, *dot);
            }
        }
        for (first, follows) in dots.iter().zip(follows) {
            if follows {
                continue;
            }
            let chain: Vec<Value> =
                std::iter::successors(Some(*first), |link| next.get(&link.0).copied()).collect();
            if chain.len() >= SPLIT_CHAIN_MIN_LINKS {
                self.part(&chain);
            }
        }
    }

    fn part(&self, chain: &[Value]) {
        let mut before = self.zero(chain[0].ty());
        for pair in chain.windows(2) {
            // The next link added to this link's sum; now it adds to the sum before.
            call!(LLVMSetOperand(pair[1].0, 0, before.0));
            before = pair[0];
        }
        let last = chain[chain.len() - 1];
        let end = call!(LLVMGetNextInstruction(last.0));
        call!(LLVMPositionBuilderBefore(self.raw, end));
        // The readers of the last link read the sum of both; then only the sum reads the last link.
        let both = self.add(before, before);
        call!(LLVMReplaceAllUsesWith(last.0, both.0));
        call!(LLVMSetOperand(both.0, 0, last.0));
    }
}

impl Value {
    /// Whether the value has exactly one use.
    fn is_used_once(self) -> bool {
        let first = call!(LLVMGetFirstUse(self.0));
        !first.is_null() && call!(LLVMGetNextUse(first)).is_null()
    }
}
