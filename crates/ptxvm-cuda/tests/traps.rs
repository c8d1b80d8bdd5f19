//! The errors for traps, with a time limit for kernels. The library reads the environment when it starts, so
//! this is a process of its own.

mod support;

use support::Api;

const NULL: usize = 0;

/// A kernel without parameters with this body.
fn kernel(body: &str, outside: &str) -> String {
    format!(".version 6.4\n.target sm_70\n.address_size 64\n{outside}\n.visible .entry k() {{ {body} }}\0")
}

/// The error of a context after a kernel.
fn left_by(text: &str) -> i32 {
    let (api, context) = Api::with_context();
    let module = api.make("cuModuleLoadData", |out: *mut usize| (out, text.as_ptr()));
    let function = api.function(module, "k");
    api.ok("cuLaunchKernel", (function, 1u32, 1u32, 1u32, 1u32, 1u32, 1u32, 0u32, NULL, NULL, NULL));
    let status = api.call("cuCtxSynchronize", ());
    // The error is sticky.
    assert_eq!(api.call("cuCtxSynchronize", ()), status);
    assert_eq!(api.call("cuStreamCreate", (&raw mut *Box::new(0usize), 0u32)), status);
    api.ok("cuCtxDestroy_v2", (context,));
    status
}

#[test]
fn each_trap_has_its_error() {
    // SAFETY: no other thread of this process reads or writes the environment yet.
    unsafe { std::env::set_var("PTXVM_TIMEOUT", "0.3") };
    let registers = ".reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .pred %p;";
    let assertion = "
        .extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 s);
        .global .align 1 .b8 text[2] = {65, 0};";
    let fails = format!(
        "{registers} mov.u64 %rd1, text; cvta.global.u64 %rd1, %rd1; .param .b64 m; .param .b64 f; .param .b32 l; .param .b64 n; .param .b64 s;
         st.param.b64 [m], %rd1; st.param.b64 [f], %rd1; st.param.b32 [l], 7; st.param.b64 [n], %rd1; st.param.b64 [s], 1;
         call __assertfail, (m, f, l, n, s); ret;"
    );
    assert_eq!(left_by(&kernel(&fails, assertion)), 710);
    let null =
        format!("{registers} mov.u64 %rd1, 0; ld.global.u32 %r1, [%rd1]; st.global.u32 [%rd1], %r1; ret;");
    assert_eq!(left_by(&kernel(&null, "")), 700);
    assert_eq!(left_by(&kernel("again: bra again;", "")), 702);
    assert_eq!(left_by(&kernel("trap;", "")), 719);
}
