//! Loops whose addresses advance by constants, for which native code checks many iterations at once: up to
//! the last element of a buffer and one beyond it, before its first element, and with an irregular iteration.
//! The same bytes and traps as in the interpreter.
#![cfg(feature = "jit")]

use crate::levels;

use ptxvm::{Arg, Engine, ErrorKind, Launch, Options, Target, Vm};

/// The outcome of a launch: the third buffer, and the text of its trap without addresses.
type Outcome = (Option<Vec<u32>>, Option<String>);

/// A loop, and what it runs on.
#[derive(Clone, Copy)]
struct Case<'a> {
    /// What stands before the loop.
    head: &'a str,
    /// An iteration without its end: `%r6` counts iterations, `%r7` is stored after the loop.
    turn: &'a str,
    /// The end of an iteration.
    step: &'a str,
    block: [u32; 3],
    /// Words of the first two buffers.
    words: [usize; 2],
    /// Turns.
    n: u32,
    team: Option<u32>,
}

impl Case<'_> {
    fn text(&self) -> String {
        format!(
            ".version 7.0\n.target sm_80\n.address_size 64\n\
             .visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n{{\n\
             .reg .pred %p<10>; .reg .b32 %r<40>; .reg .b64 %rd<40>;\n\
             .shared .align 16 .b8 shared[4096];\n\
             ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c]; ld.param.u32 %r1, [n];\n\
             mov.u32 %r2, %tid.x; mov.u32 %r3, %tid.y; mov.u32 %r4, %ntid.x; mad.lo.u32 %r5, %r3, %r4, %r2;\n\
             mul.wide.u32 %rd4, %r5, 4; add.u64 %rd5, %rd1, %rd4; add.u64 %rd6, %rd2, %rd4; add.u64 %rd7, %rd3, %rd4;\n\
             mov.u32 %r6, 0; mov.u32 %r7, 0;\n{}\nL:\nst.global.u32 [%rd7], %r6;\n{}\nadd.u32 %r6, %r6, 1;\n{}\n\
             setp.lt.u32 %p1, %r6, %r1; @%p1 bra L;\nst.global.u32 [%rd7], %r7; ret;\n}}\n",
            self.head, self.turn, self.step
        )
    }

    fn run(&self, engine: Engine, target: Option<Target>) -> Outcome {
        let vm = Vm::with(Options { target, team: self.team, cache: levels::cache(), ..Options::default() })
            .expect("this is given");
        let module = vm.load("steady.ptx", &self.text()).unwrap_or_else(|error| panic!("{error}"));
        let kernel = module.kernel("k").expect("the kernel");
        let buffer = |words: usize| {
            let data: Vec<u32> = (0..words as u32).map(|i| i.wrapping_mul(0x9e37_79b9)).collect();
            vm.buffer(&data).expect("memory")
        };
        let [a, b] = self.words.map(buffer);
        let c = buffer(256);
        let args = [Arg::buffer(&a), Arg::buffer(&b), Arg::buffer(&c), Arg::from(self.n)];
        let launch = Launch::new([1, 1, 1], self.block).threads(1).engine(engine);
        let launch = launch.args(&kernel, &args).expect("arguments that fit");
        match vm.launch(&kernel, &launch) {
            Ok(_) => (Some(c.read().expect("the results")), None),
            Err(error) => match error.kind() {
                ErrorKind::Trap(trap, _) => {
                    let said = format!("{} line {} at {:?}", trap.kind.word(), trap.line, trap.tid);
                    // How far one warp has come; several come as far as they are run.
                    let alone = self.block.iter().product::<u32>() <= 32;
                    (alone.then(|| c.read().expect("the results")), Some(said))
                }
                _ => panic!("{error}"),
            },
        }
    }

    /// Runs it everywhere; whether it comes to its end.
    fn agree(&self) -> bool {
        let expected = self.run(Engine::Interp, None);
        for target in levels::of(&format!("{}{:?}{:?}", self.text(), self.block, self.team)) {
            let found = self.run(Engine::Jit, Some(target));
            assert_eq!(found, expected, "{target} {:?} {:?}\n{}", self.block, self.words, self.text());
        }
        expected.1.is_none()
    }
}

