//! Several devices and memory between processes, from a C program.

mod support;

#[test]
fn two_devices_and_two_processes() {
    let Some(folder) = support::program("devices") else { return };
    let output = folder.command().env("PTXVM_DEVICES", "2").output().expect("it starts");
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{said}", output.status);
}
