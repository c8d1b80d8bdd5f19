//! Graphs: parameters of nodes and their changes, updates of executable graphs, allocations and conditions.

mod support;

use std::ffi::CString;
use std::sync::atomic::{AtomicU32, Ordering};
use support::Api;

const NULL: usize = 0;
const INVALID_VALUE: i32 = 1;
const OUT_OF_MEMORY: i32 = 2;
const INVALID_HANDLE: i32 = 400;
const UPDATE_FAILURE: i32 = 910;

/// `CUDA_KERNEL_NODE_PARAMS_v2`
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct KernelParams {
    function: usize,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    params: usize,
    extra: usize,
    kernel: usize,
    context: usize,
}

/// `CUDA_MEMSET_NODE_PARAMS`
#[derive(Clone, Copy, Default, PartialEq, Debug)]
#[repr(C)]
struct Set {
    to: u64,
    pitch: usize,
    value: u32,
    element: u32,
    width: usize,
    height: usize,
}

fn graph(api: Api) -> usize {
    api.make("cuGraphCreate", |out: *mut usize| (out, 0u32))
}

fn stream(api: Api) -> usize {
    api.make("cuStreamCreate", |out: *mut usize| (out, 1u32))
}

fn executable(api: Api, graph: usize) -> usize {
    api.make("cuGraphInstantiateWithFlags", |out: *mut usize| (out, graph, 0u64))
}

fn run(api: Api, executable: usize) {
    api.ok("cuGraphLaunch", (executable, NULL));
    api.ok("cuCtxSynchronize", ());
}

/// Adds a kernel node for a function of one parameter.
fn add_kernel(api: Api, graph: usize, after: &[usize], function: usize, data: u64) -> usize {
    let value = Box::new(data);
    let params = [(&raw const *value).expose_provenance()];
    let params = KernelParams {
        function,
        grid: [1; 3],
        block: [4, 1, 1],
        params: params.as_ptr().expose_provenance(),
        ..KernelParams::default()
    };
    api.make("cuGraphAddKernelNode_v2", |out: *mut usize| {
        (out, graph, after.as_ptr(), after.len(), &raw const params)
    })
}

fn add_set(api: Api, graph: usize, after: &[usize], to: u64, value: u32) -> usize {
    let params = Set { to, pitch: 0, value, element: 4, width: 4, height: 1 };
    api.make("cuGraphAddMemsetNode", |out: *mut usize| {
        (out, graph, after.as_ptr(), after.len(), &raw const params, NULL)
    })
}

fn kind(api: Api, node: usize) -> i32 {
    api.make("cuGraphNodeGetType", |out: *mut i32| (node, out))
}

/// The list that a function returns.
fn list(api: Api, name: &str, of: usize) -> Vec<usize> {
    let mut count = 0usize;
    api.ok(name, (of, NULL, &raw mut count));
    let mut found = vec![NULL; count];
    api.ok(name, (of, found.as_mut_ptr(), &raw mut count));
    assert_eq!(count, found.len());
    found
}

#[test]
fn nodes_tell_what_they_are_and_take_other_parameters() {
    let (api, _) = Api::with_context();
    let double = api.function(api.module(), "double_all");
    let (graph, a, b) = (graph(api), api.alloc(16), api.alloc(16));
    let set = add_set(api, graph, &[], a, 3);
    let kernel = add_kernel(api, graph, &[set], double, a);
    assert_eq!((kind(api, set), kind(api, kernel)), (2, 0));
    let mut found = Set::default();
    api.ok("cuGraphMemsetNodeGetParams", (set, &raw mut found));
    assert_eq!(found, Set { to: a, pitch: 0, value: 3, element: 4, width: 4, height: 1 });
    assert_eq!(api.call("cuGraphMemsetNodeGetParams", (kernel, &raw mut found)), INVALID_VALUE);

    // A program may write to the parameters that it is shown, and set them.
    let mut params = KernelParams::default();
    api.ok("cuGraphKernelNodeGetParams_v2", (kernel, &raw mut params));
    assert_eq!((params.function, params.grid, params.block), (double, [1; 3], [4, 1, 1]));
    let slots = std::ptr::with_exposed_provenance_mut::<usize>(params.params);
    let value = Box::new(b);
    // SAFETY: the node returned a list of one parameter, which lives until its parameters change.
    let shown = std::ptr::with_exposed_provenance::<u64>(unsafe { slots.read() });
    // SAFETY: as above.
    assert_eq!(unsafe { shown.read() }, a);
    // SAFETY: as above; programs may write to the list.
    unsafe { slots.write((&raw const *value).expose_provenance()) };
    api.ok("cuGraphKernelNodeSetParams_v2", (kernel, &raw const params));
    let set_b = Set { to: b, value: 5, ..found };
    api.ok("cuGraphMemsetNodeSetParams", (set, &raw const set_b));
    run(api, executable(api, graph));
    assert_eq!(api.read(b, 4), [10; 4]);
    assert_eq!(api.read(a, 4), [0; 4]);
}

