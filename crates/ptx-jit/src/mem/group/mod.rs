//! Groups accesses of a block that are close together, so that a few wide accesses serve all of them.
//!
//! **Interleaved groups**: each lane accesses consecutive words that are far from its neighbours' words, as
//! in arrays of structures or points of several coordinates. One access of the program takes one word of each
//! lane's record, at the cost of an access for each lane. As a group, a lane's consecutive words are one
//! access, and shuffles distribute them.
//!
//! **Windows**: contiguous vectors that start a few elements apart, as the neighbours of a point in a grid or
//! a picture. Most start within a cache line and so cost two accesses. The aligned vectors that cover all of
//! them are loaded once, and each access is a shuffle of two; where 512-bit operations are double pumped,
//! this is done for every second family of vectors. Loads whose lanes are close but not contiguous are
//! [`covering`], and loads at addresses that only the lanes know are [`gathers`].
//!
//! Invariants: nothing between the members of a group could observe that they are done together. Apart from
//! gathers, all lanes make every member, and the members were checked where the block begins. Records of two
//! lanes that are written do not overlap. Covering vectors do not extend beyond the first and the last vector
//! of the program.

pub(crate) mod covering;
mod gathers;

use super::Vectors;
use super::classify::access_of;
use super::plan::Planner;
use super::transposed::is_consecutive;
use crate::analysis::Analyses;
use crate::analysis::address::Provenance;
use crate::effects;
use crate::target::Level;
use crate::tuning::INTERLEAVED_GROUP_MIN_ROWS;
use crate::wir::access::Access;
use crate::wir::checks::BlockChecks;
use crate::wir::group::{Group, GroupKind, Member};
use crate::wir::{Affine, Block, Op, OpKind, Shape, Value};
use ptx::check::module::AddressSize;
use ptx::ir::{Addr, Base, Inst, Src};
use ptx::isa::{Op as O, Sem, Space};
use std::collections::HashSet;

/// What accesses are grouped by.
#[derive(Clone, Copy)]
pub(crate) struct Grouping<'a> {
    pub(crate) planner: Planner<'a>,
    pub(crate) analyses: &'a Analyses,
}

/// Accesses of a block, relative to one register, that may be grouped.
struct Family {
    base: Value,
    access: Access,
    members: Vec<Member>,
}

impl Grouping<'_> {
    /// The groups of every block.
    pub(crate) fn blocks(self) -> Vec<Vec<Group>> {
        self.planner.func.blocks.iter().map(|block| self.block(block)).collect()
    }

    fn block(self, block: &Block) -> Vec<Group> {
        if self.planner.program.address_size != AddressSize::Bits64 {
            return Vec::new();
        }
        let none = BlockChecks::default();
        let checks = block.checks.as_deref().unwrap_or(&none);
        let mut groups = if block.full { self.at_constant_distances(block, checks) } else { Vec::new() };
        groups.extend(self.gathers(block, checks));
        groups
    }

    /// Groups of accesses whose lanes are at constant distances.
    fn at_constant_distances(self, block: &Block, checks: &BlockChecks) -> Vec<Group> {
        let late = |(at, op): (usize, &Op)| if checks.is_early(at) { Vec::new() } else { op.defs.clone() };
        let late: HashSet<Value> = block.ops.iter().enumerate().flat_map(late).collect();
        let mut ended: Vec<Family> = Vec::new();
        let mut loads: Vec<Family> = Vec::new();
        let mut stores: Vec<Family> = Vec::new();
        for (at, op) in block.ops.iter().enumerate() {
            let OpKind::Inst(site) = op.kind else {
                // A side exit here resumes after the stores before it, so these must be complete.
                if matches!(op.kind, OpKind::Guard(..)) && !checks.is_done(at) {
                    ended.append(&mut stores);
                }
                continue;
            };
            let Some(inst) = site.inst(self.planner.function) else { continue };
            let member = if checks.fits(at) { self.member(inst, op, &late) } else { None };
            match (inst.op, inst.mods.sem()) {
                // Loads of variables that are never written.
                (O::Ld, Sem::Weak) if matches!(inst.mods.space(), Space::Param | Space::Const) => {}
                (O::Ld | O::LdNc | O::Ldu, Sem::Weak) => {
                    ended.append(&mut stores);
                    if let Some((access, offset)) = member {
                        join(&mut loads, op.uses[1], access, Member { at, offset });
                    }
                }
                (O::St, Sem::Weak) => {
                    ended.append(&mut loads);
                    let same = |family: &Family| {
                        let Some((access, offset)) = member else { return false };
                        let new = family.members.iter().all(|have| have.offset != offset);
                        family.base == op.uses[1]
                            && (family.access.bits, family.access.space) == (access.bits, access.space)
                            && new
                    };
                    if !stores.iter().all(same) {
                        ended.append(&mut stores);
                    }
                    if let Some((access, offset)) = member {
                        join(&mut stores, op.uses[1], access, Member { at, offset });
                    }
                }
                _ if effects::is_pure(inst) => {}
                _ => {
                    ended.append(&mut loads);
                    ended.append(&mut stores);
                }
            }
        }
        ended.append(&mut loads);
        ended.append(&mut stores);
        let mut groups: Vec<Group> = ended.into_iter().flat_map(|family| self.groups_of(family)).collect();
        if self.planner.target.tuning().double_pumped_512 {
            let windows = groups.iter_mut().filter(|group| group.kind == GroupKind::Window);
            windows.skip(1).step_by(2).for_each(|group| group.kind = GroupKind::SeparateWindow);
        }
        groups
    }

    /// The access of an instruction that loads or stores one word for each lane, and its offset from the
    /// register. `late`: values that are not known where the checks are made.
    fn member(self, inst: &Inst, op: &Op, late: &HashSet<Value>) -> Option<(Access, i64)> {
        let write = inst.op == O::St;
        let access = access_of(self.planner.program, inst, write)?;
        let Src::Addr(Addr { base: Base::Reg(_), index: None, offset }) = inst.srcs.first()? else {
            return None;
        };
        let address = *op.uses.get(1)?;
        let pattern = self.pattern(address)?;
        let plain = inst.guard.is_none()
            && !late.contains(&op.uses[0])
            && op.access.as_ref().is_some_and(|plan| plan.active.whole)
            && !matches!(self.analyses.addresses.provenance(address), Some(Provenance::Local(..)))
            && access.count == 1
            && matches!(access.bits, 32 | 64)
            && matches!(access.space, Space::Global | Space::Shared | Space::Generic)
            && op.defs.len() == usize::from(!write);
        let vectors = self.planner.vectors();
        let far = || pattern.rows.is_empty() && vectors.is_apart(pattern, access);
        (plain && (vectors.is_row(pattern, access) || vectors.lies_near(pattern, access) || far()))
            .then_some((access, *offset))
    }

    fn pattern(&self, value: Value) -> Option<&Affine> {
        match &self.planner.func.shapes[value.0 as usize] {
            Shape::Affine(pattern) => Some(pattern),
            Shape::Bottom | Shape::Uniform(_) | Shape::Varying => None,
        }
    }

    /// The groups of a family: runs of consecutive elements, split into powers of two. Remaining accesses
    /// stay single.
    fn groups_of(self, mut family: Family) -> Vec<Group> {
        let Family { base, access, .. } = family;
        let bytes = i64::from(access.bytes());
        family.members.sort_by_key(|member| (member.offset, member.at));
        // If an element is loaded twice, the second load is not a member.
        family.members.dedup_by_key(|member| member.offset);
        let (Some(first), Some(last)) = (family.members.first(), family.members.last()) else {
            return Vec::new();
        };
        let Some(pattern) = self.pattern(base) else { return Vec::new() };
        let vectors = self.planner.vectors();
        let group =
            |kind: GroupKind, members: &[Member]| Group { kind, base, access, members: members.to_vec() };
        if vectors.is_row(pattern, access) {
            let runs = vectors.windows(&family.members, access);
            return runs.into_iter().map(|members| group(GroupKind::Window, members)).collect();
        }
        if vectors.lies_near(pattern, access) {
            let runs = vectors.covering_of(&family.members, pattern, access);
            return runs.into_iter().map(|members| group(GroupKind::Covering, members)).collect();
        }
        let span = last.offset - first.offset + bytes;
        if access.write && !is_disjoint(pattern, span) {
            return Vec::new();
        }
        let mut groups = Vec::new();
        let mut rest = family.members.as_slice();
        while !rest.is_empty() {
            let (members, others) = rest.split_at(run(rest, bytes, vectors.width as usize));
            if members.len() > 1 {
                groups.push(group(GroupKind::Interleaved, members));
            }
            rest = others;
        }
        groups
    }
}

