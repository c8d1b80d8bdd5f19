//! Graphs of the runtime, from a C program: built, captured, updated, launched.

mod support;

#[test]
fn graphs_are_built_captured_and_launched() {
    let Some(folder) = support::program("graphs") else { return };
    let output = folder.command().output().expect("it starts");
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{said}", output.status);
}
