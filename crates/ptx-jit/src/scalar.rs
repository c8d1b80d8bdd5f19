//! Which kernels may have scalar code, which executes one thread at a time.
//!
//! Warps whose lanes hardly ever do the same keep most lanes of each vector idle, and access memory lane by
//! lane. As scalar code, their threads cost what they cost in a program for the processor.
//!
//! Invariant: the threads of such a kernel do not read what other threads of the warp do or write, except by
//! a race. The order of updates that commute does not matter either: those of one kind do.

use crate::effects::{carry, clock, watching};
use crate::wir::loops::loops;
use ptx::ir::{Function, Inst, Terminator};
use ptx::isa::{AtomOp, Class, Op, Space, Ty, TyKind};

/// Whether each thread of a kernel may be executed from its start to its end before the next one begins.
///
/// # Errors
/// The reason why not.
pub(crate) fn may_run_alone(function: &Function) -> Result<(), &'static str> {
    for block in &function.blocks {
        match block.term {
            Terminator::Goto(..)
            | Terminator::Branch { .. }
            | Terminator::Switch { .. }
            | Terminator::Ret(_)
            | Terminator::Exit(_) => {}
            Terminator::Barrier { .. } | Terminator::WarpSync { .. } => {
                return Err("threads wait for each other");
            }
            Terminator::Call(_) => return Err("it calls a function"),
        }
        if let Some(why) = block.insts.iter().find_map(obstacle) {
            return Err(why);
        }
    }
    let mut updates = function.blocks.iter().flat_map(|block| &block.insts).filter(|inst| inst.op == Op::Red);
    let first = updates.next().map(update);
    if updates.any(|inst| Some(update(inst)) != first) {
        return Err("atomic operations of several kinds do not commute");
    }
    match watching(function).contains(&true) {
        true => Err("a loop may wait for other threads"),
        false => Ok(()),
    }
}

/// Whether scalar code of a kernel may be made, and may be faster than that of warps: without loops, threads
/// hardly ever do different things for long.
pub fn may_be_scalar(function: &Function) -> bool {
    !loops(function).is_empty() && may_run_alone(function).is_ok()
}

/// What an atomic operation does to the memory at its address. Two that do the same commute.
fn update(inst: &Inst) -> (Option<AtomOp>, Ty) {
    (inst.mods.atom_op(), inst.mods.ty())
}

/// Why a thread that executes the instruction cannot run alone, if it cannot.
fn obstacle(inst: &Inst) -> Option<&'static str> {
    if clock(inst).is_some() {
        return Some("it reads a clock");
    }
    if carry(inst) != (false, false) {
        return Some("it uses the carry flag");
    }
    match inst.op {
        Op::Ld | Op::LdNc | Op::Ldu | Op::Membar | Op::Fence | Op::Cvta | Op::CvtaTo | Op::Isspacep => None,
        Op::St if inst.mods.space() == Space::Shared => Some("threads may share what they write"),
        Op::St => None,
        Op::Red if inst.mods.ty().kind() == TyKind::Float => Some("the order of additions matters"),
        Op::Red => match inst.mods.atom_op() {
            Some(AtomOp::Add | AtomOp::And | AtomOp::Or | AtomOp::Min | AtomOp::Max) => None,
            _ => Some("an atomic operation has no scalar code"),
        },
        Op::Atom => Some("the order of atomic operations matters"),
        _ if inst.row.row().class == Class::Lane && !inst.row.row().traps() => None,
        _ => Some("an instruction depends on the warp"),
    }
}
