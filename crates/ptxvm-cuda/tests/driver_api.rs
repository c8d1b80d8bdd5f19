//! The library as C programs use it: opened by name, called through function pointers.

mod support;

use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use support::{Api, Params};

const INVALID_VALUE: i32 = 1;
const OUT_OF_MEMORY: i32 = 2;
const INVALID_CONTEXT: i32 = 201;
const INVALID_PTX: i32 = 218;
const INVALID_HANDLE: i32 = 400;
const NOT_FOUND: i32 = 500;
const NOT_READY: i32 = 600;
const NULL: usize = 0;

#[test]
fn a_kernel_runs() {
    if !support::runs_alone("a_kernel_runs") {
        return;
    }
    let (api, _) = Api::with_context();
    let module = api.module();
    let double = api.function(module, "double_all");
    let data = api.alloc(16);
    api.ok("cuMemcpyHtoD_v2", (data, [1u32, 2, 3, 4].as_ptr(), 16usize));
    assert_eq!(api.launch(double, (1, 4), NULL, data), 0);
    assert_eq!(api.read(data, 4), [2, 4, 6, 8]);
    api.ok("cuMemFree_v2", (data,));
    assert_eq!(api.call("cuMemFree_v2", (data,)), INVALID_VALUE);
    api.ok("cuModuleUnload", (module,));
    assert_eq!(api.launch(double, (1, 4), NULL, data), INVALID_HANDLE);
}

#[test]
fn parameters_come_in_both_forms() {
    let (api, _) = Api::with_context();
    let function = api.function(api.module(), "mixed");
    let out = api.alloc(4);
    let (a, b) = (200u8, 60000u16);
    let params = [(&raw const a).cast::<u64>(), &raw const out, (&raw const b).cast()];
    let params: Params = params.as_ptr();
    api.ok("cuLaunchKernel", (function, 1u32, 1u32, 1u32, 1u32, 1u32, 1u32, 0u32, NULL, params, NULL));
    assert_eq!(api.read(out, 1), [60200]);

    // One byte, padding, eight bytes, two bytes, as C lays it out.
    let mut buffer = [0u64; 3];
    buffer[0] = 1;
    buffer[1] = out;
    buffer[2] = 2;
    let size = 18usize;
    let extra = [1, buffer.as_ptr() as usize, 2, (&raw const size) as usize, 0];
    api.ok(
        "cuLaunchKernel",
        (function, 1u32, 1u32, 1u32, 1u32, 1u32, 1u32, 0u32, NULL, NULL, extra.as_ptr()),
    );
    assert_eq!(api.read(out, 1), [3]);

    let short = 17usize;
    let extra = [1, buffer.as_ptr() as usize, 2, (&raw const short) as usize, 0];
    let launch = |params: usize, extra: *const usize| {
        api.call("cuLaunchKernel", (function, 1u32, 1u32, 1u32, 1u32, 1u32, 1u32, 0u32, NULL, params, extra))
    };
    assert_eq!(launch(NULL, extra.as_ptr()), INVALID_VALUE);
    assert_eq!(launch(NULL, std::ptr::null()), INVALID_VALUE);
}

#[test]
fn contexts_are_a_stack_in_each_thread() {
    let api = Api::open();
    let current = || api.make("cuCtxGetCurrent", |out: *mut usize| (out,));
    assert_eq!(current(), NULL);
    assert_eq!(api.call("cuCtxSynchronize", ()), INVALID_CONTEXT);
    assert_eq!(api.call("cuCtxPopCurrent_v2", (NULL,)), INVALID_CONTEXT);
    let one = api.make("cuCtxCreate_v2", |out: *mut usize| (out, 0u32, 0i32));
    let two = api.make("cuCtxCreate_v2", |out: *mut usize| (out, 0u32, 0i32));
    assert_eq!(current(), two);
    api.ok("cuCtxPushCurrent_v2", (one,));
    assert_eq!(current(), one);
    assert_eq!(api.make("cuCtxPopCurrent_v2", |out: *mut usize| (out,)), one);
    assert_eq!(
        std::thread::spawn(move || api.make("cuCtxGetCurrent", |out: *mut usize| (out,))).join().ok(),
        Some(NULL)
    );
    api.ok("cuCtxDestroy_v2", (two,));
    assert_eq!(current(), one);
    assert_eq!(api.call("cuCtxDestroy_v2", (two,)), INVALID_CONTEXT);
    assert_eq!(api.call("cuCtxSetCurrent", (two,)), INVALID_CONTEXT);
    api.ok("cuCtxSetCurrent", (NULL,));
    assert_eq!(current(), NULL);
    assert_eq!(api.call("cuCtxCreate_v2", (NULL, 0u32, 0i32)), INVALID_VALUE);
    assert_eq!(api.call("cuCtxCreate_v2", (&raw mut *Box::new(0usize), 0u32, 1i32)), 101);
}

