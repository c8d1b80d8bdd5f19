//! Properties of single PTX instructions that building and analysis need: effects, clocks, carry flags, work;
//! and of loops made of them.

use crate::target::Target;
use crate::wir::Effects;
use crate::wir::loops::{Loop, loops};
use ptx::analysis::cfg;
use ptx::analysis::liveness::Liveness;
use ptx::check::module::{AddressSize, Variable};
use ptx::ir::{Addr, Base, Function, Inst, Program, Reg, Src};
use ptx::isa::{AtomOp, Class, Mods, Op, RowId, Sem, Space, Sreg, Ty, TyKind, Word};
use std::collections::HashSet;

/// Whether an instruction of this row with these modifiers has native code on that processor. Emits no code.
pub fn native(row: RowId, mods: &Mods, target: Target) -> bool {
    match row.row().op {
        Op::Ld | Op::LdNc | Op::Ldu | Op::St | Op::Membar | Op::Fence => true,
        Op::Atom | Op::Red => is_native_atomic(mods),
        Op::ShflSync | Op::VoteSync | Op::BarWarpSync | Op::Activemask | Op::MatchAny | Op::MatchAll => true,
        Op::Bra | Op::BrxIdx | Op::Ret | Op::Exit => true,
        Op::Cvta | Op::CvtaTo => mods.space() != Space::Generic,
        Op::Mma
        | Op::WmmaMma
        | Op::Ldmatrix
        | Op::Stmatrix
        | Op::Movmatrix
        | Op::CpAsync
        | Op::CpAsyncCommitGroup
        | Op::CpAsyncWaitGroup
        | Op::CpAsyncWaitAll => crate::isel::matrix::native(row, mods, target),
        _ => crate::isel::native(row, mods, target),
    }
}

/// Whether an atomic operation with these modifiers has native code.
pub(crate) fn is_native_atomic(mods: &Mods) -> bool {
    let Some(op) = mods.atom_op() else { return false };
    let ty = mods.ty();
    let number = ty == Ty::F32 || ty == Ty::F64;
    let sized = matches!(ty.bits(), 32 | 64) && !matches!(ty, Ty::F16x2 | Ty::Bf16x2);
    // Whether subnormals are flushed depends on the memory that a generic address refers to.
    let known = ty != Ty::F32 || mods.space() != Space::Generic;
    sized
        && !mods.has(Word::Noftz)
        && !mods.has(Word::L2CacheHint)
        && mods.vec() == 1
        && (!number || op == AtomOp::Exch || op == AtomOp::Add && known)
}

/// The properties of instructions as native code executes them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NativeEffects<'a> {
    /// Whether only whole warps may execute barriers and warp-synchronous instructions, for observers.
    pub(crate) whole: bool,
    /// Whether only defined bytes may be loaded, for observers.
    pub(crate) defined: bool,
    /// Whether accesses are compared with stamps, for observers.
    pub(crate) ordered: bool,
    /// The variables that accesses need no check in: [`unchecked_variables`].
    pub(crate) variables: &'a [Variable],
}

/// Whether the result of an instruction depends on nothing but its operands, lane by lane, and the
/// instruction has no other effect. Such an instruction may be removed if its result is not read, be executed
/// in inactive lanes, and be executed once for several. An instruction that can trap is not pure.
pub(crate) fn is_pure(inst: &Inst) -> bool {
    let (reads, writes) = carry(inst);
    // An instruction without a result is executed for its effect: an event, a sleep, a trap.
    if inst.dsts.is_empty() || inst.row.row().traps() {
        return false;
    }
    inst.row.row().class == Class::Lane && clock(inst).is_none() && !reads && !writes
        || matches!(inst.op, Op::Cvta | Op::CvtaTo | Op::Isspacep)
}

/// The clock that the instruction reads, if it reads one.
pub(crate) fn clock(inst: &Inst) -> Option<Sreg> {
    inst.srcs.iter().find_map(|src| match src {
        Src::Sreg(sreg, _) if sreg.is_clock() => Some(*sreg),
        _ => None,
    })
}

/// Whether the instruction reads and writes the carry flags. PTX ISA §9.7.2.
pub(crate) fn carry(inst: &Inst) -> (bool, bool) {
    match inst.op {
        Op::AddCc | Op::SubCc | Op::MadCc => (false, true),
        Op::Addc | Op::Subc | Op::Madc => (true, inst.mods.has(Word::Cc)),
        _ => (false, false),
    }
}

/// Whether an instruction loads bytes into registers that may be undefined.
pub(crate) fn loads_bytes(inst: &Inst) -> bool {
    match inst.op {
        // Parameters of kernels are defined.
        Op::Ld | Op::LdNc | Op::Ldu => inst.mods.space() != Space::Param,
        Op::Atom | Op::Red | Op::Ldmatrix | Op::WmmaLoad => true,
        _ => false,
    }
}

