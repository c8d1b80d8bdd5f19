//! Observers: code that sees what kernels do while the interpreter runs them.
//!
//! A [`Watch`] is attached to a [`Memory`](crate::mem::Memory) once ([`Memory::watch`](crate::mem::Memory::watch)). From then on every
//! launch on that memory is watched: it runs in the interpreter, on one OS thread, and each event is handed to all observers in the order
//! in which it happens. Events carry a [`Site`]: which instruction of which warp. From [`Site::inst`] an observer learns everything that the
//! text says (operation, `.sem`, `.scope`, operands); registers are handed over where they matter.
//!
//! Watched launches of one memory run one after another, also those of different streams: observers keep what they know by warp, and
//! see one launch at a time. So a kernel that waits for another launch which was submitted later waits in vain.
//!
//! Invariants: an observer changes nothing but what its return values say (an access of a lane is left out, a `free` is ignored). A lane
//! that is left out is never executed unchecked: what is not left out goes through the same checks as in a plain launch. Where nothing is
//! attached, a watched place costs one comparison of a pointer with null, for each access to memory and each block.
//!
//! What it does not do: it judges nothing. The tools are observers of their own (`ptx-sanitize`).

mod events;
mod interest;
mod site;

pub use events::{
    Access, AccessKind, Allocated, ArgumentMove, BarrierEvent, CtaFacts, HostAccess, HostAccessKind,
    HostMistake, LaunchFacts, MovePlace, Refused, SharedVariable, SyncPart, WarpSyncEvent,
};
pub use interest::{Interest, Interests};
pub use site::{Place, Site, WarpFacts};

use crate::lanes::{LaneMask, Registers};
use ptx::ir::Function;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// Sees what kernels do. Every method has a default that does nothing.
///
/// Methods are called under one lock, so an observer must not call anything of the machine that reports events: of
/// [`Memory`](crate::mem::Memory) it may call what only looks things up (`nearest`, `name_at`, `space_of`).
pub trait Observer: Send {
    /// A launch begins.
    fn launch_begins(&mut self, _launch: &Arc<LaunchFacts>) {}
    /// A launch has ended; `trapped`: by a trap or a limit.
    fn launch_ends(&mut self, _launch: &Arc<LaunchFacts>, _trapped: bool) {}
    /// A CTA begins: its shared memory and the local memory of its warps are new.
    fn cta_begins(&mut self, _launch: &Arc<LaunchFacts>, _cta: &CtaFacts) {}
    /// A CTA has ended, by itself or because the launch was stopped.
    fn cta_ends(&mut self, _launch: &Arc<LaunchFacts>, _cta: &CtaFacts) {}

    /// Whether the machine is to go on behind mistakes at barriers and warp-synchronous instructions, which would be traps or deadlocks without
    /// this observer: it reports them.
    fn mends(&self) -> bool {
        false
    }

