//! Runs a warp until it must stop, and returns the reason.
//!
//! **Convergence policy.** The group of lanes at the lowest position runs ([`crate::frame`] defines the
//! order); groups at the same position merge. This reconverges lanes where post-dominators would, also in
//! irreducible graphs.
//!
//! **Progress.** Back edges and calls have a cost, which is high if the loop only polled memory that others
//! write. When the lowest group has used up its quantum while others are ready, the group that has waited
//! longest runs for a while. When the warp has used up its slice, it yields to other warps. So a lane may
//! wait for another lane of its warp, and a warp for another warp.
//!
//! Invariants: a step never gets a lane that has exited. Mistakes of the guest are returned as faults with
//! their place. No program makes this module panic or loop forever.

use crate::bound::{Block, Exec, Function, StepFn, Term, Value32, WarpSync};
use crate::context::LaunchContext;
pub(crate) use crate::frame::GROUP_QUANTUM;
use crate::frame::{Ahead, BarrierWait, Current, Group, ROOT, Wait, WarpFrame};
use crate::lanes::{FULL, Lane, LaneMask, Registers, lanes_of};
use crate::mem::Activity;
use crate::native::NativeCache;
use crate::trap::{Fault, FaultKind};
use crate::watch::WarpSyncEvent;
pub(crate) use barrier::{Reduced, is_reduction, release};
use native::Entered;
pub(crate) use native::{Left, run_left};
use ptx::ir::{BlockId, Guard};
pub(crate) use recover::unblock;
use std::ops::Range;
use std::sync::MutexGuard;

mod barrier;
mod native;
mod recover;
#[cfg(test)]
mod tests;
mod traced;
mod watched;

/// Blocks that a group may run out of order before the lowest group runs again.
const EXTRA_BLOCKS: u32 = 64;
/// The slice: the cost that a warp may spend before it yields.
pub(crate) const WARP_SLICE: i64 = 1 << 13;
/// Instructions between two checks whether the launch must stop: a slice of long iterations can take seconds.
/// Chosen: some tenths of a millisecond.
const STOP_CHECK_STEPS: u64 = 1 << 12;

/// Cost of one iteration of a loop, charged against the group's quantum and the warp's slice. Chosen so that
/// a polling group is preempted after 16 iterations and a polling warp after 32, while loops that only
/// compute are rarely preempted.
#[derive(Clone, Copy)]
struct Cost {
    quantum: i64,
    slice: i64,
}

fn cost(activity: Activity) -> Cost {
    match activity {
        Activity { watched: true, changed: false } => {
            Cost { quantum: GROUP_QUANTUM / 16, slice: WARP_SLICE / 32 }
        }
        Activity { watched: true, changed: true } => {
            Cost { quantum: GROUP_QUANTUM / 128, slice: WARP_SLICE / 128 }
        }
        Activity { watched: false, changed: _ } => Cost { quantum: 1, slice: 1 },
    }
}

/// How long a warp may run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// See [`WARP_SLICE`].
    pub(crate) slice: i64,
    /// See [`GROUP_QUANTUM`].
    pub(crate) quantum: i64,
    /// The most steps; the warp traps after them.
    pub(crate) steps: u64,
}

/// Why a warp stopped.
pub(crate) enum Stop {
    /// All its lanes have arrived at a barrier. The waiting lanes are released by [`release`].
    Arrived(BarrierWait, Arrival),
    /// It waits for a barrier at which it has arrived.
    Waiting,
    /// It used up its slice, or slept. `idle`: it only polled memory.
    Yielded {
        /// Whether it only polled memory.
        idle: bool,
    },
    /// All lanes have exited.
    Exited,
    /// Its lanes wait for each other.
    Stuck,
    /// A lane is at fault.
    Trapped(Box<Stopped>),
}

/// The lanes of a warp that arrive at a barrier.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// Lanes that wait. The others use `.arrive`.
    pub(crate) waiting: LaneMask,
}

