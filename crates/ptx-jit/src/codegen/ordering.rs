//! Ordering checks: accesses that may race leave native code, and the others leave stamps.
//!
//! A race detector permits native code if it compares each access with the stamps of the bytes
//! ([`stamps`](ptx_exec::stamps), [`NativeChecks::ordered`](ptx_exec::watch::NativeChecks)). Stamps are words
//! at fixed distances from each four bytes: one for writes, one for reads, and one for updates by atomic
//! operations. So lanes that access consecutive elements have their stamps in one vector, and a
//! comparison of the vector with the numbers of the current interval tells whether a barrier or program order
//! orders the access with all conflicting ones. If not, the side exit before the instruction is taken.
//!
//! Invariants: addresses are checked against their bounds before their stamps are accessed. No stamp changes
//! before all stamps of the access have been compared, because the interpreter compares them again. Lanes
//! that read or update one word in one instruction leave the stamp of several threads.
//!
//! What it does not do: it knows no orders but those of barriers of whole CTAs and of program order.

use super::load_store::Addresses;
use super::mask::Mask;
use super::{Codegen, Touch};
use crate::frame::Frame;
use crate::llvm::{IntPred, Likely, Value};
use crate::wir::access::{Access, Chunk, Plan, Strategy};
use crate::wir::{Affine, Op, Site};
use ptx::isa::Space;
use ptx_exec::native::ExitCause;
use ptx_exec::stamps::{Clock, StampKind};
use std::mem::offset_of;

/// The numbers that stamps are compared with, loaded where a warp begins or resumes.
#[derive(Clone, Copy)]
pub(super) struct Interval {
    /// The first stamp of the current interval.
    now: Value,
    /// That of the first interval of the CTA.
    start: Value,
    /// The first number of the launch.
    first: Value,
    /// The stamp of writes before the launch, where the contents of memory are kept.
    saved: Value,
    /// The stamp of several threads of the current interval.
    several: Value,
    /// The stamp of the warp's first lane.
    me: Value,
    /// The distances from memory to its stamps, by [`StampKind`].
    distances: [Value; 3],
}

/// The words of some lanes.
enum Words {
    /// One word; the condition that its address was checked, unless it always is.
    One(Value, Option<Value>),
    /// Consecutive words from an address on, so many.
    Row(Value, u32),
    /// A word for each lane.
    Each(Value),
}

/// A part of an access: some words, and who accesses them.
struct Part {
    words: Words,
    /// The stamps that do not conflict in the current interval: that of the lane, or zero for several lanes.
    me: Value,
    /// The stamps that the access leaves.
    left: Value,
    /// The active lanes; `None`: all.
    active: Option<Value>,
}

