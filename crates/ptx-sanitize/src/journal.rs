//! Findings of processes for the process that waits for them: a file to which each appends lines.
//!
//! A line is a JSON array. Its first element says what it is:
//!
//! * `["finding", process, number, told, count, identity, before, behind, text]`: the finding with that number of that process. A later line of
//!   the same one replaces an earlier one. `told`: 1 if the process has printed `text`. `before` and `behind` are the finding as a JSON
//!   object without its count. Findings of equal `identity` are the same in all processes.
//! * `["suppressed", process, count]`: how many findings suppressions cover in that process.
//!
//! Invariant: a line is written by one system call to a file that was opened for appending, so lines of several processes do not mix, and
//! what a process has written stays when it dies.

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

/// Appends lines to a file. The file is opened for each call: a program may close descriptors that it did not open.
///
/// # Errors
/// Of the system.
pub fn append(file: &Path, lines: &str) -> std::io::Result<()> {
    std::fs::OpenOptions::new().append(true).create(true).open(file)?.write_all(lines.as_bytes())
}
