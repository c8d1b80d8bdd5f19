//! Batches of CTAs that native code runs in one call.
//!
//! Entering native code costs more than a short CTA does. Therefore a thread passes several CTAs to one call,
//! and native code asks for the next one when a CTA has finished.
//!
//! Invariant: a batched CTA starts in the same state as a scheduled one: its number, slots at the start of
//! the kernel, shared memory zero. A call gets a single CTA if an interpreter step of the kernel can depend
//! on the CTA ([`Native::can_batch_ctas`](super::Native::can_batch_ctas)), or if the kernel uses local
//! memory.

use super::{CtaCall, CtaCode, Line, Slot};
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
    /// Lines of each save area that begin with lane masks.
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
            for (at, slot) in slots.iter_mut().enumerate() {
                (slot.state, slot.live, slot.carry) = (self.state, FULL, 0);
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

/// The CTAs that may follow the first one in the same call.
pub(crate) struct CtaBatch<'a> {
    /// How many more CTAs may start.
    pub(crate) remaining: u64,
    /// How many have started after the first. Of CTAs that execute as one, the others count as started when
    /// the next ones start.
    pub(crate) started: u64,
    /// CTAs that execute as one; see [`CoarseCode::ctas`](super::CoarseCode::ctas).
    pub(crate) ctas: u32,
    /// Whether the first and the last CTA of a row execute alone; see
    /// [`CoarseCode::edges_alone`](super::CoarseCode::edges_alone).
    pub(crate) edge_alone: bool,
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
    /// Starts the next CTA of the batch, or the next ones that execute as one: its number, slots and shared
    /// memory. `false` if no CTA may start in this call.
    pub fn next_cta(&mut self) -> bool {
        // Cached bounds are stale, and only an entry of native code renews them.
        let stale = self.view().memory().frees() != self.cache.frees;
        let ctas = u64::from(self.batch.ctas);
        let row = u64::from(self.grid.nctaid[0]);
        let x = u64::from(self.ctaid[0]) + ctas;
        let edge = u64::from(self.batch.edge_alone);
        let x = if x < row { x } else { 0 };
        if self.batch.remaining < ctas || stale || x < edge || x + ctas + edge > row {
            return false;
        }
        let ended = (self.index + self.batch.started, self.ctaid);
        self.batch.remaining -= ctas;
        self.batch.started += ctas;
        let mut step = self.batch.ctas;
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
        self.batch.initial.put(self.slots, self.kept);
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

    /// How many CTAs have started in this call after the first.
    pub fn batched(&self) -> u64 {
        self.batch.started
    }
}
