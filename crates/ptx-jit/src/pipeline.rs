//! The passes that make a function of WIR, in their order.
//!
//! Invariant: this is the only place that runs a pass of `build`, `opt` or `analysis` on a whole function.
//! Code generation begins with what it returns. Every pass except the construction of the graph can be left
//! out, to test its effect ([`Passes::without`]). Kernels that are executed are compiled with all passes. A
//! build with debug assertions verifies the function after each pass.

use crate::analysis::branches::Branches;
use crate::analysis::loop_kind::loop_kinds;
use crate::analysis::scalar_evolution::ScalarEvolution;
use crate::analysis::{Analyses, divergence, range, shape};
use crate::build::cfg::Copies;
use crate::build::{cfg, spill, ssa};
use crate::isel::Env;
use crate::llvm::Flush;
use crate::mem::group::Grouping;
use crate::mem::plan::Planner;
use crate::opt::checks::coalesce::Coalescing;
use crate::opt::checks::predicate;
use crate::opt::chunk_loops::Sections;
use crate::opt::prefetch::{Prefetching, deferred};
use crate::opt::version_unmasked::Versioning;
use crate::opt::{
    barrier_slots, dce, endpoint_tests, float_chains, fold_branches, gvn, narrow_lanes, order_sections,
    phi_elim, sink_masks, version_indices, version_prefix, warp_strips,
};
use crate::target::Target;
use crate::tuning::{
    DIVERGENCE_MAX_ROUNDS, LARGE_FUNCTION_MIN_BRANCHES, LARGE_FUNCTION_MIN_INSTRUCTIONS, MAX_OPS,
    MAX_OPS_BEFORE_SPILLS,
};
use crate::wir::verify::{Form, verify};
use crate::wir::{Effects, Func, LaunchShape};
use ptx::ir::{Function, Program, Reg};
use ptx_exec::layout::Layout;
use ptx_exec::watch::AccessObjects;
use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;

/// A pass on WIR, in the order of execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pass {
    /// Which branches are divergent. Without it, all are.
    Divergence,
    /// Small divergent regions under masks. Without it, every divergent branch makes masked copies of what
    /// follows.
    IfConvert,
    /// Full and masked copies of blocks, over variables.
    Build,
    /// Values for variables. Without it, no later pass is run.
    Ssa,
    /// Phi elimination, before and after value numbering.
    PhiElim,
    /// Value numbering.
    Gvn,
    /// Dead code elimination.
    Dce,
    /// Ranges of values. Without them, shapes know less.
    Ranges,
    /// Shapes of values.
    Shapes,
    /// Versions of accesses for warps whose indices have a simple form.
    VersionIndices,
    /// Branches whose conditions are constant become jumps, and blocks without a path are removed.
    FoldBranches,
    /// Chains of double precision arithmetic. Without them, each instruction tests its own NaNs.
    FloatChains,
    /// Constants of lanes. Without them, no lane is known to be constant.
    Constants,
    /// Plans of accesses: their class, their lanes, their strategy.
    Accesses,
    /// Which bounds checks a block makes where it begins. Without it, each access is checked on its own.
    Checks,
    /// Which of these checks are made for many iterations of a loop at once. Without it, each iteration makes
    /// its own.
    LoopPredication,
    /// Groups of accesses that are emitted together.
    Groups,
    /// What is prefetched beside accesses.
    Prefetches,
    /// Where registers are saved at barriers, and which stores are left out.
    BarrierSlots,
    /// Versions of masked blocks that load for all lanes.
    VersionUnmasked,
    /// Which sections of blocks are executed chunk by chunk, and where deferred prefetches are issued.
    ChunkLoops,
    /// The order of the operations in an iteration of these loops.
    OrderSections,
    /// Which branches decide by the first and the last lane, where they can.
    EndpointTests,
    /// Which blocks of a coarse warp are executed warp by warp, with shared memory in registers.
    WarpStrips,
    /// Versions of masked blocks of a coarse warp for its leading lanes.
    VersionPrefix,
    /// Which masks of a coarse warp are computed where they are read.
    SinkMasks,
    /// Which operations are computed in lanes that are narrower than their registers.
    NarrowLanes,
}

