//! Explains why no row matches an instruction, and lists the closest forms.
//!
//! Invariant: an explanation describes the mistake in the program's terms, refers to one place, and lists
//! forms that exist. Its guesses are limited to misspellings.

use super::form::{Kind, LanesOf};
use super::later::{self, Later};
use super::matching::{
    Body, OperandShape, RowId, bind, match_mods, match_suffix, mnemonics, part_words, reach, rows_of,
    words_of,
};
use super::{Mods, Op, Word};
use crate::diag::Code;
use crate::spelling;

/// Why no row matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The code of the diagnostic.
    pub code: Code,
    /// The mistake.
    pub message: String,
    /// Its place.
    pub at: At,
    /// The text beside the place; may be empty.
    pub label: String,
    /// The correction.
    pub help: Option<String>,
    /// Section of the manual.
    pub section: Option<&'static str>,
    /// The form that is not implemented, if it is one. The caller checks whether it exists for the module.
    pub later: Option<&'static Later>,
}

/// The place of a mismatch in an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The mnemonic.
    Mnemonic,
    /// Suffix word `i`, from 0.
    Word(usize),
    /// Mnemonic and all suffix words.
    Words,
    /// Operand `i`, from 0.
    Operand(usize),
    /// The whole instruction.
    Instruction,
}

/// Explains why no row matches; `candidates` are the rows that the words match.
pub(super) fn explain(
    mnemonic: &str,
    words: &[&str],
    shapes: &[OperandShape],
    candidates: &[(RowId, Mods)],
) -> Mismatch {
    if rows_of(mnemonic).is_empty() {
        return unknown_mnemonic(mnemonic, words, shapes);
    }
    let why =
        if candidates.is_empty() { no_such_form(mnemonic, words) } else { operands(shapes, candidates) };
    Mismatch { later: later::find(mnemonic, words, shapes), ..why }
}

/// Whether these words resemble none in the rows of the mnemonic: then a later form is more likely than a
/// typing error.
pub fn is_strange(mnemonic: &str, words: &[&str]) -> bool {
    let known = words_of(mnemonic);
    words.iter().any(|w| !Word::from_text(w).is_some_and(|w| known.contains(&w)))
}

/// The mismatch of a later form: it exists, and its introduction.
pub fn not_implemented(mnemonic: &str, words: &[&str], later: &'static Later) -> Mismatch {
    let at = if rows_of(mnemonic).is_empty() { At::Mnemonic } else { At::Instruction };
    Mismatch {
        code: Code::NotImplemented,
        message: format!("ptxvm does not implement `{}`", full_name(mnemonic, words)),
        at,
        label: format!("{} ({})", later.introduced(), later.brief),
        help: None,
        section: None,
        later: Some(later),
    }
}

fn unknown_mnemonic(mnemonic: &str, words: &[&str], shapes: &[OperandShape]) -> Mismatch {
    if let Some(later) = later::find_words(mnemonic, words).or(later::of_mnemonic(mnemonic)) {
        return not_implemented(mnemonic, words, later);
    }
    // Prefers instructions that have these modifiers and operands.
    let with_words = |name: &&str| !match_mods(name, words).is_empty();
    let with_operands = |name: &&str| {
        match_mods(name, words).iter().any(|(row, mods)| bind(row.form(), mods, shapes).is_ok())
    };
    let near = [
        spelling::nearest(mnemonic, mnemonics().filter(with_operands)),
        spelling::nearest(mnemonic, mnemonics().filter(with_words)),
        spelling::nearest(mnemonic, mnemonics()),
    ];
    let near = near.iter().find(|near| !near.is_empty());
    let help = near.map(|near| spelling::question(near.iter().copied()));
    Mismatch {
        code: Code::UnknownInstruction,
        message: format!("there is no instruction `{mnemonic}`"),
        at: At::Mnemonic,
        label: String::new(),
        help,
        section: None,
        later: None,
    }
}

