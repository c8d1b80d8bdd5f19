//! Streams that wait for numbers in memory and write them, separately and in batches; attributes of streams.

mod support;

use support::Api;

const INVALID_VALUE: i32 = 1;
const NOT_SUPPORTED: i32 = 801;
const UNSUPPORTED_LIMIT: i32 = 215;

/// `CUstreamBatchMemOpParams`
type Operation = [u64; 6];

const WAIT_32: u64 = 1;
const WRITE_32: u64 = 2;
const FLUSH: u64 = 3;
const WRITE_64: u64 = 5;
const BARRIER: u64 = 6;

fn batch(api: Api, stream: usize, operations: &[Operation]) -> i32 {
    api.call("cuStreamBatchMemOp_v2", (stream, operations.len() as u32, operations.as_ptr(), 0u32))
}

#[test]
fn a_batch_is_done_in_order() {
    let (api, _) = Api::with_context();
    let at = api.alloc(32);
    let stream = api.make("cuStreamCreate", |out: *mut usize| (out, 1u32));
    let other = api.make("cuStreamCreate", |out: *mut usize| (out, 1u32));
    let equal = 1;
    let operations = [
        [WRITE_32, at, 5, 0, 0, 0],
        [BARRIER, 0, 0, 0, 0, 0],
        [WAIT_32, at + 4, 7, equal, 0, 0],
        [WRITE_64, at + 8, 1 << 40, 0, 0, 0],
        [FLUSH, 0, 0, 0, 0, 0],
    ];
    assert_eq!(batch(api, stream, &operations), 0);
    assert_eq!(api.call("cuStreamQuery", (stream,)), 600);
    assert_eq!(batch(api, other, &[[WRITE_32, at + 4, 7, 0, 0, 0]]), 0);
    api.ok("cuStreamSynchronize", (stream,));
    assert_eq!(api.read(at, 4), [5, 7, 0, 256]);
    // The whole batch is checked before anything is submitted.
    let first = [WRITE_32, at, 9, 0, 0, 0];
    for wrong in [[9, at, 0, 0, 0, 0], [WRITE_32, at + 2, 0, 0, 0, 0], [WRITE_64, at + 28, 0, 0, 0, 0]] {
        assert_eq!(batch(api, stream, &[first, wrong]), INVALID_VALUE);
    }
    assert_eq!(batch(api, stream, &[first; 257]), INVALID_VALUE);
    api.ok("cuStreamSynchronize", (stream,));
    assert_eq!(api.read(at, 1), [5]);
}

#[test]
fn attributes_are_what_was_set() {
    let (api, _) = Api::with_context();
    let stream = api.make("cuStreamCreateWithPriority", |out: *mut usize| (out, 0u32, -2i32));
    let get = |attribute: i32| {
        let mut value = [u64::MAX; 8];
        api.ok("cuStreamGetAttribute", (stream, attribute, value.as_mut_ptr()));
        value
    };
    let set = |attribute: i32, value: [u64; 8]| {
        api.call("cuStreamSetAttribute", (stream, attribute, value.as_ptr()))
    };
    assert_eq!((get(3)[0], get(8)[0] as u32 as i32, get(1)), (1, -2, [0; 8]));
    assert_eq!(set(3, [4, 0, 0, 0, 0, 0, 0, 0]), 0);
    assert_eq!(get(3)[0], 4);
    assert_eq!(set(3, [5, 0, 0, 0, 0, 0, 0, 0]), INVALID_VALUE);
    assert_eq!(set(2, [0; 8]), INVALID_VALUE);
    // L2 has no persisting lines.
    assert_eq!(set(1, [0x1000, 64, 0, 0, 0, 0, 0, 0]), NOT_SUPPORTED);
    assert_eq!(set(1, [0; 8]), 0);
    assert_eq!(api.call("cuCtxSetLimit", (6i32, 1usize)), UNSUPPORTED_LIMIT);
    api.ok("cuCtxSetLimit", (6i32, 0usize));
}

#[test]
fn first_forms_are_the_second_ones() {
    let (api, _) = Api::with_context();
    let at = api.alloc(32);
    let stream = api.make("cuStreamCreate", |out: *mut usize| (out, 1u32));
    let equal = 1u32;
    api.ok("cuStreamWriteValue32", (stream, at, 3u32, 0u32));
    api.ok("cuStreamWaitValue32", (stream, at, 3u32, equal));
    api.ok("cuStreamWriteValue64", (stream, at + 8, 1u64 << 32, 0u32));
    api.ok("cuStreamWaitValue64", (stream, at + 8, 1u64 << 32, equal));
    let operations = [[WRITE_32, at + 4, 9, 0, 0, 0]];
    api.ok("cuStreamBatchMemOp", (stream, 1u32, operations.as_ptr(), 0u32));
    api.ok("cuStreamSynchronize", (stream,));
    assert_eq!(api.read(at, 4), [3, 9, 0, 1]);
    assert_eq!(api.call("cuStreamWaitValue32", (stream, at + 2, 3u32, equal)), INVALID_VALUE);
}