impl Pass {
    /// All passes, in their order.
    pub const ALL: [Pass; 27] = [
        Pass::Divergence,
        Pass::IfConvert,
        Pass::Build,
        Pass::Ssa,
        Pass::PhiElim,
        Pass::Gvn,
        Pass::Dce,
        Pass::Ranges,
        Pass::Shapes,
        Pass::VersionIndices,
        Pass::FoldBranches,
        Pass::FloatChains,
        Pass::Constants,
        Pass::Accesses,
        Pass::Checks,
        Pass::LoopPredication,
        Pass::Groups,
        Pass::Prefetches,
        Pass::BarrierSlots,
        Pass::VersionUnmasked,
        Pass::ChunkLoops,
        Pass::OrderSections,
        Pass::EndpointTests,
        Pass::WarpStrips,
        Pass::VersionPrefix,
        Pass::SinkMasks,
        Pass::NarrowLanes,
    ];

    /// The name that file tests use.
    pub fn name(self) -> &'static str {
        match self {
            Pass::Divergence => "divergence",
            Pass::IfConvert => "if-convert",
            Pass::Build => "build",
            Pass::Ssa => "ssa",
            Pass::PhiElim => "phi-elim",
            Pass::Gvn => "gvn",
            Pass::Dce => "dce",
            Pass::Ranges => "ranges",
            Pass::Shapes => "shapes",
            Pass::VersionIndices => "version-indices",
            Pass::FoldBranches => "fold-branches",
            Pass::FloatChains => "float-chains",
            Pass::Constants => "constants",
            Pass::Accesses => "accesses",
            Pass::Checks => "checks",
            Pass::LoopPredication => "loop-predication",
            Pass::Groups => "groups",
            Pass::Prefetches => "prefetches",
            Pass::BarrierSlots => "barrier-slots",
            Pass::VersionPrefix => "version-prefix",
            Pass::VersionUnmasked => "version-unmasked",
            Pass::ChunkLoops => "chunk-loops",
            Pass::OrderSections => "order-sections",
            Pass::SinkMasks => "sink-masks",
            Pass::NarrowLanes => "narrow-lanes",
            Pass::EndpointTests => "endpoint-tests",
            Pass::WarpStrips => "warp-strips",
        }
    }

    /// The pass of a name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|pass| pass.name() == name)
    }
}

/// Which passes are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passes {
    off: Option<Pass>,
    last: Pass,
}

impl Passes {
    /// All that make a function of PTX alone.
    pub(crate) const ALL: Passes = Passes { off: None, last: Pass::VersionIndices };
    /// Also those that need its constants, and that plan how it accesses memory.
    pub(crate) const PLANS: Passes = Passes { off: None, last: Pass::NarrowLanes };
    /// The same without groups of accesses: each access is emitted on its own.
    pub(crate) const SINGLE_ACCESSES: Passes = Passes { off: Some(Pass::Groups), last: Pass::NarrowLanes };

    /// All but one, up to another.
    pub(crate) fn without(off: Option<Pass>, last: Pass) -> Self {
        Self { off, last }
    }

    pub(crate) fn has(self, pass: Pass) -> bool {
        pass <= self.last && self.off != Some(pass)
    }
}

/// The function as WIR; `None` if it would be too large.
pub(crate) fn wir(function: &Function, launch: LaunchShape, effects: &impl Effects) -> Option<Func> {
    run(function, launch, effects, Passes::ALL)
}

/// As [`wir`], of a coarse warp of several CTAs that leaves where its lanes diverge, or where a comparison by
/// place that inner branches depend on has different results in its lanes; `None` also if they may diverge by
/// their data.
pub(crate) fn wir_without_masks(
    function: &Function,
    launch: LaunchShape,
    effects: &impl Effects,
) -> Option<Func> {
    let func = built(function, launch, effects, Passes::ALL, true)?;
    Branches::new(&func, function).are_all_by_place().then_some(func)
}

