//! Bounds checks of a block: which accesses need none ([`elim`]), which are checked together where the block
//! begins ([`coalesce`]), and which of those for many iterations of a loop at once ([`predicate`]).
//!
//! Invariant: nothing here depends on a value of LLVM. Two blocks with equal data have equal checks.

pub(crate) mod coalesce;
mod distance;
pub(crate) mod elim;
pub(crate) mod predicate;
