//! The detector's input and output: positions of lanes, addresses of accesses, and races found.

use super::order::Missing;
use super::shadow::Mask;

/// One of the two accesses of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Party {
    /// Which instruction: the index that [`Detector::site`](super::detect::Detector::site) gave.
    pub(crate) site: u32,
    /// CTA.
    pub(crate) cta: u32,
    /// Warp of the CTA.
    pub(crate) warp: u8,
    /// Lane of the warp.
    pub(crate) lane: u8,
}

/// A race.
#[derive(Clone, Debug)]
pub(crate) struct Race {
    /// The access of the instruction that came first when the two instructions were first found to race.
    pub(crate) first: Party,
    /// The other one.
    pub(crate) second: Party,
    /// Generic address of the second access.
    pub(crate) address: u64,
    /// Whether it is in shared memory.
    pub(crate) shared: bool,
    /// What would order them.
    pub(crate) missing: Missing,
    /// How often these two instructions raced.
    pub(crate) count: u64,
}

/// Where lanes are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    /// A number of the CTA among those that are resident.
    pub(crate) slot: u32,
    /// The warp's number in its CTA.
    pub(crate) warp: u8,
    /// Its lanes that have not exited.
    pub(crate) live: Mask,
}

/// Addresses of an access.
pub(crate) struct Where<'a> {
    /// Lanes that take part.
    pub(crate) lanes: Mask,
    /// Generic addresses, by lane.
    pub(crate) addresses: &'a [u64; 32],
    /// Bit *i*: the element *i* elements behind the address.
    pub(crate) chosen: u8,
    /// Whether lanes that store to one address store the same value.
    pub(crate) agree: bool,
}
