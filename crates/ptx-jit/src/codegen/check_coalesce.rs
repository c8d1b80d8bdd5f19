//! Emits the bounds checks that a block makes where it begins, before the block has any effect.
//!
//! [`opt::checks`](crate::opt::checks) found which accesses these are. Each group of them is one comparison
//! of its extremes, and all groups are one branch. Where it fails, the cached bounds are renewed from the
//! host and tested once more; where that fails, the interpreter executes the block.

use super::Codegen;
use super::load_store::Addresses;
use crate::llvm::{IntPred, Likely, Value};
use crate::wir;
use crate::wir::checks::{Anchor, BlockChecks, Check, CheckGroup, EarlyGuard, Tested};
use crate::wir::{Exit, GuardKind, OpKind, Site};
use ptx::ir::{Addr, Src};
use ptx::isa::Space;
use ptx_exec::native::ExitCause;
use std::collections::HashSet;
use std::rc::Rc;

/// A group of checks, with the addresses that it is about.
struct Group<'a> {
    checks: &'a CheckGroup,
    addresses: Addresses,
}

/// The bits of addresses that must be zero for the addresses to be aligned.
#[derive(Clone, Copy)]
pub(super) struct Misaligned {
    /// The bits.
    bits: Value,
    /// The number that these are the low bits of, and the alignment in bytes that they are for, if it is one.
    within: Option<(Value, u64)>,
}

/// The operations of a block that were handled at its start.
#[derive(Default)]
pub(super) struct CoalescedChecks {
    checks: Option<Rc<BlockChecks>>,
    /// Operations that are already emitted.
    done: HashSet<usize>,
}

impl CoalescedChecks {
    pub(super) fn is_done(&self, at: usize) -> bool {
        self.done.contains(&at)
    }

    /// Whether an access has been checked.
    pub(super) fn fits(&self, at: usize) -> bool {
        self.checks.as_ref().is_some_and(|checks| checks.fits(at))
    }

    /// Marks a store as done: another pass emits it.
    pub(super) fn omit_store(&mut self, at: usize) {
        self.done.insert(at);
    }
}

/// The guards of a block that are checked where it begins.
#[derive(Clone, Copy)]
struct Guards {
    /// The condition that all hold.
    hold: Value,
    /// Whether one is of a comparison, which fails at the edge of a picture.
    edges: bool,
}

