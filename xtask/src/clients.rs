//! `cargo xtask clients`: programs that are independent of ptxvm, installed from their registries and run
//! under `ptxvm exec`.
//!
//! Everything is below `target/clients/`: a virtual environment for each Python client, a build folder for
//! each Rust crate, and a CUDA folder of public headers for C++. It is created once, and again when the
//! packages of a client change.
//!
//! Invariant: a client passes when its program from `tests/clients/` exits with 0. No output of a client's
//! compiler is kept in the repository.
//!
//! `--libraries FOLDER` uses `ptxvm` and its libraries from there and builds nothing. `--suites` also runs
//! the clients' own tests. Collections of programs (`hecbench`, `cuda-samples`) run with `--suites` if
//! `--sources FOLDER` gives their location. A client that cannot run here is listed as skipped, with the
//! missing requirement. `--tool NAME` runs everything under that tool of `ptxvm exec`, `--tool all` once
//! under each; findings fail the task as failures do, unless the client's rules accept them (`watch.rs`).

mod programs;
mod watch;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use watch::{Found, Watch};

/// How a client is installed and run.
enum Program {
    /// Packages of pip, and a script.
    Python(&'static [&'static str], &'static str),
    /// The same for a package that is compiled against CUDA's headers, whose folder is the script's argument.
    Compiled(&'static [&'static str], &'static str),
    /// A cargo project.
    Rust(&'static str),
    /// A CUDA program for clang, and the options that link our runtime library.
    Cpp(&'static str, &'static [&'static str]),
    /// A list of third-party programs, whose sources are in a folder that the user names.
    Sources(&'static str),
}

/// A client.
struct Client {
    name: &'static str,
    program: Program,
    /// Options of `ptxvm exec`.
    options: &'static [&'static str],
    /// Environment variables.
    variables: &'static [(&'static str, &'static str)],
    /// Whether its failure fails the task.
    required: bool,
    /// The client's own tests, which run with `--suites` only: minutes to an hour.
    suite: Option<Suite>,
}

/// A client's own tests.
enum Suite {
    /// Modules of unittest that are installed with the package: all `test_*.py` below that folder of
    /// site-packages, named from that package.
    Unittest { folder: &'static str, package: &'static str, needs: &'static [&'static str] },
    /// Tests of a crate, compiled from its source with these features; only those with this in their path.
    /// They find NVRTC.
    Crate { name: &'static str, features: &'static str, filter: &'static str },
}

const fn client(name: &'static str, program: Program) -> Client {
    Client { name, program, options: &[], variables: &[], required: true, suite: None }
}

/// All clients.
const CLIENTS: &[Client] = &[
    client("tinygrad", Program::Python(&["tinygrad==0.14.0", "numpy"], "tinygrad_ops.py")),
    Client {
        variables: &[("DEV", "MOCK+CUDA:PTX")],
        ..client("tinygrad-ptx-run", Program::Python(&["tinygrad==0.14.0", "numpy"], "tinygrad_ptx_run.py"))
    },
    client("pycuda", Program::Compiled(&["pycuda==2026.1", "numpy"], "pycuda_module.py")),
    Client {
        options: &["--nvcc"],
        ..client("pycuda-source", Program::Compiled(&["pycuda==2026.1", "numpy"], "pycuda_source.py"))
    },
    client("cuda-bindings-12", Program::Python(&["cuda-bindings==12.9.*", "numpy"], "bindings.py")),
    Client {
        options: &["--driver-version", "13.0"],
        ..client("cuda-bindings-13", Program::Python(&["cuda-bindings==13.*", "numpy"], "bindings.py"))
    },
    client(
        "cuda-core",
        Program::Python(&["cuda-core==1.2.*", "cuda-bindings==12.9.*", "numpy"], "core_objects.py"),
    ),
    Client {
        suite: Some(Suite::Crate {
            name: "cudarc",
            features: "std,driver,nvrtc,dynamic-loading,cuda-12090",
            filter: "driver::",
        }),
        ..client("cudarc", Program::Rust("cudarc"))
    },
    client("cust", Program::Rust("cust")),
    Client {
        options: &["--sm", "80", "--host-pointers"],
        ..client("triton", Program::Python(&["triton==3.9.*", "numpy", "setuptools"], "triton_kernels.py"))
    },
    client("cpp", Program::Cpp("program.cu", &["-lcudart"])),
    client("cub-sort", Program::Cpp("device/sort.cu", &["-lcudart"])),
    client("cub-scan", Program::Cpp("device/scan.cu", &["-lcudart"])),
    client("cub-select", Program::Cpp("device/select.cu", &["-lcudart"])),
    client("thrust", Program::Cpp("device/thrust.cu", &["-lcudart"])),
    Client { required: false, ..client("hecbench", Program::Sources("hecbench.txt")) },
    Client { required: false, ..client("cuda-samples", Program::Sources("cuda-samples.txt")) },
    client("cpp-static", Program::Cpp("program.cu", &["-lcudart_static", "-ldl", "-lpthread", "-lm"])),
    Client {
        required: false,
        suite: Some(Suite::Unittest {
            folder: "numba_cuda/numba/cuda/tests",
            package: "numba.cuda.tests",
            needs: &["cffi", "filecheck", "ml_dtypes", "psutil", "pytest", "nvidia-cuda-cccl-cu12==12.9.*"],
        }),
        // Its tests of caches use their own folders.
        variables: &[("NUMBA_CACHE_DIR", "")],
        ..client("numba-cuda", Program::Python(NUMBA, "numba_kernels.py"))
    },
    Client {
        required: false,
        ..client("numba-nvjitlink", Program::Python(NUMBA_WITH_LINKER, "numba_kernels.py"))
    },
    Client {
        required: false,
        ..client(
            "cupy",
            Program::Python(
                &[
                    "cupy-cuda12x==12.3.0",
                    "numpy<2",
                    "setuptools",
                    "nvidia-cuda-nvrtc-cu12==12.9.*",
                    "nvidia-cuda-runtime-cu12==12.9.*",
                    // Its modules are linked with these packages, which are not executed.
                    "nvidia-cublas-cu12==12.9.*",
                    "nvidia-cufft-cu12==11.*",
                    "nvidia-curand-cu12==10.*",
                    "nvidia-cusparse-cu12==12.5.*",
                    "nvidia-cusolver-cu12==11.7.*",
                ],
                "cupy_arrays.py",
            ),
        )
    },
];

/// numba-cuda without nvJitLink: it links by the driver.
const NUMBA: &[&str] = &[
    "numba-cuda==0.30.*",
    "numba==0.68.*",
    "numpy<2.5",
    "cuda-bindings==12.9.*",
    "nvidia-cuda-nvcc-cu12==12.9.*",
    "nvidia-cuda-nvrtc-cu12==12.9.*",
    "nvidia-cuda-runtime-cu12==12.9.*",
];

/// The same with nvJitLink, which is replaced by our linker.
const NUMBA_WITH_LINKER: &[&str] = &[
    "numba-cuda==0.30.*",
    "numba==0.68.*",
    "numpy<2.5",
    "cuda-bindings==12.9.*",
    "nvidia-cuda-nvcc-cu12==12.9.*",
    "nvidia-cuda-nvrtc-cu12==12.9.*",
    "nvidia-cuda-runtime-cu12==12.9.*",
    "nvidia-nvjitlink-cu12==12.9.*",
];

/// Public headers of CUDA 12.9, and the bitcode of mathematical functions that clang links.
const HEADERS: &[&str] = &[
    "nvidia-cuda-runtime-cu12==12.9.*",
    "nvidia-cuda-nvcc-cu12==12.9.*",
    "nvidia-cuda-profiler-api-cu12==12.9.*",
    "nvidia-cuda-cccl-cu12==12.9.*",
];

/// Libraries whose headers third-party programs include; they are not executed.
const LIBRARY_HEADERS: &[(&str, &str)] =
    &[("nvidia-cublas-cu12==12.9.*", "cublas"), ("nvidia-curand-cu12==10.3.*", "curand")];

/// The result of a client.
struct Row {
    name: String,
    outcome: Outcome,
    seconds: u64,
    /// The reason of the failure, or the result of its tests.
    note: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Passed,
    /// It passed, and its tool found this much.
    Findings(usize),
    Failed,
    /// It failed, but is not required.
    Optional,
    /// A requirement is missing.
    Skipped,
}

/// A run that did not fail.
#[derive(Default)]
struct Done {
    /// What its tool found; 0 without a tool.
    findings: usize,
    note: String,
}

impl Done {
    /// A run of which the note says something, and what its tool found.
    fn with(note: impl Into<String>, found: Option<Found>) -> Self {
        let note = note.into();
        match found {
            None => Self { findings: 0, note },
            Some(found) if note.is_empty() => Self { findings: found.count, note: found.note },
            Some(found) if found.note.is_empty() => Self { findings: found.count, note },
            Some(found) => Self { findings: found.count, note: format!("{note}; {}", found.note) },
        }
    }
}

/// A client that is ready to run.
enum Installed<'a> {
    /// A program and its arguments.
    Command(Vec<OsString>),
    /// A list of third-party programs.
    List(programs::Tools<'a>, PathBuf),
}

/// The options of a run.
struct Wish<'a> {
    suites: bool,
    sources: Option<&'a Path>,
    /// Each client runs once under each of these, or once without a tool.
    tools: Vec<&'static str>,
}

/// Runs the named clients, or all.
pub(crate) fn clients(arguments: &[String]) -> Result<(), String> {
    let mut names = Vec::new();
    let (mut libraries, mut wish) = (None, Wish { suites: false, sources: None, tools: Vec::new() });
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--libraries" => libraries = Some(rest.next().ok_or("--libraries names a folder")?),
            "--sources" => wish.sources = Some(Path::new(rest.next().ok_or("--sources names a folder")?)),
            "--suites" => wish.suites = true,
            "--tool" => wish.tools = watch::tools(rest.next().ok_or("--tool names a tool, or all")?)?,
            name => names.push(name),
        }
    }
    if let Some(unknown) = names.iter().find(|name| CLIENTS.iter().all(|client| client.name != **name)) {
        let known: Vec<_> = CLIENTS.iter().map(|client| client.name).collect();
        return Err(format!("there is no client `{unknown}`; there are {}", known.join(", ")));
    }
    let place = Place::prepare(libraries.map(Path::new))?;
    let mut rows: Vec<Row> = Vec::new();
    let mut add = |name: String, outcome: Outcome, start: Instant, note: String| {
        let row = Row { name, outcome, seconds: start.elapsed().as_secs(), note };
        println!("{row}");
        rows.push(row);
    };
    let runs = match wish.tools.as_slice() {
        [] => vec![None],
        tools => tools.iter().copied().map(Some).collect(),
    };
    for client in CLIENTS.iter().filter(|client| names.is_empty() || names.contains(&client.name)) {
        let mut start = Instant::now();
        if let Some(missing) = missing(client, &wish) {
            add(client.name.to_owned(), Outcome::Skipped, start, missing);
            continue;
        }
        let installed = place.install(client, &wish);
        for tool in &runs {
            let of_tool = tool.map(|tool| format!(" {tool}")).unwrap_or_default();
            let result = installed.as_ref().map_err(String::clone);
            let result = result.and_then(|installed| place.run(client, installed, *tool));
            let (end, note) = outcome(client, result);
            add(format!("{}{of_tool}", client.name), end, start, note);
            if let (true, Some(suite)) = (wish.suites, &client.suite) {
                let start = Instant::now();
                let (end, note) = outcome(client, place.suite(client, suite, *tool));
                add(format!("{}'s tests{of_tool}", client.name), end, start, note);
            }
            start = Instant::now();
        }
    }
    println!();
    for row in &rows {
        println!("{row}");
    }
    let count = |outcome| rows.iter().filter(|row| row.outcome == outcome).count();
    let (passed, failed, optional, skipped) =
        (count(Outcome::Passed), count(Outcome::Failed), count(Outcome::Optional), count(Outcome::Skipped));
    let found = rows.iter().filter(|row| matches!(row.outcome, Outcome::Findings(_))).count();
    let with_findings =
        if wish.tools.is_empty() { String::new() } else { format!("{found} with findings, ") };
    println!(
        "{passed} passed, {with_findings}{failed} failed, {optional} failed that are optional, {skipped} skipped"
    );
    match failed + found {
        0 => Ok(()),
        _ if found == 0 => Err(format!("{failed} clients failed")),
        _ => Err(format!("{failed} clients failed, {found} have findings")),
    }
}

