//! Command-line features: lists, traces, trap reports, folders and patterns, colours, completions, manual
//! pages, the environment for a shell, and the report of an interrupted launch.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ptxvm-line-{name}-{}", std::process::id()));
        let _from_before = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("a folder");
        std::fs::write(&path, text).expect("written");
        path.to_string_lossy().into_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _leftovers_are_harmless = std::fs::remove_dir_all(&self.0);
    }
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ptxvm"));
    command.env("PTXVM_CACHE_DIR", "").env_remove("NO_COLOR").args(args);
    command
}

fn ptxvm(args: &[&str]) -> Output {
    command(args).output().expect("the program starts")
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

const HEADER: &str = ".version 7.0\n.target sm_70\n.address_size 64\n";

/// Doubles an array in place; a thread behind its end traps at line 14.
fn double(name: &str) -> String {
    format!(
        "{HEADER}.visible .entry {name}(.param .u64 data, .param .f32 x)\n.maxntid 64\n{{\n.reg .b32 %r<3>; .reg .b64 %rd<4>; .reg .pred %p;\n\
         ld.param.u64 %rd1, [data];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd3, %rd1, %rd2;\nld.global.u32 %r2, [%rd3];\n\
         add.s32 %r2, %r2, 5;\nst.global.u32 [%rd3], %r2;\nsetp.eq.u32 %p, %r1, 1;\n@%p bra end;\nend: ret;\n}}\n"
    )
}

#[test]
fn kernels_are_listed() {
    let scratch = Scratch::new("list");
    let file = scratch.write("k.ptx", &double("_Z6doublePjf"));
    let output = ptxvm(&["run", "--list", &file]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let listed =
        "_Z6doublePjf(.u64 data, .f32 x), CTAs of at most 64 threads\n    double(unsigned int*, float)\n";
    assert_eq!(out(&output), listed);
    let output = ptxvm(&["run", "--list", "--format", "json", &file]);
    let listed: Value = serde_json::from_str(&out(&output)).expect("JSON");
    assert_eq!(listed[0]["kernel"], "_Z6doublePjf");
    assert_eq!(listed[0]["demangled"], "double(unsigned int*, float)");
    assert_eq!(
        (&listed[0]["params"][1]["type"], &listed[0]["params"][1]["bytes"]),
        (&Value::from("f32"), &Value::from(4))
    );
}

#[test]
fn traps_show_registers_lines_and_plain_names_in_both_engines() {
    let scratch = Scratch::new("trap");
    let file = scratch.write("k.ptx", &double("_Z6doublePjf"));
    for engine in ["interp", "jit"] {
        if engine == "jit" && !cfg!(feature = "jit") {
            continue;
        }
        let args = ["run", &file, "--block", "8", "--engine", engine, "--arg", "zeros:20", "--arg", "f32:1"];
        let output = ptxvm(&args);
        assert_eq!(output.status.code(), Some(3), "{}", err(&output));
        let said = err(&output);
        let address = said.lines().find_map(|l| l.trim().strip_prefix("address:")).expect("an address");
        let address =
            address.trim().split(' ').next().and_then(|a| a.strip_prefix("0x")).expect("hexadecimal");
        for part in [
            "  kernel:      _Z6doublePjf (double(unsigned int*, float))\n".to_owned(),
            format!("  registers:   %rd3 = 0x{address:0>16}\n"),
            "        11 | add.s64 %rd3, %rd1, %rd2;\n".to_owned(),
            "  >    12 | ld.global.u32 %r2, [%rd3];\n".to_owned(),
            "       13 | add.s32 %r2, %r2, 5;\n".to_owned(),
        ] {
            let part = part.trim_start_matches(' ');
            assert!(said.contains(part), "{engine}: {part} is not in\n{said}");
        }
        let mut json = args.to_vec();
        json.extend(["--format", "json"]);
        let found: Value = serde_json::from_str(&out(&ptxvm(&json))).expect("JSON");
        let trap = &found["trap"];
        assert_eq!(
            trap["registers"]["%rd3"],
            Value::from(format!("0x{:0>16}", &trap["address"].as_str().expect("text")[2..]))
        );
        assert_eq!(trap["demangled"], "double(unsigned int*, float)");
        let lines: Vec<u64> =
            trap["ptx"].as_array().expect("a list").iter().filter_map(|l| l["line"].as_u64()).collect();
        assert_eq!(lines, [11, 12, 13]);
    }
}

#[test]
fn a_thread_is_followed() {
    let scratch = Scratch::new("trace");
    let file = scratch.write("k.ptx", &double("k"));
    let run = |thread: &str| {
        ptxvm(&[
            "run",
            &file,
            "--block",
            "4",
            "--arg",
            "zeros:16",
            "--arg",
            "f32:1",
            "--trace-thread",
            thread,
        ])
    };
    let output = run("0:1");
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let said = err(&output);
    for part in [
        "mov.u32 %r1, %tid.x;  %r1 = 0x00000001\n",
        "mul.wide.u32 %rd2, %r1, 4;  %rd2 = 0x0000000000000004, %r1 = 0x00000001\n",
        "add.s32 %r2, %r2, 5;  %r2 = 0x00000005\n",
        "setp.eq.u32 %p, %r1, 1;  %p = true, %r1 = 0x00000001\n",
        "bra end;",
    ] {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
    assert_eq!(said.matches("mov.u32 %r1, %tid.x;").count(), 1, "one thread alone: {said}");
    assert!(err(&run("0")).contains("%p = false"));
    for wrong in ["0:4", "1:0", "x", "0:0:0"] {
        assert_eq!(run(wrong).status.code(), Some(2), "{wrong}");
    }
}

#[test]
fn folders_and_patterns_name_files() {
    let scratch = Scratch::new("files");
    let good = format!("{HEADER}.entry k() {{ ret; }}\n");
    scratch.write("a/one.ptx", &good);
    scratch.write("a/deep/two.ptx", &good.replace("ret;", "rte;"));
    scratch.write("a/three.txt", "no PTX");
    let folder = scratch.0.join("a").to_string_lossy().into_owned();
    let output = ptxvm(&["check", &folder]);
    assert_eq!(output.status.code(), Some(1));
    assert!(err(&output).contains("two.ptx:4:14") && !err(&output).contains("three"), "{}", err(&output));
    for (pattern, status) in [("a/*.ptx", 0), ("a/**/*.ptx", 1), ("a/*.cu", 2), ("nothing", 2), ("a/[", 2)] {
        let pattern = scratch.0.join(pattern).to_string_lossy().into_owned();
        assert_eq!(ptxvm(&["check", &pattern]).status.code(), Some(status), "{pattern}");
    }
    let output = ptxvm(&["fmt", "--check", &folder]);
    assert_eq!(output.status.code(), Some(1));
    assert!(err(&output).contains("one.ptx: not in canonical layout"), "{}", err(&output));
    let empty = Scratch::new("empty");
    assert_eq!(ptxvm(&["check", &empty.0.to_string_lossy()]).status.code(), Some(2));
}

#[test]
fn errors_are_limited_and_colored_as_asked() {
    let scratch = Scratch::new("limits");
    let file = scratch
        .write("k.ptx", &format!("{HEADER}.entry k() {{\nad.s32 a;\nsb.s32 b;\nmlu.s32 c;\nret;\n}}\n"));
    let count = |args: &[&str]| {
        let said = err(&ptxvm(args));
        (said.matches("error[").count(), said)
    };
    assert_eq!(count(&["check", &file]).0, 3);
    let (shown, said) = count(&["check", "--max-errors", "2", &file]);
    assert_eq!(shown, 2);
    assert!(said.contains("rejected, 3 errors, 2 shown (--max-errors)"), "{said}");
    for (args, colored) in [(&["--color", "always"][..], true), (&["--color", "never"], false), (&[], false)]
    {
        let output = command(&["check", &file]).args(args).output().expect("the program starts");
        assert_eq!(err(&output).contains("\u{1b}["), colored, "{args:?}");
    }
    assert_eq!(ptxvm(&["check", "--color", "blue", &file]).status.code(), Some(2));
}

#[test]
fn run_can_be_strict() {
    let scratch = Scratch::new("strict");
    let file = scratch.write("k.ptx", &format!("{HEADER}.entry k() {{\n.reg .u32 a;\nmov.u32 a, 1;\nmov.u32 a, a + 1;\nst.local.u32 [0], a;\nret;\n}}\n"));
    assert_eq!(ptxvm(&["check", &file]).status.code(), Some(0));
    for command in ["check", "run"] {
        let output = ptxvm(&[command, "--strict", &file]);
        assert_eq!(output.status.code(), Some(1));
        assert!(err(&output).contains("error[P0909]"), "{}", err(&output));
    }
}

#[test]
fn shells_and_man_are_served() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = ptxvm(&["completions", shell]);
        assert_eq!(output.status.code(), Some(0));
        assert!(out(&output).contains("trace-thread"), "{shell}");
    }
    assert_eq!(ptxvm(&["completions", "tcsh"]).status.code(), Some(2));
    let page = out(&ptxvm(&["man", "run"]));
    assert!(page.contains(".TH ptxvm-run 1") && page.contains("trace"), "{page}");
    assert_eq!(ptxvm(&["man", "nothing"]).status.code(), Some(2));
    let scratch = Scratch::new("man");
    let folder = scratch.0.join("man1").to_string_lossy().into_owned();
    assert_eq!(ptxvm(&["man", "--out", &folder]).status.code(), Some(0));
    for page in ["ptxvm.1", "ptxvm-run.1", "ptxvm-check.1", "ptxvm-exec.1", "ptxvm-doctor.1"] {
        assert!(scratch.0.join("man1").join(page).is_file(), "{page}");
    }
}

#[test]
fn the_version_has_details() {
    let plain = out(&ptxvm(&["--version"]));
    assert_eq!(plain.lines().count(), 1);
    for args in [["--version", "--verbose"], ["-V", "-v"], ["--verbose", "--version"]] {
        let said = out(&ptxvm(&args));
        assert!(said.starts_with(&plain), "{said}");
        for part in ["\nllvm: ", "\nprocessor: ", "\nfeatures: "] {
            assert!(said.contains(part), "{said}");
        }
    }
}

#[test]
fn the_doctor_says_what_is_missing_and_what_to_do() {
    let scratch = Scratch::new("doctor");
    let mut doctor = command(&["doctor"]);
    doctor
        .env("PTXVM_LLVM", "/nowhere")
        .env("PTXVM_LIBRARY_PATH", &scratch.0)
        .env("PTXVM_CACHE_DIR", "/proc/none");
    let output = doctor.output().expect("the program starts");
    assert_eq!(output.status.code(), Some(2));
    let said = out(&output);
    for part in [
        "missing  LLVM: ",
        "PTXVM_LLVM",
        "missing  libraries: ",
        "note     code cache: ",
        "PTXVM_CACHE_DIR names another folder",
        "things are missing",
    ] {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
}

#[test]
fn the_doctor_compares_the_version_of_clang() {
    let scratch = Scratch::new("clang");
    let report = |version: &str| {
        let clang = scratch.write("bin/clang-25", &format!("#!/bin/sh\necho {version}\n"));
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&clang, executable).expect("an executable file");
        let bin = scratch.0.join("bin");
        out(&command(&["doctor"]).env("PATH", bin).env_remove("PTXVM_CLANG").output().expect("it starts"))
    };
    let newer = report("25.1.0");
    assert!(newer.contains("ok       clang: ") && newer.contains("clang-25, version 25.1.0"), "{newer}");
    let older = report("16.0.6");
    assert!(older.contains("note     clang: ") && older.contains("is version 16.0.6"), "{older}");
    assert!(older.contains("install clang 19 or later"), "{older}");
}

/// Stand-ins for our libraries.
fn libraries(scratch: &Scratch) -> String {
    scratch.write("lib/libptxvm_cuda.so", "");
    scratch.0.join("lib").to_string_lossy().into_owned()
}

#[test]
fn a_shell_evaluates_the_environment() {
    let scratch = Scratch::new("environment");
    let (libraries, tmp) = (libraries(&scratch), scratch.0.join("it's tmp"));
    std::fs::create_dir(&tmp).expect("a folder");
    let script = format!(
        "eval \"$('{}' exec --library-path '{libraries}' --print-env --sm 90)\" && test -e \"$TRITON_LIBCUDA_PATH/libcuda.so.1\" || test -L \"$TRITON_LIBCUDA_PATH/libcuda.so.1\" && \
         sh -c 'echo $PTXVM_SM $LD_LIBRARY_PATH'",
        env!("CARGO_BIN_EXE_ptxvm")
    );
    let output =
        Command::new("sh").arg("-c").arg(&script).env("TMPDIR", &tmp).output().expect("there is a shell");
    let said = out(&output);
    assert!(said.starts_with("90 ") && said.contains("it's tmp/ptxvm-exec-"), "{said}{}", err(&output));
    assert_eq!(std::fs::read_dir(&tmp).expect("it is there").count(), 1, "the folder stays");
}

#[test]
fn an_interrupted_launch_says_where_its_lanes_are() {
    use std::io::Read as _;
    let scratch = Scratch::new("interrupt");
    let file = scratch.write(
        "k.ptx",
        &format!("{HEADER}.entry k() {{\n.reg .b32 r;\nmov.u32 r, 0;\nL: add.u32 r, r, 1;\nbra L;\n}}\n"),
    );
    for (signal, status) in [("INT", 130), ("TERM", 143)] {
        let mut child = command(&["run", &file, "--block", "32", "--engine", "interp", "--stats"])
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        std::thread::sleep(std::time::Duration::from_millis(700));
        let pid = child.id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &pid]).status().expect("there is kill");
        assert!(sent.success());
        let ended = child.wait().expect("it ends");
        let mut said = String::new();
        child.stderr.take().expect("piped").read_to_string(&mut said).expect("UTF-8");
        assert_eq!(ended.code(), Some(status), "{said}");
        assert!(said.contains("interrupted after 0 of 1 CTAs"), "{said}");
        assert!(said.contains("  lanes:       warp 0: lanes 0xffffffff at "), "{said}");
    }
}
