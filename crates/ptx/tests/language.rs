//! Checks every module of `tests/language`, and compares the findings on each line with the line's
//! expectation. Each module is one trial.
//!
//! Only the expectations decide what is right. The file format is described in `tests/language/README.md`.

#[path = "language/data.rs"]
mod data;

use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};

fn main() {
    let args = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/language");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&root).expect("tests/language").map(|e| e.expect("entry").path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "ptx"));
    files.sort();
    assert!(!files.is_empty(), "no modules in {}", root.display());
    let trials = files.iter().flat_map(|file| trials(file)).collect();
    libtest_mimic::run(&args, trials).exit();
}

/// The modules of a file; where it cannot be read, one trial that says why.
fn trials(file: &Path) -> Vec<Trial> {
    let name = file.file_stem().expect("stem").to_string_lossy().into_owned();
    let read = std::fs::read_to_string(file).map_err(|e| e.to_string());
    match read.and_then(|text| data::parse(&name, &text)) {
        Err(why) => vec![Trial::test(name, move || Err(Failed::from(why)))],
        Ok(cases) => cases.into_iter().map(|case| trial(&name, case)).collect(),
    }
}

fn trial(file: &str, case: data::Case) -> Trial {
    let name = if case.title == file { file.to_owned() } else { format!("{file}: {}", case.title) };
    let path = format!("tests/language/{file}.ptx");
    Trial::test(name, move || {
        let faults = data::judge(&case);
        if faults.is_empty() { Ok(()) } else { Err(Failed::from(format!("{path}\n{}", faults.join("\n")))) }
    })
}