/// The outcome of a client's run, and the note of its row.
fn outcome(client: &Client, result: Result<Done, String>) -> (Outcome, String) {
    match result {
        Ok(Done { findings: 0, note }) => (Outcome::Passed, note),
        Ok(Done { findings, note }) => (Outcome::Findings(findings), note),
        Err(why) if client.required => (Outcome::Failed, why),
        Err(why) => (Outcome::Optional, why),
    }
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let outcome = match self.outcome {
            Outcome::Passed => "passed".to_owned(),
            Outcome::Findings(1) => "1 finding".to_owned(),
            Outcome::Findings(count) => format!("{count} findings"),
            Outcome::Failed => "FAILED".to_owned(),
            Outcome::Optional => "failed (optional)".to_owned(),
            Outcome::Skipped => "skipped".to_owned(),
        };
        write!(f, "{:<28} {outcome:<18} {:>5} s  {}", self.name, self.seconds, self.note)
    }
}

/// The locations of all parts.
struct Place {
    root: PathBuf,
    work: PathBuf,
    /// Where `ptxvm` and its libraries are.
    libraries: PathBuf,
}

impl Place {
    /// Builds the program and its libraries, unless a folder with them is given.
    fn prepare(libraries: Option<&Path>) -> Result<Self, String> {
        let root = crate::root();
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        let work = target.join("clients");
        std::fs::create_dir_all(&work)
            .map_err(|error| format!("cannot make `{}`: {error}", work.display()))?;
        let libraries = match libraries {
            Some(folder) => {
                folder.canonicalize().map_err(|error| format!("`{}`: {error}", folder.display()))?
            }
            None => {
                let packages = [
                    "-p",
                    "ptxvm-cli",
                    "-p",
                    "ptxvm-cuda",
                    "-p",
                    "ptxvm-cudart",
                    "-p",
                    "ptxvm-cublas",
                    "-p",
                    "ptxvm-nvrtc",
                    "-p",
                    "ptxvm-preload",
                ];
                let mut cargo = Command::new("cargo");
                run(cargo.args(["build", "--release"]).args(packages).current_dir(&root), "cargo build")?;
                target.join("release")
            }
        };
        Ok(Self { root, work, libraries })
    }

