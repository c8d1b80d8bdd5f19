//! Sanitizers of a program's kernels, and their findings (`ptxvm exec --tool`).
//!
//! The tools watch the virtual machine. This module adds mistakes of the program's calls (memory that is
//! freed twice, copies of freed memory), memory that the program never frees, and the output of findings.
//! Each finding is written to the journal of `ptxvm exec` as soon as it is found, so that it is not lost if
//! the program dies, and printed when its launch, or the call that found it, has ended. Without `ptxvm exec`
//! (`PTXVM_TOOL` alone) the report is written here.
//!
//! Memory that the program has allocated and not freed is a leak when its context is destroyed, and when the
//! process ends by `exit` or by returning from `main`. A process that ends by `_exit`, a signal or `exec`
//! reports no leaks.
//!
//! Invariants: a forked child reports nothing of its parent. Nothing here fails, or lets a call of the
//! program fail.

use crate::environment::read;
use crate::handles::Handle;
use crate::log;
use ptxvm::{Fill, Options, SanitizeOptions, Suppressions, Tool, Vm, journal};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long the end of a process waits for work of streams. Chosen: kernels of tests end sooner, and an
/// endless kernel must not delay the end of the process.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long it waits for a lock, whose holder may be gone.
const LOCKED: Duration = Duration::from_secs(1);

/// Where findings go.
pub(crate) struct Tools {
    process: String,
    journal: Option<PathBuf>,
    report: Option<PathBuf>,
    /// Findings that were printed.
    told: Mutex<BTreeSet<usize>>,
    /// Whether something was found that was not printed.
    news: Arc<AtomicBool>,
    /// Arrays that were destroyed.
    arrays: Mutex<BTreeSet<Handle>>,
}

thread_local! {
    /// The call that the thread is in.
    static CALL: Cell<&'static str> = const { Cell::new("") };
}

/// Notes which call the thread is in, for findings.
pub(crate) fn calls(name: &'static str) {
    CALL.set(name);
}

/// The call that the thread is in, by the name that programs use.
pub(crate) fn call() -> &'static str {
    let name = CALL.get();
    if name == "ptxvmReach" {
        return "a call of cuBLAS";
    }
    ["_ptsz", "_ptds", "_v2", "_v3"]
        .into_iter()
        .fold(name, |name, end| name.strip_suffix(end).unwrap_or(name))
}

/// Adds the sanitizers and the pattern of memory that the environment asks for.
pub(crate) fn add_to(options: &mut Options) {
    options.fill = read("PTXVM_FILL", |text| Fill::parse(text).ok());
    let tools = read("PTXVM_TOOL", |text| Tool::parse_list(text).ok());
    let Some(tools) = tools.filter(|tools| !tools.is_empty()) else { return };
    let mut sanitize = SanitizeOptions::new(tools);
    // The program goes on when as many were found as are recorded.
    sanitize.stops = false;
    let most = read("PTXVM_MAX_FINDINGS", |text| text.parse().ok().filter(|n| *n > 0));
    sanitize.max_findings = most.unwrap_or(sanitize.max_findings);
    if let Some(file) = path("PTXVM_SUPPRESSIONS") {
        match suppressions(&file) {
            Ok(rules) => sanitize.suppressions = rules,
            Err(why) => log::say(&format!("ptxvm: ignored suppressions: {}: {why}", file.display())),
        }
    }
    options.sanitize = Some(sanitize);
}

fn path(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from)
}

fn suppressions(file: &Path) -> Result<Suppressions, String> {
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    Suppressions::parse(&text).map_err(|error| error.to_string())
}

impl Tools {
    /// Takes what the sanitizers of a device find; `None` without sanitizers.
    pub(crate) fn of(vm: &Vm) -> Option<Self> {
        let sanitizer = vm.sanitizer()?;
        static MADE: AtomicU32 = AtomicU32::new(0);
        let began = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let tools = Self {
            process: format!("{}-{began}-{number}", std::process::id()),
            journal: path("PTXVM_FINDINGS"),
            report: path("PTXVM_REPORT"),
            told: Mutex::default(),
            news: Arc::default(),
            arrays: Mutex::default(),
        };
        let (news, process, journal) =
            (Arc::clone(&tools.news), tools.process.clone(), tools.journal.clone());
        sanitizer.on_finding(move |number, finding| {
            news.store(true, Ordering::Relaxed);
            if let Some(file) = &journal {
                write(file, &journal::finding(&process, number, false, finding));
            }
        });
        Some(tools)
    }

