//! Observers: code that sees what kernels do while the interpreter runs them.
//!
//! A [`Watch`] is attached to a [`Memory`](crate::mem::Memory) once ([`Memory::watch`](crate::mem::Memory::watch)). From then on every
//! launch on that memory is watched: it runs in the interpreter, on one OS thread, and each event is handed to all observers in the order
//! in which it happens. Events carry a [`Site`]: which instruction of which warp. From [`Site::inst`] an observer learns everything that the
//! text says (operation, `.sem`, `.scope`, operands); registers are handed over where they matter.
//!
//! Invariants: an observer changes nothing but what its return values say (an access of a lane is left out, a `free` is ignored). A lane
//! that is left out is never executed unchecked: what is not left out goes through the same checks as in a plain launch. Where nothing is
//! attached, a watched place costs one comparison of a pointer with null, for each access to memory and each block.
//!
//! What it does not do: it judges nothing. The tools are observers of their own (`ptx-sanitize`).

mod events;
mod site;

pub use events::{
    Access, AccessKind, Allocated, ArgumentMove, BarrierEvent, CtaFacts, HostAccess, HostAccessKind,
    LaunchFacts, MovePlace, Refused, SharedVariable, SyncPart, WarpSyncEvent,
};
pub use site::{Place, Site, WarpFacts};

use crate::lanes::{LaneMask, Registers};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
}

/// The observers of a machine.
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
    /// Observers, called in this order. `quarantine`: so many bytes of freed memory are kept from being allocated again, so that accesses to
    /// them can be told from accesses to what came later. When `stop` becomes true, launches are cancelled soon after.
    pub fn new(observers: Vec<Box<dyn Observer>>, quarantine: u64, stop: Arc<AtomicBool>) -> Arc<Self> {
        Arc::new(Self { observers: Mutex::new(observers), quarantine, stop })
    }

    /// Tells observers that the program ends.
    pub fn end(&self) {
        self.each(|observer| observer.ends());
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
        self.observers().iter().any(|observer| observer.mends())
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
