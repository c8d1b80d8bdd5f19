//! `cargo xtask soak`: tests that find more the longer they run, for a night or before a release.
//!
//! The parts, in order: every kernel of the repository and of installed clients through LLVM (`kernels`), the
//! hostile programs (`hostile`), load on the driver API (`stress`), random programs in all engines (`agree`),
//! random programs that trap (`traps`), and the fuzz targets (`fuzz`). The first two run once, the others
//! share the remaining time.
//!
//! `soak kernels --only --kernels FOLDER --rounds N --threads N` compiles the kernels of a folder again and
//! again, several at the same time: for a crash or a wrong result of LLVM that not every compilation shows.
//! `PTXVM_KEEP_PTX` makes a program keep its PTX in such a folder.
//!
//! Invariant: the task fails if any part fails, and reports the work of each part. A part that cannot run
//! here (no cargo-fuzz) is listed as such.

use ptxvm::{AddressSize, Cpu, Kernel, Listing, Vm};
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

const USAGE: &str = "usage: cargo xtask soak [--minutes N] [--seed N] [--kernels FOLDER]... [--only] [--rounds N] [--threads N] [PART...]\n\
                     \n\
                     --minutes: for about so long (60, if not said). --seed: where random programs begin (the time, if not said).\n\
                     --kernels: PTX files to compile besides those of the tests and of `cargo xtask clients`; with --only, no others.\n\
                     --rounds: how often each kernel is compiled (1, if not said); the assembly must always be the same.\n\
                     --threads: how many kernels are compiled at the same time (one for each core, if not said).\n\
                     PARTs: kernels, hostile, stress, agree, traps, fuzz; all, if none is named. Use --release.";

/// The parts, in order.
const PARTS: [&str; 6] = ["kernels", "hostile", "stress", "agree", "traps", "fuzz"];
/// Fraction of the remaining time for `stress`; random programs and fuzz targets get the rest. Chosen.
const STRESS: f64 = 0.2;
const AGREE: f64 = 0.3;
const TRAPS: f64 = 0.1;
/// The most kernels of a text that are all compiled; of larger texts only this many are. Chosen: PTX
/// libraries have thousands.
const KERNELS: usize = 64;
/// The number of texts whose kernels are in memory at the same time. Chosen.
const TEXTS: usize = 64;
/// Threads of a CTA if the text does not specify them. Chosen.
const THREADS: u32 = 128;

/// How long a fuzz target may take for one input, in seconds. More than the 60 for which the target `driver`
/// waits for memory to become free: it reports a leak itself, with the calls.
const TIMEOUT: &str = "-timeout=90";

struct Options {
    time: Duration,
    seed: u64,
    folders: Vec<PathBuf>,
    /// Whether only the texts in `folders` are compiled.
    only: bool,
    /// How often each kernel is compiled.
    rounds: usize,
    /// The number of kernels that are compiled at the same time.
    threads: usize,
    parts: Vec<String>,
}

/// The result of a part.
struct Done {
    part: String,
    took: Duration,
    /// The amount of work, in words.
    what: String,
    outcome: Outcome,
}

enum Outcome {
    Clean,
    /// It cannot run here.
    Absent,
    Found(String),
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = match &self.outcome {
            Outcome::Clean => "clean".to_owned(),
            Outcome::Absent => "not run".to_owned(),
            Outcome::Found(what) => format!("FOUND {what}"),
        };
        write!(f, "{:<18} {:>6} s  {:<8} {}", self.part, self.took.as_secs(), outcome, self.what)
    }
}

fn read(arguments: &[String]) -> Result<Options, String> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let mut options = Options {
        time: Duration::from_secs(3600),
        seed: now.map_or(1, |now| now.as_secs()),
        folders: Vec::new(),
        only: false,
        rounds: 1,
        threads: cores(),
        parts: Vec::new(),
    };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut number =
            || arguments.next().and_then(|text| text.parse::<u64>().ok()).ok_or_else(|| USAGE.to_owned());
        match argument.as_str() {
            "--minutes" => options.time = Duration::from_secs(number()?.saturating_mul(60)),
            "--seed" => options.seed = number()?,
            "--rounds" => options.rounds = usize::try_from(number()?.max(1)).map_err(|_| USAGE)?,
            "--threads" => options.threads = usize::try_from(number()?.max(1)).map_err(|_| USAGE)?,
            "--only" => options.only = true,
            "--kernels" => options.folders.push(arguments.next().ok_or(USAGE)?.into()),
            part if PARTS.contains(&part) => options.parts.push(part.to_owned()),
            _ => return Err(USAGE.to_owned()),
        }
    }
    Ok(options)
}

