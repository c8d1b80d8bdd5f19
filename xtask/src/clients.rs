//! `cargo xtask clients`: programs that know nothing of ptxvm, installed from their registries and run under `ptxvm exec`.
//!
//! Everything lies under `target/clients/`: a virtual environment for each Python client, a build folder for each Rust crate, and a CUDA
//! folder of public headers for C++. It is made once, and made again when the packages of a client change.
//!
//! Invariant: a client passes when its program from `tests/clients/` exits with 0. What it does not do: nothing that a client's compiler emits is
//! kept in the repository.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// How a client is installed and run.
enum Program {
    /// Packages of pip, and a script.
    Python(&'static [&'static str], &'static str),
    /// The same, where the package is compiled against CUDA's headers.
    Compiled(&'static [&'static str], &'static str),
    /// A cargo project.
    Rust(&'static str),
    /// A CUDA program for clang.
    Cpp(&'static str),
}

/// A client.
struct Client {
    name: &'static str,
    program: Program,
    /// Options of `ptxvm exec`.
    options: &'static [&'static str],
    /// Variables of its own.
    variables: &'static [(&'static str, &'static str)],
    /// Whether the task fails where it does.
    required: bool,
}

const fn client(name: &'static str, program: Program) -> Client {
    Client { name, program, options: &[], variables: &[], required: true }
}

/// All clients.
const CLIENTS: &[Client] = &[
    client("tinygrad", Program::Python(&["tinygrad==0.14.0", "numpy"], "tinygrad_ops.py")),
    Client {
        variables: &[("DEV", "MOCK+CUDA:PTX")],
        ..client("tinygrad-ptx-run", Program::Python(&["tinygrad==0.14.0", "numpy"], "tinygrad_ptx_run.py"))
    },
    client("pycuda", Program::Compiled(&["pycuda==2026.1", "numpy"], "pycuda_module.py")),
    client("cuda-bindings-12", Program::Python(&["cuda-bindings==12.9.*", "numpy"], "bindings.py")),
    Client {
        options: &["--driver-version", "13.0"],
        ..client("cuda-bindings-13", Program::Python(&["cuda-bindings==13.*", "numpy"], "bindings.py"))
    },
    client(
        "cuda-core",
        Program::Python(&["cuda-core==1.2.*", "cuda-bindings==12.9.*", "numpy"], "core_objects.py"),
    ),
    client("cudarc", Program::Rust("cudarc")),
    client("cust", Program::Rust("cust")),
    Client {
        options: &["--sm", "75", "--host-pointers"],
        ..client("triton", Program::Python(&["triton==3.9.*", "numpy", "setuptools"], "triton_kernels.py"))
    },
    client("cpp", Program::Cpp("program.cu")),
    Client {
        required: false,
        ..client(
            "numba-cuda",
            Program::Python(
                // Without nvJitLink, which makes machine code: numba then links by the driver.
                &[
                    "numba-cuda==0.30.*",
                    "numba==0.68.*",
                    "cuda-bindings==12.9.*",
                    "nvidia-cuda-nvcc-cu12==12.9.*",
                    "nvidia-cuda-nvrtc-cu12==12.9.*",
                    "nvidia-cuda-runtime-cu12==12.9.*",
                ],
                "numba_kernels.py",
            ),
        )
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
                    "nvidia-cuda-nvrtc-cu12",
                    "nvidia-cuda-runtime-cu12",
                ],
                "cupy_arrays.py",
            ),
        )
    },
];

/// Public headers of CUDA 12.9, and the bitcode of mathematical functions that clang links.
const HEADERS: &[&str] = &[
    "nvidia-cuda-runtime-cu12==12.9.*",
    "nvidia-cuda-nvcc-cu12==12.9.*",
    "nvidia-cuda-profiler-api-cu12==12.9.*",
];

