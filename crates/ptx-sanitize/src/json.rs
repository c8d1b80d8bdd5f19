//! Findings as JSON, one object per line.

use crate::finding::Finding;
use std::fmt::Write as _;

/// All of them, and the summary.
pub(crate) fn all(findings: &[Finding], suppressed: usize) -> String {
    let mut text: String = findings.iter().map(|finding| one(finding) + "\n").collect();
    text.push_str(&summary(findings.len(), suppressed));
    text
}

/// The last line. How many are suppressed stands there where there are any.
pub(crate) fn summary(errors: usize, suppressed: usize) -> String {
    match suppressed {
        0 => format!("{{\"summary\":{{\"errors\":{errors}}}}}\n"),
        _ => format!("{{\"summary\":{{\"errors\":{errors},\"suppressed\":{suppressed}}}}}\n"),
    }
}

/// One of them.
fn one(finding: &Finding) -> String {
    let (before, behind) = parts(finding);
    format!("{before}{}{behind}", finding.count)
}

/// One of them, before and behind its count.
pub(crate) fn parts(finding: &Finding) -> (String, String) {
    let mut object = Object::new();
    object.string("tool", finding.tool().name());
    object.string("kind", finding.kind.name());
    object.string("kernel", &finding.kernel);
    object.string("file", &finding.file);
    object.raw("line", &number(finding.line));
    if let Some(source) = &finding.source {
        object.raw("source", &place(source));
    }
    object.raw("cta", &coordinates(finding.cta));
    object.raw("thread", &coordinates(finding.thread));
    object.optional("space", finding.space);
    object.optional("address", finding.address.map(|address| format!("{address:#x}")).as_deref());
    object.raw("bytes", &number(finding.bytes));
    object.raw("count", "");
    let before = std::mem::take(&mut object.0);
    object.string("message", &finding.message);
    object.string("function", &finding.function);
    object.string("instruction", &finding.instruction);
    if let Some(hazard) = finding.hazard {
        object.string("hazard", hazard);
    }
    if let Some(missing) = finding.missing {
        object.string("missing", missing);
    }
    if !finding.notes.is_empty() {
        let mut notes = Object::new();
        for (label, note) in &finding.notes {
            notes.string(label, note);
        }
        object.raw("notes", &notes.end());
    }
    object.raw("seed", &finding.seed.to_string());
    let other = finding.other.as_ref().map(|other| {
        let mut second = Object::new();
        second.raw("line", &number(other.line));
        second.raw("cta", &coordinates(other.cta));
        second.raw("thread", &coordinates(other.thread));
        second.string("access", &other.access);
        second.raw("source", &other.source.as_ref().map_or_else(|| "null".to_owned(), place));
        second.string("instruction", &other.instruction);
        second.end()
    });
    object.raw("other", other.as_deref().unwrap_or("null"));
    (before, object.end())
}

/// An object that is being written.
struct Object(String);

impl Object {
    fn new() -> Self {
        Self("{".to_owned())
    }

    fn raw(&mut self, key: &str, value: &str) {
        if self.0 != "{" {
            self.0.push(',');
        }
        let _infallible = write!(self.0, "{}:{value}", quoted(key));
    }

    fn string(&mut self, key: &str, value: &str) {
        self.raw(key, &quoted(value));
    }

    fn optional(&mut self, key: &str, value: Option<&str>) {
        self.raw(key, &value.map_or_else(|| "null".to_owned(), quoted));
    }

    fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

fn number(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "null".to_owned(), |value| value.to_string())
}

fn coordinates([x, y, z]: [u32; 3]) -> String {
    format!("[{x},{y},{z}]")
}

fn place((file, line): &(String, u32)) -> String {
    format!("{{\"file\":{},\"line\":{line}}}", quoted(file))
}

/// A string with JSON's escapes (RFC 8259, section 7).
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if u32::from(c) < 0x20 => {
                let _infallible = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Kind;

    #[test]
    fn strings_are_escaped_and_the_last_line_counts() {
        let mut finding = Finding::new(Kind::Leak, "a \"b\"\\\n\u{1}");
        finding.line = Some(7);
        let text = all(&[finding], 0);
        assert!(text.contains(r#""message":"a \"b\"\\\n\u0001""#), "{text}");
        assert!(
            text.contains(r#""tool":"memcheck","kind":"leak""#)
                && text.contains(r#""line":7"#)
                && text.contains(r#""count":1,"message""#),
            "{text}"
        );
        assert!(text.ends_with("{\"summary\":{\"errors\":1}}\n"), "{text}");
    }
}
