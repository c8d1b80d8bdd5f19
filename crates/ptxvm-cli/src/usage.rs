//! Usage errors, and reading with a size limit.

/// An error of the caller or the machine, which ends the command with status 2.
#[derive(Debug)]
pub(crate) struct UsageError(pub(crate) String);

impl<T: std::fmt::Display> From<T> for UsageError {
    fn from(error: T) -> Self {
        Self(error.to_string())
    }
}

/// Reads to the end, which must come within `most` bytes. Memory is allocated as data arrive.
pub(crate) fn read_at_most(reader: &mut impl std::io::Read, most: u64) -> std::io::Result<Vec<u8>> {
    use std::io::{Error, ErrorKind, Read as _};
    let mut bytes = Vec::new();
    let read = ptxvm::attempt(|| reader.take(most.saturating_add(1)).read_to_end(&mut bytes));
    match read {
        Ok(length) if length as u64 > most => {
            Err(Error::new(ErrorKind::FileTooLarge, format!("it has more than {most} bytes")))
        }
        Ok(_) => Ok(bytes),
        Err(e) if e.kind() == ErrorKind::OutOfMemory => {
            let had = bytes.len();
            Err(Error::new(ErrorKind::OutOfMemory, format!("no memory for more than its first {had} bytes")))
        }
        Err(e) => Err(e),
    }
}
