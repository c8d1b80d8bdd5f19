//! Kernels in native code under racecheck.
//!
//! Native code reports no accesses. It compares each access with the [stamps](ptx_exec::stamps) of the bytes,
//! and continues if a barrier of the whole CTA, or program order, orders the access with all conflicting ones
//! before it. Otherwise the interpreter executes the instruction, and [`Filter`] compares the access by the
//! same rules, lane by lane. If it confirms the conflict, the machine discards the execution and repeats the
//! launch in the interpreter, where the [detector](super::detect) observes it. So every finding comes from
//! the detector, and the filter only decides whether the detector is needed.
//!
//! The filter knows fewer orders than the detector: it ignores fences, release and acquire patterns, strong
//! loads and stores, `bar.warp.sync`, and barriers that not all threads of the CTA wait at. Updates by atomic
//! operations of one size and a sufficient scope do not conflict with each other. Stamps are those of four
//! bytes, so threads that store to different bytes of one word conflict, except by one instruction of a warp.
//!
//! Invariant: if two accesses of an execution race, the filter finds a conflict. Proof sketch: a cell names
//! the last write, and all reads and updates that are not ordered before it are ordered before the last write
//! or merged into one stamp that conflicts with every thread that some of them conflicts with. An access that
//! was ordered after all conflicting ones stands for them: what is ordered after it is ordered after them.
//!
//! What it does not do: it does not describe races.

use ptx::ir::{Inst, Terminator};
use ptx::isa::{Op, Scope, Space, Ty};
use ptx_exec::lanes::{LaneMask, lanes_of};
use ptx_exec::stamps::{StampKind, Stamps};
use ptx_exec::watch::{Access, AccessKind, BarrierEvent, CtaFacts, KernelFacts, NativeChecks, Site};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// What native code of a kernel must check; the error says why it must be interpreted.
pub(super) fn checks(kernel: &KernelFacts<'_>) -> Result<NativeChecks, String> {
    let Some(function) = kernel.program.functions.get(kernel.kernel.0 as usize) else {
        return Err("racecheck does not know the kernel".to_owned());
    };
    let line = |inst: &Inst| kernel.program.source.line(inst.span);
    let (mut whole, mut size) = (false, None);
    for block in &function.blocks {
        match &block.term {
            Terminator::Call(_) => return Err("racecheck follows its calls".to_owned()),
            Terminator::Barrier { .. } => whole = true,
            Terminator::WarpSync { .. }
            | Terminator::Ret(_)
            | Terminator::Exit(_)
            | Terminator::Goto(..)
            | Terminator::Branch { .. }
            | Terminator::Switch { .. } => {}
        }
        for inst in block.insts.iter().chain(block.term.inst()) {
            if is_followed(inst.op) {
                return Err(format!("racecheck follows the `{}` in line {}", inst.op.name(), line(inst)));
            }
            if !matches!(inst.op, Op::Atom | Op::Red) {
                continue;
            }
            // Operations of different sizes, or whose scope does not include the other thread, race.
            let narrow = inst.mods.scope() == Some(Scope::Cta) && inst.mods.space() != Space::Shared;
            let parts = matches!(inst.mods.ty(), Ty::F16x2 | Ty::Bf16x2) || inst.mods.vec() != 1;
            let bits = inst.mods.ty().bits();
            if narrow || parts || *size.get_or_insert(bits) != bits {
                let line = line(inst);
                return Err(format!("racecheck compares the atomic operation in line {line} with others"));
            }
        }
    }
    Ok(NativeChecks { ordered: true, whole, ..NativeChecks::default() })
}

/// Whether an instruction accesses memory in a way that stamps do not describe: by another thread, for the
/// warp as a whole, or in memory that is not restored.
fn is_followed(op: Op) -> bool {
    matches!(
        op,
        Op::CpAsync
            | Op::CpAsyncMbarrierArrive
            | Op::MbarrierInit
            | Op::MbarrierInval
            | Op::MbarrierArrive
            | Op::MbarrierArriveDrop
            | Op::MbarrierTestWait
            | Op::WmmaLoad
            | Op::WmmaStore
            | Op::Ldmatrix
            | Op::Stmatrix
            | Op::Sust
            | Op::Sured
    )
}

/// Compares the accesses that the interpreter executes in a launch with stamps.
pub(super) struct Filter {
    stamps: Arc<Stamps>,
    /// By slot of a CTA: its warps, and for each barrier how many of them wait there with all threads.
    ctas: HashMap<u32, (usize, [usize; 16])>,
}

/// The numbers that stamps are compared with, for one access.
#[derive(Clone, Copy)]
struct Now {
    now: u32,
    start: u32,
    first: u32,
    saved: u32,
    several: u32,
}

impl Now {
    /// Whether an access that left a stamp is not ordered with one of the thread `me`. `none`: stamps of
    /// global memory up to that number stand for no access of this launch.
    fn conflicts(&self, stamp: u32, me: u32, shared: bool, none: u32) -> bool {
        stamp >= self.now && stamp != me || !shared && stamp >= none && stamp < self.start
    }

    /// The stamp of a cell for reads or updates after another one.
    fn merged(&self, stamp: u32, me: u32, shared: bool) -> u32 {
        if stamp >= self.now {
            if stamp == me { me } else { self.several }
        } else if !shared && stamp >= self.first && stamp < self.start {
            self.first
        } else {
            me
        }
    }
}

