//! Diagnostics for instructions without a row: the wrong word, and the words that are allowed in its place.
//! PTX ISA §9.7.
//!
//! Invariant: one diagnostic, at the wrong word if it can be determined; [`crate::isa::Mismatch`] classifies
//! the mistake. Suggestions exist in the module's version and target.

use super::body::BodyChecker;
use super::inst::Written;
use crate::diag::{Code, Diagnostic};
use crate::isa::later::Later;
use crate::isa::{self, At, Level, Mismatch, Mods, Rnd, Word};
use crate::spelling;
use crate::syntax::tree;

impl BodyChecker<'_, '_> {
    /// Reports why no row matches.
    pub(super) fn mismatch(
        &mut self,
        instruction: &tree::Instruction,
        written: &[Written<'_>],
        mismatch: &Mismatch,
    ) {
        let opcode = instruction.opcode_span();
        if let Some(later) = mismatch.later
            && self.later(instruction, later)
        {
            return;
        }
        if mismatch.code == Code::NoSuchForm
            && let Some(culprit) = self.culprit(instruction)
        {
            let mut diagnostic = Diagnostic::new(mismatch.code, culprit.word.span, mismatch.message.clone())
                .with_label(culprit.label);
            diagnostic.help = match (culprit.question, &mismatch.help) {
                (Some(question), Some(help)) => Some(format!("{question} {help}")),
                (question, help) => question.or(help.clone()),
            };
            diagnostic.section = culprit.section.or(mismatch.section);
            self.checker.report.push(diagnostic);
            return;
        }
        let span = match mismatch.at {
            At::Mnemonic => instruction.mnemonic.span,
            At::Word(i) => instruction.modifiers.get(i).map_or(opcode, |word| word.span),
            At::Words => match (instruction.modifiers.first(), instruction.modifiers.last()) {
                (Some(first), Some(last)) => first.span.to(last.span),
                (_, _) => instruction.mnemonic.span,
            },
            At::Operand(i) => written.get(i).map_or(opcode, |operand| operand.span),
            At::Instruction => opcode,
        };
        let mut diagnostic =
            Diagnostic::new(mismatch.code, span, mismatch.message.clone()).with_label(mismatch.label.clone());
        diagnostic.help = mismatch.help.clone();
        diagnostic.section = mismatch.section;
        self.checker.report.push(diagnostic);
    }

    /// The form from a later PTX version that the instruction has.
    pub(super) fn later_form(
        &self,
        instruction: &tree::Instruction,
        shapes: &[isa::OperandShape],
    ) -> Option<&'static Later> {
        let text = self.checker.text;
        let words: Vec<&str> = instruction.modifiers.iter().map(|word| word.text(text)).collect();
        isa::later::find(instruction.mnemonic.text(text), &words, shapes)
    }

    /// Reports that a later form is not implemented, or its requirements. False if the module is too old for
    /// it and its words are so common that a typing error is more likely.
    pub(super) fn later(&mut self, instruction: &tree::Instruction, later: &'static Later) -> bool {
        let text = self.checker.text;
        let opcode = instruction.opcode_span();
        let mnemonic = instruction.mnemonic.text(text);
        let words: Vec<&str> = instruction.modifiers.iter().map(|word| word.text(text)).collect();
        if let Some((unmet, level)) = self.checker.unmet(|level| later.unmet(level)) {
            let meant = isa::rows_of(mnemonic).is_empty() || isa::nearest::is_strange(mnemonic, &words);
            if meant {
                let what = format!("`{}`", opcode.text(text));
                self.checker.unmet_diagnostic(&what, unmet, level, opcode, None, None);
            }
            return meant;
        }
        let refusal = isa::nearest::not_implemented(mnemonic, &words, later);
        let span = if refusal.at == At::Mnemonic { instruction.mnemonic.span } else { opcode };
        let diagnostic = Diagnostic::new(refusal.code, span, refusal.message).with_label(refusal.label);
        self.checker.report.push(diagnostic);
        true
    }

