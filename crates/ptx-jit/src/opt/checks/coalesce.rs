//! Coalescing of bounds checks: finds the accesses of a block that are checked at once, before the block has
//! any effect.
//!
//! Accesses whose addresses can be computed at the start of the block are grouped by the value that their
//! addresses are relative to. Each group is one comparison of its extremes, and all groups are one branch.
//!
//! Invariant: an instruction that is hoisted to the start has no effect, reads no memory that needs a check,
//! and depends only on such instructions.

use super::distance;
use super::elim::is_within;
use crate::analysis::Analyses;
use crate::analysis::distance::Distances;
use crate::effects;
use crate::isel::{self, Env};
use crate::llvm::Flush;
use crate::mem::classify::{Classes, access_of, ordered_access};
use crate::mem::plan::Planner;
use crate::wir::access::{Access, Form};
use crate::wir::checks::{Anchor, BlockChecks, Check, CheckGroup, EarlyGuard, Reach, Tested, Why};
use crate::wir::{Affine, Block, BlockId, Kind, Op, OpKind, Shape, Site, Value};
use ptx::ir::{Addr, Base, Inst, RegClass, Src};
use ptx::isa::{Op as O, Space};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};

/// What checks are coalesced by.
pub(crate) struct Coalescing<'a> {
    planner: Planner<'a>,
    analyses: &'a Analyses,
    /// Whether instructions have native code of their own.
    lowered: RefCell<HashMap<Site, bool>>,
}

impl<'a> Coalescing<'a> {
    pub(crate) fn new(planner: Planner<'a>, analyses: &'a Analyses) -> Self {
        Self { planner, analyses, lowered: RefCell::default() }
    }

    /// The checks of every block, where it has any.
    pub(crate) fn blocks(&self) -> Vec<Option<BlockChecks>> {
        let blocks = &self.planner.func.blocks;
        (0..).map(BlockId).zip(blocks).map(|(id, block)| self.block(id, block.full)).collect()
    }

    /// The checks of a block. `full`: in a version in which all lanes are active.
    pub(crate) fn block(&self, id: BlockId, full: bool) -> Option<BlockChecks> {
        let block = &self.planner.func.blocks[id.0 as usize];
        let at = block.ops.iter().position(|op| matches!(op.kind, OpKind::Ahead(_)))?;
        let late = self.late(block);
        let mut checks = BlockChecks { at, ..BlockChecks::default() };
        let mut known = Vec::new();
        for (at, op) in block.ops.iter().enumerate() {
            match &op.kind {
                OpKind::Inst(site) => {
                    let Some(inst) = site.inst(self.planner.function) else { continue };
                    if !self.is_access(inst, op) {
                        continue;
                    }
                    let name = address_register(inst, op);
                    if name.is_none_or(|name| !late.contains(&name)) {
                        known.push((at, *site, inst, op));
                        continue;
                    }
                    let access = access_of(self.planner.program, inst, true);
                    let check = match access.is_some_and(|access| self.is_within((*site, inst, op), access)) {
                        true => Check::Within { early: false },
                        false => Check::AtAccess(Why::Unknown),
                    };
                    checks.accesses.push((at, check));
                }
                OpKind::Guard(..) if op.uses.iter().all(|name| !late.contains(name)) => {
                    checks.guards.push(EarlyGuard { at, tested: Tested::Between(0, 0) });
                }
                _ => {}
            }
        }
        if known.is_empty() {
            checks.guards.clear();
            return Some(checks);
        }
        let addresses = known.iter().filter_map(|(_, _, inst, op)| address_register(inst, op));
        let guarded = checks.guards.iter().flat_map(|guard| block.ops[guard.at].uses.iter().copied());
        checks.hoisted = hoisted(block, at, addresses.chain(guarded).collect());
        // Whether memory of the kernel's own is accessed is known for each address alone.
        let apart = |inst: &&Inst| !matches!(inst.mods.space(), Space::Shared | Space::Local | Space::Param);
        let far = known.iter().filter(|(_, _, inst, _)| apart(inst));
        let names: Vec<Value> = far.filter_map(|(_, _, inst, op)| address_register(inst, op)).collect();
        let Planner { func, function, .. } = self.planner;
        let distances = Distances { func, function, def_use: &self.analyses.def_use };
        distance::merge(&mut checks, block, (distances, &self.analyses.addresses), &names);
        for (at, site, inst, op) in known {
            let BlockChecks { groups, distances, .. } = &mut checks;
            let check = self.join((groups, distances), (at, site), (inst, op), full);
            checks.accesses.push((at, check.unwrap_or_else(Check::AtAccess)));
        }
        checks.accesses.sort_unstable_by_key(|(at, _)| *at);
        let known = (&self.analyses.addresses, &self.analyses.constants);
        for group in &mut checks.groups {
            if let (Anchor::Value(name), Space::Shared | Space::Param) = (group.anchor, group.reach.space) {
                let Reach { site, space, lo, hi, align, .. } = group.reach;
                let (form, own) = (&group.form, self.planner.own(site, space));
                group.inside = self.planner.is_value_inside((name, 0), &own, form, (lo, hi), align, known);
            }
        }
        Some(checks)
    }

