//! A module that is printed and checked again is the same module: over all texts of the tests that check.
//!
//! Places and the names of what bodies declare may differ, and labels may be numbered in another order.

use ptx::check::module::{Body, Module, Statement};
use ptx::check::{CheckOptions, check, print};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn texts() -> Vec<(PathBuf, String)> {
    let mut paths = Vec::new();
    for folder in ["tests/check/ok", "tests/lower", "tests/print", "../../tests/fixtures"] {
        collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut paths);
    }
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), fs::read_to_string(path).expect("a text"))).collect()
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

/// Text without string literals and places.
fn anonymous(debug: &str) -> String {
    let mut text = String::with_capacity(debug.len());
    let mut inside = false;
    for c in debug.chars() {
        match c {
            '"' => inside = !inside,
            c if !inside => text.push(c),
            _ => {}
        }
    }
    let mut shape = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find("..") {
        let start = rest[..at].rfind(|c: char| !c.is_ascii_digit()).map_or(0, |i| i + 1);
        shape.push_str(&rest[..start]);
        shape.push('@');
        rest = rest[at + 2..].trim_start_matches(|c: char| c.is_ascii_digit());
    }
    shape + rest
}

/// Labels by the order of the statements.
fn renumbered(body: &Body, debug: &str) -> String {
    let mut order = vec![usize::MAX; body.labels.len()];
    let labels = body.statements.iter().filter_map(|statement| match statement {
        Statement::Label(id) => Some(id.0 as usize),
        Statement::Inst(_) | Statement::Loc(_) => None,
    });
    labels.enumerate().for_each(|(place, id)| order[id] = place);
    let mut parts = debug.split("LabelId(");
    let mut text = parts.next().unwrap_or("").to_owned();
    for part in parts {
        let (id, rest) = part.split_once(')').expect("a number");
        let id: usize = id.parse().expect("a number");
        write!(text, "LabelId({}){rest}", order[id]).expect("a string takes everything");
    }
    text
}

/// What must survive, line by line.
fn facts(module: &Module) -> Vec<String> {
    let mut facts = vec![
        format!("{:?} {:?} {:?} {:?}", module.version, module.target, module.address_size, module.files),
        anonymous(&format!("{:?}", module.prototypes)),
    ];
    for variable in &module.variables {
        let name = if variable.owner.is_none() { variable.name.as_str() } else { "" };
        let fields: Vec<_> = variable.fields.iter().map(|(name, value)| (name, *value)).collect();
        facts.push(format!("{name} {fields:?} {}", anonymous(&format!("{variable:?}"))));
    }
    for function in &module.functions {
        let debug = anonymous(&format!("{function:?}"));
        let debug = function.body.as_ref().map_or(debug.clone(), |body| renumbered(body, &debug));
        facts.push(format!("{} {debug}", function.name));
        let statements = function.body.iter().flat_map(|body| &body.statements);
        let mods = statements.filter_map(|statement| match statement {
            Statement::Inst(inst) => Some(format!("{:?}", inst.mods)),
            Statement::Label(_) | Statement::Loc(_) => None,
        });
        facts.extend(mods);
    }
    facts
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
