//! Clamped, wrapped and divided indices: native code has versions of the accesses for warps in which such an
//! index is affine or uniform.
//!
//! Each kernel stores one word per thread, read at such an index. The index is also computed here, lane by
//! lane. In addition, native code must agree with the interpreter ([`everywhere`]).
#![cfg(feature = "jit")]

use crate::everywhere::{Test, test};

const SIZES: &[u32] = &[1, 31, 32, 64, 100, 256];

/// The words of the table.
const COUNT: u32 = 512;

fn word(index: u32) -> u32 {
    assert!(index < COUNT, "an index of the test is outside of the table");
    index * index * 7 + 1
}

/// A kernel whose `body` computes `%r9`, of which it adds the table's elements up. `%r20` and `%r21` are
/// uniform numbers, which only the running program knows.
fn kernel(numbers: [u32; 2], body: &str) -> Test {
    let words: Vec<String> = (0..COUNT).map(|index| word(index).to_string()).collect();
    let [a, b] = numbers;
    let before = format!(
        ".global .align 8 .u32 numbers[2] = {{{a}, {b}}};\n.global .align 4 .u32 table[{COUNT}] = {{{}}};",
        words.join(", ")
    );
    let body = format!(
        "mov.u64 %rd1, numbers; ld.global.u32 %r20, [%rd1]; ld.global.u32 %r21, [%rd1+4]; mov.u64 %rd2, table;
        mov.u32 %r10, 0; setp.eq.u32 %p1, %c, 1000; @%p1 bra OUT;
        {body}
        OUT: st.global.u32 [%out], %r10; ret;"
    );
    test(&before, &body)
}

/// Reads the table at an index and adds the element to `%r10`.
const READ: &str = "mul.wide.s32 %rd3, %r9, 4; add.s64 %rd3, %rd2, %rd3; ld.global.u32 %r11, [%rd3];
    add.u32 %r10, %r10, %r11;";

