//! A grid: its CTAs in order of their numbers, on OS threads.
//!
//! Each thread keeps the CTAs that it has started and not finished, and runs them in turn; it starts another when the one that
//! runs only waits. So there are as many resident CTAs as wait for each other, up to a budget of memory
//! ([`RESIDENT_BYTES`]) for registers and windows.
//!
//! The thread that launches begins alone, and gets help where the launch takes longer than waking others ([`ALONE`]). Threads take
//! CTAs in portions, smaller and smaller ones towards the end; one by one where CTAs may wait for each other, so that lower ones are always
//! started first.
//!
//! A trap stops all CTAs that are started later than the one that trapped. Those before it go on while a thread has [`Patience`], unless they wait in vain;
//! if one of them traps, too, that is the trap of the launch.
//!
//! Invariant: which trap is reported does not depend on the speed of threads, except through that bound; the output is in order of CTA
//! numbers, whichever thread ran them.

use super::cta::{Cta, CtaStop, FURTHER_SLICES, LONG_TURN, Limits};
use super::patience::Patience;
use super::pool::{Help, Pool};
use super::seed;
use crate::bound::{Code, Function};
use crate::frame::{WarpFrame, register_bytes};
use crate::interp::{End, Stopped, World};
use crate::lanes::LANES;
use crate::mem::{Memory, MemoryError, View, attempt};
use crate::native::{Native, Reached, Supply};
use crate::trap::FaultKind;
use crate::warp::{EventCounts, GridShape, WarpState};
use crate::watch::{Interests, LaunchFacts, Site, Watch};
use crate::whereabouts::LaneRegisters;
use ptx::check::module::{AddressSize, Source};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

/// How long the thread that launches works alone. Chosen: about what waking another takes.
const ALONE: Duration = Duration::from_micros(5);
/// A launch of so many warps takes longer than that in any case.
const MANY_WARPS: u64 = 2048;
/// The most CTAs that a thread takes at once.
const PORTION: u64 = 256;
/// A thread's room is kept from launch to launch if it is no larger than this, in bytes.
const KEPT_BYTES: u64 = 4 << 20;
/// Bytes of stack of a thread in addition to what native code needs ([`Native::stack`]). Chosen: the default of most systems.
const STACK_BYTES: usize = 2 << 20;
/// How many threads' rooms a kernel keeps.
const KEPT_ROOMS: usize = 64;

/// Memory for the state of resident CTAs, all threads together. Chosen: fits common machines, and lets over ten thousand
/// CTAs of 1024 simple threads wait for each other.
pub(crate) const RESIDENT_BYTES: u64 = 2 << 30;
/// What a CTA that prints costs of what a launch may print, beside its text: about what keeping it takes, in bytes.
const PIECE_BYTES: u64 = 32;
/// CTAs that a thread may keep resident whatever they need.
const RESIDENT_LEAST: u64 = 2;

/// A launch as the scheduler sees it.
pub(crate) struct GridRun {
    /// Bound code.
    pub(crate) code: Arc<Code>,
    /// The PTX text.
    pub(crate) source: Arc<Source>,
    /// Width of addresses.
    pub(crate) address_size: AddressSize,
    /// Address of the module's first function.
    pub(crate) functions: u64,
    /// Native code of the kernel, if it is to be used.
    pub(crate) native: Option<Arc<dyn Native>>,
    /// Where native code may come from while the launch runs.
    pub(crate) supply: Option<Arc<dyn Supply>>,
    /// Guest memory.
    pub(crate) memory: Arc<Memory>,
    /// Shape of the grid.
    pub(crate) shape: Arc<GridShape>,
    /// `FuncId` of the kernel.
    pub(crate) kernel: u32,
    /// Bytes of shared memory of a CTA: static and dynamic.
    pub(crate) shared_bytes: u64,
    /// Address and size of the parameter buffer.
    pub(crate) params: (u64, u64),
    /// Bytes of local memory of a thread.
    pub(crate) stack_bytes: u64,
    /// OS threads.
    pub(crate) threads: u32,
    /// Schedule seed.
    pub(crate) seed: u64,
    /// Steps of warps, all together.
    pub(crate) max_steps: Option<u64>,
    /// When to stop.
    pub(crate) deadline: Option<Instant>,
    /// Set by the host to stop the launch.
    pub(crate) cancel: Option<Arc<AtomicBool>>,
    /// Where CTAs that have finished are counted for the host.
    pub(crate) progress: Option<Arc<AtomicU64>>,
    /// The thread that is followed.
    pub(crate) trace: Option<crate::trace::Tracing>,
    /// What the launch may print, in bytes; what comes later is dropped.
    pub(crate) output_limit: u64,
    /// Rooms of earlier launches.
    pub(crate) rooms: Arc<Rooms>,
    /// Observers, and what they are told about the launch.
    pub(crate) watch: Option<(Arc<Watch>, Arc<LaunchFacts>)>,
    /// By function, which instructions they want to be told of.
    pub(crate) interests: Arc<[OnceLock<Interests>]>,
}

