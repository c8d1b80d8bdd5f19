//! What native code of a watched kernel checks in place of reporting events.
//!
//! Native code reports no events. An observer permits native code if checks in the code replace the events
//! that it needs. There are four checks: an access stays within the object of its address, which is smaller
//! than its allocation or window; whole warps execute barriers and warp-synchronous instructions; what is
//! loaded is defined; and an access is ordered with all conflicting ones before it. Where a check fails, the
//! interpreter executes the instruction and reports its events.
//!
//! Invariant: what an observer would report fails a check of native code.

use ptx::check::module::FuncId;
use ptx::ir::Program;
use ptx::isa::Space;
use std::sync::Arc;

/// An object: the bytes in which an access must lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Object {
    /// Bytes of the CTA's shared memory from `start` on: so many, or all.
    Shared {
        /// Offset of the first byte.
        start: u64,
        /// `None`: to the end of shared memory, whose size the launch determines.
        bytes: Option<u64>,
    },
    /// Bytes of the kernel's local memory, in each lane.
    Local {
        /// Offset of the first byte.
        start: u64,
        /// Their number.
        bytes: u64,
    },
    /// An allocation that is known when a launch begins: a number in the list of
    /// [`Observer::allocations`](super::Observer::allocations).
    Allocation(u32),
}

/// The objects of the accesses of an instruction; `None`: an access must only stay within its allocation or
/// window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InstObjects {
    /// Of all its accesses.
    One(Option<Object>),
    /// Of the two accesses of a copy from global to shared memory.
    Copy {
        /// Of the store.
        shared: Option<Object>,
        /// Of the load.
        global: Option<Object>,
    },
}

impl Default for InstObjects {
    fn default() -> Self {
        InstObjects::One(None)
    }
}

impl InstObjects {
    /// Whether no access has an object.
    fn is_free(self) -> bool {
        matches!(self, InstObjects::One(None) | InstObjects::Copy { shared: None, global: None })
    }

    /// With other objects.
    fn map(self, f: impl Fn(Object) -> Object) -> Self {
        match self {
            InstObjects::One(object) => InstObjects::One(object.map(f)),
            InstObjects::Copy { shared, global } => {
                InstObjects::Copy { shared: shared.map(&f), global: global.map(&f) }
            }
        }
    }
}

/// The objects of a kernel's accesses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessObjects {
    /// By block and instruction; the terminator is the last one of its block. Accesses that native code
    /// leaves to the interpreter need no objects.
    pub blocks: Vec<Vec<InstObjects>>,
    /// The number of allocations.
    pub allocations: u32,
}

impl AccessObjects {
    /// The object of an instruction's access in a state space.
    pub fn of(&self, block: u32, index: u32, space: Space) -> Option<Object> {
        match *self.blocks.get(block as usize)?.get(index as usize)? {
            InstObjects::One(object) => object,
            InstObjects::Copy { shared, .. } if space == Space::Shared => shared,
            InstObjects::Copy { global, .. } => global,
        }
    }

    /// Adds the objects of another observer, whose allocations are numbered after these. Returns whether both
    /// can be checked at once: no access has two objects.
    fn add(&mut self, other: &Self) -> bool {
        let count = self.blocks.len().max(other.blocks.len());
        self.blocks.resize(count, Vec::new());
        for (own, added) in self.blocks.iter_mut().zip(&other.blocks) {
            own.resize(own.len().max(added.len()), InstObjects::default());
            for (own, added) in own.iter_mut().zip(added).filter(|(_, added)| !added.is_free()) {
                if !own.is_free() {
                    return false;
                }
                *own = added.map(|object| match object {
                    Object::Allocation(number) => Object::Allocation(self.allocations + number),
                    Object::Shared { .. } | Object::Local { .. } => object,
                });
            }
        }
        self.allocations += other.allocations;
        true
    }
}

/// A kernel, as observers see it before it is compiled.
pub struct KernelFacts<'a> {
    /// The program.
    pub program: &'a Arc<Program>,
    /// The kernel.
    pub kernel: FuncId,
    /// By `VarId`: addresses of `.global` and `.const` variables, offsets of `.shared` variables.
    pub variables: &'a [u64],
}

/// The address and the bytes of an allocation.
pub type Allocation = (u64, u64);

/// What native code of a kernel must check, so that its observers miss nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NativeChecks {
    /// The objects of its accesses.
    pub objects: AccessObjects,
    /// Whether only whole warps may execute barriers and warp-synchronous instructions, while no thread of
    /// the CTA has exited.
    pub whole: bool,
    /// Whether only defined bytes may be loaded, as the shadow memory says, and stored bytes are marked as
    /// defined there.
    pub defined: bool,
    /// Whether accesses are compared with stamps ([`Stamps`](crate::stamps::Stamps)): only those may be made
    /// that are ordered with all conflicting accesses before them.
    pub ordered: bool,
    /// The block and the instruction at which observers are told that lanes exited which native code has
    /// executed to their end; `None`: they are not told.
    pub exit: Option<(u32, u32)>,
}

impl NativeChecks {
    /// Adds the checks of another observer. Returns whether both can be made at once.
    fn add(&mut self, other: &Self) -> bool {
        self.whole |= other.whole;
        self.defined |= other.defined;
        self.ordered |= other.ordered;
        self.exit = self.exit.or(other.exit);
        self.objects.add(&other.objects)
    }
}

/// What native code of a kernel must do for observers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NativeNeeds {
    /// Nothing: launches are not watched.
    Nothing,
    /// It must make these checks.
    Checks(Arc<NativeChecks>),
    /// There cannot be native code: the observers need the events, for this reason.
    Events(String),
}

impl super::Watch {
    /// What native code of a kernel must do for the observers.
    pub(crate) fn native_needs(&self, kernel: &KernelFacts<'_>) -> NativeNeeds {
        let mut all = NativeChecks::default();
        let mut observers = self.observers();
        let count = observers.len();
        for observer in observers.iter_mut() {
            match observer.native_checks(kernel) {
                Ok(checks) if all.add(&checks) => {}
                Ok(_) => {
                    return NativeNeeds::Events("several tools restrict the same access".to_owned());
                }
                Err(why) => return NativeNeeds::Events(why),
            }
        }
        // What other observers have reported of a launch cannot be taken back when it is repeated.
        if all.ordered && count > 1 {
            return NativeNeeds::Events("racecheck runs in native code only without other tools".to_owned());
        }
        NativeNeeds::Checks(Arc::new(all))
    }

    /// The allocations of all observers for a launch that has begun, in the order of
    /// [`AccessObjects`]; `None`: the launch cannot use native code.
    pub(crate) fn allocations(&self, launch: &super::LaunchFacts) -> Option<Vec<Option<Allocation>>> {
        let mut all = Vec::new();
        for observer in self.observers().iter_mut() {
            all.extend(observer.allocations(launch)?);
        }
        Some(all)
    }
}
