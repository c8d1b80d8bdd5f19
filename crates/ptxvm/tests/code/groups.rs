//! Neighbouring CTAs that execute as one coarse warp, and several such groups row by row: each thread must
//! behave as if its CTA had been started alone.
//!
//! Kernels are of planes. Expected values are computed here from the thread's column and row.
#![cfg(feature = "jit")]

use crate::levels;
use ptxvm::{Arg, Cpu, Engine, ErrorKind, Launch, Options, Vm};

/// Threads of a CTA in x and in y: a warp is one row or several, and so is a coarse warp of several CTAs.
const BLOCKS: [[u32; 2]; 5] = [[32, 4], [16, 8], [8, 8], [64, 2], [24, 4]];

/// `%x` and `%y` are the thread's column and row, `%at` is the address of its word, `%row` that of the word
/// of its row in a table.
const START: &str = "
    .reg .pred %p<9>; .reg .b32 %r<30>, %x, %y, %w; .reg .b64 %rd<20>, %out, %table, %at, %row;
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %ctaid.x; mad.lo.u32 %x, %r3, %r2, %r1;
    mov.u32 %w, %nctaid.x; mul.lo.u32 %w, %w, %r2;
    mov.u32 %r1, %tid.y; mov.u32 %r2, %ntid.y; mov.u32 %r3, %ctaid.y; mad.lo.u32 %y, %r3, %r2, %r1;
    ld.param.u64 %out, [out]; ld.param.u64 %table, [table];
    mad.lo.u32 %r1, %y, %w, %x; mul.wide.u32 %rd1, %r1, 4; add.u64 %at, %out, %rd1;
    mul.wide.u32 %rd1, %y, 4; add.u64 %row, %table, %rd1;
";

/// What a launch did.
struct Done {
    /// The words of all threads, by row.
    words: Vec<u32>,
    /// The trap, with the CTA and the thread.
    trap: Option<String>,
}

/// Runs a kernel in a grid of so many CTAs in x and three in y. The table has a word for each row, of which
/// each is 1000 and the number of its row.
fn run(body: &str, [nx, ny]: [u32; 2], ctas: u32, on: (Cpu, Engine, Option<u32>, u32)) -> Option<Done> {
    let (cpu, engine, team, threads) = on;
    let text = format!(
        ".version 7.0\n.target sm_70\n.address_size 64\n\
         .visible .entry k(.param .u64 out, .param .u64 table) {{\n{START}{body}}}\n"
    );
    let options = Options { cpu: Some(cpu), team, cache: levels::cache(), ..Options::default() };
    let vm = Vm::with(options).expect("a device");
    let kernel = vm.load("groups.ptx", &text).and_then(|module| module.kernel("k")).expect("a kernel");
    let rows = 3 * ny;
    let table: Vec<u32> = (1000..1000 + rows).collect();
    let (words, table) = (vm.zeros::<u32>((ctas * nx * rows) as usize), vm.buffer(&table));
    let (words, table) = (words.expect("memory"), table.expect("memory"));
    let launch = Launch::new([ctas, 3, 1], [nx, ny, 1]).threads(threads).engine(engine);
    let args = [Arg::buffer(&words), Arg::buffer(&table)];
    let launch = launch.args(&kernel, &args).expect("two arguments");
    let trap = match vm.launch(&kernel, &launch) {
        Ok(_) => None,
        Err(error) => match error.kind() {
            ErrorKind::Trap(trap, _) => Some(format!("{} {:?} {:?}", trap.kind.word(), trap.ctaid, trap.tid)),
            // A level that this machine lacks.
            ErrorKind::Machine(_) | ErrorKind::Caller(_) if cpu != Cpu::Baseline => return None,
            _ => panic!("{error}"),
        },
    };
    Some(Done { words: words.read().expect("words"), trap })
}

/// Runs it on every level, in single warps and in coarse warps, on one OS thread and on two.
fn everywhere(body: &str, block: [u32; 2], ctas: u32, check: impl Fn(&Done)) {
    for cpu in [Cpu::Baseline, Cpu::Avx2, Cpu::Avx512] {
        for team in [None, Some(4)] {
            for threads in [1, 2] {
                run(body, block, ctas, (cpu, Engine::Jit, team, threads)).iter().for_each(&check);
            }
        }
    }
}

/// Runs it for several shapes; `expect`: what the thread at that column and row stores.
fn check(body: &str, ctas: u32, expect: impl Fn(u32, u32) -> u32) {
    for block in BLOCKS {
        let width = ctas * block[0];
        everywhere(body, block, ctas, |done| {
            assert_eq!(done.trap, None, "block {block:?}: {body}");
            for (at, word) in (0..).zip(&done.words) {
                let (x, y) = (at % width, at / width);
                assert_eq!(*word, expect(x, y), "column {x}, row {y}, block {block:?}: {body}");
            }
        });
    }
}

