//! A grid: its CTAs, in order of their numbers, on OS threads.
//!
//! Each thread keeps its resident CTAs, those it has started and not finished, and runs them round-robin. It
//! starts another CTA when the running one only waits. So all CTAs that wait for each other become resident,
//! up to a memory budget ([`RESIDENT_BYTES`]) for registers and windows.
//!
//! The launching thread begins alone, and wakes threads of the pool once the launch has taken longer than
//! waking costs ([`HELP_DELAY`]). Threads take CTAs in batches that shrink towards the end of the grid. If
//! CTAs may wait for each other, batches have one CTA, so that CTAs with lower numbers always start first.
//!
//! A trap stops all CTAs that start later than the trapped one. Earlier CTAs continue for a [`GracePeriod`],
//! unless they only wait. If one of them traps too, its trap is the result of the launch.
//!
//! Invariant: the reported trap does not depend on the speed of threads, within the grace period. Output is
//! in order of CTA numbers, independent of the threads that ran them.

use super::cta::{Cta, CtaStop, FURTHER_SLICES, LONG_RUN, Limits};
use super::grace::GracePeriod;
use super::portion::portion;
use super::seed;
use crate::bound::{Code, Function};
use crate::context::{End, LaunchContext};
use crate::fault_context::LaneRegisters;
use crate::frame::{WarpFrame, register_bytes};
use crate::interp::Stopped;
use crate::lanes::LANES;
use crate::mem::{LocalLayout, Memory, MemoryError, Reach, View, Withdrawal, attempt};
use crate::native::{ExitCounts, Native, NativeCache, Supply};
use crate::pool::{Help, Pool};
use crate::stamps::Stamps;
use crate::trap::FaultKind;
use crate::warp::{EventCounts, GridShape, WarpState};
use crate::watch::{Interests, LaunchFacts, Replaced, Site, Watch};
use ptx::check::module::{AddressSize, Source};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

/// How long the launching thread works alone. Chosen: about the time to wake another thread.
const HELP_DELAY: Duration = Duration::from_micros(5);
/// A launch of at least this many warps gets help at once.
const MANY_WARPS: u64 = 2048;
/// The largest CTA, in bytes, that a kernel keeps for the next launch.
const MAX_CACHED_BYTES: u64 = 4 << 20;
/// Stack of a thread in bytes, without what native code needs ([`Native::stack`]). Chosen: the default of
/// most systems.
const STACK_BYTES: usize = 2 << 20;
/// How often a CTA of a launch with stamps goes on after it has run long. Then others run, which ends in a
/// conflict: the CTA may wait for one of them. Chosen: ten seconds.
const MOST_LONG: u32 = 50;
/// How many CTAs a kernel keeps for the next launch, one per thread.
const CACHED_CTAS: usize = 64;

/// Memory for the state of all resident CTAs. Chosen: fits common machines, and allows over ten thousand CTAs
/// of 1024 simple threads to wait for each other.
pub(crate) const RESIDENT_BYTES: u64 = 2 << 30;
/// Charged against the output limit for each CTA that prints, in bytes: about the memory to store its output.
const PRINT_OVERHEAD: u64 = 32;
/// CTAs that a thread may keep resident regardless of the memory budget.
const MIN_RESIDENT: u64 = 2;