#[test]
fn the_primary_context_is_counted() {
    let api = Api::open();
    let state = || {
        let (mut flags, mut active) = (9u32, 9i32);
        api.ok("cuDevicePrimaryCtxGetState", (0i32, &raw mut flags, &raw mut active));
        active
    };
    assert_eq!(state(), 0);
    let first = api.make("cuDevicePrimaryCtxRetain", |out: *mut usize| (out, 0i32));
    let again = api.make("cuDevicePrimaryCtxRetain", |out: *mut usize| (out, 0i32));
    assert_eq!(first, again);
    assert_eq!(api.call("cuCtxDestroy_v2", (first,)), INVALID_CONTEXT);
    api.ok("cuDevicePrimaryCtxRelease_v2", (0i32,));
    assert_eq!(state(), 1);
    api.ok("cuDevicePrimaryCtxRelease_v2", (0i32,));
    assert_eq!(state(), 0);
    assert_eq!(api.call("cuDevicePrimaryCtxRelease_v2", (0i32,)), INVALID_CONTEXT);
}

#[test]
fn rejected_text_is_explained_in_the_callers_log() {
    let (api, _) = Api::with_context();
    let text =
        CString::new(".version 6.4\n.target sm_70\n.address_size 64\n.visible .entry k() { bogus.u32 1; }")
            .unwrap();
    let mut log = vec![0x55u8; 400];
    let mut options = [5i32, 6];
    let mut values = [log.as_mut_ptr() as usize, 400];
    let mut module = 0usize;
    let arguments = (&raw mut module, text.as_ptr(), 2u32, options.as_mut_ptr(), values.as_mut_ptr());
    assert_eq!(api.call("cuModuleLoadDataEx", arguments), INVALID_PTX);
    let said = CStr::from_bytes_until_nul(&log).unwrap().to_str().unwrap().to_owned();
    assert!(said.contains("bogus"), "{said}");
    assert_eq!(values[1], said.len());

    // A log buffer that is too small gets the part that fits.
    let mut values = [log.as_mut_ptr() as usize, 8];
    let arguments = (&raw mut module, text.as_ptr(), 2u32, options.as_mut_ptr(), values.as_mut_ptr());
    assert_eq!(api.call("cuModuleLoadDataEx", arguments), INVALID_PTX);
    assert_eq!(log[7], 0);
    assert_eq!(&log[..7], &said.as_bytes()[..7]);
    assert_eq!(api.call("cuModuleLoadData", (&raw mut module, c"nonsense".as_ptr())), 200);
}

#[test]
fn variables_and_functions_are_found_by_name() {
    let (api, _) = Api::with_context();
    let module = api.module();
    let (mut address, mut bytes) = (0u64, 0usize);
    api.ok("cuModuleGetGlobal_v2", (&raw mut address, &raw mut bytes, module, c"counter".as_ptr()));
    assert_eq!(bytes, 4);
    assert_eq!(api.read(address, 1), [7]);
    let mut function = 0usize;
    assert_eq!(api.call("cuModuleGetFunction", (&raw mut function, module, c"counter".as_ptr())), NOT_FOUND);
    assert_eq!(
        api.call("cuModuleGetFunction", (&raw mut function, function, c"count".as_ptr())),
        INVALID_HANDLE
    );
    assert_eq!(api.call("cuModuleGetFunction", (&raw mut function, module, NULL)), INVALID_VALUE);
    assert_eq!(
        api.call("cuModuleGetGlobal_v2", (&raw mut address, NULL, module, c"none".as_ptr())),
        NOT_FOUND
    );
    assert_eq!(api.function(module, "count"), api.function(module, "count"));
}

#[test]
fn texts_are_linked() {
    let (api, _) = Api::with_context();
    let head = ".version 6.4\n.target sm_70\n.address_size 64\n";
    let caller = format!(
        "{head}.extern .func (.param .u32 r) seven();\n.visible .entry k(.param .u64 out) {{ .reg .b32 %r; .reg .b64 %rd;\
         ld.param.u64 %rd, [out]; .param .u32 p; call (p), seven, (); ld.param.u32 %r, [p]; st.global.u32 [%rd], %r; ret; }}"
    );
    let callee = format!("{head}.visible .func (.param .u32 r) seven() {{ st.param.u32 [r], 7; ret; }}");
    let state = api.make("cuLinkCreate_v2", |out: *mut usize| (0u32, NULL, NULL, out));
    for text in [&caller, &callee] {
        api.ok(
            "cuLinkAddData_v2",
            (state, 1i32, text.as_ptr(), text.len(), c"part".as_ptr(), 0u32, NULL, NULL),
        );
    }
    let (mut image, mut bytes) = (NULL, 0usize);
    api.ok("cuLinkComplete", (state, &raw mut image, &raw mut bytes));
    // SAFETY: the library returned the address and size.
    // The image may be copied, and the copy outlives the link.
    let copy = unsafe { std::slice::from_raw_parts(image as *const u8, bytes) }.to_vec();
    api.ok("cuLinkDestroy", (state,));
    assert_eq!(api.call("cuLinkDestroy", (state,)), INVALID_HANDLE);
    let module = api.make("cuModuleLoadData", |out: *mut usize| (out, copy.as_ptr()));
    let out = api.alloc(4);
    assert_eq!(api.launch(api.function(module, "k"), (1, 1), NULL, out), 0);
    assert_eq!(api.read(out, 1), [7]);
}

