//! Clocks (PTX ISA §10.16, §10.17, §10.21) count the instructions that a warp executes, equally in every
//! engine.
//!
//! Each kernel stores one 64-bit word per thread, computed from its clocks. Where the instructions can be
//! counted by hand, the expected value is that count. In addition, native code for every processor of this
//! machine, for whole CTAs and for single warps, on one thread and on two, must give the interpreter's
//! result.
//!
//! Counting rules: the instructions of a block (from one label or branch to the next) count one each, whether
//! or not their guard is true. A block without a branch at its end counts one for continuing to the next
//! block.
#![cfg(feature = "jit")]

use crate::levels;

use ptxvm::{Arg, Cpu, Engine, Launch, Options, Target, Vm};
use std::time::Duration;

const HEAD: &str = ".version 7.0\n.target sm_70\n.address_size 64\n";
/// Register `%t` is the thread's number in its CTA, `%g` its number in the grid, `%out` the address of its
/// word.
const START: &str = "
    .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<30>, %t, %n, %g, %c; .reg .b64 %rd<20>, %out, %a, %b; .reg .f32 %f<9>;
    .reg .f64 %d<9>;
    mov.u32 %t, %tid.x; mov.u32 %n, %ntid.x; mov.u32 %c, %ctaid.x; mad.lo.u32 %g, %c, %n, %t;
    ld.param.u64 %out, [out]; cvta.to.global.u64 %out, %out; mul.wide.u32 %rd1, %g, 8; add.u64 %out, %out, %rd1;
";
const END: &str = "sub.u64 %b, %b, %a; st.global.u64 [%out], %b; ret;";
const CTAS: u32 = 5;

/// A kernel of that body; `before` stands in front of it.
fn kernel(before: &str, body: &str) -> String {
    format!("{HEAD}{before}\n.visible .entry k(.param .u64 out) {{{START}{body}}}\n")
}

/// How a kernel is run.
#[derive(Clone, Copy, Debug)]
struct How {
    engine: Engine,
    target: Option<Target>,
    team: Option<u32>,
    threads: u32,
    seed: u64,
}

const INTERPRETED: How = How { engine: Engine::Interp, target: None, team: None, threads: 1, seed: 0 };

/// The words that launches leave one after another, and how many instructions warps executed.
fn run(text: &str, block: u32, how: How, times: u32) -> Vec<(Vec<u64>, u64)> {
    let vm = Vm::with(Options {
        target: how.target,
        team: how.team,
        cache: levels::cache(),
        ..Options::default()
    })
    .expect("a device");
    let kernel = vm.load("clocks.ptx", text).and_then(|module| module.kernel("k")).expect("a kernel");
    let words = vm.zeros::<u64>((CTAS * block) as usize).expect("memory");
    let launch =
        Launch::new([CTAS, 1, 1], [block, 1, 1]).engine(how.engine).threads(how.threads).seed(how.seed);
    let launch = launch.timeout(Duration::from_secs(60));
    let launch = launch.args(&kernel, &[Arg::buffer(&words)]).expect("one argument");
    let one = |_| {
        let report = vm.launch(&kernel, &launch).unwrap_or_else(|error| panic!("{how:?}: {error}: {text}"));
        (words.read().expect("words"), report.warp_instructions)
    };
    (0..times).map(one).collect()
}

/// Orders of warps and CTAs.
const SEEDS: [u64; 2] = [0, 7];

/// All ways to run a kernel in native code: the combinations of processors with choices of coarse warps and
/// orders, or, unless `PTXVM_TESTS` is `full`, all of these on the best processor and one on each other.
fn ways() -> Vec<How> {
    let mut ways = Vec::new();
    for cpu in [Cpu::Avx512, Cpu::Avx2, Cpu::Baseline].into_iter().filter(|cpu| levels::is_available(*cpu)) {
        let all = [(Some(2), 2, 0), (None, 1, 0), (Some(1), 2, 0), (None, 1, 7)];
        let chosen = if levels::is_full() || ways.is_empty() { all.len() } else { 1 };
        for (team, threads, seed) in all.into_iter().take(chosen) {
            let target = Some(levels::target(cpu, &format!("{cpu:?}{team:?}{seed}")));
            ways.push(How { engine: Engine::Jit, target, team, threads, seed });
        }
    }
    ways.push(How { engine: Engine::Auto, threads: 2, ..INTERPRETED });
    ways
}

/// What the interpreter leaves, which native code leaves too, in CTAs of all those sizes; by block and thread
/// of the grid.
fn everywhere(text: &str, blocks: &[u32]) -> Vec<Vec<u64>> {
    compare(text, blocks, &ways())
}

