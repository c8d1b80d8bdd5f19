//! What is bound (here), what every step keeps ([`lanes`]), and whether steps compute the meanings ([`values`]).

mod lanes;
mod machine;
mod values;

use super::*;
use ptx::isa::form::{Item, Part};
use ptx::isa::match_mods;

/// Every way to write the modifiers of a row.
fn spellings(row: RowId) -> Vec<Mods> {
    let form = row.form();
    let part = |part: &Part| -> Vec<Vec<&'static str>> {
        match part {
            Part::Word(_, word) => vec![vec![word.text()]],
            Part::Set(index) => form.sets[*index].values.iter().map(|(word, _)| vec![word.text()]).collect(),
        }
    };
    let parts = |all: &[Part]| all.iter().fold(vec![Vec::new()], |words, p| product(&words, &part(p)));
    fn items(all: &[Item], parts: &dyn Fn(&[Part]) -> Vec<Vec<&'static str>>) -> Vec<Vec<&'static str>> {
        all.iter().fold(vec![Vec::new()], |words, item| {
            let next = match item {
                Item::One(one) => parts(std::slice::from_ref(one)),
                Item::Opt(some) => [vec![Vec::new()], parts(some)].concat(),
                Item::Group(all) => parts(all),
                Item::AnyOrder(inner) => items(inner, parts),
            };
            product(&words, &next)
        })
    }
    let mut found = Vec::new();
    for words in items(&form.suffix, &parts) {
        let ours = match_mods(form.mnemonic, &words).into_iter().filter(|(other, _)| *other == row);
        found.extend(ours.map(|(_, mods)| mods));
    }
    found
}

fn product(left: &[Vec<&'static str>], right: &[Vec<&'static str>]) -> Vec<Vec<&'static str>> {
    left.iter().flat_map(|l| right.iter().map(move |r| [l.clone(), r.clone()].concat())).collect()
}

/// Whether the row's rules allow these modifiers together.
fn is_legal(row: RowId, mods: &Mods) -> bool {
    row.row().rules.iter().all(|rule| ptx::isa::rule::mods_error(*rule, mods).is_none())
}

/// Rows of PTX 6.4 that no one has bound yet; the list may only become shorter.
const MISSING: &[&str] = &["tex", "tld4", "txq", "istypep", "suld", "sust", "sured", "suq", "wmma", "mma"];

#[test]
fn everything_else_of_ptx_6_4_is_bound() {
    let mut unbound = Vec::new();
    for row in RowId::all() {
        let form = row.form();
        if MISSING.contains(&form.mnemonic) || form.gate.ptx.is_some_and(|v| v > ptx::isa::Version::new(6, 4))
        {
            continue;
        }
        let all = spellings(row);
        assert!(!all.is_empty(), "`{}` has no spelling", form.row.syntax);
        for mods in all {
            if is_legal(row, &mods) && !supported(row, &mods) {
                unbound.push(format!("{}{mods}", form.mnemonic));
            }
        }
    }
    assert!(
        unbound.is_empty(),
        "{} forms, among them {:#?}",
        unbound.len(),
        &unbound[..unbound.len().min(150)]
    );
}
