//! CTAs that native code runs one after another in one call.
//!
//! What it costs to enter native code is more than a short CTA does. So a thread hands over the CTAs that it has taken together, and native
//! code asks for the next one where one has finished.
//!
//! Invariant: a CTA that follows finds what one finds that the scheduler starts: its number, slots at the start of the kernel, and shared
//! memory that is zero. Native code of which a step of the interpreter may depend on the CTA ([`Native::follows`](super::Native::follows))
//! gets one CTA at a time, and so does one that uses local memory.

use super::{CtaCall, CtaCode, Line, Slot};
use crate::bound::Function;
use crate::lanes::{FULL, LANES};
use crate::mem::Window;

/// What slots are like before a CTA begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fresh {
    /// Their state: [`CtaCode::fresh`](super::CtaCode::fresh).
    pub(crate) state: u32,
    /// Threads of the CTA, which decide the lanes of warps; teams are whole.
    pub(crate) threads: u32,
    /// Warps of a team; 1: slots are of warps.
    pub(crate) team: u32,
    /// Lines that each keeps.
    pub(crate) lines: usize,
}

impl Fresh {
    /// Of the warps of a CTA of so many threads.
    pub(crate) fn of_warps(function: &Function, threads: u32) -> Self {
        Self { state: CtaCode::fresh(function.blocks.len()), threads, team: 1, lines: 0 }
    }

    /// Of teams of so many warps, each of which keeps so many lines.
    pub(crate) fn of_teams(function: &Function, team: u32, lines: usize) -> Self {
        Self { state: CtaCode::fresh(function.blocks.len()), threads: 0, team, lines }
    }

    /// Puts all warps, or teams, at the start of the kernel.
    pub(crate) fn put(self, slots: &mut [Slot], kept: &mut [Line]) {
        if self.team > 1 {
            for (at, slot) in slots.iter_mut().enumerate() {
                (slot.state, slot.live, slot.carry) = (self.state, FULL, 0);
                // As many words, and perhaps one more, which nothing reads yet.
                let masks = kept[at * self.lines..].iter_mut().flat_map(|line| &mut line.0);
                masks.take(self.team.div_ceil(2) as usize).for_each(|masks| *masks = u64::MAX);
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

/// The CTAs behind the one that is handed over.
pub(crate) struct Portion<'a> {
    /// How many may follow.
    pub(crate) more: u64,
    /// How many have.
    pub(crate) ran: u64,
    /// The CTA's shared memory.
    pub(crate) shared: Option<&'a mut Window>,
    /// What slots are like.
    pub(crate) fresh: Fresh,
}

impl CtaCall<'_> {
    /// Begins with the next CTA of the portion: its number, its slots, its shared memory. `false`: there is none that may begin in this call.
    pub fn follow(&mut self) -> bool {
        // What is known of memory holds no longer, which is looked at when native code is entered.
        let stale = self.view().memory().frees() != self.reached.frees;
        if self.portion.more == 0 || stale {
            return false;
        }
        self.portion.more -= 1;
        self.portion.ran += 1;
        for (number, count) in self.ctaid.iter_mut().zip(self.grid.nctaid) {
            *number += 1;
            if *number < count {
                break;
            }
            *number = 0;
        }
        if let Some(window) = &mut self.portion.shared {
            window.clear(0..window.bytes());
        }
        self.portion.fresh.put(self.slots, self.kept);
        true
    }

    /// How many CTAs have begun since it was handed over.
    pub fn followed(&self) -> u64 {
        self.portion.ran
    }
}
