//! Gives the library the name that programs ask the loader for, lets it find the driver beside itself, and defines the versions that programs
//! want of its symbols.
//!
//! The versions are empty: the loader gives a symbol without a version to a program that asks for any version that the library defines.
//! rustc passes a version script of its own, and of the linkers only LLD takes two; with another one there are no versions, which the loader mentions
//! when a program starts.

use std::path::Path;

const VERSIONS: &[&str] = &["libcublas.so.12", "libcublas.so.13", "libcublasLt.so.12", "libcublasLt.so.13"];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        return;
    }
    // Threads of it, and what it registered for the end of threads, outlive `dlclose`.
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
        // For the test that links programs.
        println!("cargo:rustc-env=PTXVM_CUBLAS_HAS_VERSIONS=1");
    }
}

/// Whether rustc links with the LLD that it brings along, as it does by itself for this target.
fn links_with_lld() -> bool {
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    std::env::var("TARGET").is_ok_and(|target| target == "x86_64-unknown-linux-gnu")
        && std::env::var_os("RUSTC_LINKER").is_none()
        && !flags.contains("linker")
        && !flags.contains("fuse-ld")
}
