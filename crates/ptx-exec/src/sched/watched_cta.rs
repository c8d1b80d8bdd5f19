//! Reports of the start and the end of CTAs to observers.
//!
//! A CTA is reported before its first event: when its warps get frames, or when native code first has the
//! interpreter execute an instruction. A CTA without events is not reported.

use crate::frame::WarpFrame;
use crate::watch::{CtaFacts, LaunchFacts, Watch};
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
