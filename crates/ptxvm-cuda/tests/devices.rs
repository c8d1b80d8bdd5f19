//! Several devices: numbers, contexts, memory and peer access. The library reads the environment when it
//! starts, so all checks are in one test, in a process of its own.

mod support;

use support::Api;

const NULL: usize = 0;
const INVALID_DEVICE: i32 = 101;
const INVALID_CONTEXT: i32 = 201;
const ILLEGAL_ADDRESS: i32 = 700;
const INVALID_HANDLE: i32 = 400;

fn context(api: Api, device: i32) -> usize {
    api.make("cuCtxCreate_v2", |out: *mut usize| (out, 0u32, device))
}

fn ordinal(api: Api, address: u64) -> i32 {
    api.make("cuPointerGetAttribute", |out: *mut i32| (out, 9i32, address))
}

/// The error of the current context after a kernel that doubles 4 numbers at an address.
fn doubled(api: Api, at: u64) -> i32 {
    let double = api.function(api.module(), "double_all");
    match api.launch(double, (1, 4), NULL, at) {
        0 => api.call("cuCtxSynchronize", ()),
        status => status,
    }
}

fn free(api: Api) -> usize {
    let mut free = 0usize;
    api.ok("cuMemGetInfo_v2", (&raw mut free, NULL));
    free
}

#[test]
fn two_devices_are_two() {
    // SAFETY: no other thread of this process reads or writes the environment yet.
    unsafe { std::env::set_var("PTXVM_DEVICES", "2") };
    let api = Api::open();
    assert_eq!(api.make("cuDeviceGetCount", |out: *mut i32| (out,)), 2);
    assert_eq!(api.call("cuDeviceGet", (&raw mut *Box::new(0i32), 2i32)), INVALID_DEVICE);
    numbers(api);
    let first = context(api, 0);
    let of_first = api.alloc(16);
    api.ok("cuMemcpyHtoD_v2", (of_first, [1u32, 2, 3, 4].as_ptr(), 16usize));
    assert_eq!(doubled(api, of_first), 0);
    let counter = global(api);

    let second = context(api, 1);
    assert_eq!(api.make("cuCtxGetDevice", |out: *mut i32| (out,)), 1);
    let before = free(api);
    let of_second = api.alloc(1 << 20);
    assert_eq!(before - free(api), 1 << 20);
    assert_eq!((ordinal(api, of_first), ordinal(api, of_second), ordinal(api, counter)), (0, 1, 0));
    assert_eq!(ordinal(api, global(api)), 1);
    // Copies need no peer access.
    let peer = |to: u64, to_context: usize, from: u64, from_context: usize| {
        api.call("cuMemcpyPeer", (to, to_context, from, from_context, 16usize))
    };
    assert_eq!(peer(of_second, second, of_first, first), 0);
    assert_eq!(peer(of_second, second, of_first, 77), INVALID_CONTEXT);
    assert_eq!(api.read(of_second, 4), [2, 4, 6, 8]);
    assert_eq!(doubled(api, of_second), 0);
    shared(api);
    streams(api, first, second);
    access(api, (first, of_first), (second, of_second));

    // Without access the kernel traps, which sets the error of its context and of no other.
    let third = context(api, 1);
    assert_eq!(doubled(api, of_first), ILLEGAL_ADDRESS);
    api.ok("cuCtxDestroy_v2", (third,));
    api.ok("cuCtxSetCurrent", (first,));
    assert_eq!(api.read(of_first, 4), [4, 8, 12, 16]);
    primaries(api);
}

/// Devices have different identifiers and equal features.
fn numbers(api: Api) {
    let id = |device: i32| {
        let mut name = [0u8; 16];
        api.ok("cuDeviceGetPCIBusId", (name.as_mut_ptr(), 16i32, device));
        let again = api.make("cuDeviceGetByPCIBusId", |out: *mut i32| (out, name.as_ptr()));
        assert_eq!(again, device);
        let bus = api.make("cuDeviceGetAttribute", |out: *mut i32| (out, 33i32, device));
        (name, bus, api.make("cuDeviceGetUuid_v2", |out: *mut [u8; 16]| (out, device)))
    };
    let (one, other) = (id(0), id(1));
    assert!(one.0 != other.0 && one.1 != other.1 && one.2 != other.2);
    let can = |a: i32, b: i32| api.make("cuDeviceCanAccessPeer", |out: *mut i32| (out, a, b));
    assert_eq!((can(0, 1), can(1, 0), can(0, 0)), (1, 1, 0));
    let attribute =
        |number: i32| api.make("cuDeviceGetP2PAttribute", |out: *mut i32| (out, number, 0i32, 1i32));
    assert_eq!([1, 2, 3, 4].map(attribute), [0, 1, 1, 1]);
    let same = api.call("cuDeviceGetP2PAttribute", (&raw mut *Box::new(0i32), 2i32, 1i32, 1i32));
    assert_eq!(same, INVALID_DEVICE);
}

