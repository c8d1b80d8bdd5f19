//! Kernels of many thousand instructions: they need large stack frames, also where launches come from threads
//! with a small stack, and are compiled with optimisation only while launches run.
#![cfg(feature = "jit")]

use crate::levels;
use ptxvm::{Arg, CodeCache, Cpu, Engine, Launch, Options, Vm};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// A kernel of so many conditions, each of another bit of what was computed before, in a loop. LLVM's usual
/// passes take half a minute for 400 of them.
fn text(conditions: u32) -> String {
    let mut text = ".version 6.4\n.target sm_70\n.address_size 64
        .visible .entry large(.param .u64 out, .param .u32 rounds)\n{
        .reg .b32 %r<9>; .reg .b64 %d<4>; .reg .pred %p<2>;
        ld.param.u64 %d1, [out]; ld.param.u32 %r7, [rounds];
        mov.u32 %r1, %tid.x;
        mov.u32 %r3, %ctaid.x;
        mov.u32 %r6, %ntid.x;
        mad.lo.u32 %r6, %r3, %r6, %r1;\nROUND:\n"
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
    text + "sub.u32 %r7, %r7, 1; setp.ne.u32 %p1, %r7, 0; @%p1 bra ROUND;
        mul.wide.u32 %d2, %r6, 4; add.u64 %d2, %d2, %d1; st.global.u32 [%d2], %r1; ret; }\n"
}

/// What each thread has at the end, computed without us.
fn expected((conditions, rounds): (u32, u32), tid: u32, cta: u32, first: u32) -> u32 {
    let mut value = tid;
    for i in (0..rounds).flat_map(|_| 0..conditions) {
        if value & (1 << (i % 13)) == 0 {
            value = (value.wrapping_mul(cta).wrapping_add(i) % (i + 3)).wrapping_add(first);
        }
        value ^= i * 7919;
    }
    value
}

/// A processor with vectors of at most 256 bits: whether code is compiled without optimisation at first
/// depends on its length, and vectors of 512 bits need half as many instructions.
fn small_vectors() -> Option<Cpu> {
    levels::is_available(Cpu::Avx2).then_some(Cpu::Avx2)
}

#[test]
fn a_large_kernel_is_optimised_while_launches_continue() {
    const CONDITIONS: u32 = 200;
    let vm = Vm::with(Options { cpu: small_vectors(), cache: CodeCache::Off, ..Options::default() });
    let vm = vm.expect("a device");
    let module = vm.load("large.ptx", &text(CONDITIONS)).expect("accepted");
    let kernel = module.kernel("large").expect("there");
    let before: Vec<u32> = (0..64 * 128).map(|i: u32| i.wrapping_mul(2_654_435_761)).collect();
    let expected: Vec<u32> =
        (0..).zip(&before).map(|(i, first)| expected((CONDITIONS, 1), i % 128, i / 128, *first)).collect();
    let run = || {
        let out = vm.buffer(&before).expect("memory");
        let launch = Launch::new([64, 1, 1], [128, 1, 1]).engine(Engine::Jit);
        let launch = launch.args(&kernel, &[Arg::buffer(&out), 1u32.into()]).expect("arguments");
        let report = vm.launch(&kernel, &launch).expect("it runs");
        assert!(report.ran.native, "not in native code");
        assert_eq!(out.read().expect("to be read"), expected);
        report.ran.unoptimised
    };
    assert!(run(), "compiled with optimisation at once");
    let start = Instant::now();
    while run() {
        assert!(start.elapsed() < Duration::from_secs(600), "still not optimised");
    }
}

