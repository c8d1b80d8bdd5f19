//! The error of a trap in its context: every function that needs the context returns it until the context is
//! destroyed. Other contexts, and functions about the process or a device, still work.

mod support;

use support::Api;

const NULL: usize = 0;
/// `CUDA_ERROR_LAUNCH_FAILED`
const FAILED: i32 = 719;

/// Functions that work without the current context, or end it. CUDA documents for none of them that it
/// returns errors of earlier launches in the current context, or they are the way to end the error.
const INDEPENDENT: &[&str] = &[
    "cuCtxCreate_v2",
    "cuCtxCreate_v3",
    "cuCtxCreate_v4",
    "cuCtxDestroy",
    "cuCtxDestroy_v2",
    "cuCtxDetach",
    "cuCtxGetCurrent",
    "cuCtxGetDevice",
    "cuCtxGetDevice_v2",
    "cuCtxPopCurrent",
    "cuCtxPopCurrent_v2",
    "cuCtxPushCurrent",
    "cuCtxPushCurrent_v2",
    "cuCtxSetCurrent",
    "cuDriverGetVersion",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuGetExportTable",
    "cuGetProcAddress",
    "cuGetProcAddress_ptsz",
    "cuGetProcAddress_v2",
    "cuGetProcAddress_v2_ptsz",
    "cuInit",
    "cuModuleGetLoadingMode",
    "cuProfilerInitialize",
    "cuProfilerStart",
    "cuProfilerStop",
    "cuThreadExchangeStreamCaptureMode",
];

/// The implemented functions, from the documentation's page.
fn implemented() -> Vec<&'static str> {
    let page = include_str!("../../../docs/cuda-entry-points.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let names =
        rows.filter_map(|row| row.split_once("` | ")).filter(|(_, brief)| !brief.starts_with("refused"));
    names.map(|(name, _)| name).collect()
}

/// A context with the error of a trap.
fn struck() -> (Api, usize) {
    let (api, context) = Api::with_context();
    let stops = api.function(api.module(), "stops");
    assert_eq!(api.launch(stops, (1, 1), NULL, 0), 0);
    assert_eq!(api.call("cuCtxSynchronize", ()), FAILED);
    (api, context)
}

#[test]
fn every_function_that_needs_the_context_answers_with_its_trap() {
    let (api, context) = struck();
    let words = [0; 11];
    let mut asked = 0;
    for name in implemented() {
        if INDEPENDENT.contains(&name) || name.starts_with("cuDevice") || !name.starts_with("cu") {
            continue;
        }
        assert_eq!(api.call_words(name, &words), FAILED, "{name}");
        asked += 1;
    }
    assert!(asked > 250, "{asked} functions");
    api.ok("cuCtxDestroy_v2", (context,));
}

#[test]
fn devices_and_other_contexts_work_on() {
    let (api, context) = struck();
    let count = api.make("cuDeviceGetCount", |out: *mut i32| (out,));
    assert!(count > 0);
    let version = api.make("cuDriverGetVersion", |out: *mut i32| (out,));
    assert!(version >= 12000);
    // Another context replaces it and works; with the first one current again, every call fails.
    let other = api.make("cuCtxCreate_v2", |out: *mut usize| (out, 0u32, 0i32));
    let at = api.alloc(256);
    let double = api.function(api.module(), "double_all");
    api.ok("cuMemsetD32_v2", (at, 21u32, 32usize));
    assert_eq!(api.launch(double, (1, 32), NULL, at), 0);
    api.ok("cuCtxSynchronize", ());
    let mut words = [0u32; 32];
    api.ok("cuMemcpyDtoH_v2", (words.as_mut_ptr(), at, 128usize));
    assert_eq!(words, [42; 32]);
    api.ok("cuCtxSetCurrent", (context,));
    assert_eq!(api.call("cuMemAlloc_v2", (&raw mut *Box::new(0u64), 256usize)), FAILED);
    // It can be destroyed, and a new one works.
    api.ok("cuCtxDestroy_v2", (context,));
    let new = api.make("cuCtxCreate_v2", |out: *mut usize| (out, 0u32, 0i32));
    api.alloc(256);
    for context in [new, other] {
        api.ok("cuCtxDestroy_v2", (context,));
    }
}

