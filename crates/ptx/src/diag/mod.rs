//! Diagnostics: what is wrong with a PTX text, where, and what would be right.
//!
//! Invariant: a diagnostic has a stable [`Code`] (permanent once published), a primary span inside the text, and a
//! message in the program's terms (lower case, no full stop). Rendering lives in [`render`]; nothing here ends a run.

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// Legal but suspicious; the module loads.
    Warning,
    /// The module is refused.
    Error,
}

/// A further place that belongs to a diagnostic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The place.
    pub span: crate::Span,
    /// What is to be seen there.
    pub text: String,
}

/// One finding about a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Warning or error.
    pub severity: Severity,
    /// Stable code.
    pub code: Code,
    /// What is wrong.
    pub message: String,
    /// Where; underlined with [`Diagnostic::label`].
    pub span: crate::Span,
    /// Text beside the underlined place; may be empty.
    pub label: String,
    /// Other places, each underlined with its own text.
    pub related: Vec<Label>,
    /// What would be right.
    pub help: Option<String>,
    /// Section of the manual, such as `9.7.1.1`.
    pub section: Option<&'static str>,
}

impl Diagnostic {
    /// An error with its code, place and message; the severity is the code's.
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

    /// Sets the text beside the underlined place.
    pub fn with_label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Adds another place.
    pub fn with_related(mut self, span: crate::Span, text: impl Into<String>) -> Self {
        self.related.push(Label { span, text: text.into() });
        self
    }

    /// Says what would be right.
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Names the section of the manual.
    pub fn with_section(mut self, section: &'static str) -> Self {
        self.section = Some(section);
        self
    }
}

mod code;
mod explain;
pub mod render;
pub use code::Code;
