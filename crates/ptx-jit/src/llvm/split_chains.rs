//! Long sums of dot products as two sums side by side.
//!
//! A dot product waits for the sum that it adds to, four or five cycles of the processor, and there are units for two at a time: a chain
//! of them takes as long as its links follow each other. Half of the links add to a sum of their own, and one addition joins both.
//!
//! Invariant: sums of integers wrap, so how they are taken apart does not change them; only links that nothing else reads are changed.
//! What it does not do: chains through anything but the sum itself, as a selection or a turn of a loop.

use crate::tuning::SPLIT_CHAIN_MIN_LINKS;
use std::collections::{HashMap, HashSet};

use super::api::call;
use super::builder::Builder;
use super::module::Value;

impl Builder<'_> {
    /// The intrinsic of that name: `sum` and the products of four unsigned and four signed bytes, in each element.
    pub(crate) fn dot(&self, name: &str, sum: Value, unsigned: Value, signed: Value) -> Value {
        let dot = self.intrinsic(name, &[], &[sum, unsigned, signed]);
        self.dots.borrow_mut().push(dot);
        dot
    }

    /// Takes the long chains of [`Builder::dot`] apart, at the end of a function, of which no block lacks its end.
    pub(crate) fn split_long_chains(&self) {
        let dots = self.dots.take();
        let all: HashSet<Value> = dots.iter().copied().collect();
        let mut next: HashMap<Value, Value> = HashMap::new();
        let mut follows: Vec<bool> = Vec::with_capacity(dots.len());
        for dot in &dots {
            let sum = dot.operand(0);
            let is_link = sum.is_used_once() && all.contains(&sum);
            follows.push(is_link);
            if is_link {
                next.insert(sum, *dot);
            }
        }
        for (first, follows) in dots.iter().zip(follows) {
            if follows {
                continue;
            }
            let chain: Vec<Value> =
                std::iter::successors(Some(*first), |link| next.get(link).copied()).collect();
            if chain.len() >= SPLIT_CHAIN_MIN_LINKS {
                self.part(&chain);
            }
        }
    }

    fn part(&self, chain: &[Value]) {
        let mut before = self.zero(chain[0].ty());
        for pair in chain.windows(2) {
            // What this link's successor added to is this link's sum; now it is the sum before.
            call!(LLVMSetOperand(pair[1].0, 0, before.0));
            before = pair[0];
        }
        let last = chain[chain.len() - 1];
        let end = call!(LLVMGetNextInstruction(last.0));
        call!(LLVMPositionBuilderBefore(self.raw, end));
        // Whoever reads the last link reads the sum of both; then the sum alone reads the last link.
        let both = self.add(before, before);
        call!(LLVMReplaceAllUsesWith(last.0, both.0));
        call!(LLVMSetOperand(both.0, 0, last.0));
    }
}

impl Value {
    /// Whether exactly one operand of one instruction is this.
    fn is_used_once(self) -> bool {
        let first = call!(LLVMGetFirstUse(self.0));
        !first.is_null() && call!(LLVMGetNextUse(first)).is_null()
    }
}
