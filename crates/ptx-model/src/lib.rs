//! The memory consistency model of PTX (chapter 8 of the PTX ISA 6.4 manual; proxies as PTX ISA 7.5 added
//! them), as axioms over executions of litmus tests.
//!
//! [`parse()`] reads a test, [`decide()`] enumerates its executions and decides its clause, [`races()`] lists
//! its data races, [`liveness()`] decides whether its threads end. The crate depends on no engine and no
//! other crate of the workspace, so it can be an oracle for them.
//!
//! Invariants: every text gives a test or an [`Error`]. Work, memory and depth are bounded, and a reached
//! limit is an error of kind [`ErrorKind::Limit`], never a wrong verdict. Each definition and axiom is a
//! [`Rule`] that can be removed.
//!
//! # The model
//! | | section | where |
//! |---|---|---|
//! | operation types, scopes, vector and packed accesses | 8.2, 8.4, 8.5 | `path.rs` |
//! | overlap, morally strong, release and acquire patterns | 8.2.1, 8.6, 8.7 | `graph.rs` |
//! | observation, synchronizes, causality, coherence, communication; the axioms | 8.8, 8.9 | `axioms.rs` |
//! | proxy-preserved base causality | 7.5 | `axioms.rs` |
//! | phases of barriers, reductions, `bar.warp.sync` | 8.8.4, 9.7.12.1, 9.7.12.2 | `barrier.rs` |
//! | data races | 8.6.1, 8.6.2 | `race.rs`, `decide.rs` |
//!
//! # Deviations from the manual's text
//! 1. *Tearing.* By 8.9.3 only morally strong accesses are single-copy atomic, so weak accesses in a race may
//!    be torn at every byte. Here an access is torn only where some access of the test splits its location.
//! 2. *Different sizes in one thread.* By 8.6 a partial overlap is never morally strong, so by 8.6.1
//!    `st.b32 [x]` and `ld.b8 [x]` of one thread race. Here accesses of one thread to overlapping bytes are
//!    morally strong, and accesses of one thread never race.
//! 3. *SC per location.* A cycle must contain program order. Cycles of communication alone are what
//!    single-copy atomicity is about (8.9.3).
//! 4. *Uses of barriers.* 8.8.4 relates all operations on one barrier; here they meet phase by phase. Threads
//!    of the CTA that the test does not list do not exist, so a barrier without a count is used by the
//!    threads that execute it, and uses beyond the last complete phase pass after it where a device would
//!    have them wait. Reductions do wait for ever there, as they have no result. Counts are of threads, and
//!    threads of one warp arrive one by one; a device counts warps.
//! 5. *Programs with a mixed-size data race* (8.6.2): values out of thin air are not enumerated.
//!
//! # Open points, and our choices
//! 1. Table 17 names explicit qualifiers only: `atom` and `red` without `.sem` are relaxed (9.7.12.4), hence
//!    strong, with scope `.gpu`.
//! 2. A compare-and-swap that fails results in no write, so it is neither a release nor part of coherence
//!    order.
//! 3. `red` is an atomic operation but no read operation: observation order passes through it, nothing
//!    synchronizes with it.
//! 4. 8.2.4 leaves bytes without initial value unknown: shared memory is, global memory without an
//!    initialiser is 0 (5.4.4).
//! 5. Synchronization is between different threads (8.8.4). In one thread program order says as much.
//! 6. Coherence order is the least one that 8.8.6 and the axioms ask for, so racing writes stay unrelated and
//!    either may be the final value.
//! 7. Copies by `cp.async` are weak accesses that program order does not order before a later operation until
//!    a wait.
//! 8. In 7.5, Fence-SC order is compared with base causality, since proxies preserve only order between
//!    accesses.
//! 9. No dependency orders anything but values (8.9.4): dependencies through addresses and branches count in
//!    No-Thin-Air alone. The result of a barrier reduction depends on what the predicates of all threads of
//!    its phase depend on, and on what their executing it depends on: 8.9.4 speaks of "chains of instruction
//!    dependencies and inter-thread communication", and a reduction is both.
//! 10. `bar.red` mixed with other uses in one phase is unpredictable (9.7.12.1). Here, the operations
//!     synchronize, since 8.8.4 lets the forms meet, and each result is any that a phase of so many threads
//!     can have. Reductions by different operations count as mixed.
//! 11. `bar.warp.sync` guarantees memory ordering among the threads of its mask (9.7.12.2), so it
//!     synchronizes, though 8.8.4 does not name it. It waits for the threads of the mask that have not ended;
//!     lanes that the test does not list do not exist. Without its own thread in the mask the behaviour is
//!     undefined, and the test is refused.
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
mod registers;
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
