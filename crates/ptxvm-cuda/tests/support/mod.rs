//! Opens the built library.

use libloading::Library;
use std::path::PathBuf;
use std::sync::OnceLock;

/// Doubles each number of an array.
pub(crate) const DOUBLE: &str = "
.version 6.4
.target sm_70
.address_size 64
.visible .entry double_all(.param .u64 data)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    ld.global.u32 %r2, [%rd3];
    add.s32 %r2, %r2, %r2;
    st.global.u32 [%rd3], %r2;
    ret;
}";

/// The library, started.
pub(crate) struct Api(&'static Library);

impl Api {
    /// Opens the library that cargo built beside this test, and calls `cuInit`.
    pub(crate) fn open() -> Self {
        static LIBRARY: OnceLock<Library> = OnceLock::new();
        let library = LIBRARY.get_or_init(|| {
            let path = path();
            // SAFETY: our own library; its initialisers do nothing.
            unsafe { Library::new(&path) }.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        });
        let api = Self(library);
        assert_eq!((unsafe { api.get::<extern "C" fn(u32) -> i32>("cuInit") })(0), 0);
        api
    }

    /// The function of that name.
    ///
    /// # Safety
    /// `F` is its type.
    pub(crate) unsafe fn get<F: Copy>(&self, name: &str) -> F {
        // SAFETY: the caller names the type.
        *unsafe { self.0.get::<F>(name) }.unwrap_or_else(|error| panic!("{name}: {error}"))
    }
}

/// Where cargo puts it: beside the folder of tests.
fn path() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let deps = test.parent().expect("a test lies in a folder");
    let name = libloading::library_filename("ptxvm_cuda");
    [deps.join(&name), deps.join("..").join(&name)]
        .into_iter()
        .find(|path| path.exists())
        .expect("cargo built the library")
}
