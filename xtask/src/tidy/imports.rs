//! Circles of imports between the modules of a crate.
//!
//! A module imports another if a `use` or a path in it names that module, or something inside it. Only
//! siblings are compared: if `a::b` imports `a::c::d`, then `a::b` depends on `a::c`. An import of a parent
//! or of a child is no dependency, because a parent re-exports what its children define. A module that
//! depends on itself, through others, is in a circle.
//!
//! The check reads text, not syntax: paths in macros count too, and inline modules belong to their file.
//! Modules of tests (`tests`, `*_tests`, `testkit`) do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// How many modules of a crate are in circles of imports; all other crates have none. A number may only fall,
/// so when it does, write the new one here.
const CIRCULAR: &[(&str, usize)] = &[
    ("crates/ptx", 18),
    ("crates/ptx-model", 2),
    ("crates/ptxvm-cli", 2),
    ("crates/ptxvm-cuda", 32),
    ("crates/ptxvm-cudart", 9),
    ("crates/ptxvm-cublas", 6),
    ("crates/ptxvm-nvrtc", 3),
    ("python", 2),
];

/// The segments of a module's path in its crate.
type Module = Vec<String>;

/// Checks that no more modules of a crate are in circles than [`CIRCULAR`] says, and no fewer.
pub(super) fn check(root: &Path, krate: &str, offences: &mut Vec<String>) -> Result<(), String> {
    let mut files = Vec::new();
    let source = root.join(krate).join("src");
    super::rust_files(&source, &mut files)?;
    let mut modules = BTreeMap::new();
    for file in files {
        let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        let name = file.strip_prefix(&source).unwrap_or(&file).with_extension("");
        let module: Module = name.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        modules.insert(module, text);
    }
    let limit = CIRCULAR.iter().find(|(name, _)| *name == krate).map_or(0, |(_, limit)| *limit);
    let circular = circular(modules);
    let list = circular.iter().map(|module| module.join("::")).collect::<Vec<_>>().join(", ");
    let found = circular.len();
    if found > limit {
        offences.push(format!(
            "{krate}: at most {limit} modules may be in circles of imports, found {found}: {list}"
        ));
    } else if found < limit {
        offences.push(format!(
            "{krate}: expected {limit} modules in circles of imports, found {found}: \
             write the lower number in xtask/src/tidy/imports.rs"
        ));
    }
    Ok(())
}

/// The modules that are in circles; the argument has the text of each file by its path below `src`.
fn circular(files: BTreeMap<Module, String>) -> Vec<Module> {
    let mut modules = BTreeMap::new();
    for (mut module, text) in files {
        let of_tests = |part: &String| part == "tests" || part == "testkit" || part.ends_with("_tests");
        if module.iter().any(of_tests) {
            continue;
        }
        if module.last().is_some_and(|last| matches!(last.as_str(), "lib" | "main" | "mod")) {
            module.pop();
        }
        modules.insert(module, code(&text));
    }
    let mut imports: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for (module, text) in &modules {
        for path in paths(text) {
            let Some(target) = resolve(&modules, module, &path) else { continue };
            let common = module.iter().zip(&target).take_while(|(a, b)| a == b).count();
            if common < module.len() && common < target.len() {
                let siblings = imports.entry(module[..=common].to_vec()).or_default();
                siblings.insert(target[..=common].to_vec());
            }
        }
    }
    imports.keys().filter(|module| depends(&imports, module, module)).cloned().collect()
}

/// Whether a module depends on another, through at least one import.
fn depends(imports: &BTreeMap<Module, BTreeSet<Module>>, from: &Module, on: &Module) -> bool {
    let (mut seen, mut todo) = (BTreeSet::new(), vec![from]);
    while let Some(module) = todo.pop() {
        for next in imports.get(module).into_iter().flatten() {
            if next == on {
                return true;
            }
            if seen.insert(next) {
                todo.push(next);
            }
        }
    }
    false
}

/// The text without comments and without the module `tests` at its end.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text);
    text.lines().map(|line| line.split("//").next().unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

/// All paths that begin with `crate`, `self` or `super`, in `use` declarations and elsewhere.
fn paths(text: &str) -> Vec<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(is_word) {
        let word = &rest[start..];
        let end = word.find(|c| !is_word(c)).unwrap_or(word.len());
        let (word, after) = word.split_at(end);
        rest = after;
        if word == "use" {
            let (tree, after) = after.split_once(';').unwrap_or((after, ""));
            expand("", tree, &mut found);
            rest = after;
        } else if matches!(word, "crate" | "self" | "super") && after.starts_with("::") {
            let end = after.find(|c| !is_word(c) && c != ':').unwrap_or(after.len());
            found.push(format!("{word}{}", &after[..end]));
            rest = &after[end..];
        }
    }
    found
}

/// The paths of a `use` tree.
fn expand(prefix: &str, tree: &str, found: &mut Vec<String>) {
    let (mut depth, mut start) = (0_usize, 0);
    for (at, c) in tree.char_indices().chain([(tree.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                let part = tree[start..at].trim();
                match part.split_once('{') {
                    Some((path, inner)) => {
                        let inner = inner.rsplit_once('}').map_or(inner, |(inner, _)| inner);
                        expand(&format!("{prefix}{}", path.trim()), inner, found);
                    }
                    None if part.is_empty() => {}
                    None => found.push(format!("{prefix}{}", part.split(" as ").next().unwrap_or(part))),
                }
                start = at + 1;
            }
            _ => {}
        }
    }
}

/// The module that a path in `module` names, or names something in. `None`: it is not of this crate.
fn resolve(modules: &BTreeMap<Module, String>, module: &Module, path: &str) -> Option<Module> {
    let mut segments = path.split("::").map(str::trim).peekable();
    let mut target = match *segments.peek()? {
        "crate" => Vec::new(),
        "self" | "super" => module.clone(),
        _ => return None,
    };
    if segments.next_if(|first| matches!(*first, "crate" | "self")).is_none() {
        while segments.next_if_eq(&"super").is_some() {
            target.pop();
        }
    }
    for segment in segments {
        target.push(segment.to_owned());
        if !modules.contains_key(&target) {
            target.pop();
            break;
        }
    }
    Some(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let split =
            |(name, text): &(&str, &str)| (name.split('/').map(str::to_owned).collect(), text.to_string());
        circular(files.iter().map(split).collect()).iter().map(|module| module.join("::")).collect()
    }

    #[test]
    fn circles_are_found() {
        let two = [("lib", ""), ("a", "use crate::b::B;"), ("b", "fn f() { crate::a::g() }")];
        assert_eq!(found(&two), ["a", "b"]);
        let three = [
            ("lib", ""),
            ("a", "use crate::{c, b::{self, X as Y}};"),
            ("b/mod", ""),
            ("b/inner", "use super::super::c;"),
            ("c", "use super::a;"),
            ("d", "use crate::a;"),
        ];
        assert_eq!(found(&three), ["a", "b", "c"]);
    }

    #[test]
    fn parents_comments_and_tests_make_no_circle() {
        let files = [
            ("lib", "use self::a::A;"),
            ("a", "use crate::b; use crate::Root; // crate::c\n#[cfg(test)]\nmod tests { use crate::c; }"),
            ("b", "use std::a;"),
            ("c", "use crate::a;"),
            ("tests", "use crate::a;"),
            ("b/tests", "use crate::a;"),
        ];
        assert_eq!(found(&files), [""; 0]);
    }
}
