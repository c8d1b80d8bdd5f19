//! The interface's results that need no real compiler: the tests use scripts in its place.
#![cfg(target_os = "linux")]

mod support;

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use support::{Program, Texts, call, is_alone_with, nvrtc};

const INVALID_INPUT: i32 = 3;
const INVALID_PROGRAM: i32 = 4;
const INVALID_OPTION: i32 = 5;
const COMPILATION: i32 = 6;
const BUILTIN_OPERATION_FAILURE: i32 = 7;
const NO_EXPRESSIONS_ANY_MORE: i32 = 8;
const NO_NAMES_YET: i32 = 9;
const NO_SUCH_EXPRESSION: i32 = 10;
const INTERNAL_ERROR: i32 = 11;

/// A script in clang's place, removed with its value.
struct Compiler(PathBuf);

impl Compiler {
    fn new(name: &str, script: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ptxvm-nvrtc-test-{name}-{}", std::process::id()));
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("a program");
        Self(path)
    }

    fn variable(&self) -> (&str, &str) {
        ("PTXVM_CLANG", self.0.to_str().expect("UTF-8"))
    }
}

impl Drop for Compiler {
    fn drop(&mut self) {
        let _leftovers_are_harmless = std::fs::remove_file(&self.0);
    }
}

/// Copies its input to its output.
const GOOD: &str =
    "while [ $# -gt 1 ]; do if [ \"$1\" = -o ]; then out=$2; fi; shift; done\ncat \"$1\" > \"$out\"";

#[test]
fn versions_and_architectures_are_those_of_the_driver() {
    let (mut major, mut minor, mut count) = (0i32, 0i32, 0i32);
    assert_eq!(call!(nvrtc "nvrtcVersion", &mut major, &mut minor), 0);
    assert_eq!((major, minor), (12, 9));
    assert_eq!(call!(nvrtc "nvrtcGetNumSupportedArchs", &mut count), 0);
    let mut list = vec![0i32; count as usize];
    assert_eq!(call!(nvrtc "nvrtcGetSupportedArchs", &mut list[0]), 0);
    assert!(list.is_sorted() && list.contains(&52) && list.contains(&80) && list.contains(&120));
}

#[test]
fn statuses_have_the_names_of_the_header() {
    type Function = unsafe extern "C" fn(i32) -> *const std::ffi::c_char;
    // SAFETY: the function's type.
    let function = unsafe { nvrtc().get::<Function>("nvrtcGetErrorString") }.expect("it is exported");
    let name = |status: i32| {
        // SAFETY: the function accepts any number.
        let text = unsafe { function(status) };
        // SAFETY: the function returns texts that live forever.
        unsafe { std::ffi::CStr::from_ptr(text) }.to_str().expect("UTF-8")
    };
    assert_eq!(name(0), "NVRTC_SUCCESS");
    assert_eq!(name(6), "NVRTC_ERROR_COMPILATION");
    assert_eq!(name(18), "NVRTC_ERROR_BUSY");
    assert_eq!(name(-5), "NVRTC_ERROR unknown");
}

#[test]
fn every_function_of_the_header_is_exported() {
    for name in [
        "AddNameExpression",
        "CompileProgram",
        "CreateProgram",
        "DestroyProgram",
        "GetBundledHeadersInfo",
        "GetCUBIN",
        "GetCUBINSize",
        "GetErrorString",
        "GetLTOIR",
        "GetLTOIRSize",
        "GetLoweredName",
        "GetNVVM",
        "GetNVVMSize",
        "GetNumSupportedArchs",
        "GetOptiXIR",
        "GetOptiXIRSize",
        "GetPCHCreateStatus",
        "GetPCHHeapSize",
        "GetPCHHeapSizeRequired",
        "GetPTX",
        "GetPTXSize",
        "GetProgramLog",
        "GetProgramLogSize",
        "GetSupportedArchs",
        "GetTileIR",
        "GetTileIRSize",
        "InstallBundledHeaders",
        "RemoveBundledHeaders",
        "SetFlowCallback",
        "SetPCHHeapSize",
        "Version",
    ] {
        // SAFETY: the symbol is only looked up, not called.
        let found = unsafe { nvrtc().get::<extern "C" fn()>(format!("nvrtc{name}")) }.is_ok();
        assert!(found, "nvrtc{name}");
    }
}

