//! Native code for launches: which launches use it, when it is compiled, and which code is kept.
//!
//! The engine `auto` uses a ski-rental policy: it compiles once the time in the interpreter reaches a part of
//! the estimated compile time. A launch that would take the interpreter much longer than compilation waits
//! for the code, but at most for the minimum time of the interpreter. All other launches, and launches that
//! have waited long enough, begin in the interpreter. When the launches of a kernel and CTA shape have cost
//! enough, the code is compiled in the background, and the running launch switches to it at the next slice of
//! a warp. So no launch takes much longer than with the better of both engines, and short programs never load
//! LLVM.
//!
//! With one OS thread equal seeds give equal runs, even of racy kernels: decisions then depend on executed
//! instructions instead of time, and the launch compiles the code itself.
//!
//! The code of some kernels is made in two parts ([`Compiled::is_partial`]). A launch begins with the first
//! part, while the rest is compiled. CTAs that need the rest meanwhile run in the interpreter; with the
//! engine `jit` they wait for it. A launch with one OS thread begins with all of the code, for equal runs.
//!
//! Code of large kernels is compiled without optimisation at first ([`Compiled::unoptimised`]): it is ready
//! sooner, and runs several times as long. When launches with it have cost enough, it is compiled again in
//! the background, and launches begin with the optimised code from then on.
//!
//! A process may end before its kernels are compiled, or compiled again, each time that it is started. The
//! time that it lost is kept with the cached code ([`Compiler::lost_time`]), and a launch of the next process
//! waits twice as long.
//!
//! Code is always compiled on a separate thread, because LLVM cannot be interrupted. A launch that waits for
//! code stops waiting at its time limit, when it is cancelled, and when the process ends. Code whose
//! compilation continues is available to later launches.
//!
//! Invariant: results do not depend on these decisions. Neither dropping a device nor ending the process
//! waits for a compilation.

use super::until::Until;
use super::{Cpu, Engine, Listing, Ran, Source};
use crate::{CodeCache, Error, Launch};
use calls::called_by;
use later::{Later, Queues, Task, Wanted, compiled};
use ptx_exec::launch::{Kernel, LaunchConfig, LaunchError, LaunchReport};
use ptx_exec::native::{Native, Supply};
use ptx_exec::watch::NativeNeeds;
pub use ptx_jit::guard_this_thread;
use ptx_jit::{Compiled, Compiler, Found, Teams, compiler_thread};
use scalar::Scalar;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak, mpsc};
use std::time::{Duration, Instant};

mod calls;
mod later;
mod scalar;

/// The most CTA shapes per kernel for which code is kept. Chosen: programs use a few.
const SHAPES: usize = 16;
/// Estimated nanoseconds per lane instruction in the interpreter. Measured on one core of a shared Zen 5: 2.5
/// to 16.
const NS_A_STEP: u64 = 4;
/// Estimated compile time: a constant, and a part per instruction. Measured: 8 ms for the first kernel of a
/// process, including loading LLVM, and 20 to 60 microseconds per instruction.
const TO_BEGIN: Duration = Duration::from_millis(8);
const FOR_EACH: Duration = Duration::from_micros(40);
/// From so many instructions on, each further one takes this long. Measured on a Zen 3: 1 to 2 ms in kernels
/// of 1,600 to 7,000 instructions, which have hundreds of branches.
const MANY: u32 = 1_000;
const FOR_EACH_BEYOND: Duration = Duration::from_millis(1);
/// Estimated time to compile an LLVM instruction with optimisation. Measured on a Zen 3: 50 to 80
/// microseconds where there are more than 50,000.
const TO_OPTIMISE: Duration = Duration::from_micros(65);
/// Code is compiled again with optimisation once launches without it have cost so many times less than that.
/// Chosen: the optimised code is often ten times as fast, and another thread compiles it.
const OPTIMISES_EARLY: u32 = 4;
/// The cost above which the cache on disk is queried, which takes some tenths of a millisecond.
const TO_LOOK: Duration = Duration::from_millis(1);
/// A launch waits for code if the interpreter would take this many times the compile time.
const WAITS: u32 = 2;

/// The compiler of a device.
pub(crate) struct Jit {
    shared: Arc<Shared>,
}

struct Shared {
    compiler: Compiler,
    /// Compilations beside launches.
    queues: Queues,
    /// The number of hardware threads. Querying the system takes longer than a small launch.
    cores: u64,
}

