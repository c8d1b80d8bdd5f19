//! From mnemonic, suffix words and operand shapes to the one row that matches.
//!
//! Invariant: no text matches two rows (a test generates the texts of every row and matches them against all
//! rows of the mnemonic). Operand types do not take part; the checker validates them. Failures are explained
//! in [`super::nearest`].

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::form::{Form, Item, Kind, LanesOf, Need, OperandForm, Part, TypeOf, Value};
use super::gate::{Gate, Level, Unmet};
use super::nearest::{self, Mismatch};
use super::row::{Row, Rule};
use super::{Mods, Slot, Ty, Word, rule, table};

/// A row of the table. Ids are dense and follow the order of the table; they are not stable between versions
/// of ptxvm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RowId(u16);

struct Index {
    forms: Vec<Form>,
    by_mnemonic: BTreeMap<&'static str, Vec<RowId>>,
}

fn index() -> &'static Index {
    static INDEX: OnceLock<Index> = OnceLock::new();
    INDEX.get_or_init(|| {
        let mut forms = Vec::new();
        let mut by_mnemonic: BTreeMap<&'static str, Vec<RowId>> = BTreeMap::new();
        for row in table::rows() {
            // A test parses every row, so the second arm is never taken.
            match Form::parse(row) {
                Ok(form) => {
                    by_mnemonic.entry(form.mnemonic).or_default().push(RowId(forms.len() as u16));
                    forms.push(form);
                }
                Err(message) => panic!("ptxvm bug: row `{}` does not parse: {message}", row.syntax),
            }
        }
        Index { forms, by_mnemonic }
    })
}

impl RowId {
    /// Every row, in the order of the table.
    pub fn all() -> impl Iterator<Item = RowId> {
        (0..index().forms.len()).map(|i| RowId(i as u16))
    }

    /// Position in the table, from 0.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The row's structure.
    pub fn form(self) -> &'static Form {
        &index().forms[self.index()]
    }

    /// The row.
    pub fn row(self) -> &'static Row {
        self.form().row
    }
}

/// The rows of a mnemonic (the word before the first dot); empty where there are none.
pub fn rows_of(mnemonic: &str) -> &'static [RowId] {
    index().by_mnemonic.get(mnemonic).map_or(&[], Vec::as_slice)
}

/// Every mnemonic that has rows, sorted.
pub fn mnemonics() -> impl Iterator<Item = &'static str> {
    index().by_mnemonic.keys().copied()
}

/// The shape of a written operand: the properties that select a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperandShape {
    /// Its body.
    pub body: Body,
    /// Prefixed with `!`.
    pub not: bool,
    /// Prefixed with `-` (before a name; a negative constant is [`Body::Imm`]).
    pub minus: bool,
    /// Followed by a video selector such as `.b0` or `.h10`.
    pub selector: bool,
}

/// The body of a written operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// A register, vector element, variable (with or without offset), label, function or special register.
    Name,
    /// A constant expression.
    Imm,
    /// `{a, b}` of that many elements.
    Vector(u8),
    /// `[a]`
    Address,
    /// `a[4]`
    Indexed,
    /// `[a, b]` of that many operands, two or more.
    Brackets(u8),
    /// `d|p`
    Pair,
    /// `(a, b)` of that many operands.
    List(u8),
    /// `_`
    Sink,
    /// The name of a predicate, possibly negated, where predicates select another form (`cp.async`).
    Predicate,
}

impl From<Body> for OperandShape {
    fn from(body: Body) -> Self {
        Self { body, not: false, minus: false, selector: false }
    }
}

/// The assignment of written operands to operands of the form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Binding {
    items: [u8; Binding::CAPACITY],
    len: u8,
}

impl Binding {
    /// The most operands that an instruction can have.
    pub const CAPACITY: usize = 8;

    /// The index of the form's operand to which written operand `i` belongs.
    pub fn of(&self, i: usize) -> Option<usize> {
        self.items[..usize::from(self.len)].get(i).map(|n| usize::from(*n))
    }