#[test]
fn what_is_captured_has_the_nodes_that_it_would_be_built_of() {
    let (api, _) = Api::with_context();
    let double = api.function(api.module(), "double_all");
    let (stream, a, b) = (stream(api), api.alloc(16), api.alloc(16));
    static CALLED: AtomicU32 = AtomicU32::new(0);
    extern "C" fn count(by: usize) {
        CALLED.fetch_add(by as u32, Ordering::Relaxed);
    }
    let host: extern "C" fn(usize) = count;
    api.ok("cuStreamBeginCapture_v2", (stream, 0i32));
    api.ok("cuMemsetD32Async", (a, 7u32, 4usize, stream));
    assert_eq!(api.launch(double, (1, 4), stream, a), 0);
    api.ok("cuMemcpyDtoDAsync_v2", (b, a, 16usize, stream));
    api.ok("cuLaunchHostFunc", (stream, host, 5usize));
    let mut graph = NULL;
    api.ok("cuStreamEndCapture", (stream, &raw mut graph));
    let nodes = list(api, "cuGraphGetNodes", graph);
    assert_eq!(nodes.iter().map(|node| kind(api, *node)).collect::<Vec<_>>(), [2, 0, 1, 3]);
    assert_eq!(list(api, "cuGraphGetRootNodes", graph), [nodes[0]]);
    assert_eq!(list(api, "cuGraphNodeGetDependencies", nodes[1]), [nodes[0]]);
    assert_eq!(list(api, "cuGraphNodeGetDependentNodes", nodes[1]), [nodes[2]]);
    let mut copy = [0u64; 25];
    api.ok("cuGraphMemcpyNodeGetParams", (nodes[2], copy.as_mut_ptr()));
    assert_eq!((copy[6], copy[17], copy[22]), (a, b, 16));
    run(api, executable(api, graph));
    assert_eq!((api.read(b, 4), CALLED.load(Ordering::Relaxed)), (vec![14; 4], 5));
}

#[test]
fn edges_and_nodes_come_and_go() {
    let (api, _) = Api::with_context();
    let (graph, a) = (graph(api), api.alloc(16));
    let first = add_set(api, graph, &[], a, 1);
    let second = add_set(api, graph, &[], a, 2);
    let third = add_set(api, graph, &[first], a, 3);
    let edge =
        |name: &str, from: usize, to: usize| api.call(name, (graph, &raw const from, &raw const to, 1usize));
    assert_eq!(edge("cuGraphAddDependencies", third, second), 0);
    assert_eq!(edge("cuGraphAddDependencies", third, second), INVALID_VALUE);
    assert_eq!(edge("cuGraphRemoveDependencies", first, second), INVALID_VALUE);
    let (mut from, mut to, mut count) = ([NULL; 3], [NULL; 3], 3usize);
    api.ok("cuGraphGetEdges", (graph, from.as_mut_ptr(), to.as_mut_ptr(), &raw mut count));
    assert_eq!((count, from, to), (2, [third, first, NULL], [second, third, NULL]));
    run(api, executable(api, graph));
    assert_eq!(api.read(a, 4), [2; 4]);
    assert_eq!(edge("cuGraphRemoveDependencies", third, second), 0);
    assert_eq!(edge("cuGraphAddDependencies", second, first), 0);
    api.ok("cuGraphDestroyNode", (first,));
    assert_eq!(api.call("cuGraphDestroyNode", (first,)), INVALID_VALUE);
    assert_eq!(list(api, "cuGraphGetNodes", graph), [second, third]);
    assert_eq!(list(api, "cuGraphNodeGetDependencies", third), []);
}

