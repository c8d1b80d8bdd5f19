//! CUDA's cooperative groups in kernels: the grid's workspace at `%envreg1` and `%envreg2`, reserved shared
//! memory at `%reserved_smem_offset_*`, and parameters of the kernel by address (`cvta.param`), in every
//! engine.

use ptxvm::{Arg, Buffer, Engine, ErrorKind, FaultKind, Launch, Vm};

const ENGINES: &[Engine] = if cfg!(feature = "jit") {
    &[Engine::Interp, Engine::Jit, Engine::Auto]
} else {
    &[Engine::Interp, Engine::Auto]
};

/// A kernel: `%rd1` is the address of words, `%r1` the thread, `%r2` the CTA, `%r3` how many CTAs; `s` has
/// words 1 to 8.
fn text(before: &str, body: &str) -> String {
    format!(
        ".version 8.3\n.target sm_80\n.address_size 64\n.shared .align 4 .b32 own[8];\n{before}\n\
         .visible .entry k(.param .u64 data, .param .align 4 .b8 s[32])\n{{\n\
         .reg .pred %p<10>; .reg .b32 %r<20>; .reg .b64 %rd<20>;\n\
         ld.param.u64 %rd1, [data]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %nctaid.x;\n\
         {body}\nret;\n}}\n"
    )
}

