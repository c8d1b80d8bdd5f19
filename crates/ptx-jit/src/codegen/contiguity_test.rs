//! Run-time contiguity test: one vector load if the lanes' indices are consecutive, else a gather.
//!
//! Some addresses are not known to be consecutive but often are: indices that are clamped at an edge, that
//! wrap around, or that come from a sorted table. A gather costs a load for each lane. So the indices of the
//! active lanes are compared with consecutive ones, chunk by chunk, and a chunk that matches is one load.
//!
//! Invariant: a vector is loaded only where each lane's address, which has been checked, is the one the
//! vector has for that lane.

use super::Codegen;
use super::load_store::Addresses;
use super::mask::Mask;
use crate::llvm::{IntPred, Likely, Value};
use crate::wir::access::{PerLane, Plan};

impl Codegen<'_> {
    /// Loads with one vector load for each chunk whose indices are found to be consecutive, and otherwise as
    /// `apart` says. Returns for each chunk the vector of each element.
    pub(super) fn load_contiguous_or(
        &self,
        plan: &Plan,
        apart: &[PerLane],
        places: &Addresses,
        mask: Mask,
    ) -> Vec<Vec<Value>> {
        let Addresses::ScaledIndex(spread) = places else { unreachable!("ptxvm bug: no indices to test") };
        let word = self.int(32);
        let steps: Vec<u64> = (0..u64::from(self.width)).collect();
        let steps = self.b.const_ints(word, &steps);
        let mut firsts = Vec::new();
        let mut odd: Option<Value> = None;
        let mut wraps = self.b.const_int(self.int(1), 0);
        for (c, index) in (0..).zip(&spread.index) {
            let first = self.b.extract(*index, 0);
            let row = self.b.add(self.b.splat(first, self.width), steps);
            let mut differ = self.b.icmp(IntPred::Ne, *index, row);
            if let Some(lanes) = self.lanes(plan, mask, c) {
                differ = self.b.and(differ, lanes);
            }
            odd = Some(odd.map_or(differ, |odd| self.b.or(odd, differ)));
            // Consecutive 32-bit indices may still wrap around within the chunk.
            let last = self.b.add(first, self.c32(self.width - 1));
            let less = if spread.signed { IntPred::Slt } else { IntPred::Ult };
            wraps = self.b.or(wraps, self.b.icmp(less, last, first));
            firsts.push(first);
        }
        let odd = self.any(odd.expect("there are chunks"));
        let (rows, gather, on) = (
            self.b.append_block(self.function, "row"),
            self.b.append_block(self.function, "apart"),
            self.b.append_block(self.function, "loaded"),
        );
        self.b.cond_br(self.b.or(odd, wraps), gather, rows, Likely::Unknown);
        self.b.position_at_end(rows);
        let mut near = Vec::new();
        for (c, first) in firsts.into_iter().enumerate() {
            let base = self.one_of(spread, first);
            self.fetch(base, c as u32, plan.access);
            near.push(self.run(base, c as u32, plan, mask));
        }
        let near_end = self.b.current_block();
        self.b.br(on);
        self.b.position_at_end(gather);
        let far: Vec<Vec<Value>> =
            (0..).zip(apart).map(|(c, how)| self.load_per_lane(plan, how, places, c, mask)).collect();
        let far_end = self.b.current_block();
        self.b.br(on);
        self.b.position_at_end(on);
        let merge = |(near, far): (&Value, &Value)| {
            let phi = self.b.phi(near.ty());
            self.b.add_incoming(phi, *near, near_end);
            self.b.add_incoming(phi, *far, far_end);
            phi
        };
        near.iter().zip(&far).map(|(near, far)| near.iter().zip(far).map(merge).collect()).collect()
    }
}
