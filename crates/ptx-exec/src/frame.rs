//! The positions of the lanes of a warp: groups of lanes in a tree of activations.
//!
//! A **group** is a set of lanes at the same block of the same activation. An **activation** is a running
//! function, with registers for all 32 lanes and a frame in local memory. It is identified by its parent, the
//! calling block of the parent, and the function. So lanes that make the same call at different times share
//! one activation.
//!
//! The **order of positions** is reverse postorder along the call path: a callee of block 3 comes after block
//! 3 of the caller and before block 5. The interpreter runs the lowest group, so groups reconverge where
//! post-dominators would make them.
//!
//! Invariants: the masks of the groups and of the running group are disjoint, and together they are the live
//! lanes. No two ready groups have the same position. An activation's `lanes` are those that run in it or in
//! its callees; it is recycled when there are none.

use crate::bound::{BarrierKind, SyncIn};
use crate::lanes::{LaneMask, Registers};
use crate::mem::{LocalLayout, View, Window};
use crate::trap::{Fault, FaultKind};
use crate::warp::WarpState;
use ptx::ir::RegCounts;
use std::cmp::Ordering;

/// The quantum: the cost that the lowest group may spend while others are ready.
pub(crate) const GROUP_QUANTUM: i64 = 1 << 16;
/// The parent of the kernel's activation.
pub(crate) const ROOT: u32 = u32::MAX;
/// Most bytes of registers of the nested calls of a warp; more is a stack overflow.
const REGISTER_BYTES: u64 = 256 << 20;
/// The registers of a larger activation are freed at its end, in bytes.
const KEPT_REGISTERS: u64 = 1 << 20;
/// The most nested calls. Chosen: well beyond what a GPU's stack allows; bounds the memory for registers.
pub(crate) const DEPTH_LIMIT: u32 = 4096;

/// An activation of a function.
#[derive(Default)]
pub(crate) struct Activation {
    /// `FuncId`.
    pub(crate) function: u32,
    /// The caller's activation, or [`ROOT`].
    pub(crate) parent: u32,
    /// The block of the caller that ends with the call.
    pub(crate) site: u32,
    /// Number of callers; 0 for the kernel.
    pub(crate) depth: u32,
    /// Lanes in it or in its callees.
    pub(crate) lanes: LaneMask,
    /// Registers.
    pub(crate) regs: Registers,
    /// Size of its registers in bytes.
    bytes: u64,
    /// Offset of its frame in each lane's local memory.
    pub(crate) frame: u64,
    /// End of its frame.
    pub(crate) top: u64,
}

/// Bytes of the registers of an activation, all lanes.
pub(crate) fn register_bytes(regs: RegCounts) -> u64 {
    let RegCounts { pred, r16, r32, r64 } = regs;
    let lanes = crate::lanes::LANES as u64;
    4 * u64::from(pred) + lanes * (2 * u64::from(r16) + 4 * u64::from(r32) + 8 * u64::from(r64))
}

/// A set of lanes at one position.
pub(crate) struct Group {
    /// Activation.
    pub(crate) act: u32,
    /// The next block to run; for a waiting group, the block whose terminator it waits at.
    pub(crate) block: u32,
    /// Lanes.
    pub(crate) mask: LaneMask,
    /// When it last ran or was created: the group with the smallest age has waited longest.
    pub(crate) age: u64,
    /// The event that it waits for.
    pub(crate) wait: Wait,
}

/// The event that a group waits for.
pub(crate) enum Wait {
    /// Nothing.
    Ready,
    /// The other members of a warp-synchronous instruction.
    Sync {
        /// Member mask of the lanes.
        members: LaneMask,
        /// Sources of the lanes.
        inputs: Box<SyncIn>,
    },
    /// All live lanes of the warp, at an `.aligned` warp instruction.
    Aligned,
    /// A barrier of the CTA.
    Barrier(BarrierWait),
}

/// The operands of a group that waits at a barrier.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BarrierWait {
    /// Form.
    pub(crate) kind: BarrierKind,
    /// Barrier number, not yet validated.
    pub(crate) id: u32,
    /// Thread count, not yet validated.
    pub(crate) count: Option<u32>,
    /// Lanes whose predicate is true.
    pub(crate) truths: LaneMask,
    /// Whether the warp's arrival has been reported.
    pub(crate) arrived: bool,
}

