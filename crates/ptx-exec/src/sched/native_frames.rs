//! The state of the warps of a CTA that runs in native code: slots instead of frames.

use crate::bound::Function;
use crate::frame::WarpFrame;
use crate::lanes::Registers;
use crate::native::{BarrierState, CoarseCode, CtaCode, Groups, InitialSlots, Line, Slot};

/// The CTAs that began as one, of which a [`Cta`](super::cta::Cta) is one after the other.
#[derive(Clone, Copy)]
pub(super) struct Members {
    /// Which of them it is, in the order of their numbers.
    pub(super) at: u32,
    /// How many there are.
    pub(super) count: u32,
    /// Where their coarse warps have left them; `None`: at the start of the kernel.
    pub(super) left: Option<Place>,
}

/// Where coarse warps have left their CTAs.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// The coarse warp that ran; `u32::MAX` if all are where their slots say.
    pub(super) current: u32,
    /// The side exit that it took, as index of [`CoarseCode::leaves`].
    pub(super) exit: Option<usize>,
    pub(super) round: BarrierState,
    /// Fuel that is left.
    pub(super) fuel: i64,
}

impl Place {
    /// No coarse warp is in the middle of its round.
    pub(super) fn between(round: BarrierState) -> Self {
        Self { current: u32::MAX, exit: None, round, fuel: 0 }
    }
}

/// The state of a CTA in native code.
#[derive(Default)]
pub(super) struct NativeFrames {
    pub(super) slots: Vec<Slot>,
    pub(super) kept: Vec<Line>,
    pub(super) regs: Registers,
    /// Warps whose [`WarpFrame`] state was initialised for this CTA, as a bit mask.
    pub(super) touched: u32,
    /// How many groups of CTAs execute row by row, which the order of slots depends on.
    pub(super) groups: u32,
}

impl NativeFrames {
    /// Sets all warps to the start of the kernel.
    pub(super) fn start(
        &mut self,
        code: &CtaCode,
        function: &Function,
        warps: &mut [WarpFrame],
        threads: u32,
    ) -> InitialSlots {
        let lines = (warps.len() * code.bytes as usize).div_ceil(64);
        // The code may have been replaced by code that saves more.
        if self.slots.len() != warps.len() || self.kept.len() < lines {
            self.slots.resize(warps.len(), Slot::default());
            self.kept.resize(lines, Line::default());
            self.regs.provide(function.regs);
            for (slot, warp) in self.slots.iter_mut().zip(warps.iter_mut()) {
                warp.view.set_local_top(u64::from(function.frame_bytes));
                slot.local = warp.view.windows().local.0;
            }
        }
        (self.touched, self.groups) = (0, 1);
        let initial = InitialSlots::of_warps(function, threads);
        initial.put(&mut self.slots, &mut self.kept);
        for warp in warps {
            warp.clear_local();
            warp.use_local(u64::from(function.frame_bytes));
        }
        initial
    }

    /// Sets all coarse warps to the start of the kernel. `warps`: of a CTA; `groups`: of CTAs.
    pub(super) fn start_coarse(
        &mut self,
        coarse: &CoarseCode,
        function: &Function,
        warps: usize,
        groups: Groups,
    ) -> InitialSlots {
        let of_group = warps * coarse.ctas as usize / coarse.warps as usize;
        let coarse_warps = of_group * groups.most as usize;
        let lines = coarse.cta.bytes as usize / 64;
        // The code reads the live lanes of a coarse warp that starts, also where none saves anything: then
        // all have one place, since their distance is 0. LLVM removes that load at level 1 alone.
        let live = (4 * coarse.warps as usize).div_ceil(64);
        let areas = if coarse.shares_save_area() { 1 } else { coarse_warps };
        let all = (areas * lines).max(live);
        if self.slots.len() != coarse_warps || self.kept.len() < all {
            self.slots.resize(coarse_warps, Slot::default());
            self.kept.resize(all, Line::default());
            self.regs.provide(function.regs);
        }
        self.touched = 0;
        self.groups = groups.now;
        let lines = if coarse.shares_save_area() { 0 } else { lines };
        let initial = InitialSlots::of_coarse_warps(function, coarse.warps, lines);
        initial.put(&mut self.slots[..of_group * groups.now as usize], &mut self.kept);
        initial
    }
}