/// The native code of a kernel by CTA shape, most recently used last.
#[derive(Default)]
pub(crate) struct Natives {
    by_shape: Mutex<Vec<Arc<Slot>>>,
}

/// Native code of a kernel for a CTA shape, or the state before there is any.
struct Slot {
    shape: [u32; 3],
    made: OnceLock<Made>,
    /// All of the code of a kernel whose code was partial at first. Without it, single warps remain in the
    /// interpreter.
    rest: Later,
    again: Again,
    scalar: Scalar,
    /// Whether the caches were queried.
    looked: AtomicBool,
    /// Nanoseconds that earlier processes spent on compiling it, and lost because they ended.
    lost: AtomicU64,
    /// Whether it is being compiled.
    begun: AtomicBool,
    /// Held by the thread that compiles it for a launch, which may have been stopped since.
    maker: Mutex<Weak<()>>,
    /// Nanoseconds of launches without it.
    spent: AtomicU64,
    /// Lane instructions of launches without it.
    steps: AtomicU64,
}

/// The code compiled again with optimisation.
#[derive(Default)]
struct Again {
    code: Later,
    /// Nanoseconds of launches with the code that is not optimised.
    spent: AtomicU64,
    /// Nanoseconds that earlier processes spent on compiling it, and lost because they ended.
    lost: AtomicU64,
}

/// The result of a compilation.
enum Made {
    Code {
        code: Arc<Compiled>,
        source: Source,
        took: Duration,
        /// The device functions that the kernel may call.
        calls: Vec<String>,
        /// Whether a launch has reported it.
        told: AtomicBool,
    },
    Not(String),
}

/// The compiler of this machine.
pub(super) fn compiler() -> Result<super::Compiler, String> {
    let about = ptx_jit::about().map_err(|error| error.to_string())?;
    let (major, minor, patch) = about.version;
    Ok(super::Compiler {
        version: format!("{major}.{minor}.{patch}"),
        library: about.library,
        cpu: ptx_jit::Target::host().level().name(),
    })
}

/// A processor for which native code is generated; it need not be this machine's.
///
/// As text: a level (`avx512`, `avx2`, `baseline`) or `native`, followed by `tuning=NAME`, `+FEATURE`,
/// `-FEATURE` and single values of the tuning, separated by commas; for example `avx512,tuning=zen4`. A level
/// alone is any processor of this level. A tuning adds the features of its micro-architecture. `native` is
/// the processor of this machine. `opt=0` or `opt=1` is the level at which LLVM optimises, whatever the size
/// of the code. The text determines the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target(ptx_jit::Target);

impl From<Cpu> for Target {
    /// This machine's processor, restricted to that level; if the machine lacks the level, any processor that
    /// has it.
    fn from(cpu: Cpu) -> Self {
        Self(ptx_jit::Target::host_at(match cpu {
            Cpu::Avx512 => ptx_jit::Level::Avx512,
            Cpu::Avx2 => ptx_jit::Level::Avx2,
            Cpu::Baseline => ptx_jit::Level::Baseline,
        }))
    }
}

impl std::str::FromStr for Target {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        ptx_jit::Target::parse(text).map(Self).map_err(Error::caller)
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Target {
    /// The instructions that this machine lacks to execute code for the target; `None` if it has all.
    pub fn missing_here(self) -> Option<&'static str> {
        self.0.missing_here()
    }
}

impl Natives {
    fn slot(&self, shape: [u32; 3]) -> Arc<Slot> {
        let mut kept = self.by_shape.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = match kept.iter().position(|slot| slot.shape == shape) {
            Some(at) => kept.remove(at),
            None => {
                if kept.len() >= SHAPES {
                    drop(kept.remove(0));
                }
                Arc::new(Slot {
                    shape,
                    made: OnceLock::new(),
                    rest: Later::default(),
                    again: Again::default(),
                    scalar: Scalar::default(),
                    looked: AtomicBool::new(false),
                    lost: AtomicU64::new(0),
                    begun: AtomicBool::new(false),
                    maker: Mutex::default(),
                    spent: AtomicU64::new(0),
                    steps: AtomicU64::new(0),
                })
            }
        };
        kept.push(Arc::clone(&slot));
        slot
    }
}

