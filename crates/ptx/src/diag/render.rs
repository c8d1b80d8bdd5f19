//! Diagnostics as text: for people, and as JSON lines for programs.
//!
//! Invariants: rendering never fails, whatever the span and whatever the text (spans are cut to the text, control characters of
//! messages and text are made visible); lines and columns count from 1, a column counts Unicode scalar values, and an end is
//! the place directly behind the last character. Nothing here writes anywhere.

use super::{Diagnostic, Severity};
use crate::{LineIndex, Span};
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet, normalize_untrusted_str};
use std::fmt::Write as _;
use std::ops::Range;

/// Whether rendered text carries terminal colors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    /// Plain text.
    Never,
    /// ANSI escape sequences.
    Always,
}

/// A text with its name, or several one behind the other, to render diagnostics about them.
#[derive(Clone, Debug)]
pub struct Source<'s> {
    text: &'s str,
    lines: LineIndex,
    /// Where each text begins, and its name; at least one.
    parts: Vec<(usize, &'s str)>,
}

/// One text of a [`Source`].
#[derive(Clone, Copy)]
struct Part<'s> {
    name: &'s str,
    start: usize,
    end: usize,
    /// How many lines stand before it.
    lines_before: u32,
}

impl<'s> Source<'s> {
    /// The text `text`, shown as `name`.
    pub fn new(name: &'s str, text: &'s str) -> Self {
        Self::with_parts(text, [(0, name)])
    }

