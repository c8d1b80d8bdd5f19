//! CTAs that run in native code from barrier to barrier, and all their side exits.
//!
//! Each kernel stores one word per thread. The word is also computed here from the thread's number. In
//! addition, native code must agree with the interpreter ([`everywhere`]).
#![cfg(feature = "jit")]

use crate::everywhere::test;
use ptxvm::{Arg, Engine, Launch, Vm};
use std::time::{Duration, Instant};

const SIZES: &[u32] = &[1, 33, 64, 100, 1024];
const BOX: &str = ".shared .align 4 .b32 box[1024];";
/// `%rd2`: the thread's place in the box; `%rd3`: that of the thread at the other end.
const PLACES: &str = "
    mov.u64 %rd4, box; mul.wide.u32 %rd2, %t, 4; add.u64 %rd2, %rd4, %rd2;
    sub.u32 %r1, %n, 1; sub.u32 %r1, %r1, %t; mul.wide.u32 %rd3, %r1, 4; add.u64 %rd3, %rd4, %rd3;
";

#[test]
fn a_loop_of_barriers_exchanges_values() {
    let body = format!(
        "{PLACES} mov.u32 %r2, %t; mov.u32 %r3, 0;
        L: st.shared.u32 [%rd2], %r2; bar.sync 0; ld.shared.u32 %r4, [%rd3]; bar.sync 0;
        add.u32 %r2, %r4, 1; add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 5; @%p1 bra L;
        st.global.u32 [%out], %r2; ret;"
    );
    // Five exchanges, the last an odd one.
    test(BOX, &body).check(SIZES, |t, n| n - 1 - t + 5);
}

#[test]
fn what_lives_across_a_barrier_keeps_its_value_in_every_class() {
    // A constant, a uniform value, patterns of 32 and 64 bits, varying values of all widths, a predicate, and
    // flags.
    let body = "
        mov.u32 %r1, 77; add.u32 %r2, %n, 5; add.u32 %r3, %t, 9; mul.wide.u32 %rd2, %t, 24; mul.lo.u32 %r4, %t, %t;
        cvt.u16.u32 %h1, %r4; cvt.u64.u32 %rd3, %r4; mul.lo.u64 %rd3, %rd3, 1000003; and.b32 %r5, %r4, 4; setp.ne.u32 %p1, %r5, 0;
        setp.gt.u32 %p2, %n, 40; add.cc.u32 %r6, %r4, 0xffffff00;
        bar.sync 0;
        addc.u32 %r7, 0, 0; add.u32 %r8, %r1, %r2; add.u32 %r8, %r8, %r3; cvt.u32.u64 %r9, %rd2; add.u32 %r8, %r8, %r9;
        cvt.u32.u16 %r10, %h1; add.u32 %r8, %r8, %r10; cvt.u32.u64 %r11, %rd3; xor.b32 %r8, %r8, %r11;
        @%p1 add.u32 %r8, %r8, 3; @%p2 add.u32 %r8, %r8, 1000; add.u32 %r8, %r8, %r7; CALL
        st.global.u32 [%out], %r8; ret;";
    let expect = |t: u32, n: u32| {
        let square = t * t;
        let mut word = 77 + n + 5 + t + 9 + 24 * t + (square & 0xffff);
        word ^= (u64::from(square) * 1_000_003) as u32;
        word = word.wrapping_add(if square & 4 != 0 { 3 } else { 0 });
        word = word.wrapping_add(if n > 40 { 1000 } else { 0 });
        word.wrapping_add(u32::from(square.checked_add(0xffff_ff00).is_none()))
    };
    test("", &body.replace("CALL", "")).check(SIZES, expect);
    // The same where a call behind the barrier makes the CTA leave native code, with warps on both sides.
    let twice =
        ".func (.reg .b32 %o) plus(.reg .b32 %a) { .reg .b32 %q; add.u32 %q, %a, 1; mov.u32 %o, %q; ret; }";
    let call = "call (%r8), plus, (%r8); bar.sync 0; sub.u32 %r8, %r8, 1;";
    test(twice, &body.replace("CALL", call)).check(SIZES, expect);
}

#[test]
fn warps_and_lanes_that_exit_are_not_waited_for() {
    // Whole warps, half warps and single lanes leave before the barrier, others between two barriers.
    for (first, second) in [(64, 32), (48, 16), (33, 1), (5, 3), (700, 300)] {
        let body = format!(
            "{PLACES} setp.ge.u32 %p1, %t, {first}; mov.u32 %r5, 1; @%p1 st.global.u32 [%out], %r5; @%p1 ret;
            st.shared.u32 [%rd2], %t; bar.sync 0; setp.ge.u32 %p2, %t, {second}; mov.u32 %r5, 2; @%p2 st.global.u32 [%out], %r5;
            @%p2 exit; bar.sync 0; ld.shared.u32 %r4, [%rd4]; ld.shared.u32 %r6, [%rd2]; add.u32 %r4, %r4, %r6; add.u32 %r4, %r4, 3;
            st.global.u32 [%out], %r4; ret;"
        );
        let expect = move |t, _| {
            if t >= first {
                1
            } else if t >= second {
                2
            } else {
                t + 3
            }
        };
        test(BOX, &body).check(&[1, 33, 64, 100, 1024], expect);
    }
}