/// The running group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Current {
    /// Activation.
    pub(crate) act: u32,
    /// Block.
    pub(crate) block: u32,
    /// Lanes.
    pub(crate) mask: LaneMask,
    /// The first block of this activation before which another group must run.
    pub(crate) limit: u32,
    /// As in [`Group`].
    pub(crate) age: u64,
}

/// Lanes of a ready group that have executed a part of its block already: the others catch up before the
/// group goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ahead {
    /// Activation of the group.
    pub(crate) act: u32,
    /// Its block.
    pub(crate) block: u32,
    /// The lanes.
    pub(crate) mask: LaneMask,
    /// The step before which they are; `None`: the terminator.
    pub(crate) before: Option<usize>,
}

/// The whole state of a warp.
pub(crate) struct WarpFrame {
    /// Identity, flags, clock.
    pub(crate) state: WarpState,
    /// Memory.
    pub(crate) view: View,
    /// Activations; those without lanes are free.
    pub(crate) acts: Vec<Activation>,
    free: Vec<u32>,
    /// All groups except the running one.
    pub(crate) groups: Vec<Group>,
    /// Lanes that are in the middle of a block.
    pub(crate) ahead: Option<Ahead>,
    ages: u64,
    /// What is left of the lowest group's quantum.
    pub(crate) quantum: i64,
    /// Local memory of its lanes.
    local: Option<Window>,
    /// Bytes of each lane's local memory.
    stack: u64,
    /// Bytes of the registers of all activations.
    registers: u64,
    /// The highest frame offset that was in use since local memory was last cleared.
    used: u64,
    /// Steps executed by the warp.
    pub(crate) steps: u64,
    /// Steps, counted per lane.
    pub(crate) lane_steps: u64,
    /// Output that is not collected yet.
    pub(crate) output: Vec<u8>,
    /// Dropped output in bytes.
    pub(crate) dropped: u64,
    /// Cost of machine functions that is not charged to the slice yet.
    pub(crate) charge: i64,
    /// Whether the registers are unchanged since native code last stopped.
    pub(crate) trusted: bool,
    /// Steps in native code, and the part of them that the interpreter executed.
    pub(crate) native_steps: (u64, u64),
    /// Lanes whose registers native code may have written since observers learned of them.
    pub(crate) unknown: LaneMask,
}

impl WarpFrame {
    /// A warp without positions. `local` is memory for 32 lanes, if the kernel needs any.
    pub(crate) fn new(state: WarpState, mut view: View, local: Option<Window>, layout: LocalLayout) -> Self {
        let stack = local.as_ref().map_or(0, |w| w.bytes() / crate::lanes::LANES as u64);
        if let Some(window) = &local {
            view.set_local(window.start(), stack, layout);
        }
        // What is not zero at the start of a CTA is made so by clearing all of it once.
        let used = if view.memory().has_fill() { stack } else { 0 };
        Self {
            state,
            view,
            acts: Vec::new(),
            free: Vec::new(),
            groups: Vec::new(),
            ahead: None,
            ages: 0,
            quantum: 0,
            local,
            stack,
            registers: 0,
            used,
            steps: 0,
            lane_steps: 0,
            output: Vec::new(),
            dropped: 0,
            charge: 0,
            trusted: false,
            native_steps: (0, 0),
            unknown: 0,
        }
    }

    /// Sets all threads to the start of the kernel, as warp `warpid` of that CTA. Does not clear local
    /// memory.
    pub(crate) fn start(
        &mut self,
        ctaid: [u32; 3],
        warpid: u32,
        kernel: u32,
        function: &crate::bound::Function,
    ) {
        self.state.start(ctaid, warpid);
        self.groups.clear();
        self.ahead = None;
        self.free.clear();
        for (index, act) in self.acts.iter_mut().enumerate() {
            act.lanes = 0;
            self.free.push(index as u32);
        }
        self.ages = 0;
        self.quantum = GROUP_QUANTUM;
        (self.steps, self.lane_steps) = (0, 0);
        self.output.clear();
        (self.dropped, self.charge) = (0, 0);
        self.trusted = false;
        self.native_steps = (0, 0);
        self.unknown = 0;
        self.registers = 0;
        let mask = self.state.live;
        let frame = u64::from(function.frame_bytes);
        let act = self.new_activation(function.regs);
        let root = &mut self.acts[act as usize];
        (root.function, root.parent, root.site, root.depth) = (kernel, ROOT, 0, 0);
        (root.lanes, root.frame, root.top) = (mask, 0, frame);
        self.used = self.used.max(frame);
        self.push_ready(act, 0, mask);
    }

