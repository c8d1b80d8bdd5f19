//! The program from outside: exit statuses, output, and input and output files.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn fixture(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/fixtures")
        .join(name)
        .to_string_lossy()
        .into_owned()
}

fn ptxvm(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ptxvm"))
        .env("PTXVM_CACHE_DIR", "")
        .args(args)
        .output()
        .expect("the program starts")
}

fn status(output: &Output) -> i32 {
    output.status.code().expect("no signal")
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

/// A folder of its own for a test, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ptxvm-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).expect("written");
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _leftovers_are_harmless = std::fs::remove_dir_all(&self.0);
    }
}

/// The places that the comments of a file in `reject/` expect: `ERROR line:column`.
fn expected_places(text: &str) -> Vec<(u64, u64)> {
    let comments = text.lines().filter_map(|line| line.split_once("// ERROR "));
    let place = |(_, comment): (&str, &str)| {
        let (line, column) = comment.split_whitespace().next()?.split_once(':')?;
        Some((line.parse().ok()?, column.parse().ok()?))
    };
    comments.filter_map(place).collect()
}

#[test]
fn five_mistakes_give_five_places() {
    let file = fixture("reject/five.ptx");
    let expected = expected_places(&std::fs::read_to_string(&file).expect("fixture"));
    assert_eq!(expected.len(), 5);
    let output = ptxvm(&["check", "--format", "json", &file]);
    assert_eq!(status(&output), 1);
    let found: Vec<Value> =
        err(&output).lines().map(|l| serde_json::from_str(l).expect("JSON lines")).collect();
    let places: Vec<_> = found
        .iter()
        .map(|d| (d["line"].as_u64().expect("line"), d["column"].as_u64().expect("column")))
        .collect();
    assert_eq!(places, expected);
    for diagnostic in &found {
        let keys = [
            "file",
            "severity",
            "code",
            "message",
            "line",
            "column",
            "end_line",
            "end_column",
            "help",
            "section",
        ];
        assert!(keys.iter().all(|k| diagnostic.get(k).is_some()), "{diagnostic}");
        assert_eq!(diagnostic["severity"], "error");
    }
    let human = ptxvm(&["check", &file]);
    assert_eq!(status(&human), 1);
    for (line, column) in expected {
        assert!(err(&human).contains(&format!("five.ptx:{line}:{column}")), "{}", err(&human));
    }
}