#[test]
fn wrong_handles_and_pointers_are_refused() {
    let mut size = 0usize;
    for handle in [0usize, 1, usize::MAX, 0x7e57_ffff_ffff] {
        assert_eq!(call!(nvrtc "nvrtcGetPTXSize", handle, &mut size), INVALID_PROGRAM);
        assert_eq!(call!(nvrtc "nvrtcCompileProgram", handle, 0usize, 0usize), INVALID_PROGRAM);
        let mut named = handle;
        assert_eq!(call!(nvrtc "nvrtcDestroyProgram", &mut named), INVALID_PROGRAM);
    }
    for wild in [0usize, 8, 0x5_0000, usize::MAX] {
        assert_eq!(call!(nvrtc "nvrtcVersion", wild, wild), INVALID_INPUT);
        assert_eq!(call!(nvrtc "nvrtcDestroyProgram", wild), INVALID_INPUT);
        let mut program = 0usize;
        assert_eq!(
            call!(nvrtc "nvrtcCreateProgram", &mut program, wild, 0usize, 0usize, 0usize, 0usize),
            INVALID_INPUT
        );
        assert_eq!(
            call!(nvrtc "nvrtcCreateProgram", wild, c"x", 0usize, 0usize, 0usize, 0usize),
            INVALID_INPUT
        );
        for count in [1i32, -1, i32::MAX] {
            let status = call!(nvrtc "nvrtcCreateProgram", &mut program, c"x", 0usize, count, wild, wild);
            assert_eq!(status, INVALID_INPUT);
        }
        let one = Program::new("");
        assert_eq!(call!(nvrtc "nvrtcGetProgramLogSize", one.0, wild), INVALID_INPUT);
        assert_eq!(call!(nvrtc "nvrtcAddNameExpression", one.0, wild), INVALID_INPUT);
        assert_eq!(call!(nvrtc "nvrtcCompileProgram", one.0, 1usize, wild), INVALID_INPUT);
    }
    let list = Texts::new(&["-w"]);
    let one = Program::new("");
    assert_eq!(call!(nvrtc "nvrtcCompileProgram", one.0, -1i32, &list.1[..]), INVALID_INPUT);
}

#[test]
fn nothing_is_there_before_it_is_compiled() {
    let program = Program::new("x");
    assert_eq!(program.ptx(), Err(INVALID_PROGRAM));
    assert_eq!(program.log(), "");
    program.add("k<int>");
    assert_eq!(program.lowered("k<int>"), Err(NO_NAMES_YET));
}

#[test]
fn wrong_options_are_named_in_the_log() {
    let program = Program::new("x");
    assert_eq!(program.compile(&["-arch=sm_80", "--wonder=7"]), INVALID_OPTION);
    assert_eq!(program.log(), "nvrtc: error: unknown option `--wonder=7`\n");
    assert_eq!(program.ptx(), Err(INVALID_PROGRAM));
    assert_eq!(program.compile(&["-dlto"]), INVALID_OPTION);
    assert!(program.log().contains("link-time optimisation"));
}

#[test]
fn what_the_compiler_gives_is_kept() {
    let compiler = Compiler::new("good", GOOD);
    if !is_alone_with("what_the_compiler_gives_is_kept", &[compiler.variable()]) {
        return;
    }
    let program =
        Program::with("text of the \"program\"", "a \"b\\c\".cu", &[]).compiled(&["-arch=compute_80"]);
    assert_eq!(program.ptx().expect("PTX"), "#line 1 \"a \\\"b\\\\c\\\".cu\"\ntext of the \"program\"");
    // There is no machine code for a virtual architecture.
    let mut size = 7usize;
    assert_eq!(call!(nvrtc "nvrtcGetCUBINSize", program.0, &mut size), 0);
    assert_eq!(size, 0);
    assert_eq!(call!(nvrtc "nvrtcGetLTOIRSize", program.0, &mut size), 0);
    assert_eq!(size, 0);
    let program = Program::new("text").compiled(&["-arch=sm_80"]);
    let code = program.bytes("nvrtcGetCUBINSize", "nvrtcGetCUBIN").expect("code");
    assert_eq!(code, b"#line 1 \"kernel.cu\"\ntext\0");
    assert_eq!(program.lowered("k"), Err(NO_SUCH_EXPRESSION));
    let late = call!(nvrtc "nvrtcAddNameExpression", program.0, c"k");
    assert_eq!(late, NO_EXPRESSIONS_ANY_MORE);
}