#[test]
fn lanes_that_part_meet_at_different_barrier_instructions() {
    let body = format!(
        "{PLACES} st.shared.u32 [%rd2], %t; and.b32 %r5, %t, 3; setp.eq.u32 %p1, %r5, 0; @%p1 bra A;
        barrier.sync 0; ld.shared.u32 %r4, [%rd3]; bra B;
        A: barrier.sync 0; ld.shared.u32 %r4, [%rd2];
        B: barrier.sync 0; add.u32 %r4, %r4, 1; st.global.u32 [%out], %r4; ret;"
    );
    test(BOX, &body).check(SIZES, |t, n| if t % 4 == 0 { t + 1 } else { n - t });
}

#[test]
fn whole_warps_meet_at_different_barrier_instructions() {
    let body = format!(
        "{PLACES} st.shared.u32 [%rd2], %t; shr.u32 %r5, %t, 5; and.b32 %r5, %r5, 1; setp.eq.u32 %p1, %r5, 0; @%p1 bra A;
        bar.sync 0; ld.shared.u32 %r4, [%rd3]; bra B;
        A: bar.sync 0; ld.shared.u32 %r4, [%rd2];
        B: bar.sync 0; add.u32 %r4, %r4, 1; st.global.u32 [%out], %r4; ret;"
    );
    test(BOX, &body).check(SIZES, |t, n| if t / 32 % 2 == 0 { t + 1 } else { n - t });
}

#[test]
fn counted_and_named_barriers_do_as_in_the_interpreter() {
    // All threads, counted; then pairs of warps at barriers of their own; then all again.
    let body = format!(
        "{PLACES} st.shared.u32 [%rd2], %t; bar.sync 5, 128; ld.shared.u32 %r4, [%rd3]; bar.sync 0;
        setp.lt.u32 %p1, %t, 64; @%p1 bra A;
        bar.sync 2, 64; add.u32 %r4, %r4, 7; bar.sync 2, 64; bra B;
        A: bar.sync 1, 64; add.u32 %r4, %r4, 9; bar.sync 1, 64;
        B: bar.sync 15; st.shared.u32 [%rd2], %r4; bar.sync 0; ld.shared.u32 %r4, [%rd3]; st.global.u32 [%out], %r4; ret;"
    );
    test(BOX, &body).check(&[128], |t, _| t + if t >= 64 { 9 } else { 7 });
}

#[test]
fn a_counted_barrier_waits_for_warps_that_have_exited() {
    let body = "shr.u32 %r5, %t, 5; setp.eq.u32 %p1, %r5, 1; @%p1 ret; bar.sync 3, 96; st.global.u32 [%out], %t; ret;";
    let trap = test("", body).trap(96);
    assert!(trap.contains("64 of 96 threads have arrived"), "{trap}");
}

#[test]
fn warps_at_different_barriers_wait_for_ever() {
    let body = "bar.sync 0; setp.lt.u32 %p1, %t, 32; @%p1 bra A; bar.sync 1; bra B; A: bar.sync 2; B: st.global.u32 [%out], %t; ret;";
    let trap = test("", body).trap(100);
    assert!(trap.contains("barrier 1: 3 of 4 warps") && trap.contains("barrier 2: 1 of 4 warps"), "{trap}");
}

#[test]
fn arrivals_and_reductions_take_part_between_barriers() {
    // The upper half arrives, the lower one waits for it.
    let body = format!(
        "{PLACES} setp.ge.u32 %p1, %t, 64; bar.sync 0; @%p1 bra A;
        bar.sync 4, 128; ld.shared.u32 %r4, [%rd3]; bra B;
        A: st.shared.u32 [%rd2], %t; bar.arrive 4, 128; mov.u32 %r4, 1;
        B: bar.sync 0; and.b32 %r5, %t, 1; setp.eq.u32 %p2, %r5, 0; bar.red.popc.u32 %r6, 0, %p2; bar.sync 0;
        setp.lt.u32 %p3, %t, 200; bar.red.and.pred %p4, 0, %p3; bar.red.or.pred %p5, 1, !%p3;
        @%p4 add.u32 %r6, %r6, 1000; @%p5 add.u32 %r6, %r6, 5000; add.u32 %r4, %r4, %r6; st.global.u32 [%out], %r4; ret;"
    );
    test(BOX, &body).check(&[128], |t, n| 1000 + 64 + if t < 64 { n - 1 - t } else { 1 });
}

#[test]
fn a_trap_in_the_middle_of_a_cta_is_the_interpreters() {
    for (line, what) in [
        ("setp.eq.u32 %p1, %t, 77; @%p1 st.shared.u32 [%rd2+4096], %t;", "0x1134"),
        ("setp.eq.u32 %p1, %t, 77; @%p1 trap;", "`trap`"),
    ] {
        let body = format!(
            "{PLACES} st.shared.u32 [%rd2], %t; bar.sync 0; ld.shared.u32 %r4, [%rd3];\n{line}\nbar.sync 0;
            st.global.u32 [%out], %r4; ret;"
        );
        let trap = test(BOX, &body).trap(100);
        assert!(trap.contains(what) && trap.contains("(77,0,0)"), "{trap}");
    }
}