/// Runs the parts, and fails if one of them fails.
pub(crate) fn soak(arguments: &[String]) -> Result<(), String> {
    let options = read(arguments)?;
    let wanted = |part: &str| options.parts.is_empty() || options.parts.iter().any(|named| named == part);
    let begin = Instant::now();
    let mut done = Vec::new();
    if wanted("kernels") {
        done.push(kernels(&options));
    }
    if wanted("hostile") {
        done.push(cargo_test("hostile", &["-p", "ptxvm-cli", "--test", "hostile"], &[]));
    }
    let left = options.time.saturating_sub(begin.elapsed());
    if wanted("stress") {
        let seconds = left.mul_f64(STRESS).as_secs().max(1).to_string();
        done.push(cargo_test(
            "stress",
            &["-p", "ptxvm-cuda", "--test", "stress"],
            &[("PTXVM_STRESS_SECONDS", &seconds)],
        ));
    }
    if wanted("agree") {
        done.push(agree("agree", &[], options.seed, left.mul_f64(AGREE)));
    }
    if wanted("traps") {
        done.push(agree("traps", &["--traps"], options.seed, left.mul_f64(TRAPS)));
    }
    if wanted("fuzz") {
        fuzz(options.time.saturating_sub(begin.elapsed()), &mut done);
    }
    let found = done.iter().filter(|done| matches!(done.outcome, Outcome::Found(_))).count();
    println!("\nseed {}, {} s", options.seed, begin.elapsed().as_secs());
    done.iter().for_each(|done| println!("{done}"));
    if found == 0 { Ok(()) } else { Err(format!("{found} parts found something")) }
}

/// Times a part.
fn part(name: &str, run: impl FnOnce() -> (String, Outcome)) -> Done {
    eprintln!("── {name}");
    let begin = Instant::now();
    let (what, outcome) = run();
    Done { part: name.to_owned(), took: begin.elapsed(), what, outcome }
}

/// Compiles every kernel of every text for every level of instructions to assembly; LLVM verifies its input.
fn kernels(options: &Options) -> Done {
    part("kernels", || {
        let root = crate::root();
        let mut files = Vec::new();
        let own: &[&str] = match options.only {
            true => &[],
            false => &[
                "tests/fixtures",
                "tests/agree",
                "tests/language",
                "xtask/bench/kernels",
                "target/clients/kernels",
            ],
        };
        let folders = own.iter().map(|folder| root.join(folder)).chain(options.folders.iter().cloned());
        folders.for_each(|folder| texts_in(&folder, &mut files));
        files.sort();
        let vms: Vec<Vm> = [Cpu::Avx512, Cpu::Avx2, Cpu::Baseline]
            .into_iter()
            .filter_map(|cpu| Vm::with_cpu(AddressSize::Bits64, Some(cpu)).ok())
            .collect();
        let mut total = Compiled::default();
        for files in files.chunks(TEXTS) {
            compile_texts(options, &vms, files, &mut total);
        }
        let Compiled { texts, kernels, compilations, refused, wrong } = total;
        let what = format!(
            "{texts} of {} texts accepted, {} kernels compiled, {compilations} compilations, {refused} kernels not; \
             each level of instructions counts",
            files.len(),
            kernels - refused
        );
        match wrong.is_empty() {
            true => (what, Outcome::Clean),
            false => (what, Outcome::Found(wrong.join("\n"))),
        }
    })
}