#[test]
fn a_copy_of_a_graph_is_its_own() {
    let (api, _) = Api::with_context();
    let (graph, a) = (graph(api), api.alloc(16));
    let set = add_set(api, graph, &[], a, 1);
    let after = add_set(api, graph, &[set], a, 9);
    let copy = api.make("cuGraphClone", |out: *mut usize| (out, graph));
    let twin = api.make("cuGraphNodeFindInClone", |out: *mut usize| (out, after, copy));
    assert!(twin != after && list(api, "cuGraphGetNodes", copy).contains(&twin));
    let mut found = NULL;
    assert_eq!(api.call("cuGraphNodeFindInClone", (&raw mut found, after, graph)), INVALID_VALUE);
    let other = Set { to: a, pitch: 0, value: 4, element: 4, width: 4, height: 1 };
    api.ok("cuGraphMemsetNodeSetParams", (twin, &raw const other));
    api.ok("cuGraphDestroy", (graph,));
    assert_eq!(api.call("cuGraphNodeGetType", (set, &raw mut found)), INVALID_VALUE);
    run(api, executable(api, copy));
    assert_eq!(api.read(a, 4), [4; 4]);
}

#[test]
fn graphs_within_graphs_run_in_their_place() {
    let (api, _) = Api::with_context();
    let double = api.function(api.module(), "double_all");
    let (outer, inner, a) = (graph(api), graph(api), api.alloc(16));
    let in_inner = add_kernel(api, inner, &[], double, a);
    let set = add_set(api, outer, &[], a, 3);
    let child =
        api.make("cuGraphAddChildGraphNode", |out: *mut usize| (out, outer, &raw const set, 1usize, inner));
    add_kernel(api, outer, &[child], double, a);
    let owned = api.make("cuGraphChildGraphNodeGetGraph", |out: *mut usize| (child, out));
    assert!(owned != inner && kind(api, child) == 4);
    assert_eq!(api.call("cuGraphDestroy", (owned,)), INVALID_VALUE);
    let exec = executable(api, outer);
    run(api, exec);
    assert_eq!(api.read(a, 4), [12; 4]);
    // Only nodes of the copy can be changed; the original stays unchanged.
    let copied = list(api, "cuGraphGetNodes", owned)[0];
    assert_ne!(copied, in_inner);
    let b = api.alloc(16);
    let value = Box::new(b);
    let slots = [(&raw const *value).expose_provenance()];
    let mut params = KernelParams::default();
    api.ok("cuGraphKernelNodeGetParams_v2", (copied, &raw mut params));
    params.params = slots.as_ptr().expose_provenance();
    api.ok("cuGraphExecKernelNodeSetParams_v2", (exec, copied, &raw const params));
    api.ok("cuMemsetD32_v2", (b, 1u32, 4usize));
    run(api, exec);
    assert_eq!((api.read(a, 4), api.read(b, 4)), (vec![6; 4], vec![2; 4]));
    api.ok("cuGraphDestroy", (outer,));
    assert_eq!(api.call("cuGraphNodeGetType", (copied, &raw mut params)), INVALID_VALUE);
}

/// A copy of a graph has at most 2^18 nodes. Nodes count that were added to a nested graph after it was
/// nested, and nodes that were removed do not.
#[test]
fn the_size_of_a_copy_is_limited() {
    let (api, _) = Api::with_context();
    let add_child = |to: usize, inner: usize| {
        let mut node = NULL;
        (api.call("cuGraphAddChildGraphNode", (&raw mut node, to, NULL, 0usize, inner)), node)
    };
    // A graph of 2^17 nodes: each step adds one node and a copy of all nodes before.
    let large = graph(api);
    api.make("cuGraphAddEmptyNode", |out: *mut usize| (out, large, NULL, 0usize));
    for _ in 0..16 {
        assert_eq!(add_child(large, large).0, 0);
    }
    api.make("cuGraphAddEmptyNode", |out: *mut usize| (out, large, NULL, 0usize));
    // The outer graph has one node, and one in its nested graph.
    let (outer, inner) = (graph(api), graph(api));
    api.make("cuGraphAddEmptyNode", |out: *mut usize| (out, inner, NULL, 0usize));
    let (status, node) = add_child(outer, inner);
    assert_eq!(status, 0);
    let nested = api.make("cuGraphChildGraphNodeGetGraph", |out: *mut usize| (node, out));
    let copy = || {
        let mut copy = NULL;
        let status = api.call("cuGraphClone", (&raw mut copy, outer));
        if status == 0 {
            api.ok("cuGraphDestroy", (copy,));
        }
        status
    };
    assert_eq!(add_child(nested, large).0, 0);
    assert_eq!(copy(), 0);
    let (status, second) = add_child(nested, large);
    assert_eq!((status, copy()), (0, OUT_OF_MEMORY));
    api.ok("cuGraphDestroyNode", (second,));
    assert_eq!(copy(), 0);
}

