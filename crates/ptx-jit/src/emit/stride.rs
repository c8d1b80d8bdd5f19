//! Loops that take long strides: each turn steps on by a distance that only the launch knows, such as the whole grid.
//!
//! Such a loop reads a few bytes of many pages, which no prefetcher of a processor follows. What the CTA reads of a page the next CTA's
//! threads continue, and the same OS thread runs it next. So such a load also asks for what lies where the CTA's own part ends.
//!
//! Invariant: nothing but time depends on it; asking for an address that does not exist does nothing.

use super::Emit;
use super::memory::{Access, Addresses};
use crate::plan::{Class, Name, Op, OpKind};
use ptx::isa::{Op as O, Space};
use std::collections::HashMap;

/// Bytes that are fetched at once. Of the processors that this is made for; elsewhere some are asked for twice, or not.
const LINE: u32 = 64;

impl Emit<'_> {
    /// Finds the values that step on by a distance which is the same for all lanes and no constant, and what is computed of them.
    pub(super) fn find_strided(&mut self) {
        let plan = self.job.plan;
        let mut sums: HashMap<Name, [Name; 2]> = HashMap::new();
        for op in plan.nodes.iter().flat_map(|node| &node.ops) {
            if let OpKind::Inst(site) = op.kind
                && let Some(inst) = site.inst(self.job.function)
                && inst.op == O::Add
                && let ([_, a, b], [def]) = (op.uses.as_slice(), op.defs.as_slice())
            {
                sums.insert(*def, [*a, *b]);
            }
        }
        let distance = |name: &Name| *self.class(*name) == Class::Uniform(None);
        let steps = |from: &Name, phi: Name| match sums.get(from) {
            Some([a, b]) => *a == phi && distance(b) || *b == phi && distance(a),
            None => false,
        };
        let mut strided = vec![false; plan.kinds.len()];
        let mut some = false;
        for phi in plan.nodes.iter().flat_map(|node| &node.phis) {
            let is = phi.from.iter().any(|from| steps(from, phi.def));
            strided[phi.def.0 as usize] = is;
            some |= is;
        }
        let mut changed = some;
        while std::mem::take(&mut changed) {
            for op in plan.nodes.iter().flat_map(|node| &node.ops) {
                let OpKind::Inst(site) = op.kind else { continue };
                let Some(inst) = site.inst(self.job.function) else { continue };
                let index = matches!(
                    inst.op,
                    O::Add
                        | O::Sub
                        | O::Mul
                        | O::Mad
                        | O::Shl
                        | O::Cvt
                        | O::Mov
                        | O::Or
                        | O::Cvta
                        | O::CvtaTo
                );
                let ([def], true) = (op.defs.as_slice(), index) else { continue };
                let from = op.uses[1..].iter().any(|name| strided[name.0 as usize]);
                changed |= from && !std::mem::replace(&mut strided[def.0 as usize], from);
            }
        }
        self.strided = strided;
    }

    /// Asks for what follows the part of memory that the CTA reads, if the load is one of a long stride.
    pub(super) fn ask_early(&self, access: Access, places: &Addresses, op: &Op) {
        let Addresses::Pattern(bases, pattern) = places else { return };
        let strided = op.uses.get(1).is_some_and(|name| self.strided[name.0 as usize]);
        let bytes = access.bytes();
        let row = pattern.lanes.iter().enumerate().all(|(at, lane)| *lane == (at as u32 * bytes) as i32);
        if !strided || !row || pattern.by_chunk || access.space != Space::Global || !self.whole(op) {
            return;
        }
        let part = self.job.shape.ntid.iter().product::<u32>() * bytes;
        for line in (0..self.lanes * bytes).step_by(LINE as usize) {
            let place = self.b.add(bases[0], self.c64(u64::from(part + line)));
            let pointer = self.b.int_to_ptr(place);
            // To read, to be kept, data.
            let hints = [self.c32(0), self.c32(3), self.c32(1)];
            self.b.intrinsic("llvm.prefetch", &[self.b.ptr()], &[pointer, hints[0], hints[1], hints[2]]);
        }
    }
}
