//! The passes that make a function of WIR, in their order.
//!
//! Invariant: this is the only place that runs a pass of `build`, `opt` or `analysis` on a whole function. Code generation begins with
//! what it returns.

use crate::analysis::{divergence, shape};
use crate::build::{cfg, ssa};
use crate::tuning::DIVERGENCE_MAX_ROUNDS;
use crate::wir::{Effects, Func, LaunchShape};
use ptx::ir::Function;

/// The function as WIR; `None` if it would be too large.
///
/// Which branches are divergent follows from the shapes of values, and the control flow follows from that. So the analysis starts
/// without any divergent branch, and everything is built again until no branch is found divergent that was not; after
/// [`DIVERGENCE_MAX_ROUNDS`] all are.
pub(crate) fn wir(function: &Function, launch: LaunchShape, effects: &impl Effects) -> Option<Func> {
    let mut divergence = divergence::Facts::new(function);
    for round in 0.. {
        if round == DIVERGENCE_MAX_ROUNDS {
            divergence.give_up();
        }
        let graph = cfg::build(function, launch, effects, &divergence)?;
        // SSA construction runs phi elimination, value numbering and dead code elimination.
        let mut func = ssa::rename(graph, function, effects);
        shape::classify(&mut func, function, launch, effects);
        if !divergence.refine(&func, function) {
            return Some(func);
        }
    }
    None
}
