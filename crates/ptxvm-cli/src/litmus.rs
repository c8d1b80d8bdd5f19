//! `ptxvm litmus`: decides litmus tests of the memory consistency model, on all cores, with one line per
//! file.
//!
//! Files, folders (with all their `.litmus` files) and patterns are accepted. `ptx-model` makes the
//! decisions; see `docs/litmus.md`.

use crate::output::write_file;
use crate::{Exit, UsageError, print_err, print_out, read_at_most};
use clap::{Args, ValueEnum};
use ptx_model::{ErrorKind, Model, Options, Rule, Rules, Verdict};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Longest text of a test.
const LONGEST: u64 = 1 << 20;
/// The most files from folders and patterns. Chosen: far above any collection of litmus tests.
const MOST_FILES: usize = 100_000;
/// The stack of a worker: expressions nest as deeply as `ptx-model` allows.
const STACK: usize = 16 << 20;

/// The question about a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Check {
    /// Whether its clause holds.
    Clause,
    /// Whether all threads end under a fair scheduler.
    Liveness,
    /// Whether it has no data race.
    Races,
}

/// Options of `litmus`.
#[derive(Debug, Args)]
pub(crate) struct LitmusOptions {
    /// Litmus tests; folders with them; patterns such as 'tests/*.litmus'
    #[arg(required_unless_present = "rules", value_name = "FILE")]
    files: Vec<String>,
    /// The model: ptx-6.0, or ptx-7.5 with proxies
    #[arg(long, value_name = "MODEL", default_value = "ptx-6.0", value_parser = model_named)]
    model: Model,
    /// Decide the clause, whether all threads end, or whether there is no data race
    #[arg(long, value_enum, default_value = "clause")]
    check: Check,
    /// Print the execution that shows or breaks the clause
    #[arg(long)]
    show: bool,
    /// Draw that execution; allowed for a single file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// How often each branch of a thread may go backwards
    #[arg(long, value_name = "N", default_value = "2", value_parser = clap::value_parser!(u32).range(0..=100))]
    bound: u32,
    /// Stop deciding a test after this many seconds
    #[arg(long, value_name = "SECONDS", default_value = "15", value_parser = clap::value_parser!(u64).range(1..=86400))]
    timeout: u64,
    /// Stop deciding a test after this many choices of the search
    #[arg(long, value_name = "N", default_value = "100000000")]
    max_choices: u64,
    /// Remove a rule from the model; may be repeated
    #[arg(long, value_name = "RULE", value_parser = rule_named)]
    without: Vec<Rule>,
    /// List the rules of the models
    #[arg(long)]
    rules: bool,
    /// How many tests are decided at once [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    threads: Option<u64>,
}

fn model_named(name: &str) -> Result<Model, String> {
    Model::named(name).ok_or_else(|| "the models are `ptx-6.0` and `ptx-7.5`".to_owned())
}

fn rule_named(name: &str) -> Result<Rule, String> {
    Rule::named(name).ok_or_else(|| "`ptxvm litmus --rules` lists the rules".to_owned())
}

/// The result for a file.
struct Outcome {
    exit: Exit,
    out: String,
    err: String,
    picture: Option<String>,
}

/// Decides the tests. The status is the worst: an unreadable file, then a rejected one, then an undecided
/// one.
pub(crate) fn litmus(options: &LitmusOptions) -> Result<Exit, UsageError> {
    if options.rules {
        print_out(&rules())?;
        return Ok(Exit::Done);
    }
    let mut files = Vec::new();
    for name in &options.files {
        expand(name, &mut files)?;
    }
    if options.svg.is_some() && files.len() != 1 {
        return Err(format!("`--svg` draws the execution of one file, and there are {}", files.len()).into());
    }
    let outcomes: Mutex<Vec<Option<Outcome>>> = Mutex::new(files.iter().map(|_| None).collect());
    let next = AtomicUsize::new(0);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = options.threads.map_or(cores, |n| usize::try_from(n).unwrap_or(1)).min(files.len()).max(1);
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(file) = files.get(at) else { return };
            let outcome = decide(file, options);
            if let Ok(mut all) = outcomes.lock() {
                all[at] = Some(outcome);
            }
        }
    };
    std::thread::scope(|scope| {
        let spawn = |_| std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
        let started: Vec<_> = (0..workers).map_while(|n| spawn(n).ok()).collect();
        if started.is_empty() {
            // If no thread can be started, this thread does the work, on the stack that `main` made.
            work();
        }
    });
    let outcomes = outcomes.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut exit = Exit::Done;
    for outcome in outcomes.into_iter().flatten() {
        print_err(&outcome.err);
        print_out(&outcome.out)?;
        if rank(outcome.exit) > rank(exit) {
            exit = outcome.exit;
        }
        if let (Some(file), Some(picture)) = (&options.svg, outcome.picture) {
            write_file(file, |out| out.write_all(picture.as_bytes()))?;
        }
    }
    Ok(exit)
}

