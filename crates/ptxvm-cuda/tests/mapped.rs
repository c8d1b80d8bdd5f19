//! Virtual memory management: reserve, create, map, set access, share. Tests that run kernels use a process
//! for each engine.

mod support;

use std::process::Command;
use support::Api;

const NULL: usize = 0;
const MIB: usize = 1 << 20;
const SIZE: usize = 2 * MIB;
const INVALID_VALUE: i32 = 1;
const ILLEGAL_ADDRESS: i32 = 700;
const NOT_SUPPORTED: i32 = 801;
const READ: i32 = 1;
const WRITE: i32 = 3;

/// `CUmemAllocationProp`, which has a pointer and therefore its alignment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C, align(8))]
struct Properties([i32; 8]);

impl Properties {
    fn as_ptr(&self) -> *const i32 {
        self.0.as_ptr()
    }
}

/// Pinned memory of device 0 that can be shared as a descriptor, or other values.
fn properties(kind: i32, handles: i32, location: i32, device: i32) -> Properties {
    Properties([kind, handles, location, device, 0, 0, 0, 0])
}

fn create(api: Api, bytes: usize) -> u64 {
    let properties = properties(1, 1, 1, 0);
    api.make("cuMemCreate", |out: *mut u64| (out, bytes, properties.as_ptr(), 0u64))
}

fn reserve(api: Api, bytes: usize) -> u64 {
    api.make("cuMemAddressReserve", |out: *mut u64| (out, bytes, 0usize, 0u64, 0u64))
}

fn set_access(api: Api, at: u64, bytes: usize, flags: i32) -> i32 {
    let grant = [1, 0, flags];
    api.call("cuMemSetAccess", (at, bytes, grant.as_ptr(), 1usize))
}

fn access(api: Api, at: u64) -> u64 {
    let device = [1, 0];
    api.make("cuMemGetAccess", |out: *mut u64| (out, device.as_ptr(), at))
}

/// Mapped memory with this access for device 0.
fn mapped(api: Api, flags: i32) -> (u64, u64) {
    let (at, memory) = (reserve(api, SIZE), create(api, SIZE));
    api.ok("cuMemMap", (at, SIZE, 0usize, memory, 0u64));
    assert_eq!(set_access(api, at, SIZE, flags), 0);
    (at, memory)
}

/// The error of the context after a kernel that doubles 32 numbers at an address.
fn doubled(api: Api, at: u64) -> i32 {
    let double = api.function(api.module(), "double_all");
    match api.launch(double, (1, 32), NULL, at) {
        0 => api.call("cuCtxSynchronize", ()),
        status => status,
    }
}

#[test]
fn sizes_and_rights_are_checked() {
    if !support::runs_alone("sizes_and_rights_are_checked") {
        return;
    }
    let (api, _) = Api::with_context();
    let all = properties(1, 1, 1, 0);
    for option in [0, 1] {
        let found = api.make("cuMemGetAllocationGranularity", |out: *mut usize| (out, all.as_ptr(), option));
        assert_eq!(found, SIZE);
    }
    let mut out = 0u64;
    let make = |bytes: usize, words: Properties, out: *mut u64| {
        api.call("cuMemCreate", (out, bytes, words.as_ptr(), 0u64))
    };
    assert_eq!(make(SIZE - 1, all, &raw mut out), INVALID_VALUE);
    assert_eq!(make(0, all, &raw mut out), INVALID_VALUE);
    assert_eq!(make(SIZE, properties(0, 0, 1, 0), &raw mut out), INVALID_VALUE);
    assert_eq!(make(SIZE, properties(1, 0, 1, 1), &raw mut out), 101);
    assert_eq!(make(SIZE, properties(1, 1, 2, 0), &raw mut out), NOT_SUPPORTED);
    assert_eq!(make(SIZE, properties(1, 8, 1, 0), &raw mut out), NOT_SUPPORTED);
    assert_eq!(make(1 << 62, all, &raw mut out), 2);
    let at = reserve(api, 2 * SIZE);
    let memory = create(api, SIZE);
    let map = |at: u64, bytes: usize, offset: usize| api.call("cuMemMap", (at, bytes, offset, memory, 0u64));
    assert_eq!(map(at + 4096, SIZE, 0), INVALID_VALUE);
    assert_eq!(map(at, 2 * SIZE, 0), INVALID_VALUE);
    assert_eq!(map(at, SIZE, SIZE), INVALID_VALUE);
    assert_eq!(map(at + 2 * SIZE as u64, SIZE, 0), INVALID_VALUE);
    assert_eq!(map(at, SIZE, 0), 0);
    assert_eq!(map(at, SIZE, 0), INVALID_VALUE);
    assert_eq!(access(api, at), 0);
    assert_eq!(set_access(api, at, 2 * SIZE, WRITE), INVALID_VALUE);
    assert_eq!(set_access(api, at, SIZE, 2), INVALID_VALUE);
    assert_eq!(set_access(api, at, SIZE, READ), 0);
    assert_eq!(access(api, at + 77), 1);
    assert_eq!(api.call("cuMemAddressFree", (at, 2 * SIZE)), INVALID_VALUE);
    assert_eq!(api.call("cuMemFree_v2", (at,)), INVALID_VALUE);
    assert_eq!(api.call("cuMemUnmap", (at, 2 * SIZE)), INVALID_VALUE);
    api.ok("cuMemUnmap", (at, SIZE));
    assert_eq!(api.call("cuMemUnmap", (at, SIZE)), INVALID_VALUE);
    assert_eq!(api.call("cuMemAddressFree", (at, SIZE)), INVALID_VALUE);
    api.ok("cuMemAddressFree", (at, 2 * SIZE));
    assert_eq!(api.call("cuMemAddressFree", (at, 2 * SIZE)), INVALID_VALUE);
    api.ok("cuMemRelease", (memory,));
    assert_eq!(api.call("cuMemRelease", (memory,)), INVALID_VALUE);
}