/// `CU_JIT_MAX_REGISTERS` limits the reported counts, for a module and for a link. A kernel's own `.maxnreg`
/// stays.
#[test]
fn registers_are_limited() {
    const REGISTERS: i32 = 4;
    let (api, _) = Api::with_context();
    let mut body = String::new();
    for i in 0..60 {
        body += &format!("ld.global.u32 %r{i}, [%rd+{}];", 4 * i);
    }
    body += "bra NEXT; NEXT: ";
    for i in 0..60 {
        body += &format!("st.global.u32 [%rd+{}], %r{};", 4 * i, 59 - i);
    }
    let kernel = |name: &str, own: &str| {
        format!(
            ".visible .entry {name}(.param .u64 p) {own} {{ .reg .b64 %rd; .reg .b32 %r<60>;\
             ld.param.u64 %rd, [p]; {body} ret; }}\n"
        )
    };
    let text = format!(
        ".version 6.4\n.target sm_70\n.address_size 64\n{}{}\0",
        kernel("k", ""),
        kernel("own", ".maxnreg 48")
    );
    let registers = |module: usize, name: &str| {
        let function = api.function(module, name);
        let mut count = 0i32;
        api.ok("cuFuncGetAttribute", (&raw mut count, REGISTERS, function));
        count
    };
    let free = api.make("cuModuleLoadData", |out: *mut usize| (out, text.as_ptr()));
    assert!(registers(free, "k") > 57);
    let (options, values) = ([0i32], [38usize]);
    let limited = api.make("cuModuleLoadDataEx", |out: *mut usize| {
        (out, text.as_ptr(), 1u32, options.as_ptr(), values.as_ptr())
    });
    assert_eq!([registers(limited, "k"), registers(limited, "own")], [38, 48]);
    let state = api.make("cuLinkCreate_v2", |out: *mut usize| (1u32, options.as_ptr(), values.as_ptr(), out));
    api.ok(
        "cuLinkAddData_v2",
        (state, 1i32, text.as_ptr(), text.len() - 1, c"part".as_ptr(), 0u32, NULL, NULL),
    );
    let (mut image, mut bytes) = (NULL, 0usize);
    api.ok("cuLinkComplete", (state, &raw mut image, &raw mut bytes));
    let linked = api.make("cuModuleLoadData", |out: *mut usize| (out, image));
    assert_eq!([registers(linked, "k"), registers(linked, "own")], [38, 48]);
}

/// A kernel that declares the size of its CTAs can be launched with it, however many registers it needs:
/// libraries divide by the occupancy.
#[test]
fn registers_leave_room_for_the_bounds_of_a_kernel() {
    const REGISTERS: i32 = 4;
    let (api, _) = Api::with_context();
    let (mut body, mut rest) = (String::new(), String::new());
    for i in 0..200 {
        body += &format!("ld.global.u32 %r{i}, [%rd+{}];", 4 * i);
        rest += &format!("st.global.u32 [%rd+{}], %r{};", 4 * i, 199 - i);
    }
    let mut text = ".version 6.4\n.target sm_70\n.address_size 64\n".to_owned();
    let cases = [
        ("plain", "", 216, 256, 1),
        ("largest", ".maxntid 1024", 64, 1024, 1),
        ("flat", ".maxntid 512, 2", 64, 1024, 1),
        ("half", ".maxntid 500", 128, 500, 1),
        ("required", ".reqntid 512", 128, 512, 1),
        ("several", ".maxntid 128 .minnctapersm 8", 64, 128, 8),
        ("crowd", ".maxntid 1024 .minnctapersm 2", 32, 1024, 2),
    ];
    for (name, bounds, ..) in cases {
        text += &format!(
            ".visible .entry {name}(.param .u64 p) {bounds} {{ .reg .b64 %rd; .reg .b32 %r<200>;\
             ld.param.u64 %rd, [p]; {body} bra NEXT; NEXT: {rest} ret; }}\n"
        );
    }
    text.push('\0');
    let module = api.make("cuModuleLoadData", |out: *mut usize| (out, text.as_ptr()));
    for (name, _, most, threads, ctas) in cases {
        let function = api.function(module, name);
        let (mut registers, mut blocks) = (0i32, 0i32);
        api.ok("cuFuncGetAttribute", (&raw mut registers, REGISTERS, function));
        assert!(registers <= most, "{name}: {registers}");
        let attribute = "cuOccupancyMaxActiveBlocksPerMultiprocessor";
        api.ok(attribute, (&raw mut blocks, function, threads, 0usize));
        assert!(blocks >= ctas, "{name}: {blocks} CTAs of {threads} threads with {registers} registers");
    }
}

