//! Reductions of global memory that native code postpones and performs together.
//!
//! Each kernel adds to some words, in loops, from several CTAs, so that far more reductions come than are
//! kept at a time. Their effects are also computed here, one after another. Sums of floating-point numbers
//! are those that do not depend on the order of the threads.
#![cfg(feature = "jit")]

use crate::levels;
use ptxvm::{Arg, Cpu, Engine, Launch, Options, Target, Vm};

const CTAS: u32 = 20;
const TURNS: u32 = 40;
/// The words of the buffer.
const WORDS: usize = 256;

/// A kernel `k(.u64 out)`. Its `body` is executed [`TURNS`] times by each thread. `%t` is the thread's number
/// in its CTA, `%g` among all, `%i` the number of the turn, `%out` the buffer, `%bin` a place in it that
/// differs from lane to lane, of which the number is `%b`.
fn text(body: &str) -> String {
    format!(
        ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 out) {{
        .reg .pred %p<9>; .reg .b32 %r<30>, %t, %n, %g, %c, %i, %b; .reg .b64 %rd<20>, %out, %bin; .reg .f32 %f<9>; .reg .f64 %d<9>;
        mov.u32 %t, %tid.x; mov.u32 %n, %ntid.x; mov.u32 %c, %ctaid.x; mad.lo.u32 %g, %c, %n, %t;
        ld.param.u64 %out, [out]; cvta.to.global.u64 %out, %out; mov.u32 %i, 0;
        L: mad.lo.u32 %b, %t, 7, %i; and.b32 %b, %b, 31; mul.wide.u32 %rd1, %b, 8; add.s64 %bin, %out, %rd1;
        {body}
        add.u32 %i, %i, 1; setp.lt.u32 %p8, %i, {TURNS}; @%p8 bra L; ret; }}\n"
    )
}

fn bin(thread: u32, turn: u32) -> usize {
    ((thread * 7 + turn) & 31) as usize
}

/// The buffer of 64-bit words afterwards, in all ways in which native code executes the kernel.
fn run(text: &str, block: u32, before: &[u64; WORDS], mut check: impl FnMut(&[u64], &str)) {
    for target in levels::of(text) {
        for (team, threads) in [(None, 1), (Some(1), 3), (Some(4), 2)] {
            let options =
                Options { target: Some(target), team, cache: levels::cache(), ..Options::default() };
            check(
                &launch(options, text, block, before, Engine::Jit, threads),
                &format!("{target:?} {team:?}"),
            );
        }
    }
}

fn launch(
    options: Options,
    text: &str,
    block: u32,
    before: &[u64; WORDS],
    engine: Engine,
    threads: u32,
) -> Vec<u64> {
    let vm = Vm::with(options).expect("a device");
    let kernel = vm.load("postponed.ptx", text).and_then(|module| module.kernel("k")).expect("a kernel");
    let words = vm.buffer(before.as_slice()).expect("memory");
    let launch = Launch::new([CTAS, 1, 1], [block, 1, 1]).engine(engine).threads(threads);
    let launch = launch.args(&kernel, &[Arg::buffer(&words)]).expect("one argument");
    let report = vm.launch(&kernel, &launch).expect("no trap");
    assert!(engine == Engine::Interp || report.ran.native, "not in native code: {text}");
    words.read().expect("words")
}

/// Every thread of every CTA in every turn, and the bin.
fn all(block: u32) -> impl Iterator<Item = (u32, u32, usize)> {
    (0..CTAS).flat_map(move |cta| {
        (0..block).flat_map(move |t| (0..TURNS).map(move |turn| (cta * block + t, turn, bin(t, turn))))
    })
}

/// The word that a thread updates in a turn, if any, by the number of its bin.
type Place = fn(u32, u32, usize) -> Option<usize>;

