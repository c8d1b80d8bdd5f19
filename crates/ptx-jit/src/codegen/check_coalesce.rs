//! Coalescing of bounds checks: checks the accesses of a block at once, before the block has any effect.
//!
//! Accesses whose addresses can be computed at the start of the block are grouped by the value that their
//! addresses are relative to. Each group is one comparison of its extremes, and all groups are one branch.
//! Where it fails, the cached bounds are renewed from the host and tested once more; where that fails, the
//! interpreter executes the block.
//!
//! Invariant: an instruction that is hoisted to the start has no effect, reads no memory that needs a check,
//! and depends only on such instructions.

use super::load_store::Reach;
use super::{Addresses, Codegen};
use crate::llvm::{Bitwise, IntPred, Likely, Value};
use crate::wir;
use crate::wir::access::Access;
use crate::wir::{Affine, Exit, Kind, Op, OpKind, Shape, Site};
use ptx::ir::{Addr, Base, Inst, RegClass, Src};
use ptx::isa::{Op as O, Space};
use std::collections::HashSet;

/// What the addresses of a group are relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Anchor {
    /// A register.
    Value(wir::Value),
    /// The variable of the program with that number.
    Variable(u32),
    /// The frame of the function's activation.
    Frame,
}

/// Accesses relative to one anchor.
struct Group {
    anchor: Anchor,
    access: Access,
    reach: Reach,
    addresses: Addresses,
    /// The number of accesses.
    count: usize,
}

/// The result of looking at the check of an access.
enum Checked {
    /// The access belongs to a group.
    Grouped,
    /// No check is needed: the access is always in bounds.
    Within,
}

/// The operations of a block that were handled at its start.
#[derive(Default)]
pub(super) struct CoalescedChecks {
    /// Operations that are already emitted.
    done: HashSet<usize>,
    /// Accesses that have been checked.
    fit: HashSet<usize>,
}

impl CoalescedChecks {
    pub(super) fn is_done(&self, at: usize) -> bool {
        self.done.contains(&at)
    }

    pub(super) fn fits(&self, at: usize) -> bool {
        self.fit.contains(&at)
    }

    /// Marks a store as done: another pass emits it.
    pub(super) fn omit_store(&mut self, at: usize) {
        self.done.insert(at);
    }
}