/// A kernel of so many conditions on the bits of doubles, each of which skips arithmetic on them.
fn doubles(conditions: usize) -> String {
    let mut text = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry large(.param .u64 a, .param .u64 out)\n{
        .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .f64 %f<9>; .reg .pred %p<2>;
        ld.param.u64 %d1, [a]; ld.param.u64 %d2, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %d3, %r1, 8;
        add.u64 %d4, %d1, %d3; add.u64 %d5, %d2, %d3; mov.b64 %d6, 0;
        ld.global.f64 %f1, [%d4]; ld.global.f64 %f2, [%d4+256]; ld.global.f64 %f3, [%d4+512];\n"
        .to_owned();
    let arithmetic = [
        "add.rn.f64 %f4, %f1, %f2;",
        "mul.rn.f64 %f4, %f2, %f3;",
        "fma.rn.f64 %f4, %f1, %f2, %f3;",
        "div.rn.f64 %f4, %f3, %f2;",
        "sub.rn.f64 %f4, %f2, 0d3FF8000000000000;",
        "sqrt.rn.f64 %f4, %f1;",
        "rcp.rn.f64 %f4, %f3;",
    ];
    for i in 0..conditions {
        let (own, next, bit) = (1 + i % 3, 1 + (i + 1) % 3, 1 << (i % 9));
        let operation = arithmetic[i % arithmetic.len()];
        writeln!(
            text,
            "mov.b64 %d7, %f{own}; cvt.u32.u64 %r2, %d7; and.b32 %r2, %r2, {bit}; setp.ne.u32 %p1, %r2, 0; @%p1 bra L{i};
            {operation} mov.b64 %d7, %f4; mad.lo.s64 %d6, %d7, 3, %d6; mul.rn.f64 %f{next}, %f4, %f{own};
            add.rn.f64 %f{own}, %f{own}, %f4; L{i}: xor.b64 %d6, %d6, {i};"
        )
        .expect("to memory");
    }
    text + "mov.b64 %d7, %f1; xor.b64 %d6, %d6, %d7; st.global.u64 [%d5], %d6; ret; }\n"
}

#[test]
fn a_large_kernel_gives_nans_the_bits_of_the_interpreter() {
    let vm = Vm::with(Options { cpu: small_vectors(), cache: CodeCache::Off, ..Options::default() });
    let vm = vm.expect("a device");
    let module = vm.load("large.ptx", &doubles(320)).expect("accepted");
    let kernel = module.kernel("large").expect("there");
    // Numbers, and NaNs of many payloads.
    let numbers: Vec<u64> = (0..96_u64)
        .map(|i| match i % 4 {
            0 => 0x7ff0_0000_0000_0001 + i.wrapping_mul(0x0000_3f37_79b9_7f4a),
            1 => 0xfff8_0000_0000_0000 + i,
            _ => ((i as f64 - 40.5) * 1.7).to_bits(),
        })
        .collect();
    let a = vm.buffer(&numbers).expect("memory");
    let run = |engine| {
        let out = vm.zeros::<u64>(32).expect("memory");
        let launch = Launch::new([1, 1, 1], [32, 1, 1]).engine(engine);
        let launch = launch.args(&kernel, &[Arg::buffer(&a), Arg::buffer(&out)]).expect("arguments");
        let report = vm.launch(&kernel, &launch).expect("it runs");
        assert_eq!(report.ran.unoptimised, engine == Engine::Jit, "{engine:?}");
        out.read().expect("to be read")
    };
    assert_eq!(run(Engine::Jit), run(Engine::Interp));
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
            let launch = launch.args(&kernel, &[Arg::buffer(&out), 1u32.into()]).expect("arguments");
            let report = vm.launch(&kernel, &launch).expect("it runs");
            assert!(report.ran.native, "not in native code");
            for (i, (found, first)) in (0..).zip(out.read().expect("to be read").into_iter().zip(&before)) {
                assert_eq!(found, expected((CONDITIONS, 1), i % 128, i / 128, *first), "thread {i}");
            }
        }
    };
    // Frames of this code take most of a megabyte.
    let small = std::thread::Builder::new().stack_size(256 << 10).spawn(run).expect("a thread");
    small.join().expect("no panic");
}

