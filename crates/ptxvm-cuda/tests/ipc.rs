//! Memory and events between processes: this program starts itself again, and passes handles.

mod support;

use std::os::fd::{FromRawFd as _, OwnedFd};
use std::process::{Child, Command};
use support::Api;

const NULL: usize = 0;
const INVALID_VALUE: i32 = 1;
const INVALID_CONTEXT: i32 = 201;
const MAP_FAILED: i32 = 205;
const INVALID_HANDLE: i32 = 400;
const NOT_READY: i32 = 600;
/// `CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING`
const SHARED: u32 = 6;
/// `CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS`
const LAZY: u32 = 1;

/// `CUipcMemHandle`, `CUipcEventHandle`
#[derive(Clone, Copy)]
#[repr(C)]
struct Name([u8; 64]);

impl Name {
    fn of_memory(api: Api, at: u64) -> Self {
        let mut name = Self([0; 64]);
        api.ok("cuIpcGetMemHandle", (&raw mut name, at));
        name
    }

    fn of_event(api: Api, event: usize) -> Self {
        let mut name = Self([0; 64]);
        api.ok("cuIpcGetEventHandle", (&raw mut name, event));
        name
    }

    fn text(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Reads a handle from an environment variable.
    fn told(variable: &str) -> Option<Self> {
        let text = std::env::var(variable).ok()?;
        let byte = |at: usize| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).expect("digits");
        Some(Self(std::array::from_fn(byte)))
    }
}

fn start(test: &str, variables: &[(&str, Name)]) -> Child {
    let mut child = Command::new(std::env::current_exe().expect("this program"));
    child.args(["--exact", test, "--nocapture"]);
    child.envs(variables.iter().map(|(name, value)| (name, value.text())));
    child.spawn().expect("it starts")
}

fn open(api: Api, name: Name) -> u64 {
    api.make("cuIpcOpenMemHandle_v2", |out: *mut u64| (out, name, LAZY))
}

fn fails(api: Api, name: Name, flags: u32) -> i32 {
    api.call("cuIpcOpenMemHandle_v2", (&raw mut *Box::new(0u64), name, flags))
}

fn doubled(api: Api, at: u64, stream: usize) {
    let double = api.function(api.module(), "double_all");
    assert_eq!(api.launch(double, (1, 4), stream, at), 0);
}

#[test]
fn another_process_works_on_memory() {
    let Some(name) = Name::told("PTXVM_TEST_MEMORY") else { return };
    let (api, context) = Api::with_context();
    let at = open(api, name);
    assert_eq!(api.read(at, 4), [1, 2, 3, 4]);
    // The range is that of the allocation.
    let mut bytes = 0usize;
    api.ok("cuMemGetAddressRange_v2", (NULL, &raw mut bytes, at + 3));
    assert_eq!(bytes, 16);
    assert_eq!(api.call("cuMemcpyDtoH_v2", (&raw mut *Box::new([0u32; 5]), at, 20usize)), INVALID_VALUE);
    assert_eq!(api.call("cuMemFree_v2", (at,)), INVALID_VALUE);
    doubled(api, at, NULL);
    // Opened again, it has the same address; the last close unmaps it.
    assert_eq!(open(api, name), at);
    api.ok("cuIpcCloseMemHandle", (at,));
    assert_eq!(api.read(at, 4), [2, 4, 6, 8]);
    api.ok("cuIpcCloseMemHandle", (at,));
    assert_eq!(api.call("cuIpcCloseMemHandle", (at,)), INVALID_VALUE);
    assert_eq!(api.call("cuMemcpyDtoH_v2", (&raw mut *Box::new(0u32), at, 4usize)), INVALID_VALUE);
    // Wrong numbers in a handle are found.
    for place in [0, 8, 16, 24, 32, 47, 55] {
        let mut wrong = name;
        wrong.0[place] ^= 0x55;
        let status = fails(api, wrong, LAZY);
        assert!([MAP_FAILED, INVALID_HANDLE].contains(&status), "{place}: {status}");
    }
    assert_eq!(fails(api, name, 0), INVALID_VALUE);
    // The end of a context closes the memory that it opened.
    open(api, name);
    api.ok("cuCtxDestroy_v2", (context,));
}