impl Codegen<'_> {
    /// Emits the operations that were hoisted to the block's [`OpKind::Ahead`], and its checks.
    pub(super) fn ahead(&mut self, node: &wir::Block) -> CoalescedChecks {
        let mut foreseen = CoalescedChecks::default();
        let ahead = node.ops.iter().enumerate().find_map(|(at, op)| match &op.kind {
            OpKind::Ahead(exit) => Some((at, exit)),
            _ => None,
        });
        let Some((first, exit)) = ahead else { return foreseen };
        for at in 0..first {
            self.op(&node.ops[at]);
            foreseen.done.insert(at);
        }
        let late = self.late(node);
        let mut wanted: HashSet<wir::Value> = HashSet::new();
        let mut accesses = Vec::new();
        let mut guards = Vec::new();
        for (at, op) in node.ops.iter().enumerate() {
            match &op.kind {
                OpKind::Inst(site) => {
                    let Some(inst) = site.inst(self.job.function) else { continue };
                    let name = address_name(inst, op);
                    let known = name.is_none_or(|name| !late.contains(&name));
                    if !known && self.is_access(inst, op) {
                        self.remark_site.set(Some(*site));
                        let within =
                            self.access_of(inst, true).is_some_and(|access| self.is_within(inst, op, access));
                        match within {
                            true => self.applied("check-elim", "within the kernel's own shared memory"),
                            false => self.missed(
                                "check-coalesce",
                                "checked at the access: its address is not known where the block begins",
                            ),
                        }
                    }
                    if known && self.is_access(inst, op) {
                        wanted.extend(name);
                        accesses.push((at, *site, inst, op));
                    }
                }
                OpKind::Guard(site, _) if op.uses.iter().all(|name| !late.contains(name)) => {
                    guards.push((at, *site, &op.uses));
                }
                _ => {}
            }
        }
        if accesses.is_empty() {
            return foreseen;
        }
        let guarded = guards.iter().flat_map(|(_, _, uses)| uses.iter().copied());
        wanted.extend(guarded);
        self.early(node, wanted, &mut foreseen);
        let mut groups: Vec<Group> = Vec::new();
        for (at, site, inst, op) in accesses {
            self.remark_site.set(Some(site));
            match self.join(&mut groups, site, inst, op) {
                Ok(Checked::Grouped) => {}
                Ok(Checked::Within) => self.applied("check-elim", "within the kernel's own shared memory"),
                Err(why) => {
                    self.missed("check-coalesce", format!("checked at the access: {why}"));
                    continue;
                }
            }
            foreseen.fit.insert(at);
        }
        for group in &groups {
            self.remark_site.set(Some(group.reach.site));
            let accesses = if group.count == 1 { "one access" } else { "accesses" };
            if self.is_inside(group.reach, &group.addresses) {
                self.applied("check-elim", "constant addresses within the kernel's own shared memory");
            } else if group.count == 1 {
                self.applied("check-coalesce", format!("checked where the block begins, for {accesses}"));
            } else {
                let count = group.count;
                self.applied(
                    "check-coalesce",
                    format!("checked where the block begins, for {count} {accesses} at once"),
                );
            }
        }
        let mut wraps = None;
        for (at, site, uses) in guards {
            foreseen.done.insert(at);
            if let Some(wrap) = self.wraps(site, uses) {
                wraps = Some(match wraps {
                    None => wrap,
                    Some(others) => self.b.or(others, wrap),
                });
            }
        }
        let exact = wraps.map(|wraps| self.b.not(wraps));
        if groups.is_empty() && exact.is_none() {
            return foreseen;
        }
        if exact.is_some() || !groups.iter().all(|group| self.is_inside(group.reach, &group.addresses)) {
            self.close_section();
        }
        self.check_groups(node, groups, exact, exit);
        foreseen
    }

    /// Values of a block that cannot be computed at its start.
    fn late(&mut self, node: &wir::Block) -> HashSet<wir::Value> {
        let mut late = HashSet::new();
        for op in &node.ops {
            let early = match &op.kind {
                OpKind::Inst(site) => {
                    site.inst(self.job.function).is_some_and(|inst| self.is_early(*site, inst))
                }
                _ => true,
            };
            if !early || op.uses.iter().any(|name| late.contains(name)) {
                late.extend(op.defs.iter().copied());
            }
        }
        late
    }

    /// Whether an instruction may be hoisted.
    pub(super) fn is_early(&mut self, site: Site, inst: &Inst) -> bool {
        match inst.op {
            O::Ld => {
                inst.guard.is_none()
                    && matches!(inst.srcs.first(), Some(Src::Addr(Addr { base: Base::KernelParam, .. })))
            }
            O::Cvta | O::CvtaTo => inst.mods.space() != Space::Generic,
            _ => crate::effects::is_pure(inst) && self.lowering(site, inst).is_some(),
        }
    }

    /// Whether an operation is an access that every active lane makes.
    fn is_access(&self, inst: &Inst, op: &Op) -> bool {
        let write = match inst.op {
            O::Ld | O::LdNc | O::Ldu => false,
            O::St => true,
            O::Atom | O::Red => {
                return !self.is_guarded(inst) && crate::effects::is_native_atomic(&inst.mods);
            }
            _ => return false,
        };
        let Some(access) = self.access(inst, write) else { return false };
        let count = access.count as usize;
        !self.is_guarded(inst) && access.space != Space::Param && (write || op.defs.len() == count)
    }

    /// Emits the operations that the wanted values depend on, in the order of the block.
    fn early(&mut self, node: &wir::Block, mut wanted: HashSet<wir::Value>, foreseen: &mut CoalescedChecks) {
        let mut all = Vec::new();
        for (at, op) in node.ops.iter().enumerate().rev() {
            let makes = op.defs.iter().any(|def| wanted.contains(def));
            if makes && !foreseen.is_done(at) {
                wanted.extend(op.uses.iter().copied());
                all.push(at);
            }
        }
        for at in all.into_iter().rev() {
            self.op(&node.ops[at]);
            foreseen.done.insert(at);
        }
    }

    /// Adds an access to its group.
    ///
    /// # Errors
    /// The reason why it must be checked on its own.
    fn join(
        &mut self,
        groups: &mut Vec<Group>,
        site: Site,
        inst: &Inst,
        op: &Op,
    ) -> Result<Checked, &'static str> {
        const FORM: &str = "a form of access that has no native code";
        let write = !matches!(inst.op, O::Ld | O::LdNc | O::Ldu);
        let mut access = self.access_of(inst, write).ok_or(FORM)?;
        if write && access.space == Space::Const || access.space == Space::Param {
            return Err(FORM);
        }
        let (anchor, offset) = match inst.srcs.first().ok_or(FORM)? {
            Src::Addr(Addr { base: Base::Reg(_), index: None, offset }) => {
                (Anchor::Value(op.uses[1]), *offset)
            }
            Src::Reg(_) => (Anchor::Value(op.uses[1]), 0),
            Src::Addr(Addr { base: Base::Var(var), index: None, offset }) => {
                (Anchor::Variable(var.0), *offset)
            }
            Src::Addr(Addr { base: Base::Frame, index: None, offset }) => (Anchor::Frame, *offset),
            _ => return Err("an address with an index register"),
        };
        let addresses = match anchor {
            Anchor::Value(name) => {
                // A 32-bit address could wrap around.
                if self.kind(name) == Kind::Reg(RegClass::R32) && offset != 0 {
                    return Err("a 32-bit address with an offset may wrap around");
                }
                self.addresses_from(name, 0, &mut access).ok_or(FORM)?
            }
            Anchor::Variable(_) | Anchor::Frame => {
                let Some(Src::Addr(addr)) = inst.srcs.first() else { return Err(FORM) };
                Addresses::Same(self.symbol(&Addr { offset: 0, ..*addr }).ok_or(FORM)?)
            }
        };
        let bytes = access.bytes();
        // With larger offsets, sums of bounds could overflow. A misaligned offset is a fault of the program.
        // An offset that is a multiple of the access's size is aligned, since the anchor is a multiple of the
        // largest size in the group.
        if offset.abs() >= 1 << 20 || offset % i64::from(bytes) != 0 {
            return Err("the offset is far, or not a multiple of the access");
        }
        if self.is_within(inst, op, access) {
            return Ok(Checked::Within);
        }
        match &addresses {
            Addresses::Same(_) => {}
            Addresses::Affine(_, pattern) | Addresses::Rows(_, pattern) => {
                if !self.is_foreseeable(access.space, bytes, pattern) {
                    return Err("lanes are not evenly spaced, or not aligned");
                }
            }
            // Lanes may access several allocations, which one comparison of extremes cannot check.
            Addresses::ScaledIndex(_) | Addresses::Each(_) => {
                if !matches!(access.space, Space::Shared | Space::Local) {
                    return Err("each lane has an address of its own");
                }
            }
        }
        if let (false, Some(Shape::Uniform(_))) = (write, op.defs.first().map(|def| self.shape(*def)))
            && !matches!(addresses, Addresses::Same(_))
        {
            return Err("a uniform value from addresses that are not");
        }
        let end = offset + i64::from(bytes);
        // An access within the kernel's own variables needs no check.
        if let (Anchor::Variable(var), Space::Shared) = (anchor, access.space) {
            let start = self.job.layout.variables.get(var as usize).copied().unwrap_or(0) as i64;
            let inside = start + offset >= 0 && start + end <= i64::from(self.job.layout.shared_bytes);
            if inside && (start + offset) % i64::from(bytes) == 0 {
                return Ok(Checked::Within);
            }
        }
        let same = |group: &&mut Group| group.anchor == anchor && group.access.space == access.space;
        if let Some(group) = groups.iter_mut().find(same) {
            // Memory that may be written may also be read, so one check serves both.
            let reach = Reach {
                write: group.reach.write || write,
                lo: group.reach.lo.min(offset),
                hi: group.reach.hi.max(end),
                align: group.reach.align.max(bytes),
                ..group.reach
            };
            if let Addresses::Affine(_, pattern) | Addresses::Rows(_, pattern) = &group.addresses
                && !self.is_foreseeable(access.space, reach.align, pattern)
            {
                return Err("lanes are not evenly spaced, or not aligned");
            }
            group.reach = reach;
            group.count += 1;
            return Ok(Checked::Grouped);
        }
        let reach = Reach { site, space: access.space, write, sum: false, lo: offset, hi: end, align: bytes };
        groups.push(Group { anchor, access, reach, addresses, count: 1 });
        Ok(Checked::Grouped)
    }

    /// Whether a few comparisons check all accesses of an affine address.
    fn is_foreseeable(&self, space: Space, align: u32, pattern: &Affine) -> bool {
        self.is_regular(space, align, pattern, self.full)
            || space == Space::Shared && self.is_together(space, align, pattern)
    }

    /// The condition that no address is misaligned; `None` if none can be.
    pub(super) fn is_even(&self, odd: Option<Value>) -> Option<Value> {
        odd.map(|odd| self.b.icmp(IntPred::Eq, odd, self.b.zero(odd.ty())))
    }

    /// The `or` of two masks of misaligned bits, where there are any. Masks of one constant are combined
    /// first and masked once.
    pub(super) fn either(&self, a: Option<Value>, b: Option<Value>) -> Option<Value> {
        match (a, b) {
            (Some(a), Some(b)) => Some(match (a.joined(), b.joined()) {
                (Some((Bitwise::And, some, all)), Some((Bitwise::And, others, same)))
                    if all == same && all.is_constant() =>
                {
                    self.b.and(self.b.or(some, others), all)
                }
                _ => self.b.or(a, b),
            }),
            (one, None) | (None, one) => one,
        }
    }

    /// The `and` of two conditions, where there are any.
    pub(super) fn both(&self, a: Option<Value>, b: Option<Value>) -> Value {
        match (a, b) {
            (Some(a), Some(b)) => self.b.and(a, b),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => self.b.const_int(self.int(1), 1),
        }
    }

    /// Checks groups. Those that step by constants are checked together for many iterations of the loop at
    /// once.
    fn check_groups(&mut self, node: &wir::Block, groups: Vec<Group>, exact: Option<Value>, exit: &Exit) {
        let Some((id, turns)) = self.predicated_loop(node) else { return self.check(&groups, exact, exit) };
        let name = |group: &Group| match group.anchor {
            Anchor::Value(name) => Some(name),
            Anchor::Variable(_) | Anchor::Frame => None,
        };
        let (steady, others): (Vec<Group>, Vec<Group>) = groups.into_iter().partition(|group| {
            let is_steady = |name| self.is_predicated(&turns, name, group.reach, &group.addresses);
            !self.is_inside(group.reach, &group.addresses) && name(group).is_some_and(is_steady)
        });
        for group in &others {
            self.remark_site.set(Some(group.reach.site));
            self.missed(
                "loop-predication",
                "the address does not step by a constant, or its lanes are apart",
            );
        }
        for group in &steady {
            self.remark_site.set(Some(group.reach.site));
            self.applied("loop-predication", "one check for as many iterations as stay in bounds");
        }
        if exact.is_some() || !others.is_empty() {
            self.check(&others, exact, exit);
        }
        if steady.is_empty() {
            return;
        }
        let (before, until) = self.is_before(id, &turns);
        let [ask, on] = ["turns", "steady"].map(|name| self.b.append_block(self.function, name));
        let here = self.b.current_block();
        self.b.cond_br(before, on, ask, Likely::Yes);
        self.b.position_at_end(ask);
        self.check(&steady, None, exit);
        let members: Vec<_> =
            steady.iter().filter_map(|group| Some((name(group)?, group.reach, &group.addresses))).collect();
        // If the number of iterations is not known, the next iteration checks again.
        let new = self.fit_until(&turns, &members).unwrap_or_else(|| self.c64(i64::MAX as u64));
        let there = self.b.current_block();
        self.b.br(on);
        self.b.position_at_end(on);
        let merged = self.b.phi(self.int(64));
        self.b.add_incoming(merged, until, here);
        self.b.add_incoming(merged, new, there);
        self.set_predicated(id, merged);
    }

    /// Branches to the side exit unless all accesses are in bounds.
    fn check(&mut self, groups: &[Group], exact: Option<Value>, exit: &Exit) {
        let mask = self.scalar(exit.mask);
        let whole = self.full;
        let all = |emit: &mut Self| {
            let (mut all, mut any) = (exact, None);
            for group in groups {
                if let Some((inside, odd)) =
                    emit.is_inside_and_odd(group.reach, &group.addresses, mask, whole)
                {
                    all = Some(emit.both(all, Some(inside)));
                    any = emit.either(any, odd);
                }
            }
            emit.both(all, emit.is_even(any))
        };
        let renewable = groups.iter().any(|group| !matches!(group.reach.space, Space::Shared | Space::Local));
        // After the cached bounds have been renewed, the comparison is repeated.
        let again = (renewable && self.prefix.is_none()).then(|| {
            let here = self.b.current_block();
            let ask = self.b.append_block(self.function, "ask");
            self.b.br(ask);
            self.b.position_at_end(ask);
            let again = self.b.phi(self.int(1));
            self.b.add_incoming(again, self.b.const_int(self.int(1), 0), here);
            (ask, again)
        });
        let fits = all(self);
        if fits.number() == Some(1) {
            return;
        }
        let on = self.b.append_block(self.function, "fits");
        if let Some(prefix) = self.prefix {
            self.b.cond_br(fits, on, prefix.other, Likely::Yes);
            return self.b.position_at_end(on);
        }
        let leave = self.b.append_block(self.function, "leave");
        if let Some((ask, again)) = again {
            let [unfit, renew] = ["unfit", "renew"].map(|name| self.b.append_block(self.function, name));
            self.b.cond_br(fits, on, unfit, Likely::Yes);
            self.b.position_at_end(unfit);
            self.b.cond_br(again, leave, renew, Likely::Unknown);
            self.b.position_at_end(renew);
            for group in groups {
                self.renew_cached_bounds(group.reach, &group.addresses, mask, whole);
            }
            self.b.add_incoming(again, self.b.const_int(self.int(1), 1), self.b.current_block());
            self.b.br(ask);
        } else {
            self.b.cond_br(fits, on, leave, Likely::Yes);
        }
        self.b.position_at_end(leave);
        self.exit(exit);
        self.b.position_at_end(on);
    }
}

/// The register that holds the address of an access.
fn address_name(inst: &Inst, op: &Op) -> Option<wir::Value> {
    match inst.srcs.first()? {
        Src::Addr(Addr { base: Base::Reg(_), .. }) | Src::Reg(_) => op.uses.get(1).copied(),
        _ => None,
    }
}
