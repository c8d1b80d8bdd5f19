//! The Python wheel, and `cargo xtask python`, which tests it in a fresh virtual environment.
//!
//! Invariant: the wheel is made by the same backend as `pip install .` in `python/`. Its tag names the C
//! library version that its files require.

use super::{VERSION, failed, folder, make, read_dir, run, stage, target};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The largest wheel in bytes, with a margin below the 100 MB limit of the package index.
const WHEEL_MAX: u64 = 90_000_000;

/// Packages that the tests need.
const FOR_TESTS: [&str; 5] = ["pytest", "pytest-xdist", "tqdm", "distributed", "mypy"];

/// The Python to build and test with: `PTXVM_PYTHON`, or `python3`.
fn interpreter() -> String {
    std::env::var("PTXVM_PYTHON").unwrap_or_else(|_| "python3".to_owned())
}

/// Builds the wheel from a tree.
pub(super) fn wheel(tree: &Path) -> Result<(), String> {
    for old in wheels()? {
        std::fs::remove_file(&old).map_err(|error| failed(&old, &error))?;
    }
    let (major, minor) = stage::floor(tree)?;
    let options = format!("--compatibility manylinux_{major}_{minor} --auditwheel skip");
    run(Command::new(interpreter())
        .args(["-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"])
        .arg(folder()?)
        .arg(crate::root().join("python"))
        .env("PTXVM_TREE", tree)
        .env("CARGO_TARGET_DIR", target())
        .env("MATURIN_PEP517_ARGS", options))?;
    let wheel = wheel_file()?;
    let bytes = wheel.metadata().map_err(|error| failed(&wheel, &error))?.len();
    if bytes > WHEEL_MAX {
        return Err(format!("{} has {bytes} bytes, more than {WHEEL_MAX}", wheel.display()));
    }
    Ok(())
}

fn wheels() -> Result<Vec<PathBuf>, String> {
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with(&format!("ptxvm-{VERSION}-")) && name.ends_with(".whl")
    };
    Ok(read_dir(&folder()?)?.into_iter().filter(is_ours).collect())
}

/// The path of the wheel.
pub(super) fn wheel_file() -> Result<PathBuf, String> {
    wheels()?.pop().ok_or_else(|| "there is no wheel; `cargo xtask dist wheel` makes it".to_owned())
}

/// `cargo xtask python`: builds the wheel, installs it in a fresh virtual environment and runs
/// `python/tests`, the doctests and the type checker. `--no-build` uses the existing wheel; arguments after
/// `--` are passed to pytest.
pub(crate) fn python(arguments: &[String]) -> Result<(), String> {
    let split = arguments.iter().position(|argument| argument == "--").unwrap_or(arguments.len());
    let (ours, theirs) = arguments.split_at(split);
    match ours {
        [] => super::dist(&["wheel".to_owned()])?,
        [only] if only == "--no-build" => {}
        _ => return Err("usage: cargo xtask python [--no-build] [-- PYTEST-OPTIONS...]".to_owned()),
    }
    let place = target().join("python");
    super::clear(&place)?;
    make(&place)?;
    let environment = place.join("venv");
    run(Command::new(interpreter()).args(["-m", "venv"]).arg(&environment))?;
    let python = environment.join("bin/python");
    run(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).arg(wheel_file()?).args(FOR_TESTS))?;
    // A copy without the package's sources, so that the installed package is tested.
    let sources = crate::root().join("python");
    run(Command::new("cp").arg("-r").arg(sources.join("tests")).arg(&place))?;
    run(Command::new(&python)
        .args([
            "-m",
            "pytest",
            "--quiet",
            "--doctest-modules",
            "--import-mode=importlib",
            "--pyargs",
            "tests",
            "ptxvm",
        ])
        .args(theirs.iter().skip(1))
        .env("PTXVM_GUIDE", crate::root().join("docs/python.md"))
        .current_dir(&place))?;
    run(Command::new(&python).args(["-m", "mypy", "--strict", "--package", "ptxvm"]).current_dir(&place))
}