/// Reads what four addresses point to.
const READ: &str = "ld.global.u32 %r20, [%rd10]; ld.global.u32 %r21, [%rd11]; ld.global.u32 %r22, [%rd12]; ld.global.u32 %r23, [%rd13]; \
                    add.u32 %r7, %r7, %r20; add.u32 %r7, %r7, %r21; xor.b32 %r7, %r7, %r22; add.u32 %r7, %r7, %r23;";

const BLOCKS: [([u32; 3], Option<u32>); 5] = [
    ([32, 1, 1], None),
    ([64, 1, 1], None),
    ([64, 1, 1], Some(2)),
    ([16, 4, 1], Some(2)),
    ([20, 3, 1], None),
];

/// A loop of 40 iterations that reads, in each kind of block.
fn cases<'a>(head: &'a str, turn: &'a str, step: &'a str, words: [usize; 2]) -> Vec<Case<'a>> {
    let case = |(block, team)| Case { head, turn, step, block, words, n: 40, team };
    BLOCKS.into_iter().map(case).collect()
}

#[test]
fn loops_reach_to_the_end_of_a_buffer_and_no_further() {
    // Every lane's own word and one of all lanes upwards, in steps of one, two and three words; one
    // downwards.
    let step = "add.u64 %rd10, %rd10, 4; add.u64 %rd11, %rd11, 8; add.s64 %rd12, %rd12, 12; sub.s64 %rd13, %rd13, 4;";
    for down in [38, 39] {
        let head = format!(
            "mov.u64 %rd10, %rd5; mov.u64 %rd11, %rd6; mov.u64 %rd12, %rd1; add.u64 %rd13, %rd2, {};",
            down * 4
        );
        for (block, team) in BLOCKS {
            let threads = block.iter().product::<u32>() as usize;
            // The last words that are read, and so the least sizes.
            let (first, second) = ((threads + 39).max(118), threads + 78);
            for (a, b) in [(first, second), (first - 1, second), (first, second - 1), (first + 9, second + 9)]
            {
                let words = [a, b];
                let case = Case { head: &head, turn: READ, step, block, words, n: 40, team };
                let fits = down == 39 && a >= first && b >= second;
                assert_eq!(case.agree(), fits, "{block:?} {words:?} {down}");
                // One iteration less stays within bounds.
                let shorter = Case { n: 39, ..case };
                assert!(shorter.agree(), "{block:?} {words:?} {down}");
            }
        }
    }
}

