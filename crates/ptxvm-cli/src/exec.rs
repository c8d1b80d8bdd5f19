//! `ptxvm exec`: runs any CUDA program on the CPU.
//!
//! The program is started with our libraries first on its library path, with stand-ins for the tools that its
//! libraries call, and with variables that make those libraries produce PTX. All of this is in a folder that
//! is removed when the program has ended.
//!
//! A program with a statically linked runtime, as nvcc makes by default, uses our runtime too: a preloaded
//! library redirects its functions (`ptxvm-preload`).
//!
//! Invariant: a variable that the user has set keeps its value, except for lists, to which our entries are
//! added. The exit status is that of the program, unless tools have found something in it. Not supported: a
//! runtime inside a program whose symbols are stripped asks the driver to prove its vendor, which ours does
//! not.

mod clients;
mod findings;
pub(crate) mod folder;
pub(crate) mod nvcc;
mod release;
mod relocatable;
mod shim;
pub(crate) mod tools;

use crate::options::ExecOptions;
use crate::{Exit, UsageError};
use findings::Findings;
use folder::Folder;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitStatus};

/// Runs the command and returns its exit status.
pub(crate) fn exec(options: &ExecOptions) -> Result<u8, UsageError> {
    if options.print_env {
        return print_environment(options);
    }
    let Some((program, arguments)) = options.command.split_first() else {
        return Err("name a command after `--`".into());
    };
    if let Some(option) = program.to_str().filter(|program| program.starts_with('-')) {
        return Err(format!("`exec` has no option `{option}`; `ptxvm exec --help` lists them").into());
    }
    let folder = Folder::make(options.library_path.as_deref())?;
    folder.add_tools(options)?;
    let mut command = Command::new(program);
    command.args(arguments);
    for (name, value) in variables(options, &folder)? {
        command.env(name, value);
    }
    let findings = Findings::of(&options.tools, &folder)?;
    command.env_remove("PTXVM_FINDINGS").envs(findings.as_ref().map(Findings::variable));
    let status =
        run(&mut command).map_err(|error| format!("cannot run `{}`: {error}", program.to_string_lossy()))?;
    let found = findings.map(Findings::end).transpose()?.flatten();
    Ok(found.unwrap_or(code(status)))
}

/// Prints the variables for a shell to evaluate. The folder stays; a later run removes it when it is a day
/// old.
fn print_environment(options: &ExecOptions) -> Result<u8, UsageError> {
    let folder = Folder::make(options.library_path.as_deref())?;
    folder.add_tools(options)?;
    let variables = variables(options, &folder)?;
    let mut text = String::new();
    for (name, value) in &variables {
        text.push_str(&format!("{name}={}\n", quoted(&value.to_string_lossy())));
    }
    let names: Vec<&str> = variables.iter().map(|(name, _)| *name).collect();
    text.push_str(&format!("export {}\n", names.join(" ")));
    crate::print_out(&text)?;
    folder.keep();
    Ok(Exit::Done as u8)
}

/// Quotes a value for a POSIX shell: in single quotes if it contains more than letters, digits and a few
/// signs.
fn quoted(value: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:=,+@%".contains(c);
    if !value.is_empty() && value.chars().all(plain) {
        return value.to_owned();
    }
    format!("'{}'", value.replace('\'', "'\\''"))
}

/// Every variable that differs from our environment, with its value.
fn variables(options: &ExecOptions, folder: &Folder) -> Result<Vec<(&'static str, OsString)>, UsageError> {
    let tools = options.tools.tool.as_ref().map_or(&[][..], |tools| &tools.0);
    if options.library.wants_native() && tools.len() > 1 && tools.contains(&ptxvm::Tool::Racecheck) {
        let why =
            "racecheck with other tools watches the interpreter only: `--engine jit` is refused with them";
        return Err(why.to_owned().into());
    }
    let mut set = vec![
        ("LD_LIBRARY_PATH", in_front(&folder.lib(), "LD_LIBRARY_PATH", "")),
        ("PATH", in_front(&folder.bin(), "PATH", DEFAULT_PATH)),
    ];
    set.extend(preloaded(folder));
    let absent = |name: &&str| std::env::var_os(name).is_none();
    for (name, value) in clients::variables(folder) {
        if absent(&name) {
            set.push((name, value));
        }
    }
    set.extend(options.library.variables());
    set.extend(findings::variables(&options.tools)?);
    Ok(set)
}

/// The library that redirects runtimes inside of programs, after the libraries that the user preloads: a
/// sanitizer's library must be the first. A sanitizer that is linked to the program checks for this, unless
/// it is told not to.
fn preloaded(folder: &Folder) -> Vec<(&'static str, OsString)> {
    let Some(library) = folder.preload() else { return Vec::new() };
    let behind = |name: &str, separator: &str, value: OsString| {
        let mut whole = std::env::var_os(name).unwrap_or_default();
        if !whole.is_empty() {
            whole.push(separator);
        }
        whole.push(value);
        whole
    };
    vec![
        ("LD_PRELOAD", behind("LD_PRELOAD", ":", library)),
        ("ASAN_OPTIONS", behind("ASAN_OPTIONS", ":", "verify_asan_link_order=0".into())),
    ]
}

/// The C library's default search path for programs, if `PATH` is not set.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// A search path that begins with `folder`, followed by the user's path or the default.
fn in_front(folder: &Path, name: &str, without: &str) -> OsString {
    let mut value = folder.as_os_str().to_owned();
    let rest = std::env::var_os(name).filter(|rest| !rest.is_empty()).unwrap_or_else(|| without.into());
    if !rest.is_empty() {
        value.push(":");
        value.push(rest);
    }
    value
}

/// Starts the command and waits for it. Signals that ask us to end are forwarded to the program, so that the
/// folder is removed only after the program has ended.
fn run(command: &mut Command) -> std::io::Result<ExitStatus> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    use signal_hook::iterator::SignalsInfo;
    use signal_hook::iterator::exfiltrator::WithOrigin;
    let mut signals = SignalsInfo::<WithOrigin>::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM])?;
    let mut child = command.spawn()?;
    let handle = signals.handle();
    let pid = rustix::process::Pid::from_child(&child);
    let forward = std::thread::Builder::new().spawn(move || {
        for origin in signals.forever() {
            if let Some(signal) = handed_on(&origin) {
                let _gone = rustix::process::kill_process(pid, signal);
            }
        }
    });
    if forward.is_err() {
        // Without the handler, signals would not be forwarded.
        let _gone = child.kill();
    }
    let status = child.wait();
    handle.close();
    let _never_panics = forward?.join();
    status
}

/// The signal to forward, except signals of keys, which the terminal sends to the program itself.
fn handed_on(origin: &signal_hook::low_level::siginfo::Origin) -> Option<rustix::process::Signal> {
    use rustix::process::Signal;
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    use signal_hook::low_level::siginfo::Cause;
    let keys = origin.cause == Cause::Kernel;
    match origin.signal {
        SIGHUP => Some(Signal::HUP),
        SIGTERM => Some(Signal::TERM),
        SIGINT if !keys => Some(Signal::INT),
        SIGQUIT if !keys => Some(Signal::QUIT),
        _ => None,
    }
}

/// The status as shells report it: 128 plus the signal's number if a signal ended the program.
fn code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => code as u8,
        (None, Some(signal)) => 128 + signal as u8,
        (None, None) => Exit::Usage as u8,
    }
}