    /// The index of the written operand for the form's operand `i`; `None` if it was omitted.
    pub fn written(&self, i: usize) -> Option<usize> {
        self.items[..usize::from(self.len)].iter().position(|n| usize::from(*n) == i)
    }

    fn push(&mut self, i: usize) {
        if let Some(item) = self.items.get_mut(usize::from(self.len)) {
            *item = i as u8;
            self.len += 1;
        }
    }
}

/// A matched instruction: its row, modifiers, and operand assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// The row.
    pub row: RowId,
    /// The modifiers, as written and implied.
    pub mods: Mods,
    /// Which operand is which.
    pub binding: Binding,
}

/// The requirement of a part of an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The part: `add.f16`, `.rm`, operand `e`.
    pub what: String,
    /// The condition.
    pub gate: Gate,
}

/// The rows of `mnemonic` that match the suffix words, each with its modifiers. Words have no dots; a bank is
/// part of its word: `const[3]`.
pub fn match_mods(mnemonic: &str, words: &[&str]) -> Vec<(RowId, Mods)> {
    let words: Vec<Option<Word>> = words.iter().map(|w| Word::from_text(w)).collect();
    let rows = rows_of(mnemonic).iter();
    rows.filter_map(|row| match_suffix(row.form(), &words).map(|mods| (*row, mods))).collect()
}

/// The rows of `mnemonic` that match the suffix words in another order: ptxas accepts modifiers in any order,
/// and compilers rely on it. Words that could be exchanged (types, layouts) keep their order. The order of
/// video instructions is fixed (V20), except that ptxas accepts the mode of a shift before `.sat`.
pub fn match_any_order(mnemonic: &str, words: &[&str]) -> Vec<(RowId, Mods)> {
    let fixed = |row: &RowId| ["9.7.15", "9.7.16"].iter().any(|s| row.row().section.starts_with(s));
    let mode_first = words.windows(2).any(|pair| matches!(pair, ["clamp" | "wrap", "sat"]));
    let mut rows = reorderings(mnemonic, words);
    rows.retain(|(row, mods)| {
        let differ =
            mods.given().iter().zip(words).filter(|((_, given), word)| given.text() != **word).count();
        !fixed(row) || (mode_first && differ == 2)
    });
    rows
}

/// The order in which the words would match some form, if they match none as written.
pub fn right_order(mnemonic: &str, words: &[&str]) -> Option<String> {
    reorderings(mnemonic, words).first().map(|(_, mods)| suffix(mods))
}

fn reorderings(mnemonic: &str, words: &[&str]) -> Vec<(RowId, Mods)> {
    let words: Option<Vec<Word>> = words.iter().map(|w| Word::from_text(w)).collect();
    let Some(words) = words.filter(|words| (2..=Mods::CAPACITY).contains(&words.len())) else {
        return Vec::new();
    };
    let rows = rows_of(mnemonic).iter();
    rows.filter_map(|row| reordered(row.form(), &words).map(|mods| (*row, mods))).collect()
}

/// The modifiers as written: `.rn.f32`.
fn suffix(mods: &Mods) -> String {
    mods.given().iter().map(|(_, word)| format!(".{}", word.text())).collect()
}

/// The modifiers, if the words match the form in another order.
fn reordered(form: &Form, words: &[Word]) -> Option<Mods> {
    let mut left = words.to_vec();
    let mut order = Vec::with_capacity(words.len());
    for item in &form.suffix {
        let inner = match item {
            Item::AnyOrder(inner) => inner.as_slice(),
            Item::One(_) | Item::Group(_) | Item::Opt(_) => std::slice::from_ref(item),
        };
        for item in inner {
            let needed = matches!(item, Item::One(_) | Item::Group(_));
            for part in item.parts() {
                let choices = part_words(form, part);
                match left.iter().position(|word| choices.contains(word)) {
                    Some(i) => order.push(left.remove(i)),
                    None if needed => return None,
                    None => {}
                }
            }
        }
    }
    let fixed = |word: &Word| word.ty().is_some() || matches!(word, Word::Row | Word::Col);
    let in_place = |words: &[Word]| words.iter().copied().filter(fixed).collect::<Vec<_>>();
    if !left.is_empty() || in_place(&order) != in_place(words) {
        return None;
    }
    let order: Vec<Option<Word>> = order.into_iter().map(Some).collect();
    match_suffix(form, &order)
}