/// A fault and its place.
#[derive(Debug)]
pub(crate) struct Stopped {
    pub(crate) fault: Box<Fault>,
    pub(crate) function: u32,
    pub(crate) span: ptx::Span,
    pub(crate) loc: Option<ptx::check::module::Loc>,
}

/// What happens to the running group after a block.
enum Next {
    /// It continues at this block.
    Block(BlockId),
    /// It continues at this block of another activation.
    Moved { act: u32, block: u32 },
    /// Its lanes are in the list of groups, or have exited.
    Split,
    /// A lane is at fault.
    Failed(Box<Fault>),
}

/// Runs a warp.
pub(crate) fn run(
    frame: &mut WarpFrame,
    context: &LaunchContext<'_>,
    budget: Budget,
    cache: &mut NativeCache,
) -> Stop {
    Run::new(frame, context, budget, cache).whole()
}

struct Run<'a> {
    frame: &'a mut WarpFrame,
    context: &'a LaunchContext<'a>,
    slice: i64,
    quantum: i64,
    /// The part of the slice that is used up.
    spent: i64,
    /// The part of this that was spent polling memory.
    idle: i64,
    /// Instructions since the last check whether the launch must stop.
    counted: u64,
    steps: u64,
    cache: &'a mut NativeCache,
    /// The turn of this thread, if observers are attached: held except while native code runs.
    turn: Option<MutexGuard<'a, ()>>,
}

/// `Some` for a group that runs out of order: how many more blocks it may run.
type Extra = Option<u32>;

impl<'a> Run<'a> {
    fn new(
        frame: &'a mut WarpFrame,
        context: &'a LaunchContext<'a>,
        budget: Budget,
        cache: &'a mut NativeCache,
    ) -> Self {
        let _ = frame.view.take_activity();
        let Budget { slice, quantum, steps } = budget;
        let turn = context.turn();
        Self { frame, context, slice, quantum, spent: 0, idle: 0, counted: 0, steps, cache, turn }
    }

    /// Runs groups until the warp must stop.
    fn whole(&mut self) -> Stop {
        loop {
            let Some(current) = self.pick() else {
                match self.settle() {
                    Some(stop) => return stop,
                    None => continue,
                }
            };
            let begun = match self.frame.take_ahead(&current.0) {
                None => None,
                Some(ahead) => match self.catch_up(current.0, ahead) {
                    Ok(()) => Some(ahead.before),
                    Err(stop) => return stop,
                },
            };
            if let Some(stop) = self.group(current, begun) {
                return stop;
            }
        }
    }

    /// Runs the first steps of a block for the lanes of a group that have not executed them.
    #[cold]
    fn catch_up(&mut self, current: Current, ahead: Ahead) -> Result<(), Stop> {
        let behind = Current { mask: current.mask & !ahead.mask, ..current };
        let index = self.frame.acts[current.act as usize].function;
        let function = self.context.function(index);
        let Some(block) = function.and_then(|function| function.blocks.get(current.block as usize)) else {
            return Err(bug(index, current.mask));
        };
        if behind.mask == 0 {
            return Ok(());
        }
        self.uncounted_steps(&behind, block, index, 0..ahead.before.unwrap_or(block.steps.len()))
    }

    /// Chooses the group to run: the lowest, or, if it has used up its quantum, the one that has waited
    /// longest.
    fn pick(&mut self) -> Option<(Current, Extra)> {
        if self.frame.quantum < 0 {
            self.frame.quantum = self.quantum;
            let mut oldest = self.frame.take_oldest()?;
            oldest.age = self.frame.next_age();
            return Some((oldest, Some(EXTRA_BLOCKS)));
        }
        let mut lowest = self.frame.take_lowest()?;
        lowest.age = self.frame.next_age();
        Some((lowest, None))
    }