#[test]
fn a_primary_context_that_is_reset_is_sound() {
    let api = Api::open();
    let primary = api.make("cuDevicePrimaryCtxRetain", |out: *mut usize| (out, 0i32));
    api.ok("cuCtxSetCurrent", (primary,));
    let stops = api.function(api.module(), "stops");
    assert_eq!(api.launch(stops, (1, 1), NULL, 0), 0);
    assert_eq!(api.call("cuCtxSynchronize", ()), FAILED);
    api.ok("cuDevicePrimaryCtxReset_v2", (0i32,));
    let primary = api.make("cuDevicePrimaryCtxRetain", |out: *mut usize| (out, 0i32));
    api.ok("cuCtxSetCurrent", (primary,));
    api.alloc(256);
    api.ok("cuCtxSynchronize", ());
    api.ok("cuDevicePrimaryCtxRelease_v2", (0i32,));
}

#[test]
fn what_the_call_itself_refuses_leaves_nothing() {
    let (api, context) = Api::with_context();
    let module = api.module();
    let nothing = api.function(module, "nothing");
    // Too many threads, no threads, too much shared memory, a wrong handle, a wrong address, a rejected text.
    assert_eq!(api.launch(nothing, (1, 4096), NULL, 0), 1);
    assert_eq!(api.launch(nothing, (0, 1), NULL, 0), 1);
    let shared = (nothing, 1u32, 1u32, 1u32, 1u32, 1u32, 1u32, 1u32 << 30, NULL, NULL, NULL);
    assert_eq!(api.call("cuLaunchKernel", shared), 1);
    assert_eq!(api.launch(nothing, (1, 1), 0xdead0, 0), 400);
    assert_eq!(api.call("cuMemFree_v2", (0x1234u64,)), 1);
    let wrong = c".version 6.4\n.target sm_70\nwrong";
    assert_eq!(api.call("cuModuleLoadData", (&raw mut *Box::new(0usize), wrong.as_ptr())), 218);
    api.ok("cuCtxSynchronize", ());
    assert_eq!(api.launch(nothing, (1, 1), NULL, 0), 0);
    api.ok("cuCtxSynchronize", ());
    api.ok("cuCtxDestroy_v2", (context,));
}

#[test]
fn a_trap_ends_what_else_runs_in_its_context() {
    let (api, context) = Api::with_context();
    let module = api.module();
    let (wait, stops) = (api.function(module, "wait"), api.function(module, "stops"));
    let flag = api.alloc(256);
    api.ok("cuMemsetD32_v2", (flag, 0u32, 64usize));
    // The streams do not wait for the default stream, which may set memory after the call returned.
    api.ok("cuCtxSynchronize", ());
    let streams: Vec<usize> =
        (0..2).map(|_| api.make("cuStreamCreate", |out: *mut usize| (out, 1u32))).collect();
    // The kernel would wait forever, because nothing sets the flag.
    assert_eq!(api.launch(wait, (1, 1), streams[0], flag), 0);
    assert_eq!(api.launch(stops, (1, 1), streams[1], 0), 0);
    assert_eq!(api.call("cuStreamSynchronize", (streams[1],)), FAILED);
    assert_eq!(api.call("cuStreamSynchronize", (streams[0],)), FAILED);
    api.ok("cuCtxDestroy_v2", (context,));
}

#[test]
fn errors_that_cuda_does_not_keep_are_answered_once() {
    // Work of another library that fails at its turn, with `CUDA_ERROR_OUT_OF_MEMORY`.
    extern "C" fn fails(_data: usize) -> i32 {
        2
    }
    extern "C" fn release(_data: usize) {}
    let (fails, release): (extern "C" fn(usize) -> i32, extern "C" fn(usize)) = (fails, release);
    let (api, context) = Api::with_context();
    for _ in 0..2 {
        api.ok("ptxvmSubmit", (NULL, 0u32, fails, release, 0usize));
        assert_eq!(api.call("cuCtxSynchronize", ()), 2);
        api.ok("cuCtxSynchronize", ());
        api.alloc(256);
    }
    api.ok("cuCtxDestroy_v2", (context,));
}