fn compare(text: &str, blocks: &[u32], ways: &[How]) -> Vec<Vec<u64>> {
    let block = |block: &u32| {
        let wants = SEEDS.map(|seed| run(text, *block, How { seed, ..INTERPRETED }, 1));
        for &how in ways {
            let want = &wants[SEEDS.iter().position(|seed| *seed == how.seed).expect("a seed")];
            assert_eq!(&run(text, *block, how, 1), want, "block {block}, {how:?}: {text}");
        }
        let [(first, _), ..] = wants.map(|mut want| want.remove(0));
        first
    };
    blocks.iter().map(block).collect()
}

/// Everywhere all threads leave that word.
fn all(text: &str, blocks: &[u32], word: u64) {
    for words in everywhere(text, blocks) {
        assert!(words.iter().all(|found| *found == word), "{word}, not {words:?}: {text}");
    }
}

const BLOCKS: &[u32] = &[1, 32, 45, 128];

#[test]
fn a_straight_piece_takes_what_it_has() {
    let body = "mov.u64 %a, %clock64; add.u32 %r1, %t, 1; mul.lo.u32 %r2, %r1, 3; mov.u64 %b, %clock64;";
    all(&kernel("", &format!("{body}{END}")), BLOCKS, 3);
    // As many whether their guard holds or not; halves of the clock are read one after the other.
    let body = "setp.lt.u32 %p1, %t, 3; mov.u32 %r1, %clock; mov.u32 %r2, %clock_hi; @%p1 add.u32 %r3, %t, 1;
        mov.u32 %r4, %clock; sub.u32 %r4, %r4, %r1; cvt.u64.u32 %b, %r4; cvt.u64.u32 %a, %r2;";
    all(&kernel("", &format!("{body}{END}")), BLOCKS, 3);
    // The first instruction of a kernel is one.
    let first = format!(
        "{HEAD}.visible .entry k(.param .u64 out) {{ .reg .b64 %a; mov.u64 %a, %clock64; {}",
        START.replace("%a, %b;", "%b;") + "st.global.u64 [%out], %a; ret; }"
    );
    all(&first, BLOCKS, 1);
}

#[test]
fn a_loop_takes_its_turns() {
    // The instructions that enter the loop, three in each iteration, and the one that reads the clock after
    // it.
    let body = "mov.u32 %r1, 0; mov.u64 %a, %clock64;
        L: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 100000; @%p1 bra L;
        mov.u64 %b, %clock64;";
    all(&kernel("", &format!("{body}{END}")), &[32, 45], 1 + 3 * 100_000 + 1);
    let memory = "mov.u32 %r1, 0; mov.u64 %a, %clock64;
        L: ld.global.u64 %rd2, [%out]; add.u64 %rd2, %rd2, 3; st.global.u64 [%out], %rd2;
        add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 100; @%p1 bra L;
        mov.u64 %b, %clock64;";
    all(&kernel("", &format!("{memory}{END}")), BLOCKS, 1 + 6 * 100 + 1);
}

#[test]
fn lanes_that_part_take_the_instructions_of_all() {
    // Two arms of two instructions and a branch each, in warps with lanes in both; else one of them.
    let body = "mov.u64 %a, %clock64; setp.lt.u32 %p1, %t, 40; @%p1 bra A;
        add.u32 %r1, %t, 1; st.global.u32 [%out], %r1; bra B;
        A: add.u32 %r1, %t, 2; st.global.u32 [%out], %r1; bra B;
        B: mov.u64 %b, %clock64;";
    for words in everywhere(&kernel("", &format!("{body}{END}")), &[45, 128]) {
        let block = words.len() as u32 / CTAS;
        for (at, word) in words.iter().enumerate() {
            let warp = at as u32 % block / 32;
            let parts = warp == 1;
            assert_eq!(*word, 2 + if parts { 6 } else { 3 } + 1, "thread {at} of {block}");
        }
    }
    // Loops of different lengths: the warp executes as many iterations as the lane with the most. Another
    // lane reads the clock as it leaves.
    let body = "mov.u64 %a, %clock64; mov.u32 %r1, 0;
        L: add.u32 %r1, %r1, 1; setp.le.u32 %p1, %r1, %t; @%p1 bra L;
        mov.u64 %b, %clock64;";
    for words in everywhere(&kernel("", &format!("{body}{END}")), &[45, 64]) {
        let block = words.len() as u32 / CTAS;
        for (at, word) in words.iter().enumerate() {
            let thread = at as u32 % block;
            let last = (thread | 31).min(block - 1);
            assert_eq!(*word, u64::from(2 + 3 * (last + 1) + 1), "thread {thread} of {block}");
        }
    }
    // Loops so long that native code gives way in them.
    let body = "mov.u64 %a, %clock64; mov.u32 %r1, 0; and.b32 %r2, %t, 31; mul.lo.u32 %r2, %r2, 900;
        L: add.u32 %r1, %r1, 1; setp.le.u32 %p1, %r1, %r2; @%p1 bra L;
        mov.u64 %b, %clock64; bar.sync 0; add.u32 %r1, %r1, 1;";
    let natural: Vec<How> = ways().into_iter().filter(|how| how.seed == 0).collect();
    for words in compare(&kernel("", &format!("{body}{END}")), &[32, 96], &natural) {
        // Lanes that leave the loop wait for the last one behind it.
        assert!(words.iter().all(|word| *word == 4 + 3 * (31 * 900 + 1) + 1), "{words:?}");
    }
    // Read inside the arms, by lanes that are not all there; in loops that lanes leave one after another.
    for body in [
        "mov.u64 %a, 0; mov.u64 %b, 0; and.b32 %r1, %t, 3; mov.u32 %r2, 0;
            L: setp.gt.u32 %p1, %r1, %r2; @%p1 mov.u64 %b, %clock64; @!%p1 bra O;
            add.u32 %r2, %r2, 1; bra L;
            O: setp.eq.u32 %p2, %r1, 2; @%p2 bra E; mov.u64 %a, %clock64; E:",
        "mov.u64 %a, %clock64; and.b32 %r1, %t, 7; setp.gt.u32 %p1, %r1, 4; @%p1 bra X; setp.eq.u32 %p2, %r1, 2; @%p2 bra Y;
            mov.u64 %b, %clock64; bra Z; X: add.u32 %r2, %t, 7; mov.u64 %b, %clock64; @%p2 bra Z;
            Y: mov.u64 %b, %clock64; Z: st.global.u64 [%out], %b;",
    ] {
        everywhere(&kernel("", &format!("{body}{END}")), BLOCKS);
    }
}