/// An index: the instructions that compute `%r9`, and the number, from the thread and the two numbers.
type Index = (&'static str, fn(u32, [u32; 2]) -> u32);

const INDICES: &[Index] = &[
    ("sub.s32 %r8, %t, 1; max.s32 %r8, %r8, 0; min.s32 %r9, %r8, %r20;", |t, [a, _]| {
        (t.cast_signed() - 1).max(0).min(a.cast_signed()).cast_unsigned()
    }),
    // The first lane wraps around, and is the greatest.
    ("sub.u32 %r8, %t, 1; min.u32 %r9, %r20, %r8;", |t, [a, _]| a.min(t.wrapping_sub(1))),
    ("add.u32 %r8, %t, %r21; max.u32 %r8, %r20, %r8; min.u32 %r9, %r8, 500;", |t, [a, b]| {
        a.max(t.wrapping_add(b)).min(500)
    }),
    // Lanes in descending order.
    ("sub.s32 %r8, %r20, %t; max.s32 %r9, %r8, 3;", |t, [a, _]| {
        (a.cast_signed() - t.cast_signed()).max(3).cast_unsigned()
    }),
    ("add.u32 %r8, %t, %r21; rem.u32 %r9, %r8, %r20;", |t, [a, b]| t.wrapping_add(b) % a),
    ("add.u32 %r8, %t, %r21; rem.u32 %r9, %r8, 48;", |t, [_, b]| t.wrapping_add(b) % 48),
    // Quotients and remainders of negative numbers are rounded towards zero.
    ("sub.s32 %r8, %t, %r21; rem.s32 %r8, %r8, %r20; add.s32 %r9, %r8, 250;", |t, [a, b]| {
        (t.wrapping_sub(b).cast_signed() % a.cast_signed() + 250).cast_unsigned()
    }),
    ("sub.s32 %r8, %t, 40; div.s32 %r8, %r8, %r20; add.s32 %r9, %r8, 250;", |t, [a, _]| {
        ((t.cast_signed() - 40) / a.cast_signed() + 250).cast_unsigned()
    }),
    // Twice the lane, divided: a quotient changes within the warp unless the divisor is large.
    ("shl.b32 %r8, %t, 1; div.u32 %r9, %r8, %r20;", |t, [a, _]| 2 * t / a),
    (
        "div.u32 %r7, %t, %r20; rem.u32 %r8, %t, %r20; shl.b32 %r7, %r7, 1; add.u32 %r9, %r7, %r8;",
        |t, [a, _]| t / a * 2 + t % a,
    ),
    // The limit of the second clamp is the first one's result.
    ("min.u32 %r7, %t, %r20; max.u32 %r8, %r7, %t; min.u32 %r9, %r8, 300;", |t, [a, _]| {
        t.min(a).max(t).min(300)
    }),
];

/// Numbers for the indices: where few lanes are at a limit, where all are, and where numbers wrap around.
const NUMBERS: &[[u32; 2]] = &[[17, 5], [64, 64], [255, 0], [1, 31], [200, u32::MAX - 8], [96, 480]];

#[test]
fn elements_are_those_of_each_lane() {
    for (at, (text, index)) in INDICES.iter().enumerate() {
        // Each index with two of the pairs, and all sizes of CTAs for some.
        for numbers in [NUMBERS[at % NUMBERS.len()], NUMBERS[(3 * at + 1) % NUMBERS.len()]] {
            let inside = |n: u32| (0..n).all(|t| index(t, numbers) < COUNT);
            let sizes = if at.is_multiple_of(4) { SIZES } else { &[64, 100] };
            let sizes: Vec<u32> = sizes.iter().copied().filter(|n| inside(*n)).collect();
            let body = format!("{text} {READ}");
            kernel(numbers, &body).check(&sizes, |t, _| word(index(t, numbers)));
        }
    }
}

#[test]
fn a_window_slides_over_the_edges() {
    // The sum of nine neighbours, clamped and wrapped around, in a loop that is the block of the accesses.
    let body = format!(
        "mov.u32 %r12, 0;
        LOOP: add.s32 %r8, %t, %r12; sub.s32 %r8, %r8, 4; max.s32 %r8, %r8, 0; min.s32 %r9, %r8, %r20; {READ}
        add.s32 %r8, %t, %r12; rem.s32 %r9, %r8, %r21; {READ}
        add.u32 %r12, %r12, 1; setp.lt.u32 %p2, %r12, 9; @%p2 bra LOOP;"
    );
    for numbers in [[99, 70], [3, 5]] {
        kernel(numbers, &body).check(&[32, 64, 256], |t, _| {
            let [last, around] = numbers.map(u32::cast_signed);
            let elements = (0..9).map(|k| {
                let at = t.cast_signed() + k;
                let clamped = (at - 4).max(0).min(last).cast_unsigned();
                word(clamped).wrapping_add(word((at % around).cast_unsigned()))
            });
            elements.fold(0, u32::wrapping_add)
        });
    }
}

#[test]
fn a_value_of_the_versions_is_used_behind_them() {
    // The clamped index itself, a loaded value and a predicate of it live on into divergent code.
    let body = format!(
        "min.u32 %r9, %t, %r20; {READ} setp.gt.u32 %p2, %r9, 20; selp.u32 %r13, %r11, %r9, %p2;
        and.b32 %r14, %r11, 8; setp.eq.u32 %p3, %r14, 0; @%p3 bra OTHER;
        add.u32 %r10, %r10, %r9; bra JOIN;
        OTHER: mad.lo.u32 %r10, %r9, 1000, %r10;
        JOIN: add.u32 %r10, %r10, %r13;"
    );
    for limit in [10, 40] {
        kernel([limit, 0], &body).check(&[32, 64, 100, 256], |t, _| {
            let index = t.min(limit);
            let more = if word(index) & 8 == 0 { 1000 * index } else { index };
            let last = if index > 20 { word(index) } else { index };
            word(index).wrapping_add(more).wrapping_add(last)
        });
    }
}

#[test]
fn an_access_outside_of_the_table_traps_alike() {
    // The index is below the limit in every lane, but the limit is beyond the table, which ends the memory of
    // the module.
    let body = format!("mad.lo.u32 %r8, %t, 1, %r21; min.u32 %r9, %r8, %r20; {READ}");
    let trap = kernel([60_000, 50_000], &body).trap(64);
    assert!(trap.contains("ld.global"), "{trap}");
}