/// The results of compilations.
#[derive(Default)]
struct Compiled {
    /// The texts that are accepted and have kernels.
    texts: usize,
    /// The kernels, counted once for each level of instructions.
    kernels: usize,
    compilations: usize,
    /// The kernels that are not compiled, for a reason that the compiler gives.
    refused: usize,
    /// The compilations that show a defect of the compiler.
    wrong: Vec<String>,
}

/// A kernel that is compiled for one level of instructions.
struct Job {
    kernel: Kernel,
    text: PathBuf,
    /// The result of the compilation that was done first: the hash of the assembly, or the error.
    first: OnceLock<Result<u64, String>>,
}

/// Compiles the kernels of some texts: all of them once, then all of them again.
fn compile_texts(options: &Options, vms: &[Vm], files: &[PathBuf], total: &mut Compiled) {
    let load = |at: usize| {
        let (file, vm) = (&files[at / vms.len()], &vms[at % vms.len()]);
        std::fs::read_to_string(file).map(|text| kernels_of(vm, file, &text)).unwrap_or_default()
    };
    let loaded = in_parallel(options.threads, files.len() * vms.len(), load);
    let panicked = || "a panic, which is shown above".to_owned();
    total.wrong.extend(loaded.iter().filter(|loaded| loaded.is_none()).map(|_| panicked()));
    let jobs: Vec<Job> = loaded.into_iter().flatten().flatten().collect();
    let compile = |at: usize| {
        let Job { kernel, text, first } = &jobs[at % jobs.len()];
        let result = compile(kernel);
        let known = first.get_or_init(|| result.clone());
        let what = match (&result, known) {
            (Err(why), _) if why.contains("ptxvm bug") => why,
            _ if result == *known => return None,
            (Ok(_), Ok(_)) => "the assembly differs from that of another compilation",
            (Err(why), Ok(_)) | (Ok(_), Err(why)) | (Err(why), Err(_)) => why,
        };
        Some(format!("{} {}: {what}", text.display(), kernel.name()))
    };
    let count = jobs.len() * options.rounds;
    for result in in_parallel(options.threads, count, compile) {
        match result {
            Some(None) => {}
            Some(Some(wrong)) => total.wrong.push(wrong),
            None => total.wrong.push(panicked()),
        }
    }
    total.texts += files.iter().filter(|file| jobs.iter().any(|job| job.text == **file)).count();
    total.kernels += jobs.len();
    let refused = jobs.iter().filter(|job| matches!(job.first.get(), Some(Err(_)))).count();
    total.refused += refused;
    total.compilations += (jobs.len() - refused) * options.rounds;
}

/// The kernels of a text on a device; none if the text is not accepted.
fn kernels_of(vm: &Vm, file: &Path, text: &str) -> Vec<Job> {
    let Ok(module) = vm.load(&file.to_string_lossy(), text) else { return Vec::new() };
    let kernel = |name| module.kernel(name).ok();
    let job = |kernel| Job { kernel, text: file.to_owned(), first: OnceLock::new() };
    module.kernels().take(KERNELS).filter_map(kernel).map(job).collect()
}

/// Does a number of tasks on several threads at the same time. `None` stands for a task that panicked.
fn in_parallel<T: Send>(threads: usize, count: usize, task: impl Fn(usize) -> T + Sync) -> Vec<Option<T>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut results = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count {
                return results;
            }
            results.push(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| task(at))).ok());
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        // A task's panic is caught, so a thread does not panic.
        threads.into_iter().filter_map(|thread| thread.join().ok()).flatten().collect()
    })
}

/// The number of tasks that run at the same time.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Compiles a kernel to assembly; returns its hash.
fn compile(kernel: &Kernel) -> Result<u64, String> {
    let resources = kernel.resources();
    let block =
        resources.required_block.unwrap_or([resources.max_threads.unwrap_or(THREADS).min(1024), 1, 1]);
    let text = kernel.listing(block, Listing::Asm).map_err(|error| error.to_string())?;
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    Ok(hasher.finish())
}

fn texts_in(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            texts_in(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "ptx") {
            files.push(path);
        }
    }
}

