//! A grid: its CTAs, in order of their numbers, on OS threads.
//!
//! Each thread keeps its resident CTAs, those it has started and not finished, and runs them round-robin. It
//! starts another CTA when the running one only waits. So all CTAs that wait for each other become resident,
//! up to a memory budget ([`RESIDENT_BYTES`]) for registers and windows.
//!
//! The launching thread begins alone, and wakes threads of the pool once the launch has taken longer than
//! waking costs ([`super::worker`]). Threads take CTAs in batches that shrink towards the end of the grid. If
//! CTAs may wait for each other, batches have one CTA, so that CTAs with lower numbers always start first.
//!
//! Native code may need more stack than a thread has. A launch that begins with such code has threads of its
//! own. Where such code is supplied later, each thread of the launch starts one with that stack between two
//! CTAs, which goes on in its place.
//!
//! A trap stops all CTAs that start later than the trapped one. Earlier CTAs continue for a [grace
//! period](super::grace), unless they only wait. If one of them traps too, its trap is the result of the
//! launch.
//!
//! Invariant: the reported trap does not depend on the speed of threads, within the grace period. Output is
//! in order of CTA numbers, independent of the threads that ran them.

use super::cta::{Cta, CtaStop, FURTHER_SLICES};
use super::launching::{CachedCta, Fits, Found, FoundTrap, GridRun, GridTrap, Launching};
use super::seed;
use super::worker::{Helpers, Worker};
use crate::bound::Function;
use crate::fault_context::LaneRegisters;
use crate::frame::{WarpFrame, register_bytes};
use crate::interp::Stopped;
use crate::lanes::LANES;
use crate::mem::{MemoryError, View, Withdrawal, attempt};
use crate::native::ExitCounts;
use crate::pool::{Pool, Work};
use crate::warp::{EventCounts, WarpState};
use crate::watch::Site;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A launch of at least this many warps gets help at once.
const MANY_WARPS: u64 = 2048;
/// The largest CTA, in bytes, that a kernel keeps for the next launch.
const MAX_CACHED_BYTES: u64 = 4 << 20;
/// Stack of a thread in bytes, without what native code needs ([`crate::native::Native::stack`]). Chosen: the
/// default of most systems.
const STACK_BYTES: usize = 2 << 20;
/// How often a CTA of a launch with stamps goes on after it has run long. Then others run, which ends in a
/// conflict: the CTA may wait for one of them. Chosen: ten seconds.
const MOST_LONG: u32 = 50;
/// Memory for the state of all resident CTAs. Chosen: fits common machines, and allows over ten thousand CTAs
/// of 1024 simple threads to wait for each other.
pub(crate) const RESIDENT_BYTES: u64 = 2 << 30;
/// CTAs that a thread may keep resident regardless of the memory budget.
const MIN_RESIDENT: u64 = 2;

/// The result of a launch.
#[derive(Default)]
pub(crate) struct Outcome {
    /// The first trap.
    pub(crate) trap: Option<GridTrap>,
    /// The reason why no CTA could start.
    pub(crate) error: Option<MemoryError>,
    /// Steps of warps.
    pub(crate) steps: u64,
    /// Steps of lanes.
    pub(crate) lane_steps: u64,
    /// Steps executed in native code.
    pub(crate) native_steps: u64,
    /// Steps that the interpreter executed for native code.
    pub(crate) fallback_steps: u64,
    /// How often native code was left.
    pub(crate) exits: ExitCounts,
    /// Printed text.
    pub(crate) output: Vec<u8>,
    /// Bytes of output beyond the limit.
    pub(crate) dropped: u64,
    /// CTAs that have finished.
    pub(crate) finished: u64,
    /// Events triggered by `pmevent`.
    pub(crate) events: EventCounts,
}

