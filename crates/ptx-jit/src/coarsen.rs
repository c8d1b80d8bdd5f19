//! Coarsening: which kernels execute several warps as one coarse warp, and how many.
//!
//! At a barrier, each warp stores its live values and loads them again. Each warp also recomputes values that
//! are uniform in the CTA: addresses, bounds, counters. A coarse warp does this once for all its warps, and
//! the dependence chains of its warps execute in parallel. Coarsening is worthwhile where warps meet at
//! barriers; it needs more registers and more code. The factor is the largest whose values fit into the
//! registers.
//!
//! In kernels with loops and without barriers, several warps execute in lockstep if no loop takes longer for
//! some lanes than for others ([`lockstep`]).
//!
//! Warps of CTAs that are neighbours in x execute as one where CTAs are boxes of several rows and share no
//! memory ([`merged`]).
//!
//! In kernels with neither, a coarse warp that is the whole CTA saves the scalar work of its warps; [`cost`]
//! estimates whether that is worth it. Its code is for CTAs of which all threads do the same; it declines
//! other CTAs before they have had an effect, and single warps execute them.
//!
//! Invariant: results do not depend on the factor. An operation that several warps cannot execute together is
//! absent from a function that is chosen here, or is a side exit.

use crate::analysis::range::bounds;
use crate::analysis::thread_constant::constants;
use crate::effects;
use crate::opt::chunk_loops;
use crate::target::Level;
use crate::tuning::{
    COARSE_WARP_MAX, COARSE_WARP_MAX_CODE, COARSE_WARP_MAX_CODE_AVX512, COARSE_WARP_MAX_CODE_ON_DEMAND,
    COARSE_WARP_MAX_CODE_WHOLE_CTA, COARSE_WARP_MAX_CODE_WHOLE_CTA_AVX2, COARSE_WARP_MAX_WHOLE_CTA,
    COARSE_WARP_SPILLED, LOCKSTEP_MAX_CHUNKS, QUICK_WARP_MAX_CODE, coarse_warp_carried,
    coarse_warp_registers,
};
use crate::wir;
use crate::wir::{Exit, ExitReason, Func, Kind, LaunchShape, OpKind, Shape, Term};
use ptx::check::module::{AddressSize, FunctionKind};
use ptx::ir::{Addr, Base, Function, Inst, Program, Reg, RegClass, Src, Terminator};
use ptx::isa::{Op, Space, Sreg};

mod cost;
mod lockstep;
mod merged;

/// How many warps execute as one coarse warp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Teams {
    /// The number that is expected to be fastest.
    #[default]
    Auto,
    /// Always one.
    Never,
    /// Less than one: scalar code, which executes one thread at a time, wherever the kernel allows it, and
    /// single warps elsewhere.
    Threads,
    /// This number, or the next smaller one that divides the number of the CTA's warps, wherever the kernel
    /// allows it.
    Of(u32),
}

/// Addresses of shared memory below this are assumed to be in bounds, when the size of the code is estimated.
const NEAR: u64 = 1 << 16;

/// Why warps are single, if a coarse warp would have as many instructions as its warps one after another.
const AS_LONG: &str = "the code would take as long for each";

/// What a coarse warp saves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gain {
    /// What each of its warps would do at barriers. Also where the caller asks for a number of warps.
    Barriers,
    /// What each of its warps would compute once, in a kernel without barriers. Its vectors are computed warp
    /// by warp.
    Scalars,
    /// Waiting for the previous iteration, in a kernel with loops and without barriers.
    Latency,
    /// What belongs to a row of threads, which goes on in the next warps, or in the next CTAs.
    Rows,
}

/// The numbers of warps that are tried for a coarse warp; 1 means that each warp executes alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// The number that is tried first.
    pub(crate) first: u32,
    /// The best number if a coarse warp is not the whole CTA.
    pub(crate) within: u32,
    /// Whether `within` warps are worth it only if the code has a chunk loop.
    pub(crate) apart: bool,
    /// What the coarse warps are for.
    pub(crate) gain: Gain,
    /// How many CTAs execute as one.
    pub(crate) ctas: u32,
    /// The reason for `first`, for a remark.
    pub(crate) why: &'static str,
}