#[test]
fn memory_is_handed_over() {
    let (api, _) = Api::with_context();
    // Three allocations in the same pages, each exported separately.
    let (before, at, behind) = (api.alloc(16), api.alloc(16), api.alloc(3 << 20));
    for address in [before, at, behind] {
        api.ok("cuMemcpyHtoD_v2", (address, [1u32, 2, 3, 4].as_ptr(), 16usize));
    }
    let name = Name::of_memory(api, at);
    assert_eq!(Name::of_memory(api, at + 4).0, name.0);
    assert_eq!(fails(api, name, LAZY), INVALID_CONTEXT);
    assert!(
        start("another_process_works_on_memory", &[("PTXVM_TEST_MEMORY", name)]).wait().unwrap().success()
    );
    assert_eq!(api.read(at, 4), [2, 4, 6, 8]);
    assert_eq!((api.read(before, 4), api.read(behind, 4)), (vec![1, 2, 3, 4], vec![1, 2, 3, 4]));
    let name = Name::of_memory(api, before);
    assert!(
        start("another_process_works_on_memory", &[("PTXVM_TEST_MEMORY", name)]).wait().unwrap().success()
    );
    assert_eq!(api.read(before, 4), [2, 4, 6, 8]);
    // The memory works as before, and is zero when it is allocated again.
    doubled(api, at, NULL);
    assert_eq!(api.read(at, 4), [4, 8, 12, 16]);
    let large = Name::of_memory(api, behind);
    assert_ne!(large.0, name.0);
    api.ok("cuMemFree_v2", (behind,));
    let again = api.alloc(3 << 20);
    assert_eq!(api.read(again, 4), [0; 4]);
    // Only the program's own device memory can be exported.
    let pinned = api.make("cuMemHostAlloc", |out: *mut u64| (out, 16usize, 0u32));
    for address in [pinned, again + (4 << 20), 0] {
        let status = api.call("cuIpcGetMemHandle", (&raw mut *Box::new(Name([0; 64])), address));
        assert_eq!(status, INVALID_VALUE);
    }
    let legacy = api.make("cuPointerGetAttribute", |out: *mut u32| (out, 10i32, at));
    assert_eq!(legacy, 1);
}

#[test]
fn another_process_waits_and_records() {
    let (Some(name), Some(memory)) = (Name::told("PTXVM_TEST_EVENT"), Name::told("PTXVM_TEST_DATA")) else {
        return;
    };
    let (api, _) = Api::with_context();
    let mut event = 0usize;
    api.ok("cuIpcOpenEventHandle", (&raw mut event, name));
    let at = open(api, memory);
    // The other process has recorded the event after a kernel that waits for the second word.
    assert_eq!(api.call("cuEventQuery", (event,)), NOT_READY);
    let stream = api.make("cuStreamCreate", |out: *mut usize| (out, 1u32));
    api.ok("cuStreamWaitEvent", (stream, event, 0u32));
    assert_eq!(api.call("cuStreamQuery", (stream,)), NOT_READY);
    api.ok(
        "cuMemcpyHtoDAsync_v2",
        (at + 4, [1u32].as_ptr(), 4usize, api.make("cuStreamCreate", |out: *mut usize| (out, 1u32))),
    );
    api.ok("cuStreamSynchronize", (stream,));
    api.ok("cuEventSynchronize", (event,));
    assert_eq!(api.call("cuEventQuery", (event,)), 0);
    doubled(api, at, stream);
    api.ok("cuEventRecord", (event, stream));
    api.ok("cuEventSynchronize", (event,));
}

#[test]
fn events_are_handed_over() {
    let (api, _) = Api::with_context();
    let event = api.make("cuEventCreate", |out: *mut usize| (out, SHARED));
    let plain = api.make("cuEventCreate", |out: *mut usize| (out, 2u32));
    let status = api.call("cuIpcGetEventHandle", (&raw mut *Box::new(Name([0; 64])), plain));
    assert_eq!(status, INVALID_HANDLE);
    assert_eq!(api.call("cuEventQuery", (event,)), 0);
    let at = api.alloc(16);
    api.ok("cuMemcpyHtoD_v2", (at, [3u32, 0, 0, 0].as_ptr(), 16usize));
    let memory = Name::of_memory(api, at);
    let stream = api.make("cuStreamCreate", |out: *mut usize| (out, 1u32));
    let wait = api.function(api.module(), "wait");
    assert_eq!(api.launch(wait, (1, 1), stream, at + 4), 0);
    api.ok("cuEventRecord", (event, stream));
    let name = Name::of_event(api, event);
    let own = api.call("cuIpcOpenEventHandle", (&raw mut *Box::new(0usize), name));
    assert_eq!(own, INVALID_CONTEXT);
    let variables = [("PTXVM_TEST_EVENT", name), ("PTXVM_TEST_DATA", memory)];
    let mut child = start("another_process_waits_and_records", &variables);
    assert!(child.wait().unwrap().success());
    api.ok("cuEventSynchronize", (event,));
    assert_eq!(api.read(at, 4), [6, 2, 0, 0]);
}

#[test]
fn another_process_ends_with_a_record_pending() {
    let Some(name) = Name::told("PTXVM_TEST_PENDING") else { return };
    let (api, _) = Api::with_context();
    let mut event = 0usize;
    api.ok("cuIpcOpenEventHandle", (&raw mut event, name));
    let stream = api.make("cuStreamCreate", |out: *mut usize| (out, 1u32));
    let wait = api.function(api.module(), "wait");
    assert_eq!(api.launch(wait, (1, 1), stream, api.alloc(4)), 0);
    // The process ends while its kernel runs.
    api.ok("cuEventRecord", (event, stream));
}