/// The one row that matches an instruction.
///
/// # Errors
/// No row matches: the mismatch describes the mistake and its place.
pub fn select(mnemonic: &str, words: &[&str], shapes: &[OperandShape]) -> Result<Match, Box<Mismatch>> {
    let mut candidates = match_mods(mnemonic, words);
    if candidates.is_empty() {
        candidates = match_any_order(mnemonic, words);
    }
    for (row, mods) in &candidates {
        if let Ok(binding) = bind(row.form(), mods, shapes) {
            return Ok(Match { row: *row, mods: *mods, binding });
        }
    }
    Err(Box::new(nearest::explain(mnemonic, words, shapes, &candidates)))
}

impl Match {
    /// The requirements of the instruction, part by part: the form, each word, each operand. `shapes` are the
    /// written operands.
    pub fn requirements(&self, shapes: &[OperandShape]) -> Vec<Requirement> {
        let form = self.row.form();
        let mut all = vec![Requirement { what: form.name(&self.mods), gate: form.gate }];
        for (slot, word) in self.mods.given() {
            let gate = form.word_gate(*slot, *word);
            if gate != Gate::OPEN {
                all.push(Requirement { what: format!(".{}", word.text()), gate });
            }
        }
        for set in form.sets.iter().filter(|set| set.absent != Gate::OPEN) {
            if !self.mods.given().iter().any(|(s, w)| *s == set.slot && set.holds(*w)) {
                let what = format!("`{}` without `.{}`", form.mnemonic, set.name);
                all.push(Requirement { what, gate: set.absent });
            }
        }
        for (what, gate) in form.row.rules.iter().filter_map(|r| rule::gate(*r, &self.mods)) {
            all.push(Requirement { what: what.to_owned(), gate });
        }
        for (i, shape) in shapes.iter().enumerate() {
            let Some(operand) = self.binding.of(i).and_then(|n| form.operands.get(n)) else { continue };
            if operand.gate != Gate::OPEN {
                all.push(Requirement { what: format!("operand `{}`", operand.name), gate: operand.gate });
            }
            if operand.register_gate != Gate::OPEN && shape.body != Body::Imm {
                let what = format!("a register as operand `{}`", operand.name);
                all.push(Requirement { what, gate: operand.register_gate });
            }
        }
        all
    }

    /// The first requirement that the module does not meet.
    pub fn unmet(&self, shapes: &[OperandShape], level: Level) -> Option<(Requirement, Unmet)> {
        let mut all = self.requirements(shapes).into_iter();
        all.find_map(|r| r.gate.unmet(level).map(|unmet| (r, unmet)))
    }

    /// A violation of the row's rules about modifiers, in a few words.
    pub fn mods_error(&self) -> Option<String> {
        self.row.row().rules.iter().find_map(|r| rule::mods_error(*r, &self.mods))
    }

    /// The modifiers in the order of the form, if `words` have an order that the form does not allow.
    pub fn reordered(&self, words: &[&str]) -> Option<String> {
        let given = self.mods.given();
        let same = given.len() == words.len() && given.iter().zip(words).all(|((_, g), w)| g.text() == *w);
        (!same).then(|| suffix(&self.mods))
    }

    /// The deprecation of this form, if the manual has one.
    pub fn deprecation(&self) -> Option<rule::Deprecation> {
        let row = self.row.row();
        if row.rules.contains(&Rule::Deprecated) { rule::deprecation(row.op, &self.mods) } else { None }
    }

