//! `cargo xtask tidy`: rules of the project that no other tool checks.
//!
//! Every source file begins with a module doc. No file is longer than 800 lines, except for data of the
//! instruction table. `unsafe` occurs only where the architecture allows it. Crates depend only downwards,
//! and the imports of modules have no circles ([`imports`]). Only `ptx-jit/src/llvm` calls LLVM, and shows
//! nothing of a value but its type. Code quoted in `ADDING-AN-INSTRUCTION.md` is equal to the source. The
//! documentation obeys the rules of [`crate::docs::check`]. Continuous integration compiles no crate twice
//! ([`features`]).

mod features;
mod imports;

use std::fs;
use std::path::{Path, PathBuf};

/// Most lines of a source file.
const MAX_LINES: usize = 800;

/// Most characters of a line of a comment; rustfmt limits code to the same.
const MAX_COLUMNS: usize = 110;

/// Where `unsafe` is allowed, as prefixes of paths.
const UNSAFE_ALLOWED: &[&str] = &[
    "crates/host-memory/src/",
    "crates/ptx-exec/src/mem/",
    "crates/ptx-exec/src/shadow.rs",
    "crates/ptx-exec/src/warp.rs",
    "crates/ptx-exec/src/wide.rs",
    "crates/ptxvm/src/host.rs",
    "crates/ptx-jit/src/llvm/",
    "crates/ptx-jit/src/isel/tests.rs",
    "crates/ptx-jit/src/engine",
    "crates/ptxvm-cuda/src/ffi",
    "crates/ptxvm-cudart/src/driver.rs",
    "crates/ptxvm-cudart/src/ffi.rs",
    "crates/ptxvm-cuda/tests/",
    "crates/ptxvm-cublas/src/driver.rs",
    "crates/ptxvm-cublas/src/ffi.rs",
    "crates/ptxvm-cublas/src/kernel.rs",
    "crates/ptxvm-cublas/tests/",
    "crates/ptxvm-nvrtc/src/ffi.rs",
    "crates/ptxvm-nvrtc/src/theirs/library.rs",
    "crates/ptxvm-nvrtc/tests/",
    "crates/ptxvm-preload/src/process.rs",
    "python/src/lend.rs",
];

/// The only place that calls LLVM.
const LLVM: &str = "crates/ptx-jit/src/llvm/";

/// Which methods of an LLVM value code outside of [`LLVM`] may call. What a value is must not be among them.
const VALUE_METHODS: &[&str] = &["ty"];

/// The traits of an LLVM value. What compares two must not be among them.
const VALUE_DERIVES: &str = "#[derive(Clone, Copy, Debug)]";

/// Which crates of the workspace a crate may depend on.
const LAYERS: &[(&str, &[&str])] = &[
    ("host-memory", &[]),
    ("ptx", &[]),
    ("ptx-model", &[]),
    ("ptx-sem", &[]),
    ("ptx-exec", &["host-memory", "ptx", "ptx-sem"]),
    ("ptx-jit", &["ptx", "ptx-sem", "ptx-exec"]),
    ("ptx-sanitize", &["ptx", "ptx-sem", "ptx-exec"]),
    ("ptxvm", &["ptx", "ptx-exec", "ptx-jit", "ptx-sanitize"]),
    ("ptxvm-cli", &["ptx-model", "ptxvm"]),
    ("ptxvm-cuda", &["host-memory", "ptxvm"]),
    ("ptxvm-cudart", &["host-memory"]),
    ("ptxvm-cublas", &["host-memory"]),
    ("ptxvm-nvrtc", &["host-memory"]),
    ("ptxvm-preload", &[]),
];

