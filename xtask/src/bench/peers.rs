//! `--peers`: other programs that execute the same kernels on a CPU, if this machine has them.
//!
//! | peer | input | location |
//! | --- | --- | --- |
//! | `opencl` | `bench/peers/opencl/*.cl`: the kernels in OpenCL C | the first CPU device of any OpenCL platform, such as POCL |
//! | `ptx_run` | the PTX of the benchmark | `libgpuocelot.so` in the loader's path, or the library that `PTXVM_PEER` names |
//!
//! Invariant: a peer's results are compared like those of the native program. A peer that is absent, refuses
//! a kernel or computes a wrong result is listed with the reason in place of a time. Nothing is installed
//! here.

use super::case::{Case, Check, Value};
use super::clock::{Clock, Took, median};
use super::device;
use super::device::Device;
use super::native::{newer, tool};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// Which of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    OpenCl,
    PtxRun,
}

impl Kind {
    const ALL: [Kind; 2] = [Kind::OpenCl, Kind::PtxRun];

    fn name(self) -> &'static str {
        match self {
            Kind::OpenCl => "opencl",
            Kind::PtxRun => "ptx_run",
        }
    }

    /// The library that its program is linked with.
    fn library(self) -> &'static str {
        match self {
            Kind::OpenCl => "-lOpenCL",
            Kind::PtxRun => "-ldl",
        }
    }

    fn text(self, case: &Case) -> Result<String, String> {
        let folder = crate::root().join("xtask/bench/peers/opencl");
        let read = |name: &str| {
            let path = folder.join(format!("{name}.cl"));
            std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))
        };
        match self {
            Kind::OpenCl => Ok(read("prelude")? + &read(case.file())?),
            Kind::PtxRun => device::text(case.ptx),
        }
    }
}

/// The peers of this machine.
pub(crate) struct Peers {
    here: Vec<Peer>,
}

/// A peer's result for a case.
pub(crate) struct Beside {
    /// The peer.
    pub(crate) name: &'static str,
    /// Seconds, or the reason why there are none.
    pub(crate) took: Result<f64, String>,
}

impl Peers {
    /// None.
    pub(crate) fn none() -> Self {
        Self { here: Vec::new() }
    }

    /// Starts all available peers, and lists on standard error which are available and why others are not.
    pub(crate) fn start(threads: u32) -> Self {
        let mut here = Vec::new();
        for kind in Kind::ALL {
            match Peer::start(kind, threads) {
                Ok((peer, what)) => {
                    eprintln!("peer {}: {what}", kind.name());
                    here.push(peer);
                }
                Err(why) => eprintln!("peer {}: not here: {why}", kind.name()),
            }
        }
        Self { here }
    }

    /// Passes a case to all peers, and compares their results with those of the device's first run.
    pub(crate) fn open(&mut self, case: &Case, device: &Device<'_>) -> Vec<Result<(), String>> {
        self.here.iter_mut().map(|peer| peer.open(case, device)).collect()
    }

    /// Seconds that each needs for the open case: the median of `times` runs.
    pub(crate) fn run(&mut self, opened: Vec<Result<(), String>>, times: usize, clock: Clock) -> Vec<Beside> {
        let run = |peer: &mut Peer, opened: Result<(), String>| {
            let took = opened.and_then(|()| peer.run(times));
            let took = took.map(|all| median(all.iter().map(|took| took.by(clock)).collect()));
            Beside { name: peer.kind.name(), took }
        };
        self.here.iter_mut().zip(opened).map(|(peer, opened)| run(peer, opened)).collect()
    }
}

