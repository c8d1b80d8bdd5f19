//! `PTXVM_STATS`: a line for each kernel that ran. The library reads it when it starts and writes to standard
//! error, so the launches are in a process of their own.

mod support;

use std::process::Command;
use support::Api;

const NULL: usize = 0;
/// Set in the process that launches.
const CHILD: &str = "PTXVM_TEST_LAUNCHES";

#[test]
fn launches() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let (api, _) = Api::with_context();
    let module = api.module();
    let data = api.alloc(4 * 64);
    assert_eq!(api.launch(api.function(module, "double_all"), (2, 32), NULL, data), 0);
    assert_eq!(api.launch(api.function(module, "count"), (1, 96), NULL, data), 0);
    api.ok("cuCtxSynchronize", ());
}

/// The standard error of a process with launches.
fn said(stats: &str) -> String {
    let program = std::env::current_exe().expect("this program");
    let output = Command::new(program)
        .args(["--exact", "launches", "--nocapture"])
        .env(CHILD, "1")
        .env("PTXVM_STATS", stats)
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn each_kernel_that_ran_has_a_line() {
    let said = said("1");
    let lines: Vec<&str> = said.lines().filter(|line| line.starts_with("ptxvm: `")).collect();
    let [double, count] = lines[..] else { panic!("{said}") };
    // 11 instructions for each of 64 threads in 2 warps, and 3 for each of 96 threads in 3 warps, counted in
    // the text.
    for (line, name, threads, warps) in
        [(double, "double_all", 64 * 11, 2 * 11), (count, "count", 96 * 3, 3 * 3)]
    {
        assert!(line.starts_with(&format!("ptxvm: `{name}`: ")), "{line}");
        assert!(
            line.contains(&format!(" {threads} thread instructions, {warps} warp instructions")),
            "{line}"
        );
        // Such short launches are not compiled, for a reason.
        assert!(line.contains("; not compiled: "), "{line}");
    }
}

/// A kernel that calls a device function, which calls another.
const CALLS: &str = "
.version 6.4
.target sm_70
.address_size 64
.func inner(.param .u64 at) { .reg .b64 %rd; ld.param.u64 %rd, [at]; st.global.u32 [%rd], 5; ret; }
.func outer(.param .u64 at)
{
    // A function that may call itself is not inlined.
    .reg .pred %p; .reg .b64 %rd; .param .b64 p;
    ld.param.u64 %rd, [at]; st.param.b64 [p], %rd; call.uni inner, (p);
    setp.ne.u64 %p, %rd, %rd; @%p call outer, (p); ret;
}
.func unused() { ret; }
.visible .entry calls(.param .u64 at)
{
    .reg .b64 %rd; .param .b64 p;
    ld.param.u64 %rd, [at]; st.param.b64 [p], %rd; call.uni outer, (p); ret;
}
";

#[test]
fn launches_with_calls() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let (api, _) = Api::with_context();
    let text = std::ffi::CString::new(CALLS).expect("no zero in it");
    let module = api.make("cuModuleLoadData", |out: *mut usize| (out, text.as_ptr()));
    let data = api.alloc(4);
    assert_eq!(api.launch(api.function(module, "calls"), (1, 32), NULL, data), 0);
    api.ok("cuCtxSynchronize", ());
    assert_eq!(api.read(data, 1), [5]);
}

#[test]
fn device_functions_without_native_code_are_named() {
    let program = std::env::current_exe().expect("this program");
    let mut child = Command::new(program);
    child.args(["--exact", "launches_with_calls", "--nocapture"]).env(CHILD, "1");
    let output = child.env("PTXVM_STATS", "1").env("PTXVM_ENGINE", "jit").output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    if said.contains("the interpreter, many times slower") {
        // There is no compiler on this machine.
        return;
    }
    assert!(said.contains("; device functions without native code: `outer`, `inner`\n"), "{said}");
}

#[test]
fn without_it_nothing_is_said() {
    assert!(!said("0").contains("thread instructions"));
}