#[test]
fn executable_graphs_take_parameters_of_graphs_of_the_same_shape() {
    let (api, _) = Api::with_context();
    let double = api.function(api.module(), "double_all");
    let (a, b) = (api.alloc(16), api.alloc(16));
    let build = |data: u64, value: u32, twice: bool| {
        let graph = graph(api);
        let set = add_set(api, graph, &[], data, value);
        let kernel = add_kernel(api, graph, &[set], double, data);
        if twice {
            add_kernel(api, graph, &[kernel], double, data);
        }
        (graph, kernel)
    };
    let (first, kernel) = build(a, 1, false);
    let exec = executable(api, first);
    let update = |graph: usize| {
        let mut result = [9u64; 3];
        let status = api.call("cuGraphExecUpdate_v2", (exec, graph, result.as_mut_ptr()));
        (status, result[0] as u32)
    };
    assert_eq!(update(build(b, 5, false).0), (0, 0));
    assert_eq!(update(build(b, 6, true).0), (UPDATE_FAILURE, 2));
    let other = graph(api);
    let set = add_set(api, other, &[], b, 6);
    add_set(api, other, &[set], b, 7);
    assert_eq!(update(other), (UPDATE_FAILURE, 3));
    run(api, exec);
    assert_eq!((api.read(a, 4), api.read(b, 4)), (vec![0; 4], vec![10; 4]));
    // A disabled node does nothing. It is identified by the node of the original graph.
    api.ok("cuGraphNodeSetEnabled", (exec, kernel, 0u32));
    assert_eq!(api.make("cuGraphNodeGetEnabled", |out: *mut u32| (exec, kernel, out)), 0);
    run(api, exec);
    assert_eq!(api.read(b, 4), [5; 4]);
    assert_eq!(api.make("cuGraphExecGetFlags", |out: *mut u64| (exec, out)), 0);
}

#[test]
fn events_are_recorded_and_waited_for_by_nodes() {
    let (api, _) = Api::with_context();
    let event = || api.make("cuEventCreate", |out: *mut usize| (out, 0u32));
    let (graph, first, second, a) = (graph(api), event(), event(), api.alloc(16));
    let wait = api.make("cuGraphAddEventWaitNode", |out: *mut usize| (out, graph, NULL, 0usize, second));
    let set = add_set(api, graph, &[wait], a, 8);
    let record =
        api.make("cuGraphAddEventRecordNode", |out: *mut usize| (out, graph, &raw const set, 1usize, first));
    assert_eq!((kind(api, wait), kind(api, record)), (6, 7));
    assert_eq!(api.make("cuGraphEventWaitNodeGetEvent", |out: *mut usize| (wait, out)), second);
    let exec = executable(api, graph);
    // On another stream, work that waits for the event comes after the graph.
    api.ok("cuGraphLaunch", (exec, stream(api)));
    let other = stream(api);
    api.ok("cuStreamWaitEvent", (other, first, 0u32));
    let b = api.alloc(16);
    api.ok("cuMemcpyDtoDAsync_v2", (b, a, 16usize, other));
    api.ok("cuStreamSynchronize", (other,));
    assert_eq!(api.read(b, 4), [8; 4]);
    api.ok("cuGraphExecEventRecordNodeSetEvent", (exec, record, second));
    assert_eq!(api.call("cuGraphExecEventRecordNodeSetEvent", (exec, wait, second)), INVALID_VALUE);
}

