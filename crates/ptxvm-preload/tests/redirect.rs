//! The preloaded library redirects a runtime inside a program or library to ptxvm's.
//!
//! The runtime inside is not NVIDIA's. The test makes one from functions with the names that ptxvm's runtime
//! has; each prints that it must not run. The programs are C. Without a C compiler the tests print that and
//! pass.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

use object::read::{Object as _, ObjectSymbol as _};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder with ptxvm's libraries and the files that the tests build.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _leftovers_are_harmless = std::fs::remove_dir_all(&self.0);
    }
}

/// The path of a library that cargo built.
fn library(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let deps = test.parent().expect("a test lies in a folder");
    let found = [deps.join(name), deps.join("..").join(name)].into_iter().find(|path| path.exists());
    found.expect("cargo built the libraries").canonicalize().expect("a path")
}

/// The names of our runtime's functions.
fn names() -> Vec<String> {
    let bytes = std::fs::read(library("libptxvm_cudart.so")).expect("read");
    let file = object::File::parse(&*bytes).expect("an ELF file");
    let names = file.dynamic_symbols().filter(|symbol| symbol.is_definition());
    let names = names.filter_map(|symbol| symbol.name().ok().map(str::to_owned));
    let mut names: Vec<_> = names.filter(|name| name.trim_start_matches('_').starts_with("cuda")).collect();
    names.sort();
    names
}

/// Functions that the runtimes of CUDA 12 and of CUDA 13 lack.
const NOT_IN_12: &[&str] = &["__cudaRegisterTexture", "cudaBindTexture", "cudaCreateTextureObject_v2"];
const NOT_IN_13: &[&str] = &["cudaGetDeviceProperties_v2", "cudaThreadExit", "cudaThreadSynchronize"];

/// The runtime's source: each function prints that it must not run. Two functions are of a later version, and
/// one is short. A runtime of CUDA 11 has no second function for properties.
fn runtime(major: u32) -> String {
    let mut text = String::from(
        "#include <stdio.h>\n\
         #include <dlfcn.h>\n\
         static __attribute__((noinline)) int wrong(const char *name) {\n\
         \x20 void *driver = dlopen(\"libcuda.so.1\", RTLD_NOW), *table; char id[16] = {0};\n\
         \x20 if (driver) ((int (*)(void *, void *))dlsym(driver, \"cuGetExportTable\"))(&table, id);\n\
         \x20 printf(\"%s must not run\\n\", name); return 35; }\n",
    );
    let mut names = names();
    let lacks: &[&str] = match major {
        11 => &["cudaGetDeviceProperties_v2"],
        12 => NOT_IN_12,
        _ => NOT_IN_13,
    };
    names.retain(|name| !lacks.contains(&name.as_str()));
    let middle = names.len() / 2;
    for (index, name) in names.iter().enumerate() {
        if index == middle {
            for later in ["cudaOfLater", "cudaOfLaterToo"] {
                writeln!(text, "int {later}(int x) {{ return wrong(\"{later}\") + x; }}").expect("a text");
            }
        }
        match name.as_str() {
            "cudaRuntimeGetVersion" => writeln!(text, "int {name}(int *x) {{ return 35; }}"),
            _ => writeln!(text, "int {name}(void) {{ return wrong(\"{name}\") + wrong(\"{name}\"); }}"),
        }
        .expect("a text");
    }
    text
}

impl Folder {
    /// Builds the runtime as an archive. `None`, with a line that says so, if there is no C compiler.
    fn new() -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("ptxvm-preload-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder can be made");
        let folder = Self(folder);
        for (file, link) in [
            ("libptxvm_cuda.so", "libcuda.so.1"),
            ("libptxvm_cudart.so", "libptxvm_cudart.so"),
            ("libptxvm_preload.so", "libptxvm_preload.so"),
        ] {
            std::os::unix::fs::symlink(library(file), folder.0.join(link)).expect("a link can be made");
        }
        std::fs::write(folder.0.join("runtime.c"), runtime(12)).expect("written");
        match Command::new("cc").arg("--version").output() {
            Ok(_) => {}
            Err(error) => {
                println!("skipped: there is no C compiler (cc: {error})");
                return None;
            }
        }
        folder.cc(&["-c", "-fPIC", "-fvisibility=hidden", "runtime.c", "-o", "runtime.o"]);
        Some(folder)
    }

    fn cc(&self, arguments: &[&str]) {
        let mut compiler = Command::new("cc");
        compiler.current_dir(&self.0).arg("-O1").arg("-w").args(arguments);
        let status = compiler.status().expect("the compiler starts");
        assert!(status.success(), "cc {arguments:?}: {status}");
    }

    /// Builds a file from the program's source.
    fn build(&self, output: &str, arguments: &[&str]) {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program.c");
        let source = source.to_str().expect("a path");
        self.cc(&[&[source, "-o", output], arguments, &["-ldl"]].concat());
    }

    /// Runs a program, and returns its standard output and standard error.
    fn run(&self, arguments: &[&str], preload: bool, log: &str) -> (String, String) {
        let mut command = Command::new(self.0.join(arguments[0]));
        command.args(&arguments[1..]).current_dir(&self.0);
        command.env("LD_LIBRARY_PATH", &self.0).env("PTXVM_LOG", log);
        if preload {
            command.env("LD_PRELOAD", self.0.join("libptxvm_preload.so"));
        }
        let output = command.output().expect("it starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{arguments:?}: {}\n{out}{err}", output.status);
        (out, err)
    }
}

