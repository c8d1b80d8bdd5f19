//! Emits loop predication of bounds checks: accesses that [`opt::checks`](crate::opt::checks) found to step
//! by constants are checked for as many iterations as they stay in bounds.
//!
//! Invariants: where an iteration may differ, or the loop is entered, the next comparison is made. Bounds are
//! those of live memory, which stays as long as native code runs.

use super::Codegen;
use super::load_store::Addresses;
use crate::llvm::Value;
use crate::wir;
use crate::wir::BlockId;
use crate::wir::checks::{FAR, PredicatedLoop, Predication, Reach, Widened};
use std::collections::HashMap;
use std::rc::Rc;

/// For each loop header, the accesses are in bounds while more fuel is left than this.
pub(super) type InBoundsUntil = HashMap<BlockId, Value>;

impl Codegen<'_> {
    /// The predicated loop whose header is a block.
    fn predicated(&self, id: BlockId) -> Option<Rc<PredicatedLoop>> {
        match &self.job.func.blocks[id.0 as usize].checks.as_ref()?.predication {
            Predication::Loop(header) => Some(header.clone()),
            Predication::None | Predication::TooFewSteps => None,
        }
    }

    /// At the start of a loop header, merges how long its accesses stay in bounds from the predecessors.
    pub(super) fn begin_predicated_loop(&mut self, id: BlockId) {
        let checks = self.job.func.blocks[id.0 as usize].checks.as_ref();
        if checks.is_some_and(|checks| matches!(checks.predication, Predication::TooFewSteps)) {
            self.remark_block(id, false);
            self.missed("loop-predication", "too few addresses of the loop's first block step by a constant");
        }
        if self.predicated(id).is_some() {
            let until = self.b.phi(self.int(64));
            self.flow
                .phis
                .insert((id.0, self.job.func.blocks[id.0 as usize].phis.len()), super::Repr::Scalar(until));
            self.passes.in_bounds_until.insert(id, until);
        }
    }

    /// The value of `until` on the edge to a loop header, if the header needs it.
    pub(super) fn predicated_until(&mut self, to: BlockId, place: usize) -> Option<Value> {
        let turns = self.predicated(to)?;
        let again = turns.again.get(place).copied().unwrap_or(false);
        let until = self.passes.in_bounds_until.get(&to).copied().filter(|_| again);
        // No more fuel than this is ever left, so the next iteration checks.
        Some(until.unwrap_or_else(|| self.c64(i64::MAX as u64)))
    }

    /// The predicated loop whose header is the block that is emitted.
    pub(super) fn predicated_loop(&mut self, node: &wir::Block) -> Option<(BlockId, Rc<PredicatedLoop>)> {
        let id = self.position.node?;
        let mine = std::ptr::eq(&self.job.func.blocks[id.0 as usize], node);
        let once =
            self.position.versioned_block.is_none() && self.position.prefix.is_none() && self.position.full;
        if !mine || !once || !self.passes.in_bounds_until.contains_key(&id) {
            return None;
        }
        Some((id, self.predicated(id)?))
    }

    /// The condition that this iteration needs no check, and the fuel limit it was compared with.
    pub(super) fn is_before(&mut self, id: BlockId, turns: &PredicatedLoop) -> (Value, Value) {
        let until = self.passes.in_bounds_until[&id];
        let left = self.scalar(turns.left);
        (self.b.icmp(crate::llvm::IntPred::Sgt, left, until), until)
    }

    /// Records how long the accesses stay in bounds; the value merges the paths with and without a check.
    pub(super) fn set_predicated(&mut self, id: BlockId, until: Value) {
        self.passes.in_bounds_until.insert(id, until);
    }

    /// Computes the fuel down to which accesses that are in bounds now stay in bounds. Later iterations
    /// compare their fuel with it.
    pub(super) fn fit_until(
        &mut self,
        turns: &PredicatedLoop,
        groups: &[(wir::Value, Reach, &Addresses)],
    ) -> Option<Value> {
        let mut most = self.c64(FAR - 1);
        let mut numbers: Vec<Widened> = Vec::new();
        for (name, reach, addresses) in groups {
            let step = turns.steps.get(name)?;
            for number in &step.widened {
                if !numbers.contains(number) {
                    numbers.push(*number);
                }
            }
            if step.by == 0 {
                continue;
            }
            let span = self.window_span(*reach, addresses, true);
            let (bias, limit) = self.bounds(*reach, span)?;
            let bias = self.b.add(bias, self.c64(reach.lo as u64));
            let low = |lanes: &[i32]| i64::from(lanes.iter().min().copied().unwrap_or(0)) as u64;
            let firsts = match addresses {
                Addresses::Same(address) => vec![*address],
                Addresses::Affine(bases, pattern) => {
                    bases.iter().map(|base| self.b.add(*base, self.c64(low(&pattern.lanes)))).collect()
                }
                Addresses::Rows(rows, pattern) => {
                    <[Value; 2]>::from(self.row_ends(rows.scalars, pattern)).to_vec()
                }
                Addresses::ScaledIndex(_) | Addresses::Each(_) => return None,
            };
            for first in firsts {
                let from = self.b.add(first, bias);
                let room = match step.by > 0 {
                    true => self.b.sub(self.b.sub(limit, self.c64(1)), from),
                    false => from,
                };
                most = self.least(most, room, step.by);
            }
        }
        for Widened { name, by, signed } in numbers {
            let long = self.int(64);
            let value = self.scalar(name);
            let (value, low, high) = match signed {
                true => (self.b.sext(value, long), i64::from(i32::MIN), i64::from(i32::MAX)),
                false => (self.b.zext(value, long), 0, i64::from(u32::MAX)),
            };
            let room = match by > 0 {
                true => self.b.sub(self.c64(high as u64), value),
                false => self.b.sub(value, self.c64(low as u64)),
            };
            most = self.least(most, room, by);
        }
        let left = self.scalar(turns.left);
        let more = self.b.mul(most, self.c64(turns.price));
        Some(self.b.sub(self.b.sub(left, more), self.c64(1)))
    }

    /// The smaller of `most` iterations and the iterations in which `room` bytes are stepped through.
    fn least(&self, most: Value, room: Value, by: i64) -> Value {
        let by = by.unsigned_abs();
        let turns = match by.is_power_of_two() {
            true => self.b.lshr(room, self.c64(u64::from(by.trailing_zeros()))),
            false => self.b.udiv(room, self.c64(by)),
        };
        self.b.intrinsic("llvm.umin", &[self.int(64)], &[most, turns])
    }
}
