//! CTAs that execute as one: coarse warps of kernels whose CTAs are small boxes of a plane or a space.
//!
//! A warp of a CTA of 32 x 8 threads is a row of 32 points. It computes the addresses, the bounds checks and
//! the tests of its row, and the other warps of its CTA have other rows, so that a coarse warp of them shares
//! little. The same row goes on in the next CTA in x. A coarse warp of warps from neighbouring CTAs computes
//! once what belongs to the row, and its lanes access elements next to each other.
//!
//! A row of 128 threads or more needs no other CTA: coarse warps of one CTA have parts of its rows.
//!
//! Kernels qualify whose CTAs have nothing of their own: no shared memory, no barriers, no exchange between
//! lanes. Which lane of which warp a thread is then makes no difference to the kernel.
//!
//! Invariant: an estimate changes nothing. Each coarse warp of several CTAs has whole rows of them. A warp
//! whose lanes are several rows may be in several coarse warps.

use super::{AS_LONG, Gain, Sizes, cost, pressure};
use crate::analysis::branches::{Branches, both_work};
use crate::analysis::expr::may_change_index;
use crate::effects;
use crate::target::Level;
use crate::tuning::{
    LOCKSTEP_MAX_CHUNKS, MERGED_CTAS_MAX_ASSUMED_INSTRUCTIONS, MERGED_CTAS_MAX_PATH_INSTRUCTIONS,
    MERGED_CTAS_MIN_GROUPS, coarse_warp_registers, merged_ctas_min_gain,
};
use crate::wir::{self, ExitReason, Func, GuardKind, LaunchShape, Term};
use ptx::ir::{Addr, Base, Function, Inst, Program, Src, Terminator};
use ptx::isa::{Op, Sem, Space, Sreg};

