//! Copies to host memory that cannot be written, and from host memory that cannot be read, of any size and by
//! any function: an error, and no byte changes. Rights of memory that a copy does not touch have no effect.

mod support;

use std::ffi::{c_int, c_void};
use std::process::Command;
use support::Api;
use support::host_pages::{mmap, mprotect};

const INVALID_VALUE: i32 = 1;
const ILLEGAL_ADDRESS: i32 = 700;
const NULL: usize = 0;
const PAGE: usize = 4096;
/// Pages of a mapping.
const PAGES: usize = 1024;
/// Sizes of copies, up to that of a mapping.
const SIZES: [usize; 7] = [1, 64, PAGE, 5 * PAGE, 64 << 10, 256 << 10, PAGES * PAGE];
/// `PROT_NONE`, `PROT_READ`
const NONE: c_int = 0;
const READ: c_int = 1;

/// Memory of zeros, in which some pages have other rights.
struct Memory(usize);

impl Memory {
    fn new(pages: std::ops::Range<usize>, rights: c_int) -> Self {
        // SAFETY: a new mapping replaces none.
        // Flags of Linux: private and anonymous, readable and writable.
        let start = unsafe { mmap(std::ptr::null_mut(), PAGES * PAGE, 3, 0x22, -1, 0) };
        let first = start.wrapping_byte_add(pages.start * PAGE);
        // SAFETY: the pages are in the new mapping.
        let set = unsafe { mprotect(first, pages.len() * PAGE, rights) };
        assert_eq!(set, 0, "the rights can be set");
        Self(start.expose_provenance())
    }

    /// The byte at an offset, which is readable.
    fn byte(&self, offset: usize) -> u8 {
        let at = std::ptr::with_exposed_provenance::<u8>(self.0 + offset);
        // SAFETY: the test reads only memory that it made readable.
        unsafe { at.read_volatile() }
    }
}

/// What a copy takes: a device address, a host address, an array, a stream.
#[derive(Clone, Copy)]
struct Ends {
    device: u64,
    host: usize,
    array: usize,
    stream: usize,
}

/// A rectangle of rows in host memory, and the same rows in device memory.
fn rectangle(ends: Ends, to_host: bool, pitch: usize, [width, height]: [usize; 2]) -> [usize; 16] {
    let host = [0, 0, 1, ends.host, 0, 0, pitch];
    let device = [0, 0, 2, 0, ends.device as usize, 0, width];
    let [from, to] = if to_host { [device, host] } else { [host, device] };
    let mut words = [0; 16];
    words.iter_mut().zip([&from[..], &to, &[width, height]].concat()).for_each(|(word, value)| *word = value);
    words
}

/// The same as a box of slices.
fn cuboid(ends: Ends, to_host: bool, pitch: usize, [width, height, depth]: [usize; 3]) -> [usize; 25] {
    let host = [0, 0, 0, 0, 1, ends.host, 0, 0, 0, pitch, height];
    let device = [0, 0, 0, 0, 2, 0, ends.device as usize, 0, 0, width, height];
    let [from, to] = if to_host { [device, host] } else { [host, device] };
    let mut words = [0; 25];
    let all = [&from[..], &to, &[width, height, depth]].concat();
    words.iter_mut().zip(all).for_each(|(word, value)| *word = value);
    words
}

