//! Errors, in four kinds that are never mixed.

use crate::{Report, Source};
use ptx::diag::Diagnostic;
use ptx_exec::trap::Trap;
use std::sync::Arc;

/// An error.
///
/// `Debug` prints the text for people, so that a `main` that returns it shows diagnostics with their lines.
pub struct Error(Box<ErrorKind>);

/// The kinds of errors.
#[derive(Debug)]
pub enum ErrorKind {
    /// The PTX text is at fault, or uses a feature that ptxvm does not implement.
    Rejected(Rejection),
    /// The running program is at fault. The report contains its results up to the trap.
    Trap(Box<Trap>, Report),
    /// The caller is at fault: a kernel that does not exist, a launch that does not fit, a wrong argument.
    Caller(String),
    /// The host machine failed: no memory, no threads.
    Machine(String),
}

/// A refused module: all diagnostics, and the text that they refer to. It dereferences to the list of
/// diagnostics.
#[derive(Clone)]
pub struct Rejection {
    /// Errors and warnings, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
    /// The text, for [`render`](crate::render).
    pub source: Arc<Source>,
}

impl Rejection {
    /// All diagnostics as text for people.
    pub fn rendered(&self, colors: bool) -> String {
        self.diagnostics.iter().map(|d| crate::render(d, &self.source, colors)).collect()
    }
}

impl std::ops::Deref for Rejection {
    type Target = [Diagnostic];

    fn deref(&self) -> &[Diagnostic] {
        &self.diagnostics
    }
}

impl<'r> IntoIterator for &'r Rejection {
    type Item = &'r Diagnostic;
    type IntoIter = std::slice::Iter<'r, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.diagnostics.iter()
    }
}

impl std::fmt::Debug for Rejection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.rendered(false).trim_end())
    }
}

impl std::fmt::Debug for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.kind() {
            // It is printed after `Error: `.
            ErrorKind::Rejected(rejection) => write!(f, "{self}\n{rejection:?}"),
            ErrorKind::Trap(trap, _) => f.write_str(crate::trap_report(trap).trim_end()),
            ErrorKind::Caller(message) | ErrorKind::Machine(message) => f.write_str(message),
        }
    }
}

impl Error {
    /// The kind, with its details.
    pub fn kind(&self) -> &ErrorKind {
        &self.0
    }

    /// The kind, with its details.
    pub fn into_kind(self) -> ErrorKind {
        *self.0
    }

    /// The trap, if it is one.
    pub fn trap(&self) -> Option<&Trap> {
        match self.kind() {
            ErrorKind::Trap(trap, _) => Some(trap),
            ErrorKind::Rejected(_) | ErrorKind::Caller(_) | ErrorKind::Machine(_) => None,
        }
    }

    /// An error of the caller.
    pub fn caller(message: impl Into<String>) -> Self {
        ErrorKind::Caller(message.into()).into()
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self(Box::new(kind))
    }
}

impl std::fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ErrorKind::Rejected(rejection) => {
                let diagnostics = &rejection.diagnostics;
                let mut errors = diagnostics.iter().filter(|d| d.severity == ptx::diag::Severity::Error);
                let first = errors.next().map_or("rejected", |d| d.message.as_str());
                write!(f, "the module was rejected: {first}")?;
                match errors.count() {
                    0 => Ok(()),
                    more => write!(f, " (and {more} more)"),
                }
            }
            ErrorKind::Trap(trap, _) => f.write_str(&crate::trap_report(trap)),
            ErrorKind::Caller(message) | ErrorKind::Machine(message) => f.write_str(message),
        }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use crate::{Error, Vm};

    #[test]
    fn an_error_is_one_word() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
    }

    /// The output of a `main` that returns it.
    #[test]
    fn debug_shows_the_lines_that_are_wrong() {
        let vm = Vm::new().expect("there is memory");
        let text =
            ".version 6.4\n.target sm_70\n.address_size 64\n.entry k() {\n    ad.s32 x;\n    ret;\n}\n";
        let error = vm.load("k.ptx", text).expect_err("there is no `ad`");
        let shown = format!("Error: {error:?}");
        for part in [
            "Error: the module was rejected: there is no instruction `ad`",
            " --> k.ptx:5:5",
            "5 |     ad.s32 x;",
        ] {
            assert!(shown.contains(part), "{part} is not in\n{shown}");
        }
        assert!(!shown.contains("Span"), "{shown}");
        let error = Error::caller("no such kernel");
        assert_eq!(format!("{error:?}"), "no such kernel");
    }

    #[test]
    fn a_module_keeps_its_warnings_and_its_text() {
        let vm = Vm::new().expect("there is memory");
        let text = ".version 6.4\n.target sm_70\n.address_size 64\n.entry k() {\n    .reg .u32 r;\n    mov.u32 r, 0x1ffffffff;\n    ret;\n}\n";
        let module = vm.load("k.ptx", text).expect("warnings do not refuse it");
        let codes: Vec<_> = module.warnings().iter().map(|d| d.code).collect();
        assert!(codes.contains(&crate::Code::ImmediateTruncated), "{codes:?}");
        let shown = crate::render(&module.warnings()[0], module.source(), false);
        assert!(shown.contains("k.ptx:6:"), "{shown}");
    }
}