/// The CTAs to try as one, the most first. `func`: the WIR of a single warp; `asked`: the most warps of a
/// coarse warp, if the caller asks for them whether or not they pay.
pub(super) fn sizes(
    (function, program): (&Function, &Program),
    func: &Func,
    shape: LaunchShape,
    level: Level,
    asked: Option<u32>,
) -> Vec<Sizes> {
    let [nx, ny, nz] = shape.ntid;
    if !is_independent(function, program) {
        return Vec::new();
    }
    let chunks = 32 / shape.chunk;
    // Indices that vary in a single warp may be affine in a coarse one.
    let assumes = function.blocks.iter().flat_map(|block| &block.insts).any(may_change_index);
    let by_registers = || match assumes {
        true => LOCKSTEP_MAX_CHUNKS / chunks,
        false => coarse_warp_registers(level) / (pressure(func, function, level) * chunks).max(1),
    };
    let warps = asked.unwrap_or_else(|| (LOCKSTEP_MAX_CHUNKS / chunks).min(by_registers()));
    let gain = if asked.is_some() { Gain::Barriers } else { Gain::Rows };
    let of = |ctas: u32| {
        // The fewest warps whose threads are whole rows of these CTAs.
        let size = nx * ctas / gcd(nx * ctas, 32);
        let fits = (2..=warps).contains(&size) && (shape.threads() * ctas / 32).is_multiple_of(size);
        fits.then(|| Sizes { ctas, gain, ..Sizes::of(size, "rows of neighbouring CTAs") })
    };
    // A row of several CTAs would be too long where that of one is long enough.
    let part = (2..=warps).rev().find(|size| nx.is_multiple_of(32 * size));
    let long = asked.is_none() && nx >= 32 * warps && (assumes || has_border(func, function));
    if let Some(size) = part.filter(|_| long) {
        return vec![Sizes { gain, ..Sizes::of(size, "a part of a row of threads") }];
    }
    if ny * nz < 2 {
        return Vec::new();
    }
    [16, 8, 4, 2].into_iter().filter_map(of).collect()
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Whether each thread could be in any lane of any CTA: nothing depends on the warp, and CTAs have no memory
/// of their own.
fn is_independent(function: &Function, program: &Program) -> bool {
    let of_thread = |src: &Src| match src {
        Src::Sreg(sreg, _) => matches!(sreg, Sreg::Tid | Sreg::Ntid | Sreg::Ctaid | Sreg::Nctaid),
        Src::Addr(Addr { base: Base::Var(var), .. }) => {
            program.variables.get(var.0 as usize).is_some_and(|var| var.space != Space::Shared)
        }
        Src::Addr(_) | Src::Absent | Src::Imm(_) | Src::Reg(_) | Src::Not(_) | Src::Video(_) => true,
    };
    let plain = |inst: &Inst| {
        let outside = !matches!(inst.mods.space(), Space::Shared | Space::Local);
        let accesses =
            matches!(inst.op, Op::Ld | Op::LdNc | Op::Ldu | Op::St) && inst.mods.sem() == Sem::Weak;
        outside && (accesses || effects::is_pure(inst)) && inst.srcs.iter().all(of_thread)
    };
    function.blocks.iter().all(|block| {
        let goes_on = match block.term {
            Terminator::Barrier { .. } | Terminator::WarpSync { .. } | Terminator::Call(_) => false,
            Terminator::Goto(..)
            | Terminator::Branch { .. }
            | Terminator::Switch { .. }
            | Terminator::Ret(_)
            | Terminator::Exit(_) => true,
        };
        goes_on && block.insts.iter().all(plain)
    })
}

/// The CTAs of a row of the grid from which on they gain by executing as one: if their number is a multiple
/// of those that do, and if it is not. At the border of a picture, where some lanes do other work, a coarse
/// warp executes both sides of a branch. In a short row of the grid, all coarse warps have such lanes.
pub(super) fn least_row(func: &Func, function: &Function, shape: LaunchShape) -> [u32; 2] {
    let many = MERGED_CTAS_MIN_GROUPS * shape.ctas;
    let assumed = !func.guarded(GuardKind::SameInAll).is_empty() || shape.ctas == 1;
    [if assumed || has_border(func, function) { many } else { 2 * shape.ctas }, many]
}

/// Whether threads at the border of a picture do other work than those inside.
pub(super) fn has_border(func: &Func, function: &Function) -> bool {
    let branches = Branches::new(func, function);
    let by_place =
        |block| Branches::divergent(block).is_some_and(|lower| branches.compared_before(lower).is_some());
    func.blocks.iter().any(|block| by_place(block) && both_work(block, function))
}

/// Whether coarse warps at the edge of a picture leave native code: clamped, mirrored and wrapped indices
/// are changed there, or lanes diverge, and the coarse warp leaves.
pub(super) fn leaves_at_edges(func: &Func) -> bool {
    let leaves = |block: &wir::Block| match &block.term {
        Term::Exit(exit) => matches!(exit.why, ExitReason::Before(_) | ExitReason::Terminator { .. }),
        _ => false,
    };
    let assumed = !func.guarded(GuardKind::SameInAll).is_empty();
    assumed || func.blocks.iter().any(|block| block.full && leaves(block))
}

/// Whether the coarse warp is expected to be faster than its warps one after another. The functions have the
/// plans of their accesses.
///
/// # Errors
/// The reason why not.
pub(super) fn pays(
    (single, alone): (&Func, LaunchShape),
    (coarse, together): (&Func, LaunchShape),
    function: &Function,
    level: Level,
) -> Result<(), &'static str> {
    let chunks = together.lanes() / together.chunk;
    if pressure(coarse, function, level) * chunks > coarse_warp_registers(level) {
        return Err("values of an iteration take all registers");
    }
    let warps = u64::from(together.team);
    let (separate, all) = if wir::loops::loops(function).is_empty() {
        let most = match leaves_at_edges(coarse) {
            true => MERGED_CTAS_MAX_ASSUMED_INSTRUCTIONS,
            false => MERGED_CTAS_MAX_PATH_INSTRUCTIONS,
        };
        let path = |of| cost::path(of, function, most);
        (path((single, alone))?, path((coarse, together))?)
    } else {
        super::lockstep::ends_together(coarse, function, &Branches::new(coarse, function))?;
        (cost::loops(single, function, alone), cost::loops(coarse, function, together))
    };
    let separate = separate * warps;
    match separate - separate / merged_ctas_min_gain(level) >= all {
        true => Ok(()),
        false => Err(AS_LONG),
    }
}
