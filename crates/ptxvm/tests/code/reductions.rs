//! Barriers that reduce a predicate (PTX ISA §9.7.12.1) in CTAs that run in native code.
//!
//! Each kernel stores one word per thread. The word is also computed here from the thread's number. In
//! addition, native code must agree with the interpreter ([`everywhere`]).
#![cfg(feature = "jit")]

use crate::everywhere::test;

const SIZES: &[u32] = &[1, 33, 64, 100, 256, 1024];

/// Five barriers of each form, in a loop, with predicates that hold for other threads each time.
const LOOP: &str = "
    mov.u32 %r2, 0; mov.u32 %r3, 0;
    L: mul.lo.u32 %r5, %r3, 40; setp.lt.u32 %p1, %t, %r5;
    bar.red.popc.u32 %r4, 0, %p1; bar.red.and.pred %p2, 0, %p1; bar.red.or.pred %p3, 1, !%p1;
    mad.lo.u32 %r2, %r2, 3, %r4; @%p2 add.u32 %r2, %r2, 1000; @%p3 add.u32 %r2, %r2, 50000;
    add.u32 %r3, %r3, 1; setp.lt.u32 %p4, %r3, 5; @%p4 bra L;
    st.global.u32 [%out], %r2; ret;
";

fn loops(n: u32) -> u32 {
    (0..5).fold(0, |sum, turn| {
        let below = n.min(40 * turn);
        let all = if below == n { 1000 } else { 0 };
        sum * 3 + below + all + if below < n { 50000 } else { 0 }
    })
}

#[test]
fn a_loop_of_reductions_counts_and_tests_all_threads() {
    test("", LOOP).check(SIZES, |_, n| loops(n));
}

#[test]
fn the_result_may_replace_the_predicate_and_may_be_unused() {
    let body = "
        setp.lt.u32 %p1, %t, 20; setp.ge.u32 %p2, %t, 500; mov.u32 %r2, 0; setp.eq.u32 %p3, %n, 33;
        bar.red.or.pred %p1, 0, %p1; @%p1 add.u32 %r2, %r2, 1;
        bar.red.and.pred %p2, 0, !%p2; @%p2 add.u32 %r2, %r2, 2;
        bar.red.popc.u32 %r3, 0, %p1; bar.red.popc.u32 %r4, 0, %p3; add.u32 %r2, %r2, %r4;
        @%p1 add.u32 %r2, %r2, %t; st.global.u32 [%out], %r2; ret;";
    test("", body).check(SIZES, |t, n| 1 + if n <= 500 { 2 } else { 0 } + if n == 33 { n } else { 0 } + t);
}

#[test]
fn exited_threads_are_not_counted() {
    for exited in [1, 16, 32, 48, 96, 200] {
        let body = format!(
            "mov.u32 %r2, 7; setp.lt.u32 %p1, %t, {exited}; @%p1 st.global.u32 [%out], %r2; @%p1 exit;
            and.b32 %r3, %t, 1; setp.eq.u32 %p2, %r3, 0;
            bar.red.popc.u32 %r4, 0, %p2; setp.ge.u32 %p3, %t, {exited}; bar.red.and.pred %p4, 0, %p3; bar.red.or.pred %p5, 0, !%p3;
            @%p4 add.u32 %r4, %r4, 1000; @%p5 add.u32 %r4, %r4, 5000; st.global.u32 [%out], %r4; ret;"
        );
        let expect = move |t: u32, n: u32| {
            if t < exited { 7 } else { 1000 + (exited..n).filter(|t| t % 2 == 0).count() as u32 }
        };
        test("", &body).check(&[33, 64, 100, 256], expect);
    }
}

#[test]
fn lanes_and_warps_that_part_meet_at_different_instructions() {
    // Lanes of each warp; then whole warps.
    for bit in [1, 32] {
        let body = format!(
            "and.b32 %r2, %t, {bit}; setp.eq.u32 %p1, %r2, 0; and.b32 %r3, %t, 7; setp.eq.u32 %p2, %r3, 3; @%p1 bra A;
            barrier.red.popc.u32 %r4, 0, %p2; bra B;
            A: barrier.red.popc.u32 %r4, 0, !%p2; add.u32 %r4, %r4, 1000;
            B: barrier.red.popc.u32 %r5, 0, %p1; mad.lo.u32 %r4, %r5, 10000, %r4; st.global.u32 [%out], %r4; ret;"
        );
        test("", &body).check(SIZES, |t, n| {
            let apart = |t: u32| t & bit == 0;
            let counts = |t: &u32| (t & 7 == 3) != apart(*t);
            let found = (0..n).filter(counts).count() as u32;
            let more = if apart(t) { 1000 } else { 0 };
            found + more + 10000 * (0..n).filter(|t| apart(*t)).count() as u32
        });
    }
}

#[test]
fn counted_and_named_barriers_reduce_for_their_participants() {
    // All threads, counted; then pairs of warps at barriers of their own, with other forms; then all again.
    let body = "
        setp.lt.u32 %p1, %t, 64; and.b32 %r2, %t, 3; setp.eq.u32 %p2, %r2, 0;
        bar.red.popc.u32 %r4, 5, 128, %p2; @%p1 bra A;
        bar.red.popc.u32 %r5, 2, 64, %p2; add.u32 %r4, %r4, %r5; bra B;
        A: bar.red.or.pred %p3, 1, 64, %p2; bar.red.and.pred %p4, 1, 64, %p1;
        @%p3 add.u32 %r4, %r4, 100; @%p4 add.u32 %r4, %r4, 200;
        B: bar.red.popc.u32 %r5, 15, %p1; mad.lo.u32 %r4, %r5, 1000, %r4; st.global.u32 [%out], %r4; ret;";
    test("", body).check(&[128], |t, _| 64000 + 32 + if t < 64 { 300 } else { 16 });
}

