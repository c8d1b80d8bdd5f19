//! Scalar code: which launches use it, and what it computes, against values that are computed here.
#![cfg(feature = "jit")]

use crate::levels;

use ptxvm::{Arg, Engine, ErrorKind, Launch, Options, Report, Vm};

/// A kernel `k(.u64 in, .u64 out)` of a loop whose turns are `in[thread]`: a generator of numbers, of which
/// the last 16 are kept in local memory at places that the numbers choose. `end` stands behind the loop,
/// with the last number in `%r5`, the number of the thread in `%r3`, and the place of its result in `%rd5`.
fn text(end: &str) -> String {
    format!(
        ".version 7.0\n.target sm_80\n.address_size 64\n\
         .visible .entry k(.param .u64 in, .param .u64 out)\n{{\n\
         .reg .pred %p<4>; .reg .b32 %r<20>; .reg .b64 %rd<20>; .local .align 4 .b8 kept[64];\n\
         ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out];\n\
         mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r6, %ntid.x; mad.lo.u32 %r3, %r2, %r6, %r1;\n\
         mul.wide.u32 %rd3, %r3, 4; add.u64 %rd4, %rd1, %rd3; add.u64 %rd5, %rd2, %rd3;\n\
         ld.global.u32 %r4, [%rd4]; mov.u32 %r5, %r3;\n\
         mov.u64 %rd6, kept; cvta.local.u64 %rd7, %rd6;\n\
         mov.u32 %r7, 0;\n\
         C: mul.wide.u32 %rd8, %r7, 4; add.u64 %rd9, %rd7, %rd8; st.u32 [%rd9], %r7;\n\
         add.u32 %r7, %r7, 1; setp.lt.u32 %p1, %r7, 16; @%p1 bra C;\n\
         setp.eq.u32 %p1, %r4, 0; @%p1 bra E;\n\
         L: mad.lo.u32 %r5, %r5, 1664525, 1013904223;\n\
         shr.u32 %r8, %r5, 28; mul.wide.u32 %rd10, %r8, 4; add.u64 %rd11, %rd7, %rd10;\n\
         ld.u32 %r9, [%rd11]; st.u32 [%rd11], %r5; xor.b32 %r5, %r5, %r9;\n\
         sub.u32 %r4, %r4, 1; setp.ne.u32 %p1, %r4, 0; @%p1 bra L;\n\
         E:\n{end}\nret;\n}}\n"
    )
}

/// The result of a thread: its number behind the loop.
fn number(thread: u32, turns: u32) -> u32 {
    let mut kept: [u32; 16] = std::array::from_fn(|at| at as u32);
    (0..turns).fold(thread, |number, _| {
        let number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        number ^ std::mem::replace(&mut kept[(number >> 28) as usize], number)
    })
}

const STORE: &str = "st.global.u32 [%rd5], %r5;";

/// The results and reports of some launches.
fn run(
    end: &str,
    turns: &[u32],
    (block, team): (u32, Option<u32>),
    launches: usize,
) -> (Vec<u32>, Vec<Report>) {
    let vm = Vm::with(Options { team, cache: levels::cache(), ..Options::default() }).expect("a device");
    let module = vm.load("threads.ptx", &text(end)).unwrap_or_else(|error| panic!("{error}"));
    let kernel = module.kernel("k").expect("the kernel");
    let from = vm.buffer(turns).expect("memory");
    let to = vm.zeros::<u32>(turns.len()).expect("memory");
    let grid = turns.len() as u32 / block;
    let launch = Launch::new([grid, 1, 1], [block, 1, 1]).threads(1).engine(Engine::Jit);
    let launch = launch.args(&kernel, &[Arg::buffer(&from), Arg::buffer(&to)]).expect("arguments that fit");
    let report = |_| vm.launch(&kernel, &launch).unwrap_or_else(|error| panic!("{error}"));
    let reports = (0..launches).map(report).collect();
    (to.read().expect("the results"), reports)
}

fn numbers(turns: &[u32]) -> Vec<u32> {
    (0..).zip(turns).map(|(thread, turns)| number(thread, *turns)).collect()
}

#[test]
fn launches_with_few_active_lanes_switch_to_it() {
    // One lane of each warp takes 200,000 turns of 8 instructions, the others none or a few.
    let turns: Vec<u32> = (0..1024).map(|i| if i % 32 == 5 { 200_000 } else { i % 3 }).collect();
    let (found, reports) = run(STORE, &turns, (128, None), 2);
    assert!(found == numbers(&turns));
    assert!(reports[1].ran.scalar, "the second launch");
    // Each instruction is executed by one thread.
    assert_eq!(reports[1].warp_instructions, reports[1].thread_instructions);
}

