//! Sizes and addresses that a caller invents: each call returns at once, and takes memory only for existing
//! data.

mod support;

use std::ffi::c_void;
use std::time::{Duration, Instant};
use support::Api;

const INVALID_VALUE: i32 = 1;
const ILLEGAL_ADDRESS: i32 = 700;
const NULL: usize = 0;

/// The peak memory of the process in bytes.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap_or(0) * 1024
}

/// Runs a function that must need neither time nor memory.
fn at_once<R>(what: impl FnOnce() -> R) -> R {
    let (began, before) = (Instant::now(), peak_memory());
    let result = what();
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    let taken = peak_memory().saturating_sub(before);
    assert!(taken < 256 << 20, "{taken} bytes");
    result
}

#[test]
fn addresses_of_the_device_are_never_memory_of_the_host() {
    if !support::runs_alone("addresses_of_the_device_are_never_memory_of_the_host") {
        return;
    }
    let (api, _) = Api::with_context();
    let (here, freed) = (api.alloc(4096), api.alloc(64 << 20) + (60 << 20));
    api.ok("cuMemFree_v2", (freed - (60 << 20),));
    // In the range that is reserved for the device, but never allocated.
    let wild = here + (9 << 30);
    let stream = api.make("cuStreamCreate", |out: *mut usize| (out, 0u32));
    let mut host = [0u8; 64];
    for there in [freed, wild] {
        for (to, from) in [(here, there), (there, here), (there, there)] {
            assert_eq!(api.call("cuMemcpy", (to, from, 64usize)), INVALID_VALUE);
            assert_eq!(api.call("cuMemcpyAsync", (to, from, 64usize, stream)), INVALID_VALUE);
            assert_eq!(api.call("cuMemcpyDtoD_v2", (to, from, 64usize)), INVALID_VALUE);
        }
        assert_eq!(api.call("cuMemcpyHtoD_v2", (here, there, 64usize)), INVALID_VALUE);
        assert_eq!(api.call("cuMemcpyDtoH_v2", (there, here, 64usize)), INVALID_VALUE);
        assert_eq!(api.call("cuMemcpy", (host.as_mut_ptr(), there, 64usize)), INVALID_VALUE);
        assert_eq!(api.call("cuMemHostRegister_v2", (there, 4096usize, 0u32)), INVALID_VALUE);
        assert_eq!(api.call("cuModuleLoadData", (&raw mut *Box::new(NULL), there)), 200);
        assert_eq!(api.call("cuStreamCreate", (there, 0u32)), INVALID_VALUE);
    }
    // Host addresses that are unmapped, or wrap around.
    for nowhere in [8u64, 0xfff8, 1 << 46, u64::MAX - 32] {
        assert_eq!(api.call("cuMemcpyHtoD_v2", (here, nowhere, 64usize)), INVALID_VALUE);
        assert_eq!(api.call("cuMemcpyDtoHAsync_v2", (nowhere, here, 64usize, stream)), INVALID_VALUE);
        assert_eq!(api.call("cuMemHostRegister_v2", (nowhere, 4096usize, 0u32)), INVALID_VALUE);
    }
    api.ok("cuMemcpy", (host.as_mut_ptr(), here, 64usize));
    api.ok("cuCtxSynchronize", ());
}

#[test]
fn rectangles_and_boxes_are_as_large_as_memory() {
    let (api, _) = Api::with_context();
    let data = api.alloc(4096);
    let host = vec![0u64; 512];
    let at = host.as_ptr().expose_provenance();
    let huge = [1usize << 33, 1 << 48, 1 << 62, usize::MAX, usize::MAX / 2];
    for height in huge {
        for pitch in [0, 16, height] {
            // 16 bytes in each row, device to device, host to device, unified to unified.
            for (kind, from) in [(2, data as usize), (1, at), (4, data as usize)] {
                let places = if kind == 1 { (at, 0) } else { (0, from) };
                let rectangle = [
                    0,
                    0,
                    kind,
                    places.0,
                    places.1,
                    0,
                    pitch,
                    0,
                    0,
                    2,
                    0,
                    data as usize,
                    0,
                    pitch,
                    16,
                    height,
                ];
                let status = at_once(|| api.call("cuMemcpy2D_v2", (rectangle.as_ptr(),)));
                assert_eq!(status, INVALID_VALUE, "{rectangle:x?}");
                let side = |kind, host, device| [0, 0, 0, 0, kind, host, device, 0, 0, pitch, 1];
                let ends = [side(kind, places.0, places.1), side(2, 0, data as usize)].concat();
                let whole = [&ends[..], &[16, 1, height]].concat();
                let status = at_once(|| api.call("cuMemcpy3D_v2", (whole.as_ptr(),)));
                assert_eq!(status, INVALID_VALUE, "{whole:x?}");
            }
        }
        assert_eq!(
            at_once(|| api.call("cuMemsetD2D8_v2", (data, 16usize, 1u32, 16usize, height))),
            INVALID_VALUE
        );
        assert_eq!(
            at_once(|| api.call("cuMemsetD2D32_v2", (data, 0usize, 1u32, 4usize, height))),
            INVALID_VALUE
        );
        assert_eq!(at_once(|| api.call("cuMemsetD32_v2", (data, 1u32, height))), INVALID_VALUE);
        let mut out = [0usize; 2];
        let place = out.as_mut_ptr();
        let pitched = (place, place.wrapping_add(1), height, height, 4u32);
        assert_ne!(at_once(|| api.call("cuMemAllocPitch_v2", pitched)), 0);
        let description = [height, height, height, 32 | 4 << 32, 0];
        assert_ne!(at_once(|| api.call("cuArray3DCreate_v2", (place, description.as_ptr()))), 0);
    }
}