    /// The part that ptxas refuses although the manual allows it, in a few words.
    pub fn portability(&self, shapes: &[OperandShape]) -> Option<&'static str> {
        self.row.row().rules.iter().find_map(|r| rule::portability(*r, &self.mods, shapes))
    }

    /// A violation of the row's rules about operands, in a few words: companions that a texture geometry does
    /// not have, or negations that exclude each other.
    pub fn operands_error(&self, shapes: &[OperandShape]) -> Option<String> {
        let written = |name: &str| {
            let form = self.row.form().operands.iter().position(|o| o.name == name);
            form.and_then(|i| self.binding.written(i)).and_then(|i| shapes.get(i)).copied()
        };
        self.row.row().rules.iter().find_map(|r| rule::operands_error(*r, &self.mods, &written))
    }

    /// The form's operand to which written operand `i` belongs.
    pub fn operand(&self, i: usize) -> Option<&'static OperandForm> {
        self.binding.of(i).and_then(|n| self.row.form().operands.get(n))
    }
}

impl super::form::SlotSet {
    /// Whether the word is one of the values.
    pub fn holds(&self, word: Word) -> bool {
        self.values.iter().any(|(w, _)| *w == word)
    }
}

impl Form {
    /// The instruction's name with the modifiers as written: `add.sat.s32`.
    pub fn name(&self, mods: &Mods) -> String {
        format!("{}{mods}", self.mnemonic)
    }
}

/// How much of a suffix matched, and the parts that could follow.
#[derive(Clone, Debug, Default)]
pub(super) struct Reach {
    /// Words that matched.
    pub(super) words: usize,
    /// Parts that could follow.
    pub(super) expected: Vec<Part>,
}

/// How much of the suffix words matches a form that does not match them all.
pub(super) fn reach(form: &Form, words: &[Option<Word>]) -> Reach {
    let mut state = Matching { form, words, mods: Mods::new(), reach: Some(Reach::default()) };
    state.sequence(&form.suffix, 0, &mut |state, at| at == state.words.len());
    state.reach.unwrap_or_default()
}

/// Matches suffix words against a form.
pub(super) fn match_suffix(form: &Form, words: &[Option<Word>]) -> Option<Mods> {
    let mut state = Matching { form, words, mods: Mods::new(), reach: None };
    if !state.sequence(&form.suffix, 0, &mut |state, at| at == state.words.len()) {
        return None;
    }
    let mut mods = state.mods;
    for set in &form.sets {
        if let Some(default) = set.default
            && !mods.given().iter().any(|(slot, word)| *slot == set.slot && set.holds(*word))
        {
            mods.imply(set.slot, default);
        }
    }
    for (slot, word) in &form.implies {
        mods.imply(*slot, *word);
    }
    Some(mods)
}

/// A backtracking match of words against items; `mods` holds the words that have matched.
struct Matching<'a> {
    form: &'a Form,
    words: &'a [Option<Word>],
    mods: Mods,
    /// Recorded only to explain a failure.
    reach: Option<Reach>,
}

type Continue<'a, 'b> = &'b mut dyn FnMut(&mut Matching<'a>, usize) -> bool;

impl<'a> Matching<'a> {
    fn sequence(&mut self, items: &[Item], at: usize, then: Continue<'a, '_>) -> bool {
        let Some((first, rest)) = items.split_first() else { return then(self, at) };
        match first {
            Item::One(part) => match self.part(*part, at) {
                true => self.sequence(rest, at + 1, then) || self.undo(at),
                false => false,
            },
            Item::Group(parts) => {
                let matched = parts.iter().enumerate().all(|(i, part)| self.part(*part, at + i));
                (matched && self.sequence(rest, at + parts.len(), then)) || self.undo(at)
            }
            Item::Opt(parts) => self.optional(parts, at, &mut |state, at| state.sequence(rest, at, then)),
            Item::AnyOrder(inner) => {
                self.any_order(inner, 0, at, &mut |state, at| state.sequence(rest, at, then))
            }
        }
    }

