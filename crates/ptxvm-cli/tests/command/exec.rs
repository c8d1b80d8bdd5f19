//! `ptxvm exec`: the environment of the started program, and its exit status.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder with files under our libraries' names: enough for programs that do not load them.
struct Libraries(PathBuf);

impl Libraries {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ptxvm-exec-test-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        for file in ["libptxvm_cuda.so", "libptxvm_cudart.so", "libptxvm_cublas.so", "libptxvm_nvrtc.so"] {
            std::fs::write(path.join(file), "").expect("written");
        }
        Self(path)
    }

    fn exec(&self, options: &[&str], command: &[&str]) -> Output {
        let mut program = Command::new(env!("CARGO_BIN_EXE_ptxvm"));
        program.arg("exec").arg("--library-path").arg(&self.0).args(options).arg("--").args(command);
        for name in ["DEV", "TRITON_CACHE_DIR", "PTXVM_SM", "PTXVM_STATS", "PTXVM_RECOVER"] {
            program.env_remove(name);
        }
        program.env("NUMBA_CACHE_DIR", "mine").env("LD_LIBRARY_PATH", "/theirs");
        program.output().expect("the program starts")
    }

    fn shell(&self, script: &str) -> Output {
        self.exec(&[], &["sh", "-c", script])
    }
}

