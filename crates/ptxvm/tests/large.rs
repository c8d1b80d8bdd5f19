//! Kernels of many thousand instructions need large stack frames; launches from threads with a small stack
//! must run them too.
#![cfg(feature = "jit")]

use ptxvm::{Arg, CodeCache, Engine, Launch, Options, Vm};
use std::fmt::Write as _;

/// A kernel of so many conditions, each of another bit of what was computed before. LLVM's usual passes take
/// half a minute for 400 of them.
fn text(conditions: u32) -> String {
    let mut text = ".version 6.4\n.target sm_70\n.address_size 64\n.visible .entry large(.param .u64 out)\n{
        .reg .b32 %r<9>; .reg .b64 %d<4>; .reg .pred %p<2>;
        ld.param.u64 %d1, [out];
        mov.u32 %r1, %tid.x;
        mov.u32 %r3, %ctaid.x;
        mov.u32 %r6, %ntid.x;
        mad.lo.u32 %r6, %r3, %r6, %r1;\n"
        .to_owned();
    for i in 0..conditions {
        let (bit, divisor, mix) = (1 << (i % 13), i + 3, i * 7919);
        writeln!(
            text,
            "and.b32 %r2, %r1, {bit}; setp.ne.u32 %p1, %r2, 0; @%p1 bra L{i};
            mad.lo.u32 %r1, %r1, %r3, {i}; rem.u32 %r4, %r1, {divisor}; mul.wide.u32 %d2, %r6, 4;
            add.u64 %d2, %d2, %d1; ld.global.u32 %r5, [%d2]; add.u32 %r1, %r4, %r5;
            L{i}: xor.b32 %r1, %r1, {mix};"
        )
        .expect("to memory");
    }
    text + "mul.wide.u32 %d2, %r6, 4; add.u64 %d2, %d2, %d1; st.global.u32 [%d2], %r1; ret; }\n"
}

/// What each thread has at the end, computed without us.
fn expected(conditions: u32, tid: u32, cta: u32, first: u32) -> u32 {
    let mut value = tid;
    for i in 0..conditions {
        if value & (1 << (i % 13)) == 0 {
            value = (value.wrapping_mul(cta).wrapping_add(i) % (i + 3)).wrapping_add(first);
        }
        value ^= i * 7919;
    }
    value
}

#[test]
fn a_large_kernel_runs_on_a_small_stack() {
    const CONDITIONS: u32 = 400;
    let run = || {
        let vm = Vm::with(Options { cache: CodeCache::Off, ..Options::default() }).expect("a device");
        let module = vm.load("large.ptx", &text(CONDITIONS)).expect("accepted");
        let kernel = module.kernel("large").expect("there");
        let before: Vec<u32> = (0..8 * 128).map(|i: u32| i.wrapping_mul(2_654_435_761)).collect();
        for threads in [1, 2] {
            let out = vm.buffer(&before).expect("memory");
            let launch = Launch::new([8, 1, 1], [128, 1, 1]).threads(threads).engine(Engine::Jit);
            let launch = launch.args(&kernel, &[Arg::buffer(&out)]).expect("arguments");
            let report = vm.launch(&kernel, &launch).expect("it runs");
            assert!(report.ran.native, "not in native code");
            for (i, (found, first)) in (0..).zip(out.read().expect("to be read").into_iter().zip(&before)) {
                assert_eq!(found, expected(CONDITIONS, i % 128, i / 128, *first), "thread {i}");
            }
        }
    };
    // Frames of this code take most of a megabyte.
    let small = std::thread::Builder::new().stack_size(256 << 10).spawn(run).expect("a thread");
    small.join().expect("no panic");
}