fn rank(exit: Exit) -> u8 {
    match exit {
        Exit::Done => 0,
        Exit::Trapped => 1,
        Exit::Rejected => 2,
        Exit::Usage | Exit::Found | Exit::Interrupted | Exit::Terminated => 3,
    }
}

/// Decides one test.
fn decide(file: &Path, options: &LitmusOptions) -> Outcome {
    let name = file.display();
    let failed = |exit, err| Outcome { exit, out: String::new(), err, picture: None };
    let text = match read(file) {
        Ok(text) => text,
        Err(error) => return failed(Exit::Usage, format!("ptxvm: cannot read `{name}`: {error}\n")),
    };
    let stop = |error: &ptx_model::Error| {
        let place = error.place().map_or(String::new(), |(line, column)| format!(":{line}:{column}"));
        match error.kind() {
            ErrorKind::Text => failed(Exit::Rejected, format!("{name}{place}: error: {}\n", error.message())),
            ErrorKind::Limit => Outcome {
                exit: Exit::Trapped,
                out: format!("{name}: Unknown\n"),
                err: format!("{name}{place}: limit: {}\n", error.message()),
                picture: None,
            },
        }
    };
    let test = match ptx_model::parse(&text) {
        Ok(test) => test,
        Err(error) => return stop(&error),
    };
    let settings = Options {
        model: options.model,
        rules: options.without.iter().fold(Rules::default(), |rules, rule| rules.without(*rule)),
        bound: options.bound,
        max_choices: options.max_choices,
        timeout: Some(Duration::from_secs(options.timeout)),
    };
    let mut outcome = Outcome { exit: Exit::Done, out: String::new(), err: String::new(), picture: None };
    let holds = match options.check {
        Check::Clause => match ptx_model::decide(&test, &settings) {
            Ok(verdict) => {
                notes(&test, &verdict, &name.to_string(), options, &mut outcome);
                verdict.holds
            }
            Err(error) => return stop(&error),
        },
        Check::Liveness => match ptx_model::liveness(&test, &settings) {
            Ok(liveness) => {
                if let Some(hang) = liveness.hang.filter(|_| options.show) {
                    let _infallible = write!(outcome.out, "{hang}");
                }
                liveness.ends
            }
            Err(error) => return stop(&error),
        },
        Check::Races => match ptx_model::races(&test, &settings) {
            Ok(races) => {
                for race in &races {
                    let _infallible = writeln!(outcome.err, "{name}: {}", race.describe(&test));
                }
                races.is_empty()
            }
            Err(error) => return stop(&error),
        },
    };
    outcome.out.insert_str(0, &format!("{name}: {}\n", if holds { "Ok" } else { "No" }));
    outcome
}

/// Additional lines besides the verdict.
fn notes(
    test: &ptx_model::test::Test,
    verdict: &Verdict,
    name: &str,
    options: &LitmusOptions,
    outcome: &mut Outcome,
) {
    if let Some(race) = &verdict.mixed_size_race {
        let race = race.describe(test);
        let _infallible = writeln!(outcome.err, "{name}: note: the axioms do not apply: {race}");
    }
    let Some(witness) = &verdict.witness else {
        if options.show {
            outcome.out.push_str("  no allowed execution satisfies the condition\n");
        }
        if let Some(file) = &options.svg {
            let file = file.display();
            let _infallible =
                writeln!(outcome.err, "{name}: note: no execution to draw, `{file}` is not written");
        }
        return;
    };
    if options.show {
        outcome.out.push_str(&witness.text());
    }
    if options.svg.is_some() {
        let word = if verdict.holds { "shows" } else { "breaks" };
        outcome.picture = Some(witness.svg(&format!("{}: an execution that {word} the clause", test.name)));
    }
}

