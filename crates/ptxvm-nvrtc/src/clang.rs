//! Compiles with clang, as a child process.
//!
//! Invariant: the child ends by itself, at the time limit, or when the caller's callback asks for it; the
//! process group that it leads ends with it. It reads and writes in a private folder. Its standard streams
//! are files there, so it never waits for a full pipe.

use crate::ffi::Callback;
use crate::folder::Folder;
use crate::options::Options;
use crate::program::{Compiled, Source};
use crate::status::Status;
use crate::{log, names, settings};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The versions in the executable names that are searched, newest first, before plain `clang`. Version 16
/// lacks builtins that `device/` needs, 19 is the oldest with which the tests pass; `device/rtc.h` rejects
/// older ones.
const VERSIONS: std::ops::RangeInclusive<u32> = 19..=30;
/// The interval at which the child and the caller's callback are polled. Small programs take a fifth of a
/// second.
const INTERVAL: Duration = Duration::from_millis(5);
/// Most bytes of messages that are read. Chosen.
const MESSAGES_MAX: usize = 16 << 20;

/// The compiler: the one that the user names, else the newest in `PATH`.
pub(crate) fn compiler() -> Option<&'static OsStr> {
    static FOUND: OnceLock<Option<OsString>> = OnceLock::new();
    FOUND.get_or_init(|| settings::clang().or_else(in_path)).as_deref()
}

fn in_path() -> Option<OsString> {
    let path = std::env::var_os("PATH")?;
    let names = VERSIONS.rev().map(|version| format!("clang-{version}")).chain(["clang".to_owned()]);
    names.flat_map(|name| std::env::split_paths(&path).map(move |folder| folder.join(&name))).find_map(
        |file| {
            let is_program = file.metadata().is_ok_and(|about| {
                use std::os::unix::fs::PermissionsExt as _;
                about.is_file() && about.permissions().mode() & 0o111 != 0
            });
            (is_program && file.is_absolute()).then_some(file.into_os_string())
        },
    )
}

/// How a child ended.
enum End {
    Exit(ExitStatus),
    TooLate,
    Cancelled,
}

/// Compiles a program.
pub(crate) fn compile(
    compiler: &OsStr,
    source: &Source,
    options: &Options,
    callback: Option<Callback>,
) -> Compiled {
    let folder = match Folder::new() {
        Ok(folder) => folder,
        Err(error) => {
            return Compiled::failed(
                Status::INTERNAL_ERROR,
                format!(
                    "cannot create a folder for temporary files: {error}; set TMPDIR to a writable folder"
                ),
            );
        }
    };
    match in_folder(&folder, compiler, source, options, callback) {
        Ok(compiled) => compiled,
        Err(error) => {
            let name = compiler.to_string_lossy();
            Compiled::failed(Status::INTERNAL_ERROR, format!("cannot compile with `{name}`: {error}"))
        }
    }
}

fn in_folder(
    folder: &Folder,
    compiler: &OsStr,
    source: &Source,
    options: &Options,
    callback: Option<Callback>,
) -> io::Result<Compiled> {
    for (name, text) in &source.headers {
        if !folder.header(Path::new(OsStr::from_bytes(name)), text)? {
            let name = String::from_utf8_lossy(name);
            return Ok(Compiled::failed(
                Status::INVALID_INPUT,
                format!("the header name `{name}` is not a relative path inside a folder"),
            ));
        }
    }
    let (input, output) = (folder.file("program.cu"), folder.file("program.ptx"));
    folder.write(&input, &text(source, options))?;
    let mut command = command(compiler, folder, options);
    command.arg("-o").arg(&output).arg(&input);
    let said = folder.file("said");
    let file = File::create(&said)?;
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    let end = run(&mut command, settings::timeout(), callback)?;
    let log = messages(folder, &said)?;
    Ok(match end {
        End::Cancelled => Compiled::failed(Status::CANCELLED, log),
        End::TooLate => Compiled::failed(
            Status::COMPILATION,
            format!(
                "{log}the compiler was stopped after {} s; PTXVM_NVRTC_TIMEOUT sets this limit\n",
                settings::timeout().as_secs_f64()
            ),
        ),
        End::Exit(status) if status.success() => {
            let ptx = String::from_utf8_lossy(&std::fs::read(&output)?).into_owned();
            let (ptx, lowered) = names::take(&ptx, source.expressions.len());
            Compiled { status: Status::SUCCESS, log, ptx, lowered }
        }
        End::Exit(status) => match (status.signal(), status.code()) {
            // The exit status of clang's driver after a crash of the compiler proper.
            (Some(_), _) | (None, Some(70 | 128..)) => Compiled::failed(
                Status::INTERNAL_ERROR,
                format!("{log}`{}` crashed ({status})\n", compiler.to_string_lossy()),
            ),
            _ => Compiled::failed(Status::COMPILATION, log),
        },
    })
}

