//! Instructions that trap although their result is unused: the same trap in every engine, or none if they are
//! not executed.
//!
//! There is one small kernel for each kind of instruction that can trap (`ptx::isa::Op::traps`). Traps are
//! compared by kind, line, CTA, thread and access; kind and line of the interpreter are written here.
#![cfg(feature = "jit")]

use ptxvm::{Arg, Cpu, Engine, ErrorKind, Launch, Options, Trap, Vm};

/// The line of the text where a case begins.
const LINE: u32 = 16;
/// The line where a function calls itself for ever.
const DEEP: u32 = 10;

/// A kernel with `%rd1`, the address of 4096 bytes; `%r2`, the thread's number; `%rd9`, an address that is
/// nowhere.
fn text(body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n\
         .global .align 4 .b32 counts[4];\n.const .align 4 .b32 table[4] = {{1, 2, 3, 4}};\n\
         .func (.reg .b32 out) deep(.reg .b32 n)\n{{\n.reg .b32 %r<4>;\nadd.u32 %r1, n, 1;\ncall (%r2), deep, (%r1);\nadd.u32 out, %r2, n;\nret;\n}}\n\
         .visible .entry k(.param .u64 data) {{ .reg .pred %p<10>; .reg .b16 %h<10>; .reg .b32 %r<60>; .reg .b64 %rd<40>; .reg .f32 %f<20>; .shared .align 16 .b8 shared[4096]; .local .align 16 .b8 own[64];\n\
         ld.param.u64 %rd1, [data]; mov.u32 %r2, %tid.x; mov.u64 %rd9, 0x10000; mul.wide.u32 %rd2, %r2, 4; add.u64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r2;\n\
         {body}\n st.global.u32 [%rd3+128], %r2;\n ret;\n}}\n"
    )
}

/// A launch: what is in memory afterwards, or the trap, with addresses in the array as distances from its
/// start.
fn run(body: &str, engine: Engine, cpu: Option<Cpu>) -> Option<Result<Vec<u32>, Box<Trap>>> {
    let vm = Vm::with(Options { cpu, ..Options::default() }).unwrap_or_else(|error| panic!("{error}"));
    let module = vm.load("test.ptx", &text(body)).unwrap_or_else(|error| panic!("{body}\n{error}"));
    let kernel = module.kernel("k").expect("the kernel");
    let data = vm.buffer(&[0u32; 1024]).expect("memory");
    let launch = Launch::new([2, 1, 1], [32, 1, 1]).threads(1).engine(engine);
    let launch = launch.args(&kernel, &[Arg::buffer(&data)]).expect("arguments that fit");
    match vm.launch(&kernel, &launch) {
        Ok(_) => Some(Ok(data.read().expect("the results"))),
        Err(error) => match error.into_kind() {
            ErrorKind::Trap(mut trap, _) => {
                let near = |address: &u64| address.wrapping_sub(data.address()) < 1 << 20;
                if let Some(access) = trap.access.as_mut().filter(|access| near(&access.address)) {
                    access.address -= data.address();
                }
                Some(Err(trap))
            }
            // A level that this machine lacks has nothing to say.
            ErrorKind::Machine(_) | ErrorKind::Caller(_) if cpu.is_some_and(|cpu| cpu != Cpu::Baseline) => {
                None
            }
            other => panic!("{body}\n{}", ptxvm::Error::from(other)),
        },
    }
}

