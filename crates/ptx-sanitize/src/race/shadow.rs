//! Shadow memory: for each accessed byte, the accesses that may still race with later ones.
//!
//! An access of a warp is an [`Event`] in a table; shadow memory contains 32-bit references to events, with
//! the lane. Memory is divided into pages of 256 bytes, and a page into granules of 4 bytes; a page with
//! smaller accesses has smaller granules. A granule has one reference for reads and one for writes, each
//! allocated when the page first needs it: at most 8 bytes per byte. If several accesses of a granule are
//! relevant (reads by several threads; strong writes of several threads), the reference is to a set.
//!
//! Invariants: sets and events are bounded; a referenced event keeps its number; an unreferenced event is
//! reclaimed.

use super::known::{Thread, Time};
use std::collections::HashMap;

/// Lanes of a warp.
pub(crate) type Mask = u32;

/// One access of some lanes of a warp.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    /// Which instruction: an index of the detector's table.
    pub(crate) site: u32,
    /// Time of the CTA.
    pub(crate) time: Time,
    /// CTA.
    pub(crate) cta: u32,
    /// The lanes, all at one address; 0: one lane, which the reference names.
    pub(crate) lanes: Mask,
    /// Warp of the CTA.
    pub(crate) warp: u8,
    /// Whether it is referred to, while that is found out.
    marked: bool,
}

/// A reference to an event and a lane, or to a set; 0: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ref(u32);

const SET: u32 = 1 << 31;
/// Events at most: references have 26 bits for them.
const EVENTS: usize = (1 << 26) - 1;

impl Ref {
    pub(crate) const NONE: Self = Self(0);

    pub(crate) fn new(event: u32, lane: usize) -> Self {
        Self((event + 1) << 5 | lane as u32 & 31)
    }

    fn set(index: u32) -> Self {
        Self(SET | index)
    }

    pub(crate) fn is_none(self) -> bool {
        self.0 == 0
    }

    fn as_set(self) -> Option<usize> {
        (self.0 & SET != 0).then_some((self.0 & !SET) as usize)
    }

    pub(crate) fn event(self) -> usize {
        ((self.0 >> 5) as usize).wrapping_sub(1)
    }

    pub(crate) fn lane(self) -> usize {
        (self.0 & 31) as usize
    }
}

/// An access in a set.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entry {
    /// The access.
    pub(crate) who: Ref,
    /// Strong reads of other threads that have observed this strong write.
    pub(crate) observers: [Ref; 2],
    /// There were more of them.
    pub(crate) many: bool,
}

impl Entry {
    pub(crate) fn new(who: Ref) -> Self {
        Self { who, ..Self::default() }
    }
}

/// The accesses that matter of one granule.
pub(crate) const SET_SIZE: usize = 8;

/// Events and sets.
#[derive(Default)]
pub(crate) struct Table {
    pub(crate) events: Vec<Event>,
    free_events: Vec<u32>,
    /// Reclaim when so many are in use.
    threshold: usize,
    sets: Vec<Vec<Entry>>,
    free_sets: Vec<u32>,
    /// Granules of all pages.
    pub(crate) granules: usize,
}

/// Events that are not worth reclaiming.
const FEW: usize = 1 << 16;
/// Sets that are allowed in any case.
const SOME_SETS: usize = 1 << 14;

impl Table {
    /// Whether it is time to reclaim events.
    pub(crate) fn is_crowded(&self) -> bool {
        self.events.len() - self.free_events.len() >= self.threshold.max(FEW)
    }

    /// Adds an event; `None`: there is no room for more.
    pub(crate) fn add(&mut self, site: u32, time: Time, (cta, warp): (u32, u8), lanes: Mask) -> Option<u32> {
        let event = Event { site, time, cta, lanes, warp, marked: false };
        if let Some(free) = self.free_events.pop() {
            self.events[free as usize] = event;
            return Some(free);
        }
        if self.events.len() >= EVENTS {
            return None;
        }
        self.events.push(event);
        Some(self.events.len() as u32 - 1)
    }

