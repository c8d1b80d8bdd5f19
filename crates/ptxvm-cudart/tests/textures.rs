//! Texture and surface objects and references of the runtime, from a C program.

mod support;

#[test]
fn objects_and_references_are_bound_read_and_described() {
    let Some(folder) = support::program("textures") else { return };
    let output = folder.command().output().expect("it starts");
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{said}", output.status);
}
