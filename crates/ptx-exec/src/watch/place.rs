//! Instructions of a program, as positions of events.
//!
//! Invariant: a place identifies one instruction or terminator of the program.

/// An instruction of the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// `FuncId`.
    pub function: u32,
    /// Block of the function.
    pub block: u32,
    /// Index of the instruction in the block; the number of instructions denotes the terminator.
    pub index: u32,
}