#[test]
fn indices_of_32_bits_wrap_around_where_they_are_widened() {
    // `%r10` and `%r11` begin 16 iterations before they wrap around; the base is chosen so that they point to
    // the start of the first buffer.
    let wides = [
        ("0xfffffff0", "mul.wide.u32 %rd20, %r10, 4;", -4_i64 * 0xffff_fff0),
        ("0x7ffffff0", "mul.wide.s32 %rd20, %r10, 4;", -4_i64 * 0x7fff_fff0),
        ("0xfffffff0", "cvt.u64.u32 %rd20, %r10; shl.b64 %rd20, %rd20, 2;", -4_i64 * 0xffff_fff0),
        ("0x7ffffff0", "cvt.s64.s32 %rd20, %r10; mul.lo.s64 %rd20, %rd20, 4;", -4_i64 * 0x7fff_fff0),
        ("0x3ffffff0", "shl.b32 %r11, %r10, 2; cvt.u64.u32 %rd20, %r11;", -0xffff_ffc0_i64),
        ("0xfffffff0", "cvt.sat.u64.s32 %rd20, %r10; shl.b64 %rd20, %rd20, 6;", 0),
        // These do not.
        ("0", "mul.wide.s32 %rd20, %r10, 4;", 0),
        ("0xfffffff0", "mul.wide.s32 %rd20, %r10, 4;", 64),
        ("0x7ffffff0", "mul.wide.u32 %rd20, %r10, 4;", -4_i64 * 0x7fff_fff0),
    ];
    for (at, (start, wide, base)) in wides.into_iter().enumerate() {
        let head =
            format!("mov.u32 %r10, {start}; add.s64 %rd30, %rd1, {base}; add.s64 %rd31, %rd5, {base};");
        let turn = format!(
            "{wide} add.s64 %rd10, %rd30, %rd20; add.s64 %rd11, %rd31, %rd20; add.s64 %rd12, %rd10, 8; add.s64 %rd13, %rd11, %rd4; {READ}"
        );
        for case in cases(&head, &turn, "add.s32 %r10, %r10, 1;", [256, 1]) {
            assert_eq!(case.agree(), at >= 6, "{wide} {start}");
        }
    }
    // Downwards, to the least number.
    for (start, ty, ends) in [("9", "u32", false), ("0x80000009", "s32", false), ("9", "s32", true)] {
        let value = i64::from(u32::from_str_radix(start.trim_start_matches("0x"), 16).expect("a number"));
        let value = if ty == "s32" { i64::from(value as u32 as i32) } else { value };
        let head = format!("mov.u32 %r10, {start}; add.s64 %rd30, %rd1, {};", 400 - 4 * value);
        let turn = format!(
            "mul.wide.{ty} %rd20, %r10, 4; add.s64 %rd10, %rd30, %rd20; add.s64 %rd11, %rd10, %rd4; mad.wide.{ty} %rd12, %r10, 4, %rd30; \
             add.s64 %rd13, %rd12, 4; {READ}"
        );
        for case in cases(&head, &turn, "sub.u32 %r10, %r10, 1;", [256, 1]) {
            assert_eq!(case.agree(), ends, "{ty} {start}");
        }
    }
}