#[test]
fn memory_of_every_kind_is_reached_by_kernels() {
    let (api, _) = Api::with_context();
    let double = api.function(api.module(), "double_all");
    let pinned = api.make("cuMemHostAlloc", |out: *mut u64| (out, 16usize, 0u32));
    let managed = api.make("cuMemAllocManaged", |out: *mut u64| (out, 16usize, 1u32));
    let mut own: Vec<AtomicU32> = (0..4).map(AtomicU32::new).collect();
    let registered = own.as_mut_ptr() as u64;
    api.ok("cuMemHostRegister_v2", (registered, 16usize, 0u32));
    assert_eq!(api.call("cuMemHostRegister_v2", (registered, 16usize, 0u32)), 712);
    for address in [pinned, managed, registered] {
        // SAFETY: four numbers in memory that host and kernels share.
        let shared = unsafe { std::slice::from_raw_parts(address as *const AtomicU32, 4) };
        for (index, number) in shared.iter().enumerate() {
            number.store(index as u32 + 5, Ordering::Relaxed);
        }
        assert_eq!(api.launch(double, (1, 4), NULL, address), 0);
        api.ok("cuCtxSynchronize", ());
        let seen: Vec<u32> = shared.iter().map(|number| number.load(Ordering::Relaxed)).collect();
        assert_eq!(seen, [10, 12, 14, 16]);
    }
    let kind = |address: u64| {
        let mut kind = 0u32;
        (api.call("cuPointerGetAttribute", (&raw mut kind, 2i32, address)), kind)
    };
    assert_eq!(kind(pinned + 4), (0, 1));
    assert_eq!(kind(managed), (0, 2));
    assert_eq!(kind(registered), (0, 1));
    assert_eq!(kind(8).0, INVALID_VALUE);
    api.ok("cuMemHostUnregister", (registered,));
    assert_eq!(api.call("cuMemHostUnregister", (registered,)), 713);
    assert_eq!(api.call("cuMemFree_v2", (pinned,)), INVALID_VALUE);
    api.ok("cuMemFreeHost", (pinned,));
    api.ok("cuMemFree_v2", (managed,));
    assert_eq!(api.launch(double, (1, 4), NULL, registered), 0);
    assert_eq!(api.call("cuCtxSynchronize", ()), 700);
}

#[test]
fn memory_is_set_and_copied_in_all_widths() {
    let (api, _) = Api::with_context();
    let data = api.alloc(64);
    api.ok("cuMemsetD32_v2", (data, 0x0403_0201u32, 16usize));
    api.ok("cuMemsetD16_v2", (data + 4, 0xbbaau16, 2usize));
    api.ok("cuMemsetD8_v2", (data + 8, 0xccu8, 4usize));
    api.ok("cuMemsetD2D8_v2", (data + 16, 16usize, 0u8, 4usize, 3usize));
    let words = api.read(data, 16);
    assert_eq!(words[..4], [0x0403_0201, 0xbbaa_bbaa, 0xcccc_cccc, 0x0403_0201]);
    assert_eq!([words[4], words[5], words[8], words[12]], [0, 0x0403_0201, 0, 0]);
    assert_eq!(api.call("cuMemsetD32_v2", (data + 2, 0u32, 1usize)), INVALID_VALUE);
    assert_eq!(api.call("cuMemsetD8_v2", (data, 0u8, 65usize)), INVALID_VALUE);
    assert_eq!(api.call("cuMemcpyDtoD_v2", (data, data + 32, 33usize)), INVALID_VALUE);
    assert_eq!(api.call("cuMemcpyHtoD_v2", (data, NULL, 4usize)), INVALID_VALUE);
    api.ok("cuMemcpyHtoD_v2", (data, NULL, 0usize));
    let host = [5u32; 4];
    api.ok("cuMemcpy", (data, host.as_ptr(), 16usize));
    api.ok("cuMemcpyDtoD_v2", (data + 16, data, 16usize));
    assert_eq!(api.read(data + 16, 4), [5; 4]);
    let total = api.make("cuDeviceTotalMem_v2", |out: *mut usize| (out, 0i32));
    assert_eq!(api.call("cuMemAlloc_v2", (&raw mut *Box::new(0u64), total + 1)), OUT_OF_MEMORY);
    assert_eq!(api.call("cuMemAlloc_v2", (&raw mut *Box::new(0u64), 0usize)), INVALID_VALUE);
    assert_eq!(api.call("cuMemAlloc_v2", (NULL, 4usize)), INVALID_VALUE);
    assert_eq!(api.call("cuMemAlloc_v2", (3usize, 4usize)), INVALID_VALUE);
}

