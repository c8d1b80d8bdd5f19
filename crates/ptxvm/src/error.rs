//! What can go wrong, in four kinds that are never mixed.

use crate::Report;
use ptx::diag::Diagnostic;
use ptx_exec::trap::Trap;

/// Why something could not be done.
#[derive(Debug)]
pub struct Error(Box<ErrorKind>);

/// The kinds of errors.
#[derive(Debug)]
pub enum ErrorKind {
    /// The PTX text is at fault, or uses what ptxvm does not implement.
    Rejected(Vec<Diagnostic>),
    /// The running program is at fault. What it did until then is in the report.
    Trap(Box<Trap>, Report),
    /// The caller is at fault: a kernel that does not exist, a launch that does not fit, a wrong argument.
    Caller(String),
    /// The machine that we run on cannot: no memory, no threads.
    Machine(String),
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
            ErrorKind::Rejected(diagnostics) => {
                let mut errors = diagnostics.iter().filter(|d| d.severity == ptx::diag::Severity::Error);
                let first = errors.next().map_or("rejected", |d| d.message.as_str());
                write!(f, "the module was rejected: {first}")?;
                match errors.count() {
                    0 => Ok(()),
                    more => write!(f, " (and {more} more)"),
                }
            }
            ErrorKind::Trap(trap, _) => write!(f, "{trap}"),
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
    #[test]
    fn an_error_is_one_word() {
        assert_eq!(size_of::<super::Error>(), size_of::<usize>());
    }
}