impl Drop for Libraries {
    fn drop(&mut self) {
        let _leftovers_are_harmless = std::fs::remove_dir_all(&self.0);
    }
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

#[test]
fn the_programs_status_is_ours() {
    let libraries = Libraries::new("status");
    for status in [0, 1, 3, 77, 255] {
        assert_eq!(libraries.shell(&format!("exit {status}")).status.code(), Some(status));
    }
    assert_eq!(libraries.shell("kill -KILL $$").status.code(), Some(128 + 9));
    assert_eq!(libraries.exec(&[], &["/no/such/program"]).status.code(), Some(2));
}

/// Sends a signal to us alone, as `kill PID` does, once the program says that it is there; how we end.
fn signalled(libraries: &Libraries, signal: &str, script: &str) -> Output {
    use std::io::{BufRead as _, BufReader, Read as _};
    let mut command = Command::new(env!("CARGO_BIN_EXE_ptxvm"));
    command.arg("exec").arg("--library-path").arg(&libraries.0).args(["--", "sh", "-c", script]);
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().expect("the program starts");
    let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    out.read_line(&mut line).expect("a line");
    let sent = Command::new("sh").args(["-c", &format!("kill -{signal} {}", child.id())]).status();
    assert!(sent.expect("a shell").success());
    let mut stdout = Vec::new();
    out.read_to_end(&mut stdout).expect("text");
    Output { status: child.wait().expect("it ends"), stdout, stderr: Vec::new() }
}

#[test]
fn signals_reach_the_program_and_its_end_tells() {
    let libraries = Libraries::new("signals");
    for (signal, number) in [("HUP", 1), ("INT", 2), ("QUIT", 3), ("TERM", 15)] {
        // The program dies of it, or does what it does then.
        let dies = "ulimit -c 0; echo there; exec sleep 30";
        let status = signalled(&libraries, signal, dies).status;
        assert_eq!(status.code(), Some(128 + number), "{signal}: {status}");
        let catches =
            format!("trap 'echo caught; exit 7' {signal}; echo there; while :; do sleep 0.05; done");
        let output = signalled(&libraries, signal, &catches);
        assert_eq!((output.status.code(), out(&output).as_str()), (Some(7), "caught\n"), "{signal}");
    }
}

#[test]
fn devices_are_counted() {
    let libraries = Libraries::new("devices");
    let devices = |count: &str| libraries.exec(&["--devices", count], &["sh", "-c", "echo $PTXVM_DEVICES"]);
    assert_eq!(out(&devices("3")), "3\n");
    for wrong in ["0", "33", "x"] {
        assert_eq!(devices(wrong).status.code(), Some(2), "{wrong}");
    }
}

#[test]
fn libraries_stand_under_the_names_that_programs_ask_for() {
    let libraries = Libraries::new("names");
    let found =
        out(&libraries.shell("cd \"${LD_LIBRARY_PATH%%:*}\" && for f in *; do echo $f $(readlink $f); done"));
    let file = |name: &str| libraries.0.canonicalize().expect("it exists").join(name).display().to_string();
    let (driver, runtime, none) = (file("libptxvm_cuda.so"), file("libptxvm_cudart.so"), String::new());
    let (cublas, nvrtc) = (file("libptxvm_cublas.so"), file("libptxvm_nvrtc.so"));
    let expected = [
        ("libcublas.so", &cublas),
        ("libcublas.so.12", &cublas),
        ("libcublas.so.13", &cublas),
        ("libcublasLt.so", &cublas),
        ("libcublasLt.so.12", &cublas),
        ("libcublasLt.so.13", &cublas),
        ("libcuda.so", &driver),
        ("libcuda.so.1", &driver),
        ("libcudart.so", &runtime),
        // These are files.
        ("libcudart.so.11.0", &none),
        ("libcudart.so.12", &none),
        ("libcudart.so.13", &none),
        ("libgpuocelot.so", &driver),
        ("libnvJitLink.so", &driver),
        ("libnvJitLink.so.12", &driver),
        ("libnvJitLink.so.13", &driver),
        ("libnvrtc.so", &nvrtc),
        ("libnvrtc.so.12", &none),
        ("libnvrtc.so.13", &none),
    ];
    let expected: String =
        expected.iter().map(|(name, file)| format!("{name} {file}").trim().to_owned() + "\n").collect();
    assert_eq!(found, expected);
}

#[test]
fn variables_are_set_unless_the_user_has() {
    let libraries = Libraries::new("variables");
    let found = out(&libraries.exec(
        &["--sm", "75", "--stats", "--recover", "--engine", "interp"],
        &[
            "sh",
            "-c",
            "echo $DEV $NUMBA_CACHE_DIR $PTXVM_SM $PTXVM_STATS $PTXVM_RECOVER $PTXVM_ENGINE ${LD_LIBRARY_PATH#*:}",
        ],
    ));
    assert_eq!(found, "CUDA:PTX mine 75 1 1 interp /theirs\n");
}

/// Programs that are linked with NVIDIA's runtime want its symbols in a version, which the loader misses
/// aloud.
#[test]
fn the_runtime_has_the_versions_that_programs_want() {
    let libraries = Libraries::new("versions");
    let folder = &libraries.0;
    let cc = |arguments: &[&str]| Command::new("cc").current_dir(folder).args(arguments).status();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("written");
    write("ours.c", "int cudaGetDeviceCount(int *count) { return *count = 7; }");
    write("theirs.c", "int cudaGetDeviceCount(int *count) { return 1; }");
    write(
        "main.c",
        "#include <stdio.h>\nint cudaGetDeviceCount(int *);\nint main(void) { int n; printf(\"%d\\n\", cudaGetDeviceCount(&n)); return 0; }",
    );
    if let Err(error) = cc(&["-shared", "-fPIC", "ours.c", "-o", "libptxvm_cudart.so"]) {
        println!("skipped: there is no C compiler (cc: {error})");
        return;
    }
    for name in ["libcudart.so.11.0", "libcudart.so.12", "libcudart.so.13"] {
        write("versions", &format!("{name} {{ global: *; }};"));
        let soname = format!("-Wl,-soname,{name}");
        let theirs =
            ["-shared", "-fPIC", "theirs.c", "-o", "theirs.so", &soname, "-Wl,--version-script,versions"];
        assert!(cc(&theirs).expect("it starts").success());
        assert!(cc(&["main.c", "theirs.so", "-o", "main"]).expect("it starts").success());
        let output = libraries.exec(&[], &[folder.join("main").to_str().expect("a path")]);
        assert_eq!((out(&output).as_str(), output.stderr.is_empty()), ("7\n", true), "{name}: {output:?}");
    }
}

#[test]
fn the_preloaded_library_comes_behind_those_of_the_user() {
    for (name, preloaded) in [("preload", true), ("nopreload", false)] {
        let libraries = Libraries::new(name);
        let ours = libraries.0.canonicalize().expect("it exists").join("libptxvm_preload.so");
        if preloaded {
            std::fs::write(&ours, "").expect("written");
        }
        let exec = |user: &[(&str, &str)]| {
            let mut program = Command::new(env!("CARGO_BIN_EXE_ptxvm"));
            program.arg("exec").arg("--library-path").arg(&libraries.0).args(["--print-env", "--", "true"]);
            program.env_remove("LD_PRELOAD").env_remove("ASAN_OPTIONS").envs(user.iter().copied());
            let found = out(&program.output().expect("the program starts"));
            let set = |name: &str| {
                let line = found.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
                line.map(str::to_owned)
            };
            [set("LD_PRELOAD"), set("ASAN_OPTIONS")]
        };
        let ours = ours.display().to_string();
        let with = |user: &str| preloaded.then(|| format!("{user}{ours}"));
        let first = |user: &str| preloaded.then(|| format!("{user}verify_asan_link_order=0"));
        assert_eq!(exec(&[]), [with(""), first("")]);
        let user = [("LD_PRELOAD", "libmine.so"), ("ASAN_OPTIONS", "detect_leaks=0")];
        assert_eq!(exec(&user), [with("libmine.so:"), first("detect_leaks=0:")]);
    }
}

#[test]
fn caches_are_empty_and_gone_afterwards() {
    let libraries = Libraries::new("caches");
    let script = "test ! -e $TRITON_CACHE_DIR && mkdir $TRITON_CACHE_DIR && echo $TRITON_CACHE_DIR";
    let folder = out(&libraries.shell(script));
    assert!(folder.contains("triton"), "{folder}");
    assert!(!Path::new(folder.trim()).exists());
}

#[test]
fn options_that_do_not_exist_are_refused_and_nothing_runs() {
    let libraries = Libraries::new("options");
    for (option, says) in
        [("--twol", "no option `--twol`"), ("--tool=", "is no tool"), ("--tool=mem", "`mem` is no tool")]
    {
        let output = libraries.exec(&[option, "memcheck"], &["echo", "it ran"]);
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stdout.is_empty());
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(message.contains(says), "{message}");
    }
}

