//! Words that a program may not use as names. PTX ISA §4.3.2, Table 2.
//!
//! Invariant: derived from the table. A mnemonic is reserved from the version on that introduced it, so that
//! programs older than an instruction stay valid (A1 of the project's list of readings).

use super::matching::rows_of;
use super::{Version, later};

/// The version from which on `name` is an instruction keyword; `None` if it never is.
pub fn since(name: &str) -> Option<Version> {
    let rows = rows_of(name).iter();
    let in_table = rows.map(|row| row.form().gate.ptx.unwrap_or(Version::new(1, 0))).min();
    in_table.or_else(|| later::of_mnemonic(name).map(|l| l.version()))
}

/// Whether `name` is an instruction keyword in a module of this version.
pub fn is_reserved(name: &str, version: Version) -> bool {
    since(name).is_some_and(|since| since <= version)
}
