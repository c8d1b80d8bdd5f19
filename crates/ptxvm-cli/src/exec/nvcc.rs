//! The stand-in for `nvcc` of `ptxvm exec --nvcc`: compiles device code to PTX by clang, for programs that
//! call `nvcc` while they run (PyCUDA's `SourceModule`).
//!
//! Invariant: an option that is not known is an error, except options about host compilers and machine code,
//! which have no meaning here. What it does not do: it builds no programs; clang does that.

use super::release::version;
use crate::{Exit, UsageError};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// PTX, in a file with this ending: clients treat PTX as machine code.
    Ptx(&'static str),
    /// The preprocessed source, on standard output.
    Preprocessed,
}

/// A command line.
#[derive(Debug, PartialEq, Eq)]
struct Job {
    target: Target,
    input: String,
    output: Option<String>,
    /// Options for clang.
    options: Vec<String>,
}

/// Options with a value that have no meaning for clang.
const IGNORED_WITH_VALUE: &[&str] = &[
    "-Xptxas",
    "--ptxas-options",
    "-Xcompiler",
    "--compiler-options",
    "-Xlinker",
    "-Xfatbin",
    "-ccbin",
    "--compiler-bindir",
    "-code",
    "--gpu-code",
    "-maxrregcount",
    "--maxrregcount",
    "-t",
    "--threads",
    "-diag-suppress",
    "--diag-suppress",
];
/// Options without a value that have no meaning for clang.
const IGNORED: &[&str] = &[
    "-m64",
    "--keep",
    "-keep",
    "-res-usage",
    "--resource-usage",
    "--expt-relaxed-constexpr",
    "--extended-lambda",
    "--expt-extended-lambda",
];

impl Job {
    /// Reads a command line; an option's value may be the next argument or follow `=`.
    fn read(arguments: &[String]) -> Result<Self, String> {
        let mut job =
            Job { target: Target::Ptx("cubin"), input: String::new(), output: None, options: Vec::new() };
        let mut target = None;
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let (name, given) = match argument.split_once('=') {
                Some((name, value)) if argument.starts_with('-') => (name, Some(value.to_owned())),
                _ => (argument.as_str(), None),
            };
            let mut value = || {
                let missing = || format!("nvcc: `{name}` has no value");
                given.clone().map_or_else(|| rest.next().cloned().ok_or_else(missing), Ok)
            };
            match name {
                "--cubin" | "-cubin" => target = Some(Target::Ptx("cubin")),
                "--ptx" | "-ptx" => target = Some(Target::Ptx("ptx")),
                "--preprocess" | "-E" => target = Some(Target::Preprocessed),
                "-o" | "--output-file" => job.output = Some(value()?),
                "-arch" | "--gpu-architecture" => {
                    let arch = value()?.replace("compute_", "sm_");
                    job.options.push(format!("--cuda-gpu-arch={arch}"));
                }
                "-I" | "-D" | "-U" | "--include-path" | "--define-macro" | "--undefine-macro" => {
                    // `-D NAME=VALUE` is one argument after another, and `-DNAME=VALUE` is a prefix below.
                    let letter = match name {
                        "-I" | "--include-path" => "-I",
                        "-D" | "--define-macro" => "-D",
                        _ => "-U",
                    };
                    job.options.push(format!("{letter}{}", value()?));
                }
                "-include" | "--pre-include" => job.options.extend(["-include".to_owned(), value()?]),
                "-std" | "--std" => job.options.push(format!("-std={}", value()?)),
                "-use_fast_math" | "--use_fast_math" => {
                    job.options.extend(["-ffast-math", "-fgpu-flush-denormals-to-zero"].map(str::to_owned));
                }
                "-G" | "--device-debug" | "-g" | "--debug" => job.options.push("-g".to_owned()),
                "-lineinfo" | "--generate-line-info" => job.options.push("-gline-tables-only".to_owned()),
                "-w" | "--disable-warnings" => job.options.push("-w".to_owned()),
                "-rdc" | "--relocatable-device-code" => {
                    if value()? == "true" {
                        job.options.push("-fgpu-rdc".to_owned());
                    }
                }
                "-dc" | "--device-c" => job.options.push("-fgpu-rdc".to_owned()),
                _ if IGNORED_WITH_VALUE.contains(&name) => drop(value()?),
                _ if IGNORED.contains(&name) => {}
                _ if ["-I", "-D", "-U", "-O"].iter().any(|prefix| argument.starts_with(prefix)) => {
                    job.options.push(argument.clone());
                }
                _ if argument.starts_with('-') => {
                    return Err(format!("nvcc: ptxvm's stand-in has no option `{argument}`"));
                }
                _ if job.input.is_empty() => job.input.clone_from(argument),
                _ => return Err("nvcc: ptxvm's stand-in compiles one file at a time".to_owned()),
            }
        }
        let only = "nvcc: ptxvm's stand-in compiles device code (`--cubin`, `--ptx`) and preprocesses (`-E`); clang builds programs, see docs/guides/cpp.md";
        job.target = target.ok_or(only)?;
        if job.input.is_empty() { Err("nvcc: no input file".to_owned()) } else { Ok(job) }
    }

    /// The arguments of clang, for headers in a folder.
    fn arguments(&self, cuda: &Path) -> Vec<String> {
        // nvcc accepts functions that are `constexpr` in vain, which clang calls an error.
        let always =
            ["-x", "cuda", "--cuda-device-only", "-Wno-unknown-cuda-version", "-Wno-invalid-constexpr"];
        let mut all = always.map(str::to_owned).to_vec();
        all.push(format!("--cuda-path={}", cuda.display()));
        // nvcc's default; the options may set another.
        all.push("-O3".to_owned());
        all.extend(self.options.iter().cloned());
        match self.target {
            Target::Preprocessed => all.extend(["-E", "-P"].map(str::to_owned)),
            Target::Ptx(ending) => {
                let output = self.output.clone().unwrap_or_else(|| {
                    let name = Path::new(&self.input).file_stem().unwrap_or_default().to_string_lossy();
                    format!("{name}.{ending}")
                });
                all.extend(["-S".to_owned(), "-o".to_owned(), output]);
            }
        }
        all.push(self.input.clone());
        all
    }
}

