//! `ptxvm run`: one kernel of one file, with arguments from the command line.
//!
//! Invariant: a kernel is launched only after the module is accepted and every argument fits its parameter.
//! Output files are written only after the launch (the last one, with `--repeat`) has ended without a trap.

use crate::arg::Arg;
use crate::bind::{Bound, Given};
use crate::launch_file::LaunchFile;
use crate::options::{Format, RunOptions, gpu_name};
use crate::progress::{Interrupt, watched};
use crate::{Exit, UsageError};
use ptxvm::{CodeCache, CodeSource, ErrorKind, FaultKind, Launch, Report, SideExits, Trap, Vm};
use serde_json::{Value, json};

/// How many kinds of side exits the statistics show one by one.
const SHOWN_SIDE_EXITS: usize = 8;

/// Runs the kernel.
pub(crate) fn run(options: &RunOptions) -> Result<Exit, UsageError> {
    let texts = texts(options)?;
    Ok(attempt(options, &texts, options.seed, None)?.exit)
}

/// The PTX texts, each with its name.
pub(crate) fn texts(options: &RunOptions) -> Result<Vec<(String, String)>, UsageError> {
    let files = std::iter::once(&options.file).chain(&options.links);
    files.map(|file| crate::read_source(file)).collect()
}

/// The result of one run of the kernel.
pub(crate) struct Attempt {
    /// The exit status of the command.
    pub(crate) exit: Exit,
    /// The findings of sanitizers.
    pub(crate) findings: Vec<ptxvm::Finding>,
    /// How many other findings suppressions cover.
    pub(crate) suppressed: usize,
}

impl Attempt {
    fn ended(exit: Exit) -> Self {
        Self { exit, findings: Vec::new(), suppressed: 0 }
    }
}

/// The attached sanitizers, and whether this is the first of several runs.
pub(crate) struct Watched<'a> {
    pub(crate) sanitize: &'a ptxvm::SanitizeOptions,
    pub(crate) first: bool,
}

