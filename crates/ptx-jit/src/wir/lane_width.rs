//! The width of narrow lanes, as data of a value.
//!
//! The pass in [`opt::narrow_lanes`](crate::opt::narrow_lanes) decides it. Code generation computes the
//! value in vectors with an element of that width for each lane of a warp, and decides nothing.
//!
//! The text form ends the line that defines the value with `; in lanes of 8 bits`.

use std::fmt;

/// The bits of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum LaneWidth {
    /// A predicate.
    B1,
    B8,
    B16,
}

impl LaneWidth {
    /// The number of bits.
    pub(crate) fn bits(self) -> u32 {
        match self {
            LaneWidth::B1 => 1,
            LaneWidth::B8 => 8,
            LaneWidth::B16 => 16,
        }
    }

    /// The greatest number of so many bits.
    pub(crate) fn greatest(self) -> u64 {
        (1 << self.bits()) - 1
    }
}

impl fmt::Display for LaneWidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LaneWidth::B1 => write!(f, "1 bit"),
            LaneWidth::B8 | LaneWidth::B16 => write!(f, "{} bits", self.bits()),
        }
    }
}
