//! The modules of `tests/language`: each unchanged, and each that expects errors once more without the lines
//! with errors, which must be accepted.

use std::fs;
use std::path::{Path, PathBuf};

/// Name and text of each.
pub(crate) fn modules() -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/language");
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).expect("tests/language").map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "ptx"));
    paths.sort();
    let mut modules = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).expect("a text");
        for module in text.split("//====") {
            let (title, body) = module.split_once('\n').unwrap_or((module, ""));
            if !body.contains(".version") {
                continue;
            }
            let name = PathBuf::from(format!("{}: {}", path.display(), title.trim()));
            if body.contains("//~") {
                let right: String = body.split_inclusive('\n').filter(|line| !line.contains("//~")).collect();
                modules.push((name.join("without errors"), right));
            }
            modules.push((name, body.to_owned()));
        }
    }
    modules
}