#[test]
fn copies_keep_to_the_rights() {
    let (api, _) = Api::with_context();
    let (at, memory) = mapped(api, WRITE);
    let words = [5u32, 6, 7];
    let write = || api.call("cuMemcpyHtoD_v2", (at, words.as_ptr(), 12usize));
    let read = || api.call("cuMemcpyDtoH_v2", (&raw mut *Box::new([0u32; 3]), at, 12usize));
    let fill = || api.call("cuMemsetD32_v2", (at, 1u32, 3usize));
    let number = || api.call("cuStreamWriteValue32_v2", (NULL, at, 1u32, 0u32));
    assert_eq!((fill(), number(), write(), read()), (0, 0, 0, 0));
    assert_eq!(api.read(at, 3), words);
    assert_eq!(set_access(api, at, SIZE, READ), 0);
    assert_eq!((write(), fill(), number(), read()), (INVALID_VALUE, INVALID_VALUE, INVALID_VALUE, 0));
    assert_eq!(set_access(api, at, SIZE, 0), 0);
    assert_eq!((write(), fill(), read()), (INVALID_VALUE, INVALID_VALUE, INVALID_VALUE));
    api.ok("cuMemUnmap", (at, SIZE));
    assert_eq!((write(), read()), (INVALID_VALUE, INVALID_VALUE));
    // The memory and its contents still exist.
    api.ok("cuMemMap", (at, SIZE, 0usize, memory, 0u64));
    assert_eq!(set_access(api, at, SIZE, READ), 0);
    assert_eq!(api.read(at, 3), words);
}

#[test]
fn what_grows_is_one_range() {
    // The addresses after a range are reserved, and a copy crosses both.
    let (api, _) = Api::with_context();
    let first = mapped(api, WRITE).0;
    let wanted = first + SIZE as u64;
    let second = api.make("cuMemAddressReserve", |out: *mut u64| (out, SIZE, 0usize, wanted, 0u64));
    if second == wanted {
        api.ok("cuMemMap", (second, SIZE, 0usize, create(api, SIZE), 0u64));
        assert_eq!(set_access(api, second, SIZE, WRITE), 0);
        let data: Vec<u32> = (0..2 * SIZE as u32 / 4).collect();
        api.ok("cuMemcpyHtoD_v2", (first, data.as_ptr(), 2 * SIZE));
        assert_eq!(api.read(wanted - 8, 4), data[SIZE / 4 - 2..][..4]);
        // Each mapping is an allocation, and each reservation is a range.
        let (mut base, mut bytes) = (0u64, 0usize);
        api.ok("cuMemGetAddressRange_v2", (&raw mut base, &raw mut bytes, second + 5));
        assert_eq!((base, bytes), (second, SIZE));
    }
    for (attribute, value) in [(11, first), (12, SIZE as u64), (19, first), (18, SIZE as u64), (14, 1)] {
        let found = api.make("cuPointerGetAttribute", |out: *mut u64| (out, attribute, first + 100));
        assert_eq!(found, value, "{attribute}");
    }
    let flags = api.make("cuPointerGetAttribute", |out: *mut u32| (out, 16i32, first));
    assert_eq!(flags, 3);
}

#[test]
fn memory_stays_while_it_is_mapped_or_counted() {
    let (api, _) = Api::with_context();
    let free = || {
        let mut free = 0usize;
        api.ok("cuMemGetInfo_v2", (&raw mut free, NULL));
        free
    };
    let before = free();
    let (at, memory) = mapped(api, WRITE);
    assert!(free() <= before - SIZE);
    api.ok("cuMemRelease", (memory,));
    assert_eq!(api.call("cuMemMap", (at, SIZE, 0usize, memory, 0u64)), INVALID_VALUE);
    let again = api.make("cuMemRetainAllocationHandle", |out: *mut u64| (out, at + 9));
    assert_eq!(again, memory);
    let mut found = Properties::default();
    api.ok("cuMemGetAllocationPropertiesFromHandle", (found.0.as_mut_ptr(), memory));
    assert_eq!(found, properties(1, 1, 1, 0));
    api.ok("cuMemUnmap", (at, SIZE));
    api.ok("cuMemRelease", (memory,));
    assert_eq!(api.call("cuMemRetainAllocationHandle", (&raw mut *Box::new(0u64), at)), INVALID_VALUE);
    // Memory that is neither mapped nor counted is free again, also if its handle could not be written.
    let (properties, nowhere) = (properties(1, 1, 1, 0), 0x10usize);
    assert_eq!(api.call("cuMemCreate", (nowhere, SIZE, properties.as_ptr(), 0u64)), INVALID_VALUE);
}