/// What the interpreter and native code of every level agree about.
fn agree(body: &str) -> Result<Vec<u32>, Box<Trap>> {
    let expected = run(body, Engine::Interp, None).expect("the interpreter runs everywhere");
    for cpu in [Cpu::Baseline, Cpu::Avx2, Cpu::Avx512] {
        let Some(found) = run(body, Engine::Jit, Some(cpu)) else { continue };
        match (&expected, &found) {
            (Ok(expected), Ok(found)) => assert_eq!(found, expected, "{cpu:?}\n{body}"),
            (Err(expected), Err(found)) => {
                let place = |trap: &Trap| {
                    // Variables lie elsewhere on each device.
                    let address =
                        trap.access.as_ref().map(|a| a.address).filter(|address| *address < 1 << 20);
                    let access = trap.access.as_ref().map(|a| (address, a.bytes, a.write, a.space));
                    (trap.kind.word(), trap.line, trap.ctaid, trap.tid, trap.warp, trap.lane, access)
                };
                assert_eq!(place(found), place(expected), "{cpu:?}\n{body}");
            }
            (Ok(_), Err(trap)) => panic!("{cpu:?}: only native code traps\n{body}\n{trap}"),
            (Err(trap), Ok(_)) => panic!("{cpu:?}: native code does not trap\n{body}\n{trap}"),
        }
    }
    expected
}

