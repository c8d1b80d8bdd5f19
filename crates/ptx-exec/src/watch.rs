//! Observers: code that is notified of what kernels do while the interpreter runs them.
//!
//! A [`Watch`] is attached to a [`Memory`](crate::mem::Memory) once
//! ([`Memory::watch`](crate::mem::Memory::watch)). From then on every launch on that memory is watched: each
//! event in the interpreter is reported to all observers in the order in which it happens, and one OS thread
//! at a time executes in the interpreter. Events carry a [`Site`]: the instruction and the warp.
//! [`Site::inst`] gives the instruction with its operation, `.sem`, `.scope` and operands; some events also
//! pass registers.
//!
//! Native code reports no events. It runs a watched kernel only if every observer agrees
//! ([`Observer::native_checks`], [`Observer::allocations`]), and leaves to the interpreter what an observer
//! may report. Observers learn that a warp continues in the interpreter by [`Observer::resumes`]. Only a
//! launch that begins with native code runs on several OS threads.
//!
//! Watched launches of one memory run one after another, also those of different streams, because observers
//! keep their state by warp. A kernel that waits for another launch which was submitted later therefore never
//! ends.
//!
//! Invariants: an observer affects a program only through its return values, such as a mask of lanes that
//! skip an access, or a `free` to ignore. Lanes that take part in an access pass the same checks as in an
//! unwatched launch. Without observers, a watched place costs one comparison of a pointer with null, per
//! memory access and per block.
//!
//! This module makes no judgements. The tools are observers in `ptx-sanitize`.

mod access_checks;
mod events;
mod interest;
mod memory_map;
mod native_checks;
mod place;
mod site;

pub use access_checks::AccessChecks;
pub(crate) use access_checks::{Bounds, Replaced};
pub use events::{
    Access, AccessKind, Allocated, ArgumentMove, BarrierEvent, CtaFacts, HostAccess, HostAccessKind,
    HostMistake, LaunchFacts, MovePlace, Refused, SharedVariable, SyncPart, WarpSyncEvent,
};
pub use interest::{Interest, Interests};
pub use memory_map::MemoryMap;
pub use native_checks::{
    AccessObjects, Allocation, InstObjects, KernelFacts, NativeChecks, NativeNeeds, Object,
};
pub use place::Place;
pub use site::{Site, WarpFacts};

