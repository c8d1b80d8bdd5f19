//! Hostile programs and inputs: runs every case of `tests/hostile/*.case` in a separate process, under limits
//! of time and memory, in the interpreter and in native code. Each must end with the diagnostic, error or
//! trap that the case names, and both engines with the same trap.
//!
//! `PTXVM_HOSTILE=WORD` runs only cases whose file or name contains the word; `PTXVM_HOSTILE_PROGRAM` names
//! another program. Unless `PTXVM_TESTS` is `full`, a quarter of the cases that name other processors run
//! for one of them, and LLVM optimises the native code of a quarter of the cases. Every case runs in both
//! engines.
//!
//! Invariant: a case that is marked as open must fail, so that the mark is removed together with the defect.

mod bytes;
mod case;
mod expect;
mod process;

use case::Case;
use expect::Outcome;
use process::Ended;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Processes at the same time.
const WORKERS: usize = 2;

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/hostile");
    let entries = std::fs::read_dir(&folder).expect("tests/hostile");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> = paths.filter(|p| p.extension().is_some_and(|e| e == "case")).collect();
    files.sort();
    let read = |path: &PathBuf| {
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(path).expect("a case file");
        case::read(&name, &text).unwrap_or_else(|why| panic!("{why}"))
    };
    files.iter().flat_map(read).collect()
}

/// Whether all combinations are tested.
fn is_full() -> bool {
    std::env::var("PTXVM_TESTS").as_deref() == Ok("full")
}

/// The processors besides this machine's for which a case makes native code; `number` is the case's.
fn processors(case: &Case, number: usize) -> Vec<&String> {
    if is_full() {
        return case.cpus.iter().collect();
    }
    let one = case.cpus.get(number / 4 % case.cpus.len().max(1));
    one.filter(|_| number.is_multiple_of(4)).into_iter().collect()
}

/// Engines and processors that a case is run for; empty words where there is no choice.
fn engines(case: &Case, number: usize) -> Vec<Vec<String>> {
    if !case.command.starts_with("run ") || case.command.contains("--engine") {
        return vec![Vec::new()];
    }
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let mut all = vec![words("--engine interp")];
    if cfg!(feature = "jit") {
        let optimised = is_full() || number.is_multiple_of(4) || case.command.contains("--cpu");
        all.push(words(if optimised { "--engine jit" } else { "--engine jit --cpu native,opt=0" }));
        let processors = processors(case, number).into_iter();
        all.extend(processors.map(|cpu| words(&format!("--engine jit --cpu {cpu}"))));
    }
    all
}

/// The arguments of a case: `{ptx}` and `{NAME}` are its files.
fn arguments(case: &Case, engine: &[String]) -> Vec<String> {
    let mut all = expect::words(&case.command);
    for word in &mut all {
        *word = word.replace("{ptx}", "case.ptx").replace(['{', '}'], "");
    }
    if case.command.starts_with("run ") {
        let given = |option: &str| case.command.contains(option);
        let defaults = ["--format json", "--threads 1", "--no-cache"];
        let missing = defaults.iter().filter(|d| !given(d.split(' ').next().unwrap_or_default()));
        all.extend(missing.flat_map(|d| d.split(' ')).map(str::to_owned));
        all.extend_from_slice(engine);
    }
    all
}

/// What is wrong with a case; empty where nothing is.
fn examine(case: &Case, number: usize, folder: &Path) -> Vec<String> {
    std::fs::create_dir_all(folder).expect("a folder");
    if let Some(text) = &case.text {
        std::fs::write(folder.join("case.ptx"), text).expect("written");
    }
    for (name, expression) in &case.files {
        match bytes::evaluate(expression) {
            Ok(bytes) => std::fs::write(folder.join(name), bytes).expect("written"),
            Err(why) => return vec![format!("{name}: {why}")],
        }
    }
    let mut wrong = Vec::new();
    let mut first: Option<(String, Ended)> = None;
    for engine in engines(case, number) {
        let ended = process::run(&arguments(case, &engine), folder, case.memory);
        let what = if engine.is_empty() { "program".to_owned() } else { engine.join(" ") };
        let judged = case.expect.judge(&ended, case.line);
        if !judged.is_empty() {
            let said = ended.err.lines().take(12).collect::<Vec<_>>().join("\n      ");
            let same = first.as_ref().is_some_and(|(_, other)| other.err == ended.err);
            let said = if same { "the same" } else { said.as_str() };
            wrong.push(format!("{what}: {}\n      {said:.1500}", judged.join("; ")));
        }
        match &first {
            Some((before, other))
                if matches!(case.expect.outcome, Outcome::Trap(_) | Outcome::Ok | Outcome::Any(_)) =>
            {
                let difference = expect::difference(other, &ended, case.expect.anywhere());
                wrong.extend(difference.map(|d| format!("{before} and {what} differ: {d}")));
            }
            Some(_) => {}
            None => first = Some((what, ended)),
        }
    }
    // A text that the checker is given must not break the formatter either.
    if case.command == "check {ptx}" || case.command == "check {text.ptx}" {
        let file =
            case.command.trim_start_matches("check ").replace("{ptx}", "case.ptx").replace(['{', '}'], "");
        let ended = process::run(&["fmt".to_owned(), "--stdout".to_owned(), file], folder, case.memory);
        if !ended.status.is_some_and(|status| (0..=2).contains(&status)) {
            wrong.push(format!("fmt: ended with {}", ended.how()));
        }
    }
    let _leftovers_are_harmless = std::fs::remove_dir_all(folder);
    wrong
}

/// Examines all cases with a few workers; what is wrong with each, in their order.
fn examine_all(cases: &[Case]) -> Vec<Vec<String>> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(vec![Vec::new(); cases.len()]);
    let folder = std::env::temp_dir().join(format!("ptxvm-hostile-{}", std::process::id()));
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some((index, case)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    cases.get(index).map(|case| (index, case))
                } {
                    let wrong = examine(case, index, &folder.join(index.to_string()));
                    results.lock().expect("no worker panics")[index] = wrong;
                }
            });
        }
    });
    let _leftovers_are_harmless = std::fs::remove_dir_all(folder);
    results.into_inner().expect("no worker panics")
}

#[test]
fn every_case_ends_as_it_must() {
    let wanted = std::env::var("PTXVM_HOSTILE").unwrap_or_default();
    let mut cases = cases();
    assert!(cases.len() >= 300, "{} cases", cases.len());
    cases.retain(|case| case.name.contains(&wanted) || case.place.contains(&wanted));
    let mut failed = Vec::new();
    for (case, wrong) in cases.iter().zip(examine_all(&cases)) {
        match (&case.open, wrong.is_empty()) {
            (None, true) => {}
            (Some(why), false) => println!("open: {} `{}`: {why}", case.place, case.name),
            // Another profile has other assertions, and without native code its defects are not seen.
            (Some(_), true)
                if !cfg!(feature = "jit") || std::env::var_os("PTXVM_HOSTILE_PROGRAM").is_some() => {}
            (Some(_), true) => {
                failed.push(format!("{} `{}`: is right; take its `open` away", case.place, case.name))
            }
            (None, false) => {
                failed.push(format!("{} `{}`:\n    {}", case.place, case.name, wrong.join("\n    ")))
            }
        }
    }
    assert!(failed.is_empty(), "{} of {} cases:\n{}", failed.len(), cases.len(), failed.join("\n"));
}
