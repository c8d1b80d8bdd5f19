//! The pages that explain diagnostic codes: each example has the result that its page states.

use ptx::check::{CheckOptions, check, unresolved};
use ptx::diag::Code;
use ptx::isa::Sm;

/// The text under a heading, and what stands behind `ptx` on its fence.
fn example<'p>(page: &'p str, heading: &str) -> Option<(&'p str, &'p str)> {
    let (_, rest) = page.split_once(&format!("\n## {heading}\n\n```ptx"))?;
    let (info, rest) = rest.split_once('\n')?;
    let (text, _) = rest.split_once("```\n")?;
    Some((text, info.trim()))
}

/// What is found in a text: names of codes.
fn found(text: &str, info: &str) -> Vec<String> {
    let gpu_name = info.strip_prefix("gpu-name=").map(|name| Sm::from_name(name).expect("an architecture"));
    let checked = check("page", text, &CheckOptions { gpu_name, strict: false });
    let mut found: Vec<String> =
        checked.diagnostics.iter().map(|d| format!("{} {}", d.code.name(), d.message)).collect();
    if let ("load", Some(module)) = (info, &checked.module) {
        found.extend(unresolved(module).iter().map(|_| Code::UnresolvedExtern.name()));
    }
    found
}

#[test]
fn every_example_does_what_its_page_says() {
    let mut mistakes = Vec::new();
    for code in Code::ALL {
        let (name, page) = (code.name(), code.page());
        let wrong = example(page, "Wrong").map(|(text, info)| found(text, info));
        let right = example(page, "Right").map(|(text, info)| found(text, info));
        if !wrong.as_ref().is_some_and(|found| found.len() == 1 && found[0].starts_with(&name)) {
            mistakes.push(format!("{name} wrong: {wrong:?}"));
        }
        if right != Some(Vec::new()) {
            mistakes.push(format!("{name} right: {right:?}"));
        }
    }
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}

#[test]
fn every_page_says_something_and_names_its_section() {
    for code in Code::ALL {
        let page = code.page();
        let (text, _) = page.split_once("\n\n## Wrong\n").expect("a text before the examples");
        assert!(text.len() > 40, "{}", code.name());
        let last = page.trim_end().lines().last().expect("a line");
        assert!(last.starts_with("PTX ISA §"), "{}", code.name());
    }
}