#[test]
fn graphs_allocate_and_free() {
    if !support::runs_alone("graphs_allocate_and_free") {
        return;
    }
    let (api, _) = Api::with_context();
    let double = api.function(api.module(), "double_all");
    let graph = graph(api);
    let mut params = [0u64; 15];
    (params[0], params[1], params[13]) = (1, 1, 64);
    let alloc =
        api.make("cuGraphAddMemAllocNode", |out: *mut usize| (out, graph, NULL, 0usize, params.as_mut_ptr()));
    let address = params[14];
    let set = add_set(api, graph, &[alloc], address, 4);
    let kernel = add_kernel(api, graph, &[set], double, address);
    assert_eq!((kind(api, alloc), address % 256), (10, 0));
    let exec = executable(api, graph);
    run(api, exec);
    // The program holds the memory until it frees it.
    assert_eq!(api.read(address, 4), [8; 4]);
    assert_eq!(api.call("cuGraphLaunch", (exec, NULL)), INVALID_VALUE);
    let used = |which: i32| api.make("cuDeviceGetGraphMemAttribute", |out: *mut u64| (0i32, which, out));
    assert_eq!((used(0), used(2)), (64, 64));
    api.ok("cuMemFree_v2", (address,));
    assert_eq!(api.call("cuMemFree_v2", (address,)), INVALID_VALUE);
    assert_eq!((used(0), used(1), used(2)), (0, 64, 64));
    let free =
        api.make("cuGraphAddMemFreeNode", |out: *mut usize| (out, graph, &raw const kernel, 1usize, address));
    assert_eq!(kind(api, free), 11);
    let exec2 = executable(api, graph);
    run(api, exec2);
    run(api, exec2);
    assert_eq!(used(0), 0);
    for gone in [exec, exec2] {
        api.ok("cuGraphExecDestroy", (gone,));
    }
    api.ok("cuGraphDestroy", (graph,));
    api.ok("cuCtxSynchronize", ());
    while used(2) != 0 {
        // The stream may still hold its reference.
        std::thread::yield_now();
    }
    let mut word = 0u32;
    assert_eq!(api.call("cuMemcpyDtoH_v2", (&raw mut word, address, 4usize)), INVALID_VALUE);
}

#[test]
fn captured_allocations_become_nodes() {
    let (api, _) = Api::with_context();
    let (stream, b) = (stream(api), api.alloc(16));
    api.ok("cuStreamBeginCapture_v2", (stream, 0i32));
    let address = api.make("cuMemAllocAsync", |out: *mut u64| (out, 16usize, stream));
    api.ok("cuMemsetD32Async", (address, 6u32, 4usize, stream));
    api.ok("cuMemcpyDtoDAsync_v2", (b, address, 16usize, stream));
    api.ok("cuMemFreeAsync", (address, stream));
    let mut graph = NULL;
    api.ok("cuStreamEndCapture", (stream, &raw mut graph));
    let kinds: Vec<i32> =
        list(api, "cuGraphGetNodes", graph).into_iter().map(|node| kind(api, node)).collect();
    assert_eq!(kinds, [10, 2, 1, 11]);
    let exec = executable(api, graph);
    run(api, exec);
    run(api, exec);
    assert_eq!(api.read(b, 4), [6; 4]);
    api.ok("cuGraphExecDestroy", (exec,));
    api.ok("cuGraphDestroy", (graph,));
    while api.make("cuDeviceGetGraphMemAttribute", |out: *mut u64| (0i32, 2i32, out)) != 0 {
        std::thread::yield_now();
    }
}

/// Decrements a counter, and sets the condition to the rest.
const COUNTDOWN: &str = "
.version 8.0
.target sm_80
.address_size 64
.extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);
.visible .entry countdown(.param .u64 handle, .param .u64 data)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [handle];
    ld.param.u64 %rd2, [data];
    ld.global.u32 %r1, [%rd2];
    sub.u32 %r1, %r1, 1;
    st.global.u32 [%rd2], %r1;
    ld.global.u32 %r2, [%rd2+4];
    add.u32 %r2, %r2, 1;
    st.global.u32 [%rd2+4], %r2;
    { .param .b64 h; .param .b32 v;
      st.param.b64 [h], %rd1; st.param.b32 [v], %r1;
      call.uni cudaGraphSetConditional, (h, v); }
    ret;
}
";