/// The threads of a running launch have too small a stack for the code. The launch is one that does not wait
/// for it: few instructions, many times.
#[test]
fn a_running_launch_switches_to_code_that_needs_much_stack() {
    const CONDITIONS: u32 = 300;
    for threads in [1, 2] {
        let mut rounds = 2048;
        loop {
            let vm = Vm::with(Options { cache: CodeCache::Off, ..Options::default() }).expect("a device");
            let module = vm.load("large.ptx", &text(CONDITIONS)).expect("accepted");
            let kernel = module.kernel("large").expect("there");
            let before: Vec<u32> = (0..6 * 32).map(|i: u32| i.wrapping_mul(2_654_435_761)).collect();
            let out = vm.buffer(&before).expect("memory");
            let launch = Launch::new([6, 1, 1], [32, 1, 1]).threads(threads).engine(Engine::Auto);
            let launch = launch.args(&kernel, &[Arg::buffer(&out), rounds.into()]).expect("arguments");
            let report = vm.launch(&kernel, &launch).expect("it runs");
            for (i, (found, first)) in (0..).zip(out.read().expect("to be read").into_iter().zip(&before)) {
                let expected = expected((CONDITIONS, rounds), i % 32, i / 32, *first);
                assert_eq!(found, expected, "thread {i}, {rounds} rounds");
            }
            if report.ran.native {
                let native = report.ran.native_instructions;
                assert!((1..report.warp_instructions).contains(&native), "native: {native}");
                break;
            }
            rounds *= 4;
            assert!(rounds < 1 << 18, "{threads} threads: never in native code");
        }
    }
}

/// The accumulators of [`syncs`]: all of them are live everywhere.
const ACCUMULATORS: u32 = 40;

/// A kernel of so many conditions in whose both branches the lanes wait for each other, so that each branch
/// is left for the interpreter.
fn syncs(conditions: u32) -> String {
    let mut text = ".version 6.4\n.target sm_70\n.address_size 64\n.visible .entry large(.param .u64 out)\n{
        .reg .b32 %r<5>; .reg .b32 %a<40>; .reg .b64 %d<3>; .reg .pred %p<2>;
        ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2;\n"
        .to_owned();
    for i in 0..ACCUMULATORS {
        writeln!(text, "mad.lo.u32 %a{i}, %r1, {i}, {i};").expect("to memory");
    }
    for i in 0..conditions {
        let (bit, own) = (1 << (i % 5), i % ACCUMULATORS);
        writeln!(
            text,
            "and.b32 %r2, %r1, {bit}; setp.ne.u32 %p1, %r2, 0; @%p1 bra E{i};
            mad.lo.u32 %a{own}, %a{own}, 3, {i}; bar.warp.sync 0xffffffff; bra.uni J{i};
            E{i}: xor.b32 %a{own}, %a{own}, {i}; bar.warp.sync 0xffffffff;
            J{i}: mad.lo.u32 %a{own}, %r1, %a{own}, %r2;"
        )
        .expect("to memory");
    }
    text.push_str("mov.u32 %r3, 0;\n");
    for i in 0..ACCUMULATORS {
        writeln!(text, "mad.lo.u32 %r3, %r3, 31, %a{i};").expect("to memory");
    }
    text + "st.global.u32 [%d1], %r3; ret; }\n"
}

/// The result of a thread of [`syncs`].
fn synced(conditions: u32, tid: u32) -> u32 {
    let mut all: Vec<u32> = (0..ACCUMULATORS).map(|i| tid.wrapping_mul(i).wrapping_add(i)).collect();
    for i in 0..conditions {
        let (bit, own) = (tid & 1 << (i % 5), &mut all[(i % ACCUMULATORS) as usize]);
        *own = if bit == 0 { own.wrapping_mul(3).wrapping_add(i) } else { *own ^ i };
        *own = tid.wrapping_mul(*own).wrapping_add(bit);
    }
    all.iter().fold(0, |sum, a| sum.wrapping_mul(31).wrapping_add(*a))
}

/// Launches a kernel of one CTA in both engines, and compares the results of its threads.
fn check(text: &str, expected: &[u32]) {
    let vm = Vm::with(Options { cache: CodeCache::Off, ..Options::default() }).expect("a device");
    let kernel = vm.load("large.ptx", text).expect("accepted").kernel("large").expect("there");
    for engine in [Engine::Interp, Engine::Jit] {
        let out = vm.zeros::<u32>(expected.len()).expect("memory");
        let launch = Launch::new([1, 1, 1], [expected.len() as u32, 1, 1]).engine(engine);
        let launch = launch.args(&kernel, &[Arg::buffer(&out)]).expect("arguments");
        let report = vm.launch(&kernel, &launch).expect("it runs");
        assert_eq!(report.ran.native, engine == Engine::Jit);
        assert_eq!(out.read().expect("to be read"), expected, "{engine:?}");
    }
}

