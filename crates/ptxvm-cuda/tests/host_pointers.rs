//! Kernels that access host memory (`PTXVM_HOST_POINTERS`): memory that cannot be read or written is a trap,
//! in both engines.

mod support;

use std::ffi::{c_int, c_void};
use std::process::Command;
use support::Api;
use support::host_pages::{mmap, mprotect};

const ILLEGAL_ADDRESS: i32 = 700;
const PAGE: usize = 4096;
/// Words of a page.
const WORDS: u32 = 1024;
/// What the child process does.
const CHILD: &str = "PTXVM_TEST_HOST_MEMORY";

/// `PROT_NONE`, `PROT_READ`, `PROT_READ | PROT_WRITE`
const NONE: c_int = 0;
const READ: c_int = 1;
const WRITE: c_int = 3;

/// Three pages of words that are 1.
struct Pages(*mut c_void);

impl Pages {
    fn new() -> Self {
        // SAFETY: a new mapping replaces none.
        // Flags of Linux: private and anonymous.
        let start = unsafe { mmap(std::ptr::null_mut(), 3 * PAGE, WRITE, 0x22, -1, 0) };
        // SAFETY: the pages are new, and can be written.
        unsafe { std::slice::from_raw_parts_mut(start.cast::<u32>(), 3 * WORDS as usize) }.fill(1);
        Self(start)
    }

    fn page(&self, page: usize) -> u64 {
        self.0.expose_provenance() as u64 + (page * PAGE) as u64
    }

    /// Sets the rights of the second page.
    fn protect(&self, rights: c_int) {
        // SAFETY: the page is in the mapping, which nothing else uses.
        assert_eq!(unsafe { mprotect(self.0.wrapping_byte_add(PAGE), PAGE, rights) }, 0);
    }

    /// The first word of a page, which can be read.
    fn word(&self, page: usize) -> u32 {
        // SAFETY: the page can be read, and no kernel runs.
        unsafe { self.0.wrapping_byte_add(page * PAGE).cast::<u32>().read_volatile() }
    }
}

/// Doubles the words of pages; the status of the kernel.
fn doubled(api: Api, pages: &Pages, range: std::ops::Range<usize>) -> i32 {
    let double = api.function(api.module(), "double_all");
    let ctas = WORDS / 256 * range.len() as u32;
    match api.launch(double, (ctas, 256), 0, pages.page(range.start)) {
        0 => api.call("cuCtxSynchronize", ()),
        status => status,
    }
}

#[test]
fn rights_of_host_memory_in_kernels() {
    let Some(what) = std::env::var_os(CHILD) else { return };
    let what = what.to_str().expect("the parent gives a word");
    let (api, _) = Api::with_context();
    let pages = Pages::new();
    if what == "changed" {
        assert_eq!(doubled(api, &pages, 0..3), 0);
    }
    match what {
        "closed" => pages.protect(NONE),
        _ => pages.protect(READ),
    }
    let before = pages.word(0);
    assert_eq!((doubled(api, &pages, 0..1), doubled(api, &pages, 2..3)), (0, 0));
    assert_eq!((pages.word(0), pages.word(2)), (2 * before, 2 * before));
    let one = |kernel, at| {
        let function = api.function(api.module(), kernel);
        api.launch(function, (1, 32), 0, at)
    };
    static CONSTANT: [u32; 32] = [1; 32];
    let status = match what {
        "range" => doubled(api, &pages, 0..3),
        "atomic" => one("count", pages.page(1)),
        // No program maps memory there.
        "unmapped" => one("double_all", 0x5_0000),
        "constant" => one("double_all", (&raw const CONSTANT).expose_provenance() as u64),
        _ => doubled(api, &pages, 1..2),
    };
    assert_eq!(status, ILLEGAL_ADDRESS);
    if what != "closed" {
        assert_eq!(pages.word(1), before);
    }
}

/// Memory that is given the right to be written can be written.
#[test]
fn rights_that_host_memory_gets() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let (api, _) = Api::with_context();
    let pages = Pages::new();
    for rights in [READ, NONE] {
        pages.protect(rights);
        assert_eq!((doubled(api, &pages, 0..1), doubled(api, &pages, 2..3)), (0, 0));
        pages.protect(WRITE);
        assert_eq!(doubled(api, &pages, 0..3), 0);
    }
    assert_eq!((pages.word(0), pages.word(1), pages.word(2)), (16, 4, 16));
}

/// Whether the system tells the rights of a single address: Linux 6.11 and later. Before, rights that memory
/// loses between two launches are not noticed.
fn tells_rights() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let numbers: Vec<u32> = release.split(['.', '-']).take(2).filter_map(|word| word.parse().ok()).collect();
    numbers >= vec![6, 11]
}

/// Runs a test in a process of its own, in which kernels can access host memory.
fn child(test: &str, what: &str, engine: &str) -> std::process::Output {
    let mut child = Command::new(std::env::current_exe().expect("this program"));
    child.args(["--exact", test, "--nocapture"]);
    child.env(CHILD, what).env("PTXVM_ENGINE", engine).env("PTXVM_HOST_POINTERS", "1");
    child.output().expect("it starts")
}

#[test]
fn kernels_keep_to_the_rights_of_host_memory_in_both_engines() {
    for engine in ["interp", "jit"] {
        for what in ["store", "range", "atomic", "constant", "closed", "unmapped", "changed", "given"] {
            if what == "changed" && !tells_rights() {
                println!("skipped: Linux before 6.11");
                continue;
            }
            let test = match what {
                "given" => "rights_that_host_memory_gets",
                _ => "rights_of_host_memory_in_kernels",
            };
            let output = child(test, what, engine);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            if engine == "jit" && said.contains("LLVM") {
                println!("skipped: no LLVM");
                continue;
            }
            assert!(output.status.success(), "{engine} {what}: {}\n{said}", output.status);
            let why = match what {
                "given" => "",
                "closed" | "unmapped" => "memory of the host, where nothing is mapped that can be read",
                _ => "memory of the host that can only be read",
            };
            assert!(said.contains(why), "{engine} {what}: {said}");
        }
    }
}
