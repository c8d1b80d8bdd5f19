//! `ptxvm fmt` in scripts: its output, the files that it writes, and its exit status.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

const WILD: &str = ".version 6.4 .target sm_70\n.entry k(){ret;}";
const TIDY: &str = ".version 6.4\n.target sm_70\n.entry k()\n{\n\tret;\n}\n";

fn ptxvm(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ptxvm"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
    child.wait_with_output().expect("it ends")
}

/// A file with this text that only this test uses.
fn file(name: &str, text: &[u8]) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("a file");
    path
}

#[test]
fn standard_input_to_standard_output() {
    let output = ptxvm(&["fmt", "-"], WILD);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stdout), TIDY);
}

#[test]
fn check_writes_nothing() {
    let path = file("check.ptx", WILD.as_bytes());
    let name = path.to_str().expect("a path");
    let output = ptxvm(&["fmt", "--check", name], "");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("not in canonical layout"));
    assert_eq!(std::fs::read_to_string(&path).expect("still there"), WILD);
    assert_eq!(ptxvm(&["fmt", "--check", "-"], TIDY).status.code(), Some(0));
}

#[test]
fn files_are_written_in_place_or_printed() {
    let path = file("in_place.ptx", WILD.as_bytes());
    let name = path.to_str().expect("a path");
    let printed = ptxvm(&["fmt", "--stdout", name], "");
    assert_eq!(String::from_utf8_lossy(&printed.stdout), TIDY);
    assert_eq!(std::fs::read_to_string(&path).expect("still there"), WILD);
    let written = ptxvm(&["fmt", name], "");
    assert_eq!((written.status.code(), written.stdout.len()), (Some(0), 0));
    assert_eq!(std::fs::read_to_string(&path).expect("still there"), TIDY);
}

#[test]
fn what_cannot_be_formatted_stays_as_it_is() {
    let broken = file("broken.ptx", b".version 6.4\n.target sm_70\n.entry k( {ret;}");
    let foreign = file("foreign.ptx", b"// \xff\n.version   6.4\n");
    for (path, status, words) in [(&broken, 1, "error[P0005]"), (&foreign, 2, "is not UTF-8")] {
        let before = std::fs::read(path).expect("a file");
        let output = ptxvm(&["fmt", path.to_str().expect("a path")], "");
        assert_eq!(output.status.code(), Some(status));
        assert!(String::from_utf8_lossy(&output.stderr).contains(words));
        assert_eq!(std::fs::read(path).expect("a file"), before);
    }
    assert_eq!(ptxvm(&["fmt", "/nowhere.ptx"], "").status.code(), Some(2));
}
