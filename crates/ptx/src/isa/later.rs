//! Forms later than PTX 6.4 that are not implemented. They are recognised, so that the diagnostic names the
//! version and target that introduced them, and does not call them mistakes.
//!
//! Invariant: a form is in this list or has a row in the table, never both (a test matches every text of
//! every row against this list). The list contains the words of a form, its number of operands, and its gate.
//! Nothing else is checked, because no module that uses it is accepted. The rows are in `isa/later/rows.rs`.

use super::gate::has_features_of;
use super::{Body, Level, OperandShape, Sm, Unmet, Version};
use std::collections::HashMap;
use std::sync::OnceLock;

mod rows;

pub use rows::LATER;

/// Forms that are not implemented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Later {
    /// The mnemonic and the words that every form of the row has, in any order; `|` separates alternatives.
    pub syntax: &'static str,
    /// Optional words of the form; `*` for any.
    pub may: &'static str,
    /// The number of operands.
    pub operands: Operands,
    /// The PTX version that introduced the form, and the first targets that have it; without targets, all
    /// have it.
    pub since: &'static str,
    /// Its purpose.
    pub brief: &'static str,
}

/// The number of operands of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operands {
    min: u8,
    max: u8,
    /// The form has an operand with this body.
    with: Option<Body>,
}

impl Operands {
    const fn between(min: u8, max: u8) -> Self {
        Self { min, max, with: None }
    }

    const fn with(min: u8, max: u8, body: Body) -> Self {
        Self { min, max, with: Some(body) }
    }

    fn fit(self, shapes: &[OperandShape]) -> bool {
        let count = (usize::from(self.min)..=usize::from(self.max)).contains(&shapes.len());
        count && self.with.is_none_or(|with| shapes.iter().any(|shape| shape.body == with))
    }
}

const fn n(count: u8) -> Operands {
    Operands::between(count, count)
}

const fn between(min: u8, max: u8) -> Operands {
    Operands::between(min, max)
}

const fn later(
    syntax: &'static str,
    may: &'static str,
    operands: Operands,
    since: &'static str,
    brief: &'static str,
) -> Later {
    Later { syntax, may, operands, since, brief }
}

impl Later {
    /// The PTX version that introduced it.
    pub fn version(&self) -> Version {
        let text = self.since.split(' ').next().unwrap_or_default();
        let version = text.split_once('.').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        let (major, minor) = version.expect("a test reads the version of every row");
        Version::new(major, minor)
    }

    /// The targets that have it; empty if all do.
    pub fn targets(&self) -> impl Iterator<Item = Sm> {
        self.since.split(' ').skip(1).filter_map(Sm::from_name)
    }

    /// Its introduction in words: `PTX 8.6 introduced it, for sm_100a`.
    pub fn introduced(&self) -> String {
        introduced(self.version(), self.targets())
    }

    /// Why a module of this level cannot use it, even if it were implemented; `None` if it could.
    pub fn unmet(&self, level: Level) -> Option<Unmet> {
        let ptx = Some(self.version()).filter(|version| level.ptx < *version);
        let here = self.targets().any(|sm| has_features_of(level.sm, sm));
        let sm = self.targets().next().filter(|_| !here);
        match (ptx, sm) {
            (Some(ptx), Some(sm)) => Some(Unmet::PtxAndSm(ptx, sm)),
            (Some(ptx), None) => Some(Unmet::Ptx(ptx)),
            (None, Some(sm)) => Some(Unmet::Sm(sm)),
            (None, None) => None,
        }
    }

    /// The mnemonics of the row.
    pub fn mnemonics(&self) -> impl Iterator<Item = &'static str> {
        self.syntax.split('.').next().unwrap_or_default().split('|')
    }

    /// Whether the words after the mnemonic are some of this row.
    fn fits(&self, words: &[&str]) -> bool {
        let needed = || self.syntax.split('.').skip(1).map(|group| group.split('|'));
        let may = |word: &str| self.may == "*" || self.may.split(' ').any(|m| m == word);
        needed().all(|mut group| group.any(|word| words.contains(&word)))
            && words.iter().all(|word| may(word) || needed().any(|mut group| group.any(|w| w == *word)))
    }
}

/// The introduction of a feature, in words.
pub fn introduced(version: Version, mut targets: impl Iterator<Item = Sm>) -> String {
    match targets.next() {
        Some(sm) => format!("PTX {version} introduced it, for {sm}"),
        None => format!("PTX {version} introduced it"),
    }
}

/// The rows of a mnemonic, in the order of the list. The checker looks up every name that a program declares.
fn rows(mnemonic: &str) -> impl Iterator<Item = &'static Later> {
    static BY_MNEMONIC: OnceLock<HashMap<&'static str, Vec<&'static Later>>> = OnceLock::new();
    let by_mnemonic = BY_MNEMONIC.get_or_init(|| {
        let mut map: HashMap<_, Vec<_>> = HashMap::new();
        for row in LATER {
            for mnemonic in row.mnemonics() {
                map.entry(mnemonic).or_default().push(row);
            }
        }
        map
    });
    by_mnemonic.get(mnemonic).into_iter().flatten().copied()
}

/// The form with these words and operands, if it is in the list.
pub fn find(mnemonic: &str, words: &[&str], shapes: &[OperandShape]) -> Option<&'static Later> {
    rows(mnemonic).find(|l| l.fits(words) && l.operands.fit(shapes))
}

/// The form with these words and any operands.
pub fn find_words(mnemonic: &str, words: &[&str]) -> Option<&'static Later> {
    rows(mnemonic).find(|l| l.fits(words) && l.operands.with.is_none())
}

/// The first row of a mnemonic.
pub fn of_mnemonic(mnemonic: &str) -> Option<&'static Later> {
    rows(mnemonic).min_by_key(|l| l.version())
}
