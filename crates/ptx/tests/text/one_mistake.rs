//! One mistake causes one error: each line of `tests/mistakes/mistakes.txt` damages `base.ptx` in one place.
//!
//! Only the number of errors is tested; `tests/language` tests words and places.

use ptx::check::{CheckOptions, check};
use ptx::diag::Severity;
use std::path::Path;

fn errors(text: &str) -> Vec<String> {
    let checked = check("mistake.ptx", text, &CheckOptions::default());
    let errors = checked.diagnostics.iter().filter(|d| d.severity == Severity::Error);
    errors.map(|d| format!("{} {}", d.code.name(), d.message)).collect()
}

#[test]
fn one_mistake_gives_one_error() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/mistakes");
    let base = std::fs::read_to_string(folder.join("base.ptx")).expect("base.ptx");
    assert_eq!(errors(&base), Vec::<String>::new());
    let list = std::fs::read_to_string(folder.join("mistakes.txt")).expect("mistakes.txt");
    let mut faults = Vec::new();
    let mut tried = 0;
    for line in list.lines().filter(|line| !line.starts_with('#')) {
        let (from, to) = line.split_once(" =>").expect("` =>` in each line");
        let (from, to) = (from.replace("\\n", "\n"), to.strip_prefix(' ').unwrap_or(to).replace("\\n", "\n"));
        assert!(base.contains(&from), "base.ptx has no `{from}`");
        let found = errors(&base.replacen(&from, &to, 1));
        tried += 1;
        if found.len() != 1 {
            faults.push(format!("{line}\n    {}", found.join("\n    ")));
        }
    }
    assert!(tried >= 100, "only {tried} mistakes");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn independent_mistakes_are_all_reported() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/mistakes");
    let base = std::fs::read_to_string(folder.join("base.ptx")).expect("base.ptx");
    let mistakes = [
        (".shared .align 4 .b32 sh[32];", ".shared .align 3 .b32 sh[32];"),
        ("ld.param.u64 %rd1, [p];", "ld.param.u64 %rd1 [p];"),
        ("ld.param.u32 %r1, [n];", "ld.param.u32 %r9, [n];"),
        ("mov.u32 %r2, %tid.x;", "mvo.u32 %r2, %tid.x;"),
        ("@%p1 bra DONE;", "@%p1 bra ELSEWHERE;"),
        ("mul.wide.u32 %rd3, %r2, 4;", "mul.wide.u32 %rd3, %r2;"),
        ("call (o1), f, (a1, b1);", "call (o1), f, (a1);"),
        ("bar.sync 0;", "bar.sync 16;"),
    ];
    let mut text = base;
    for (from, to) in mistakes {
        text = text.replacen(from, to, 1);
    }
    let found = errors(&text);
    assert_eq!(found.len(), mistakes.len(), "{}", found.join("\n"));
}

#[test]
fn addresses_of_32_bits_stay_so_after_a_mistake() {
    let text = ".version 6.4\n.target sm_70\n.foo bar;\n.entry k(.param .u32 p) {\n.reg .u32 %r<3>;\nld.param.u32 %r1, [p];\n\
                cvta.to.global.u32 %r2, %r1;\nst.global.u32 [%r2], %r1;\nret;\n}\n";
    let found = errors(text);
    assert!(found.len() == 1 && found[0].starts_with("P0106"), "{}", found.join("\n"));
}