    /// Runs a group until it ends or is preempted, or the warp must stop. `begun`: the group starts inside
    /// its block, at that step or at the terminator.
    fn group(
        &mut self,
        (mut current, mut extra): (Current, Extra),
        mut begun: Option<Option<usize>>,
    ) -> Option<Stop> {
        let context = self.context;
        loop {
            let act = &self.frame.acts[current.act as usize];
            let (index, top) = (act.function, act.top);
            let Some(function) = context.function(index) else {
                return Some(bug(index, current.mask));
            };
            self.frame.view.set_local_top(top);
            // Runs block after block of one activation.
            let (block, next) = loop {
                let mut from = Some(0);
                if let Some(begun) = begun.take() {
                    from = begun;
                } else if let Some(native) = context.native
                    && extra.is_none()
                    && self.enters(native, &current, index)
                {
                    match self.native(native, &mut current, index) {
                        Entered::Block(first) => from = first,
                        Entered::Gone => return None,
                        Entered::Stop(stop) => return Some(stop),
                    }
                }
                let Some(block) = function.blocks.get(current.block as usize) else {
                    return Some(bug(index, current.mask));
                };
                if let Some(first) = from
                    && let Err(stop) = self.steps(&current, block, index, first)
                {
                    return Some(stop);
                }
                self.trace_terminator(&current, index, block);
                if context.watched {
                    self.reaches_terminator(&current, block);
                }
                let next = self.terminator(&mut current, function, block);
                let Next::Block(BlockId(next)) = next else { break (block, next) };
                let back = next <= current.block;
                current.block = next;
                if (back || self.frame.charge > 0)
                    && let Some(stop) = self.charge(extra.is_some())
                {
                    self.give_way(&current);
                    return stop;
                }
                if let Some(left) = &mut extra {
                    *left = left.saturating_sub(1);
                    if *left == 0 || self.frame.someone_at(current.act, next) {
                        self.give_way(&current);
                        return None;
                    }
                } else if next >= current.limit {
                    self.give_way(&current);
                    return None;
                }
                if self.frame.state.wants_yield {
                    self.give_way(&current);
                    return Some(self.slept());
                }
            };
            match next {
                Next::Block(_) => {}
                Next::Moved { act, block } => {
                    (current.act, current.block) = (act, block);
                    let stop = self.charge(extra.is_some());
                    let over = match &mut extra {
                        Some(left) => {
                            *left = left.saturating_sub(1);
                            *left == 0 || self.frame.someone_at(act, block)
                        }
                        None => self.frame.has_ready(),
                    };
                    if stop.is_some() || over || self.frame.state.wants_yield {
                        self.give_way(&current);
                        return match stop {
                            Some(stop) => stop,
                            None if self.frame.state.wants_yield => Some(self.slept()),
                            None => None,
                        };
                    }
                }
                Next::Split => return None,
                Next::Failed(fault) => return Some(stopped(fault, index, block.span, block.loc)),
            }
        }
    }

    fn give_way(&mut self, current: &Current) {
        self.frame.push_ready_aged(current.act, current.block, current.mask, current.age);
    }

    /// Runs the steps of a block, beginning with step `from`.
    #[inline(always)]
    fn steps(&mut self, current: &Current, block: &Block, function: u32, first: usize) -> Result<(), Stop> {
        let frame = &mut *self.frame;
        let count = block.steps.len() as u64 + 1;
        if self.steps < count {
            let fault = Fault::new(FaultKind::StepLimit, current.mask.trailing_zeros() as usize);
            return Err(stopped(fault, function, block.span, block.loc));
        }
        frame.trusted = false;
        self.steps -= count;
        self.counted += count;
        frame.steps += count;
        frame.lane_steps += count * u64::from(current.mask.count_ones());
        frame.state.clock += count;
        if self.context.watched {
            return self.watched_steps(current, block, function, first);
        }
        self.uncounted_steps(current, block, function, first..block.steps.len())
    }

