//! Graphs of the runtime, from C programs: built, captured, updated, launched.

mod support;

fn passes(name: &str) {
    let Some(folder) = support::program(name) else { return };
    let output = folder.command().output().expect("it starts");
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{said}", output.status);
}

#[test]
fn graphs_are_built_captured_and_launched() {
    passes("graphs");
}

#[test]
fn nodes_of_any_type_are_added_described_and_changed() {
    passes("nodes");
}