/// The function as WIR, by these passes.
///
/// Which branches are divergent follows from the shapes of values, and the control flow follows from that. So
/// the analysis starts without any divergent branch, and everything is built again until no branch is found
/// divergent that was not, and no instruction that needs a guard; after [`DIVERGENCE_MAX_ROUNDS`] all
/// branches are divergent. A function that is large then is built once more, of masked copies alone, and
/// again if registers of it are to be spilled.
pub(crate) fn run(
    function: &Function,
    launch: LaunchShape,
    effects: &impl Effects,
    passes: Passes,
) -> Option<Func> {
    built(function, launch, effects, passes, false)
}

/// As [`run`]. `leaves`: as [`wir_without_masks`].
pub(crate) fn built(
    function: &Function,
    launch: LaunchShape,
    effects: &impl Effects,
    passes: Passes,
    leaves: bool,
) -> Option<Func> {
    // What a test leaves out at the end is still needed to find which branches are divergent.
    let whole = Passes { last: Pass::Shapes, ..passes };
    let mut divergence = divergence::Facts { leaves, ..divergence::Facts::new(function) };
    let mut copies = Copies::FullAndMasked;
    // `None`: not chosen yet.
    let mut spilled: Option<BTreeSet<Reg>> = None;
    let none = BTreeSet::new();
    let known = whole.has(Pass::Divergence) && whole.has(Pass::Ssa) && whole.has(Pass::Shapes);
    if !known {
        divergence.give_up();
    }
    for round in 0.. {
        if round == DIVERGENCE_MAX_ROUNDS {
            divergence.give_up();
        }
        let before_spills = copies == Copies::Masked && spilled.is_none();
        let plan = cfg::Plan {
            copies,
            spilled: spilled.as_ref().unwrap_or(&none),
            max_ops: if before_spills { MAX_OPS_BEFORE_SPILLS } else { MAX_OPS },
            if_convert: whole.has(Pass::IfConvert),
        };
        let Some(func) = once(function, launch, effects, (&divergence, plan), whole) else {
            if copies == Copies::Masked || launch.only_starts() {
                return None;
            }
            copies = Copies::Masked;
            continue;
        };
        if known && divergence.refine(&func, function) {
            continue;
        }
        if copies == Copies::FullAndMasked && !launch.only_starts() && is_too_much(&func, &divergence) {
            copies = Copies::Masked;
            continue;
        }
        if before_spills && known && !launch.only_starts() {
            let chosen = spill::choose(&func, function);
            if !chosen.is_empty() {
                spilled = Some(chosen);
                continue;
            }
        }
        if before_spills && spill::size(&func) > MAX_OPS {
            return None;
        }
        let shaped = passes.last >= Pass::Shapes;
        let mut func =
            if shaped { func } else { once(function, launch, effects, (&divergence, plan), passes)? };
        if passes.has(Pass::VersionIndices) && known {
            let classify = |func: &mut Func| infer_shapes(func, function, launch, effects, passes);
            let versions = match launch.leaves_at_edges() {
                false => {
                    let rest = launch.team == 1
                        && version_indices::version_rest(&mut func, function, effects, classify);
                    version_indices::version(&mut func, function, effects, classify) || rest
                }
                true => version_indices::assume(&mut func, function, effects, classify),
            };
            check(&func, function, effects, Form::Ssa);
            // Values that are affine in a version only may need guards where they are widened.
            if divergence.refine(&func, function) {
                continue;
            }
            if versions {
                divergence::remove_idle_guards(&mut func);
                dce::sweep(&mut func, function, effects);
            }
        }
        return Some(func);
    }
    None
}