#[test]
fn without_libraries_the_message_says_how_to_get_them() {
    let output = Command::new(env!("CARGO_BIN_EXE_ptxvm"))
        .args(["exec", "--library-path", "/no/such/folder", "--", "true"])
        .output()
        .expect("the program starts");
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("cargo build --release"), "{message}");
}

#[test]
fn the_assembler_hands_ptx_on_and_reports_mistakes() {
    let libraries = Libraries::new("ptxas");
    let file = |name: &str| libraries.0.join(name).display().to_string();
    let good = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry f() { ret; }\n";
    std::fs::write(file("good.ptx"), good).expect("written");
    std::fs::write(file("bad.ptx"), good.replace("ret", "rot")).expect("written");
    let assemble = |input: &str| {
        let script = format!("ptxas -lineinfo -v --gpu-name=sm_75 {} -o {}", file(input), file("out"));
        libraries.shell(&script)
    };
    assert_eq!(assemble("good.ptx").status.code(), Some(0));
    assert_eq!(std::fs::read_to_string(file("out")).expect("written"), good);
    let bad = assemble("bad.ptx");
    assert_eq!(bad.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&bad.stderr).contains("bad.ptx:4"), "{bad:?}");
    assert!(out(&libraries.shell("ptxas --version")).contains("release 12.9,"));
    assert!(out(&libraries.exec(&["--driver-version", "13.0"], &["ptxas", "-V"])).contains("release 13.0,"));
}

#[test]
fn the_packer_makes_a_container_of_all_inputs() {
    let libraries = Libraries::new("fatbinary");
    let file = |name: &str| libraries.0.join(name).display().to_string();
    std::fs::write(file("a.ptx"), "// a").expect("written");
    std::fs::write(file("b.s"), "// b").expect("written");
    let script = format!(
        "fatbinary -64 --create {} --image=profile=sm_75,file={} --image3=kind=ptx,sm=80,file={}",
        file("out"),
        file("a.ptx"),
        file("b.s")
    );
    assert_eq!(libraries.shell(&script).status.code(), Some(0));
    let container = std::fs::read(file("out")).expect("written");
    let entries = ptxvm::container::entries(&container).expect("a container");
    let read: Vec<_> = entries.iter().map(|entry| (entry.sm, entry.text().expect("not damaged"))).collect();
    assert_eq!(read, [(75, "// a".to_owned()), (80, "// b".to_owned())]);
}

