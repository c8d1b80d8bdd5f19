//! A module that is printed and checked again is the same module: for all texts of the tests that check.
//!
//! Places and the names of declarations in bodies may differ, and labels may be numbered in another order.

use crate::language;

use crate::facts::facts;
use ptx::check::{CheckOptions, check, print};
use std::fs;
use std::path::{Path, PathBuf};

fn texts() -> Vec<(PathBuf, String)> {
    let mut paths = Vec::new();
    for folder in ["tests/check/ok", "tests/lower", "tests/print", "../../tests/fixtures"] {
        collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut paths);
    }
    paths.sort();
    let texts = paths.into_iter().map(|path| (path.clone(), fs::read_to_string(path).expect("a text")));
    texts.chain(language::modules()).collect()
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder exists") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "reject") {
            collect(&path, paths);
        } else if path.extension().is_some_and(|e| e == "ptx") {
            paths.push(path);
        }
    }
}

#[test]
fn printed_modules_are_the_same_modules() {
    let mut printed = 0;
    for (path, text) in texts() {
        let name = path.display().to_string();
        let first = check(&name, &text, &CheckOptions::default());
        let Some(module) = first.module else {
            assert!(!name.contains("tests/print/"), "{name}: {:?}", first.diagnostics);
            continue;
        };
        let again = print(&module);
        let checked = check("printed", &again, &CheckOptions::default());
        let Some(second) = checked.module else {
            panic!("{name}: {:?}\n{again}", checked.diagnostics.iter().find(|d| d.code.number() < 900));
        };
        let (a, b) = (facts(&module), facts(&second));
        for (a, b) in a.iter().zip(&b) {
            let at = a.bytes().zip(b.bytes()).position(|(x, y)| x != y).unwrap_or(a.len().min(b.len()));
            let near = |s: &str| s[at.saturating_sub(200)..(at + 200).min(s.len())].to_owned();
            assert!(a == b, "{name}:\n{}\n{}", near(a), near(b));
        }
        assert_eq!(a.len(), b.len(), "{name}");
        assert_eq!(print(&second), again, "{name}: printing again");
        printed += 1;
    }
    assert!(printed > 100, "{printed}");
}