/// Runs the clients of those names, or all.
pub(crate) fn clients(names: &[String]) -> Result<(), String> {
    if let Some(unknown) = names.iter().find(|name| CLIENTS.iter().all(|client| client.name != **name)) {
        let known: Vec<_> = CLIENTS.iter().map(|client| client.name).collect();
        return Err(format!("there is no client `{unknown}`; there are {}", known.join(", ")));
    }
    let place = Place::prepare()?;
    let mut failed = Vec::new();
    for client in
        CLIENTS.iter().filter(|client| names.is_empty() || names.iter().any(|name| name == client.name))
    {
        let start = Instant::now();
        let result = place.run(client);
        let seconds = start.elapsed().as_secs();
        match result {
            Ok(()) => println!("{:<18} passed  {seconds} s", client.name),
            Err(why) => {
                let kind = if client.required { "FAILED" } else { "failed (optional)" };
                println!("{:<18} {kind}  {seconds} s: {why}", client.name);
                if client.required {
                    failed.push(client.name);
                }
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("these clients failed: {}", failed.join(", "))) }
}

/// Where everything lies.
struct Place {
    root: PathBuf,
    work: PathBuf,
    target: PathBuf,
}

impl Place {
    /// Builds the program and its libraries.
    fn prepare() -> Result<Self, String> {
        let root = crate::root();
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        let work = target.join("clients");
        std::fs::create_dir_all(&work)
            .map_err(|error| format!("cannot make `{}`: {error}", work.display()))?;
        run(Command::new("cargo").args(["build", "--release"]).current_dir(&root), "cargo build")?;
        Ok(Self { target: target.join("release"), root, work })
    }

    fn run(&self, client: &Client) -> Result<(), String> {
        let script = |name: &str| self.root.join("tests/clients").join(name);
        match client.program {
            Program::Python(packages, name) => {
                let python = self.environment(client.name, packages, &[])?;
                self.exec(client, &[python.as_os_str(), script(name).as_os_str()])
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
                self.exec(client, &[python.as_os_str(), script(name).as_os_str()])
            }
            Program::Rust(name) => {
                let cuda = self.cuda()?;
                let build = self.work.join(name);
                let mut cargo = Command::new("cargo");
                cargo.args(["build", "--quiet"]).current_dir(script(name));
                cargo.env("CARGO_TARGET_DIR", &build).env("CUDA_PATH", &cuda).env("CUDA_LIBRARY_PATH", &cuda);
                run(&mut cargo, "cargo build")?;
                self.exec(client, &[build.join("debug").join(format!("client-{name}")).as_os_str()])
            }
            Program::Cpp(name) => {
                let cuda = self.cuda()?;
                let program = self.work.join("program");
                let mut clang = Command::new(self.target.join("ptxvm"));
                // The stand-ins for the assembler and the packer are on its path.
                clang.args(["exec", "--", &clang_name(), "-x", "cuda", "-O2", "--cuda-gpu-arch=sm_75"]);
                clang.arg(format!("--cuda-path={}", cuda.display())).arg("-Wno-unknown-cuda-version");
                clang.arg(script(name)).arg("-o").arg(&program);
                clang.arg(format!("-L{}", cuda.join("lib64").display())).arg("-lcudart");
                run(&mut clang, "clang")?;
                self.exec(client, &[program.as_os_str()])
            }
        }
    }

    /// Runs a command under `ptxvm exec`.
    fn exec(&self, client: &Client, command: &[&std::ffi::OsStr]) -> Result<(), String> {
        let mut program = Command::new(self.target.join("ptxvm"));
        program.arg("exec").args(client.options).arg("--").args(command);
        program.envs(client.variables.iter().copied());
        run(&mut program, "its program")
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

    /// A folder as CUDA's installer makes it: public headers, and our libraries under their names.
    fn cuda(&self) -> Result<PathBuf, String> {
        let python = self.environment("headers", HEADERS, &[])?;
        let script = "import nvidia, os; print(list(nvidia.__path__)[0])";
        let output =
            Command::new(&python).args(["-c", script]).output().map_err(|error| error.to_string())?;
        let packages = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
        let cuda = self.work.join("cuda");
        let _first_time = std::fs::remove_dir_all(&cuda);
        for folder in ["include", "lib64", "nvvm", "bin"] {
            std::fs::create_dir_all(cuda.join(folder)).map_err(|error| error.to_string())?;
        }
        for part in ["cuda_runtime/include", "cuda_nvcc/include", "cuda_profiler_api/include"] {
            let entries =
                std::fs::read_dir(packages.join(part)).map_err(|error| format!("{part}: {error}"))?;
            for entry in entries.flatten() {
                link(&entry.path(), &cuda.join("include").join(entry.file_name()))?;
            }
        }
        // clang includes it, and needs nothing in it.
        std::fs::write(cuda.join("include/curand_mtgp32_kernel.h"), "").map_err(|error| error.to_string())?;
        link(&packages.join("cuda_nvcc/nvvm/libdevice"), &cuda.join("nvvm/libdevice"))?;
        for (file, name) in [
            ("libptxvm_cuda.so", "libcuda.so"),
            ("libptxvm_cuda.so", "libcuda.so.1"),
            ("libptxvm_cudart.so", "libcudart.so"),
        ] {
            link(&self.target.join(file), &cuda.join("lib64").join(name))?;
        }
        Ok(cuda)
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