/// Runs the kernel on a new device.
pub(crate) fn attempt(
    options: &RunOptions,
    texts: &[(String, String)],
    seed: u64,
    sanitizers: Option<&Watched<'_>>,
) -> Result<Attempt, UsageError> {
    let file = options.launch.as_deref().map(LaunchFile::read).transpose()?.unwrap_or_default();
    let given = given(options, file.given)?;
    let gpu_name = gpu_name(options.gpu_name.as_deref())?;
    let texts: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let checked = ptxvm::link(&texts, &ptxvm::CheckOptions { gpu_name, strict: options.strict });
    if sanitizers.is_none_or(|watched| watched.first) {
        crate::check::print_diagnostics(&checked, Format::Human, options.max_errors);
    }
    let Some(module) = checked.module else {
        return Ok(Attempt::ended(Exit::Rejected));
    };
    let cache = if options.no_cache { CodeCache::Off } else { CodeCache::from_environment() };
    let sanitize = sanitizers.map(|watched| watched.sanitize.clone());
    let vm = Vm::with(ptxvm::Options {
        addresses: module.address_size,
        target: options.cpu,
        team: options.team,
        cache,
        sanitize,
        fill: options.fill.clone(),
        ..ptxvm::Options::default()
    })?;
    let module = match vm.load_module(module) {
        Ok(module) => module,
        Err(error) => match error.kind() {
            ErrorKind::Rejected(diagnostics) => {
                for diagnostic in diagnostics {
                    crate::print_err(&ptxvm::render(diagnostic, &checked.source, crate::colors()));
                }
                return Ok(Attempt::ended(Exit::Rejected));
            }
            ErrorKind::Trap(..) | ErrorKind::Caller(_) | ErrorKind::Machine(_) => return Err(error.into()),
        },
    };
    if options.list {
        crate::kernels::list(&module, options.format)?;
        return Ok(Attempt::ended(Exit::Done));
    }
    let kernel = module.kernel_or_only(options.kernel.as_deref().or(file.kernel.as_deref()))?;
    if let Some(what) = options.emit {
        let block = options.block.or(file.block).or_else(|| kernel.resources().required_block);
        crate::print_out(&kernel.listing(block.unwrap_or([1; 3]), what.into())?)?;
        return Ok(Attempt::ended(Exit::Done));
    }
    let bound = Bound::new(&vm, &module, &kernel, &given)?;
    bound.warnings.iter().for_each(|warning| crate::print_err(warning));
    let grid = options.grid.or(file.grid).unwrap_or([1; 3]);
    let block = options.block.or(file.block).unwrap_or([1; 3]);
    let mut launch = Launch::new(grid, block).seed(seed).engine(options.engine.into());
    launch.shared = options.shared.or(file.shared).unwrap_or(0);
    launch.threads = options.threads;
    launch.max_steps = options.max_steps;
    launch.timeout = options.timeout;
    launch.params = bound.params.clone();
    if let Some((cta, thread)) = options.trace_thread {
        launch.trace = Some(trace(cta, thread, (grid, block))?);
    }

    let interrupt = Interrupt::new()?;
    launch.cancel = Some(interrupt.flag());
    let quiet = sanitizers.is_some() && options.format == Format::Json;
    let mut session = Session {
        options,
        kernel: kernel.name().to_owned(),
        reports: Vec::new(),
        trap: None,
        quiet,
        remarks: None,
    };
    let mut room = options.max_output;
    for _ in 0..options.repeat {
        launch.output_limit = room;
        match watched(&vm, &kernel, &mut launch) {
            Ok(report) => {
                room = if report.dropped > 0 { 0 } else { room.saturating_sub(report.output.len() as u64) };
                session.reports.push(report);
            }
            Err(error) => match error.into_kind() {
                ErrorKind::Trap(trap, report) => {
                    session.reports.push(report);
                    session.trap = Some(*trap);
                    break;
                }
                other @ (ErrorKind::Rejected(_) | ErrorKind::Caller(_) | ErrorKind::Machine(_)) => {
                    return Err(other.into());
                }
            },
        }
    }
    let signal = interrupt.end();
    if let Some(why) = session.reports.iter().find_map(|report| report.ran.no_compiler.as_ref()) {
        crate::print_err(&format!(
            "ptxvm: note: the kernel ran in the interpreter, many times slower than native code: {why}; `ptxvm doctor` says more\n"
        ));
    }
    if signal.is_none() && vm.findings_are_full() {
        // The sanitizers stopped the launch.
        let _stopped = session.trap.take_if(|trap| matches!(trap.kind, FaultKind::Cancelled));
    }
    if options.stats && session.engine() == "jit" {
        session.remarks = kernel.listing(block, ptxvm::Listing::Remarks).ok();
    }
    let printed = session.print();
    let mut exit = Exit::Done;
    match (&session.trap, signal) {
        (Some(trap), Some(signal)) if matches!(trap.kind, FaultKind::Cancelled) => {
            let done = session.reports.last().map_or(0, |report| report.ctas);
            crate::print_err(&format!("ptxvm: interrupted after {done} of {} CTAs\n", launch.ctas()));
            exit = signal;
        }
        (Some(_), _) => exit = Exit::Trapped,
        (None, _) => {
            bound.write_back(&vm)?;
            printed?;
        }
    }
    vm.find_leaks();
    Ok(Attempt { exit, findings: vm.findings(), suppressed: vm.suppressed_findings() })
}

/// Prints each instruction of a thread on standard error.
fn trace(
    cta: [u32; 3],
    thread: [u32; 3],
    (grid, block): ([u32; 3], [u32; 3]),
) -> Result<ptxvm::Trace, UsageError> {
    let outside = |place: [u32; 3], extent: [u32; 3]| place.iter().zip(extent).any(|(at, end)| *at >= end);
    if outside(cta, grid) || outside(thread, block) {
        return Err(format!(
            "the launch has no thread {thread:?} in a CTA {cta:?}: the grid is {grid:?}, a CTA {block:?}"
        )
        .into());
    }
    Ok(ptxvm::Trace::new(cta, thread, |step| {
        let registers: Vec<String> =
            step.registers.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        let not = if step.executed { "" } else { " (not executed)" };
        let place = format!("{}:{}", step.file, step.line);
        crate::print_err(&format!("{place}: {}{not}  {}\n", step.instruction, registers.join(", ")));
    }))
}

