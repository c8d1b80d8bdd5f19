//! The fuel that an iteration of a loop costs.
//!
//! Native code decreases the fuel at the start of each iteration of a loop, and stops when it is used up, so
//! that a launch can end or be cancelled in time. Loops with a long body, and loops that may wait for other
//! threads, cost more.

use crate::tuning::{MAX_ITERATION_FUEL, WAITING_LOOP_FUEL, WORK_PER_FUEL};
use crate::wir::Effects;
use crate::wir::loops::{Loop, loops};
use ptx::ir::Function;

/// For each block, the fuel that an iteration of the loop with that header costs. Nested loops have costs of
/// their own.
pub(super) fn fuel(function: &Function, machine: &impl Effects) -> Vec<i64> {
    let mut watching = vec![0u32; function.blocks.len() + 1];
    let mut work = vec![0u64; function.blocks.len() + 1];
    for (at, block) in function.blocks.iter().enumerate() {
        let watches = block.insts.iter().any(|inst| machine.watches(inst));
        watching[at + 1] = watching[at] + u32::from(watches);
        work[at + 1] = work[at] + block.insts.iter().map(|inst| machine.work(inst)).sum::<u64>();
    }
    let mut price = vec![1; function.blocks.len()];
    for Loop { header, latch } in loops(function) {
        let least = if watching[latch + 1] > watching[header] { WAITING_LOOP_FUEL } else { 1 };
        let turn = i64::try_from((work[latch + 1] - work[header]) / WORK_PER_FUEL).unwrap_or(i64::MAX);
        price[header] = price[header].max(least).max(turn.min(MAX_ITERATION_FUEL));
    }
    price
}