#[test]
fn launches_with_many_active_lanes_do_not() {
    let turns = vec![5_000; 1024];
    let (found, reports) = run(STORE, &turns, (128, None), 3);
    assert!(found == numbers(&turns));
    assert!(reports.iter().all(|report| !report.ran.scalar));
}

/// With 13 active lanes either code may be faster. With one OS thread time does not count, so launches stay
/// with code of warps.
#[test]
fn launches_of_one_os_thread_need_few_active_lanes() {
    let turns: Vec<u32> = (0..1024).map(|i| if i % 32 < 13 { 20_000 } else { 0 }).collect();
    let (found, reports) = run(STORE, &turns, (128, None), 4);
    assert!(found == numbers(&turns));
    assert!(reports.iter().all(|report| !report.ran.scalar));
}

#[test]
fn threads_of_partial_warps_and_their_lanes() {
    let turns: Vec<u32> = (0..1000).map(|i| i * 7 % 50).collect();
    let end = "mov.u32 %r10, %laneid; mov.u32 %r11, %lanemask_lt; mov.u32 %r12, %lanemask_ge;\n\
               add.u32 %r13, %r11, %r12; add.u32 %r13, %r13, %r10; add.u32 %r5, %r5, %r13;\n\
               and.b32 %r14, %r10, 1; setp.eq.u32 %p2, %r14, 0;\n\
               @%p2 st.global.u32 [%rd5], %r5; @!%p2 st.global.u32 [%rd5], %r10;";
    let (found, reports) = run(end, &turns, (40, Some(0)), 1);
    let expected = |(at, number): (usize, u32)| {
        let lane = at as u32 % 40 % 32;
        // The masks of the lanes below, and of the others.
        if lane.is_multiple_of(2) { number.wrapping_add(u32::MAX).wrapping_add(lane) } else { lane }
    };
    let expected: Vec<u32> = numbers(&turns).into_iter().enumerate().map(expected).collect();
    assert!(reports[0].ran.scalar);
    assert_eq!(found, expected);
}

#[test]
fn warps_continue_where_a_thread_uses_up_the_fuel() {
    // The third thread takes more turns than a call of scalar code may; threads before and behind it do not.
    let mut turns = vec![3; 64];
    turns[2] = 40_000_000;
    let (found, reports) = run(STORE, &turns, (64, Some(0)), 1);
    assert!(found == numbers(&turns));
    // The rest of it is executed by a warp whose other lanes wait.
    assert!(reports[0].ran.scalar && reports[0].ran.native);
}

#[test]
fn kernels_whose_threads_depend_on_each_other_have_none() {
    let turns: Vec<u32> = (0..256).map(|i| i % 9).collect();
    for shared in ["bar.sync 0;", "shfl.sync.idx.b32 %r10, %r5, 0, 31, 0xffffffff;", "mov.u32 %r10, %clock;"]
    {
        let end = format!("{shared}\n{STORE}");
        let (found, reports) = run(&end, &turns, (64, Some(0)), 1);
        assert!(found == numbers(&turns), "{shared}");
        assert!(!reports[0].ran.scalar, "{shared}");
    }
}

#[test]
fn a_thread_that_traps_is_named() {
    let vm =
        Vm::with(Options { team: Some(0), cache: levels::cache(), ..Options::default() }).expect("a device");
    // Thread 37 of the second CTA writes behind the buffer.
    let end = "setp.eq.u32 %p2, %r3, 101; selp.u32 %r10, 4096, 0, %p2; cvt.u64.u32 %rd12, %r10;\n\
               add.u64 %rd5, %rd5, %rd12; st.global.u32 [%rd5], %r5;";
    let module = vm.load("threads.ptx", &text(end)).unwrap_or_else(|error| panic!("{error}"));
    let kernel = module.kernel("k").expect("the kernel");
    let (from, to) = (vm.buffer(&[4u32; 128]).expect("memory"), vm.zeros::<u32>(128).expect("memory"));
    let launch = Launch::new([2, 1, 1], [64, 1, 1]).threads(1).engine(Engine::Jit);
    let launch = launch.args(&kernel, &[Arg::buffer(&from), Arg::buffer(&to)]).expect("arguments that fit");
    let error = vm.launch(&kernel, &launch).expect_err("an access out of bounds");
    let ErrorKind::Trap(trap, _) = error.kind() else { panic!("{error}") };
    assert_eq!((trap.tid, trap.ctaid), ([37, 0, 0], [1, 0, 0]));
}