impl Slot {
    /// The code that was made first; it may be all of it.
    fn first(&self) -> Option<&Arc<Compiled>> {
        match self.made.get()? {
            Made::Code { code, .. } => Some(code),
            Made::Not(_) => None,
        }
    }

    /// All code that there is.
    fn code(&self) -> Option<&Arc<Compiled>> {
        self.rest.code().or_else(|| self.first())
    }

    /// All code that there is, for a launch that begins: optimised if possible.
    fn best(&self) -> Option<&Arc<Compiled>> {
        self.again.code.code().or_else(|| self.code())
    }

    /// Whether there is code, of which a part has yet to be compiled.
    fn is_partial(&self) -> bool {
        self.first().is_some_and(|first| first.is_partial()) && !self.rest.is_done()
    }

    fn set(&self, kernel: &Kernel, found: Found, compiled: Source) {
        let Found { code, source, took } = found;
        let source = match source {
            ptx_jit::Source::Compiled => compiled,
            ptx_jit::Source::Memory => Source::Memory,
            ptx_jit::Source::Disk => Source::Disk,
        };
        // Another thread may have been faster, with an equal result.
        let calls = called_by(kernel);
        let _ = self.made.set(Made::Code { code, source, took, calls, told: AtomicBool::new(false) });
    }

    /// The time of launches without it, estimated from the executed instructions.
    fn estimate(&self) -> Duration {
        Duration::from_nanos(self.steps.load(Ordering::Relaxed).saturating_mul(NS_A_STEP))
    }

    /// Queries the caches for code.
    fn look(&self, compiler: &Compiler, kernel: &Kernel) {
        if !self.looked.swap(true, Ordering::Relaxed) {
            let lost = |found| {
                let lost = compiler.lost_time(kernel, self.shape, found).as_nanos();
                u64::try_from(lost).unwrap_or(u64::MAX)
            };
            match compiler.find(kernel, self.shape) {
                Some(found) => {
                    if found.code.unoptimised() > 0 {
                        self.again.lost.store(lost(Some(&found.code)), Ordering::Relaxed);
                    }
                    self.set(kernel, found, Source::Compiled);
                }
                None => self.lost.store(lost(None), Ordering::Relaxed),
            }
        }
    }

    fn make(&self, compiler: &Compiler, kernel: &Kernel, source: Source) {
        self.look(compiler, kernel);
        if self.made.get().is_none() {
            match compiled(|| compiler.compile(kernel, self.shape)) {
                Ok(found) => self.set(kernel, found, source),
                Err(why) => drop(self.made.set(Made::Not(why))),
            }
        }
    }

    /// Adds the state of the code to a report.
    fn tell(&self, compiler: &Compiler, ran: &mut Ran) {
        ran.refused_folder = compiler.refused_folder();
        match self.made.get() {
            Some(Made::Code { source, took, calls, told, .. }) => {
                let first = !told.swap(true, Ordering::Relaxed);
                ran.source = Some(if first { *source } else { Source::Kernel });
                ran.compiled = if first { *took } else { Duration::ZERO };
                ran.unoptimised = self.best().is_some_and(|code| code.unoptimised() > 0);
                let fallbacks = self.code().into_iter().flat_map(|code| code.fallbacks());
                ran.fallbacks = fallbacks.map(|(n, c)| (n.clone(), *c)).collect();
                ran.interpreted_functions.clone_from(calls);
            }
            Some(Made::Not(why)) => {
                ran.why_not = Some(why.clone());
                ran.no_compiler = compiler.session().err().map(|error| error.to_string());
            }
            None => {}
        }
    }
}

/// How long a launch waits for code that earlier processes did not finish: twice the time that they lost, so
/// that few processes wait in vain, however long it takes. Zero after the first call: one launch of a process
/// waits.
fn wait_for_lost(lost: &AtomicU64) -> Duration {
    Duration::from_nanos(lost.swap(0, Ordering::Relaxed).saturating_mul(2))
}

/// The estimated time to compile a kernel of so many instructions.
fn to_compile(instructions: u32) -> Duration {
    let beyond = FOR_EACH_BEYOND.saturating_mul(instructions.saturating_sub(MANY));
    TO_BEGIN + FOR_EACH.saturating_mul(instructions.min(MANY)) + beyond
}

