//! `cargo xtask docs`: the documentation site, its checks, and the commands on its pages.
//!
//! Without arguments: the checks of [`check`], which `cargo xtask tidy` also runs. `--run` executes every
//! command block of the pages ([`run`]). `--site` builds the site with mdBook ([`site`]). `--write` writes
//! the page that is generated from sources ([`runtime`]).
//!
//! Invariant: the checks need no other program, so they run wherever the workspace builds. Only the site
//! needs mdBook.

pub(crate) mod check;
mod markdown;
mod run;
mod runtime;
mod site;

use std::path::{Path, PathBuf};

/// Checks the pages, runs their commands, or builds the site.
pub(crate) fn docs(arguments: &[String]) -> Result<(), String> {
    match arguments.first().map(String::as_str) {
        None => match check::offences(&crate::root())? {
            found if found.is_empty() => Ok(()),
            found => Err(format!("docs found:\n  {}", found.join("\n  "))),
        },
        Some("--run") => run::run(&arguments[1..]),
        Some("--site") => site::site(&arguments[1..]),
        Some("--write") => runtime::write(&crate::root()),
        Some(other) => {
            Err(format!("`{other}` is unknown; cargo xtask docs [--run [PAGE...] | --site | --write]"))
        }
    }
}

/// All files below a folder with one of these extensions, sorted, without build folders and hidden folders.
fn files_below(folder: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for entry in entries {
            let path = entry.map_err(|error| error.to_string())?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                if name != "target" && !name.starts_with('.') {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|e| extensions.iter().any(|wanted| e == *wanted)) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// A path relative to the root, with `/` between its parts.
fn name_of(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().replace('\\', "/")
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}
