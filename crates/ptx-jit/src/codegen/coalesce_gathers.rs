//! Emits coalesced gathers: loads of consecutive words at addresses that only the lanes know, which
//! [`mem::group`](crate::mem::group) found.
//!
//! The first of such loads checks all of them together and gathers the consecutive words of a lane at once;
//! the others take their words from there. Where the check fails, each load is executed on its own: lanes may
//! access different allocations.
//!
//! Invariant: nothing is loaded that was not checked.

use super::{Codegen, Repr};
use crate::llvm::{Likely, Value};
use crate::wir;
use crate::wir::access::{Access, PerLane};
use crate::wir::checks::Reach;
use crate::wir::group::{Group, GroupKind};
use crate::wir::{Op, OpKind};
use std::collections::HashMap;
use std::rc::Rc;

/// The result of a coalesced gather: the condition that it was in bounds, and a vector for each member and
/// chunk.
type Loaded = (Value, Vec<Vec<Value>>);

/// The coalesced gathers of a block.
#[derive(Default)]
pub(super) struct CoalescedGathers {
    /// For the index of each load, its gather and its index among the members.
    places: HashMap<usize, (Rc<Group>, usize)>,
    /// For the index of the first member of a gather, the result; `None`: it cannot be coalesced.
    loaded: HashMap<usize, Option<Loaded>>,
}

impl Codegen<'_> {
    /// The coalesced gathers of a block.
    pub(super) fn begin_gathers(&self, node: &wir::Block) -> CoalescedGathers {
        let mut bunches = CoalescedGathers::default();
        for bunch in node.groups.iter().filter(|group| group.kind == GroupKind::Gather) {
            for (index, member) in bunch.members.iter().enumerate() {
                bunches.places.insert(member.at, (bunch.clone(), index));
            }
        }
        bunches
    }

    /// Emits the gather at the first load of its group, and selects the words of the load at this index.
    pub(super) fn coalesced_gather_at(
        &mut self,
        node: &wir::Block,
        bunches: &mut CoalescedGathers,
        at: usize,
    ) {
        let Some((bunch, index)) = bunches.places.remove(&at) else { return };
        let first = bunch.members[0].at;
        let loaded =
            bunches.loaded.entry(first).or_insert_with(|| self.load_coalesced((node, &bunch), &node.ops[at]));
        let Some((fits, vectors)) = loaded else { return };
        self.position.gathered = Some((*fits, vectors[index].clone()));
    }

    /// Emits the gather where `op` stands, one of the members.
    fn load_coalesced(&mut self, (node, bunch): (&wir::Block, &Group), op: &Op) -> Option<Loaded> {
        let mut access = bunch.access;
        let first = bunch.members[0];
        let OpKind::Inst(site) = node.ops[first.at].kind else { return None };
        let addresses = self.addresses_from(op.uses[1], first.offset, &mut access)?;
        let (mask, whole) = (self.mask(op.uses[0]), self.whole(op));
        let reach = Reach {
            site,
            space: access.space,
            write: false,
            postponed: false,
            lo: 0,
            hi: access.bytes().into(),
            align: access.bits / 8,
        };
        let fits = self.fits(reach, &addresses, mask, whole)?;
        self.remark_op(op);
        let words = bunch.members.len();
        self.applied("coalesce-gathers", format!("{words} consecutive words of each lane are one gather"));
        let places = self.placed(access, &addresses)?;
        let plan = self.plan_of(site, op)?;
        let (fast, slow) = self.fork(fits);
        let on = self.b.append_block(self.function, "bunch");
        self.b.position_at_end(fast);
        let mut loaded: Vec<Vec<Value>> = vec![Vec::new(); access.count as usize];
        for c in 0..self.chunks() {
            let pointers = self.pointers(&places, c);
            let lanes = self.lanes(&plan, mask, c);
            let vectors = self.gathered(&PerLane::Wide, pointers, lanes, access, reach.align);
            loaded.iter_mut().zip(vectors).for_each(|(list, vector)| list.push(vector));
        }
        let fast_end = self.b.current_block();
        self.b.br(on);
        self.b.position_at_end(slow);
        // The renewed bounds serve the next execution; in this one each load is executed on its own.
        self.renew_cached_bounds(reach, &addresses, mask, whole);
        let slow_end = self.b.current_block();
        self.b.br(on);
        self.b.position_at_end(on);
        let merge = |value: &Value, other: Value| {
            let phi = self.b.phi(value.ty());
            self.b.add_incoming(phi, *value, fast_end);
            self.b.add_incoming(phi, other, slow_end);
            phi
        };
        let one = |flag| self.b.const_int(self.int(1), flag);
        let fits = merge(&one(1), one(0));
        let vectors =
            loaded.iter().map(|list| list.iter().map(|v| merge(v, self.b.zero(v.ty()))).collect()).collect();
        Some((fits, vectors))
    }

    /// Uses the words of the coalesced gather if it was in bounds, and otherwise executes the load on its
    /// own.
    pub(super) fn take_or(&mut self, access: Access, op: &Op, load: impl FnOnce(&mut Self) -> bool) -> bool {
        let Some((fits, vectors)) = self.position.gathered.take() else { return load(self) };
        let def = op.defs[0];
        let taken: Vec<Value> = vectors.into_iter().map(|vector| self.extend(vector, access, def)).collect();
        let (here, alone, done) = (
            self.b.current_block(),
            self.b.append_block(self.function, "alone"),
            self.b.append_block(self.function, "taken"),
        );
        self.b.cond_br(fits, done, alone, Likely::Yes);
        self.b.position_at_end(alone);
        if !load(self) {
            // The load is executed on its own in another LLVM block.
            let there = self.b.current_block();
            self.b.position_at_end(done);
            self.b.br(alone);
            self.b.position_at_end(there);
            return false;
        }
        let Some(Repr::Chunks(own)) = self.values.get(def).cloned() else {
            unreachable!("ptxvm bug: a load of two shapes")
        };
        let there = self.b.current_block();
        self.b.br(done);
        self.b.position_at_end(done);
        let merge = |(taken, own): (&Value, &Value)| self.phi_of([(*taken, here), (*own, there)]);
        self.values.define(def, Repr::Chunks(taken.iter().zip(&own).map(merge).collect()));
        true
    }
}