/// `CUDA_MEMCPY2D`
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Side {
    x: usize,
    y: usize,
    kind: i32,
    host: usize,
    device: u64,
    array: usize,
    pitch: usize,
}

#[repr(C)]
struct Rectangle {
    from: Side,
    to: Side,
    width: usize,
    height: usize,
}

#[test]
fn rectangles_are_copied_through_arrays_and_sampled() {
    let (api, _) = Api::with_context();
    let host: Vec<f32> = (0..20).map(|n| n as f32).collect();
    // 4 x 3 texels of the 5 x 4 numbers, from (1, 1).
    let array = api.make("cuArrayCreate_v2", |out: *mut usize| (out, [4usize, 3, 32 | 1 << 32].as_ptr()));
    let from = Side { x: 4, y: 1, kind: 1, host: host.as_ptr() as usize, pitch: 20, ..Side::default() };
    let to = Side { kind: 3, array, ..Side::default() };
    let mut copy = Rectangle { from, to, width: 16, height: 3 };
    api.ok("cuMemcpy2D_v2", (&raw const copy,));
    copy.width = 20;
    assert_eq!(api.call("cuMemcpy2D_v2", (&raw const copy,)), INVALID_VALUE);

    let mut resource = [0u64; 18];
    resource[1] = array as u64;
    // Clamped, nearest, unnormalized.
    let mut texture = [0u32; 26];
    texture[..3].copy_from_slice(&[1; 3]);
    let object =
        api.make("cuTexObjectCreate", |out: *mut u64| (out, resource.as_ptr(), texture.as_ptr(), NULL));
    let sample = api.function(api.module(), "sample");
    let out = api.alloc(48);
    let params = [&raw const object, &raw const out];
    let params: Params = params.as_ptr();
    api.ok("cuLaunchKernel", (sample, 1u32, 1u32, 1u32, 4u32, 3u32, 1u32, 0u32, NULL, params, NULL));
    let seen: Vec<f32> = api.read(out, 12).into_iter().map(f32::from_bits).collect();
    assert_eq!(seen, [6., 7., 8., 9., 11., 12., 13., 14., 16., 17., 18., 19.]);

    // Copies the array's second row back.
    let mut row = [0f32; 4];
    api.ok("cuMemcpyAtoH_v2", (row.as_mut_ptr(), array, 16usize, 16usize));
    assert_eq!(row, [11., 12., 13., 14.]);
    api.ok("cuTexObjectDestroy", (object,));
    assert_eq!(api.call("cuTexObjectDestroy", (object,)), INVALID_VALUE);
    api.ok("cuArrayDestroy", (array,));
    assert_eq!(api.call("cuArrayDestroy", (array,)), INVALID_HANDLE);
}

#[test]
fn memory_that_the_host_sees_is_set_when_the_call_returns() {
    let (api, _) = Api::with_context();
    let wait = api.function(api.module(), "wait");
    let flag = api.make("cuMemHostAlloc", |out: *mut u64| (out, 4usize, 0u32));
    let device = api.alloc(4);
    let seen = [
        api.make("cuMemHostAlloc", |out: *mut u64| (out, 4usize, 0u32)),
        api.make("cuMemAllocManaged", |out: *mut u64| (out, 4usize, 1u32)),
    ];
    // SAFETY: the library allocated the memory, which lives as long as the process.
    let number = |address: u64| unsafe { &*(address as *const AtomicU32) };
    for address in seen {
        number(flag).store(0, Ordering::Release);
        assert_eq!(api.launch(wait, (1, 1), NULL, flag), 0);
        // A memset of device memory waits in the stream and does not block the host, else this would never
        // return.
        api.ok("cuMemsetD32_v2", (device, 7u32, 1usize));
        let later = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            // SAFETY: as above.
            unsafe { &*(flag as *const AtomicU32) }.store(1, Ordering::Release);
        });
        api.ok("cuMemsetD32_v2", (address, 9u32, 1usize));
        assert_eq!(number(address).load(Ordering::Acquire), 9);
        later.join().expect("it only stores");
        assert_eq!(api.read(device, 1), [7]);
    }
}