#[test]
fn conditions_decide_what_runs() {
    let (api, _) = Api::with_context();
    let text = CString::new(COUNTDOWN).expect("no zero in it");
    let module = api.make("cuModuleLoadData", |out: *mut usize| (out, text.as_ptr()));
    let countdown = api.function(module, "countdown");
    let (graph, data) = (graph(api), api.alloc(16));
    let handle = api.make("cuGraphConditionalHandleCreate", |out: *mut u64| (out, graph, NULL, 1u32, 1u32));
    // `CUgraphNodeParams`: a loop.
    let mut params = [0u64; 32];
    (params[0], params[2], params[3]) = (13, handle, 1 | 1 << 32);
    let node = api.make("cuGraphAddNode", |out: *mut usize| (out, graph, NULL, 0usize, params.as_mut_ptr()));
    assert_eq!(kind(api, node), 13);
    // SAFETY: the call returned the address of the list of bodies.
    let body = unsafe { std::ptr::with_exposed_provenance::<usize>(params[4] as usize).read() };
    let (value, at) = (Box::new(handle), Box::new(data));
    let slots = [(&raw const *value).expose_provenance(), (&raw const *at).expose_provenance()];
    let launch = KernelParams {
        function: countdown,
        grid: [1; 3],
        block: [1; 3],
        params: slots.as_ptr().expose_provenance(),
        ..KernelParams::default()
    };
    let in_body =
        api.make("cuGraphAddKernelNode_v2", |out: *mut usize| (out, body, NULL, 0usize, &raw const launch));
    let exec = executable(api, graph);
    for turns in [5u32, 3] {
        let start = [turns, 0, 0, 0];
        api.ok("cuMemcpyHtoD_v2", (data, start.as_ptr(), 16usize));
        run(api, exec);
        assert_eq!(api.read(data, 2), [0, turns]);
    }
    // Nodes that need a stream are not allowed in a body.
    let event = api.make("cuEventCreate", |out: *mut usize| (out, 0u32));
    api.make("cuGraphAddEventRecordNode", |out: *mut usize| (out, body, &raw const in_body, 1usize, event));
    let mut none = NULL;
    assert_eq!(api.call("cuGraphInstantiateWithFlags", (&raw mut none, graph, 0u64)), 801);
    assert_eq!(api.call("cuGraphClone", (&raw mut none, graph)), 801);
}

#[test]
fn what_nodes_use_outlives_its_destruction() {
    let (api, _) = Api::with_context();
    let module = api.module();
    let double = api.function(module, "double_all");
    let (graph, a) = (graph(api), api.alloc(16));
    let set = add_set(api, graph, &[], a, 3);
    add_kernel(api, graph, &[set], double, a);
    let exec = executable(api, graph);
    api.ok("cuModuleUnload", (module,));
    run(api, exec);
    assert_eq!(api.read(a, 4), [6; 4]);
    // A copy to memory that was freed meanwhile is an illegal address when the node runs.
    api.ok("cuMemFree_v2", (a,));
    api.ok("cuGraphLaunch", (exec, NULL));
    assert_eq!(api.call("cuCtxSynchronize", ()), 700);
}

#[test]
fn an_executable_graph_runs_once_at_a_time() {
    let (api, _) = Api::with_context();
    let wait = api.function(api.module(), "wait");
    let (graph, flag) = (graph(api), api.alloc(16));
    api.ok("cuMemsetD32_v2", (flag, 0u32, 4usize));
    // The streams do not wait for the default stream, which may set memory after the call returned.
    api.ok("cuCtxSynchronize", ());
    add_kernel(api, graph, &[], wait, flag);
    let exec = executable(api, graph);
    let (first, second) = (stream(api), stream(api));
    api.ok("cuGraphLaunch", (exec, first));
    api.ok("cuGraphLaunch", (exec, second));
    assert_eq!(api.call("cuStreamQuery", (second,)), 600);
    let third = stream(api);
    api.ok("cuMemsetD32Async", (flag, 1u32, 4usize, third));
    api.ok("cuStreamSynchronize", (second,));
    assert_eq!(api.call("cuStreamQuery", (first,)), 0);
}

#[test]
fn drawings_name_nodes_and_edges() {
    let (api, _) = Api::with_context();
    let double = api.function(api.module(), "double_all");
    let (graph, a) = (graph(api), api.alloc(16));
    let set = add_set(api, graph, &[], a, 3);
    add_kernel(api, graph, &[set], double, a);
    let path = std::env::temp_dir().join(format!("ptxvm-graph-{}.dot", std::process::id()));
    let name = CString::new(path.to_str().expect("a plain path")).expect("no zero in it");
    api.ok("cuGraphDebugDotPrint", (graph, name.as_ptr(), 0u32));
    let text = std::fs::read_to_string(&path).expect("it was written");
    let _gone = std::fs::remove_file(&path);
    assert!(text.starts_with("digraph") && text.contains("double_all") && text.contains("->"), "{text}");
    let nowhere = c"/nowhere/graph.dot";
    assert_eq!(api.call("cuGraphDebugDotPrint", (graph, nowhere.as_ptr(), 0u32)), 304);
    assert_eq!(api.call("cuGraphDestroy", (graph + 8,)), INVALID_HANDLE);
}