#[test]
fn barriers_take_one() {
    let body = "mov.u64 %a, %clock64; bar.sync 0; mov.u64 %b, %clock64;";
    all(&kernel("", &format!("{body}{END}")), &[32, 45, 128], 2);
    let body =
        "setp.lt.u32 %p1, %t, 20; mov.u64 %a, %clock64; bar.red.popc.u32 %r1, 0, %p1; mov.u64 %b, %clock64;";
    all(&kernel("", &format!("{body}{END}")), &[32, 45, 128], 2);
    // In a loop, with lanes that part between: what a warp waits for others does not count.
    let body = "mov.u64 %a, %clock64; mov.u32 %r1, 0;
        L: setp.lt.u32 %p2, %t, 40; @%p2 bra M; mul.lo.u32 %r2, %t, %r1; add.u32 %r2, %r2, 5; bra N;
        M: add.u32 %r2, %r1, 1;
        N: bar.sync 0; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 20; @%p1 bra L;
        mov.u64 %b, %clock64;";
    everywhere(&kernel("", &format!("{body}{END}")), BLOCKS);
    // Warps that leave before, barriers that some warps wait at, and a barrier that a branch leads around.
    let body = "mov.u64 %a, %clock64; setp.ge.u32 %p1, %t, 96; @%p1 bra E; bar.sync 1, 96; setp.lt.u32 %p2, %t, 32; @%p2 bra E;
        bar.sync 2, 64; E: mov.u64 %b, %clock64;";
    everywhere(&kernel("", &format!("{body}{END}")), &[128]);
}

const FUNCTIONS: &str = "
    .func (.reg .u64 %v) now() { mov.u64 %v, %clock64; ret; }
    .func (.reg .u32 %v) turns(.reg .u32 %n) { .reg .pred %p; mov.u32 %v, 0;
        L: add.u32 %v, %v, 1; setp.lt.u32 %p, %v, %n; @%p bra L; ret; }
";

#[test]
fn functions_take_what_they_execute() {
    // The clock is read in a function. The copy of its result is an instruction, too.
    let body = "call.uni (%a), now, (); add.u32 %r1, %t, 1; mul.lo.u32 %r2, %r1, 3; call.uni (%b), now, ();";
    all(&kernel(FUNCTIONS, &format!("{body}{END}")), BLOCKS, 6);
    let body = "call.uni (%a), now, (); bar.sync 0; mov.u32 %r1, 0;
        L: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 10; @%p1 bra L; call.uni (%b), now, ();";
    everywhere(&kernel(FUNCTIONS, &format!("{body}{END}")), BLOCKS);
    let body = "mov.u64 %a, %clock64; and.b32 %r1, %t, 15; call (%r2), turns, (%r1); add.u32 %r3, %r2, %t; mov.u64 %b, %clock64;";
    everywhere(&kernel(FUNCTIONS, &format!("{body}{END}")), BLOCKS);
    let body = "mov.u64 %a, 0; mov.u32 %r4, 0; setp.gt.u32 %p2, %t, 7;
        M: @%p2 bra N; call (%r2), turns, (%t);
        N: call (%b), now, (); add.u64 %a, %a, %b; add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 5; @%p1 bra M;";
    everywhere(&kernel(FUNCTIONS, &format!("{body}{END}")), BLOCKS);
}