#[test]
fn streams_run_beside_the_host_and_each_other() {
    let (api, _) = Api::with_context();
    let module = api.module();
    let (wait, double) = (api.function(module, "wait"), api.function(module, "double_all"));
    let flag = api.make("cuMemHostAlloc", |out: *mut u64| (out, 4usize, 0u32));
    let (one, two) = (
        api.make("cuStreamCreate", |out: *mut usize| (out, 1u32)),
        api.make("cuStreamCreate", |out: *mut usize| (out, 1u32)),
    );
    let data = api.alloc(4);
    api.ok("cuMemsetD32_v2", (data, 21u32, 1usize));
    // Non-blocking streams do not wait for the default stream.
    api.ok("cuCtxSynchronize", ());
    // The first stream waits for the host; the second does not wait for the first.
    assert_eq!(api.launch(wait, (1, 1), one, flag), 0);
    assert_eq!(api.call("cuStreamQuery", (one,)), NOT_READY);
    let event = api.make("cuEventCreate", |out: *mut usize| (out, 0u32));
    api.ok("cuEventRecord", (event, one));
    assert_eq!(api.call("cuEventQuery", (event,)), NOT_READY);
    assert_eq!(api.launch(double, (1, 1), two, data), 0);
    api.ok("cuStreamSynchronize", (two,));
    assert_eq!(api.call("cuStreamQuery", (one,)), NOT_READY);
    // Later work in the second stream waits for the first.
    api.ok("cuStreamWaitEvent", (two, event, 0u32));
    assert_eq!(api.launch(double, (1, 1), two, data), 0);
    assert_eq!(api.call("cuStreamQuery", (two,)), NOT_READY);
    // SAFETY: the library allocated the memory, which kernels change.
    unsafe { &*(flag as *const AtomicU32) }.store(1, Ordering::Release);
    api.ok("cuStreamSynchronize", (two,));
    api.ok("cuEventQuery", (event,));
    assert_eq!(api.read(data, 1), [84]);
    let end = api.make("cuEventCreate", |out: *mut usize| (out, 0u32));
    api.ok("cuEventRecord", (end, two));
    api.ok("cuEventSynchronize", (end,));
    let time = api.make("cuEventElapsedTime", |out: *mut f32| (out, event, end));
    assert!(time >= 0.0);
    api.ok("cuStreamDestroy_v2", (one,));
    assert_eq!(api.call("cuStreamSynchronize", (one,)), INVALID_HANDLE);
    assert_eq!(api.call("cuEventRecord", (event, one)), INVALID_HANDLE);
}

#[test]
fn host_functions_run_in_order() {
    static ORDER: AtomicU32 = AtomicU32::new(0);
    extern "C" fn note(data: *mut u32) {
        // SAFETY: the test passes a pointer to a number that outlives the call.
        unsafe { *data = ORDER.fetch_add(1, Ordering::SeqCst) + 1 };
    }
    let (api, _) = Api::with_context();
    let stream = api.make("cuStreamCreate", |out: *mut usize| (out, 0u32));
    let mut seen = [0u32; 3];
    for place in &mut seen {
        api.ok("cuLaunchHostFunc", (stream, note as extern "C" fn(*mut u32), &raw mut *place));
    }
    assert_eq!(api.call("cuLaunchHostFunc", (stream, NULL, NULL)), INVALID_VALUE);
    api.ok("cuStreamSynchronize", (stream,));
    assert_eq!(seen, [1, 2, 3]);
}

#[test]
fn a_trap_stays_in_its_context() {
    let (api, context) = Api::with_context();
    let module = api.module();
    let data = api.alloc(16);
    assert_eq!(api.launch(api.function(module, "misaligned"), (1, 1), NULL, data), 0);
    assert_eq!(api.call("cuCtxSynchronize", ()), 716);
    assert_eq!(api.call("cuMemAlloc_v2", (&raw mut *Box::new(0u64), 4usize)), 716);
    assert_eq!(api.launch(module, (1, 1), NULL, data), 716);
    api.ok("cuCtxDestroy_v2", (context,));
    let (api, _) = Api::with_context();
    let stops = api.function(api.module(), "stops");
    api.ok("cuLaunchKernel", (stops, 1u32, 1u32, 1u32, 1u32, 1u32, 1u32, 0u32, NULL, NULL, NULL));
    assert_eq!(api.call("cuStreamSynchronize", (NULL,)), 719);
}