impl Sizes {
    fn of(size: u32, why: &'static str) -> Self {
        Self { first: size, within: size, apart: false, gain: Gain::Barriers, ctas: 1, why }
    }

    /// Whether coarse warps have rows of threads, or parts of them, and leave at the edges of a picture.
    pub(crate) fn has_rows(self) -> bool {
        self.gain == Gain::Rows || self.ctas > 1
    }

    /// The number that is tried after `size`: the next smaller one that divides it. Of rows, only one number
    /// is tried.
    pub(crate) fn smaller(self, size: u32) -> u32 {
        if self.has_rows() {
            return 1;
        }
        if size > self.within {
            return self.within;
        }
        (1..size).rev().find(|less| size.is_multiple_of(*less)).unwrap_or(1)
    }
}

/// The numbers of warps to try, and then those of the next element. `func`: the WIR of a single warp.
/// `checked`: observers are told of what CTAs do.
pub(crate) fn candidates(
    teams: Teams,
    (function, program): (&Function, &Program),
    func: &Func,
    shape: LaunchShape,
    level: Level,
    checked: bool,
) -> Vec<Sizes> {
    let within = sizes(teams, function, program, func, shape, level);
    let full = shape.threads().is_multiple_of(32) && !func.has_spills() && is_fit(function, program);
    let merged = |asked| merged::sizes((function, program), func, shape, level, asked);
    let all = match teams {
        Teams::Auto if full && !checked => merged(None),
        Teams::Of(size) if full && !checked => merged(Some(size)),
        Teams::Auto | Teams::Never | Teams::Threads | Teams::Of(_) => Vec::new(),
    };
    // Where warps of one CTA gain, those of several gain little more, in some grids only. But lanes at the
    // border of a picture diverge in loops, and those of several CTAs leave there.
    let border = within.gain == Gain::Latency && !all.is_empty() && merged::has_border(func, function);
    let alone_first = match within.gain {
        // Measured on a Zen 3: a stencil of seven points takes 0.7 of the time in rows, grey from pixels of
        // three bytes too.
        Gain::Scalars => level == Level::Avx512,
        Gain::Latency => !border,
        Gain::Barriers | Gain::Rows => false,
    };
    match within.first > 1 && alone_first {
        true => [&[within], &all[..]].concat(),
        false => [&all[..], &[within]].concat(),
    }
}

/// The numbers of warps of a CTA to try.
fn sizes(
    teams: Teams,
    function: &Function,
    program: &Program,
    func: &Func,
    shape: LaunchShape,
    level: Level,
) -> Sizes {
    let threads = shape.threads();
    let warps = threads / 32;
    if !threads.is_multiple_of(32) || warps < 2 {
        return Sizes::of(1, "a CTA is one warp, or has a partial one");
    }
    if func.has_spills() {
        return Sizes::of(1, "its registers are in the warp frame, since it is large");
    }
    if !is_fit(function, program) {
        return Sizes::of(1, "an instruction has no code for several warps");
    }
    let largest =
        |most: u32| (1..=most.min(warps)).rev().find(|size| warps.is_multiple_of(*size)).unwrap_or(1);
    match teams {
        Teams::Never | Teams::Threads => Sizes::of(1, "it is switched off, or the kernel reads a clock"),
        Teams::Of(size) => Sizes::of(largest(size.max(1)), "as asked for"),
        Teams::Auto => {
            let chunks = 32 / shape.chunk;
            let registers = coarse_warp_registers(level);
            let pressure = pressure(func, function, level);
            let by_registers = registers / (pressure * chunks).max(1);
            let (barriers, loops) = (has_barrier(function), !wir::loops::loops(function).is_empty());
            if !barriers && loops {
                let size = largest((LOCKSTEP_MAX_CHUNKS / chunks).min(by_registers).max(1));
                return match lockstep::may_pay(func, function) {
                    Ok(()) if size == 1 => Sizes::of(1, "values of an iteration take all registers"),
                    Ok(()) => {
                        Sizes { gain: Gain::Latency, ..Sizes::of(size, "loops of several warps at once") }
                    }
                    Err(why) => Sizes::of(1, why),
                };
            }
            if !barriers {
                let why = "the whole CTA, warp by warp: scalar work is done once";
                return match by_warp(func, function, shape) {
                    Ok(()) => Sizes { gain: Gain::Scalars, ..Sizes::of(warps, why) },
                    Err(why) => Sizes::of(1, why),
                };
            }
            // A chunk loop does not need registers for all chunks at once. In a coarse warp that is the whole
            // CTA, values between barriers would be carried in registers all the same.
            let apart = by_registers < 2 && is_apart(func, function, chunks, level);
            let by_registers = if apart { warps / 2 } else { by_registers };
            // If each loop has a barrier, single warps store their values as often as coarse ones spill.
            let spilled = by_registers < COARSE_WARP_SPILLED && effects::all_loops_have_barriers(function);
            let by_registers = if spilled { COARSE_WARP_SPILLED } else { by_registers };
            let within = largest(COARSE_WARP_MAX.min(by_registers).max(1));
            // The whole CTA is worth it in two cases. Either no vector lives across a barrier, and all values
            // that differ between threads are constants. Or values that live across barriers are written
            // once, since no barrier is in a loop, and the loops between barriers execute for the whole CTA
            // at once, with the vectors of an iteration in registers.
            let whole = if pressure == 0 {
                COARSE_WARP_MAX_WHOLE_CTA
            } else if effects::loops_between_barriers(function)
                && carried(func, function, level) * chunks * warps <= coarse_warp_carried(level)
            {
                COARSE_WARP_MAX
            } else {
                0
            };
            let (first, why) = match warps <= whole {
                true if pressure == 0 => (warps, "the whole CTA: no vector lives across a barrier"),
                true => (warps, "the whole CTA: no loop has a barrier"),
                false if within == 1 => (1, "values that live across barriers take all registers"),
                false if spilled => (within, "single warps would store their values at each barrier, too"),
                false => (within, "as many as keep their values in registers"),
            };
            Sizes { first, within, apart, ..Sizes::of(first, why) }
        }
    }
}

