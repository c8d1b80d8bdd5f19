//! Malformed tests: every text gives a verdict or an error with its place, never a panic.

use ptx_model::{ErrorKind, Model, Options, decide, liveness, parse, races};
use std::path::Path;
use std::time::Duration;

/// Numbers that repeat (xorshift).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % below.max(1) as u64).expect("it is below a usize")
    }
}

/// Tokens that mutations put in.
const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    ";",
    "|",
    "||",
    ",",
    ":",
    "@",
    "=",
    "->",
    "&",
    "~",
    "-",
    "?",
    "\\/",
    "/\\",
    "0",
    "1",
    "18446744073709551615",
    "0xffffffffffffffffff",
    "-1",
    "P0",
    "P9",
    "exists",
    "forall",
    "filter",
    "locations",
    "x",
    "r0",
    "LC00",
    ".b32",
    ".v4",
    ".f16x2",
    ".sys",
    ".cluster",
    ".volatile",
    "bar.sync 0, r0 ;",
    "bar.red.popc.u32 r0, 0, r1",
    "bar.red.and.pred r1, 0, 2, !r0 ;",
    "bar.warp.sync 3",
    "bar.warp.sync r0 ;",
    ",warp 0,lane 1",
    "goto LC00",
    "LC00:",
    "exit",
    "atom.cas",
    "cp.async",
    "fence.proxy.alias",
    "\u{0}",
    "\u{e9}",
    "\"",
    "(*",
    "//",
    "x[999999999]",
    "[x+65535]",
];

fn options(model: Model) -> Options {
    let timeout = Some(Duration::from_millis(200));
    Options { model, max_choices: 2_000, timeout, ..Options::default() }
}

fn run(text: &str) {
    let test = match parse(text) {
        Ok(test) => test,
        Err(error) => {
            let (line, column) = error.place().expect("a mistake in a text has a place");
            assert!(line >= 1 && column >= 1 && !error.message().is_empty());
            return;
        }
    };
    for model in [Model::Ptx60, Model::Ptx75] {
        if let Ok(verdict) = decide(&test, &options(model))
            && let Some(witness) = verdict.witness
        {
            assert!(!witness.text().is_empty());
            let svg = witness.svg(&test.name);
            assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
        }
    }
    let _verdict_or_error = liveness(&test, &options(Model::Ptx60));
    let _verdict_or_error = races(&test, &options(Model::Ptx60));
}

fn texts() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/litmus");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("it exists").flatten().map(|e| e.path()).collect();
    files.sort();
    files
        .iter()
        .filter(|f| f.extension().is_some_and(|e| e == "litmus"))
        .flat_map(std::fs::read_to_string)
        .collect()
}

#[test]
fn mutated_tests_never_panic() {
    let texts = texts();
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for round in 0..4_000 {
        let mut text = texts[round % texts.len()].clone();
        for _ in 0..=numbers.next(3) {
            let places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
            let (a, b) = (places[numbers.next(places.len())], places[numbers.next(places.len())]);
            match numbers.next(4) {
                0 => text.insert_str(a, PIECES[numbers.next(PIECES.len())]),
                1 => text.replace_range(a.min(b)..a.max(b), ""),
                2 => {
                    let piece: String = text[a.min(b)..a.max(b)].chars().take(200).collect();
                    text.insert_str(a, &piece);
                }
                _ => text.truncate(a),
            }
        }
        run(&text);
    }
}