fn no_such_form(mnemonic: &str, words: &[&str]) -> Mismatch {
    let rows = rows_of(mnemonic);
    let parsed: Vec<Option<Word>> = words.iter().map(|w| Word::from_text(w)).collect();
    let known = words_of(mnemonic);
    let stranger = parsed.iter().position(|w| !w.is_some_and(|w| known.contains(&w)));
    let suffix: String = words.iter().map(|w| format!(".{w}")).collect();
    let message = if suffix.is_empty() {
        format!("`{mnemonic}` needs modifiers")
    } else {
        format!("`{mnemonic}` has no form `{suffix}`")
    };
    let mut mismatch = Mismatch {
        code: Code::NoSuchForm,
        message,
        at: At::Words,
        label: String::new(),
        help: Some(forms(rows)),
        section: rows.first().map(|r| r.row().section),
        later: None,
    };
    if let Some(i) = stranger {
        mismatch.at = At::Word(i);
        mismatch.label = format!("`.{}` is not a modifier of `{mnemonic}`", words[i]);
        return mismatch;
    }
    if let Some((i, missing)) = one_missing(mnemonic, &parsed) {
        let before = words.get(i).map_or(String::new(), |w| format!(" before `.{w}`"));
        mismatch.label = format!("a modifier is missing{before}: {}", quoted_words(&missing));
        return mismatch;
    }
    let reaches: Vec<_> = rows.iter().map(|r| (*r, reach(r.form(), &parsed))).collect();
    let Some(best) = reaches.iter().map(|(_, reach)| reach.words).max() else { return mismatch };
    let mut expected: Vec<Word> = Vec::new();
    let nearest = || reaches.iter().filter(|(_, reach)| reach.words == best);
    mismatch.section = nearest().next().map(|(row, _)| row.row().section);
    for (row, reach) in nearest() {
        expected.extend(reach.expected.iter().flat_map(|part| part_words(row.form(), *part)));
    }
    expected.sort_unstable();
    expected.dedup();
    // Of the allowed words, prefers those that complete a form.
    let complete: Vec<Word> =
        expected.iter().copied().filter(|w| fits_at(mnemonic, &parsed, best, *w)).collect();
    let choices = quoted_words(if complete.is_empty() { &expected } else { &complete });
    (mismatch.at, mismatch.label) = match words.get(best) {
        None => (At::Words, format!("a modifier is missing: {choices}")),
        Some(word) if expected.is_empty() => (At::Word(best), format!("`.{word}` is not allowed here")),
        Some(word) => (At::Word(best), format!("`.{word}` is not allowed here; expected {choices}")),
    };
    mismatch
}

/// Whether some row matches the words.
fn fits(mnemonic: &str, words: &[Option<Word>]) -> bool {
    rows_of(mnemonic).iter().any(|row| match_suffix(row.form(), words).is_some())
}

/// Whether some row matches the words with `word` in place of word `i`.
fn fits_at(mnemonic: &str, words: &[Option<Word>], i: usize, word: Word) -> bool {
    let mut changed = words.to_vec();
    match changed.get_mut(i) {
        Some(place) => *place = Some(word),
        None => changed.push(Some(word)),
    }
    fits(mnemonic, &changed)
}

/// Words of C, LLVM and other assemblers, with the PTX words of the same meaning.
const FOREIGN: &[(&str, &[&str])] = &[
    ("i8", &["s8", "u8", "b8"]),
    ("i16", &["s16", "u16", "b16"]),
    ("i32", &["s32", "u32", "b32"]),
    ("i64", &["s64", "u64", "b64"]),
    ("i128", &["b128"]),
    ("s8", &["b8"]),
    ("u8", &["b8"]),
    ("s16", &["b16"]),
    ("u16", &["b16"]),
    ("s32", &["b32"]),
    ("u32", &["b32"]),
    ("s64", &["b64"]),
    ("u64", &["b64"]),
    ("b8", &["u8", "s8"]),
    ("b16", &["u16", "s16"]),
    ("b32", &["u32", "s32"]),
    ("b64", &["u64", "s64"]),
    ("p", &["pred"]),
    ("i1", &["pred"]),
    ("bool", &["pred"]),
    ("int", &["s32"]),
    ("uint", &["u32"]),
    ("long", &["s64"]),
    ("half", &["f16"]),
    ("float", &["f32"]),
    ("double", &["f64"]),
    ("lte", &["le"]),
    ("gte", &["ge"]),
    ("neq", &["ne"]),
];

