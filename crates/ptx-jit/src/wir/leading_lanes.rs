//! Masks whose active lanes are the first ones, as data of the IR.
//!
//! The analysis in [`analysis::leading_lanes`](crate::analysis::leading_lanes) finds them.
//!
//! # Shape
//! In comments of the text form, the comparison that holds in the active lanes:
//! ```text
//! signed v9 < v2
//! ```
//!
//! Invariant: nothing here depends on a value of LLVM.

use super::Value;
use std::fmt;
use std::rc::Rc;

/// A mask that has the lanes from the first one up to a limit: those whose constant is below the limit.
#[derive(Clone, Debug)]
pub(crate) struct LeadingLanes {
    /// The value that is compared with the limit.
    pub(crate) by_lane: Value,
    /// Its constant in each lane, 32 bits in ascending order.
    pub(crate) constants: Rc<[u64]>,
    pub(crate) limit: Limit,
    /// Whether a lane whose constant equals the limit is active.
    pub(crate) closed: bool,
    /// Whether the numbers are signed.
    pub(crate) signed: bool,
}

/// The limit of leading lanes: 32 bits that are the same in all lanes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    Value(Value),
    Constant(u32),
}

impl fmt::Display for LeadingLanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let signed = if self.signed { "signed" } else { "unsigned" };
        write!(f, "{signed} v{} {} ", self.by_lane.0, if self.closed { "<=" } else { "<" })?;
        match self.limit {
            Limit::Value(value) => write!(f, "v{}", value.0),
            Limit::Constant(bits) => write!(f, "{bits:#x}"),
        }
    }
}
