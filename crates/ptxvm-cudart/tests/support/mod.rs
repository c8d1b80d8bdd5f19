//! C programs that open ptxvm's libraries.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder with the libraries under the names that programs open, and the program.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// The command that runs the program with these libraries.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(self.0.join("program"));
        command.env("LD_LIBRARY_PATH", &self.0);
        command
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _leftovers_are_harmless = std::fs::remove_dir_all(&self.0);
    }
}

/// The path of a library that cargo built.
fn library(name: &str) -> Option<PathBuf> {
    let test = std::env::current_exe().expect("a test has a path");
    let deps = test.parent().expect("a test lies in a folder");
    [deps.join(name), deps.join("..").join(name)].into_iter().find(|path| path.exists())
}

/// Compiles a program of this folder. `None`, with a line that says so, if there is no C compiler.
pub(crate) fn program(name: &str) -> Option<Folder> {
    program_with(name, "libcudart.so.12")
}

/// Like [`program`], with another name of the runtime's library.
pub(crate) fn program_with(name: &str, runtime_name: &str) -> Option<Folder> {
    let (Some(driver), Some(runtime)) = (library("libptxvm_cuda.so"), library("libptxvm_cudart.so")) else {
        panic!("cargo built the libraries");
    };
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder = Folder(std::env::temp_dir().join(format!("ptxvm-{name}-{}-{number}", std::process::id())));
    std::fs::create_dir_all(&folder.0).expect("a folder can be made");
    for (file, link) in [(&driver, "libcuda.so.1"), (&runtime, runtime_name)] {
        std::os::unix::fs::symlink(file, folder.0.join(link)).expect("a link can be made");
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/{name}.c"));
    let mut compiler = Command::new("cc");
    compiler.arg("-O1").arg(source).arg("-o").arg(folder.0.join("program")).args(["-ldl", "-lpthread"]);
    match compiler.status() {
        Ok(status) if status.success() => Some(folder),
        Ok(status) => panic!("cc: {status}"),
        Err(error) => {
            println!("skipped: there is no C compiler (cc: {error})");
            None
        }
    }
}