impl Codegen<'_> {
    /// Loads the numbers of the current interval.
    pub(super) fn begin_interval(&mut self) {
        if !self.job.ordered {
            return;
        }
        let clock = self.b.load(self.b.ptr(), self.field(offset_of!(Frame, interval)), 8);
        let number = |offset: usize| self.b.load(self.int(32), self.b.offset(clock, offset as u64), 4);
        let now = number(offset_of!(Clock, now));
        let start = number(offset_of!(Clock, start));
        let first = number(offset_of!(Clock, first));
        let unit = number(offset_of!(Clock, unit));
        let several = self.b.sub(self.b.add(now, unit), self.c32(1));
        let warp = self.load32(offset_of!(Frame, warp));
        let me = self.b.add(now, self.b.mul(warp, self.c32(super::LANES)));
        let distances = [0, 8, 16].map(|more| self.load64(offset_of!(Frame, stamps) + more));
        let saved = self.b.add(first, unit);
        self.entry.interval = Some(Interval { now, start, first, saved, several, me, distances });
    }

    /// Begins the next interval, behind a barrier of all threads of the CTA. If there are no numbers left,
    /// the interval goes on.
    pub(super) fn end_interval(&self) {
        if !self.job.ordered {
            return;
        }
        let clock = self.b.load(self.b.ptr(), self.field(offset_of!(Frame, interval)), 8);
        let place = |offset: usize| self.b.offset(clock, offset as u64);
        let now = self.b.load(self.int(32), place(offset_of!(Clock, now)), 4);
        let unit = self.b.load(self.int(32), place(offset_of!(Clock, unit)), 4);
        let next = self.b.add(now, unit);
        let exists = self.b.icmp(IntPred::Sge, next, self.c32(0));
        self.b.store(self.b.select(exists, next, now), place(offset_of!(Clock, now)), 4);
    }

    /// Takes the side exit before an access that may not be ordered with an earlier one, and leaves its
    /// stamps otherwise. `None`: there is no exit.
    pub(super) fn or_unordered(
        &mut self,
        site: Site,
        plan: &Plan,
        places: &Addresses,
        op: &Op,
        touch: Touch,
    ) -> Option<()> {
        let Some(interval) = self.entry.interval.filter(|_| has_stamps(plan.access)) else { return Some(()) };
        let shared = plan.access.space == Space::Shared;
        let mask = self.mask(op.uses[0]);
        let mut parts = self.parts(plan, places, mask, interval);
        if touch == Touch::Write && are_parts_of_words(places, plan.access) {
            // Lanes that store to different bytes of a word together.
            for part in &mut parts {
                part.left = self.like(interval.several, part.left);
            }
        }
        let mut found = Vec::new();
        for part in &parts {
            for kind in self.compared(touch) {
                let stamp = self.stamp(part, kind, interval);
                let conflict = self.conflict(stamp, part.me, (touch, kind), shared, interval);
                found.push(self.of_active(part, conflict));
            }
        }
        if let (Touch::Write, Addresses::Same(_)) = (touch, places) {
            // Several lanes that store to one address: the tool compares their values.
            found.push(self.b.not(self.is_one_lane(self.word(mask))));
        }
        let unordered = self.some_of(&found);
        self.leave_if_any(site, &[unordered], ExitCause::Unordered)?;
        for part in &parts {
            self.leave_stamps(part, touch, shared, interval);
        }
        if touch == Touch::Write && !are_apart(places, plan.access) {
            // Lanes that store to one word overwrite each other's stamps.
            let mut lost = Vec::new();
            for part in &parts {
                let stamp = self.stamp(part, StampKind::Write, interval);
                let other = self.b.icmp(IntPred::Ne, stamp, part.left);
                lost.push(self.of_active(part, other));
            }
            let together = self.some_of(&lost);
            self.leave_if_any(site, &[together], ExitCause::Unordered)?;
        }
        Some(())
    }

    /// The kinds of stamps that an access may conflict with.
    fn compared(&self, touch: Touch) -> Vec<StampKind> {
        let mut kinds = match touch {
            Touch::Read => vec![StampKind::Write],
            Touch::Write | Touch::Update => vec![StampKind::Write, StampKind::Read],
        };
        if touch != Touch::Update && self.facts.updates {
            kinds.push(StampKind::Update);
        }
        kinds
    }

    /// Whether stamps are those of accesses that are not ordered before this one.
    fn conflict(
        &self,
        stamp: Value,
        me: Value,
        (touch, kind): (Touch, StampKind),
        shared: bool,
        interval: Interval,
    ) -> Value {
        let all = |value: Value| self.like(value, stamp);
        let since = self.b.icmp(IntPred::Sge, stamp, all(interval.now));
        let other = self.b.icmp(IntPred::Ne, stamp, me);
        let unordered = self.b.and(since, other);
        if shared {
            // Stamps of earlier CTAs are those of other memory.
            return unordered;
        }
        let before = self.b.icmp(IntPred::Slt, stamp, all(interval.start));
        let elsewhere = match (kind, touch) {
            (StampKind::Write, Touch::Read) => self.b.icmp(IntPred::Sgt, stamp, all(interval.saved)),
            // The contents of memory must be kept before the first write.
            (StampKind::Write, _) => self.b.icmp(IntPred::Ne, stamp, all(interval.saved)),
            (StampKind::Read | StampKind::Update, _) => self.b.icmp(IntPred::Sge, stamp, all(interval.first)),
        };
        self.b.or(unordered, self.b.and(before, elsewhere))
    }

    /// The stamps for reads or updates after another access.
    fn merged(&self, stamp: Value, left: Value, shared: bool, interval: Interval) -> Value {
        let all = |value: Value| self.like(value, stamp);
        let since = self.b.icmp(IntPred::Sge, stamp, all(interval.now));
        let other = self.b.icmp(IntPred::Ne, stamp, left);
        let merged = self.b.select(self.b.and(since, other), all(interval.several), left);
        if shared {
            return merged;
        }
        let before = self.b.icmp(IntPred::Slt, stamp, all(interval.start));
        let launch = self.b.icmp(IntPred::Sge, stamp, all(interval.first));
        self.b.select(self.b.and(before, launch), all(interval.first), merged)
    }

    /// Leaves the stamps of a part. Parts follow one another, since they may have common words.
    fn leave_stamps(&mut self, part: &Part, touch: Touch, shared: bool, interval: Interval) {
        let kind = match touch {
            Touch::Read => StampKind::Read,
            Touch::Write => StampKind::Write,
            Touch::Update => StampKind::Update,
        };
        let stamp = self.stamp(part, kind, interval);
        let left = match touch {
            Touch::Write => part.left,
            Touch::Read => self.merged(stamp, part.left, shared, interval),
            Touch::Update => {
                let several = self.like(interval.several, stamp);
                self.merged(stamp, several, shared, interval)
            }
        };
        let Words::Each(_) = part.words else { return self.set_stamp(part, kind, left, interval) };
        let changes = self.b.icmp(IntPred::Ne, stamp, left);
        let changes = self.of_active(part, changes);
        let changes = self.some_of(&[changes]);
        let (change, done) =
            (self.b.append_block(self.function, "stamp"), self.b.append_block(self.function, "stamped"));
        self.b.cond_br(changes, change, done, Likely::Unknown);
        self.b.position_at_end(change);
        self.set_stamp(part, kind, left, interval);
        if touch == Touch::Read {
            // Lanes that read one word have overwritten each other's stamps.
            let several = self.b.append_block(self.function, "several");
            let again = self.stamp(part, kind, interval);
            let lost = self.b.icmp(IntPred::Ne, again, left);
            let lost = self.of_active(part, lost);
            self.b.cond_br(self.some_of(&[lost]), several, done, Likely::Unknown);
            self.b.position_at_end(several);
            let all = self.like(interval.several, stamp);
            let part = Part { words: Words::Each(each_of(part)), me: part.me, left: all, active: Some(lost) };
            self.set_stamp(&part, kind, all, interval);
        }
        self.b.br(done);
        self.b.position_at_end(done);
    }

    fn stamp_pointer(&self, part: &Part, kind: StampKind, interval: Interval) -> Value {
        let distance = interval.distances[kind as usize];
        match part.words {
            Words::One(place, checked) => {
                let pointer = self.b.int_to_ptr(self.b.add(place, distance));
                checked.map_or(pointer, |checked| self.b.select(checked, pointer, self.entry.spare))
            }
            Words::Row(place, _) => self.b.int_to_ptr(self.b.add(place, distance)),
            Words::Each(places) => {
                let distance = self.b.splat(distance, places.ty().lanes());
                self.b.int_to_ptr(self.b.add(places, distance))
            }
        }
    }

    /// Loads the stamps of a part.
    fn stamp(&self, part: &Part, kind: StampKind, interval: Interval) -> Value {
        let pointer = self.stamp_pointer(part, kind, interval);
        match part.words {
            Words::One(..) => self.b.load(self.int(32), pointer, 4),
            Words::Row(_, count) => {
                let ty = self.b.vec(self.int(32), count);
                match part.active {
                    None => self.b.load(ty, pointer, 4),
                    Some(lanes) => self.masked_load(Space::Global, pointer, 4, lanes, self.b.zero(ty)),
                }
            }
            Words::Each(_) => {
                let ty = self.b.vec(self.int(32), self.width);
                self.masked_gather(pointer, 4, part.active, self.b.zero(ty))
            }
        }
    }

    fn set_stamp(&self, part: &Part, kind: StampKind, left: Value, interval: Interval) {
        let pointer = self.stamp_pointer(part, kind, interval);
        match (&part.words, part.active) {
            (Words::One(..), _) | (Words::Row(..), None) => self.b.store(left, pointer, 4),
            (Words::Row(..), Some(lanes)) => self.masked_store(Space::Global, left, pointer, 4, lanes),
            (Words::Each(_), lanes) => self.masked_scatter(left, pointer, 4, lanes),
        }
    }

    /// A condition of the lanes of a part, for the active ones alone.
    fn of_active(&self, part: &Part, condition: Value) -> Value {
        let active = match part.words {
            Words::One(_, checked) => checked,
            Words::Row(..) | Words::Each(_) => part.active,
        };
        active.map_or(condition, |active| self.b.and(condition, active))
    }

    /// Whether any of these conditions, of one lane or of several, holds.
    fn some_of(&self, conditions: &[Value]) -> Value {
        let mut joined: Vec<Value> = Vec::new();
        for condition in conditions {
            match joined.iter_mut().find(|other| other.ty() == condition.ty()) {
                Some(other) => *other = self.b.or(*other, *condition),
                None => joined.push(*condition),
            }
        }
        let bit = self.int(1);
        let any = joined.into_iter().map(|part| if part.ty() == bit { part } else { self.any(part) });
        any.reduce(|a, b| self.b.or(a, b)).unwrap_or_else(|| self.b.zero(bit))
    }

    /// A scalar in the shape of another value.
    fn like(&self, scalar: Value, other: Value) -> Value {
        if other.ty() == self.int(32) { scalar } else { self.b.splat(scalar, other.ty().lanes()) }
    }

    /// Whether at most one lane is active.
    fn is_one_lane(&self, mask: Value) -> Value {
        let less = self.b.sub(mask, self.b.const_int(mask.ty(), 1));
        self.b.icmp(IntPred::Eq, self.b.and(mask, less), self.b.zero(mask.ty()))
    }

    /// The words of an access, by lanes.
    fn parts(&mut self, plan: &Plan, places: &Addresses, mask: Mask, interval: Interval) -> Vec<Part> {
        let bytes = plan.access.bytes();
        let words = (bytes / 4).max(1);
        if let Addresses::Same(place) = places {
            let word = self.word(mask);
            let some = self.b.icmp(IntPred::Ne, word, self.b.zero(word.ty()));
            let one = self.is_one_lane(word);
            let own = self.b.add(interval.me, self.lowest(word));
            let me = self.b.select(one, own, self.c32(0));
            let left = self.b.select(one, own, interval.several);
            let place = self.aligned(*place, bytes);
            let part = |at: u32| {
                let place = self.b.add(place, self.c64(u64::from(4 * at)));
                Part { words: Words::One(place, Some(some)), me, left, active: None }
            };
            return (0..words).map(part).collect();
        }
        let mut parts = Vec::new();
        let mut each = None;
        for c in 0..self.chunks() {
            let lanes = self.lanes(plan, mask, c);
            let chunk = match (&plan.strategy, places) {
                (Strategy::Chunks { chunks, .. }, Addresses::Affine(bases, pattern)) => {
                    Some((&chunks[c as usize], self.chunk_base(bases, pattern, c)))
                }
                _ => None,
            };
            match chunk {
                Some((Chunk::Off, _)) => {}
                Some((Chunk::Vector, base)) if bytes >= 4 => {
                    let me = self.stamps_of(c, words, interval);
                    let active = lanes.map(|lanes| self.interleave(&vec![lanes; words as usize]));
                    let words = Words::Row(base, words * self.width);
                    parts.push(Part { words, me, left: me, active });
                }
                Some((Chunk::Broadcast, base)) => {
                    let checked = lanes.map(|lanes| self.any(lanes));
                    let (base, me, left) = (self.aligned(base, bytes), self.c32(0), interval.several);
                    for at in 0..words {
                        let place = self.b.add(base, self.c64(u64::from(4 * at)));
                        parts.push(Part { words: Words::One(place, checked), me, left, active: None });
                    }
                }
                Some(_) | None => {
                    if each.is_none() {
                        each = Some(self.each(places));
                    }
                    let chunk = each.as_ref().expect("set above")[c as usize];
                    let chunk = self.aligned(chunk, bytes);
                    let me = self.stamps_of(c, 1, interval);
                    for at in 0..words {
                        let more = self.b.const_splat(chunk.ty(), u64::from(4 * at));
                        let words = Words::Each(self.b.add(chunk, more));
                        parts.push(Part { words, me, left: me, active: lanes });
                    }
                }
            }
        }
        parts
    }

    /// The addresses of the words that contain accesses of so many bytes.
    fn aligned(&self, places: Value, bytes: u32) -> Value {
        if bytes >= 4 { places } else { self.b.and(places, self.b.const_splat(places.ty(), !3)) }
    }

    /// The stamps of the lanes of a chunk, each so many times.
    fn stamps_of(&self, chunk: u32, words: u32, interval: Interval) -> Value {
        let lanes: Vec<u64> =
            (0..self.width * words).map(|at| u64::from(chunk * self.width + at / words)).collect();
        let lanes = self.b.const_ints(self.int(32), &lanes);
        self.b.add(self.b.splat(interval.me, self.width * words), lanes)
    }
}

