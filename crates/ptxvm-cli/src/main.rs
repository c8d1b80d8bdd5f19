//! The program `ptxvm`: checks, runs and explains PTX on any CPU.
//!
//! Each subcommand has its own file. Exit statuses are common to all commands ([`Exit`]). A panic is a bug,
//! is reported as one, and exits with 101. Checking and executing PTX is the task of the library `ptxvm`.
#![forbid(unsafe_code)]
// These macros panic if the descriptor is full or its reader has closed it; `print_out` and `print_err` do
// not.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod arg;
mod bind;
mod check;
mod color;
mod demo;
mod doctor;
mod exec;
mod explain;
mod files;
mod fmt;
mod isa;
mod kernels;
mod launch_file;
mod litmus;
mod npy;
mod object;
mod options;
mod output;
mod progress;
mod run;
mod sanitize;
mod shell;
mod suppress;
mod usage;

use clap::Parser;
pub(crate) use color::colors;
use options::{Cli, Command};
pub(crate) use output::{print_err, print_out};
use std::process::ExitCode;
pub(crate) use usage::{UsageError, read_at_most};

/// How a command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done, nothing wrong.
    Done = 0,
    /// The PTX text was rejected.
    Rejected = 1,
    /// Bad usage, or a file that cannot be read or written.
    Usage = 2,
    /// A trap stopped the kernel.
    Trapped = 3,
    /// A sanitizer found something; `--error-exitcode` selects another status.
    Found = 4,
    /// SIGINT stopped the kernel: 128 plus its number, as in shells.
    Interrupted = 128 + 2,
    /// SIGTERM stopped the kernel.
    Terminated = 128 + 15,
}

/// Ends the program with one line if memory is exhausted where no error can be reported.
#[global_allocator]
static ALLOCATOR: ptxvm::EndingAllocator = ptxvm::EndingAllocator;

/// The stack of commands in bytes: the first thread's stack can be small (`ulimit -s`), and parsers recurse
/// up to their limits. Chosen: the deepest allowed nesting needs less than 1 MiB.
const STACK: usize = 16 << 20;
/// The status of a panic.
const PANICKED: u8 = 101;
/// The longest PTX text in bytes. Chosen: far above the output of compilers; reading an endless device must
/// end.
pub(crate) const LONGEST_TEXT: u64 = 1 << 30;

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|info| {
        print_err(&format!(
            "ptxvm bug: {info}\nthis is a mistake in ptxvm, not in your program; please report it with the PTX file, the command line and this text\n"
        ));
    }));
    // A file that exceeds the size limit becomes a write error instead of a fatal signal.
    let grown = std::sync::Arc::default();
    let _as_before = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, grown);
    // The end of this thread ends the process; other threads may compile kernels at that time.
    ptxvm::guard_this_thread();
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(dispatch);
    ExitCode::from(match thread {
        Ok(thread) => thread.join().unwrap_or(PANICKED),
        Err(_) => dispatch(),
    })
}

/// Executes the command line; returns the exit status.
fn dispatch() -> u8 {
    let arguments: Vec<_> = std::env::args_os().collect();
    let exit = match exec::tools::called_as(arguments.first()) {
        Some(tool) => {
            let lossy = |argument: &std::ffi::OsString| argument.to_string_lossy().into_owned();
            tool(&arguments[1..].iter().map(lossy).collect::<Vec<_>>()).map(|exit| exit as u8)
        }
        None if asks_for_version(&arguments) => doctor::version().map(|exit| exit as u8),
        None => match Cli::try_parse() {
            Ok(cli) => {
                color::set_color(cli.color);
                command(cli.command)
            }
            Err(said) => usage(&said),
        },
    };
    exit.unwrap_or_else(|UsageError(message)| {
        print_err(&format!("ptxvm: {message}\n"));
        Exit::Usage as u8
    })
}

/// Whether only the detailed version is requested: clap prints the short version before it parses another
/// option.
fn asks_for_version(arguments: &[std::ffi::OsString]) -> bool {
    let is = |long: &str, short: &str| arguments.iter().skip(1).any(|a| a == long || a == short);
    arguments.len() == 3 && is("--version", "-V") && is("--verbose", "-v")
}

/// Runs a subcommand; its exit status.
fn command(command: Command) -> Result<u8, UsageError> {
    let exit = match command {
        Command::Check(options) => check::check(&options),
        Command::Run(options) => run::run(&options),
        // The user chooses the status for findings.
        Command::Sanitize(options) => return sanitize::sanitize(&options),
        Command::Fmt(options) => fmt::fmt(&options),
        Command::Explain(options) => explain::explain(&options),
        Command::Isa(options) => isa::isa(&options),
        Command::Demo(options) => demo::demo(&options),
        Command::Litmus(options) => litmus::litmus(&options),
        Command::Doctor => doctor::doctor(),
        Command::Completions(options) => shell::completions(&options),
        Command::Man(options) => shell::man(&options),
        // The status of the program.
        Command::Exec(options) => return exec::exec(&options),
    };
    exit.map(|exit| exit as u8)
}

/// Prints help, if requested, or the error in the command line.
fn usage(said: &clap::Error) -> Result<u8, UsageError> {
    let printed = said.print();
    if !said.use_stderr() {
        output::ended(printed)?;
    }
    Ok(said.exit_code() as u8)
}

/// Reads a PTX text; `-` is standard input. Bytes that are not UTF-8 become replacement characters, which the
/// checker reports with their place.
pub(crate) fn read_source(path: &str) -> Result<(String, String), UsageError> {
    let fail = |what: &str, why: std::io::Error| UsageError(format!("cannot read {what}: {why}"));
    let text = |bytes| {
        String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
    };
    if path == "-" {
        let bytes =
            read_at_most(&mut std::io::stdin(), LONGEST_TEXT).map_err(|e| fail("standard input", e))?;
        return Ok(("<stdin>".to_owned(), text(bytes)));
    }
    let file = std::fs::File::open(path);
    let bytes = file.and_then(|mut file| read_at_most(&mut file, LONGEST_TEXT));
    Ok((path.to_owned(), text(bytes.map_err(|e| fail(&format!("`{path}`"), e))?)))
}
