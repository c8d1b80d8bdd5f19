//! Prefetches of memory that the next CTA accesses, or the next iteration of a loop around a barrier, and of
//! what loops of the grid's stride load ([`grid_stride`]). Some are issued later ([`deferred`]).
//!
//! CTAs that are neighbours in x execute one after another. Each accesses short parts of many rows, which
//! hardware prefetchers do not predict. They also do not predict accesses after a barrier, because the other
//! warps execute in between. The distance between the addresses of two CTAs often follows from the program
//! ([`scalar_evolution`](crate::analysis::scalar_evolution)).
//!
//! Where the first-level cache has few ways, lines prefetched into it evict the data of this CTA. There,
//! prefetches go into the second-level cache, which holds the data of more than one CTA, so they look further
//! ahead. The next tile of a coarse warp goes into the second-level cache too: rows whose distance is a power
//! of two would evict each other from the first level before they are used.
//!
//! What the next iteration accesses is prefetched by code for all lanes: by full copies of blocks, and by
//! versions of masked copies in which all lanes load.
//!
//! Invariant: a line is prefetched once in a block, and in an iteration of a loop with a long stride. If the
//! distance is not known, nothing is prefetched.

pub(crate) mod deferred;
mod grid_stride;
mod remarks;

use crate::analysis::loop_kind::LoopKind;
use crate::analysis::scalar_evolution::ScalarEvolution;
use crate::mem::classify;
use crate::target::Target;
use crate::tuning::{
    CACHE_LINE_BYTES, NEXT_CTA_PREFETCH_CTAS, NEXT_CTA_PREFETCH_WARPS, PREFETCHER_REACH_BYTES,
};
use crate::wir::decision::Decision;
use crate::wir::group::{Group, GroupKind};
use crate::wir::prefetch::{Ahead, Cache, Decisions, Prefetch};
use crate::wir::uses::DefUse;
use crate::wir::{self, Block, Func, LaunchShape, Op, OpKind};
use ptx::ir::{Addr, Base, Function, Inst, Program, Src};
use ptx::isa::{Op as O, Space};
use std::collections::HashSet;
use std::rc::Rc;

/// What prefetches are decided by.
pub(crate) struct Prefetching<'a> {
    pub(crate) program: &'a Program,
    pub(crate) function: &'a Function,
    pub(crate) launch: LaunchShape,
    pub(crate) target: Target,
    /// Whether a coarse warp computes vectors warp by warp.
    pub(crate) by_warp: bool,
    pub(crate) evolution: &'a ScalarEvolution,
    /// For each PTX block, the kind of loop that it belongs to.
    pub(crate) loops: &'a [LoopKind],
}