    /// Values of a block that cannot be computed at its start.
    fn late(&self, block: &Block) -> HashSet<Value> {
        let mut late = HashSet::new();
        for op in &block.ops {
            let early = match op.kind {
                OpKind::Inst(site) => {
                    site.inst(self.planner.function).is_some_and(|inst| self.is_early(site, inst))
                }
                _ => true,
            };
            if !early || op.uses.iter().any(|name| late.contains(name)) {
                late.extend(op.defs.iter().copied());
            }
        }
        late
    }

    /// Whether an instruction may be executed before the block's checks.
    pub(crate) fn is_early(&self, site: Site, inst: &Inst) -> bool {
        is_early(self.planner, inst, || {
            *self.lowered.borrow_mut().entry(site).or_insert_with(|| self.lowers(inst))
        })
    }

    fn lowers(&self, inst: &Inst) -> bool {
        let Planner { target, program, .. } = self.planner;
        let env = Env { target, flush: Flush::Never, sm: u32::from(program.target.sm.number) };
        isel::choose(inst, &env).is_some()
    }

    /// Whether an operation is an access that every active lane makes.
    fn is_access(&self, inst: &Inst, op: &Op) -> bool {
        let write = match inst.op {
            O::Ld | O::LdNc | O::Ldu => false,
            O::St => true,
            O::Atom | O::Red => return inst.guard.is_none() && effects::is_native_atomic(&inst.mods),
            _ => return false,
        };
        let Some(access) = ordered_access(self.planner.program, inst, write) else { return false };
        let count = access.count as usize;
        inst.guard.is_none() && !self.planner.reads_constant(inst) && (write || op.defs.len() == count)
    }

    fn is_within(&self, (site, inst, op): (Site, &Inst, &Op), access: Access) -> bool {
        let own = self.planner.own(site, access.space);
        is_within(self.planner.func, self.analyses, &own, (inst, op), access)
    }