fn has_barrier(function: &Function) -> bool {
    function.blocks.iter().any(|block| matches!(block.term, Terminator::Barrier { .. }))
}

/// Whether a coarse warp that is the whole CTA may execute its vectors warp by warp.
///
/// # Errors
/// The reason why not.
fn by_warp(func: &Func, function: &Function, shape: LaunchShape) -> Result<(), &'static str> {
    if shape.threads() / 32 > COARSE_WARP_MAX_WHOLE_CTA {
        return Err("the CTA has too many warps");
    }
    cost::may_pay(func, function, shape)
}

/// Whether a coarse warp of a kernel without barriers is expected to be faster than its warps one after
/// another. The functions have the plans of their accesses.
///
/// # Errors
/// The reason why not.
pub(crate) fn pays(
    gain: Gain,
    single: (&Func, LaunchShape),
    coarse: (&Func, LaunchShape),
    function: &Function,
    level: Level,
) -> Result<(), &'static str> {
    match gain {
        Gain::Barriers => Ok(()),
        Gain::Scalars if cost::pays(single, coarse, function) => Ok(()),
        Gain::Scalars => Err(AS_LONG),
        Gain::Latency => lockstep::pays(single, coarse, function),
        Gain::Rows => merged::pays(single, coarse, function, level),
    }
}

/// Whether threads at the border of a picture do other work than those inside.
pub(crate) fn has_border(func: &Func, function: &Function) -> bool {
    merged::has_border(func, function)
}

/// The CTAs of a row of the grid from which on a coarse warp of several pays; see
/// [`CoarseCode::least_row`](ptx_exec::native::CoarseCode::least_row).
pub(crate) fn least_row(teams: Teams, func: &Func, function: &Function, shape: LaunchShape) -> [u32; 2] {
    match teams {
        Teams::Auto if shape.leaves_at_edges() => merged::least_row(func, function, shape),
        Teams::Auto | Teams::Never | Teams::Threads | Teams::Of(_) => [shape.ctas; 2],
    }
}

/// Whether the first and the last CTA of a row of the grid execute alone, and those of the first and the last
/// row; see [`CoarseCode::edges_alone`](ptx_exec::native::CoarseCode::edges_alone).
pub(crate) fn edges_alone(func: &Func, shape: LaunchShape) -> [bool; 2] {
    let leaves = shape.leaves_at_edges() && merged::leaves_at_edges(func);
    // In a coarse warp of one row, all lanes have the same `%tid.y`.
    [leaves, leaves && shape.ntid[0] * shape.ctas < shape.lanes()]
}

