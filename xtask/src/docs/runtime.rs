//! The page `docs/reference/cuda-runtime.md`: the functions of the runtime API, from the sources of
//! `ptxvm-cudart`.
//!
//! Invariant: every function that the crate exports is on the page: those of its `runtime!` blocks with the
//! first paragraph of their description, and those of its `refused!` block as refused. Functions that nvcc's
//! programs call at their start (`__cuda...`) are not listed.

use super::{files_below, read};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

const PAGE: &str = "docs/reference/cuda-runtime.md";

/// Writes the page.
pub(super) fn write(root: &Path) -> Result<(), String> {
    std::fs::write(root.join(PAGE), page(root)?).map_err(|error| format!("{PAGE}: {error}"))
}

/// The difference between the page and the sources, if any.
pub(super) fn offence(root: &Path) -> Result<Option<String>, String> {
    let found = std::fs::read_to_string(root.join(PAGE)).unwrap_or_default();
    Ok((found != page(root)?).then(|| format!("{PAGE} is stale: `cargo xtask docs --write` writes it")))
}

fn page(root: &Path) -> Result<String, String> {
    let mut functions = BTreeMap::new();
    for file in files_below(&root.join("crates/ptxvm-cudart/src"), &["rs"])? {
        functions.extend(functions_of(&read(&file)?));
    }
    let done = functions.values().filter(|brief| brief.is_some()).count();
    let mut page = format!(
        "# Runtime functions\n\nWritten by `cargo xtask docs --write` from the sources of `ptxvm-cudart`. {done} of {} functions of the runtime API \
         are implemented. The others are exported and answer `cudaErrorNotSupported`; `PTXVM_LOG=refused` names each that a program \
         calls. The functions of the driver API are in [their own table](../cuda-entry-points.md).\n\n| function | |\n| --- | --- |\n",
        functions.len()
    );
    for (name, brief) in functions {
        let _infallible = writeln!(page, "| `{name}` | {} |", brief.as_deref().unwrap_or("refused"));
    }
    Ok(page)
}

/// The functions of a source, with their descriptions; `None` for refused functions.
fn functions_of(source: &str) -> BTreeMap<String, Option<String>> {
    let mut functions = BTreeMap::new();
    let mut brief: Option<String> = None;
    let (mut refused, mut first_paragraph) = (false, true);
    for line in source.lines().map(str::trim) {
        if line.starts_with("refused! {") {
            refused = true;
        } else if refused {
            refused = line != "}";
            functions.extend(
                line.split_whitespace().filter(|w| w.starts_with("cuda")).map(|w| (w.to_owned(), None)),
            );
        } else if let Some(doc) = line.strip_prefix("/// ") {
            if first_paragraph {
                let brief = brief.get_or_insert_default();
                let separator = if brief.is_empty() { "" } else { " " };
                brief.extend([separator, &doc.replace('|', "\\|")]);
            }
        } else if line == "///" {
            first_paragraph = false;
        } else if line.starts_with("#[") {
            // An attribute between a description and its function.
        } else {
            let head =
                line.split_once("fn ").filter(|(before, _)| before.is_empty() || *before == "extern \"C\" ");
            if let Some((_, rest)) = head {
                let names = rest.split(['(', '<']).next().unwrap_or_default();
                let names = names.split([' ', '|']).filter(|name| name.starts_with("cuda"));
                functions.extend(names.map(|name| (name.to_owned(), brief.clone())));
            }
            (brief, first_paragraph) = (None, true);
        }
    }
    functions
}

#[cfg(test)]
mod tests {
    use super::functions_of;

    #[test]
    fn functions_and_their_descriptions() {
        let source = "runtime! {\n /// One\n /// line. Another.\n ///\n /// More.\n fn cudaA(x: u8) => cuA;\n /// Two.\n fn cudaB | cudaB_ptsz as default (\n}\n\
                      /// Three.\n#[unsafe(no_mangle)]\nextern \"C\" fn cudaC() {}\nfn helper() {}\n\
                      refused! {\n    cudaD\n}\n";
        let functions = functions_of(source);
        let brief = |name: &str| functions[name].as_deref();
        assert_eq!(
            (brief("cudaA"), brief("cudaB_ptsz"), brief("cudaC")),
            (Some("One line. Another."), Some("Two."), Some("Three."))
        );
        assert!(functions.len() == 5 && brief("cudaD").is_none());
    }
}
