//! The memory consistency model of PTX (chapter 8 of the PTX ISA manual), as axioms over executions of litmus tests.
#![forbid(unsafe_code)]

mod axioms;
mod barrier;
mod decide;
mod event;
mod execution;
mod graph;
mod liveness;
mod machine;
mod memory;
mod parse;
mod path;
mod race;
mod relation;
mod rules;
mod search;
mod svg;
mod symmetry;
pub mod test;
mod value;

pub use decide::{Options, Verdict, decide};
pub use execution::{Execution, ShownEvent};
pub use liveness::{Liveness, liveness};
pub use parse::parse;
pub use race::{Race, races};
pub use relation::{MOST_EVENTS, Relation};
pub use rules::{Model, Rule, Rules};

/// Why a test has no verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    line: u32,
    column: u32,
    message: String,
}

/// Who must act on an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The text of the test is at fault.
    Text,
    /// The test may be right, but deciding it takes more than the limits allow.
    Limit,
}

impl Error {
    pub(crate) fn text(line: u32, column: u32, message: String) -> Self {
        Self { kind: ErrorKind::Text, line, column, message }
    }

    pub(crate) fn at(line: u32, message: String) -> Self {
        Self { kind: ErrorKind::Text, line, column: 1, message }
    }

    pub(crate) fn limit(line: u32, message: String) -> Self {
        Self { kind: ErrorKind::Limit, line, column: 1, message }
    }

    /// Whose fault it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Line and column in the text, from 1, where there is a place.
    pub fn place(&self) -> Option<(u32, u32)> {
        (self.line != 0).then_some((self.line, self.column))
    }

    /// What is wrong.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.place() {
            Some((line, column)) => write!(f, "{line}:{column}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Error {}
