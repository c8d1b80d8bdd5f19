//! Reports of the interpreter to observers.
//!
//! Invariant: a watched warp behaves like an unwatched one, except for what observers request. This module
//! does nothing where no observer is attached.

use super::Run;
use crate::bound::{Block, Exec};
use crate::frame::{Current, WarpFrame};
use crate::interp::{Stop, stopped, truths};
use crate::lanes::LaneMask;
use crate::watch::{BarrierEvent, Interests, Observer, Place, Site, SyncPart, WarpSyncEvent};

impl WarpFrame {
    /// Sets the position of lanes and reports an event there. Does nothing without observers.
    #[inline(always)]
    pub(crate) fn tell(
        &mut self,
        act: u32,
        place: impl FnOnce(u32) -> (u32, u32),
        event: impl FnMut(&mut dyn Observer, &Site),
    ) {
        if self.view.site().is_some() {
            let (block, index) = place(self.acts[act as usize].function);
            self.set_place(act, block, index);
            if let Some(site) = self.view.site() {
                site.tell(event);
            }
        }
    }

    /// Whether observers permit that native code executes these lanes, from the position that was set on. The
    /// lanes that native code has executed before need no permission.
    pub(crate) fn permits_native(&mut self, lanes: LaneMask) -> bool {
        let lanes = lanes & !self.unknown;
        let Some(site) = self.view.site().filter(|_| lanes != 0) else { return true };
        let mut permitted = true;
        site.tell(|observer, site| permitted &= observer.permits_native(site, lanes));
        permitted
    }

    /// Sets the position of the lanes whose events are reported next.
    pub(crate) fn set_place(&mut self, act: u32, block: u32, index: u32) {
        let Some(activation) = self.acts.get(act as usize) else { return };
        let (function, frame) = (activation.function, activation.frame);
        let live = self.state.live;
        if let Some(site) = self.view.site() {
            site.place = Place { function, block, index };
            (site.act, site.frame, site.live) = (act, frame, live);
        }
    }
}

impl Run<'_> {
    /// The instruction index that denotes a block's terminator in a [`Place`].
    pub(super) fn terminator_index(&self, function: u32, block: u32) -> u32 {
        self.context.block(function, block).map_or(0, |block| block.steps.len() as u32)
    }

    /// Reports lanes that continue here after native code.
    fn tell_resumed(&mut self, lanes: LaneMask) {
        let lanes = lanes & self.frame.unknown;
        if lanes != 0 {
            self.frame.unknown &= !lanes;
            if let Some(site) = self.frame.view.site() {
                site.tell(|observer, site| observer.resumes(site, lanes));
            }
        }
    }

    /// Reports an event at a block's terminator.
    pub(super) fn tell(&mut self, act: u32, block: u32, event: impl FnMut(&mut dyn Observer, &Site)) {
        let context = self.context;
        let index = |function| (block, context.block(function, block).map_or(0, |b| b.steps.len() as u32));
        self.frame.tell(act, index, event);
    }

    /// As [`Run::steps`], and reports every instruction.
    #[cold]
    #[inline(never)]
    pub(super) fn watched_steps(
        &mut self,
        current: &Current,
        block: &Block,
        function: u32,
        first: usize,
    ) -> Result<(), Stop> {
        self.frame.set_place(current.act, current.block, first as u32);
        self.tell_resumed(current.mask);
        let wanted = self.context.interests(function).map_or(&[][..], |all| all.block(current.block));
        let frame = &mut *self.frame;
        let told = frame.view.site().map_or(u8::MAX, |site| site.told_of_steps());
        let act = &mut frame.acts[current.act as usize];
        let mut exec = Exec {
            mask: current.mask,
            group: current.mask,
            regs: &mut act.regs,
            warp: &mut frame.state,
            mem: &mut frame.view,
            frame: act.frame as u32,
        };
        for (index, step) in block.steps.iter().enumerate().skip(first) {
            exec.mask = step.guard.map_or(current.mask, |guard| current.mask & truths(guard, exec.regs));
            let (before, after) = Interests::of(wanted, index);
            let (before, after) = (before & told, after & told);
            if let Some(site) = exec.mem.site() {
                site.place.index = index as u32;
                if before != 0 {
                    site.tell_some(before, |observer, site| {
                        observer.step(site, exec.mask, current.mask, exec.regs);
                    });
                }
            }
            if exec.mask == 0 {
                continue;
            }
            if let Err(fault) = (step.run)(&mut exec) {
                return Err(stopped(fault, function, step.span, step.loc));
            }
            if let Some(site) = exec.mem.site().filter(|_| after != 0) {
                site.tell_some(after, |observer, site| observer.stepped(site, exec.mask, exec.regs));
            }
        }
        Ok(())
    }

    /// Reports that lanes have reached the terminator of their block.
    pub(super) fn reaches_terminator(&mut self, current: &Current, block: &Block) {
        self.frame.set_place(current.act, current.block, block.steps.len() as u32);
        self.tell_resumed(current.mask);
        let WarpFrame { view, acts, .. } = &mut *self.frame;
        let (function, regs) = (acts[current.act as usize].function, &acts[current.act as usize].regs);
        let wanted = self.context.interests(function).map_or(&[][..], |all| all.block(current.block));
        let (before, _) = Interests::of(wanted, block.steps.len());
        if let Some(site) = view.site()
            && let told = before & site.told_of_steps()
            && told != 0
        {
            site.tell_some(told, |observer, site| observer.step(site, current.mask, current.mask, regs));
        }
    }

    /// Reports that a warp-synchronous instruction will execute for all its lanes.
    pub(super) fn completes_sync(&mut self, lanes: LaneMask, parts: &[(u32, u32, LaneMask)]) {
        let Some((act, block, _)) = parts.first() else { return };
        let list = self.parts(parts);
        self.tell(*act, *block, |observer, site| {
            observer.warp_sync(site, &WarpSyncEvent::Completes { lanes, parts: &list });
        });
    }

    /// Reports that a warp-synchronous instruction has executed for these lanes.
    pub(super) fn completed_sync(&mut self, act: u32, block: u32, lanes: LaneMask) {
        let index = self.terminator_index(self.frame.acts[act as usize].function, block);
        self.frame.set_place(act, block, index);
        let WarpFrame { view, acts, .. } = &mut *self.frame;
        let regs = &acts[act as usize].regs;
        if let Some(site) = view.site() {
            site.tell(|observer, site| observer.stepped(site, lanes, regs));
        }
    }

    fn parts(&self, parts: &[(u32, u32, LaneMask)]) -> Vec<SyncPart> {
        let part = |&(act, block, lanes): &(u32, u32, LaneMask)| {
            let function = self.frame.acts[act as usize].function;
            let index = self.terminator_index(function, block);
            SyncPart { place: Place { function, block, index }, act, lanes }
        };
        parts.iter().map(part).collect()
    }
}

/// Reports that a warp arrives at a barrier.
pub(super) fn arrives(
    frame: &mut WarpFrame,
    wait: &crate::frame::BarrierWait,
    lanes: LaneMask,
    waiting: LaneMask,
) {
    if let Some(site) = frame.view.site() {
        let (id, count, kind) = (wait.id, wait.count, wait.kind);
        site.tell(|observer, site| {
            observer.barrier(site, &BarrierEvent::Arrived { id, count, kind, lanes, waiting });
        });
    }
}