/// A running peer.
struct Peer {
    kind: Kind,
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts it, and returns its description of itself.
    fn start(kind: Kind, threads: u32) -> Result<(Self, String), String> {
        let program = build(kind)?;
        let mut child = Command::new(&program)
            .args(std::env::var_os("PTXVM_PEER").filter(|_| kind == Kind::PtxRun))
            .env("POCL_MAX_PTHREAD_COUNT", threads.to_string())
            .env("POCL_AFFINITY", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("{}: {e}", program.display()))?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("its program has no pipes".to_owned());
        };
        let mut peer = Self { kind, child, to, from: BufReader::new(from) };
        let line = peer.line()?;
        match line.strip_prefix("ready ") {
            Some(what) => Ok((peer, what.to_owned())),
            None => Err(line),
        }
    }

    fn open(&mut self, case: &Case, device: &Device<'_>) -> Result<(), String> {
        let text = self.kind.text(case)?;
        self.send(request(case, text.len()).as_bytes())?;
        self.send(text.as_bytes())?;
        for array in &case.arrays {
            self.send(&array.bytes)?;
        }
        let answer = self.line()?;
        if answer != "open" {
            return Err(answer);
        }
        self.run(1)?;
        for (index, array) in case.arrays.iter().enumerate() {
            if !matches!(array.check, Check::No) {
                let expected = device.array(index).map_err(|e| e.to_string())?;
                self.send(format!("array {index}\n").as_bytes())?;
                let mut got = vec![0; expected.len()];
                self.from.read_exact(&mut got).map_err(|e| self.gone(&e))?;
                case.compare(index, &got, &expected)?;
            }
        }
        Ok(())
    }

    fn run(&mut self, times: usize) -> Result<Vec<Took>, String> {
        self.send(format!("run {times}\n").as_bytes())?;
        let line = self.line()?;
        let numbers: Vec<u64> = line.split_whitespace().map_while(|n| n.parse().ok()).collect();
        if numbers.len() != 2 * times {
            return Err(line);
        }
        let took = |n: &[u64]| Took { wall: Duration::from_nanos(n[0]), cpu: Duration::from_nanos(n[1]) };
        Ok(numbers.chunks_exact(2).map(took).collect())
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.to.write_all(bytes).and_then(|()| self.to.flush()).map_err(|e| self.gone(&e))
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.from.read_line(&mut line) {
            Ok(0) => Err("its program has ended".to_owned()),
            Ok(_) => Ok(line.trim().to_owned()),
            Err(e) => Err(self.gone(&e)),
        }
    }

    fn gone(&self, error: &std::io::Error) -> String {
        format!("the program of {}: {error}", self.kind.name())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // If it has already ended, both calls fail, which is harmless.
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

/// The first line of a request: sizes, arrays, launches.
fn request(case: &Case, text: usize) -> String {
    let mut line = format!("open {text} {} {}", case.arrays.len(), case.steps.len());
    for array in &case.arrays {
        // Writing to a string cannot fail.
        let _ok = write!(line, " {} {}", array.bytes.len(), u8::from(array.restore));
    }
    for step in &case.steps {
        let ([gx, gy, gz], [bx, by, bz]) = (step.grid, step.block);
        let _ok = write!(line, " {} {gx} {gy} {gz} {bx} {by} {bz} {}", step.kernel, step.args.len());
        for arg in &step.args {
            let _ok = match arg {
                Value::Array(index) => write!(line, " a {index}"),
                Value::S32(value) => write!(line, " i {value}"),
                Value::F32(value) => write!(line, " f {value:e}"),
            };
        }
    }
    line.push('\n');
    line
}

/// Builds the program in which a peer runs, if it is older than its source.
fn build(kind: Kind) -> Result<PathBuf, String> {
    let folder = crate::root().join("xtask/bench/peers");
    let (source, header) = (folder.join(format!("{}.cpp", kind.name())), folder.join("job.h"));
    let made = crate::root().join("target/bench");
    std::fs::create_dir_all(&made).map_err(|e| format!("{}: {e}", made.display()))?;
    let program = made.join(format!("peer-{}", kind.name()));
    if newer(&program, &[source.as_path(), Path::new(&header)]) {
        return Ok(program);
    }
    let args: [OsString; 5] =
        ["-Wall".into(), source.into(), "-o".into(), program.clone().into(), kind.library().into()];
    let output = tool().args(args).output().map_err(|e| format!("g++: {e}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let first = said.lines().find(|line| line.contains("error") || line.contains("cannot find"));
        let hint = "Debian: apt install pocl-opencl-icd ocl-icd-opencl-dev";
        return Err(format!(
            "its program cannot be built ({}; {hint})",
            first.unwrap_or("g++ failed").trim()
        ));
    }
    Ok(program)
}