#[test]
fn turns_that_are_not_like_others_are_checked_again() {
    let head = "mov.u64 %rd10, %rd5; mov.u64 %rd11, %rd6; mov.u64 %rd12, %rd1; mov.u64 %rd13, %rd2; mov.u64 %rd14, %rd5; mov.u32 %r15, 0;";
    let all =
        "add.u64 %rd10, %rd10, 4; add.u64 %rd11, %rd11, 4; add.u64 %rd12, %rd12, 4; add.u64 %rd13, %rd13, 4;";
    let fifth = "ld.global.u32 %r24, [%rd14]; add.u32 %r7, %r7, %r24;";
    let steps = [
        // One of two back edges has a longer step, in iterations of all lanes or of some.
        (
            "setp.ne.u32 %p2, %r6, 20; @%p2 bra M; add.u64 %rd14, %rd14, 400; setp.lt.u32 %p1, %r6, %r1; @%p1 bra L; M: add.u64 %rd14, %rd14, 4;",
            5,
        ),
        ("setp.ne.u32 %p2, %r6, 20; @%p2 add.u64 %rd14, %rd14, 4; @!%p2 add.u64 %rd14, %rd14, 4000;", 5),
        ("setp.ne.u32 %p2, %r5, 20; @%p2 add.u64 %rd14, %rd14, 4; @!%p2 add.u64 %rd14, %rd14, 80;", 5),
        ("and.b32 %r16, %r6, 7; mul.wide.u32 %rd20, %r16, 16; add.u64 %rd14, %rd5, %rd20;", 5),
        ("and.b32 %r16, %r6, 16; mul.wide.u32 %rd20, %r16, 400; add.u64 %rd14, %rd5, %rd20;", 5),
        // The longer the farther.
        ("add.u32 %r15, %r15, 4; cvt.u64.u32 %rd20, %r15; add.u64 %rd14, %rd14, %rd20;", 5),
        ("mul.lo.u32 %r15, %r6, %r6; mul.wide.u32 %rd20, %r15, 4; add.u64 %rd14, %rd5, %rd20;", 5),
        // In some iterations all lanes step back, or to the other buffer.
        (
            "setp.ne.u32 %p2, %r6, 20; @%p2 bra M; mov.u64 %rd10, %rd6; mov.u64 %rd12, %rd2; mov.u64 %rd13, %rd1; mov.u64 %rd11, %rd5; M: ",
            4,
        ),
        (
            "and.b32 %r16, %r6, 15; setp.ne.u32 %p2, %r16, 0; @%p2 bra M; mov.u64 %rd10, %rd6; mov.u64 %rd11, %rd5; mov.u64 %rd12, %rd2; M: ",
            4,
        ),
        // Lanes leave one after another, or take another path for one iteration.
        ("add.u32 %r16, %r5, 10; setp.gt.u32 %p2, %r6, %r16; @%p2 bra X;", 4),
        ("setp.eq.u32 %p2, %r6, %r2; @%p2 bra M; xor.b32 %r7, %r7, 5; M: ", 4),
        ("setp.eq.u32 %p2, %r6, %r2; @!%p2 bra M; add.u64 %rd10, %rd10, 4; xor.b32 %r7, %r7, 5; M: ", 4),
        // A nested loop.
        (
            "mov.u32 %r16, 0; M: mad.lo.u32 %r7, %r7, 5, 1; add.u32 %r16, %r16, 1; setp.lt.u32 %p2, %r16, 3; @%p2 bra M;",
            4,
        ),
        (
            "mov.u32 %r16, 0; M: add.u64 %rd10, %rd10, 4; add.u32 %r16, %r16, 1; setp.lt.u32 %p2, %r16, %r6; @%p2 bra M;",
            4,
        ),
    ];
    let (mut well, mut faults) = (0, 0);
    for (step, addresses) in steps {
        let turn = if addresses == 5 { format!("{READ} {fifth}") } else { READ.to_owned() };
        let step =
            format!("{all} {step}").replace("@%p2 bra X;", "@%p2 st.global.u32 [%rd7], %r7; @%p2 exit;");
        for words in [[103, 103], [256, 256], [1100, 1100]] {
            for case in cases(head, &turn, &step, words) {
                *(if case.agree() { &mut well } else { &mut faults }) += 1;
            }
        }
    }
    assert!(well > 50 && faults > 50, "{well} {faults}");
}

#[test]
fn loops_in_loops_begin_anew() {
    // The inner loop of 8 iterations continues at the address of the outer one, which then advances three
    // words further, or goes back.
    let head = "mov.u32 %r15, 0; mov.u64 %rd20, %rd5; mov.u64 %rd21, %rd6;\nO: mov.u64 %rd10, %rd20; mov.u64 %rd11, %rd21; add.u64 %rd12, %rd20, 4; \
                mov.u64 %rd13, %rd21; mov.u32 %r16, 0;";
    let mut fits = 0;
    for outer in [
        "add.u64 %rd20, %rd20, 12; add.u64 %rd21, %rd21, 12;",
        "add.u64 %rd20, %rd20, 12; sub.u64 %rd21, %rd21, 4;",
    ] {
        let step = format!(
            "add.u64 %rd10, %rd10, 4; add.u64 %rd11, %rd11, 4; add.u64 %rd12, %rd12, 4; add.u64 %rd13, %rd13, 8; add.u32 %r16, %r16, 1; \
             setp.lt.u32 %p2, %r16, 8; @%p2 bra L; {outer} add.u32 %r15, %r15, 1; setp.lt.u32 %p3, %r15, 9; @%p3 bra O; mov.u32 %r6, %r1;"
        );
        for extra in [0, 1, 2, 39] {
            for (block, team) in BLOCKS {
                let threads = block.iter().product::<u32>() as usize;
                let words = [threads + 31 + extra, threads + 38];
                let case = Case { head, turn: READ, step: &step, block, words, n: 1, team };
                fits += usize::from(case.agree());
            }
        }
    }
    assert_eq!(fits, 3 * BLOCKS.len());
}

