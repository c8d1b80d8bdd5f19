//! From the control flow of a PTX function to WIR in SSA form.
//!
//! `cfg` builds full and masked copies of blocks, `cfg::if_convert` puts small divergent regions under masks, `region` finds them, `pending` holds lanes that
//! wait for their turn, `fuel` says what an iteration of a loop costs, `ssa` renames variables to values.
//!
//! Invariant: the interpreter's convergence policy decides which lanes execute together, in every copy.

pub(crate) mod cfg;
mod fuel;
mod pending;
mod region;
pub(crate) mod ssa;