#[test]
fn bad_launches_are_refused_at_once() {
    let (api, _) = Api::with_context();
    let module = api.module();
    let function = api.function(module, "shared");
    let out = api.alloc(4);
    let params = [&raw const out];
    let params: Params = params.as_ptr();
    let launch = |grid: [u32; 3], block: [u32; 3], shared: u32| {
        let ([gx, gy, gz], [bx, by, bz]) = (grid, block);
        api.call("cuLaunchKernel", (function, gx, gy, gz, bx, by, bz, shared, NULL, params, NULL))
    };
    assert_eq!(launch([0, 1, 1], [1; 3], 0), INVALID_VALUE);
    assert_eq!(launch([1; 3], [0, 1, 1], 0), INVALID_VALUE);
    assert_eq!(launch([1; 3], [1025, 1, 1], 0), INVALID_VALUE);
    assert_eq!(launch([1; 3], [1, 1, 65], 0), INVALID_VALUE);
    assert_eq!(launch([1, 65536, 1], [1; 3], 0), INVALID_VALUE);
    // 48 KiB are available by default; more after `cuFuncSetAttribute`.
    assert_eq!(launch([1; 3], [1; 3], 47 << 10), 0);
    assert_eq!(launch([1; 3], [1; 3], 48 << 10), INVALID_VALUE);
    assert_eq!(api.call("cuFuncSetAttribute", (function, 8i32, 1i32 << 30)), INVALID_VALUE);
    api.ok("cuFuncSetAttribute", (function, 8i32, 100i32 << 10));
    assert_eq!(launch([1; 3], [1; 3], 100 << 10), 0);
    assert_eq!(api.read(out, 1), [100 << 10]);
    let attribute = |number: i32| api.make("cuFuncGetAttribute", |out: *mut i32| (out, number, function));
    assert_eq!(attribute(1), 1024);
    assert!((16..=255).contains(&attribute(4)));
    // The attribute is the architecture of `.target`, not `.version`.
    assert_eq!(attribute(5), 70);
    assert_eq!(api.call("cuFuncGetAttribute", (&raw mut *Box::new(0i32), 99i32, function)), INVALID_VALUE);
}

#[test]
fn occupancy_counts_threads_and_shared_memory() {
    let (api, _) = Api::with_context();
    let module = api.module();
    let blocks = |name: &str, threads: i32, dynamic: usize| {
        let function = api.function(module, name);
        api.make("cuOccupancyMaxActiveBlocksPerMultiprocessor", |out: *mut i32| {
            (out, function, threads, dynamic)
        })
    };
    // 2048 threads, 32 CTAs, 164 KiB of shared memory, of which each CTA reserves 1 KiB.
    assert_eq!(blocks("nothing", 1024, 0), 2);
    assert_eq!(blocks("nothing", 32, 0), 32);
    assert_eq!(blocks("shared", 32, 39 << 10), 4);
    assert_eq!(blocks("nothing", 32, 200 << 10), 0);
}

#[test]
fn names_are_looked_up_by_version() {
    let api = Api::open();
    let look = |name: &CStr, version: i32, flags: u64| {
        let (mut address, mut status) = (9usize, 9i32);
        let answer = api
            .call("cuGetProcAddress_v2", (name.as_ptr(), &raw mut address, version, flags, &raw mut status));
        (answer, address, status)
    };
    let (answer, plain, status) = look(c"cuLaunchKernel", 12090, 0);
    assert_eq!((answer, status), (0, 0));
    let (_, own, _) = look(c"cuLaunchKernel", 12090, 2);
    assert!(plain != own && plain != 0 && own != 0);
    assert_eq!(look(c"cuNoSuchFunction", 12090, 0), (0, 0, 1));
    let (nothing, mut address) = (c"cuNoSuchFunction".as_ptr(), 9usize);
    assert_eq!(api.call("cuGetProcAddress_v2", (nothing, &raw mut address, 12090, 0u64, NULL)), NOT_FOUND);
    assert_eq!(look(c"cuLibraryLoadData", 11000, 0).2, 2);
    assert_eq!(look(c"cuInit", 12090, 7).0, INVALID_VALUE);
    let table = api.call("cuGetExportTable", (&raw mut *Box::new(0usize), [1u8; 16].as_ptr()));
    assert_eq!(table, NOT_FOUND);
}

#[test]
fn errors_have_names() {
    let api = Api::open();
    let text = |function: &str, status: i32| {
        let text = api.make(function, |out: *mut usize| (status, out));
        // SAFETY: the library returns texts that live forever.
        unsafe { CStr::from_ptr(text as *const _) }.to_str().unwrap().to_owned()
    };
    assert_eq!(text("cuGetErrorName", 700), "CUDA_ERROR_ILLEGAL_ADDRESS");
    assert_eq!(text("cuGetErrorName", 0), "CUDA_SUCCESS");
    assert_eq!(text("cuGetErrorString", 0), "no error");
    assert_eq!(api.call("cuGetErrorName", (12345i32, &raw mut *Box::new(0usize))), INVALID_VALUE);
}

