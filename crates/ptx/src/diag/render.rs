//! Diagnostics as text for people, and as JSON lines for programs.
//!
//! Invariants: rendering never fails, for any span and any text: spans are clamped to the text, and control
//! characters of messages and text are made visible. Lines and columns count from 1; a column counts Unicode
//! scalar values; an end is the place directly after the last character. The cost of a diagnostic does not
//! depend on the length of the text or its lines: of long lines only the surroundings of a place are shown,
//! and distant places are shown separately. Nothing here writes to a file or terminal.

use super::{Diagnostic, Severity};
use crate::{LineIndex, Span};
use annotate_snippets::{
    Annotation, AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet, normalize_untrusted_str,
};
use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;

/// Whether rendered text contains terminal colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    /// Plain text.
    Never,
    /// ANSI escape sequences.
    Always,
}

/// A text with its name, or several concatenated texts, for which diagnostics are rendered.
#[derive(Clone, Debug)]
pub struct Source<'s> {
    text: &'s str,
    lines: Cow<'s, LineIndex>,
    /// Start and name of each text; at least one.
    parts: Vec<(usize, &'s str)>,
}

/// The largest distance in bytes between places that are shown together.
const FAR: usize = 8 << 10;
/// Context in bytes that is passed to the renderer on either side of a place, before it is cut to [`AROUND`].
const LONG: usize = 1000;
/// Context in bytes that is shown around a place in a long line.
const AROUND: usize = 100;
/// The most other places that are shown.
const MOST_PLACES: usize = 8;

/// An underlined place.
struct Shown<'d> {
    kind: AnnotationKind,
    span: Span,
    text: &'d str,
}

impl<'d> Shown<'d> {
    fn related(label: &'d super::Label) -> Self {
        Self { kind: AnnotationKind::Context, span: label.span, text: &label.text }
    }
}

/// One text of a [`Source`].
#[derive(Clone, Copy)]
struct Part<'s> {
    name: &'s str,
    start: usize,
    end: usize,
    /// Number of lines before it.
    lines_before: u32,
}

impl<'s> Source<'s> {
    /// The text `text`, shown as `name`.
    pub fn new(name: &'s str, text: &'s str) -> Self {
        Self::with_parts(text, Cow::Owned(LineIndex::new(text)), [(0, name)])
    }

    /// Concatenated texts, each beginning on a new line: the line starts of the whole, and start and name of
    /// each text.
    pub fn with_parts(
        text: &'s str,
        lines: Cow<'s, LineIndex>,
        parts: impl IntoIterator<Item = (u32, &'s str)>,
    ) -> Self {
        let mut parts: Vec<_> =
            parts.into_iter().map(|(start, name)| (text.floor_char_boundary(start as usize), name)).collect();
        if parts.is_empty() {
            parts.push((0, ""));
        }
        Self { text, lines, parts }
    }

    /// The text that contains a byte.
    fn part(&self, at: usize) -> Part<'s> {
        let index = self.parts.partition_point(|(start, _)| *start <= at).saturating_sub(1);
        let (start, name) = self.parts[index];
        let end = self.parts.get(index + 1).map_or(self.text.len(), |(next, _)| *next).max(start);
        Part { name, start, end, lines_before: self.lines.line(start as u32).saturating_sub(1) }
    }

    /// The diagnostic for people: code, message, source lines with underlined places, help, and section. Ends
    /// with a line end.
    pub fn human(&self, diagnostic: &Diagnostic, color: Color) -> String {
        let level = match diagnostic.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let code = diagnostic.code.name();
        let mut group = Group::with_title(level.primary_title(diagnostic.message.as_str()).id(code.as_str()))
            .elements(self.place(&self.near(diagnostic)));
        for label in self.far(diagnostic) {
            group = group.elements(self.place(&[label]));
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

    /// Whether a place is shown together with the primary one: in the same text and close to it.
    fn is_near(&self, diagnostic: &Diagnostic, span: Span) -> bool {
        let (primary, other) = (self.range(diagnostic.span), self.range(span));
        self.part(primary.start).start == self.part(other.start).start
            && primary.start.abs_diff(other.start).max(primary.end.abs_diff(other.end)) <= FAR
    }

    /// The primary place and the places close to it.
    fn near<'d>(&self, diagnostic: &'d Diagnostic) -> Vec<Shown<'d>> {
        let primary = Shown { kind: AnnotationKind::Primary, span: diagnostic.span, text: &diagnostic.label };
        let related = diagnostic.related.iter().filter(|label| self.is_near(diagnostic, label.span));
        std::iter::once(primary).chain(related.take(MOST_PLACES).map(Shown::related)).collect()
    }

