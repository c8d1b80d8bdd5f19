//! Formatting changes only white space, and is idempotent: for all texts of the tests, and for randomly
//! changed texts.

use crate::language;

use proptest::prelude::*;
use ptx::Span;
use ptx::diag::Code;
use ptx::syntax::format::format;
use ptx::syntax::token::TokenKind;
use ptx::syntax::{Parsed, parse};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn texts() -> Vec<(PathBuf, String)> {
    let folders =
        ["tests/syntax/ok", "tests/check/ok", "tests/check/err", "tests/lower", "../../tests/fixtures"];
    let mut paths = Vec::new();
    for folder in folders {
        collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut paths);
    }
    paths.sort();
    assert!(paths.len() > 50);
    let texts = paths.into_iter().map(|path| (path.clone(), fs::read_to_string(path).expect("a text")));
    texts.chain(language::modules()).collect()
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder exists") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, paths);
        } else if path.extension().is_some_and(|e| e == "ptx") {
            paths.push(path);
        }
    }
}

/// All tokens that are not white space, as kind and text.
fn tokens<'s>(parsed: &Parsed, source: &'s str) -> Vec<(TokenKind, &'s str)> {
    let tokens = parsed.tree.tokens.iter().filter(|token| token.kind != TokenKind::Whitespace);
    tokens
        .map(|token| {
            let text = token.span.text(source);
            let takes_line =
                matches!(token.kind, TokenKind::LineComment | TokenKind::HashLine | TokenKind::DwarfLine);
            (token.kind, if takes_line { text.trim_end() } else { text })
        })
        .collect()
}

/// The tree as text, with numbers of tokens for places.
fn shape(parsed: &Parsed) -> String {
    let tokens: Vec<Span> =
        parsed.tree.tokens.iter().filter(|token| !token.kind.is_trivia()).map(|token| token.span).collect();
    let debug = format!("{:?}", parsed.tree.items);
    let mut shape = String::with_capacity(debug.len());
    let mut rest = debug.as_str();
    while let Some(at) = rest.find("..") {
        let start = rest[..at].rfind(|c: char| !c.is_ascii_digit()).map_or(0, |i| i + 1);
        let length = rest[at + 2..].find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len() - at - 2);
        shape.push_str(&rest[..start]);
        if let (Ok(first), Ok(end)) =
            (rest[start..at].parse::<u32>(), rest[at + 2..at + 2 + length].parse::<u32>())
        {
            let first = tokens.partition_point(|token| token.start < first);
            let end = tokens.partition_point(|token| token.start < end);
            write!(shape, "#{first}-{end}").expect("a string takes everything");
        }
        rest = &rest[at + 2 + length..];
    }
    shape.push_str(rest);
    shape
}

/// Whether the text could be formatted.
fn check(what: &str, source: &str) -> bool {
    let before = parse(source);
    let formatted = match format(source) {
        Ok(formatted) => formatted,
        // A changed text may look like another language, which the parser alone does not recognise.
        Err(diagnostics) if matches!(&*diagnostics, [one] if one.code == Code::NotPtx) => return false,
        Err(diagnostics) => {
            assert_eq!(diagnostics, before.diagnostics, "{what}");
            assert!(!diagnostics.is_empty(), "{what}");
            return false;
        }
    };
    assert!(before.diagnostics.is_empty(), "{what}");
    let after = parse(&formatted);
    assert_eq!(after.diagnostics, [], "{what}:\n{source}\n---\n{formatted}");
    assert_eq!(tokens(&before, source), tokens(&after, &formatted), "{what}:\n{source}\n---\n{formatted}");
    assert_eq!(shape(&before), shape(&after), "{what}:\n{source}\n---\n{formatted}");
    assert_eq!(format(&formatted).as_deref(), Ok(formatted.as_str()), "{what}:\n{source}\n---\n{formatted}");
    for line in formatted.lines().filter(|_| !source.contains("/*")) {
        assert_eq!(line, line.trim_end(), "{what}: blanks at the end of a line");
    }
    true
}

#[test]
fn all_texts_of_the_tests() {
    let formatted = texts().iter().filter(|(path, text)| check(&path.display().to_string(), text)).count();
    assert!(formatted > 50);
}

const PIECES: &[&str] = &[
    " ",
    "\n",
    "\n\n",
    "\n\n\n",
    "\t",
    "\r\n",
    "// x\n",
    "//x\r\n",
    "/* x */",
    "/*x\n y*/",
    "\n/* x */\n",
    "\n# 1 \"x\"\n",
    "{",
    "}",
    ";",
    ",",
    "[",
    "]",
    "(",
    ")",
    ":",
    "+",
    "-",
    "-1",
    "%",
    " % ",
    "|",
    "!",
    "1",
    "x",
    "%r1",
    ".u32",
    ".global",
    ".x",
    "L:",
    "ret;",
    "\n@@DWARF x\n",
    "{ret;}",
    "_",
    "? 1 : 2",
    "(.s64)",
    "+4",
    ".loc 1 2 3",
];

/// `PROPTEST_CASES` asks for more.
fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig { cases: default.cases.max(400), failure_persistence: None, ..default }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn changed_texts(
        (_, source) in prop::sample::select(texts().into_iter().filter(|(_, text)| text.len() < 4000).collect::<Vec<_>>()),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0usize..4, prop::sample::select(PIECES)), 1..4),
    ) {
        let mut source = source;
        for (at, length, piece) in changes {
            let start = source.floor_char_boundary(at.index(source.len() + 1));
            let end = source.ceil_char_boundary((start + length).min(source.len()));
            source.replace_range(start..end, piece);
        }
        check("a changed text", &source);
    }

    #[test]
    fn trivia_between_tokens(
        (_, source) in prop::sample::select(texts().into_iter().filter(|(_, text)| text.len() < 2000).collect::<Vec<_>>()),
        seeds in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(&PIECES[..12])), 1..40),
    ) {
        let tokens = parse(&source).tree.tokens;
        let mut places: Vec<_> = seeds.into_iter().map(|(at, piece)| (at.index(tokens.len()), piece)).collect();
        places.sort_by_key(|(at, _)| *at);
        let mut changed = String::new();
        let mut places = places.into_iter().peekable();
        for (index, token) in tokens.iter().enumerate() {
            while let Some((_, piece)) = places.next_if(|(at, _)| *at == index) {
                changed.push_str(piece);
            }
            changed.push_str(token.span.text(&source));
        }
        check("a text with comments", &changed);
    }
}
