//! Checks the table of entry points, and its page in the documentation.

use super::names::NAMES;
use super::{Found, TABLES, find, find_version};
use std::collections::BTreeSet;
use std::fmt::Write as _;

fn symbol(name: &str, version: u32, per_thread: bool) -> &'static str {
    match find_version(name, version, per_thread) {
        Found::Entry(entry) => entry.name,
        Found::Later => "later",
        Found::Unknown => "unknown",
    }
}

#[test]
fn every_form_of_every_function_is_exported() {
    let missing: Vec<_> = NAMES.iter().filter(|form| find(form.symbol).is_none()).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn no_symbol_is_defined_twice() {
    let mut seen = BTreeSet::new();
    for entry in TABLES.iter().flat_map(|table| table.iter()) {
        assert!(seen.insert(entry.name), "`{}` is in two tables", entry.name);
    }
}

#[test]
fn a_version_gives_the_form_of_its_time() {
    assert_eq!(symbol("cuMemAlloc", 2000, false), "cuMemAlloc");
    assert_eq!(symbol("cuMemAlloc", 3010, false), "cuMemAlloc");
    assert_eq!(symbol("cuMemAlloc", 3020, false), "cuMemAlloc_v2");
    assert_eq!(symbol("cuMemAlloc", 13000, true), "cuMemAlloc_v2");
    assert_eq!(symbol("cuMemcpyHtoD", 12000, true), "cuMemcpyHtoD_v2_ptds");
    assert_eq!(symbol("cuMemcpyHtoD", 6050, true), "cuMemcpyHtoD_v2");
    assert_eq!(symbol("cuGetProcAddress", 12000, false), "cuGetProcAddress_v2");
    assert_eq!(symbol("cuLibraryLoadData", 11000, false), "later");
    assert_eq!(symbol("cuNothing", 12000, false), "unknown");
}

/// `PTXVM_BLESS=1` writes the page; otherwise the page must equal the generated text.
#[test]
fn the_page_of_entry_points_is_up_to_date() {
    let mut entries: Vec<_> = TABLES.iter().flat_map(|table| table.iter()).collect();
    entries.sort_by_key(|entry| entry.name);
    let done = entries.iter().filter(|entry| !entry.brief.is_empty()).count();
    let mut page = format!(
        "# Entry points of `libcuda.so.1`\n\nWritten by a test of `ptxvm-cuda` (`PTXVM_BLESS=1 cargo test -p ptxvm-cuda --lib entry_points`). \
         {done} of {} functions of the driver API (CUDA 12.9 and 13) are implemented; the others are exported and answer \
         `CUDA_ERROR_NOT_SUPPORTED`, and `PTXVM_LOG=refused` names each that a program calls.\n\n| function | |\n| --- | --- |\n",
        entries.len()
    );
    for entry in entries {
        let brief = if entry.brief.is_empty() { "refused" } else { entry.brief.trim() };
        writeln!(page, "| `{}` | {brief} |", entry.name).expect("a string takes all");
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cuda-entry-points.md");
    if std::env::var_os("PTXVM_BLESS").is_some() {
        std::fs::write(path, &page).expect("the page can be written");
    }
    let found = std::fs::read_to_string(path).unwrap_or_default();
    assert!(found == page, "docs/cuda-entry-points.md is stale: run with PTXVM_BLESS=1");
}
