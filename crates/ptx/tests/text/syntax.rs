//! Parses the texts under `tests/syntax/` and compares the diagnostics with the expectations in the texts.
//!
//! `ok/*.ptx` have none. In `err/*.ptx` a comment below a line names a diagnostic on it: `// ^ P0005 words`
//! means one at the column of the `^`, and `// ERROR P0005 12:3 words` one anywhere. The words, if any, are
//! in its message, its label or its help. Lines and columns are written by hand.

use ptx::diag::Diagnostic;
use ptx::{LineIndex, syntax};
use std::fs;
use std::path::{Path, PathBuf};

struct Expected {
    line: u32,
    column: u32,
    code: String,
    words: String,
}

fn texts(folder: &str) -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut paths: Vec<_> = fs::read_dir(folder)
        .expect("the folder exists")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "ptx"));
    paths.sort();
    assert!(!paths.is_empty());
    paths.into_iter().map(|path| (path.clone(), fs::read_to_string(path).expect("a text"))).collect()
}

fn expectations(source: &str) -> Vec<Expected> {
    let mut expected = Vec::new();
    let mut target = 0;
    for (number, text) in (1..).zip(source.lines()) {
        let code_at = |rest: &str| {
            rest.strip_prefix('P').is_some_and(|d| d.len() >= 4 && d.as_bytes()[0].is_ascii_digit())
        };
        let caret =
            text.find('^').filter(|at| text.starts_with("//") && code_at(text[at + 1..].trim_start()));
        if let Some(rest) = text.strip_prefix("// ERROR ") {
            let mut parts = rest.splitn(3, ' ');
            let code = parts.next().expect("a code").to_owned();
            let (line, column) = parts.next().and_then(|p| p.split_once(':')).expect("a place");
            let (line, column) = (line.parse().expect("a line"), column.parse().expect("a column"));
            expected.push(Expected { line, column, code, words: parts.next().unwrap_or("").to_owned() });
        } else if let Some(at) = caret {
            let (code, words) = text[at + 1..].trim().split_at(5);
            let column = text[..at].chars().count() as u32 + 1;
            expected.push(Expected {
                line: target,
                column,
                code: code.to_owned(),
                words: words.trim().to_owned(),
            });
        } else {
            target = number;
        }
    }
    expected.sort_by_key(|e| (e.line, e.column));
    expected
}

fn describe(source: &str, diagnostic: &Diagnostic) -> String {
    let place = LineIndex::new(source).locate(source, diagnostic.span.start);
    format!("{} {}:{} {}", diagnostic.code.name(), place.line, place.column, diagnostic.message)
}

#[test]
fn texts_without_mistakes_have_no_diagnostics() {
    for (path, source) in texts("tests/syntax/ok") {
        let parsed = syntax::parse(&source);
        let found: Vec<_> = parsed.diagnostics.iter().map(|d| describe(&source, d)).collect();
        assert!(found.is_empty(), "{}: {found:#?}", path.display());
        assert_eq!(parsed.tree.print(&source), source, "{}", path.display());
    }
}

#[test]
fn every_mistake_is_reported_once_and_in_its_place() {
    let mut failures = Vec::new();
    for (path, source) in texts("tests/syntax/err") {
        let parsed = syntax::parse(&source);
        assert_eq!(parsed.tree.print(&source), source, "{}", path.display());
        let expected = expectations(&source);
        let lines = LineIndex::new(&source);
        let fits = |e: &Expected, d: &Diagnostic| {
            let place = lines.locate(&source, d.span.start);
            let text = format!("{}\n{}\n{}", d.message, d.label, d.help.as_deref().unwrap_or(""));
            (place.line, place.column) == (e.line, e.column)
                && d.code.name() == e.code
                && text.contains(&e.words)
        };
        let same = expected.len() == parsed.diagnostics.len()
            && expected.iter().zip(&parsed.diagnostics).all(|(e, d)| fits(e, d));
        if !same {
            let expected: Vec<_> =
                expected.iter().map(|e| format!("{} {}:{} {}", e.code, e.line, e.column, e.words)).collect();
            let found: Vec<_> = parsed.diagnostics.iter().map(|d| describe(&source, d)).collect();
            failures.push(format!("{}\nexpected {expected:#?}\nfound {found:#?}", path.display()));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn compiler_output_has_no_diagnostics() {
    for (path, source) in texts("../../tests/fixtures/kernels") {
        let parsed = syntax::parse(&source);
        let found: Vec<_> = parsed.diagnostics.iter().map(|d| describe(&source, d)).collect();
        assert!(found.is_empty(), "{}: {found:#?}", path.display());
        assert_eq!(parsed.tree.print(&source), source, "{}", path.display());
    }
}