impl GridRun {
    fn end(&self) -> End<'_> {
        let enough = self.watch.as_ref().map(|(watch, _)| watch.stop());
        End { deadline: self.deadline, cancel: self.cancel.as_deref(), enough }
    }

    fn world(&self) -> World<'_> {
        World {
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
            mends: self.watch.as_ref().is_some_and(|(watch, _)| watch.mends()),
        }
    }
}

/// What threads need to run CTAs of a kernel, kept from launch to launch.
#[derive(Default)]
pub(crate) struct Rooms(Mutex<Vec<Room>>);

/// What a room fits: the CTA's shape, its shared memory, and the native code, of which nothing else can take the place while this
/// is there.
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

/// A thread's room.
struct Room {
    fits: Fits,
    cta: Option<Box<Cta>>,
    reached: Reached,
}

impl Rooms {
    fn list(&self) -> MutexGuard<'_, Vec<Room>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, fits: Fits) -> Room {
        let mut list = self.list();
        let found = list.iter().position(|room| room.fits == fits).map(|at| list.swap_remove(at));
        found.unwrap_or_else(|| Room { fits, cta: None, reached: Reached::default() })
    }

    fn give(&self, room: Room) {
        let mut list = self.list();
        if list.len() < KEPT_ROOMS {
            list.push(room);
        }
    }
}

/// A trap before it is written out.
pub(crate) struct GridTrap {
    pub(crate) stopped: Box<Stopped>,
    pub(crate) ctaid: [u32; 3],
    pub(crate) warp: u32,
    pub(crate) tid: [u32; 3],
    pub(crate) nearest: Option<String>,
    /// Registers of the lane, where an instruction is at fault.
    pub(crate) registers: Option<LaneRegisters>,
    /// Where the lanes of the CTA are, where something else is.
    pub(crate) lanes: Option<String>,
}

/// What a launch did.
#[derive(Default)]
pub(crate) struct Outcome {
    /// The first trap.
    pub(crate) trap: Option<GridTrap>,
    /// Why no CTA could be started.
    pub(crate) error: Option<MemoryError>,
    /// Steps of warps.
    pub(crate) steps: u64,
    /// Steps of lanes.
    pub(crate) lane_steps: u64,
    /// Steps in native code.
    pub(crate) native_steps: u64,
    /// Steps of the interpreter for native code.
    pub(crate) fallback_steps: u64,
    /// Printed text.
    pub(crate) output: Vec<u8>,
    /// Bytes that were printed beyond the limit.
    pub(crate) dropped: u64,
    /// CTAs that have finished.
    pub(crate) finished: u64,
    /// Events triggered by `pmevent`.
    pub(crate) events: EventCounts,
}

