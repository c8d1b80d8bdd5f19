//! The causality order of PTX ISA chapter 8, as vector clocks of lanes.
//!
//! * A **fence** joins the clocks that the lane's strong reads have observed since the last one into the
//!   lane's clock, and makes a stamp of it. Later strong writes carry the stamp (release pattern "fence;
//!   strong write"; acquire pattern "strong read; fence").
//! * A **release** operation itself makes a stamp, also for later strong writes of the lane to the same
//!   location. An **acquire** operation immediately joins the clocks that it observes, and those that strong
//!   reads of the same location have observed before.
//! * The stamps that a write carries are stored with its location in a [`Record`]. A read-modify-write that
//!   is morally strong with the last writer adds its own stamps (release sequence); any other write replaces
//!   them.
//! * Each stamp is stored twice: for threads of the writer's CTA, where any scope is wide enough, and for all
//!   threads, where both operations need the scope `.gpu` or wider. `.cluster` counts as `.gpu`.
//!
//! Invariant: a lane's clock contains at least what chapter 8 orders before its next operation. When a table
//! is full, clocks contain more than that, so a race may be missed, but no false race is reported.

use super::known::{ASYNC, CtaKnown, Known, NO_CTA, Thread, Time};

/// What would order two accesses that race.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Missing {
    /// A barrier of the CTA.
    Barrier,
    /// A wider scope.
    Scope,
    /// A release pattern, an acquire pattern, or both.
    ReleaseAcquire,
    /// Strong operations in place of weak ones.
    Strong,
    /// `bar.warp.sync`.
    Syncwarp,
}

impl Missing {
    /// Its name in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Missing::Barrier => "barrier",
            Missing::Scope => "scope",
            Missing::ReleaseAcquire => "release-acquire",
            Missing::Strong => "strong",
            Missing::Syncwarp => "syncwarp",
        }
    }
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// `ld` and its like.
    Load,
    /// `st` and its like.
    Store,
    /// `atom`, `red`.
    Rmw,
}

/// What the text says about an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Op {
    /// What it does.
    pub(crate) kind: Kind,
    /// Whether it is a strong operation.
    pub(crate) strong: bool,
    /// Whether its scope is wider than the CTA.
    pub(crate) wide: bool,
    /// `.acquire`, `.acq_rel`
    pub(crate) acquire: bool,
    /// `.release`, `.acq_rel`
    pub(crate) release: bool,
    /// Bytes of an element: the memory operation of the model.
    pub(crate) bytes: u8,
    /// A copy that goes on after its instruction (`cp.async`).
    pub(crate) copy: bool,
    /// The lanes of the warp make it together (`wmma`, `ldmatrix`): the manual does not say which lane
    /// accesses which element.
    pub(crate) collective: bool,
    /// Two halves, each an operation of its own (`.f16x2`).
    pub(crate) packed: bool,
}

impl Op {
    pub(crate) fn writes(&self) -> bool {
        self.kind != Kind::Load
    }

    pub(crate) fn reads(&self) -> bool {
        self.kind != Kind::Store
    }

    /// Whether it overlaps completely with an operation on the same first byte.
    pub(crate) fn fits(&self, other: &Self) -> bool {
        self.bytes == other.bytes
            || self.packed && 2 * other.bytes == self.bytes
            || other.packed && 2 * self.bytes == other.bytes
    }

    /// Whether two operations of different threads are morally strong.
    pub(crate) fn morally_strong(&self, other: &Self, same_cta: bool) -> bool {
        self.strong && other.strong && self.fits(other) && (same_cta || self.wide && other.wide)
    }
}

/// A lane's clock when a release pattern began.
#[derive(Clone, Debug)]
pub(crate) struct Stamp {
    known: Known,
    /// The lane's own accesses up to then, and its copies.
    time: Time,
    waited: Time,
}

impl Stamp {
    /// The clock with the lane's own entries.
    fn of(&self, thread: Thread) -> Known {
        let mut known = self.known.clone();
        known.at_home(|home| {
            home.raise_thread(thread, self.time);
            home.raise_thread(ASYNC + thread, self.waited);
        });
        known
    }
}

/// Releases of other locations that a lane remembers.
const RELEASES: usize = 4;
/// CTAs of which a record keeps the stamps apart.
const APART: usize = 32;

