//! Facts about the values of a function: how they depend on the lane, their ranges, and which branches are
//! divergent.
//!
//! Invariant: an analysis changes nothing in a function but the facts that are recorded about its values.

pub(crate) mod address;
pub(crate) mod any_nan;
pub(crate) mod branches;
pub(crate) mod chosen_lanes;
pub(crate) mod constant;
pub(crate) mod distance;
pub(crate) mod divergence;
pub(crate) mod expr;
pub(crate) mod leading_lanes;
mod local_frame;
pub(crate) mod loop_kind;
pub mod range;
pub(crate) mod rare_mask;
pub(crate) mod scalar_evolution;
pub mod shape;
pub(crate) mod symbolic_stride;
pub(crate) mod thread_constant;
mod windows;

use crate::tuning::{LARGE_FUNCTION_MIN_INSTRUCTIONS, READERS_MAX_BLOCKS};
use crate::wir::dom::Dominators;
use crate::wir::uses::{DefUse, Readers};
use crate::wir::{Block, BlockId, Func, LaunchShape, Op, OpKind, Term};
use ptx::ir::{Function, Program};
use ptx::isa::{Space, TyKind};
use ptx_exec::layout::Layout;

/// What is known of the values of a function when code is generated.
#[derive(Clone, Debug)]
pub(crate) struct Analyses {
    /// Where each value is defined, and how often it is read.
    pub(crate) def_use: DefUse,
    /// The blocks that read each value; not listed for functions of more than [`READERS_MAX_BLOCKS`].
    pub(crate) readers: Readers,
    /// Which blocks are on every path to a block.
    pub(crate) dominators: Dominators,
    /// For each value, whether it is a mask that at most side exits read.
    pub(crate) rare: Vec<bool>,
    /// The range of each value.
    pub(crate) bounds: Vec<Option<range::Bound>>,
    pub(crate) addresses: address::AddressFacts,
    pub(crate) constants: constant::Constants,
    /// By how much values grow from one CTA to the next, and from one iteration to the next. It is found when
    /// prefetches are decided.
    pub(crate) evolution: scalar_evolution::ScalarEvolution,
}

impl Analyses {
    /// Whether a block under a mask may be emitted in several versions: its results reach other blocks
    /// through phis only, because it dominates no other block, and nothing is stored in barrier slots where
    /// it ends.
    pub(crate) fn may_have_versions(&self, func: &Func, id: BlockId) -> bool {
        let Block { term: Term::Goto(next), full: false, .. } = func.blocks[id.0 as usize] else {
            return false;
        };
        !self.dominators.dominates(id, next) && !func.stores_on(id, next)
    }

    /// The range of each value, and the constants among the values.
    pub(crate) fn constants(
        func: &Func,
        (program, function): (&Program, &Function),
        layout: &Layout,
        launch: LaunchShape,
    ) -> (Vec<Option<range::Bound>>, constant::Constants) {
        let shared = |var: u32| {
            let variable = program.variables.get(var as usize)?;
            let start = layout.variables.get(var as usize)?;
            (variable.space == Space::Shared && variable.ty.kind() != TyKind::Opaque).then_some(*start)
        };
        // A function that is entered with a warp frame may get values from elsewhere.
        let bounds = match func.entries.is_empty() {
            true => range::bounds(func, function, launch.ntid, &shared),
            false => vec![None; func.kinds.len()],
        };
        let facts = constant::Facts { func, function, program, layout, launch, bounds: &bounds };
        let constants = constant::Constants::find(facts);
        (bounds, constants)
    }

    /// Analyses a function.
    pub(crate) fn of(func: &Func, ptx: (&Program, &Function), layout: &Layout, launch: LaunchShape) -> Self {
        let (bounds, constants) = Self::constants(func, ptx, layout, launch);
        let addresses = address::AddressFacts::find(func, ptx.1, &bounds);
        let def_use = DefUse::new(func);
        let few = func.blocks.len() <= READERS_MAX_BLOCKS;
        Analyses {
            readers: if few { Readers::new(func) } else { Readers::default() },
            dominators: Dominators::new(func),
            rare: rare_mask::find(func, &def_use),
            def_use,
            bounds,
            addresses,
            constants,
            evolution: scalar_evolution::ScalarEvolution::default(),
        }
    }
}

/// Whether a function was built of masked copies alone because it is large.
pub(crate) fn is_large(func: &Func) -> bool {
    let executes = |op: &Op| matches!(op.kind, OpKind::Inst(_));
    let masked = func.blocks.iter().all(|node| !node.full || !node.ops.iter().any(executes));
    masked && func.instructions().count() > LARGE_FUNCTION_MIN_INSTRUCTIONS
}