/// Combines the launch file and the command line: bindings and texels of both, arguments of one of them.
fn given(options: &RunOptions, mut given: Given) -> Result<Given, UsageError> {
    if !options.args.is_empty() && !given.args.is_empty() {
        return Err("arguments are given in the launch file and with --arg".into());
    }
    for text in &options.args {
        given.args.push(Arg::parse(text)?);
    }
    for text in &options.binds {
        given.bind(text)?;
    }
    for text in &options.texels {
        given.texels(text)?;
    }
    Ok(given)
}

/// The state for the report.
struct Session<'a> {
    options: &'a RunOptions,
    kernel: String,
    reports: Vec<Report>,
    trap: Option<Trap>,
    /// Whether standard output is reserved: the kernel's output then goes to standard error.
    quiet: bool,
    /// With `--stats`: what became of the compiler's decisions, line by line.
    remarks: Option<String>,
}

impl Session<'_> {
    fn print(&self) -> Result<(), UsageError> {
        let output: Vec<u8> = self.reports.iter().flat_map(|r| r.output.iter().copied()).collect();
        let output = String::from_utf8_lossy(&output);
        if let Some(trap) = &self.trap {
            crate::print_err(&ptxvm::trap_report(trap));
        }
        let printed = match self.options.format {
            _ if self.quiet => {
                crate::print_err(&output);
                Ok(())
            }
            Format::Human => crate::print_out(&output),
            Format::Json => crate::print_out(&format!("{}\n", self.json(&output))),
        };
        let dropped: u64 = self.reports.iter().map(|r| r.dropped).sum();
        if dropped > 0 {
            let limit = self.options.max_output;
            crate::print_err(&format!(
                "ptxvm: {dropped} bytes that the kernel printed are lost: more than `--max-output {limit}`, or in one call than 4 MiB\n"
            ));
        }
        if self.options.stats {
            crate::print_err(&self.stats());
        }
        printed
    }

    /// The engine of the last launch.
    fn engine(&self) -> &'static str {
        if self.reports.last().is_some_and(|r| r.ran.native) { "jit" } else { "interp" }
    }

    /// The origin of the native code, with its time.
    fn source(&self) -> Option<CodeSource> {
        let mut sources = self.reports.iter().filter_map(|r| r.ran.source);
        sources.find(|source| *source != CodeSource::Kernel)
    }

    fn compile_ms(&self) -> f64 {
        self.reports.iter().map(|r| r.ran.compiled.as_secs_f64() * 1e3).sum()
    }

    fn code(&self) -> String {
        let ms = self.compile_ms();
        match self.source() {
            None | Some(CodeSource::Compiled | CodeSource::Kernel) => format!("compiled in {ms:.1} ms"),
            Some(CodeSource::Background) => format!("compiled in the background in {ms:.1} ms"),
            Some(CodeSource::Memory) => format!("code from memory in {ms:.2} ms"),
            Some(CodeSource::Disk) => format!("code from disk in {ms:.2} ms"),
        }
    }

    fn launch_ms(&self) -> Vec<f64> {
        self.reports.iter().map(|r| r.elapsed.as_secs_f64() * 1e3).collect()
    }

    fn json(&self, output: &str) -> Value {
        let mut object = json!({
            "kernel": self.kernel,
            "engine": self.engine(),
            "status": if self.trap.is_some() { "trap" } else { "ok" },
            "trap": self.trap.as_ref().map(trap_json),
            "launch_ms": self.launch_ms(),
            "compile_ms": self.compile_ms(),
            "code": self.source().map(source_word),
            "output": output,
            "output_dropped": self.reports.iter().map(|r| r.dropped).sum::<u64>(),
        });
        if self.options.stats {
            object["stats"] = self.reports.last().map_or(Value::Null, |r| {
                json!({ "warp_instructions": r.warp_instructions, "thread_instructions": r.thread_instructions, "threads": r.threads, "ctas": r.ctas, "prof_trigger": r.events, "cache_refused": r.ran.refused_folder })
            });
            let exits = self.reports.last().map_or(&[][..], |r| &r.ran.side_exits);
            object["stats"]["side_exits"] = exits.iter().map(side_exits_json).collect();
            let remarks = self.remarks.iter().flat_map(|remarks| remarks.lines());
            object["stats"]["remarks"] = remarks.map(Value::from).collect();
        }
        object
    }

    fn stats(&self) -> String {
        use std::fmt::Write as _;
        let mut text = format!("kernel {}: engine {}", self.kernel, self.engine());
        if let Some(ran) = self.reports.last().map(|r| &r.ran) {
            if let Some(why) = ran.not_native(self.options.engine.into()) {
                let _infallible = write!(text, " (not compiled: {why})");
            }
            if ran.native {
                let _infallible = write!(
                    text,
                    ", {}, {} warp instructions in native code, {} of them by the interpreter's functions",
                    self.code(),
                    ran.native_instructions,
                    ran.fallback_instructions
                );
            }
            if ran.scalar {
                text.push_str("\n  scalar code: one thread at a time");
            }
            if ran.unoptimised {
                text.push_str("\n  the code is large, and compiled without optimisation so far");
            }
            for (name, count) in &ran.fallbacks {
                let _infallible = write!(text, "\n  no native code: {name} ({count})");
            }
            let (first, others) = ran.side_exits.split_at(ran.side_exits.len().min(SHOWN_SIDE_EXITS));
            for exits in first {
                let _infallible = write!(text, "\n  interpreter: {exits}");
            }
            if !others.is_empty() {
                let sum: u64 = others.iter().map(|exits| exits.count).sum();
                let _infallible =
                    write!(text, "\n  interpreter: at {} more places: {sum} times", others.len());
            }
            for name in &ran.interpreted_functions {
                let _infallible = write!(text, "\n  no native code: device function `{name}`");
            }
            if let Some(why) = &ran.refused_folder {
                let _infallible = write!(text, "\n  code is not kept on disk: {why}");
            }
        }
        text.push('\n');
        for line in self.remarks.iter().flat_map(|remarks| remarks.lines()) {
            let _infallible = writeln!(text, "  {line}");
        }
        for (index, report) in self.reports.iter().enumerate() {
            let seconds = report.elapsed.as_secs_f64();
            let rate = report.thread_instructions as f64 / seconds / 1e6;
            let _infallible = writeln!(
                text,
                "launch {index}: {:.3} ms on {} threads, {} warp instructions, {} thread instructions, {rate:.0} million/s",
                seconds * 1e3,
                report.threads,
                report.warp_instructions,
                report.thread_instructions,
            );
            for (event, count) in report.events.iter().enumerate().filter(|(_, count)| **count > 0) {
                let _infallible = writeln!(text, "  prof_trigger_{event:02}: {count}");
            }
        }
        text
    }
}