fn rules() -> String {
    let mut text = String::new();
    for rule in Rule::ALL {
        let _infallible = writeln!(
            text,
            "{} ({})\n    {}\n    without it: {}",
            rule.name(),
            rule.section(),
            rule.about(),
            rule.without()
        );
    }
    text
}

fn read(file: &Path) -> std::io::Result<String> {
    let bytes = if file.as_os_str() == "-" {
        read_at_most(&mut std::io::stdin(), LONGEST)?
    } else {
        read_at_most(&mut std::fs::File::open(file)?, LONGEST)?
    };
    Ok(String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
}

/// The files of an argument: itself, the tests of a folder, or the matches of a pattern.
fn expand(name: &str, files: &mut Vec<PathBuf>) -> Result<(), UsageError> {
    let path = Path::new(name);
    let before = files.len();
    if path.is_dir() {
        walk(path, &mut |file| file.extension().is_some_and(|e| e == "litmus"), files)?;
        if files.len() == before {
            return Err(format!("the folder `{name}` has no file `*.litmus`").into());
        }
        return Ok(());
    }
    let wild = name.find(['*', '?']);
    match wild {
        Some(wild) if !path.exists() => {
            let root = name[..wild].rfind('/').map_or("", |slash| &name[..=slash]);
            let start = if root.is_empty() { "." } else { root };
            let strip = |file: &Path| file.strip_prefix(".").unwrap_or(file).to_string_lossy().into_owned();
            let plain = name.strip_prefix("./").unwrap_or(name);
            walk(Path::new(start), &mut |file| matches(plain.as_bytes(), strip(file).as_bytes()), files)?;
            if files.len() == before {
                return Err(format!("no file matches `{name}`").into());
            }
        }
        _ => files.push(path.to_owned()),
    }
    Ok(())
}

/// Adds matching files below a folder, in order. Links to folders are not followed.
fn walk(
    folder: &Path,
    wanted: &mut impl FnMut(&Path) -> bool,
    files: &mut Vec<PathBuf>,
) -> Result<(), UsageError> {
    let fail = |error| UsageError(format!("cannot read the folder `{}`: {error}", folder.display()));
    let mut entries = std::fs::read_dir(folder)
        .and_then(|entries| entries.collect::<std::io::Result<Vec<_>>>())
        .map_err(fail)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if entry.file_type().map_err(fail)?.is_dir() {
            walk(&path, wanted, files)?;
        } else if wanted(&path) {
            if files.len() >= MOST_FILES {
                return Err(format!("there are more than {MOST_FILES} files").into());
            }
            files.push(path);
        }
    }
    Ok(())
}

/// Whether a path matches a pattern: `*` and `?` match within a name, `**` matches across folders.
fn matches(pattern: &[u8], path: &[u8]) -> bool {
    match pattern {
        [] => path.is_empty(),
        [b'*', b'*', rest @ ..] => {
            (0..=path.len()).any(|at| matches(rest.strip_prefix(b"/").unwrap_or(rest), &path[at..]))
        }
        [b'*', rest @ ..] => {
            let name = path.iter().position(|c| *c == b'/').unwrap_or(path.len());
            (0..=name).any(|at| matches(rest, &path[at..]))
        }
        [b'?', rest @ ..] => path.first().is_some_and(|c| *c != b'/') && matches(rest, &path[1..]),
        [c, rest @ ..] => path.first() == Some(c) && matches(rest, &path[1..]),
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns() {
        let is = |pattern: &str, path: &str| matches(pattern.as_bytes(), path.as_bytes());
        assert!(is("tests/*.litmus", "tests/SB.litmus") && !is("tests/*.litmus", "tests/a/SB.litmus"));
        assert!(is("tests/**/*.litmus", "tests/a/b/SB.litmus") && is("tests/**/*.litmus", "tests/SB.litmus"));
        assert!(is("?B.litmus", "SB.litmus") && !is("?B.litmus", "B.litmus") && !is("SB", "SB.litmus"));
    }
}
