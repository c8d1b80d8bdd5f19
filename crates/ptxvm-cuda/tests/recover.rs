//! `PTXVM_RECOVER=1`: one call returns the error of a trap, and then the context works again. The library
//! reads the environment when it starts, so this is a process of its own.

mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use support::Api;

const NULL: usize = 0;
/// `CUDA_ERROR_LAUNCH_FAILED`, `..._MISALIGNED_ADDRESS`
const FAILED: i32 = 719;
const MISALIGNED: i32 = 716;

/// The library, with a current context.
fn recovering() -> (Api, usize) {
    static SET: std::sync::Once = std::sync::Once::new();
    // SAFETY: no other code of this process reads or writes the environment before this is done, or writes it
    // afterwards.
    SET.call_once(|| unsafe { std::env::set_var("PTXVM_RECOVER", "1") });
    Api::with_context()
}

/// 32 words.
fn words(api: Api, at: u64) -> [u32; 32] {
    let mut words = [0; 32];
    api.ok("cuMemcpyDtoH_v2", (words.as_mut_ptr(), at, 128usize));
    words
}

#[test]
fn the_test_after_one_that_traps_gives_right_results() {
    // Like a test suite: each test has kernels of its own, in one process and one context.
    let (api, context) = recovering();
    let test = |name: &str, value: u32| -> Result<[u32; 32], i32> {
        let kernel = api.function(api.module(), name);
        let at = api.alloc(256);
        api.ok("cuMemsetD32_v2", (at, value, 64usize));
        assert_eq!(api.launch(kernel, (1, 32), NULL, at), 0);
        match api.call("cuCtxSynchronize", ()) {
            0 => Ok(words(api, at)),
            status => Err(status),
        }
    };
    assert_eq!(test("double_all", 21), Ok([42; 32]));
    assert_eq!(test("misaligned", 1), Err(MISALIGNED));
    assert_eq!(test("double_all", 4), Ok([8; 32]));
    assert_eq!(test("stops", 1), Err(FAILED));
    assert_eq!(test("double_all", 5), Ok([10; 32]));
    api.ok("cuCtxDestroy_v2", (context,));
}

/// A stream in which a kernel waits, so that later work can be submitted before any of it runs.
struct Gate {
    api: Api,
    stream: usize,
    other: usize,
    flag: u64,
    wait: usize,
}

impl Gate {
    fn new(api: Api, module: usize) -> Self {
        let stream = || api.make("cuStreamCreate", |out: *mut usize| (out, 1u32));
        let (stream, other) = (stream(), stream());
        Self { api, stream, other, flag: api.alloc(256), wait: api.function(module, "wait") }
    }

    /// Makes later work wait.
    fn close(&self) {
        self.api.ok("cuMemsetD32_v2", (self.flag, 0u32, 1usize));
        self.api.ok("cuCtxSynchronize", ());
        assert_eq!(self.api.launch(self.wait, (1, 1), self.stream, self.flag), 0);
    }

    /// Lets all waiting work run.
    fn open(&self) {
        self.api.ok("cuMemsetD32Async", (self.flag, 1u32, 1usize, self.other));
    }

