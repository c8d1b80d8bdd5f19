//! Changes of tokens, lines and instructions that keep most of a text meaningful. Random changes of bytes
//! rarely pass the parser.

use crate::forms::{LEVELS, Rng, instruction, text};
use ptx::isa::RowId;
use ptx::syntax::{TokenKind, lexer};
use std::sync::OnceLock;

/// Numbers at the limits of types and at other limits.
const NUMBERS: &[&str] = &[
    "0", "1", "2", "3", "4", "7", "8", "15", "16", "31", "32", "33", "63", "64", "127", "128", "255", "256", "1023",
    "1024", "65535", "65536", "2147483647", "2147483648", "4294967295", "4294967296", "9223372036854775807",
    "9223372036854775808", "18446744073709551615", "-1", "-2147483648", "-9223372036854775808", "0x7fffffff", "0b11",
    "017", "1.0", "-0.0", "1e308", "1e-45", "0f7F800000", "0fFFC00001", "0d7FF0000000000000", "0d8000000000000000",
];

/// Directives and operators of the language, in addition to the words of the table.
const WORDS: &[&str] = &[
    ".version", ".target", ".address_size", ".entry", ".func", ".visible", ".extern", ".weak", ".common", ".alias", ".reg",
    ".local", ".shared", ".const", ".global", ".param", ".tex", ".align", ".ptr", ".attribute", ".managed", ".maxnreg",
    ".maxntid", ".reqntid", ".minnctapersm", ".maxnctapersm", ".noreturn", ".pragma", ".loc", ".file", ".section",
    ".callprototype", ".calltargets", ".branchtargets", ".pred", ".b8", ".texref", ".samplerref", ".surfref", ".x", ".y",
    ".z", ".w", ".r", ".b0", ".h1", ".b3210", ".h10", "@@DWARF", "WARP_SZ", "generic", "texmode_independent", "debug",
    "map_f64_to_f32", "function_name", "inlined_at", "sm_20", "sm_70", "sm_90a", "6.4", "7.8", "3.2", "{", "}", "[", "]",
    "(", ")", "<", ">", "_", ",", ";", ":", "?", "@", "!", "~", "+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>",
    "==", "=", "\"a\"", "/*", "*/", "//", "#", "%tid.x", "%clock64", "%laneid", "%envreg3", "%pm0_64",
];

/// Every word with a meaning: mnemonics and modifiers of the table, directives, operators, numbers.
pub fn vocabulary() -> &'static [String] {
    static ALL: OnceLock<Vec<String>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut all: Vec<String> = WORDS.iter().chain(NUMBERS).map(|word| (*word).to_owned()).collect();
        for row in RowId::all() {
            let form = row.form();
            all.push(form.mnemonic.to_owned());
            let values = form.sets.iter().flat_map(|set| set.values.iter().map(|(word, _)| word.text()));
            let literal = form.word_gates.iter().map(|(word, _)| word.text());
            all.extend(values.chain(literal).map(|word| format!(".{word}")));
        }
        all.sort_unstable();
        all.dedup();
        all
    })
}

/// `count` lines, each an instruction of a random row.
pub(crate) fn instructions(rng: &mut Rng, count: usize) -> String {
    let rows = RowId::all().count();
    let mut lines = String::new();
    for _ in 0..count {
        let row = RowId::all().nth(rng.below(rows));
        if let Some(line) = row.and_then(|row| instruction(row, rng)) {
            if rng.below(4) == 0 {
                lines.push_str("@%pred_1 ");
            }
            lines.push_str(&line);
            lines.push('\n');
        }
    }
    lines
}

/// Changes the first `size` bytes of `data` into at most `max_size` other bytes, and returns their number.
pub fn mutate(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let mut rng = Rng(u64::from(seed) * 2 + 1);
    for _ in 0..3 {
        rng.below(2);
    }
    if rng.below(8) == 0 {
        return libfuzzer_sys::fuzzer_mutate(data, size, max_size);
    }
    let mut changed = String::from_utf8_lossy(&data[..size]).into_owned();
    for _ in 0..=rng.below(4) {
        change(&mut changed, &mut rng);
    }
    let new = changed.floor_char_boundary(max_size.min(data.len()));
    data[..new].copy_from_slice(&changed.as_bytes()[..new]);
    new
}

/// Makes one change.
fn change(source: &mut String, rng: &mut Rng) {
    let tokens: Vec<_> = lexer::lex(source).tokens.into_iter().filter(|t| !t.kind.is_trivia()).collect();
    if tokens.is_empty() || rng.below(200) == 0 {
        let lines = 1 + rng.below(12);
        let level = rng.pick(LEVELS);
        *source = text(&instructions(rng, lines), level);
        return;
    }
    let at = rng.below(tokens.len());
    let token = tokens[at];
    let range = token.span.start as usize..token.span.end as usize;
    let alike: Vec<_> = tokens.iter().filter(|t| t.kind == token.kind).collect();
    let other = *rng.pick(&alike);
    let other_text = other.span.text(source).to_owned();
    let line = line_of(source, range.start);
    match rng.below(14) {
        0..=2 => source.replace_range(range, &other_text),
        3 => {
            let mine = token.span.text(source).to_owned();
            let (first, second) = if token.span.start < other.span.start { (token, other) } else { (other, token) };
            let (a, b) = if token.span.start < other.span.start { (&other_text, &mine) } else { (&mine, &other_text) };
            source.replace_range(second.span.start as usize..second.span.end as usize, b);
            if first.span != second.span {
                source.replace_range(first.span.start as usize..first.span.end as usize, a);
            }
        }
        4 | 5 => {
            let words = vocabulary();
            let word = &words[rng.below(words.len())];
            let dotted = words.iter().filter(|w| w.starts_with('.') == (token.kind == TokenKind::DotWord));
            let same: Vec<&String> = dotted.collect();
            let word = if rng.below(4) == 0 { word } else { same[rng.below(same.len())] };
            source.replace_range(range, word);
        }
        6 => source.replace_range(range, rng.pick(NUMBERS)),
        7 => source.replace_range(range, ""),
        8 => source.insert_str(range.end, &format!(" {other_text}")),
        9 => {
            let words = vocabulary();
            source.insert_str(range.start, &format!("{} ", words[rng.below(words.len())]));
        }
        10 => source.replace_range(line, ""),
        11 => {
            let copied = source[line].to_owned();
            let to = line_of(source, tokens[rng.below(tokens.len())].span.start as usize).start;
            source.insert_str(to, &copied);
        }
        12 => {
            let count = 1 + rng.below(3);
            source.insert_str(line.start, &instructions(rng, count));
        }
        _ => {
            let (open, close) = rng.pick(&[("{", "}"), ("(", ")"), ("[", "]"), ("-", ""), ("/*", "*/"), ("~(", ")+1")]);
            source.insert_str(range.end, close);
            source.insert_str(range.start, open);
        }
    }
}

/// The line that contains a byte, with its line end.
fn line_of(source: &str, at: usize) -> std::ops::Range<usize> {
    let start = source[..at].rfind('\n').map_or(0, |i| i + 1);
    let end = source[at..].find('\n').map_or(source.len(), |i| at + i + 1);
    start..end
}