/// Random programs in all engines.
fn agree(name: &str, more: &[&str], seed: u64, time: Duration) -> Done {
    part(name, || {
        let (first, count) = (seed.to_string(), (u64::MAX >> 16).to_string());
        let seconds = time.as_secs().to_string();
        let limits = ["--seed", &first, "--count", &count, "--seconds", &seconds];
        let arguments: Vec<String> = limits.iter().chain(more).map(|&word| word.to_owned()).collect();
        let what = format!("random programs from seed {seed}, counted above");
        match crate::agree::agree(&arguments) {
            Ok(()) => (what, Outcome::Clean),
            Err(why) => (what, Outcome::Found(why)),
        }
    })
}

/// Tests of the workspace in release mode.
fn cargo_test(name: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Done {
    part(name, || {
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args(["test", "--release"])
            .args(arguments)
            .envs(variables.iter().copied())
            .current_dir(crate::root());
        let what = arguments.join(" ");
        match cargo.status() {
            Ok(status) if status.success() => (what, Outcome::Clean),
            Ok(status) => (what, Outcome::Found(format!("{status}"))),
            Err(error) => (what, Outcome::Found(format!("cargo test does not start: {error}"))),
        }
    })
}

/// The end of the output of a fuzz target that found something, from the message of its panic if there is
/// one.
fn finding(output: &str) -> String {
    let start = output.rfind("panicked at").map_or(0, |at| output[..at].rfind('\n').unwrap_or(0));
    // The backtrace follows the message, and the name of the input is last.
    let lines: Vec<&str> = output[start..].lines().collect();
    match lines.len() {
        0..=60 => lines.join("\n"),
        count => [&lines[..30], &["..."], &lines[count - 30..]].concat().join("\n"),
    }
}

/// The fuzz targets, if cargo-fuzz and a nightly compiler are installed: each gets the same time, and each
/// core runs one at a time.
fn fuzz(time: Duration, done: &mut Vec<Done>) {
    let folder = crate::root().join("fuzz");
    let cargo = |arguments: &[&str]| {
        let mut cargo = Command::new("cargo");
        // Cargo passes its toolchain to child processes; the workspace of the fuzz targets needs another.
        cargo.env_remove("RUSTUP_TOOLCHAIN").arg("+nightly").args(arguments).current_dir(&folder);
        cargo
    };
    let begin = Instant::now();
    let listed = cargo(&["fuzz", "list"]).output();
    let targets = match listed {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).into_owned(),
        Ok(_) | Err(_) => {
            done.push(part("fuzz", || {
                ("needs `cargo install cargo-fuzz` and a nightly toolchain".to_owned(), Outcome::Absent)
            }));
            return;
        }
    };
    let targets: Vec<&str> = targets.lines().collect();
    let _corpora = cargo(&["run", "--release", "--example", "seed"]).status();
    // To build is not part of any target's time.
    let _built = cargo(&["fuzz", "build", "-s", "none"]).status();
    let rounds = targets.len().div_ceil(cores()).max(1);
    let left = time.saturating_sub(begin.elapsed()).as_secs() / rounds as u64;
    let seconds = format!("-max_total_time={}", left.max(1));
    let run = |target: &str| {
        let options = [
            "fuzz",
            "run",
            target,
            "-s",
            "none",
            "--",
            &*seconds,
            "-max_len=16384",
            TIMEOUT,
            "-print_final_stats=1",
        ];
        let output = match cargo(&options).output() {
            Ok(output) => output,
            Err(error) => return (String::new(), Outcome::Found(format!("does not start: {error}"))),
        };
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let executions =
            said.lines().rev().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
        let what = format!("{} executions", executions.unwrap_or("?").trim());
        if output.status.success() {
            return (what, Outcome::Clean);
        }
        (what, Outcome::Found(finding(&said)))
    };
    let next = AtomicUsize::new(0);
    let found = Mutex::new(done);
    let work = || {
        while let Some(target) = targets.get(next.fetch_add(1, Ordering::Relaxed)) {
            let result = part(&format!("fuzz {target}"), || run(target));
            found.lock().unwrap_or_else(PoisonError::into_inner).push(result);
        }
    };
    std::thread::scope(|scope| (0..cores()).for_each(|_| drop(scope.spawn(work))));
}