#[test]
fn functions_are_called_between_barriers() {
    let square = ".func (.reg .b32 %o) square(.reg .b32 %a) { .local .align 4 .b32 x[4]; .reg .b32 %q;
        mul.lo.u32 %q, %a, %a; st.local.u32 [x+4], %q; bar.sync 0; ld.local.u32 %o, [x+4]; ret; }";
    let body = format!(
        "{PLACES} st.shared.u32 [%rd2], %t; bar.sync 0; ld.shared.u32 %r4, [%rd3]; call (%r5), square, (%r4); bar.sync 0;
        st.shared.u32 [%rd2], %r5; bar.sync 0; ld.shared.u32 %r4, [%rd3]; st.global.u32 [%out], %r4; ret;"
    );
    test(&format!("{BOX}\n{square}"), &body).check(SIZES, |t, _| t * t);
}

#[test]
fn warps_that_wait_for_each_other_all_finish() {
    // A lock that each warp's lane 0 takes, and a chain: each warp waits until the one above it has passed.
    let body = format!(
        "{PLACES} mov.u32 %r9, 0; and.b32 %r5, %t, 31; shr.u32 %r6, %t, 5; setp.ne.u32 %p1, %r5, 0;
        setp.lt.u32 %p4, %t, 2; @%p4 st.shared.u32 [%rd2], %r9; bar.sync 0; @%p1 bra DONE;
        LOCK: atom.shared.cas.b32 %r7, [box], 0, 1; setp.ne.u32 %p2, %r7, 0; @%p2 bra LOCK;
        ld.volatile.shared.u32 %r8, [box+4]; add.u32 %r8, %r8, 1; st.volatile.shared.u32 [box+4], %r8;
        atom.shared.exch.b32 %r7, [box], 0;
        DONE: bar.sync 0; ld.shared.u32 %r8, [box+4]; bar.sync 0;
        mov.u32 %r10, %nwarpid; sub.u32 %r10, %r10, 1; sub.u32 %r10, %r10, %r6; setp.eq.u32 %p3, %t, 0; @%p3 st.volatile.shared.u32 [box], %r9;
        bar.sync 0;
        CHAIN: ld.volatile.shared.u32 %r7, [box]; setp.ne.u32 %p2, %r7, %r10; @%p2 bra CHAIN;
        bar.warp.sync 0xffffffff; @%p1 bra OUT; add.u32 %r7, %r7, 1; st.volatile.shared.u32 [box], %r7;
        OUT: st.global.u32 [%out], %r8; ret;"
    );
    let mut test = test(BOX, &body);
    test.ctas = 2;
    // The number of polls depends on the schedule, so only words are compared.
    for block in [32, 128, 1024] {
        for engine in [Engine::Interp, Engine::Jit] {
            let done = test.run(block, engine, None, None, &[2]);
            assert_eq!(done.trap, None);
            assert!(
                done.words.iter().all(|word| *word == block / 32),
                "{block} {engine:?}: {:?}",
                done.words
            );
        }
    }
}

#[test]
fn ctas_wait_for_each_other() {
    // CTA c waits until c - 1 has passed, in global memory.
    let before = ".global .align 4 .u32 passed;";
    let body = "bar.sync 0; setp.ne.u32 %p1, %t, 0; @%p1 bra DONE;
        L: ld.volatile.global.u32 %r1, [passed]; setp.ne.u32 %p2, %r1, %c; @%p2 bra L;
        add.u32 %r1, %r1, 1; membar.gl; st.volatile.global.u32 [passed], %r1;
        DONE: bar.sync 0; ld.volatile.global.u32 %r2, [passed]; setp.gt.u32 %p3, %r2, %c; selp.u32 %r3, 1, 0, %p3;
        st.global.u32 [%out], %r3; ret;";
    let mut test = test(before, body);
    test.ctas = 40;
    for threads in [1, 2, 4] {
        let done = test.run(64, Engine::Jit, None, None, &[threads]);
        assert_eq!(done.trap, None);
        assert!(done.words.iter().all(|word| *word == 1), "{:?}", done.words);
    }
}

#[test]
fn long_loops_between_barriers_go_on() {
    let body = format!(
        "{PLACES} mov.u32 %r2, 0; mov.u32 %r3, %t; L: add.u32 %r3, %r3, %r2; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 70000; @%p1 bra L;
        st.shared.u32 [%rd2], %r3; bar.sync 0; ld.shared.u32 %r4, [%rd3]; st.global.u32 [%out], %r4; ret;"
    );
    let sum = (0..70000u32).fold(0u32, |sum, i| sum.wrapping_add(i));
    test(BOX, &body).check(&[33, 128], move |t, n| (n - 1 - t).wrapping_add(sum));
}

