//! The detector: compares each access with the earlier accesses in shadow memory.
//!
//! Two conflicting accesses of different threads race if neither happens before the other and they are not
//! morally strong (PTX ISA §8.6.1). "Happens before" is causality order: base causality order as represented
//! by the clocks ([`order`](super::order)), or a strong read that has observed the earlier strong write and
//! that itself happens before the later access, or belongs to its thread (§8.8.5).
//!
//! An earlier access is discarded when a later one **subsumes** it: every access that races with the earlier
//! one would race with the later one. This holds if the earlier one happens before the later one, and the
//! later one is weak, or no stronger and no wider; and if a read-modify-write reads a morally strong write
//! that is no weaker than itself.
//!
//! Invariant: a race is reported only if both accesses took place and nothing orders them. When a table is
//! full, accesses are discarded.

use super::cta::{Arrival, Cta, Lanes, RECENT, Warp, lanes_of};
use super::facts::{At, Party, Race, Where};
use super::known::{ASYNC, Known, NO_CTA, Time, height};
use super::order::{Kind, Lane, Missing, Op, Record};
use super::shadow::{Entry, Event, Mask, PAGE, Page, Ref, SET_SIZE, Shadow, Table, thread_of};
use std::cell::Cell;
use std::collections::HashMap;

/// Records of release patterns at most, beyond which nothing is judged any more.
const RECORDS: usize = 1 << 20;
/// Races that are kept apart.
const RACES: usize = 4096;

/// Finds races of one launch.
pub(crate) struct Detector {
    height: u32,
    sites: Vec<Op>,
    table: Table,
    shadow: Shadow,
    records: HashMap<u64, Record>,
    sc: Known,
    ctas: Vec<Option<Box<Cta>>>,
    races: Vec<Race>,
    known_races: HashMap<(u32, u32), usize>,
    /// Races whose description is another one since [`Detector::take_replaced`] was called.
    replaced: Vec<usize>,
    /// Nothing is judged any more: a table is full.
    full: bool,
}

/// An access that is being judged.
struct Me<'a> {
    cta: u32,
    warp: u8,
    lane: usize,
    state: &'a Lane,
    op: Op,
    site: u32,
    /// An event that happens before, whichever lane of the warp asks.
    before: Cell<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// It happens before.
    Before,
    /// Both are morally strong.
    Strong,
    Race,
}

impl Detector {
    /// For a launch of so many CTAs.
    pub(crate) fn new(ctas: u64) -> Self {
        let height = height(ctas);
        Self {
            height,
            sites: Vec::new(),
            table: Table::default(),
            shadow: Shadow::default(),
            records: HashMap::new(),
            sc: Known::nothing(NO_CTA, height),
            ctas: Vec::new(),
            races: Vec::new(),
            known_races: HashMap::new(),
            replaced: Vec::new(),
            full: ctas >= u64::from(NO_CTA),
        }
    }

    /// Adds an instruction, or one of several accesses of an instruction.
    pub(crate) fn site(&mut self, op: Op) -> u32 {
        self.sites.push(op);
        self.sites.len() as u32 - 1
    }

    /// The races that were found.
    pub(crate) fn races(&self) -> &[Race] {
        &self.races
    }