/// Whether the code of single warps is made after that of coarse warps, beside the launch.
pub(crate) fn is_in_parts(teams: Teams, function: &Function) -> bool {
    teams == Teams::Auto && !has_barrier(function)
}

/// Whether the code of a coarse warp is small enough to be compiled in time.
pub(crate) fn is_small(teams: Teams, func: &Func, function: &Function, shape: LaunchShape) -> bool {
    let weight = weight(func, function, shape);
    match teams {
        Teams::Auto if shape.chunk == 16 && stays(func, function) => weight <= COARSE_WARP_MAX_CODE_WHOLE_CTA,
        // Single warps are much slower here, and their code is not smaller.
        Teams::Auto
            if shape.chunk == 8
                && shape.is_alone()
                && pressure(func, function, Level::Avx2) == 0
                && stays(func, function) =>
        {
            weight <= COARSE_WARP_MAX_CODE_WHOLE_CTA_AVX2
        }
        Teams::Auto if shape.chunk == 16 && effects::loops_between_barriers(function) => {
            weight <= COARSE_WARP_MAX_CODE_AVX512
        }
        Teams::Auto => weight <= COARSE_WARP_MAX_CODE,
        Teams::Never | Teams::Threads | Teams::Of(_) => weight <= COARSE_WARP_MAX_CODE_ON_DEMAND,
    }
}

/// Whether the code of a single warp is compiled quickly.
pub(crate) fn is_quick(func: &Func, function: &Function, shape: LaunchShape) -> bool {
    weight(func, function, shape) <= QUICK_WARP_MAX_CODE
}

/// Whether a coarse warp takes a side exit only if an access is out of bounds: lanes never diverge or wait,
/// and at every access to memory other than shared memory the lanes' addresses are next to each other.
pub(crate) fn stays(func: &Func, function: &Function) -> bool {
    let varies = |op: &crate::wir::Op| {
        let OpKind::Inst(site) = op.kind else { return false };
        let Some(inst) = site
            .inst(function)
            .filter(|inst| matches!(inst.op, Op::Ld | Op::LdNc | Op::Ldu | Op::St | Op::Atom | Op::Red))
        else {
            return false;
        };
        let of_register =
            matches!(inst.srcs.first(), Some(Src::Reg(_) | Src::Addr(Addr { base: Base::Reg(_), .. })));
        let address = op.uses.get(1).map(|name| &func.shapes[name.0 as usize]);
        of_register && inst.mods.space() != Space::Shared && address == Some(&Shape::Varying)
    };
    func.blocks.iter().all(|node| {
        let leaves = match &node.term {
            Term::Exit(exit) => match exit.why {
                ExitReason::Finished | ExitReason::Declined => false,
                ExitReason::Yield { .. } | ExitReason::Terminator { .. } => exit.resume.is_none(),
                ExitReason::Before(_) => true,
            },
            _ => false,
        };
        !leaves && !node.ops.iter().any(varies)
    })
}