/// Words that could replace a suffix word which the mnemonic does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stranger {
    /// The words that are allowed in its place.
    pub possible: Vec<Word>,
    /// The most likely ones of these, in order of likelihood.
    pub meant: Vec<Word>,
}

/// The words that are allowed in place of word `index`, which the mnemonic does not have. `exists` tests
/// whether words make a form that the module can use.
pub fn stranger(mnemonic: &str, words: &[&str], index: usize, exists: &dyn Fn(&[&str]) -> bool) -> Stranger {
    let known = words_of(mnemonic);
    let replaced = |word: &Word| {
        let mut changed = words.to_vec();
        if let Some(place) = changed.get_mut(index) {
            *place = word.text();
        }
        exists(&changed)
    };
    let mut possible: Vec<Word> = known.iter().copied().filter(replaced).collect();
    // The words that forms of any version expect after the preceding words.
    let parsed: Vec<Option<Word>> = words.iter().map(|w| Word::from_text(w)).collect();
    let mut expected: Vec<Word> = Vec::new();
    for row in rows_of(mnemonic) {
        let reach = reach(row.form(), &parsed);
        if reach.words == index {
            expected.extend(reach.expected.iter().flat_map(|part| part_words(row.form(), *part)));
        }
    }
    expected.sort_unstable();
    expected.dedup();
    if possible.is_empty() {
        // The instruction has another mistake too.
        possible.clone_from(&expected);
    }
    let word = words.get(index).copied().unwrap_or_default();
    let foreign = FOREIGN.iter().find(|(name, _)| *name == word).map_or(&[][..], |(_, same)| same);
    let find = |text: &str| possible.iter().copied().find(|w| w.text() == text);
    let mut meant: Vec<Word> = foreign.iter().filter_map(|text| find(text)).collect();
    for words in [&possible, &expected] {
        if meant.is_empty() {
            let near = spelling::nearest(word, words.iter().map(|w| w.text()));
            meant = near
                .into_iter()
                .filter_map(|text| words.iter().copied().find(|w| w.text() == text))
                .collect();
        }
    }
    Stranger { possible, meant }
}

/// The place at which one more word would complete a form, and the words that do.
fn one_missing(mnemonic: &str, words: &[Option<Word>]) -> Option<(usize, Vec<Word>)> {
    const LONGEST: usize = 12;
    if words.len() > LONGEST {
        return None;
    }
    let known = words_of(mnemonic);
    (0..=words.len()).find_map(|i| {
        let with = |w: &Word| {
            let mut longer = words.to_vec();
            longer.insert(i, Some(*w));
            fits(mnemonic, &longer)
        };
        let missing: Vec<Word> = known.iter().copied().filter(with).collect();
        (!missing.is_empty()).then_some((i, missing))
    })
}

