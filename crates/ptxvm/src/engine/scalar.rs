//! Scalar code, which executes one thread at a time: when it is compiled, and which launches use it.
//!
//! Where lanes of a warp hardly ever do the same, it is faster. It is compiled in the background once
//! launches have executed many instructions with few active lanes. CTAs that begin afterwards use it, unless
//! whole launches of warps have taken less time for each instruction of a thread. Where up to half of the
//! lanes are active, either code may be faster, for example because loads of neighbours are apart; then
//! whole launches have been timed before. With one OS thread the launch compiles it, and the numbers of
//! instructions alone decide, so it must have few active lanes.
//!
//! Invariant: code of warps exists before scalar code does, and continues where a thread leaves it.

use super::later::{Later, Task, Wanted};
use super::{Shared, Slot};
use crate::engine::Ran;
use crate::engine::until::Until;
use ptx_exec::launch::{Kernel, LaunchConfig, LaunchError, LaunchReport};
use ptx_exec::native::{Native, Supply};
use ptx_exec::watch::NativeNeeds;
use ptx_jit::{Compiled, Teams};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// The most active lanes of a warp, on average, with which scalar code is expected to be faster. Measured on
/// a Zen 4: with 5 and 9.5 it takes a quarter of the time, with 12 it takes 1.4 times the time.
const SCALAR_MOST_LANES: u64 = 10;
/// The same where both are timed. Measured on a Zen 4: rows of a sparse matrix (12 lanes) and shortest paths
/// take 0.85 times the time.
const SCALAR_MOST_TIMED_LANES: u64 = 16;
/// So many launches of scalar code are timed before it counts as slower. Chosen: the first one is slower than
/// the others, and other programs disturb single ones.
const SCALAR_TIMED_LAUNCHES: u64 = 3;
/// So many instructions of threads with few active lanes pay for scalar code. Chosen: some 50 ms of one core.
const SCALAR_AFTER: u64 = 1 << 25;
/// After so many launches with many active lanes, launches are no longer watched. Chosen.
const SCALAR_DENSE_LAUNCHES: u64 = 2;
/// The fewest instructions of threads whose time is compared. Chosen: shorter launches are mostly overhead.
const SCALAR_LEAST: u64 = 1 << 16;

/// Scalar code, or the state before there is any.
#[derive(Default)]
pub(super) struct Scalar {
    pub(super) code: Later,
    /// Whether the kernel may have it.
    possible: OnceLock<bool>,
    /// Instructions of threads that were executed with few active lanes.
    sparse: AtomicU64,
    /// Launches with many active lanes.
    dense: AtomicU64,
    /// The least time that an instruction of a thread has taken in warps and in scalar code, in picoseconds;
    /// 0 if it is not known.
    times: [AtomicU64; 2],
    /// Timed launches of scalar code.
    timed: AtomicU64,
}

impl Scalar {
    /// Whether launches have executed so many instructions with few active lanes that it pays to compile it.
    fn pays(&self) -> bool {
        self.sparse.load(Ordering::Relaxed) >= SCALAR_AFTER
    }

    /// The code, unless it is known to take longer than that of warps. `alone`: time does not count.
    fn faster(&self, alone: bool) -> Option<&Arc<Compiled>> {
        let [warps, scalar] = self.times.each_ref().map(|time| time.load(Ordering::Relaxed));
        let is_known = self.timed.load(Ordering::Relaxed) >= SCALAR_TIMED_LAUNCHES;
        self.code.code().filter(|_| alone || warps == 0 || scalar <= warps || !is_known)
    }

    /// The code, if launches use it.
    fn chosen(&self, alone: bool) -> Option<&Arc<Compiled>> {
        self.faster(alone).filter(|_| self.pays())
    }

    /// Counts a launch.
    fn count(&self, report: &LaunchReport, is_scalar: bool) {
        if report.native_steps < report.steps / 2 || report.thread_instructions < SCALAR_LEAST {
            return;
        }
        let (instructions, threads) = (report.thread_instructions, u128::from(report.threads));
        let time = report.elapsed.as_nanos() * 1000 * threads / u128::from(instructions);
        let time = u64::try_from(time).unwrap_or(u64::MAX).max(1);
        let least = &self.times[usize::from(is_scalar)];
        let _ = least.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |old| {
            (old == 0 || time < old).then_some(time)
        });
        if is_scalar {
            self.timed.fetch_add(1, Ordering::Relaxed);
        } else if instructions >= report.steps.saturating_mul(SCALAR_MOST_TIMED_LANES) {
            self.dense.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts instructions of a launch, if they were executed with fewer active lanes.
    fn add(&self, steps: u64, lane_steps: u64, fewer_than: u64) {
        if steps > 0 && lane_steps < steps.saturating_mul(fewer_than) && lane_steps > steps {
            self.sparse.fetch_add(lane_steps, Ordering::Relaxed);
        }
    }

    /// Whether launches of a kernel are to be watched, because scalar code may be faster.
    fn is_unknown(&self, kernel: &Kernel) -> bool {
        !self.code.is_done()
            && self.dense.load(Ordering::Relaxed) < SCALAR_DENSE_LAUNCHES
            && *self.possible.get_or_init(|| ptx_jit::may_be_scalar(kernel.function()))
    }
}

/// A launch with native code of warps that may switch to scalar code.
struct Sparse {
    shared: Arc<Shared>,
    kernel: Arc<Kernel>,
    slot: Arc<Slot>,
    /// The code that it begins with.
    warps: Arc<Compiled>,
    /// The scalar code, once it has switched.
    scalar: OnceLock<Arc<Compiled>>,
    /// Its stop conditions, if a single OS thread runs it.
    alone: Option<Until>,
}

impl Supply for Sparse {
    fn native(&self) -> Option<&dyn Native> {
        if self.scalar.get().is_none()
            && let Some(code) = self.slot.scalar.chosen(self.alone.is_some())
        {
            let _ = self.scalar.set(Arc::clone(code));
        }
        Some(&**self.scalar.get().unwrap_or(&self.warps))
    }

