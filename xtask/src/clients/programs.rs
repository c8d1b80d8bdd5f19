//! Third-party programs in CUDA C++: built by clang from a folder that the user names, and run with our
//! arguments.
//!
//! A list in `tests/clients/` has a line for each program, in five columns separated by `|`: its folder; its
//! source files; options of the compiler; the arguments of its runs, separated by `;`; and, if it cannot
//! pass, the reason. `#` begins a comment.
//!
//! Invariant: a program passes when each of its runs exits with 0 and prints no `FAIL`; what a tool finds in
//! it is counted separately. The repository contains no third-party code: the list names files and arguments.

use super::Done;
use super::watch::Watch;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Seconds that a build and a run may take.
const BUILD_LIMIT: &str = "600";
const RUN_LIMIT: &str = "300";

/// A program of a list.
struct Program<'a> {
    folder: &'a str,
    sources: Vec<&'a str>,
    options: Vec<&'a str>,
    runs: Vec<Vec<&'a str>>,
    /// Why it cannot pass.
    known: Option<&'a str>,
}

/// The tools with which programs are built and run.
pub(super) struct Tools<'a> {
    /// `ptxvm`.
    pub ptxvm: PathBuf,
    /// A CUDA folder with public headers and our libraries.
    pub cuda: PathBuf,
    /// clang.
    pub clang: String,
    /// The location of the programs' folders.
    pub sources: &'a Path,
    /// The location of built programs and their output.
    pub results: PathBuf,
}

impl Tools<'_> {
    /// Builds the programs of a list and runs them, under a tool if one is named; returns the summary.
    pub(super) fn run_all(&self, list: &Path, tool: Option<&'static str>) -> Result<Done, String> {
        let text = std::fs::read_to_string(list)
            .map_err(|error| format!("cannot read `{}`: {error}", list.display()))?;
        let programs = parse(&text).map_err(|why| format!("{}: {why}", list.display()))?;
        std::fs::create_dir_all(&self.results).map_err(|error| error.to_string())?;
        let (mut passed, mut absent, mut unexpected, mut findings) = (0, 0, Vec::new(), 0);
        for program in &programs {
            if !self.sources.join(program.folder).is_dir() {
                absent += 1;
                continue;
            }
            let outcome = self.build(program).and_then(|binary| self.run(program, &binary, tool));
            match (&outcome, program.known) {
                (Ok(done), _) => {
                    passed += 1;
                    findings += done.findings;
                }
                (Err(_), Some(_)) => {}
                (Err(_), None) => unexpected.push(program.folder),
            }
            let known = program.known.map(|why| format!(" (known: {why})")).unwrap_or_default();
            match outcome {
                Ok(Done { findings: 0, .. }) => println!("{}: passed", program.folder),
                Ok(Done { findings, note }) => println!("{}: {findings} findings: {note}", program.folder),
                Err(why) => println!("{}: {why}{known}", program.folder),
            }
        }
        let total = programs.len() - absent;
        let sum = format!("{passed} of {total} passed, {absent} are not in that folder");
        if unexpected.is_empty() {
            Ok(Done { findings, note: sum })
        } else {
            Err(format!("{sum}; failed: {}", unexpected.join(", ")))
        }
    }

    fn build(&self, program: &Program<'_>) -> Result<PathBuf, String> {
        let binary = self.results.join(program.folder.replace('/', "-"));
        let apart = program.options.contains(&"-fgpu-rdc");
        let mut objects = Vec::new();
        for (number, source) in program.sources.iter().enumerate() {
            let object = binary.with_extension(format!("{number}.o"));
            // Host-only files must not see clang's headers for CUDA.
            let cuda = source.ends_with(".cu");
            let mut clang = self.clang(program, cuda);
            clang.args(&program.options).args(["-x", if cuda { "cuda" } else { "c++" }, "-c", source, "-o"]);
            self.compile(clang.arg(&object), &binary)?;
            objects.push(object);
        }
        // Parts with separately linked device code use the stand-ins too.
        let mut clang = self.clang(program, apart);
        clang.args(apart.then_some("--offload-link")).args(&objects).arg("-o").arg(&binary);
        clang.arg("-L").arg(self.cuda.join("lib64"));
        clang.args(["-lcudart", "-lcublas", "-lcuda", "-lgomp", "-ldl", "-lpthread", "-lm", "-lrt"]);
        self.compile(&mut clang, &binary)?;
        Ok(binary)
    }

    /// clang in a program's folder, for CUDA or for the host only.
    fn clang(&self, program: &Program<'_>, cuda: bool) -> Command {
        let mut clang = Command::new("timeout");
        clang.current_dir(self.sources.join(program.folder)).arg(BUILD_LIMIT);
        if cuda {
            clang.arg(&self.ptxvm).args(["exec", "--sm", "80", "--", &self.clang, "--cuda-gpu-arch=sm_80"]);
            clang.arg(format!("--cuda-path={}", self.cuda.display()));
            clang.arg("-include").arg(crate::root().join("tests/clients/nvcc.h"));
        } else {
            clang.arg(&self.clang);
        }
        clang.args(["-O2", "-w", "-I"]).arg(self.cuda.join("include"));
        clang
    }

    fn compile(&self, clang: &mut Command, binary: &Path) -> Result<(), String> {
        let file = binary.with_extension("build");
        match output(clang, &file)?.0 {
            0 => Ok(()),
            _ => Err(format!("does not build, see `{}`", file.display())),
        }
    }

    fn run(&self, program: &Program<'_>, binary: &Path, tool: Option<&'static str>) -> Result<Done, String> {
        let (mut findings, mut notes) = (0, Vec::new());
        for (number, arguments) in program.runs.iter().enumerate() {
            let file = binary.with_extension(format!("run{number}"));
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let watch = tool.map(|tool| Watch::new(tool, &self.results, &name)).transpose()?;
            let mut command = Command::new("timeout");
            command.current_dir(self.sources.join(program.folder)).arg(RUN_LIMIT).arg(&self.ptxvm);
            command.args(["exec", "--sm", "80", "--log", "refused"]);
            match &watch {
                None => command.arg("--"),
                Some(watch) => command.args(watch.options()).arg("--").args(watch.shell()),
            };
            let (status, text) = output(command.arg(binary).args(arguments), &file)?;
            match (&watch, status) {
                (_, 124) => return Err(format!("ran for more than {RUN_LIMIT} seconds")),
                (None, status) if status != 0 => return Err(format!("ended with {status}")),
                (_, _) if text.contains("FAIL") => {
                    return Err("it says that its results are wrong".to_owned());
                }
                (None, _) => {}
                (Some(watch), _) => {
                    let done = watch.done("it", String::new())?;
                    findings += done.findings;
                    notes.extend(Some(done.note).filter(|note| !note.is_empty()));
                }
            }
        }
        Ok(Done { findings, note: notes.join("; ") })
    }
}