#[test]
fn a_counted_reduction_waits_for_warps_that_have_exited() {
    let body = "shr.u32 %r5, %t, 5; setp.eq.u32 %p1, %r5, 1; @%p1 ret; bar.red.popc.u32 %r6, 3, 96, %p1; st.global.u32 [%out], %r6; ret;";
    let trap = test("", body).trap(96);
    assert!(trap.contains("64 of 96 threads have arrived"), "{trap}");
}

#[test]
fn forms_that_differ_on_one_barrier_are_a_trap() {
    for other in ["bar.sync 0;", "bar.red.or.pred %p2, 0, %p1;", "bar.red.popc.u32 %r6, 0, %p1;"] {
        for first in ["setp.lt.u32 %p1, %t, 32;", "setp.ge.u32 %p1, %t, 32;"] {
            let body = format!(
                "bar.sync 0; {first} @%p1 bra A; bar.red.and.pred %p2, 0, %p1; bra B; A: {other} B: st.global.u32 [%out], %t; ret;"
            );
            let trap = test("", &body).trap(100);
            assert!(trap.contains("reductions mixed with other forms"), "{trap}");
        }
    }
}

#[test]
fn barriers_of_different_forms_alternate() {
    // Warps that come first at the next barrier add to its count while others have not read the last result.
    let body = "
        shr.u32 %r2, %t, 5; setp.eq.u32 %p1, %r2, 0; and.b32 %r3, %t, 1; setp.eq.u32 %p2, %r3, 0; mov.u32 %r7, 0;
        bar.red.popc.u32 %r4, 0, %p1; @%p2 add.u32 %r7, %r7, %r4; bar.sync 0; bar.red.popc.u32 %r5, 0, %p2; bar.red.and.pred %p3, 1, %p2;
        bar.red.popc.u32 %r6, 0, !%p2; mad.lo.u32 %r7, %r5, 2000, %r7; add.u32 %r7, %r7, %r6; @%p3 add.u32 %r7, %r7, 100000;
        st.global.u32 [%out], %r7; ret;";
    test("", body).check(SIZES, |t, n| {
        let first = if t % 2 == 0 { n.min(32) } else { 0 };
        first + n.div_ceil(2) * 2000 + n / 2 + if n == 1 { 100_000 } else { 0 }
    });
}

#[test]
fn results_survive_where_the_cta_leaves_native_code() {
    let call =
        ".func (.reg .b32 %o) plus(.reg .b32 %a) { .reg .b32 %q; add.u32 %q, %a, 1; mov.u32 %o, %q; ret; }";
    // One warp leaves between two reductions, with warps on both sides of the first or before the second.
    for (form, result) in [
        ("bar.red.popc.u32 %r4, 0, %p1;", ""),
        ("bar.red.and.pred %p3, 0, %p1;", "selp.u32 %r4, 1, 0, %p3;"),
        ("bar.red.or.pred %p3, 0, %p1;", "selp.u32 %r4, 1, 0, %p3;"),
    ] {
        for warp in [0, 1, 2] {
            let body = format!(
                "setp.lt.u32 %p1, %t, 40; shr.u32 %r2, %t, 5; setp.ne.u32 %p2, %r2, {warp}; mov.u32 %r6, 0;
                {form} {result} @%p2 bra A; call (%r6), plus, (%r6);
                A: mad.lo.u32 %r6, %r4, 100, %r6; not.pred %p1, %p1; {form} {result} mad.lo.u32 %r6, %r4, 10000, %r6;
                st.global.u32 [%out], %r6; ret;"
            );
            test(call, &body).check(&[33, 64, 100, 128], |t, n| {
                let reduce = |holds: &dyn Fn(u32) -> bool| match form.as_bytes()[8] {
                    b'p' => (0..n).filter(|t| holds(*t)).count() as u32,
                    b'a' => u32::from((0..n).all(holds)),
                    _ => u32::from((0..n).any(holds)),
                };
                u32::from(t / 32 == warp) + 100 * reduce(&|t| t < 40) + 10000 * reduce(&|t| t >= 40)
            });
        }
    }
}

#[test]
fn a_trap_between_reductions_is_the_interpreters() {
    let body = "
        setp.lt.u32 %p1, %t, 40; bar.red.popc.u32 %r4, 0, %p1; setp.eq.u32 %p2, %t, 77; @%p2 trap;
        bar.red.popc.u32 %r5, 0, !%p1; add.u32 %r4, %r4, %r5; st.global.u32 [%out], %r4; ret;";
    let trap = test("", body).trap(100);
    assert!(trap.contains("`trap`") && trap.contains("(77,0,0)"), "{trap}");
}

#[test]
fn reductions_stay_in_native_code() {
    for team in [1, 2, 8] {
        assert_eq!(test("", LOOP).interpreted(256, team), 0, "{team} warps as one");
    }
}

#[test]
fn barriers_and_calls_that_leave_native_code_are_counted_as_interpreted() {
    // Two warps, 17 CTAs: each warp executes one barrier for half of the CTA.
    let body = "shr.u32 %r2, %t, 5; bar.sync %r2, 32; st.global.u32 [%out], %t; ret;";
    assert_eq!(test("", body).interpreted(64, 1), 2 * 17);
    // A function that may call itself is not inlined.
    let function = ".func plus() { .reg .pred %p; setp.ne.u32 %p, 0, 0; @%p call plus; ret; }";
    assert!(test(function, "call plus; st.global.u32 [%out], %t; ret;").interpreted(64, 1) >= 2 * 17);
}