/// Runs all CTAs of a grid.
pub(crate) fn run_grid(run: GridRun) -> Outcome {
    let count = run.shape.nctaid.iter().map(|n| u64::from(*n)).product();
    let memory = Arc::clone(&run.memory);
    // Threads without memory for a resident CTA would only wait.
    let fit =
        run.context(0).function(run.kernel).map_or(1, |function| RESIDENT_BYTES / run.cta_bytes(function));
    let threads = u64::from(run.threads).min(count).min(fit).max(1) as u32;
    let finished = run.progress.clone().unwrap_or_default();
    finished.store(0, Ordering::Relaxed);
    let launching = Arc::new(Launching {
        run,
        next: AtomicU64::new(0),
        count,
        threads,
        stop_at: AtomicU64::new(u64::MAX),
        steps: AtomicU64::new(0),
        lane_steps: AtomicU64::new(0),
        native_steps: AtomicU64::new(0),
        fallback_steps: AtomicU64::new(0),
        finished,
        printed: AtomicU64::new(0),
        dropped: AtomicU64::new(0),
        found: Mutex::new(Found::default()),
        slots: Default::default(),
    });
    match launching.run.native.as_ref().map_or(0, |native| native.stack()) {
        0 => on_kept_threads(&launching, memory.pool()),
        stack => launching.on_own_threads(stack),
    }
    let found = std::mem::take(&mut *launching.found());
    let mut output = found.output;
    output.sort_by_key(|(index, _)| *index);
    let sum = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    Outcome {
        trap: found.trap.map(|found| found.trap),
        error: found.error,
        steps: sum(&launching.steps),
        lane_steps: sum(&launching.lane_steps),
        native_steps: sum(&launching.native_steps),
        fallback_steps: sum(&launching.fallback_steps),
        exits: found.exits,
        output: output.into_iter().map(|(_, text)| text).collect::<Vec<_>>().concat(),
        dropped: sum(&launching.dropped),
        finished: sum(&launching.finished),
        events: found.events,
    }
}

/// Runs a launch on the calling thread, and on threads of the pool if it takes long enough.
fn on_kept_threads(launching: &Arc<Launching>, pool: &Pool) {
    let Launching { threads, count, .. } = **launching;
    let work = || -> Work {
        let launching = Arc::clone(launching);
        Arc::new(move |thread| launching.work(thread, 0, None))
    };
    let helpers = Helpers::new(pool, threads, &work);
    let many = threads > 1 && count.saturating_mul(u64::from(launching.run.shape.warps())) >= MANY_WARPS;
    if many {
        helpers.call();
    }
    let alone = threads > 1 && !many;
    launching.work(0, 0, alone.then_some(&helpers));
    helpers.finish();
}

impl GridRun {
    /// Estimated memory of a resident CTA.
    fn cta_bytes(&self, function: &Function) -> u64 {
        let local = LANES as u64 * self.stack_bytes.min(4096);
        let warp = 4096 + register_bytes(function.regs) + local;
        self.shared_bytes + u64::from(self.shape.warps()) * warp
    }
}

/// A thread's progress in a launch. It may move to another thread between CTAs.
struct Progress<'a> {
    worker: Worker<'a>,
    cached: CachedCta,
    /// Resident CTAs, in the order in which they run.
    resident: VecDeque<Box<Cta>>,
    /// CTAs that have finished, whose memory the next ones use.
    #[expect(clippy::vec_box, reason = "a CTA is large, and moves between lists for every slice")]
    spare: Vec<Box<Cta>>,
    /// Whether a CTA that has not started comes before resident ones.
    prefer_new: bool,
    /// Consecutive CTAs that only waited.
    idle: usize,
    /// Start position of the CTA that ran last.
    last: Option<u64>,
    /// How often a CTA went on that had run long.
    long: u32,
}

/// Threads with `stack` bytes for native code.
fn deep(stack: usize) -> std::thread::Builder {
    std::thread::Builder::new().stack_size(STACK_BYTES + stack)
}

impl Launching {
    /// Runs the launch on new threads whose stacks are larger by `stack` bytes.
    fn on_own_threads(&self, stack: usize) {
        std::thread::scope(|scope| {
            for thread in 0..self.threads {
                let started = deep(stack).spawn_scoped(scope, move || self.work(thread, stack, None));
                if started.is_err() && thread == 0 {
                    let bytes = (STACK_BYTES + stack) as u64;
                    self.found().error.get_or_insert(MemoryError::Host { bytes });
                }
            }
        });
    }

    /// The part of the launch that one thread does. `stack`: the bytes that it has for native code.
    /// `helpers`: how to wake more threads.
    pub(crate) fn work(&self, thread: u32, stack: usize, helpers: Option<&Helpers<'_>>) {
        let run = &self.run;
        let Some(bytes) = run.context(stack).function(run.kernel).map(|function| run.cta_bytes(function))
        else {
            return;
        };
        let native = run.native.as_ref().map(Arc::downgrade);
        let mut cached = run.cta_cache.take(Fits(run.shape.ntid, run.shared_bytes, native));
        cached.cache.allocations.clone_from(&run.allocations);
        let mut spare: Vec<Box<Cta>> = cached.cta.take().into_iter().collect();
        for cta in &mut spare {
            cta.relaunch(&run.shape, run.params);
            self.watch(&mut cta.warps);
        }
        let worker = Worker::new(self, thread, helpers);
        let resident = VecDeque::new();
        let mut progress =
            Progress { worker, cached, resident, spare, prefer_new: true, idle: 0, last: None, long: 0 };
        let limit = (RESIDENT_BYTES / bytes / u64::from(self.threads)).max(MIN_RESIDENT);
        self.on_this_thread(&mut progress, limit, stack);
        let Progress { worker, mut cached, mut spare, .. } = progress;
        worker.add();
        if !cached.cache.exits.is_empty() {
            self.found().exits.take(&mut cached.cache.exits);
        }
        // The state is reusable with one native code only, and the code that was supplied meanwhile is not
        // recorded.
        if bytes <= MAX_CACHED_BYTES
            && run.supply.is_none()
            && let Some(mut cta) = spare.pop()
        {
            cta.leave();
            cached.cta = Some(cta);
            run.cta_cache.give(cached);
        }
    }