    /// Runs some of the steps of a block.
    #[inline(always)]
    fn uncounted_steps(
        &mut self,
        current: &Current,
        block: &Block,
        function: u32,
        steps: Range<usize>,
    ) -> Result<(), Stop> {
        let frame = &mut *self.frame;
        let act = &mut frame.acts[current.act as usize];
        let mut exec = Exec {
            mask: current.mask,
            group: current.mask,
            regs: &mut act.regs,
            warp: &mut frame.state,
            mem: &mut frame.view,
            frame: act.frame as u32,
        };
        let traced = self.context.trace.and_then(|trace| Some((trace, trace.lane_in(exec.warp)?)));
        let traced = traced.filter(|(_, lane)| current.mask >> lane & 1 != 0);
        for step in block.steps.get(steps).unwrap_or(&[]) {
            if let Some(guard) = step.guard {
                exec.mask = current.mask & truths(guard, exec.regs);
                if exec.mask == 0 {
                    if let Some((trace, lane)) = traced {
                        trace.step(function, step.span, exec.regs, lane, false);
                    }
                    continue;
                }
            } else {
                exec.mask = current.mask;
            }
            let done = (step.run)(&mut exec);
            if let Some((trace, lane)) = traced {
                trace.step(function, step.span, exec.regs, lane, exec.mask >> lane & 1 != 0);
            }
            if let Err(fault) = done {
                return Err(stopped(fault, function, step.span, step.loc));
            }
        }
        Ok(())
    }

    /// Charges a back edge or call. Returns whether the group is preempted: `Some(None)` in favour of another
    /// group, `Some(Some(_))` in favour of other warps.
    fn charge(&mut self, extra: bool) -> Option<Option<Stop>> {
        let activity = self.frame.view.take_activity();
        let cost = cost(activity);
        let machine = std::mem::take(&mut self.frame.charge);
        self.spent = self.spent.saturating_add(cost.slice).saturating_add(machine);
        if activity.watched && !activity.changed {
            self.idle += cost.slice;
        }
        if self.spent >= self.slice || self.is_to_stop() {
            return Some(Some(self.yielded()));
        }
        if extra {
            return None;
        }
        self.frame.quantum -= cost.quantum;
        if self.frame.quantum < 0 {
            if self.frame.has_ready() {
                return Some(None);
            }
            self.frame.quantum = self.quantum;
        }
        None
    }

    /// Whether the launch must stop. Checks only every [`STOP_CHECK_STEPS`] instructions; the scheduler
    /// repeats the check.
    fn is_to_stop(&mut self) -> bool {
        if self.counted < STOP_CHECK_STEPS {
            return false;
        }
        self.counted = 0;
        self.context.end.come().is_some()
    }

    fn yielded(&self) -> Stop {
        Stop::Yielded { idle: 2 * self.idle > self.spent }
    }

    fn slept(&mut self) -> Stop {
        self.frame.state.wants_yield = false;
        Stop::Yielded { idle: true }
    }

    /// Executes a block's terminator.
    #[inline(always)]
    fn terminator(&mut self, current: &mut Current, function: &Function, block: &Block) -> Next {
        match &block.term {
            Term::Goto(next) => Next::Block(*next),
            Term::Branch { cond, then, els } => {
                let regs = &self.frame.acts[current.act as usize].regs;
                let taken = current.mask & truths(*cond, regs);
                if taken == current.mask {
                    Next::Block(*then)
                } else if taken == 0 {
                    Next::Block(*els)
                } else if then == els {
                    Next::Block(*then)
                } else {
                    // The lower block runs first; the other lanes wait.
                    let rest = current.mask & !taken;
                    let (low, low_mask, high, high_mask) =
                        if then < els { (then, taken, els, rest) } else { (els, rest, then, taken) };
                    if self.context.watched {
                        let group = current.mask;
                        self.tell(current.act, current.block, |observer, site| {
                            observer.branches(site, taken, group);
                        });
                    }
                    self.frame.push_ready(current.act, high.0, high_mask);
                    current.mask = low_mask;
                    current.limit = current.limit.min(high.0);
                    Next::Block(*low)
                }
            }
            Term::Switch { index, targets } => self.switch(current, *index, targets),
            Term::Call(call) => self.call(current, function, call),
            Term::WarpSync(sync) => self.warp_sync(current, sync),
            Term::Aligned { run, next } => self.aligned(current, run, *next),
            Term::Barrier(barrier) => {
                self.barrier(current, barrier);
                Next::Split
            }
            Term::Ret => self.ret(current, function),
            Term::Exit => {
                self.exit(current.act, current.mask);
                Next::Split
            }
        }
    }

