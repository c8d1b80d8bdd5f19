//! Finds an LLVM 22 at build time, and records its path in the crate as the default for loading it at run
//! time.
//!
//! `PTXVM_LLVM` (a library, or a prefix or folder that contains one) has priority over the library that rustc
//! itself uses. If neither exists, the crate still builds, and reports that LLVM is searched only at run
//! time.
//!
//! It also tells the crate a hash of the sources that decide which code is made, for the keys of the cache.
//! From a package of crates.io the sources of the other crates are not beside this one; their version, which
//! all crates share, stands for them.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=PTXVM_LLVM");
    println!("cargo:rustc-env=PTXVM_BUILD_HASH={:016x}", sources());
    let chosen = env::var_os("PTXVM_LLVM").map(PathBuf::from);
    let found = match &chosen {
        Some(path) => library(path),
        None => sysroot().as_deref().and_then(library),
    };
    match &found {
        Some(path) => println!("cargo:rustc-env=PTXVM_LLVM_DEFAULT={}", path.display()),
        None => {
            println!("cargo:rustc-env=PTXVM_LLVM_DEFAULT=");
            let place = match chosen {
                Some(path) => format!("in PTXVM_LLVM={}", path.display()),
                None => "in rustc's sysroot".to_owned(),
            };
            println!(
                "cargo:warning=no LLVM 22 library found {place}: the JIT will look for libLLVM.so.22.1 when it runs; \
                 set PTXVM_LLVM to a prefix that holds one, or build with --no-default-features"
            );
        }
    }
}

/// A hash (FNV-1a) of the sources of this crate and of those that it is built on.
fn sources() -> u64 {
    let mut files = Vec::new();
    collect(Path::new("src"), &mut files);
    for name in ["ptx", "ptx-exec", "ptx-sem"] {
        let folder = Path::new("..").join(name);
        if folder.is_dir() {
            collect(&folder.join("src"), &mut files);
            files.push(folder.join("Cargo.toml"));
        }
    }
    files.push(PathBuf::from("Cargo.toml"));
    files.extend(Some(PathBuf::from("../../Cargo.lock")).filter(|file| file.exists()));
    files.sort();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    for byte in version.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    }
    for file in &files {
        println!("cargo:rerun-if-changed={}", file.display());
        let bytes = fs::read(file).unwrap_or_default();
        for byte in file.to_string_lossy().bytes().chain(bytes) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    hash
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    println!("cargo:rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}

/// The folder that the compiler in use was installed to.
fn sysroot() -> Option<PathBuf> {
    let rustc = env::var_os("RUSTC")?;
    let output = Command::new(rustc).args(["--print", "sysroot"]).output().ok()?;
    Some(PathBuf::from(String::from_utf8(output.stdout).ok()?.trim()))
}

/// An LLVM 22 library: the path itself, or the best name in it or in its `lib`.
fn library(path: &Path) -> Option<PathBuf> {
    if path.is_file() {
        return Some(path.to_owned());
    }
    for folder in [path.to_owned(), path.join("lib")] {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        let mut names: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        names.sort();
        let found = names.into_iter().find(|file| {
            let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            name.starts_with("libLLVM.so.22") || name == "libLLVM-22.so" || name == "libLLVM.dylib"
        });
        if found.is_some() {
            return found;
        }
    }
    None
}
