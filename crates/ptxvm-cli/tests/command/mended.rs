//! Messages about arguments of the wrong kind, files that are not PTX, forms of later manuals, and a missing
//! LLVM.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ptxvm-mended-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).expect("written");
        path.to_string_lossy().into_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _leftovers_are_harmless = std::fs::remove_dir_all(&self.0);
    }
}

fn ptxvm(args: &[&str]) -> Output {
    command(args).output().expect("the program starts")
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ptxvm"));
    command.env("PTXVM_CACHE_DIR", "").args(args);
    command
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A kernel that stores its parameter of that type.
fn store(ty: &str, bits: u32) -> String {
    let register = if ty.starts_with('f') { format!(".{ty}") } else { format!(".b{bits}") };
    format!(
        ".version 7.0\n.target sm_70\n.address_size 64\n.entry k(.param .{ty} x, .param .u64 to) {{\n\
         .reg {register} v; .reg .b64 p;\nld.param.{ty} v, [x];\nld.param.u64 p, [to];\nst.global.{ty} [p], v;\nret;\n}}\n"
    )
}

#[test]
fn an_argument_of_another_kind_is_warned_of_and_of_another_width_refused() {
    let scratch = Scratch::new("kinds");
    for (ty, bits, arg, warned) in [
        ("f32", 32, "s32:2", true),
        ("f32", 32, "u32:2", true),
        ("f32", 32, "f32:2", false),
        ("f32", 32, "b32:2", false),
        ("u32", 32, "f32:2", true),
        ("u32", 32, "s32:2", false),
        ("b32", 32, "f32:2", false),
        ("f64", 64, "s64:2", true),
        ("u64", 64, "f64:2", true),
    ] {
        let file = scratch.write("k.ptx", store(ty, bits));
        let output = ptxvm(&["run", &file, "--arg", arg, "--arg", "zeros:8"]);
        assert_eq!(output.status.code(), Some(0), "{ty} {arg}: {}", err(&output));
        let said = err(&output).contains("warning: argument 1 (`x`) is given as ");
        assert_eq!(said, warned, "{ty} {arg}: {}", err(&output));
    }
    for (ty, bits, arg) in
        [("f32", 32, "s64:2"), ("f64", 64, "s32:2"), ("u64", 64, "u32:2"), ("u32", 32, "f64:2")]
    {
        let file = scratch.write("k.ptx", store(ty, bits));
        let output = ptxvm(&["run", &file, "--arg", arg, "--arg", "zeros:8"]);
        assert_eq!(output.status.code(), Some(2), "{ty} {arg}");
        let expected = format!("but the parameter has {} bytes (`.{ty}`)", bits / 8);
        assert!(err(&output).contains(&expected), "{}", err(&output));
    }
}

#[test]
fn one_parameter_is_singular() {
    let scratch = Scratch::new("one");
    let file = scratch
        .write("k.ptx", ".version 7.0\n.target sm_70\n.address_size 64\n.entry k(.param .u64 p) { ret; }\n");
    let output = ptxvm(&["run", &file]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("kernel `k` has 1 parameter, but 0 were given"), "{}", err(&output));
}

#[test]
fn json_has_labels_and_other_places() {
    let scratch = Scratch::new("json");
    let file = scratch.write(
        "k.ptx",
        ".version 7.0\n.target sm_70\n.address_size 64\n.entry k() {\n.reg .b32 a;\n.reg .b32 a;\nret;\n}\n",
    );
    let output = ptxvm(&["check", "--format", "json", &file]);
    let found: Value = serde_json::from_str(err(&output).lines().next().expect("a line")).expect("JSON");
    assert_eq!(found["code"], "P0107");
    assert_eq!(found["label"], "declared again");
    let related = &found["related"][0];
    assert_eq!((&related["line"], &related["column"]), (&Value::from(5), &Value::from(11)));
    assert_eq!(related["label"], "first declared here");
    assert_eq!(related["file"], found["file"]);
}

#[test]
fn files_that_are_not_ptx_are_named() {
    let scratch = Scratch::new("foreign");
    let utf16: Vec<u8> = "\u{feff}.version 7.0\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (name, bytes, what) in [
        (
            "a.cubin",
            b"\x7fELF\x02\x01\x01\x33\x07\0\0\0\0\0\0\0\x02\0\xbe\0".as_slice(),
            "an ELF file: a cubin",
        ),
        ("a.cu", b"__global__ void k(int *p) { p[0] = 1; }\n".as_slice(), "CUDA or C++ source"),
        ("a.ptx", utf16.as_slice(), "text in UTF-16"),
        ("a.fatbin", b"\x50\xed\x55\xba\x01\0\x10\0\x38\0\0\0\0\0\0\0".as_slice(), "a fatbinary"),
    ] {
        let file = scratch.write(name, bytes);
        for command in ["check", "run"] {
            let output = ptxvm(&[command, &file]);
            assert_eq!(output.status.code(), Some(1), "{name}");
            let said = err(&output);
            assert!(
                said.contains("error[P0010]: this is not PTX text, but ") && said.contains(what),
                "{said}"
            );
            assert_eq!(said.matches("error[").count(), 1, "{said}");
        }
    }
}

