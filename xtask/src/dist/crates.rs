//! `cargo xtask dist --crates`: whether each crate can be published, and in which order.
//!
//! Invariant: a crate follows all crates on which it depends. Cargo packages all of them together and builds
//! each from its package, against the packages of the others, so nothing has to be published for the check.

use super::{notices, run};
use serde_json::Value;
use std::process::Command;

/// Checks all crates and prints the order. `--no-verify` packages without building.
pub(super) fn crates(arguments: &[&str]) -> Result<(), String> {
    if !matches!(arguments, [] | ["--no-verify"]) {
        return Err("usage: cargo xtask dist --crates [--no-verify]".to_owned());
    }
    let order = order(&notices::metadata()?)?;
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["package", "--locked", "--allow-dirty", "--quiet"])
        .args(arguments)
        .current_dir(crate::root());
    for name in &order {
        cargo.args(["--package", name]);
    }
    run(&mut cargo)?;
    println!(
        "in this order: cargo publish {}",
        order.iter().map(|name| format!("-p {name}")).collect::<Vec<_>>().join(" ")
    );
    Ok(())
}

/// The published crates, each after those on which it depends.
fn order(metadata: &Value) -> Result<Vec<String>, String> {
    let packages = metadata["packages"].as_array().ok_or("cargo metadata has no packages")?;
    // `publish = false` is an empty list of registries.
    let is_ours = |package: &&Value| {
        package["source"].is_null() && package["publish"].as_array().is_none_or(|list| !list.is_empty())
    };
    let mut left: Vec<(&str, Vec<&str>)> = Vec::new();
    for package in packages.iter().filter(is_ours) {
        let name = package["name"].as_str().unwrap_or_default();
        for field in ["description", "license", "repository", "readme"] {
            if package[field].as_str().unwrap_or_default().is_empty() {
                return Err(format!("the crate {name} has no `{field}`"));
            }
        }
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        // Dependencies of tests have no version and are omitted from the package.
        let needed = dependencies.filter(|dependency| dependency["kind"] != "dev");
        left.push((name, needed.filter_map(|dependency| dependency["name"].as_str()).collect()));
    }
    let mut order = Vec::new();
    while !left.is_empty() {
        let names: Vec<&str> = left.iter().map(|(name, _)| *name).collect();
        let ready = |(_, needs): &(&str, Vec<&str>)| !needs.iter().any(|need| names.contains(need));
        let (now, later): (Vec<_>, Vec<_>) = left.into_iter().partition(ready);
        if now.is_empty() {
            return Err(format!("crates depend on each other in a circle: {}", names.join(", ")));
        }
        order.extend(now.into_iter().map(|(name, _)| name.to_owned()));
        left = later;
    }
    Ok(order)
}

#[cfg(test)]
mod tests {
    #[test]
    fn crates_stand_behind_what_they_need() {
        let order = super::order(&super::notices::metadata().unwrap()).unwrap();
        let place = |name: &str| order.iter().position(|other| other == name).unwrap();
        assert!(place("ptx") < place("ptx-exec") && place("ptx-exec") < place("ptx-jit"));
        assert!(place("ptx-jit") < place("ptxvm") && place("ptxvm") < place("ptxvm-cli"));
        assert!(!order.iter().any(|name| name == "xtask"));
    }
}
