//! Data tests of the checker.
//!
//! `ok/*.ptx` must check without an error, `err/*.ptx` with exactly the errors that they list, and real
//! compiler output (the fixtures of the workspace) without an error. A file contains its expectations as
//! comments, written by hand:
//!
//! * `// ERROR P0205 12:17 words` anywhere: an error with that code at that line and column, with those words
//!   in its message;
//! * `//       ^^^ ERROR P0205 words` below a line: the same for that line; the carets mark the span;
//! * the same with `WARNING`. In `ok/` the warnings must be those listed, in `err/` at least those.
//! * `// OPTIONS gpu-name=sm_90 strict` sets options.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use ptx::check::{CheckOptions, check};
use ptx::diag::{Code, Severity};
use ptx::isa::Sm;
use std::fs;
use std::path::{Path, PathBuf};

/// A diagnostic that a file expects, or one that was found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Expected {
    line: u32,
    column: u32,
    severity: &'static str,
    code: String,
    message: String,
    /// Length of the span in characters, where carets give it.
    length: Option<u32>,
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<PathBuf> =
        entries.map(|e| e.unwrap().path()).filter(|p| p.extension().is_some_and(|e| e == "ptx")).collect();
    files.sort();
    assert!(!files.is_empty(), "no files in {}", folder.display());
    files
}

fn expectations(text: &str) -> Vec<Expected> {
    let mut expected = Vec::new();
    let mut target = 0;
    for (index, line) in text.lines().enumerate() {
        let number = index as u32 + 1;
        let Some((before, comment)) = line.split_once("//") else {
            target = number;
            continue;
        };
        let trimmed = comment.trim_start();
        let carets = trimmed.bytes().take_while(|b| *b == b'^').count();
        if carets == 0 || !before.trim().is_empty() {
            target = number;
        }
        let (place, rest) = if carets > 0 && before.trim().is_empty() {
            let column = line.find('^').unwrap() as u32 + 1;
            (Some((target, column)), trimmed[carets..].trim_start())
        } else {
            (None, trimmed)
        };
        let severity = if rest.starts_with("ERROR ") {
            "ERROR"
        } else if rest.starts_with("WARNING ") {
            "WARNING"
        } else {
            continue;
        };
        let mut words = rest[severity.len() + 1..].splitn(if place.is_some() { 2 } else { 3 }, ' ');
        let code = words.next().unwrap().to_owned();
        let (line, column) = place.unwrap_or_else(|| {
            let (l, c) = words.next().unwrap().split_once(':').expect("LINE:COLUMN");
            (if l.is_empty() { number } else { l.parse().unwrap() }, c.parse().unwrap())
        });
        let message = words.next().unwrap_or("").trim().to_owned();
        let length = place.map(|_| carets as u32);
        expected.push(Expected { line, column, severity, code, message, length });
    }
    expected.sort();
    expected
}

fn options(text: &str) -> CheckOptions {
    let mut options = CheckOptions::default();
    for line in text.lines().filter_map(|l| l.strip_prefix("// OPTIONS ")) {
        for word in line.split_whitespace() {
            match word.split_once('=') {
                Some(("gpu-name", name)) => options.gpu_name = Some(Sm::from_name(name).unwrap()),
                None if word == "strict" => options.strict = true,
                _ => panic!("unknown option {word}"),
            }
        }
    }
    options
}

fn found(text: &str, options: &CheckOptions) -> (bool, Vec<Expected>) {
    let checked = check("test.ptx", text, options);
    let mut found: Vec<Expected> = checked
        .diagnostics
        .iter()
        // These programs test syntax and types; their results are unused.
        .filter(|d| d.code != Code::UnusedResult)
        .map(|d| {
            let place = checked.source.lines().locate(text, d.span.start);
            Expected {
                line: place.line,
                column: place.column,
                severity: if d.severity == Severity::Error { "ERROR" } else { "WARNING" },
                code: d.code.name(),
                message: d.message.clone(),
                length: Some(d.span.text(text).chars().count() as u32),
            }
        })
        .collect();
    found.sort();
    (checked.module.is_some(), found)
}

/// Removes each expectation's counterpart from `found`; says what is missing.
fn compare(expected: &[Expected], found: &mut Vec<Expected>, problems: &mut Vec<String>) {
    for want in expected {
        let fits = |have: &Expected| {
            (have.line, have.column, have.severity, &have.code)
                == (want.line, want.column, want.severity, &want.code)
                && have.message.contains(&want.message)
                && want.length.is_none_or(|n| have.length == Some(n))
        };
        match found.iter().position(fits) {
            Some(index) => {
                found.remove(index);
            }
            None => problems.push(format!("missing   {want:?}")),
        }
    }
}

fn test_folder(name: &str, clean: bool) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/check").join(name);
    let mut failures = String::new();
    for path in files(&folder) {
        let text = fs::read_to_string(&path).unwrap();
        let (module, mut found) = found(&text, &options(&text));
        let expected = expectations(&text);
        let mut problems = Vec::new();
        let errors = expected.iter().any(|e| e.severity == "ERROR");
        assert_ne!(
            errors,
            clean,
            "{}: {}",
            path.display(),
            if clean { "expects an error" } else { "expects none" }
        );
        compare(&expected, &mut found, &mut problems);
        let rest = found.iter().filter(|f| clean || f.severity == "ERROR");
        problems.extend(rest.map(|f| format!("unexpected {f:?}")));
        if module != clean {
            problems.push(format!("module: {module}"));
        }
        if !problems.is_empty() {
            failures += &format!("{}\n    {}\n", path.display(), problems.join("\n    "));
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

#[test]
fn accepted_programs() {
    test_folder("ok", true);
}

#[test]
fn rejected_programs() {
    test_folder("err", false);
}

#[test]
fn real_compiler_output() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/kernels");
    let mut failures = String::new();
    for path in files(&folder) {
        let text = fs::read_to_string(&path).unwrap();
        let (module, mut found) = found(&text, &CheckOptions::default());
        // One fixture is about the forms without a mask.
        found.retain(|f| f.code != "P0901");
        let shown: Vec<String> = found.iter().take(8).map(|f| format!("{f:?}")).collect();
        if !module || !found.is_empty() {
            failures += &format!("{}\n    {}\n", path.display(), shown.join("\n    "));
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}