#[test]
fn forms_that_are_not_implemented_are_listed() {
    for name in ["wgmma", "wgmma.mma_async", "tcgen05.mma", "cp.async.bulk"] {
        let output = ptxvm(&["isa", name]);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", err(&output));
        assert!(out(&output).contains("not implemented: "), "{name}: {}", out(&output));
    }
    let output = ptxvm(&["isa", "wgmma", "--format", "json"]);
    let forms: Value = serde_json::from_str(&out(&output)).expect("JSON");
    let forms = forms.as_array().expect("a list");
    assert!(!forms.is_empty());
    for form in forms {
        assert_eq!((&form["checked"], &form["interpreted"]), (&Value::from(false), &Value::from("missing")));
        assert_eq!(form["target"], "sm_90a");
    }
    // The products of two kinds of bytes, and of sparse matrices, are later than the others.
    assert!(forms.iter().any(|form| form["ptx"] == "8.0"));
    assert_eq!(ptxvm(&["isa", "wgnma"]).status.code(), Some(2));
}

/// The interpreter alone is many times slower: that is said once, and in the statistics.
#[cfg(feature = "jit")]
#[test]
fn a_missing_llvm_is_said_once() {
    let scratch = Scratch::new("llvm");
    let file = scratch.write(
        "k.ptx",
        ".version 7.0\n.target sm_70\n.address_size 64\n.entry k() {\n.reg .b32 i; .reg .pred p;\nmov.b32 i, 0;\n\
         L: add.s32 i, i, 1;\nsetp.lt.s32 p, i, 400000;\n@p bra L;\nret;\n}\n",
    );
    let run = |llvm: Option<&str>| {
        let mut command =
            command(&["run", &file, "--block", "32", "--repeat", "3", "--stats", "--threads", "1"]);
        if let Some(llvm) = llvm {
            command.env("PTXVM_LLVM", llvm);
        }
        err(&command.output().expect("the program starts"))
    };
    let said = run(Some("/nowhere"));
    assert_eq!(said.matches("ptxvm: note: ").count(), 1, "{said}");
    assert!(said.contains("note: the kernel ran in the interpreter"), "{said}");
    assert!(
        said.contains("engine interp (not compiled: PTXVM_LLVM is /nowhere, where no LLVM 22 is)"),
        "{said}"
    );
    let said = run(None);
    assert!(!said.contains("ptxvm: note: "), "{said}");
}

/// A text with that many statements that ptxvm accepts with one warning, on consecutive lines from line 5.
fn ballots(count: usize) -> String {
    let ballot = "vote.ballot.sync.b32 r, p, 0xffffffff;\n";
    format!(
        ".version 6.4\n.target sm_70\n.address_size 64\n.entry k() {{ .reg .pred p; .reg .b32 r; setp.eq.u32 p, 0, 0;\n{}\
         ret;\n}}\n",
        ballot.repeat(count)
    )
}

#[test]
fn a_warning_is_shown_once_with_the_lines_of_the_others() {
    let scratch = Scratch::new("repeated");
    for (count, note) in [
        (1, None),
        (2, Some("note: the same on line 6\n")),
        (4, Some("note: the same on lines 6, 7, 8\n")),
        (50, Some(", 52, 53, 54\n")),
    ] {
        let text = scratch.write("ballots.ptx", ballots(count));
        let output = ptxvm(&["check", &text]);
        let (shown, all) = (err(&output), err(&ptxvm(&["check", "--format", "json", &text])));
        assert!(output.status.success(), "{shown}");
        assert_eq!(shown.matches("warning[P0905]").count(), 1, "{shown}");
        assert!(shown.contains("ballots.ptx:5:"), "{shown}");
        assert_eq!(all.lines().count(), count, "{all}");
        assert_eq!(shown.matches("note: the same").count(), usize::from(note.is_some()), "{shown}");
        assert!(note.is_none_or(|note| shown.contains(note)), "{shown}");
    }
}

#[test]
fn warnings_that_differ_and_errors_are_all_shown() {
    let scratch = Scratch::new("different");
    let both = ballots(2).replacen("vote.ballot.sync.b32", "vote.b32.ballot.sync", 1);
    let shown = err(&ptxvm(&["check", &scratch.write("both.ptx", both)]));
    assert_eq!(shown.matches("P0905").count(), 2, "{shown}");
    let wrong = ballots(0).replace("ret;", "mov.u32 p, 1;\nmov.u32 p, 1;\nret;");
    let shown = err(&ptxvm(&["check", &scratch.write("wrong.ptx", wrong)]));
    assert_eq!(shown.matches("error[").count(), 2, "{shown}");
}
