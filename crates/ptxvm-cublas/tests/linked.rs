//! A C program that is linked with libraries with symbol versions, like NVIDIA's, finds ptxvm's under each of
//! their names, without a warning of the loader.
//!
//! The linked libraries have empty functions with these versions. Without a C compiler the test prints that
//! and passes.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The path of a library that cargo built.
fn library(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let deps = test.parent().expect("a test lies in a folder");
    let places = [deps.join(name), deps.join("..").join(name)];
    places.into_iter().find(|path| path.exists()).expect("cargo built the libraries")
}

/// Runs the C compiler; `None` if there is none.
fn compile(arguments: &[&str], folder: &Path) -> Option<()> {
    match Command::new("cc").args(arguments).current_dir(folder).status() {
        Ok(status) if status.success() => Some(()),
        Ok(status) => panic!("cc: {status}"),
        Err(error) => {
            println!("skipped: there is no C compiler (cc: {error})");
            None
        }
    }
}

/// Builds libraries of empty functions with symbol versions.
fn stand_ins(folder: &Path, major: u32) -> Option<()> {
    std::fs::create_dir_all(folder).expect("a folder can be made");
    let source = include_str!("linked.c");
    let words = source.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let mut names: Vec<&str> = words.filter(|word| word.starts_with("cu") && word.len() > 5).collect();
    names.sort_unstable();
    names.dedup();
    for (library, prefix, file) in [
        ("cublas", "cublas", format!("libcublas.so.{major}")),
        ("cublasLt", "cublasLt", format!("libcublasLt.so.{major}")),
        ("cuda", "cu", "libcuda.so.1".to_owned()),
    ] {
        let owner = |name: &str| match name {
            _ if name.starts_with("cublasLt") => "cublasLt",
            _ if name.starts_with("cublas") => "cublas",
            _ => "cu",
        };
        let mine = names.iter().filter(|name| owner(name) == prefix);
        let text: String = mine.map(|name| format!("int {name}(void) {{ return 0; }}\n")).collect();
        std::fs::write(folder.join(format!("{library}.c")), text).expect("written");
        // The driver's symbols have no versions.
        let version = if library == "cuda" {
            "{ global: *; };".to_owned()
        } else {
            format!("{file} {{ global: *; }};")
        };
        std::fs::write(folder.join(format!("{library}.map")), version).expect("written");
        let (soname, script) = (format!("-Wl,-soname,{file}"), format!("-Wl,--version-script={library}.map"));
        let (source, output) = (format!("{library}.c"), format!("lib{library}.so"));
        compile(&["-shared", "-fPIC", "-w", &source, "-o", &output, &soname, &script], folder)?;
    }
    Some(())
}

#[test]
fn programs_that_want_versions_of_symbols_find_them() {
    let base = std::env::temp_dir().join(format!("ptxvm-cublas-linked-{}", std::process::id()));
    for major in [12, 13] {
        let (linking, running) = (base.join("linking"), base.join("running"));
        if stand_ins(&linking, major).is_none() {
            return;
        }
        let source = format!("{}/tests/linked.c", env!("CARGO_MANIFEST_DIR"));
        let arguments = [&source, "-o", "program", "-L.", "-lcublas", "-lcublasLt", "-lcuda"];
        if compile(&arguments, &linking).is_none() {
            return;
        }
        std::fs::create_dir_all(&running).expect("a folder can be made");
        for (file, name) in [
            ("libptxvm_cuda.so", "libcuda.so.1".to_owned()),
            ("libptxvm_cublas.so", format!("libcublas.so.{major}")),
            ("libptxvm_cublas.so", format!("libcublasLt.so.{major}")),
        ] {
            std::os::unix::fs::symlink(library(file), running.join(name)).expect("a link can be made");
        }
        let mut program = Command::new(linking.join("program"));
        let output = program.env("LD_LIBRARY_PATH", &running).output().expect("it starts");
        let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        assert_eq!(said[0], "well: CUBLAS_STATUS_SUCCESS\n", "{major}: {}: {}", output.status, said[1]);
        // Without LLD the library has no versions, and the loader prints a warning.
        assert!(option_env!("PTXVM_CUBLAS_HAS_VERSIONS").is_none() || said[1].is_empty(), "{}", said[1]);
        std::fs::remove_dir_all(&base).expect("it can be removed");
    }
}