/// Whether a function has so many instructions that one copy of each PTX block must be enough, many of them
/// are copies, and so many branches are divergent that all lanes are hardly ever active.
fn is_too_much(func: &Func, divergence: &divergence::Facts) -> bool {
    let branches = divergence.divergent.iter().filter(|divergent| **divergent).count();
    if branches < LARGE_FUNCTION_MIN_BRANCHES {
        return false;
    }
    let count = func.instructions().count();
    let distinct = func.instructions().collect::<HashSet<_>>().len();
    count > LARGE_FUNCTION_MIN_INSTRUCTIONS && count > distinct + distinct / 4
}

/// Folds branches whose conditions are constant, and makes chains of arithmetic. Returns what is known of the
/// function's values then.
pub(crate) fn analyse(
    func: &mut Func,
    (program, function): (&Program, &Function),
    layout: &Layout,
    launch: LaunchShape,
    target: Target,
    effects: &impl Effects,
    passes: Passes,
) -> Analyses {
    let ptx = (program, function);
    // A branch that is folded can make the operands of a phi equal, and a condition constant.
    while passes.has(Pass::FoldBranches)
        && fold_branches::fold(func, function, &Analyses::constants(func, ptx, layout, launch).1)
    {
        phi_elim::simplify(func);
        dce::sweep(func, function, effects);
    }
    check(func, function, effects, Form::Ssa);
    if passes.has(Pass::FloatChains) {
        float_chains::form(func, function, &env(program, target));
    }
    Analyses::of(func, ptx, layout, launch)
}

/// What instruction selection depends on.
fn env(program: &Program, target: Target) -> Env {
    Env { target, flush: Flush::Never, sm: u32::from(program.target.sm.number) }
}

/// Plans how a function accesses memory, after which it is complete: the strategy of each access, the bounds
/// checks and the groups of accesses of each block, the prefetches, versions of blocks for all lanes, chunk
/// loops, endpoint tests, warp strips, versions for leading lanes, sunk masks, and narrow lanes.
/// `by_warp`: whether a coarse warp computes vectors warp by warp. `analyses`: what is known of its values.
pub(crate) fn plan_memory(
    (func, analyses): (&mut Func, &mut Analyses),
    (program, function): (&Program, &Function),
    (layout, objects): (&Layout, Option<&AccessObjects>),
    (launch, by_warp): (LaunchShape, bool),
    target: Target,
    effects: &impl Effects,
    passes: Passes,
) {
    if passes.has(Pass::Accesses) {
        let planner = Planner { func, function, program, layout, objects, launch, target };
        let plans = planner.blocks(analyses);
        for (block, plans) in func.blocks.iter_mut().zip(plans) {
            for (at, plan) in plans {
                block.ops[at].access = Some(Rc::new(plan));
            }
        }
    }
    if passes.has(Pass::Checks) {
        let planner = Planner { func, function, program, layout, objects, launch, target };
        let checks = Coalescing::new(planner, analyses).blocks();
        for (block, checks) in func.blocks.iter_mut().zip(checks) {
            block.checks = checks.map(Rc::new);
        }
    }
    if passes.has(Pass::LoopPredication) {
        let planner = Planner { func, function, program, layout, objects, launch, target };
        let vectors = planner.vectors();
        predicate::predicate(func, function, &analyses.def_use, vectors);
    }
    if passes.has(Pass::Groups) {
        let planner = Planner { func, function, program, layout, objects, launch, target };
        let groups = Grouping { planner, analyses }.blocks();
        for (block, groups) in func.blocks.iter_mut().zip(groups) {
            block.groups = groups.into_iter().map(Rc::new).collect();
        }
    }
    if passes.has(Pass::Prefetches) {
        analyses.evolution = ScalarEvolution::new(func, function, &analyses.def_use, launch);
        let (evolution, loops) = (&analyses.evolution, loop_kinds(function));
        Prefetching { program, function, launch, target, by_warp, evolution, loops: &loops }
            .decide(func, &analyses.def_use);
    }
    if passes.has(Pass::BarrierSlots) {
        func.slot_memory = Some(Rc::new(barrier_slots::assign(func, &analyses.def_use, launch, target)));
    }
    if passes.has(Pass::VersionUnmasked) {
        let planner = Planner { func, function, program, layout, objects, launch, target };
        let decisions = Versioning::new(planner, analyses).blocks();
        for (id, decision) in decisions {
            func.blocks[id.0 as usize].unmasked = Some(decision);
        }
    }
    if passes.has(Pass::ChunkLoops) && !by_warp {
        let planner = Planner { func, function, program, layout, objects, launch, target };
        let sections = Sections::new(planner, analyses, effects).blocks();
        for (block, sections) in func.blocks.iter_mut().zip(sections) {
            block.sections = sections;
        }
        deferred::issue(func, function, launch);
    }
    if passes.has(Pass::OrderSections) {
        order_sections::order(func, function, target.level());
    }
    if passes.has(Pass::EndpointTests) {
        for (id, test) in endpoint_tests::find(func, function, analyses) {
            func.blocks[id.0 as usize].endpoint_test = Some(Rc::new(test));
        }
    }
    if passes.has(Pass::WarpStrips) && !by_warp {
        let planner = Planner { func, function, program, layout, objects, launch, target };
        let strips = warp_strips::decide(planner, analyses, env(program, target));
        for (block, strips) in func.blocks.iter_mut().zip(strips) {
            block.strips = Some(strips);
        }
    }
    if passes.has(Pass::VersionPrefix) {
        let planner = Planner { func, function, program, layout, objects, launch, target };
        let decisions = version_prefix::decide(planner, analyses);
        for (id, decision) in decisions {
            func.blocks[id.0 as usize].leading = Some(decision);
        }
    }
    if passes.has(Pass::SinkMasks) && !by_warp {
        let sunk = sink_masks::find(func, function, launch, analyses);
        for (block, sunk) in func.blocks.iter_mut().zip(sunk) {
            block.sunk = sunk;
        }
    }
    if passes.has(Pass::NarrowLanes) {
        narrow_lanes::decide(func, function, launch);
    }
    check(func, function, effects, Form::Ssa);
}