    /// The races that are described by another pair of accesses now, because it needs more to be ordered.
    pub(crate) fn take_replaced(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.replaced)
    }

    /// A CTA begins; `warps`: lanes that exist, by warp; `shared`: address and size of its shared memory.
    pub(crate) fn cta_begins(&mut self, slot: u32, cta: u64, warps: &[Mask], shared: (u64, u64)) {
        let slot = slot as usize;
        if self.ctas.len() <= slot {
            self.ctas.resize_with(slot + 1, || None);
        }
        self.cta_ends(slot as u32);
        let index = u32::try_from(cta).unwrap_or(NO_CTA);
        self.ctas[slot] = Some(Box::new(Cta::new(index, self.height, warps, shared)));
    }

    /// A CTA has ended.
    pub(crate) fn cta_ends(&mut self, slot: u32) {
        if let Some(mut cta) = self.ctas.get_mut(slot as usize).and_then(Option::take) {
            cta.shadow.clear(&mut self.table);
        }
    }

    /// Bytes of global memory are new: what happened to them before is forgotten.
    pub(crate) fn forget(&mut self, address: u64, bytes: u64) {
        self.shadow.forget(address, bytes, &mut self.table);
        self.records.retain(|at, _| at.wrapping_sub(address) >= bytes);
    }

    fn cta(&mut self, at: At) -> Option<&mut Cta> {
        self.ctas.get_mut(at.slot as usize)?.as_deref_mut()
    }

    /// Lanes arrive at a barrier; `waiting`: those of them that wait.
    pub(crate) fn barrier_arrives(&mut self, at: At, id: u32, lanes: Mask, waiting: Mask) {
        if let Some(cta) = self.cta(at) {
            cta.arrives(at.warp, id, lanes, waiting);
        }
    }

    /// A barrier completes.
    pub(crate) fn barrier_completes(&mut self, at: At, id: u32) {
        if let Some(cta) = self.cta(at) {
            cta.completes(id);
        }
    }

    /// A completed barrier lets lanes go on.
    pub(crate) fn barrier_releases(&mut self, at: At, id: u32, lanes: Mask) {
        if let Some(cta) = self.cta(at) {
            cta.released(at.warp, id, lanes, at.live);
        }
    }

    /// `bar.warp.sync`
    pub(crate) fn warp_syncs(&mut self, at: At, lanes: Mask) {
        if let Some(cta) = self.cta(at) {
            cta.warp_syncs(at.warp, lanes, at.live);
        }
    }

    /// `fence`, `membar`; `wide`: its scope is wider than the CTA.
    pub(crate) fn fence(&mut self, at: At, lanes: Mask, sc: bool, wide: bool) {
        let Some(cta) = self.ctas.get_mut(at.slot as usize).and_then(Option::as_deref_mut) else { return };
        let now = cta.now;
        if !sc {
            if let Some(warp) = cta.warps.get_mut(usize::from(at.warp)) {
                warp.each(lanes, at.live, |lane| {
                    lane.fence_acquires(wide);
                    lane.fence_releases(wide, now);
                });
            }
            cta.tick();
            return;
        }
        // The lanes' fences come one after another in Fence-SC order.
        for index in lanes_of(lanes) {
            let who = cta.who(at.warp, index);
            let Some(warp) = cta.warps.get_mut(usize::from(at.warp)) else { return };
            let lane = warp.lane_mut(index);
            lane.fence_acquires(wide);
            lane.known.absorb(&cta.sc);
            if wide {
                lane.known.absorb(&self.sc);
            }
            lane.fence_releases(wide, now);
            let published = lane.published(who);
            cta.sc.absorb(&published);
            if wide {
                self.sc.absorb(&published);
            }
        }
        cta.tick();
    }

    /// `cp.async.commit_group`
    pub(crate) fn copies_commit(&mut self, at: At, lanes: Mask) {
        let Some(cta) = self.cta(at) else { return };
        let now = cta.now;
        if let Some(warp) = cta.warps.get_mut(usize::from(at.warp)) {
            warp.each(lanes, at.live, |lane| lane.commit(now));
        }
        cta.tick();
    }

    /// `cp.async.wait_group n`; `None`: `cp.async.wait_all`.
    pub(crate) fn copies_wait(&mut self, at: At, lanes: Mask, n: Option<u64>) {
        let Some(cta) = self.cta(at) else { return };
        let now = cta.now;
        if let Some(warp) = cta.warps.get_mut(usize::from(at.warp)) {
            warp.each(lanes, at.live, |lane| lane.wait(n, now));
        }
        cta.tick();
    }

    /// `mbarrier.init`
    pub(crate) fn mbarrier_init(&mut self, at: At, address: u64, count: u32) {
        if let Some(cta) = self.cta(at) {
            cta.mbar_init(address, count);
        }
    }

    /// `mbarrier.arrive` and `mbarrier.arrive_drop` of a lane.
    pub(crate) fn mbarrier_arrives(&mut self, at: At, lane: usize, address: u64, count: u32, drops: bool) {
        if let Some(cta) = self.cta(at) {
            cta.mbar_arrives(at.warp, lane, address, Arrival::Thread { count, drops });
        }
    }

    /// `cp.async.mbarrier.arrive` of a lane; `counts`: `.noinc`.
    pub(crate) fn copies_arrive(&mut self, at: At, lane: usize, address: u64, counts: bool) {
        if let Some(cta) = self.cta(at) {
            cta.mbar_arrives(at.warp, lane, address, Arrival::Copies { counts });
        }
    }

    /// A lane's `mbarrier.test_wait` or `mbarrier.try_wait` was true.
    pub(crate) fn mbarrier_passed(&mut self, at: At, lane: usize, address: u64) {
        if let Some(cta) = self.cta(at) {
            cta.mbar_passed(at.warp, lane, address);
        }
    }

    /// An access of lanes that takes place.
    pub(crate) fn access(&mut self, at: At, site: u32, place: &Where<'_>) {
        if self.full {
            return;
        }
        if self.table.is_crowded() {
            self.reclaim();
        }
        let Some(op) = self.sites.get(site as usize).copied() else { return };
        let Some(cta) = self.ctas.get_mut(at.slot as usize).and_then(Option::as_deref_mut) else { return };
        if usize::from(at.warp) >= cta.warps.len() {
            return;
        }
        let (start, bytes) = cta.range;
        let shared = |lane: &usize| place.addresses[*lane].wrapping_sub(start) < bytes;
        let inside = lanes_of(place.lanes).filter(shared).fold(0, |mask, lane| mask | 1 << lane);
        let Cta { index, now, warps, shadow, records, .. } = cta;
        let (index, now) = (*index, *now);
        let warp = &mut warps[usize::from(at.warp)];
        let book = Book {
            table: &mut self.table,
            sites: &self.sites,
            races: &mut self.races,
            known_races: &mut self.known_races,
            replaced: &mut self.replaced,
        };
        let mut turn = Turn { book, at, site, op, cta: index, now, height: self.height, warp };
        let mut fits = true;
        if inside != 0 {
            fits &= turn.all(shadow, records, true, inside, place);
        }
        if place.lanes & !inside != 0 {
            fits &= turn.all(&mut self.shadow, &mut self.records, false, place.lanes & !inside, place);
        }
        if op.release {
            cta.tick();
        }
        if !fits || cta.now == Time::MAX {
            self.full = true;
        }
    }

    fn reclaim(&mut self) {
        let resident = self.ctas.iter_mut().flatten();
        for cta in resident {
            cta.warps.iter_mut().for_each(|warp| warp.recent = [(u32::MAX, 0, 0, 0); RECENT]);
        }
        let shadows = self.ctas.iter().flatten().map(|cta| &cta.shadow).chain([&self.shadow]);
        self.table.reclaim(shadows);
    }
}

