//! Effects of a trap in the runtime, with and without recovery. The program is C. Without a C compiler the
//! test prints that and passes.

mod support;

fn run(mode: &str, recover: &str) {
    let Some(folder) = support::program("traps") else { return };
    let output = folder.command().arg(mode).env("PTXVM_RECOVER", recover).output().expect("it starts");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{mode}: {}\n{out}{err}", output.status);
    assert!(err.contains("illegal address"), "the report is there: {err}");
}

#[test]
fn an_error_of_a_trap_stays_until_the_device_is_reset() {
    run("stays", "0");
}

#[test]
fn with_recovery_the_test_after_one_that_traps_is_right() {
    run("recovers", "1");
}
