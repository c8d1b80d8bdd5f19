//! Suppressions: rules for findings that are known and accepted, and are therefore not reported.
//!
//! A file has one rule per line. A rule is a list of conditions `KEY=VALUE`, separated by white space. It
//! covers the findings that meet all conditions:
//!
//! ```text
//! # The counters are only statistics.
//! kind=race kernel=histogram_* line=41
//! tool=initcheck file=vendor.ptx
//! kind=leak
//! ```
//!
//! | key | value |
//! | --- | --- |
//! | `tool` | a tool |
//! | `kind` | a kind |
//! | `kernel`, `function` | the name in the PTX text; `*` stands for any characters, `?` for one |
//! | `file` | the PTX file, as a whole or its last part, with `*` and `?` |
//! | `line` | a line of the PTX text, or `FIRST-LAST`; for a race the line of either access |
//! | `source` | the source file of `.loc`, as `file`; `FILE:LINE` or `FILE:FIRST-LAST` names lines of it |
//!
//! A value with white space or `#` stands in double quotes, in which `\"` is a quote and `\\` a backslash.
//! `#` begins a comment.
//!
//! Invariant: a rule has at least one condition, so that no rule covers every finding by mistake.

use crate::finding::{Finding, Kind, Tool};
use std::ops::RangeInclusive;

/// Rules, in the order of their file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Suppressions {
    rules: Vec<Rule>,
}

/// What is wrong with a file of suppressions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuppressionError {
    /// The line, from 1.
    pub line: u32,
    /// The character in it, from 1.
    pub column: u32,
    /// What is wrong, in lower case.
    pub message: String,
}

impl std::fmt::Display for SuppressionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for SuppressionError {}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Rule {
    tool: Option<Tool>,
    kind: Option<Kind>,
    kernel: Option<String>,
    function: Option<String>,
    file: Option<String>,
    line: Option<RangeInclusive<u32>>,
    source: Option<(String, Option<RangeInclusive<u32>>)>,
}

impl Suppressions {
    /// The rules of a text.
    ///
    /// # Errors
    /// The first place where the text is no list of rules.
    pub fn parse(text: &str) -> Result<Self, SuppressionError> {
        let mut rules = Vec::new();
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for (line, number) in text.lines().zip(1..) {
            let at = |(column, message): (usize, String)| SuppressionError {
                line: number,
                column: column as u32 + 1,
                message,
            };
            let words = words(line).map_err(at)?;
            if !words.is_empty() {
                rules.push(Rule::of(&words).map_err(at)?);
            }
        }
        Ok(Self { rules })
    }

    /// Whether a rule covers a finding.
    pub fn covers(&self, finding: &Finding) -> bool {
        self.rules.iter().any(|rule| rule.covers(finding))
    }
}

/// A condition: its column, key and value.
type Word = (usize, String, String);
/// What is wrong, behind its column.
type Wrong = (usize, String);

/// The conditions of a line.
fn words(line: &str) -> Result<Vec<Word>, Wrong> {
    let mut words = Vec::new();
    let mut rest = line.chars().enumerate().peekable();
    loop {
        while rest.next_if(|(_, c)| c.is_whitespace()).is_some() {}
        let Some((start, _)) = rest.peek().copied().filter(|(_, c)| *c != '#') else { return Ok(words) };
        let mut key = String::new();
        while let Some((_, c)) = rest.next_if(|(_, c)| *c != '=' && *c != '#' && !c.is_whitespace()) {
            key.push(c);
        }
        if rest.next_if(|(_, c)| *c == '=').is_none() {
            return Err((start, format!("`{key}` is no condition: give `KEY=VALUE`, such as `kind=race`")));
        }
        words.push((start, key, value(start, &mut rest)?));
    }
}

/// A value, with or without quotes.
fn value(
    start: usize,
    rest: &mut std::iter::Peekable<impl Iterator<Item = (usize, char)>>,
) -> Result<String, Wrong> {
    let mut value = String::new();
    if rest.next_if(|(_, c)| *c == '"').is_none() {
        while let Some((_, c)) = rest.next_if(|(_, c)| *c != '#' && !c.is_whitespace()) {
            value.push(c);
        }
        return Ok(value);
    }
    loop {
        match rest.next() {
            None => return Err((start, "the quote is not closed".to_owned())),
            Some((_, '"')) => break,
            Some((at, '\\')) => match rest.next() {
                Some((_, c @ ('"' | '\\'))) => value.push(c),
                _ => return Err((at, "a backslash stands before `\"` or `\\` in quotes".to_owned())),
            },
            Some((_, c)) => value.push(c),
        }
    }
    match rest.peek() {
        Some((at, c)) if !c.is_whitespace() && *c != '#' => {
            Err((*at, "white space is missing behind the quote".to_owned()))
        }
        _ => Ok(value),
    }
}