/// Copies of an array in many short rows.
#[test]
fn copies_of_arrays_need_no_list_of_rows() {
    let (api, _) = Api::with_context();
    let description = [1usize, 1 << 16, 32 | 1 << 32];
    let array = api.make("cuArrayCreate_v2", |out: *mut usize| (out, description.as_ptr()));
    let sent: Vec<u32> = (0..1 << 16).collect();
    let mut got = vec![0u32; 1 << 16];
    at_once(|| api.ok("cuMemcpyHtoA_v2", (array, NULL, sent.as_ptr(), 4usize << 16)));
    at_once(|| api.ok("cuMemcpyAtoH_v2", (got.as_mut_ptr(), array, NULL, 4usize << 16)));
    assert_eq!(got, sent);
    for bytes in [(4 << 16) + 1, 1 << 40, usize::MAX] {
        let status = at_once(|| api.call("cuMemcpyHtoA_v2", (array, NULL, sent.as_ptr(), bytes)));
        assert_eq!(status, INVALID_VALUE);
        let status = at_once(|| api.call("cuMemcpyAtoA_v2", (array, bytes, array, NULL, 4usize)));
        assert_eq!(status, INVALID_VALUE);
    }
}

/// A container whose header claims `bytes` bytes.
fn container(bytes: u64) -> Vec<u8> {
    let mut head = vec![0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0];
    head.extend(bytes.to_le_bytes());
    head.resize(64, 0);
    head
}

#[test]
fn containers_are_as_large_as_memory() {
    let (api, _) = Api::with_context();
    let mut module = NULL;
    for bytes in [1u64 << 31, 1 << 33, 1 << 48, u64::MAX - 16, u64::MAX] {
        let image = container(bytes);
        let wrapper = [0x4662_43b1u64 | 1 << 32, image.as_ptr().expose_provenance() as u64, 0];
        for pointer in [image.as_ptr().cast::<u64>(), wrapper.as_ptr()] {
            assert_eq!(at_once(|| api.call("cuModuleLoadData", (&raw mut module, pointer))), 200);
        }
        // The length of these bytes is known, and memory after them is not read.
        let link = api.make("cuLinkCreate_v2", |out: *mut usize| (0u32, NULL, NULL, out));
        let added = (link, 3i32, image.as_ptr(), image.len(), c"x".as_ptr(), 0u32, NULL, NULL);
        assert_eq!(at_once(|| api.call("cuLinkAddData_v2", added)), 200);
        api.ok("cuLinkDestroy", (link,));
    }
    // A list of containers with invented addresses; also in a file, where addresses have no meaning.
    let wrapper = [0x4662_43b1u64 | 2 << 32, 0x1234_5678_9abc, 0xdead_beef_0000];
    assert_eq!(api.call("cuModuleLoadData", (&raw mut module, wrapper.as_ptr())), 200);
    let path = std::env::temp_dir().join(format!("ptxvm-bounds-{}", std::process::id()));
    std::fs::write(&path, wrapper.map(u64::to_le_bytes).concat()).expect("a file can be written");
    let name = std::ffi::CString::new(path.to_str().expect("a plain path")).expect("no zero in it");
    assert_eq!(api.call("cuModuleLoad", (&raw mut module, name.as_ptr())), 200);
    std::fs::remove_file(&path).expect("it is there");
    // A folder, and a device file without an end.
    assert_eq!(api.call("cuModuleLoad", (&raw mut module, c"/".as_ptr())), 301);
    assert_eq!(at_once(|| api.call("cuModuleLoad", (&raw mut module, c"/dev/zero".as_ptr()))), 301);
}

