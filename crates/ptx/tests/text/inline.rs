//! Inlining of device functions into kernels: the program keeps its rules, and what stays a call.

use ptx::check::{CheckOptions, check};
use ptx::ir::inline::inline;
use ptx::ir::verify::verify;
use ptx::ir::{Callee, Function, Program, Terminator, lower};
use std::path::Path;

fn program(text: &str) -> Program {
    let checked = check("inline.ptx", text, &CheckOptions::default());
    let mut program = lower(checked.module.unwrap_or_else(|| panic!("{:?}", checked.diagnostics)));
    inline(&mut program);
    let violations = verify(&program);
    assert!(violations.is_empty(), "{violations:?}");
    program
}

/// A module with these functions and a kernel that has a local variable and calls `f`.
fn with(functions: &str) -> Program {
    program(&format!(
        ".version 6.4\n.target sm_70\n.address_size 64\n{functions}
        .visible .entry k(.param .u32 n) {{
            .reg .b32 %r<4>; .local .align 8 .b8 own[24];
            ld.param.u32 %r1, [n]; st.local.u32 [own+8], %r1;
            call (%r2), f, (%r1); call (%r3), f, (%r2);
            ret;
        }}"
    ))
}

fn kernel(program: &Program) -> &Function {
    program.functions.iter().find(|function| function.name == "k").expect("the kernel")
}

/// The names of the functions that the kernel still calls.
fn calls(program: &Program) -> Vec<&str> {
    let callee = |block: &ptx::ir::Block| match &block.term {
        Terminator::Call(call) => match call.callee {
            Callee::Direct(func) => Some(func.0 as usize),
            Callee::Indirect { .. } => None,
        },
        _ => None,
    };
    let called = kernel(program).blocks.iter().filter_map(callee);
    called.map(|func| program.functions[func].name.as_str()).collect()
}

const DOUBLE: &str = ".func (.reg .b32 y) f(.reg .b32 x) { .local .align 16 .b8 mine[16]; \
    st.local.u32 [mine], x; ld.local.u32 y, [mine]; add.u32 y, y, y; ret; }";

#[test]
fn calls_become_blocks() {
    let program = with(DOUBLE);
    assert!(calls(&program).is_empty());
    let kernel = kernel(&program);
    // Both copies share one range of registers and one region, at a multiple of its alignment.
    assert_eq!(kernel.inlined.len(), 1);
    assert_eq!(kernel.frame_bytes, 32 + 16);
    assert_eq!(kernel.frame_align, 16);
    let own = program.functions.iter().find(|function| function.name == "f").expect("f");
    // Three registers of the kernel are used.
    assert_eq!(kernel.regs.r32, 3 + own.regs.r32);
    assert_eq!(kernel.inlined[0].registers[2], [Some(3), Some(4)]);
    let mine = kernel.objects.iter().find(|object| object.name == "mine").expect("the variable");
    assert_eq!((mine.offset, mine.bytes), (32, 16));
}

#[test]
fn functions_that_reach_themselves_stay_calls() {
    let recursive = ".func (.reg .b32 y) f(.reg .b32 x) { .reg .pred p; mov.u32 y, x; setp.eq.u32 p, x, 0; \
        @p ret; call (y), f, (y); ret; }";
    assert_eq!(calls(&with(recursive)), ["f", "f"]);
    let mutual = ".func (.reg .b32 y) g(.reg .b32 x);\n\
        .func (.reg .b32 y) f(.reg .b32 x) { call (y), g, (x); ret; }\n\
        .func (.reg .b32 y) g(.reg .b32 x) { call (y), f, (x); ret; }";
    assert_eq!(calls(&with(mutual)), ["f", "f"]);
    // A function that calls a recursive one is inlined; the recursive one is not.
    let below = ".func (.reg .b32 y) g(.reg .b32 x) { call (y), g, (x); ret; }\n\
        .func (.reg .b32 y) f(.reg .b32 x) { call (y), g, (x); ret; }";
    assert_eq!(calls(&with(below)), ["g", "g"]);
}

#[test]
fn functions_in_functions_are_inlined() {
    let nested = ".func (.reg .b32 y) g(.reg .b32 x) { add.u32 y, x, 1; ret; }\n\
        .func (.reg .b32 y) f(.reg .b32 x) { call (y), g, (x); call (y), g, (y); ret; }";
    let program = with(nested);
    assert!(calls(&program).is_empty());
    assert_eq!(kernel(&program).inlined.len(), 2);
}

/// Sixteen functions that call the next one twice: 65,535 copies of the last.
#[test]
fn growth_is_bounded() {
    let mut functions = String::from(".func (.reg .b32 y) f16(.reg .b32 x) { add.u32 y, x, 1; ret; }\n");
    for level in (1..16).rev() {
        functions += &format!(
            ".func (.reg .b32 y) f{level}(.reg .b32 x) {{ call (y), f{0}, (x); call (y), f{0}, (y); ret; }}\n",
            level + 1
        );
    }
    functions += ".func (.reg .b32 y) f(.reg .b32 x) { call (y), f1, (x); ret; }";
    let program = with(&functions);
    let size: usize = kernel(&program).blocks.iter().map(|block| block.insts.len() + 1).sum();
    assert!((1000..4000).contains(&size), "{size}");
    assert!(!calls(&program).is_empty());
}

#[test]
fn frames_are_bounded() {
    let large = ".func (.reg .b32 y) f(.reg .b32 x) { .local .b8 mine[70000]; \
        st.local.u8 [mine], x; mov.u32 y, x; ret; }";
    assert_eq!(calls(&with(large)), ["f", "f"]);
}

/// A function that never returns leaves blocks behind that nothing reaches.
#[test]
fn what_follows_a_function_that_exits_is_dropped() {
    let program = with(".func (.reg .b32 y) f(.reg .b32 x) { exit; }");
    assert!(calls(&program).is_empty());
    assert!(kernel(&program).blocks.iter().all(|block| !matches!(block.term, Terminator::Ret(_))));
}

/// All texts of the repository keep the rules of programs.
#[test]
fn every_text_keeps_the_rules() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let (mut count, mut inlined) = (0, 0);
    for folder in ["agree", "fixtures/ptx", "fixtures/cases", "hostile", "language", "remarks"] {
        let Ok(files) = std::fs::read_dir(tests.join(folder)) else { continue };
        for file in files.flatten().filter(|file| file.path().extension().is_some_and(|e| e == "ptx")) {
            let text = std::fs::read_to_string(file.path()).expect("a text");
            let Some(module) = check("text.ptx", &text, &CheckOptions::default()).module else { continue };
            let mut program = lower(module);
            if program.functions.iter().map(|f| f.blocks.len()).sum::<usize>() > 3000 {
                continue;
            }
            inline(&mut program);
            let violations = verify(&program);
            assert!(violations.is_empty(), "{}: {violations:?}", file.path().display());
            count += 1;
            inlined += program.functions.iter().filter(|function| !function.inlined.is_empty()).count();
        }
    }
    assert!(count > 50 && inlined > 1, "{inlined} kernels with inlined functions in {count} texts");
}
