//! Collects the checker's diagnostics.
//!
//! Invariant: warnings about programs that ptxas or the manual would refuse are errors under `strict`; all
//! others keep the severity of their code. All errors are counted, but only the first [`MAX_DIAGNOSTICS`]
//! errors and as many warnings are kept: a text of 100 MB that is wrong everywhere must not produce gigabytes
//! of diagnostics.

use crate::Span;
use crate::diag::{Code, Diagnostic, Label, Severity};
use crate::syntax::{MAX_DIAGNOSTICS, Parser};

/// Collects diagnostics.
#[derive(Debug, Default)]
pub(super) struct Report {
    diagnostics: Vec<Diagnostic>,
    strict: bool,
    errors: usize,
    warnings: usize,
}

impl Report {
    /// A collector that starts with the diagnostics of the preprocessor and lexer.
    pub(super) fn new(strict: bool, mut parsed: Vec<Diagnostic>) -> Self {
        parsed.iter_mut().for_each(|diagnostic| make_strict(diagnostic, strict));
        let errors = parsed.iter().filter(|d| d.severity == Severity::Error).count();
        Self { warnings: parsed.len() - errors, diagnostics: parsed, strict, errors }
    }

    /// Takes the parser's diagnostics so far.
    pub(super) fn parsed(&mut self, parser: &mut Parser<'_>) {
        if !parser.has_diagnostics() {
            return;
        }
        for mut diagnostic in parser.take_diagnostics() {
            make_strict(&mut diagnostic, self.strict);
            match diagnostic.severity {
                Severity::Error => self.errors += 1,
                Severity::Warning => self.warnings += 1,
            }
            self.diagnostics.push(diagnostic);
        }
    }

    /// Adds a diagnostic.
    pub(super) fn push(&mut self, mut diagnostic: Diagnostic) {
        make_strict(&mut diagnostic, self.strict);
        let count = match diagnostic.severity {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
        };
        *count += 1;
        if *count <= MAX_DIAGNOSTICS {
            self.diagnostics.push(diagnostic);
        }
    }

    /// Adds a diagnostic without help and section.
    pub(super) fn say(&mut self, code: Code, span: Span, message: impl Into<String>) {
        self.push(Diagnostic::new(code, span, message));
    }

    /// The number of diagnostics so far: the index of the next.
    pub(super) fn len(&self) -> usize {
        self.diagnostics.len()
    }

    /// Adds a place to an earlier diagnostic.
    pub(super) fn also(&mut self, finding: usize, span: Span, text: &str) {
        if let Some(diagnostic) = self.diagnostics.get_mut(finding) {
            diagnostic.related.push(Label { span, text: text.to_owned() });
        }
    }

    /// Whether further errors are dropped, so that computing details for them is useless.
    pub(super) fn is_full(&self) -> bool {
        self.errors >= MAX_DIAGNOSTICS
    }

    /// The number of errors so far.
    pub(super) fn errors(&self) -> usize {
        self.errors
    }

    /// All diagnostics, in the order of the text.
    pub(super) fn into_sorted(mut self) -> Vec<Diagnostic> {
        self.diagnostics.sort_by_key(|d| (d.span.start, d.span.end));
        self.diagnostics
    }
}

fn make_strict(diagnostic: &mut Diagnostic, strict: bool) {
    if strict && refused_when_strict(diagnostic.code) {
        diagnostic.severity = Severity::Error;
    }
}

/// Whether `strict` makes this warning an error: programs that pass `strict` are accepted by the manual and
/// by ptxas.
fn refused_when_strict(code: Code) -> bool {
    matches!(
        code,
        Code::ImmediateTruncated
            | Code::NotPortable
            | Code::NonStandard
            | Code::RegisterSum
            | Code::MissingArguments
            | Code::NegatedSelector
            | Code::MissingFile
            | Code::UnsizedParameter
    )
}