    /// Adds an access to its group.
    ///
    /// # Errors
    /// The reason why it must be checked on its own.
    fn join(
        &self,
        (groups, distances): (&mut Vec<CheckGroup>, &BTreeMap<Value, (Value, i64)>),
        (at, site): (usize, Site),
        (inst, op): (&Inst, &Op),
        full: bool,
    ) -> Result<Check, Why> {
        let Planner { func, program, launch, layout, .. } = self.planner;
        let write = !matches!(inst.op, O::Ld | O::LdNc | O::Ldu);
        let mut access = access_of(program, inst, write).ok_or(Why::NoNativeCode)?;
        if write && matches!(access.space, Space::Const | Space::Param) {
            return Err(Why::NoNativeCode);
        }
        let (anchor, offset) = match inst.srcs.first().ok_or(Why::NoNativeCode)? {
            Src::Addr(Addr { base: Base::Reg(_), index: None, offset }) => {
                (Anchor::Value(op.uses[1]), *offset)
            }
            Src::Reg(_) => (Anchor::Value(op.uses[1]), 0),
            Src::Addr(Addr { base: Base::Var(var), index: None, offset }) => {
                (Anchor::Variable(var.0), *offset)
            }
            Src::Addr(Addr { base: Base::Frame, index: None, offset }) => (Anchor::Frame, *offset),
            _ => return Err(Why::Indexed),
        };
        let mut form = Form::Same;
        if let Anchor::Value(name) = anchor {
            if func.kinds[name.0 as usize] == Kind::Reg(RegClass::R32) && offset != 0 {
                return Err(Why::Narrow);
            }
            let addresses = &self.analyses.addresses;
            let classes = Classes { func, program, addresses, width: launch.chunk };
            (access, form) = classes.form(name, access, full).ok_or(Why::NoNativeCode)?;
        }
        let (anchor, offset) = match anchor {
            Anchor::Value(name) => match distances.get(&name) {
                Some((first, by)) => (Anchor::Value(*first), offset + by),
                None => (anchor, offset),
            },
            Anchor::Variable(_) | Anchor::Frame => (anchor, offset),
        };
        access.postponed = self.planner.postpones((inst, op), access);
        let bytes = access.bytes();
        // With larger offsets, sums of bounds could overflow. A misaligned offset is a fault of the program.
        // An offset that is a multiple of the access's size is aligned, since the anchor is a multiple of the
        // largest size in the group.
        if offset.abs() >= 1 << 20 || offset % i64::from(bytes) != 0 {
            return Err(Why::Far);
        }
        if self.is_within((site, inst, op), access) {
            return Ok(Check::Within { early: true });
        }
        match &form {
            Form::Same => {}
            Form::Affine(pattern) | Form::Rows(pattern) => {
                if !self.is_foreseeable(access.space, bytes, pattern, full) {
                    return Err(Why::Uneven);
                }
            }
            // Lanes may access several allocations, which one comparison of extremes cannot check.
            Form::ScaledIndex(_) | Form::Each | Form::Local | Form::EachLocal => {
                if !matches!(access.space, Space::Shared | Space::Local | Space::Param) {
                    return Err(Why::Each);
                }
            }
        }
        let uniform =
            op.defs.first().is_some_and(|def| matches!(func.shapes[def.0 as usize], Shape::Uniform(_)));
        if !write && uniform && !matches!(form, Form::Same) {
            return Err(Why::OneValue);
        }
        let end = offset + i64::from(bytes);
        // An access within the kernel's own variables needs no check.
        if let (Anchor::Variable(var), Space::Shared) = (anchor, access.space) {
            let start = layout.variables.get(var as usize).copied().unwrap_or(0) as i64;
            let own = self.planner.own(site, Space::Shared);
            let inside = start + offset >= own.start && start + end <= own.end;
            if inside && (start + offset) % i64::from(bytes) == 0 {
                return Ok(Check::Within { early: true });
            }
        }
        if self.planner.is_in_variable(inst, access) {
            return Ok(Check::Within { early: true });
        }
        let object = self.planner.object(site, access.space);
        let same = |group: &CheckGroup| {
            group.anchor == anchor
                && group.reach.space == access.space
                && group.reach.postponed == access.postponed
                && self.planner.object(group.reach.site, access.space) == object
        };
        if let Some(number) = groups.iter().position(same) {
            let group = &mut groups[number];
            // Memory that may be written may also be read, so one check serves both.
            let reach = Reach {
                write: group.reach.write || write,
                lo: group.reach.lo.min(offset),
                hi: group.reach.hi.max(end),
                align: group.reach.align.max(bytes),
                ..group.reach
            };
            if let Form::Affine(pattern) | Form::Rows(pattern) = &group.form
                && !self.is_foreseeable(access.space, reach.align, pattern, full)
            {
                return Err(Why::Uneven);
            }
            group.reach = reach;
            group.members.push(at);
            return Ok(Check::Grouped(number));
        }
        let Access { space, postponed, .. } = access;
        let reach = Reach { site, space, write, postponed, lo: offset, hi: end, align: bytes };
        groups.push(CheckGroup { anchor, form, reach, inside: false, predicated: false, members: vec![at] });
        Ok(Check::Grouped(groups.len() - 1))
    }

    /// Whether a few comparisons check all accesses of an affine address.
    fn is_foreseeable(&self, space: Space, align: u32, pattern: &Affine, full: bool) -> bool {
        let vectors = self.planner.vectors();
        vectors.is_regular(space, align, pattern, full)
            || matches!(space, Space::Shared | Space::Param) && vectors.is_together(space, align, pattern)
    }
}

/// Whether an instruction may be hoisted. `lowers`: whether it has native code of its own.
fn is_early(planner: Planner<'_>, inst: &Inst, lowers: impl FnOnce() -> bool) -> bool {
    match inst.op {
        O::Ld => inst.guard.is_none() && planner.reads_constant(inst),
        O::Cvta | O::CvtaTo => inst.mods.space() != Space::Generic,
        _ => effects::is_pure(inst) && lowers(),
    }
}

/// The operations behind an index that the wanted values depend on, in the order of the block.
fn hoisted(block: &Block, behind: usize, mut wanted: HashSet<Value>) -> Vec<usize> {
    let mut all = Vec::new();
    for (at, op) in block.ops.iter().enumerate().skip(behind).rev() {
        if op.defs.iter().any(|def| wanted.contains(def)) {
            wanted.extend(op.uses.iter().copied());
            all.push(at);
        }
    }
    all.reverse();
    all
}

/// The register that holds the address of an access.
fn address_register(inst: &Inst, op: &Op) -> Option<Value> {
    match inst.srcs.first()? {
        Src::Addr(Addr { base: Base::Reg(_), .. }) | Src::Reg(_) => op.uses.get(1).copied(),
        _ => None,
    }
}
