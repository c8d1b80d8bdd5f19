//! `ptxvm litmus`: lines, notes, pictures and exit statuses.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/litmus")
}

fn test(name: &str) -> String {
    tests().join(name).to_string_lossy().into_owned()
}

fn litmus(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ptxvm")).arg("litmus").args(args).output().expect("the program starts")
}

fn texts(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    (output.status.code().expect("no signal"), text(&output.stdout), text(&output.stderr))
}

#[test]
fn one_line_for_each_file() {
    let (sb, alias) = (test("manual-SB.litmus"), test("alias-no-fence.litmus"));
    let (status, out, err) = texts(&litmus(&[&sb, &alias]));
    assert_eq!((status, out), (0, format!("{sb}: Ok\n{alias}: No\n")), "{err}");
    let (_, out, _) = texts(&litmus(&["--model", "ptx-7.5", &alias]));
    assert_eq!(out, format!("{alias}: Ok\n"));
    let (_, out, _) = texts(&litmus(&["--without", "fence-sc-order", &sb]));
    assert_eq!(out, format!("{sb}: No\n"));
    let (_, out, err) = texts(&litmus(&["--check", "races", &test("races-weak.litmus")]));
    assert!(out.ends_with(": No\n") && err.contains("data race: P0 line "), "{out}{err}");
    let (_, out, _) = texts(&litmus(&["--check", "liveness", &test("spin-flag.litmus")]));
    assert!(out.ends_with(": Ok\n"), "{out}");
}

#[test]
fn folders_and_patterns() {
    let folder = tests().to_string_lossy().into_owned();
    let files = std::fs::read_dir(tests()).expect("it exists").flatten();
    let count = files.filter(|f| f.path().extension().is_some_and(|e| e == "litmus")).count();
    let (status, out, _) = texts(&litmus(&[&folder]));
    assert_eq!((status, out.lines().count()), (0, count));
    let (status, out, _) = texts(&litmus(&[&format!("{folder}/manual-*.litmus")]));
    assert_eq!((status, out.lines().count()), (0, 5));
    assert_eq!(texts(&litmus(&[&format!("{folder}/nothing-*.litmus")])).0, 2);
}

#[test]
fn executions_are_shown_and_drawn() {
    let picture = std::env::temp_dir().join(format!("ptxvm-litmus-{}.svg", std::process::id()));
    let picture_name = picture.to_string_lossy().into_owned();
    let (status, out, err) = texts(&litmus(&["--show", "--svg", &picture_name, &test("MP-relaxed.litmus")]));
    assert_eq!(status, 0, "{err}");
    assert!(
        out.contains("c: R f = 1   ld.relaxed.gpu r0, f") && out.contains("rf: b->c initial->d"),
        "{out}"
    );
    let svg = std::fs::read_to_string(&picture).expect("it was drawn");
    std::fs::remove_file(&picture).expect("it is there");
    assert!(svg.contains("W d = 1") && svg.contains(">rf</text>") && svg.contains(">fr</text>"), "{svg}");
    let two = [test("CoWW.litmus"), test("CoWR.litmus")];
    assert_eq!(texts(&litmus(&["--svg", &picture_name, &two[0], &two[1]])).0, 2);
}

#[test]
fn mistakes_and_limits_have_their_statuses() {
    let folder = std::env::temp_dir().join(format!("ptxvm-litmus-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let bad = folder.join("bad.litmus").to_string_lossy().into_owned();
    std::fs::write(&bad, "PTX bad\n{ x = 0; }\n P0@cta 0,gpu 0 ;\n ld.frob r0, x ;\nexists (x = 0)\n")
        .expect("written");
    let (status, out, err) = texts(&litmus(&[&bad, &test("CoWW.litmus")]));
    assert_eq!((status, out), (1, format!("{}: Ok\n", test("CoWW.litmus"))));
    assert!(err.starts_with(&format!("{bad}:4:2: error: `.frob` of `ld`")), "{err}");
    assert_eq!(texts(&litmus(&[&bad, "no-such-file.litmus"])).0, 2);
    let (status, out, err) = texts(&litmus(&["--max-choices", "3", &test("IRIW-fence.sc.litmus")]));
    assert_eq!((status, out.ends_with(": Unknown\n")), (3, true), "{err}");
    assert!(err.contains("limit: undecided after 3 choices"), "{err}");
    assert_eq!(texts(&litmus(&["--model", "ptx-9", &bad])).0, 2);
    assert_eq!(texts(&litmus(&[])).0, 2);
    std::fs::remove_dir_all(&folder).expect("it is there");
}