/// The program's text as the compiler reads it. A `#line` makes messages name the caller's file.
fn text(source: &Source, options: &Options) -> Vec<u8> {
    let mut text = Vec::new();
    if options.default_device {
        text.extend(b"#pragma clang force_cuda_host_device begin\n");
    }
    text.extend(b"#line 1 \"");
    for byte in &source.name {
        match byte {
            b'"' | b'\\' => text.extend([b'\\', *byte]),
            b'\n' | b'\r' => text.push(b' '),
            _ => text.push(*byte),
        }
    }
    text.extend(b"\"\n");
    text.extend(&source.text);
    if options.default_device {
        text.extend(b"\n#pragma clang force_cuda_host_device end\n");
    }
    text.extend(names::lines(&source.expressions).into_bytes());
    text
}

/// The compiler's command line, without its files.
fn command(compiler: &OsStr, folder: &Folder, options: &Options) -> Command {
    let mut command = Command::new(compiler);
    // These variables would add options or folders, or preload ptxvm's own library.
    for name in
        ["CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "CCC_OVERRIDE_OPTIONS", "CUDA_PATH", "LD_PRELOAD"]
    {
        command.env_remove(name);
    }
    command.env("TMPDIR", folder.file("")).env("LC_ALL", "C").current_dir("/");
    if let Ok(here) = std::env::current_dir() {
        // Relative folders in the caller's options are relative to this one.
        command.current_dir(here);
    }
    command.args(["--no-default-config", "-x", "cuda", "--cuda-device-only", "-S"]);
    command.args(["-nocudainc", "-nocudalib", "-nostdlibinc", "-nostdinc++"]);
    command.args(["-fno-color-diagnostics", "-fno-crash-diagnostics", "-Wno-unknown-cuda-version"]);
    // NVRTC accepts these in CUDA's headers without a warning.
    command.args(["-Wno-macro-redefined", "-Wno-c++26-extensions", "-Wno-user-defined-literals"]);
    command.args(["-Wno-deprecated-attributes", "-Wno-unknown-warning-option"]);
    // The folder has another name each time, and the result must not depend on it.
    let mut mapped = OsString::from("-ffile-prefix-map=");
    mapped.push(folder.file(""));
    mapped.push("=");
    command.arg(mapped).arg("-include").arg(folder.device().join("rtc.h"));
    command.arg("-iquote").arg(folder.headers()).arg("-I").arg(folder.headers());
    command.arg("-isystem").arg(folder.device().join("system"));
    command.args(options.arguments(settings::version()));
    command
}

/// Runs the compiler until it ends or must be stopped.
fn run(command: &mut Command, limit: Duration, callback: Option<Callback>) -> io::Result<End> {
    let mut child = command.process_group(0).spawn()?;
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(End::Exit(status));
        }
        let end = if callback.is_some_and(Callback::stops) {
            End::Cancelled
        } else if start.elapsed() > limit {
            End::TooLate
        } else {
            std::thread::sleep(INTERVAL);
            continue;
        };
        stop(&mut child)?;
        return Ok(end);
    }
}

/// Ends the child and the processes that it started.
fn stop(child: &mut Child) -> io::Result<()> {
    let group = rustix::process::Pid::from_child(child);
    let _gone = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    child.kill()?;
    child.wait()?;
    Ok(())
}

/// The compiler's messages, with the caller's names of files.
fn messages(folder: &Folder, said: &PathBuf) -> io::Result<String> {
    let mut bytes = std::fs::read(said)?;
    bytes.truncate(MESSAGES_MAX);
    let text = folder.without_places(&String::from_utf8_lossy(&bytes));
    // Clang's last message counts the others in clang's own terms; it is dropped.
    let lines = text.split_inclusive('\n').filter(|line| !line.contains(" generated when compiling for "));
    Ok(lines.collect())
}

/// The advice if no compiler is found.
pub(crate) fn missing() -> String {
    let text = "no clang was found to compile CUDA C++: install clang 19 or later, or set PTXVM_CLANG to its path, or set PTXVM_NVRTC to the path of NVIDIA's libnvrtc";
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| log::say(&format!("ptxvm: nvrtcCompileProgram: {text}")));
    text.to_owned()
}
