//! The state that the threads of a launch share: its description, the counters of CTAs and instructions, and
//! its results.
//!
//! Invariant: counters only grow, and `stop_at` only becomes less.

use super::cta::Cta;
use crate::bound::Code;
use crate::context::{End, LaunchContext};
use crate::fault_context::LaneRegisters;
use crate::interp::Stopped;
use crate::mem::{LocalLayout, Memory, MemoryError, Reach};
use crate::native::{ExitCounts, Native, NativeCache, Supply};
use crate::stamps::Stamps;
use crate::warp::{EventCounts, GridShape};
use crate::watch::{Interests, LaunchFacts, Replaced, Watch};
use ptx::check::module::{AddressSize, Source};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Instant;

/// How many CTAs a kernel keeps for the next launch, one per thread.
const CACHED_CTAS: usize = 64;

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

    pub(super) fn end(&self) -> End<'_> {
        let enough = self.watch.as_ref().map(|(watch, _)| watch.stop());
        let conflict = self.stamps.as_ref().map(|stamps| stamps.conflict());
        End { deadline: self.deadline, cancel: self.cancel.as_deref(), enough, conflict }
    }

    /// `stack`: the bytes of stack that the thread has for native code ([`Native::stack`]).
    pub(super) fn context(&self, stack: usize) -> LaunchContext<'_> {
        LaunchContext {
            code: &self.code,
            stack,
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
pub(super) struct Fits(pub(super) [u32; 3], pub(super) u64, pub(super) Option<Weak<dyn Native>>);

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
pub(super) struct CachedCta {
    pub(super) fits: Fits,
    pub(super) cta: Option<Box<Cta>>,
    pub(super) cache: NativeCache,
}

impl CtaCache {
    fn list(&self) -> MutexGuard<'_, Vec<CachedCta>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn take(&self, fits: Fits) -> CachedCta {
        let mut list = self.list();
        let found = list.iter().position(|cached| cached.fits == fits).map(|at| list.swap_remove(at));
        found.unwrap_or_else(|| CachedCta { fits, cta: None, cache: NativeCache::default() })
    }

    pub(super) fn give(&self, cached: CachedCta) {
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

/// The state that the threads of a launch share.
pub(super) struct Launching {
    pub(super) run: GridRun,
    pub(super) next: AtomicU64,
    pub(super) count: u64,
    pub(super) threads: u32,
    /// CTAs with this start position or a later one must not run. `u64::MAX` until a trap or limit.
    pub(super) stop_at: AtomicU64,
    pub(super) steps: AtomicU64,
    pub(super) lane_steps: AtomicU64,
    pub(super) native_steps: AtomicU64,
    pub(super) fallback_steps: AtomicU64,
    /// CTAs that have finished.
    pub(super) finished: Arc<AtomicU64>,
    /// Bytes charged against the output limit, and dropped bytes.
    pub(super) printed: AtomicU64,
    pub(super) dropped: AtomicU64,
    pub(super) found: Mutex<Found>,
    /// The next slot numbers for watched CTAs and warps.
    pub(super) slots: [AtomicU32; 2],
}

#[derive(Default)]
pub(super) struct Found {
    pub(super) trap: Option<FoundTrap>,
    pub(super) error: Option<MemoryError>,
    pub(super) output: Vec<(u64, Vec<u8>)>,
    pub(super) events: EventCounts,
    pub(super) exits: ExitCounts,
}

/// A trap and the start position of its CTA.
pub(super) struct FoundTrap {
    pub(super) trap: GridTrap,
    pub(super) place: u64,
}

impl Launching {
    pub(super) fn found(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether some CTAs must not continue.
    pub(super) fn has_stopped(&self) -> bool {
        self.stop_at.load(Ordering::Relaxed) != u64::MAX
    }
}
