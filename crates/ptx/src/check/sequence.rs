//! The order of `st.param`, `call` and `ld.param`. PTX ISA §7.1; A41 of the project's readings.
//!
//! Invariant: between the store of an argument and the call, and between the call and the load of its result,
//! control flow neither leaves nor enters. Labels without branches do not count, because compilers emit them
//! everywhere; so sequences are judged at the end of the body.

use super::module::{Body, LabelId, LocalId, Operand, Statement};
use super::report::Report;
use crate::Span;
use crate::diag::{Code, Diagnostic};
use foldhash::fast::RandomState;
use std::collections::{HashMap, HashSet};

/// The last access to a `.param` variable.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// Number of branches before it.
    branches: u32,
    /// Number of labels before it.
    labels: usize,
    /// Its place.
    span: Span,
}

/// A pair of statements that must not have control flow between them.
#[derive(Clone, Debug)]
struct Pair {
    first: Seen,
    labels: usize,
    branched: bool,
    span: Span,
    message: String,
}

/// Observes the statements of a body.
#[derive(Debug, Default)]
pub(super) struct Sequence {
    branches: u32,
    labels: Vec<LabelId>,
    stored: HashMap<LocalId, Seen, RandomState>,
    returned: HashMap<LocalId, Seen, RandomState>,
    pairs: Vec<Pair>,
}

impl Sequence {
    fn now(&self, span: Span) -> Seen {
        Seen { branches: self.branches, labels: self.labels.len(), span }
    }

    /// A label.
    pub(super) fn label(&mut self, id: LabelId) {
        self.labels.push(id);
    }

    /// A branch, return or exit.
    pub(super) fn branch(&mut self) {
        self.branches += 1;
    }

    /// `st.param` to an argument.
    pub(super) fn store(&mut self, local: LocalId, span: Span) {
        let now = self.now(span);
        self.stored.insert(local, now);
    }

    /// A call with arguments and results in `.param` variables.
    pub(super) fn call(&mut self, arguments: &[LocalId], results: &[LocalId], span: Span) {
        for local in arguments {
            if let Some(first) = self.stored.remove(local) {
                self.pair(first, span, "control flow between `st.param` and the `call` it is for");
            }
        }
        let now = self.now(span);
        for local in results {
            self.returned.insert(*local, now);
        }
    }

    /// `ld.param` of a result.
    pub(super) fn load(&mut self, local: LocalId, span: Span) {
        if let Some(first) = self.returned.get(&local).copied() {
            self.pair(first, span, "control flow between a `call` and the `ld.param` of its result");
        }
    }

    fn pair(&mut self, first: Seen, span: Span, message: &str) {
        let branched = first.branches != self.branches;
        if branched || first.labels != self.labels.len() {
            let labels = self.labels.len();
            self.pairs.push(Pair { first, labels, branched, span, message: message.to_owned() });
        }
    }

    /// Reports pairs with control flow between them.
    pub(super) fn report(&self, body: &Body, report: &mut Report) {
        if self.pairs.is_empty() {
            return;
        }
        let targets = branch_targets(body);
        // The number of the first n labels that have branches.
        let mut reached = Vec::with_capacity(self.labels.len() + 1);
        let mut count = 0u32;
        reached.push(count);
        for label in &self.labels {
            count += u32::from(targets.contains(label));
            reached.push(count);
        }
        for pair in &self.pairs {
            if pair.branched || reached[pair.labels] != reached[pair.first.labels] {
                report.push(
                    Diagnostic::new(Code::BadCallSequence, pair.span, pair.message.clone())
                        .with_related(pair.first.span, "the other end")
                        .with_help("keep `st.param`, `call` and `ld.param` together")
                        .with_section("7.1"),
                );
            }
        }
    }
}

/// Labels that something branches to.
fn branch_targets(body: &Body) -> HashSet<LabelId> {
    let mut targets: HashSet<LabelId> = body.branch_targets.iter().flatten().copied().collect();
    for statement in &body.statements {
        if let Statement::Inst(inst) = statement {
            for operand in &inst.operands {
                if let Operand::Label(id) = operand {
                    targets.insert(*id);
                }
            }
        }
    }
    targets
}
