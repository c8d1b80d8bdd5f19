//! Diagnostics: a mistake in a PTX text, its place, and the correction.
//!
//! Invariant: a diagnostic has a permanent [`Code`], a primary span inside the text, and a message in the
//! program's terms (lower case, no full stop). [`render`] formats it; nothing here ends a run.

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// Legal but suspicious; the module is accepted.
    Warning,
    /// The module is refused.
    Error,
}

/// Another place that belongs to a diagnostic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The place.
    pub span: crate::Span,
    /// The text beside that place.
    pub text: String,
}

/// A finding in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Warning or error.
    pub severity: Severity,
    /// Stable code.
    pub code: Code,
    /// What is wrong.
    pub message: String,
    /// The primary place, underlined with [`Diagnostic::label`].
    pub span: crate::Span,
    /// Text beside the primary place; may be empty.
    pub label: String,
    /// Other places, each underlined with its own text.
    pub related: Vec<Label>,
    /// How to correct it.
    pub help: Option<String>,
    /// Section of the manual, such as `9.7.1.1`.
    pub section: Option<&'static str>,
}

impl Diagnostic {
    /// An error or warning, as the code says, with its place and message.
    pub fn new(code: Code, span: crate::Span, message: impl Into<String>) -> Self {
        Self {
            severity: code.severity(),
            code,
            message: message.into(),
            span,
            label: String::new(),
            related: Vec::new(),
            help: None,
            section: None,
        }
    }

    /// Sets the text beside the primary place.
    pub fn with_label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Adds another place.
    pub fn with_related(mut self, span: crate::Span, text: impl Into<String>) -> Self {
        self.related.push(Label { span, text: text.into() });
        self
    }

    /// Sets the correction.
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Sets the section of the manual.
    pub fn with_section(mut self, section: &'static str) -> Self {
        self.section = Some(section);
        self
    }
}

mod code;
mod explain;
pub mod render;
pub use code::Code;