    /// Installs or builds a client.
    fn install<'a>(&self, client: &Client, wish: &Wish<'a>) -> Result<Installed<'a>, String> {
        let script = |name: &str| self.root.join("tests/clients").join(name);
        let command = |parts: &[&Path]| {
            Ok(Installed::Command(parts.iter().map(|part| part.as_os_str().to_owned()).collect()))
        };
        match client.program {
            Program::Python(packages, name) => {
                let python = self.environment(client.name, packages, &[])?;
                command(&[&python, &script(name)])
            }
            Program::Compiled(packages, name) => {
                let cuda = self.cuda()?;
                let folder = self.work.join(client.name).with_extension("home");
                std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
                // PyCUDA reads its configuration from the home folder.
                let settings = "CUDA_ENABLE_CURAND = False\nCUDA_ENABLE_GL = False\n";
                std::fs::write(folder.join(".aksetup-defaults.py"), settings)
                    .map_err(|error| error.to_string())?;
                let variables = [
                    ("HOME", folder),
                    ("CPATH", cuda.join("include")),
                    ("LIBRARY_PATH", cuda.join("lib64")),
                    ("CUDA_ROOT", cuda.clone()),
                ];
                let python = self.environment(client.name, packages, &variables)?;
                command(&[&python, &script(name), &cuda])
            }
            Program::Rust(name) => {
                let cuda = self.cuda()?;
                let build = self.work.join(name);
                let mut cargo = Command::new("cargo");
                cargo.args(["build", "--quiet"]).current_dir(script(name));
                cargo.env("CARGO_TARGET_DIR", &build).env("CUDA_PATH", &cuda).env("CUDA_LIBRARY_PATH", &cuda);
                run(&mut cargo, "cargo build")?;
                command(&[&build.join("debug").join(format!("client-{name}"))])
            }
            Program::Cpp(name, runtime) => {
                let cuda = self.cuda()?;
                let program = self.work.join(format!("program-{}", client.name));
                let mut clang = Command::new(self.libraries.join("ptxvm"));
                // Its path contains the stand-ins for the assembler and the packer.
                clang.args(["exec", "--", &clang_name(), "-x", "cuda", "-O2", "--cuda-gpu-arch=sm_75"]);
                clang.arg(format!("--cuda-path={}", cuda.display())).arg("-Wno-unknown-cuda-version");
                clang.arg(script(name)).arg("-o").arg(&program);
                clang.arg(format!("-L{}", cuda.join("lib64").display())).args(runtime);
                run(&mut clang, "clang")?;
                command(&[&program])
            }
            Program::Sources(list) => {
                let tools = programs::Tools {
                    ptxvm: self.libraries.join("ptxvm"),
                    cuda: self.cuda_with("cuda-libraries", LIBRARY_HEADERS)?,
                    clang: clang_name(),
                    sources: wish.sources.ok_or("--sources names the folder with its programs")?,
                    results: self.work.join(client.name),
                };
                Ok(Installed::List(tools, script(list)))
            }
        }
    }

    /// Runs a client under a tool, or without one.
    fn run(
        &self,
        client: &Client,
        installed: &Installed<'_>,
        tool: Option<&'static str>,
    ) -> Result<Done, String> {
        let command = match installed {
            Installed::List(tools, list) => return tools.run_all(list, tool),
            Installed::Command(command) => command,
        };
        let watch = self.watch(client.name, tool)?;
        let mut program = self.command(client, command, watch.as_ref());
        match watch {
            None => run(&mut program, "its program").map(|()| Done::default()),
            Some(watch) => {
                let _four_with_findings =
                    program.status().map_err(|error| format!("its program does not start: {error}"))?;
                watch.done("its program", String::new())
            }
        }
    }

    /// What watches a program, if anything does.
    fn watch(&self, name: &str, tool: Option<&'static str>) -> Result<Option<Watch>, String> {
        tool.map(|tool| Watch::new(tool, &self.work.join("findings"), name)).transpose()
    }

    /// A command under `ptxvm exec`.
    fn command(&self, client: &Client, command: &[impl AsRef<OsStr>], watch: Option<&Watch>) -> Command {
        let mut program = Command::new(self.libraries.join("ptxvm"));
        program.arg("exec").args(client.options);
        match watch {
            None => program.arg("--"),
            Some(watch) => program.args(watch.options()).arg("--").args(watch.shell()),
        };
        program.args(command).envs(client.variables.iter().copied());
        // Input for `cargo xtask soak`.
        program.env("PTXVM_KEEP_PTX", self.work.join("kernels"));
        program
    }

    /// Runs a client's own tests. Their results are listed in a file; the task fails only if they cannot be
    /// run.
    fn suite(&self, client: &Client, suite: &Suite, tool: Option<&'static str>) -> Result<Done, String> {
        let name = format!("{}-tests", client.name);
        // Tests that a file of results lists are not run again.
        let of_tool = tool.map(|tool| format!("-{tool}")).unwrap_or_default();
        let results = self.work.join(format!("{name}{of_tool}.jsonl"));
        let watch = self.watch(&name, tool)?;
        match suite {
            Suite::Unittest { folder, package, needs } => {
                let Program::Python(packages, _) = client.program else {
                    return Err("it is no package".into());
                };
                let python = self.environment(client.name, packages, &[])?;
                let mut pip = Command::new(&python);
                pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(*needs);
                run(&mut pip, "pip install")?;
                let script = self.root.join("tests/clients/suite.py");
                let mut command: Vec<&OsStr> = vec![python.as_os_str(), script.as_os_str()];
                command.extend([results.as_os_str(), "2".as_ref(), folder.as_ref(), package.as_ref()]);
                last_line(&mut self.command(client, &command, watch.as_ref()), watch.as_ref())
            }
            Suite::Crate { name, features, filter } => {
                let source = crate_source(&self.root.join("tests/clients").join(name), name)?;
                let copy = self.work.join(format!("{name}-source"));
                let _first_time = std::fs::remove_dir_all(&copy);
                run(Command::new("cp").arg("-r").arg(&source).arg(&copy), "cp")?;
                // It is inside of our workspace but does not belong to it.
                let manifest = copy.join("Cargo.toml");
                let text = std::fs::read_to_string(&manifest).map_err(|error| error.to_string())?;
                std::fs::write(&manifest, text + "\n[workspace]\n").map_err(|error| error.to_string())?;
                let python = self.environment("nvrtc", &["nvidia-cuda-nvrtc-cu12==12.9.*"], &[])?;
                let compiler = packages_of(&python)?.join("cuda_nvrtc/lib");
                let (cargo, target) = (OsString::from("cargo"), self.work.join(format!("{name}-tests")));
                let arguments = [
                    "test",
                    "--no-default-features",
                    "--features",
                    features,
                    "--lib",
                    filter,
                    "--",
                    "--test-threads=1",
                ];
                let mut command: Vec<&OsStr> = vec![cargo.as_os_str()];
                command.extend(arguments.iter().map(OsStr::new));
                let mut command = self.command(client, &command, watch.as_ref());
                command.current_dir(&copy).env("CARGO_TARGET_DIR", &target).env("LD_LIBRARY_PATH", &compiler);
                let output =
                    command.output().map_err(|error| format!("cargo test does not start: {error}"))?;
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                std::fs::write(&results, &text).map_err(|error| error.to_string())?;
                let total = text.lines().rev().find(|line| line.starts_with("test result:"));
                let total = total.ok_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
                // Failed tests are counted in that line.
                let findings = watch.map(|watch| watch.found()).transpose()?;
                Ok(Done::with(total, findings))
            }
        }
    }

    /// The Python of a virtual environment with these packages.
    fn environment(
        &self,
        name: &str,
        packages: &[&str],
        variables: &[(&str, PathBuf)],
    ) -> Result<PathBuf, String> {
        let folder = self.work.join(name);
        let (python, marker) = (folder.join("bin/python"), folder.join("packages"));
        let wanted = packages.join("\n");
        if std::fs::read_to_string(&marker).is_ok_and(|found| found == wanted) {
            return Ok(python);
        }
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder), "python3 -m venv")?;
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(packages);
        pip.envs(variables.iter().map(|(name, value)| (name, value)));
        run(&mut pip, "pip install")?;
        std::fs::write(&marker, wanted).map_err(|error| error.to_string())?;
        Ok(python)
    }

    /// A folder with the layout of CUDA's installer: public headers, and our libraries under their names.
    fn cuda(&self) -> Result<PathBuf, String> {
        self.cuda_with("cuda", &[])
    }

    /// The same with headers of more packages.
    fn cuda_with(&self, name: &str, more: &[(&str, &str)]) -> Result<PathBuf, String> {
        let python = self.environment("headers", HEADERS, &[])?;
        let packages = packages_of(&python)?;
        let mut parts: Vec<PathBuf> = ["cuda_runtime", "cuda_nvcc", "cuda_profiler_api", "cuda_cccl"]
            .iter()
            .map(|part| packages.join(part))
            .collect();
        if !more.is_empty() {
            let names: Vec<&str> = more.iter().map(|(package, _)| *package).collect();
            let packages = packages_of(&self.environment("library-headers", &names, &[])?)?;
            parts.extend(more.iter().map(|(_, part)| packages.join(part)));
        }
        let cuda = self.work.join(name);
        let _first_time = std::fs::remove_dir_all(&cuda);
        for folder in ["include", "lib64", "nvvm", "bin"] {
            std::fs::create_dir_all(cuda.join(folder)).map_err(|error| error.to_string())?;
        }
        for part in parts.iter().map(|part| part.join("include")) {
            let entries = std::fs::read_dir(&part);
            let entries = entries.map_err(|error| format!("cannot read `{}`: {error}", part.display()))?;
            for entry in entries.flatten() {
                link(&entry.path(), &cuda.join("include").join(entry.file_name()))?;
            }
        }
        // clang includes it, but uses none of its contents.
        let generator = cuda.join("include/curand_mtgp32_kernel.h");
        if !generator.exists() {
            std::fs::write(&generator, "").map_err(|error| error.to_string())?;
        }
        link(&packages.join("cuda_nvcc/nvvm/libdevice"), &cuda.join("nvvm/libdevice"))?;
        for (file, name) in [
            ("libptxvm_cuda.so", "libcuda.so"),
            ("libptxvm_cuda.so", "libcuda.so.1"),
            ("libptxvm_cudart.so", "libcudart.so"),
            ("libptxvm_cublas.so", "libcublas.so"),
            ("libptxvm_cublas.so", "libcublasLt.so"),
            ("libptxvm_cudart.a", "libcudart_static.a"),
        ] {
            link(&self.libraries.join(file), &cuda.join("lib64").join(name))?;
        }
        Ok(cuda)
    }
}