/// `CUDA_BATCH_MEM_OP_NODE_PARAMS`
#[derive(Clone, Copy)]
#[repr(C)]
struct BatchParams {
    context: usize,
    count: u32,
    operations: *const Operation,
    flags: u32,
}

#[test]
fn batches_are_nodes_of_graphs() {
    let (api, context) = Api::with_context();
    let at = api.alloc(32);
    let equal = 1;
    let operations =
        [[WAIT_32, at + 4, 7, equal, 0, 0], [WRITE_32, at, 5, 0, 0, 0], [BARRIER, 0, 0, 0, 0, 0]];
    let params = |operations: &[Operation]| BatchParams {
        context,
        count: operations.len() as u32,
        operations: operations.as_ptr(),
        flags: 0,
    };
    let graph = api.make("cuGraphCreate", |out: *mut usize| (out, 0u32));
    let first = params(&operations);
    let node = api
        .make("cuGraphAddBatchMemOpNode", |out: *mut usize| (out, graph, 0usize, 0usize, &raw const first));
    let misaligned = [[WRITE_32, at + 2, 0, 0, 0, 0]];
    let wrong = params(&misaligned);
    let mut other = 0usize;
    let added =
        api.call("cuGraphAddBatchMemOpNode", (&raw mut other, graph, 0usize, 0usize, &raw const wrong));
    assert_eq!((added, api.make("cuGraphNodeGetType", |out: *mut i32| (node, out))), (INVALID_VALUE, 12));
    let mut found = params(&[]);
    api.ok("cuGraphBatchMemOpNodeGetParams", (node, &raw mut found));
    assert_eq!((found.context, found.count, found.flags), (context, 3, 0));
    // SAFETY: the node returned three structures, which live until its parameters change.
    assert_eq!(unsafe { std::slice::from_raw_parts(found.operations, 3) }, operations);

    let executable = api.make("cuGraphInstantiateWithFlags", |out: *mut usize| (out, graph, 0u64));
    let stream = api.make("cuStreamCreate", |out: *mut usize| (out, 1u32));
    api.ok("cuGraphLaunch", (executable, stream));
    assert_eq!(api.call("cuStreamQuery", (stream,)), 600);
    let other = api.make("cuStreamCreate", |out: *mut usize| (out, 1u32));
    assert_eq!(batch(api, other, &[[WRITE_32, at + 4, 7, 0, 0, 0]]), 0);
    api.ok("cuStreamSynchronize", (stream,));
    assert_eq!(api.read(at, 2), [5, 7]);

    let only_write = [[WRITE_32, at, 6, 0, 0, 0]];
    let second = params(&only_write);
    api.ok("cuGraphExecBatchMemOpNodeSetParams", (executable, node, &raw const second));
    api.ok("cuGraphLaunch", (executable, stream));
    api.ok("cuStreamSynchronize", (stream,));
    assert_eq!(api.read(at, 2), [6, 7]);
    api.ok("cuGraphBatchMemOpNodeSetParams", (node, &raw const second));
    api.ok("cuGraphBatchMemOpNodeGetParams", (node, &raw mut found));
    assert_eq!(found.count, 1);
}

#[test]
fn a_captured_batch_is_one_node() {
    let (api, _) = Api::with_context();
    let at = api.alloc(32);
    let stream = api.make("cuStreamCreate", |out: *mut usize| (out, 1u32));
    let operations = [[WRITE_32, at, 5, 0, 0, 0], [WRITE_32, at + 4, 6, 0, 0, 0]];
    api.ok("cuStreamBeginCapture_v2", (stream, 0i32));
    assert_eq!(batch(api, stream, &operations), 0);
    let graph = api.make("cuStreamEndCapture", |out: *mut usize| (stream, out));
    let mut nodes = [0usize; 4];
    let mut count = nodes.len();
    api.ok("cuGraphGetNodes", (graph, nodes.as_mut_ptr(), &raw mut count));
    let mut found = [0u64; 4];
    api.ok("cuGraphBatchMemOpNodeGetParams", (nodes[0], found.as_mut_ptr()));
    assert_eq!((count, found[1] as u32), (1, 2));
    assert_eq!(api.read(at, 2), [0, 0]);
    let executable = api.make("cuGraphInstantiateWithFlags", |out: *mut usize| (out, graph, 0u64));
    api.ok("cuGraphLaunch", (executable, stream));
    api.ok("cuStreamSynchronize", (stream,));
    assert_eq!(api.read(at, 2), [5, 6]);
}
