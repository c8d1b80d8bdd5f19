//! The litmus tests of `tests/litmus`: each has the verdict that its comments derive, and each rule decides
//! some verdict.
//!
//! Comments in a test's header contain the expectations: `// expect: Ok`, optionally `// model: ptx-7.5`, `//
//! check: races|liveness`, the rows of the inventory that it covers, and `// without RULE[, RULE]: VERDICT`,
//! the verdict after these rules are removed from the model.

use ptx_model::{Model, Options, Rule, Rules};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What a test says of itself.
struct Case {
    name: String,
    text: String,
    expect: String,
    model: Model,
    check: String,
    without: Vec<(Vec<Rule>, String)>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/litmus")
}

fn cases() -> Vec<Case> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder())
        .expect("tests/litmus exists")
        .map(|entry| entry.expect("it can be listed").path())
        .filter(|path| path.extension().is_some_and(|e| e == "litmus"))
        .collect();
    files.sort();
    files.iter().map(|file| case(file)).collect()
}

fn case(file: &Path) -> Case {
    let text = std::fs::read_to_string(file).expect("it can be read");
    let name = file.file_stem().expect("it has a name").to_string_lossy().into_owned();
    let value = |key: &str| {
        text.lines().find_map(|line| line.strip_prefix(&format!("// {key}: "))).map(str::to_owned)
    };
    let without = text.lines().filter_map(|line| line.strip_prefix("// without ")).map(|line| {
        let (rules, verdict) = line.split_once(": ").unwrap_or_else(|| panic!("{name}: `{line}`"));
        let rule = |rule: &str| Rule::named(rule).unwrap_or_else(|| panic!("{name}: no rule `{rule}`"));
        (rules.split(", ").map(rule).collect(), verdict.to_owned())
    });
    let without = without.collect();
    let model = value("model").map_or(Model::Ptx60, |m| Model::named(&m).expect("a model"));
    let expect = value("expect").unwrap_or_else(|| panic!("{name} says no verdict"));
    let check = value("check").unwrap_or_else(|| "clause".to_owned());
    Case { name, text, expect, model, check, without }
}

fn verdict(case: &Case, rules: Rules) -> String {
    let test = ptx_model::parse(&case.text).unwrap_or_else(|error| panic!("{}: {error}", case.name));
    let options = Options { model: case.model, rules, ..Options::default() };
    let holds = match case.check.as_str() {
        "clause" => ptx_model::decide(&test, &options).map(|verdict| verdict.holds),
        "races" => ptx_model::races(&test, &options).map(|races| races.is_empty()),
        "liveness" => ptx_model::liveness(&test, &options).map(|liveness| liveness.ends),
        other => panic!("{}: no check `{other}`", case.name),
    };
    match holds {
        Ok(true) => "Ok".to_owned(),
        Ok(false) => "No".to_owned(),
        Err(error) => format!("error: {error}"),
    }
}

#[test]
fn every_test_has_the_verdict_that_it_argues() {
    let cases = cases();
    assert!(cases.len() > 200, "the tests are there");
    let mut wrong = Vec::new();
    for case in &cases {
        let found = verdict(case, Rules::default());
        if found != case.expect {
            wrong.push(format!("{}: {} expected, {found} found", case.name, case.expect));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_rule_decides_some_verdict() {
    let mut wrong = Vec::new();
    let mut decisive = BTreeSet::new();
    for case in cases() {
        for (rules, expect) in &case.without {
            let without = rules.iter().fold(Rules::default(), |all, rule| all.without(*rule));
            let found = verdict(&case, without);
            let names: Vec<&str> = rules.iter().map(|rule| rule.name()).collect();
            if found != *expect {
                wrong.push(format!(
                    "{} without {}: {expect} expected, {found} found",
                    case.name,
                    names.join(", ")
                ));
            } else if let [rule] = rules[..]
                && *expect != case.expect
            {
                decisive.insert(rule);
            }
        }
    }
    for rule in Rule::ALL.iter().filter(|rule| !decisive.contains(rule)) {
        wrong.push(format!("no test changes its verdict without {}", rule.name()));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Every outcome that a GPU has shown ([`seen.tsv`](../../../tests/litmus/seen.tsv)) is allowed.
#[test]
fn outcomes_of_a_gpu_are_allowed() {
    let cases = cases();
    let seen = std::fs::read_to_string(folder().join("seen.tsv")).expect("it can be read");
    let (mut wrong, mut tests) = (Vec::new(), BTreeSet::new());
    for line in seen.lines().filter(|line| !line.starts_with('#')) {
        let [name, count, outcome] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("`{line}`") };
        let case = cases.iter().find(|case| case.name == name).unwrap_or_else(|| panic!("no test `{name}`"));
        // The clause stands behind the last row.
        let end = case.text.rfind(';').expect("a row") + 1;
        let text = format!("{}\nexists ({outcome})\n", &case.text[..end]);
        let test = ptx_model::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let options = Options { model: case.model, ..Options::default() };
        if !ptx_model::decide(&test, &options).expect("it is small").holds {
            wrong.push(format!("{name}: {count} times {outcome}"));
        }
        tests.insert(name);
    }
    assert!(tests.len() > 140, "{} tests", tests.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The text and the picture of an execution name the barriers, with the results of their reductions.
#[test]
fn executions_show_barriers() {
    let text = "PTX t\n{ x = 0; P0:p0 = 1; }\n P0@cta 0,gpu 0,warp 3,lane 4 | P1@cta 0,gpu 0,warp 3,lane 5 ;\n \
                bar.red.popc.u32 r0, 2, p0 | bar.red.popc.u32 r0, 2, !p0 ;\n \
                bar.warp.sync 0x30 | bar.warp.sync 0x30 ;\n bar.sync 1 | bar.sync 1 ;\n\
                exists (P0:r0 == 2 /\\ sw(P0:1, P1:1))\n";
    let test = ptx_model::parse(text).expect("it parses");
    let verdict = ptx_model::decide(&test, &Options::default()).expect("it is small");
    let witness = verdict.witness.expect("the clause holds");
    for shown in [witness.text(), witness.svg("t")] {
        for part in ["B red.popc 2 = 2", "B warp.sync 0x30", "B sync 1", "P0:r0=2"] {
            assert!(shown.contains(part), "`{part}` is missing:\n{shown}");
        }
    }
}