/// What judging an access needs besides the access.
struct Book<'a> {
    table: &'a mut Table,
    sites: &'a [Op],
    races: &'a mut Vec<Race>,
    known_races: &'a mut HashMap<(u32, u32), usize>,
    replaced: &'a mut Vec<usize>,
}

/// An access of a warp.
struct Turn<'a> {
    book: Book<'a>,
    at: At,
    site: u32,
    op: Op,
    cta: u32,
    now: Time,
    height: u32,
    warp: &'a mut Warp,
}

impl Turn<'_> {
    /// All its lanes, in one shadow. Whether there was room.
    fn all(
        &mut self,
        shadow: &mut Shadow,
        records: &mut HashMap<u64, Record>,
        shared: bool,
        lanes: Mask,
        place: &Where<'_>,
    ) -> bool {
        let op = self.op;
        let parted = are_distinct(lanes, place.addresses);
        // Lanes of an atomic operation act one after another; a store of different values to one address
        // races with itself.
        let together = !parted && op.kind != Kind::Rmw && (op.kind == Kind::Load || place.agree);
        let mut rest = lanes;
        while rest != 0 {
            let first = rest.trailing_zeros() as usize;
            let address = place.addresses[first];
            let group = match together {
                true => lanes_of(rest)
                    .filter(|lane| place.addresses[*lane] == address)
                    .fold(0, |m, lane| m | 1 << lane),
                false => 1 << first,
            };
            rest &= !group;
            let Some(who) = self.event(group) else { return false };
            let mut chosen = place.chosen;
            while chosen != 0 {
                let element = chosen.trailing_zeros();
                chosen &= chosen - 1;
                let address = address.wrapping_add(u64::from(element) * u64::from(op.bytes));
                let page = shadow.page(address);
                if op.strong && op.reads() && page.recorded {
                    self.observe(records, address, group);
                }
                self.element(page, who, address, shared, group);
                if op.writes() && (op.strong || page.recorded) && !self.carry(page, records, address, group) {
                    return false;
                }
            }
        }
        true
    }

    /// The reference to the access by these lanes.
    fn event(&mut self, group: Mask) -> Option<Ref> {
        let lane = group.trailing_zeros() as usize;
        let lanes = if group.count_ones() == 1 { 0 } else { group };
        let at = (self.site ^ lanes ^ lanes >> 16) as usize % RECENT;
        let (site, mask, time, event) = self.warp.recent[at];
        if (site, mask, time) == (self.site, lanes, self.now) {
            return Some(Ref::new(event, lane));
        }
        let event = self.book.table.add(self.site, self.now, (self.cta, self.at.warp), lanes)?;
        self.warp.recent[at] = (self.site, lanes, self.now, event);
        Some(Ref::new(event, lane))
    }

    /// A strong read takes in what the location's record offers.
    fn observe(&mut self, records: &HashMap<u64, Record>, address: u64, group: Mask) {
        let Some(record) = records.get(&address) else { return };
        let (op, cta, height, now, warp) = (self.op, self.cta, self.height, self.now, self.at.warp);
        let who = |lane: usize| super::order::Who { cta, height, thread: thread_of(warp, lane), now };
        if let Lanes::Uniform(all) = &mut self.warp.lanes
            && group & self.at.live == self.at.live
        {
            all.observes(who(group.trailing_zeros() as usize), &op, address, record);
            return;
        }
        for lane in lanes_of(group) {
            self.warp.lane_mut(lane).observes(who(lane), &op, address, record);
        }
    }

    /// A write leaves what it carries in the location's record. Whether there was room.
    fn carry(
        &mut self,
        page: &mut Page,
        records: &mut HashMap<u64, Record>,
        address: u64,
        group: Mask,
    ) -> bool {
        let op = self.op;
        for lane in lanes_of(group) {
            let who = super::order::Who {
                cta: self.cta,
                height: self.height,
                thread: thread_of(self.at.warp, lane),
                now: self.now,
            };
            let stamps = op.strong && (op.release || self.warp.lane(lane).has_stamps());
            let carried =
                if stamps { self.warp.lane_mut(lane).carries(who, &op, address) } else { [None, None] };
            let old = if page.recorded { records.get_mut(&address) } else { None };
            if let Some(record) = old
                && op.kind == Kind::Rmw
                && record.op.morally_strong(&op, record.writer == self.cta)
            {
                (record.writer, record.op) = (self.cta, op);
                record.add(who, carried);
                continue;
            }
            if page.recorded {
                forget_records(records, address, op.bytes);
            }
            if carried.iter().any(Option::is_some) {
                let mut record = Record::new(self.cta, op);
                record.add(who, carried);
                records.insert(address, record);
                page.recorded = true;
            }
        }
        records.len() < RECORDS
    }

    /// Judges one element of the access, and notes it.
    fn element(&mut self, page: &mut Page, who: Ref, address: u64, shared: bool, group: Mask) {
        let bytes = usize::from(self.op.bytes);
        let offset = (address % PAGE) as usize;
        let fine = (bytes.trailing_zeros() as u8).min(2);
        if fine < page.shift {
            page.refine(fine, self.book.table);
        }
        page.grow(self.op.writes(), self.book.table);
        let end = ((offset + bytes).min(PAGE as usize) - 1) >> page.shift;
        for granule in offset >> page.shift..=end {
            let mine = if self.op.writes() { page.writes[granule] } else { page.reads[granule] };
            if self.book.table.begins(mine, who) {
                continue;
            }
            // The lane that the access is noted for comes last, because noting it replaces what the others
            // are held against.
            let first = group.trailing_zeros() as usize;
            for lane in lanes_of(group & !(1 << first)).chain([first]) {
                let me = Me {
                    cta: self.cta,
                    warp: self.at.warp,
                    lane,
                    state: self.warp.lane(lane),
                    op: self.op,
                    site: self.site,
                    before: Cell::new(usize::MAX),
                };
                let noted = (lane == first).then_some(who);
                match self.op.writes() {
                    true => self.book.write(page, granule, &me, noted, (address, shared)),
                    false => self.book.read(page, granule, &me, noted, (address, shared)),
                }
            }
        }
    }
}