    /// The wrong modifier and a message, if all others are right: the last modifier without which a form
    /// exists, or a rounding modifier that must be replaced by another.
    fn culprit(&mut self, instruction: &tree::Instruction) -> Option<Culprit> {
        let text = self.checker.text;
        let words: Vec<&str> = instruction.modifiers.iter().map(|word| word.text(text)).collect();
        if words.len() > Mods::CAPACITY || !self.checker.may_suggest() {
            return None;
        }
        let forms = Forms { mnemonic: instruction.mnemonic.text(text), level: self.checker.header.level() };
        if let Some(order) = isa::right_order(forms.mnemonic, &words) {
            let label = format!("the order is `{}{order}`", forms.mnemonic);
            return Some(Culprit::new(*instruction.modifiers.first()?, label));
        }
        if let Some(index) = words.iter().position(|word| !forms.knows(word)) {
            let (label, question) = forms.stranger(&words, index);
            return Some(Culprit { question, ..Culprit::new(*instruction.modifiers.get(index)?, label) });
        }
        if let Some(index) = (0..words.len()).rev().find(|skip| forms.exist(&without(&words, *skip))) {
            let rest = without(&words, index);
            let section = isa::match_mods(forms.mnemonic, &rest).first().map(|(row, _)| row.row().section);
            let label = forms.superfluous(&words, index);
            return Some(Culprit { section, ..Culprit::new(*instruction.modifiers.get(index)?, label) });
        }
        for (index, word) in words.iter().enumerate() {
            let rounds = Word::from_text(word).and_then(Rnd::from_word).is_some();
            let others = if rounds { forms.instead(&words, index) } else { Vec::new() };
            if !others.is_empty() {
                let label = format!("in its place {}", others.join(" "));
                return Some(Culprit::new(instruction.modifiers[index], label));
            }
        }
        None
    }
}

/// The wrong modifier, and the message about it.
struct Culprit {
    word: tree::Word,
    label: String,
    /// A question with suggestions.
    question: Option<String>,
    section: Option<&'static str>,
}

impl Culprit {
    fn new(word: tree::Word, label: String) -> Self {
        Self { word, label, question: None, section: None }
    }
}

/// The forms of a mnemonic that the module can use.
struct Forms<'t> {
    mnemonic: &'t str,
    level: Option<Level>,
}