    /// Texts that stand one behind the other in `text`, each on lines of its own: where each begins, and its name.
    pub fn with_parts(text: &'s str, parts: impl IntoIterator<Item = (u32, &'s str)>) -> Self {
        let mut parts: Vec<_> =
            parts.into_iter().map(|(start, name)| (text.floor_char_boundary(start as usize), name)).collect();
        if parts.is_empty() {
            parts.push((0, ""));
        }
        Self { text, lines: LineIndex::new(text), parts }
    }

    /// The text that holds a byte.
    fn part(&self, at: usize) -> Part<'s> {
        let index = self.parts.partition_point(|(start, _)| *start <= at).saturating_sub(1);
        let (start, name) = self.parts[index];
        let end = self.parts.get(index + 1).map_or(self.text.len(), |(next, _)| *next).max(start);
        Part { name, start, end, lines_before: self.lines.line(start as u32).saturating_sub(1) }
    }

    /// The diagnostic for people: code, message, the lines it is about with what is underlined, help, section. Ends with a
    /// line end.
    pub fn human(&self, diagnostic: &Diagnostic, color: Color) -> String {
        let level = match diagnostic.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let code = diagnostic.code.name();
        let mut group = Group::with_title(level.primary_title(diagnostic.message.as_str()).id(code.as_str()))
            .element(self.snippet(diagnostic, self.part(self.range(diagnostic.span).start)));
        for part in self.other_parts(diagnostic) {
            group = group.element(self.snippet(diagnostic, part));
        }
        if let Some(help) = &diagnostic.help {
            group = group.element(Level::HELP.message(normalize_untrusted_str(help)));
        }
        if let Some(section) = diagnostic.section {
            group = group.element(Level::NOTE.message(format!("PTX ISA §{section}")));
        }
        let renderer = match color {
            Color::Never => Renderer::plain(),
            Color::Always => Renderer::styled(),
        };
        let mut rendered = renderer.render(&[group]);
        rendered.push('\n');
        rendered
    }

    /// The other texts that the diagnostic speaks of, in its order.
    fn other_parts(&self, diagnostic: &Diagnostic) -> Vec<Part<'s>> {
        let primary = self.part(self.range(diagnostic.span).start);
        let mut parts: Vec<Part<'s>> = Vec::new();
        for label in &diagnostic.related {
            let part = self.part(self.range(label.span).start);
            let known = parts.iter().chain([&primary]).any(|known| known.start == part.start);
            if !known {
                parts.push(part);
            }
        }
        parts
    }

    /// The lines of one text from the first to the last that the diagnostic speaks of; lines between are folded away.
    fn snippet<'d>(
        &self,
        diagnostic: &'d Diagnostic,
        part: Part<'s>,
    ) -> Snippet<'d, annotate_snippets::Annotation<'d>>
    where
        's: 'd,
    {
        let within_part = |range: &Range<usize>| self.part(range.start).start == part.start;
        let cut = |range: Range<usize>| range.start..range.end.min(part.end).max(range.start);
        let primary = Some(self.range(diagnostic.span)).filter(within_part).map(cut);
        let related = diagnostic.related.iter().map(|l| (self.range(l.span), l.text.as_str()));
        let related: Vec<_> =
            related.filter(|(r, _)| within_part(r)).map(|(r, text)| (cut(r), text)).collect();
        let all = || related.iter().map(|(r, _)| r).chain(&primary);
        let first = all().map(|r| r.start).min().unwrap_or(part.start);
        let last = all().map(|r| r.end).max().unwrap_or(part.start);
        let start = self.text[..first].rfind('\n').map_or(0, |i| i + 1).max(part.start);
        let end = self.text[last..part.end].find('\n').map_or(part.end, |i| last + i);
        let within = |range: &Range<usize>| range.start - start..range.end - start;
        let label = Some(normalize_untrusted_str(&diagnostic.label)).filter(|label| !label.is_empty());
        let primary = primary.map(|r| AnnotationKind::Primary.span(within(&r)).label(label));
        let annotations = related
            .iter()
            .map(|(r, text)| AnnotationKind::Context.span(within(r)).label(normalize_untrusted_str(text)));
        let line = self.lines.line(start as u32).saturating_sub(part.lines_before);
        Snippet::source(&self.text[start..end])
            .line_start(line as usize)
            .path(normalize_untrusted_str(part.name))
            .annotations(primary)
            .annotations(annotations)
    }

    /// The bytes of a span, cut to the text and to whole characters.
    fn range(&self, span: Span) -> Range<usize> {
        let start = self.text.floor_char_boundary(span.start as usize);
        let end = self.text.ceil_char_boundary((span.end as usize).min(self.text.len()));
        start..end.max(start)
    }

    /// The diagnostic as one line of JSON, without a line end: an object with `file`, `severity`, `code`, `message`, `line`,
    /// `column`, `end_line`, `end_column`, `help` and `section`; the last two are `null` where there is none.
    pub fn json(&self, diagnostic: &Diagnostic) -> String {
        let range = self.range(diagnostic.span);
        let part = self.part(range.start);
        let mut start = self.lines.locate(self.text, range.start as u32);
        let mut end = self.lines.locate(self.text, range.end as u32);
        start.line = start.line.saturating_sub(part.lines_before);
        end.line = end.line.saturating_sub(part.lines_before);
        let severity = match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let mut line = String::from("{");
        field(&mut line, "file", Some(part.name));
        field(&mut line, "severity", Some(severity));
        field(&mut line, "code", Some(&diagnostic.code.name()));
        field(&mut line, "message", Some(&diagnostic.message));
        let places = [
            ("line", start.line),
            ("column", start.column),
            ("end_line", end.line),
            ("end_column", end.column),
        ];
        for (name, number) in places {
            let _ = write!(line, "\"{name}\":{number},");
        }
        field(&mut line, "help", diagnostic.help.as_deref());
        field(&mut line, "section", diagnostic.section);
        line.pop();
        line.push('}');
        line
    }
}

/// `"name":"value",` or `"name":null,`
fn field(line: &mut String, name: &str, value: Option<&str>) {
    let _ = write!(line, "\"{name}\":");
    match value {
        Some(value) => json_string(line, value),
        None => line.push_str("null"),
    }
    line.push(',');
}

