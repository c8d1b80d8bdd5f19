//! Observers: code that is notified of what kernels do while the interpreter runs them.
//!
//! A [`Watch`] is attached to a [`Memory`](crate::mem::Memory) once
//! ([`Memory::watch`](crate::mem::Memory::watch)). From then on every launch on that memory is watched: it
//! runs in the interpreter, on one OS thread, and each event is reported to all observers in the order in
//! which it happens. Events carry a [`Site`]: the instruction and the warp. [`Site::inst`] gives the
//! instruction with its operation, `.sem`, `.scope` and operands; some events also pass registers.
//!
//! Invariants: an observer affects a program only through its return values, such as a mask of lanes that
//! skip an access, or a `free` to ignore. Lanes that take part in an access pass the same checks as in an
//! unwatched launch. Without observers, a watched place costs one comparison of a pointer with null, per
//! memory access and per block.
//!
//! This module makes no judgements. The tools are observers in `ptx-sanitize`.

mod events;
mod memory_map;
mod place;
mod site;

pub use events::{
    Access, AccessKind, Allocated, ArgumentMove, BarrierEvent, CtaFacts, HostAccess, HostAccessKind,
    LaunchFacts, MovePlace, Refused, SharedVariable, SyncPart, WarpSyncEvent,
};
pub use memory_map::MemoryMap;
pub use place::Place;
pub use site::{Site, WarpFacts};

use crate::lanes::{LaneMask, Registers};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Receives the events of kernels. Every method has a default that does nothing.
///
/// Methods are called with a lock held, so an observer must not call anything of the machine that reports
/// events. Of [`Memory`](crate::mem::Memory) it may call the look-ups `nearest`, `name_at` and `space_of`.
pub trait Observer: Send {
    /// A launch begins.
    fn launch_begins(&mut self, _launch: &Arc<LaunchFacts>) {}
    /// A launch has ended; `trapped`: by a trap or a limit.
    fn launch_ends(&mut self, _launch: &Arc<LaunchFacts>, _trapped: bool) {}
    /// A CTA begins. Its shared memory and the local memory of its warps are uninitialised.
    fn cta_begins(&mut self, _launch: &Arc<LaunchFacts>, _cta: &CtaFacts) {}
    /// A CTA has ended, or the launch was stopped.
    fn cta_ends(&mut self, _launch: &Arc<LaunchFacts>, _cta: &CtaFacts) {}

    /// Whether the machine continues after misused barriers and warp-synchronous instructions, which are
    /// otherwise traps or deadlocks. An observer that returns true reports them.
    fn mends(&self) -> bool {
        false
    }