fn source_word(source: CodeSource) -> &'static str {
    match source {
        CodeSource::Compiled | CodeSource::Kernel => "compiled",
        CodeSource::Background => "background",
        CodeSource::Memory => "memory",
        CodeSource::Disk => "disk",
    }
}

fn side_exits_json(exits: &SideExits) -> Value {
    let SideExits { lines, instruction, cause, scope, count } = exits;
    json!({
        "lines": lines,
        "instruction": instruction,
        "cause": cause.word(),
        "scope": scope.word(),
        "count": count,
    })
}

fn trap_json(trap: &Trap) -> Value {
    json!({
        "kind": trap.kind.word(),
        "message": trap.to_string().lines().next().unwrap_or_default(),
        "kernel": trap.kernel,
        "demangled": ptxvm::demangle(&trap.kernel),
        "function": trap.function,
        "file": trap.file,
        "line": trap.line,
        "instruction": trap.instruction,
        "source": trap.source.as_ref().map(|(file, line)| json!({ "file": file, "line": line })),
        "ctaid": trap.ctaid,
        "tid": trap.tid,
        "warp": trap.warp,
        "lane": trap.lane,
        "address": trap.access.as_ref().map(|a| format!("{:#x}", a.address)),
        "bytes": trap.access.as_ref().map(|a| a.bytes),
        "space": trap.access.as_ref().map(|a| a.space.name()),
        "access": trap.access.as_ref().map(|a| if a.write { "write" } else { "read" }),
        "nearest": trap.nearest,
        "registers": trap.registers.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect::<serde_json::Map<_, _>>(),
        "ptx": trap.ptx.iter().map(|(line, text)| json!({ "line": line, "text": text })).collect::<Vec<_>>(),
        "lanes": trap.lanes,
    })
}