/// A launch, as the scheduler sees it.
#[derive(Clone)]
pub(crate) struct GridRun {
    /// Bound code.
    pub(crate) code: Arc<Code>,
    /// The PTX text.
    pub(crate) source: Arc<Source>,
    /// Width of addresses.
    pub(crate) address_size: AddressSize,
    /// Address of the module's first function.
    pub(crate) functions: u64,
    /// Native code of the kernel, if it is used.
    pub(crate) native: Option<Arc<dyn Native>>,
    /// Source of native code that becomes available during the launch.
    pub(crate) supply: Option<Arc<dyn Supply>>,
    /// Guest memory.
    pub(crate) memory: Arc<Memory>,
    /// Shape of the grid.
    pub(crate) shape: Arc<GridShape>,
    /// `FuncId` of the kernel.
    pub(crate) kernel: u32,
    /// Bytes of shared memory of a CTA: static and dynamic.
    pub(crate) shared_bytes: u64,
    /// Address and size in bytes of the parameter buffer.
    pub(crate) params: (u64, u64),
    /// Bytes of local memory of a thread.
    pub(crate) stack_bytes: u64,
    /// How the local memories of a warp's lanes lie in memory.
    pub(crate) local_layout: LocalLayout,
    /// OS threads.
    pub(crate) threads: u32,
    /// Schedule seed.
    pub(crate) seed: u64,
    /// Limit of steps, summed over all warps.
    pub(crate) max_steps: Option<u64>,
    /// Time at which the launch traps.
    pub(crate) deadline: Option<Instant>,
    /// The host sets this to stop the launch.
    pub(crate) cancel: Option<Arc<AtomicBool>>,
    /// Counter of finished CTAs, for the host.
    pub(crate) progress: Option<Arc<AtomicU64>>,
    /// The traced thread, if any.
    pub(crate) trace: Option<crate::trace::Tracing>,
    /// Limit of output in bytes; later output is dropped.
    pub(crate) output_limit: u64,
    /// CTAs of earlier launches.
    pub(crate) cta_cache: Arc<CtaCache>,
    /// Observers, and their facts about the launch.
    pub(crate) watch: Option<(Arc<Watch>, Arc<LaunchFacts>)>,
    /// The checks that replace events of one of them.
    pub(crate) replaced: Option<Arc<Replaced>>,
    /// By function, which instructions they want to be told of.
    pub(crate) interests: Arc<[OnceLock<Interests>]>,
    /// The allocations that native code keeps accesses in, for observers.
    pub(crate) allocations: Vec<Option<Reach>>,
    /// Where observers are told that lanes exited in native code: block and instruction.
    pub(crate) exit: Option<(u32, u32)>,
    /// The stamps that accesses are compared with. There is one thread then.
    pub(crate) stamps: Option<Arc<Stamps>>,
}

impl GridRun {
    /// The same launch without native code.
    pub(crate) fn interpreted(&self) -> Self {
        Self { native: None, supply: None, allocations: Vec::new(), exit: None, stamps: None, ..self.clone() }
    }

    fn end(&self) -> End<'_> {
        let enough = self.watch.as_ref().map(|(watch, _)| watch.stop());
        let conflict = self.stamps.as_ref().map(|stamps| stamps.conflict());
        End { deadline: self.deadline, cancel: self.cancel.as_deref(), enough, conflict }
    }

    fn context(&self) -> LaunchContext<'_> {
        LaunchContext {
            code: &self.code,
            functions: self.functions,
            address_size: self.address_size,
            source: &self.source,
            native: self.native.as_deref(),
            supply: self.supply.as_deref(),
            trace: self.trace.as_ref(),
            end: self.end(),
            watched: self.watch.is_some(),
            watch: self.watch.as_ref().map(|(watch, launch)| (&**watch, &*launch.program)),
            interests: &self.interests,
            exit: self.exit,
            mends: self.watch.as_ref().is_some_and(|(watch, _)| watch.mends()),
        }
    }
}

/// CTAs and native caches that threads reuse from launch to launch.
#[derive(Default)]
pub(crate) struct CtaCache(Mutex<Vec<CachedCta>>);

/// The launches that can reuse an entry: CTA shape, bytes of shared memory, and native code. The weak
/// reference keeps the code's address from being reused.
struct Fits([u32; 3], u64, Option<Weak<dyn Native>>);

impl PartialEq for Fits {
    fn eq(&self, other: &Self) -> bool {
        let same = match (&self.2, &other.2) {
            (Some(a), Some(b)) => a.ptr_eq(b),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        same && (self.0, self.1) == (other.0, other.1)
    }
}

/// The reusable state of one thread.
struct CachedCta {
    fits: Fits,
    cta: Option<Box<Cta>>,
    cache: NativeCache,
}

impl CtaCache {
    fn list(&self) -> MutexGuard<'_, Vec<CachedCta>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, fits: Fits) -> CachedCta {
        let mut list = self.list();
        let found = list.iter().position(|cached| cached.fits == fits).map(|at| list.swap_remove(at));
        found.unwrap_or_else(|| CachedCta { fits, cta: None, cache: NativeCache::default() })
    }

    fn give(&self, cached: CachedCta) {
        let mut list = self.list();
        if list.len() < CACHED_CTAS {
            list.push(cached);
        }
    }
}

/// A trap before it is formatted.
pub(crate) struct GridTrap {
    pub(crate) stopped: Box<Stopped>,
    pub(crate) ctaid: [u32; 3],
    pub(crate) warp: u32,
    pub(crate) tid: [u32; 3],
    pub(crate) nearest: Option<String>,
    /// Registers of the faulting lane, if an instruction faulted.
    pub(crate) registers: Option<LaneRegisters>,
    /// Positions of the lanes of the CTA, if no instruction faulted.
    pub(crate) lanes: Option<String>,
}

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