#[test]
fn extremes_are_refused_or_limited() {
    let head = "PTX t\n{x=0;}\n P0@cta 0,gpu 0 ;\n";
    let deep = format!("{head} ld.weak r0, x ;\nexists {}x=0{}", "(".repeat(100_000), ")".repeat(100_000));
    let nots = format!("{head} ld.weak r0, x ;\nexists {}x=0", "~".repeat(100_000));
    let long = format!("{head}{}exists (x=0)", " ld.weak r0, x ;\n".repeat(2_000));
    let doubling = format!(
        "{head} ld.weak r0, x ;\n LC00: ;\n{} bne r1, 3, LC00 ;\nexists (x=0)",
        " add r0, r0, r0 ;\n".repeat(200)
    );
    let many =
        format!("{head}{}exists (x=0)", " ld.weak r0, x ;\n bne r0, 1, LC00 ;\n".repeat(100) + " LC00: ;\n");
    let forever = format!("{head} LC00: ;\n goto LC00 ;\nexists (x=0)");
    let unknown = format!(
        "PTX t\n{{{}}}\n P0@cta 0,gpu 0 ;\n ld.weak r0, x0 ;\nexists (x0=0)",
        (0..200).map(|n| format!("x{n} = ?;")).collect::<String>()
    );
    let threads = format!(
        "PTX t\n{{x=0;}}\n{} ;\nexists (x=0)",
        (0..40).map(|n| format!("P{n}@cta 0,gpu 0")).collect::<Vec<_>>().join(" | ")
    );
    for text in [
        deep,
        nots,
        long,
        doubling,
        many,
        forever,
        unknown,
        threads,
        String::new(),
        "PTX".to_owned(),
        "PTX x {".to_owned(),
    ] {
        run(&text);
    }
}