#[test]
fn what_the_interpreter_does_for_native_code_counts_once() {
    // Steps without native code, alone and in parts of the warp; calls of the system; votes and exchanges
    // that need all lanes.
    for body in [
        "mov.u64 %a, %clock64; pmevent 3; mov.u64 %b, %clock64;",
        "mov.u64 %a, %clock64; setp.lt.u32 %p1, %t, 7; @%p1 bra A; nanosleep.u32 100; A: pmevent 3; mov.u64 %b, %clock64;",
        "mov.u64 %a, %clock64; nanosleep.u32 %t; bar.sync 0; nanosleep.u32 5; mov.u64 %b, %clock64;",
        "mov.u64 %a, %clock64; setp.lt.u32 %p1, %t, 9; bar.sync 0; vote.sync.ballot.b32 %r1, %p1, 0xffffffff;
            bar.red.popc.u32 %r2, 0, %p1; mov.u64 %b, %clock64; add.u64 %b, %b, %rd1;",
        "mov.u64 %a, %clock64; and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 0; @%p1 bra A; activemask.b32 %r2; bra B;
            A: mov.u32 %r2, 0; B: mov.u64 %b, %clock64;",
    ] {
        everywhere(&kernel("", &format!("{body}{END}")), &[32, 96]);
    }
    let local = ".local .b8 stack[64]; mov.u64 %a, %clock64; mov.u64 %rd2, stack; and.b32 %r1, %t, 7; mul.wide.u32 %rd3, %r1, 8;
        add.u64 %rd2, %rd2, %rd3; st.local.u32 [%rd2], %t; bar.sync 0; ld.local.u32 %r2, [%rd2]; mov.u64 %b, %clock64;";
    all(&kernel("", &format!("{local}{END}")), BLOCKS, 8);
}

#[test]
fn waits_by_the_clock_end() {
    // All lanes, and lanes that wait for different times.
    let spin = "mov.u64 %a, %clock64;
        L: mov.u64 %b, %clock64; sub.u64 %rd2, %b, %a; setp.lt.u64 %p1, %rd2, 1000000; @%p1 bra L;";
    for words in everywhere(&kernel("", &format!("{spin}{END}")), &[32, 45]) {
        // Each iteration is four instructions.
        assert!(words.iter().all(|word| (1_000_000..1_000_004).contains(word)), "{words:?}");
    }
    let apart = "mov.u64 %a, %clock64; mul.wide.u32 %rd3, %t, 100;
        L: mov.u64 %b, %clock64; sub.u64 %rd2, %b, %a; setp.lt.u64 %p1, %rd2, %rd3; @%p1 bra L;
        bar.sync 0;";
    // Lanes wait for others of their warp: for how long, other schedules decide.
    let natural: Vec<How> = ways().into_iter().filter(|how| how.seed == 0).collect();
    compare(&kernel("", &format!("{apart}{END}")), &[45, 128], &natural);
    let timer = "mov.u64 %a, %globaltimer;
        L: nanosleep.u32 100; mov.u64 %b, %globaltimer; sub.u64 %rd2, %b, %a; setp.lt.u64 %p1, %rd2, 1000000; @%p1 bra L;";
    for words in everywhere(&kernel("", &format!("{timer}{END}")), &[32, 45]) {
        assert!(words.iter().all(|word| (1_000_000..1_000_200).contains(word)), "{words:?}");
    }
}

#[test]
fn the_timer_goes_on_from_launch_to_launch() {
    // Slept time is shown, and the next launch begins behind it; the halves are those of one number.
    let body = "mov.u64 %b, %globaltimer; nanosleep.u32 1000; mov.u32 %r1, %globaltimer_lo; mov.u32 %r2, %globaltimer_hi;
        mov.b64 %a, {%r1, %r2}; shl.b64 %b, %b, 32; or.b64 %b, %b, %a; st.global.u64 [%out], %b; ret;";
    let text = kernel("", body);
    let want = run(&text, 45, INTERPRETED, 3);
    for how in ways().into_iter().chain([How { seed: 7, ..INTERPRETED }]) {
        assert_eq!(run(&text, 45, how, 3), want, "{how:?}");
    }
    let mut last = 0;
    for (words, _) in want {
        let (first, second) = (words[0] >> 32, words[0] & 0xffff_ffff);
        assert!(words.iter().all(|word| *word == words[0]), "all warps begin at one time: {words:x?}");
        assert!(first > last && second == first + 1000 + 2, "{last} {first} {second}");
        last = second;
    }
}