/// Instructions with a bad operand and a result that nothing reads: the trap, the lane, and the instruction.
const CASES: &[(&str, u8, &str)] = &[
    // Queries of what is no texture or surface.
    ("bad_texture", 0, "txq.width.b32 %r9, [%rd9];"),
    ("bad_texture", 0, "txq.level.width.b32 %r9, [%rd9], 0;"),
    ("bad_texture", 0, "suq.width.b32 %r9, [%rd9];"),
    ("bad_texture", 7, "setp.ge.u32 %p1, %r2, 7; @%p1 suq.height.b32 %r9, [%rd9];"),
    ("bad_texture", 3, "setp.lt.u32 %p1, %r2, 3; @%p1 bra L; txq.depth.b32 %r9, [%rd9]; L:"),
    // Twice the same, of which the first traps.
    ("bad_texture", 0, "txq.width.b32 %r9, [%rd9];\ntxq.width.b32 %r10, [%rd9]; st.global.u32 [%rd3], %r10;"),
    // In a loop that computes nothing.
    (
        "bad_texture",
        0,
        "mov.u32 %r8, 0; L: suq.width.b32 %r9, [%rd9]; add.u32 %r8, %r8, 1; setp.lt.u32 %p1, %r8, 9; @%p1 bra L;",
    ),
    // Textures and surfaces.
    ("bad_texture", 0, "tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd9, {%r2}];"),
    ("bad_texture", 0, "tld4.r.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd9, {%f5, %f6}];"),
    ("bad_texture", 0, "suld.b.1d.b32.trap %r9, [%rd9, {%r2}];"),
    ("bad_texture", 0, "suld.b.1d.b32.zero %r9, [%rd9, {%r2}];"),
    // Loads of every kind and space.
    ("illegal_address", 0, "ld.global.u32 %r9, [%rd9];"),
    ("illegal_address", 0, "ld.u32 %r9, [%rd9];"),
    ("illegal_address", 0, "ld.global.nc.u32 %r9, [%rd9];"),
    ("illegal_address", 0, "ldu.global.u32 %r9, [%rd9];"),
    ("illegal_address", 0, "ld.volatile.global.u32 %r9, [%rd9];"),
    ("illegal_address", 0, "ld.relaxed.gpu.global.u32 %r9, [%rd9];"),
    ("illegal_address", 0, "ld.const.u32 %r9, [table+16];"),
    ("illegal_address", 0, "ld.global.u32 %r9, [counts+16];"),
    ("illegal_address", 0, "ld.shared.u32 %r9, [shared+4096];"),
    ("illegal_address", 0, "ld.local.u32 %r9, [own+4096];"),
    (
        "illegal_address",
        1,
        "mul.wide.u32 %rd4, %r2, 4096; add.u64 %rd4, %rd4, %rd1; ld.global.u32 %r9, [%rd4];",
    ),
    ("illegal_address", 0, "ld.global.v4.u32 {%r9, %r10, %r11, %r12}, [%rd9];"),
    ("illegal_address", 0, "ld.global.v4.u32 {_, _, _, %r12}, [%rd1+4096];"),
    ("misaligned", 0, "ld.global.v2.u32 {%r9, _}, [%rd1+4];"),
    ("misaligned", 0, "ld.global.u64 %rd8, [%rd1+4];"),
    ("illegal_address", 20, "setp.ge.u32 %p1, %r2, 20; @%p1 ld.global.u32 %r9, [%rd9];"),
    ("illegal_address", 20, "setp.lt.u32 %p1, %r2, 20; @%p1 bra L; ld.global.u32 %r9, [%rd9]; L:"),
    // The last iterations of a loop access memory beyond the array.
    (
        "illegal_address",
        31,
        "mov.u32 %r8, 0; mov.u64 %rd4, %rd3; L: ld.global.u32 %r9, [%rd4]; ld.global.u32 %r10, [%rd4+4]; ld.global.u32 %r11, [%rd4+8]; ld.global.u32 %r12, [%rd4+12]; add.u64 %rd4, %rd4, 64; add.u32 %r8, %r8, 1; setp.lt.u32 %p1, %r8, 100; @%p1 bra L;",
    ),
    // Of several, the first in the order of the program, whatever lane it is.
    (
        "illegal_address",
        9,
        "setp.eq.u32 %p1, %r2, 9; selp.u64 %rd4, %rd9, %rd1, %p1; ld.global.u32 %r9, [%rd4];\nld.global.u32 %r10, [%rd9]; st.global.u32 [%rd3], %r10;",
    ),
    (
        "illegal_address",
        0,
        "ld.global.u32 %r9, [%rd1+4092]; ld.global.u32 %r10, [%rd1+4096];\nld.global.u32 %r11, [%rd1+4088]; ld.global.u32 %r12, [%rd1+4100];",
    ),
    (
        "misaligned",
        0,
        "ld.global.u32 %r9, [%rd1+4]; ld.global.u64 %rd8, [%rd1+4];\nld.global.u64 %rd7, [%rd1+4096];",
    ),
    (
        "illegal_address",
        31,
        "ld.global.u32 %r9, [%rd3+3972]; ld.global.u32 %r10, [%rd3+3976];\nst.global.u32 [%rd3+3980], %r9;",
    ),
    // Atomics whose old value is not used.
    ("illegal_address", 0, "atom.global.add.u32 %r9, [%rd9], 1;"),
    ("illegal_address", 0, "atom.shared.cas.b32 %r9, [shared+4096], 0, 1;"),
    ("illegal_address", 0, "atom.global.add.u32 _, [%rd9], 0;"),
    ("illegal_address", 0, "red.global.add.u32 [%rd9], 1;"),
    ("misaligned", 0, "atom.global.exch.b64 %rd8, [%rd1+4], %rd1;"),
    ("illegal_address", 0, "st.global.u32 [%rd9], %r2;"),
    ("read_only", 0, "cvta.const.u64 %rd8, table; st.u32 [%rd8], %r2;"),
    // Barriers in memory, copies.
    ("illegal_address", 0, "mov.u32 %r9, 4096; mbarrier.test_wait.shared.b64 %p1, [shared+4096], %rd1;"),
    ("illegal_address", 0, "mbarrier.arrive.shared.b64 %rd8, [shared+4096];"),
    ("illegal_address", 0, "cp.async.ca.shared.global [shared], [%rd9], 4;"),
    // Matrices.
    (
        "illegal_address",
        0,
        "mov.u32 %r9, 5000; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [shared+4096];",
    ),
    (
        "illegal_address",
        0,
        "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r10,%r11,%r12,%r13,%r14,%r15,%r16,%r17}, [%rd9], 16;",
    ),
    // Lanes outside of their own member masks.
    ("bad_member_mask", 1, "shfl.sync.idx.b32 %r9, %r2, 0, 31, 1;"),
    ("bad_member_mask", 1, "vote.sync.any.pred %p1, %p2, 1;"),
    ("bad_member_mask", 1, "match.any.sync.b32 %r9, %r2, 1;"),
    ("bad_member_mask", 1, "redux.sync.add.u32 %r9, %r2, 1;"),
    ("bad_member_mask", 1, "bar.warp.sync 1;"),
    ("bad_barrier", 0, "mov.u32 %r9, 99; bar.sync %r9;"),
    ("bad_barrier", 0, "setp.eq.u32 %p2, %r2, 0; mov.u32 %r9, 99; bar.red.popc.u32 %r10, %r9, %p2;"),
    // Control flow.
    ("stack_overflow", 0, "call (%r9), deep, (%r2);"),
    ("bad_call", 0, "F: .callprototype (.reg .b32 _) _ (.reg .b32 _); call (%r9), %rd9, (%r2), F;"),
    ("bad_branch_index", 2, "T: .branchtargets A, A; brx.idx %r2, T; A:"),
    ("trap", 4, "setp.eq.u32 %p1, %r2, 4; @%p1 trap;"),
];

