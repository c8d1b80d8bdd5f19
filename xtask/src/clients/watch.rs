//! Tools that watch a client (`--tool`): options of `ptxvm exec`, and what was found.
//!
//! Invariant: a program that fails and one with findings are told apart. `ptxvm exec` gives one exit status
//! for both, so the program runs below a shell, which writes the program's own status to a file, and the
//! findings are counted in the report. Findings that are known and accepted are not counted: a client's rules
//! for them, each with the reason, are in `tests/clients/findings/NAME.txt`.

use super::Done;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The tools, by their names in `ptxvm exec --tool`.
const TOOLS: [&str; 4] = ["memcheck", "initcheck", "synccheck", "racecheck"];

/// The tools that `--tool NAME` selects.
pub(super) fn tools(name: &str) -> Result<Vec<&'static str>, String> {
    match TOOLS.iter().find(|tool| **tool == name) {
        Some(tool) => Ok(vec![tool]),
        None if name == "all" => Ok(TOOLS.to_vec()),
        None => Err(format!("there is no tool `{name}`; there are {}, and `all`", TOOLS.join(", "))),
    }
}

/// A tool that watches one run of a program.
pub(super) struct Watch {
    tool: &'static str,
    report: PathBuf,
    status: PathBuf,
    /// Rules for accepted findings.
    accepted: Option<PathBuf>,
}

/// The end of a program that was watched.
pub(super) struct Found {
    /// The program's own exit status; `None` if it was stopped together with its shell.
    pub status: Option<i32>,
    pub count: usize,
    /// The kinds of the findings with their numbers, and how many are accepted; empty without findings.
    pub note: String,
}

impl Watch {
    /// Prepares a run whose report is `NAME-TOOL.jsonl` in a folder.
    pub(super) fn new(tool: &'static str, folder: &Path, name: &str) -> Result<Self, String> {
        let accepted = crate::root().join(format!("tests/clients/findings/{name}.txt"));
        let accepted = accepted.exists().then_some(accepted);
        std::fs::create_dir_all(folder).map_err(|error| format!("`{}`: {error}", folder.display()))?;
        let report = folder.join(format!("{name}-{tool}.jsonl"));
        let status = report.with_extension("status");
        for old in [&report, &status] {
            let _absent = std::fs::remove_file(old);
        }
        Ok(Self { tool, report, status, accepted })
    }

    /// Options of `ptxvm exec`. All findings are recorded: the first hundred may be of one kind.
    pub(super) fn options(&self) -> Vec<OsString> {
        let mut options: Vec<OsString> =
            ["--tool", self.tool, "--max-findings", "1000", "--report"].map(OsString::from).to_vec();
        options.push(self.report.clone().into());
        if let Some(rules) = &self.accepted {
            options.extend(["--suppressions".into(), rules.clone().into()]);
        }
        options
    }

    /// What stands in front of the program and its arguments.
    pub(super) fn shell(&self) -> Vec<OsString> {
        let script = "\"$@\"; echo $? >\"$0\"";
        vec!["sh".into(), "-c".into(), script.into(), self.status.clone().into()]
    }

    /// The result of a run that has ended, with what else is said of it.
    pub(super) fn done(&self, what: &str, note: String) -> Result<Done, String> {
        let found = self.found()?;
        let end = match found.status {
            Some(0) => return Ok(Done::with(note, Some(found))),
            Some(status) => format!("{what} ended with exit status {status}"),
            None => format!("{what} was stopped"),
        };
        Err(Done::with(end, Some(found)).note)
    }

    /// Reads the report and the status.
    pub(super) fn found(&self) -> Result<Found, String> {
        let file = self.report.display();
        let text = std::fs::read_to_string(&self.report).map_err(|error| format!("no `{file}`: {error}"))?;
        let status = std::fs::read_to_string(&self.status).ok().and_then(|text| text.trim().parse().ok());
        let Report { kinds, accepted } = Report::read(&text).map_err(|why| format!("`{file}`: {why}"))?;
        let mut note = Vec::new();
        if !kinds.is_empty() {
            note.push(format!("{}, see `{file}`", listed(&kinds)));
        }
        if accepted > 0 {
            note.push(format!("{accepted} accepted"));
        }
        Ok(Found { status, count: kinds.iter().map(|(_, count)| count).sum(), note: note.join("; ") })
    }
}

/// What a report contains.
struct Report {
    /// The kinds of findings, in the order of their first ones, with their numbers.
    kinds: Vec<(String, usize)>,
    /// How many findings the client's rules cover.
    accepted: u64,
}

impl Report {
    fn read(text: &str) -> Result<Self, String> {
        use serde_json::Value;
        let (mut kinds, mut accepted): (Vec<(String, usize)>, _) = (Vec::new(), None);
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
            if let Some(summary) = line.get("summary") {
                accepted = Some(summary.get("suppressed").and_then(Value::as_u64).unwrap_or(0));
            }
            let Some(kind) = line.get("kind").and_then(Value::as_str) else { continue };
            match kinds.iter_mut().find(|(known, _)| known == kind) {
                Some((_, count)) => *count += 1,
                None => kinds.push((kind.to_owned(), 1)),
            }
        }
        Ok(Self { kinds, accepted: accepted.ok_or("the summary is missing")? })
    }
}

fn listed(kinds: &[(String, usize)]) -> String {
    let parts: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::{Report, listed, tools};

    #[test]
    fn findings_are_counted_by_kind() {
        let line = |kind: &str| format!("{{\"tool\":\"memcheck\",\"kind\":\"{kind}\",\"line\":3}}\n");
        let findings = line("leak") + &line("double-free") + &line("leak");
        let report = Report::read(&(findings.clone() + "{\"summary\":{\"errors\":3}}\n")).unwrap();
        assert_eq!((listed(&report.kinds).as_str(), report.accepted), ("2 leak, 1 double-free", 0));
        let report = Report::read("{\"summary\":{\"errors\":0,\"suppressed\":7}}\n").unwrap();
        assert_eq!((report.kinds.len(), report.accepted), (0, 7));
        assert!(Report::read(&findings).is_err(), "a report without its summary");
    }

    #[test]
    fn all_is_each_tool() {
        assert_eq!(tools("all").unwrap().len(), 4);
        assert_eq!(tools("racecheck").unwrap(), ["racecheck"]);
        assert!(tools("memchek").is_err());
    }
}
