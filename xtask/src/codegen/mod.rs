//! `cargo xtask codegen --against REV`: shows whether and where a change of the compiler changes its output.
//!
//! This build and a build of the revision compile every kernel of the benchmark, of the fixtures, of
//! `tests/agree` and of random programs, for each target and number of warps per coarse warp. The LLVM IR is
//! compared byte for byte. The revision is built in a worktree under `target/codegen`, which takes minutes.
//! The hashes of its output are kept there, so that the next comparison with the same revision and kernels
//! needs only this build. If a kernel cannot be compiled, the error is compared.
//!
//! Invariant: both builds read one list of compilations ([`inputs`]). Targets that the revision does not have
//! are counted and skipped.
//!
//! It does not judge whether a difference is correct: `agree` and the tests do.

mod inputs;
mod remarks;

use inputs::Entry;
use ptxvm::{Cpu, Listing, Module, Options, Target, Vm};
pub(crate) use remarks::remarks;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

const USAGE: &str = "usage: cargo xtask codegen --against REV [--quick] [--asm] [--random N] [--target CPU]... [--show N]\n\
                     \n\
                     --quick: kernels outside of the benchmark for one target and number of warps each, in turns.\n\
                     --asm: compares assembly instead of LLVM IR. --random: as many random programs (100).\n\
                     --target: these instead of all levels and tunings. --show: the first N differences (3).\n\
                     Use --release. Of the two builds: --list FILE --to FILE [--asm] hashes, --list FILE --print N [--asm] prints one.";

/// The compared targets: all levels, and the tunings that affect LLVM IR. Other tunings differ from one of
/// these only in LLVM's code generator.
const TARGETS: [&str; 6] =
    ["avx512", "avx512,tuning=zen4", "avx512,tuning=zen5", "avx2", "avx2,tuning=zen4", "baseline"];
/// Warps per coarse warp: the compiler's choice, no coarse warps, and four wherever possible.
const TEAMS: [Option<u32>; 3] = [None, Some(1), Some(4)];
/// Denotes a target that a build does not have.
const UNKNOWN: &str = "unknown target";
/// How many files share a device before a new one is made.
const SHARED: usize = 200;

struct Arguments {
    against: Option<String>,
    list: Option<PathBuf>,
    to: Option<PathBuf>,
    print: Option<usize>,
    targets: Vec<String>,
    quick: bool,
    listing: Listing,
    random: u64,
    show: usize,
}

fn read(args: &[String]) -> Result<Arguments, String> {
    let mut read = Arguments {
        against: None,
        list: None,
        to: None,
        print: None,
        targets: Vec::new(),
        quick: false,
        listing: Listing::Llvm,
        random: 100,
        show: 3,
    };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().cloned().ok_or_else(|| format!("{arg} needs a value\n{USAGE}"));
        let number = |text: String| text.parse::<u32>().map_err(|_| format!("`{text}` is not a number"));
        match arg.as_str() {
            "--against" => read.against = Some(value()?),
            "--list" => read.list = Some(value()?.into()),
            "--to" => read.to = Some(value()?.into()),
            "--print" => read.print = Some(number(value()?)? as usize),
            "--target" => read.targets.push(value()?),
            "--quick" => read.quick = true,
            "--asm" => read.listing = Listing::Asm,
            "--random" => read.random = u64::from(number(value()?)?),
            "--show" => read.show = number(value()?)? as usize,
            _ => return Err(USAGE.to_owned()),
        }
    }
    Ok(read)
}

/// The subcommand.
pub(crate) fn codegen(args: &[String]) -> Result<(), String> {
    let arguments = read(args)?;
    match (&arguments.list, &arguments.against) {
        (Some(list), None) => serve(list, &arguments),
        (None, Some(revision)) => compare(revision, &arguments),
        _ => Err(USAGE.to_owned()),
    }
}

/// Runs one side of a comparison.
fn serve(list: &Path, arguments: &Arguments) -> Result<(), String> {
    let entries = inputs::read(&text_of(list)?)?;
    if let Some(number) = arguments.print {
        let entry = entries.get(number).ok_or("no such line in the list")?;
        print!("{}", text(entry, arguments.listing)?);
    }
    match &arguments.to {
        Some(path) => write(path, &hashes(&entries, arguments.listing).concat()),
        None => Ok(()),
    }
}

