//! Tests of the table: every row parses, no text matches two rows, and the manual's forms and errors give the
//! right results.

mod forms;

use std::collections::BTreeSet;

use super::form::{Form, Item, OperandForm, Part};
use super::matching::{bind, match_mods};
use super::*;

fn shape(body: Body) -> OperandShape {
    body.into()
}

/// Every shape of a written operand, one per kind.
fn all_shapes() -> Vec<OperandShape> {
    let bodies = [
        Body::Name,
        Body::Imm,
        Body::Vector(1),
        Body::Vector(2),
        Body::Vector(4),
        Body::Address,
        Body::Indexed,
        Body::Brackets(2),
        Body::Brackets(3),
        Body::Pair,
        Body::List(1),
        Body::Sink,
    ];
    let mut all: Vec<OperandShape> = bodies.into_iter().map(shape).collect();
    all.push(OperandShape { not: true, ..shape(Body::Name) });
    all.push(OperandShape { minus: true, ..shape(Body::Name) });
    all.push(OperandShape { selector: true, ..shape(Body::Name) });
    all
}

/// All operand lists that a form accepts, with one shape per kind; at most `cap`.
fn operand_lists(form: &Form, mods: &Mods, cap: usize) -> Vec<Vec<OperandShape>> {
    let shapes = all_shapes();
    let mut all: Vec<Vec<OperandShape>> = vec![vec![]];
    for operand in &form.operands {
        let mut next = if operand.optional { all.clone() } else { Vec::new() };
        for list in &all {
            for shape in shapes.iter().filter(|s| operand.accepts(mods, **s)) {
                next.push([list.as_slice(), &[*shape]].concat());
            }
        }
        next.truncate(cap);
        all = next;
    }
    all
}

fn texts(words: &[Word]) -> Vec<&'static str> {
    words.iter().map(|w| w.text()).collect()
}

#[test]
fn every_row_parses() {
    for row in table::rows() {
        if let Err(message) = Form::parse(row) {
            panic!("`{}`: {message}", row.syntax);
        }
    }
}

#[test]
fn every_set_is_used_and_every_kind_names_an_operand() {
    fn names(operands: &[OperandForm]) -> Vec<&'static str> {
        let mut all = Vec::new();
        for o in operands {
            all.push(o.name);
            all.extend(o.second.iter().map(|(s, _)| s.name));
            all.extend(names(&o.members));
        }
        all
    }
    for id in RowId::all() {
        let (row, form) = (id.row(), id.form());
        let parts: Vec<Part> = form.suffix.iter().flat_map(Item::parts).collect();
        let uses = |set: usize| parts.iter().any(|p| matches!(p, Part::Set(i) if *i == set));
        assert!((0..form.sets.len()).all(uses), "`{}` has an unused set", row.syntax);
        let names = names(&form.operands);
        for entry in row.opnds.split_whitespace() {
            let name = entry.split(':').next().unwrap();
            assert!(names.contains(&name), "`{}` has no operand `{name}`", row.syntax);
        }
        // `literal gates` must name words of the syntax
        for (word, _) in &form.word_gates {
            assert!(row.syntax.contains(word.text()), "`{}` has no word `{}`", row.syntax, word.text());
        }
        let literals =
            form.suffix.iter().filter(|i| matches!(i, Item::One(Part::Word(Slot::Type, _)))).count();
        assert!(literals <= 1, "`{}` has two literal types", row.syntax);
    }
}

#[test]
fn every_op_has_a_row() {
    let with: BTreeSet<Op> = RowId::all().map(|r| r.row().op).collect();
    let without: Vec<_> = Op::ALL.iter().filter(|op| !with.contains(op)).collect();
    assert!(without.is_empty(), "{without:?}");
}

/// The texts that a row generates match that row, and no other row of the mnemonic.
#[test]
fn no_text_matches_two_rows() {
    let mut count = 0;
    for id in RowId::all() {
        let form = id.form();
        for suffix in form.suffixes() {
            count += 1;
            let words = texts(&suffix);
            let candidates = match_mods(form.mnemonic, &words);
            let own = candidates.iter().find(|(r, _)| *r == id);
            let name = format!("{}.{}", form.mnemonic, words.join("."));
            let Some((_, mods)) = own else { panic!("`{name}` does not match its row") };
            assert_eq!(mods.given().len(), suffix.len(), "{name}");
            assert!(mods.all().len() < Mods::CAPACITY, "{name}");
            if candidates.len() == 1 {
                continue;
            }
            for shapes in operand_lists(form, mods, 2000) {
                assert!(bind(form, mods, &shapes).is_ok(), "{name} {shapes:?}");
                for (other, mods) in candidates.iter().filter(|(r, _)| *r != id) {
                    let both = bind(other.form(), mods, &shapes).is_ok();
                    assert!(!both, "`{name}` {shapes:?} matches `{}` too", other.row().syntax);
                }
            }
        }
    }
    assert!(count > 5000, "{count}");
}

/// The list of later forms parses, and no text of the table is in it.
#[test]
fn later_forms_have_no_rows() {
    for l in later::LATER {
        let words: Vec<&str> = l.since.split(' ').collect();
        assert!(words.len() == l.targets().count() + 1, "{}: {}", l.syntax, l.since);
        assert!(l.version() >= Version::new(6, 5), "{}", l.syntax);
        assert!(!l.introduced().is_empty());
    }
    let mut both = BTreeSet::new();
    for id in RowId::all() {
        let form = id.form();
        for suffix in form.suffixes() {
            let words = texts(&suffix);
            if later::find_words(form.mnemonic, &words).is_none() {
                continue;
            }
            let mods = match_mods(form.mnemonic, &words);
            let Some((_, mods)) = mods.iter().find(|(row, _)| *row == id) else { continue };
            // Modifiers that a rule of the row excludes may form a later instruction.
            if id.row().rules.iter().any(|rule| rule::mods_error(*rule, mods).is_some()) {
                continue;
            }
            for shapes in operand_lists(form, mods, 200) {
                let found = later::find(form.mnemonic, &words, &shapes);
                if found.is_some() {
                    both.insert(format!("{}.{}", form.mnemonic, words.join(".")));
                }
            }
        }
    }
    assert!(both.is_empty(), "these are also later: {both:?}");
}

/// The project's feature ids of the instructions, chapters 9.7.1 to 9.7.17: each is covered by a row, except
/// those that are no forms.
#[test]
fn every_feature_has_a_row() {
    // Guards and braces belong to the parser, falling off the end to lowering; `suld.p` and the address of a
    // label were removed.
    const NOT_FORMS: &[&str] = &["ins.mov.label", "suld.p", "cf.braces", "cf.guard", "cf.fallthrough"];
    let features: BTreeSet<&str> = include_str!("features.txt").lines().collect();
    let named: BTreeSet<&str> = RowId::all().flat_map(|r| r.row().ids.iter().copied()).collect();
    let missing: Vec<_> = features.difference(&named).filter(|id| !NOT_FORMS.contains(id)).collect();
    assert!(missing.is_empty(), "no row for {missing:?}");
    let unknown: Vec<_> = named.difference(&features).filter(|id| **id != "opnd.vec.mov_v").collect();
    assert!(unknown.is_empty(), "rows name {unknown:?}");
}

#[test]
fn sections_and_briefs_are_given() {
    for id in RowId::all() {
        let row = id.row();
        assert!(row.section.split('.').all(|n| n.parse::<u8>().is_ok()), "`{}`: {}", row.syntax, row.section);
        assert!(!row.brief.is_empty() && !row.brief.ends_with('.'), "`{}`", row.syntax);
    }
}