    /// An instruction will be executed by `lanes`. `group` are the lanes at the instruction, before its
    /// guard. Also called if the guard is false in every lane, and for terminators; for those that wait
    /// (barriers, warp-synchronous instructions) when lanes arrive.
    fn step(&mut self, _site: &Site, _lanes: LaneMask, _group: LaneMask, _regs: &Registers) {}
    /// An instruction was executed by `lanes`; `regs` are the registers afterwards. Called once for each
    /// [`Observer::step`] that is not a terminator and has lanes, and for warp-synchronous instructions when
    /// they complete.
    fn stepped(&mut self, _site: &Site, _lanes: LaneMask, _regs: &Registers) {}
    /// A memory access will take place. Returns the lanes that must not take part: such a lane stores
    /// nothing, loads 0, and does not trap.
    fn access(&mut self, _site: &Site, _access: &Access<'_>) -> LaneMask {
        0
    }
    /// A conditional branch diverged: of the lanes `group` at it, the lanes `taken` take it.
    fn branches(&mut self, _site: &Site, _taken: LaneMask, _group: LaneMask) {}
    /// Lanes arrive at a barrier of the CTA, their warp arrives, or the barrier completes.
    fn barrier(&mut self, _site: &Site, _event: &BarrierEvent<'_>) {}
    /// Lanes arrive at a warp-synchronous instruction, or it will execute for all its lanes.
    fn warp_sync(&mut self, _site: &Site, _event: &WarpSyncEvent<'_>) {}
    /// `lanes` enter a function. `site` is the call, `act` the callee's activation; `fresh`: the activation
    /// is new, and so are its registers.
    fn enters(&mut self, _site: &Site, _act: u32, _function: u32, _lanes: LaneMask, _fresh: bool) {}
    /// Lanes return from the activation of `site` to the activation `to`.
    fn returns(&mut self, _site: &Site, _to: u32, _lanes: LaneMask) {}
    /// Arguments or results of a call are copied. Their memory accesses are reported separately.
    fn moves(&mut self, _site: &Site, _lanes: LaneMask, _moved: &ArgumentMove) {}
    /// Lanes exit: by `exit`, `ret` of the kernel, or falling off its end.
    fn exits(&mut self, _site: &Site, _lanes: LaneMask) {}
    /// `malloc` of a lane returned an address, or 0 if there is no memory.
    fn malloc(&mut self, _site: &Site, _lane: usize, _bytes: u64, _address: u64) {}
    /// A lane will call `free`; true: ignore the call.
    fn free(&mut self, _site: &Site, _lane: usize, _address: u64) -> bool {
        false
    }
    /// `vprintf` of a lane will read the value of an argument and pass it to the host.
    fn prints(&mut self, _site: &Site, _lane: usize, _address: u64, _bytes: u64) {}
    /// The warps of a CTA wait for each other. `site` is that of the first waiting warp. A deadlock is a
    /// trap, unless an observer [recovers](Observer::mends).
    fn deadlock(&mut self, _site: &Site) {}

    /// The host, or a kernel's `malloc`, allocated memory.
    fn allocated(&mut self, _what: &Allocated<'_>) {}
    /// Memory was freed by the host or by a kernel's `free`.
    fn freed(&mut self, _address: u64, _bytes: u64) {}
    /// The program, or its context, ends. Memory that is not freed yet is leaked.
    fn ends(&mut self) {}
    /// The host reads or writes device memory; the access is in bounds.
    fn host(&mut self, _access: &HostAccess<'_>) {}
}

/// The observers of a memory.
pub struct Watch {
    observers: Mutex<Vec<Box<dyn Observer>>>,
    quarantine: u64,
    stop: Arc<AtomicBool>,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").field("quarantine", &self.quarantine).finish_non_exhaustive()
    }
}

impl Watch {
    /// Observers, in the order of their calls. `quarantine`: this many bytes of freed memory are not reused,
    /// so that later accesses to them can be recognised. If `stop` becomes true, launches are cancelled soon
    /// afterwards.
    pub fn new(observers: Vec<Box<dyn Observer>>, quarantine: u64, stop: Arc<AtomicBool>) -> Arc<Self> {
        Arc::new(Self { observers: Mutex::new(observers), quarantine, stop })
    }

    /// Reports the end of the program to observers.
    pub fn end(&self) {
        self.each(|observer| observer.ends());
    }

    /// The flag that cancels launches.
    pub(crate) fn stop(&self) -> &AtomicBool {
        &self.stop
    }

    /// Bytes of freed memory that are not reused.
    pub fn quarantine(&self) -> u64 {
        self.quarantine
    }

    /// Whether the machine continues after misuse: see [`Observer::mends`].
    pub(crate) fn mends(&self) -> bool {
        self.observers().iter().any(|observer| observer.mends())
    }

    fn observers(&self) -> MutexGuard<'_, Vec<Box<dyn Observer>>> {
        self.observers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls each observer.
    pub(crate) fn each(&self, mut tell: impl FnMut(&mut dyn Observer)) {
        for observer in self.observers().iter_mut() {
            tell(observer.as_mut());
        }
    }

    /// Calls each observer; true if any call returns true.
    pub(crate) fn any(&self, mut ask: impl FnMut(&mut dyn Observer) -> bool) -> bool {
        self.observers().iter_mut().fold(false, |any, observer| ask(observer.as_mut()) | any)
    }

    /// Calls each observer, and joins the masks.
    pub(crate) fn lanes(&self, mut ask: impl FnMut(&mut dyn Observer) -> LaneMask) -> LaneMask {
        self.observers().iter_mut().fold(0, |lanes, observer| lanes | ask(observer.as_mut()))
    }
}