/// What the threads of a launch share.
pub(crate) struct Launching {
    run: GridRun,
    next: AtomicU64,
    count: u64,
    threads: u32,
    /// CTAs that are started as that number or later are not to run: `u64::MAX` until something happens.
    stop_at: AtomicU64,
    steps: AtomicU64,
    lane_steps: AtomicU64,
    native_steps: AtomicU64,
    fallback_steps: AtomicU64,
    /// CTAs that have finished.
    finished: Arc<AtomicU64>,
    /// Bytes of the limit for output that are used up, and those that were dropped.
    printed: AtomicU64,
    dropped: AtomicU64,
    found: Mutex<Found>,
    /// Numbers for watched CTAs and warps.
    slots: [AtomicU32; 2],
}

#[derive(Default)]
struct Found {
    trap: Option<FoundTrap>,
    error: Option<MemoryError>,
    output: Vec<(u64, Vec<u8>)>,
    events: EventCounts,
}

/// A trap, and which CTA it is of in the order in which they are started.
struct FoundTrap {
    trap: GridTrap,
    place: u64,
}

/// Runs all CTAs of a grid.
pub(crate) fn run_grid(run: GridRun) -> Outcome {
    let count = run.shape.nctaid.iter().map(|n| u64::from(*n)).product();
    let memory = Arc::clone(&run.memory);
    // Threads for which there is no memory would only wait.
    let fit = run.world().function(run.kernel).map_or(1, |function| RESIDENT_BYTES / run.cta_bytes(function));
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
        output: output.into_iter().map(|(_, text)| text).collect::<Vec<_>>().concat(),
        dropped: sum(&launching.dropped),
        finished: sum(&launching.finished),
        events: found.events,
    }
}

/// Runs a launch on this thread, and on those of the pool if it takes long enough.
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
    /// An estimate of what a resident CTA needs.
    fn cta_bytes(&self, function: &Function) -> u64 {
        let local = LANES as u64 * self.stack_bytes.min(4096);
        let warp = 4096 + register_bytes(function.regs) + local;
        self.shared_bytes + u64::from(self.shape.warps()) * warp
    }
}

/// Where the thread that launches gets help.
pub(crate) struct Helpers<'a> {
    pool: &'a Pool,
    launching: &'a Arc<Launching>,
    help: RefCell<Option<Help>>,
}

impl Helpers<'_> {
    fn call(&self) {
        let mut help = self.help.borrow_mut();
        if help.is_none() {
            *help = Some(self.pool.help(self.launching, 1..self.launching.threads));
        }
    }
}

/// One thread of a launch.
struct Worker<'a> {
    launching: &'a Launching,
    thread: u32,
    /// When it began, if it is alone and may get help.
    alone: Cell<Option<(Instant, &'a Helpers<'a>)>>,
    /// What is left of [`LONG_TURN`] for warps in native code of whole CTAs: each that uses it up halves it, so that a thread loses at most twice
    /// as much to warps that never end.
    long_turn: Cell<Duration>,
    /// CTAs that it has taken and not started: the first, and the one behind the last.
    taken: Cell<[u64; 2]>,
    /// Which CTA it runs, in the order in which they are started.
    place: Cell<u64>,
    /// Since when CTAs before a trap continue on this thread.
    patience: Cell<Option<Patience>>,
    /// What it counted and has not added to the launch's: steps of warps, of lanes, native ones, the interpreter's among them.
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

    fn whole(&self) -> bool {
        self.launching.run.max_steps.is_none() && self.launching.run.seed == 0
    }

    fn taken(&self) -> u64 {
        let [start, end] = self.taken.get();
        end - start
    }

    fn follow(&self, count: u64) {
        self.take(count);
        self.place.set(self.place.get() + count);
        self.finish(count);
    }

    fn alone(&self) -> bool {
        self.alone.get().is_some()
    }

    fn print(&self, bytes: usize, dropped: u64, first: bool) -> usize {
        let all = self.launching;
        let (limit, piece) = (all.run.output_limit, if first { PIECE_BYTES } else { 0 });
        let cost = piece.saturating_add(bytes as u64);
        let before = all.printed.fetch_add(cost, Ordering::Relaxed);
        let room = limit.saturating_sub(before).saturating_sub(piece);
        let kept = usize::try_from(room).unwrap_or(usize::MAX).min(bytes);
        let dropped = dropped + (bytes - kept) as u64;
        if dropped > 0 {
            // What is printed after a gap would not be understood.
            all.printed.fetch_max(limit, Ordering::Relaxed);
            all.dropped.fetch_add(dropped, Ordering::Relaxed);
        }
        kept
    }

    fn late(&self) -> Option<FaultKind> {
        if let Some((began, helpers)) = self.alone.get()
            && began.elapsed() > ALONE
        {
            self.alone.set(None);
            helpers.call();
        }
        self.launching.run.end().come()
    }

    fn gives_way(&self, since: Instant) -> bool {
        let long = since.elapsed() > self.long_turn.get();
        if long {
            self.long_turn.set(self.long_turn.get() / 2);
        }
        long
    }
}

