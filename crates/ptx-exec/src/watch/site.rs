//! The position of a watched warp.
//!
//! Invariant: the interpreter sets a site before it reports an event, so `place` is the instruction that the
//! event belongs to.

use super::events::LaunchFacts;
use super::place::Place;
use super::{Bounds, Observer, Replaced, Watch};
use crate::lanes::{LANES, Lane, LaneMask};
use ptx::ir::{Function, Inst, Terminator};
use std::sync::Arc;

/// The identity of a warp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarpFacts {
    /// A small number of the warp among the resident warps, for tables; reused after the CTA's end.
    pub slot: u32,
    /// The same for the warp's CTA.
    pub cta_slot: u32,
    /// The CTA's number in the grid.
    pub cta: u64,
    /// `%ctaid`
    pub ctaid: [u32; 3],
    /// The warp's number in its CTA.
    pub warp: u32,
    /// Lanes that exist, including exited ones.
    pub lanes: LaneMask,
    /// `%tid` of each lane.
    pub tid: [Lane<u32>; 3],
    /// Address of the CTA's shared memory, and its size.
    pub shared: (u64, u64),
    /// Address of lane 0's local memory, and bytes of each lane's.
    pub local: (u64, u64),
    /// Address of the parameter buffer, and its size.
    pub params: (u64, u64),
}

impl WarpFacts {
    /// `%tid` of a lane.
    pub fn tid_of(&self, lane: usize) -> [u32; 3] {
        [self.tid[0].0[lane], self.tid[1].0[lane], self.tid[2].0[lane]]
    }

    /// As [`WarpFacts::generic`], for all lanes; `None` where they are generic addresses already.
    #[inline]
    pub(crate) fn generics(&self, space: ptx::isa::Space, addresses: &Lane<u64>) -> Option<Lane<u64>> {
        let (origin, stride) = (self.generic(space, 0, 0), self.generic(space, 1, 0));
        let stride = stride.wrapping_sub(origin);
        if origin == 0 && stride == 0 {
            return None;
        }
        let own = |lane: usize| origin.wrapping_add(stride.wrapping_mul(lane as u64));
        Some(Lane(std::array::from_fn(|lane| addresses.0[lane].wrapping_add(own(lane)))))
    }

    /// The generic address of an address in a state space, for a lane.
    pub fn generic(&self, space: ptx::isa::Space, lane: usize, address: u64) -> u64 {
        use ptx::isa::Space;
        let origin = match space {
            Space::Shared => self.shared.0,
            Space::Local => self.local.0 + lane as u64 * self.local.1,
            Space::Param => self.params.0,
            Space::Generic | Space::Global | Space::Const | Space::Reg | Space::Sreg | Space::Tex => 0,
        };
        address.wrapping_add(origin)
    }
}

/// The instruction and the warp that an event belongs to.
pub struct Site {
    pub(crate) watch: Arc<Watch>,
    /// The launch.
    pub launch: Arc<LaunchFacts>,
    /// The checks that replace events of an observer.
    pub(crate) replaced: Option<Arc<Replaced>>,
    /// The warp.
    pub warp: WarpFacts,
    /// The instruction.
    pub place: Place,
    /// The activation of the lanes: a number among those of the warp, reused after its end.
    pub act: u32,
    /// Offset of the activation's frame in each lane's local memory.
    pub frame: u64,
    /// Lanes of the warp that have not exited.
    pub live: LaneMask,
}

impl Site {
    pub(crate) fn new(
        watch: Arc<Watch>,
        launch: Arc<LaunchFacts>,
        replaced: Option<Arc<Replaced>>,
        slot: u32,
        cta_slot: u32,
    ) -> Box<Self> {
        let warp = WarpFacts {
            slot,
            cta_slot,
            cta: 0,
            ctaid: [0; 3],
            warp: 0,
            lanes: 0,
            tid: [Lane([0; LANES]); 3],
            shared: (0, 0),
            local: (0, 0),
            params: (0, 0),
        };
        let place = Place::default();
        Box::new(Self { watch, launch, replaced, warp, place, act: 0, frame: 0, live: 0 })
    }

    /// The function that runs.
    pub fn function(&self) -> Option<&Function> {
        self.launch.program.functions.get(self.place.function as usize)
    }

    /// The instruction; `None` at a terminator that is no instruction.
    pub fn inst(&self) -> Option<&Inst> {
        let block = self.function()?.blocks.get(self.place.block as usize)?;
        block.insts.get(self.place.index as usize).or_else(|| block.term.inst())
    }

    /// The terminator, if the place is one.
    pub fn terminator(&self) -> Option<&Terminator> {
        let block = self.function()?.blocks.get(self.place.block as usize)?;
        (self.place.index as usize >= block.insts.len()).then_some(&block.term)
    }

    /// Sets the position to an instruction that the interpreter executes for native code, and reports that
    /// these lanes resume there.
    #[cold]
    pub(crate) fn steps_for_native(&mut self, place: Place, lanes: LaneMask, live: LaneMask) {
        (self.place, self.live) = (place, live);
        self.tell(|observer, site| observer.resumes(site, lanes));
    }

    /// Where an access in a state space must lie so that the observers need no event of it.
    #[inline]
    pub(crate) fn bounds(&self, space: ptx::isa::Space) -> Bounds {
        let replaced = self.replaced.as_deref();
        replaced.map_or(Bounds::Unknown, |replaced| replaced.bounds(&self.warp, self.place, space))
    }

    /// The observers that are told of steps, as a mask of their numbers.
    #[inline]
    pub(crate) fn told_of_steps(&self) -> u8 {
        self.replaced.as_ref().map_or(u8::MAX, |replaced| !replaced.observer())
    }

    /// Calls each observer.
    pub(crate) fn tell(&self, mut event: impl FnMut(&mut dyn Observer, &Self)) {
        self.watch.each(|observer| event(observer, self));
    }

    /// Tells the observers whose number is in a mask.
    #[inline]
    pub(crate) fn tell_some(&self, mask: u8, mut event: impl FnMut(&mut dyn Observer, &Self)) {
        self.watch.some(mask, |observer| event(observer, self));
    }
}
