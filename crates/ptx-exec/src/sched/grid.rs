//! A grid: its CTAs in order of their numbers, on OS threads.
//!
//! Each thread keeps the CTAs that it has started and not finished, and runs them in turn; it starts another when the one that
//! runs only waits. So there are as many resident CTAs as wait for each other, up to a budget of memory
//! ([`RESIDENT_BYTES`]) for registers and windows.
//!
//! Invariant: the first trap wins and stops all threads; the output is in order of CTA numbers, whoever ran them.

use super::cta::{Cta, CtaStop, Limits};
use super::seed;
use crate::bound::Function;
use crate::frame::{WarpFrame, register_bytes};
use crate::interp::{Stopped, World};
use crate::lanes::LANES;
use crate::mem::{Memory, MemoryError, View};
use crate::native::Reached;
use crate::warp::{EventCounts, GridShape, WarpState};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Memory for the state of resident CTAs, all threads together. Chosen: fits common machines, and lets over ten thousand
/// CTAs of 1024 simple threads wait for each other.
pub(crate) const RESIDENT_BYTES: u64 = 2 << 30;
/// What a launch may print, in bytes; what comes from further CTAs is dropped.
const OUTPUT_BYTES: usize = 256 << 20;
/// CTAs that a thread may keep resident whatever they need.
const RESIDENT_LEAST: u64 = 2;

/// A launch as the scheduler sees it.
pub(crate) struct GridRun<'a> {
    /// Code and places.
    pub(crate) world: World<'a>,
    /// Guest memory.
    pub(crate) memory: &'a Arc<Memory>,
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
    pub(crate) cancel: Option<&'a AtomicBool>,
}

/// A trap before it is written out.
pub(crate) struct GridTrap {
    pub(crate) stopped: Box<Stopped>,
    pub(crate) ctaid: [u32; 3],
    pub(crate) warp: u32,
    pub(crate) tid: [u32; 3],
    pub(crate) nearest: Option<String>,
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
    /// Events triggered by `pmevent`.
    pub(crate) events: EventCounts,
}

/// What the threads of a launch share.
struct Shared<'a> {
    run: &'a GridRun<'a>,
    next: AtomicU64,
    count: u64,
    stop: AtomicBool,
    steps: AtomicU64,
    lane_steps: AtomicU64,
    native_steps: AtomicU64,
    fallback_steps: AtomicU64,
    found: Mutex<Found>,
}

#[derive(Default)]
struct Found {
    trap: Option<GridTrap>,
    error: Option<MemoryError>,
    output: Vec<(u64, Vec<u8>)>,
    output_bytes: usize,
    events: EventCounts,
}

impl Limits for Shared<'_> {
    fn steps(&self) -> Option<u64> {
        if self.stop.load(Ordering::Relaxed) {
            return None;
        }
        let limit = self.run.max_steps.unwrap_or(u64::MAX);
        Some(limit.saturating_sub(self.steps.load(Ordering::Relaxed)))
    }

    fn spend(&self, steps: u64, lane_steps: u64) {
        self.steps.fetch_add(steps, Ordering::Relaxed);
        self.lane_steps.fetch_add(lane_steps, Ordering::Relaxed);
    }

    fn count(&self, events: &EventCounts) {
        let mut found = self.found();
        for (sum, count) in found.events.iter_mut().zip(events) {
            *sum += count;
        }
    }

    fn spend_native(&self, steps: u64, fallbacks: u64) {
        self.native_steps.fetch_add(steps, Ordering::Relaxed);
        self.fallback_steps.fetch_add(fallbacks, Ordering::Relaxed);
    }

    fn late(&self) -> bool {
        self.run.deadline.is_some_and(|deadline| Instant::now() >= deadline)
            || self.run.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed))
    }
}

/// Runs all CTAs of a grid.
pub(crate) fn run_grid(run: &GridRun<'_>) -> Outcome {
    let count = run.shape.nctaid.iter().map(|n| u64::from(*n)).product();
    let shared = Shared {
        run,
        next: AtomicU64::new(0),
        count,
        stop: AtomicBool::new(false),
        steps: AtomicU64::new(0),
        lane_steps: AtomicU64::new(0),
        native_steps: AtomicU64::new(0),
        fallback_steps: AtomicU64::new(0),
        found: Mutex::new(Found::default()),
    };
    // Threads for which there is no memory would only wait.
    let fit =
        run.world.function(run.kernel).map_or(1, |function| RESIDENT_BYTES / shared.cta_bytes(function));
    let threads = u64::from(run.threads).min(count).min(fit).max(1) as u32;
    if threads <= 1 {
        shared.work(0, 1);
    } else {
        std::thread::scope(|scope| {
            for thread in 1..threads {
                let shared = &shared;
                let work = move || shared.work(thread, threads);
                // With fewer threads than asked for it only takes longer.
                if std::thread::Builder::new().spawn_scoped(scope, work).is_err() {
                    break;
                }
            }
            shared.work(0, threads);
        });
    }
    let found = shared.found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut output = found.output;
    output.sort_by_key(|(index, _)| *index);
    Outcome {
        trap: found.trap,
        error: found.error,
        steps: shared.steps.into_inner(),
        lane_steps: shared.lane_steps.into_inner(),
        native_steps: shared.native_steps.into_inner(),
        fallback_steps: shared.fallback_steps.into_inner(),
        output: output.into_iter().flat_map(|(_, text)| text).collect(),
        events: found.events,
    }
}