/// A launch that began without native code, or with a part of it.
struct Waiting {
    /// Its stop conditions.
    until: Until,
    shared: Arc<Shared>,
    kernel: Arc<Kernel>,
    slot: Arc<Slot>,
    start: Instant,
    /// The estimated compile time.
    cost: Duration,
    /// Whether a single OS thread runs it.
    alone: bool,
    /// Whether CTAs that need code for single warps wait for it.
    for_rest: bool,
}

impl Waiting {
    /// Starts a compilation in the background, if it is worthwhile by now.
    fn consider(&self) {
        let spent = Duration::from_nanos(self.slot.spent.load(Ordering::Relaxed)) + self.start.elapsed();
        if spent > self.cost / 2 && !self.slot.begun.swap(true, Ordering::Relaxed) {
            let (kernel, slot) = (Arc::clone(&self.kernel), Arc::clone(&self.slot));
            let task = Task { wanted: Wanted::First, kernel, slot };
            self.shared.begin(task);
        }
    }
}

impl Supply for Waiting {
    fn native(&self) -> Option<&dyn Native> {
        if let Some(code) = self.slot.code() {
            return Some(&**code);
        }
        if self.slot.begun.load(Ordering::Relaxed) {
            return None;
        }
        if !self.alone {
            self.consider();
            return None;
        }
        if self.slot.estimate() < self.cost || self.slot.begun.swap(true, Ordering::Relaxed) {
            return None;
        }
        self.shared.make(&self.kernel, &self.slot, &self.until, None);
        if self.slot.is_partial() {
            self.shared.begin_rest(&self.kernel, &self.slot);
            self.slot.rest.wait(&self.until, None);
        }
        self.slot.code().map(|code| &**code as &dyn Native)
    }

    fn for_single_warps(&self) -> Option<&dyn Native> {
        if self.for_rest && self.slot.is_partial() {
            self.slot.rest.wait(&self.until, None);
        }
        self.native()
    }

    fn is_checked(&self) -> bool {
        matches!(self.kernel.native_needs(), NativeNeeds::Checks(_))
    }

    fn spend(&self, lane_steps: u64) {
        self.slot.steps.fetch_add(lane_steps, Ordering::Relaxed);
    }

    fn executed(&self, _steps: u64, _lane_steps: u64) {}
}

/// Why a launch with native code was interpreted.
fn why_not_native(kernel: &Kernel) -> &'static str {
    match kernel.native_needs() {
        NativeNeeds::Checks(checks) if checks.ordered => "accesses may race, which a tool follows",
        NativeNeeds::Checks(_) | NativeNeeds::Nothing | NativeNeeds::Events(_) => {
            "a tool follows addresses that only this launch has"
        }
    }
}

impl Shared {
    /// Compiles the code for a launch, unless the launch must stop first. A launch that has waited long
    /// enough continues without; the compilation continues.
    fn make(
        self: &Arc<Self>,
        kernel: &Arc<Kernel>,
        slot: &Arc<Slot>,
        until: &Until,
        at_most: Option<Duration>,
    ) {
        let start = Instant::now();
        let wait = || until.wait().filter(|_| at_most.is_none_or(|at_most| start.elapsed() < at_most));
        let maker = Arc::new(());
        loop {
            let mut current = slot.maker.lock().unwrap_or_else(PoisonError::into_inner);
            if current.strong_count() == 0 {
                *current = Arc::downgrade(&maker);
                break;
            }
            drop(current);
            let Some(wait) = wait() else { return };
            std::thread::sleep(wait);
        }
        slot.look(&self.compiler, kernel);
        if slot.made.get().is_some() || wait().is_none() {
            return;
        }
        slot.begun.store(true, Ordering::Relaxed);
        let (done, ended) = mpsc::channel::<()>();
        let task = (Arc::clone(self), Arc::clone(kernel), Arc::clone(slot));
        let thread = compiler_thread().spawn(move || {
            let (shared, kernel, slot) = task;
            slot.make(&shared.compiler, &kernel, Source::Compiled);
            drop((maker, done));
        });
        if let Err(error) = thread {
            drop(slot.made.set(Made::Not(format!("there is no thread to compile on: {error}"))));
            return;
        }
        loop {
            let Some(wait) = wait() else { return };
            if ended.recv_timeout(wait) == Err(mpsc::RecvTimeoutError::Disconnected) {
                return;
            }
        }
    }