#[test]
fn the_device_linker_links_objects() {
    let libraries = Libraries::new("nvlink");
    let file = |name: &str| libraries.0.join(name).display().to_string();
    let head = ".version 7.0\n.target sm_75\n.address_size 64\n";
    let parts = [
        ("a", ".extern .func f();\n.visible .entry k() { call f; ret; }\n"),
        ("b", ".visible .func f() { ret; }\n"),
        ("c", ".visible .func f() { ret; }\n"),
    ];
    for (name, text) in parts {
        std::fs::write(file(name), format!("{head}{text}")).expect("written");
        let script = format!("ptxas -m64 -O3 --gpu-name sm_75 -c --output-file {0}.o {0}", file(name));
        assert_eq!(libraries.shell(&script).status.code(), Some(0));
        let object = std::fs::read(file(name) + ".o").expect("written");
        // A relocatable ELF file of 64 bits, which compilers examine.
        assert_eq!((&object[..6], object[16]), (&b"\x7fELF\x02\x01"[..], 1));
    }
    let link = |parts: &[&str]| {
        let objects: Vec<_> = parts.iter().map(|name| file(name) + ".o").collect();
        let script = format!("nvlink -arch sm_75 -L/nowhere -o {} {}", file("linked"), objects.join(" "));
        libraries.shell(&script)
    };
    assert_eq!(link(&["a", "b"]).status.code(), Some(0));
    let script = format!("fatbinary --create {} --image=profile=sm_75,file={}", file("out"), file("linked"));
    assert_eq!(libraries.shell(&script).status.code(), Some(0));
    let container = std::fs::read(file("out")).expect("written");
    let entries = ptxvm::container::entries(&container).expect("a container");
    let bundle = ptxvm::container::Bundle::read(&entries[0].text().expect("a text")).expect("linked texts");
    let texts: Vec<_> = bundle.texts.iter().map(|(_, text)| text.strip_prefix(head)).collect();
    assert_eq!(texts, [Some(parts[0].1), Some(parts[1].1)]);
    // Two definitions of a function are an error.
    let twice = link(&["a", "b", "c"]);
    assert_eq!(twice.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&twice.stderr).contains("`f`"), "{twice:?}");
}

