//! `ptxvm isa` reports that the interpreter executes all of PTX 6.4.

use ptxvm::Support;

/// The version of PTX that is the goal.
const GOAL: (u32, u32) = (6, 4);

fn version(text: &str) -> (u32, u32) {
    let (major, minor) = text.split_once('.').expect("a version has two parts");
    (major.parse().expect("a number"), minor.parse().expect("a number"))
}

#[test]
fn every_form_of_the_goal_executes() {
    let forms = ptxvm::isa(None);
    let due: Vec<_> = forms.iter().filter(|form| version(&form.ptx) <= GOAL).collect();
    assert!(due.len() > 250, "{} forms", due.len());
    let missing: Vec<_> = due
        .iter()
        .filter(|form| form.interpreted != Support::Yes)
        .map(|form| format!("{}: {}", form.interpreted.word(), form.syntax))
        .collect();
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
