//! The kinds of CTA barrier instructions. PTX ISA §9.7.12.1.
//!
//! Invariant: the set is closed; the operands of a barrier are in [`crate::bound::Barrier`].

/// The kind of a barrier instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarrierKind {
    /// Waits.
    Sync,
    /// Arrives without waiting.
    Arrive,
    /// Waits, and counts true predicates.
    Popc,
    /// Waits; true if all predicates are.
    And,
    /// Waits; true if any predicate is.
    Or,
}