/// The state that the threads of a launch share.
pub(crate) struct Launching {
    run: GridRun,
    next: AtomicU64,
    count: u64,
    threads: u32,
    /// CTAs with this start position or a later one must not run. `u64::MAX` until a trap or limit.
    stop_at: AtomicU64,
    steps: AtomicU64,
    lane_steps: AtomicU64,
    native_steps: AtomicU64,
    fallback_steps: AtomicU64,
    /// CTAs that have finished.
    finished: Arc<AtomicU64>,
    /// Bytes charged against the output limit, and dropped bytes.
    printed: AtomicU64,
    dropped: AtomicU64,
    found: Mutex<Found>,
    /// The next slot numbers for watched CTAs and warps.
    slots: [AtomicU32; 2],
}

#[derive(Default)]
struct Found {
    trap: Option<FoundTrap>,
    error: Option<MemoryError>,
    output: Vec<(u64, Vec<u8>)>,
    events: EventCounts,
    exits: ExitCounts,
}

/// A trap and the start position of its CTA.
struct FoundTrap {
    trap: GridTrap,
    place: u64,
}

/// Runs all CTAs of a grid.
pub(crate) fn run_grid(run: GridRun) -> Outcome {
    let count = run.shape.nctaid.iter().map(|n| u64::from(*n)).product();
    let memory = Arc::clone(&run.memory);
    // Threads without memory for a resident CTA would only wait.
    let fit =
        run.context().function(run.kernel).map_or(1, |function| RESIDENT_BYTES / run.cta_bytes(function));
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
    let helpers = Helpers { pool, launching, help: RefCell::new(None) };
    if threads > 1 && count.saturating_mul(u64::from(launching.run.shape.warps())) >= MANY_WARPS {
        helpers.call();
    }
    let alone = threads > 1 && helpers.help.borrow().is_none();
    launching.work(0, alone.then_some(&helpers));
    if let Some(help) = helpers.help.into_inner() {
        pool.finish(help);
    }
}

impl GridRun {
    /// Estimated memory of a resident CTA.
    fn cta_bytes(&self, function: &Function) -> u64 {
        let local = LANES as u64 * self.stack_bytes.min(4096);
        let warp = 4096 + register_bytes(function.regs) + local;
        self.shared_bytes + u64::from(self.shape.warps()) * warp
    }
}

/// Wakes threads of the pool for a launch.
pub(crate) struct Helpers<'a> {
    pool: &'a Pool,
    launching: &'a Arc<Launching>,
    help: RefCell<Option<Help>>,
}

impl Helpers<'_> {
    fn call(&self) {
        let mut help = self.help.borrow_mut();
        if help.is_none() {
            let launching = Arc::clone(self.launching);
            let work = Arc::new(move |thread| launching.work(thread, None));
            *help = Some(self.pool.help(work, 1..self.launching.threads));
        }
    }
}