    fn switch(&mut self, current: &mut Current, index: Value32, targets: &[BlockId]) -> Next {
        let index = index.read(&self.frame.acts[current.act as usize].regs);
        for lane in lanes_of(current.mask) {
            if index.0[lane] as usize >= targets.len() {
                return Next::Failed(Fault::new(FaultKind::BadBranchIndex, lane));
            }
        }
        let first = index.0[current.mask.trailing_zeros() as usize];
        let same = equal_lanes(current.mask, |lane| index.0[lane] == first);
        if same == current.mask {
            return Next::Block(targets[first as usize]);
        }
        for lane in lanes_of(current.mask) {
            self.frame.push_ready(current.act, targets[index.0[lane] as usize].0, 1 << lane);
        }
        Next::Split
    }

    fn ret(&mut self, current: &Current, function: &Function) -> Next {
        let act = &self.frame.acts[current.act as usize];
        let (parent, site) = (act.parent, act.site);
        if parent == ROOT {
            self.exit(current.act, current.mask);
            return Next::Split;
        }
        let caller = self.frame.acts[parent as usize].function;
        let Some(Block { term: Term::Call(call), .. }) = self.context.block(caller, site) else {
            return Next::Failed(Fault::new(FaultKind::BadCall, current.mask.trailing_zeros() as usize));
        };
        match crate::call::give_results(self.frame, current, parent, function, call) {
            Ok(()) => {
                if self.context.watched {
                    self.tell(current.act, current.block, |observer, site| {
                        observer.returns(site, parent, current.mask);
                    });
                }
                self.frame.leave(current.act, current.mask);
                Next::Moved { act: parent, block: call.next.0 }
            }
            Err(fault) => Next::Failed(fault),
        }
    }

    /// Lanes exit. Lanes that waited only for them become ready.
    fn exit(&mut self, act: u32, mask: LaneMask) {
        if let Some(site) = self.frame.view.site() {
            site.tell(|observer, site| observer.exits(site, mask));
        }
        self.frame.exit(act, mask);
        while let Some(index) = self.complete_sync() {
            self.finish_sync(index);
        }
    }

    fn call(&mut self, current: &mut Current, _function: &Function, call: &crate::bound::Call) -> Next {
        use crate::call::Called;
        match crate::call::call(self.frame, self.context, current, call) {
            Ok(Called::Done) => Next::Block(call.next),
            Ok(Called::Entered(act)) => Next::Moved { act, block: 0 },
            Ok(Called::Scattered) => Next::Split,
            Err(fault) => Next::Failed(fault),
        }
    }

    fn aligned(&mut self, current: &Current, run: &StepFn, next: BlockId) -> Next {
        if self.context.watched {
            let event = WarpSyncEvent::Reached { lanes: current.mask, members: &Lane::splat(LaneMask::MAX) };
            self.tell(current.act, current.block, |observer, site| observer.warp_sync(site, &event));
        }
        if current.mask != self.frame.state.live {
            self.frame.park(current.act, current.block, current.mask, Wait::Aligned);
            return Next::Split;
        }
        match self.run_aligned(current.act, current.block, current.mask, run) {
            Ok(()) => Next::Block(next),
            Err(fault) => Next::Failed(fault),
        }
    }

    fn run_aligned(&mut self, act: u32, block: u32, mask: LaneMask, run: &StepFn) -> Result<(), Box<Fault>> {
        if self.context.watched {
            self.completes_sync(mask, &[(act, block, mask)]);
        }
        if self.context.mends && mask != FULL {
            // It is reported, and left out.
            self.completed_sync(act, block, mask);
            return Ok(());
        }
        let frame = &mut *self.frame;
        let running = &mut frame.acts[act as usize];
        run(&mut Exec {
            mask,
            group: mask,
            regs: &mut running.regs,
            warp: &mut frame.state,
            mem: &mut frame.view,
            frame: running.frame as u32,
        })?;
        if self.context.watched {
            self.completed_sync(act, block, mask);
        }
        Ok(())
    }