fn run(before: &str, body: &str, launch: Launch) -> Result<Vec<u32>, ptxvm::Error> {
    let vm = Vm::new().expect("a device");
    let text = text(before, body);
    let module = vm.load("cooperative.ptx", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let kernel = module.kernel("k").expect("the kernel");
    let data: Buffer<u32> = vm.buffer(&[0; 4096]).expect("memory");
    let words: Vec<u8> = (1..=8u32).flat_map(u32::to_le_bytes).collect();
    let launch = launch.args(&kernel, &[Arg::buffer(&data), Arg::bytes_of(&words)]).expect("arguments");
    vm.launch(&kernel, &launch)?;
    data.read()
}

/// One arrival of each CTA at the workspace, and the wait for the others: as `grid.sync()` counts.
const GRID_SYNC: &str = "\
    mov.u32 %r4, %envreg1; mov.u32 %r5, %envreg2; mov.b64 %rd2, {%r5, %r4};\n\
    bar.sync 0;\n\
    setp.ne.u32 %p1, %r1, 0; @%p1 bra WAIT;\n\
    mov.u32 %r6, 1; setp.ne.u32 %p2, %r2, 0; @%p2 bra ADD; sub.u32 %r6, 0x80000001, %r3;\n\
    ADD: atom.add.release.gpu.u32 %r7, [%rd2+4], %r6;\n\
    SPIN: ld.acquire.gpu.u32 %r8, [%rd2+4]; xor.b32 %r9, %r7, %r8; setp.ge.s32 %p3, %r9, 0; @%p3 bra SPIN;\n\
    WAIT: bar.sync 0;\n";

#[test]
fn a_grid_waits_for_all_its_ctas() {
    // CTA i adds i + 1 before the barrier; after it every CTA sees the whole sum.
    let body = format!(
        "add.u32 %r10, %r2, 1; setp.ne.u32 %p4, %r1, 0; @%p4 bra IN; red.global.add.u32 [%rd1], %r10; IN:\n\
         {GRID_SYNC}\n\
         @%p4 bra OUT; ld.global.u32 %r11, [%rd1]; mul.wide.u32 %rd3, %r2, 4; add.u64 %rd3, %rd1, %rd3; st.global.u32 [%rd3+4], %r11; OUT:"
    );
    for engine in ENGINES {
        for (ctas, threads) in [(1u32, 1), (7, 2), (200, 1), (200, 3)] {
            let launch = Launch::new([ctas, 1, 1], [64, 1, 1]).cooperative().threads(threads).engine(*engine);
            let found = run("", &body, launch).unwrap_or_else(|error| panic!("{engine:?}: {error}"));
            let sum = ctas * (ctas + 1) / 2;
            assert!(found[..=ctas as usize].iter().all(|word| *word == sum), "{engine:?}, {ctas} CTAs");
        }
    }
}

#[test]
fn a_plain_launch_has_no_workspace() {
    for engine in ENGINES {
        let launch = Launch::new([2, 1, 1], [64, 1, 1]).engine(*engine);
        let error = run("", GRID_SYNC, launch).expect_err("an address near zero");
        let ErrorKind::Trap(trap, _) = error.kind() else { panic!("{error}") };
        assert_eq!(trap.kind, FaultKind::IllegalAddress, "{engine:?}");
    }
}

#[test]
fn reserved_shared_memory_lies_beside_the_kernels_own() {
    // Reserved words are written from end to end; the kernel's own and its dynamic ones keep what is in them.
    let body = "\
        mul.lo.u32 %r4, %r1, 4; mov.u32 %r5, own; add.u32 %r5, %r5, %r4; mov.u32 %r6, dynamic; add.u32 %r6, %r6, %r4;\n\
        setp.lt.u32 %p1, %r1, 8; @%p1 st.shared.u32 [%r5], 11; st.shared.u32 [%r6], 22; bar.sync 0;\n\
        mov.b32 %r7, %reserved_smem_offset_begin; mov.b32 %r8, %reserved_smem_offset_end; add.u32 %r9, %r7, %r4;\n\
        FILL: st.shared.u32 [%r9], 33; add.u32 %r9, %r9, 128; setp.lt.u32 %p2, %r9, %r8; @%p2 bra FILL; bar.sync 0;\n\
        mov.u32 %r10, 0; @%p1 ld.shared.u32 %r10, [%r5]; ld.shared.u32 %r11, [%r6]; add.u32 %r10, %r10, %r11;\n\
        mov.b32 %r12, %reserved_smem_offset_1; mov.b32 %r13, %reserved_smem_offset_0; mov.b32 %r14, %reserved_smem_offset_cap;\n\
        sub.u32 %r15, %r8, %r12; setp.ge.u32 %p3, %r15, 288; @!%p3 mov.u32 %r10, 0;\n\
        sub.u32 %r15, %r8, %r7; setp.eq.u32 %p3, %r15, %r14; @!%p3 mov.u32 %r10, 0;\n\
        setp.eq.u32 %p3, %r12, %r13; @%p3 mov.u32 %r10, 0;\n\
        mul.wide.u32 %rd3, %r1, 4; add.u64 %rd3, %rd1, %rd3; st.global.u32 [%rd3], %r10;";
    for engine in ENGINES {
        let launch = Launch::new([3, 1, 1], [32, 1, 1]).shared(128).engine(*engine);
        let before = ".extern .shared .align 4 .b32 dynamic[];";
        let found = run(before, body, launch).unwrap_or_else(|error| panic!("{engine:?}: {error}"));
        let expected: Vec<u32> = (0..32).map(|i| if i < 8 { 33 } else { 22 }).collect();
        assert_eq!(found[..32], expected, "{engine:?}");
    }
}

#[test]
fn parameters_are_read_through_generic_addresses() {
    let before = ".func (.reg .b32 d) pick(.reg .b64 a, .reg .b32 i) { .reg .b64 %a; mul.wide.u32 %a, i, 4; add.u64 %a, a, %a; ld.b32 d, [%a]; ret; }";
    for convert in [
        "mov.b64 %rd2, s; cvta.param.u64 %rd3, %rd2;",
        "cvta.param.u64 %rd3, s;",
        "cvta.param::entry.u64 %rd3, s; cvta.to.param::entry.u64 %rd4, %rd3; cvta.param.u64 %rd3, %rd4;",
    ] {
        let body = format!(
            "{convert} and.b32 %r4, %r1, 7; call (%r5), pick, (%rd3, %r4); isspacep.param %p1, %rd3; isspacep.param::entry %p2, %rd1;\n\
             @!%p1 mov.u32 %r5, 0; @%p2 mov.u32 %r5, 0; ld.param::entry.b32 %r6, [s+4]; add.u32 %r5, %r5, %r6;\n\
             mul.wide.u32 %rd5, %r1, 4; add.u64 %rd5, %rd1, %rd5; st.global.u32 [%rd5], %r5;"
        );
        for engine in ENGINES {
            let launch = Launch::new([1; 3], [64, 1, 1]).engine(*engine);
            let found = run(before, &body, launch).unwrap_or_else(|error| panic!("{engine:?}: {error}"));
            let expected: Vec<u32> = (0..64).map(|i| (i & 7) + 1 + 2).collect();
            assert_eq!(found[..64], expected, "{engine:?} {convert}");
        }
    }
    for engine in ENGINES {
        let launch = Launch::new([1; 3], [1; 3]).engine(*engine);
        let error = run("", "cvta.param.u64 %rd3, s; st.b32 [%rd3], %r1;", launch).expect_err("read only");
        let ErrorKind::Trap(trap, _) = error.kind() else { panic!("{error}") };
        assert_eq!(trap.kind, FaultKind::ReadOnly, "{engine:?}");
    }
}
