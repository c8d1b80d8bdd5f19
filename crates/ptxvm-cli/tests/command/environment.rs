//! Unusual environments: closed or full descriptors, limits, folders and variables. Each gives a working run
//! or one clear line, never a panic or a signal.
#![cfg(unix)]

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Adds one to each of 64 words, prints a line, and traps where it is asked to.
const PTX: &str = r#".version 6.4
.target sm_70
.address_size 64
.extern .func (.param .b32 r) vprintf(.param .b64 format, .param .b64 list);
.global .align 1 .b8 line[6] = {104, 101, 108, 108, 111, 0};
.visible .entry main(.param .u64 data, .param .u32 trapped)
{
    .reg .pred %p;
    .reg .u32 %r<4>;
    .reg .u64 %rd<5>;
    ld.param.u64 %rd1, [data];
    ld.param.u32 %r1, [trapped];
    mov.u32 %r2, %tid.x;
    mul.wide.u32 %rd2, %r2, 4;
    add.u64 %rd1, %rd1, %rd2;
    ld.global.u32 %r3, [%rd1];
    add.u32 %r3, %r3, 1;
    st.global.u32 [%rd1], %r3;
    setp.ne.u32 %p, %r1, 0;
    @%p trap;
    setp.ne.u32 %p, %r2, 0;
    @%p ret;
    mov.u64 %rd3, line;
    mov.u64 %rd4, 0;
    {
        .param .b64 a;
        .param .b64 b;
        .param .b32 c;
        st.param.b64 [a], %rd3;
        st.param.b64 [b], %rd4;
        call.uni (c), vprintf, (a, b);
    }
    ret;
}
"#;

/// A folder of its own for a test, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ptxvm-environment-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a folder");
        fs::write(path.join("kernel.ptx"), PTX).expect("written");
        fs::write(path.join("wrong.ptx"), "no ptx").expect("written");
        Self(path)
    }

    /// The program, in this folder, without code on disk.
    fn ptxvm(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ptxvm"));
        command.args(arguments).current_dir(&self.0).env("PTXVM_CACHE_DIR", "");
        command
    }

    fn run(&self, more: &[&str]) -> Command {
        let mut command = self.ptxvm(&["run", "kernel.ptx", "--block", "64", "--arg"]);
        command.args(more);
        command
    }

    /// The program under limits that the shell sets.
    fn limited(&self, limits: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &format!("{limits} && exec \"$@\""), "sh", env!("CARGO_BIN_EXE_ptxvm")]);
        command.args(arguments).current_dir(&self.0).env("PTXVM_CACHE_DIR", "code");
        command.output().expect("the shell starts")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _leftovers_are_harmless = fs::remove_dir_all(&self.0);
    }
}

fn full() -> File {
    OpenOptions::new().write(true).open("/dev/full").expect("this system has it")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Checks a status, and that standard error is what one line says, or empty.
#[track_caller]
fn ends(output: &Output, status: i32, line: &str) {
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{err}");
    assert!(err.contains(line) && err.lines().count() == usize::from(!line.is_empty()), "{err}");
}

#[test]
fn a_full_standard_output_is_an_error() {
    let scratch = Scratch::new("full");
    let commands: [&[&str]; 7] = [
        &["isa"],
        &["isa", "add", "--format", "json"],
        &["explain"],
        &["fmt", "--stdout", "kernel.ptx"],
        &["--help"],
        &["run", "kernel.ptx", "--block", "64", "--arg", "zeros:256", "--arg", "u32:0"],
        &["run", "kernel.ptx", "--block", "64", "--arg", "zeros:256", "--arg", "u32:0", "--format", "json"],
    ];
    for command in commands {
        let output = scratch.ptxvm(command).stdout(full()).output().expect("it starts");
        ends(&output, 2, "ptxvm: cannot write standard output: ");
    }
    // The trap is what matters.
    let trap = scratch.run(&["zeros:256", "--arg", "u32:1"]).stdout(full()).output().expect("it starts");
    assert_eq!(trap.status.code(), Some(3));
}

#[test]
fn a_full_standard_error_changes_no_status() {
    let scratch = Scratch::new("quiet");
    let commands: [(&[&str], i32); 7] = [
        (&["check", "wrong.ptx"], 1),
        (&["check", "wrong.ptx", "--format", "json"], 1),
        (&["check", "absent.ptx"], 2),
        (&["fmt", "--stdout", "wrong.ptx"], 1),
        (&["no-such-command"], 2),
        (&["run", "kernel.ptx", "--block", "64", "--arg", "zeros:256", "--arg", "u32:1"], 3),
        (&["run", "kernel.ptx", "--block", "64", "--arg", "zeros:256", "--arg", "u32:0", "--stats"], 0),
    ];
    for (command, status) in commands {
        let ended = scratch.ptxvm(command).stderr(full()).stdout(Stdio::null()).status().expect("it starts");
        assert_eq!(ended.code(), Some(status), "{command:?}");
        for closing in ["2>&-", ">&- 2>&-", "<&- >&- 2>&-"] {
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", &format!("exec \"$@\" {closing}"), "sh", env!("CARGO_BIN_EXE_ptxvm")]);
            shell.args(command).current_dir(&scratch.0).env("PTXVM_CACHE_DIR", "");
            let ended = shell.stdout(Stdio::null()).status().expect("the shell starts");
            assert_eq!(ended.code(), Some(status), "{command:?} {closing}");
        }
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let scratch = Scratch::new("reader");
    for command in [&["isa"][..], &["explain"], &["--help"]] {
        let mut child = scratch.ptxvm(command).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        ends(&child.wait_with_output().expect("it ends"), 0, "");
    }
    // The reader of diagnostics.
    let mut child = scratch.ptxvm(&["check", "wrong.ptx"]).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
}