/// A 32-bit operation whose order does not matter: its name, and its effect.
type Reduction = (&'static str, fn(u32, u32) -> u32);

const REDUCTIONS: &[Reduction] = &[
    ("add.u32", u32::wrapping_add),
    ("and.b32", |old, b| old & b),
    ("or.b32", |old, b| old | b),
    ("xor.b32", |old, b| old ^ b),
    ("min.u32", u32::min),
    ("max.u32", u32::max),
    ("min.s32", |old, b| old.cast_signed().min(b.cast_signed()).cast_unsigned()),
    ("max.s32", |old, b| old.cast_signed().max(b.cast_signed()).cast_unsigned()),
    ("inc.u32", |old, _| if old >= 100 { 0 } else { old + 1 }),
    ("dec.u32", |old, _| if old == 0 || old > 100 { 100 } else { old - 1 }),
];

fn operand(thread: u32, turn: u32) -> u32 {
    (thread * 64 + turn).wrapping_mul(2_654_435_761)
}

const OPERAND: &str = "mad.lo.u32 %r1, %g, 64, %i; mul.lo.u32 %r1, %r1, 2654435761;";

#[test]
fn every_operation_of_every_lane_has_its_effect() {
    let before: [u64; WORDS] = std::array::from_fn(|at| operand(at as u32, 99).into());
    for (name, effect) in REDUCTIONS {
        let bound = name.starts_with("inc") || name.starts_with("dec");
        let number = if bound { "100" } else { "%r1" };
        // All lanes; lanes of a mask; one word for all lanes; the old value into a register that is not read.
        let forms: [(String, Place); 4] = [
            (format!("red.global.{name} [%bin], {number};"), |_, _, bin| Some(bin)),
            (
                format!(
                    "and.b32 %r2, %r1, 64; setp.ne.u32 %p1, %r2, 0; @%p1 red.global.{name} [%bin], {number};"
                ),
                |thread, turn, bin| (operand(thread, turn) & 64 != 0).then_some(bin),
            ),
            (format!("red.global.{name} [%out+320], {number};"), |_, _, _| Some(40)),
            (format!("atom.global.{name} %r3, [%bin], {number};"), |_, _, bin| Some(bin)),
        ];
        for (form, place) in forms {
            let text = text(&format!("{OPERAND} {form}"));
            for block in [1, 40, 96] {
                let mut want = before;
                for (thread, turn, bin) in all(block) {
                    if let Some(place) = place(thread, turn, bin) {
                        want[place] = effect(want[place] as u32, operand(thread, turn)).into();
                    }
                }
                run(&text, block, &before, |got, how| assert_eq!(got, want, "{how} {block}: {text}"));
            }
        }
    }
}

#[test]
fn wide_operations_and_several_kinds_have_their_effects() {
    let body = format!(
        "{OPERAND} cvt.u64.u32 %rd2, %r1; shl.b64 %rd2, %rd2, 20; cvt.rn.f64.u32 %d1, %i; mov.f32 %f1, 0f40000000;
        red.global.add.u64 [%bin], %rd2; red.global.max.s64 [%bin+512], %rd2; red.global.add.f64 [%bin+1024], %d1;
        red.global.min.u32 [%bin+256], %r1; red.global.add.f32 [%out+1536], %f1; red.global.xor.b64 [%bin+256], %rd2;"
    );
    let text = text(&body);
    let mut before = [0; WORDS];
    before[128..160].fill(0.5_f64.to_bits());
    for block in [33, 128] {
        let (mut sums, mut greatest, mut floats, mut mixed) =
            ([0_u64; 32], [0_i64; 32], [0.5; 32], [0_u64; 32]);
        for (thread, turn, bin) in all(block) {
            let word = u64::from(operand(thread, turn)) << 20;
            sums[bin] = sums[bin].wrapping_add(word);
            greatest[bin] = greatest[bin].max(word.cast_signed());
            floats[bin] += f64::from(turn);
            // The low halves only become less, then have some bits changed, so the high halves are compared.
            mixed[bin] ^= word;
        }
        let threads = CTAS * block * TURNS;
        run(&text, block, &before, |got, how| {
            for bin in 0..32 {
                let seen = [got[bin], got[64 + bin], got[128 + bin], got[32 + bin] >> 32];
                let want =
                    [sums[bin], greatest[bin].cast_unsigned(), floats[bin].to_bits(), mixed[bin] >> 32];
                assert_eq!(seen, want, "{how} {block} {bin}");
            }
            assert_eq!(f32::from_bits(got[192] as u32), 2.0 * threads as f32, "{how} {block}");
        });
    }
}

#[test]
fn each_sum_of_floating_point_numbers_is_rounded() {
    // 2^24 + 1 is rounded to 2^24, so the sum of many ones added to it one by one does not grow. Subnormal
    // numbers are flushed, and a NaN is canonical.
    let text = text(
        "mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f00000001; mov.f32 %f3, 0fFFC12345;
        red.global.add.f32 [%bin], %f1; red.global.add.f32 [%bin+256], %f2; red.global.add.f32 [%bin+512], %f3;",
    );
    let mut before = [0; WORDS];
    before[..32].fill(16_777_216.0_f32.to_bits().into());
    before[32..64].fill(0x8000_0005);
    for block in [1, 64, 96] {
        run(&text, block, &before, |got, how| {
            for (thread, turn, bin) in all(block) {
                let seen = [got[bin], got[32 + bin], got[64 + bin]];
                let want = [0x4b80_0000, 0, 0x7fff_ffff];
                assert_eq!(seen, want, "{how} {block} {thread} {turn}");
            }
        });
    }
}

#[test]
fn a_thread_reads_what_it_has_added() {
    // Every thread has words of its own; it loads the sum, or gets it from another atomic operation, or
    // stores it anew, and adds again.
    for read in [
        "ld.global.u32 %r4, [%rd3];",
        "atom.global.add.u32 %r4, [%rd3], 0;",
        "atom.global.exch.b32 %r4, [%rd3], 0; st.global.u32 [%rd3], %r4;",
        "ld.global.u32 %r4, [%rd3]; add.u32 %r4, %r4, 1; sub.u32 %r4, %r4, 1; st.global.u32 [%rd3], %r4;",
    ] {
        let text = text(&format!(
            "and.b32 %r2, %g, 127; mul.wide.u32 %rd2, %r2, 8; add.s64 %rd3, %out, %rd2; setp.ge.u32 %p1, %g, 128; @%p1 ret;
            red.global.add.u32 [%rd3], 3; {read} red.global.add.u32 [%rd3+1024], %r4;"
        ));
        for block in [16, 32, 96] {
            let sum: u64 = (1..=u64::from(TURNS)).map(|turn| 3 * turn).sum();
            run(&text, block, &[0; WORDS], |got, how| {
                assert_eq!(got[..128], [u64::from(3 * TURNS); 128], "{how} {block}: {text}");
                assert_eq!(got[128..], [sum; 128], "{how} {block}: {text}");
            });
        }
    }
}

#[test]
fn reductions_of_two_kernels_at_a_time_are_all_made() {
    // One kernel postpones its reductions; the other one, in the interpreter or in native code, updates the
    // same words by operations that are not postponed.
    let postponed = text("red.global.add.u32 [%bin], 1;");
    let direct = text("atom.global.add.u32 %r3, [%bin], 1; st.volatile.global.u32 [%bin+1024], %r3;");
    let vm = Vm::with(Options { cache: levels::cache(), ..Options::default() }).expect("a device");
    let kernels = [&postponed, &direct]
        .map(|text| vm.load("postponed.ptx", text).and_then(|module| module.kernel("k")).expect("a kernel"));
    for engine in [Engine::Jit, Engine::Interp] {
        let words = vm.zeros::<u64>(WORDS).expect("memory");
        std::thread::scope(|scope| {
            for (kernel, engine) in kernels.iter().zip([Engine::Jit, engine]) {
                let (vm, words) = (&vm, &words);
                scope.spawn(move || {
                    for _ in 0..4 {
                        let launch = Launch::new([CTAS, 1, 1], [96, 1, 1]).engine(engine).threads(2);
                        let launch = launch.args(kernel, &[Arg::buffer(words)]).expect("one argument");
                        vm.launch(kernel, &launch).expect("no trap");
                    }
                });
            }
        });
        let total: u64 = words.read().expect("words")[..32].iter().sum();
        assert_eq!(total, 2 * 4 * u64::from(CTAS * 96 * TURNS), "{engine:?}");
    }
}

#[test]
fn large_buffers_of_reductions_are_those_of_the_interpreter() {
    // Several CTAs add numbers whose sums are exact.
    let text =
        text("cvt.rn.f32.u32 %f1, %i; red.global.add.f32 [%bin], %f1; red.global.add.f32 [%bin+4], %f1;");
    let before = [0; WORDS];
    let target = Target::from(if levels::is_available(Cpu::Avx2) { Cpu::Avx2 } else { Cpu::Baseline });
    let options = || Options { target: Some(target), cache: levels::cache(), ..Options::default() };
    for block in [32, 256] {
        let want = launch(options(), &text, block, &before, Engine::Interp, 2);
        let got = launch(options(), &text, block, &before, Engine::Jit, 2);
        assert_eq!(got, want, "block {block}");
    }
}