/// Whether accesses of the space have stamps.
fn has_stamps(access: Access) -> bool {
    matches!(access.space, Space::Global | Space::Shared | Space::Generic)
}

fn each_of(part: &Part) -> Value {
    match part.words {
        Words::Each(places) => places,
        Words::One(place, _) | Words::Row(place, _) => place,
    }
}

/// Whether no two lanes access one byte.
fn are_apart(places: &Addresses, access: Access) -> bool {
    match places {
        Addresses::Affine(_, pattern) => is_apart(pattern, access.bytes()),
        Addresses::Same(_) => true,
        Addresses::Rows(..) | Addresses::ScaledIndex(_) | Addresses::Each(_) => false,
    }
}

/// Whether lanes access different bytes, and some of them may be in one word.
fn are_parts_of_words(places: &Addresses, access: Access) -> bool {
    match places {
        Addresses::Affine(_, pattern) => is_apart(pattern, access.bytes()) && !is_apart(pattern, 4),
        Addresses::Same(_) | Addresses::Rows(..) | Addresses::ScaledIndex(_) | Addresses::Each(_) => false,
    }
}

/// Whether the lanes of a pattern are at least so many bytes apart.
fn is_apart(pattern: &Affine, bytes: u32) -> bool {
    let mut lanes: Vec<i64> = pattern.lanes.iter().map(|lane| i64::from(*lane)).collect();
    lanes.sort_unstable();
    let apart = lanes.windows(2).all(|pair| pair[1] - pair[0] >= i64::from(bytes));
    !pattern.by_chunk && pattern.rows.is_empty() && apart
}
