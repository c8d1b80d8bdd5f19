//! A thread of a launch: the CTAs that it has reserved, its limits and its counts.
//!
//! Invariant: threads reserve CTAs in order of their start positions, one after another where CTAs may wait
//! for each other, else in batches that shrink towards the end of the grid.

use super::cta::{LONG_RUN, Limits};
use super::grace::GracePeriod;
use super::launching::Launching;
use super::portion::portion;
use crate::pool::{Help, Pool, Work};
use crate::trap::FaultKind;
use crate::warp::EventCounts;
use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long the launching thread works alone. Chosen: about the time to wake another thread.
const HELP_DELAY: Duration = Duration::from_micros(5);
/// Charged against the output limit for each CTA that prints, in bytes: about the memory to store its output.
const PRINT_OVERHEAD: u64 = 32;

/// Wakes threads of the pool for a launch.
pub(super) struct Helpers<'a> {
    pool: &'a Pool,
    /// Threads of the launch.
    threads: u32,
    /// Makes the function that a thread executes, with its number. Most launches end without it.
    work: &'a (dyn Fn() -> Work + Sync),
    help: Mutex<Option<Help>>,
}

impl<'a> Helpers<'a> {
    pub(super) fn new(pool: &'a Pool, threads: u32, work: &'a (dyn Fn() -> Work + Sync)) -> Self {
        Self { pool, threads, work, help: Mutex::new(None) }
    }

    pub(super) fn call(&self) {
        let mut help = self.help.lock().unwrap_or_else(PoisonError::into_inner);
        if help.is_none() {
            *help = Some(self.pool.help((self.work)(), 1..self.threads));
        }
    }

    /// Waits for the threads.
    pub(super) fn finish(self) {
        if let Some(help) = self.help.into_inner().unwrap_or_else(PoisonError::into_inner) {
            self.pool.finish(help);
        }
    }
}

/// One thread of a launch.
pub(super) struct Worker<'a> {
    launching: &'a Launching,
    pub(super) thread: u32,
    /// The start time of the launch, while the thread works alone and can get help.
    alone: Cell<Option<(Instant, &'a Helpers<'a>)>>,
    /// What is left of [`LONG_RUN`] for warps in native code of whole CTAs. It is halved each time a warp
    /// uses it up, so the total time lost to warps that never end is at most twice the limit.
    long_run: Cell<Duration>,
    /// Reserved CTAs: the first that is not started, and the end of the range.
    taken: Cell<[u64; 2]>,
    /// Start position of the running CTA.
    pub(super) place: Cell<u64>,
    /// The grace period of CTAs before a trap, if it has begun on this thread.
    grace: Cell<Option<GracePeriod>>,
    /// Counts that are not yet added to the launch: steps of warps, of lanes, in native code, and of the
    /// interpreter for it.
    counts: Cell<[u64; 4]>,
}

impl<'a> Worker<'a> {
    /// `helpers`: how to wake more threads, if this one works alone.
    pub(super) fn new(launching: &'a Launching, thread: u32, helpers: Option<&'a Helpers<'a>>) -> Self {
        Self {
            launching,
            thread,
            alone: Cell::new(helpers.map(|helpers| (Instant::now(), helpers))),
            long_run: Cell::new(LONG_RUN),
            taken: Cell::default(),
            place: Cell::default(),
            grace: Cell::default(),
            counts: Cell::default(),
        }
    }
}