#[test]
fn lanes_part_in_loops_of_different_lengths_between_barriers() {
    let body = format!(
        "{PLACES} mov.u32 %r2, 0; mov.u32 %r3, 0; and.b32 %r5, %t, 7; mul.lo.u32 %r5, %r5, 9000;
        L: setp.ge.u32 %p1, %r2, %r5; @%p1 bra E; add.u32 %r3, %r3, %r2; add.u32 %r2, %r2, 1; bra L;
        E: st.shared.u32 [%rd2], %r3; bar.sync 0; ld.shared.u32 %r4, [%rd3]; st.global.u32 [%out], %r4; ret;"
    );
    let sum = |t: u32| (0..t % 8 * 9000).fold(0u32, |sum, i| sum.wrapping_add(i));
    test(BOX, &body).check(&[33, 100], |t, n| sum(n - 1 - t));
}

#[test]
fn an_endless_loop_stops_when_its_time_is_up() {
    let body = "bar.sync 0; L: add.u32 %r1, %r1, 1; bra L; ret;";
    let test = test("", body);
    let vm = Vm::new().expect("a device");
    let kernel = vm.load("whole.ptx", &test.text).and_then(|module| module.kernel("k")).expect("a kernel");
    let words = vm.zeros::<u32>(1024).expect("memory");
    let launch = Launch::new([4, 1, 1], [256, 1, 1]).engine(Engine::Jit);
    let mut launch = launch.args(&kernel, &[Arg::buffer(&words)]).expect("one argument");
    launch.timeout = Some(Duration::from_millis(50));
    let start = Instant::now();
    let error = vm.launch(&kernel, &launch).expect_err("it has no end");
    assert!(error.to_string().contains("time"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn shared_and_local_memory_are_zero_where_a_cta_begins() {
    let body = format!(
        "{PLACES} .local .align 4 .b32 own[64]; and.b32 %r5, %t, 15; mul.wide.u32 %rd5, %r5, 4; mov.u64 %rd6, own; add.u64 %rd6, %rd6, %rd5;
        ld.shared.u32 %r4, [%rd2]; ld.local.u32 %r6, [%rd6]; add.u32 %r4, %r4, %r6; bar.sync 0;
        add.u32 %r7, %t, 1; st.shared.u32 [%rd2], %r7; st.local.u32 [%rd6], %r7; bar.sync 0;
        ld.local.u32 %r8, [%rd6]; add.u32 %r4, %r4, %r8; st.global.u32 [%out], %r4; ret;"
    );
    let mut test = test(BOX, &body);
    test.ctas = 20;
    test.check(&[1, 33, 256], |t, _| t + 1);
}

#[test]
fn events_and_steps_of_the_interpreter_count_in_native_ctas() {
    // `pmevent` has no native code: the interpreter's step runs in the warp's own state.
    let body = "pmevent 3; bar.sync 0; setp.lt.u32 %p1, %t, 40; @%p1 pmevent 5; mov.u32 %r1, %warpid; mov.u32 %r2, %laneid;
        mad.lo.u32 %r1, %r1, 32, %r2; bar.sync 0; st.global.u32 [%out], %r1; ret;";
    let test = test("", body);
    test.check(&[33, 100], |t, _| t);
    let done = test.run(100, Engine::Jit, None, None, &[1]);
    let ctas = u64::from(test.ctas);
    assert_eq!((done.events[3], done.events[5]), (ctas * 4, ctas * 2));
}

/// The events of warps that have ended in native code count where another warp leaves it: a barrier of one
/// warp is the interpreter's.
#[test]
fn events_of_warps_that_have_ended_count() {
    let body = "pmevent 3; setp.lt.u32 %p1, %t, 96; @%p1 bra B; barrier.sync 1, 32; pmevent 5;
        B: st.global.u32 [%out], %t; ret;";
    let test = test("", body);
    test.check(&[100], |t, _| t);
    let done = test.run(100, Engine::Jit, None, None, &[1]);
    let ctas = u64::from(test.ctas);
    assert_eq!((done.events[3], done.events[5]), (ctas * 4, ctas));
}

#[test]
fn many_ctas_on_many_threads_run_once_each() {
    let body = "atom.global.add.u32 %r1, [%out], 1; ret;";
    let mut test = test("", body);
    test.ctas = 20_000;
    let done = test.run(32, Engine::Jit, None, None, &[1, 2, 3, 8]);
    assert_eq!(done.trap, None);
    assert!(done.words.iter().all(|word| *word == 1));
}

#[test]
fn warps_that_run_as_one_vote_and_shuffle_by_themselves() {
    let body = "rem.u32 %r6, %t, 3; setp.eq.u32 %p1, %r6, 0; vote.sync.ballot.b32 %r7, %p1, -1; popc.b32 %r4, %r7;
        setp.lt.u32 %p2, %t, 45; vote.sync.all.pred %p3, %p2, -1; vote.sync.any.pred %p4, %p2, -1;
        @%p3 add.u32 %r4, %r4, 1000; @%p4 add.u32 %r4, %r4, 2000;
        shfl.sync.down.b32 %r8, %t, 1, 31, -1; add.u32 %r4, %r4, %r8;
        mul.lo.u32 %r9, %t, 5; and.b32 %r9, %r9, 31; shfl.sync.idx.b32 %r10, %t, %r9, 31, -1; add.u32 %r4, %r4, %r10;
        bar.sync 0; @!%p2 bra B; activemask.b32 %r11; popc.b32 %r11, %r11; add.u32 %r4, %r4, %r11;
        B: bar.sync 0; mov.u32 %r12, %warpid; mov.u32 %r13, %laneid; mad.lo.u32 %r4, %r12, 32, %r4; add.u32 %r4, %r4, %r13;
        st.global.u32 [%out], %r4; ret;";
    let expect = |t: u32, _| {
        let warp = t / 32 * 32;
        let threes = (warp..warp + 32).filter(|t| t % 3 == 0).count() as u32;
        let down = if t % 32 == 31 { t } else { t + 1 };
        let votes = if t < 32 {
            3000
        } else if t < 64 {
            2000
        } else {
            0
        };
        let active = if t < 32 {
            32
        } else if t < 45 {
            13
        } else {
            0
        };
        threes + votes + down + warp + t * 5 % 32 + active + t
    };
    test("", body).check(&[64, 128, 256, 1024], expect);
}

#[test]
fn warps_that_run_as_one_part_and_meet_again() {
    // A tree of sums in which fewer threads take part each time, as lanes of a warp and as whole warps.
    let body = format!(
        "{PLACES} mov.u32 %r9, 0; st.shared.u32 [%rd2], %t; shr.u32 %r5, %n, 1;
        LOOP: bar.sync 0; setp.ge.u32 %p1, %t, %r5; @%p1 bra SKIP;
        mul.wide.u32 %rd5, %r5, 4; add.u64 %rd5, %rd2, %rd5; ld.shared.u32 %r6, [%rd5]; ld.shared.u32 %r7, [%rd2];
        add.u32 %r6, %r6, %r7; st.shared.u32 [%rd2], %r6; add.u32 %r9, %r9, 1;
        SKIP: shr.u32 %r5, %r5, 1; setp.ne.u32 %p2, %r5, 0; @%p2 bra LOOP;
        bar.sync 0; ld.shared.u32 %r8, [%rd4]; mad.lo.u32 %r8, %r9, 1000000, %r8; st.global.u32 [%out], %r8; ret;"
    );
    let expect = |t: u32, n: u32| {
        let turns = (0..n.ilog2()).filter(|turn| t < n >> (turn + 1)).count() as u32;
        n * (n - 1) / 2 + turns * 1_000_000
    };
    test(BOX, &body).check(&[64, 128, 256, 1024], expect);
}

#[test]
fn warps_of_a_coarse_warp_that_splits_go_on_in_order() {
    // Some warps are at the call where the coarse warp splits; the others are already behind it.
    let before = ".shared .align 4 .u32 count;
        .func (.reg .b32 %o) plus(.reg .b32 %a) { .reg .b32 %q; add.u32 %q, %a, 1; mov.u32 %o, %q; ret; }";
    for jumps in ["lt.u32 %p1, %t, 32", "ge.u32 %p1, %t, 32"] {
        let body = format!(
            "setp.{jumps}; bar.sync 0; @%p1 bra A; call (%r2), plus, (%t);
            A: atom.shared.add.u32 %r3, [count], 1; bar.sync 0; st.global.u32 [%out], %r3; ret;"
        );
        test(before, &body).check(&[64, 128], |t, _| t);
    }
}

#[test]
fn searches_and_retries_by_comparison_stay_in_native_code() {
    // Each thread enters its number in a table, from a slot on that up to four threads share. Longer searches
    // could show where groups of lanes take turns, which differs between the engines.
    let search = "
        mov.u64 %rd4, slots; and.b32 %r1, %t, 63; shl.b32 %r1, %r1, 2; add.u32 %r9, %t, 1;
        L: and.b32 %r1, %r1, 511; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd4, %rd2;
        atom.shared.cas.b32 %r2, [%rd2], 0, %r9; add.u32 %r1, %r1, 1; setp.ne.u32 %p1, %r2, 0; @%p1 bra L;
        bar.sync 0; ld.shared.u32 %r3, [%rd2]; st.global.u32 [%out], %r3; ret;";
    // Eight sums by comparison: each turn compares with what the last one found.
    let retry = "
        mov.u64 %rd4, slots; and.b32 %r4, %t, 7; mul.wide.u32 %rd2, %r4, 4; add.u64 %rd2, %rd4, %rd2; ld.shared.u32 %r1, [%rd2];
        L: add.u32 %r2, %r1, 3; mov.u32 %r3, %r1; atom.shared.cas.b32 %r1, [%rd2], %r3, %r2; setp.ne.u32 %p1, %r1, %r3; @%p1 bra L;
        bar.sync 0; ld.shared.u32 %r3, [%rd2]; st.global.u32 [%out], %r3; ret;";
    let slots = ".shared .align 4 .b32 slots[512];";
    test(slots, search).check(&[64, 100, 256], |t, _| t + 1);
    test(slots, retry).check(&[64, 100, 256], |t, n| 3 * (n - t % 8).div_ceil(8));
    for body in [search, retry] {
        assert_eq!(test(slots, body).interpreted(256, 1), 0, "{body}");
    }
    // A loop that asks one place for one value waits: the interpreter executes its comparison.
    let wait = "
        mov.u64 %rd2, slots; shr.u32 %r9, %t, 5; add.u32 %r8, %r9, 1;
        L: atom.shared.cas.b32 %r2, [%rd2], %r9, %r8; setp.ne.u32 %p1, %r2, %r9; setp.lt.u32 %p2, %r2, %r8; and.pred %p1, %p1, %p2; @%p1 bra L;
        st.global.u32 [%out], %t; ret;";
    test(slots, wait).check(&[64], |t, _| t);
    assert!(test(slots, wait).interpreted(64, 1) > 0);
}

#[test]
fn any_number_of_first_lanes_runs_a_piece_of_a_loop() {
    // Those before, and those up to, a number that changes in each iteration; and all the others. Lanes that
    // are off would reach beyond what there is of shared memory.
    let boxes = ".shared .align 4 .b32 box[1024]; .shared .align 4 .b32 behind[1024];";
    for (skip, runs) in [
        ("setp.ge.u32 %p1, %t, %r5; @%p1", (|t, h| t < h) as fn(i32, i32) -> bool),
        ("setp.lt.s32 %p1, %t, %r5; @!%p1", |t, h| t < h),
        ("setp.gt.s32 %p1, %r5, %t; @!%p1", |t, h| t < h),
        ("setp.lt.s32 %p1, %r5, %t; @%p1", |t, h| t <= h),
        ("setp.le.u32 %p1, %t, %r5; @!%p1", |t, h| t <= h),
        ("setp.lt.s32 %p1, %t, %r5; @%p1", |t, h| t >= h),
    ] {
        let signed = skip.contains("s32");
        let body = format!(
            "{PLACES} mov.u64 %rd5, behind; mul.wide.u32 %rd6, %t, 4; add.u64 %rd7, %rd5, %rd6; st.shared.u32 [%rd2], %t;
            mul.lo.u32 %r8, %t, 5; st.shared.u32 [%rd7], %r8; mov.u32 %r3, 0; bar.sync 0;
            L: mul.lo.u32 %r4, %r3, 37; rem.u32 %r5, %r4, 150; SIGN
            {skip} bra S;
            sub.u32 %r9, 1023, %r5; min.u32 %r9, %r9, 1023; add.u32 %r10, %r9, %t; and.b32 %r10, %r10, MASK; mul.wide.u32 %rd8, %r10, 4;
            add.u64 %rd8, %rd5, %rd8; ld.shared.u32 %r6, [%rd2]; ld.shared.u32 %r11, [%rd8]; mad.lo.u32 %r6, %r6, 3, %r11;
            add.u32 %r6, %r6, %r5; st.shared.u32 [%rd2], %r6;
            S: bar.sync 0; add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 40; @%p2 bra L;
            ld.shared.u32 %r7, [%rd2]; st.global.u32 [%out], %r7; ret;"
        );
        let body = body.replace("SIGN", if signed { "sub.u32 %r5, %r5, 9;" } else { "" });
        // Lanes that run stay within by themselves, where they are the first ones.
        let within = skip.contains("ge.u32") || skip.contains("le.u32");
        let body = body.replace("MASK", if within { "2047" } else { "1023" });
        test(boxes, &body).check(&[96, 256], |t, n| {
            let mut word = t;
            for turn in 0..40u32 {
                let h = (turn * 37 % 150) as i32 - if signed { 9 } else { 0 };
                if runs(t as i32, h) {
                    let at = (1023u32.wrapping_sub(h as u32)).min(1023).wrapping_add(t)
                        & if within { 2047 } else { 1023 };
                    let other = if at < n { at * 5 } else { 0 };
                    word = word.wrapping_mul(3).wrapping_add(other).wrapping_add(h as u32);
                }
            }
            word
        });
    }
}

#[test]
fn loops_go_on_for_lanes_that_wrap_around() {
    // Lanes are compared with a limit at the ends of the numbers, where some have wrapped around.
    for (ty, cmp, start, step, limit) in [
        ("s32", "lt", 0x7fff_fc00u32, 129u32, 0x7fff_ff00u32),
        ("s32", "le", 0x7fff_fc00, 129, 0x7fff_ffff),
        ("s32", "ge", 0x7fff_ff80, 0u32.wrapping_sub(61), 0x7fff_fe00),
        ("s32", "gt", 0x8000_0000, 61, 0x8000_0040),
        ("u32", "lt", 0xffff_fd00, 130, 0xffff_ff80),
        ("u32", "ge", 0xffff_ff90, 0u32.wrapping_sub(70), 0xffff_fe00),
        ("u32", "gt", 0, 61, 0x40),
        ("s32", "lt", 0, 100, 777),
    ] {
        for negated in [false, true] {
            let (cmp_here, guard) = match (cmp, negated) {
                ("lt", true) => ("ge", "@!%p1"),
                ("le", true) => ("gt", "@!%p1"),
                ("ge", true) => ("lt", "@!%p1"),
                ("gt", true) => ("le", "@!%p1"),
                _ => (cmp, "@%p1"),
            };
            let body = format!(
                "add.u32 %r1, %t, {start}; mov.u32 %r2, 0; mov.u32 %r3, 0; mov.u32 %r9, {limit}; bar.sync 0;
                L: mad.lo.u32 %r2, %r2, 3, %r1; add.u32 %r1, %r1, {step}; add.u32 %r3, %r3, 1; setp.ge.u32 %p2, %r3, 9; @%p2 bra D;
                setp.{cmp_here}.{ty} %p1, %r1, %r9; {guard} bra L;
                D: bar.sync 0; xor.b32 %r2, %r2, %r3; st.global.u32 [%out], %r2; ret;"
            );
            test("", &body).check(if negated { &[256] } else { &[64] }, |t, _| {
                let (mut i, mut word, mut turns) = (start.wrapping_add(t), 0u32, 0u32);
                loop {
                    word = word.wrapping_mul(3).wrapping_add(i);
                    i = i.wrapping_add(step);
                    turns += 1;
                    let (a, b) = if ty == "s32" {
                        (i as i32 as i64, limit as i32 as i64)
                    } else {
                        (i.into(), limit.into())
                    };
                    let on = match cmp {
                        "lt" => a < b,
                        "le" => a <= b,
                        "gt" => a > b,
                        _ => a >= b,
                    };
                    if turns >= 9 || !on {
                        return word ^ turns;
                    }
                }
            });
        }
    }
}

#[test]
fn lanes_whose_place_decides_store_one_by_one() {
    // One lane of each warp, two, and all to one place, of which the last stays; what decides is known before
    // the code runs, across barriers and in loops too.
    let body = format!(
        "{PLACES} and.b32 %r1, %t, 31; setp.eq.u32 %p1, %r1, 31; setp.eq.u32 %p2, %r1, 3; and.b32 %r2, %r1, 15; setp.eq.u32 %p3, %r2, 7;
        shr.u32 %r3, %t, 5; mul.wide.u32 %rd5, %r3, 4; add.u64 %rd5, %rd4, %rd5; shr.u32 %r4, %t, 4; mul.wide.u32 %rd6, %r4, 4;
        add.u64 %rd6, %rd4, %rd6; mov.u32 %r5, 0; bar.sync 0;
        L: @!%p1 bra A; st.shared.u32 [%rd5], %t; A: bar.sync 0; @!%p2 bra B; st.shared.u32 [%rd5+128], %t; B: bar.sync 0;
        @!%p3 bra C; st.shared.v2.u32 [box+512], {{%r1, %r2}}; C: st.shared.u32 [%rd6+1024], %t; bar.sync 0;
        add.u32 %r5, %r5, 1; setp.lt.u32 %p4, %r5, 3; @%p4 bra L;
        ld.shared.u32 %r6, [%rd5]; ld.shared.u32 %r7, [%rd5+128]; ld.shared.v2.u32 {{%r8, %r9}}, [box+512]; ld.shared.u32 %r10, [%rd6+1024];
        mad.lo.u32 %r6, %r6, 31, %r7; mad.lo.u32 %r6, %r6, 31, %r8; mad.lo.u32 %r6, %r6, 31, %r9; mad.lo.u32 %r6, %r6, 31, %r10;
        st.global.u32 [%out], %r6; ret;"
    );
    test(".shared .align 8 .b32 box[1024];", &body).check(&[32, 128, 1024], |t, _| {
        let warp = t / 32 * 32;
        [warp + 31, warp + 3, 23, 7, t | 15]
            .iter()
            .fold(0u32, |word, next| word.wrapping_mul(31).wrapping_add(*next))
    });
}

#[test]
fn joined_tests_of_places_hold_in_each_lane() {
    // Numbers of threads, also where they wrap around, against limits within warps and at their ends, joined
    // with what is the same in all lanes.
    type Holds = fn(u32, u32) -> bool;
    let comparisons: [(&str, Holds); 6] = [
        ("lt.s32", |a, b| (a as i32) < b as i32),
        ("ge.s32", |a, b| a as i32 >= b as i32),
        ("gt.u32", |a, b| a > b),
        ("le.u32", |a, b| a <= b),
        ("eq.b32", |a, b| a == b),
        ("ne.s32", |a, b| a != b),
    ];
    for start in [0u32, 0x7fff_ffe0, 0xffff_ff41] {
        for (at, (name, holds)) in comparisons.into_iter().enumerate() {
            let other = comparisons[(at + 5) % 6];
            let (a, b) = (start.wrapping_add(95), start.wrapping_add([64, 31, 100][at % 3]));
            let (first, second) = [("and", "and"), ("or", "and"), ("and", "or"), ("or", "or")][at % 4];
            let guard = if at % 2 == 0 { "@%p5" } else { "@!%p5" };
            let body = format!(
                "add.u32 %r1, %g, {start}; mov.u32 %r8, {a}; setp.{name} %p1, %r1, %r8; setp.{} %p2, %r8, %r1; setp.ne.b32 %p3, %r1, {b};
                setp.lt.u32 %p6, %c, 13; {first}.pred %p4, %p1, %p3; {second}.pred %p5, %p4, %p6; or.pred %p7, %p2, %p3;
                {first}.pred %p5, %p5, %p7; mov.u32 %r2, 7;
                {guard} bra X; mul.lo.u32 %r2, %r1, 3; X: st.global.u32 [%out], %r2; ret;",
                other.0
            );
            for block in [32, 96] {
                let test = test("", &body);
                let done = test.everywhere(block);
                assert_eq!(done.trap, None);
                for (g, word) in done.words.iter().enumerate() {
                    let g = g as u32;
                    let x = start.wrapping_add(g);
                    let join = |how: &str, a: bool, b: bool| if how == "and" { a && b } else { a || b };
                    let near = join(first, holds(x, a), x != b);
                    let near = join(second, near, g / block < 13);
                    let near = join(first, near, (other.1)(a, x) || x != b);
                    let want = if near == (at % 2 == 0) { 7 } else { x.wrapping_mul(3) };
                    assert_eq!(*word, want, "thread {g} of {block}: {}", test.text);
                }
            }
        }
    }
}

#[test]
fn lanes_beside_a_border_load_only_what_is_theirs() {
    // The ones copy, the others add up their neighbours; those of the first and the last thread are not
    // there.
    let count = 17 * 96;
    let values: Vec<u32> = (0..count).map(|at| at * at % 1009).collect();
    let list: Vec<String> = values.iter().map(u32::to_string).collect();
    let array = format!(".global .align 4 .u32 a[{count}] = {{{}}};", list.join(", "));
    for (low, high) in [(0, count - 1), (1, count - 2), (40, 900), (33, 95)] {
        let body = format!(
            "mov.u64 %rd2, a; mul.wide.u32 %rd3, %g, 4; add.u64 %rd4, %rd2, %rd3; setp.gt.u32 %p1, %g, {low}; setp.lt.u32 %p2, %g, {high};
            and.pred %p3, %p1, %p2; @%p3 bra I; ld.global.u32 %r1, [%rd4]; bra.uni D;
            I: ld.global.u32 %r1, [%rd4+-4]; ld.global.u32 %r2, [%rd4+4]; ld.global.u32 %r3, [%out+-4]; ld.global.u32 %r4, [%out+4];
            and.b32 %r3, %r3, 0; and.b32 %r4, %r4, 0; add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3; add.u32 %r1, %r1, %r4;
            D: st.global.u32 [%out], %r1; ret;"
        );
        let test = test(&array, &body);
        let done = test.everywhere(96);
        assert_eq!(done.trap, None);
        for (g, word) in done.words.iter().enumerate() {
            let inner = g > low as usize && g < high as usize;
            let want = if inner { values[g - 1] + values[g + 1] } else { values[g] };
            assert_eq!(*word, want, "thread {g}: {}", test.text);
        }
    }
    // Where a lane's own neighbour is not there, that is a trap.
    let body = "setp.ge.u32 %p1, %g, 16; mov.u32 %r1, 0; @%p1 bra D; ld.global.u32 %r1, [%out+-4]; D: st.global.u32 [%out], %r1; ret;";
    let trap = test("", body).trap(64);
    assert!(trap.contains("thread (0,0,0)") || trap.contains("ld.global"), "{trap}");
}

#[test]
fn lanes_that_run_load_rows_of_clamped_places() {
    // Indices one after another but at an edge, or but for one lane that runs, or only for lanes that do not;
    // with sign and without.
    let count = 17 * 96;
    let values: Vec<u32> = (0..count).map(|at| at * 7 % 1013).collect();
    let list: Vec<String> = values.iter().map(u32::to_string).collect();
    let array = format!(".global .align 4 .u32 a[{count}] = {{{}}};", list.join(", "));
    for (lanes, odd, ty) in
        [(32, 99, "s32"), (32, 17, "u32"), (4, 99, "s32"), (4, 2, "s32"), (20, 25, "u32"), (20, 0, "s32")]
    {
        let body = format!(
            "mov.u64 %rd2, a; mov.u32 %r2, 0; and.b32 %r3, %t, 31; setp.eq.u32 %p2, %r3, {odd}; selp.u32 %r4, 11, 0, %p2; add.u32 %r5, %g, %r4;
            max.{ty} %r5, %r5, 3; min.{ty} %r5, %r5, {}; mul.wide.{ty} %rd3, %r5, 4; add.u64 %rd3, %rd2, %rd3;
            setp.ge.u32 %p1, %r3, {lanes}; @%p1 bra D; ld.global.u32 %r2, [%rd3+-12]; D: st.global.u32 [%out], %r2; ret;",
            count - 5
        );
        let test = test(&array, &body);
        let done = test.everywhere(96);
        assert_eq!(done.trap, None);
        for (g, word) in done.words.iter().enumerate() {
            let lane = g % 96 % 32;
            let at = (g + if lane == odd { 11 } else { 0 }).clamp(3, count as usize - 5);
            assert_eq!(*word, if lane < lanes { values[at - 3] } else { 0 }, "thread {g}: {}", test.text);
        }
    }
}
