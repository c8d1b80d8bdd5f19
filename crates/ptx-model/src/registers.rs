//! Which registers of a thread the code from an instruction on may read before it sets them.
//!
//! Invariant: a register that is not listed has no effect on any path from there, but for what a path leaves
//! in it at the end, which counts only if the clause asks for it.

use crate::test::{Clause, Instruction, Op, Operand, Reg, Term, Test};

/// For each instruction of a thread and the end behind them: which registers matter.
pub(crate) fn read_later(test: &Test, thread: usize, goal: &Clause) -> Vec<Vec<bool>> {
    let of = &test.threads[thread];
    let (code, registers) = (&of.code, of.registers.len());
    let mut later = vec![vec![false; registers]; code.len() + 1];
    goal.terms(&mut |term| {
        if let Term::Reg(owner, Reg(reg)) = term
            && *owner == thread
        {
            later[code.len()][*reg] = true;
        }
    });
    loop {
        let mut changed = false;
        for (at, instruction) in code.iter().enumerate().rev() {
            let mut here = vec![false; registers];
            for next in next_of(instruction, at, code.len()) {
                here.iter_mut().zip(&later[next]).for_each(|(here, later)| *here |= later);
            }
            if instruction.guard.is_none() {
                set_by(&instruction.op).iter().for_each(|Reg(reg)| here[*reg] = false);
            }
            read_by(instruction).iter().for_each(|Reg(reg)| here[*reg] = true);
            changed |= later[at] != here;
            later[at] = here;
        }
        if !changed {
            return later;
        }
    }
}

/// Where the thread can be after an instruction; `end` is behind the last.
fn next_of(instruction: &Instruction, at: usize, end: usize) -> Vec<usize> {
    let jump = match &instruction.op {
        Op::Branch { when, target } => Some((*target, when.is_some())),
        Op::Exit => Some((end, false)),
        _ => None,
    };
    match jump {
        Some((to, falls_through)) if falls_through || instruction.guard.is_some() => vec![to, at + 1],
        Some((to, _)) => vec![to],
        None => vec![at + 1],
    }
}

fn set_by(op: &Op) -> Vec<Reg> {
    match op {
        Op::Load { dst, .. } => dst.clone(),
        Op::Atom { dst, .. } => dst.iter().copied().collect(),
        Op::Barrier { reduction, .. } => reduction.iter().map(|reduction| reduction.dst).collect(),
        Op::Alu { dst, .. } | Op::Mov { dst, .. } | Op::Select { dst, .. } => vec![*dst],
        Op::Store { .. }
        | Op::Copy { .. }
        | Op::CommitGroup
        | Op::WaitGroup(_)
        | Op::Fence { .. }
        | Op::ProxyFence(_)
        | Op::WarpSync { .. }
        | Op::Branch { .. }
        | Op::Exit => Vec::new(),
    }
}

fn read_by(instruction: &Instruction) -> Vec<Reg> {
    let mut operands: Vec<Operand> = instruction.guard.iter().map(|(reg, _)| Operand::Reg(*reg)).collect();
    match &instruction.op {
        Op::Load { address, .. } => operands.push(address.base),
        Op::Store { src, address, .. } => {
            operands.extend(src);
            operands.push(address.base);
        }
        Op::Atom { address, args, .. } => {
            operands.extend(args);
            operands.push(address.base);
        }
        Op::Copy { to, from, .. } => operands.extend([to.base, from.base]),
        Op::Barrier { id, count, reduction, .. } => {
            operands.push(*id);
            operands.extend(count);
            operands.extend(reduction.map(|reduction| reduction.predicate.0));
        }
        Op::WarpSync { mask } => operands.push(*mask),
        Op::Alu { a, b, .. } => operands.extend([*a, *b]),
        Op::Mov { src, .. } => operands.push(*src),
        Op::Select { a, b, p, .. } => operands.extend([*a, *b, Operand::Reg(*p)]),
        Op::Branch { when, .. } => operands.extend(when.iter().flat_map(|(_, a, b)| [*a, *b])),
        Op::CommitGroup | Op::WaitGroup(_) | Op::Fence { .. } | Op::ProxyFence(_) | Op::Exit => {}
    }
    let reg = |operand: Operand| match operand {
        Operand::Reg(reg) => Some(reg),
        Operand::Const(_) | Operand::Address(_) => None,
    };
    operands.into_iter().filter_map(reg).collect()
}
