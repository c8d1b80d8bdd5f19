//! Gather coalescing: several loads of consecutive words at addresses that only the lanes know, as in rows of
//! a sparse matrix, lists and trees.
//!
//! [`interleaved`](super::interleaved) handles addresses at constant distances whose checks can be hoisted to
//! the start of a block. For other addresses each load would check every lane and gather one word each.
//! Instead, the first of such loads checks all of them together and gathers the consecutive words of a lane
//! at once; the others take their words from there. Where a check fails, each load is executed on its own:
//! lanes may access different allocations.
//!
//! Invariant: nothing between the first load and the last can change what they read, and nothing is loaded
//! that was not checked.

use super::load_store::Addresses;
use super::{Codegen, Repr};
use crate::llvm::{Likely, Value};
use crate::tuning::{WIDE_GATHER_MAX_BITS, WIDE_GATHER_MIN_BITS};
use crate::wir;
use crate::wir::access::{Access, PerLane};
use crate::wir::checks::Reach;
use crate::wir::{Op, OpKind, Shape, Site};
use ptx::ir::{Addr, Base, Inst, Src};
use ptx::isa::{Op as O, Sem, Space};
use std::collections::HashMap;
use std::rc::Rc;

/// A load of a block: its index in the block, and the offset of its element.
#[derive(Clone, Copy)]
struct Member {
    at: usize,
    offset: i64,
    site: Site,
}

/// Loads by the same lanes, relative to one register.
struct Family {
    uses: [wir::Value; 2],
    access: Access,
    members: Vec<Member>,
}

/// Loads of consecutive elements in ascending order. Their number is a power of two.
struct Bunch {
    access: Access,
    members: Vec<Member>,
}

/// The result of a coalesced gather: the condition that it was in bounds, and a vector for each member and
/// chunk.
type Loaded = (Value, Vec<Vec<Value>>);

/// The coalesced gathers of a block.
#[derive(Default)]
pub(super) struct CoalescedGathers {
    /// For the index of each load, its gather and its index among the members.
    places: HashMap<usize, (Rc<Bunch>, usize)>,
    /// For the index of the first member of a gather, the result; `None`: it cannot be coalesced.
    loaded: HashMap<usize, Option<Loaded>>,
}