/// One thread of a launch.
struct Worker<'a> {
    launching: &'a Launching,
    thread: u32,
    /// The start time of the launch, while the thread works alone and can get help.
    alone: Cell<Option<(Instant, &'a Helpers<'a>)>>,
    /// What is left of [`LONG_RUN`] for warps in native code of whole CTAs. It is halved each time a warp
    /// uses it up, so the total time lost to warps that never end is at most twice the limit.
    long_run: Cell<Duration>,
    /// Reserved CTAs: the first that is not started, and the end of the range.
    taken: Cell<[u64; 2]>,
    /// Start position of the running CTA.
    place: Cell<u64>,
    /// The grace period of CTAs before a trap, if it has begun on this thread.
    grace: Cell<Option<GracePeriod>>,
    /// Counts that are not yet added to the launch: steps of warps, of lanes, in native code, and of the
    /// interpreter for it.
    counts: Cell<[u64; 4]>,
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
    fn finish(&self, count: u64) {
        self.launching.finished.fetch_add(count, Ordering::Relaxed);
    }

    /// Adds the thread's counts to those of the launch.
    fn add(&self) {
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
    fn next(&self) -> Option<u64> {
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
    fn has_next(&self) -> bool {
        let all = self.launching;
        let [start, end] = self.taken.get();
        let next = if start < end { start } else { all.next.load(Ordering::Relaxed) };
        next < all.count && !self.stops(next)
    }

    /// Whether the CTA at this start position must stop: it starts after a trap, or before one and the grace
    /// period is over.
    fn stops(&self, place: u64) -> bool {
        let stop_at = self.launching.stop_at.load(Ordering::Relaxed);
        if stop_at <= place || stop_at == u64::MAX {
            return stop_at <= place;
        }
        let grace = self.grace.get().unwrap_or_else(GracePeriod::begin);
        self.grace.set(Some(grace));
        grace.is_over()
    }
}

impl Launching {
    /// Runs the launch on new threads whose stacks are larger by `stack` bytes.
    fn on_own_threads(&self, stack: usize) {
        std::thread::scope(|scope| {
            for thread in 0..self.threads {
                let builder = std::thread::Builder::new().stack_size(STACK_BYTES + stack);
                let started = builder.spawn_scoped(scope, move || self.work(thread, None));
                if started.is_err() && thread == 0 {
                    let bytes = (STACK_BYTES + stack) as u64;
                    self.found().error.get_or_insert(MemoryError::Host { bytes });
                }
            }
        });
    }

    fn found(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The loop of one thread. `helpers`: how to wake more threads.
    pub(crate) fn work(&self, thread: u32, helpers: Option<&Helpers<'_>>) {
        let run = &self.run;
        let context = run.context();
        let Some(function) = context.function(run.kernel) else { return };
        let _withdrawal = Withdrawal;
        let bytes = run.cta_bytes(function);
        let limit = (RESIDENT_BYTES / bytes / u64::from(self.threads)).max(MIN_RESIDENT);
        let native = run.native.as_ref().map(Arc::downgrade);
        let mut cached = run.cta_cache.take(Fits(run.shape.ntid, run.shared_bytes, native));
        cached.cache.allocations.clone_from(&run.allocations);
        let mut resident: VecDeque<Box<Cta>> = VecDeque::new();
        let mut spare: Vec<Box<Cta>> = cached.cta.take().into_iter().collect();
        for cta in &mut spare {
            cta.relaunch(&run.shape, run.params);
            self.watch(&mut cta.warps);
        }
        let worker = Worker {
            launching: self,
            thread,
            alone: Cell::new(helpers.map(|helpers| (Instant::now(), helpers))),
            long_run: Cell::new(LONG_RUN),
            taken: Cell::default(),
            place: Cell::default(),
            grace: Cell::default(),
            counts: Cell::default(),
        };
        let mut prefer_new = true;
        // Consecutive CTAs that only waited.
        let mut idle = 0;
        // The CTA that ran last, and how often one went on that had run long.
        let (mut last, mut long) = (None, 0);
        loop {
            let has_room = (resident.len() as u64) < limit;
            let fresh = if has_room && (prefer_new || resident.is_empty()) {
                self.start(&worker, &mut spare, resident.is_empty())
            } else {
                None
            };
            prefer_new = fresh.is_none();
            let is_fresh = fresh.is_some();
            let Some(mut cta) = fresh.or_else(|| resident.pop_front()) else { break };
            worker.place.set(cta.place);
            if let Some(stamps) = &run.stamps {
                match (is_fresh, last == Some(cta.place)) {
                    (true, _) => stamps.begin_cta(),
                    (false, true) => {}
                    (false, false) => stamps.set_conflict(),
                }
            }
            if worker.stops(cta.place) {
                self.end(&mut cta);
                continue;
            }
            let stop = cta.run(&context, &worker, &mut cached.cache);
            last = Some(cta.place);
            match stop {
                CtaStop::Finished => {
                    cta.tell_end();
                    worker.finish(1);
                    self.keep_output(&mut cta);
                    spare.push(cta);
                    idle = 0;
                }
                // The CTA may wait for one that was stopped.
                CtaStop::Idle if self.has_stopped() && cta.vain >= FURTHER_SLICES => self.end(&mut cta),
                CtaStop::Idle => {
                    cta.vain += u32::from(self.has_stopped());
                    resident.push_back(cta);
                    idle += 1;
                    if idle > resident.len() {
                        std::thread::yield_now();
                    }
                }
                CtaStop::Long => {
                    if run.stamps.is_some() && long < MOST_LONG {
                        // Stamps belong to one CTA at a time.
                        resident.push_front(cta);
                        (long, prefer_new) = (long + 1, false);
                    } else {
                        resident.push_back(cta);
                    }
                    idle = 0;
                }
                CtaStop::Cancelled => self.end(&mut cta),
                CtaStop::Trapped(stopped, warp) => {
                    self.trap(&cta, stopped, warp);
                    self.end(&mut cta);
                }
            }
        }
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

    /// Whether some CTAs must not continue.
    fn has_stopped(&self) -> bool {
        self.stop_at.load(Ordering::Relaxed) != u64::MAX
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
        let lanes = (!of_program).then(|| cta.whereabouts(&self.run.context())).flatten();
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
        let registers = self.run.context().function(self.run.kernel).map_or(0, |f| register_bytes(f.regs));
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