impl Limits for Worker<'_> {
    fn steps(&self) -> Option<u64> {
        let all = self.launching;
        if self.stops(self.place.get()) {
            return None;
        }
        Some(match all.run.max_steps {
            Some(limit) => limit.saturating_sub(all.steps.load(Ordering::Relaxed)),
            None => u64::MAX,
        })
    }

    fn spend(&self, steps: u64, lane_steps: u64) {
        let [all, lanes, native, fallbacks] = self.counts.get();
        self.counts.set([all + steps, lanes + lane_steps, native, fallbacks]);
        if self.launching.run.max_steps.is_some() {
            self.add();
        }
    }

    fn count(&self, events: &EventCounts) {
        let mut found = self.launching.found();
        for (sum, count) in found.events.iter_mut().zip(events) {
            *sum += count;
        }
    }

    fn spend_native(&self, steps: u64, fallbacks: u64) {
        let [all, lanes, native, stepped] = self.counts.get();
        self.counts.set([all, lanes, native + steps, stepped + fallbacks]);
    }

    fn native_ctas(&self) -> bool {
        self.launching.run.max_steps.is_none() && self.launching.run.seed == 0
    }

    fn taken(&self) -> u64 {
        let [start, end] = self.taken.get();
        end - start
    }

    fn start_batched(&self, count: u64) {
        self.take(count);
        self.place.set(self.place.get() + count);
        self.finish(count);
    }

    fn take_members(&self, count: u64) {
        self.take(count);
    }

    fn start_member(&self) {
        self.place.set(self.place.get() + 1);
        self.finish(1);
    }

    fn alone(&self) -> bool {
        self.alone.get().is_some()
    }

    fn print(&self, bytes: usize, dropped: u64, first: bool) -> usize {
        let all = self.launching;
        let (limit, piece) = (all.run.output_limit, if first { PRINT_OVERHEAD } else { 0 });
        let cost = piece.saturating_add(bytes as u64);
        let before = all.printed.fetch_add(cost, Ordering::Relaxed);
        let room = limit.saturating_sub(before).saturating_sub(piece);
        let kept = usize::try_from(room).unwrap_or(usize::MAX).min(bytes);
        let dropped = dropped + (bytes - kept) as u64;
        if dropped > 0 {
            // After a gap, further output would be misleading: the limit counts as reached.
            all.printed.fetch_max(limit, Ordering::Relaxed);
            all.dropped.fetch_add(dropped, Ordering::Relaxed);
        }
        kept
    }

    fn late(&self) -> Option<FaultKind> {
        if let Some((began, helpers)) = self.alone.get()
            && began.elapsed() > HELP_DELAY
        {
            self.alone.set(None);
            helpers.call();
        }
        self.launching.run.end().come()
    }

    fn gives_way(&self, since: Instant) -> bool {
        let long = since.elapsed() > self.long_run.get();
        if long {
            self.long_run.set(self.long_run.get() / 2);
        }
        long
    }
}

impl Worker<'_> {
    /// Removes `count` CTAs from the reserved range, because they start.
    fn take(&self, count: u64) {
        let [start, end] = self.taken.get();
        self.taken.set([(start + count).min(end), end]);
    }

    /// Counts finished CTAs.
    pub(super) fn finish(&self, count: u64) {
        self.launching.finished.fetch_add(count, Ordering::Relaxed);
    }

    /// Adds the thread's counts to those of the launch.
    pub(super) fn add(&self) {
        let [steps, lanes, native, fallbacks] = self.counts.take();
        let all = self.launching;
        if let Some(supply) = &all.run.supply {
            supply.executed(steps, lanes);
        }
        all.steps.fetch_add(steps, Ordering::Relaxed);
        all.lane_steps.fetch_add(lanes, Ordering::Relaxed);
        all.native_steps.fetch_add(native, Ordering::Relaxed);
        all.fallback_steps.fetch_add(fallbacks, Ordering::Relaxed);
    }

    /// The next CTA to start.
    pub(super) fn next(&self) -> Option<u64> {
        let all = self.launching;
        if self.taken() == 0 {
            let start = all.next.load(Ordering::Relaxed);
            if start >= all.count {
                return None;
            }
            if all.run.supply.is_some() {
                self.add();
            }
            let native = all.run.native.as_deref().or_else(|| all.run.supply.as_ref()?.native());
            let alone = all.run.seed == 0 && native.is_some_and(|native| !native.may_wait());
            let coarse = native.and_then(|native| native.coarse_code());
            let ctas = coarse.filter(|code| code.fits(&all.run.shape)).map_or(1, |code| code.ctas);
            let portion = match alone {
                true => portion(all.count - start, all.threads.into(), ctas.into()),
                false => 1,
            };
            let start = all.next.fetch_add(portion, Ordering::Relaxed);
            if start >= all.count {
                return None;
            }
            self.taken.set([start, (start + portion).min(all.count)]);
        }
        let [next, _] = self.taken.get();
        self.take(1);
        Some(next)
    }

    /// Whether another CTA is to start.
    pub(super) fn has_next(&self) -> bool {
        let all = self.launching;
        let [start, end] = self.taken.get();
        let next = if start < end { start } else { all.next.load(Ordering::Relaxed) };
        next < all.count && !self.stops(next)
    }

    /// Whether the CTA at this start position must stop: it starts after a trap, or before one and the grace
    /// period is over.
    pub(super) fn stops(&self, place: u64) -> bool {
        let stop_at = self.launching.stop_at.load(Ordering::Relaxed);
        if stop_at <= place || stop_at == u64::MAX {
            return stop_at <= place;
        }
        let grace = self.grace.get().unwrap_or_else(GracePeriod::begin);
        self.grace.set(Some(grace));
        grace.is_over()
    }
}
