//! `cargo xtask ci`: the steps of the continuous integration, fast ones first. Arguments select steps by
//! name. `--full` adds steps that are too slow for each change: all combinations of fixtures, engines and
//! processors, every operand of the small instructions, random programs, and the Python package.
//!
//! Invariant: the step `test` is the README's test command. It covers every crate, engine and fixture;
//! `--full` covers more combinations of them.

use std::process::Command;

const STEPS: &[(&str, &[&str])] = &[
    ("fmt", &["fmt", "--all", "--check"]),
    ("clippy", &["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]),
    // By clippy, whose results for the other crates exist already.
    (
        "without the JIT",
        &["clippy", "--package", "ptxvm-cli", "--no-default-features", "--quiet", "--", "-D", "warnings"],
    ),
    ("docs", &["doc", "--workspace", "--no-deps", "--quiet"]),
    ("test", &["test", "--workspace"]),
    // The commands in the documentation. The programs that they run were built by the tests.
    ("docs --run", &["run", "--quiet", "--package", "xtask", "--", "docs", "--run"]),
];

/// Only with `--full`.
const MORE: &[(&str, &[&str])] = &[
    ("exhaustive", &["run", "--release", "--quiet", "--package", "xtask", "--", "testsuite", "--exhaustive"]),
    (
        "agree",
        &["run", "--release", "--quiet", "--package", "xtask", "--", "agree", "--count", "5000", "--every"],
    ),
    // Needs Python and the package index, which other steps do not.
    ("python", &["run", "--quiet", "--package", "xtask", "--", "python"]),
];

/// Runs the steps; `tidy` and `coverage` are first because they need no build.
pub(crate) fn ci(arguments: &[String]) -> Result<(), String> {
    let full = arguments.iter().any(|argument| argument == "--full");
    let only: Vec<&String> = arguments.iter().filter(|argument| *argument != "--full").collect();
    let wanted = |name: &str| only.is_empty() || only.iter().any(|o| *o == name);
    if wanted("tidy") {
        eprintln!("── tidy");
        crate::tidy::tidy()?;
    }
    if wanted("coverage") {
        eprintln!("── coverage");
        crate::coverage::coverage(&["--check".to_owned()])?;
    }
    let more = if full { MORE } else { &[] };
    for (name, args) in STEPS.iter().chain(more).filter(|(name, _)| wanted(name)) {
        eprintln!("── {name}: cargo {}", args.join(" "));
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(*args).current_dir(crate::root()).env("RUSTDOCFLAGS", "-D warnings");
        if full {
            cargo.env("PTXVM_TESTS", "full");
        }
        match cargo.status() {
            Ok(status) if status.success() => {}
            Ok(status) => return Err(format!("{name} failed ({status})")),
            Err(error) => return Err(format!("{name} cannot be started: {error}")),
        }
    }
    Ok(())
}