    /// The accesses that a reference means.
    pub(crate) fn entries(&self, cell: Ref, one: &mut [Entry; 1]) -> usize {
        match cell.as_set() {
            Some(set) => self.sets[set].len(),
            None if cell.is_none() => 0,
            None => {
                one[0] = Entry::new(cell);
                1
            }
        }
    }

    /// One of the accesses that a reference means.
    pub(crate) fn entry(&self, cell: Ref, at: usize) -> Entry {
        match cell.as_set() {
            Some(set) => self.sets[set][at],
            None => Entry::new(cell),
        }
    }

    /// Whether the reference is to exactly this access, or a set that begins with it.
    pub(crate) fn begins(&self, cell: Ref, who: Ref) -> bool {
        cell == who || cell.as_set().is_some_and(|set| self.sets[set][0].who == who)
    }

    /// Makes a reference mean these accesses, of which the first matters most.
    pub(crate) fn put(&mut self, cell: &mut Ref, entries: &[Entry]) {
        let simple = |entry: &Entry| entry.observers[0].is_none() && !entry.many;
        let room = self.sets.len() - self.free_sets.len() < SOME_SETS.max(self.granules / 32);
        match entries {
            [] => self.drop(cell),
            [one] if simple(one) => {
                self.drop(cell);
                *cell = one.who;
            }
            // Without room for another set the other accesses are forgotten.
            [one, ..] if !room && cell.as_set().is_none() => {
                *cell = if simple(one) { one.who } else { Ref::NONE }
            }
            _ => {
                let entries = &entries[..entries.len().min(SET_SIZE)];
                if let Some(set) = cell.as_set() {
                    self.sets[set].clear();
                    self.sets[set].extend_from_slice(entries);
                } else if let Some(free) = self.free_sets.pop() {
                    self.sets[free as usize].extend_from_slice(entries);
                    *cell = Ref::set(free);
                } else {
                    self.sets.push(entries.to_vec());
                    *cell = Ref::set(self.sets.len() as u32 - 1);
                }
            }
        }
    }

    fn drop(&mut self, cell: &mut Ref) {
        if let Some(set) = cell.as_set() {
            self.sets[set] = Vec::new();
            self.free_sets.push(set as u32);
        }
        *cell = Ref::NONE;
    }

    fn copy(&mut self, cell: Ref) -> Ref {
        match cell.as_set() {
            Some(set) => {
                let entries = self.sets[set].clone();
                let mut copy = Ref::NONE;
                self.put(&mut copy, &entries);
                copy
            }
            None => cell,
        }
    }

    fn mark(&mut self, cell: Ref) {
        if let Some(event) = self.events.get_mut(cell.event()) {
            event.marked = true;
        }
    }

    /// Reclaims events that neither the shadows nor the given references need.
    pub(crate) fn reclaim<'a>(&mut self, shadows: impl Iterator<Item = &'a Shadow>) {
        self.events.iter_mut().for_each(|event| event.marked = false);
        for shadow in shadows {
            for page in &shadow.pages {
                for cell in page.reads.iter().chain(&page.writes) {
                    match cell.as_set() {
                        None if cell.is_none() => {}
                        None => self.mark(*cell),
                        Some(set) => {
                            for at in 0..self.sets[set].len() {
                                let Entry { who, observers: [a, b], many: _ } = self.sets[set][at];
                                [who, a, b].into_iter().for_each(|cell| self.mark(cell));
                            }
                        }
                    }
                }
            }
        }
        self.free_events =
            (0..self.events.len() as u32).filter(|at| !self.events[*at as usize].marked).collect();
        self.threshold = 2 * (self.events.len() - self.free_events.len());
    }
}

/// Bytes of a page.
pub(crate) const PAGE: u64 = 256;

