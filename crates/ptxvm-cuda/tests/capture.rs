//! Capture of streams into graphs.

mod support;

use std::sync::atomic::{AtomicU32, Ordering};
use support::Api;

const NULL: usize = 0;
const UNSUPPORTED: i32 = 900;
const INVALIDATED: i32 = 901;
const MERGE: i32 = 902;
const UNMATCHED: i32 = 903;
const UNJOINED: i32 = 904;
const ISOLATION: i32 = 905;
const CAPTURED_EVENT: i32 = 907;
const ILLEGAL_STATE: i32 = 401;

fn stream(api: Api) -> usize {
    api.make("cuStreamCreate", |out: *mut usize| (out, 1u32))
}

fn event(api: Api) -> usize {
    api.make("cuEventCreate", |out: *mut usize| (out, 0u32))
}

fn state(api: Api, stream: usize) -> i32 {
    api.make("cuStreamIsCapturing", |out: *mut i32| (stream, out))
}

fn begin(api: Api, stream: usize) {
    api.ok("cuStreamBeginCapture_v2", (stream, 0i32));
}

fn end(api: Api, stream: usize) -> (i32, usize) {
    let mut graph = 1;
    let status = api.call("cuStreamEndCapture", (stream, &raw mut graph));
    (status, graph)
}

fn ones(api: Api) -> u64 {
    let data = api.alloc(16);
    // `cuMemsetD32` would return earlier, and the streams of these tests do not wait for the default stream.
    api.ok("cuMemcpyHtoD_v2", (data, [1u32; 4].as_ptr(), 16usize));
    data
}

#[test]
fn what_is_captured_runs_with_each_launch_of_the_graph() {
    let (api, _) = Api::with_context();
    let double = api.function(api.module(), "double_all");
    let (first, second) = (stream(api), stream(api));
    let (a, b, c) = (ones(api), ones(api), ones(api));
    let (fork, join) = (event(api), event(api));
    begin(api, first);
    assert_eq!((state(api, first), state(api, second)), (1, 0));
    api.ok("cuMemsetD32Async", (a, 5u32, 4usize, first));
    assert_eq!(api.launch(double, (1, 4), first, a), 0);
    // The other stream joins by an event, and is joined back by another.
    api.ok("cuEventRecord", (fork, first));
    api.ok("cuStreamWaitEvent", (second, fork, 0u32));
    assert_eq!(state(api, second), 1);
    assert_eq!(api.launch(double, (1, 4), second, b), 0);
    api.ok("cuEventRecord", (join, second));
    api.ok("cuStreamWaitEvent", (first, join, 0u32));
    api.ok("cuMemcpyDtoDAsync_v2", (c, b, 16usize, first));
    let (status, graph) = end(api, first);
    assert_eq!((status, state(api, first), state(api, second)), (0, 0, 0));
    // Nothing has run yet.
    assert_eq!([a, b, c].map(|data| api.read(data, 4)), [[1; 4], [1; 4], [1; 4]]);

    let nodes = api.make("cuGraphGetNodes", |out: *mut usize| (graph, NULL, out));
    assert_eq!(nodes, 4);
    let mut none = NULL;
    for (flags, status) in [(2u64, 1), (16, 1), (5, 1), (4, 801)] {
        assert_eq!(api.call("cuGraphInstantiateWithFlags", (&raw mut none, graph, flags)), status);
    }
    let executable = api.make("cuGraphInstantiateWithFlags", |out: *mut usize| (out, graph, 0u64));
    for times in 1..=3u32 {
        api.ok("cuGraphLaunch", (executable, first));
        api.ok("cuStreamSynchronize", (first,));
        let doubled = [1 << times; 4];
        assert_eq!([a, b, c].map(|data| api.read(data, 4)), [[10; 4], doubled, doubled]);
    }
}

#[test]
fn memory_of_the_host_is_read_and_written_when_the_graph_runs() {
    let (api, _) = Api::with_context();
    let (stream, data) = (stream(api), ones(api));
    let mut host = Box::new([7u32, 8, 9, 10]);
    let mut back = Box::new([0u32; 4]);
    begin(api, stream);
    api.ok("cuMemcpyHtoDAsync_v2", (data, host.as_ptr(), 16usize, stream));
    api.ok("cuMemcpyDtoHAsync_v2", (back.as_mut_ptr(), data, 16usize, stream));
    let (status, graph) = end(api, stream);
    assert_eq!((status, *back), (0, [0; 4]));
    let executable = api.make("cuGraphInstantiateWithFlags", |out: *mut usize| (out, graph, 0u64));
    *host = [1, 2, 3, 4];
    api.ok("cuGraphLaunch", (executable, stream));
    api.ok("cuStreamSynchronize", (stream,));
    // SAFETY: the graph wrote it through the address given above, and is complete.
    assert_eq!(unsafe { std::ptr::read_volatile(&raw const *back) }, [1, 2, 3, 4]);
}

