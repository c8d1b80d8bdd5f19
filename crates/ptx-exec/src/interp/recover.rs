//! Continues after misused barriers and warp-synchronous instructions that an observer reports
//! ([`Observer::mends`]).
//!
//! Invariant: each successful call makes at least one lane ready. So a warp that is recovered repeatedly
//! still reaches its end if the program does.
//!
//! [`Observer::mends`]: crate::watch::Observer::mends

use super::{Budget, LaunchContext, Run};
use crate::bound::Term;
use crate::frame::{Wait, WarpFrame};
use crate::native::NativeCache;
use crate::watch::BarrierEvent;

impl Run<'_> {
    /// If lanes of the warp wait at barriers that cannot be combined into one arrival, lets the lanes at the
    /// lowest position continue alone. Returns whether it did.
    pub(super) fn part(&mut self) -> bool {
        let mut waiting = Vec::new();
        for group in &self.frame.groups {
            let Wait::Barrier(wait) = group.wait else { continue };
            let function = self.frame.acts[group.act as usize].function;
            if let Some(Term::Barrier(barrier)) = self.context.block(function, group.block).map(|b| &b.term) {
                waiting.push(((group.act, group.block), wait.id, barrier.aligned, barrier.next.0));
            }
        }
        let Some((place, id, ..)) = waiting.first().copied() else { return false };
        let aligned = waiting.iter().any(|(_, _, aligned, _)| *aligned);
        let parted =
            |(other, number, ..): &((u32, u32), u32, bool, u32)| *number != id || aligned && *other != place;
        if !waiting.iter().any(parted) {
            return false;
        }
        let lowest = waiting.iter().map(|(place, ..)| *place).min_by(|a, b| self.frame.order(*a, *b));
        let Some((act, block)) = lowest else { return false };
        let Some((.., next)) = waiting.iter().find(|(place, ..)| *place == (act, block)).copied() else {
            return false;
        };
        let mut lanes = 0;
        self.frame.groups.retain(|group| {
            let goes = (group.act, group.block) == (act, block) && matches!(group.wait, Wait::Barrier(_));
            lanes |= if goes { group.mask } else { 0 };
            !goes
        });
        self.tell(act, block, |observer, site| observer.barrier(site, &BarrierEvent::Parted { lanes }));
        self.frame.push_ready(act, next, lanes);
        true
    }

    /// Executes the warp-synchronous instructions at which lanes wait, for the lanes that have arrived.
    /// Returns whether any waited.
    fn finish_all(&mut self) -> bool {
        let mut any = false;
        while let Some(at) = self.frame.groups.iter().position(|g| matches!(g.wait, Wait::Sync { .. })) {
            let before = self.frame.groups.len();
            self.finish_sync(at);
            any = true;
            if self.frame.groups.get(at).is_some_and(|g| matches!(g.wait, Wait::Sync { .. }))
                && self.frame.groups.len() == before
            {
                break;
            }
        }
        any
    }
}

impl Run<'_> {
    /// Releases lanes that wait at an instruction for all lanes of a warp, which the others never reach. They
    /// skip it. Returns whether any lane was released.
    fn skip_aligned(&mut self) -> bool {
        let waits = |group: &crate::frame::Group| matches!(group.wait, Wait::Aligned);
        let places = self.frame.groups.iter().filter(|group| waits(group)).map(|g| (g.act, g.block));
        let Some((act, block)) = places.min_by(|a, b| self.frame.order(*a, *b)) else { return false };
        let function = self.frame.acts[act as usize].function;
        let Some(Term::Aligned { next, .. }) = self.context.block(function, block).map(|block| &block.term)
        else {
            return false;
        };
        let next = next.0;
        let mut lanes = 0;
        self.frame.groups.retain(|group| {
            let goes = waits(group) && (group.act, group.block) == (act, block);
            lanes |= if goes { group.mask } else { 0 };
            !goes
        });
        self.frame.push_ready(act, next, lanes);
        true
    }
}

/// Releases lanes of a warp that wait for each other. Returns whether any lane was released.
pub(crate) fn unblock(frame: &mut WarpFrame, context: &LaunchContext<'_>, cache: &mut NativeCache) -> bool {
    let mut run = Run::new(frame, context, Budget { slice: 0, quantum: 0, steps: 0 }, cache);
    run.finish_all() || run.skip_aligned() || run.part()
}