    /// All other places, in order.
    fn far<'d>(&self, diagnostic: &'d Diagnostic) -> impl Iterator<Item = Shown<'d>> {
        let related = diagnostic.related.iter().filter(|label| !self.is_near(diagnostic, label.span));
        related.take(MOST_PLACES).map(Shown::related)
    }

    /// The lines of places that are close to each other. Lines between them are folded, and of long lines
    /// only the surroundings are shown.
    fn place<'d>(&self, places: &[Shown<'d>]) -> Vec<Element<'d>>
    where
        's: 'd,
    {
        let ranges: Vec<Range<usize>> = places.iter().map(|place| self.range(place.span)).collect();
        let first = ranges.iter().map(|r| r.start).min().unwrap_or(0);
        let part = self.part(first);
        let shown =
            |end: usize| end.min(part.end).min(self.text.floor_char_boundary(first + 2 * FAR)).max(first);
        let last = ranges.iter().map(|r| shown(r.end)).max().unwrap_or(first);
        let from = self.lines.bytes(self.text, first as u32).start.max(part.start);
        let to = self.lines.bytes(self.text, last as u32).end.min(part.end).max(last);
        let start = if first - from > LONG { self.text.floor_char_boundary(first - AROUND) } else { from };
        let end = if to - last > LONG { self.text.ceil_char_boundary(last + AROUND) } else { to };
        let annotations = ranges.iter().zip(places).map(|(range, place)| {
            let text = Some(normalize_untrusted_str(place.text)).filter(|text| !text.is_empty());
            place
                .kind
                .span(range.start.max(start) - start..shown(range.end).max(range.start) - start)
                .label(text)
        });
        let annotations: Vec<Annotation<'d>> = annotations.collect();
        let line = self.lines.line(first as u32).saturating_sub(part.lines_before) as usize;
        let snippet: Snippet<'d, Annotation<'d>> =
            Snippet::source(&self.text[start..end]).line_start(line).annotations(annotations);
        let name = normalize_untrusted_str(part.name);
        if start == from {
            return vec![snippet.path(name).into()];
        }
        // The excerpt does not begin at the start of a line, so the renderer cannot compute the column from
        // it.
        let at = self.range(places.first().map_or(Span::default(), |place| place.span)).start as u32;
        let place = self.lines.locate(self.text, at);
        let line = place.line.saturating_sub(part.lines_before) as usize;
        vec![Origin::path(name).line(line).char_column(place.column as usize).into(), snippet.into()]
    }

    /// The bytes of a span, clamped to the text and to character boundaries.
    fn range(&self, span: Span) -> Range<usize> {
        let start = self.text.floor_char_boundary(span.start as usize);
        let end = self.text.ceil_char_boundary((span.end as usize).min(self.text.len()));
        start..end.max(start)
    }

    /// The diagnostic as one line of JSON, without a line end. It is an object with `file`, `severity`,
    /// `code`, `message`, `line`, `column`, `end_line`, `end_column`, `help`, `section`, `label` and
    /// `related`. `label` is the text beside the place; `help`, `section` and `label` are `null` if absent.
    /// `related` lists at most eight other places, each with `file`, the four numbers and `label`.
    pub fn json(&self, diagnostic: &Diagnostic) -> String {
        let severity = match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let mut line = String::from("{");
        field(&mut line, "file", Some(self.part(self.range(diagnostic.span).start).name));
        field(&mut line, "severity", Some(severity));
        field(&mut line, "code", Some(&diagnostic.code.name()));
        field(&mut line, "message", Some(&diagnostic.message));
        self.json_place(&mut line, diagnostic.span);
        field(&mut line, "help", diagnostic.help.as_deref());
        field(&mut line, "section", diagnostic.section);
        field(&mut line, "label", Some(diagnostic.label.as_str()).filter(|label| !label.is_empty()));
        line.push_str("\"related\":[");
        for (index, related) in diagnostic.related.iter().take(MOST_PLACES).enumerate() {
            line.push_str(if index == 0 { "{" } else { ",{" });
            field(&mut line, "file", Some(self.part(self.range(related.span).start).name));
            self.json_place(&mut line, related.span);
            field(&mut line, "label", Some(&related.text));
            line.pop();
            line.push('}');
        }
        line.push_str("]}");
        line
    }

    /// `"line":1,"column":2,"end_line":1,"end_column":5,`
    fn json_place(&self, line: &mut String, span: Span) {
        let range = self.range(span);
        let before = self.part(range.start).lines_before;
        let start = self.lines.locate(self.text, range.start as u32);
        let end = self.lines.locate(self.text, range.end as u32);
        let places = [
            ("line", start.line.saturating_sub(before)),
            ("column", start.column),
            ("end_line", end.line.saturating_sub(before)),
            ("end_column", end.column),
        ];
        for (name, number) in places {
            let _ = write!(line, "\"{name}\":{number},");
        }
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
        // A tab is shown as four blanks; the ideograph is two columns wide on a terminal and one character in
        // the place.
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
        let source = Source::with_parts(text, Cow::Owned(LineIndex::new(text)), [(0, "a.ptx"), (8, "b.ptx")]);
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
    fn of_a_long_line_the_surroundings_are_shown_with_the_right_column() {
        let text = format!("{}bad{}\n", "é".repeat(5000), "x".repeat(5000));
        let diagnostic = Diagnostic::new(Code::UnexpectedToken, at(&text, "bad"), "expected `;`");
        let shown = Source::new("x.ptx", &text).human(&diagnostic, Color::Never);
        assert!(shown.contains("x.ptx:1:5001") && shown.contains("bad") && shown.len() < 1000, "{shown}");
        let whole = Diagnostic::new(Code::UnexpectedToken, Span::new(0, text.len() as u32), "expected `;`");
        assert!(Source::new("x.ptx", &text).human(&whole, Color::Never).contains("x.ptx:1:1"));
    }

    #[test]
    fn places_far_from_each_other_are_shown_apart() {
        let text = format!("first\n{}\nsecond\n", "\n".repeat(20_000));
        let diagnostic = Diagnostic::new(Code::Redeclared, at(&text, "second"), "declared twice")
            .with_related(at(&text, "first"), "first here");
        let shown = Source::new("x.ptx", &text).human(&diagnostic, Color::Never);
        for part in ["x.ptx:20003:1", "second", "x.ptx:1:1", "first here"] {
            assert!(shown.contains(part), "{part} is not in\n{shown}");
        }
    }

    #[test]
    fn json_is_what_the_contract_says() {
        let diagnostic =
            Diagnostic::new(Code::Deprecated, Span::new(2, 3), "a \"b\" \\ \u{1}\n").with_section("4.2");
        assert_eq!(
            Source::new("a\\b.ptx", "é\nx").json(&diagnostic),
            "{\"file\":\"a\\\\b.ptx\",\"severity\":\"warning\",\"code\":\"P0901\",\
             \"message\":\"a \\\"b\\\" \\\\ \\u0001\\n\",\"line\":1,\"column\":2,\"end_line\":2,\"end_column\":1,\
             \"help\":null,\"section\":\"4.2\",\"label\":null,\"related\":[]}"
        );
        let related = Diagnostic::new(Code::Redeclared, Span::new(3, 4), "twice")
            .with_label("again")
            .with_related(Span::new(0, 2), "first");
        assert_eq!(
            Source::new("x", "é\nx").json(&related),
            "{\"file\":\"x\",\"severity\":\"error\",\"code\":\"P0107\",\"message\":\"twice\",\"line\":2,\"column\":1,\
             \"end_line\":2,\"end_column\":2,\"help\":null,\"section\":null,\"label\":\"again\",\"related\":[{\"file\":\"x\",\
             \"line\":1,\"column\":1,\"end_line\":1,\"end_column\":2,\"label\":\"first\"}]}"
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
