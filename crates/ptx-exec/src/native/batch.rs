//! Batches of CTAs that native code runs in one call.
//!
//! Entering native code costs more than a short CTA does. Therefore a thread passes several CTAs to one call,
//! and native code asks for the next one when a CTA has finished.
//!
//! Invariant: a batched CTA starts in the same state as a scheduled one: its number, slots at the start of
//! the kernel, shared memory zero. A call gets a single CTA if an interpreter step of the kernel can depend
//! on the CTA ([`Native::can_batch_ctas`](super::Native::can_batch_ctas)), or if the kernel uses local
//! memory.

use super::{CoarseCode, CtaCall, CtaCode, Line, Slot};
use crate::bound::Function;
use crate::lanes::{FULL, LANES};
use crate::mem::Window;
use crate::watched_cta;

/// The slots of a CTA that has not started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InitialSlots {
    /// The slot state, from [`CtaCode::not_started`](super::CtaCode::not_started).
    pub(crate) state: u32,
    /// Threads of the CTA, from which the lanes of the last warp follow. Unused for coarse warps, which are
    /// always full.
    pub(crate) threads: u32,
    /// Warps per slot: 1, or the warps of a coarse warp.
    pub(crate) warps: u32,
    /// Lines of each save area that begin with lane masks; 0 if all coarse warps share one.
    pub(crate) lines: usize,
}

impl InitialSlots {
    /// The slots of single warps, for a CTA of `threads` threads.
    pub(crate) fn of_warps(function: &Function, threads: u32) -> Self {
        Self { state: CtaCode::not_started(function.blocks.len()), threads, warps: 1, lines: 0 }
    }

    /// The slots of coarse warps of `warps` warps, with save areas of `lines` lines.
    pub(crate) fn of_coarse_warps(function: &Function, warps: u32, lines: usize) -> Self {
        Self { state: CtaCode::not_started(function.blocks.len()), threads: 0, warps, lines }
    }

    /// Sets all slots to the start of the kernel.
    pub(crate) fn put(self, slots: &mut [Slot], kept: &mut [Line]) {
        if self.warps > 1 {
            for slot in &mut *slots {
                (slot.state, slot.live, slot.carry) = (self.state, FULL, 0);
            }
            let areas = if self.lines == 0 { 1 } else { slots.len() };
            for at in 0..areas {
                // Words of 64 bits hold two masks each; an odd count writes one unused mask too many.
                let masks = kept[at * self.lines..].iter_mut().flat_map(|line| &mut line.0);
                masks.take(self.warps.div_ceil(2) as usize).for_each(|masks| *masks = u64::MAX);
            }
            return;
        }
        let mut left = self.threads;
        for slot in slots {
            let live = if left >= LANES as u32 { FULL } else { FULL >> (32 - left) };
            (slot.state, slot.live, slot.carry, slot.clock) = (self.state, live, 0, 0);
            left = left.saturating_sub(LANES as u32).max(1);
        }
    }
}

/// How many groups of CTAs execute row by row; see [`CoarseCode`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Groups {
    /// Those that run now.
    pub(crate) now: u32,
    /// The most that there are slots for.
    pub(crate) most: u32,
}

impl Groups {
    /// A single CTA, or a single group.
    pub(crate) const ONE: Self = Self { now: 1, most: 1 };
}

/// The CTAs that may follow the first one in the same call.
pub(crate) struct CtaBatch<'a> {
    /// How many more CTAs may start.
    pub(crate) remaining: u64,
    /// How many have started after the first. Of CTAs that execute together, the others count as started
    /// when the next ones start.
    pub(crate) started: u64,
    /// How coarse warps execute them; `None`: single warps, one CTA after another.
    pub(crate) coarse: Option<&'a CoarseCode>,
    /// The groups that execute row by row.
    pub(crate) groups: Groups,
    /// The CTA's shared memory.
    pub(crate) shared: Option<&'a mut Window>,
    /// The initial slots.
    pub(crate) initial: InitialSlots,
}

impl CtaBatch<'_> {
    /// Address and bytes of the shared memory.
    pub(super) fn shared_window(&self) -> (u64, u64) {
        self.shared.as_ref().map_or((0, 0), |window| (window.start(), window.bytes()))
    }
}

impl CtaCall<'_> {
    /// Starts the next CTA of the batch, or the next ones that execute together: its number, slots and shared
    /// memory. `false` if no CTA may start in this call.
    pub fn next_cta(&mut self) -> bool {
        // Cached bounds are stale, and only an entry of native code renews them.
        let stale = self.view().memory().frees() != self.cache.frees;
        let row = self.grid.nctaid[0];
        let mut step = self.together();
        let x = self.ctaid[0].saturating_add(step);
        let x = if x < row { x } else { 0 };
        let (ctas, edge) = match self.batch.coarse {
            Some(coarse) => (coarse.ctas, u32::from(coarse.edges_alone[0])),
            None => (1, 0),
        };
        let end = u64::from(x) + u64::from(ctas) + u64::from(edge);
        if self.batch.remaining < ctas.into() || stale || x < edge || end > row.into() {
            return false;
        }
        let ended = (self.index + self.batch.started, self.ctaid);
        self.batch.started += u64::from(step);
        let Groups { now, most } = &mut self.batch.groups;
        *now = self.batch.coarse.map_or(1, |coarse| coarse.groups_from(x, row, self.batch.remaining, *most));
        self.batch.remaining -= u64::from(ctas * *now);
        for (number, count) in self.ctaid.iter_mut().zip(self.grid.nctaid) {
            *number += step;
            if *number < count {
                break;
            }
            (*number, step) = (0, 1);
        }
        if let Some(window) = &mut self.batch.shared {
            window.clear(0..window.bytes());
        }
        let slots = self.slots.len() * self.batch.groups.now as usize / self.batch.groups.most as usize;
        self.batch.initial.put(&mut self.slots[..slots], self.kept);
        if let Some(stamps) = self.view().memory().active_stamps() {
            stamps.begin_cta();
        }
        if std::mem::take(self.begun) {
            let (index, ctaid) = ended;
            watched_cta::end(self.warps, index, ctaid, self.batch.shared_window());
            *self.touched = 0;
        }
        true
    }

    /// How many groups of CTAs execute row by row.
    pub fn groups(&self) -> u32 {
        self.batch.groups.now
    }

    /// How many CTAs execute together: one, or all of these groups.
    pub fn together(&self) -> u32 {
        self.batch.coarse.map_or(1, |coarse| coarse.ctas) * self.batch.groups.now
    }

    /// How many CTAs have started in this call after the first.
    pub fn batched(&self) -> u64 {
        self.batch.started
    }
}
