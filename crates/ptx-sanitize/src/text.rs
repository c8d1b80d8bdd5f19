//! Findings as text, in the style of trap reports.

use crate::finding::Finding;
use std::fmt::Write as _;

/// All of them, and the summary.
pub(crate) fn all(findings: &[Finding], suppressed: usize) -> String {
    let mut text: String = findings.iter().map(|finding| of(finding) + "\n").collect();
    text.push_str(&summary(findings.len(), suppressed));
    text
}

/// The last line, and before it how many findings are suppressed.
pub(crate) fn summary(errors: usize, suppressed: usize) -> String {
    let before = match suppressed {
        0 => String::new(),
        _ => format!("suppressed: {suppressed}\n"),
    };
    format!("{before}ERROR SUMMARY: {errors} errors\n")
}

/// One of them.
pub(crate) fn of(finding: &Finding) -> String {
    let mut text = String::new();
    one(&mut text, finding);
    text
}

fn one(text: &mut String, finding: &Finding) {
    let mut lines = Vec::new();
    if !finding.kernel.is_empty() {
        lines.push(("kernel", finding.kernel.clone()));
    }
    if !finding.function.is_empty() && finding.function != finding.kernel {
        lines.push(("function", finding.function.clone()));
    }
    if let Some(at) = finding.line {
        lines.push(("at", format!("{}:{at}", finding.file)));
        lines.push(("instruction", one_line(&finding.instruction)));
    }
    if let Some((file, line)) = &finding.source {
        lines.push(("source", format!("{file}:{line}")));
    }
    if !finding.kernel.is_empty() {
        lines.push(("cta", coordinates(finding.cta)));
        lines.push(("thread", coordinates(finding.thread)));
    }
    if let (Some(space), Some(address), Some(bytes)) = (finding.space, finding.address, finding.bytes) {
        lines.push(("address", format!("{address:#x} ({bytes} bytes, .{space})")));
    }
    lines.extend(finding.notes.iter().map(|(label, note)| (*label, note.clone())));
    if let Some(other) = &finding.other {
        let place = other.line.map_or_else(String::new, |line| format!(" at {}:{line}", finding.file));
        lines.push(("other", format!("{}{place}", other.access)));
        lines.push(("", one_line(&other.instruction)));
        if let Some((file, line)) = &other.source {
            lines.push(("", format!("source {file}:{line}")));
        }
        let (cta, thread) = (coordinates(other.cta), coordinates(other.thread));
        lines.push(("", format!("cta {cta}, thread {thread}")));
    }
    if let Some(missing) = finding.missing {
        lines.push(("missing", missing.to_owned()));
    }
    if finding.seed != 0 {
        lines.push(("replay", format!("--seed {}", finding.seed)));
    }
    if finding.count > 1 {
        lines.push(("count", finding.count.to_string()));
    }
    let head = format!("{}: {}: {}\n", finding.tool().name(), finding.kind.name(), finding.message);
    text.push_str(&head);
    for (label, value) in lines {
        let label = if label.is_empty() { String::new() } else { format!("{label}:") };
        let _infallible = writeln!(text, "  {label:<13}{value}");
    }
}

fn coordinates([x, y, z]: [u32; 3]) -> String {
    format!("({x},{y},{z})")
}

/// An instruction that the text spreads over lines, on one.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
