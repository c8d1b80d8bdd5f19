//! Reduces a program whose results differ.
//!
//! Invariant: the reduced program differs on the same processor, and the interpreter runs it to its end. If
//! the original does not depend on the schedule, neither does the reduced one; so a barrier is removed only
//! if nothing needs it.

use super::program::Program;
use super::run::{Machines, Outcome};

/// The smallest program found.
pub(crate) fn reduce(machines: &Machines, mut program: Program) -> Program {
    let settled = machines.is_settled(&program);
    let differs = |candidate: &Program| {
        matches!(machines.run(candidate, None), Outcome::Differs(..))
            && (!settled || machines.is_settled(candidate))
    };
    loop {
        let before = program.lines.len();
        shrink_launch(&mut program, &differs);
        drop_lines(&mut program, &differs, false);
        split(&mut program);
        drop_lines(&mut program, &differs, true);
        if program.lines.len() >= before {
            return program;
        }
    }
}

fn shrink_launch(program: &mut Program, differs: &impl Fn(&Program) -> bool) {
    for grid in [[1, 1, 1], [2, 1, 1]] {
        let candidate = Program { grid, ..program.clone() };
        if candidate.ctas() < program.ctas() && differs(&candidate) {
            program.grid = grid;
            break;
        }
    }
    for block in [[1, 1, 1], [2, 1, 1], [32, 1, 1], [33, 1, 1], [64, 1, 1]] {
        let candidate = Program { block, ..program.clone() };
        if candidate.threads() < program.threads() && differs(&candidate) {
            program.block = block;
            break;
        }
    }
}

/// Splits statements of several lines, and allows declarations to be removed.
fn split(program: &mut Program) {
    let lines = program.lines.iter().flat_map(|line| {
        line.text.split('\n').map(|text| super::program::Line { text: text.to_owned(), fixed: line.fixed })
    });
    program.lines = lines.collect();
}

/// Removes ranges of lines, long ones first. With `all`, also fixed lines on which no other line depends.
fn drop_lines(program: &mut Program, differs: &impl Fn(&Program) -> bool, all: bool) {
    let may_go = |program: &Program, at: usize| {
        let line = &program.lines[at];
        !line.fixed || (all && unused(program, at))
    };
    let mut run = program.lines.len().next_power_of_two();
    while run >= 1 {
        let mut at = 0;
        while at < program.lines.len() {
            let end = (at + run).min(program.lines.len());
            let keep: Vec<_> = (0..program.lines.len())
                .filter(|i| *i < at || *i >= end || !may_go(program, *i))
                .map(|i| program.lines[i].clone())
                .collect();
            if keep.len() < program.lines.len() {
                let candidate = Program { lines: keep, ..program.clone() };
                if differs(&candidate) {
                    *program = candidate;
                    continue;
                }
            }
            at += run;
        }
        run /= 2;
    }
}

/// Whether a fixed line only initialises a register that no other line reads, or is a label without a jump.
fn unused(program: &Program, at: usize) -> bool {
    let text = program.lines[at].text.trim();
    let elsewhere = |name: &str| {
        program.lines.iter().enumerate().any(|(i, line)| {
            i != at
                && line
                    .text
                    .split(|c: char| !c.is_alphanumeric() && !"%_".contains(c))
                    .any(|word| word == name)
        })
    };
    if let Some(label) = text.strip_suffix(':') {
        return !elsewhere(label);
    }
    if text.starts_with('.')
        || text.starts_with('@')
        || text.contains('{')
        || text == "}"
        || text.starts_with("exit")
    {
        return false;
    }
    if text.starts_with("st.local") {
        return true;
    }
    match text.split_whitespace().nth(1) {
        // Another write counts as a read: then the initial value may matter.
        Some(register) if register.starts_with('%') => !program.lines.iter().enumerate().any(|(i, line)| {
            i > at
                && !line.text.starts_with(".reg")
                && line
                    .text
                    .split(|c: char| !c.is_alphanumeric() && !"%_".contains(c))
                    .any(|word| word == register.trim_end_matches(','))
        }),
        _ => false,
    }
}
