//! Findings of the tools in a program, read from the journal of its processes when it has ended.
//!
//! Each process appends a finding to a file in the folder of the run as soon as it is made, and prints it.
//! This process prints the findings that a process could not print before it died, and the summary. It also
//! writes the report.
//!
//! Invariants: findings that are the same in several processes are one, with the sum of their counts; the
//! summary is the last line. A report that cannot be written is an error before the program runs.

use super::folder::Folder;
use crate::UsageError;
use crate::options::ToolOptions;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Tools that watch a program.
pub(super) struct Findings {
    journal: PathBuf,
    report: Option<(PathBuf, std::fs::File)>,
    status: u8,
}

/// A finding of one process, as it was written last.
struct Entry {
    told: bool,
    count: u64,
    identity: String,
    before: String,
    behind: String,
    text: String,
}

/// The variables for the libraries, without the journal.
pub(super) fn variables(options: &ToolOptions) -> Result<Vec<(&'static str, OsString)>, UsageError> {
    let Some(tools) = &options.tool else { return Ok(Vec::new()) };
    let names: Vec<&str> = tools.0.iter().map(|tool| tool.name()).collect();
    let mut set = vec![("PTXVM_TOOL", OsString::from(names.join(",")))];
    if let Some(most) = options.max_findings {
        set.push(("PTXVM_MAX_FINDINGS", most.to_string().into()));
    }
    if let Some(file) = &options.suppressions {
        crate::suppress::read(file)?;
        // The program may change its folder before it uses a device.
        set.push(("PTXVM_SUPPRESSIONS", std::path::absolute(file)?.into()));
    }
    if let Some(file) = &options.report {
        set.push(("PTXVM_REPORT", std::path::absolute(file)?.into()));
    }
    Ok(set)
}

impl Findings {
    /// Prepares the files; `None` without tools.
    pub(super) fn of(options: &ToolOptions, folder: &Folder) -> Result<Option<Self>, UsageError> {
        if options.tool.is_none() {
            return Ok(None);
        }
        let fail = |file: &Path, error: std::io::Error| format!("cannot write `{}`: {error}", file.display());
        let open = |file: &PathBuf| {
            let made =
                std::fs::File::create(file).and_then(|_| std::fs::File::options().append(true).open(file));
            made.map(|made| (file.clone(), made)).map_err(|error| fail(file, error))
        };
        let report = options.report.as_ref().map(open).transpose()?;
        let journal = folder.findings();
        Ok(Some(Self { journal, report, status: options.error_exitcode.unwrap_or(crate::Exit::Found as u8) }))
    }

    /// The variable that names the journal.
    pub(super) fn variable(&self) -> (&'static str, OsString) {
        ("PTXVM_FINDINGS", self.journal.clone().into())
    }

    /// Prints and writes what was found. The exit status, if something was.
    pub(super) fn end(self) -> Result<Option<u8>, UsageError> {
        let text = match std::fs::read(&self.journal) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(_) => String::new(),
        };
        let Journal { entries, suppressed } = Journal::read(&text);
        let mut whole: Vec<Entry> = Vec::new();
        for entry in entries {
            match whole.iter_mut().find(|same| same.identity == entry.identity) {
                Some(same) => {
                    same.count = same.count.saturating_add(entry.count);
                    same.told |= entry.told;
                }
                None => whole.push(entry),
            }
        }
        for untold in whole.iter().filter(|entry| !entry.told) {
            crate::print_err(&format!("{}\n", untold.text));
        }
        crate::print_err(&ptxvm::findings_summary(whole.len(), suppressed));
        if let Some((file, mut report)) = self.report {
            let mut lines = String::new();
            for Entry { before, count, behind, .. } in &whole {
                lines.push_str(&format!("{before}{count}{behind}\n"));
            }
            lines.push_str(&ptxvm::findings_json_summary(whole.len(), suppressed));
            let written = report.write_all(lines.as_bytes());
            written.map_err(|error| format!("cannot write `{}`: {error}", file.display()))?;
        }
        Ok((!whole.is_empty()).then_some(self.status))
    }
}

/// What processes have written.
#[derive(Default)]
struct Journal {
    /// In the order in which they were found first.
    entries: Vec<Entry>,
    suppressed: usize,
}

impl Journal {
    /// Reads lines as `ptxvm::journal` writes them. A line that is cut off, because its process was killed,
    /// is left out.
    fn read(text: &str) -> Self {
        let mut journal = Self::default();
        let mut known: BTreeMap<(String, u64), usize> = BTreeMap::new();
        for line in text.lines() {
            let Ok(Value::Array(parts)) = serde_json::from_str(line) else { continue };
            let text = |at: usize| parts.get(at).and_then(Value::as_str).unwrap_or_default().to_owned();
            let number = |at: usize| parts.get(at).and_then(Value::as_u64).unwrap_or_default();
            match text(0).as_str() {
                "finding" => {
                    let entry = Entry {
                        told: number(3) != 0,
                        count: number(4),
                        identity: text(5),
                        before: text(6),
                        behind: text(7),
                        text: text(8),
                    };
                    let place = *known.entry((text(1), number(2))).or_insert(journal.entries.len());
                    match journal.entries.get_mut(place) {
                        Some(old) => *old = entry,
                        None => journal.entries.push(entry),
                    }
                }
                "suppressed" => journal.suppressed += number(2) as usize,
                _ => {}
            }
        }
        journal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_a_finding_counts_and_a_cut_line_does_not() {
        let line = |process: &str, number: u32, told: u32, count: u32| {
            format!(
                "[\"finding\",\"{process}\",{number},{told},{count},\"k{number}\",\"{{\",\"}}\",\"text\"]\n"
            )
        };
        let text = [line("a", 0, 0, 1), line("b", 0, 1, 5), line("a", 1, 0, 2), line("a", 0, 1, 9)].concat();
        let journal = Journal::read(&(text + "[\"suppressed\",\"a\",3]\n[\"finding\",\"c\",0,0,"));
        let entries: Vec<_> =
            journal.entries.iter().map(|e| (e.identity.as_str(), e.told, e.count)).collect();
        assert_eq!(entries, [("k0", true, 9), ("k0", true, 5), ("k1", false, 2)]);
        assert_eq!(journal.suppressed, 3);
    }
}
