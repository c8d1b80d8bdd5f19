//! Butterflies: all lanes of a warp combine their values in five exchanges, so that each gets the same
//! result, which native code then computes with once for the warp.
//!
//! Each kernel stores one word per thread. The word is also computed here, lane by lane. In addition, native
//! code must agree with the interpreter ([`everywhere`]).
#![cfg(feature = "jit")]

use crate::everywhere::test;

const SIZES: &[u32] = &[1, 32, 33, 64, 100, 256];

/// The exchanges and operations of a butterfly on `%r2`, or `%f1` for floating point.
fn butterfly(op: &str, steps: &[u32]) -> String {
    let [value, other] = if op.contains(".f32") { ["%f1", "%f2"] } else { ["%r2", "%r3"] };
    let step = |bit: &u32| {
        format!("shfl.sync.bfly.b32 {other}, {value}, {bit}, 31, -1; {op} {value}, {other}, {value};\n")
    };
    steps.iter().map(step).collect()
}

/// The values of a warp's lanes after a butterfly. A lane without a thread gives zero.
fn combined(
    first: u32,
    n: u32,
    value: impl Fn(u32) -> u32,
    steps: &[u32],
    op: impl Fn(u32, u32) -> u32,
) -> Vec<u32> {
    let lanes = (n - first).min(32) as usize;
    let mut values: Vec<u32> = (first..n).take(32).map(value).collect();
    for step in steps {
        let given = |lane: usize| values.get(lane ^ *step as usize).copied().unwrap_or(0);
        values = (0..lanes).map(|lane| op(given(lane), values[lane])).collect();
    }
    values
}

type Op = fn(u32, u32) -> u32;

/// An operation on floating-point numbers without NaNs.
fn float(op: fn(f32, f32) -> f32, a: u32, b: u32) -> u32 {
    op(f32::from_bits(a), f32::from_bits(b)).to_bits()
}

const OPS: &[(&str, Op)] = &[
    ("add.u32", u32::wrapping_add),
    ("mul.lo.u32", u32::wrapping_mul),
    ("min.s32", |a, b| a.cast_signed().min(b.cast_signed()).cast_unsigned()),
    ("max.u32", u32::max),
    ("and.b32", |a, b| a & b),
    ("or.b32", |a, b| a | b),
    ("xor.b32", |a, b| a ^ b),
    // These do not commute: lanes get different results.
    ("sub.u32", u32::wrapping_sub),
    ("shl.b32", |a, b| if b < 32 { a << b } else { 0 }),
    ("add.f32", |a, b| float(|a, b| a + b, a, b)),
    ("max.f32", |a, b| float(f32::max, a, b)),
    ("sub.f32", |a, b| float(|a, b| a - b, a, b)),
];

/// The orders of steps, the last ones without one that is needed.
const STEPS: &[&[u32]] = &[
    &[16, 8, 4, 2, 1],
    &[1, 2, 4, 8, 16],
    &[4, 16, 1, 2, 8],
    &[16, 8, 2, 1],
    &[8, 4, 2, 1, 3],
    &[16, 8, 4, 2, 1, 16],
];

#[test]
fn a_result_is_used_by_arithmetic_branches_and_loops() {
    let start = "mad.lo.u32 %r2, %t, %t, 3; mad.lo.u32 %r2, %c, 0, %r2; cvt.rn.f32.u32 %f1, %r2;";
    // The result times 7, plus 100,000 if its bit 1 is set, and then plus the thread's number in each of up
    // to three iterations.
    let uses = "and.b32 %r4, %r2, 3; mul.lo.u32 %r5, %r2, 7;
        setp.gt.u32 %p1, %r4, 1; @!%p1 bra A; add.u32 %r5, %r5, 100000;
        A: setp.eq.u32 %p2, %r4, 0; @%p2 bra C;
        B: add.u32 %r5, %r5, %t; sub.u32 %r4, %r4, 1; setp.ne.u32 %p3, %r4, 0; @%p3 bra B;
        C: st.global.u32 [%out], %r5; ret;";
    for (number, (name, op)) in OPS.iter().enumerate() {
        let sizes = if number == 0 { SIZES } else { &[33, 64] };
        // All steps, and one more list.
        for steps in [STEPS[0], STEPS[1 + number % (STEPS.len() - 1)]] {
            let floats = name.contains(".f32");
            let bits = if floats { "mov.b32 %r2, %f1;" } else { "" };
            let body = format!("{start}\n{}{bits}\n{uses}", butterfly(name, steps));
            let value = |t: u32| if floats { ((t * t + 3) as f32).to_bits() } else { t * t + 3 };
            test("", &body).check(sizes, |t, n| {
                let all = combined(t / 32 * 32, n, value, steps, op);
                let result = all[t as usize % 32];
                let low = result & 3;
                let more = if low > 1 { 100_000 } else { 0 };
                result.wrapping_mul(7).wrapping_add(more).wrapping_add(low * t)
            });
        }
    }
}

#[test]
fn lanes_that_part_get_what_their_half_has() {
    // Even and odd lanes execute butterflies of their own; members are the lanes of each half.
    let half = |members: &str| {
        [16, 8, 4, 2]
            .map(|bit| format!("shfl.sync.bfly.b32 %r3, %r2, {bit}, 31, {members}; add.u32 %r2, %r2, %r3;\n"))
    };
    let body = format!(
        "add.u32 %r2, %t, 1; and.b32 %r4, %t, 1; setp.eq.u32 %p1, %r4, 0; @%p1 bra E;
        {} bra J; E: {} J: mul.lo.u32 %r2, %r2, 3; st.global.u32 [%out], %r2; ret;",
        half("0xaaaaaaaa").concat(),
        half("0x55555555").concat()
    );
    test("", &body).check(&[32, 64, 256], |t, _| {
        let first = t / 32 * 32;
        3 * (first..first + 32).filter(|other| other % 2 == t % 2).map(|other| other + 1).sum::<u32>()
    });
}

#[test]
fn a_nan_of_any_lane_gives_the_same_bits_to_all() {
    for (op, gives) in [("add.f32", 0x7fff_ffff), ("mul.f32", 0x7fff_ffff)] {
        // Two lanes have NaNs with different payloads; the others have numbers.
        let body = format!(
            "cvt.rn.f32.u32 %f1, %t; and.b32 %r4, %t, 31; add.u32 %r5, %r4, 0x7fc00001;
            setp.eq.u32 %p1, %r4, 3; @%p1 mov.b32 %f1, %r5; setp.eq.u32 %p2, %r4, 20; @%p2 mov.b32 %f1, %r5;
            {} mov.b32 %r2, %f1; st.global.u32 [%out], %r2; ret;",
            butterfly(op, &[16, 8, 4, 2, 1])
        );
        test("", &body).check(&[32, 64, 256], |_, _| gives);
    }
}

#[test]
fn a_broadcast_is_the_value_of_its_lane() {
    let body = "mad.lo.u32 %r2, %t, %t, 3; shfl.sync.idx.b32 %r3, %r2, 5, 31, -1;
        shfl.sync.idx.b32 %r4, %r2, 2, 0x181f, -1; setp.gt.u32 %p1, %r3, 3000; @%p1 add.u32 %r3, %r3, 1;
        mad.lo.u32 %r3, %r4, 5, %r3; st.global.u32 [%out], %r3; ret;";
    test("", body).check(&[32, 64, 256], |t, _| {
        let of = |lane: u32| lane * lane + 3;
        let five = of(t / 32 * 32 + 5);
        of(t / 8 * 8 + 2) * 5 + five + u32::from(five > 3000)
    });
}
