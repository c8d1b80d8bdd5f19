//! The format of `tests/language`: modules whose lines state the expected findings, and the comparison with
//! the actual findings.
//!
//! Shared by the test `language`, which fails if the two differ, and by `cargo xtask coverage`, which counts
//! the inventory rows of the lines that pass. Invariant: every comment that looks like an expectation is one;
//! a malformed one is an error, never skipped. The format is described in `tests/language/README.md`.

use ptx::check::{CheckOptions, Checked, check};
use ptx::diag::render::{Color, Source};
use ptx::diag::{Diagnostic, Severity};
use ptx::isa::Sm;

/// A module of a file.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// Its heading; the name of the file where it has none.
    pub(crate) title: String,
    /// The target that it is checked for, if the heading names one.
    pub(crate) gpu: Option<Sm>,
    /// The text, after as many empty lines as precede it in the file: a line has one number in both.
    pub(crate) text: String,
    /// What its lines announce.
    pub(crate) notes: Vec<Note>,
}

/// What a line announces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    /// Line of the file, from 1.
    pub(crate) line: usize,
    /// What is found there.
    pub(crate) finding: Finding,
    /// The inventory rows that it is a test of.
    pub(crate) ids: Vec<String>,
}

/// What the checker must find on a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// `//+`: no error.
    Valid,
    /// `//~ CODE`: this error.
    Error(String),
    /// `//! CODE`: this warning.
    Warning(String),
}

const HEADING: &str = "//====";
const MARKS: [&str; 3] = ["//+", "//~", "//!"];

/// The modules of a file. What precedes the first heading is one more module, unless it is only comments.
///
/// # Errors
/// Names the line with a malformed heading or announcement.
pub(crate) fn parse(file: &str, text: &str) -> Result<Vec<Case>, String> {
    let mut cases: Vec<Case> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let heading = line.strip_prefix(HEADING);
        if heading.is_some() || (cases.is_empty() && !is_blank(line)) {
            let (title, gpu) =
                title(heading.unwrap_or(file)).ok_or_else(|| format!("line {number}: not a heading"))?;
            cases.push(Case { title, gpu, text: "\n".repeat(index), notes: Vec::new() });
        }
        if let Some(case) = cases.last_mut() {
            case.text.push_str(line);
            case.text.push('\n');
            notes(number, line, &mut case.notes)?;
        }
    }
    Ok(cases)
}

/// Nothing, or a comment that announces nothing.
fn is_blank(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || (line.starts_with("//") && !MARKS.iter().any(|mark| line.starts_with(mark)))
}

/// `TITLE`, `TITLE @gpu=sm_70`.
fn title(heading: &str) -> Option<(String, Option<Sm>)> {
    let mut parts = heading.split(" @");
    let title = parts.next()?.trim().to_owned();
    let mut gpu = None;
    for option in parts {
        let ("gpu", name) = option.trim().split_once('=')? else { return None };
        gpu = Some(Sm::from_name(name)?);
    }
    (!title.is_empty()).then_some((title, gpu))
}

/// The announcements of a line: from the first mark to its end.
fn notes(line: usize, text: &str, notes: &mut Vec<Note>) -> Result<(), String> {
    let marked = |at: &usize| MARKS.iter().any(|mark| text[*at..].starts_with(mark));
    let starts: Vec<usize> = text.match_indices("//").map(|(at, _)| at).filter(marked).collect();
    for (index, start) in starts.iter().enumerate() {
        let note = &text[*start..starts.get(index + 1).copied().unwrap_or(text.len())];
        let (mark, words) = note.split_at(MARKS[0].len());
        let mut words = words.split_whitespace().map(str::to_owned);
        let mut code = || {
            words.next().filter(|c| is_code(c)).ok_or_else(|| format!("line {line}: no code after {mark}"))
        };
        let finding = match mark {
            "//+" => Finding::Valid,
            "//~" => Finding::Error(code()?),
            _ => Finding::Warning(code()?),
        };
        let ids: Vec<String> = words.collect();
        if finding == Finding::Valid && ids.is_empty() {
            return Err(format!("line {line}: {mark} names no row of the inventory"));
        }
        notes.push(Note { line, finding, ids });
    }
    Ok(())
}

fn is_code(word: &str) -> bool {
    word.len() == 5 && word.starts_with('P') && word[1..].bytes().all(|b| b.is_ascii_digit())
}

/// Checks a module: where it differs from what it announces, ready to print. Nothing where the two agree.
pub(crate) fn judge(case: &Case) -> Vec<String> {
    let options = CheckOptions { gpu_name: case.gpu, ..CheckOptions::default() };
    let checked = check(&case.title, &case.text, &options);
    let mut left: Vec<(usize, &Diagnostic)> =
        checked.diagnostics.iter().map(|d| (line_of(&checked, d), d)).collect();
    let mut faults = Vec::new();
    for note in &case.notes {
        let (code, severity) = match &note.finding {
            Finding::Valid => continue,
            Finding::Error(code) => (code, Severity::Error),
            Finding::Warning(code) => (code, Severity::Warning),
        };
        let same = |(line, d): &(usize, &Diagnostic)| {
            *line == note.line && d.severity == severity && d.code.name() == *code
        };
        match left.iter().position(same) {
            Some(found) => drop(left.swap_remove(found)),
            None => faults.push((note.line, absent(case, note.line, code, &checked))),
        }
    }
    for (line, diagnostic) in left.into_iter().filter(|(_, d)| d.severity == Severity::Error) {
        let valid = case.notes.iter().any(|n| n.line == line && n.finding == Finding::Valid);
        let what = if valid { "is valid, but came" } else { "came, and nothing announces it" };
        let shown = indented(&Source::new(&case.title, &checked.source.text).human(diagnostic, Color::Never));
        faults.push((line, format!("line {line}: {what}:\n{shown}")));
    }
    // A module without an announced error must come out of it as a module.
    let announced = case.notes.iter().any(|n| matches!(n.finding, Finding::Error(_)));
    if faults.is_empty() && announced == checked.module.is_some() {
        faults.push((0, "the verdict on the module contradicts its diagnostics".to_owned()));
    }
    faults.sort();
    faults.into_iter().map(|(_, text)| text).collect()
}

/// An expectation that was not met: its text, the line, and the findings on that line.
fn absent(case: &Case, line: usize, code: &str, checked: &Checked) -> String {
    let text = case.text.lines().nth(line - 1).unwrap_or_default().trim();
    let mut fault = format!("line {line}: {code} was expected of\n    {text}\n");
    let there: Vec<&Diagnostic> =
        checked.diagnostics.iter().filter(|d| line_of(checked, d) == line).collect();
    if there.is_empty() {
        fault += "    and nothing came";
    }
    for diagnostic in there {
        fault += &format!("    and there came {}: {}\n", diagnostic.code.name(), diagnostic.message);
    }
    fault
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

/// The line, from 1, on which a diagnostic begins, in the text as the preprocessor's lines have made it.
fn line_of(checked: &Checked, diagnostic: &Diagnostic) -> usize {
    checked.source.line(diagnostic.span) as usize
}