#[test]
fn no_home_and_no_variables_at_all() {
    let scratch = Scratch::new("home");
    fs::write(scratch.path("file"), b"no folder").expect("written");
    let file = scratch.path("file");
    // A user with all rights can make folders anywhere but in `/proc`.
    let homes = [None, Some(Path::new("")), Some(Path::new("/proc/nonexistent")), Some(&file)];
    for home in homes {
        let mut command = scratch.run(&["zeros:256", "--arg", "u32:0"]);
        command.env_clear();
        if let Some(home) = home {
            command.env("HOME", home);
        }
        let output = command.output().expect("it starts");
        ends(&output, 0, "");
        assert_eq!(text(&output.stdout), "hello");
    }
    assert_eq!(fs::read(&file).expect("it is there"), b"no folder");
}

#[test]
fn a_temporary_folder_that_is_not_there_is_named() {
    let scratch = Scratch::new("temporary");
    let mut command = scratch.ptxvm(&["exec", "--library-path", ".", "--", "true"]);
    fs::write(scratch.path("libptxvm_cuda.so"), b"").expect("written");
    let missing = scratch.path("missing");
    let output = command.env("TMPDIR", &missing).output().expect("it starts");
    ends(&output, 2, &format!("ptxvm: cannot make `{}/ptxvm-exec-", missing.display()));
    assert!(text(&output.stderr).contains("TMPDIR"));
}

/// Our folder stands in front of the search path; where there is none, that must not hide the programs of the
/// system.
#[test]
fn programs_are_found_without_a_search_path() {
    let scratch = Scratch::new("path");
    fs::write(scratch.path("libptxvm_cuda.so"), b"").expect("written");
    let run = ["exec", "--library-path", ".", "--", "sh", "-c", "ls kernel.ptx"];
    for path in [None, Some("")] {
        let mut command = scratch.ptxvm(&run);
        command.env_remove("PATH");
        if let Some(path) = path {
            command.env("PATH", path);
        }
        let output = command.output().expect("it starts");
        ends(&output, 0, "");
        assert_eq!(text(&output.stdout), "kernel.ptx\n");
    }
}

#[test]
fn a_limit_on_file_sizes_is_an_error_of_writing() {
    let scratch = Scratch::new("limit");
    let run = ["run", "kernel.ptx", "--block", "64", "--arg"];
    let new = ["out:u4[64]=new.npy", "--arg", "u32:0"];
    let old = ["inout:old.npy", "--arg", "u32:0"];
    ends(&scratch.run(&["out:u4[64]=old.npy", "--arg", "u32:0"]).output().expect("it starts"), 0, "");
    let before = fs::read(scratch.path("old.npy")).expect("an array");
    ends(&scratch.limited("ulimit -f 0", &[&run[..], &new].concat()), 2, "ptxvm: cannot write `new.npy`: ");
    ends(&scratch.limited("ulimit -f 0", &[&run[..], &old].concat()), 2, "ptxvm: cannot write `old.npy`: ");
    assert_eq!(fs::read(scratch.path("old.npy")).expect("it is there"), before, "what was read is left");
    let fmt = scratch.limited("ulimit -f 0", &["fmt", "kernel.ptx"]);
    ends(&fmt, 2, "ptxvm: cannot write `kernel.ptx`: ");
    assert_eq!(fs::read(scratch.path("kernel.ptx")).expect("it is there"), PTX.as_bytes());
    // Code that does not fit is not kept, and neither are pieces of files.
    let run = [&run[..], &["zeros:256", "--arg", "u32:0", "--engine", "jit"]].concat();
    if cfg!(feature = "jit") {
        ends(&scratch.limited("ulimit -f 0", &run), 0, "");
    }
    let names = fs::read_dir(&scratch.0).expect("the folder").flatten().map(|entry| entry.file_name());
    assert!(names.map(|name| name.to_string_lossy().into_owned()).all(|name| !name.ends_with(".part")));
    assert_eq!(fs::read_dir(scratch.path("code")).into_iter().flatten().count(), 0);
}

#[test]
fn small_stacks_and_few_descriptors() {
    let scratch = Scratch::new("small");
    let run = ["run", "kernel.ptx", "--block", "64", "--arg", "zeros:256", "--arg", "u32:0"];
    for limits in
        ["ulimit -s 1024", "ulimit -s 256", "ulimit -n 8", "ulimit -c 0 && ulimit -s 1024 && ulimit -n 16"]
    {
        for engine in ["interp", "auto", "jit"] {
            if engine == "jit" && !cfg!(feature = "jit") {
                continue;
            }
            ends(&scratch.limited(limits, &[&run[..], &["--engine", engine]].concat()), 0, "");
        }
    }
    let nested = format!("{}ret;{}\n", "{".repeat(2000), "}".repeat(2000));
    let deep = PTX.replace("    ret;\n}\n", &format!("{nested}}}\n"));
    fs::write(scratch.path("deep.ptx"), deep).expect("written");
    for command in ["check", "fmt"] {
        let ended = scratch.limited("ulimit -s 1024", &[command, "deep.ptx"]).status.code();
        assert!(matches!(ended, Some(0 | 1)), "{command}: {ended:?}");
    }
}
