//! The instruction set as data: types, targets, and the instruction table.
//!
//! Invariant: an instruction form is described once, by one [`Row`](row::Row) of [`table`]; everything else derives from it.

pub mod arch;
pub mod ty;

pub use arch::{Sm, SmVariant, Version};
pub use ty::{Scope, Sem, Space, Ty, TyKind};