/// Where an environment has NVIDIA's packages.
fn packages_of(python: &Path) -> Result<PathBuf, String> {
    let script = "import nvidia; print(list(nvidia.__path__)[0])";
    let output = Command::new(python).args(["-c", script]).output().map_err(|error| error.to_string())?;
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

/// The folder with the source of a crate that a project depends on.
fn crate_source(project: &Path, name: &str) -> Result<PathBuf, String> {
    let mut cargo = Command::new("cargo");
    let output = cargo.args(["metadata", "--format-version", "1"]).current_dir(project).output();
    let output = output.map_err(|error| format!("cargo metadata does not start: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mark = format!("/{name}-");
    // Paths of manifests contain no character that JSON escapes.
    let manifests = text.split("\"manifest_path\":\"").skip(1).filter_map(|rest| rest.split('"').next());
    let found = manifests
        .filter(|path| !path.starts_with(&*project.to_string_lossy()))
        .find(|path| path.contains(&mark));
    let found = found.ok_or_else(|| format!("cargo metadata names no source of {name}"))?;
    Ok(Path::new(found).parent().unwrap_or(Path::new("/")).to_owned())
}

/// The last line of a command's output; the rest goes to standard error.
fn last_line(command: &mut Command, watch: Option<&Watch>) -> Result<Done, String> {
    let output = command.stderr(std::process::Stdio::inherit()).output();
    let output = output.map_err(|error| format!("its tests do not start: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let last = || text.lines().last().map(str::to_owned).ok_or_else(|| "its tests said nothing".to_owned());
    match watch {
        Some(watch) => watch.done("its tests", last()?),
        None if output.status.success() => Ok(Done { findings: 0, note: last()? }),
        None => Err(format!("its tests ended with {}", output.status)),
    }
}

/// A client's missing requirement, if any.
fn missing(client: &Client, wish: &Wish<'_>) -> Option<String> {
    let clang = || {
        let name = clang_name();
        let found = Command::new(&name).arg("--version").output().is_ok_and(|output| output.status.success());
        (!found).then(|| format!("wants clang, and `{name}` does not start; CLANG names another"))
    };
    match client.program {
        Program::Python(..) | Program::Compiled(..) | Program::Rust(_) => None,
        Program::Cpp(..) => clang(),
        Program::Sources(_) if !wish.suites || wish.sources.is_none() => {
            Some("wants --suites and --sources FOLDER, where its programs are".to_owned())
        }
        Program::Sources(_) => clang(),
    }
}

fn clang_name() -> String {
    std::env::var("CLANG").unwrap_or_else(|_| "clang++-22".to_owned())
}

fn link(to: &Path, at: &Path) -> Result<(), String> {
    match std::os::unix::fs::symlink(to, at) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(format!("cannot link `{}`: {error}", at.display()))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

fn run(command: &mut Command, what: &str) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("{what} does not start: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{what} ended with {status}")) }
}
