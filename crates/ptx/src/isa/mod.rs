//! The instruction set as data: types, targets, and the instruction table.
//!
//! Invariant: an instruction form is described once, by one [`Row`] of [`table`], and everything else derives
//! from it. [`select`] finds the row of an instruction; [`Mods`] are its modifiers with every default
//! explicit; [`Form`] is the row's structure.

pub mod arch;
pub mod form;
pub mod gate;
pub mod later;
pub mod matching;
pub mod mods;
pub mod nearest;
mod notation;
pub mod op;
pub mod reserved;
pub mod row;
pub mod rule;
pub mod spell;
pub mod sreg;
pub mod table;
pub mod ty;
pub mod word;

pub use arch::{Sm, SmVariant, Version};
pub use form::{Dir, Form, Kind, Need, OperandForm, Selector};
pub use gate::{Gate, Level, Unmet};
pub use matching::{
    Binding, Body, Match, OperandShape, Requirement, RowId, match_any_order, match_mods, mnemonics,
    right_order, rows_of, select,
};
pub use mods::{
    AtomOp, BarRedOp, BoolOp, Clamp, Cmp, Geom, Half, Layout, Lod, MatrixShape, Mods, PrmtMode, Rnd, Secop,
    ShflMode, ShiftMode, TestpOp, VoteMode,
};
pub use nearest::{At, Mismatch, forms};
pub use op::Op;
pub use row::{Class, Exactness, Row, Rule};
pub use sreg::{Sreg, SregFacts};
pub use ty::{Scope, Sem, Space, Ty, TyKind};
pub use word::{Slot, Word};

#[cfg(test)]
mod tests;
