//! Copies of bytes and rows to, from and between arrays, from a C program.

mod support;

#[test]
fn bytes_and_rows_go_to_arrays_and_back() {
    let Some(folder) = support::program("arrays") else { return };
    let output = folder.command().output().expect("it starts");
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{said}", output.status);
}