#[test]
fn the_compiler_is_there_if_it_is_asked_for() {
    let libraries = Libraries::new("nvcc");
    let none = libraries.shell("command -v nvcc | grep ptxvm-exec");
    assert_eq!(none.status.code(), Some(1), "{none:?}");
    let file = |name: &str| libraries.0.join(name).display().to_string();
    std::fs::create_dir_all(libraries.0.join("cuda/include")).expect("a folder");
    std::fs::write(file("cuda/include/cuda_runtime.h"), "").expect("written");
    // A compiler that writes its arguments.
    std::fs::write(file("clang"), "#!/bin/sh\necho \"$@\" > compiled\nexit 7\n").expect("written");
    let script = format!(
        "cd {} && chmod +x clang && PTXVM_CLANG=$PWD/clang CUDA_PATH=$PWD/cuda nvcc --cubin -arch sm_80 -m64 -I/x k.cu; \
         echo $?; nvcc k.cu -o program; echo $?; nvcc --version | tail -1",
        libraries.0.display()
    );
    let output = libraries.exec(&["--nvcc"], &["sh", "-c", &script]);
    assert_eq!(out(&output), "7\n2\nCuda compilation tools, release 12.9, V12.9.0\n", "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("compiles device code"), "{output:?}");
    let given = std::fs::read_to_string(file("compiled")).expect("written");
    assert!(given.contains(" --cuda-gpu-arch=sm_80 -I/x -S -o k.cubin k.cu"), "{given}");
    assert!(given.contains(&format!("--cuda-path={} ", file("cuda"))), "{given}");
}

/// What a process of a program writes when it has found something.
fn journal_line(process: &str, told: u32, count: u32, name: &str) -> String {
    let (before, behind) = (r#"{\"kind\":\"race\",\"count\":"#, format!(r#",\"message\":\"{name}\"}}"#));
    format!(
        r#"["finding","{process}",0,{told},{count},"{name}","{before}","{behind}","racecheck: race: {name}\n"]"#
    )
}

#[test]
fn findings_of_processes_become_one_report() {
    let libraries = Libraries::new("findings");
    let (report, lines) = (libraries.0.join("report.jsonl"), libraries.0.join("lines"));
    let exec = |options: &[&str], lines_of: &[String], end: &str| {
        std::fs::write(&lines, lines_of.join("\n") + "\n").expect("written");
        let script = format!("cat '{}' >> \"$PTXVM_FINDINGS\"; echo $PTXVM_TOOL; {end}", lines.display());
        let file = report.display().to_string();
        let options: Vec<&str> = [&["--tool", "racecheck,memcheck", "--report", &file], options].concat();
        libraries.exec(&options, &["sh", "-c", &script])
    };
    let text = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let written = || std::fs::read_to_string(&report).expect("a report");

    let none = exec(&[], &[], "exit 7");
    assert_eq!((none.status.code(), out(&none).as_str()), (Some(7), "memcheck,racecheck\n"));
    assert_eq!(text(&none), "ERROR SUMMARY: 0 errors\n");
    assert_eq!(written(), "{\"summary\":{\"errors\":0}}\n");

    // The same of two processes, one of which was killed before it could print it; and one more.
    let found = [
        journal_line("1", 0, 1, "a"),
        journal_line("1", 1, 5, "a"),
        journal_line("2", 0, 2, "a"),
        journal_line("3", 0, 9, "b"),
        r#"["suppressed","1",2]"#.to_owned(),
        r#"["finding","4",0,0,"#.to_owned(),
    ];
    let some = exec(&[], &found, "exit 7");
    assert_eq!(some.status.code(), Some(4));
    assert_eq!(text(&some), "racecheck: race: b\n\nsuppressed: 2\nERROR SUMMARY: 2 errors\n");
    let expected = concat!(
        "{\"kind\":\"race\",\"count\":7,\"message\":\"a\"}\n",
        "{\"kind\":\"race\",\"count\":9,\"message\":\"b\"}\n",
        "{\"summary\":{\"errors\":2,\"suppressed\":2}}\n"
    );
    assert_eq!(written(), expected);
    assert_eq!(exec(&["--error-exitcode", "9"], &found, "kill -KILL $$").status.code(), Some(9));
    assert_eq!(exec(&["--error-exitcode", "9"], &[], "kill -KILL $$").status.code(), Some(137));
}

#[test]
fn options_of_tools_are_checked_before_the_program_runs() {
    let libraries = Libraries::new("tool-options");
    let rules = libraries.0.join("rules");
    std::fs::write(&rules, "kind=race\nkind=rase\n").expect("written");
    let rules = rules.display().to_string();
    let refused = |options: &[&str], says: &str| {
        let output = libraries.exec(options, &["sh", "-c", "echo ran"]);
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), out(&output).as_str()), (Some(2), ""), "{options:?}");
        assert!(err.contains(says), "{options:?}: {err}");
    };
    refused(&["--tool", "memchek"], "`memchek` is no tool");
    refused(&["--tool", "all", "--engine", "jit"], "`--engine jit` is refused");
    refused(&["--report", "x"], "--tool");
    refused(&["--tool", "all", "--report", "/no/such/folder/x"], "cannot write `/no/such/folder/x`");
    refused(&["--tool", "all", "--suppressions", "/no/such/file"], "cannot read `/no/such/file`");
    refused(&["--tool", "all", "--suppressions", &rules], &format!("{rules}:2:1: `rase` is no kind"));
    refused(&["--tool", "all", "--max-findings", "0"], "0");
    refused(&["--fill", "abc"], "3 hexadecimal digits");
    let set = |options: &[&str]| {
        let script = "echo $PTXVM_TOOL $PTXVM_SEED $PTXVM_FILL $PTXVM_MAX_FINDINGS";
        out(&libraries.exec(options, &["sh", "-c", script]))
    };
    assert_eq!(set(&["--seed", "3", "--fill", "0xA5"]), "3 0xA5\n");
    assert_eq!(set(&["--tool", "synccheck,initcheck", "--max-findings", "7"]), "initcheck,synccheck 7\n");
}
