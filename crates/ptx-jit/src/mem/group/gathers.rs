//! Gather coalescing: several loads of consecutive words at addresses that only the lanes know, as in rows of
//! a sparse matrix, lists and trees.
//!
//! The groups of the parent module have addresses at constant distances, and their checks are made where the
//! block begins. For other addresses each load would check every lane and gather one word each. Instead, the
//! first of such loads checks all of them together and gathers the consecutive words of a lane at once; the
//! others take their words from there. Where a check fails, each load is executed on its own: lanes may
//! access different allocations.
//!
//! Invariant: nothing between the first load and the last can change what they read.

use super::{Family, Grouping, run};
use crate::effects;
use crate::mem::classify::{Classes, access_of};
use crate::tuning::{WIDE_GATHER_MAX_BITS, WIDE_GATHER_MIN_BITS};
use crate::wir::access::{Access, Form};
use crate::wir::checks::BlockChecks;
use crate::wir::group::{Group, GroupKind, Member};
use crate::wir::{Block, Op, OpKind, Shape, Value};
use ptx::ir::{Addr, Base, Inst, Src};
use ptx::isa::{Op as O, Sem, Space};

/// Loads by the same lanes, relative to one register.
struct MaskedFamily {
    mask: Value,
    family: Family,
}

impl Grouping<'_> {
    /// Groups of loads that were not checked where the block begins.
    pub(super) fn gathers(self, block: &Block, checks: &BlockChecks) -> Vec<Group> {
        let mut families: Vec<MaskedFamily> = Vec::new();
        let mut ended: Vec<MaskedFamily> = Vec::new();
        for (at, op) in block.ops.iter().enumerate() {
            let OpKind::Inst(site) = op.kind else { continue };
            let Some(inst) = site.inst(self.planner.function) else { continue };
            match (inst.op, inst.mods.sem()) {
                (O::Ld | O::LdNc | O::Ldu, Sem::Weak) => {
                    let known = checks.fits(at) || checks.is_done(at);
                    let Some((access, offset)) = self.word(inst, op).filter(|_| !known) else { continue };
                    let (member, mask, base) = (Member { at, offset }, op.uses[0], op.uses[1]);
                    let same = |other: &&mut MaskedFamily| {
                        let (a, b) = (other.family.access, access);
                        (other.mask, other.family.base) == (mask, base)
                            && (a.bits, a.space, a.signed) == (b.bits, b.space, b.signed)
                    };
                    match families.iter_mut().find(same) {
                        Some(other) => other.family.members.push(member),
                        None => {
                            let family = Family { base, access, members: vec![member] };
                            families.push(MaskedFamily { mask, family });
                        }
                    }
                }
                _ if effects::is_pure(inst) => {}
                _ => ended.append(&mut families),
            }
        }
        ended.append(&mut families);
        ended
            .into_iter()
            .flat_map(|MaskedFamily { family, .. }| self.gathers_of(family, block.full))
            .collect()
    }

    /// The gathers of a family: runs of consecutive elements whose number is a power of two.
    fn gathers_of(self, mut family: Family, full: bool) -> Vec<Group> {
        let Family { base, access, .. } = family;
        family.members.sort_by_key(|member| (member.offset, member.at));
        // If an element is loaded twice, the second load is not a member.
        family.members.dedup_by_key(|member| member.offset);
        let most = (WIDE_GATHER_MAX_BITS / access.bits) as usize;
        let mut groups = Vec::new();
        let mut rest = family.members.as_slice();
        while !rest.is_empty() {
            let (members, others) = rest.split_at(run(rest, i64::from(access.bytes()), most));
            let count = members.len() as u32;
            if count > 1 && count * access.bits >= WIDE_GATHER_MIN_BITS && self.is_gather(base, access, full)
            {
                let access = Access { count, ..access };
                groups.push(Group { kind: GroupKind::Gather, base, access, members: members.to_vec() });
            }
            rest = others;
        }
        groups
    }

    /// Whether each lane has an address of its own. Indices that are as wide as an element may be consecutive
    /// at run time, which a test of each load finds.
    fn is_gather(self, base: Value, access: Access, full: bool) -> bool {
        let (func, program, width) = (self.planner.func, self.planner.program, self.planner.launch.chunk);
        let classes = Classes { func, program, addresses: &self.analyses.addresses, width };
        match classes.form(base, access, full) {
            Some((access, Form::Each)) => matches!(access.space, Space::Global | Space::Generic),
            Some((access, Form::ScaledIndex(scale))) => {
                matches!(access.space, Space::Global | Space::Generic) && scale != u64::from(access.bits / 8)
            }
            Some((_, Form::Same | Form::Affine(_) | Form::Rows(_) | Form::Local | Form::EachLocal))
            | None => false,
        }
    }

    /// The access of a load of one word at an arbitrary address, and its offset from the register.
    fn word(self, inst: &Inst, op: &Op) -> Option<(Access, i64)> {
        let access = access_of(self.planner.program, inst, false)?;
        let Src::Addr(Addr { base: Base::Reg(_), index: None, offset }) = inst.srcs.first()? else {
            return None;
        };
        let varies = |value: &Value| self.planner.func.shapes[value.0 as usize] == Shape::Varying;
        let name = op.uses.get(1)?;
        let plain = inst.guard.is_none()
            && varies(name)
            && self.analyses.addresses.provenance(*name).is_none()
            && access.count == 1
            && matches!(access.space, Space::Global | Space::Generic)
            && matches!(op.defs.as_slice(), [def] if varies(def));
        plain.then_some((access, *offset))
    }
}