/// `CUgraphNodeParams` as words.
type Any = [u64; 32];

#[test]
fn nodes_of_any_type_return_their_parameters() {
    let (api, context) = Api::with_context();
    let double = api.function(api.module(), "double_all");
    let (graph, a) = (graph(api), api.alloc(16));
    let describe = |node: usize| {
        let mut found: Any = [u64::MAX; 32];
        api.ok("cuGraphNodeGetParams", (node, found.as_mut_ptr()));
        found
    };
    let set = add_set(api, graph, &[], a, 3);
    let found = describe(set);
    assert_eq!(found[..2], [2, 0]);
    assert_eq!(found[2..8], [a, 0, 3 | 4 << 32, 4, 1, 0]);
    assert_eq!(found[31], 0);

    let kernel = add_kernel(api, graph, &[set], double, a);
    let mut launch = describe(kernel);
    assert_eq!((launch[0], launch[2], launch[3]), (0, double as u64, 1 | 1 << 32));
    assert_eq!(launch[10], context as u64);
    // The parameters can be set again, in the node and in a new one. The list that a node returns is valid
    // until its parameters change.
    api.ok("cuGraphNodeSetParams_v2", (kernel, launch.as_mut_ptr()));
    launch = describe(kernel);
    let last = api.make("cuGraphAddNode_v3", |out: *mut usize| {
        (out, graph, &raw const kernel, NULL, 1usize, launch.as_mut_ptr())
    });
    run(api, executable(api, graph));
    assert_eq!(api.read(a, 4), [12; 4]);
    // The later functions compare the contexts.
    let other = api.make("cuCtxCreate_v2", |out: *mut usize| (out, 0u32, 0i32));
    launch[10] = other as u64;
    assert_eq!(api.call("cuGraphNodeSetParams_v2", (last, launch.as_mut_ptr())), 201);
    assert_eq!(api.call("cuGraphNodeGetParams", (last, NULL)), INVALID_VALUE);
    assert_eq!(api.call("cuGraphNodeGetParams", (NULL, launch.as_mut_ptr())), INVALID_VALUE);
    api.ok("cuCtxDestroy_v2", (other,));
}

#[test]
fn parameters_of_child_nodes_leave_no_copy_of_their_graph() {
    static DESTROYED: AtomicU32 = AtomicU32::new(0);
    extern "C" fn destroyed(_data: *mut std::ffi::c_void) {
        DESTROYED.fetch_add(1, Ordering::SeqCst);
    }
    let (api, _) = Api::with_context();
    let (outer, first, inner, a) = (graph(api), graph(api), graph(api), api.alloc(16));
    let set = add_set(api, outer, &[], a, 3);
    let child = api.make("cuGraphAddChildGraphNode", |out: *mut usize| (out, outer, NULL, 0usize, first));
    let exec = executable(api, outer);
    // Each copy of this graph holds the object.
    let end = destroyed as extern "C" fn(*mut std::ffi::c_void);
    let object = api.make("cuUserObjectCreate", |out: *mut usize| (out, NULL, end, 1u32, 1u32));
    api.ok("cuGraphRetainUserObject", (inner, object, 1u32, 1u32));
    let mut any = [0u64; 32];
    (any[0], any[2]) = (4, inner as u64);
    let parameters = any.as_ptr();
    for node in [NULL, set] {
        assert_ne!(api.call("cuGraphExecChildGraphNodeSetParams", (exec, node, inner)), 0);
        assert_ne!(api.call("cuGraphExecNodeSetParams", (exec, node, parameters)), 0);
        assert_ne!(api.call("cuGraphNodeSetParams", (node, parameters)), 0);
    }
    assert_ne!(api.call("cuGraphExecChildGraphNodeSetParams", (NULL, child, inner)), 0);
    api.ok("cuGraphExecNodeSetParams", (exec, child, parameters));
    api.ok("cuGraphExecChildGraphNodeSetParams", (exec, child, inner));
    api.ok("cuGraphExecDestroy", (exec,));
    api.ok("cuGraphDestroy", (outer,));
    assert_eq!(DESTROYED.load(Ordering::SeqCst), 0);
    api.ok("cuGraphDestroy", (inner,));
    assert_eq!(DESTROYED.load(Ordering::SeqCst), 1);
}