#[test]
fn check_takes_several_files_and_standard_input() {
    let good = fixture("kernels/saxpy.ptx");
    let output = ptxvm(&["check", &good, &fixture("reject/five.ptx")]);
    assert_eq!(status(&output), 1);
    assert_eq!(status(&ptxvm(&["check", &good])), 0);
    assert_eq!(status(&ptxvm(&["check", "/nonexistent.ptx", &good])), 2);
    use std::io::Write as _;
    let mut child = Command::new(env!("CARGO_BIN_EXE_ptxvm"))
        .env("PTXVM_CACHE_DIR", "")
        .args(["check", "-"])
        .stdin(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the program starts");
    child
        .stdin
        .take()
        .expect("piped")
        .write_all(b".version 6.4\n.target sm_70\n.garbage\n")
        .expect("written");
    let output = child.wait_with_output().expect("ends");
    assert_eq!(status(&output), 1);
    assert!(err(&output).contains("<stdin>:3:1"), "{}", err(&output));
}

#[test]
fn gpu_name_decides_what_exists() {
    let scratch = Scratch::new("gpu");
    let text = ".version 6.4\n.target sm_30\n.address_size 64\n.visible .entry k()\n{\n .reg .b32 %r<2>;\n add.s32 %r1, %r1, 1;\n ret;\n}\n";
    let file = scratch.write("k.ptx", text);
    assert_eq!(status(&ptxvm(&["check", &file])), 0);
    assert_eq!(status(&ptxvm(&["check", "--gpu-name", "sm_70", &file])), 0);
    assert_eq!(status(&ptxvm(&["check", "--gpu-name", "sm_71x", &file])), 2);
}

#[test]
fn bad_usage_exits_with_2() {
    for args in [
        &[][..],
        &["frobnicate"],
        &["run"],
        &["run", "/nonexistent.ptx"],
        &["run", "x.ptx", "--grid", "0"],
        &["run", "x.ptx", "--arg", "u33:1"],
        &["isa", "nonsense"],
        &["check"],
    ] {
        assert_eq!(status(&ptxvm(args)), 2, "{args:?}");
    }
    let saxpy = fixture("kernels/saxpy.ptx");
    assert_eq!(status(&ptxvm(&["run", &saxpy, "saxpy"])), 2, "arguments are missing");
    let output = ptxvm(&["run", &saxpy, "nothing"]);
    assert_eq!(status(&output), 2);
    assert!(err(&output).contains("`saxpy`"), "names the kernels that exist: {}", err(&output));
    assert_eq!(status(&ptxvm(&["run", &saxpy])), 2, "several kernels and no name");
}

#[test]
fn arrays_go_in_and_out() {
    let scratch = Scratch::new("arrays");
    let (x, result) = (fixture("data/daxpy.2.in.npy"), scratch.path("y.npy"));
    let y = format!("inout:{}={result}", fixture("data/daxpy.3.in.npy"));
    let args =
        ["run", &fixture("kernels/saxpy.ptx"), "daxpy", "--grid", "3", "--block", "64"].map(str::to_owned);
    let more = ["s32:333", "f64:0.1", &format!("in:{x}"), &y].map(|a| format!("--arg={a}"));
    let all: Vec<&str> = args.iter().chain(&more).map(String::as_str).collect();
    let output = ptxvm(&[&all[..], &["--format", "json", "--stats", "--repeat", "1"]].concat());
    assert_eq!(status(&output), 0, "{}", err(&output));
    let object: Value = serde_json::from_str(&out(&output)).expect("one object");
    assert_eq!(object["kernel"], "daxpy");
    assert_eq!(object["status"], "ok");
    assert_eq!(object["trap"], Value::Null);
    assert_eq!(object["launch_ms"].as_array().map(Vec::len), Some(1));
    let expected = std::fs::read(fixture("data/daxpy.3.expect.npy")).expect("fixture");
    let found = std::fs::read(&result).expect("written");
    assert_eq!(found[found.len() - 333 * 8..], expected[expected.len() - 333 * 8..]);
}

/// `--emit wir` and `--emit remarks` say what the compiler made of the kernel, and `--stats` repeats the
/// remarks behind a run.
#[test]
#[cfg(feature = "jit")]
fn listings_and_stats_say_what_the_compiler_did() {
    let saxpy = fixture("kernels/saxpy.ptx");
    let run = |more: &[&str]| {
        let output = ptxvm(&[&["run", saxpy.as_str(), "daxpy", "--block", "64"][..], more].concat());
        assert_eq!(status(&output), 0, "{}", err(&output));
        output
    };
    let wir = out(&run(&["--cpu", "avx512,tuning=zen4", "--emit", "wir"]));
    assert!(wir.starts_with("; daxpy: ntid=64x1x1 chunk=16 warps=1\nstart b"), "{wir}");
    assert!(
        wir.contains("lanes [0+8x32]") && wir.contains(": st.global.b64 as affine: vector x2\n"),
        "{wir}"
    );
    let remarks = out(&run(&["--cpu", "avx2", "--emit", "remarks"]));
    assert!(
        remarks.starts_with("kernel: coarsen: missed: no iteration needs a vector of the previous one\n"),
        "{remarks}"
    );
    assert!(remarks.contains(": access: applied: one vector store for a chunk"), "{remarks}");
    let args = ["--engine=jit", "--stats", "--format=json", "--no-cache"];
    let values = ["s32:64", "f64:2", "zeros:512", "zeros:512"].map(|value| format!("--arg={value}"));
    let all: Vec<&str> = args.into_iter().chain(values.iter().map(String::as_str)).collect();
    let object: Value = serde_json::from_str(&out(&run(&all))).expect("one object");
    let remarks = object["stats"]["remarks"].as_array().expect("a list");
    let coarsen = "kernel: coarsen: missed: no iteration needs a vector of the previous one";
    assert!(remarks.iter().any(|line| line == coarsen), "{object}");
}

/// `--stats` counts by line what native code leaves to the interpreter: here the load of lanes whose
/// addresses are in two allocations, once in each of five warps.
#[test]
#[cfg(feature = "jit")]
fn stats_count_what_the_interpreter_executes_for_native_code() {
    let scratch = Scratch::new("exits");
    let text = ".version 6.4\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 b)\n{\n .reg .pred %p;\n .reg .b32 %r<3>;\n .reg .b64 %d<5>;\n ld.param.u64 %d1, [a];\n ld.param.u64 %d2, [b];\n mov.u32 %r1, %tid.x;\n setp.lt.u32 %p, %r1, 7;\n selp.b64 %d3, %d1, %d2, %p;\n mul.wide.u32 %d4, %r1, 4;\n add.s64 %d3, %d3, %d4;\n ld.global.u32 %r2, [%d3];\n add.s64 %d2, %d2, %d4;\n st.global.u32 [%d2], %r2;\n}\n";
    let file = scratch.write("k.ptx", text);
    let args = ["--grid=5", "--block=32", "--arg=zeros:128", "--arg=zeros:128", "--engine=jit", "--no-cache"];
    let run = |more: &[&str]| {
        let output = ptxvm(&[&["run", file.as_str(), "--stats"][..], &args, more].concat());
        assert_eq!(status(&output), 0, "{}", err(&output));
        output
    };
    let said = err(&run(&[]));
    let line = "\n  interpreter: line 16: `ld.global.u32`: a bounds check failed: 5 times ";
    assert!(said.contains(line), "{said}");
    let object: Value = serde_json::from_str(&out(&run(&["--format=json"]))).expect("one object");
    let [exits] = &object["stats"]["side_exits"].as_array().expect("a list")[..] else { panic!("{object}") };
    assert_eq!(exits["lines"], serde_json::json!([16]));
    assert_eq!(exits["instruction"], "ld.global.u32");
    assert_eq!(exits["cause"], "bounds");
    assert_eq!(exits["count"], 5);
}

#[test]
fn an_output_array_has_the_shape_that_was_asked_for() {
    let scratch = Scratch::new("out");
    let text = ".version 6.4\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n .reg .b32 %r<2>;\n .reg .b64 %d<4>;\n ld.param.u64 %d1, [p];\n mov.u32 %r1, %tid.x;\n mul.wide.u32 %d2, %r1, 4;\n add.s64 %d3, %d1, %d2;\n st.global.u32 [%d3], %r1;\n}\n";
    let (file, array) = (scratch.write("k.ptx", text), scratch.path("a.npy"));
    let output = ptxvm(&["run", &file, "--block", "6", "--arg", &format!("out:u4[2,3]={array}")]);
    assert_eq!(status(&output), 0, "{}", err(&output));
    let bytes = std::fs::read(&array).expect("written");
    let header = String::from_utf8_lossy(&bytes[..128]).into_owned();
    assert!(header.contains("<u4") && header.contains("(2, 3"), "{header}");
    let values: Vec<u32> = bytes[bytes.len() - 24..]
        .chunks(4)
        .map(|c| u32::from_le_bytes(c.try_into().expect("4 bytes")))
        .collect();
    assert_eq!(values, [0, 1, 2, 3, 4, 5]);
    // One byte too few: the last thread's store is outside, and the report says all that it must.
    let output = ptxvm(&["run", &file, "--block", "6", "--format", "json", "--arg", "zeros:23"]);
    assert_eq!(status(&output), 3);
    let report = err(&output);
    for part in [
        "kernel:",
        "k.ptx:12",
        "st.global.u32 [%d3], %r1",
        "cta:",
        "(0,0,0)",
        "thread:",
        "(5,0,0)",
        "address:",
        "argument 1 (`p`)",
        "23 bytes",
    ] {
        assert!(report.contains(part), "`{part}` in {report}");
    }
    let object: Value = serde_json::from_str(&out(&output)).expect("one object");
    assert_eq!(object["status"], "trap");
    assert_eq!(object["trap"]["kind"], "illegal_address");
    assert_eq!(object["trap"]["line"], 12);
    assert_eq!(object["trap"]["tid"], serde_json::json!([5, 0, 0]));
}

#[test]
fn what_is_not_implemented_is_refused_by_name_and_line() {
    for file in ["reject/newer_isa.ptx", "reject/too_new.ptx"] {
        let path = fixture(file);
        let text = std::fs::read_to_string(&path).expect("fixture");
        let output = ptxvm(&["run", &path]);
        assert_eq!(status(&output), 1, "{}", err(&output));
        let mut refused = 0;
        for (index, line) in text.lines().enumerate() {
            let comment = line.split_once("// REFUSED ").or(line.split_once("// ERROR "));
            if comment.is_some() {
                let name = line.split_whitespace().next().unwrap_or_default().trim_end_matches(';');
                let place = format!(":{}:", index + 1);
                assert!(
                    err(&output).contains(name.split('.').next().unwrap_or(name))
                        && err(&output).contains(&place),
                    "{name} {place}: {}",
                    err(&output)
                );
                refused += 1;
            }
        }
        assert!(refused > 0);
    }
}

#[test]
fn limits_stop_what_never_ends() {
    let scratch = Scratch::new("limits");
    let text = ".version 6.4\n.target sm_70\n.address_size 64\n.visible .entry k()\n{\nL: bra L;\n}\n";
    let file = scratch.write("k.ptx", text);
    for limit in [&["--max-steps", "10000"], &["--timeout", "0.2"]] {
        let output = ptxvm(&[&["run", &file][..], &limit[..]].concat());
        assert_eq!(status(&output), 3, "{}", err(&output));
        assert!(err(&output).contains("limit reached"), "{}", err(&output));
    }
}

#[test]
fn what_the_kernel_prints_goes_to_standard_output() {
    let text = std::fs::read_to_string(fixture("cases/print_values.json")).expect("fixture");
    let case: Value = serde_json::from_str(&text).expect("JSON");
    let extent = |v: &Value| [0, 1, 2].map(|i| v[i].as_u64().unwrap_or(1).to_string()).join(",");
    let kernel = case["kernel"].as_str().expect("kernel");
    let (grid, block) = (extent(&case["grid"]), extent(&case["block"]));
    let file = fixture(case["ptx"].as_str().expect("ptx"));
    let args = ["run", &file, kernel, "--grid", &grid, "--block", &block, "--arg", "s32:3"];
    let output = ptxvm(&args);
    assert_eq!(status(&output), 0, "{}", err(&output));
    assert_eq!(out(&output), case["output"].as_str().expect("output"));
    let json = ptxvm(&[&args[..], &["--format", "json"]].concat());
    let object: Value = serde_json::from_str(&out(&json)).expect("one object");
    assert_eq!(object["output"], case["output"]);
}

#[test]
fn the_table_is_listed_with_what_is_missing() {
    let output = ptxvm(&["isa", "--format", "json"]);
    assert_eq!(status(&output), 0);
    let forms: Value = serde_json::from_str(&out(&output)).expect("an array");
    let forms = forms.as_array().expect("an array");
    let of = |name: &str| forms.iter().filter(|f| f["mnemonic"] == name).collect::<Vec<_>>();
    for name in [
        "ld", "st", "atom", "red", "setp", "set", "selp", "cvt", "shfl", "vote", "bar", "barrier", "call",
        "brx", "mov", "tex", "tld4", "suld", "sured", "wmma", "mma", "vadd", "vmad", "vset", "vadd4", "prmt",
        "lop3",
    ] {
        assert!(!of(name).is_empty(), "{name}");
    }
    assert!(of("add").iter().any(|f| f["interpreted"] == "yes"));
    assert!(of("add").iter().any(|f| f["native"] == "yes") == cfg!(feature = "jit"));
    assert!(of("tex").iter().all(|f| f["native"] == "missing"));
    let human = ptxvm(&["isa", "shfl.sync"]);
    assert_eq!(status(&human), 0);
    assert!(out(&human).contains("shfl.sync"));
}

#[test]
fn the_demo_passes_and_draws() {
    let scratch = Scratch::new("demo");
    let picture = scratch.path("m.png");
    let output = ptxvm(&["demo", "--picture", &picture]);
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    assert_eq!(out(&output).matches("passed").count(), 5, "{}", out(&output));
    assert!(std::fs::read(&picture).expect("drawn").starts_with(b"\x89PNG"));
}
