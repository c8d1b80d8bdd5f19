//! Sanitizers: observers of the machine that find mistakes in running kernels.
//!
//! A [`Sanitizer`] contains the selected tools and their findings. Its [`Watch`] is attached to the memory of
//! a machine, and then observes all launches there. Each tool has its own file, with an [`Observer`] that
//! records [`Finding`]s, and one line in [`Sanitizer::new`].
//!
//! Invariants: a finding is a mistake of the program, or the tool's documentation says why not; a tool
//! changes nothing about a launch except what the finding says (an access that is omitted); the same program,
//! launch and seed have the same findings.
//!
//! Nothing here reads or writes guest memory.
#![forbid(unsafe_code)]

mod finding;
mod initcheck;
pub mod journal;
mod json;
mod memcheck;
mod provenance;
mod race;
mod recorder;
mod registers;
mod shadow;
mod suppress;
mod sync;
mod text;
mod undefined;

pub use finding::{Described, Finding, Kind, OtherAccess, Tool};
pub use recorder::Recorder;
pub use suppress::{SuppressionError, Suppressions};

use ptx_exec::watch::{Observer, Watch};
use std::sync::Arc;

/// What a sanitizer is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The tools, in any order; one that is named twice counts once.
    pub tools: Vec<Tool>,
    /// How many different findings are recorded.
    pub max_findings: usize,
    /// Whether launches are stopped when so many are recorded. Else they go on, and what is found later is
    /// not recorded.
    pub stops: bool,
    /// Findings that are not recorded.
    pub suppressions: Suppressions,
}

impl Options {
    /// Findings that are recorded unless the caller says otherwise.
    pub const MAX_FINDINGS: usize = 100;

    /// These tools.
    pub fn new(tools: impl Into<Vec<Tool>>) -> Self {
        Self {
            tools: tools.into(),
            max_findings: Self::MAX_FINDINGS,
            stops: true,
            suppressions: Suppressions::default(),
        }
    }
}

/// Tools, and what they have found.
#[derive(Debug)]
pub struct Sanitizer {
    options: Options,
    recorder: Recorder,
    watch: Arc<Watch>,
}

impl Sanitizer {
    /// Tools that have found nothing yet.
    pub fn new(options: Options) -> Arc<Self> {
        let recorder = Recorder::new(&options);
        let mut observers: Vec<Box<dyn Observer>> = Vec::new();
        for tool in Tool::ALL.into_iter().filter(|tool| options.tools.contains(tool)) {
            // Each tool's observer is made here.
            let observer: Box<dyn Observer> = match tool {
                Tool::Memcheck => Box::new(memcheck::Memcheck::new(recorder.clone())),
                Tool::Racecheck => Box::new(race::Racecheck::new(recorder.clone())),
                Tool::Initcheck => Box::new(initcheck::Initcheck::new(recorder.clone())),
                Tool::Synccheck => Box::new(sync::Synccheck::new(recorder.clone())),
            };
            observers.push(observer);
        }
        let quarantine = if options.tools.contains(&Tool::Memcheck) { QUARANTINE } else { 0 };
        let watch = Watch::new(observers, quarantine, recorder.stop());
        Arc::new(Self { options, recorder, watch })
    }

    /// What is attached to the machine.
    pub fn watch(&self) -> &Arc<Watch> {
        &self.watch
    }

    /// The tools that it has.
    pub fn tools(&self) -> &[Tool] {
        &self.options.tools
    }

    /// What was found so far, in the order in which it was found first.
    pub fn findings(&self) -> Vec<Finding> {
        self.recorder.findings()
    }

    /// Findings that are new or have another count since the last call, with numbers that stay theirs.
    pub fn changes(&self) -> Vec<(usize, Finding)> {
        self.recorder.changes()
    }

    /// Has a function called with each new finding and its number, as soon as it is found, from now on. False
    /// where one is called already. The function must not call the machine.
    pub fn on_finding(&self, told: impl Fn(usize, &Finding) + Send + Sync + 'static) -> bool {
        self.recorder.tell(Box::new(told))
    }

    /// How many different findings suppressions cover.
    pub fn suppressed(&self) -> usize {
        self.recorder.suppressed()
    }

    /// The context ends: what only then is a mistake is found (leaks).
    pub fn end(&self) {
        self.watch.end();
    }

    /// Whether as many were found as are recorded.
    pub fn is_full(&self) -> bool {
        self.recorder.is_full()
    }
}

/// Bytes of freed memory that memcheck keeps from being allocated again. Chosen: finds most accesses after
/// `free`, and leaves room.
const QUARANTINE: u64 = 256 << 20;

/// Findings as people read them, with the last line `ERROR SUMMARY: N errors`.
pub fn text(findings: &[Finding]) -> String {
    text::all(findings, 0)
}

/// As [`text`]; suppressions cover so many others.
pub fn text_with(findings: &[Finding], suppressed: usize) -> String {
    text::all(findings, suppressed)
}

/// As [`json`]; suppressions cover so many others.
pub fn json_with(findings: &[Finding], suppressed: usize) -> String {
    json::all(findings, suppressed)
}

/// One finding as people read it, without a summary.
pub fn text_of(finding: &Finding) -> String {
    text::of(finding)
}

/// The last line of a text.
pub fn text_summary(errors: usize, suppressed: usize) -> String {
    text::summary(errors, suppressed)
}

/// One finding as a JSON object, in two parts: the value of `"count"` stands between them.
pub fn json_parts(finding: &Finding) -> (String, String) {
    json::parts(finding)
}

/// The last line of findings as JSON.
pub fn json_summary(errors: usize, suppressed: usize) -> String {
    json::summary(errors, suppressed)
}

/// What makes two findings the same, as a text: for findings of several processes.
pub fn identity(finding: &Finding) -> String {
    format!("{:?}", finding.key())
}

/// Findings of several runs as one list: what an earlier run found, too, adds to its count.
pub fn merge(into: &mut Vec<Finding>, more: Vec<Finding>) {
    for finding in more {
        match into.iter_mut().find(|same| same.key() == finding.key()) {
            Some(same) => same.count = same.count.saturating_add(finding.count),
            None => into.push(finding),
        }
    }
}

/// Findings as JSON, one object a line, and a last line with their number.
pub fn json(findings: &[Finding]) -> String {
    json::all(findings, 0)
}