/// Shadow of a page.
#[derive(Default)]
pub(crate) struct Page {
    /// A granule is so many bytes, as a power of two.
    pub(crate) shift: u8,
    pub(crate) reads: Vec<Ref>,
    pub(crate) writes: Vec<Ref>,
    /// Whether a location in it may have a record of release patterns.
    pub(crate) recorded: bool,
}

impl Page {
    fn granules(&self) -> usize {
        PAGE as usize >> self.shift
    }

    /// Makes granules no larger than that.
    pub(crate) fn refine(&mut self, shift: u8, table: &mut Table) {
        let copies = 1 << (self.shift - shift);
        for cells in [&mut self.reads, &mut self.writes] {
            let mut fine = Vec::with_capacity(cells.len() * copies);
            for cell in cells.iter() {
                fine.push(*cell);
                (1..copies).for_each(|_| fine.push(table.copy(*cell)));
            }
            table.granules += fine.len() - cells.len();
            *cells = fine;
        }
        self.shift = shift;
    }

    /// Makes room for references of reads or writes.
    pub(crate) fn grow(&mut self, write: bool, table: &mut Table) {
        let granules = self.granules();
        let cells = if write { &mut self.writes } else { &mut self.reads };
        if cells.is_empty() {
            cells.resize(granules, Ref::NONE);
            table.granules += granules;
        }
    }

    fn forget(&mut self, range: std::ops::Range<usize>, table: &mut Table) {
        for cells in [&mut self.reads, &mut self.writes] {
            for at in range.clone() {
                if let Some(cell) = cells.get_mut(at) {
                    table.drop(cell);
                }
            }
        }
    }
}

/// The shadow of a part of memory.
#[derive(Default)]
pub(crate) struct Shadow {
    index: HashMap<u64, u32>,
    pages: Vec<Page>,
    last: Option<(u64, u32)>,
}

impl Shadow {
    /// The page of an address.
    pub(crate) fn page(&mut self, address: u64) -> &mut Page {
        let number = address / PAGE;
        let at = match self.last {
            Some((last, at)) if last == number => at,
            _ => *self.index.entry(number).or_insert_with(|| {
                self.pages.push(Page { shift: 2, ..Page::default() });
                self.pages.len() as u32 - 1
            }),
        };
        self.last = Some((number, at));
        &mut self.pages[at as usize]
    }

    /// Forgets what happened to bytes: they are new.
    pub(crate) fn forget(&mut self, address: u64, bytes: u64, table: &mut Table) {
        let end = address.saturating_add(bytes);
        let first = address / PAGE;
        let last = end.div_ceil(PAGE);
        let mut forget = |number: u64, page: &mut Page| {
            let from = address.max(number * PAGE) - number * PAGE;
            let to = end.min((number + 1) * PAGE).saturating_sub(number * PAGE);
            let range = from as usize >> page.shift..(to as usize).div_ceil(1 << page.shift);
            page.forget(range, table);
        };
        if last - first > self.pages.len() as u64 {
            let mut numbers: Vec<(u64, u32)> = self.index.iter().map(|(number, at)| (*number, *at)).collect();
            numbers.sort_unstable();
            for (number, at) in numbers.into_iter().filter(|(number, _)| (first..last).contains(number)) {
                forget(number, &mut self.pages[at as usize]);
            }
        } else {
            for number in first..last {
                if let Some(at) = self.index.get(&number) {
                    forget(number, &mut self.pages[*at as usize]);
                }
            }
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self, table: &mut Table) {
        for page in std::mem::take(&mut self.pages) {
            for cells in [page.reads, page.writes] {
                table.granules -= cells.len();
                for mut cell in cells {
                    table.drop(&mut cell);
                }
            }
        }
        self.index.clear();
        self.last = None;
    }
}

/// The thread of a lane of a warp.
pub(crate) fn thread_of(warp: u8, lane: usize) -> Thread {
    Thread::from(warp) * 32 + lane as Thread
}
