//! `cargo xtask testsuite [--exhaustive] [--rows]`: runs the instruction vectors, and counts the value cases
//! of each row of the instruction table.
//!
//! A value case is one vector of `tests/vectors`: operands, and results from the reference in the same
//! folder, through the whole path. The rows of a form are those of the instructions in its body, found by
//! checking its kernel with and without it. The report also lists in how many cases of `tests/fixtures` (with
//! numpy's results) the row occurs, and whether another test executes the features that it covers, as counted
//! by `cargo xtask coverage`. `--exhaustive` adds every operand of the 8- and 16-bit rows, see
//! [`exhaustive`].
//!
//! Invariant: a row of PTX 6.4 that no test executes is listed and fails the run.

mod exhaustive;
#[path = "../../../crates/ptxvm/tests/vectors/form.rs"]
mod form;
#[path = "../../../crates/ptxvm/tests/vectors/kernel.rs"]
mod kernel;

use form::Form;
use ptx::check::module::Statement;
use ptx::check::{CheckOptions, check};
use ptx::isa::RowId;
use ptxvm::{AddressSize, Vm};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// How often each row occurs.
type Counts = BTreeMap<usize, u64>;

/// The subcommand.
pub(crate) fn testsuite(args: &[String]) -> Result<(), String> {
    if let Some(other) = args.iter().find(|a| !matches!(a.as_str(), "--exhaustive" | "--rows")) {
        return Err(format!("testsuite has no option `{other}`"));
    }
    let root = crate::root();
    let (mut values, mut failures) = vectors(&root.join("tests/vectors"))?;
    if args.iter().any(|a| a == "--exhaustive") {
        let found = exhaustive::run(1)?;
        failures.extend(found.failures);
        add(&mut values, &found.counts);
    }
    let fixtures = fixtures(&root.join("tests/fixtures"))?;
    let elsewhere = crate::coverage::executed(&root)?;
    let (mut without, mut total) = (Vec::new(), 0);
    for row in RowId::all() {
        let value = values.get(&row.index()).copied().unwrap_or(0);
        let launches = fixtures.get(&row.index()).copied().unwrap_or(0);
        let known = row.row().ids.iter().any(|id| elsewhere.contains(*id));
        total += value;
        if args.iter().any(|a| a == "--rows") {
            let other = if known { "yes" } else { "-" };
            println!(
                "{value:>10} values {launches:>5} fixtures  elsewhere {other:<4} {}",
                row.form().syntax()
            );
        }
        let due = row.form().gate.ptx.is_none_or(|v| v <= ptx::isa::Version { major: 6, minor: 4 });
        if value == 0 && launches == 0 && !known && due {
            without.push(row.form().syntax());
        }
    }
    let rows = values.values().filter(|n| **n > 0).count();
    println!("{total} value cases in {rows} of {} rows", RowId::all().count());
    if !without.is_empty() {
        failures.push(format!("rows of PTX 6.4 that no test executes:\n    {}", without.join("\n    ")));
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

fn add(to: &mut Counts, from: &Counts) {
    for (row, count) in from {
        *to.entry(*row).or_default() += count;
    }
}

fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == extension));
    files.sort();
    Ok(files)
}

fn read(file: &Path) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))
}

/// Runs every vector file on all cores: value cases by row, and failures.
fn vectors(folder: &Path) -> Result<(Counts, Vec<String>), String> {
    let texts: Vec<(PathBuf, String)> = files(folder, "vec")?
        .into_iter()
        .map(|file| read(&file).map(|text| (file, text)))
        .collect::<Result<_, _>>()?;
    let next = AtomicUsize::new(0);
    let work = || {
        let (mut counts, mut failures) = (Counts::new(), Vec::new());
        while let Some((file, text)) = texts.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(why) = run_file(text, &mut counts, &mut failures) {
                failures.push(format!("{}: {why}", file.display()));
            }
        }
        (counts, failures)
    };
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let (mut counts, mut failures) = (Counts::new(), Vec::new());
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        for handle in handles {
            match handle.join() {
                Ok((mine, wrong)) => {
                    add(&mut counts, &mine);
                    failures.extend(wrong);
                }
                Err(_) => failures.push("a worker panicked".to_owned()),
            }
        }
    });
    Ok((counts, failures))
}

fn run_file(text: &str, counts: &mut Counts, failures: &mut Vec<String>) -> Result<(), String> {
    let wide = Vm::new().map_err(|e| e.to_string())?;
    let narrow = Vm::for_addresses(AddressSize::Bits32).map_err(|e| e.to_string())?;
    for form in &form::parse(text)? {
        let vm = if form.address == AddressSize::Bits64 { &wide } else { &narrow };
        if let Err(why) = kernel::run_form(vm, form) {
            failures.push(format!("line {}: {}\n{why}", form.line, form.name));
            continue;
        }
        let cases = form.vectors.len() as u64;
        add(counts, &body_rows(form)?.into_keys().map(|row| (row, cases)).collect());
    }
    Ok(())
}

/// The rows of the instructions in a module's functions, and how often each occurs.
fn rows(name: &str, text: &str) -> Result<Counts, String> {
    let checked = check(name, text, &CheckOptions::default());
    let module = checked.module.ok_or_else(|| format!("{name} does not check"))?;
    let mut counts = Counts::new();
    for function in &module.functions {
        for statement in function.body.iter().flat_map(|body| &body.statements) {
            match statement {
                Statement::Inst(inst) => *counts.entry(inst.row.index()).or_default() += 1,
                Statement::Label(_) | Statement::Loc(_) => {}
            }
        }
    }
    Ok(counts)
}

/// The rows of the body of a form, and of functions before its kernel, without those that load operands and
/// store results.
fn body_rows(form: &Form<'_>) -> Result<Counts, String> {
    let mut counts = rows(form.name, &kernel::kernel(form, kernel::Way::Whole))?;
    let frame = kernel::frame(form);
    for (row, count) in rows(form.name, &frame)? {
        if let Some(all) = counts.get_mut(&row) {
            *all -= count.min(*all);
        }
    }
    counts.retain(|_, count| *count > 0);
    Ok(counts)
}

/// The number of fixture cases in which each row occurs.
fn fixtures(folder: &Path) -> Result<Counts, String> {
    let mut counts = Counts::new();
    let mut known: BTreeMap<String, Counts> = BTreeMap::new();
    for file in files(&folder.join("cases"), "json")? {
        let text = read(&file)?;
        let after = text.split("\"ptx\"").nth(1).and_then(|rest| rest.split('"').nth(1));
        let ptx = after.ok_or_else(|| format!("{}: no PTX is named", file.display()))?.to_owned();
        if !known.contains_key(&ptx) {
            let found = rows(&ptx, &read(&folder.join(&ptx))?)?;
            known.insert(ptx.clone(), found);
        }
        add(&mut counts, &known[&ptx].keys().map(|row| (*row, 1)).collect());
    }
    Ok(counts)
}