/// Whether an instruction loads a parameter of the kernel at a constant address, which nothing writes.
pub(crate) fn reads_parameter(inst: &Inst) -> bool {
    let fixed = |src: &Src| matches!(src, Src::Addr(Addr { base: Base::KernelParam, index: None, .. }));
    inst.op == Op::Ld && inst.srcs.first().is_some_and(fixed)
}

/// The variables that native code may access without a check, if an instruction names a place in one; none if
/// observers follow accesses, or if addresses have 32 bits, since such accesses have no native code.
pub(crate) fn unchecked_variables(program: &Program, observed: bool) -> &[Variable] {
    if observed || program.address_size != AddressSize::Bits64 { &[] } else { &program.variables }
}

/// Whether an instruction loads a parameter of the kernel, or elements of a constant variable, at a place
/// that is known to be there, into as many registers of at most 64 bits.
pub(crate) fn reads_constant(variables: &[Variable], inst: &Inst) -> bool {
    let loads = inst.op == Op::Ld && inst.mods.sem() == Sem::Weak;
    let constant = || {
        let (bits, count) = (inst.mods.ty().bits(), u32::from(inst.mods.vec()));
        let registers = inst.dsts.iter().filter(|dst| dst.reg().is_some()).count();
        matches!(bits, 8..=64)
            && registers == count as usize
            && is_in_variable(variables, inst, Space::Const, bits / 8 * count)
    };
    reads_parameter(inst) || loads && constant()
}

/// Whether an access of so many bytes names a place in a variable of a state space, and is aligned.
pub(crate) fn is_in_variable(variables: &[Variable], inst: &Inst, space: Space, bytes: u32) -> bool {
    let Some(Src::Addr(Addr { base: Base::Var(var), index: None, offset })) = inst.srcs.first() else {
        return false;
    };
    variables.get(var.0 as usize).is_some_and(|variable| {
        let end = u64::try_from(*offset).ok().and_then(|offset| offset.checked_add(bytes.into()));
        variable.space == space
            && variable.ty.kind() != TyKind::Opaque
            && end.is_some_and(|end| end <= variable.bytes)
            && bytes > 0
            && offset % i64::from(bytes) == 0
            && variable.align.is_multiple_of(bytes)
    })
}

/// Whether a function has atomic operations.
pub(crate) fn has_atomics(function: &Function) -> bool {
    let mut all = function.blocks.iter().flat_map(|block| &block.insts);
    all.any(|inst| matches!(inst.op, Op::Atom | Op::Red))
}

/// Whether an instruction accesses bytes that have stamps.
fn has_stamps(inst: &Inst) -> bool {
    matches!(inst.op, Op::Ld | Op::LdNc | Op::Ldu | Op::St | Op::Atom | Op::Red)
        && matches!(inst.mods.space(), Space::Global | Space::Shared | Space::Generic)
}

impl Effects for NativeEffects<'_> {
    fn does_sync(&self, inst: &Inst) -> bool {
        matches!(inst.op, Op::ShflSync | Op::VoteSync | Op::BarWarpSync | Op::MatchAny | Op::MatchAll)
    }

    fn syncs_whole_warps_only(&self) -> bool {
        self.whole
    }

    fn counts_intervals(&self) -> bool {
        self.ordered
    }

    fn exits_before(&self, inst: &Inst) -> bool {
        self.defined && loads_bytes(inst) || self.ordered && has_stamps(inst)
    }

    fn is_of_whole_warp(&self, inst: &Inst) -> bool {
        matches!(
            inst.op,
            Op::Mma
                | Op::WmmaMma
                | Op::WmmaLoad
                | Op::WmmaStore
                | Op::Ldmatrix
                | Op::Stmatrix
                | Op::Movmatrix
        )
    }

    fn is_pure(&self, inst: &Inst) -> bool {
        is_pure(inst)
    }

    fn reads_constant(&self, inst: &Inst) -> bool {
        reads_constant(self.variables, inst)
    }

    fn work(&self, inst: &Inst) -> u64 {
        match inst.op {
            // The interpreter's step samples textures lane by lane.
            Op::Tex | Op::Tld4 | Op::Suld | Op::Sust | Op::Sured | Op::Txq | Op::Suq => 512,
            Op::Ld | Op::LdNc | Op::Ldu | Op::St | Op::Atom | Op::Red | Op::CpAsync => 4,
            _ => 1,
        }
    }

    fn carry(&self, inst: &Inst) -> (bool, bool) {
        carry(inst)
    }

    fn reads_clock(&self, inst: &Inst) -> bool {
        clock(inst).is_some()
    }

    fn accesses(&self, inst: &Inst) -> bool {
        matches!(inst.op, Op::Ld | Op::LdNc | Op::Ldu | Op::St | Op::Atom | Op::Red)
    }

    fn watches(&self, inst: &Inst) -> bool {
        watches(inst)
    }
}

