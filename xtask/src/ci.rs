//! `cargo xtask ci`: the steps of the continuous integration. Arguments select steps by name. `--full` adds
//! steps that are too slow for each change: all combinations of fixtures, engines and processors, every
//! operand of the small instructions, random programs, and the Python package.
//!
//! The coverage report reads files, and clippy and the documentation need types and no code. So they run
//! beside the tests, the latter two at a lower priority and with a target folder of their own
//! (`target/checks`): each of them leaves one of two cores idle for most of its time. Their output is shown
//! when they end.
//!
//! Invariant: the step `test` is the README's test command. It covers every crate, engine and fixture;
//! `--full` covers more combinations of them.

use std::process::{Command, Stdio};

type Step = (&'static str, &'static [&'static str]);

/// Takes a second, so nothing runs beside it.
const FORMAT: Step = ("fmt", &["fmt", "--all", "--check"]);

/// The steps one after another.
const STEPS: &[Step] = &[
    ("test", &["test", "--workspace"]),
    // The commands in the documentation. The programs that they run were built by the tests.
    ("docs --run", &["run", "--quiet", "--package", "xtask", "--", "docs", "--run"]),
];

/// The steps beside these.
const CHECKS: &[Step] = &[
    ("clippy", &["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]),
    // By clippy, whose results for the other crates exist already.
    (
        "without the JIT",
        &["clippy", "--package", "ptxvm-cli", "--no-default-features", "--quiet", "--", "-D", "warnings"],
    ),
    ("docs", &["doc", "--workspace", "--no-deps", "--quiet"]),
];

/// Only with `--full`.
const MORE: &[Step] = &[
    ("exhaustive", &["run", "--release", "--quiet", "--package", "xtask", "--", "testsuite", "--exhaustive"]),
    (
        "agree",
        &["run", "--release", "--quiet", "--package", "xtask", "--", "agree", "--count", "5000", "--every"],
    ),
    // Needs Python and the package index, which other steps do not.
    ("python", &["run", "--quiet", "--package", "xtask", "--", "python"]),
];

/// Runs the steps; `tidy` and `fmt` are first because they need no build and little time.
///
/// # Errors
/// The first step that failed, and the first of those beside it.
pub(crate) fn ci(arguments: &[String]) -> Result<(), String> {
    let full = arguments.iter().any(|argument| argument == "--full");
    let only: Vec<&String> = arguments.iter().filter(|argument| *argument != "--full").collect();
    let wanted = |name: &str| only.is_empty() || only.iter().any(|o| *o == name);
    if wanted("tidy") {
        eprintln!("── tidy");
        crate::tidy::tidy()?;
    }
    if wanted(FORMAT.0) {
        alone(&FORMAT, full)?;
    }
    let more = if full { MORE } else { &[] };
    std::thread::scope(|scope| {
        let checks = scope.spawn(|| {
            if wanted("coverage") {
                eprintln!("── coverage, beside the other steps");
                crate::coverage::coverage(&["--check".to_owned()])?;
            }
            CHECKS.iter().filter(|(name, _)| wanted(name)).try_for_each(beside)
        });
        let steps = || {
            STEPS.iter().chain(more).filter(|(name, _)| wanted(name)).try_for_each(|step| alone(step, full))
        };
        let steps = steps();
        let checks = checks.join().unwrap_or_else(|_| Err("a check panicked".to_owned()));
        match (steps, checks) {
            (Err(one), Err(other)) => Err(format!("{one}; {other}")),
            (one, other) => one.and(other),
        }
    })
}

/// Runs a step that shows its output.
fn alone((name, args): &Step, full: bool) -> Result<(), String> {
    eprintln!("── {name}: cargo {}", args.join(" "));
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(*args).current_dir(crate::root());
    if full {
        cargo.env("PTXVM_TESTS", "full");
    }
    match cargo.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{name} failed ({status})")),
        Err(error) => Err(format!("{name} cannot be started: {error}")),
    }
}

/// Runs a step beside others.
fn beside((name, args): &Step) -> Result<(), String> {
    let mut cargo = if cfg!(unix) {
        let mut nice = Command::new("nice");
        nice.arg(env!("CARGO"));
        nice
    } else {
        Command::new(env!("CARGO"))
    };
    cargo.args(*args).current_dir(crate::root()).stdin(Stdio::null());
    cargo.env("CARGO_TARGET_DIR", crate::root().join("target/checks")).env("RUSTDOCFLAGS", "-D warnings");
    let output = cargo.output().map_err(|error| format!("{name} cannot be started: {error}"))?;
    let text = [output.stdout, output.stderr].concat();
    eprintln!(
        "── {name}, beside the other steps: cargo {}\n{}",
        args.join(" "),
        String::from_utf8_lossy(&text)
    );
    if output.status.success() { Ok(()) } else { Err(format!("{name} failed ({})", output.status)) }
}