impl Vectors {
    /// Whether the lanes of every chunk are consecutive, and a chunk's vector is as long as a cache line.
    fn is_row(self, pattern: &Affine, access: Access) -> bool {
        self.level == Level::Avx512
            && access.bits == 32
            && !access.write
            && !pattern.splits(self.width as usize)
            && (0..self.chunks()).all(|c| is_consecutive(&self.relative(pattern, c), access))
    }

    /// Whether the lanes of every chunk are too far apart for a cheaper form.
    fn is_apart(self, pattern: &Affine, access: Access) -> bool {
        let near = (0..self.chunks()).any(|c| {
            let lanes = self.relative(pattern, c);
            is_consecutive(&lanes, access)
                || lanes.iter().all(|lane| *lane == 0)
                || self.cluster(&lanes, access, true).is_some()
        });
        !near && self.tiles(pattern, access, true).is_empty()
    }

    /// The loads of a family that start within one vector's length from the first, where these are enough.
    fn windows(self, members: &[Member], access: Access) -> Vec<&[Member]> {
        let reach = i64::from(self.width * access.bytes());
        let mut windows = Vec::new();
        let mut rest = members;
        while let Some(first) = rest.first() {
            let near = rest.iter().take_while(|member| member.offset - first.offset <= reach).count();
            let (members, others) = rest.split_at(near);
            if near >= INTERLEAVED_GROUP_MIN_ROWS {
                windows.push(members);
            }
            rest = others;
        }
        windows
    }
}

/// The number of leading members whose elements of so many bytes follow each other: a power of two, and at
/// most so many. The members are not empty.
fn run(members: &[Member], bytes: i64, most: usize) -> usize {
    let follows = |(at, member): (usize, &Member)| member.offset == members[0].offset + at as i64 * bytes;
    let run = members.iter().enumerate().take_while(|(at, member)| follows((*at, member))).count();
    1 << run.min(most).ilog2()
}

/// Whether the records of different lanes do not overlap; each has so many bytes.
fn is_disjoint(pattern: &Affine, span: i64) -> bool {
    if pattern.by_chunk {
        // The distances between chunks are not known.
        return false;
    }
    let mut sorted: Vec<i64> = pattern.lanes.iter().copied().map(i64::from).collect();
    sorted.sort_unstable();
    sorted.windows(2).all(|pair| pair[1] - pair[0] >= span)
}

/// Adds an access to the family of its register.
fn join(families: &mut Vec<Family>, base: Value, access: Access, member: Member) {
    let same = |family: &&mut Family| {
        family.base == base && (family.access.bits, family.access.space) == (access.bits, access.space)
    };
    match families.iter_mut().find(same) {
        Some(family) => family.members.push(member),
        None => families.push(Family { base, access, members: vec![member] }),
    }
}
