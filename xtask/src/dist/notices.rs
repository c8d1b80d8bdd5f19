//! `THIRD-PARTY.md`: the licences of all third-party parts of a package.
//!
//! Invariant: each crate that is compiled into a shipped file is listed with its licence, and with the
//! licence and notice files of its source; equal texts are listed once. A crate without a licence fails the
//! packaging.

use super::{output, read_dir};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// The packages whose dependencies are shipped.
const SHIPPED: [&str; 7] = [
    "ptxvm-cli",
    "ptxvm-cuda",
    "ptxvm-cudart",
    "ptxvm-cublas",
    "ptxvm-nvrtc",
    "ptxvm-preload",
    "ptxvm-python",
];

/// Licence and notice files begin with one of these.
const FILES: [&str; 5] = ["license", "licence", "copying", "notice", "unlicense"];

/// A third-party crate.
struct Crate {
    name: String,
    licence: String,
    texts: Vec<String>,
}

/// The text of the file.
pub(crate) fn notices() -> Result<String, String> {
    let mut text = String::from(
        "# Software of others in this package\n\n\
         ptxvm itself is under the MIT licence or the Apache licence 2.0, at your option. It contains the following.\n\n\
         ## LLVM\n\n\
         `lib/ptxvm/libLLVM.so.22.1`, version 22.1 as built for the Rust compiler (https://github.com/rust-lang/llvm-project), with its symbols removed. Apache License 2.0 \
         (`LICENSE-APACHE` in this folder) with LLVM Exceptions:\n\n",
    );
    fence(&mut text, include_str!("llvm-exception.txt"));
    text.push_str(
        "\n## The Rust standard library\n\n\
         Copyright (c) The Rust Project Contributors. MIT or Apache-2.0: `LICENSE-MIT` and `LICENSE-APACHE` in this folder hold the same texts.\n",
    );
    let crates = crates()?;
    // Many crates have the same text.
    let mut numbers = BTreeMap::new();
    text.push_str("\n## Crates\n\n| crate | licence | texts below |\n| --- | --- | --- |\n");
    for krate in &crates {
        let mut places = BTreeSet::new();
        for licence in &krate.texts {
            let next = numbers.len() + 1;
            places.insert(*numbers.entry(licence.clone()).or_insert(next));
        }
        let places: Vec<_> = places.iter().map(usize::to_string).collect();
        let _infallible = writeln!(text, "| {} | {} | {} |", krate.name, krate.licence, places.join(", "));
    }
    let mut texts: Vec<_> = numbers.into_iter().map(|(text, number)| (number, text)).collect();
    texts.sort();
    for (number, licence) in texts {
        let _infallible = write!(text, "\n### Text {number}\n\n");
        fence(&mut text, &licence);
    }
    Ok(text)
}

fn fence(text: &mut String, quoted: &str) {
    let _infallible = writeln!(text, "````text\n{}\n````", quoted.trim_end());
}

/// The third-party crates in shipped files, by name.
fn crates() -> Result<Vec<Crate>, String> {
    let metadata = metadata()?;
    let nodes = metadata["resolve"]["nodes"].as_array().ok_or("cargo metadata has no graph")?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata has no packages")?;
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let shipped = |package: &&Value| SHIPPED.contains(&word(&package["name"]).as_str());
    let mut todo: Vec<String> = packages.iter().filter(shipped).map(|package| word(&package["id"])).collect();
    let mut seen: BTreeSet<String> = todo.iter().cloned().collect();
    while let Some(id) = todo.pop() {
        let node = nodes.iter().find(|node| word(&node["id"]) == id);
        let dependencies = node.and_then(|node| node["deps"].as_array()).into_iter().flatten();
        for dependency in dependencies {
            // Dependencies of tests and build scripts have a kind.
            let kinds = dependency["dep_kinds"].as_array();
            let is_linked = kinds.into_iter().flatten().any(|kind| kind["kind"].is_null());
            if is_linked && seen.insert(word(&dependency["pkg"])) {
                todo.push(word(&dependency["pkg"]));
            }
        }
    }
    let mut crates = Vec::new();
    for package in packages.iter().filter(|package| seen.contains(&word(&package["id"]))) {
        // Crates of the workspace have no source.
        if package["source"].is_null() {
            continue;
        }
        let name = format!("{} {}", word(&package["name"]), word(&package["version"]));
        let licence = word(&package["license"]);
        if licence.is_empty() {
            return Err(format!("the crate {name} names no licence"));
        }
        let manifest = word(&package["manifest_path"]);
        let texts = Path::new(&manifest).parent().map(texts).unwrap_or_default();
        crates.push(Crate { name, licence, texts });
    }
    crates.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(crates)
}

/// Cargo's metadata of the workspace and its dependencies on this system.
pub(super) fn metadata() -> Result<Value, String> {
    let said = output(
        Command::new(env!("CARGO"))
            .args(["metadata", "--format-version", "1", "--locked", "--filter-platform"])
            .arg(format!("{}-unknown-linux-gnu", std::env::consts::ARCH))
            .current_dir(crate::root()),
    )?;
    serde_json::from_str(&said).map_err(|error| format!("cargo metadata: {error}"))
}

/// The licence and notice files in the source of a crate.
fn texts(folder: &Path) -> Vec<String> {
    let files = read_dir(folder).unwrap_or_default();
    let is_one = |path: &&std::path::PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
        FILES.iter().any(|start| name.starts_with(start))
    };
    files.iter().filter(is_one).filter_map(|path| std::fs::read_to_string(path).ok()).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn crates_of_others_are_listed_with_their_licences() {
        let text = super::notices().unwrap();
        for wanted in ["| libloading ", "| clap ", "LLVM Exceptions", "### Text 1"] {
            assert!(text.contains(wanted), "{wanted}");
        }
        // A dependency of tests only.
        assert!(!text.contains("| proptest "));
    }
}