#[test]
fn what_no_graph_can_do_spoils_the_capture() {
    let (api, _) = Api::with_context();
    let stream = stream(api);
    assert_eq!(end(api, stream).0, ILLEGAL_STATE);
    for spoils in ["cuStreamSynchronize", "cuStreamQuery"] {
        begin(api, stream);
        assert_eq!(api.call("cuStreamBeginCapture_v2", (stream, 0i32)), ILLEGAL_STATE);
        assert_eq!(api.call(spoils, (stream,)), UNSUPPORTED);
        assert_eq!(state(api, stream), 2);
        let mut address = 0u64;
        assert_eq!(api.call("cuMemAllocAsync", (&raw mut address, 16usize, stream)), INVALIDATED);
        assert_eq!(end(api, stream), (INVALIDATED, NULL));
        assert_eq!(state(api, stream), 0);
        api.ok("cuStreamSynchronize", (stream,));
    }
    // The default stream of a context.
    assert_eq!(api.call("cuStreamBeginCapture_v2", (NULL, 0i32)), UNSUPPORTED);
}

#[test]
fn forks_must_be_joined_and_captures_kept_apart() {
    let (api, _) = Api::with_context();
    let double = api.function(api.module(), "double_all");
    let (first, second, data) = (stream(api), stream(api), ones(api));
    let (outside, fork) = (event(api), event(api));
    api.ok("cuEventRecord", (outside, second));
    begin(api, first);
    api.ok("cuEventRecord", (fork, first));
    assert_eq!(api.call("cuEventQuery", (fork,)), CAPTURED_EVENT);
    api.ok("cuStreamWaitEvent", (second, fork, 0u32));
    assert_eq!(api.launch(double, (1, 4), second, data), 0);
    assert_eq!(end(api, second).0, UNMATCHED);
    assert_eq!(end(api, first), (UNJOINED, NULL));
    assert_eq!(api.call("cuStreamWaitEvent", (second, fork, 0u32)), CAPTURED_EVENT);

    begin(api, first);
    assert_eq!(api.call("cuStreamWaitEvent", (first, outside, 0u32)), ISOLATION);
    assert_eq!(end(api, first).0, INVALIDATED);

    begin(api, first);
    begin(api, second);
    api.ok("cuEventRecord", (fork, first));
    assert_eq!(api.call("cuStreamWaitEvent", (second, fork, 0u32)), MERGE);
    assert_eq!(end(api, second).0, INVALIDATED);
    assert_eq!(end(api, first).0, 0);
}

#[test]
fn a_stream_may_be_destroyed_before_the_capture_that_it_joined_ends() {
    let (api, _) = Api::with_context();
    let double = api.function(api.module(), "double_all");
    let (first, data) = (stream(api), ones(api));
    let (fork, join) = (event(api), event(api));
    for is_joined in [true, false] {
        let second = stream(api);
        begin(api, first);
        api.ok("cuEventRecord", (fork, first));
        api.ok("cuStreamWaitEvent", (second, fork, 0u32));
        assert_eq!(api.launch(double, (1, 4), second, data), 0);
        if is_joined {
            api.ok("cuEventRecord", (join, second));
            api.ok("cuStreamWaitEvent", (first, join, 0u32));
        }
        api.ok("cuStreamDestroy_v2", (second,));
        assert_eq!(state(api, first), 1);
        let (status, graph) = end(api, first);
        assert_eq!(status, if is_joined { 0 } else { UNJOINED });
        assert_eq!(graph == NULL, !is_joined);
    }
    // If the stream in which it began is destroyed, a capture cannot end.
    let (origin, other) = (stream(api), stream(api));
    begin(api, origin);
    api.ok("cuEventRecord", (fork, origin));
    api.ok("cuStreamWaitEvent", (other, fork, 0u32));
    api.ok("cuStreamDestroy_v2", (origin,));
    assert_eq!(state(api, other), 2);
}

/// The stream that a thread has of its own (handle 2) ends with the thread, and with its context. So does a
/// capture that began there, and with it what its graph keeps.
#[test]
fn a_capture_in_the_stream_of_a_thread_ends_with_it() {
    static ENDED: AtomicU32 = AtomicU32::new(0);
    extern "C" fn end(data: usize) {
        ENDED.fetch_add(data as u32, Ordering::Relaxed);
    }
    let (api, context) = Api::with_context();
    let captures = move || {
        api.ok("cuCtxSetCurrent", (context,));
        begin(api, 2);
        let (mut state, mut graph) = (0i32, NULL);
        let info = (2usize, &raw mut state, NULL, &raw mut graph, NULL, NULL);
        api.ok("cuStreamGetCaptureInfo_v2", info);
        let end: extern "C" fn(usize) = end;
        let object = api.make("cuUserObjectCreate", |out: *mut usize| (out, 1usize, end, 1u32, 1u32));
        api.ok("cuGraphRetainUserObject", (graph, object, 1u32, 1u32));
    };
    std::thread::spawn(captures).join().expect("no panic");
    // The thread's own data is dropped before it can be joined.
    assert_eq!(ENDED.load(Ordering::Relaxed), 1);
    captures();
    assert_eq!(ENDED.load(Ordering::Relaxed), 1);
    api.ok("cuCtxDestroy_v2", (context,));
    assert_eq!(ENDED.load(Ordering::Relaxed), 2);
}