#[test]
fn pools_keep_accounts() {
    if !support::runs_alone("pools_keep_accounts") {
        return;
    }
    let (api, _) = Api::with_context();
    // Pinned memory of device 0.
    let mut properties = [0u64; 12];
    properties[..2].copy_from_slice(&[1, 1]);
    let pool = api.make("cuMemPoolCreate", |out: *mut usize| (out, properties.as_ptr()));
    let used = || api.make("cuMemPoolGetAttribute", |out: *mut u64| (pool, 7i32, out));
    let stream = api.make("cuStreamCreate", |out: *mut usize| (out, 0u32));
    let data = api.make("cuMemAllocFromPoolAsync", |out: *mut u64| (out, 1000usize, pool, stream));
    assert_eq!(used(), 1000);
    api.ok("cuMemFreeAsync", (data, stream));
    assert_eq!(api.call("cuMemFreeAsync", (data, stream)), INVALID_VALUE);
    api.ok("cuStreamSynchronize", (stream,));
    assert_eq!(used(), 0);
    assert_eq!(api.make("cuMemPoolGetAttribute", |out: *mut u64| (pool, 8i32, out)), 1000);
    api.ok("cuMemPoolDestroy", (pool,));
    assert_eq!(api.call("cuMemPoolDestroy", (pool,)), INVALID_VALUE);
}

#[test]
fn the_default_streams_are_ordered_as_documented() {
    let (api, _) = Api::with_context();
    let module = api.module();
    let (wait, double) = (api.function(module, "wait"), api.function(module, "double_all"));
    let flag = api.make("cuMemHostAlloc", |out: *mut u64| (out, 4usize, 0u32));
    let data = api.alloc(4);
    api.ok("cuMemcpyHtoD_v2", (data, [3u32].as_ptr(), 4usize));
    let blocking = api.make("cuStreamCreate", |out: *mut usize| (out, 0u32));
    assert_eq!(api.launch(wait, (1, 1), blocking, flag), 0);

    // The stream of the thread does not wait for another stream.
    let params = [&raw const data];
    let params: Params = params.as_ptr();
    let own = |name: &str, stream: usize| {
        api.call(name, (double, 1u32, 1u32, 1u32, 1u32, 1u32, 1u32, 0u32, stream, params, NULL))
    };
    assert_eq!(own("cuLaunchKernel_ptsz", NULL), 0);
    api.ok("cuStreamSynchronize_ptsz", (NULL,));
    assert_eq!(own("cuLaunchKernel", 2), 0);
    api.ok("cuStreamSynchronize", (2usize,));
    assert_eq!(api.call("cuStreamQuery", (blocking,)), NOT_READY);

    // The legacy stream waits for it, and the thread's stream then waits for the legacy stream.
    assert_eq!(own("cuLaunchKernel", NULL), 0);
    assert_eq!(api.call("cuStreamQuery", (NULL,)), NOT_READY);
    assert_eq!(own("cuLaunchKernel_ptsz", NULL), 0);
    assert_eq!(api.call("cuStreamQuery_ptsz", (NULL,)), NOT_READY);
    // SAFETY: the library allocated the memory, which kernels change.
    unsafe { &*(flag as *const AtomicU32) }.store(1, Ordering::Release);
    api.ok("cuStreamSynchronize_ptsz", (NULL,));
    assert_eq!(api.read(data, 1), [3 << 4]);
}

#[test]
fn ending_a_context_stops_a_launch_of_any_size() {
    let (api, context) = Api::with_context();
    let text = ".version 6.4\n.target sm_70\n.address_size 64\n.visible .entry k() { ret; }\0";
    let module = api.make("cuModuleLoadData", |out: *mut usize| (out, text.as_ptr()));
    let function = api.function(module, "k");
    let stream = api.make("cuStreamCreate", |out: *mut usize| (out, 1u32));
    let [x, yz] = [2_147_483_647u32, 65_535];
    api.ok("cuLaunchKernel", (function, x, yz, yz, 32u32, 1u32, 1u32, 0u32, stream, NULL, NULL));
    std::thread::sleep(Duration::from_millis(100));
    let start = Instant::now();
    api.ok("cuCtxDestroy_v2", (context,));
    // The promise is one second; the machine may be loaded.
    assert!(start.elapsed() < Duration::from_millis(2500), "{:?}", start.elapsed());
}

#[test]
fn ending_a_context_stops_its_kernels_and_frees_its_memory() {
    if !support::runs_alone("ending_a_context_stops_its_kernels_and_frees_its_memory") {
        return;
    }
    let (api, context) = Api::with_context();
    let wait = api.function(api.module(), "wait");
    let stream = api.make("cuStreamCreate", |out: *mut usize| (out, 1u32));
    let data = api.alloc(4);
    api.ok("cuMemsetD32_v2", (data, 0u32, 1usize));
    api.ok("cuCtxSynchronize", ());
    // The kernel would never end by itself.
    assert_eq!(api.launch(wait, (1, 1), stream, data), 0);
    api.ok("cuCtxDestroy_v2", (context,));
    let (api, _) = Api::with_context();
    assert_eq!(api.call("cuStreamQuery", (stream,)), INVALID_HANDLE);
    let mut kind = 0u32;
    assert_eq!(api.call("cuPointerGetAttribute", (&raw mut kind, 2i32, data)), INVALID_VALUE);
}