/// Calls each function that copies `bytes` bytes between host and device memory.
fn each(api: Api, ends: Ends, to_host: bool, bytes: usize, check: impl Fn(&str, i32)) {
    let Ends { device, host, array, stream } = ends;
    let row = [bytes, 1];
    let flat = rectangle(ends, to_host, bytes, row);
    let whole = cuboid(ends, to_host, bytes, [bytes, 1, 1]);
    // Rows of a page, one after another.
    let paged = (bytes >= PAGE).then(|| cuboid(ends, to_host, PAGE, [PAGE, bytes / PAGE, 1]));
    let attributes = [1i32, 0, 0, 0, 0, 0];
    let starts = [0usize];
    let (to, from) = if to_host { (host as u64, device) } else { (device, host as u64) };
    for name in ["cuMemcpy", "cuMemcpy_ptds"] {
        check(name, api.call(name, (to, from, bytes)));
    }
    for name in ["cuMemcpyAsync", "cuMemcpyAsync_ptsz"] {
        check(name, api.call(name, (to, from, bytes, stream)));
    }
    let (plain, queued) = if to_host {
        ("cuMemcpyDtoH_v2", "cuMemcpyDtoHAsync_v2")
    } else {
        ("cuMemcpyHtoD_v2", "cuMemcpyHtoDAsync_v2")
    };
    check(plain, api.call(plain, (to, from, bytes)));
    check(queued, api.call(queued, (to, from, bytes, stream)));
    let one = (&raw const to, &raw const from, &raw const bytes, 1usize);
    let batch = (one.0, one.1, one.2, one.3, attributes.as_ptr(), starts.as_ptr(), 1usize, stream);
    check("cuMemcpyBatchAsync_v2", api.call("cuMemcpyBatchAsync_v2", batch));
    let given = (to, from, bytes, attributes.as_ptr(), stream);
    check("cuMemcpyWithAttributesAsync", api.call("cuMemcpyWithAttributesAsync", given));
    check("cuMemcpy2D_v2", api.call("cuMemcpy2D_v2", (flat.as_ptr(),)));
    check("cuMemcpy2DAsync_v2", api.call("cuMemcpy2DAsync_v2", (flat.as_ptr(), stream)));
    for shape in [Some(whole), paged].into_iter().flatten() {
        check("cuMemcpy3D_v2", api.call("cuMemcpy3D_v2", (shape.as_ptr(),)));
        check("cuMemcpy3DAsync_v2", api.call("cuMemcpy3DAsync_v2", (shape.as_ptr(), stream)));
    }
    if to_host {
        check("cuMemcpyAtoH_v2", api.call("cuMemcpyAtoH_v2", (host, array, 0usize, bytes)));
        let queued = (host, array, 0usize, bytes, stream);
        check("cuMemcpyAtoHAsync_v2", api.call("cuMemcpyAtoHAsync_v2", queued));
    } else {
        check("cuMemcpyHtoA_v2", api.call("cuMemcpyHtoA_v2", (array, 0usize, host, bytes)));
        let queued = (array, 0usize, host, bytes, stream);
        check("cuMemcpyHtoAAsync_v2", api.call("cuMemcpyHtoAAsync_v2", queued));
    }
}

/// Device memory of ones, an array as large as a mapping, and a stream.
fn ends(api: Api, host: usize) -> Ends {
    let device = api.alloc(PAGES * PAGE);
    api.ok("cuMemsetD8_v2", (device, 1u32, PAGES * PAGE));
    // Rows of 32-bit elements.
    let description = [PAGE, PAGES / 4, 8 | 4 << 32];
    let array = api.make("cuArrayCreate_v2", |out: *mut usize| (out, description.as_ptr()));
    api.ok("cuMemcpyDtoA_v2", (array, 0usize, device, PAGES * PAGE));
    let stream = api.make("cuStreamCreate", |out: *mut usize| (out, 0u32));
    Ends { device, host, array, stream }
}

#[test]
fn memory_without_the_right_is_an_error() {
    let (api, _) = Api::with_context();
    for (to_host, rights) in [(true, READ), (true, NONE), (false, NONE)] {
        for bytes in SIZES {
            let last = bytes.div_ceil(PAGE);
            // All pages, the last page, and a page in the middle.
            for pages in [0..PAGES, last - 1..last, last / 2..last / 2 + 1] {
                let memory = Memory::new(pages.clone(), rights);
                let ends = ends(api, memory.0);
                each(api, ends, to_host, bytes, |name, status| {
                    assert_eq!(status, INVALID_VALUE, "{name}, {bytes} bytes, {pages:?}, rights {rights}");
                });
                api.ok("cuCtxSynchronize", ());
                if rights == READ {
                    for offset in (0..bytes).step_by(PAGE).chain([bytes - 1]) {
                        assert_eq!(memory.byte(offset), 0, "{bytes} bytes, {pages:?}");
                    }
                }
                api.ok("cuMemFree_v2", (ends.device,));
                api.ok("cuArrayDestroy", (ends.array,));
            }
        }
    }
}

/// With `PTXVM_HOST_POINTERS` all host memory counts as memory of the device.
#[test]
fn memory_that_kernels_can_access_without_the_right_is_an_error() {
    let program = std::env::current_exe().expect("a test has a path");
    let mut child = Command::new(program);
    child.args(["--exact", "memory_without_the_right_is_an_error"]).env("PTXVM_HOST_POINTERS", "1");
    let output = child.output().expect("the test starts");
    assert!(output.status.success(), "{}\n{}", output.status, String::from_utf8_lossy(&output.stdout));
}

