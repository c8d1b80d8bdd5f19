//! Libraries of device code, mipmapped arrays, and attributes of streams, from a C program.

mod support;

#[test]
fn libraries_levels_and_attributes() {
    let Some(folder) = support::program("library") else { return };
    let output = folder.command().output().expect("it starts");
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{said}", output.status);
}
