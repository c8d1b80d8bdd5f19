//! Files of suppressions: rules for findings of tools that are known and accepted.
//!
//! Invariant: a malformed file is refused with the place of the mistake, before anything runs.

use crate::{UsageError, read_at_most};
use ptxvm::Suppressions;
use std::path::Path;

/// The longest file, in bytes. Chosen: a device without an end must end.
const LONGEST: u64 = 16 << 20;

/// The rules of a file.
pub(crate) fn read(file: &Path) -> Result<Suppressions, UsageError> {
    let shown = file.display();
    let bytes = std::fs::File::open(file).and_then(|mut file| read_at_most(&mut file, LONGEST));
    let bytes = bytes.map_err(|error| format!("cannot read `{shown}`: {error}"))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("{shown}:{line}: the text is not UTF-8")
    })?;
    Ok(Suppressions::parse(&text).map_err(|error| format!("{shown}:{error}"))?)
}