#[test]
fn mistakes_have_their_place() {
    let body = |row: &str| format!("PTX t\n{{\nx = 0;\n}}\n P0@cta 0,gpu 0 ;\n {row} ;\nexists (x = 0)\n");
    let heads = |head: &str| format!("PTX t\n{{}}\n{head} ;\nexists (true)\n");
    for (text, place, part) in [
        (body("ld.relaxed r0, x"), (6, 2), "needs a scope"),
        (body("ld.weak.gpu r0, x"), (6, 2), "takes no scope"),
        (body("st.acquire.gpu x, 1"), (6, 2), "cannot be `.acquire`"),
        (body("ld.release.gpu r0, x"), (6, 2), "cannot be `.release`"),
        (body("fence.sc"), (6, 2), "needs a scope"),
        (body("fence.proxy.async"), (6, 2), "in neither model"),
        (body("ld.relaxed.cluster r0, x"), (6, 2), "`.cluster`"),
        (body("bra LC07"), (6, 6), "no label"),
        (body("ld.weak r0, x, 1"), (6, 2), "operands"),
        (body("frob r0, x"), (6, 2), "no instruction"),
        (body("atom.relaxed.gpu.frob r0, x, 1"), (6, 2), "no operation"),
        (body("ld.weak.v2.b32 r0, x"), (6, 2), "elements"),
        (body("nop | nop"), (6, 8), "at most 1 cells"),
        (body("bar.red.xor.pred r0, 0, r1"), (6, 2), "`.red.popc.u32`"),
        (body("bar.red.popc.pred r0, 0, r1"), (6, 2), "`.red.popc.u32`"),
        (body("bar.red.popc.u32 r0, 0"), (6, 2), "3 or 4 operands, and 2 are given"),
        (body("bar.red.popc.u32 r0, !r2, r1"), (6, 2), "only the last operand"),
        (body("bar.red.popc.u32 0, 0, r1"), (6, 2), "destination must be a register"),
        (body("bar.red.popc.u32 r0, 0, &x"), (6, 2), "predicate must be a register"),
        (body("bar.cta.red.or.pred r0, 1"), (6, 2), "3 or 4 or 5 operands"),
        (body("bar.warp.sync"), (6, 2), "1 operands, and 0 are given"),
        (body("bar.warp.sync 0x100000000"), (6, 2), "more than 32 bits"),
        (body("bar.warp.sync &x"), (6, 2), "is no mask"),
        (body("bar.warp.arrive 1"), (6, 2), "`bar.warp.arrive` is not in the format"),
        (body("barrier.warp.sync 1"), (6, 2), "`barrier.warp.sync` is not in the format"),
        (heads("P0@cta 0,gpu 0,warp 1"), (3, 23), "`warp` and `lane` are wanted together"),
        (heads("P0@cta 0,gpu 0,lane 1"), (3, 23), "`warp` and `lane` are wanted together"),
        (heads("P0@cta 0,gpu 0,warp 0,lane 32"), (3, 23), "lanes 0 to 31"),
        (heads("P0@cta 0,gpu 0,sg 0"), (3, 16), "no place of a thread"),
        (
            heads("P0@cta 0,gpu 0,warp 1,lane 2 | P1@cta 0,gpu 0,lane 2,warp 1"),
            (3, 32),
            "P1 and P0 are one lane",
        ),
        ("PTX t\n{ x = 0; x = 1; }\n P0@cta 0,gpu 0 ;\nexists (x=0)".to_owned(), (2, 10), "declared twice"),
        ("PTX t\n{ x = 0; }\n P0@cta 0,gpu 0 ;\nexists (P1:r0=0)".to_owned(), (4, 9), "no thread P1"),
        ("PTX t\n{ x = 0; }\n P0@cta 0,gpu 0 ;\n".to_owned(), (4, 1), "`exists`"),
        ("X86 t\n{ x = 0; }".to_owned(), (1, 1), "begins with `PTX`"),
        ("PTX t\n{ y @ sound aliases x; }".to_owned(), (2, 7), "no proxy"),
        ("PTX t\n{ y -> x; x -> y; }".to_owned(), (2, 16), "is an alias of this alias of it"),
        ("PTX t\n{ y -> x; z = &x; }".to_owned(), (2, 8), "`x` is not declared"),
        ("PTX t\n{ p = &x; x = 1; x = 2; }".to_owned(), (2, 18), "declared twice"),
    ] {
        let error = parse(&text).expect_err(&text);
        assert!(error.message().contains(part), "{text}\n{error}");
        assert_eq!(error.place(), Some(place), "{text}\n{error}");
    }
    // What an access reaches is known only when paths are followed.
    let test = parse(&body("ld.weak.b64 r0, [x]").replace("x = 0;", ".b32 x = 0;")).expect("it parses");
    let error = decide(&test, &Options::default()).expect_err("it is outside");
    assert!(error.to_string().starts_with("6:1: ") && error.message().contains("outside"), "{error}");
    // The same goes for the values of masks.
    for (row, part) in [
        ("bar.warp.sync 6", "the mask 0x6 does not name lane 0, which P0 is"),
        ("bar.warp.sync 0", "the mask 0x0 does not name lane 0"),
        ("mov r1, 2 ;\n bar.warp.sync r1", "the mask 0x2 does not name lane 0"),
        ("ld.weak r1, x ;\n bar.warp.sync r1", "must not depend on what is read"),
    ] {
        let test = parse(&body(row)).expect("it parses");
        let error = decide(&test, &Options::default()).expect_err("it is undefined");
        let line = 6 + row.matches('\n').count() as u32;
        assert!(error.message().contains(part) && error.place() == Some((line, 1)), "{error}");
        let error = liveness(&test, &Options::default()).expect_err("it is undefined");
        assert!(error.message().contains(part), "{error}");
    }
    // Code that is not executed is not judged.
    let test = parse(&body("@!p0 bra LC00 ;\n bar.warp.sync 6 ;\n LC00:")).expect("it parses");
    assert!(decide(&test, &Options::default()).expect("it is fine").holds);
}

/// Barriers whose phases can be chosen in too many ways are a limit, never a wrong verdict.
#[test]
fn too_many_phases_and_results_are_limits() {
    let threads = |number: usize, row: &str| {
        let cells = |cell: &dyn Fn(usize) -> String| (0..number).map(cell).collect::<Vec<_>>().join(" | ");
        let head = cells(&|n| format!("P{n}@cta 0,gpu 0"));
        let first = cells(&|_| row.to_owned());
        // Different registers keep the threads from being symmetric.
        format!("PTX t\n{{}}\n{head} ;\n{first} ;\n{first} ;\nexists (P0:r0 == 77)\n")
    };
    let counted = threads(8, "bar.red.popc.u32 r0, 0, 4, p0");
    let mixed = threads(12, "bar.red.popc.u32 r0, 0, p0").replacen("bar.red.popc.u32", "bar.red.and.pred", 1);
    for text in [counted, mixed] {
        let test = parse(&text).expect("it parses");
        let error = decide(&test, &Options::default()).expect_err("there are too many");
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    }
}
