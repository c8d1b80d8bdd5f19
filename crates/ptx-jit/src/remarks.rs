//! Remarks: the result of each decision of code generation, for users who want to know why the code is as it
//! is.
//!
//! A remark names the pass, the PTX line, whether the optimisation was applied or missed, and why. `ptxvm run
//! --emit remarks` prints them, and the remarks of the benchmark's and the fixtures' kernels are compared
//! with those in the repository (`cargo test -p xtask remarks`): a lost optimisation is a failing test.
//!
//! Invariant: a remark decides nothing. Code with and without remarks is the same, and two compilations of
//! one kernel for one target have the same remarks in the same order.

use crate::wir::Site;
use ptx::ir::{Function, Program};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write;

/// What became of an optimisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was done.
    Applied,
    /// It was considered and not done.
    Missed,
}

/// One decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Remark {
    pub(crate) pass: &'static str,
    /// The instruction, or the terminator, that it is about; `None`: the whole kernel.
    pub(crate) site: Option<Site>,
    pub(crate) outcome: Outcome,
    /// What was done, or why nothing was.
    pub(crate) reason: Cow<'static, str>,
}

/// The decisions of a compilation, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Remarks {
    all: Vec<Remark>,
}

impl Remarks {
    pub(crate) fn applied(
        &mut self,
        pass: &'static str,
        site: Option<Site>,
        reason: impl Into<Cow<'static, str>>,
    ) {
        self.all.push(Remark { pass, site, outcome: Outcome::Applied, reason: reason.into() });
    }

    pub(crate) fn missed(
        &mut self,
        pass: &'static str,
        site: Option<Site>,
        reason: impl Into<Cow<'static, str>>,
    ) {
        self.all.push(Remark { pass, site, outcome: Outcome::Missed, reason: reason.into() });
    }

    /// Adds those of another part of the compilation.
    pub(crate) fn append(&mut self, mut others: Remarks) {
        self.all.append(&mut others.all);
    }

    /// One line for each decision, by PTX line and then in the order they were taken. Decisions that read
    /// alike, of copies of a block and of chunks of lanes, are one line with their number.
    pub(crate) fn text(&self, program: &Program, function: &Function) -> String {
        let line = |remark: &Remark| {
            let inst = remark.site.and_then(|site| site.inst(function));
            inst.map(|inst| program.source.line(inst.span))
        };
        let mut lines: Vec<(Option<u32>, &Remark, u32)> = Vec::new();
        let mut places = HashMap::new();
        for remark in &self.all {
            let line = line(remark);
            let alike = (line, remark.pass, remark.outcome == Outcome::Applied, &remark.reason);
            let place = *places.entry(alike).or_insert(lines.len());
            match lines.get_mut(place) {
                Some((_, _, count)) => *count += 1,
                None => lines.push((line, remark, 1)),
            }
        }
        lines.sort_by_key(|(line, _, _)| *line);
        let mut text = String::new();
        for (line, remark, count) in lines {
            let place = line.map_or("kernel".to_owned(), |line| format!("line {line}"));
            let outcome = match remark.outcome {
                Outcome::Applied => "applied",
                Outcome::Missed => "missed",
            };
            let times = if count > 1 { format!(" ({count} times)") } else { String::new() };
            // Writing to a string does not fail.
            let _ = writeln!(text, "{place}: {}: {outcome}: {}{times}", remark.pass, remark.reason);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remarks_are_sorted_by_line_and_alike_ones_are_counted() {
        let text = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() {\n.reg .b32 %r<3>;\n\
                    mov.u32 %r1, 1;\nmov.u32 %r2, 2;\nret; }\n";
        let module = ptx::check::check("k.ptx", text, &ptx::check::CheckOptions::default()).module;
        let program = ptx::ir::lower(module.expect("a correct text"));
        let at = |index| Some(Site { block: 0, index });
        let mut remarks = Remarks::default();
        remarks.missed("b", at(1), "far");
        remarks.applied("a", at(0), "near");
        remarks.applied("b", at(1), "far");
        remarks.missed("b", at(1), "far");
        let mut more = Remarks::default();
        more.missed("c", None, "alone");
        remarks.append(more);
        let expected = "kernel: c: missed: alone\nline 6: a: applied: near\nline 7: b: missed: far (2 times)\n\
                        line 7: b: applied: far\n";
        assert_eq!(remarks.text(&program, &program.functions[0]), expected);
    }
}