    /// All of `parts`, or none.
    fn optional(&mut self, parts: &[Part], at: usize, then: Continue<'a, '_>) -> bool {
        let matched = parts.iter().enumerate().all(|(i, part)| self.part(*part, at + i));
        (matched && then(self, at + parts.len())) || (self.undo(at), then(self, at)).1
    }

    /// Matches the items that `used` does not mark, in any order.
    fn any_order(&mut self, inner: &[Item], used: u32, at: usize, then: Continue<'a, '_>) -> bool {
        for (i, item) in inner.iter().enumerate().filter(|(i, _)| used & (1 << i) == 0) {
            let parts: &[Part] = match item {
                Item::One(part) => std::slice::from_ref(part),
                Item::Group(parts) | Item::Opt(parts) => parts,
                Item::AnyOrder(_) => continue,
            };
            let matched = parts.iter().enumerate().all(|(n, part)| self.part(*part, at + n));
            if matched && self.any_order(inner, used | (1 << i), at + parts.len(), then) {
                return true;
            }
            self.undo(at);
        }
        let missing =
            |(i, item): (usize, &Item)| used & (1 << i) == 0 && matches!(item, Item::One(_) | Item::Group(_));
        !inner.iter().enumerate().any(missing) && then(self, at)
    }

    /// Matches one part with word `at`; the previous words have matched.
    fn part(&mut self, part: Part, at: usize) -> bool {
        let word = self.words.get(at).copied().flatten();
        let slot = match part {
            Part::Word(slot, literal) => (word == Some(literal)).then_some(slot),
            Part::Set(index) => {
                let set = &self.form.sets[index];
                word.filter(|w| set.holds(*w)).map(|_| set.slot)
            }
        };
        if let (Some(slot), Some(word)) = (slot, word) {
            self.mods.truncate(at);
            self.mods.give(slot, word);
            return true;
        }
        if let Some(reach) = &mut self.reach {
            if at > reach.words {
                *reach = Reach { words: at, expected: Vec::new() };
            }
            if at == reach.words {
                reach.expected.push(part);
            }
        }
        false
    }

    fn undo(&mut self, at: usize) -> bool {
        self.mods.truncate(at);
        false
    }
}

/// Assigns the written operands to operands of the form.
///
/// # Errors
/// The index of the written operand that does not match (the number of written operands if one is missing),
/// and of the form's operand at that place (the number of the form's operands if there is one too many).
pub(super) fn bind(form: &Form, mods: &Mods, shapes: &[OperandShape]) -> Result<Binding, (usize, usize)> {
    let mut reach = (0, 0);
    let found = bind_from(form, mods, shapes, 0, Binding::default(), &mut reach);
    found.ok_or(reach)
}

fn bind_from(
    form: &Form,
    mods: &Mods,
    shapes: &[OperandShape],
    next: usize,
    binding: Binding,
    reach: &mut (usize, usize),
) -> Option<Binding> {
    let at = usize::from(binding.len);
    *reach = (*reach).max((at, next));
    let Some(operand) = form.operands.get(next) else {
        return (at == shapes.len()).then_some(binding);
    };
    if let Some(shape) = shapes.get(at)
        && operand.accepts(mods, *shape)
    {
        let mut with = binding;
        with.push(next);
        if let Some(found) = bind_from(form, mods, shapes, next + 1, with, reach) {
            return Some(found);
        }
    }
    if operand.optional { bind_from(form, mods, shapes, next + 1, binding, reach) } else { None }
}