    fn warp_sync(&mut self, current: &mut Current, sync: &WarpSync) -> Next {
        let regs = &self.frame.acts[current.act as usize].regs;
        let members = sync.members.read(regs);
        let inputs = (sync.read)(regs);
        let live = self.frame.state.live;
        if self.context.watched {
            let event = WarpSyncEvent::Reached { lanes: current.mask, members: &members };
            self.tell(current.act, current.block, |observer, site| observer.warp_sync(site, &event));
        }
        let mut rest = current.mask;
        let mut parked: LaneMask = 0;
        // Usually one iteration: one member mask whose live lanes are all here.
        while rest != 0 {
            let lane = rest.trailing_zeros() as usize;
            let mut mask = members.0[lane];
            let group = equal_lanes(rest, |lane| members.0[lane] == mask);
            if let Some(outside) = lanes_of(group & !mask).next() {
                if !self.context.mends {
                    return Next::Failed(Fault::new(FaultKind::BadMemberMask, outside));
                }
                mask |= group;
            }
            if group == mask & live {
                if self.context.watched {
                    self.completes_sync(group, &[(current.act, current.block, group)]);
                }
                let out = (sync.combine)(group, &inputs);
                (sync.write)(&mut self.frame.acts[current.act as usize].regs, group, &out);
                if self.context.watched {
                    self.completed_sync(current.act, current.block, group);
                }
            } else {
                let wait = Wait::Sync { members: mask, inputs: Box::new(inputs.clone()) };
                self.frame.park(current.act, current.block, group, wait);
                parked |= group;
            }
            rest &= !group;
        }
        if parked == 0 {
            return Next::Block(sync.next);
        }
        if parked != current.mask {
            self.frame.push_ready(current.act, sync.next.0, current.mask & !parked);
        }
        while let Some(index) = self.complete_sync() {
            self.finish_sync(index);
        }
        Next::Split
    }

    /// The warp-synchronous instruction at which a group waits.
    fn sync_of(&self, group: &Group) -> Option<&WarpSync> {
        match &self.context.block(self.frame.acts[group.act as usize].function, group.block)?.term {
            Term::WarpSync(sync) => Some(sync),
            _ => None,
        }
    }

    /// A waiting group whose members have all arrived.
    fn complete_sync(&self) -> Option<usize> {
        let live = self.frame.state.live;
        self.frame.groups.iter().position(|g| match g.wait {
            Wait::Sync { members, .. } => self.companions(g, members) == members & live,
            _ => false,
        })
    }

    /// The lanes that wait at an instruction with the same key as `group` and the same member mask.
    fn companions(&self, group: &Group, members: LaneMask) -> LaneMask {
        let Some(sync) = self.sync_of(group) else { return 0 };
        let same = |g: &&Group| {
            matches!(g.wait, Wait::Sync { members: m, .. } if m == members)
                && self.sync_of(g).is_some_and(|s| s.key == sync.key)
        };
        self.frame.groups.iter().filter(same).fold(0, |mask, g| mask | g.mask)
    }

