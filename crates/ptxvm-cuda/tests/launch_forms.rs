//! Launches with attributes, cooperative launches, mipmapped arrays, and boxes.

mod support;

use support::{Api, Params};

const NULL: usize = 0;

/// `CUlaunchAttribute`
#[repr(C)]
struct Attribute {
    id: i32,
    value: [u64; 8],
}

/// `CUlaunchConfig`
#[repr(C)]
struct Config {
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    stream: usize,
    attributes: *const Attribute,
    count: u32,
}

const COOPERATIVE: i32 = 2;
const CLUSTER: i32 = 4;
const PRIORITY: i32 = 8;

fn launch_with(api: Api, function: usize, grid: u32, attributes: &[Attribute], param: u64) -> i32 {
    let config = Config {
        grid: [grid, 1, 1],
        block: [32, 1, 1],
        shared: 0,
        stream: NULL,
        attributes: attributes.as_ptr(),
        count: attributes.len() as u32,
    };
    let params = [&raw const param];
    let params: Params = params.as_ptr();
    api.call("cuLaunchKernelEx", (&raw const config, function, params, NULL))
}

fn attribute(id: i32, value: [u32; 3]) -> Attribute {
    let [x, y, z] = value.map(u64::from);
    Attribute { id, value: [x | y << 32, z, 0, 0, 0, 0, 0, 0] }
}

#[test]
fn old_targets_are_limited_by_the_device() {
    let (api, _) = Api::with_context();
    // Each of 1024 threads counts; devices of that target had at most 512.
    let text = c".version 1.4\n.target sm_10\n.entry k(.param .u64 at) {
        .reg .u32 %r<3>; .reg .u64 %rd<4>; ld.param.u64 %rd1, [at]; cvt.u32.u16 %r1, %tid.x;
        mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r1; exit; }";
    let module = api.make("cuModuleLoadData", |out: *mut usize| (out, text.as_ptr()));
    let kernel = api.function(module, "k");
    let most = api.make("cuFuncGetAttribute", |out: *mut i32| (out, 0i32, kernel));
    assert_eq!(most, 1024);
    let at = api.alloc(4096);
    assert_eq!(api.launch(kernel, (1, 1024), NULL, at), 0);
    assert_eq!(api.read(at + 4092, 1), [1023]);
    assert_eq!(api.launch(kernel, (1, 1025), NULL, at), 1);
}

#[test]
fn attributes_are_kept_or_refused() {
    let (api, _) = Api::with_context();
    let count = api.function(api.module(), "count");
    let at = api.alloc(4);
    api.ok("cuMemsetD32_v2", (at, 0u32, 1usize));
    assert_eq!(launch_with(api, count, 2, &[], at), 0);
    assert_eq!(launch_with(api, count, 2, &[attribute(COOPERATIVE, [1, 0, 0])], at), 0);
    assert_eq!(
        launch_with(api, count, 2, &[attribute(CLUSTER, [1; 3]), attribute(PRIORITY, [3, 0, 0])], at),
        0
    );
    assert_eq!(launch_with(api, count, 2, &[attribute(CLUSTER, [2, 1, 1])], at), 801);
    assert_eq!(launch_with(api, count, 2, &[attribute(99, [1, 0, 0])], at), 801);
    assert_eq!(launch_with(api, count, 0, &[], at), 1);
    assert_eq!(api.read(at, 1), [3 * 64]);
}

#[test]
fn cooperative_grids_must_fit_the_device() {
    let (api, _) = Api::with_context();
    let count = api.function(api.module(), "count");
    let at = api.alloc(4);
    api.ok("cuMemsetD32_v2", (at, 0u32, 1usize));
    let params = [&raw const at];
    let params: Params = params.as_ptr();
    let cooperative = |grid: u32| {
        api.call(
            "cuLaunchCooperativeKernel",
            (count, grid, 1u32, 1u32, 1024u32, 1u32, 1u32, 0u32, NULL, params),
        )
    };
    assert_eq!(cooperative(4), 0);
    api.ok("cuCtxSynchronize", ());
    assert_eq!(api.read(at, 1), [4096]);
    // As many CTAs of 1024 threads as are resident at once, and one more.
    let processors = api.make("cuDeviceGetAttribute", |out: *mut i32| (out, 16i32, 0i32)) as u32;
    let each = api
        .make("cuOccupancyMaxActiveBlocksPerMultiprocessor", |out: *mut i32| (out, count, 1024i32, 0usize));
    assert_eq!(cooperative(processors * each as u32 + 1), 720);
    assert_eq!(launch_with(api, count, 1 << 20, &[attribute(COOPERATIVE, [1, 0, 0])], at), 720);
}