/// An estimate of the number of LLVM instructions that a function becomes.
fn weight(func: &Func, function: &Function, shape: LaunchShape) -> usize {
    let chunks = (shape.lanes() / shape.chunk) as usize;
    let constant = if shape.is_alone() { constants(func, function) } else { vec![false; func.kinds.len()] };
    let bounds = bounds(func, function, shape.ntid, &|_| Some(0));
    let value = |name: &wir::Value| match &func.shapes[name.0 as usize] {
        _ if constant[name.0 as usize] => 0,
        Shape::Bottom | Shape::Uniform(_) => 1,
        Shape::Affine(pattern) => pattern.scalars(chunks as u32) as usize,
        Shape::Varying => chunks,
    };
    let stored = |regs: &[(Reg, wir::Value)]| -> usize { regs.iter().map(|(_, name)| 2 * value(name)).sum() };
    let left = |exit: &Exit| -> usize {
        20 + stored(&exit.regs) + exit.parked.iter().map(|parked| stored(&parked.regs)).sum::<usize>()
    };
    let op = |op: &crate::wir::Op, still: bool| match &op.kind {
        _ if !op.defs.is_empty() && op.defs.iter().all(|def| constant[def.0 as usize]) => 0,
        // Loads and stores count by their registers; an operation on masks counts as a few instructions.
        OpKind::Inst(_) => op.uses.iter().chain(&op.defs).map(value).max().unwrap_or(1),
        OpKind::SelectMask | OpKind::SelectPred { .. } | OpKind::Truths { .. } | OpKind::InRange { .. } => {
            2 * chunks
        }
        OpKind::Chain(chain) => chain.ops.len() * chunks,
        // If the addresses are constant or known to be small, checks need no code.
        OpKind::Ahead(_) | OpKind::Guard(..) | OpKind::Spare(..) if still => 0,
        OpKind::Ahead(exit) | OpKind::Guard(_, _, exit) => 20 + left(exit),
        OpKind::Spare(_, exit) => left(exit) / 4,
        OpKind::Restore(..) => chunks,
        _ => 1,
    };
    let node = |node: &wir::Block| -> usize {
        let phis: usize = node.phis.iter().map(|phi| value(&phi.def)).sum();
        let end = if let Term::Exit(exit) = &node.term { left(exit) } else { 1 };
        let accesses = node.ops.iter().filter(|op| is_access(op, function));
        let within = |op: &crate::wir::Op| {
            let OpKind::Inst(site) = op.kind else { return false };
            let near = |inst: &Inst| matches!(inst.mods.space(), Space::Shared | Space::Param);
            site.inst(function).is_some_and(near)
                && op.uses.get(1).is_some_and(|name| {
                    shape.is_alone() && constant[name.0 as usize]
                        || bounds[name.0 as usize].is_none_or(|bound| bound.high < NEAR)
                })
        };
        let still = accesses.clone().all(within);
        let known = accesses.clone().all(|op| constant[op.uses[0].0 as usize]);
        let times = if node.full || shape.is_alone() && known { 1 } else { 2 };
        phis + end + times * node.ops.iter().map(|one| op(one, still)).sum::<usize>()
    };
    func.blocks.iter().map(node).sum()
}

/// Whether an operation accesses memory with a bounds check.
fn is_access(op: &crate::wir::Op, function: &Function) -> bool {
    let OpKind::Inst(site) = op.kind else { return false };
    site.inst(function).is_some_and(|inst| {
        matches!(inst.op, Op::Ld | Op::LdNc | Op::Ldu | Op::St | Op::Atom | Op::Red)
            && !effects::reads_parameter(inst)
    })
}

/// The number of vectors, for each chunk, that live across an iteration of a loop or a barrier.
fn pressure(func: &Func, function: &Function, level: Level) -> u32 {
    kept(func, function, level, |exit| exit.resume.is_some() || is_turn(exit))
}

/// The number of vectors, for each chunk, that live across an iteration of a loop.
fn carried(func: &Func, function: &Function, level: Level) -> u32 {
    kept(func, function, level, is_turn)
}

/// Whether an exit is the one at a back edge.
fn is_turn(exit: &Exit) -> bool {
    matches!(exit.why, ExitReason::Yield { .. })
}

/// The largest number of vectors, for each chunk, that live at one of some exits.
fn kept(func: &Func, function: &Function, level: Level, counts: impl Fn(&Exit) -> bool) -> u32 {
    let constant = constants(func, function);
    let of = |exit: &Exit| -> u32 {
        let varies =
            |name: wir::Value| func.shapes[name.0 as usize] == Shape::Varying && !constant[name.0 as usize];
        let varying = exit.regs.iter().filter(|(_, name)| varies(*name));
        varying
            .map(|(reg, _)| match (reg.class, level) {
                (RegClass::R64, _) => 2,
                // A predicate is one bit for each lane.
                (RegClass::Pred, Level::Avx512) => 0,
                (RegClass::Pred | RegClass::R16 | RegClass::R32, _) => 1,
            })
            .sum()
    };
    let exits = func.blocks.iter().filter(|node| node.full).filter_map(|node| match &node.term {
        Term::Exit(exit) => Some(&**exit),
        _ => None,
    });
    exits.filter(|exit| counts(exit)).map(of).max().unwrap_or(0)
}