/// The oldest clang that ptxvm's NVRTC and this stand-in are tested with.
pub(crate) const OLDEST_CLANG: u32 = 19;

/// The compiler: `PTXVM_CLANG`, or the latest clang on `PATH`, as NVRTC finds it.
pub(crate) fn clang() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("PTXVM_CLANG").filter(|name| !name.is_empty()) {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH")?;
    let names =
        (OLDEST_CLANG..=30).rev().map(|version| format!("clang-{version}")).chain(["clang".to_owned()]);
    let find = |name: String| {
        std::env::split_paths(&path).map(|folder| folder.join(&name)).find(|file| file.is_file())
    };
    names.into_iter().find_map(find)
}

/// The folder with CUDA's headers.
fn cuda() -> Option<PathBuf> {
    let named = ["CUDA_PATH", "CUDA_HOME", "CUDA_ROOT"].iter().filter_map(std::env::var_os);
    let all = named.map(PathBuf::from).chain(["/usr/local/cuda".into()]);
    all.into_iter().find(|folder| folder.join("include/cuda_runtime.h").is_file())
}

/// The compiler driver.
pub(super) fn nvcc(arguments: &[String]) -> Result<Exit, UsageError> {
    if arguments.iter().any(|argument| argument == "--version" || argument == "-V") {
        return version("nvcc");
    }
    let job = Job::read(arguments)?;
    let clang =
        clang().ok_or("nvcc: ptxvm's stand-in calls clang, which is not on PATH; PTXVM_CLANG names one")?;
    let cuda = cuda().ok_or("nvcc: CUDA_PATH must name a folder with CUDA's headers in `include`; docs/guides/cpp.md says how to get them")?;
    let failed = Command::new(&clang).args(job.arguments(&cuda)).exec();
    Err(format!("nvcc: cannot run `{}`: {failed}", clang.display()).into())
}

#[cfg(test)]
mod tests {
    use super::{Job, Target};

    fn job(line: &str) -> Result<Job, String> {
        Job::read(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_are_translated_in_each_spelling() {
        let found =
            job("--cubin -arch sm_80 -m64 -I/a -I /b -DX=1 --define-macro Y=2 -Xptxas -v -std=c++17 -w k.cu");
        let found = found.expect("a job");
        assert_eq!((found.target, found.input.as_str()), (Target::Ptx("cubin"), "k.cu"));
        let right = ["--cuda-gpu-arch=sm_80", "-I/a", "-I/b", "-DX=1", "-DY=2", "-std=c++17", "-w"];
        assert_eq!(found.options, right);
        let all = found.arguments(std::path::Path::new("/cuda"));
        assert!(all.ends_with(&["-S", "-o", "k.cubin", "k.cu"].map(str::to_owned)), "{all:?}");
        let other = job("--gpu-architecture=compute_75 -ptx -o=x.ptx --use_fast_math k.cu").expect("a job");
        assert_eq!(other.output.as_deref(), Some("x.ptx"));
        assert_eq!(other.options[0], "--cuda-gpu-arch=sm_75");
        let other = job("--preprocess -arch sm_80 --compiler-options -P k.cu").expect("a job");
        assert_eq!(other.target, Target::Preprocessed);
    }

    #[test]
    fn what_is_not_known_is_an_error() {
        for line in [
            "k.cu -o a.out",
            "--cubin",
            "--cubin a.cu b.cu",
            "--cubin -frobnicate a.cu",
            "--cubin a.cu -arch",
        ] {
            assert!(job(line).is_err(), "{line}");
        }
    }
}
