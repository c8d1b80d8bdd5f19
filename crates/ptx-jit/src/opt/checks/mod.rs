//! Bounds checks of a block: which accesses need none ([`elim`]), and which are checked together where the
//! block begins ([`coalesce`]).
//!
//! Invariant: nothing here depends on a value of LLVM. Two blocks with equal data have equal checks.

pub(crate) mod coalesce;
pub(crate) mod elim;
