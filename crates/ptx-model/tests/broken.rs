//! Malformed tests: every text gives a verdict or an error with its place, never a panic.

use ptx_model::{Model, Options, decide, liveness, parse, races};
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
        ("PTX t\n{ x = 0; x = 1; }\n P0@cta 0,gpu 0 ;\nexists (x=0)".to_owned(), (2, 10), "declared twice"),
        ("PTX t\n{ x = 0; }\n P0@cta 0,gpu 0 ;\nexists (P1:r0=0)".to_owned(), (4, 9), "no thread P1"),
        ("PTX t\n{ x = 0; }\n P0@cta 0,gpu 0 ;\n".to_owned(), (4, 1), "`exists`"),
        ("X86 t\n{ x = 0; }".to_owned(), (1, 1), "begins with `PTX`"),
        ("PTX t\n{ y @ sound aliases x; }".to_owned(), (2, 7), "no proxy"),
    ] {
        let error = parse(&text).expect_err(&text);
        assert!(error.message().contains(part), "{text}\n{error}");
        assert_eq!(error.place(), Some(place), "{text}\n{error}");
    }
    // What an access reaches is known only when paths are followed.
    let test = parse(&body("ld.weak.b64 r0, [x]").replace("x = 0;", ".b32 x = 0;")).expect("it parses");
    let error = decide(&test, &Options::default()).expect_err("it is outside");
    assert!(error.to_string().starts_with("6:1: ") && error.message().contains("outside"), "{error}");
}
