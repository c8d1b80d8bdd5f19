//! Starts the program under limits of time, memory and output, and reports how it ended.
//!
//! Invariant: the process is over and its pipes are read when [`run`] returns; no core file is written.

use serde_json::Value;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Address space of a process in mebibytes, where the case does not say.
const MEMORY: u64 = 4096;
/// Seconds of processor time: a process that takes more is ended by the system.
const PROCESSOR: u64 = 4;
/// Seconds until a process that sleeps is ended.
const WALL: Duration = Duration::from_secs(120);
/// The most that a process may print on one stream, in bytes: more than the limit of `--max-output`, which
/// fast machines reach.
const OUTPUT: u64 = 80 << 20;

/// How a process ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Exit status; none after a signal.
    pub(crate) status: Option<i32>,
    /// Standard output.
    pub(crate) out: String,
    /// Standard error.
    pub(crate) err: String,
    signal: String,
}

impl Ended {
    /// The exit status or the signal, in words.
    pub(crate) fn how(&self) -> String {
        self.status.map_or_else(|| self.signal.clone(), |status| format!("status {status}"))
    }

    /// The object on standard output.
    pub(crate) fn json(&self) -> Option<Value> {
        serde_json::from_str(self.out.lines().last()?).ok()
    }
}

/// The program under test: `PTXVM_HOSTILE_PROGRAM`, from the root of the repository, else what was built.
fn program() -> String {
    let other = std::env::var("PTXVM_HOSTILE_PROGRAM").ok();
    other.map_or_else(
        || env!("CARGO_BIN_EXE_ptxvm").to_owned(),
        |path| format!("{}", Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path).display()),
    )
}

/// A process of the program with that address space, in a folder.
#[cfg(unix)]
fn limited(memory: u64) -> Command {
    let mut command = Command::new("sh");
    let script =
        format!("ulimit -c 0; ulimit -t {PROCESSOR}; ulimit -v {}; exec \"$0\" \"$@\"", memory << 10);
    command.args(["-c", &script, &program()]);
    command
}

/// Without limits of the system: the wall clock alone.
#[cfg(not(unix))]
fn limited(_memory: u64) -> Command {
    Command::new(program())
}

fn reader(stream: impl Read + Send + 'static) -> std::thread::JoinHandle<(Vec<u8>, bool)> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let mut limited = stream.take(OUTPUT);
        let _closed = limited.read_to_end(&mut bytes);
        let full = bytes.len() as u64 == OUTPUT;
        // The rest is read so that the process does not wait for us.
        let _rest = std::io::copy(&mut limited.into_inner(), &mut std::io::sink());
        (bytes, full)
    })
}

/// Runs the program with these arguments.
pub(crate) fn run(arguments: &[String], folder: &Path, memory: Option<u64>) -> Ended {
    let mut child = limited(memory.unwrap_or(MEMORY))
        .args(arguments)
        .current_dir(folder)
        .env("PTXVM_CACHE_DIR", "")
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let out = reader(child.stdout.take().expect("piped"));
    let err = reader(child.stderr.take().expect("piped"));
    let started = Instant::now();
    let status = loop {
        match child.try_wait().expect("our own child") {
            Some(status) => break status,
            None if started.elapsed() > WALL => {
                let _already_over = child.kill();
                break child.wait().expect("our own child");
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    let (out, out_full) = out.join().expect("a reader does not panic");
    let (err, err_full) = err.join().expect("a reader does not panic");
    let mut signal = status.to_string();
    let mut code = status.code();
    if out_full || err_full {
        signal = format!("more than {OUTPUT} bytes of output");
        code = None;
    }
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ended { status: code, out: text(out), err: text(err), signal }
}
