//! Binding of whole programs: output of compilers is bound, an instruction without a binding is reported with
//! its line, and instructions that need memory or a whole warp behave as in the manual.

mod memory;
mod warp;

use ptx::check::{CheckOptions, check};
use ptx::ir::Program;
use ptx_exec::bind::check_supported;
use ptx_exec::launch::{Kernel, LaunchConfig, LoadedModule};
use ptx_exec::mem::{Class, Memory};
use std::sync::Arc;

fn program(name: &str, text: &str) -> Program {
    let checked = check(name, text, &CheckOptions::default());
    let Some(module) = checked.module else { panic!("{name}: {:#?}", checked.diagnostics) };
    ptx::ir::lower(module)
}

/// A kernel `k(out)` around a body: one CTA of 32 threads. Registers `%p0..7`, `%h0..15`, `%r0..31`,
/// `%d0..31` are declared; `%d0` is `out` and `%r0` is `%tid.x`.
fn kernel(declarations: &str, body: &str) -> String {
    format!(
        ".version 6.4\n.target sm_70\n.address_size 64\n{declarations}\n.visible .entry k(.param .u64 out)\n{{\n\
         .reg .pred %p<8>;\n.reg .b16 %h<16>;\n.reg .b32 %r<32>;\n.reg .b64 %d<32>;\n\
         ld.param.u64 %d0, [out];\nmov.u32 %r0, %tid.x;\n{body}\nret;\n}}\n"
    )
}

/// Runs the kernel of a text with a buffer that starts as `buffer`, and returns the buffer.
fn run(text: &str, buffer: &[u8]) -> Vec<u8> {
    let memory = Memory::new(ptx::check::module::AddressSize::Bits64).expect("the system reserves addresses");
    let program = Arc::new(program("test", text));
    let module = LoadedModule::load(&memory, program).expect("a module without externals loads");
    let (id, _) = module.kernels().next().expect("there is one kernel");
    let kernel = Kernel::bind(&module, id).unwrap_or_else(|missing| panic!("{missing}"));
    let out = memory.alloc(Class::Global, buffer.len() as u64, 256, "out").expect("room for a small buffer");
    memory.write(out, buffer).expect("inside the buffer");
    let config = LaunchConfig { params: out.to_le_bytes().to_vec(), ..LaunchConfig::new([1; 3], [32, 1, 1]) };
    kernel.launch(&config).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut found = vec![0; buffer.len()];
    memory.read(out, &mut found).expect("inside the buffer");
    found
}

/// Runs a body that writes one 32-bit word per thread to `[%d1]`, the thread's place in `out`.
fn words(declarations: &str, body: &str) -> Vec<u32> {
    let body = format!("mul.wide.u32 %d1, %r0, 4;\nadd.u64 %d1, %d0, %d1;\n{body}");
    let bytes = run(&kernel(declarations, &body), &[0; 4 * 32]);
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
}

#[test]
fn all_fixtures_are_bound() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/kernels");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("the fixtures are there") {
        let path = entry.expect("a directory entry").path();
        if path.extension().is_some_and(|extension| extension == "ptx") {
            let text = std::fs::read_to_string(&path).expect("a readable fixture");
            let missing = check_supported(&program(&path.display().to_string(), &text));
            assert!(missing.is_empty(), "{}: {missing:#?}", path.display());
            count += 1;
        }
    }
    assert!(count > 50, "only {count} fixtures");
}

#[test]
fn double_precision_that_becomes_single_is_refused() {
    let text = ".version 1.4\n.target sm_10, map_f64_to_f32\n.entry k\n{\n\
                .reg .f64 %d<3>;\n.reg .f32 %f;\nmov.f64 %d0, %d1;\nadd.f64 %d0, %d1, %d2;\n\
                cvt.f64.f32 %d0, %f;\nadd.f32 %f, %f, %f;\nexit;\n}\n";
    let missing = check_supported(&program("mapped", text));
    let found: Vec<String> = missing.iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "line 8: `add.f64 under map_f64_to_f32` is not implemented",
            "line 9: `cvt.f64.f32 under map_f64_to_f32` is not implemented",
        ]
    );
}

#[test]
fn what_is_missing_is_named_with_its_line() {
    let text = ".version 7.0\n.target sm_80\n.address_size 64\n.extern .func f();\n.visible .entry k()\n{\n\
                .reg .f32 %f<8>;\nadd.f32 %f1, %f1, %f1;\ncall f;\nret;\n}\n";
    let missing = check_supported(&program("missing", text));
    let found: Vec<String> = missing.iter().map(ToString::to_string).collect();
    assert_eq!(found, ["line 9: `call of `f`, which has no body` is not implemented"]);
    assert_eq!(missing[0].function, "k");
}