/// The clock of one lane, and the clocks that its later operations may release or acquire.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    /// What happens before its next operation.
    pub(crate) known: Known,
    /// Up to which time it has waited for its own copies.
    pub(crate) waited: Time,
    /// When groups of copies were closed.
    groups: Vec<Time>,
    /// The last fence of any scope, and the last with a wide scope.
    fences: [Option<Stamp>; 2],
    /// Release operations: location, whether wide.
    released: Vec<(u64, bool, Stamp)>,
    /// Clocks that strong reads have observed: those that a fence of any scope joins, and those that only a
    /// fence with a wide scope joins.
    pending: [Option<Known>; 2],
    /// The same of the last location that was read.
    seen: Option<(u64, [Option<Known>; 2])>,
    /// What would be known but for this.
    pub(crate) near: Option<(Known, Missing)>,
}

fn add(to: &mut Option<Known>, what: &Known, cta: u32, height: u32) {
    match to {
        Some(known) => known.absorb(what),
        None => {
            let mut known = Known::nothing(cta, height);
            known.absorb(what);
            *to = Some(known);
        }
    }
}

/// A lane and where it is: what operations on [`Lane`] need besides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Who {
    pub(crate) cta: u32,
    pub(crate) height: u32,
    pub(crate) thread: Thread,
    /// The time of the CTA.
    pub(crate) now: Time,
}

impl Lane {
    pub(crate) fn new(cta: u32, height: u32) -> Self {
        Self {
            known: Known::nothing(cta, height),
            waited: 0,
            groups: Vec::new(),
            fences: [None, None],
            released: Vec::new(),
            pending: [None, None],
            seen: None,
            near: None,
        }
    }

    /// Whether another lane's state is certainly the same.
    pub(crate) fn same(&self, other: &Self) -> bool {
        let plain = |lane: &Self| {
            lane.fences.iter().all(Option::is_none)
                && lane.pending.iter().all(Option::is_none)
                && (lane.released.is_empty() && lane.seen.is_none() && lane.near.is_none())
        };
        self.known.same(&other.known)
            && (self.waited, &self.groups) == (other.waited, &other.groups)
            && plain(self)
            && plain(other)
    }

    fn stamp(&self, now: Time) -> Stamp {
        Stamp { known: self.known.clone(), time: now, waited: self.waited }
    }

    /// Takes the acquiring part of a fence.
    pub(crate) fn fence_acquires(&mut self, wide: bool) {
        self.seen = None;
        if let Some(same) = self.pending[0].take() {
            self.known.absorb(&same);
        }
        if wide {
            if let Some(all) = self.pending[1].take() {
                self.known.absorb(&all);
            }
        } else if let Some(all) = &self.pending[1] {
            self.near = Some((all.clone(), Missing::Scope));
        }
    }

    /// Takes the releasing part of a fence.
    pub(crate) fn fence_releases(&mut self, wide: bool, now: Time) {
        let stamp = self.stamp(now);
        if wide {
            self.fences[1] = Some(stamp.clone());
        }
        self.fences[0] = Some(stamp);
    }

    /// The clock with the lane's own entries, as another lane may take it in.
    pub(crate) fn published(&self, who: Who) -> Known {
        self.stamp(who.now).of(who.thread)
    }

    /// A strong read of a location with a record.
    pub(crate) fn observes(&mut self, who: Who, op: &Op, address: u64, record: &Record) {
        let same_cta = record.writer == who.cta;
        if !op.morally_strong(&record.op, same_cta) {
            if op.strong && op.fits(&record.op) {
                let mut all = Known::nothing(who.cta, who.height);
                record
                    .wide
                    .iter()
                    .chain(record.ctas.iter().map(|(_, known)| known))
                    .for_each(|k| all.absorb(k));
                self.near = Some((all, Missing::Scope));
            }
            return;
        }
        let home = record.ctas.iter().find(|(cta, _)| *cta == who.cta).map(|(_, known)| known);
        let home = if record.crowded { home.or(record.wide.as_ref()) } else { home };
        if op.acquire {
            home.iter().for_each(|known| self.known.absorb(known));
            match (&record.wide, op.wide) {
                (Some(all), true) => self.known.absorb(all),
                (Some(all), false) => self.near = Some((all.clone(), Missing::Scope)),
                (None, _) => {
                    if let Some((_, narrow)) = record.ctas.iter().find(|(cta, _)| *cta != who.cta) {
                        self.near = Some((narrow.clone(), Missing::Scope));
                    }
                }
            }
            if let Some((at, [same, wide])) = &self.seen
                && *at == address
            {
                same.iter().for_each(|known| self.known.absorb(known));
                wide.iter().filter(|_| op.wide).for_each(|known| self.known.absorb(known));
            }
            return;
        }
        if self.seen.as_ref().is_none_or(|(at, _)| *at != address) {
            self.seen = Some((address, [None, None]));
        }
        let pairs = [(0, home), (1, record.wide.as_ref())];
        for (at, known) in pairs {
            let Some(known) = known else { continue };
            add(&mut self.pending[at], known, who.cta, who.height);
            if let Some((_, seen)) = &mut self.seen {
                add(&mut seen[at], known, who.cta, who.height);
            }
        }
        if record.wide.is_none()
            && let Some((_, narrow)) = record.ctas.iter().find(|(cta, _)| *cta != who.cta)
        {
            self.near = Some((narrow.clone(), Missing::Scope));
        }
    }

