//! `cargo xtask ci`: the steps of the continuous integration, in order of how fast they fail. With names of steps as arguments,
//! only these.

use std::process::Command;

const STEPS: &[(&str, &[&str])] = &[
    ("fmt", &["fmt", "--all", "--check"]),
    ("clippy", &["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]),
    ("without the JIT", &["check", "--package", "ptxvm-cli", "--no-default-features", "--quiet"]),
    ("docs", &["doc", "--workspace", "--no-deps", "--quiet"]),
    ("test", &["test", "--workspace"]),
];

/// Runs the steps; `tidy` and `coverage` come first because they need no build.
pub(crate) fn ci(only: &[String]) -> Result<(), String> {
    let wanted = |name: &str| only.is_empty() || only.iter().any(|o| o == name);
    if wanted("tidy") {
        eprintln!("── tidy");
        crate::tidy::tidy()?;
    }
    if wanted("coverage") {
        eprintln!("── coverage");
        crate::coverage::coverage(&["--check".to_owned()])?;
    }
    for (name, args) in STEPS.iter().filter(|(name, _)| wanted(name)) {
        eprintln!("── {name}: cargo {}", args.join(" "));
        let status = Command::new(env!("CARGO"))
            .args(*args)
            .current_dir(crate::root())
            .env("RUSTDOCFLAGS", "-D warnings")
            .status();
        match status {
            Ok(status) if status.success() => {}
            Ok(status) => return Err(format!("{name} failed ({status})")),
            Err(error) => return Err(format!("{name} cannot be started: {error}")),
        }
    }
    Ok(())
}