impl Rule {
    fn of(words: &[Word]) -> Result<Self, Wrong> {
        let mut rule = Self::default();
        for (number, (column, key, value)) in words.iter().enumerate() {
            let wrong = |message: String| Err((*column, message));
            if words[..number].iter().any(|(_, earlier, _)| earlier == key) {
                return wrong(format!("`{key}` is given twice"));
            }
            if value.is_empty() && !matches!(key.as_str(), "kernel" | "function" | "file") {
                return wrong(format!("`{key}` has no value"));
            }
            let here = |error: String| (*column, error);
            match key.as_str() {
                "tool" => rule.tool = Some(tool(value).map_err(here)?),
                "kind" => rule.kind = Some(kind(value).map_err(here)?),
                "kernel" => rule.kernel = Some(value.clone()),
                "function" => rule.function = Some(value.clone()),
                "file" => rule.file = Some(value.clone()),
                "line" => rule.line = Some(lines(value).map_err(here)?),
                "source" => rule.source = Some(source(value)),
                _ => {
                    return wrong(format!(
                        "there is no condition `{key}`: tool, kind, kernel, function, file, line, source"
                    ));
                }
            }
        }
        if let (Some(tool), Some(kind)) = (rule.tool, rule.kind)
            && kind.tool() != tool
        {
            let column = words.first().map_or(0, |(column, ..)| *column);
            return Err((column, format!("{} finds no `{}`", tool.name(), kind.name())));
        }
        Ok(rule)
    }

    fn covers(&self, finding: &Finding) -> bool {
        let Self { tool, kind, kernel, function, file, line, source } = self;
        let other = finding.other.as_ref();
        let is_in = |lines: &RangeInclusive<u32>, line: Option<u32>| line.is_some_and(|l| lines.contains(&l));
        tool.is_none_or(|tool| tool == finding.tool())
            && kind.is_none_or(|kind| kind == finding.kind)
            && kernel.as_ref().is_none_or(|glob| matches(glob, &finding.kernel))
            && function.as_ref().is_none_or(|glob| matches(glob, &finding.function))
            && file.as_ref().is_none_or(|glob| is_file(glob, &finding.file))
            && line.as_ref().is_none_or(|lines| {
                is_in(lines, finding.line) || is_in(lines, other.and_then(|other| other.line))
            })
            && source.as_ref().is_none_or(|(glob, lines)| {
                let sources = [finding.source.as_ref(), other.and_then(|other| other.source.as_ref())];
                sources.into_iter().flatten().any(|(file, line)| {
                    is_file(glob, file) && lines.as_ref().is_none_or(|lines| lines.contains(line))
                })
            })
    }
}

fn tool(name: &str) -> Result<Tool, String> {
    let found = Tool::ALL.into_iter().find(|tool| tool.name() == name);
    found.ok_or_else(|| format!("`{name}` is no tool: memcheck, racecheck, initcheck or synccheck"))
}

fn kind(name: &str) -> Result<Kind, String> {
    let found = Kind::ALL.into_iter().find(|kind| kind.name() == name);
    found.ok_or_else(|| {
        let names: Vec<_> = Kind::ALL.iter().map(|kind| kind.name()).collect();
        format!("`{name}` is no kind: {}", names.join(", "))
    })
}

/// `41` or `41-57`.
fn lines(text: &str) -> Result<RangeInclusive<u32>, String> {
    let number = |text: &str| text.parse().ok().filter(|line: &u32| *line > 0);
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => Ok(first..=last),
        _ => Err(format!("`{text}` is neither a line nor `FIRST-LAST`; lines count from 1")),
    }
}

/// `FILE`, `FILE:41` or `FILE:41-57`.
fn source(text: &str) -> (String, Option<RangeInclusive<u32>>) {
    match text.rsplit_once(':').map(|(file, rest)| (file, lines(rest))) {
        Some((file, Ok(lines))) => (file.to_owned(), Some(lines)),
        _ => (text.to_owned(), None),
    }
}