#[test]
fn counts_are_as_large_as_their_lists() {
    let (api, _) = Api::with_context();
    let module = api.module();
    let function = api.function(module, "nothing");
    let zeros = vec![0u64; 64];
    let mut out = NULL;
    for count in [1u32 << 20, 1 << 31, u32::MAX] {
        let text = c".version 6.4\n.target sm_70\n.address_size 64\n";
        let loaded = (&raw mut out, text.as_ptr(), count, zeros.as_ptr(), zeros.as_ptr());
        assert_eq!(at_once(|| api.call("cuModuleLoadDataEx", loaded)), INVALID_VALUE);
        let asked = (count, zeros.as_ptr(), zeros.as_ptr(), 0u64);
        assert_eq!(at_once(|| api.call("cuPointerGetAttributes", asked)), INVALID_VALUE);
        let config =
            [1 | 1 << 32, 1 | 1 << 32, 1 | 1 << 32, 0, 0, zeros.as_ptr().expose_provenance(), count as usize];
        let launched = (config.as_ptr(), function, NULL, NULL);
        assert_eq!(at_once(|| api.call("cuLaunchKernelEx", launched)), INVALID_VALUE);
        // A launch has at most 64 KiB of parameters.
        let set = (function, 0i32, zeros.as_ptr(), count.max((1 << 16) + 1));
        assert_eq!(at_once(|| api.call("cuParamSetv", set)), INVALID_VALUE);
        let graph = api.make("cuGraphCreate", |out: *mut usize| (out, 0u32));
        for count in [(count as usize) << 20, (count as usize) << 29] {
            let added = (&raw mut out, graph, zeros.as_ptr(), count);
            assert_eq!(at_once(|| api.call("cuGraphAddEmptyNode", added)), INVALID_VALUE);
        }
        api.ok("cuGraphDestroy", (graph,));
        let linked = (&raw mut out, count, zeros.as_ptr());
        assert_eq!(at_once(|| api.call("nvJitLinkCreate", linked)), 3);
    }
    // A list of a launch's parameters without an end.
    let endless = [1usize; 64];
    let launched = (function, 1u32, 1u32, 1u32, 1u32, 1u32, 1u32, 0u32, NULL, NULL, endless.as_ptr());
    assert_eq!(at_once(|| api.call("cuLaunchKernel", launched)), INVALID_VALUE);
    // Sizes whose product is slightly more than 2^64.
    for block in [[1u32 << 22, 1 << 21, 1 << 21], [u32::MAX, u32::MAX, u32::MAX], [1 << 31, 1 << 31, 4]] {
        let [x, y, z] = block;
        let launched = (function, 1u32, 1u32, 1u32, x, y, z, 0u32, NULL, NULL, NULL);
        assert_eq!(at_once(|| api.call("cuLaunchKernel", launched)), INVALID_VALUE);
    }
    let mut blocks = 7i32;
    let asked = (&raw mut blocks, function, 32i32, usize::MAX - 10);
    api.ok("cuOccupancyMaxActiveBlocksPerMultiprocessor", asked);
    assert_eq!(blocks, 0);
}

extern "C" fn nothing(_data: *mut c_void) {}

#[test]
fn graphs_hold_what_is_asked_of_them_without_counting_it_out() {
    let (api, context) = Api::with_context();
    let graph = api.make("cuGraphCreate", |out: *mut usize| (out, 0u32));
    let end = nothing as extern "C" fn(*mut c_void);
    let object = api.make("cuUserObjectCreate", |out: *mut usize| (out, NULL, end, 1u32, 1u32));
    at_once(|| api.ok("cuGraphRetainUserObject", (graph, object, u32::MAX, 0u32)));
    assert_eq!(api.call("cuGraphReleaseUserObject", (graph, NULL, 1u32)), INVALID_VALUE);
    // A chain of many nodes, then edges from the first to each other node, and finally a cycle.
    let nodes = at_once(|| {
        let mut nodes = Vec::new();
        for _ in 0..50_000 {
            let after = nodes.last().copied().unwrap_or(NULL);
            let count = usize::from(after != NULL);
            nodes.push(
                api.make("cuGraphAddEmptyNode", |out: *mut usize| (out, graph, &raw const after, count)),
            );
        }
        nodes
    });
    let firsts = vec![nodes[0]; nodes.len() - 2];
    at_once(|| api.ok("cuGraphAddDependencies", (graph, firsts.as_ptr(), nodes[2..].as_ptr(), firsts.len())));
    let executable =
        at_once(|| api.make("cuGraphInstantiateWithFlags", |out: *mut usize| (out, graph, NULL)));
    api.ok("cuGraphExecDestroy", (executable,));
    let last = nodes.len() - 1;
    api.ok("cuGraphAddDependencies", (graph, nodes[last..].as_ptr(), nodes.as_ptr(), 1usize));
    let mut out = NULL;
    let status = at_once(|| api.call("cuGraphInstantiateWithFlags", (&raw mut out, graph, NULL)));
    assert_eq!(status, INVALID_VALUE);
    api.ok("cuGraphDestroy", (graph,));
    // Sizes are checked at the node's turn; the context then gets the error.
    let data = api.alloc(4096);
    let graph = api.make("cuGraphCreate", |out: *mut usize| (out, 0u32));
    let set = [data as usize, 0, 4 << 32, 4, 1 << 60];
    let _node =
        api.make("cuGraphAddMemsetNode", |out: *mut usize| (out, graph, NULL, NULL, set.as_ptr(), context));
    let executable = api.make("cuGraphInstantiateWithFlags", |out: *mut usize| (out, graph, NULL));
    at_once(|| {
        api.ok("cuGraphLaunch", (executable, NULL));
        assert_eq!(api.call("cuCtxSynchronize", ()), ILLEGAL_ADDRESS);
    });
}