#[test]
fn shared_memory_ends_where_its_last_variable_does() {
    let (api, _) = Api::with_context();
    let text = c".version 6.4
        .target sm_70
        .address_size 64
        .extern .shared .align 16 .b8 more[];
        .visible .entry k(.param .u64 out)
        {
            .shared .align 1 .b8 one[1];
            .shared .align 8 .b64 five[5];
            .reg .b32 %r;
            .reg .b64 %rd;
            ld.param.u64 %rd, [out];
            st.shared.b8 [one], 1;
            st.shared.b64 [five], %rd;
            mov.u32 %r, more;
            st.global.u32 [%rd], %r;
            ret;
        }";
    let module = api.make("cuModuleLoadData", |out: *mut usize| (out, text.as_ptr()));
    let function = api.function(module, "k");
    // 1 byte, 7 bytes of alignment, 40 bytes. Dynamic memory begins at the next multiple of its alignment.
    assert_eq!(api.make("cuFuncGetAttribute", |out: *mut i32| (out, 1i32, function)), 48);
    let out = api.alloc(4);
    let params = [&raw const out];
    let params: Params = params.as_ptr();
    let one = 1u32;
    api.ok("cuLaunchKernel", (function, one, one, one, one, one, one, 64u32, NULL, params, NULL));
    assert_eq!(api.read(out, 1), [48]);
    let text = c".version 6.4\n.target sm_70\n.address_size 64\n.visible .entry k() {
        .shared .align 4 .b8 own[40]; st.shared.u32 [own], 1; ret; }";
    let module = api.make("cuModuleLoadData", |out: *mut usize| (out, text.as_ptr()));
    assert_eq!(api.make("cuFuncGetAttribute", |out: *mut i32| (out, 1i32, api.function(module, "k"))), 40);
}

/// `CUDA_ARRAY3D_DESCRIPTOR`
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Description {
    width: usize,
    height: usize,
    depth: usize,
    format: u32,
    channels: u32,
    flags: u32,
}

/// One side of `CUDA_MEMCPY3D`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Side {
    x: usize,
    y: usize,
    z: usize,
    level: usize,
    kind: i32,
    host: usize,
    device: u64,
    array: usize,
    reserved: usize,
    pitch: usize,
    height: usize,
}

/// `CUDA_MEMCPY3D`
#[repr(C)]
struct Box3d {
    from: Side,
    to: Side,
    width: usize,
    height: usize,
    depth: usize,
}

#[test]
fn boxes_go_through_arrays_of_three_dimensions() {
    let (api, _) = Api::with_context();
    // 6 x 5 x 4 bytes.
    let description = Description { width: 6, height: 5, depth: 4, format: 1, channels: 1, flags: 0 };
    let array = api.make("cuArray3DCreate_v2", |out: *mut usize| (out, &raw const description));
    let all: Vec<u8> = (0..120).collect();
    let host = Side { kind: 1, host: all.as_ptr() as usize, pitch: 6, height: 5, ..Side::default() };
    let whole = Side { kind: 3, array, ..Side::default() };
    api.ok(
        "cuMemcpy3D_v2",
        (&raw const *Box::new(Box3d { from: host, to: whole, width: 6, height: 5, depth: 4 }),),
    );
    // A box of 3 x 2 x 2 from (2, 1, 1), into device memory with rows of 8 bytes and planes of 4 rows.
    let device = api.alloc(64);
    api.ok("cuMemsetD8_v2", (device, 0xffu8, 64usize));
    let from = Side { x: 2, y: 1, z: 1, ..whole };
    let to = Side { kind: 2, device, pitch: 8, height: 4, ..Side::default() };
    api.ok("cuMemcpy3D_v2", (&raw const *Box::new(Box3d { from, to, width: 3, height: 2, depth: 2 }),));
    let mut got = vec![0u8; 64];
    api.ok("cuMemcpyDtoH_v2", (got.as_mut_ptr(), device, 64usize));
    let mut want = vec![0xffu8; 64];
    for (z, y, x) in (0..2).flat_map(|z| (0..2).flat_map(move |y| (0..3).map(move |x| (z, y, x)))) {
        want[z * 32 + y * 8 + x] = ((z + 1) * 30 + (y + 1) * 6 + x + 2) as u8;
    }
    assert_eq!(got, want);
    // A box that leaves the array is rejected.
    let beyond = Box3d { from: Side { z: 3, ..whole }, to, width: 3, height: 2, depth: 2 };
    assert_eq!(api.call("cuMemcpy3D_v2", (&raw const beyond,)), 1);
}

#[test]
fn levels_are_halves_of_the_one_before() {
    let (api, _) = Api::with_context();
    let description = Description { width: 12, height: 5, depth: 0, format: 0x20, channels: 1, flags: 0 };
    let mipmap = api.make("cuMipmappedArrayCreate", |out: *mut usize| (out, &raw const description, 9u32));
    for (level, size) in [(12, 5), (6, 2), (3, 1), (1, 1)].into_iter().enumerate() {
        let array = api.make("cuMipmappedArrayGetLevel", |out: *mut usize| (out, mipmap, level as u32));
        let mut found = Description::default();
        api.ok("cuArray3DGetDescriptor_v2", (&raw mut found, array));
        assert_eq!((found.width, found.height), size, "level {level}");
    }
    let mut none = NULL;
    assert_eq!(api.call("cuMipmappedArrayGetLevel", (&raw mut none, mipmap, 4u32)), 1);
    api.ok("cuMipmappedArrayDestroy", (mipmap,));
}
