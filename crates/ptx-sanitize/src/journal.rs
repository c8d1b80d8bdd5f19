//! The journal: a file to which the processes of a program append their findings, and which `ptxvm exec`
//! reads when they have ended.
//!
//! A line is a JSON array. Its first element is the kind of the line:
//!
//! * `["finding", process, number, told, count, identity, before, behind,
//!   text]`: a finding. `process` and `number` identify it; a later line with the same two replaces an
//!   earlier one. `told` is 1 if the process has printed `text`. `before` and `behind` are the parts of the
//!   finding's JSON object before and after the value of `count`. Findings of several processes with the same
//!   `identity` are reported as one.
//! * `["suppressed", process, count]`: the number of findings of that process that suppressions cover.
//!
//! Invariant: each line is written by one system call to a file that is open for appending. So lines of
//! several processes do not mix, and the lines of a process remain if it is killed.

use crate::finding::Finding;
use crate::json::quoted;
use std::io::Write as _;
use std::path::Path;

/// A finding as a line.
pub fn finding(process: &str, number: usize, told: bool, finding: &Finding) -> String {
    let (before, behind) = crate::json_parts(finding);
    let [process, identity, before, behind, text] =
        [process, &crate::identity(finding), &before, &behind, &crate::text_of(finding)].map(quoted);
    let told = u8::from(told);
    let count = finding.count;
    format!("[\"finding\",{process},{number},{told},{count},{identity},{before},{behind},{text}]\n")
}

/// How many findings are suppressed, as a line.
pub fn suppressed(process: &str, count: usize) -> String {
    format!("[\"suppressed\",{},{count}]\n", quoted(process))
}

/// Appends lines to a file. The file is opened for each call: a program may close descriptors that it did not
/// open.
///
/// # Errors
/// Of the system.
pub fn append(file: &Path, lines: &str) -> std::io::Result<()> {
    std::fs::OpenOptions::new().append(true).create(true).open(file)?.write_all(lines.as_bytes())
}