use crate::lanes::{LaneMask, Registers};
use crate::shadow::ShadowMemory;
use crate::stamps::Stamps;
use ptx::ir::Function;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

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

    /// What native code must check of a kernel so that the observer needs the events of those instructions
    /// alone that the interpreter executes: where a check fails.
    ///
    /// # Errors
    /// Why the observer needs all events of the kernel.
    fn native_checks(&mut self, _kernel: &KernelFacts<'_>) -> Result<NativeChecks, String> {
        Err("a tool needs the events of every instruction".to_owned())
    }
    /// The allocations that [`Observer::native_checks`] has numbered, for a launch that has begun; `None` in
    /// the list: any address is allowed. `None`: the launch must run in the interpreter.
    fn allocations(&mut self, _launch: &LaunchFacts) -> Option<Vec<Option<Allocation>>> {
        Some(Vec::new())
    }
    /// Lanes are at the place of the site, and events of instructions that they have executed were not told:
    /// native code has executed them, or [`Observer::access_checks`] replaced their events.
    fn resumes(&mut self, _site: &Site, _lanes: LaneMask) {}
    /// Whether native code may execute these lanes from the site on, which is the start of a block. Asked
    /// each time that the interpreter could enter native code; what [`Observer::native_checks`] says holds
    /// for native code that begins at the start of the kernel.
    fn permits_native(&mut self, _site: &Site, _lanes: LaneMask) -> bool {
        true
    }

    /// The checks of accesses after which the observer needs no [`Observer::step`] and [`Observer::stepped`]
    /// of a launch that has begun, and [`Observer::access`] of those accesses alone that fail a check or that
    /// the machine refuses, each after an [`Observer::resumes`] for its lanes. `None`: it needs all events.
    fn access_checks(&mut self, _launch: &Arc<LaunchFacts>) -> Option<AccessChecks> {
        None
    }

    /// Whether the observer records undefined bits in shadow memory. Windows that begin are then marked as
    /// undefined.
    fn wants_shadow(&self) -> bool {
        false
    }
    /// The memory that the observer is attached to has this shadow, in which everything is defined.
    fn shadowed(&mut self, _shadow: &Arc<ShadowMemory>) {}

    /// Whether the observer compares accesses by stamps.
    fn wants_stamps(&self) -> bool {
        false
    }
    /// The memory that the observer is attached to has these stamps.
    fn stamped(&mut self, _stamps: &Arc<Stamps>) {}
    /// The launch that has begun executes native code that compares stamps. If the stamps find a conflict,
    /// the launch is repeated.
    fn compares_stamps(&mut self, _launch: &Arc<LaunchFacts>) {}
    /// The stamps have found a conflict: memory is as it was when the launch began, and the interpreter
    /// executes all of it.
    fn repeats(&mut self, _launch: &Arc<LaunchFacts>) {}

    /// Whether the machine continues after misused barriers and warp-synchronous instructions, which are
    /// otherwise traps or deadlocks. An observer that returns true reports them.
    fn mends(&self) -> bool {
        false
    }

    /// The instructions of a function for which the observer needs [`Observer::step`] and
    /// [`Observer::stepped`]: by block, and in it by instruction, the terminator last. Called once per
    /// function, before it runs. Events that were not asked for may come all the same.
    fn interests(&self, function: &Function) -> Vec<Vec<Interest>> {
        function.blocks.iter().map(|block| vec![Interest::ALL; block.insts.len() + 1]).collect()
    }
    /// Whether the observer needs [`Observer::access`]. If no observer does, accesses cost as much as
    /// unwatched.
    fn sees_accesses(&self) -> bool {
        true
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
    /// The coordinates of a lane are outside of a surface, in an instruction with `.trap`. Returns whether
    /// the lane skips the access; otherwise it traps.
    fn surface_outside(&mut self, _site: &Site, _lane: usize, _why: &str) -> bool {
        false
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
    /// The host misuses device memory; the call that does so fails, or has no effect.
    fn host_mistake(&mut self, _mistake: &HostMistake<'_>) {}
}

/// The observers of a memory.
pub struct Watch {
    observers: Mutex<Vec<Box<dyn Observer>>>,
    /// Held by the launch that runs.
    launching: Mutex<()>,
    /// Held by the thread whose events observers receive.
    turn: Mutex<()>,
    /// Whether an observer wants to see accesses, and whether one mends mistakes at barriers.
    accesses: bool,
    mends: bool,
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
        let accesses = observers.iter().any(|observer| observer.sees_accesses());
        let mends = observers.iter().any(|observer| observer.mends());
        let (observers, launching, turn) = (Mutex::new(observers), Mutex::default(), Mutex::default());
        Arc::new(Self { observers, launching, turn, accesses, mends, quarantine, stop })
    }

    /// Reports the end of the program to observers.
    pub fn end(&self) {
        self.each(|observer| observer.ends());
    }

    /// Reports a mistake of the host with device memory.
    pub fn mistake(&self, mistake: &HostMistake<'_>) {
        self.each(|observer| observer.host_mistake(mistake));
    }

    /// Waits, for at most `patience`, until no launch runs and no event is being handled. Returns whether
    /// that is so. For the end of a process, when a thread that holds a lock may no longer exist.
    pub fn rests(&self, patience: Duration) -> bool {
        let end = Instant::now() + patience;
        loop {
            let free = !matches!(self.launching.try_lock(), Err(TryLockError::WouldBlock))
                && !matches!(self.observers.try_lock(), Err(TryLockError::WouldBlock));
            if free || Instant::now() >= end {
                return free;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits for the running launch, and keeps others from starting while the guard lives.
    pub(crate) fn alone(&self) -> MutexGuard<'_, ()> {
        self.launching.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other thread of the launch executes instructions in the interpreter, and keeps others
    /// from it while the guard lives: several events of one instruction belong together.
    pub(crate) fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The instructions of a function that observers ask for.
    pub(crate) fn interests(&self, function: &Function) -> Interests {
        let mut all = Interests::none(function);
        for (number, observer) in self.observers().iter().enumerate() {
            all.add(number, &observer.interests(function));
        }
        all
    }

    /// Calls the observers whose numbers are in a mask.
    #[inline]
    pub(crate) fn some(&self, mask: u8, mut tell: impl FnMut(&mut dyn Observer)) {
        let mut observers = self.observers();
        for (number, observer) in observers.iter_mut().enumerate() {
            if mask >> number & 1 != 0 {
                tell(observer.as_mut());
            }
        }
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
        self.mends
    }

    /// Whether an observer wants shadow memory.
    pub(crate) fn wants_shadow(&self) -> bool {
        self.observers().iter().any(|observer| observer.wants_shadow())
    }

    /// Whether an observer wants stamps.
    pub(crate) fn wants_stamps(&self) -> bool {
        self.observers().iter().any(|observer| observer.wants_stamps())
    }

    /// Whether an observer wants to see accesses.
    pub(crate) fn sees_accesses(&self) -> bool {
        self.accesses
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
