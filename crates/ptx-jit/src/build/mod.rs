//! From the control flow of a PTX function to WIR in SSA form.
//!
//! `cfg` builds full and masked copies of blocks, `cfg::if_convert` executes small divergent regions under
//! masks, which `region` finds, `entries` chooses where native code can be entered, `pending` finds the
//! registers to save for pending lanes, `spill` the registers that stay in the warp frame, `fuel` computes
//! the fuel of an iteration, and `ssa` renames variables to values.
//!
//! Invariant: the interpreter's convergence policy decides which lanes execute together, in every copy.

pub(crate) mod cfg;
mod entries;
mod fuel;
mod pending;
pub(crate) mod region;
pub(crate) mod spill;
pub(crate) mod ssa;
