//! Which kernels run in teams of warps, and of how many.
//!
//! A barrier costs a warp the stores and loads of what lives across it, and each warp computes again what is the same for all: addresses,
//! bounds, counters. A team does all that once, and its warps' chains of operations run beside each other. It pays where warps meet at
//! barriers; it costs registers and code. So: the most warps whose values fit into the machine's registers.
//!
//! Invariant: results do not depend on it. What several warps cannot do together is not in a function that is chosen here, or leaves.

use crate::emit::atomic;
use crate::llvm::Cpu;
use crate::machine;
use crate::plan::{Class, Exit, Name, OpKind, Plan, Shape, Term, Why};
use ptx::check::module::{AddressSize, FunctionKind};
use ptx::ir::{Addr, Base, Function, Inst, Program, Reg, RegClass, Src, Terminator};
use ptx::isa::{Op, Space, Sreg};

/// How many warps run as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Teams {
    /// As many as it pays for.
    #[default]
    Auto,
    /// One.
    Never,
    /// So many, or the next smaller number that divides the CTA's, wherever it is possible at all.
    Of(u32),
}

/// The most warps of a team. Chosen: beyond, code grows and little is gained.
const MOST: u32 = 8;
/// The most that LLVM is given for a team, about, in its instructions. Chosen: kernels that gain much need less than half of it.
const CODE: usize = 8_000;

/// How many warps of a CTA run as one; 1: each by itself. `plan`: of one warp.
pub(crate) fn size(
    teams: Teams,
    function: &Function,
    program: &Program,
    plan: &Plan,
    shape: Shape,
    cpu: Cpu,
) -> u32 {
    let threads = shape.threads();
    let warps = threads / 32;
    if !threads.is_multiple_of(32) || warps < 2 || !is_fit(function, program) {
        return 1;
    }
    let largest =
        |most: u32| (1..=most.min(warps)).rev().find(|size| warps.is_multiple_of(*size)).unwrap_or(1);
    match teams {
        Teams::Never => 1,
        Teams::Of(size) => largest(size.max(1)),
        Teams::Auto => {
            if !function.blocks.iter().any(|block| matches!(block.term, Terminator::Barrier { .. })) {
                return 1;
            }
            let chunks = 32 / shape.chunk;
            let registers = match cpu {
                Cpu::Avx512 => 20,
                Cpu::Avx2 | Cpu::Baseline => 10,
            };
            let by_registers = registers / (pressure(plan) * chunks).max(1);
            largest(MOST.min(by_registers).max(1))
        }
    }
}

/// Whether code of a team's plan takes no longer to make than it may.
pub(crate) fn is_small(teams: Teams, plan: &Plan, shape: Shape) -> bool {
    match teams {
        Teams::Auto => weight(plan, shape) <= CODE,
        Teams::Never | Teams::Of(_) => weight(plan, shape) <= 8 * CODE,
    }
}

/// The next smaller number of warps that divides one.
pub(crate) fn smaller(size: u32) -> u32 {
    (1..size).rev().find(|less| size.is_multiple_of(*less)).unwrap_or(1)
}

/// About how many instructions LLVM is given for a plan, in its own language.
fn weight(plan: &Plan, shape: Shape) -> usize {
    let chunks = (shape.lanes() / shape.chunk) as usize;
    let value = |name: &Name| match &plan.classes[name.0 as usize] {
        Class::Bottom | Class::Uniform(_) => 1,
        Class::Pattern(pattern) => pattern.scalars(chunks as u32) as usize,
        Class::Varying => chunks,
    };
    let stored = |regs: &[(Reg, Name)]| -> usize { regs.iter().map(|(_, name)| 2 * value(name)).sum() };
    let left = |exit: &Exit| -> usize {
        20 + stored(&exit.regs) + exit.parked.iter().map(|parked| stored(&parked.regs)).sum::<usize>()
    };
    let op = |op: &crate::plan::Op| match &op.kind {
        // Loads and stores have no registers that say so; masks are worth a few instructions.
        OpKind::Inst(_) => op.uses.iter().chain(&op.defs).map(value).max().unwrap_or(1),
        OpKind::SelectMask | OpKind::SelectPred { .. } | OpKind::Truths { .. } => 2 * chunks,
        OpKind::Ahead(exit) | OpKind::Guard(_, exit) => 20 + left(exit),
        OpKind::Spare(_, exit) => left(exit) / 4,
        OpKind::Restore(..) => chunks,
        _ => 1,
    };
    let node = |node: &crate::plan::Node| -> usize {
        let phis: usize = node.phis.iter().map(|phi| value(&phi.def)).sum();
        let end = if let Term::Exit(exit) = &node.term { left(exit) } else { 1 };
        let times = if node.full { 1 } else { 2 };
        phis + end + times * node.ops.iter().map(op).sum::<usize>()
    };
    plan.nodes.iter().map(node).sum()
}

/// Vectors' worth of values that live across a turn of a loop or a barrier, in chunks.
fn pressure(plan: &Plan) -> u32 {
    let of = |exit: &Exit| -> u32 {
        let varying = exit.regs.iter().filter(|(_, name)| plan.classes[name.0 as usize] == Class::Varying);
        varying.map(|(reg, _)| if reg.class == RegClass::R64 { 2 } else { 1 }).sum()
    };
    let exits = plan.nodes.iter().filter(|node| node.full).filter_map(|node| match &node.term {
        Term::Exit(exit) => Some(&**exit),
        _ => None,
    });
    exits
        .filter(|exit| exit.resume.is_some() || matches!(exit.why, Why::Yield { .. }))
        .map(of)
        .max()
        .unwrap_or(0)
}

/// Whether several warps can run the function as one.
fn is_fit(function: &Function, program: &Program) -> bool {
    let plain = |inst: &Inst| {
        let exchanges = match inst.op {
            Op::MatchAny | Op::MatchAll => true,
            Op::Atom | Op::Red => !atomic::is_native(&inst.mods),
            _ => false,
        };
        let own = |src: &Src| match src {
            Src::Addr(Addr { base: Base::Frame, .. }) => true,
            Src::Sreg(sreg, _) => matches!(sreg, Sreg::Envreg(_)),
            _ => false,
        };
        let local = inst.mods.space() == Space::Local || inst.srcs.iter().any(own);
        let (reads, writes) = machine::carry(inst);
        !exchanges && !local && !reads && !writes && !machine::watches(inst)
    };
    function.kind == FunctionKind::Entry
        && function.frame_bytes == 0
        && program.address_size == AddressSize::Bits64
        && function.blocks.iter().all(|block| {
            let end = match &block.term {
                Terminator::Barrier { inst, .. } => inst.op == Op::BarSync && inst.guard.is_none(),
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

/// Whether every barrier of the plan of a team is one that its warps wait at as a whole.
pub(crate) fn meets(plan: &Plan, function: &Function) -> bool {
    plan.nodes.iter().filter(|node| node.full).all(|node| {
        match (&node.term, &function.blocks[node.block as usize].term) {
            (Term::Exit(exit), Terminator::Barrier { .. }) => {
                exit.resume.is_some() || !matches!(exit.why, Why::Terminator { .. })
            }
            _ => true,
        }
    })
}
