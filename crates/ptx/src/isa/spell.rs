//! All spellings of a row's modifiers, for coverage and for tests that visit all forms.
//!
//! Invariant: each spelling has the order of the row's syntax, and matches that row.

use super::form::{Item, Part};
use super::{Form, Mods, RowId, Word, match_mods, rule};

impl Form {
    /// All suffixes of the form, in the order of its syntax; some violate a rule of the row.
    pub fn suffixes(&self) -> Vec<Vec<Word>> {
        self.expand(&self.suffix, vec![vec![]])
    }

    fn expand(&self, items: &[Item], all: Vec<Vec<Word>>) -> Vec<Vec<Word>> {
        items.iter().fold(all, |all, item| match item {
            Item::One(part) => self.extend(&[*part], &all),
            Item::Group(parts) => self.extend(parts, &all),
            Item::Opt(parts) => {
                let with = self.extend(parts, &all);
                [all, with].concat()
            }
            Item::AnyOrder(inner) => self.expand(inner, all),
        })
    }

    fn extend(&self, parts: &[Part], all: &[Vec<Word>]) -> Vec<Vec<Word>> {
        parts.iter().fold(all.to_vec(), |all, part| {
            let choices: Vec<Word> = match *part {
                Part::Word(_, word) => vec![word],
                Part::Set(index) => self.sets[index].values.iter().map(|(w, _)| *w).collect(),
            };
            all.iter().flat_map(|text| choices.iter().map(|w| [text.as_slice(), &[*w]].concat())).collect()
        })
    }
}

impl RowId {
    /// The modifiers of every spelling of this row that violates no rule.
    pub fn spellings(self) -> Vec<Mods> {
        let form = self.form();
        let mut found = Vec::new();
        for words in form.suffixes() {
            let texts: Vec<&str> = words.iter().map(|w| w.text()).collect();
            let ours = match_mods(form.mnemonic, &texts).into_iter().filter(|(other, _)| *other == self);
            found.extend(ours.map(|(_, mods)| mods));
        }
        found.retain(|mods| !form.row.rules.iter().any(|r| rule::mods_error(*r, mods).is_some()));
        found
    }
}