/// All passes once, with what is known of branches.
fn once(
    function: &Function,
    launch: LaunchShape,
    effects: &impl Effects,
    (divergence, plan): (&divergence::Facts, cfg::Plan<'_>),
    passes: Passes,
) -> Option<Func> {
    let check = |func: &Func, form: Form| check(func, function, effects, form);
    let graph = cfg::build(function, launch, effects, divergence, plan)?;
    check(&graph.func, Form::Variables);
    if !passes.has(Pass::Ssa) {
        return Some(graph.func);
    }
    let mut func = ssa::rename(graph);
    check(&func, Form::Ssa);
    if passes.has(Pass::PhiElim) {
        phi_elim::simplify(&mut func);
        check(&func, Form::Ssa);
    }
    if passes.has(Pass::Gvn) {
        let replaced = gvn::unite(&mut func, function, effects);
        check(&func, Form::Ssa);
        if replaced && passes.has(Pass::PhiElim) {
            phi_elim::simplify(&mut func);
            check(&func, Form::Ssa);
        }
    }
    if passes.has(Pass::Dce) {
        dce::sweep(&mut func, function, effects);
        check(&func, Form::Ssa);
    }
    if passes.has(Pass::Shapes) {
        infer_shapes(&mut func, function, launch, effects, passes);
        check(&func, Form::Ssa);
    }
    Some(func)
}

/// Infers the shapes of values from their ranges.
pub(crate) fn infer_shapes(
    func: &mut Func,
    function: &Function,
    launch: LaunchShape,
    effects: &impl Effects,
    passes: Passes,
) {
    let ranges = match passes.has(Pass::Ranges) {
        true => range::bounds(func, function, launch.ntid, &|_| None),
        false => vec![None; func.kinds.len()],
    };
    shape::classify(func, function, launch, effects, ranges);
}

/// Verifies a function in a build with debug assertions.
fn check(func: &Func, function: &Function, effects: &impl Effects, form: Form) {
    debug_assert_eq!(verify(func, function, effects, form), [], "of `{}`", function.name);
}