impl Codegen<'_> {
    /// Finds groups among the loads of a block that were not checked at its start.
    pub(super) fn find_coalesced_gathers(
        &self,
        node: &wir::Block,
        foreseen: impl Fn(usize) -> bool,
    ) -> CoalescedGathers {
        let mut bunches = CoalescedGathers::default();
        if self.job.program.address_size != ptx::check::module::AddressSize::Bits64 {
            return bunches;
        }
        let mut families: Vec<Family> = Vec::new();
        let mut ended: Vec<Family> = Vec::new();
        for (at, op) in node.ops.iter().enumerate() {
            let OpKind::Inst(site) = op.kind else { continue };
            let Some(inst) = site.inst(self.job.function) else { continue };
            match (inst.op, inst.mods.sem()) {
                (O::Ld | O::LdNc | O::Ldu, Sem::Weak) => {
                    let Some((access, offset)) = self.coalesced_word(inst, op).filter(|_| !foreseen(at))
                    else {
                        continue;
                    };
                    let member = Member { at, offset, site };
                    let uses = [op.uses[0], op.uses[1]];
                    let same = |family: &&mut Family| {
                        let (a, b) = (family.access, access);
                        family.uses == uses && (a.bits, a.space, a.signed) == (b.bits, b.space, b.signed)
                    };
                    match families.iter_mut().find(same) {
                        Some(family) => family.members.push(member),
                        None => families.push(Family { uses, access, members: vec![member] }),
                    }
                }
                _ if crate::effects::is_pure(inst) => {}
                _ => ended.append(&mut families),
            }
        }
        ended.append(&mut families);
        for mut family in ended {
            family.members.sort_by_key(|member| (member.offset, member.at));
            // If an element is loaded twice, the second load is not a member.
            family.members.dedup_by_key(|member| member.offset);
            let bytes = i64::from(family.access.bytes());
            let most = (WIDE_GATHER_MAX_BITS / family.access.bits) as usize;
            let mut rest = family.members.as_slice();
            while let Some(first) = rest.first() {
                let next = |(at, member): (usize, &Member)| member.offset == first.offset + at as i64 * bytes;
                let run = rest.iter().enumerate().take_while(|(at, member)| next((*at, member))).count();
                let count = 1 << run.min(most).ilog2();
                let (members, others) = rest.split_at(count);
                if count > 1 && count as u32 * family.access.bits >= WIDE_GATHER_MIN_BITS {
                    let access = Access { count: count as u32, ..family.access };
                    let bunch = Rc::new(Bunch { access, members: members.to_vec() });
                    for (index, member) in members.iter().enumerate() {
                        bunches.places.insert(member.at, (bunch.clone(), index));
                    }
                }
                rest = others;
            }
        }
        bunches
    }

    /// The access of a load of one word at an arbitrary address, and its offset from the register.
    fn coalesced_word(&self, inst: &Inst, op: &Op) -> Option<(Access, i64)> {
        let access = self.access_of(inst, false)?;
        let Src::Addr(Addr { base: Base::Reg(_), index: None, offset }) = inst.srcs.first()? else {
            return None;
        };
        let name = op.uses.get(1)?;
        let plain = inst.guard.is_none()
            && *self.shape(*name) == Shape::Varying
            && self.analyses.addresses.provenance(*name).is_none()
            && access.count == 1
            && matches!(access.space, Space::Global | Space::Generic)
            && matches!(op.defs.as_slice(), [def] if *self.shape(*def) == Shape::Varying);
        plain.then_some((access, *offset))
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
            bunches.loaded.entry(first).or_insert_with(|| self.load_coalesced(&bunch, &node.ops[at]));
        let Some((fits, vectors)) = loaded else { return };
        self.gathered = Some((*fits, vectors[index].clone()));
    }

    /// Emits the gather where `op` stands, one of the members.
    fn load_coalesced(&mut self, bunch: &Bunch, op: &Op) -> Option<Loaded> {
        let mut access = bunch.access;
        let first = bunch.members[0];
        let addresses = self.addresses_from(op.uses[1], first.offset, &mut access)?;
        // The indices may be consecutive at run time ([`contiguity_test`](super::contiguity_test)).
        let apart = match &addresses {
            Addresses::Each(_) => true,
            Addresses::ScaledIndex(spread) => spread.scale != u64::from(access.bits / 8),
            Addresses::Same(_) | Addresses::Affine(..) | Addresses::Rows(..) => false,
        };
        if !apart || !matches!(access.space, Space::Global | Space::Generic) {
            return None;
        }
        let (mask, whole) = (self.scalar(op.uses[0]), self.whole(op));
        let reach = Reach {
            site: first.site,
            space: access.space,
            write: false,
            sum: false,
            lo: 0,
            hi: access.bytes().into(),
            align: access.bits / 8,
        };
        let fits = self.fits(reach, &addresses, mask, whole)?;
        self.remark_op(op);
        let words = bunch.members.len();
        self.applied("coalesce-gathers", format!("{words} consecutive words of each lane are one gather"));
        let places = self.placed(access, &addresses)?;
        let plan = self.plan_of(first.site, op)?;
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
        let Some((fits, vectors)) = self.gathered.take() else { return load(self) };
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
        let Some(Repr::Chunks(own)) = self.reps[def.0 as usize].clone() else {
            unreachable!("ptxvm bug: a load of two shapes")
        };
        let there = self.b.current_block();
        self.b.br(done);
        self.b.position_at_end(done);
        let merge = |(taken, own): (&Value, &Value)| {
            let phi = self.b.phi(taken.ty());
            self.b.add_incoming(phi, *taken, here);
            self.b.add_incoming(phi, *own, there);
            phi
        };
        self.reps[def.0 as usize] = Some(Repr::Chunks(taken.iter().zip(&own).map(merge).collect()));
        true
    }
}