    /// Computes the result of a warp-synchronous instruction for all its lanes, and makes them ready.
    fn finish_sync(&mut self, index: usize) {
        let group = &self.frame.groups[index];
        let Wait::Sync { members, .. } = group.wait else { return };
        let lanes = self.companions(group, members);
        let (mut inputs, mut list) = (crate::bound::SyncIn::default(), Vec::new());
        let mut at = 0;
        while at < self.frame.groups.len() {
            let group = &self.frame.groups[at];
            if group.mask & lanes == 0 {
                at += 1;
                continue;
            }
            let group = self.frame.groups.swap_remove(at);
            if let Wait::Sync { inputs: theirs, .. } = &group.wait {
                inputs.a.blend(group.mask, &theirs.a);
                inputs.b.blend(group.mask, &theirs.b);
                inputs.c.blend(group.mask, &theirs.c);
            }
            list.push(group);
        }
        let context = self.context;
        if context.watched {
            let parts: Vec<_> = list.iter().map(|g| (g.act, g.block, g.mask)).collect();
            self.completes_sync(lanes, &parts);
        }
        let mut out = None;
        for group in list {
            let function = self.frame.acts[group.act as usize].function;
            let Some(Block { term: Term::WarpSync(sync), .. }) = context.block(function, group.block) else {
                continue;
            };
            let out = out.get_or_insert_with(|| (sync.combine)(lanes, &inputs));
            (sync.write)(&mut self.frame.acts[group.act as usize].regs, group.mask, out);
            if context.watched {
                self.completed_sync(group.act, group.block, group.mask);
            }
            self.frame.push_ready(group.act, sync.next.0, group.mask);
        }
    }

    /// Handles a warp without a ready group: a barrier arrival, an aligned instruction, or a deadlock.
    fn settle(&mut self) -> Option<Stop> {
        if self.frame.groups.is_empty() {
            return Some(Stop::Exited);
        }
        if self
            .frame
            .groups
            .iter()
            .any(|g| matches!(g.wait, Wait::Barrier(BarrierWait { arrived: true, .. })))
        {
            return Some(Stop::Waiting);
        }
        if self.frame.groups.iter().all(|g| matches!(g.wait, Wait::Barrier(_))) {
            return self.arrive();
        }
        if self.frame.groups.iter().all(|g| matches!(g.wait, Wait::Aligned)) {
            return self.settle_aligned();
        }
        Some(Stop::Stuck)
    }

    /// Executes an `.aligned` warp instruction at which all live lanes wait.
    fn settle_aligned(&mut self) -> Option<Stop> {
        let (act, at) = (self.frame.groups[0].act, self.frame.groups[0].block);
        if self.frame.groups.iter().any(|g| (g.act, g.block) != (act, at)) {
            return Some(Stop::Stuck);
        }
        self.frame.groups.clear();
        let function = self.frame.acts[act as usize].function;
        let (context, live) = (self.context, self.frame.state.live);
        let Some(Block { term: Term::Aligned { run, next }, span, loc, .. }) = context.block(function, at)
        else {
            return Some(bug(function, live));
        };
        self.frame.view.set_local_top(self.frame.acts[act as usize].top);
        match self.run_aligned(act, at, live, run) {
            Ok(()) => {
                self.frame.push_ready(act, next.0, live);
                None
            }
            Err(fault) => Some(stopped(fault, function, *span, *loc)),
        }
    }
}

/// The lanes of `mask` for which `is` returns true.
fn equal_lanes(mask: LaneMask, is: impl Fn(usize) -> bool) -> LaneMask {
    lanes_of(mask).filter(|lane| is(*lane)).fold(0, |m, lane| m | 1 << lane)
}

/// The lanes for which a guard is true.
#[inline(always)]
pub(crate) fn truths(guard: Guard, regs: &Registers) -> LaneMask {
    let value = regs.pred[guard.pred.index as usize];
    if guard.negated { !value } else { value }
}

#[cold]
fn stopped(fault: Box<Fault>, function: u32, span: ptx::Span, loc: Option<ptx::check::module::Loc>) -> Stop {
    Stop::Trapped(Box::new(Stopped { fault, function, span, loc }))
}

/// A broken guarantee of lowering or binding. It is reported as a trap, because no input may cause a panic.
#[cold]
fn bug(function: u32, mask: LaneMask) -> Stop {
    let kind = FaultKind::Unsupported("ptxvm bug: a position outside the bound code".to_owned());
    stopped(Fault::new(kind, mask.trailing_zeros() as usize), function, ptx::Span::default(), None)
}