    /// Queues the compilation of the rest of the code, unless it has begun.
    fn begin_rest(self: &Arc<Self>, kernel: &Arc<Kernel>, slot: &Arc<Slot>) {
        if slot.is_partial() && slot.rest.begin() {
            let (kernel, slot) = (Arc::clone(kernel), Arc::clone(slot));
            self.begin(Task { wanted: Wanted::Rest, kernel, slot });
        }
    }

    /// Counts a launch with code that is not optimised, and queues its compilation with optimisation once
    /// launches have cost enough.
    fn spend_unoptimised(
        self: &Arc<Self>,
        kernel: &Arc<Kernel>,
        slot: &Arc<Slot>,
        code: &Compiled,
        time: Duration,
    ) {
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let spent = slot.again.spent.fetch_add(time, Ordering::Relaxed).saturating_add(time);
        let cost = TO_OPTIMISE.saturating_mul(code.unoptimised());
        if Duration::from_nanos(spent) >= cost / OPTIMISES_EARLY {
            self.begin_again(kernel, slot);
        }
    }

    /// Queues the compilation with optimisation, unless it has begun.
    fn begin_again(self: &Arc<Self>, kernel: &Arc<Kernel>, slot: &Arc<Slot>) {
        if slot.again.code.begin() {
            let (kernel, slot) = (Arc::clone(kernel), Arc::clone(slot));
            self.begin(Task { wanted: Wanted::Optimised, kernel, slot });
        }
    }

    /// Waits for optimised code that earlier processes began and did not finish.
    fn wait_for_optimised(self: &Arc<Self>, kernel: &Arc<Kernel>, slot: &Arc<Slot>, until: &Until) {
        let at_most = wait_for_lost(&slot.again.lost);
        if !at_most.is_zero() {
            self.begin_again(kernel, slot);
            slot.again.code.wait(until, Some(at_most));
        }
    }
}

impl Drop for Jit {
    /// Cancels queued compilations; a running one continues.
    fn drop(&mut self) {
        self.shared.queues.clear();
    }
}

