//! Checks of accesses in the interpreter that replace events.
//!
//! What an access must stay in is often known before a launch: the object of each access as
//! [`AccessObjects`] says, and where allocations are. Then an observer needs events of those accesses alone
//! that leave their object or that the machine refuses, and no events of other instructions. Native code
//! makes the same checks ([`NativeChecks::objects`](super::NativeChecks::objects)).
//!
//! Invariant: an observer is told of every access that does not lie in its object in each lane that takes
//! part.
//!
//! What it does not do: it compares no addresses (`mem/admit.rs` does).

use super::native_checks::{AccessObjects, Allocation, Object};
use super::{LaunchFacts, Place, WarpFacts, Watch};
use ptx::isa::Space;
use std::sync::Arc;

/// The checks of a launch that replace the events of one observer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessChecks {
    /// The objects of the kernel's accesses. The kernel calls no functions.
    pub objects: Arc<AccessObjects>,
    /// The allocations that the objects number; `None`: any address is allowed.
    pub allocations: Vec<Option<Allocation>>,
}

/// The checks of a launch, and the number of the observer whose events they replace.
#[derive(Debug)]
pub(crate) struct Replaced {
    checks: AccessChecks,
    observer: usize,
}

/// Where an access must lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bounds {
    /// In what the machine permits.
    Anywhere,
    /// In so many bytes, which start at that generic address in lane 0, and so many bytes further in each
    /// next lane.
    Within { start: u64, bytes: u64, stride: u64 },
    /// An observer decides.
    Unknown,
}

impl Watch {
    /// The checks that replace events in a launch that has begun; `None`: observers need the events.
    pub(crate) fn replaced(&self, launch: &Arc<LaunchFacts>) -> Option<Replaced> {
        let mut observers = self.observers();
        let mut seeing = observers.iter_mut().enumerate().filter(|(_, observer)| observer.sees_accesses());
        let (number, observer) = seeing.next()?;
        // Another observer must see all accesses anyway.
        if seeing.next().is_some() {
            return None;
        }
        Some(Replaced { checks: observer.access_checks(launch)?, observer: number })
    }
}

impl Replaced {
    /// The observer, as a bit.
    pub(crate) fn observer(&self) -> u8 {
        1 << self.observer
    }

    /// Where the access of an instruction in a state space must lie.
    #[inline]
    pub(crate) fn bounds(&self, warp: &WarpFacts, place: Place, space: Space) -> Bounds {
        let Some(object) = self.checks.objects.of(place.block, place.index, space) else {
            return Bounds::Anywhere;
        };
        match object {
            Object::Shared { start, bytes } => Bounds::Within {
                start: warp.shared.0 + start,
                bytes: bytes.unwrap_or(warp.shared.1.saturating_sub(start)),
                stride: 0,
            },
            Object::Local { start, bytes } => {
                Bounds::Within { start: warp.local.0 + start, bytes, stride: warp.local.1 }
            }
            Object::Allocation(number) => match self.checks.allocations.get(number as usize) {
                Some(Some((start, bytes))) => Bounds::Within { start: *start, bytes: *bytes, stride: 0 },
                Some(None) => Bounds::Anywhere,
                None => Bounds::Unknown,
            },
        }
    }
}
