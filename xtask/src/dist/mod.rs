//! `cargo xtask dist`: packages for machines without Rust and LLVM, from this checkout into `target/dist`.
//!
//! | file | contents |
//! | --- | --- |
//! | `ptxvm-VERSION-x86_64-linux.tar.gz` | the installed tree below a folder of that name |
//! | `ptxvm_VERSION_amd64.deb` | the same tree below `/usr` |
//! | `ptxvm-VERSION-*.whl` | the Python package, with the same programs and libraries inside |
//! | `container/` | the context of a container image: `docker build target/dist/container` |
//!
//! Invariant: all packages contain one tree, which [`stage`] makes. Each contains LLVM, which the programs
//! find relative to themselves. It builds for this machine only, and uploads nothing.

mod crates;
mod elf;
mod notices;
mod packages;
mod prove;
mod stage;
mod wheel;

use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) use wheel::python;

/// The version of every package.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The command-line usage.
const USAGE: &str = "usage: cargo xtask dist [tarball] [deb] [wheel] [container] | --stage FOLDER | --crates [--no-verify] | --prove\n\
    \n\
    without arguments: all four packages, into target/dist\n\
    --stage FOLDER   only the tree that they hold: bin, lib/ptxvm, share\n\
    --crates         checks that every crate can be published, and prints the order\n\
    --prove          uses the packages where there is no Rust and no LLVM: a mount namespace of its own (needs root or user namespaces)";

/// Executes the command line.
pub(crate) fn dist(arguments: &[String]) -> Result<(), String> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["--stage", folder] => stage::stage(Path::new(folder)),
        ["--crates", rest @ ..] => crates::crates(rest),
        ["--prove"] => prove::prove(),
        words if words.iter().all(|word| ["tarball", "deb", "wheel", "container"].contains(word)) => {
            let wanted = |name: &str| words.is_empty() || words.contains(&name);
            let tree = folder()?.join("tree");
            stage::stage(&tree)?;
            if wanted("tarball") || wanted("container") {
                packages::tarball(&tree)?;
            }
            if wanted("deb") {
                packages::deb(&tree)?;
            }
            if wanted("container") {
                packages::container()?;
            }
            if wanted("wheel") {
                wheel::wheel(&tree)?;
            }
            list()
        }
        _ => Err(USAGE.to_owned()),
    }
}

/// `target/dist`.
pub(crate) fn folder() -> Result<PathBuf, String> {
    let folder = target().join("dist");
    make(&folder)?;
    Ok(folder)
}

/// Cargo's target folder.
pub(crate) fn target() -> PathBuf {
    let chosen = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    crate::root().join(chosen.unwrap_or_else(|| PathBuf::from("target")))
}

/// Lists the packages with their sizes.
fn list() -> Result<(), String> {
    for entry in read_dir(&folder()?)? {
        let bytes = entry.metadata().map_err(|error| failed(&entry, &error))?.len();
        if entry.is_file() {
            println!("{:>9.1} MB  {}", bytes as f64 / 1e6, entry.display());
        }
    }
    Ok(())
}

/// Runs a program; a failure names it.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{name}` failed ({status})")),
        Err(error) => Err(format!("`{name}` cannot be started: {error}")),
    }
}

/// The output of a program.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("`{name}` cannot be started: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("`{name}` failed ({}): {said}", output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

pub(crate) fn failed(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

pub(crate) fn make(folder: &Path) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, &error))
}

/// Removes a folder with its contents, if it exists.
pub(crate) fn clear(folder: &Path) -> Result<(), String> {
    match std::fs::remove_dir_all(folder) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(folder, &error)),
    }
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| failed(path, &error))
}

/// Writes a file, and creates its folders.
pub(crate) fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), String> {
    make(path.parent().unwrap_or(path))?;
    std::fs::write(path, bytes).map_err(|error| failed(path, &error))
}

/// The entries of a folder, sorted.
pub(crate) fn read_dir(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(folder).map_err(|error| failed(folder, &error))?;
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}