/// The status of a command and its output, which is also written to that file.
fn output(command: &mut Command, file: &Path) -> Result<(i32, String), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(std::process::Stdio::null()).output();
    let output = output.map_err(|error| format!("`{name}` does not start: {error}"))?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text += &String::from_utf8_lossy(&output.stderr);
    std::fs::write(file, &text).map_err(|error| format!("cannot write `{}`: {error}", file.display()))?;
    Ok((output.status.code().unwrap_or(-1), text))
}

/// The programs of a list.
fn parse(text: &str) -> Result<Vec<Program<'_>>, String> {
    let mut programs = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let columns: Vec<&str> = line.split('|').map(str::trim).collect();
        let [folder, sources, options, runs, rest @ ..] = columns.as_slice() else {
            return Err(format!("line {}: a program has four or five columns", number + 1));
        };
        programs.push(Program {
            folder,
            sources: sources.split_whitespace().collect(),
            options: options.split_whitespace().collect(),
            runs: runs.split(';').map(|run| run.split_whitespace().collect()).collect(),
            known: rest.first().copied().filter(|why| !why.is_empty()),
        });
    }
    Ok(programs)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_line_is_a_program() {
        let text = "# name | sources\n\nadd | main.cu util.cpp | -I../include | 10 2 ; -q\nsum | main.cu | | | reads beyond its array\n";
        let programs = parse(text).unwrap();
        assert_eq!(programs[0].sources, ["main.cu", "util.cpp"]);
        assert_eq!(programs[0].runs, [vec!["10", "2"], vec!["-q"]]);
        assert_eq!(programs[0].known, None);
        assert_eq!(programs[1].runs, [Vec::<&str>::new()]);
        assert_eq!(programs[1].known, Some("reads beyond its array"));
        assert!(parse("add | main.cu").is_err());
    }

    #[test]
    fn the_lists_of_the_repository_are_readable() {
        for list in ["hecbench.txt", "cuda-samples.txt"] {
            let text = std::fs::read_to_string(crate::root().join("tests/clients").join(list)).unwrap();
            assert!(!parse(&text).unwrap().is_empty(), "{list}");
        }
    }
}