/// A JSON string. RFC 8259 §7.
fn json_string(line: &mut String, value: &str) {
    line.push('"');
    for c in value.chars() {
        match c {
            '"' => line.push_str("\\\""),
            '\\' => line.push_str("\\\\"),
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\t' => line.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(line, "\\u{:04x}", u32::from(c));
            }
            c => line.push(c),
        }
    }
    line.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Code;

    fn at(text: &str, part: &str) -> Span {
        let start = text.find(part).expect("the part is in the text") as u32;
        Span::new(start, start + part.len() as u32)
    }

    #[test]
    fn human_looks_like_the_style_guide() {
        let text = "\n".repeat(40) + "    add.sat.u32 %r3, %r1, %r2;\n";
        let diagnostic =
            Diagnostic::new(Code::NoSuchForm, at(&text, ".sat.u32"), "`add` has no form `.sat.u32`")
                .with_label("`.sat` exists for `.s32` only")
                .with_help("forms of `add`: `add.type d, a, b` · `add.sat.s32 d, a, b`")
                .with_section("9.7.1.1");
        let expected = "\
error[P0202]: `add` has no form `.sat.u32`
  --> saxpy.ptx:41:8
   |
41 |     add.sat.u32 %r3, %r1, %r2;
   |        ^^^^^^^^ `.sat` exists for `.s32` only
   |
   = help: forms of `add`: `add.type d, a, b` · `add.sat.s32 d, a, b`
   = note: PTX ISA §9.7.1.1
";
        assert_eq!(Source::new("saxpy.ptx", &text).human(&diagnostic, Color::Never), expected);
    }

    #[test]
    fn tabs_and_wide_characters_keep_the_underline_in_place() {
        let text = "a\n\t\"é漢\"\tbad\n";
        let diagnostic = Diagnostic::new(Code::UnexpectedToken, at(text, "bad"), "expected `;`");
        let source = Source::new("x.ptx", text);
        // A tab is shown as four blanks; the ideograph is two columns wide on a terminal and one character in the place.
        let expected = "\
error[P0005]: expected `;`
 --> x.ptx:2:7
  |
2 |     \"é漢\"    bad
  |              ^^^
";
        assert_eq!(source.human(&diagnostic, Color::Never), expected);
        let json = source.json(&diagnostic);
        assert!(json.contains(r#""line":2,"column":7,"end_line":2,"end_column":10"#), "{json}");
    }

    #[test]
    fn related_places_are_shown_with_their_text() {
        let text = ".reg .b32 x;\n\n\n\n\n\n.reg .b32 x;\n";
        let diagnostic = Diagnostic::new(Code::Redeclared, Span::new(28, 29), "`x` declared twice")
            .with_label("again here")
            .with_related(Span::new(10, 11), "first here");
        let shown = Source::new("x.ptx", text).human(&diagnostic, Color::Never);
        for part in ["--> x.ptx:7:11", "1 | .reg .b32 x;", "- first here", "7 | .reg .b32 x;", "^ again here"]
        {
            assert!(shown.contains(part), "{part} is not in\n{shown}");
        }
    }

    #[test]
    fn places_in_two_texts_are_shown_with_their_names_and_lines() {
        let text = "a\nfirst\nb\nc\nsecond\n";
        let source = Source::with_parts(text, [(0, "a.ptx"), (8, "b.ptx")]);
        let diagnostic = Diagnostic::new(Code::Redeclared, at(text, "second"), "defined in two modules")
            .with_label("again here")
            .with_related(at(text, "first"), "first here");
        let expected = "\
error[P0107]: defined in two modules
 --> b.ptx:3:1
  |
3 | second
  | ^^^^^^ again here
  |
 ::: a.ptx:2:1
  |
2 | first
  | ----- first here
";
        assert_eq!(source.human(&diagnostic, Color::Never), expected);
        let json = source.json(&diagnostic);
        assert!(json.contains(r#""file":"b.ptx""#) && json.contains(r#""line":3,"column":1"#), "{json}");
    }

    #[test]
    fn json_is_what_the_contract_says() {
        let diagnostic =
            Diagnostic::new(Code::Deprecated, Span::new(2, 3), "a \"b\" \\ \u{1}\n").with_section("4.2");
        assert_eq!(
            Source::new("a\\b.ptx", "é\nx").json(&diagnostic),
            "{\"file\":\"a\\\\b.ptx\",\"severity\":\"warning\",\"code\":\"P0901\",\
             \"message\":\"a \\\"b\\\" \\\\ \\u0001\\n\",\"line\":1,\"column\":2,\"end_line\":2,\"end_column\":1,\
             \"help\":null,\"section\":\"4.2\"}"
        );
    }

    #[test]
    fn any_span_can_be_rendered() {
        for text in ["", "\n", "é", "a\r\nb", "\u{1b}[31m\0\u{202e}"] {
            let source = Source::new("\u{1b}[31m", text);
            for start in 0..8 {
                for end in [0, start, start + 1, u32::MAX] {
                    let diagnostic = Diagnostic::new(Code::BadNumber, Span::new(start, end), "\u{1b}[31m")
                        .with_label("\u{1b}[31m")
                        .with_help("\u{1b}[31m")
                        .with_related(Span::new(end, start), "\u{1b}[31m");
                    assert!(!source.human(&diagnostic, Color::Never).contains('\u{1b}'));
                    assert!(source.json(&diagnostic).ends_with('}'));
                }
            }
        }
    }
}