#[test]
fn a_process_that_has_ended_holds_up_nothing() {
    let (api, _) = Api::with_context();
    let event = api.make("cuEventCreate", |out: *mut usize| (out, SHARED));
    let name = Name::of_event(api, event);
    let mut child = start("another_process_ends_with_a_record_pending", &[("PTXVM_TEST_PENDING", name)]);
    assert!(child.wait().unwrap().success());
    api.ok("cuEventSynchronize", (event,));
}

#[test]
fn another_process_imports_from_a_pool() {
    let (Some(name), Some(other)) = (Name::told("PTXVM_TEST_POOL"), Name::told("PTXVM_TEST_OTHER")) else {
        return;
    };
    let (api, _) = Api::with_context();
    // The pool's descriptor is the standard input.
    let pool =
        api.make("cuMemPoolImportFromShareableHandle", |out: *mut usize| (out, 0usize, DESCRIPTOR, 0u64));
    let import = |name: &Name| {
        let mut at = 0u64;
        (api.call("cuMemPoolImportPointer", (&raw mut at, pool, name)), at)
    };
    let (status, at) = import(&name);
    assert_eq!(status, 0);
    assert_eq!(api.read(at, 4), [1, 2, 3, 4]);
    doubled(api, at, NULL);
    let of = api.make("cuPointerGetAttribute", |out: *mut usize| (out, 17i32, at));
    assert_eq!(of, pool);
    // An allocation of another pool is not imported through this one, and nothing is allocated from it.
    assert_eq!(import(&other).0, INVALID_VALUE);
    let mut none = 0u64;
    assert_eq!(api.call("cuMemAllocFromPoolAsync", (&raw mut none, 64usize, pool, NULL)), INVALID_VALUE);
    assert_eq!(api.call("cuDeviceSetMemPool", (0i32, pool)), INVALID_VALUE);
    let mut again = 0i32;
    let exported = api.call("cuMemPoolExportToShareableHandle", (&raw mut again, pool, DESCRIPTOR, 0u64));
    assert_eq!(exported, INVALID_VALUE);
    api.ok("cuMemFreeAsync", (at, NULL));
    api.ok("cuCtxSynchronize", ());
    assert_eq!(api.call("cuMemcpyDtoH_v2", (&raw mut *Box::new(0u32), at, 4usize)), INVALID_VALUE);
    // It may be imported again, and freed by the function without a stream.
    let (status, at) = import(&name);
    assert_eq!((status, api.read(at, 1)), (0, vec![2]));
    api.ok("cuMemFree_v2", (at,));
    api.ok("cuMemPoolDestroy", (pool,));
}

/// `CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR`
const DESCRIPTOR: i32 = 1;

#[test]
fn pools_are_handed_over() {
    let (api, _) = Api::with_context();
    let pool = |handles: u64| {
        let properties = [1 | handles << 32, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        api.make("cuMemPoolCreate", |out: *mut usize| (out, properties.as_ptr()))
    };
    let allocate = |pool: usize| {
        let at = api.make("cuMemAllocFromPoolAsync", |out: *mut u64| (out, 64usize, pool, NULL));
        api.ok("cuMemcpyHtoD_v2", (at, [1u32, 2, 3, 4].as_ptr(), 16usize));
        at
    };
    let name_of = |at: u64| {
        let mut name = Name([0; 64]);
        (api.call("cuMemPoolExportPointer", (&raw mut name, at)), name)
    };
    let types = api.make("cuDeviceGetAttribute", |out: *mut i32| (out, 119i32, 0i32));
    assert_eq!(types, DESCRIPTOR);
    let (shared, second, private) = (pool(1), pool(1), pool(0));
    let (at, other, hidden) = (allocate(shared), allocate(second), allocate(private));
    assert_eq!(name_of(hidden).0, INVALID_VALUE);
    assert_eq!(name_of(at + 4).0, INVALID_VALUE);
    assert_eq!(name_of(api.alloc(64)).0, INVALID_VALUE);
    let mut descriptor = -1i32;
    let mut export = |pool: usize| {
        api.call("cuMemPoolExportToShareableHandle", (&raw mut descriptor, pool, DESCRIPTOR, 0u64))
    };
    assert_eq!(export(private), INVALID_VALUE);
    assert_eq!(export(shared), 0);
    // SAFETY: the call has given the descriptor to its caller.
    let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
    let mut child = Command::new(std::env::current_exe().expect("this program"));
    child.args(["--exact", "another_process_imports_from_a_pool", "--nocapture"]).stdin(descriptor);
    child.env("PTXVM_TEST_POOL", name_of(at).1.text()).env("PTXVM_TEST_OTHER", name_of(other).1.text());
    assert!(child.status().expect("it starts").success());
    assert_eq!(api.read(at, 4), [2, 4, 6, 8]);
    api.ok("cuMemFreeAsync", (at, NULL));
}