#[test]
fn a_large_kernel_continues_where_it_has_no_entry() {
    const CONDITIONS: u32 = 150;
    let expected: Vec<u32> = (0..96).map(|tid| synced(CONDITIONS, tid)).collect();
    check(&syncs(CONDITIONS), &expected);
}

/// The values of [`barriers`] that each thread computes with: all of them are live at every barrier.
const VALUES: u32 = 200;

/// A kernel of so many conditions on a value, with an exchange with the next thread behind each. Its code
/// would mostly move registers if each barrier and side exit stored all of them.
fn barriers(count: u32) -> String {
    let mut text = format!(
        ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry large(.param .u64 out)\n{{
        .reg .b32 %r<9>; .reg .b32 %a<{VALUES}>; .reg .b64 %d<3>; .reg .pred %p<2>;
        .shared .b32 words[64];
        ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2;
        mov.u32 %r2, words; shl.b32 %r3, %r1, 2; add.u32 %r4, %r2, %r3;
        add.u32 %r5, %r1, 1; and.b32 %r5, %r5, 63; shl.b32 %r5, %r5, 2; add.u32 %r5, %r2, %r5;\n"
    );
    for i in 0..VALUES {
        writeln!(text, "mul.lo.u32 %a{i}, %r1, %r1; mad.lo.u32 %a{i}, %a{i}, {i}, {i};").expect("to memory");
    }
    for i in 0..count {
        let (own, next, bit) = (i % VALUES, (i + 1) % VALUES, 1 << (i % 7));
        writeln!(
            text,
            "and.b32 %r6, %a{own}, {bit}; setp.ne.u32 %p1, %r6, 0; @%p1 bra E{i};
            mad.lo.u32 %a{own}, %a{next}, 3, {i}; shr.u32 %a{next}, %a{own}, 7; bra.uni J{i};
            E{i}: xor.b32 %a{own}, %a{own}, {i}; add.u32 %a{next}, %a{next}, %a{own};
            J{i}: st.shared.u32 [%r4], %a{own}; bar.sync 0; ld.shared.u32 %r7, [%r5];
            add.u32 %a{next}, %a{next}, %r7; bar.sync 0;"
        )
        .expect("to memory");
    }
    text.push_str("mov.u32 %r8, 0;\n");
    for i in 0..VALUES {
        writeln!(text, "mad.lo.u32 %r8, %r8, 31, %a{i};").expect("to memory");
    }
    text + "st.global.u32 [%d1], %r8; ret; }\n"
}

/// The results of the 64 threads of [`barriers`].
fn exchanged(count: u32) -> Vec<u32> {
    let first = |tid: u32| (0..VALUES).map(|i| (tid * tid).wrapping_mul(i).wrapping_add(i)).collect();
    let mut threads: Vec<Vec<u32>> = (0..64).map(first).collect();
    for i in 0..count {
        let (own, next) = ((i % VALUES) as usize, ((i + 1) % VALUES) as usize);
        for all in &mut threads {
            if all[own] & 1 << (i % 7) == 0 {
                all[own] = all[next].wrapping_mul(3).wrapping_add(i);
                all[next] = all[own] >> 7;
            } else {
                all[own] ^= i;
                all[next] = all[next].wrapping_add(all[own]);
            }
        }
        let words: Vec<u32> = threads.iter().map(|all| all[own]).collect();
        for (tid, all) in threads.iter_mut().enumerate() {
            all[next] = all[next].wrapping_add(words[(tid + 1) % 64]);
        }
    }
    threads
        .iter()
        .map(|all| all.iter().fold(0, |sum: u32, a| sum.wrapping_mul(31).wrapping_add(*a)))
        .collect()
}

#[test]
fn a_kernel_of_many_barriers_and_live_values_is_compiled() {
    const CONDITIONS: u32 = 140;
    check(&barriers(CONDITIONS), &exchanged(CONDITIONS));
}
