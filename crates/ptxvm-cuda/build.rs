//! Gives the library the name that programs ask the loader for.
//!
//! Cargo names the file `libptxvm_cuda.so`; whoever installs it links `libcuda.so.1` and `libcuda.so` to it. A program that was linked with
//! it must ask for `libcuda.so.1`, which is what the name inside the file (its soname) decides.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        // Threads of it, and what it registered for the end of threads, outlive `dlclose`.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcuda.so.1");
    }
}
