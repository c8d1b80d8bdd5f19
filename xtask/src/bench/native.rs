//! The native counterpart: C++ with OpenMP, built by g++ for this machine, in a process that runs on request.
//!
//! Invariant: it runs only between a request and its answer. Otherwise its threads sleep
//! (`OMP_WAIT_POLICY=passive`), so that the other side has the machine for itself. Each thread is bound to a
//! core, because two sleeping threads can be woken on the same core.

use super::case::Case;
use super::clock::Took;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// The head of a line of a source that names further options of the compiler.
const FLAGS: &str = "// flags: ";

/// Builds the native program if it is older than its sources.
///
/// # Errors
/// g++ is missing, or refuses a source.
pub(crate) fn build() -> Result<PathBuf, String> {
    let folders = ["native", "zoo"].map(|name| crate::root().join("xtask/bench").join(name));
    let made = crate::root().join("target/bench");
    std::fs::create_dir_all(&made).map_err(|e| format!("{}: {e}", made.display()))?;
    let mut sources = Vec::new();
    for folder in &folders {
        for entry in std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))? {
            let path = entry.map_err(|e| e.to_string())?.path();
            if path.extension().is_some_and(|e| e == "cpp") {
                sources.push(path);
            }
        }
    }
    sources.sort();
    let header = folders[0].join("job.h");
    let mut objects = Vec::new();
    let mut fresh = false;
    for source in &sources {
        let name = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let object = made.join(format!("{name}.o"));
        if !newer(&object, &[source, &header]) {
            let mut gxx = tool();
            gxx.args(["-c", "-Wall", "-Wno-psabi"]).arg(source).arg("-o").arg(&object);
            gxx.arg("-I").arg(&folders[0]).args(flags(source)?);
            run(gxx)?;
            fresh = true;
        }
        objects.push(object);
    }
    let program = made.join("native");
    if fresh || !program.exists() {
        let mut gxx = tool();
        gxx.args(&objects).arg("-o").arg(&program);
        run(gxx)?;
    }
    Ok(program)
}

/// Further options for a source, from its own text: `-ffast-math` where approximate functions are usual.
fn flags(source: &Path) -> Result<Vec<String>, String> {
    let text = std::fs::read_to_string(source).map_err(|e| format!("{}: {e}", source.display()))?;
    let line = text.lines().find_map(|line| line.strip_prefix(FLAGS)).unwrap_or_default();
    Ok(line.split_whitespace().map(str::to_owned).collect())
}

/// The compiler of native programs.
pub(super) fn tool() -> Command {
    let mut command = Command::new("g++");
    command.args(["-std=c++17", "-O3", "-march=native", "-fopenmp"]);
    command
}

/// Whether a file exists and is newer than these.
pub(super) fn newer(made: &Path, sources: &[&Path]) -> bool {
    let time = |path: &Path| std::fs::metadata(path).and_then(|m| m.modified()).ok();
    match time(made) {
        Some(made) => sources.iter().all(|source| time(source).is_some_and(|t| t < made)),
        None => false,
    }
}

fn run(mut command: Command) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("g++ on the native references: {status}")),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            Err("bench needs g++ with OpenMP for the native references (Debian: apt install g++); there is none on the path"
                .to_owned())
        }
        Err(e) => Err(format!("g++: {e}")),
    }
}

/// The running program, with one case open.
pub(crate) struct Native {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    /// Number of versions of the open case.
    ways: usize,
}

impl Native {
    /// Starts the program with that many threads.
    pub(crate) fn start(program: &Path, threads: u32) -> Result<Self, String> {
        let mut child = Command::new(program)
            .env("OMP_NUM_THREADS", threads.to_string())
            .env("OMP_WAIT_POLICY", "passive")
            .env("OMP_PROC_BIND", "spread")
            .env("OMP_PLACES", "threads")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("{}: {e}", program.display()))?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the native program has no pipes".to_owned());
        };
        Ok(Self { child, to, from: BufReader::new(from), ways: 0 })
    }

    /// Passes the arrays of a case.
    pub(crate) fn open(&mut self, case: &Case) -> Result<(), String> {
        let mut line = format!("open {} {} {}", case.native, case.arrays.len(), case.numbers.len());
        for array in &case.arrays {
            line += &format!(" {} {}", array.bytes.len(), u8::from(array.restore));
        }
        for number in &case.numbers {
            line += &format!(" {number:.17e}");
        }
        line.push('\n');
        self.send(line.as_bytes())?;
        for array in &case.arrays {
            self.send(&array.bytes)?;
        }
        let ways = self.line()?;
        self.ways = ways.trim().parse().map_err(|_| format!("the native program answers `{ways}`"))?;
        match self.ways {
            0 => Err(format!("the native program has no `{}`", case.native)),
            _ => Ok(()),
        }
    }

    /// Number of versions of the open case.
    pub(crate) fn ways(&self) -> usize {
        self.ways
    }

    /// Runs that version several times.
    pub(crate) fn run(&mut self, way: usize, times: usize) -> Result<Vec<Took>, String> {
        self.send(format!("run {way} {times}\n").as_bytes())?;
        let line = self.line()?;
        let numbers: Vec<u64> = line.split_whitespace().filter_map(|n| n.parse().ok()).collect();
        if numbers.len() != 2 * times {
            return Err(format!("the native program answers `{line}`"));
        }
        let took = |n: &[u64]| Took { wall: Duration::from_nanos(n[0]), cpu: Duration::from_nanos(n[1]) };
        Ok(numbers.chunks_exact(2).map(took).collect())
    }

    /// The content of an array.
    pub(crate) fn array(&mut self, index: usize, bytes: usize) -> Result<Vec<u8>, String> {
        self.send(format!("array {index}\n").as_bytes())?;
        let mut content = vec![0; bytes];
        self.from.read_exact(&mut content).map_err(|e| format!("the native program: {e}"))?;
        Ok(content)
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.to
            .write_all(bytes)
            .and_then(|()| self.to.flush())
            .map_err(|e| format!("the native program: {e}"))
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        self.from.read_line(&mut line).map_err(|e| format!("the native program: {e}"))?;
        Ok(line)
    }
}

impl Drop for Native {
    fn drop(&mut self) {
        // If it has already ended, both calls fail, which is harmless.
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}
