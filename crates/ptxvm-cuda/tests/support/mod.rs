//! Opens the built library and calls it like C programs.
#![allow(dead_code, reason = "each test uses a part of it")]

mod api;
pub(crate) mod host_pages;

#[allow(unused_imports, reason = "each test uses a part of it")]
pub(crate) use api::{Api, Arguments, KERNELS, Params};
use libloading::Library;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

impl Api {
    /// Opens the library that cargo built beside this test, and calls `cuInit`.
    pub(crate) fn open() -> Self {
        Self::at(address)
    }

    /// Opens the library, and makes a context current in this thread.
    pub(crate) fn with_context() -> (Self, usize) {
        let api = Self::open();
        let context = api.make("cuCtxCreate_v2", |out: *mut usize| (out, 0u32, 0i32));
        (api, context)
    }
}

/// Whether this process runs `test` alone; otherwise runs `test` in such a process, and checks that it
/// passes. For tests that use freed addresses: beside other tests, another one's memory could be there.
///
/// # Panics
///
/// Panics if the test fails in its process.
pub(crate) fn runs_alone(test: &str) -> bool {
    const ALONE: &str = "PTXVM_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let mut child = Command::new(std::env::current_exe().expect("a test has a path"));
    let output = child.args(["--exact", test, "--nocapture"]).env(ALONE, "1").output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    // A wrong name would run no test, and pass.
    let passed = output.status.success() && said.contains("1 passed");
    assert!(passed, "{}\n{said}{}", output.status, String::from_utf8_lossy(&output.stderr));
    false
}

/// The address of a function of the library.
fn address(name: &str) -> usize {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    let library = LIBRARY.get_or_init(|| {
        let path = path();
        // SAFETY: the library is ptxvm's own, and its initializers do nothing.
        unsafe { Library::new(&path) }.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    });
    // SAFETY: only the address is used.
    let function = unsafe { library.get::<extern "C" fn()>(name) };
    *function.unwrap_or_else(|error| panic!("{name}: {error}")) as usize
}

/// The path at which cargo puts the library: beside the folder of tests.
fn path() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let deps = test.parent().expect("a test lies in a folder");
    let name = libloading::library_filename("ptxvm_cuda");
    let found = [deps.join(&name), deps.join("..").join(&name)].into_iter().find(|path| path.exists());
    found.expect("cargo built the library")
}
