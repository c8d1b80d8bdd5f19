//! `ptxvm run --link` and `ptxvm check --link` in scripts.

use std::path::PathBuf;
use std::process::{Command, Output};

const HEAD: &str = ".version 6.4\n.target sm_70\n.address_size 64\n";

fn run(files: [(&str, &str); 2]) -> Output {
    let paths = written(files);
    ptxvm(&["run".as_ref(), paths[0].as_os_str(), "--link".as_ref(), paths[1].as_os_str()])
}

fn check(files: [(&str, &str); 2]) -> Output {
    let paths = written(files);
    ptxvm(&["check".as_ref(), "--link".as_ref(), paths[0].as_os_str(), paths[1].as_os_str()])
}

fn ptxvm(args: &[&std::ffi::OsStr]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ptxvm"))
        .env("PTXVM_CACHE_DIR", "")
        .args(args)
        .output()
        .expect("the program starts")
}

fn written(files: [(&str, &str); 2]) -> [PathBuf; 2] {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    files.map(|(name, text)| {
        std::fs::write(folder.join(name), format!("{HEAD}{text}")).expect("a file");
        folder.join(name)
    })
}

#[test]
fn a_trap_names_the_file_and_line_that_it_is_in() {
    let output = run([
        ("main.ptx", ".extern .func stop;\n.entry k()\n{\n    call stop;\n    ret;\n}\n"),
        ("stop.ptx", "\n\n.visible .func stop\n{\n    trap;\n}\n"),
    ]);
    let shown = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{shown}");
    assert!(shown.contains("stop.ptx:8"), "{shown}");
}

#[test]
fn modules_that_do_not_fit_are_refused_with_both_places() {
    let output = run([
        ("first.ptx", ".visible .global .u32 x;\n.entry k() { ret; }\n"),
        ("second.ptx", "\n.visible .global .u32 x;\n"),
    ]);
    let shown = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{shown}");
    for part in ["error[P0107]", "second.ptx:5:23", "first.ptx:4:23"] {
        assert!(shown.contains(part), "`{part}` is not in\n{shown}");
    }
}

#[test]
fn files_are_checked_together() {
    let caller = ".extern .func f (.param .b32 a);\n.entry k()\n{\n.param .b32 x;\nst.param.b32 [x], 1;\ncall f, (x);\nret;\n}\n";
    let right = check([("caller.ptx", caller), ("right.ptx", ".visible .func f (.param .b32 a) { ret; }\n")]);
    assert_eq!(right.status.code(), Some(0), "{}", String::from_utf8_lossy(&right.stderr));
    let wrong =
        check([("caller2.ptx", caller), ("wrong.ptx", ".visible .func f (.param .b64 a) { ret; }\n")]);
    let shown = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert_eq!(wrong.status.code(), Some(1), "{shown}");
    for part in ["caller2.ptx:4", "wrong.ptx:4", "`f`"] {
        assert!(shown.contains(part), "`{part}` is not in\n{shown}");
    }
}
