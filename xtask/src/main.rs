//! Development tasks of the workspace: `cargo xtask ci | tidy | docs | coverage | testsuite | prove | bench |
//! clients | agree | codegen | remarks | soak | dist | python`.
//!
//! Invariant: `ci` consists of the steps of the continuous integration, with the commands that a contributor
//! uses.

mod agree;
mod bench;
mod ci;
mod clients;
mod codegen;
mod coverage;
mod dist;
mod docs;
mod prove;
mod soak;
mod testsuite;
mod tidy;

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let task = args.next().unwrap_or_default();
    let rest: Vec<String> = args.collect();
    let done = match task.as_str() {
        "ci" => ci::ci(&rest),
        "tidy" => tidy::tidy(),
        "docs" => docs::docs(&rest),
        "coverage" => coverage::coverage(&rest),
        "testsuite" => testsuite::testsuite(&rest),
        "prove" => prove::prove(&rest),
        "soak" => soak::soak(&rest),
        "agree" => agree::agree(&rest),
        "codegen" => codegen::codegen(&rest),
        "remarks" => codegen::remarks(&rest),
        "bench" => bench::bench(&rest),
        "clients" => clients::clients(&rest),
        "dist" => dist::dist(&rest),
        "python" => dist::python(&rest),
        _ => Err("usage: cargo xtask ci | tidy | docs | coverage | testsuite | prove | bench | clients | agree | codegen | remarks | soak | dist | python\n\
             \n\
             ci       format, clippy, docs, tidy and the tests, as the continuous integration runs them; --full: all there is\n\
             tidy     rules of the house that no other tool checks\n\
             docs     links, pages and cited readings; --run executes the pages' commands (--clients: all), --site builds the site (needs mdbook)\n\
             coverage rows of the inventory that the tests cover, by family; --missing lists the others\n\
             testsuite the instruction vectors, with the number of value cases; --rows shows each row, --exhaustive adds all 8- and 16-bit operands\n\
             prove    the approximate instructions over every operand, against the manual's bounds (takes long; use --release)\n\
             bench    native code made from PTX beside C++ with OpenMP: ratios, compile times, overheads (use --release; needs g++)\n\
             clients  programs that know nothing of ptxvm, from their registries, under ptxvm exec (needs the network, python3 and clang)\n\
             agree    random programs in all engines, compared bit for bit; what differs is made smaller\n\
             codegen  the LLVM IR of all kernels for all targets, compared with that of another revision (use --release)\n\
             remarks  which optimisations apply to each kernel, compared with tests/remarks; --bless writes these files\n\
             soak     for hours: all kernels in LLVM, hostile programs, load, random programs, fuzz targets (use --release)\n\
             dist     packages for machines without Rust: tarball, .deb, wheel, container; --prove uses them there, --crates packages the crates\n\
             python   the wheel in a fresh virtual environment, with its tests, doctests and type checker (needs the network and python3)"
            .to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the workspace.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().map(PathBuf::from).unwrap_or_default()
}