/// Whether a loop that contains the instruction may wait for other threads.
pub(crate) fn watches(inst: &Inst) -> bool {
    match inst.op {
        Op::Ld | Op::LdNc | Op::Ldu => inst.mods.sem() != Sem::Weak,
        // `red` does not return the old value, so a loop cannot wait by it.
        Op::Atom => !progresses(inst),
        Op::Nanosleep | Op::MbarrierTestWait => true,
        _ => false,
    }
}

/// Whether an atomic operation makes progress whenever it is executed: an addition, except of zero, which
/// only reads.
fn progresses(inst: &Inst) -> bool {
    let sums = matches!(inst.mods.atom_op(), Some(AtomOp::Add | AtomOp::Inc | AtomOp::Dec));
    sums && !matches!(inst.srcs.get(1), Some(Src::Imm(0)))
}

/// For each block, whether the loop with that header reads what other threads write, and writes nothing
/// itself.
///
/// A loop waits if it reads the same place again until another thread has changed it. An atomic operation
/// whose address differs between iterations searches (for a slot of a hash table), and a comparison with a
/// value that differs between iterations tries again with what it found; neither waits.
pub(crate) fn waits(function: &Function) -> Vec<bool> {
    let mut waits = vec![false; function.blocks.len()];
    let mut liveness = None;
    for all in loops(function) {
        let body = function.blocks[all.blocks()].iter().flat_map(|b| &b.insts);
        let mut varying = None;
        let mut advances = |inst: &Inst| {
            let live = liveness.get_or_insert_with(|| Liveness::new(function, &cfg::graph(function)));
            let varying = varying.get_or_insert_with(|| varying_registers(function, live, all));
            let varies = |src: Option<&Src>| {
                let mut any = false;
                src.into_iter().for_each(|src| src.for_each_reg(&mut |reg| any |= varying.contains(&reg)));
                any
            };
            let compared = inst.srcs.get(1).filter(|_| inst.mods.atom_op() == Some(AtomOp::Cas));
            varies(inst.srcs.first()) || varies(compared)
        };
        let watches = body.clone().any(|inst| watches(inst) && !(inst.op == Op::Atom && advances(inst)));
        let writes = |inst: &Inst| match inst.op {
            Op::St | Op::MbarrierArrive | Op::MbarrierArriveDrop => true,
            Op::Atom | Op::Red => progresses(inst),
            _ => false,
        };
        waits[all.header] = watches && !body.clone().any(writes);
    }
    waits
}

/// Registers that may differ between iterations of a loop: those that an iteration takes from the one before,
/// and what is computed from them.
fn varying_registers(function: &Function, live: &Liveness, all: Loop) -> HashSet<Reg> {
    let blocks = &function.blocks[all.blocks()];
    let mut varying = HashSet::new();
    for block in blocks {
        let mut carried = |reg| {
            if live.live_in[all.header].contains(live.registers.number(reg)) {
                varying.insert(reg);
            }
        };
        block.insts.iter().for_each(|inst| inst.for_each_def(&mut carried));
        block.term.for_each_def(&mut carried);
    }
    loop {
        let before = varying.len();
        for block in blocks {
            for inst in block.insts.iter().chain(block.term.inst()) {
                let mut any = false;
                inst.for_each_use(&mut |reg| any |= varying.contains(&reg));
                if any {
                    inst.for_each_def(&mut |reg| {
                        varying.insert(reg);
                    });
                }
            }
        }
        if varying.len() == before {
            return varying;
        }
    }
}

/// For each block, whether a loop with that header reads what other threads write.
pub(crate) fn watching(function: &Function) -> Vec<bool> {
    let mut watching = vec![false; function.blocks.len()];
    for all in loops(function) {
        let mut body = function.blocks[all.blocks()].iter().flat_map(|b| &b.insts);
        watching[all.header] |= body.any(watches);
    }
    watching
}

/// For each block, whether it belongs to a loop that only waits.
pub(crate) fn waiting_blocks(function: &Function) -> Vec<bool> {
    let waits = waits(function);
    let mut all = vec![false; function.blocks.len()];
    for one in loops(function) {
        if waits[one.header] {
            all[one.blocks()].fill(true);
        }
    }
    all
}

/// Whether there are loops, but no barrier in any.
pub(crate) fn loops_between_barriers(function: &Function) -> bool {
    let all = loops(function);
    !all.is_empty() && !all.iter().any(|one| has_barrier(function, one))
}

/// Whether each loop of the function has a barrier.
pub(crate) fn all_loops_have_barriers(function: &Function) -> bool {
    loops(function).iter().all(|one| has_barrier(function, one))
}

/// Whether a loop has a barrier.
fn has_barrier(function: &Function, one: &Loop) -> bool {
    let barrier = |block: &ptx::ir::Block| matches!(block.term, ptx::ir::Terminator::Barrier { .. });
    function.blocks[one.blocks()].iter().any(barrier)
}
