//! Clocks of the lanes of a CTA, its barriers, and its shared memory.
//!
//! Lanes of a warp with equal clocks share one ([`Lanes::Uniform`]); a barrier makes the clocks equal again.
//!
//! Invariant: each operation that others may synchronise with increases `now`, so the accesses after it have
//! later times.

use super::known::{ASYNC, Known, Thread, Time};
use super::order::{Gathered, Lane, Record, Who};
use super::shadow::{Mask, Shadow, thread_of};
use std::collections::HashMap;

/// The lanes of a warp.
pub(crate) enum Lanes {
    /// All live lanes know the same.
    Uniform(Box<Lane>),
    /// They differ.
    Split(Vec<Lane>),
}

/// A warp.
pub(crate) struct Warp {
    pub(crate) lanes: Lanes,
    /// Lanes that exist.
    pub(crate) existing: Mask,
    /// Events that were made last: instruction, lanes, time, event.
    pub(crate) recent: [(u32, Mask, Time, u32); RECENT],
}

/// How many events a warp remembers.
pub(crate) const RECENT: usize = 8;

/// The lanes of a mask, ascending.
pub(crate) fn lanes_of(mask: Mask) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        let lane = rest.trailing_zeros() as usize;
        rest &= rest.wrapping_sub(1);
        (lane < 32).then_some(lane)
    })
}

impl Warp {
    fn new(cta: u32, height: u32, existing: Mask) -> Self {
        let lanes = Lanes::Uniform(Box::new(Lane::new(cta, height)));
        Self { lanes, existing, recent: [(u32::MAX, 0, 0, 0); RECENT] }
    }

    /// The state of a lane.
    pub(crate) fn lane(&self, lane: usize) -> &Lane {
        match &self.lanes {
            Lanes::Uniform(all) => all,
            Lanes::Split(lanes) => &lanes[lane % 32],
        }
    }

    /// The state of a lane, to be changed for it alone.
    pub(crate) fn lane_mut(&mut self, lane: usize) -> &mut Lane {
        if let Lanes::Uniform(all) = &self.lanes {
            self.lanes = Lanes::Split(vec![Lane::clone(all); 32]);
        }
        match &mut self.lanes {
            Lanes::Split(lanes) => &mut lanes[lane % 32],
            Lanes::Uniform(all) => all,
        }
    }

    /// Changes the state of these lanes in one way.
    pub(crate) fn each(&mut self, lanes: Mask, live: Mask, mut change: impl FnMut(&mut Lane)) {
        if let Lanes::Uniform(all) = &mut self.lanes
            && lanes & live == live
        {
            change(all);
            return;
        }
        for lane in lanes_of(lanes) {
            change(self.lane_mut(lane));
        }
    }

    /// Keeps live lanes as one if they know the same.
    fn merge(&mut self, live: Mask) {
        if let Lanes::Split(lanes) = &self.lanes {
            let mut those = lanes_of(live).map(|lane| &lanes[lane]);
            if let Some(first) = those.next()
                && those.all(|lane| lane.same(first))
            {
                self.lanes = Lanes::Uniform(Box::new(first.clone()));
            }
        }
    }
}

/// One of the sixteen barriers.
#[derive(Default)]
struct Bar {
    coming: Option<Gathered>,
    done: Option<Known>,
}

/// A barrier in memory.
struct Mbar {
    expected: u32,
    pending: u32,
    /// What the arrivals of the current phase make known.
    coming: Known,
    /// What those of completed phases have.
    done: Known,
}

/// A resident CTA.
pub(crate) struct Cta {
    pub(crate) index: u32,
    pub(crate) height: u32,
    pub(crate) now: Time,
    pub(crate) warps: Vec<Warp>,
    bars: [Bar; 16],
    mbars: HashMap<u64, Mbar>,
    /// What `fence.sc` of its threads have made known to one another.
    pub(crate) sc: Known,
    /// Its shared memory: address and size.
    pub(crate) range: (u64, u64),
    pub(crate) shadow: Shadow,
    pub(crate) records: HashMap<u64, Record>,
}

impl Cta {
    pub(crate) fn new(index: u32, height: u32, existing: &[Mask], range: (u64, u64)) -> Self {
        Self {
            index,
            height,
            now: 1,
            warps: existing.iter().map(|mask| Warp::new(index, height, *mask)).collect(),
            bars: Default::default(),
            mbars: HashMap::new(),
            sc: Known::nothing(index, height),
            range,
            shadow: Shadow::default(),
            records: HashMap::new(),
        }
    }

    /// A lane, as operations on its state need it.
    pub(crate) fn who(&self, warp: u8, lane: usize) -> Who {
        Who { cta: self.index, height: self.height, thread: thread_of(warp, lane), now: self.now }
    }

    /// Time goes on.
    pub(crate) fn tick(&mut self) {
        self.now = self.now.saturating_add(1);
    }