#[test]
fn descriptors_give_the_same_memory() {
    let (api, _) = Api::with_context();
    let (at, memory) = mapped(api, WRITE);
    let file = api.make("cuMemExportToShareableHandle", |out: *mut i32| (out, memory, 1i32, 0u64));
    let export =
        |kind: i32| api.call("cuMemExportToShareableHandle", (&raw mut *Box::new(0i32), memory, kind, 0u64));
    assert_eq!((export(0), export(2)), (INVALID_VALUE, INVALID_VALUE));
    let import = |number: usize| {
        let mut out = 0u64;
        (api.call("cuMemImportFromShareableHandle", (&raw mut out, number, 1i32)), out)
    };
    assert_eq!(import(usize::MAX).0, INVALID_VALUE);
    assert_eq!(import(1 << 20).0, INVALID_VALUE);
    // Standard input is not a memory file.
    assert_eq!(import(0).0, INVALID_VALUE);
    let (status, other) = import(file as usize);
    assert_eq!(status, 0);
    let there = reserve(api, SIZE);
    api.ok("cuMemMap", (there, SIZE, 0usize, other, 0u64));
    assert_eq!(set_access(api, there, SIZE, WRITE), 0);
    api.ok("cuMemcpyHtoD_v2", (at + 4, [77u32].as_ptr(), 4usize));
    assert_eq!(api.read(there, 2), [0, 77]);
    // A kernel writes through one address, and the host reads through the other.
    assert_eq!(doubled(api, there), 0);
    assert_eq!(api.read(at, 2), [0, 154]);
}

const CHILD: &str = "PTXVM_TEST_RIGHTS";

#[test]
fn rights_in_kernels() {
    let Some(rights) = std::env::var_os(CHILD) else { return };
    let (api, _) = Api::with_context();
    let (at, _) = mapped(api, WRITE);
    assert_eq!(doubled(api, at), 0);
    match rights.to_str() {
        Some("read") => assert_eq!(set_access(api, at, SIZE, READ), 0),
        Some("none") => assert_eq!(set_access(api, at, SIZE, 0), 0),
        _ => api.ok("cuMemUnmap", (at, SIZE)),
    }
    assert_eq!(doubled(api, at), ILLEGAL_ADDRESS);
}

#[test]
fn kernels_keep_to_the_rights_in_both_engines() {
    let program = std::env::current_exe().expect("this program");
    for engine in ["interp", "jit"] {
        for rights in ["read", "none", "unmapped"] {
            let mut child = Command::new(&program);
            child.args(["--exact", "rights_in_kernels", "--nocapture"]);
            let output = child.env(CHILD, rights).env("PTXVM_ENGINE", engine).output().expect("it starts");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            if engine == "jit" && said.contains("LLVM") {
                println!("skipped: no LLVM");
                continue;
            }
            assert!(output.status.success(), "{engine} {rights}: {said}");
            let why = match rights {
                "read" => "device 0 may read it only",
                "none" => "where no device may access it",
                _ => "the address is reserved, and nothing is mapped there",
            };
            assert!(said.contains(why), "{engine} {rights}: {said}");
        }
    }
}

#[test]
fn memory_of_the_host_is_shared_with_kernels() {
    let (api, _) = Api::with_context();
    let (on_host, on_numa_node) = (properties(1, 0, 2, 0), properties(1, 0, 3, 0));
    for properties in [on_host, on_numa_node] {
        let memory = api.make("cuMemCreate", |out: *mut u64| (out, SIZE, &raw const properties, 0u64));
        let at = reserve(api, SIZE);
        api.ok("cuMemMap", (at, SIZE, 0usize, memory, 0u64));
        let device = [1, 0, WRITE];
        api.ok("cuMemSetAccess", (at, SIZE, device.as_ptr(), 1usize));
        let numbers = std::ptr::with_exposed_provenance_mut::<[u32; 4]>(at as usize);
        // SAFETY: memory of the host is mapped there, and no kernel runs.
        unsafe { numbers.write([1, 2, 3, 4]) };
        let double = api.function(api.module(), "double_all");
        assert_eq!(api.launch(double, (1, 4), 0, at), 0);
        api.ok("cuCtxSynchronize", ());
        // SAFETY: as above.
        assert_eq!(unsafe { numbers.read() }, [2, 4, 6, 8]);
        let attribute = |attribute: i32| {
            let mut value = 0u64;
            api.ok("cuPointerGetAttribute", (&raw mut value, attribute, at));
            value
        };
        assert_eq!((attribute(2), attribute(4)), (1, at));
        api.ok("cuMemUnmap", (at, SIZE));
        api.ok("cuMemRelease", (memory,));
        api.ok("cuMemAddressFree", (at, SIZE));
    }
}