    /// Lets all waiting work run, and waits for it without a call of the API that would return its error.
    fn pass(&self) {
        static PASSED: AtomicBool = AtomicBool::new(false);
        extern "C" fn passed(_stream: usize, status: i32, _data: usize) {
            assert_eq!(status, FAILED, "a callback hears of the trap");
            PASSED.store(true, Ordering::SeqCst);
        }
        PASSED.store(false, Ordering::SeqCst);
        let callback: extern "C" fn(usize, i32, usize) = passed;
        self.api.ok("cuStreamAddCallback", (self.stream, callback, 0usize, 0u32));
        self.open();
        while !PASSED.load(Ordering::SeqCst) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

#[test]
fn what_was_made_before_the_trap_is_there_after_it() {
    let (api, context) = recovering();
    let module = api.module();
    let (double, stops) = (api.function(module, "double_all"), api.function(module, "stops"));
    let gate = Gate::new(api, module);
    let event = api.make("cuEventCreate", |out: *mut usize| (out, 0u32));
    let at = api.alloc(256);
    api.ok("cuMemsetD32_v2", (at, 3u32, 64usize));
    // One stream has a kernel, one that traps, and later work: a kernel, a copy, an event.
    gate.close();
    for (kernel, grid) in [(double, (1, 32)), (stops, (1, 1)), (double, (1, 32))] {
        assert_eq!(api.launch(kernel, grid, gate.stream, at), 0);
    }
    api.ok("cuMemsetD32Async", (at, 0u32, 64usize, gate.stream));
    api.ok("cuEventRecord", (event, gate.stream));
    gate.open();
    assert_eq!(api.call("cuEventSynchronize", (event,)), FAILED);
    // The memory is as the trap left it; later work was dropped.
    assert_eq!(words(api, at), [6; 32]);
    assert_eq!(api.launch(double, (1, 32), gate.stream, at), 0);
    api.ok("cuEventRecord", (event, gate.stream));
    api.ok("cuEventSynchronize", (event,));
    assert_eq!(words(api, at), [12; 32]);
    api.ok("cuMemFree_v2", (at,));
    api.ok("cuEventDestroy_v2", (event,));
    api.ok("cuStreamDestroy_v2", (gate.stream,));
    api.ok("cuModuleUnload", (module,));
    api.ok("cuCtxDestroy_v2", (context,));
}

#[test]
fn the_call_that_answers_with_the_trap_ends_it() {
    let (api, context) = recovering();
    let module = api.module();
    let (stops, nothing) = (api.function(module, "stops"), api.function(module, "nothing"));
    let gate = Gate::new(api, module);
    let stream = gate.stream;
    let event = api.make("cuEventCreate", |out: *mut usize| (out, 0u32));
    api.ok("cuEventRecord", (event, stream));
    let at = api.alloc(256);
    let ways: [(&str, &dyn Fn() -> i32); 10] = [
        ("cuCtxSynchronize", &|| api.call("cuCtxSynchronize", ())),
        ("cuStreamSynchronize", &|| api.call("cuStreamSynchronize", (stream,))),
        ("cuStreamQuery", &|| api.call("cuStreamQuery", (stream,))),
        ("cuEventSynchronize", &|| api.call("cuEventSynchronize", (event,))),
        ("cuEventQuery", &|| api.call("cuEventQuery", (event,))),
        ("cuMemcpyDtoH_v2", &|| api.call("cuMemcpyDtoH_v2", ([0u32; 4].as_mut_ptr(), at, 16usize))),
        ("cuMemAlloc_v2", &|| api.call("cuMemAlloc_v2", (&raw mut *Box::new(0u64), 256usize))),
        ("cuLaunchKernel", &|| api.launch(nothing, (1, 1), stream, 0)),
        ("cuMemFree_v2", &|| api.call("cuMemFree_v2", (at,))),
        ("cuEventDestroy_v2", &|| api.call("cuEventDestroy_v2", (event,))),
    ];
    for (name, way) in ways {
        gate.close();
        assert_eq!(api.launch(stops, (1, 1), stream, 0), 0, "{name}");
        gate.pass();
        assert_eq!(way(), FAILED, "{name}");
        api.ok("cuCtxSynchronize", ());
        assert_eq!(api.launch(nothing, (1, 1), stream, 0), 0, "{name}");
        api.ok("cuStreamSynchronize", (stream,));
    }
    // A call that needs no context does not return the error, and does not end the epoch.
    gate.close();
    assert_eq!(api.launch(stops, (1, 1), stream, 0), 0);
    gate.pass();
    api.make("cuDeviceGetCount", |out: *mut i32| (out,));
    api.make("cuCtxGetCurrent", |out: *mut usize| (out,));
    assert_eq!(api.call("cuCtxSynchronize", ()), FAILED);
    // A call that fails by itself does not end the epoch either.
    gate.close();
    assert_eq!(api.launch(nothing, (1, 4096), stream, 0), 1);
    assert_eq!(api.launch(stops, (1, 1), stream, 0), 0);
    gate.open();
    assert_eq!(api.call("cuStreamSynchronize", (stream,)), FAILED);
    api.ok("cuCtxDestroy_v2", (context,));
}

#[test]
fn kernels_of_other_streams_end_with_the_trap() {
    let (api, context) = recovering();
    let module = api.module();
    let (wait, stops, nothing) =
        (api.function(module, "wait"), api.function(module, "stops"), api.function(module, "nothing"));
    let flag = api.alloc(256);
    api.ok("cuMemsetD32_v2", (flag, 0u32, 64usize));
    // The streams do not wait for the default stream, which may set memory after the call returned.
    api.ok("cuCtxSynchronize", ());
    let streams: Vec<usize> =
        (0..2).map(|_| api.make("cuStreamCreate", |out: *mut usize| (out, 1u32))).collect();
    for round in 0..2 {
        // The flag is never set.
        assert_eq!(api.launch(wait, (1, 1), streams[0], flag), 0, "{round}");
        assert_eq!(api.launch(stops, (1, 1), streams[1], 0), 0, "{round}");
        assert_eq!(api.call("cuStreamSynchronize", (streams[1],)), FAILED, "{round}");
        api.ok("cuStreamSynchronize", (streams[0],));
        assert_eq!(api.launch(nothing, (1, 1), streams[0], 0), 0, "{round}");
        api.ok("cuCtxSynchronize", ());
    }
    api.ok("cuCtxDestroy_v2", (context,));
}

#[test]
fn a_graph_that_traps_can_be_launched_again() {
    let (api, context) = recovering();
    let module = api.module();
    let (stops, count) = (api.function(module, "stops"), api.function(module, "count"));
    let stream = api.make("cuStreamCreate", |out: *mut usize| (out, 1u32));
    let at = api.alloc(256);
    api.ok("cuMemsetD32_v2", (at, 0u32, 64usize));
    // The stream does not wait for the default stream, which may set memory after the call returned.
    api.ok("cuCtxSynchronize", ());
    api.ok("cuStreamBeginCapture_v2", (stream, 0i32));
    for kernel in [count, stops, count] {
        assert_eq!(api.launch(kernel, (1, 1), stream, at), 0);
    }
    let graph = api.make("cuStreamEndCapture", |out: *mut usize| (stream, out));
    let executable = api.make("cuGraphInstantiateWithFlags", |out: *mut usize| (out, graph, 0u64));
    for round in 1..4u32 {
        api.ok("cuGraphLaunch", (executable, stream));
        assert_eq!(api.call("cuStreamSynchronize", (stream,)), FAILED, "{round}");
        // Work after the kernel that traps was dropped.
        assert_eq!(words(api, at)[0], round);
    }
    api.ok("cuCtxDestroy_v2", (context,));
}