impl Codegen<'_> {
    /// Emits the operations that are executed before the block's checks, and the checks.
    pub(super) fn ahead(&mut self, node: &wir::Block) -> CoalescedChecks {
        let mut foreseen = CoalescedChecks::default();
        let version = self.position.version.as_ref().and_then(|version| version.checks.clone());
        self.position.checks = version.or_else(|| node.checks.clone());
        let Some(checks) = self.position.checks.clone() else { return foreseen };
        let OpKind::Ahead(exit) = &node.ops[checks.at].kind else { return foreseen };
        for at in (0..checks.at).chain(checks.hoisted.iter().copied()) {
            self.op(node, at);
            foreseen.done.insert(at);
        }
        self.remark_checks(node, &checks);
        let mut groups = Vec::new();
        for group in &checks.groups {
            let addresses = self.addresses_of(node, group).expect("ptxvm bug: a group without addresses");
            let group = Group { checks: group, addresses };
            self.remark_group(&group);
            groups.push(group);
        }
        let (mut wraps, mut edges) = (None, false);
        for EarlyGuard { at, tested } in &checks.guards {
            foreseen.done.insert(*at);
            let op = &node.ops[*at];
            let (OpKind::Guard(site, kind, _), Tested::Between(low, high)) = (&op.kind, tested) else {
                continue;
            };
            let (site, kind) = (*site, *kind);
            if let Some(wrap) = self.fails((site, kind), &op.uses, (*low, *high)) {
                edges |= kind == GuardKind::SameInAll;
                wraps = Some(match wraps {
                    None => wrap,
                    Some(others) => self.b.or(others, wrap),
                });
            }
        }
        foreseen.checks = Some(checks.clone());
        let guards = wraps.map(|wraps| Guards { hold: self.b.not(wraps), edges });
        if groups.is_empty() && guards.is_none() {
            return foreseen;
        }
        if guards.is_some() || !checks.groups.iter().all(|group| group.inside) {
            self.close_section();
        }
        self.check_groups(node, groups, guards, exit);
        foreseen
    }

    /// Records what became of the checks of accesses that belong to no group.
    fn remark_checks(&self, node: &wir::Block, checks: &BlockChecks) {
        for (at, check) in &checks.accesses {
            self.remark_op(&node.ops[*at]);
            match check {
                Check::Within { .. } => {
                    let plan = node.ops[*at].access.as_ref();
                    let space = plan.map_or(Space::Shared, |plan| plan.access.space);
                    self.applied("check-elim", format!("within the kernel's {}", own(space)));
                }
                Check::Grouped(_) => {}
                Check::AtAccess(why) => {
                    self.missed("check-coalesce", format!("checked at the access: {why}"));
                }
            }
        }
    }

    fn remark_group(&self, group: &Group<'_>) {
        self.remarks.site.set(Some(group.checks.reach.site));
        let count = group.checks.members.len();
        if group.checks.inside {
            let own = own(group.checks.reach.space);
            self.applied("check-elim", format!("constant addresses within the kernel's {own}"));
        } else if count == 1 {
            self.applied("check-coalesce", "checked where the block begins, for one access");
        } else {
            let how = format!("checked where the block begins, for {count} accesses at once");
            self.applied("check-coalesce", how);
        }
    }

    /// The addresses of a group, without the offsets of its accesses.
    fn addresses_of(&mut self, node: &wir::Block, group: &CheckGroup) -> Option<Addresses> {
        let OpKind::Inst(site) = node.ops[group.members[0]].kind else { return None };
        let inst = site.inst(self.job.function)?;
        match (group.anchor, inst.srcs.first()?) {
            (Anchor::Value(name), _) => self.addresses_in(name, 0, inst.mods.space(), &group.form),
            (Anchor::Variable(_) | Anchor::Frame, Src::Addr(addr)) => {
                Some(Addresses::Same(self.symbol(&Addr { offset: 0, ..*addr })?))
            }
            _ => None,
        }
    }

    /// The condition that no address is misaligned; `None` if none can be.
    pub(super) fn is_even(&self, odd: Option<Misaligned>) -> Option<Value> {
        odd.map(|odd| self.b.icmp(IntPred::Eq, odd.bits, self.b.zero(odd.bits.ty())))
    }

    /// The bits of an address that must be zero for an access of that alignment in bytes; `None`: any address
    /// will do.
    pub(super) fn misaligned(&self, address: Value, align: u64) -> Option<Misaligned> {
        (align > 1).then(|| {
            let bits = self.b.and(address, self.c64(align - 1));
            Misaligned { bits, within: Some((address, align)) }
        })
    }

    /// The misaligned bits of either of two addresses, where there are any. For one alignment, the addresses
    /// are combined first and masked once.
    pub(super) fn either(&self, a: Option<Misaligned>, b: Option<Misaligned>) -> Option<Misaligned> {
        match (a, b) {
            (Some(a), Some(b)) => match (a.within, b.within) {
                (Some((some, align)), Some((others, same))) if align == same => {
                    self.misaligned(self.b.or(some, others), align)
                }
                _ => Some(Misaligned { bits: self.b.or(a.bits, b.bits), within: None }),
            },
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
    fn check_groups(
        &mut self,
        node: &wir::Block,
        groups: Vec<Group<'_>>,
        guards: Option<Guards>,
        exit: &Exit,
    ) {
        let Some((id, turns)) = self.predicated_loop(node) else { return self.check(&groups, guards, exit) };
        let name = |group: &Group<'_>| match group.checks.anchor {
            Anchor::Value(name) => Some(name),
            Anchor::Variable(_) | Anchor::Frame => None,
        };
        let (steady, others): (Vec<Group<'_>>, Vec<Group<'_>>) =
            groups.into_iter().partition(|group| group.checks.predicated);
        for group in &others {
            self.remarks.site.set(Some(group.checks.reach.site));
            self.missed(
                "loop-predication",
                "the address does not step by a constant, or its lanes are apart",
            );
        }
        for group in &steady {
            self.remarks.site.set(Some(group.checks.reach.site));
            self.applied("loop-predication", "one check for as many iterations as stay in bounds");
        }
        if guards.is_some() || !others.is_empty() {
            self.check(&others, guards, exit);
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
        let members: Vec<_> = steady
            .iter()
            .filter_map(|group| Some((name(group)?, group.checks.reach, &group.addresses)))
            .collect();
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

    /// Branches to the side exit unless all accesses are in bounds, and all guards hold.
    fn check(&mut self, groups: &[Group<'_>], guards: Option<Guards>, exit: &Exit) {
        if guards.is_none() && groups.iter().all(|group| group.checks.inside) {
            return;
        }
        let mask = self.mask(exit.mask);
        let whole = self.position.full;
        let all = |emit: &mut Self| {
            let (mut all, mut any) = (guards.map(|guards| guards.hold), None);
            for group in groups.iter().filter(|group| !group.checks.inside) {
                if let Some((inside, odd)) =
                    emit.is_inside_and_odd(group.checks.reach, &group.addresses, mask, whole)
                {
                    all = Some(emit.both(all, Some(inside)));
                    any = emit.either(any, odd);
                }
            }
            emit.both(all, emit.is_even(any))
        };
        let renewable =
            groups.iter().any(|group| !matches!(group.checks.reach.space, Space::Shared | Space::Local));
        // After the cached bounds have been renewed, the comparison is repeated.
        let again = (renewable && self.position.prefix.is_none()).then(|| {
            let here = self.b.current_block();
            let ask = self.b.append_block(self.function, "ask");
            self.b.br(ask);
            self.b.position_at_end(ask);
            let again = self.b.phi(self.int(1));
            self.b.add_incoming(again, self.b.const_int(self.int(1), 0), here);
            (ask, again)
        });
        let fits = all(self);
        let on = self.b.append_block(self.function, "fits");
        if let Some(prefix) = self.position.prefix {
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
                self.renew_cached_bounds(group.checks.reach, &group.addresses, mask, whole);
            }
            self.b.add_incoming(again, self.b.const_int(self.int(1), 1), self.b.current_block());
            self.b.br(ask);
        } else {
            self.b.cond_br(fits, on, leave, Likely::Yes);
        }
        self.b.position_at_end(leave);
        let sites: Vec<Site> =
            groups.iter().filter(|group| !group.checks.inside).map(|group| group.checks.reach.site).collect();
        let cause = match (guards, sites.is_empty()) {
            (None, _) => ExitCause::Bounds,
            (Some(Guards { edges: true, .. }), _) => ExitCause::Edge,
            (Some(_), false) => ExitCause::BoundsOrWraps,
            (Some(_), true) => ExitCause::Wraps,
        };
        self.exit(exit, cause, &sites);
        self.b.position_at_end(on);
    }
}

/// The memory of a space that a program declares, for remarks.
fn own(space: Space) -> &'static str {
    match space {
        Space::Param => "parameters",
        Space::Global | Space::Const => "variables",
        _ => "own shared memory",
    }
}
