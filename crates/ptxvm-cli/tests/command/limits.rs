//! Limits: input that is too large, nested too deeply, or endless is refused with one line, before it uses
//! memory or time.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// A kernel with a parameter, and one without.
const KERNELS: &str = "\
.version 8.0
.target sm_80
.address_size 64
.visible .entry with(.param .u64 p) { ret; }
.visible .entry without() { ret; }
.visible .entry shaped() .reqntid 32 { ret; }
";

/// A folder of its own for a test, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ptxvm-limits-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("written");
        path.to_string_lossy().into_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _leftovers_are_harmless = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs the program where the shell's `limit` holds (`ulimit -v 500000`).
fn limited(limit: &str, args: &[&str]) -> Output {
    Command::new("sh")
        .args(["-c", &format!("{limit}\nexec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_ptxvm")])
        .args(args)
        .env("PTXVM_CACHE_DIR", "")
        .output()
        .expect("a shell")
}

/// The status, and what was printed on standard error.
fn ended(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Refused with status 2 and one line that has these words, within seconds.
fn refused(limit: &str, args: &[&str], words: &str) {
    let start = Instant::now();
    let (status, message) = ended(&limited(limit, args));
    assert_eq!(status, Some(2), "{args:?}: {message}");
    assert!(message.contains(words) && message.starts_with("ptxvm: "), "{args:?}: {message}");
    assert_eq!(message.lines().count(), 1, "{args:?}: {message}");
    assert!(start.elapsed() < Duration::from_secs(20), "{args:?}");
}

#[test]
fn the_shape_of_a_cta_is_checked_before_anything_is_sized_by_it() {
    let scratch = Scratch::new("shape");
    let file = scratch.write("k.ptx", KERNELS);
    for engine in ["auto", "interp", "jit"] {
        for block in ["4294967295", "65536,65536", "1025,1025,1025", "4294967295,4294967295,4294967295"] {
            refused(
                "",
                &["run", &file, "without", "--engine", engine, "--block", block],
                "over the limit of 1024 threads",
            );
        }
        refused(
            "",
            &["run", &file, "shaped", "--engine", engine, "--block", "64"],
            "`.reqntid` requires CTAs of 32x1x1",
        );
    }
    if !cfg!(feature = "jit") {
        return;
    }
    refused(
        "",
        &["run", &file, "without", "--emit", "asm", "--block", "4294967295"],
        "over the limit of 1024",
    );
    // Without `--block`, the shape that the kernel requires is shown.
    assert_eq!(ended(&limited("", &["run", &file, "shaped", "--emit", "asm"])).0, Some(0));
}

/// A few lines that ask for 2^60 replacements, of which nothing is left, and calls of a macro in calls of it.
#[test]
fn macros_cost_what_their_text_may() {
    let scratch = Scratch::new("macros");
    let doubling: String = (1..60).map(|i| format!("#define A{i} A{0} A{0}\n", i - 1)).collect();
    let nested = format!("#define F(x) x\n{KERNELS}{}{}\n", "F(".repeat(200_000), ")".repeat(200_000));
    for (name, text) in [("doubling", format!("#define A0\n{doubling}{KERNELS}A59\n")), ("nested", nested)] {
        let file = scratch.write(name, text);
        let start = Instant::now();
        let (status, message) = ended(&limited("", &["check", &file]));
        assert_eq!(status, Some(1), "{message}");
        assert!(message.starts_with("error[P0009]: ") && message.contains("1 error\n"), "{message}");
        assert!(start.elapsed() < Duration::from_secs(30), "{name}");
    }
}

#[test]
fn texts_without_an_end_are_refused() {
    let scratch = Scratch::new("endless");
    let file = scratch.write("k.ptx", KERNELS);
    refused("ulimit -v 300000", &["check", "/dev/zero"], "cannot read `/dev/zero`: no memory");
    refused("ulimit -v 300000", &["fmt", "--check", "/dev/zero"], "cannot read `/dev/zero`: no memory");
    refused("", &["run", &file, "with", "--launch", "/dev/zero"], "it has more than 16777216 bytes");
}

/// Where the system grants few addresses, a command does its work, or says in one line that it cannot.
#[test]
fn little_memory_is_enough_or_said_to_be_too_little() {
    let scratch = Scratch::new("memory");
    let file = scratch.write("k.ptx", KERNELS);
    for kilobytes in [100_000, 300_000, 500_000, 1_000_000, 2_000_000, 5_000_000] {
        let limit = format!("ulimit -v {kilobytes}");
        assert_eq!(ended(&limited(&limit, &["check", &file])), (Some(0), String::new()), "{limit}");
        for engine in ["auto", "interp", "jit"] {
            let (status, message) =
                ended(&limited(&limit, &["run", &file, "without", "--engine", engine, "--block", "256"]));
            let done = status == Some(0) && message.is_empty();
            let said = status == Some(2) && message.starts_with("ptxvm: ") && message.lines().count() == 1;
            assert!(done || said && (kilobytes < 200_000 || engine == "jit"), "{limit}: {message}");
        }
    }
    let much = format!("{KERNELS}.global .u32 a[] = {{ {}1 }};\n", "1, ".repeat(1_000_000));
    refused("ulimit -v 80000", &["check", &scratch.write("much.ptx", much)], "out of memory: ");
}

/// What is nested as deep as the parser allows, and expressions as deep as LLVM makes them, need no stack of
/// the first thread's.
#[test]
fn a_small_stack_is_enough() {
    let scratch = Scratch::new("stack");
    let deep = |open: &str, close: &str| open.repeat(120) + "1" + &close.repeat(120);
    let header = ".version 8.0\n.target sm_80\n.address_size 64\n";
    let blocks = deep("{", "}").replace('1', "");
    let branches: String = (0..500).map(|i| format!("@p bra L{i};\n")).collect();
    let labels: String = (0..500).rev().map(|i| format!("L{i}: membar.gl;\n")).collect();
    let text = format!(
        "{header}.global .u32 a = {};\n.global .u32 b = {}1;\n.visible .entry k()\n{{\n.reg .pred p;\n{blocks}\n{branches}{labels}ret;\n}}\n",
        deep("(", ")"),
        "~".repeat(120),
    );
    let file = scratch.write("deep.ptx", text);
    let engine = if cfg!(feature = "jit") { "jit" } else { "interp" };
    for command in [&["check", &file][..], &["fmt", "--stdout", &file], &["run", &file, "--engine", engine]] {
        let (status, message) = ended(&limited("ulimit -s 128", command));
        assert_eq!(status, Some(0), "{command:?}: {message}");
    }
}

#[test]
fn arrays_of_any_size_are_had_or_refused() {
    let scratch = Scratch::new("arrays");
    let file = scratch.write("k.ptx", KERNELS);
    let out = scratch.write("out.npy", "");
    let run = |limit: &str, argument: &str, words: &str| {
        refused(limit, &["run", &file, "with", "--engine", "interp", "--arg", argument], words);
    };
    let small = "ulimit -v 2000000";
    run(small, &format!("out:f4[2000000000]={out}"), "argument 1 (`p`): no room for 8000000000 bytes");
    run(small, "zeros:8000000000", "argument 1 (`p`): no room for 8000000000 bytes");
    run("", "zeros:18446744073709551615", "argument 1 (`p`): no room for 18446744073709551615 bytes");
    run(
        "",
        &format!("out:f4[18446744073709551615,2]={out}"),
        "argument 1 (`p`): an array of more than 1 TiB",
    );
    run("", &format!("out:f4[{}]={out}", "1,".repeat(65)), "an array of 65 axes");
    run(small, &format!("tex:out:f4[60000,60000]={out}"), "argument 1 (`p`)");
    let variable = scratch.write("g.ptx", format!("{KERNELS}.global .b8 g[1000000000000];\n"));
    refused("", &["run", &variable, "without"], "global variable `g`: no room for 1000000000000 bytes");

    let header =
        |text: &str| [b"\x93NUMPY\x01\x00", &(text.len() as u16).to_le_bytes()[..], text.as_bytes()].concat();
    let shaped =
        |shape: &str| header(&format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}"));
    let lies = scratch.write("lies.npy", shaped("(100000000000,)"));
    run(small, &format!("in:{lies}"), "0 bytes of data do not fit the shape [100000000000]");
    let deep = scratch.write("deep.npy", shaped(&("[".repeat(40) + "1" + &"]".repeat(40))));
    run("", &format!("in:{deep}"), "its header: expected `(`, found `[`");
    run("", "in:/dev/zero", "not a .npy file");
}

/// Beside device memory, an array takes none: 60 MB come out of a process of 500 MB, half of which are the
/// device's.
#[test]
fn results_are_written_without_a_copy() {
    let scratch = Scratch::new("large");
    let file = scratch.write("k.ptx", KERNELS);
    let out = scratch.write("out.npy", "");
    let argument = format!("out:u1[60000000]={out}");
    let command = ["run", &file, "with", "--engine", "interp", "--arg", &argument];
    assert_eq!(ended(&limited("ulimit -v 500000", &command)), (Some(0), String::new()));
    assert_eq!(std::fs::metadata(&out).expect("written").len(), 60_000_128);
}
