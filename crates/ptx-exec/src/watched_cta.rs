//! Reports to observers about CTAs: their start and end, and what happened in native code when the
//! interpreter continues behind it.
//!
//! A CTA is reported before its first event: when its warps get frames, or when native code first has the
//! interpreter execute an instruction. A CTA without events is not reported.

use crate::frame::{BarrierWait, WarpFrame};
use crate::lanes::LaneMask;
use crate::watch::{BarrierEvent, CtaFacts, LaunchFacts, Watch};
use std::sync::Arc;

/// The address and the bytes of a CTA's shared memory.
type SharedWindow = (u64, u64);

/// Sets the identity of the warps of a CTA, whose states are at the start of the kernel, and reports its
/// start.
pub(crate) fn begin(warps: &mut [WarpFrame], index: u64, ctaid: [u32; 3], shared: SharedWindow) {
    for (id, warp) in (0..).zip(warps.iter_mut()) {
        let windows = warp.view.windows();
        let (lanes, tid) = (warp.state.live, warp.state.tid);
        if let Some(site) = warp.view.site() {
            (site.warp.cta, site.warp.ctaid, site.warp.warp) = (index, ctaid, id);
            (site.warp.lanes, site.warp.tid, site.live) = (lanes, tid, lanes);
            (site.warp.shared, site.warp.params) = (shared, windows.params);
            site.warp.local = (windows.local.0, windows.local.1);
        }
    }
    if let Some((watch, launch, facts)) = facts(warps, index, ctaid, shared) {
        watch.each(|observer| observer.cta_begins(&launch, &facts));
    }
}

/// Reports the end of a CTA whose start was reported.
pub(crate) fn end(warps: &mut [WarpFrame], index: u64, ctaid: [u32; 3], shared: SharedWindow) {
    if let Some((watch, launch, facts)) = facts(warps, index, ctaid, shared) {
        watch.each(|observer| observer.cta_ends(&launch, &facts));
    }
}

/// Lanes of a warp have exited in native code: removes them, and tells observers that want to know, at this
/// place.
pub(crate) fn exited(warp: &mut WarpFrame, act: u32, lanes: LaneMask, place: Option<(u32, u32)>) {
    if let Some((block, index)) = place.filter(|_| lanes != 0) {
        warp.set_place(act, block, index);
        if let Some(site) = warp.view.site() {
            site.tell(|observer, site| observer.exits(site, lanes));
        }
    }
    warp.exit(act, lanes);
}

/// All lanes of a warp have arrived at the barrier at the end of a block in native code: tells observers what
/// the interpreter would have told.
pub(crate) fn arrived(
    warp: &mut WarpFrame,
    (act, block, index): (u32, u32, u32),
    (wait, aligned): (&BarrierWait, bool),
    lanes: LaneMask,
) {
    warp.set_place(act, block, index);
    if let Some(site) = warp.view.site() {
        let BarrierWait { id, count, kind, .. } = *wait;
        let events = [
            BarrierEvent::Reached { lanes, id, count, kind, aligned },
            BarrierEvent::Arrived { id, count, kind, lanes, waiting: lanes },
        ];
        for event in &events {
            site.tell(|observer, site| observer.barrier(site, event));
        }
    }
}

/// Facts about a CTA for observers; `None` without observers.
fn facts(
    warps: &mut [WarpFrame],
    cta: u64,
    ctaid: [u32; 3],
    shared: SharedWindow,
) -> Option<(Arc<Watch>, Arc<LaunchFacts>, CtaFacts)> {
    let (mut slots, mut locals, mut first) = (Vec::new(), Vec::new(), None);
    for warp in warps {
        let site = warp.view.site()?;
        slots.push(site.warp.slot);
        locals.push(site.warp.local);
        first = Some((Arc::clone(&site.watch), Arc::clone(&site.launch), site.warp.cta_slot));
    }
    let (watch, launch, slot) = first?;
    Some((watch, launch, CtaFacts { slot, cta, ctaid, warps: slots, shared, locals }))
}