    fn for_single_warps(&self) -> Option<&dyn Native> {
        self.native()
    }

    fn is_checked(&self) -> bool {
        false
    }

    fn spend(&self, _lane_steps: u64) {}

    fn executed(&self, steps: u64, lane_steps: u64) {
        let scalar = &self.slot.scalar;
        scalar.add(steps, lane_steps, SCALAR_MOST_LANES);
        if scalar.pays() {
            self.shared.begin_scalar(&self.kernel, &self.slot, self.alone.as_ref());
        }
    }
}

impl Shared {
    /// The scalar code that a launch begins with; `None`: it begins with code of warps.
    pub(super) fn scalar_code<'a>(
        self: &Arc<Self>,
        kernel: &Arc<Kernel>,
        slot: &'a Arc<Slot>,
        (alone, until): (bool, &Until),
    ) -> Option<&'a Arc<Compiled>> {
        if slot.code().is_none() || slot.is_partial() {
            return None;
        }
        match self.compiler.teams() {
            Teams::Threads => {
                self.begin_scalar(kernel, slot, Some(until));
                slot.scalar.faster(true)
            }
            Teams::Auto if slot.scalar.pays() => {
                self.begin_scalar(kernel, slot, alone.then_some(until));
                slot.scalar.chosen(alone)
            }
            Teams::Auto | Teams::Never | Teams::Of(_) => None,
        }
    }

    /// Launches a kernel with code that is complete, and may switch from code of warps to scalar code.
    pub(super) fn launch(
        self: &Arc<Self>,
        kernel: &Arc<Kernel>,
        (slot, code): (&Arc<Slot>, &Arc<Compiled>),
        config: &LaunchConfig,
        (alone, until): (bool, &Until),
        ran: &mut Ran,
    ) -> Result<LaunchReport, LaunchError> {
        let may_switch = self.compiler.teams() == Teams::Auto
            && !code.is_scalar()
            && code.unoptimised() == 0
            && matches!(kernel.native_needs(), NativeNeeds::Nothing)
            && slot.scalar.is_unknown(kernel);
        // Code that needs much stack is used only by launches that begin with it.
        let is_watched = may_switch && code.stack() == 0;
        let done = if is_watched {
            let (shared, kernel_too) = (Arc::clone(self), Arc::clone(kernel));
            let (slot, warps) = (Arc::clone(slot), Arc::clone(code));
            let (scalar, alone) = (OnceLock::new(), alone.then(|| until.clone()));
            let supply: Arc<dyn Supply> =
                Arc::new(Sparse { shared, kernel: kernel_too, slot, warps, scalar, alone });
            kernel.launch_supplied(config, &supply)
        } else {
            let native: Arc<dyn Native> = Arc::<Compiled>::clone(code);
            kernel.launch_with(config, Some(&native))
        };
        ran.scalar = code.is_scalar() || is_watched && slot.scalar.chosen(alone).is_some();
        // The time of a launch that has switched says nothing.
        let is_mixed = is_watched && slot.scalar.code.is_done();
        if let Some(report) = done.as_ref().ok().filter(|_| !is_mixed && code.unoptimised() == 0) {
            slot.scalar.count(report, code.is_scalar());
            let (steps, lane_steps) = (report.steps, report.thread_instructions);
            // While it was watched, those of the fewest lanes were counted.
            let is_counted = is_watched && lane_steps < steps.saturating_mul(SCALAR_MOST_LANES);
            if may_switch && !is_counted {
                let fewer_than = if alone { SCALAR_MOST_LANES } else { SCALAR_MOST_TIMED_LANES };
                slot.scalar.add(steps, lane_steps, fewer_than);
            }
        }
        done
    }

    /// Compiles scalar code, unless it has begun: beside the launch, or while the launch waits until then.
    fn begin_scalar(self: &Arc<Self>, kernel: &Arc<Kernel>, slot: &Arc<Slot>, until: Option<&Until>) {
        if !slot.scalar.code.begin() {
            return;
        }
        let task = Task { wanted: Wanted::Scalar, kernel: Arc::clone(kernel), slot: Arc::clone(slot) };
        match until {
            Some(until) => self.wait_for(task, until),
            None => self.begin(task),
        }
    }
}
