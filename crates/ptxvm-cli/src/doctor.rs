//! `ptxvm doctor` and `ptxvm --version --verbose`: the state of this installation, missing parts, and how to
//! fix them.
//!
//! Invariant: nothing is changed; a file that is created to test whether a folder is writable is removed
//! again. Each missing part is reported together with its fix.

use crate::exec::folder;
use crate::exec::nvcc::{OLDEST_CLANG, clang as installed_clang};
use crate::{Exit, UsageError};
use ptxvm::CodeCache;
use std::fmt::Write as _;
use std::path::Path;

/// The result of a check.
enum Found {
    Fine(String),
    /// A missing part that is not required, and its benefit.
    Lacks(String, String),
    /// A problem, and its fix.
    Wrong(String, String),
}

/// Runs all checks, prints a line for each, and returns whether there is a problem.
pub(crate) fn doctor() -> Result<Exit, UsageError> {
    let checks = [
        ("LLVM", llvm()),
        ("processor", Found::Fine(processor())),
        ("code cache", cache()),
        ("libraries", libraries()),
        ("temporary files", temporary()),
        ("clang", clang()),
    ];
    let (mut text, mut wrong) = (String::new(), 0);
    for (what, found) in checks {
        let (mark, says, help) = match found {
            Found::Fine(says) => ("ok     ", says, None),
            Found::Lacks(says, help) => ("note   ", says, Some(help)),
            Found::Wrong(says, help) => {
                wrong += 1;
                ("missing", says, Some(help))
            }
        };
        let _infallible = writeln!(text, "{mark}  {what}: {says}");
        if let Some(help) = help {
            let _infallible = writeln!(text, "         {help}");
        }
    }
    let _infallible = match wrong {
        0 => writeln!(text, "everything that ptxvm needs is here"),
        1 => writeln!(text, "1 thing is missing"),
        n => writeln!(text, "{n} things are missing"),
    };
    crate::print_out(&text)?;
    Ok(if wrong == 0 { Exit::Done } else { Exit::Usage })
}

/// The version, with everything that a bug report should contain.
pub(crate) fn version() -> Result<Exit, UsageError> {
    let mut text = format!("ptxvm {}\n", env!("CARGO_PKG_VERSION"));
    let llvm = match ptxvm::compiler() {
        Ok(compiler) => format!("{} ({})", compiler.version, compiler.library),
        Err(why) => format!("none: {why}"),
    };
    let features = if cfg!(feature = "jit") { "jit" } else { "none" };
    for (what, value) in [
        ("llvm", llvm),
        ("processor", processor()),
        ("features", features.to_owned()),
        ("target", format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS)),
    ] {
        let _infallible = writeln!(text, "{what}: {value}");
    }
    crate::print_out(&text)?;
    Ok(Exit::Done)
}

fn llvm() -> Found {
    match ptxvm::compiler() {
        Ok(compiler) => Found::Fine(format!("{} in {}", compiler.version, compiler.library)),
        Err(why) => Found::Wrong(
            format!("{why}; kernels run in the interpreter, many times slower"),
            "put libLLVM.so.22.1 into `lib` beside the program's folder, or set PTXVM_LLVM to it or to the prefix of an LLVM 22".to_owned(),
        ),
    }
}

/// The processor's name, and the target of native code.
fn processor() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let name = name.map_or("unknown", |(_, name)| name.trim());
    let code = ptxvm::compiler().map_or("none", |compiler| compiler.cpu);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{name}, {cores} threads, native code for {code}")
}

fn cache() -> Found {
    match CodeCache::from_environment() {
        CodeCache::Off => Found::Lacks(
            "native code is not kept on disk".to_owned(),
            "PTXVM_CACHE_DIR names a folder for it; it is empty, or HOME is not set".to_owned(),
        ),
        CodeCache::Folder { path, .. } => {
            // The folder is created on first use, in the nearest folder that exists.
            let existing = path.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("."));
            match writable(existing) {
                Ok(()) => Found::Fine(path.display().to_string()),
                Err(error) => Found::Lacks(
                    format!("`{}` cannot be written: {error}; native code is not kept", existing.display()),
                    "PTXVM_CACHE_DIR names another folder".to_owned(),
                ),
            }
        }
    }
}

fn libraries() -> Found {
    match folder::libraries(std::env::var_os("PTXVM_LIBRARY_PATH").as_deref().map(Path::new)) {
        Err(UsageError(why)) => Found::Wrong(
            format!("{why}; `ptxvm exec` cannot run"),
            "install the whole package, or build all libraries: `cargo build --release`".to_owned(),
        ),
        Ok(place) => {
            let all = folder::library_files();
            let missing: Vec<&str> = all.into_iter().filter(|file| !place.join(file).exists()).collect();
            if missing.is_empty() {
                Found::Fine(place.display().to_string())
            } else {
                Found::Wrong(
                    format!("{} is not in `{}`", missing.join(", "), place.display()),
                    "`cargo build --release` builds all libraries".to_owned(),
                )
            }
        }
    }
}

fn temporary() -> Found {
    let folder = std::env::temp_dir();
    match writable(&folder) {
        Ok(()) => Found::Fine(folder.display().to_string()),
        Err(error) => Found::Wrong(
            format!("`{}` cannot be written: {error}; `ptxvm exec` cannot run", folder.display()),
            "TMPDIR names another folder".to_owned(),
        ),
    }
}

/// The compiler of our NVRTC.
fn clang() -> Found {
    let help = format!("install clang {OLDEST_CLANG} or later; only programs that use NVRTC need it");
    let Some(file) = installed_clang() else {
        return Found::Lacks("not on PATH: programs cannot compile CUDA C++ by NVRTC".to_owned(), help);
    };
    let output = std::process::Command::new(&file).arg("-dumpversion").output();
    let version = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let (file, version) = (file.display(), version.unwrap_or_default());
    match version.split('.').next().unwrap_or_default().parse::<u32>() {
        Ok(major) if major >= OLDEST_CLANG => Found::Fine(format!("{file}, version {version}")),
        Ok(_) => Found::Lacks(format!("`{file}` is version {version}, which is too old for NVRTC"), help),
        Err(_) => Found::Lacks(format!("`{file}` does not report a version"), help),
    }
}

/// Tests whether a file can be created in a folder.
fn writable(folder: &Path) -> std::io::Result<()> {
    use std::hash::{BuildHasher as _, Hasher as _};
    let number = std::hash::RandomState::new().build_hasher().finish();
    let file = folder.join(format!(".ptxvm-doctor-{number:016x}"));
    std::fs::OpenOptions::new().write(true).create_new(true).open(&file)?;
    std::fs::remove_file(&file)
}