    /// A strong write: the stamps that it carries for its CTA, and for all threads.
    pub(crate) fn carries(&mut self, who: Who, op: &Op, address: u64) -> [Option<Known>; 2] {
        let mut carried = [None, None];
        let mut carry = |stamp: &Stamp, wide: bool| {
            let known = stamp.of(who.thread);
            add(&mut carried[0], &known, who.cta, who.height);
            if wide {
                add(&mut carried[1], &known, NO_CTA, who.height);
            }
        };
        for (wide, fence) in self.fences.iter().enumerate() {
            fence.iter().for_each(|stamp| carry(stamp, wide == 1));
        }
        for (at, wide, stamp) in &self.released {
            if *at == address {
                carry(stamp, *wide);
            }
        }
        if op.release {
            let stamp = self.stamp(who.now);
            carry(&stamp, op.wide);
            self.released.retain(|(at, wide, _)| *at != address || *wide && !op.wide);
            if self.released.len() == RELEASES {
                let (_, wide, old) = self.released.remove(0);
                for fence in &mut self.fences[..=usize::from(wide)] {
                    if fence.as_ref().is_none_or(|fence| fence.time < old.time) {
                        *fence = Some(old.clone());
                    }
                }
            }
            self.released.push((address, op.wide, stamp));
        }
        carried
    }

    /// Whether its strong writes may carry something.
    pub(crate) fn has_stamps(&self) -> bool {
        self.fences[0].is_some() || !self.released.is_empty()
    }

    /// Whether strong reads before have observed something that no fence has taken in.
    pub(crate) fn pending(&self) -> impl Iterator<Item = &Known> {
        self.pending.iter().flatten()
    }

    /// `cp.async.commit_group`
    pub(crate) fn commit(&mut self, now: Time) {
        self.groups.push(now);
    }

    /// `cp.async.wait_group n`; `None`: `cp.async.wait_all`.
    pub(crate) fn wait(&mut self, n: Option<u64>, now: Time) {
        match n {
            None => {
                self.waited = now;
                self.groups.clear();
            }
            Some(n) => {
                let keep = usize::try_from(n).unwrap_or(usize::MAX).min(self.groups.len());
                let done = self.groups.len() - keep;
                if let Some(last) = self.groups.drain(..done).next_back() {
                    self.waited = self.waited.max(last);
                }
            }
        }
    }
}

/// What the write that a location holds carries.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    /// The last writer's CTA and operation.
    pub(crate) writer: u32,
    pub(crate) op: Op,
    /// For all threads.
    wide: Option<Known>,
    /// For threads of one CTA.
    ctas: Vec<(u32, Known)>,
    /// Whether stamps for some CTAs are only in `wide`.
    crowded: bool,
}

impl Record {
    /// A record without stamps.
    pub(crate) fn new(writer: u32, op: Op) -> Self {
        Self { writer, op, wide: None, ctas: Vec::new(), crowded: false }
    }

    /// Adds what a write carries.
    pub(crate) fn add(&mut self, who: Who, [same, wide]: [Option<Known>; 2]) {
        if let Some(wide) = wide {
            add(&mut self.wide, &wide, NO_CTA, who.height);
        }
        let Some(same) = same else { return };
        match self.ctas.iter_mut().find(|(cta, _)| *cta == who.cta) {
            Some((_, known)) => known.absorb(&same),
            None => {
                if self.ctas.len() == APART {
                    let (_, old) = self.ctas.remove(0);
                    add(&mut self.wide, &old, NO_CTA, who.height);
                    self.crowded = true;
                }
                self.ctas.push((who.cta, same));
            }
        }
    }
}

/// What arrives at a barrier of the CTA, or at one in memory.
#[derive(Clone, Debug)]
pub(crate) struct Gathered {
    pub(crate) known: Known,
    /// Warps of which all lanes wait, with their time.
    pub(crate) whole: Vec<u8>,
}

impl Gathered {
    pub(crate) fn new(cta: u32, height: u32) -> Self {
        Self { known: Known::nothing(cta, height), whole: Vec::new() }
    }

    /// Changes the entries of the CTA itself.
    pub(crate) fn mark(&mut self, change: impl FnOnce(&mut CtaKnown)) {
        self.known.at_home(change);
    }
}