impl Prefetching<'_> {
    /// Decides for each access of a function, and then which blocks defer what they prefetch.
    pub(crate) fn decide(&self, func: &mut Func, def_use: &DefUse) {
        let repeated = self.repeated(func, def_use);
        for (id, block) in (0..).zip(&mut func.blocks) {
            let mut issued = HashSet::new();
            let (apart, later) = (members(block, is_apart), members(block, is_later_in_window));
            for at in (0..block.ops.len()).filter(|at| !apart.contains(at)) {
                let op = &block.ops[at];
                let next = self.decision(block, op, &mut issued);
                let again = later.contains(&at) || repeated.contains(&(id, at));
                let grid_stride = if again { None } else { self.grid_stride(block, op) };
                let some = next.is_some() || grid_stride.is_some();
                block.ops[at].prefetch = some.then(|| Rc::new(Decisions { next, grid_stride }));
            }
        }
        self.defer(func);
    }

    /// The kind of loop that a block belongs to.
    fn loop_kind(&self, block: &Block) -> LoopKind {
        self.loops.get(block.block as usize).copied().unwrap_or(LoopKind::Loop)
    }

    /// The decision about the line that the next CTA or iteration accesses. `issued`: the lines that the
    /// block has prefetched, relative to an address, and whether for a write.
    fn decision(
        &self,
        block: &Block,
        op: &Op,
        issued: &mut HashSet<(wir::Value, i64, bool)>,
    ) -> Option<Decision<Prefetch>> {
        let OpKind::Inst(site) = op.kind else { return None };
        let inst = site.inst(self.function)?;
        let write = match inst.op {
            O::Ld | O::LdNc | O::Ldu => false,
            O::St => true,
            _ => return None,
        };
        let access = classify::ordered_access(self.program, inst, write)?;
        let Some(Src::Addr(Addr { base: Base::Reg(_), offset, .. })) = inst.srcs.first() else { return None };
        if !matches!(access.space, Space::Global | Space::Generic) {
            return None;
        }
        let name = *op.uses.get(1)?;
        let (first, offset) = match block.checks.as_ref().and_then(|checks| checks.distances.get(&name)) {
            Some((first, by)) => (*first, offset.checked_add(*by)?),
            None => (name, *offset),
        };
        let line = offset.checked_add(i64::from(CACHE_LINE_BYTES / 2))?.div_euclid(CACHE_LINE_BYTES.into());
        let more = line.wrapping_mul(CACHE_LINE_BYTES.into()).wrapping_sub(offset);
        let fits = self.launch.team == 1 || self.by_warp;
        let nearest = match fits && self.target.tuning().prefetches_next_cta_into_l1() {
            true => Cache::First,
            false => Cache::Second,
        };
        let found = match self.loop_kind(block) {
            LoopKind::Nothing => self.next_cta(name).map(|ahead| (ahead, nearest)),
            LoopKind::Loop if self.fills(block, op) || write && self.drains(block) => {
                self.next_cta(name).map(|ahead| (ahead, nearest))
            }
            LoopKind::Barrier if !write => self.next_iteration(name).map(|ahead| (ahead, Cache::Second)),
            LoopKind::Loop | LoopKind::Barrier => return None,
        };
        match found {
            Err(why) => Some(Decision::Missed(why)),
            Ok(_) if !issued.insert((first, line, write)) => None,
            Ok((ahead, cache)) => Some(Decision::Applied(Prefetch { ahead, more, cache })),
        }
    }

    /// What the next CTA, or a later one, accesses.
    fn next_cta(&self, name: wir::Value) -> Result<Ahead, &'static str> {
        let growth = |axis: usize| self.evolution.cta[axis][name.0 as usize].filter(|x| !x.is_zero());
        let Some(right) = growth(0) else {
            return Err("the distance to the next CTA's elements is not known, or zero");
        };
        let below = growth(1);
        let near = right.is_constant() && right.times.unsigned_abs() < PREFETCHER_REACH_BYTES;
        if below.is_none() && near && !self.target.tuning().near_prefetch {
            return Err("the next CTA's elements are near enough for the processor's prefetcher");
        }
        Ok(Ahead::Cta { right, below, ctas: self.ctas_ahead() })
    }

    /// What the next iteration accesses.
    fn next_iteration(&self, name: wir::Value) -> Result<Ahead, &'static str> {
        let Some(step) = self.evolution.turn[name.0 as usize] else {
            return Err("the step from one iteration to the next is not known");
        };
        let near = step.is_constant() && step.times.unsigned_abs() < PREFETCHER_REACH_BYTES;
        Ok(Ahead::Iteration { step, behind: if near { Cache::First } else { Cache::Second } })
    }

    /// How many CTAs ahead a prefetch for the next CTA looks.
    fn ctas_ahead(&self) -> u32 {
        // A coarse warp executes several warps between barriers, which takes long enough for memory to
        // answer.
        if self.target.tuning().prefetches_next_cta_into_l1() || self.launch.team > 1 {
            return 1;
        }
        NEXT_CTA_PREFETCH_WARPS.div_ceil(self.launch.threads().div_ceil(32)).max(NEXT_CTA_PREFETCH_CTAS)
    }

    /// Whether the result of a load in a loop is stored to shared memory at once. Shared memory is small, so
    /// the loop ends soon.
    fn fills(&self, block: &Block, load: &Op) -> bool {
        self.has(block, |inst, op| {
            inst.op == O::St
                && op.uses.get(1..).is_some_and(|uses| uses.iter().any(|name| load.defs.contains(name)))
        })
    }

    /// Whether the block reads shared memory. Its other stores usually copy from there; shared memory is
    /// small, so the loop ends soon.
    fn drains(&self, block: &Block) -> bool {
        self.has(block, |inst, _| inst.op == O::Ld)
    }

    /// Whether a block has such an access of shared memory.
    fn has(&self, block: &Block, is: impl Fn(&Inst, &Op) -> bool) -> bool {
        block.ops.iter().any(|op| {
            let OpKind::Inst(site) = op.kind else { return false };
            let inst = site.inst(self.function);
            inst.is_some_and(|inst| inst.mods.space() == Space::Shared && is(inst, op))
        })
    }
}

/// The accesses of a block that belong to groups in such a place.
fn members(block: &Block, is: fn(&Group, usize) -> bool) -> HashSet<usize> {
    let of = |group: &Rc<Group>| {
        let members = group.members.iter().enumerate().filter(|(at, _)| is(group, *at));
        members.map(|(_, member)| member.at).collect::<Vec<_>>()
    };
    block.groups.iter().flat_map(of).collect()
}

/// Whether the lanes of a group access elements that are apart, so that it has no prefetches.
fn is_apart(group: &Group, _member: usize) -> bool {
    match group.kind {
        GroupKind::Interleaved | GroupKind::Covering => true,
        GroupKind::Window | GroupKind::SeparateWindow | GroupKind::Gather => false,
    }
}

/// Whether a member of a group is a load of a window behind the first one, which prefetches the elements of
/// all.
fn is_later_in_window(group: &Group, member: usize) -> bool {
    group.kind == GroupKind::Window && member > 0
}