impl Filter {
    pub(super) fn new(stamps: &Arc<Stamps>) -> Self {
        Self { stamps: Arc::clone(stamps), ctas: HashMap::new() }
    }

    pub(super) fn cta_begins(&mut self, cta: &CtaFacts) {
        self.ctas.insert(cta.slot, (cta.warps.len(), [0; 16]));
    }

    /// The interval ends when a barrier completes at which all threads of the CTA wait.
    pub(super) fn barrier(&mut self, site: &Site, event: &BarrierEvent<'_>) {
        let Some((warps, waiting)) = self.ctas.get_mut(&site.warp.cta_slot) else { return };
        let existing = site.warp.lanes;
        match event {
            BarrierEvent::Arrived { id, waiting: lanes, .. } if lanes & existing == existing => {
                waiting[*id as usize % 16] += 1;
            }
            BarrierEvent::Completed { id, .. } => {
                if std::mem::take(&mut waiting[*id as usize % 16]) == *warps {
                    self.stamps.clock().advance();
                }
            }
            BarrierEvent::Arrived { .. }
            | BarrierEvent::Reached { .. }
            | BarrierEvent::Parted { .. }
            | BarrierEvent::Released { .. } => {}
        }
    }

    /// Compares an access, and records it. Returns the lanes that must not write, because what they overwrite
    /// could not be restored; then the execution is discarded.
    pub(super) fn access(&self, site: &Site, access: &Access<'_>) -> LaneMask {
        if matches!(access.space, Space::Const | Space::Local | Space::Param | Space::Tex) {
            return 0;
        }
        let clock = self.stamps.clock();
        let [now, start, first, unit] =
            [&clock.now, &clock.start, &clock.first, &clock.unit].map(|number| number.load(Relaxed));
        let now = Now { now, start, first, saved: first + unit, several: now + unit - 1 };
        let refused = access.refused.iter().fold(0, |lanes, refused| lanes | 1 << refused.lane);
        let memory = &site.launch.memory;
        let (mut cells, mut left_out) = (Vec::new(), 0);
        for lane in lanes_of(access.lanes & !refused) {
            let address = access.generic.0[lane];
            let space = memory.space_of(address);
            if matches!(space, Space::Const | Space::Param) {
                continue;
            }
            let write = access.kind != AccessKind::Load;
            if space == Space::Local {
                if write {
                    // Native code admits a generic store to memory that is kept.
                    self.stamps.keep(address, address & !0xfff..(address | 0xfff) + 1, None);
                }
                continue;
            }
            let shared = address.wrapping_sub(site.warp.shared.0) < site.warp.shared.1;
            if write && !shared && !self.stamps.is_kept(address) {
                // What others may write without a report is not ours to restore.
                match memory.allocation_at(address).filter(|_| memory.is_exclusive(address)) {
                    Some(all) => self.stamps.keep(address, all, Some(&|range| memory.contents(range))),
                    None => left_out |= 1 << lane,
                }
            }
            let me = now.now + 32 * site.warp.warp + lane as u32;
            let end = address + u64::from(access.bytes);
            cells.extend((address & !3..end).step_by(4).map(|at| (at, me, shared)));
        }
        let conflict = cells.iter().any(|cell| self.is_conflict(access.kind, *cell, now));
        // Lanes that store to different bytes of a word together.
        let mut addresses: Vec<u64> =
            lanes_of(access.lanes & !refused).map(|l| access.generic.0[l]).collect();
        addresses.sort_unstable();
        let apart = addresses.windows(2).all(|pair| pair[0] != pair[1]);
        let together =
            cells.iter().fold(false, |any, cell| self.record(access.kind, *cell, now) && !apart | any);
        if conflict || together || left_out != 0 {
            self.stamps.set_conflict();
        }
        left_out
    }

    fn is_conflict(&self, kind: AccessKind, (address, me, shared): (u64, u32, bool), now: Now) -> bool {
        let finds = |kind: StampKind| {
            let none = if kind == StampKind::Write { now.saved + 1 } else { now.first };
            let cell = self.stamps.cell(kind, address);
            cell.is_none_or(|cell| now.conflicts(cell.load(Relaxed), me, shared, none))
        };
        match kind {
            AccessKind::Load => finds(StampKind::Write) || finds(StampKind::Update),
            AccessKind::Store => {
                finds(StampKind::Write) || finds(StampKind::Read) || finds(StampKind::Update)
            }
            AccessKind::Atomic => finds(StampKind::Write) || finds(StampKind::Read),
        }
    }

    /// Records an access. Returns whether another lane of the same instruction writes the same cell.
    fn record(&self, kind: AccessKind, (address, me, shared): (u64, u32, bool), now: Now) -> bool {
        let kind = match kind {
            AccessKind::Load => StampKind::Read,
            AccessKind::Store => StampKind::Write,
            AccessKind::Atomic => StampKind::Update,
        };
        let Some(cell) = self.stamps.cell(kind, address) else { return true };
        let stamp = cell.load(Relaxed);
        match kind {
            StampKind::Write => {
                let together = stamp >= now.now && stamp != me;
                cell.store(if together { now.several } else { me }, Relaxed);
                together
            }
            StampKind::Read => {
                cell.store(now.merged(stamp, me, shared), Relaxed);
                false
            }
            StampKind::Update => {
                // As native code does.
                cell.store(now.merged(stamp, now.several, shared), Relaxed);
                false
            }
        }
    }
}