impl Worker<'_> {
    /// So many CTAs of what it has taken are started.
    fn take(&self, count: u64) {
        let [start, end] = self.taken.get();
        self.taken.set([(start + count).min(end), end]);
    }

    /// So many CTAs have finished.
    fn finish(&self, count: u64) {
        self.launching.finished.fetch_add(count, Ordering::Relaxed);
    }

    /// Adds what it counted to the launch's.
    fn add(&self) {
        let [steps, lanes, native, fallbacks] = self.counts.take();
        let all = self.launching;
        all.steps.fetch_add(steps, Ordering::Relaxed);
        all.lane_steps.fetch_add(lanes, Ordering::Relaxed);
        all.native_steps.fetch_add(native, Ordering::Relaxed);
        all.fallback_steps.fetch_add(fallbacks, Ordering::Relaxed);
    }

    /// The next CTA that is to be started.
    fn next(&self) -> Option<u64> {
        let all = self.launching;
        if self.taken() == 0 {
            let start = all.next.load(Ordering::Relaxed);
            if start >= all.count {
                return None;
            }
            let native = all.run.native.as_deref().or_else(|| all.run.supply.as_ref()?.native());
            let alone = all.run.seed == 0 && native.is_some_and(|native| !native.may_wait());
            let portion = match alone {
                true => ((all.count - start) / (4 * u64::from(all.threads))).clamp(1, PORTION),
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

    /// Whether there is a CTA to be started that is to run.
    fn has_next(&self) -> bool {
        let all = self.launching;
        let [start, end] = self.taken.get();
        let next = if start < end { start } else { all.next.load(Ordering::Relaxed) };
        next < all.count && !self.stops(next)
    }

    /// Whether the CTA that is started as that number must stop: it comes after a trap, or it comes before one and the thread's patience is over.
    fn stops(&self, place: u64) -> bool {
        let stop_at = self.launching.stop_at.load(Ordering::Relaxed);
        if stop_at <= place || stop_at == u64::MAX {
            return stop_at <= place;
        }
        let patience = self.patience.get().unwrap_or_else(Patience::begin);
        self.patience.set(Some(patience));
        patience.is_over()
    }
}

impl Launching {
    /// Runs it on threads that are made for it, whose stacks hold that many bytes more than others.
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

    /// What one thread does. `helpers`: where it gets help.
    pub(crate) fn work(&self, thread: u32, helpers: Option<&Helpers<'_>>) {
        let run = &self.run;
        let world = run.world();
        let Some(function) = world.function(run.kernel) else { return };
        let bytes = run.cta_bytes(function);
        let limit = (RESIDENT_BYTES / bytes / u64::from(self.threads)).max(RESIDENT_LEAST);
        let native = run.native.as_ref().map(Arc::downgrade);
        let mut room = run.rooms.take(Fits(run.shape.ntid, run.shared_bytes, native));
        let mut resident: VecDeque<Box<Cta>> = VecDeque::new();
        let mut spare: Vec<Box<Cta>> = room.cta.take().into_iter().collect();
        spare.iter_mut().for_each(|cta| cta.relaunch(&run.shape, run.params));
        let worker = Worker {
            launching: self,
            thread,
            alone: Cell::new(helpers.map(|helpers| (Instant::now(), helpers))),
            long_turn: Cell::new(LONG_TURN),
            taken: Cell::default(),
            place: Cell::default(),
            patience: Cell::default(),
            counts: Cell::default(),
        };
        let mut prefer_new = true;
        // CTAs in a row that only waited.
        let mut idle = 0;
        loop {
            let has_room = (resident.len() as u64) < limit;
            let fresh = if has_room && (prefer_new || resident.is_empty()) {
                self.start(&worker, &mut spare, resident.is_empty())
            } else {
                None
            };
            prefer_new = fresh.is_none();
            let Some(mut cta) = fresh.or_else(|| resident.pop_front()) else { break };
            worker.place.set(cta.place);
            if worker.stops(cta.place) {
                self.end(&mut cta);
                continue;
            }
            match cta.run(&world, &worker, &mut room.reached) {
                CtaStop::Finished => {
                    cta.tell_end();
                    worker.finish(1);
                    self.keep_output(&mut cta);
                    spare.push(cta);
                    idle = 0;
                }
                // What it waits for may never come.
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
                    resident.push_back(cta);
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
        // A room fits one native code, and here it is not known which came.
        if bytes <= KEPT_BYTES
            && run.supply.is_none()
            && run.watch.is_none()
            && let Some(mut cta) = spare.pop()
        {
            cta.leave();
            room.cta = Some(cta);
            run.rooms.give(room);
        }
    }

    /// A CTA is given up.
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

    /// Whether some CTAs are not to run on.
    fn has_stopped(&self) -> bool {
        self.stop_at.load(Ordering::Relaxed) != u64::MAX
    }

    fn trap(&self, cta: &Cta, stopped: Box<Stopped>, warp: u32) {
        let mut found = self.found();
        let of_program = stopped.fault.kind.is_of_program();
        // The end of the launch's time is no trap of one CTA more than of another.
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
        let lanes = (!of_program).then(|| cta.whereabouts(&self.run.world())).flatten();
        let trap = GridTrap { stopped, ctaid: cta.ctaid(), warp, tid, nearest, registers, lanes };
        found.trap = Some(FoundTrap { trap, place });
    }

    /// Starts the next CTA, if there is one and memory for it. Having none for the first is an error.
    #[expect(clippy::vec_box, reason = "a CTA is large, and moves from list to list for every turn")]
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

    /// Whether the host has room for the registers of a CTA, where that is a question.
    fn room(&self) -> Result<(), MemoryError> {
        const MUCH: u64 = 16 << 20;
        let registers = self.run.world().function(self.run.kernel).map_or(0, |f| register_bytes(f.regs));
        let bytes = registers.saturating_mul(u64::from(self.run.shape.warps()));
        let fits = || usize::try_from(bytes).is_ok_and(|n| Vec::<u8>::new().try_reserve_exact(n).is_ok());
        if bytes < MUCH || attempt(fits) { Ok(()) } else { Err(MemoryError::Host { bytes }) }
    }

    /// Room for a CTA.
    fn make(&self) -> Result<Box<Cta>, MemoryError> {
        let run = &self.run;
        self.room()?;
        let shared = match run.shared_bytes {
            0 => None,
            bytes => Some(run.memory.shared_window(bytes)?),
        };
        let mut warps = Vec::new();
        let [ctas, slots] = &self.slots;
        let cta_slot = if run.watch.is_some() { ctas.fetch_add(1, Ordering::Relaxed) } else { 0 };
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
            if let Some((watch, launch)) = &run.watch {
                let slot = slots.fetch_add(1, Ordering::Relaxed);
                view.set_site(Some(Site::new(Arc::clone(watch), Arc::clone(launch), slot, cta_slot)));
            }
            let state = WarpState::new(Arc::clone(&run.shape), [0; 3], warp);
            warps.push(WarpFrame::new(state, view, local));
        }
        Ok(Box::new(Cta::new(&run.shape, warps, shared)))
    }
}