impl Jit {
    pub(crate) fn new(target: Option<Target>, team: Option<u32>, cache: CodeCache) -> Self {
        let (folder, bytes) = match cache {
            CodeCache::Off => (None, 0),
            CodeCache::Folder { path, bytes } => (Some(path), bytes),
        };
        guard_this_thread();
        let teams = match team {
            None => Teams::Auto,
            Some(0) => Teams::Threads,
            Some(1) => Teams::Never,
            Some(size) => Teams::Of(size),
        };
        let target = target.map_or_else(ptx_jit::Target::host, |target| target.0);
        let compiler = Compiler::new(target, teams, folder, bytes);
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get) as u64;
        Self { shared: Arc::new(Shared { compiler, queues: Queues::default(), cores }) }
    }

    /// Launches a kernel in the requested engine.
    pub(crate) fn launch(
        &self,
        kernel: &Arc<Kernel>,
        natives: &Natives,
        launch: &Launch,
        config: &LaunchConfig,
        ran: &mut Ran,
    ) -> Result<Result<LaunchReport, LaunchError>, Error> {
        if launch.engine == Engine::Interp {
            return Ok(kernel.launch(config));
        }
        if let NativeNeeds::Events(why) = kernel.native_needs() {
            if launch.engine == Engine::Jit {
                let name = &kernel.function().name;
                return Err(Error::caller(format!("no native code for `{name}`: {why}")));
            }
            ran.why_not = Some(why.clone());
            return Ok(kernel.launch(config));
        }
        guard_this_thread();
        let until = Until::of(config);
        let compiler = &self.shared.compiler;
        let slot = natives.slot(launch.block);
        let instructions: usize = kernel.function().blocks.iter().map(|block| block.insts.len() + 1).sum();
        let cost = to_compile(u32::try_from(instructions).unwrap_or(u32::MAX));
        let threads = match kernel.native_needs() {
            NativeNeeds::Nothing => launch.threads.map_or(self.shared.cores, u64::from).max(1),
            NativeNeeds::Checks(_) | NativeNeeds::Events(_) => 1,
        };
        let alone = threads == 1;
        if slot.made.get().is_none() {
            // The minimum cost in the interpreter: every instruction is executed once.
            let all = launch.grid.iter().chain(&launch.block).map(|n| u64::from(*n));
            let steps = all.fold(instructions as u64, u64::saturating_mul);
            let least = Duration::from_nanos(steps.saturating_mul(NS_A_STEP) / threads);
            let pays = match alone {
                true => least + slot.estimate() > cost,
                false => least > cost * WAITS,
            };
            let by_clock = launch.engine == Engine::Auto && !alone;
            let mut at_most = least;
            if by_clock && least + slot.estimate() > TO_LOOK {
                slot.look(compiler, kernel);
                at_most = at_most.max(wait_for_lost(&slot.lost));
            }
            // Compiling some kernels takes a thousand times the estimate.
            if launch.engine == Engine::Jit || pays || at_most > least {
                self.shared.make(kernel, &slot, &until, by_clock.then_some(at_most));
            }
        }
        self.shared.begin_rest(kernel, &slot);
        // Threads with much stack are started only for code that is complete.
        if slot.is_partial() && (alone || slot.code().is_some_and(|code| code.stack() > 0)) {
            slot.rest.wait(&until, None);
        }
        if !alone {
            self.shared.wait_for_optimised(kernel, &slot, &until);
        }
        let scalar = self.shared.scalar_code(kernel, &slot, (alone, &until));
        if let Some(code) = scalar.or(slot.best()) {
            slot.tell(compiler, ran);
            ran.native = true;
            if !slot.is_partial() || code.stack() > 0 {
                let start = Instant::now();
                let done =
                    self.shared.launch(kernel, (&slot, code), &until.rest(config), (alone, &until), ran);
                if code.unoptimised() > 0 {
                    self.shared.spend_unoptimised(kernel, &slot, code, start.elapsed());
                }
                if done.as_ref().is_ok_and(|report| !report.native) {
                    ran.native = false;
                    ran.why_not = Some(why_not_native(kernel).to_owned());
                }
                return Ok(done);
            }
        }
        if let Some(Made::Not(why)) = slot.made.get() {
            if launch.engine == Engine::Jit {
                let name = &kernel.function().name;
                return Err(Error::caller(format!("no native code for `{name}`: {why}")));
            }
            ran.why_not = Some(why.clone());
            ran.no_compiler = compiler.session().err().map(|error| error.to_string());
            return Ok(kernel.launch(&until.rest(config)));
        }
        let start = Instant::now();
        let (shared, kernel_too) = (Arc::clone(&self.shared), Arc::clone(kernel));
        let waiting = Arc::new(Waiting {
            until: until.clone(),
            shared,
            kernel: kernel_too,
            slot: Arc::clone(&slot),
            start,
            cost,
            alone,
            for_rest: launch.engine == Engine::Jit,
        });
        let supply: Arc<dyn Supply> = Arc::<Waiting>::clone(&waiting);
        let done = kernel.launch_supplied(&until.rest(config), &supply);
        let report = match &done {
            Ok(report) => Some(report),
            Err(LaunchError::Trap(_, report)) => Some(&**report),
            Err(LaunchError::Invalid(_) | LaunchError::Memory(_)) => None,
        };
        if !ran.native && report.is_some_and(|report| report.native_steps > 0) {
            ran.native = true;
            slot.tell(compiler, ran);
        }
        if !alone && slot.made.get().is_none() {
            waiting.consider();
        }
        if matches!(slot.made.get(), Some(Made::Not(_))) {
            slot.tell(compiler, ran);
        }
        let spent = u64::try_from(waiting.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        slot.spent.fetch_add(spent, Ordering::Relaxed);
        Ok(done)
    }

    /// The code of a kernel as text.
    pub(crate) fn listing(&self, kernel: &Kernel, block: [u32; 3], what: Listing) -> Result<String, Error> {
        let what = match what {
            Listing::Wir => ptx_jit::Listing::Wir,
            Listing::Remarks => ptx_jit::Listing::Remarks,
            Listing::Llvm => ptx_jit::Listing::Llvm,
            Listing::Asm => ptx_jit::Listing::Asm,
        };
        let (session, teams) = (self.shared.compiler.session(), self.shared.compiler.teams());
        let session = session.map_err(|error| Error::caller(error.to_string()))?;
        std::thread::scope(|scope| {
            let list = || ptx_jit::listing(session, kernel, block, teams, what);
            let thread = compiler_thread().spawn_scoped(scope, list);
            let thread = thread
                .map_err(|error| Error::caller(format!("there is no thread to compile on: {error}")))?;
            let text = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            text.map_err(|error| Error::caller(error.to_string()))
        })
    }
}