    /// What these lanes and their operations before now make known together.
    fn gather(&self, warp: u8, lanes: Mask, into: &mut Gathered) {
        let Some(state) = self.warps.get(usize::from(warp)) else { return };
        let first: Thread = thread_of(warp, 0);
        // Lanes that have exited take no part, so they keep what they did to themselves.
        let whole = lanes & state.existing == state.existing;
        match &state.lanes {
            Lanes::Uniform(lane) if whole => {
                into.known.absorb(&lane.known);
                into.mark(|home| home.raise_warp(ASYNC + first, lane.waited));
            }
            Lanes::Uniform(_) | Lanes::Split(_) => {
                let split = matches!(state.lanes, Lanes::Split(_));
                for (index, at) in lanes_of(lanes).enumerate() {
                    let lane = state.lane(at);
                    if split || index == 0 {
                        into.known.absorb(&lane.known);
                    }
                    into.mark(|home| {
                        home.raise_thread(thread_of(warp, at), self.now);
                        home.raise_thread(ASYNC + thread_of(warp, at), lane.waited);
                    });
                }
            }
        }
        if whole {
            into.mark(|home| home.raise_warp(first, self.now));
        }
    }

    /// Lanes arrive at a barrier; `waiting`: those that wait.
    pub(crate) fn arrives(&mut self, warp: u8, id: u32, lanes: Mask, waiting: Mask) {
        let at = id as usize % 16;
        let mut coming =
            self.bars[at].coming.take().unwrap_or_else(|| Gathered::new(self.index, self.height));
        self.gather(warp, lanes, &mut coming);
        let existing = self.warps.get(usize::from(warp)).map_or(0, |warp| warp.existing);
        if waiting & existing == existing {
            coming.whole.push(warp);
        }
        self.bars[at].coming = Some(coming);
        if waiting != lanes {
            self.tick();
        }
    }

    /// A barrier completes.
    pub(crate) fn completes(&mut self, id: u32) {
        let (now, warps) = (self.now, self.warps.len());
        let bar = &mut self.bars[id as usize % 16];
        if let Some(mut coming) = bar.coming.take() {
            if coming.whole.len() == warps {
                coming.mark(|home| home.raise_whole(false, now));
            }
            bar.done = Some(coming.known);
        }
        self.tick();
    }

    /// A completed barrier lets lanes go on.
    pub(crate) fn released(&mut self, warp: u8, id: u32, lanes: Mask, live: Mask) {
        let Some(known) = &self.bars[id as usize % 16].done else { return };
        let Some(state) = self.warps.get_mut(usize::from(warp)) else { return };
        state.each(lanes, live, |lane| lane.known = known.clone());
        state.merge(live);
    }

    /// `bar.warp.sync` of these lanes.
    pub(crate) fn warp_syncs(&mut self, warp: u8, lanes: Mask, live: Mask) {
        let mut coming = Gathered::new(self.index, self.height);
        self.gather(warp, lanes, &mut coming);
        if let Some(state) = self.warps.get_mut(usize::from(warp)) {
            state.each(lanes, live, |lane| lane.known = coming.known.clone());
            state.merge(live);
        }
        self.tick();
    }

    /// `mbarrier.init`
    pub(crate) fn mbar_init(&mut self, address: u64, count: u32) {
        let nothing = Known::nothing(self.index, self.height);
        let bar = Mbar { expected: count, pending: count, coming: nothing.clone(), done: nothing };
        self.mbars.insert(address, bar);
    }

    /// An arrival at a barrier in memory.
    pub(crate) fn mbar_arrives(&mut self, warp: u8, lane: usize, address: u64, arrival: Arrival) {
        let who = self.who(warp, lane);
        let Some(state) = self.warps.get(usize::from(warp)) else { return };
        let Some(bar) = self.mbars.get_mut(&address) else { return };
        let count = match arrival {
            Arrival::Thread { count, drops } => {
                bar.coming.absorb(&state.lane(lane).published(who));
                bar.expected -= if drops { count.min(bar.expected) } else { 0 };
                count
            }
            Arrival::Copies { counts } => {
                bar.coming.at_home(|home| home.raise_thread(ASYNC + who.thread, who.now));
                u32::from(counts)
            }
        };
        bar.pending = bar.pending.saturating_sub(count);
        if bar.pending == 0 && count > 0 {
            let nothing = Known::nothing(who.cta, who.height);
            let coming = std::mem::replace(&mut bar.coming, nothing);
            bar.done.absorb(&coming);
            bar.pending = bar.expected;
        }
        self.tick();
    }

    /// A lane has seen that a phase of a barrier in memory is over.
    pub(crate) fn mbar_passed(&mut self, warp: u8, lane: usize, address: u64) {
        let Some(bar) = self.mbars.get(&address) else { return };
        let Some(state) = self.warps.get_mut(usize::from(warp)) else { return };
        state.lane_mut(lane).known.absorb(&bar.done);
    }
}

/// How something arrives at a barrier in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arrival {
    /// A thread, so often; `drops`: it is not expected again.
    Thread { count: u32, drops: bool },
    /// Copies of a thread; whether the barrier counts them (`.noinc`).
    Copies { counts: bool },
}
