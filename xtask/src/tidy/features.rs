//! Features of dependencies: equal in a build of `xtask` alone and in a build of the workspace.
//!
//! Continuous integration builds `xtask` first, then the workspace for its tests. Cargo compiles a crate
//! again if its features, or those of a crate that it depends on, differ between the two builds. A difference
//! in a crate as low as `rustix` compiles the interpreter and the JIT twice (two minutes of processor time).
//! Cargo unifies the features of all selected packages, so a feature that only one package of the workspace
//! enables causes such a difference. To remove it, enable the feature in `xtask/Cargo.toml` too.
//!
//! Invariant: each crate that `cargo build --package xtask` builds has the features with which
//! `cargo test --workspace` builds it.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// The crates whose features differ, one message for each.
pub(super) fn offences() -> Result<Vec<String>, String> {
    let alone = tree(&["--package", "xtask", "--edges", "normal,build"])?;
    let together = tree(&["--workspace"])?;
    Ok(differences(&alone, &together))
}

/// The output of `cargo tree` for a selection of packages: one line per edge, with a crate and its features.
fn tree(selection: &[&str]) -> Result<String, String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["tree", "--locked", "--prefix", "none", "--format", "{p}|{f}"]).args(selection);
    let output = cargo.current_dir(crate::root()).output().map_err(|e| format!("cargo tree: {e}"))?;
    if !output.status.success() {
        return Err(format!("cargo tree failed: {}", String::from_utf8_lossy(&output.stderr)));
    }
    String::from_utf8(output.stdout).map_err(|e| format!("cargo tree: {e}"))
}

/// Compares two outputs of [`tree`]. A crate may have several sets of features in one build: one for the
/// target and one for build scripts.
fn differences(alone: &str, together: &str) -> Vec<String> {
    let together = sets(together);
    let mut offences = Vec::new();
    for (name, alone) in sets(alone) {
        let Some(wanted) = together.get(name) else { continue };
        for features in alone.difference(wanted) {
            let wanted: Vec<_> = wanted.iter().copied().collect();
            offences.push(format!(
                "xtask/Cargo.toml: `{name}` has the features `{features}` in a build of xtask alone, and `{}` in a build of the workspace, so it and \
                 its dependents are compiled twice: enable the same features",
                wanted.join("` or `")
            ));
        }
    }
    offences
}

fn sets(tree: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut sets: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in tree.lines() {
        // `(*)` after the features marks a crate that was printed before.
        let line = line.trim_end_matches("(*)").trim_end();
        if let Some((name, features)) = line.split_once('|') {
            sets.entry(name.trim_end()).or_default().insert(features);
        }
    }
    sets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_that_one_build_lacks_is_found() {
        let alone = "xtask v0.1.0|\nrustix v1.1.6|fs,std\nsyn v2.0.0|full (*)\n";
        let together =
            "xtask v0.1.0|\nrustix v1.1.6|default,fs,std\nsyn v2.0.0|full\nsyn v2.0.0|derive,full\n";
        let found = differences(alone, together);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("`rustix v1.1.6` has the features `fs,std`"), "{found:?}");
        assert!(found[0].contains("`default,fs,std`"), "{found:?}");
        assert!(differences(together, together).is_empty());
    }
}