#[test]
fn compilers_that_do_not_end_are_stopped() {
    // The script starts another process, which must end with it.
    let compiler = Compiler::new("slow", "sleep 600 &\nsleep 600");
    let variables = [compiler.variable(), ("PTXVM_NVRTC_TIMEOUT", "0.2")];
    if !is_alone_with("compilers_that_do_not_end_are_stopped", &variables) {
        return;
    }
    let start = std::time::Instant::now();
    let program = Program::new("x");
    assert_eq!(program.compile(&[]), COMPILATION);
    assert!(program.log().contains("stopped after 0.2 s"), "{}", program.log());
    assert!(start.elapsed().as_secs() < 60);
}

#[test]
fn callers_can_stop_a_compilation() {
    let compiler = Compiler::new("slower", "sleep 600");
    if !is_alone_with("callers_can_stop_a_compilation", &[compiler.variable()]) {
        return;
    }
    extern "C" fn stop(count: &mut u32, nothing: usize) -> i32 {
        assert_eq!(nothing, 0);
        *count += 1;
        i32::from(*count > 3)
    }
    let mut count = 0u32;
    let program = Program::new("x");
    let function: extern "C" fn(&mut u32, usize) -> i32 = stop;
    assert_eq!(call!(nvrtc "nvrtcSetFlowCallback", program.0, function as usize, &mut count), 0);
    assert_eq!(program.compile(&[]), 16);
    assert_eq!(count, 4);
}

#[test]
fn compilers_that_crash_are_an_error() {
    let compiler = Compiler::new("crash", "echo about to crash >&2\nkill -SEGV $$");
    if !is_alone_with("compilers_that_crash_are_an_error", &[compiler.variable()]) {
        return;
    }
    let program = Program::new("x");
    assert_eq!(program.compile(&[]), INTERNAL_ERROR);
    assert!(
        program.log().starts_with("about to crash\n") && program.log().contains("crashed"),
        "{}",
        program.log()
    );
}

#[test]
fn compilers_that_are_not_there_are_named() {
    if !is_alone_with("compilers_that_are_not_there_are_named", &[("PTXVM_CLANG", "/no/such/clang")]) {
        return;
    }
    let program = Program::new("x");
    assert_eq!(program.compile(&[]), INTERNAL_ERROR);
    assert!(program.log().contains("cannot compile with `/no/such/clang`"), "{}", program.log());
}

#[test]
fn without_any_compiler_one_line_says_what_to_do() {
    if !is_alone_with("without_any_compiler_one_line_says_what_to_do", &[("PATH", "/no/such")]) {
        return;
    }
    let program = Program::new("x");
    assert_eq!(program.compile(&[]), BUILTIN_OPERATION_FAILURE);
    let log = program.log();
    assert!(log.lines().count() == 1 && log.contains("PTXVM_CLANG") && log.contains("PTXVM_NVRTC"), "{log}");
}

#[test]
fn our_own_library_is_not_nvidias() {
    let ours = support::library_path("libptxvm_nvrtc.so");
    let ours = ours.to_str().expect("UTF-8");
    if !is_alone_with("our_own_library_is_not_nvidias", &[("PTXVM_NVRTC", ours)]) {
        return;
    }
    let program = Program::new("x");
    assert_eq!(program.compile(&[]), BUILTIN_OPERATION_FAILURE);
    assert!(program.log().contains("ptxvm's own library"), "{}", program.log());
}

#[test]
fn headers_outside_of_folders_are_refused() {
    let compiler = Compiler::new("headers", GOOD);
    if !is_alone_with("headers_outside_of_folders_are_refused", &[compiler.variable()]) {
        return;
    }
    let program = Program::with("x", "x.cu", &[("/tmp/evil.h", "")]);
    assert_eq!(program.compile(&[]), INVALID_INPUT);
    assert!(program.log().contains("`/tmp/evil.h`"), "{}", program.log());
}