/// Whether a pattern names a file: as a whole, or its last part.
fn is_file(glob: &str, file: &str) -> bool {
    let last = file.rsplit('/').next().unwrap_or(file);
    matches(glob, file) || matches(glob, last)
}

/// Whether a pattern with `*` and `?` fits a text as a whole.
fn matches(glob: &str, text: &str) -> bool {
    let (glob, text): (Vec<char>, Vec<char>) = (glob.chars().collect(), text.chars().collect());
    let (mut g, mut t) = (0, 0);
    // The last `*`, and where the text behind it begins.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match glob.get(g) {
            Some('*') => {
                star = Some((g + 1, t));
                g += 1;
            }
            Some(c) if *c == '?' || *c == text[t] => (g, t) = (g + 1, t + 1),
            Some(_) | None => match &mut star {
                Some((behind, from)) => {
                    *from += 1;
                    (g, t) = (*behind, *from);
                }
                None => return false,
            },
        }
    }
    glob[g..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::OtherAccess;

    fn race() -> Finding {
        Finding {
            kernel: "scan_blocks".to_owned(),
            function: "scan_blocks".to_owned(),
            file: "out/scan.ptx".to_owned(),
            line: Some(41),
            source: Some(("src/scan.cu".to_owned(), 7)),
            other: Some(OtherAccess {
                line: Some(57),
                instruction: String::new(),
                source: Some(("src/scan.cu".to_owned(), 9)),
                cta: [0; 3],
                thread: [0; 3],
                access: String::new(),
            }),
            ..Finding::new(Kind::Race, "a race")
        }
    }

    fn covers(text: &str) -> bool {
        Suppressions::parse(text).expect("rules").covers(&race())
    }

    #[test]
    fn all_conditions_of_a_rule_must_hold() {
        let right = [
            "tool=racecheck",
            "kind=race",
            "kernel=scan_*",
            "kernel=*_blocks kind=race line=41",
            "line=57",
            "line=50-60",
            "file=scan.ptx",
            "file=out/*.ptx",
            "function=scan_bloc??",
            "source=scan.cu:9",
            "source=src/scan.cu:1-8",
            "source=*.cu",
            "\u{feff}# only a comment\nkind=leak\n\n  kind=race   # why\r\n",
            "kernel=\"scan_blocks\"",
        ];
        for text in right {
            assert!(covers(text), "{text}");
        }
        let wrong = [
            "",
            "# kind=race",
            "kind=leak",
            "tool=memcheck",
            "kernel=scan",
            "kernel=\"\"",
            "line=42",
            "line=42-56",
            "file=an.ptx",
            "source=scan.cu:8",
            "kernel=scan_* line=1",
        ];
        for text in wrong {
            assert!(!covers(text), "{text}");
        }
    }

    #[test]
    fn a_wrong_file_is_refused_with_the_place() {
        let wrong = [
            ("race", 1, 1),
            ("kind=race\n  kindly=race", 2, 3),
            ("kind=race kind=race", 1, 11),
            ("\n\nkernel=k kind=rase", 3, 10),
            ("tool=valgrind", 1, 1),
            ("line=", 1, 1),
            ("line=0", 1, 1),
            ("line=9-3", 1, 1),
            ("line=x", 1, 1),
            ("kernel=\"a", 1, 1),
            ("kernel=\"a\\n\"", 1, 10),
            ("kernel=\"a\"b", 1, 11),
            ("tool=memcheck kind=race", 1, 1),
            ("kind", 1, 1),
            ("=x", 1, 1),
        ];
        for (text, line, column) in wrong {
            let error = Suppressions::parse(text).expect_err(text);
            assert_eq!((error.line, error.column), (line, column), "{text}: {error}");
        }
    }

    #[test]
    fn patterns() {
        for (glob, text) in [("*", ""), ("a*c", "abbc"), ("*b*", "abc"), ("?", "x"), ("a**b", "ab")] {
            assert!(matches(glob, text), "{glob} {text}");
        }
        for (glob, text) in [("", "a"), ("a*c", "acb"), ("?", ""), ("ab", "a"), ("*x", "xy")] {
            assert!(!matches(glob, text), "{glob} {text}");
        }
        // Many stars take no exponential time.
        assert!(!matches(&"a*".repeat(30), &"b".repeat(200)));
        assert!(!matches(&format!("{}b", "*a".repeat(40)), &"a".repeat(2000)));
    }
}