/// Removes the records of all locations that overlap with one.
fn forget_records(records: &mut HashMap<u64, Record>, address: u64, bytes: u8) {
    records.remove(&address);
    // Locations are aligned, and have 16 bytes at most.
    let start = address & !15;
    for at in start..start + 16 {
        let overlaps =
            |record: &Record| at < address + u64::from(bytes) && address < at + u64::from(record.op.bytes);
        if records.get(&at).is_some_and(overlaps) {
            records.remove(&at);
        }
    }
}

fn are_distinct(lanes: Mask, addresses: &[u64; 32]) -> bool {
    let ascends = |(a, b): (usize, usize)| addresses[a] < addresses[b];
    let descends = |(a, b): (usize, usize)| addresses[a] > addresses[b];
    let pairs = || lanes_of(lanes).zip(lanes_of(lanes).skip(1));
    pairs().all(ascends) || pairs().all(descends)
}

impl Book<'_> {
    fn event(&self, who: Ref) -> Option<&Event> {
        self.table.events.get(who.event())
    }

    /// Whether all lanes of an earlier access happen before an access, as far as clocks know.
    fn is_before(&self, who: Ref, event: &Event, me: &Me<'_>) -> bool {
        if me.before.get() == who.event() {
            return true;
        }
        let op = self.sites.get(event.site as usize);
        let copy = op.is_some_and(|op| op.copy);
        let base = thread_of(event.warp, 0) + if copy { ASYNC } else { 0 };
        let mut lanes = if event.lanes != 0 { event.lanes } else { 1 << who.lane() };
        // Lanes that store one value to one address together count as one write, which each of them made.
        let one_write = event.lanes != 0 && op.is_some_and(|op| op.kind == Kind::Store);
        let mine = 1 << me.lane;
        if (event.cta, event.warp) == (me.cta, me.warp)
            && lanes & mine != 0
            && (!copy || event.time <= me.state.waited)
        {
            lanes = if one_write { 0 } else { lanes & !mine };
        }
        if lanes == 0 {
            return true;
        }
        let Some(known) = me.state.known.of(event.cta) else { return false };
        if known.warp_time(base) >= event.time {
            me.before.set(who.event());
            return true;
        }
        let mut knows = lanes_of(lanes).map(|lane| known.time(base + lane as u16) >= event.time);
        if one_write { knows.any(|knows| knows) } else { knows.all(|knows| knows) }
    }

    fn verdict(&self, entry: &Entry, me: &Me<'_>) -> Verdict {
        let Some(event) = self.event(entry.who) else { return Verdict::Before };
        let Some(op) = self.sites.get(event.site as usize) else { return Verdict::Before };
        if self.is_before(entry.who, event, me) {
            return Verdict::Before;
        }
        if op.collective && me.op.collective && (event.cta, event.warp) == (me.cta, me.warp) {
            return Verdict::Before;
        }
        if op.morally_strong(&me.op, event.cta == me.cta) {
            return Verdict::Strong;
        }
        let observed = |who: &Ref| {
            self.event(*who).is_some_and(|observer| {
                let same = (observer.cta, observer.warp) == (me.cta, me.warp);
                same && self.lanes(*who, observer) >> me.lane & 1 != 0
                    || self.is_any_before(*who, observer, me)
            })
        };
        if entry.many || entry.observers.iter().any(observed) { Verdict::Before } else { Verdict::Race }
    }

    fn lanes(&self, who: Ref, event: &Event) -> Mask {
        if event.lanes != 0 { event.lanes } else { 1 << who.lane() }
    }

    /// Whether the access of some lane of an event happens before.
    fn is_any_before(&self, who: Ref, event: &Event, me: &Me<'_>) -> bool {
        let Some(known) = me.state.known.of(event.cta) else { return false };
        lanes_of(self.lanes(who, event)).any(|lane| known.time(thread_of(event.warp, lane)) >= event.time)
    }

    /// Whether everything that would race with an earlier access, which happens before, would race with this
    /// one.
    fn subsumes(&self, me: &Me<'_>, entry: &Entry) -> bool {
        let Some(old) = self.event(entry.who).and_then(|event| self.sites.get(event.site as usize)) else {
            return true;
        };
        !me.op.strong || old.strong && old.fits(&me.op) && (old.wide || !me.op.wide)
    }

    /// A read of a granule. `noted`: it is to be remembered as that.
    fn read(&mut self, page: &mut Page, granule: usize, me: &Me<'_>, noted: Option<Ref>, place: (u64, bool)) {
        if let Some(writes) = page.writes.get_mut(granule)
            && !writes.is_none()
        {
            self.read_after(writes, me, noted, place);
        }
        let Some(who) = noted else { return };
        let cell = &mut page.reads[granule];
        if cell.is_none() {
            *cell = who;
            return;
        }
        let mut kept = [Entry::default(); SET_SIZE];
        kept[0] = Entry::new(who);
        let mut count = 1;
        self.keep(*cell, &mut kept, &mut count, |book, entry| {
            book.verdict(entry, me) != Verdict::Before || !book.subsumes(me, entry)
        });
        self.table.put(cell, &kept[..count]);
    }

    /// Adds entries of a cell to a set in the making. Of too many, some are forgotten.
    fn keep(
        &self,
        cell: Ref,
        kept: &mut [Entry; SET_SIZE],
        count: &mut usize,
        mut is_kept: impl FnMut(&Self, &Entry) -> bool,
    ) {
        let mut one = [Entry::default()];
        for at in 0..self.table.entries(cell, &mut one) {
            let entry = self.table.entry(cell, at);
            if !is_kept(self, &entry) {
                continue;
            }
            if *count < SET_SIZE {
                kept[*count] = entry;
                *count += 1;
            } else {
                kept[1 + entry.who.event() % (SET_SIZE - 1)] = entry;
            }
        }
    }

    /// Holds a read against the writes of its granule.
    fn read_after(&mut self, writes: &mut Ref, me: &Me<'_>, noted: Option<Ref>, place: (u64, bool)) {
        let mut one = [Entry::default()];
        let count = self.table.entries(*writes, &mut one);
        let mut observed = false;
        for at in 0..count {
            let entry = self.table.entry(*writes, at);
            match self.verdict(&entry, me) {
                Verdict::Before => {}
                Verdict::Strong => observed = true,
                Verdict::Race => self.found(&entry, me, place),
            }
        }
        if let (true, Some(who)) = (observed, noted) {
            let mut kept = [Entry::default(); SET_SIZE];
            let mut changed = false;
            for (at, kept) in kept.iter_mut().enumerate().take(count) {
                *kept = self.table.entry(*writes, at);
                if self.verdict(kept, me) == Verdict::Strong {
                    changed |= add_observer(kept, who);
                }
            }
            if changed {
                self.table.put(writes, &kept[..count]);
            }
        }
    }

    /// A write of a granule.
    fn write(
        &mut self,
        page: &mut Page,
        granule: usize,
        me: &Me<'_>,
        noted: Option<Ref>,
        place: (u64, bool),
    ) {
        let mut one = [Entry::default()];
        let cell = page.writes[granule];
        if let Some(who) = noted {
            let mut kept = [Entry::default(); SET_SIZE];
            kept[0] = Entry::new(who);
            let mut count = 1;
            let mut races = Vec::new();
            self.keep(cell, &mut kept, &mut count, |book, entry| match book.verdict(entry, me) {
                // Threads of the CTA that a barrier has not ordered with a weak write by now are few.
                Verdict::Before => !book.subsumes(me, entry) && !place.1,
                Verdict::Strong => me.op.kind != Kind::Rmw || !book.subsumes(me, entry),
                Verdict::Race => {
                    races.push(*entry);
                    false
                }
            });
            races.iter().for_each(|entry| self.found(entry, me, place));
            if me.op.reads() {
                for entry in &mut kept[1..count] {
                    if self.verdict(entry, me) == Verdict::Strong {
                        add_observer(entry, who);
                    }
                }
            }
            self.table.put(&mut page.writes[granule], &kept[..count]);
        } else {
            for at in 0..self.table.entries(cell, &mut one) {
                let entry = self.table.entry(cell, at);
                // Lanes that store together are no race: the manual does not say which of the equal values
                // stays.
                let together = self.event(entry.who).is_some_and(|event| {
                    (event.site, event.cta, event.warp) == (me.site, me.cta, me.warp)
                        && event.lanes >> me.lane & 1 != 0
                });
                if !together && self.verdict(&entry, me) == Verdict::Race {
                    self.found(&entry, me, place);
                }
            }
        }
        let Some(cell) = page.reads.get(granule).copied().filter(|cell| !cell.is_none()) else { return };
        let mut kept = [Entry::default(); SET_SIZE];
        let mut count = 0;
        for at in 0..self.table.entries(cell, &mut one) {
            let entry = self.table.entry(cell, at);
            match self.verdict(&entry, me) {
                Verdict::Before => {}
                Verdict::Strong => {
                    kept[count] = entry;
                    count += 1;
                }
                Verdict::Race => self.found(&entry, me, place),
            }
        }
        if noted.is_some() {
            self.table.put(&mut page.reads[granule], &kept[..count]);
        }
    }

    /// What would order an earlier access with this one.
    fn missing(&self, event: &Event, op: &Op, me: &Me<'_>) -> Missing {
        let thread = thread_of(event.warp, 0);
        let knows = |known: &Known| {
            known.of(event.cta).is_some_and(|cta| {
                let lanes = if event.lanes != 0 { event.lanes } else { u32::MAX };
                lanes_of(lanes).any(|lane| cta.time(thread + lane as u16) >= event.time)
            })
        };
        let same_cta = event.cta == me.cta;
        if op.strong && me.op.strong {
            return if op.fits(&me.op) { Missing::Scope } else { Missing::Strong };
        }
        if !op.copy && !me.op.copy {
            if me.state.pending().any(&knows) {
                return match &me.state.near {
                    Some((known, why)) if knows(known) => *why,
                    Some(_) | None => Missing::ReleaseAcquire,
                };
            }
            if let Some((known, why)) = &me.state.near
                && knows(known)
            {
                return *why;
            }
        }
        let flag = |op: &Op| op.strong && op.kind != Kind::Rmw;
        if same_cta && event.warp == me.warp && !op.copy && !me.op.copy {
            Missing::Syncwarp
        } else if same_cta {
            if flag(op) || flag(&me.op) { Missing::Strong } else { Missing::Barrier }
        } else if op.strong || me.op.strong {
            Missing::Strong
        } else {
            Missing::ReleaseAcquire
        }
    }

    /// Notes a race with an earlier access.
    #[cold]
    fn found(&mut self, entry: &Entry, me: &Me<'_>, (address, shared): (u64, bool)) {
        let Some(event) = self.event(entry.who).copied() else { return };
        let key = (event.site.min(me.site), event.site.max(me.site));
        let known_race = self.known_races.get(&key).copied();
        if let Some(at) = known_race {
            let race = &mut self.races[at];
            race.count += 1;
            // A barrier also orders the lanes of one warp, so a race between warps says more.
            if race.missing != Missing::Syncwarp || (event.cta, event.warp) == (me.cta, me.warp) {
                return;
            }
        } else if self.races.len() >= RACES {
            return;
        }
        let Some(op) = self.sites.get(event.site as usize).copied() else { return };
        // Of several lanes, one that is not ordered.
        let known = me.state.known.of(event.cta);
        let base = thread_of(event.warp, 0) + if op.copy { ASYNC } else { 0 };
        let own = (event.cta, event.warp) == (me.cta, me.warp) && !op.copy;
        let lane = lanes_of(self.lanes(entry.who, &event))
            .filter(|lane| !(own && *lane == me.lane))
            .find(|lane| known.is_none_or(|known| known.time(base + *lane as u16) < event.time))
            .unwrap_or_else(|| entry.who.lane());
        let first = Party { site: event.site, cta: event.cta, warp: event.warp, lane: lane as u8 };
        let second = Party { site: me.site, cta: me.cta, warp: me.warp, lane: me.lane as u8 };
        let missing = self.missing(&event, &op, me);
        let mut race = Race { first, second, address, shared, missing, count: 1 };
        match known_race {
            None => {
                self.known_races.insert(key, self.races.len());
                self.races.push(race);
            }
            Some(at) if missing == Missing::Barrier => {
                let earlier = &self.races[at];
                race.count = earlier.count;
                // The finding stays that of the same line.
                if race.first.site != earlier.first.site {
                    std::mem::swap(&mut race.first, &mut race.second);
                }
                self.races[at] = race;
                self.replaced.push(at);
            }
            Some(_) => {}
        }
    }
}

fn add_observer(entry: &mut Entry, who: Ref) -> bool {
    if entry.many || entry.observers.contains(&who) {
        return false;
    }
    match entry.observers.iter_mut().find(|observer| observer.is_none()) {
        Some(free) => *free = who,
        None => entry.many = true,
    }
    true
}