/// A line with the hash of each entry's output.
fn hashes(entries: &[Entry], listing: Listing) -> Vec<String> {
    let (next, begin) = (AtomicUsize::new(0), Instant::now());
    let lines = Mutex::new(vec![String::new(); entries.len()]);
    let work = || {
        let mut device = Loaded::default();
        let mut done = Vec::new();
        loop {
            let first = next.fetch_add(SHARED, Ordering::Relaxed);
            let Some(rest) = entries.get(first..).filter(|rest| !rest.is_empty()) else { break };
            for (at, entry) in (first..).zip(rest.iter().take(SHARED)) {
                let line = match device.text(entry, listing) {
                    Ok(text) => format!("{:x}\n", Sha256::digest(&text)),
                    Err(why) => format!("{why}\n"),
                };
                done.push((at, line));
            }
            eprintln!("{} of {} in {} s", first + SHARED, entries.len(), begin.elapsed().as_secs());
            device = Loaded::default();
        }
        let mut lines = lines.lock().expect("the other threads do not panic while they hold it");
        done.into_iter().for_each(|(at, line)| lines[at] = line);
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    lines.into_inner().expect("no thread panicked while it held it")
}

/// The device and module of the last entry; entries are grouped by device and file.
#[derive(Default)]
struct Loaded {
    vm: Option<((String, Option<u32>), Vm)>,
    module: Option<(PathBuf, Result<Module, String>)>,
}

impl Loaded {
    /// The code of an entry, or the reason why there is none.
    ///
    /// # Errors
    /// [`UNKNOWN`], and no other.
    fn text(&mut self, entry: &Entry, listing: Listing) -> Result<String, &'static str> {
        let like = (entry.target.clone(), entry.team);
        if self.vm.as_ref().is_none_or(|(of, _)| *of != like) {
            let options = options(&entry.target, entry.team)?;
            let vm = match Vm::with(options) {
                Ok(vm) => vm,
                Err(error) => return Ok(error.to_string()),
            };
            (self.vm, self.module) = (Some((like, vm)), None);
        }
        let Some((_, vm)) = &self.vm else { return Ok("no device".to_owned()) };
        if self.module.as_ref().is_none_or(|(of, _)| *of != entry.file) {
            let module = text_of(&entry.file)
                .and_then(|text| vm.load("k.ptx", &text).map_err(|error| error.to_string()));
            self.module = Some((entry.file.clone(), module));
        }
        let Some((_, module)) = &self.module else { return Ok("no module".to_owned()) };
        let made = module.as_ref().map_err(String::clone).and_then(|module| {
            let kernel = module.kernel(&entry.kernel).map_err(|error| error.to_string())?;
            kernel.listing(entry.block, listing).map_err(|error| error.to_string())
        });
        Ok(made.unwrap_or_else(|error| error))
    }
}

/// A target by the name that `ptxvm run --cpu` takes, or this machine's, held to a level, by `host:LEVEL`.
fn options(target: &str, team: Option<u32>) -> Result<Options, &'static str> {
    let target: Target = match target {
        "host:avx512" => Cpu::Avx512.into(),
        "host:avx2" => Cpu::Avx2.into(),
        "host:baseline" => Cpu::Baseline.into(),
        _ => target.parse().map_err(|_| UNKNOWN)?,
    };
    Ok(Options { target: Some(target), team, ..Options::default() })
}

fn text(entry: &Entry, listing: Listing) -> Result<String, String> {
    Loaded::default().text(entry, listing).map_err(str::to_owned)
}

/// Compares this build with that of a revision.
fn compare(revision: &str, arguments: &Arguments) -> Result<(), String> {
    if cfg!(debug_assertions) {
        eprintln!("note: this build is not optimised; use `cargo run --release -p xtask -- codegen`");
    }
    let folder = crate::root().join("target/codegen");
    let targets: Vec<&str> = match arguments.targets.as_slice() {
        [] => TARGETS.to_vec(),
        given => given.iter().map(String::as_str).collect(),
    };
    let random = folder.join("programs");
    let entries = inputs::all(&random, (&targets, &TEAMS), arguments.random, arguments.quick)?;
    let list = folder.join("list");
    let text = inputs::write(&entries);
    write(&list, &text)?;

    let commit = git(&["rev-parse", "--verify", &format!("{revision}^{{commit}}")])?;
    let there = folder.join(&commit);
    let kernels = kernels(&entries)?;
    let what = match arguments.listing {
        Listing::Wir => "wir",
        Listing::Remarks => "remarks",
        Listing::Llvm => "llvm",
        Listing::Asm => "asm",
    };
    let kept = there.join(format!("{:x}.{what}", Sha256::digest(text + &kernels)));
    if !kept.is_file() {
        let program = build(&commit, &there)?;
        run(&program, &list, &["--to", &kept.to_string_lossy()], what)?;
    }
    let theirs = text_of(&kept)?;
    let ours = hashes(&entries, arguments.listing);
    let theirs: Vec<&str> = theirs.lines().collect();
    if theirs.len() != entries.len() {
        return Err(format!("{} has not a line for each entry; remove it", kept.display()));
    }
    let (mut same, mut unknown, mut different) = (0, 0, Vec::new());
    for (at, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
        match (ours.trim_end(), *theirs) {
            (UNKNOWN, _) | (_, UNKNOWN) => unknown += 1,
            (ours, theirs) if ours == theirs => same += 1,
            _ => different.push(at),
        }
    }
    let short = &commit[..12];
    println!(
        "{same} texts ({what}) are those of {short}, {} differ, {unknown} have a target that one side does not know",
        different.len()
    );
    if different.is_empty() {
        return if same == 0 { Err("nothing was compared".to_owned()) } else { Ok(()) };
    }
    let program = build(&commit, &there)?;
    for at in different.iter().take(arguments.show) {
        let theirs = run(&program, &list, &["--print", &at.to_string()], what)?;
        let ours = self::text(&entries[*at], arguments.listing)?;
        println!("\n{}:\n{}", entries[*at], first_difference(&theirs, &ours));
    }
    different.iter().for_each(|at| eprintln!("differs: {}", entries[*at]));
    Err(format!("{} texts differ from those of {short}", different.len()))
}