/// How many vector registers for each chunk a coarse warp needs across barriers and iterations for values
/// that are no vectors in its warps; 0 where the caller asks for a number of warps.
pub(crate) fn widened(
    teams: Teams,
    (single, coarse): (&Func, &Func),
    function: &Function,
    level: Level,
) -> u32 {
    match teams {
        Teams::Auto => pressure(coarse, function, level).saturating_sub(pressure(single, function, level)),
        Teams::Never | Teams::Threads | Teams::Of(_) => 0,
    }
}

/// Whether the function has straight-line code that is emitted as a chunk loop ([`chunk_loops`]).
fn is_apart(func: &Func, function: &Function, chunks: u32, level: Level) -> bool {
    let kept: Vec<wir::Value> =
        func.resumes.iter().flat_map(|resume| &resume.kept).map(|(_, name)| *name).collect();
    let vector = |name: wir::Value| func.shapes[name.0 as usize] == Shape::Varying;
    let size = |name: wir::Value| match func.kinds[name.0 as usize] {
        Kind::Reg(RegClass::R64) if vector(name) => 2,
        Kind::Reg(_) if vector(name) => 1,
        Kind::Reg(_) | Kind::Mask | Kind::Count => 0,
    };
    let gains = |ops: &mut Vec<&crate::wir::Op>| {
        let defs = |name: &&wir::Value| ops.iter().any(|op| op.defs.contains(name));
        let outs: Vec<wir::Value> = kept.iter().filter(defs).copied().collect();
        let gains = chunk_loops::gains(ops, &outs, size, chunks, level);
        ops.clear();
        gains
    };
    func.blocks.iter().filter(|node| node.full).any(|node| {
        let mut ops = Vec::new();
        for (site, op) in node.ops.iter().flat_map(wir::Op::insts) {
            let Some(inst) = site.inst(function) else { continue };
            let near = matches!(inst.op, Op::Ld | Op::LdNc | Op::Ldu) && inst.mods.space() == Space::Shared;
            if !near && !effects::is_pure(inst) {
                if gains(&mut ops) {
                    return true;
                }
            } else if op.defs.iter().any(|def| vector(*def)) {
                ops.push(op);
            }
        }
        gains(&mut ops)
    })
}

/// Whether a coarse warp can execute the function.
fn is_fit(function: &Function, program: &Program) -> bool {
    let plain = |inst: &Inst| {
        let exchanges = match inst.op {
            Op::MatchAny | Op::MatchAll => true,
            Op::Atom | Op::Red => !effects::is_native_atomic(&inst.mods),
            _ => false,
        };
        let own = |src: &Src| match src {
            Src::Addr(Addr { base: Base::Frame, .. }) => true,
            Src::Sreg(sreg, _) => matches!(sreg, Sreg::Envreg(_)),
            _ => false,
        };
        let local = inst.mods.space() == Space::Local || inst.srcs.iter().any(own);
        let (reads, writes) = effects::carry(inst);
        !exchanges && !local && !reads && !writes && !effects::watches(inst)
    };
    function.kind == FunctionKind::Entry
        && function.frame_bytes == 0
        && program.address_size == AddressSize::Bits64
        && function.blocks.iter().all(|block| {
            let end = match &block.term {
                Terminator::Barrier { inst, .. } => {
                    matches!(inst.op, Op::BarSync | Op::BarRed) && inst.guard.is_none()
                }
                Terminator::WarpSync { inst, .. } => {
                    matches!(inst.op, Op::ShflSync | Op::VoteSync | Op::BarWarpSync)
                }
                Terminator::Call(_)
                | Terminator::Goto(..)
                | Terminator::Branch { .. }
                | Terminator::Switch { .. }
                | Terminator::Ret(_)
                | Terminator::Exit(_) => true,
            };
            end && block.insts.iter().all(plain)
        })
}

/// Whether all live lanes of a coarse warp arrive together at every barrier of the function.
pub(crate) fn meets(func: &Func, function: &Function) -> bool {
    func.blocks.iter().filter(|node| node.full).all(|node| {
        match (&node.term, &function.blocks[node.block as usize].term) {
            (Term::Exit(exit), Terminator::Barrier { .. }) => {
                exit.resume.is_some() || !matches!(exit.why, ExitReason::Terminator { .. })
            }
            _ => true,
        }
    })
}
