//! Runs the instruction vectors of `tests/vectors`: each form becomes a kernel, each vector a thread of it,
//! and every result is compared with that of the reference in the same folder. One trial is one file; a
//! failing trial lists its forms.
//!
//! A form with a single instruction is also run under a guard, in place (the destination is a source), and
//! with immediates; any form is also run with some threads branching around it, with registers of other
//! types, and as the printer writes it.
//!
//! No expected value is computed here. The file format is described in `tests/vectors/README.md`.

mod form;
mod kernel;

use libtest_mimic::{Arguments, Failed, Trial};
use ptxvm::{AddressSize, Vm};
use std::path::{Path, PathBuf};

fn main() {
    let args = Arguments::from_args();
    let elsewhere = std::env::var_os("PTXVM_VECTORS").map(PathBuf::from);
    let root = elsewhere.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors"));
    let mut files: Vec<_> =
        std::fs::read_dir(&root).expect("tests/vectors").map(|e| e.expect("entry").path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "vec"));
    files.sort();
    assert!(!files.is_empty(), "no vectors in {}", root.display());
    let trials = files.into_iter().map(|file| {
        let name = file.file_stem().expect("stem").to_string_lossy().into_owned();
        Trial::test(name, move || {
            let text = std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
            run_file(&text).map_err(Failed::from)
        })
    });
    libtest_mimic::run(&args, trials.collect()).exit();
}

/// Runs every form; the report names each that failed.
fn run_file(text: &str) -> Result<(), String> {
    let forms = form::parse(text)?;
    let wide = Vm::new().map_err(|e| e.to_string())?;
    let narrow = Vm::for_addresses(AddressSize::Bits32).map_err(|e| e.to_string())?;
    let mut report = String::new();
    let mut failed = 0;
    for form in &forms {
        let vm = if form.address == AddressSize::Bits64 { &wide } else { &narrow };
        if let Err(why) = kernel::run_form(vm, form) {
            failed += 1;
            report += &format!("line {}: {}\n{why}\n", form.line, form.name);
        }
    }
    if failed == 0 { Ok(()) } else { Err(format!("{failed} of {} forms failed\n{report}", forms.len())) }
}