/// The address of a variable of a module of the current context.
fn global(api: Api) -> u64 {
    let module = api.module();
    api.make("cuModuleGetGlobal_v2", |out: *mut u64| (out, NULL, module, c"counter".as_ptr()))
}

/// Both devices can access pinned and managed memory.
fn shared(api: Api) {
    let managed = api.make("cuMemAllocManaged", |out: *mut u64| (out, 16usize, 1u32));
    let pinned = api.make("cuMemHostAlloc", |out: *mut u64| (out, 16usize, 0u32));
    assert_eq!((doubled(api, managed), doubled(api, pinned)), (0, 0));
    let here = api.make("cuCtxPopCurrent_v2", |out: *mut usize| (out,));
    assert_eq!((doubled(api, managed), doubled(api, pinned)), (0, 0));
    api.ok("cuCtxPushCurrent_v2", (here,));
}

/// Kernels run in streams of their own device. Events work across devices.
fn streams(api: Api, first: usize, second: usize) {
    let own = api.make("cuStreamCreate", |out: *mut usize| (out, 0u32));
    assert_eq!(api.make("cuStreamGetDevice", |out: *mut i32| (own, out)), 1);
    let data = api.alloc(16);
    let double = api.function(api.module(), "double_all");
    assert_eq!(api.launch(double, (1, 4), own, data), 0);
    let event = api.make("cuEventCreate", |out: *mut usize| (out, 0u32));
    api.ok("cuEventRecord", (event, own));
    api.ok("cuCtxSetCurrent", (first,));
    let other = api.make("cuStreamCreate", |out: *mut usize| (out, 0u32));
    api.ok("cuStreamWaitEvent", (other, event, 0u32));
    assert_eq!(api.call("cuEventRecord", (event, other)), INVALID_HANDLE);
    assert_eq!(api.launch(double, (1, 4), other, data), INVALID_HANDLE);
    assert_eq!(api.launch(double, (1, 4), NULL, data), INVALID_HANDLE);
    api.ok("cuStreamSynchronize", (other,));
    api.ok("cuEventSynchronize", (event,));
    api.ok("cuCtxSetCurrent", (second,));
}

/// With peer access, kernels of one device can access memory of the other.
fn access(api: Api, (first, of_first): (usize, u64), (second, of_second): (usize, u64)) {
    let enable = |peer: usize| api.call("cuCtxEnablePeerAccess", (peer, 0u32));
    assert_eq!(enable(second), INVALID_CONTEXT);
    assert_eq!(api.call("cuCtxEnablePeerAccess", (first, 1u32)), 1);
    assert_eq!(api.call("cuCtxDisablePeerAccess", (first,)), 705);
    assert_eq!((enable(first), enable(first)), (0, 704));
    assert_eq!(doubled(api, of_first), 0);
    api.ok("cuCtxSynchronize", ());
    assert_eq!(api.read(of_first, 4), [4, 8, 12, 16]);
    assert_eq!(api.read(of_second, 4), [4, 8, 12, 16]);
    assert_eq!(api.call("cuCtxDisablePeerAccess", (first,)), 0);
}

/// Each device has a primary context of its own, which is reset separately.
fn primaries(api: Api) {
    let retain = |device: i32| api.make("cuDevicePrimaryCtxRetain", |out: *mut usize| (out, device));
    let (one, other) = (retain(0), retain(1));
    assert_ne!(one, other);
    api.ok("cuCtxSetCurrent", (one,));
    let kept = api.alloc(4);
    api.ok("cuCtxSetCurrent", (other,));
    let lost = api.alloc(4);
    api.ok("cuDevicePrimaryCtxReset_v2", (1i32,));
    api.ok("cuCtxSetCurrent", (one,));
    assert_eq!(api.read(kept, 1), [0]);
    assert_eq!(api.call("cuMemcpyDtoH_v2", (&raw mut *Box::new(0u32), lost, 4usize)), 1);
    let pool = |device: i32| api.make("cuDeviceGetDefaultMemPool", |out: *mut usize| (out, device));
    assert_ne!(pool(0), pool(1));
    let from_pool = api.make("cuMemAllocFromPoolAsync", |out: *mut u64| (out, 64usize, pool(1), NULL));
    assert_eq!(ordinal(api, from_pool), 1);
    // The pool grants access to the other device, also for existing allocations.
    let rights = |device: i32| {
        let place = [1, device];
        api.make("cuMemPoolGetAccess", |out: *mut i32| (out, pool(1), place.as_ptr()))
    };
    assert_eq!((rights(0), rights(1)), (0, 3));
    let grant = [1, 0, 3];
    api.ok("cuMemPoolSetAccess", (pool(1), grant.as_ptr(), 1usize));
    assert_eq!(rights(0), 3);
    assert_eq!(doubled(api, from_pool), 0);
    assert_eq!(api.call("cuMemPoolSetAccess", (pool(1), [1, 1, 0].as_ptr(), 1usize)), INVALID_DEVICE);
    api.ok("cuMemFreeAsync", (from_pool, NULL));
    api.ok("cuCtxSynchronize", ());
}
