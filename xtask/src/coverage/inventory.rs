//! The inventory of the language, `tests/coverage/inventory.tsv`, and the statements that a test of each row
//! must contain.
//!
//! Invariant: ids are unique and include every id of the instruction table.

use super::statement::Statement;
use std::collections::BTreeMap;

/// A feature of the language.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) id: String,
    pub(super) family: String,
    pub(super) syntax: String,
    /// The mistakes that must be refused; `-` for none.
    pub(super) errors: String,
    /// The opcodes of statements that use the row, if its syntax names an instruction.
    keys: Vec<Key>,
}

/// A mnemonic, with the suffix words that distinguish it from other rows: `add` with `sat` and `s32`.
#[derive(Debug)]
struct Key {
    mnemonic: String,
    words: Vec<String>,
}

/// Suffix words that are literal in the syntax of a row.
const LITERAL: &str = "sat f16 f16x2 f32 f64 s32 b16 cc wide hi lo approx full ftz to nc idx sync volatile relaxed acquire release \
     shiftamt noftz add inc dec exch cas ballot any all uni up down bfly idx popc arrive red warp min max global shared local const \
     param generic mask load store mma xor base level grad 1d 2d 3d a1d a2d cube acube 2dms a2dms b p \
     width array_size num_mipmap_levels num_samples normalized_coords force_unnormalized_coords memory_layout sc";

impl Row {
    /// Whether its syntax begins with a mnemonic.
    pub(super) fn names_an_instruction(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Whether a statement can use the row. If its syntax names no instruction, any can.
    pub(super) fn fits(&self, statement: &Statement<'_>) -> bool {
        self.keys.is_empty() || self.is_its_list(statement) || self.keys.iter().any(|key| key.fits(statement))
    }

    /// Whether a statement can be an attempt at the row: the mnemonic or a suffix word matches.
    pub(super) fn resembles(&self, statement: &Statement<'_>) -> bool {
        let known = |key: &Key, word| key.mnemonic == word || key.words.iter().any(|w| w == word);
        self.fits(statement)
            || self.keys.iter().any(|key| statement.opcode.split('.').any(|word| known(key, word)))
    }

    /// Indexed branches and indirect calls have lists of targets, prototypes and tables, which are
    /// declarations.
    fn is_its_list(&self, statement: &Statement<'_>) -> bool {
        self.id.starts_with("cf.") && statement.opcode.starts_with('.')
    }

    /// The requirement of [`Row::fits`], in words.
    pub(super) fn wanted(&self) -> String {
        let key =
            |k: &Key| std::iter::once(&k.mnemonic).chain(&k.words).cloned().collect::<Vec<_>>().join(".");
        self.keys.iter().map(key).collect::<Vec<_>>().join(" or ")
    }

    /// The mnemonic of its syntax.
    pub(super) fn mnemonics(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(|key| key.mnemonic.as_str())
    }
}

impl Key {
    fn fits(&self, statement: &Statement<'_>) -> bool {
        let mut words = statement.opcode.split('.');
        words.next() == Some(&self.mnemonic) && {
            let words: Vec<&str> = words.collect();
            self.words.iter().all(|wanted| words.contains(&wanted.as_str()))
        }
    }

    /// The key of one syntax; `None` if it does not begin with one of the `mnemonics` and a suffix or an
    /// operand.
    fn of(syntax: &str, mnemonics: &[&str]) -> Option<Self> {
        let end = syntax.find([' ', '.', '{']).unwrap_or(syntax.len());
        let (mnemonic, rest) = syntax.split_at(end);
        if !mnemonics.contains(&mnemonic) {
            return None;
        }
        // Words outside of braces are always present.
        let (mut suffix, mut depth) = (String::new(), 0);
        for c in rest.chars() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ' ' => break,
                _ if depth == 0 => suffix.push(c),
                _ => {}
            }
        }
        if suffix.contains('/') {
            suffix.clear();
        }
        let literal = |word: &&str| LITERAL.split_whitespace().any(|l| l == *word);
        let words = suffix.split('.').filter(literal).map(str::to_owned).collect();
        Some(Self { mnemonic: mnemonic.to_owned(), words })
    }
}

/// Every row, by id, and the families in order.
#[derive(Debug)]
pub(super) struct Inventory {
    pub(super) rows: Vec<Row>,
    places: BTreeMap<String, usize>,
}

impl Inventory {
    /// Parses the inventory, and compares it with the instruction table.
    ///
    /// # Errors
    /// A duplicate id, a malformed line, or an id of the table that is not in the inventory.
    pub(super) fn read(text: &str, forms: &[ptxvm::Form]) -> Result<Self, String> {
        let mnemonics: Vec<&str> = forms.iter().map(|form| form.mnemonic).collect();
        let mut rows = Vec::new();
        let mut places = BTreeMap::new();
        for (index, line) in text.lines().enumerate().skip(1) {
            let columns: Vec<&str> = line.split('\t').collect();
            let [id, family, _, kind, syntax, .., errors] = columns[..] else {
                return Err(format!("inventory.tsv:{}: too few columns", index + 1));
            };
            let keys = match kind {
                // Names of conditions and predicates in these families are also names of instructions.
                _ if ["cmp.", "pred.", "fp."].iter().any(|prefix| id.starts_with(prefix)) => Vec::new(),
                "instruction form" => {
                    syntax.split(" / ").filter_map(|s| Key::of(s.trim(), &mnemonics)).collect()
                }
                _ => Vec::new(),
            };
            if places.insert(id.to_owned(), rows.len()).is_some() {
                return Err(format!("inventory.tsv:{}: `{id}` is there twice", index + 1));
            }
            let [id, family, syntax, errors] = [id, family, syntax, errors].map(str::to_owned);
            rows.push(Row { id, family, syntax, errors, keys });
        }
        let inventory = Self { rows, places };
        for form in forms {
            if let Some(id) = form.ids.iter().find(|id| inventory.row(id).is_none()) {
                return Err(format!(
                    "`{}` of the instruction table is for `{id}`, which is no row of the inventory",
                    form.syntax
                ));
            }
        }
        Ok(inventory)
    }

    pub(super) fn row(&self, id: &str) -> Option<&Row> {
        self.places.get(id).and_then(|place| self.rows.get(*place))
    }

    /// The families, in order.
    pub(super) fn families(&self) -> Vec<&str> {
        let mut families: Vec<&str> = self.rows.iter().map(|row| row.family.as_str()).collect();
        families.sort_unstable();
        families.dedup();
        families
    }
}