    /// Of which instructions of a function the observer wants [`Observer::step`] and [`Observer::stepped`]: by block, and in it by
    /// instruction, the terminator last. Asked once for each function, before it runs. Events that are not wanted may come all the same.
    fn interests(&self, function: &Function) -> Vec<Vec<Interest>> {
        function.blocks.iter().map(|block| vec![Interest::ALL; block.insts.len() + 1]).collect()
    }
    /// Whether the observer wants [`Observer::access`]. If no observer does, accesses cost what they cost unwatched.
    fn sees_accesses(&self) -> bool {
        true
    }
    /// An instruction is about to be executed by `lanes`, of the lanes `group` that are at it (the others' guards do not hold). Also called
    /// where no lane's guard holds, and for terminators: for those that wait (barriers, warp-synchronous instructions) when lanes arrive.
    fn step(&mut self, _site: &Site, _lanes: LaneMask, _group: LaneMask, _regs: &Registers) {}
    /// An instruction has been executed by `lanes`; `regs` are as it left them. Called once for each [`Observer::step`] that is not a
    /// terminator and has lanes, and for warp-synchronous instructions when they have completed.
    fn stepped(&mut self, _site: &Site, _lanes: LaneMask, _regs: &Registers) {}
    /// An access to memory is about to take place. Returns the lanes that must not take part: their store is left out, their load gives 0, and
    /// what would be a trap of such a lane is none.
    fn access(&mut self, _site: &Site, _access: &Access<'_>) -> LaneMask {
        0
    }
    /// The coordinates of a lane lie outside a surface, at an instruction with `.trap`; true: the lane is left out, as in `access`.
    fn surface_outside(&mut self, _site: &Site, _lane: usize, _why: &str) -> bool {
        false
    }
    /// The branch or switch of a block has parted lanes: `taken` go to that block, of `group` that were together.
    fn branches(&mut self, _site: &Site, _taken: LaneMask, _group: LaneMask) {}
    /// Lanes arrive at a barrier of the CTA, their warp arrives, or the barrier completes.
    fn barrier(&mut self, _site: &Site, _event: &BarrierEvent<'_>) {}
    /// Lanes arrive at a warp-synchronous instruction, or it is about to be carried out for all its lanes.
    fn warp_sync(&mut self, _site: &Site, _event: &WarpSyncEvent<'_>) {}
    /// A function is entered by `lanes`; its registers are new where `fresh`. `site` is the call, `act` the callee's activation.
    fn enters(&mut self, _site: &Site, _act: u32, _function: u32, _lanes: LaneMask, _fresh: bool) {}
    /// Lanes return from the activation of `site` to the activation `to`.
    fn returns(&mut self, _site: &Site, _to: u32, _lanes: LaneMask) {}
    /// Arguments or results of a call move from place to place. The accesses to memory that this takes are reported, too.
    fn moves(&mut self, _site: &Site, _lanes: LaneMask, _moved: &ArgumentMove) {}
    /// Lanes exit: by `exit`, `ret` of the kernel, or falling off its end.
    fn exits(&mut self, _site: &Site, _lanes: LaneMask) {}
    /// `malloc` of a lane returned an address, 0 where there is no room.
    fn malloc(&mut self, _site: &Site, _lane: usize, _bytes: u64, _address: u64) {}
    /// A lane is about to call `free`; true: the call is to have no effect.
    fn free(&mut self, _site: &Site, _lane: usize, _address: u64) -> bool {
        false
    }
    /// `vprintf` of a lane is about to read the value of an argument, which leaves for the host.
    fn prints(&mut self, _site: &Site, _lane: usize, _address: u64, _bytes: u64) {}
    /// What waits in this CTA can never go on. `site` is the first warp's that waits; a deadlock is a trap, unless an observer
    /// [mends](Observer::mends) it.
    fn deadlock(&mut self, _site: &Site) {}

    /// The host, or a kernel's `malloc`, allocated memory.
    fn allocated(&mut self, _what: &Allocated<'_>) {}
    /// Memory was freed by the host or by a kernel's `free`.
    fn freed(&mut self, _address: u64, _bytes: u64) {}
    /// The program ends, or the context that it used: what was not freed by now never will be.
    fn ends(&mut self) {}
    /// The host reads or writes device memory, after the access was found to be allowed.
    fn host(&mut self, _access: &HostAccess<'_>) {}
    /// The host misuses device memory; the call that does so fails, or has no effect.
    fn host_mistake(&mut self, _mistake: &HostMistake<'_>) {}
}

/// The observers of a machine.
pub struct Watch {
    observers: Mutex<Vec<Box<dyn Observer>>>,
    /// Held by the launch that runs.
    launching: Mutex<()>,
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
    /// Observers, called in this order. `quarantine`: so many bytes of freed memory are kept from being allocated again, so that accesses to
    /// them can be told from accesses to what came later. When `stop` becomes true, launches are cancelled soon after.
    pub fn new(observers: Vec<Box<dyn Observer>>, quarantine: u64, stop: Arc<AtomicBool>) -> Arc<Self> {
        let accesses = observers.iter().any(|observer| observer.sees_accesses());
        let mends = observers.iter().any(|observer| observer.mends());
        let (observers, launching) = (Mutex::new(observers), Mutex::new(()));
        Arc::new(Self { observers, launching, accesses, mends, quarantine, stop })
    }

    /// Tells observers that the program ends.
    pub fn end(&self) {
        self.each(|observer| observer.ends());
    }

    /// Tells observers that the host misuses device memory.
    pub fn mistake(&self, mistake: &HostMistake<'_>) {
        self.each(|observer| observer.host_mistake(mistake));
    }

    /// Whether no launch runs and no event is being handled, or soon will not be: waits for that until `patience` is over. For the end of a
    /// process, at which a thread that holds a lock may be gone.
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

    /// Waits for the launch that runs, and keeps others from beginning.
    pub(crate) fn alone(&self) -> MutexGuard<'_, ()> {
        self.launching.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Which events of a function's instructions are wanted.
    pub(crate) fn interests(&self, function: &Function) -> Interests {
        let mut all = Interests::none(function);
        for (number, observer) in self.observers().iter().enumerate() {
            all.add(number, &observer.interests(function));
        }
        all
    }

    /// Hands an event to the observers whose number is in a mask.
    #[inline]
    pub(crate) fn some(&self, mask: u8, mut tell: impl FnMut(&mut dyn Observer)) {
        let mut observers = self.observers();
        for (number, observer) in observers.iter_mut().enumerate() {
            if mask >> number & 1 != 0 {
                tell(observer.as_mut());
            }
        }
    }

    /// Whether launches are to be cancelled.
    pub(crate) fn stop(&self) -> &AtomicBool {
        &self.stop
    }

    /// Bytes of freed memory that are not allocated again.
    pub fn quarantine(&self) -> u64 {
        self.quarantine
    }

    /// Whether the machine is to go on behind mistakes: see [`Observer::mends`].
    pub(crate) fn mends(&self) -> bool {
        self.mends
    }

    /// Whether an observer wants to see accesses.
    pub(crate) fn sees_accesses(&self) -> bool {
        self.accesses
    }

    fn observers(&self) -> MutexGuard<'_, Vec<Box<dyn Observer>>> {
        self.observers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands an event to each observer.
    pub(crate) fn each(&self, mut tell: impl FnMut(&mut dyn Observer)) {
        for observer in self.observers().iter_mut() {
            tell(observer.as_mut());
        }
    }

    /// Hands an event to each observer, and joins what they answer.
    pub(crate) fn any(&self, mut ask: impl FnMut(&mut dyn Observer) -> bool) -> bool {
        self.observers().iter_mut().fold(false, |any, observer| ask(observer.as_mut()) | any)
    }

    /// The lanes that some observer names.
    pub(crate) fn lanes(&self, mut ask: impl FnMut(&mut dyn Observer) -> LaneMask) -> LaneMask {
        self.observers().iter_mut().fold(0, |lanes, observer| lanes | ask(observer.as_mut()))
    }
}