/// Checks the rules, and lists every violation.
pub(crate) fn tidy() -> Result<(), String> {
    let root = crate::root();
    let mut offences = Vec::new();
    let mut files = Vec::new();
    for top in ["crates", "python", "xtask"] {
        rust_files(&root.join(top), &mut files)?;
    }
    files.sort();
    for file in &files {
        let text = fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
        let name = file.strip_prefix(&root).unwrap_or(file).to_string_lossy().replace('\\', "/");
        check_file(&name, &text, &mut offences);
    }
    for (krate, allowed) in LAYERS {
        check_layer(&root, krate, allowed, &mut offences)?;
        imports::check(&root, &format!("crates/{krate}"), &mut offences)?;
    }
    for krate in ["python", "xtask"] {
        imports::check(&root, krate, &mut offences)?;
    }
    check_quotes(&root, "ADDING-AN-INSTRUCTION.md", &mut offences)?;
    offences.extend(crate::docs::check::offences(&root)?);
    offences.extend(features::offences()?);
    if offences.is_empty() {
        return Ok(());
    }
    Err(format!("tidy found:\n  {}", offences.join("\n  ")))
}

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    for entry in fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))? {
        let path = entry.map_err(|e| e.to_string())?.path();
        if path.is_dir() {
            if path.file_name().is_some_and(|n| n != "target") {
                rust_files(&path, files)?;
            }
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

fn check_file(name: &str, text: &str, offences: &mut Vec<String>) {
    if !text.starts_with("//!") {
        offences.push(format!("{name}: does not begin with a module doc"));
    }
    let lines = text.lines().count();
    if lines > MAX_LINES && !name.contains("/isa/table/") {
        offences.push(format!("{name}: {lines} lines, more than {MAX_LINES}"));
    }
    for (index, line) in text.lines().enumerate() {
        let Some(comment) = line.trim_start().strip_prefix("//") else { continue };
        // A row of a table is one line, and so is a list of inventory rows.
        let prose = !["! | ", "/ | ", " covers: "].iter().any(|start| comment.starts_with(start));
        if prose && line.chars().count() > MAX_COLUMNS {
            offences.push(format!("{name}:{}: a comment of more than {MAX_COLUMNS} characters", index + 1));
        }
    }
    check_llvm(name, text, offences);
    if !UNSAFE_ALLOWED.iter().any(|prefix| name.starts_with(prefix)) {
        for (index, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or(line);
            let opens = ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern", "unsafe trait"];
            if opens.iter().any(|word| code.contains(word) && !code.contains('"')) {
                offences.push(format!("{name}:{}: unsafe is not allowed in this file", index + 1));
            }
        }
    }
}

/// Only one folder calls LLVM, and it shows nothing of an LLVM value but its type, not even whether two are
/// the same: LLVM folds constants while it builds instructions, so a decision by what came out of it would
/// depend on LLVM's version.
fn check_llvm(name: &str, text: &str, offences: &mut Vec<String>) {
    let mut methods = false;
    let mut before = "";
    for (index, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or(line);
        let before = std::mem::replace(&mut before, code);
        if !name.starts_with(LLVM) {
            if name.starts_with("crates/") && code.contains("llvm_sys::") {
                offences.push(format!(
                    "{name}:{}: only {LLVM} calls LLVM; add a method to its builder",
                    index + 1
                ));
            }
            continue;
        }
        let is_value = code.starts_with("pub(crate) struct Value(");
        if is_value && before != VALUE_DERIVES || code.contains(" for Value {") {
            offences.push(format!(
                "{name}:{}: an LLVM value has `{VALUE_DERIVES}` and no other trait: no code may decide by whether \
                 two are equal; compare numbers of your own (codegen/emitted_values.rs)",
                index + 1
            ));
        }
        match code.trim_end() {
            "impl Value {" => methods = true,
            "}" => methods = false,
            _ => {}
        }
        let Some(method) = code.trim_start().strip_prefix("pub(crate) fn ").filter(|_| methods) else {
            continue;
        };
        let method = method.split('(').next().unwrap_or(method);
        if !VALUE_METHODS.contains(&method) {
            offences.push(format!(
                "{name}:{}: `Value::{method}` shows what LLVM made of a value, by which no code may decide; make \
                 it `pub(super)`, and record what code generation knows before it emits (codegen/mask.rs)",
                index + 1
            ));
        }
    }
}

/// Dependencies (not those of tests) of a crate of the workspace.
fn check_layer(root: &Path, krate: &str, allowed: &[&str], offences: &mut Vec<String>) -> Result<(), String> {
    let manifest = root.join("crates").join(krate).join("Cargo.toml");
    let text = fs::read_to_string(&manifest).map_err(|e| format!("{}: {e}", manifest.display()))?;
    let mut section = "";
    for line in text.lines() {
        if line.starts_with('[') {
            section = line;
        }
        let dependency = line.split(['.', ' ', '=']).next().unwrap_or_default();
        let ours = LAYERS.iter().any(|(name, _)| *name == dependency);
        if section == "[dependencies]" && ours && !allowed.contains(&dependency) {
            offences.push(format!("crates/{krate}: must not depend on {dependency}"));
        }
    }
    Ok(())
}

/// A code block whose first line is `// PATH` must occur in that file, line by line without indentation; a
/// path in backticks must exist.
fn check_quotes(root: &Path, document: &str, offences: &mut Vec<String>) -> Result<(), String> {
    let text = fs::read_to_string(root.join(document)).map_err(|e| format!("{document}: {e}"))?;
    let squeeze =
        |code: &str| code.lines().map(str::trim).filter(|l| !l.is_empty()).collect::<Vec<_>>().join("\n");
    let mut quoted = 0;
    for (index, block) in text.split("```").enumerate() {
        if index % 2 == 0 {
            for path in block
                .split('`')
                .skip(1)
                .step_by(2)
                .filter(|p| p.starts_with("crates/") || p.starts_with("tests/"))
            {
                if !root.join(path).exists() {
                    offences.push(format!("{document}: `{path}` does not exist"));
                }
            }
            continue;
        }
        let mut lines = block.lines().skip(1);
        let Some(path) = lines.next().and_then(|l| l.strip_prefix("// ")) else { continue };
        let Ok(source) = fs::read_to_string(root.join(path.trim())) else {
            offences.push(format!("{document}: quotes `{path}`, which does not exist"));
            continue;
        };
        quoted += 1;
        let code = squeeze(&lines.collect::<Vec<_>>().join("\n"));
        if !squeeze(&source).contains(&code) {
            offences.push(format!("{document}: the code quoted from `{path}` is not there any more"));
        }
    }
    if quoted == 0 {
        offences.push(format!("{document}: quotes no code, so nothing keeps it true"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_house_is_tidy() {
        if let Err(message) = tidy() {
            panic!("{message}");
        }
    }

    #[test]
    fn offences_are_found() {
        let mut offences = Vec::new();
        check_file("crates/ptx/src/x.rs", "fn f() { unsafe { g() } }", &mut offences);
        assert_eq!(offences.len(), 2, "{offences:?}");
        offences.clear();
        check_file("crates/ptx/src/x.rs", &format!("//! x\n{}", "\n".repeat(900)), &mut offences);
        assert_eq!(offences.len(), 1, "{offences:?}");
        offences.clear();
        let long = "x".repeat(MAX_COLUMNS);
        let text = format!("//! | {long} |\n/// {long}\n// covers: {long}\n    // {long}\n");
        check_file("crates/ptx/src/x.rs", &text, &mut offences);
        assert_eq!(offences.len(), 2, "{offences:?}");
        offences.clear();
        let text = "//! x\nimpl Value {\n    pub(crate) fn ty() {}\n    pub(super) fn a() {}\n    pub(crate) fn b() {}\n}\n\
                    impl Builder {\n    pub(crate) fn c() {}\n}\nuse llvm_sys::core;\n";
        check_file("crates/ptx-jit/src/llvm/x.rs", text, &mut offences);
        assert_eq!(offences.len(), 1, "{offences:?}");
        offences.clear();
        let value =
            "//! x\n#[derive(Clone, Eq)]\npub(crate) struct Value(u8);\nimpl PartialEq for Value {\n}\n";
        check_file("crates/ptx-jit/src/llvm/x.rs", value, &mut offences);
        assert_eq!(offences.len(), 2, "{offences:?}");
        offences.clear();
        check_file("crates/ptx-jit/src/codegen/x.rs", text, &mut offences);
        assert_eq!(offences.len(), 1, "{offences:?}");
    }
}