    /// Zeroes the local memory that was in use.
    pub(crate) fn clear_local(&mut self) {
        if self.used == 0 {
            return;
        }
        if let Some(window) = &mut self.local {
            self.view.clear_local(window, self.used);
        }
        self.used = 0;
    }

    /// Marks the first bytes of each lane's local memory as in use.
    pub(crate) fn use_local(&mut self, bytes: u64) {
        self.used = self.used.max(bytes);
    }

    /// The next age.
    pub(crate) fn next_age(&mut self) -> u64 {
        self.ages += 1;
        self.ages
    }

    fn new_activation(&mut self, regs: RegCounts) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.acts.push(Activation::default());
            self.acts.len() as u32 - 1
        });
        let act = &mut self.acts[index as usize];
        act.regs.reset(regs);
        act.bytes = register_bytes(regs);
        self.registers += act.bytes;
        index
    }

    /// Lanes enter a function that is called at the end of block `site` of `parent`. They join the activation
    /// of lanes that made the same call and have not returned.
    ///
    /// # Errors
    /// A fault if the frame does not fit into local memory, or calls nest too deeply.
    pub(crate) fn enter(
        &mut self,
        parent: u32,
        site: u32,
        callee: u32,
        function: &crate::bound::Function,
        mask: LaneMask,
    ) -> Result<u32, Box<Fault>> {
        let caller = &self.acts[parent as usize];
        let (depth, frame) =
            (caller.depth + 1, caller.top.next_multiple_of(u64::from(function.frame_align.max(1))));
        if caller.lanes != mask {
            let same = |a: &Activation| {
                a.lanes != 0 && (a.parent, a.site, a.function, a.depth) == (parent, site, callee, depth)
            };
            if let Some(index) = self.acts.iter().position(same) {
                self.acts[index].lanes |= mask;
                return Ok(index as u32);
            }
        }
        let top = frame + u64::from(function.frame_bytes);
        let registers = self.registers + register_bytes(function.regs);
        if top > self.stack || depth > DEPTH_LIMIT || registers > REGISTER_BYTES {
            return Err(Fault::new(FaultKind::StackOverflow, mask.trailing_zeros() as usize));
        }
        let index = self.new_activation(function.regs);
        let act = &mut self.acts[index as usize];
        (act.function, act.parent, act.site, act.depth) = (callee, parent, site, depth);
        (act.lanes, act.frame, act.top) = (mask, frame, top);
        self.used = self.used.max(top);
        Ok(index)
    }

    /// Lanes return from an activation to its parent.
    pub(crate) fn leave(&mut self, act: u32, mask: LaneMask) {
        let gone = &mut self.acts[act as usize];
        gone.lanes &= !mask;
        if gone.lanes == 0 {
            self.registers -= gone.bytes;
            if gone.bytes > KEPT_REGISTERS {
                gone.regs = Registers::default();
            }
            self.free.push(act);
        }
    }

    /// Lanes exit: they leave all their activations.
    pub(crate) fn exit(&mut self, act: u32, mask: LaneMask) {
        self.state.live &= !mask;
        let mut at = act;
        while at != ROOT {
            let parent = self.acts[at as usize].parent;
            self.leave(at, mask);
            at = parent;
        }
    }

    /// Makes lanes ready at a position, and merges them with a ready group there.
    pub(crate) fn push_ready(&mut self, act: u32, block: u32, mask: LaneMask) {
        let age = self.next_age();
        self.push_ready_aged(act, block, mask, age);
    }

    /// As [`WarpFrame::push_ready`], with a given age.
    pub(crate) fn push_ready_aged(&mut self, act: u32, block: u32, mask: LaneMask, age: u64) {
        if let Some(group) = self.ready_at(act, block) {
            group.mask |= mask;
            group.age = group.age.min(age);
        } else {
            self.groups.push(Group { act, block, mask, age, wait: Wait::Ready });
        }
    }

    fn ready_at(&mut self, act: u32, block: u32) -> Option<&mut Group> {
        self.groups.iter_mut().find(|g| g.act == act && g.block == block && matches!(g.wait, Wait::Ready))
    }

    /// Whether a ready group is at that position.
    pub(crate) fn someone_at(&mut self, act: u32, block: u32) -> bool {
        self.ready_at(act, block).is_some()
    }

    /// The lanes of that group, which is no longer ready, that are in the middle of its block.
    pub(crate) fn take_ahead(&mut self, current: &Current) -> Option<Ahead> {
        self.ahead.take_if(|ahead| (ahead.act, ahead.block) == (current.act, current.block))
    }

    /// Adds a waiting group.
    pub(crate) fn park(&mut self, act: u32, block: u32, mask: LaneMask, wait: Wait) {
        let age = self.next_age();
        self.groups.push(Group { act, block, mask, age, wait });
    }

    fn ready(&self) -> impl Iterator<Item = (usize, &Group)> {
        self.groups.iter().enumerate().filter(|(_, g)| matches!(g.wait, Wait::Ready))
    }

    /// Whether any group is ready.
    pub(crate) fn has_ready(&self) -> bool {
        self.ready().next().is_some()
    }

    /// Removes the lowest ready group, to run it.
    pub(crate) fn take_lowest(&mut self) -> Option<Current> {
        let lowest = self
            .ready()
            .min_by(|(_, a), (_, b)| self.order((a.act, a.block), (b.act, b.block)))
            .map(|(index, _)| index)?;
        let mut current = self.take(lowest);
        current.limit = self.limit(current.act, current.block);
        Some(current)
    }

    /// Removes the ready group that has waited longest, to run it without a limit.
    pub(crate) fn take_oldest(&mut self) -> Option<Current> {
        let oldest = self.ready().min_by_key(|(_, g)| g.age).map(|(index, _)| index)?;
        Some(self.take(oldest))
    }

    fn take(&mut self, index: usize) -> Current {
        let Group { act, block, mask, age, wait: _ } = self.groups.swap_remove(index);
        Current { act, block, mask, limit: u32::MAX, age }
    }

    /// The blocks of two positions in their lowest common activation. For each also the child activation on
    /// the path to the position, if it is deeper.
    fn lift(&self, mut a: (u32, u32), mut b: (u32, u32)) -> ((u32, Option<u32>), (u32, Option<u32>)) {
        let up = |p: (u32, u32)| {
            let act = &self.acts[p.0 as usize];
            (act.parent, act.site)
        };
        let depth = |p: (u32, u32)| self.acts[p.0 as usize].depth;
        let (mut below_a, mut below_b) = (None, None);
        while a.0 != b.0 {
            let (da, db) = (depth(a), depth(b));
            if da >= db {
                below_a = Some(a.0);
                a = up(a);
            }
            if db >= da {
                below_b = Some(b.0);
                b = up(b);
            }
        }
        ((a.1, below_a), (b.1, below_b))
    }

    /// Compares positions.
    pub(crate) fn order(&self, a: (u32, u32), b: (u32, u32)) -> Ordering {
        let (a, b) = self.lift(a, b);
        // The order of different callees of one block is arbitrary but fixed.
        let key = |(block, below): (u32, Option<u32>)| {
            (block, below.map(|act| (self.acts[act as usize].function, act)))
        };
        key(a).cmp(&key(b))
    }

    /// The first block of `act` before which a group other than the one at `block` must run: see
    /// [`Current::limit`].
    pub(crate) fn limit(&self, act: u32, block: u32) -> u32 {
        let limit_by = |g: &Group| {
            if g.act == act {
                return g.block;
            }
            match self.lift((act, block), (g.act, g.block)) {
                // The other group is in a call from this activation: its calling block may run, the next
                // block must wait.
                ((_, None), (there, _)) => there + 1,
                ((_, Some(_)), _) => match self.order((act, block), (g.act, g.block)) {
                    Ordering::Less => u32::MAX,
                    Ordering::Equal | Ordering::Greater => 0,
                },
            }
        };
        self.ready().map(|(_, g)| limit_by(g)).min().unwrap_or(u32::MAX)
    }
}
