//! Suggestions for misspelled words, and diagnostics about files that are not PTX and about constants out of
//! range.
//!
//! Expected suggestions are the original words, from every row of the table; the other expectations are from
//! the manual.

use ptx::check::{CheckOptions, check};
use ptx::diag::{Code, Diagnostic};
use ptx::isa::{RowId, Word};

const HEADER: &str = ".version 9.0\n.target sm_100a\n.address_size 64\n";

fn diagnostics(text: &str) -> Vec<Diagnostic> {
    check("x.ptx", text, &CheckOptions::default()).diagnostics
}

/// The only diagnostic about a function with these declarations and statements.
fn one(body: &str) -> Diagnostic {
    let text = format!("{HEADER}.func f() {{\n{body}\nret;\n}}\n");
    let mut found = diagnostics(&text);
    assert_eq!(found.len(), 1, "{body}: {found:?}");
    found.remove(0)
}

const REGISTERS: &str = ".reg .b32 %r<9>; .reg .b64 %rd<4>; .reg .f32 %f<4>; .reg .pred %p<3>; .reg .b32 p, count; .reg .pred done;\n";

fn help(statement: &str) -> String {
    one(&format!("{REGISTERS}{statement}")).help.unwrap_or_default()
}

fn label(statement: &str) -> String {
    one(&format!("{REGISTERS}{statement}")).label
}

#[test]
fn modifiers_and_types_are_suggested() {
    for (statement, meant) in [
        ("ld.gobal.u32 %r1, [%rd1];", "`.global`"),
        ("ld.GLOBAL.u32 %r1, [%rd1];", "`.global`"),
        ("setp.lte.s32 %p1, %r1, %r2;", "`.le`"),
        ("add.i32 %r1, %r2, %r3;", "`.s32` or `.u32`"),
        ("mul.wid.u32 %rd1, %r2, %r3;", "`.wide`"),
        ("and.s32 %r1, %r2, %r3;", "`.b32`"),
        ("add.float %f1, %f2, %f3;", "`.f32`"),
        ("cvt.rzi.s32.float %r1, %f3;", "`.f32`"),
        ("atom.global.ad.u32 %r1, [%rd1], %r2;", "`.add`"),
        ("ld.gobal.i32 %r1, [%rd1];", "`.global`"),
        ("bar.snyc 0;", "`.sync`"),
    ] {
        let help = help(statement);
        assert!(help.starts_with(&format!("did you mean {meant}?")), "{statement}: {help}");
    }
}

#[test]
fn mnemonics_are_suggested_that_take_the_modifiers_and_operands() {
    for (statement, meant) in [
        ("ad.s32 %r1, %r2, %r3;", "did you mean `add`?"),
        ("mvo.u32 %r1, %r2;", "did you mean `mov`?"),
        ("stp.global.u32 [%rd1], %r2;", "did you mean `st`?"),
    ] {
        assert_eq!(help(statement), meant, "{statement}");
    }
}

#[test]
fn allowed_types_are_listed() {
    let label = label("and.s32 %r1, %r2, %r3;");
    assert_eq!(label, "`.s32` is not a type of `and`; types here: `.b16` `.b32` `.b64` `.pred`");
}

#[test]
fn suggested_names_are_of_the_kind_that_may_stand_there() {
    // A register that is no predicate is no guard, though its name is nearest.
    assert_eq!(help("@%p bra L; L:"), "`%p<3>` declares `%p0` to `%p2`");
    assert_eq!(help("@don bra L; L:"), "did you mean `done`?");
    assert_eq!(help("@coun bra L; L:"), "");
    assert_eq!(help("add.s32 %r1, %r2, coun;"), "did you mean `count`?");
    assert_eq!(help("add.s32 %r1, %r2, don;"), "");
    assert_eq!(help("add.s32 %r1, %r2, %rr5;"), "did you mean `%r5`?");
    assert_eq!(help("add.f32 %f1, %f2, %g1;"), "did you mean `%f1`?");
    assert_eq!(help("count_up: bra countup;"), "did you mean `count_up`?");
}

/// Misspellings of a word by one edit.
fn misspelled(word: &str) -> Vec<String> {
    let bytes = word.as_bytes();
    let mut all = vec![format!("{word}{}", word.chars().last().unwrap_or('x'))];
    if bytes.len() > 2 && word.is_ascii() {
        let middle = bytes.len() / 2;
        all.push(format!("{}{}", &word[..middle], &word[middle + 1..]));
        all.push(
            format!("{}{}{}", &word[..middle - 1], &word[middle..=middle], &word[middle - 1..middle])
                + &word[middle + 1..],
        );
    }
    all.retain(|w| w != word && w.starts_with(|c: char| c.is_ascii_alphanumeric()));
    all
}