impl OperandForm {
    /// Whether a written operand of this shape can be this operand, regardless of types.
    pub fn accepts(&self, mods: &Mods, shape: OperandShape) -> bool {
        if (shape.not && !self.may_not) || (shape.minus && !self.may_minus) {
            return false;
        }
        match self.selector {
            None if shape.selector => return false,
            Some((_, Need::Required)) if !shape.selector => return false,
            _ => {}
        }
        match (&self.second, shape.body) {
            (Some(_), Body::Pair) => return true,
            (Some((_, Need::Required)), _) | (None, Body::Pair) => return false,
            _ => {}
        }
        let destination = self.dir == super::form::Dir::Out;
        match self.kind {
            Kind::Value(value) => accepts_value(value, mods, shape.body, destination),
            Kind::Imm { .. } => matches!(shape.body, Body::Imm | Body::Name),
            Kind::Address(_) => matches!(shape.body, Body::Address | Body::Indexed),
            Kind::Label | Kind::TargetList | Kind::Func | Kind::FuncPtr | Kind::CallTargets => {
                shape.body == Body::Name
            }
            Kind::Args | Kind::Rets => matches!(shape.body, Body::List(_)),
            Kind::Opaque(_) => matches!(shape.body, Body::Name | Body::Indexed),
            Kind::Coords => matches!(shape.body, Body::Name | Body::Vector(_)),
            Kind::Grad => matches!(shape.body, Body::Name | Body::Vector(_)),
            Kind::Offset => matches!(shape.body, Body::Vector(_)),
            Kind::LevelOfDetail => matches!(shape.body, Body::Name | Body::Imm),
            Kind::Fragment(_) => matches!(shape.body, Body::Name | Body::Vector(_)),
            Kind::Elems => matches!(shape.body, Body::Vector(_)),
            Kind::MovSource => matches!(shape.body, Body::Name | Body::Imm | Body::Indexed),
            Kind::Variable => matches!(shape.body, Body::Name | Body::Indexed),
            Kind::Bracket => accepts_brackets(&self.members, shape.body),
        }
    }
}

fn accepts_value(value: Value, mods: &Mods, body: Body, destination: bool) -> bool {
    let vector = match value.lanes {
        LanesOf::Is(n) => n > 1,
        LanesOf::Vec => mods.vec() > 1,
    };
    let predicate = value.ty == TypeOf::Is(Ty::Pred);
    match body {
        // Where only a register is allowed, its shape says whether it is a predicate.
        Body::Name => !(predicate && value.register),
        Body::Imm => !destination && !value.register && !vector,
        Body::Sink => destination && !vector,
        // Compilers write `{a}` where an optional vector is omitted.
        Body::Vector(1) => vector || value.lanes == LanesOf::Vec,
        Body::Vector(_) => vector,
        Body::Predicate => predicate,
        Body::Address | Body::Indexed | Body::Brackets(_) | Body::Pair | Body::List(_) => false,
    }
}

fn accepts_brackets(members: &[OperandForm], body: Body) -> bool {
    let least = members.iter().filter(|m| !m.optional).count();
    let n = match body {
        Body::Address => 1,
        Body::Brackets(n) => usize::from(n),
        _ => return false,
    };
    (least..=members.len()).contains(&n)
}

/// Every word of a part of a form, for messages.
pub(super) fn part_words(form: &Form, part: Part) -> Vec<Word> {
    match part {
        Part::Word(_, word) => vec![word],
        Part::Set(index) => form.sets[index].values.iter().map(|(w, _)| *w).collect(),
    }
}

/// Every word in the rows of the mnemonic, sorted.
pub(super) fn words_of(mnemonic: &str) -> Vec<Word> {
    let mut words = Vec::new();
    for form in rows_of(mnemonic).iter().map(|row| row.form()) {
        let parts = form.suffix.iter().flat_map(Item::parts);
        words.extend(parts.flat_map(|part| part_words(form, part)));
    }
    words.sort_unstable();
    words.dedup();
    words
}

/// The slot's values in a row, for callers that list forms.
pub fn values(row: RowId, slot: Slot) -> Vec<Word> {
    let sets = row.form().sets.iter().filter(|set| set.slot == slot);
    sets.flat_map(|set| set.values.iter().map(|(w, _)| *w)).collect()
}
