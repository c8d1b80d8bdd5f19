//! The tree that every package holds: `bin`, `lib/ptxvm`, `share`.
//!
//! Invariant: the tree works at any location. `bin/ptxvm` finds `../lib/ptxvm`, and each library finds LLVM
//! in its own folder.

use super::{elf, failed, make, notices, output, read, run, target, write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The libraries that `ptxvm exec` offers to programs, by cargo's names.
const LIBRARIES: [&str; 5] = [
    "libptxvm_cuda.so",
    "libptxvm_cudart.so",
    "libptxvm_cublas.so",
    "libptxvm_nvrtc.so",
    "libptxvm_preload.so",
];

/// The file name of LLVM for the program and its libraries.
const LLVM: &str = "libLLVM.so.22.1";

/// Shells, with the folder of their completions below `share`.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "bash-completion/completions/ptxvm"),
    ("zsh", "zsh/site-functions/_ptxvm"),
    ("fish", "fish/vendor_completions.d/ptxvm.fish"),
];

/// Builds everything in release mode, and makes the tree in a folder, which is emptied first.
pub(crate) fn stage(folder: &Path) -> Result<(), String> {
    run(Command::new(env!("CARGO"))
        .args(["build", "--release", "--locked", "--quiet"])
        .current_dir(crate::root()))?;
    super::clear(folder)?;
    let built = target().join("release");
    let (bin, lib) = (folder.join("bin"), folder.join("lib/ptxvm"));
    make(&bin)?;
    put(&built.join("ptxvm"), &bin.join("ptxvm"), 0o755)?;
    for name in LIBRARIES {
        put(&built.join(name), &lib.join(name), 0o644)?;
    }
    put(&llvm()?, &lib.join(LLVM), 0o644)?;
    share(&bin.join("ptxvm"), &folder.join("share"))
}

/// Manual pages, completions and documents.
fn share(program: &Path, share: &Path) -> Result<(), String> {
    let papers = share.join("doc/ptxvm");
    for name in ["README.md", "CHANGELOG.md", "SECURITY.md", "LICENSE-APACHE", "LICENSE-MIT"] {
        write(&papers.join(name), read(&crate::root().join(name))?)?;
    }
    write(&papers.join("THIRD-PARTY.md"), notices::notices()?)?;
    for (shell, place) in COMPLETIONS {
        write(&share.join(place), output(Command::new(program).args(["completions", shell]))?)?;
    }
    // Writes a page for each command into a folder.
    let pages = share.join("man/man1");
    make(&pages)?;
    run(Command::new(program).arg("man").arg("--out").arg(&pages))
}

/// Copies a program or library without its symbols.
fn put(from: &Path, to: &Path, mode: u32) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt as _;
    let bytes = elf::strip(&read(from)?).map_err(|error| format!("{}: {error}", from.display()))?;
    write(to, bytes)?;
    let mode = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(to, mode).map_err(|error| failed(to, &error))
}

/// The LLVM of this build: `PTXVM_LLVM`, or the library that rustc contains.
fn llvm() -> Result<PathBuf, String> {
    let folder = match std::env::var_os("PTXVM_LLVM").map(PathBuf::from) {
        Some(file) if file.is_file() => return Ok(file),
        Some(folder) => folder,
        None => PathBuf::from(output(Command::new("rustc").args(["--print", "sysroot"]))?.trim()),
    };
    for place in [folder.clone(), folder.join("lib")] {
        let names = super::read_dir(&place).unwrap_or_default();
        let is_it = |path: &&PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libLLVM.so.22"))
        };
        if let Some(found) = names.iter().find(is_it) {
            return Ok(found.clone());
        }
    }
    Err(format!("no LLVM 22 in {}; PTXVM_LLVM can name one", folder.display()))
}

/// The newest C library that any file of the tree requires.
pub(crate) fn floor(folder: &Path) -> Result<(u32, u32), String> {
    let mut newest = (2, 0);
    let mut folders = vec![folder.join("bin"), folder.join("lib/ptxvm")];
    while let Some(folder) = folders.pop() {
        for path in super::read_dir(&folder)? {
            if path.is_dir() {
                folders.push(path);
            } else if let Some(version) = elf::glibc(&read(&path)?) {
                newest = newest.max(version);
            }
        }
    }
    Ok(newest)
}