    /// Runs CTAs on this thread, with at most `limit` resident ones. If code is supplied that needs more
    /// than the thread's `stack` bytes, a thread that has them goes on, while this one waits.
    fn on_this_thread(&self, progress: &mut Progress<'_>, limit: u64, stack: usize) {
        let Some(more) = self.run_ctas(progress, limit, stack, true) else { return };
        let moved = std::thread::scope(|scope| {
            let go_on = || self.on_this_thread(&mut *progress, limit, more);
            deep(more).spawn_scoped(scope, go_on).is_ok()
        });
        if !moved {
            self.run_ctas(progress, limit, stack, false);
        }
    }

    /// The loop over CTAs. Stops if code is supplied that needs more than `stack` bytes, if it `may_move` to
    /// another thread; returns how many the code needs.
    fn run_ctas(
        &self,
        progress: &mut Progress<'_>,
        limit: u64,
        stack: usize,
        may_move: bool,
    ) -> Option<usize> {
        let run = &self.run;
        let context = run.context(stack);
        let _withdrawal = Withdrawal;
        let Progress { worker, cached, resident, spare, prefer_new, idle, last, long } = progress;
        loop {
            if may_move
                && let Some(supply) = &run.supply
                && let Some(more) = supply.native().map(|native| native.stack()).filter(|more| *more > stack)
            {
                return Some(more);
            }
            let has_room = (resident.len() as u64) < limit;
            let fresh = if has_room && (*prefer_new || resident.is_empty()) {
                self.start(worker, spare, resident.is_empty())
            } else {
                None
            };
            *prefer_new = fresh.is_none();
            let is_fresh = fresh.is_some();
            let mut cta = fresh.or_else(|| resident.pop_front())?;
            worker.place.set(cta.place);
            if let Some(stamps) = &run.stamps {
                match (is_fresh, *last == Some(cta.place)) {
                    (true, _) => stamps.begin_cta(),
                    (false, true) => {}
                    (false, false) => stamps.set_conflict(),
                }
            }
            if worker.stops(cta.place) {
                self.end(&mut cta);
                continue;
            }
            let stop = cta.run(&context, &*worker, &mut cached.cache);
            *last = Some(cta.place);
            match stop {
                CtaStop::Finished => {
                    cta.tell_end();
                    worker.finish(1);
                    self.keep_output(&mut cta);
                    spare.push(cta);
                    *idle = 0;
                }
                // The CTA may wait for one that was stopped.
                CtaStop::Idle if self.has_stopped() && cta.vain >= FURTHER_SLICES => self.end(&mut cta),
                CtaStop::Idle => {
                    cta.vain += u32::from(self.has_stopped());
                    resident.push_back(cta);
                    *idle += 1;
                    if *idle > resident.len() {
                        std::thread::yield_now();
                    }
                }
                CtaStop::Long => {
                    if run.stamps.is_some() && *long < MOST_LONG {
                        // Stamps belong to one CTA at a time.
                        resident.push_front(cta);
                        (*long, *prefer_new) = (*long + 1, false);
                    } else {
                        resident.push_back(cta);
                    }
                    *idle = 0;
                }
                CtaStop::Cancelled => self.end(&mut cta),
                CtaStop::Trapped(stopped, warp) => {
                    self.trap(&cta, stopped, warp);
                    self.end(&mut cta);
                }
            }
        }
    }

    /// Ends a CTA that does not finish.
    fn end(&self, cta: &mut Cta) {
        cta.tell_end();
        self.keep_output(cta);
    }

    fn keep_output(&self, cta: &mut Cta) {
        if !cta.output.is_empty() {
            let text = std::mem::take(&mut cta.output);
            self.found().output.push((cta.index, text));
        }
    }