/// 3 to the power of the number of iterations, and the sum of the lower powers: a loop that multiplies by 3
/// and adds a number has these factors.
const ITERATIONS: u32 = 3000;

fn after_the_loop(x: u32, y: u32) -> u32 {
    let next = |(power, sum): (u32, u32), _| (power.wrapping_mul(3), sum.wrapping_mul(3).wrapping_add(1));
    let (power, sum) = (0..ITERATIONS).fold((1, 0), next);
    power.wrapping_mul(x).wrapping_add(sum.wrapping_mul(1000 + y))
}

/// The loop, of the column and the word of the row.
const LOOP: &str = "mov.u32 %r4, %x; mov.u32 %r5, 0;
    L: ld.global.u32 %r6, [%row]; mad.lo.u32 %r4, %r4, 3, %r6; add.u32 %r5, %r5, 1;
    setp.lt.u32 %p1, %r5, 3000; @%p1 bra L; st.global.u32 [%at], %r4; ret;";

/// A call of native code ends after so many iterations that the code of some groups is in the middle.
#[test]
fn loops_go_on_in_the_middle_of_a_later_group() {
    check(LOOP, 67, after_the_loop);
}

/// Coarse warps that have lost lanes leave in the middle of the loop: each CTA goes on from where it is.
#[test]
fn ctas_go_on_where_a_row_of_them_has_lost_lanes() {
    let body = format!(
        "and.b32 %r4, %x, 3; and.b32 %r5, %y, 1; setp.eq.u32 %p1, %r5, 1; setp.eq.and.u32 %p1, %r4, 2, %p1; @%p1 ret; {LOOP}"
    );
    check(&body, 67, |x, y| if y % 2 == 1 && x % 4 == 2 { 0 } else { after_the_loop(x, y) });
}

/// A column where an index is clamped leaves the rows of several CTAs, in the middle of all rows of its CTA.
/// Each thread adds to its word, so it must run once.
#[test]
fn ctas_go_on_where_an_index_is_at_its_limit() {
    for limit in [301, 420] {
        let body = format!(
            "mov.u32 %r9, 0; mov.u32 %r4, {limit}; ld.global.u32 %r8, [%table]; sub.u32 %r8, %r8, 1000; add.u32 %r4, %r4, %r8;
            min.u32 %r5, %x, %r4; mad.lo.u32 %r5, %y, %w, %r5; sub.u32 %r5, %r5, %x;
            mul.wide.s32 %rd2, %r5, 0; add.s64 %rd2, %rd2, %at; ld.global.u32 %r6, [%rd2];
            min.u32 %r5, %x, %r4; mul.wide.u32 %rd3, %r5, 0; add.s64 %rd3, %rd3, %row; ld.global.u32 %r7, [%rd3];
            mad.lo.u32 %r7, %r5, 3, %r7; add.u32 %r6, %r6, %r7; st.global.u32 [%at], %r6; ret;"
        );
        check(&body, 67, |x, y| x.min(limit) * 3 + 1000 + y);
    }
}

/// The threads of a warp are in several coarse warps where rows are short. Of several threads that trap, the
/// one is named that traps where all threads of its warp execute as one.
#[test]
fn the_trap_of_the_interpreter_is_named() {
    // Columns and rows of two threads of one CTA, and which of them does not access memory before the other.
    for ([xa, ya], [xb, yb], first) in [
        ([85, 2], [93, 3], true),
        ([85, 2], [93, 3], false),
        ([90, 3], [90, 2], true),
        ([90, 3], [90, 2], false),
    ] {
        let (a, b) = if first { ("1", "2") } else { ("2", "1") };
        let at = |register: &str, x: u32, y: u32, place: &str| {
            format!(
                "setp.eq.u32 %p{place}, %x, {x}; setp.eq.and.u32 %p{place}, %y, {y}, %p{place};
                selp.b64 {register}, 64, %at, %p{place};\n"
            )
        };
        let body = format!(
            "{}{}ld.global.u32 %r4, [%rd11]; add.u32 %r4, %r4, 5; ld.global.u32 %r5, [%rd12];
            add.u32 %r4, %r4, %r5; st.global.u32 [%at], %r4; ret;",
            at(&format!("%rd1{a}"), xa, ya, "1"),
            at(&format!("%rd1{b}"), xb, yb, "2"),
        );
        for block in BLOCKS {
            let interp = run(&body, block, 67, (Cpu::Baseline, Engine::Interp, None, 1)).expect("a launch");
            assert!(interp.trap.is_some());
            everywhere(&body, block, 67, |done| assert_eq!(done.trap, interp.trap, "{block:?}: {body}"));
        }
    }
}