fn operands(shapes: &[OperandShape], candidates: &[(RowId, Mods)]) -> Mismatch {
    let rows: Vec<RowId> = candidates.iter().map(|(row, _)| *row).collect();
    let counts = |row: &RowId| {
        let operands = &row.form().operands;
        (operands.iter().filter(|o| !o.optional).count(), operands.len())
    };
    let fits = rows.iter().any(|row| (counts(row).0..=counts(row).1).contains(&shapes.len()));
    let section = rows.first().map(|r| r.row().section);
    let name = candidates.first().map_or(String::new(), |(row, mods)| row.form().name(mods));
    let help = Some(forms(&rows));
    if !fits {
        let mut wanted: Vec<usize> = rows.iter().flat_map(|row| [counts(row).0, counts(row).1]).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let plural = if wanted == [1] { "" } else { "s" };
        let wanted: Vec<String> = wanted.iter().map(ToString::to_string).collect();
        return Mismatch {
            code: Code::WrongOperandCount,
            message: format!(
                "`{name}` takes {} operand{plural}, found {}",
                wanted.join(" or "),
                shapes.len()
            ),
            at: At::Instruction,
            label: String::new(),
            help,
            section,
            later: None,
        };
    }
    let bound = |(row, mods): &(RowId, Mods)| bind(row.form(), mods, shapes).err();
    let (best, operand) = candidates.iter().filter_map(bound).max().unwrap_or((0, 0));
    let at = if best < shapes.len() { At::Operand(best) } else { At::Instruction };
    let reached = candidates.iter().filter(|c| bound(c) == Some((best, operand)));
    let meant = reached.filter_map(|(row, mods)| row.form().operands.get(operand).map(|o| (o, mods))).next();
    if let Some(mismatch) = vectors(&name, shapes, best, meant.map(|(o, _)| o.kind), &rows) {
        return mismatch;
    }
    let label = match meant {
        Some((o, mods)) => format!("operand `{}` is {}", o.name, o.describe(mods)),
        None => "one operand too many".into(),
    };
    Mismatch {
        code: Code::WrongOperandKind,
        message: format!("`{name}` cannot take such operands"),
        at,
        label,
        help,
        section,
        later: None,
    }
}

/// The mismatch of a vector in place of a single value.
fn vectors(
    name: &str,
    shapes: &[OperandShape],
    operand: usize,
    kind: Option<Kind>,
    rows: &[RowId],
) -> Option<Mismatch> {
    let Some(Body::Vector(count)) = shapes.get(operand).map(|shape| shape.body) else { return None };
    let row = rows.first()?.row();
    let mut mismatch = Mismatch {
        code: Code::BadVector,
        message: format!("`{name}` moves one value, not {count}"),
        at: At::Operand(operand),
        label: String::new(),
        help: None,
        section: Some(row.section),
        later: None,
    };
    match kind? {
        Kind::Value(value)
            if value.lanes == LanesOf::Vec && matches!(row.op, Op::Ld | Op::LdNc | Op::Ldu | Op::St) =>
        {
            mismatch.help = matches!(count, 2 | 4).then(|| format!("`.v{count}` before the type"));
        }
        Kind::MovSource | Kind::Value(_) if row.op == Op::Mov => {
            mismatch.code = Code::NoSuchForm;
            mismatch.message = format!("`{name}` neither packs nor unpacks");
            mismatch.at = At::Words;
            mismatch.help = Some("`mov.b16`, `mov.b32` and `mov.b64` do, `mov.v2` and `mov.v4` copy".into());
            mismatch.section = Some("9.7.8.3");
        }
        _ => return None,
    }
    Some(mismatch)
}

/// The forms of some rows, for help: the first few, without duplicates.
pub fn forms(rows: &[RowId]) -> String {
    const SHOWN: usize = 6;
    let mut lines: Vec<String> = Vec::new();
    for row in rows {
        let line = format!("`{}`", row.form().syntax());
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    let more = lines.len().saturating_sub(SHOWN);
    lines.truncate(SHOWN);
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    let mnemonic = rows.first().map_or("", |r| r.form().mnemonic);
    format!("forms of `{mnemonic}`: {}", lines.join(" · "))
}

fn full_name(mnemonic: &str, words: &[&str]) -> String {
    words.iter().fold(mnemonic.to_owned(), |name, word| name + "." + word)
}

/// Words as a list: `` `.u16` `.u32` ``.
pub fn quoted_words(words: &[Word]) -> String {
    const SHOWN: usize = 16;
    let mut text: Vec<String> = words.iter().take(SHOWN).map(|w| format!("`.{}`", w.text())).collect();
    if words.len() > SHOWN {
        text.push("…".into());
    }
    text.join(" ")
}
