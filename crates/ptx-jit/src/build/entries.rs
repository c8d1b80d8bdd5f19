//! The blocks of a function where the interpreter hands a warp to native code.
//!
//! An entry loads all live registers, and each of them becomes a phi where the entry joins other code. A
//! function with hundreds of warp-synchronous instructions would have more such loads and phis than
//! instructions, so the entries behind those instructions are limited in proportion to the function.
//!
//! Invariant: a block that native code may stop at for a reason that repeats (calls, barriers of CTAs, fuel)
//! is an entry. Which of the others are depends on the function alone.

use crate::tuning::{ENTRY_LOADS_MIN, ENTRY_LOADS_PER_INSTRUCTION};
use crate::wir::Effects;
use ptx::analysis::liveness::Liveness;
use ptx::ir::{Function, Inst, Src, Terminator};
use ptx::isa::{Op, ShflMode};
use std::collections::BTreeSet;

/// The entries of a function. `headers`: the blocks where an iteration of a loop begins.
pub(super) fn entries(
    function: &Function,
    live: &Liveness,
    headers: &BTreeSet<u32>,
    machine: &impl Effects,
) -> BTreeSet<u32> {
    let mut entries = BTreeSet::from([0]);
    let mut synced = BTreeSet::new();
    for block in &function.blocks {
        match &block.term {
            Terminator::Call(call) => {
                entries.insert(call.next.0);
            }
            Terminator::Barrier { next, .. } => {
                entries.insert(next.0);
            }
            // A full warp passes a matrix instruction in native code.
            Terminator::WarpSync { inst, .. } if machine.is_of_whole_warp(inst) || is_butterfly(inst) => {}
            Terminator::WarpSync { next, .. } => {
                synced.insert(next.0);
            }
            _ => {}
        }
    }
    entries.extend(headers);
    let optional: Vec<u32> = synced.difference(&entries).copied().collect();
    let loads: usize = optional.iter().map(|block| live.live_in[*block as usize].count()).sum();
    let instructions: usize = function.blocks.iter().map(|block| block.insts.len()).sum();
    let most = ENTRY_LOADS_MIN.max(instructions * ENTRY_LOADS_PER_INSTRUCTION);
    // Without an entry, the interpreter executes what is behind the instruction, up to the next entry.
    entries.extend(optional.into_iter().step_by(loads.div_ceil(most).max(1)));
    entries
}

/// Whether the instruction is a step of a butterfly. Behind an entry, a value and what lanes took from it are
/// phis of each other's registers, so nothing would be known of their sum
/// ([`equal_lanes`](crate::analysis::shape)).
fn is_butterfly(inst: &Inst) -> bool {
    let constant = inst.srcs[1..].iter().all(|src| matches!(src, Src::Imm(_) | Src::Absent));
    inst.op == Op::ShflSync && inst.mods.shfl_mode() == Some(ShflMode::Bfly) && constant
}