#[test]
fn what_traps_traps_although_nothing_reads_its_result() {
    for (kind, lane, body) in CASES {
        let trap = match agree(body) {
            Err(trap) => trap,
            Ok(_) => panic!("no trap\n{body}"),
        };
        let line = if trap.function == "deep" { DEEP } else { LINE };
        assert_eq!((trap.kind.word(), trap.line, trap.lane), (*kind, line, *lane), "{body}\n{trap}");
    }
}

#[test]
fn lanes_that_do_not_run_do_not_trap() {
    let bodies = [
        // No lane runs it, then only those whose handle or address is good.
        "setp.gt.u32 %p1, %r2, 99; @%p1 txq.width.b32 %r9, [%rd9];",
        "setp.gt.u32 %p1, %r2, 99; @%p1 suq.width.b32 %r9, [%rd9]; st.global.u32 [%rd3], %r9;",
        "setp.lt.u32 %p1, %r2, 99; @%p1 bra L; txq.width.b32 %r2, [%rd9]; L:",
        "setp.lt.u32 %p1, %r2, 9; selp.u64 %rd4, %rd3, %rd9, %p1; @%p1 ld.global.u32 %r2, [%rd4];",
        "setp.lt.u32 %p1, %r2, 9; selp.u64 %rd4, %rd3, %rd9, %p1; @!%p1 bra L; ld.global.u32 %r9, [%rd4]; add.u32 %r2, %r9, 5; L:",
        "setp.gt.u32 %p1, %r2, 99; @%p1 ld.global.v4.u32 {%r9, %r10, %r11, %r12}, [%rd1+4];",
        "setp.gt.u32 %p1, %r2, 99; @%p1 atom.global.add.u32 %r2, [%rd9], 1; @%p1 red.global.add.u32 [%rd9], 1;",
        "setp.gt.u32 %p1, %r2, 99; @%p1 tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd9, {%r2}];",
        "setp.gt.u32 %p1, %r2, 99; @%p1 trap;",
    ];
    for body in bodies {
        if let Err(trap) = agree(body) {
            panic!("{body}\n{trap}");
        }
    }
}

#[test]
fn what_cannot_trap_does_not() {
    let bodies = [
        "mov.u32 %r9, 0; div.u32 %r10, %r2, %r9; rem.s32 %r2, %r2, %r9;",
        "mov.s32 %r9, -1; mov.s32 %r8, 0x80000000; div.s32 %r10, %r8, %r9; rem.s32 %r11, %r8, %r9;",
        "prefetch.global.L1 [%rd9]; prefetch.L2 [%rd9]; prefetchu.L1 [%rd9];",
        "isspacep.global %p1, %rd9; cvta.shared.u64 %rd8, %rd9; cvta.to.shared.u64 %rd8, %rd9; selp.u32 %r2, 1, 2, %p1;",
        "istypep.texref %p1, %rd9; selp.u32 %r2, 1, 2, %p1;",
        "activemask.b32 %r9;",
        "mbarrier.pending_count.b64 %r9, %rd9;",
        "createpolicy.fractional.L2::evict_last.b64 %rd8, 1.0; discard.global.L2 [%rd9], 128; applypriority.global.L2::evict_normal [%rd9], 128;",
        "mov.u32 %r9, 200; shl.b32 %r10, %r2, %r9; bfe.u32 %r11, %r2, %r9, %r9;",
    ];
    for body in bodies {
        if let Err(trap) = agree(body) {
            panic!("{body}\n{trap}");
        }
    }
}