    fn trap(&self, cta: &Cta, stopped: Box<Stopped>, warp: u32) {
        let mut found = self.found();
        let of_program = stopped.fault.kind.is_of_program();
        // A limit of the launch applies to all CTAs equally.
        self.stop_at.fetch_min(if of_program { cta.place } else { 0 }, Ordering::Relaxed);
        if found.trap.as_ref().is_some_and(|trap| !of_program || trap.place < cta.place) {
            return;
        }
        let frame = cta.warp(warp);
        let lane = usize::from(stopped.fault.lane) % LANES;
        let nearest = stopped.fault.access.as_ref().map(|a| frame.view.nearest(a.space, lane, a.address));
        let tid = frame.state.tid_of(lane);
        let place = if of_program { cta.place } else { 0 };
        // The lane runs in its innermost activation.
        let running = frame.acts.iter().filter(|act| act.lanes >> lane & 1 != 0).max_by_key(|act| act.depth);
        let running = running.filter(|act| of_program && act.function == stopped.function);
        let registers = running.map(|act| LaneRegisters::of(&act.regs, lane));
        let lanes = (!of_program).then(|| cta.whereabouts(&self.run.context(0))).flatten();
        let trap = GridTrap { stopped, ctaid: cta.ctaid(), warp, tid, nearest, registers, lanes };
        found.trap = Some(FoundTrap { trap, place });
    }

    /// Starts the next CTA, if there is one and memory for it. Lack of memory for the first CTA is an error.
    #[expect(clippy::vec_box, reason = "a CTA is large, and moves between lists for every slice")]
    fn start(&self, worker: &Worker<'_>, spare: &mut Vec<Box<Cta>>, first: bool) -> Option<Box<Cta>> {
        if !worker.has_next() {
            return None;
        }
        let mut cta = match spare.pop().map_or_else(|| self.make(), Ok) {
            Ok(cta) => cta,
            Err(error) => {
                if first {
                    self.found().error.get_or_insert(error);
                    self.stop_at.store(0, Ordering::Relaxed);
                }
                return None;
            }
        };
        let Some(place) = worker.next() else {
            spare.push(cta);
            return None;
        };
        let index = seed::permute(self.run.seed, place, self.count);
        let [nx, ny, _] = self.run.shape.nctaid.map(u64::from);
        let ctaid = [index % nx, index / nx % ny, index / nx / ny].map(|c| c as u32);
        cta.start((place, index), ctaid, self.run.seed, worker.thread, self.run.kernel);
        Some(cta)
    }

    /// Checks that the host has memory for the registers of a CTA, where this is uncertain.
    fn check_host_memory(&self) -> Result<(), MemoryError> {
        const MUCH: u64 = 16 << 20;
        let registers = self.run.context(0).function(self.run.kernel).map_or(0, |f| register_bytes(f.regs));
        let bytes = registers.saturating_mul(u64::from(self.run.shape.warps()));
        let fits = || usize::try_from(bytes).is_ok_and(|n| Vec::<u8>::new().try_reserve_exact(n).is_ok());
        if bytes < MUCH || attempt(fits) { Ok(()) } else { Err(MemoryError::Host { bytes }) }
    }

    /// Allocates a CTA.
    fn make(&self) -> Result<Box<Cta>, MemoryError> {
        let run = &self.run;
        self.check_host_memory()?;
        let shared = match run.shared_bytes {
            0 => None,
            bytes => Some(run.memory.shared_window(bytes)?),
        };
        let mut warps = Vec::new();
        for warp in 0..run.shape.warps() {
            let local = match run.stack_bytes {
                0 => None,
                bytes => Some(run.memory.local_window(bytes * LANES as u64)?),
            };
            let mut view = View::new(&run.memory);
            view.set_params(run.params.0, run.params.1);
            if let Some(window) = &shared {
                view.set_shared(window.start(), window.bytes());
            }
            let state = WarpState::new(Arc::clone(&run.shape), [0; 3], warp);
            warps.push(WarpFrame::new(state, view, local, run.local_layout));
        }
        self.watch(&mut warps);
        Ok(Box::new(Cta::new(&run.shape, warps, shared)))
    }

    /// Gives the warps of a CTA sites, with numbers that no other warp of this launch has, if it is watched.
    fn watch(&self, warps: &mut [WarpFrame]) {
        let Some((watch, launch)) = &self.run.watch else { return };
        let [ctas, slots] = &self.slots;
        let cta_slot = ctas.fetch_add(1, Ordering::Relaxed);
        for warp in warps {
            let slot = slots.fetch_add(1, Ordering::Relaxed);
            let site =
                Site::new(Arc::clone(watch), Arc::clone(launch), self.run.replaced.clone(), slot, cta_slot);
            warp.view.set_site(Some(site));
        }
    }
}