impl Shared<'_> {
    fn found(&self) -> std::sync::MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What one thread does.
    fn work(&self, thread: u32, threads: u32) {
        let Some(function) = self.run.world.function(self.run.kernel) else { return };
        let limit = (RESIDENT_BYTES / self.cta_bytes(function) / u64::from(threads)).max(RESIDENT_LEAST);
        let mut resident: VecDeque<Cta> = VecDeque::new();
        let mut spare: Vec<Cta> = Vec::new();
        let mut reached = Reached::default();
        let mut prefer_new = true;
        // CTAs in a row that only waited.
        let mut idle = 0;
        while !self.stop.load(Ordering::Relaxed) {
            let room = (resident.len() as u64) < limit;
            let fresh = if room && (prefer_new || resident.is_empty()) {
                self.start(thread, function, &mut spare, resident.is_empty())
            } else {
                None
            };
            prefer_new = fresh.is_none();
            let Some(mut cta) = fresh.or_else(|| resident.pop_front()) else { break };
            match cta.run(&self.run.world, self, &mut reached) {
                CtaStop::Finished => {
                    self.keep_output(&mut cta);
                    spare.push(cta);
                    idle = 0;
                }
                CtaStop::Idle => {
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
                CtaStop::Cancelled => {
                    self.keep_output(&mut cta);
                    break;
                }
                CtaStop::Trapped(stopped, warp) => {
                    self.trap(&cta, stopped, warp);
                    self.keep_output(&mut cta);
                    break;
                }
            }
        }
        for cta in &mut resident {
            self.keep_output(cta);
        }
    }

    fn keep_output(&self, cta: &mut Cta) {
        if !cta.output.is_empty() {
            let text = std::mem::take(&mut cta.output);
            let mut found = self.found();
            found.output_bytes += text.len();
            if found.output_bytes <= OUTPUT_BYTES {
                found.output.push((cta.index, text));
            }
        }
    }

    fn trap(&self, cta: &Cta, stopped: Box<Stopped>, warp: u32) {
        let mut found = self.found();
        if found.trap.is_none() {
            let frame = cta.warp(warp);
            let lane = usize::from(stopped.fault.lane) % LANES;
            let nearest = stopped.fault.access.as_ref().map(|a| frame.view.nearest(a.space, lane, a.address));
            let tid = frame.state.tid_of(lane);
            found.trap = Some(GridTrap { stopped, ctaid: cta.ctaid(), warp, tid, nearest });
        }
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Starts the next CTA, if there is one and memory for it. Having none for the first is an error.
    fn start(&self, thread: u32, function: &Function, spare: &mut Vec<Cta>, first: bool) -> Option<Cta> {
        if self.next.load(Ordering::Relaxed) >= self.count {
            return None;
        }
        let mut cta = match spare.pop().map_or_else(|| self.make(), Ok) {
            Ok(cta) => cta,
            Err(error) => {
                if first {
                    self.found().error.get_or_insert(error);
                    self.stop.store(true, Ordering::Relaxed);
                }
                return None;
            }
        };
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        if index >= self.count {
            spare.push(cta);
            return None;
        }
        let index = seed::permute(self.run.seed, index, self.count);
        let [nx, ny, _] = self.run.shape.nctaid.map(u64::from);
        let ctaid = [index % nx, index / nx % ny, index / nx / ny].map(|c| c as u32);
        cta.start(index, ctaid, self.run.seed, thread, self.run.kernel, function);
        Some(cta)
    }

    /// Room for a CTA.
    fn make(&self) -> Result<Cta, MemoryError> {
        let run = self.run;
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
            let mut view = View::new(run.memory);
            view.set_params(run.params.0, run.params.1);
            if let Some(window) = &shared {
                view.set_shared(window.start(), window.bytes());
            }
            let state = WarpState::new(Arc::clone(&run.shape), [0; 3], warp);
            warps.push(WarpFrame::new(state, view, local));
        }
        Ok(Cta::new(warps, shared))
    }

    /// An estimate of what a resident CTA needs.
    fn cta_bytes(&self, function: &Function) -> u64 {
        let local = LANES as u64 * self.run.stack_bytes.min(4096);
        let warp = 4096 + register_bytes(function.regs) + local;
        self.run.shared_bytes + u64::from(self.run.shape.warps()) * warp
    }
}