#[test]
fn rights_elsewhere_have_no_effect() {
    let (api, _) = Api::with_context();
    for rights in [READ, NONE] {
        // A copy that ends before the page, and rows on both sides of it.
        let memory = Memory::new(5..6, rights);
        let ends = ends(api, memory.0);
        each(api, ends, true, 5 * PAGE, |name, status| assert_eq!(status, 0, "{name}"));
        assert_eq!((memory.byte(0), memory.byte(5 * PAGE - 1)), (1, 1));
        each(api, ends, false, 5 * PAGE, |name, status| assert_eq!(status, 0, "{name}"));
        let rows = rectangle(ends, true, 10 * PAGE, [5 * PAGE, 2]);
        api.ok("cuMemcpy2D_v2", (rows.as_ptr(),));
        assert_eq!((memory.byte(10 * PAGE), memory.byte(15 * PAGE - 1), memory.byte(15 * PAGE)), (1, 1, 0));
        let slices = cuboid(ends, false, 10 * PAGE, [5 * PAGE, 2, 3]);
        api.ok("cuMemcpy3D_v2", (slices.as_ptr(),));
        let wrong = rectangle(ends, true, 10 * PAGE, [5 * PAGE + 1, 2]);
        assert_eq!(api.call("cuMemcpy2D_v2", (wrong.as_ptr(),)), INVALID_VALUE);
        // Memory that may be read is copied from.
        let status = api.call("cuMemcpyHtoD_v2", (ends.device, memory.0, PAGES * PAGE));
        assert_eq!(status, if rights == READ { 0 } else { INVALID_VALUE });
    }
}

#[test]
fn copies_within_host_memory_are_checked_on_both_sides() {
    let (api, _) = Api::with_context();
    let (free, closed, constant) =
        (Memory::new(0..0, READ), Memory::new(PAGES - 1..PAGES, NONE), Memory::new(PAGES - 1..PAGES, READ));
    let bytes = PAGES * PAGE;
    for (to, from) in [(&free, &closed), (&closed, &free), (&constant, &free)] {
        assert_eq!(api.call("cuMemcpy", (to.0, from.0, bytes)), INVALID_VALUE);
        api.ok("cuMemcpy", (to.0, from.0, bytes - PAGE));
    }
    api.ok("cuMemcpy", (free.0, constant.0, bytes));
}

/// Memory that was registered when it could be written.
#[test]
fn registered_memory_that_lost_its_rights_is_an_error() {
    let (api, _) = Api::with_context();
    let memory = Memory::new(0..0, READ);
    let ends = ends(api, memory.0);
    api.ok("cuMemHostRegister_v2", (memory.0, PAGES * PAGE, 0u32));
    let start = std::ptr::with_exposed_provenance_mut::<c_void>(memory.0);
    for rights in [READ, NONE] {
        // SAFETY: the page is in the mapping, which nothing else uses.
        assert_eq!(unsafe { mprotect(start.wrapping_byte_add(PAGE), PAGE, rights) }, 0);
        for bytes in [PAGE + 1, 256 << 10] {
            assert_eq!(api.call("cuMemcpyDtoH_v2", (memory.0, ends.device, bytes)), INVALID_VALUE);
            assert_eq!(api.call("cuMemsetD8_v2", (memory.0, 1u32, bytes)), INVALID_VALUE);
            assert_eq!(api.call("cuMemsetD32_v2", (memory.0, 1u32, bytes / 4 + 1)), INVALID_VALUE);
            let status = api.call("cuMemcpyHtoD_v2", (ends.device, memory.0, bytes));
            assert_eq!(status, if rights == READ { 0 } else { INVALID_VALUE });
        }
    }
    // SAFETY: as above.
    assert_eq!(unsafe { mprotect(start, PAGES * PAGE, 3) }, 0);
    api.ok("cuMemHostUnregister", (memory.0,));
}

/// The node is checked at its turn, so its context gets the error.
#[test]
fn nodes_of_graphs_are_checked_at_their_turn() {
    let api = Api::open();
    for bytes in [64, 256 << 10] {
        let context = api.make("cuCtxCreate_v2", |out: *mut usize| (out, 0u32, 0i32));
        let memory = Memory::new(0..PAGES, READ);
        let ends = ends(api, memory.0);
        let graph = api.make("cuGraphCreate", |out: *mut usize| (out, 0u32));
        let copy = cuboid(ends, true, bytes, [bytes, 1, 1]);
        let given = (graph, NULL, NULL, copy.as_ptr(), context);
        let _node = api.make("cuGraphAddMemcpyNode", |out: *mut usize| {
            (out, given.0, given.1, given.2, given.3, given.4)
        });
        let executable = api.make("cuGraphInstantiateWithFlags", |out: *mut usize| (out, graph, NULL));
        api.ok("cuGraphLaunch", (executable, ends.stream));
        assert_eq!(api.call("cuStreamSynchronize", (ends.stream,)), ILLEGAL_ADDRESS);
        assert_eq!(memory.byte(0), 0);
        api.ok("cuCtxDestroy_v2", (context,));
    }
}