impl Forms<'_> {
    fn exist(&self, words: &[&str]) -> bool {
        let open = |row: isa::RowId| self.level.is_none_or(|level| row.form().gate.unmet(level).is_none());
        isa::match_mods(self.mnemonic, words).iter().any(|(row, _)| open(*row))
    }

    /// Every word that some row accepts, sorted.
    fn vocabulary(&self) -> Vec<Word> {
        let forms = isa::rows_of(self.mnemonic).iter().map(|row| row.form());
        let mut words: Vec<Word> = forms.flat_map(isa::Form::words).collect();
        words.sort_unstable();
        words.dedup();
        words
    }

    /// Whether some form accepts either of the two words but not both.
    fn exclude(&self, word: &str, other: &str) -> bool {
        let (Some(word), Some(other)) = (Word::from_text(word), Word::from_text(other)) else { return false };
        let mut sets = isa::rows_of(self.mnemonic).iter().flat_map(|row| &row.form().sets);
        word != other && sets.any(|set| set.holds(word) && set.holds(other))
    }

    /// The words that are allowed in place of word `index`.
    fn instead(&self, words: &[&str], index: usize) -> Vec<String> {
        let fits = |other: &Word| {
            let mut changed = words.to_vec();
            changed[index] = other.text();
            self.exist(&changed)
        };
        self.vocabulary().into_iter().filter(fits).map(|w| format!("`.{}`", w.text())).collect()
    }

    /// The types that are allowed in place of type `index`.
    fn types_instead(&self, words: &[&str], index: usize) -> Vec<String> {
        let mut all = self.instead(words, index);
        let is_type = |text: &String| {
            Word::from_text(text.trim_matches(['`', '.'])).is_some_and(|word| word.ty().is_some())
        };
        all.retain(is_type);
        all
    }

    /// The largest number of types in a form.
    fn most_types(&self) -> usize {
        let types = |form: &isa::Form| {
            let sets = form.sets.iter().filter(|set| set.values.iter().any(|(word, _)| word.ty().is_some()));
            let fixed = form.row.syntax.split_whitespace().next().unwrap_or_default().split('.');
            sets.count() + fixed.filter(|w| Word::from_text(w).is_some_and(|w| w.ty().is_some())).count()
        };
        isa::rows_of(self.mnemonic).iter().map(|row| types(row.form())).max().unwrap_or(0)
    }

    /// Whether some form accepts the word.
    fn knows(&self, word: &str) -> bool {
        Word::from_text(word).is_some_and(|word| self.vocabulary().contains(&word))
    }

    /// The message about word `index`, which no form accepts: the allowed words, if they are few or types,
    /// and a suggestion.
    fn stranger(&self, words: &[&str], index: usize) -> (String, Option<String>) {
        /// Longer lists of words are omitted, except types.
        const FEW: usize = 8;
        let exists = |words: &[&str]| self.exist(words);
        let found = isa::nearest::stranger(self.mnemonic, words, index, &exists);
        let types = !found.possible.is_empty() && found.possible.iter().all(|word| word.ty().is_some());
        let list = isa::nearest::quoted_words(&found.possible);
        let label = match found.possible.len() {
            0 => format!("`.{}` is not a modifier of `{}`", words[index], self.mnemonic),
            _ if types => {
                format!("`.{}` is not a type of `{}`; types here: {list}", words[index], self.mnemonic)
            }
            n if n <= FEW => {
                format!(
                    "`.{}` is not a modifier of `{}`; modifiers here: {list}",
                    words[index], self.mnemonic
                )
            }
            _ => format!("`.{}` is not a modifier of `{}`", words[index], self.mnemonic),
        };
        let meant: Vec<String> = found.meant.iter().map(|word| format!(".{}", word.text())).collect();
        let question = (!meant.is_empty()).then(|| spelling::question(meant.iter().map(String::as_str)));
        (label, question)
    }

    /// The reason why word `index`, without which the form exists, is not allowed.
    fn superfluous(&self, words: &[&str], index: usize) -> String {
        let word = words[index];
        if words.iter().filter(|other| **other == word).count() > 1
            && isa::match_mods(self.mnemonic, words).is_empty()
            && self.exist(&without(words, index))
        {
            return format!("`.{word}` occurs twice");
        }
        let is_type = |i: &usize| Word::from_text(words[*i]).is_some_and(|w| w.ty().is_some());
        let types: Vec<usize> = (0..words.len()).filter(is_type).collect();
        let others = || types.iter().copied().filter(|other| *other != index);
        if types.contains(&index)
            && others().count() == 1
            && let Some(other) = others().next()
            && self.most_types() == 1
        {
            return format!("`{}` takes one type, and already has `.{}`", self.mnemonic, words[other]);
        }
        for other in others() {
            let with = self.types_instead(words, other);
            if (1..=8).contains(&with.len()) {
                let (with, not) = (with.join(" "), words[other]);
                // With several types, the message is true only in combination with the others.
                return match types.len() {
                    1 => format!("`.{word}` is for {with}, not for `.{not}`"),
                    _ => {
                        let rest = without(words, other);
                        let at = types.iter().position(|i| *i == other).map_or("", |n| ordinal(n));
                        let beside = rest.iter().map(|w| format!("`.{w}`")).collect::<Vec<_>>().join(" ");
                        let name = without(words, index).join(".");
                        format!(
                            "`{}.{name}` exists without it; with {beside}, the {at} type must be one of {with}",
                            self.mnemonic
                        )
                    }
                };
            }
        }
        if let Some(other) = words.iter().find(|other| self.exclude(word, other)) {
            return format!("`.{word}` cannot be combined with `.{other}`");
        }
        let name = without(words, index).iter().fold(self.mnemonic.to_owned(), |name, w| name + "." + w);
        format!("without this, `{name}` exists")
    }
}

fn ordinal(index: usize) -> &'static str {
    match index {
        0 => "first",
        1 => "second",
        2 => "third",
        _ => "last",
    }
}

/// All words but one.
fn without<'w>(words: &[&'w str], index: usize) -> Vec<&'w str> {
    words.iter().enumerate().filter(|(i, _)| *i != index).map(|(_, word)| *word).collect()
}