    /// Prints what was found since, and brings the journal up to date.
    pub(crate) fn settle(&self, vm: &Vm) {
        let Some(sanitizer) = vm.sanitizer() else { return };
        self.news.store(false, Ordering::Relaxed);
        for (number, finding) in sanitizer.changes() {
            let new = self.told.lock().unwrap_or_else(PoisonError::into_inner).insert(number);
            if new {
                log::say(&(ptxvm::finding_text(&finding) + "\n"));
            }
            if let Some(file) = &self.journal {
                write(file, &journal::finding(&self.process, number, true, &finding));
            } else if let Some(file) = self.report.as_ref().filter(|_| new) {
                let (before, behind) = ptxvm::finding_json_parts(&finding);
                write(file, &format!("{before}{}{behind}\n", finding.count));
            }
        }
    }
}

impl Tools {
    /// As [`Tools::settle`], at the end of a call: if something was found, and no launch runs that has not
    /// told all yet.
    pub(crate) fn settle_idle(&self, vm: &Vm) {
        let news = self.news.load(Ordering::Relaxed);
        if news && vm.sanitizer().is_some_and(|sanitizer| sanitizer.watch().rests(Duration::ZERO)) {
            self.settle(vm);
        }
    }

    /// Notes that an array was destroyed.
    pub(crate) fn destroyed(&self, array: Handle) {
        self.arrays().insert(array);
    }

    /// Whether an array was destroyed that had this handle.
    pub(crate) fn had(&self, array: Handle) -> bool {
        self.arrays().contains(&array)
    }

    fn arrays(&self) -> MutexGuard<'_, BTreeSet<Handle>> {
        self.arrays.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end of a process: leaks are found, and what was not told is.
#[derive(Default)]
pub(crate) struct Ending {
    errors: usize,
    suppressed: usize,
    report: Option<(String, Option<PathBuf>, Option<PathBuf>)>,
}

impl Ending {
    /// Ends the sanitizers of a device.
    pub(crate) fn of(&mut self, tools: &Tools, vm: &Vm, find_leaks: impl Fn()) {
        let Some(sanitizer) = vm.sanitizer() else { return };
        if sanitizer.watch().rests(LOCKED) {
            find_leaks();
            sanitizer.end();
        }
        tools.settle(vm);
        self.errors += sanitizer.findings().len();
        self.suppressed += sanitizer.suppressed();
        self.report = Some((tools.process.clone(), tools.journal.clone(), tools.report.clone()));
    }

    /// Writes the summary, unless `ptxvm exec` does.
    pub(crate) fn summary(self) {
        let Self { errors, suppressed, report } = self;
        match report {
            Some((process, Some(file), _)) if suppressed > 0 => {
                write(&file, &journal::suppressed(&process, suppressed));
            }
            Some((_, None, file)) => {
                log::say(&ptxvm::findings_summary(errors, suppressed));
                if let Some(file) = file {
                    write(&file, &ptxvm::findings_json_summary(errors, suppressed));
                }
            }
            Some((_, Some(_), _)) | None => {}
        }
    }
}

fn write(file: &Path, lines: &str) {
    static FAILED: std::sync::Once = std::sync::Once::new();
    if let Err(error) = journal::append(file, lines) {
        FAILED.call_once(|| log::say(&format!("ptxvm: cannot write `{}`: {error}", file.display())));
    }
}

/// Waits for the work of all streams, but not for ever. Whether it is done.
pub(crate) fn waits_for_streams(vm: &'static Vm) -> bool {
    let (done, wait) = std::sync::mpsc::channel();
    let waiting = std::thread::Builder::new().spawn(move || {
        vm.synchronize();
        let _nobody_waits_any_more = done.send(());
    });
    waiting.is_ok() && wait.recv_timeout(PATIENCE).is_ok()
}
