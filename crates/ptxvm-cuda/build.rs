//! Sets the library's soname.
//!
//! Cargo names the file `libptxvm_cuda.so`; an installation links `libcuda.so.1` and `libcuda.so` to it. The
//! soname makes a program that is linked with this library ask the loader for `libcuda.so.1`.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        // Threads of this library, and its destructors of thread-local values, outlive `dlclose`.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcuda.so.1");
    }
}