/// Of every row and every word of its first spelling.
#[test]
fn every_word_of_the_table_is_suggested() {
    let (mut tried, mut wrong) = (0, Vec::new());
    for row in RowId::all() {
        let Some(mods) = row.spellings().into_iter().next() else { continue };
        let words: Vec<&str> = mods.given().iter().map(|(_, word)| word.text()).collect();
        for (index, word) in words.iter().enumerate().filter(|(_, word)| !word.contains(['[', ':'])) {
            for other in misspelled(word).into_iter().filter(|other| Word::from_text(other).is_none()) {
                let mut changed: Vec<&str> = words.clone();
                changed[index] = &other;
                let name = format!("{}.{}", row.form().mnemonic, changed.join("."));
                let found = diagnostics(&format!("{HEADER}.func f() {{\n{name};\nret;\n}}\n"));
                let helps: Vec<&str> = found.iter().filter_map(|d| d.help.as_deref()).collect();
                tried += 1;
                let question = helps.iter().any(|h| {
                    h.split_once('?').is_some_and(|(question, _)| question.contains(&format!("`.{word}`")))
                });
                // What another version or a removed form is has another message, and several words may be as
                // near.
                let near = helps.iter().any(|h| h.starts_with("did you mean `.") && h.contains(" or "));
                let other_level = found.iter().any(|d| d.code != Code::NoSuchForm);
                if !question && !near && !other_level {
                    wrong.push(format!("{name}: {helps:?}"));
                }
            }
        }
    }
    assert!(tried > 1000, "{tried}");
    assert!(wrong.is_empty(), "{} of {tried}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn what_is_said_of_modifiers_is_true_of_the_mnemonic() {
    let label = |s: &str| label(s);
    // `add` has one type, so it is no question of which others go with it.
    assert_eq!(label("min.s32.u32 %r1, %r2, %r3;"), "`min` takes one type, and already has `.s32`");
    // `cvt.rn.f32.f64` exists: what is said holds beside the source type.
    let said = label("cvt.rn.f32.f32 %f1, %f2;");
    assert!(
        said.starts_with(
            "`cvt.f32.f32` exists without it; with `.rn` `.f32`, the first type must be one of `.f16`"
        ),
        "{said}"
    );
    for (statement, said) in [
        ("add.rn.s32 %r1, %r1, %r2;", "`.rn` is for "),
        (
            "cvt.rn.f32.f16 %f1, %r2;",
            "`cvt.f32.f16` exists without it; with `.rn` `.f16`, the first type must be ",
        ),
    ] {
        assert!(label(statement).starts_with(said), "{statement}: {}", label(statement));
    }
}

#[test]
fn wide_vectors_are_dated() {
    let old = HEADER.replace("9.0", "8.1").replace("sm_100a", "sm_90");
    let text = format!(
        "{old}.func f() {{\n{REGISTERS}ld.global.v8.b32 {{%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}}, [%rd1];\nret;\n}}\n"
    );
    let found = diagnostics(&text);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].code, Code::NeedsNewerVersion);
    assert!(found[0].message.contains("PTX 8.8 and sm_100;"), "{}", found[0].message);
}

#[test]
fn constants_out_of_range_are_reported() {
    let of = |body: &str| {
        let found =
            diagnostics(&format!("{HEADER}.func f() {{\n.reg .f32 s; .reg .f64 d;\n{body}\nret;\n}}\n"));
        found.into_iter().map(|d| (d.code, d.label)).collect::<Vec<_>>()
    };
    let becomes = |what: &str| vec![(Code::FloatRange, format!("becomes {what}"))];
    assert_eq!(of("mov.f64 d, 1e400;"), becomes("infinity"));
    assert_eq!(of("mov.f32 s, 1e400;"), becomes("infinity"));
    assert_eq!(of("mov.f32 s, 1e39;"), becomes("infinity"));
    assert_eq!(of("mov.f64 d, -1e-400;"), becomes("zero"));
    assert_eq!(of("mov.f32 s, 1e-50;"), becomes("zero"));
    for fine in [
        "mov.f64 d, 1e308;",
        "mov.f32 s, 3.4e38;",
        "mov.f32 s, 1e-45;",
        "mov.f32 s, 0.0e99;",
        "mov.f32 s, 0e-400;",
        "mov.f32 s, 0f7F800000;",
        "mov.f64 d, 0d7FF0000000000000;",
        "mov.f32 s, 0d7FF0000000000000;",
    ] {
        assert_eq!(of(fine), [], "{fine}");
    }
    let variable = diagnostics(&format!("{HEADER}.global .f32 big = 1e400;\n"));
    assert_eq!(variable.iter().map(|d| d.code).collect::<Vec<_>>(), [Code::FloatRange]);
}

#[test]
fn characters_that_cannot_be_seen_are_named() {
    let found = one("\u{a0}");
    assert_eq!(found.message, "PTX does not use the character U+00A0 (no-break space), which is not ASCII");
    assert_eq!(found.help.as_deref(), Some("use a blank instead"));
}

#[test]
fn a_file_that_is_not_ptx_has_one_diagnostic() {
    for text in [
        "\u{7f}ELF\u{2}\u{1}\u{1}3\u{7}\0\0",
        "__global__ void k() {}\n",
        "\u{fffd}\u{fffd}.\0v\0e\0r\0s\0i\0o\0n\0",
    ] {
        let codes: Vec<Code> = diagnostics(text).iter().map(|d| d.code).collect();
        assert_eq!(codes, [Code::NotPtx], "{text:?}");
        let formatted = ptx::syntax::format::format(text).expect_err("it is not PTX");
        assert_eq!(formatted.len(), 1, "{text:?}");
    }
}