#[test]
fn other_memories_and_sizes_have_their_bounds() {
    let up =
        "add.u64 %rd10, %rd10, 4; add.u64 %rd11, %rd11, 4; add.u64 %rd12, %rd12, 4; add.u64 %rd13, %rd13, 4;";
    let head = "mov.u64 %rd10, %rd5; mov.u64 %rd11, %rd6; mov.u64 %rd12, %rd1; mov.u64 %rd13, %rd2; mov.u64 %rd14, shared; \
                add.u64 %rd15, %rd14, %rd4; cvta.shared.u64 %rd16, %rd15;";
    let last = "add.u32 %r7, %r7, %r24;";
    let bodies = [
        // Shared memory, to its end and beyond, also behind a generic address.
        ("ld.shared.u32 %r24, [%rd15];", "add.u64 %rd15, %rd15, 64;"),
        ("ld.shared.u32 %r24, [%rd15];", "add.u64 %rd15, %rd15, 128;"),
        ("st.u32 [%rd16], %r7; ld.u32 %r24, [%rd16];", "add.u64 %rd16, %rd16, 128;"),
        // Odd addresses.
        ("ld.global.v2.u32 {%r24, %r25}, [%rd12];", ""),
        (
            "ld.global.u32 %r24, [%rd14];",
            "mov.u64 %rd14, %rd1; cvt.u64.u32 %rd20, %r6; add.u64 %rd14, %rd14, %rd20;",
        ),
        ("ld.global.u8 %r24, [%rd21];", "add.u64 %rd21, %rd21, 1;"),
        ("ld.global.u16 %r24, [%rd21];", "add.u64 %rd21, %rd21, 1;"),
        // Of rows as far apart as a parameter says.
        ("ld.global.u32 %r24, [%rd22];", "add.u64 %rd22, %rd22, 4;"),
        ("st.global.u32 [%rd22], %r7; ld.global.u32 %r24, [%rd22+4];", "sub.u64 %rd22, %rd22, 4;"),
        // What all of them read stays where it is.
        ("ld.global.u32 %r24, [%rd1+400]; ld.global.u32 %r25, [%rd2+404];", ""),
    ];
    let rows = "mov.u64 %rd21, %rd1; mad.lo.s32 %r12, %r3, %r1, %r2; mul.wide.s32 %rd23, %r12, 4; add.u64 %rd22, %rd1, %rd23; add.u64 %rd22, %rd22, 80;";
    let head = format!("{head} {rows}");
    let (mut well, mut faults) = (0, 0);
    for (access, step) in bodies {
        let turn = format!("{READ} {access} {last}");
        let step = format!("{up} {step}");
        for words in [[103, 103], [160, 102], [176, 103], [197, 103], [256, 256]] {
            for case in cases(&head, &turn, &step, words) {
                *(if case.agree() { &mut well } else { &mut faults }) += 1;
            }
        }
    }
    assert!(well > 50 && faults > 50, "{well} {faults}");
}

#[test]
fn long_loops_are_left_and_go_on() {
    let head = "mov.u64 %rd10, %rd5; mov.u64 %rd11, %rd6; mov.u64 %rd12, %rd1; mov.u64 %rd13, %rd2;";
    let step = "add.u64 %rd10, %rd10, 4; add.u64 %rd12, %rd12, 4;";
    let n = 30_000;
    for (block, team) in BLOCKS {
        let threads = block.iter().product::<u32>() as usize;
        for (words, fits) in [(threads + n - 1, true), (threads + n - 2, false)] {
            let words = [words, threads];
            let case = Case { head, turn: READ, step, block, words, n: n as u32, team };
            assert_eq!(case.agree(), fits);
        }
    }
}