/// The output of a program whose runtime is fully redirected.
fn right(who: &str) -> String {
    format!("{who}: status 0, 1 device, 42\nshort: 0, 1\nlater: 801 801 801\nmine: 5\n")
}

#[test]
fn a_runtime_inside_a_program_is_ours() {
    let Some(folder) = Folder::new() else { return };
    for kind in ["-pie", "-no-pie"] {
        folder.build("program", &["runtime.o", "-fPIC", kind]);
        // Without the library, the runtime inside runs.
        assert!(folder.run(&["program"], false, "").0.contains("cudaGetDeviceCount must not run"), "{kind}");
        let (out, err) = folder.run(&["program"], true, "");
        assert_eq!((out, err.as_str()), (right("program"), ""), "{kind}");
    }
}

#[test]
fn functions_that_ours_lacks_are_refused_by_name() {
    let Some(folder) = Folder::new() else { return };
    folder.build("program", &["runtime.o"]);
    let (out, err) = folder.run(&["program"], true, "refused");
    assert_eq!(out, right("program"));
    let lines: Vec<_> = err.lines().collect();
    assert_eq!(lines, ["ptxvm: cudaOfLater is not supported", "ptxvm: cudaOfLaterToo is not supported"]);
}

#[test]
fn a_runtime_inside_a_library_is_ours_before_its_constructors() {
    let Some(folder) = Folder::new() else { return };
    folder.build("libwork.so", &["runtime.o", "-DLIBRARY", "-fPIC", "-shared", "-Wl,-Bsymbolic"]);
    let both = right("constructor") + &right("library");
    folder.build("linked", &["-DLINKED", "-L.", "-lwork"]);
    assert_eq!(folder.run(&["linked"], true, ""), (both.clone(), String::new()), "linked");
    folder.build("loads", &["-DLOADS"]);
    assert_eq!(folder.run(&["loads", "./libwork.so"], true, ""), (both.clone(), String::new()), "loaded");
    folder.build("program", &["runtime.o"]);
    assert_eq!(
        folder.run(&["program", "./libwork.so"], true, ""),
        (both, String::new()),
        "loaded beside another"
    );
}

#[test]
fn a_profiled_program_has_the_hook_itself() {
    let Some(folder) = Folder::new() else { return };
    folder.build("program", &["runtime.o", "-pg", "-no-pie"]);
    assert_eq!(folder.run(&["program"], true, ""), (right("program"), String::new()));
}

#[test]
fn a_stripped_one_is_told_what_to_do() {
    let Some(folder) = Folder::new() else { return };
    folder.build("program", &["runtime.o", "-s"]);
    let (out, err) = folder.run(&["program"], true, "");
    assert!(out.contains("must not run"), "{out}");
    let lines: Vec<_> = err.lines().collect();
    assert_eq!(lines.len(), 1, "{err}");
    for word in ["/program`", "do not strip", "`-cudart shared`"] {
        assert!(err.contains(word), "{word}: {err}");
    }
}

#[test]
fn a_library_between_a_program_and_its_runtime_is_left_alone() {
    let Some(folder) = Folder::new() else { return };
    let few: String =
        names().iter().take(90).map(|name| format!("int {name}(void) {{ return 77; }}\n")).collect();
    std::fs::write(folder.0.join("few.c"), few).expect("written");
    let name = &names()[0];
    let main = format!(
        "#include <stdio.h>\nint {name}(void); int main(void) {{ printf(\"%d\\n\", {name}()); return 0; }}"
    );
    std::fs::write(folder.0.join("main.c"), main).expect("written");
    folder.cc(&["few.c", "main.c", "-o", "between"]);
    assert_eq!(folder.run(&["between"], true, "refused"), ("77\n".to_owned(), String::new()));
}

/// Prints the number of bytes that are written to `cudaDeviceProp`.
const SIZE: &str = "
#include <stdio.h>
#include <string.h>
int cudaGetDeviceProperties(void *, int);
int main(void) {
    unsigned char properties[2048];
    int bytes = sizeof properties;
    memset(properties, 0xaa, sizeof properties);
    int status = cudaGetDeviceProperties(properties, 0);
    while (bytes && properties[bytes - 1] == 0xaa) bytes--;
    printf(\"%d, %d\\n\", status, bytes);
    return 0;
}";

#[test]
fn structures_have_the_sizes_of_the_runtime_inside() {
    let Some(folder) = Folder::new() else { return };
    std::fs::write(folder.0.join("size.c"), SIZE).expect("written");
    // The sizes in the headers of CUDA 11.8 and 13.5.
    for (major, bytes) in [(11, 728), (13, 1008)] {
        std::fs::write(folder.0.join("runtime.c"), runtime(major)).expect("written");
        folder.cc(&["-c", "-fPIC", "-fvisibility=hidden", "runtime.c", "-o", "runtime.o"]);
        folder.cc(&["size.c", "runtime.o", "-o", "size", "-ldl"]);
        let right = (format!("0, {bytes}\n"), String::new());
        assert_eq!(folder.run(&["size"], true, ""), right, "CUDA {major}");
    }
}