#[test]
fn objects_live_as_long_as_what_needs_them() {
    static ENDED: AtomicU32 = AtomicU32::new(0);
    extern "C" fn end(data: usize) {
        ENDED.fetch_add(data as u32, Ordering::Relaxed);
    }
    let (api, _) = Api::with_context();
    let (stream, data) = (stream(api), ones(api));
    let end: extern "C" fn(usize) = end;
    let object = api.make("cuUserObjectCreate", |out: *mut usize| (out, 5usize, end, 1u32, 1u32));
    begin(api, stream);
    api.ok("cuMemsetD32Async", (data, 5u32, 4usize, stream));
    let mut graph = NULL;
    api.ok("cuStreamEndCapture", (stream, &raw mut graph));
    // The graph takes over the program's reference.
    api.ok("cuGraphRetainUserObject", (graph, object, 1u32, 1u32));
    let mut params = [0usize; 4];
    let executable =
        api.make("cuGraphInstantiateWithParams", |out: *mut usize| (out, graph, params.as_mut_ptr()));
    assert_eq!(params[3] as u32, 0);
    api.ok("cuGraphDestroy", (graph,));
    api.ok("cuGraphLaunch", (executable, stream));
    api.ok("cuStreamSynchronize", (stream,));
    assert_eq!(ENDED.load(Ordering::Relaxed), 0);
    api.ok("cuGraphExecDestroy", (executable,));
    // The stream may still hold its reference.
    while ENDED.load(Ordering::Relaxed) == 0 {
        std::thread::yield_now();
    }
    assert_eq!(ENDED.load(Ordering::Relaxed), 5);
    assert_eq!(api.call("cuUserObjectRelease", (object, 1u32)), 1);
}

#[test]
fn a_capture_tells_what_comes_before_its_next_node() {
    let (api, _) = Api::with_context();
    let (stream, data) = (stream(api), ones(api));
    let info = || {
        let (mut status, mut id, mut graph, mut nodes, mut count) =
            (9i32, 0u64, NULL, std::ptr::null::<usize>(), 9usize);
        let out = (stream, &raw mut status, &raw mut id, &raw mut graph, &raw mut nodes, &raw mut count);
        api.ok("cuStreamGetCaptureInfo_v2", out);
        // SAFETY: the library returned an array of this many nodes, which is valid until the next call.
        let nodes: Vec<usize> = (0..count).map(|index| unsafe { nodes.wrapping_add(index).read() }).collect();
        (status, graph, nodes)
    };
    assert_eq!(info(), (0, NULL, vec![]));
    begin(api, stream);
    for _ in 0..2 {
        api.ok("cuMemsetD32Async", (data, 5u32, 4usize, stream));
    }
    let (status, graph, last) = info();
    assert_eq!((status, last.len()), (1, 1));
    let (mut nodes, mut count) = ([NULL; 2], 2usize);
    api.ok("cuGraphGetNodes", (graph, nodes.as_mut_ptr(), &raw mut count));
    assert_eq!(last[0], nodes[1]);
    api.ok("cuStreamUpdateCaptureDependencies", (stream, nodes.as_ptr(), 1usize, 1u32));
    assert_eq!(info().2, [nodes[0]]);
    assert_eq!(end(api, stream), (0, graph));
}

#[test]
fn the_graph_that_is_captured_into_need_not_be_returned() {
    let (api, _) = Api::with_context();
    let (stream, data) = (stream(api), ones(api));
    let graph = api.make("cuGraphCreate", |out: *mut usize| (out, 0u32));
    api.ok("cuStreamBeginCaptureToGraph", (stream, graph, NULL, NULL, 0usize, 0i32));
    api.ok("cuMemsetD32Async", (data, 5u32, 4usize, stream));
    api.ok("cuStreamEndCapture", (stream, NULL));
    let mut count = 0usize;
    api.ok("cuGraphGetNodes", (graph, NULL, &raw mut count));
    assert_eq!((count, state(api, stream)), (1, 0));
    // A graph that the capture makes would be lost.
    begin(api, stream);
    assert_eq!(api.call("cuStreamEndCapture", (stream, NULL)), 1);
    assert_eq!(end(api, stream).0, 0);
}
