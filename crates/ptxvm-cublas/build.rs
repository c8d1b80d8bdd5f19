//! Sets the library's soname, makes it find the driver beside itself, and defines the symbol versions that
//! programs ask for.
//!
//! The versions are empty: for a program that asks for any version that the library defines, the loader
//! accepts a symbol without a version. rustc passes a version script of its own, and LLD is the only linker
//! that accepts two. Built with another linker, the library has no versions, and the loader prints a warning
//! when a program starts.

use std::path::Path;

const VERSIONS: &[&str] = &["libcublas.so.12", "libcublas.so.13", "libcublasLt.so.12", "libcublasLt.so.13"];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        return;
    }
    // Threads of this library, and its destructors of thread-local values, outlive `dlclose`.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcublas.so.12");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-rpath,$ORIGIN");
    if links_with_lld()
        && let Some(folder) = std::env::var_os("OUT_DIR")
    {
        let script = Path::new(&folder).join("versions.map");
        let text: String = VERSIONS.iter().map(|version| format!("{version} {{}};\n")).collect();
        std::fs::write(&script, text).expect("the folder for what is built can be written to");
        println!("cargo:rustc-cdylib-link-arg=-Wl,--version-script={}", script.display());
        // Read by the test that links programs.
        println!("cargo:rustc-env=PTXVM_CUBLAS_HAS_VERSIONS=1");
    }
}

/// Whether rustc links with its own LLD, which is its default for this target.
fn links_with_lld() -> bool {
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    std::env::var("TARGET").is_ok_and(|target| target == "x86_64-unknown-linux-gnu")
        && std::env::var_os("RUSTC_LINKER").is_none()
        && !flags.contains("linker")
        && !flags.contains("fuse-ld")
}