/// A hash of the contents of the files of a list.
fn kernels(entries: &[Entry]) -> Result<String, String> {
    let mut files: Vec<&Path> = entries.iter().map(|entry| entry.file.as_path()).collect();
    files.sort();
    files.dedup();
    let mut hash = Sha256::new();
    for file in files {
        hash.update(Sha256::digest(text_of(file)?));
    }
    Ok(format!("{:x}", hash.finalize()))
}

/// The first differing lines; those of the revision have a minus.
fn first_difference(theirs: &str, ours: &str) -> String {
    let (theirs, ours): (Vec<&str>, Vec<&str>) = (theirs.lines().collect(), ours.lines().collect());
    let at = theirs.iter().zip(&ours).take_while(|(a, b)| a == b).count();
    let some = |lines: &[&str], sign: &str| -> String {
        lines.iter().skip(at).take(6).map(|line| format!("  {sign} {line}\n")).collect()
    };
    format!("  line {}:\n{}{}", at + 1, some(&theirs, "-"), some(&ours, "+"))
}

/// The `xtask` of a revision, which is built on first use.
fn build(commit: &str, folder: &Path) -> Result<PathBuf, String> {
    let program = folder.join("xtask");
    if program.is_file() {
        return Ok(program);
    }
    let source = folder.join("source");
    let place = source.to_string_lossy().into_owned();
    if !source.is_dir() {
        git(&["worktree", "add", "--detach", &place, commit])?;
    }
    eprintln!("building {commit}, which takes minutes");
    let built = build_worktree(&source, &program);
    git(&["worktree", "remove", "--force", &place])?;
    built.map_err(|why| format!("{commit}: {why}"))?;
    Ok(program)
}

/// Builds a worktree, and copies its program.
fn build_worktree(source: &Path, program: &Path) -> Result<(), String> {
    let folder = crate::root().join("target/codegen/build");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--release", "--package", "xtask", "--target-dir"]).arg(&folder).current_dir(source);
    let status = cargo.status().map_err(|e| format!("cargo does not start: {e}"))?;
    if !status.success() {
        return Err(format!("it does not build: {status}"));
    }
    std::fs::copy(folder.join("release/xtask"), program)
        .map_err(|e| format!("{}: {e}", program.display()))?;
    Ok(())
}

fn run(program: &Path, list: &Path, more: &[&str], what: &str) -> Result<String, String> {
    let mut command = Command::new(program);
    command.arg("codegen").arg("--list").arg(list).args(more).stderr(std::process::Stdio::inherit());
    if what == "asm" {
        command.arg("--asm");
    }
    let output = command.output().map_err(|e| format!("{}: {e}", program.display()))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("the build of the revision has no `codegen`, or it failed: {}", output.status)),
    }
}

fn git(args: &[&str]) -> Result<String, String> {
    let output = Command::new("git").args(args).current_dir(crate::root()).output();
    let output = output.map_err(|e| format!("git does not start: {e}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

fn text_of(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_equal_from_run_to_run_and_differ_between_targets() {
        let entry = |target: &str| Entry {
            target: target.to_owned(),
            team: None,
            file: crate::root().join("xtask/bench/kernels/saxpy.ptx"),
            kernel: "saxpy".to_owned(),
            block: [256, 1, 1],
        };
        let texts = hashes(&[entry("baseline"), entry("baseline"), entry("none")], Listing::Llvm);
        assert_eq!(texts[0], texts[1]);
        assert_eq!(texts[2].trim_end(), UNKNOWN);
        let code = text(&entry("host:baseline"), Listing::Llvm).expect("every machine has the level");
        assert!(code.contains("define i64 @kernel"), "{code}");
        assert_eq!(texts[0].trim_end(), format!("{:x}", Sha256::digest(&code)));
    }

    #[test]
    fn the_first_difference_is_shown_with_its_line() {
        let shown = first_difference("a\nb\nc\n", "a\nx\nc\n");
        assert_eq!(shown, "  line 2:\n  - b\n  - c\n  + x\n  + c\n");
    }
}
